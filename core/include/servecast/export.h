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

}  // namespace servecast
