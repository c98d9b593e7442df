// A scenario as what other programs read: the command that starts its servers, manifests, and the
// benchmark that would check its forecast. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/import.h"
#include "servecast/result.h"

namespace servecast {

struct ExportTarget {
  std::string_view name, help;
};
std::vector<ExportTarget> ExportTargets();

struct Exported {
  std::string text;
  std::vector<ImportNote> left_out;  // what the target cannot say, and why. Safe to show.
};

// Issues: the document's, or an unknown target.
Result<Exported> Export(std::string_view document, std::string_view target);

// The text that a scenario came from, with what it has now.
struct Rewritten {
  std::string text;
  std::vector<ImportNote> left_out;  // members that it does not say, and why. Safe to show.
};

// Edits options of servers in the text (a command, YAML of any form that Import reads) until it,
// read again, is the document, in all but workload, targets and other members that are no server's.
// An edit that would change anything else is not made. Issues: the document's, or of a text without
// a server, or of more than 1 MiB. O(1,000 readings of the text, or 32 MiB in all).
Result<Rewritten> Rewrite(const ImportText& text, std::string_view document);

}  // namespace servecast
