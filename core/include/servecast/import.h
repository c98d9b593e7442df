// What other programs say of a deployment, as a scenario: launch commands, config files, benchmark
// results, metrics, lists of GPUs. Pure: who calls it reads the files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"

namespace servecast {

struct ImportText {
  std::string name;  // of the file, for remarks; "" when there is one text only
  std::string_view text;
};

// A member of the scenario ("engine.max_num_seqs = 128") and the words that it came from, or words
// that were left out and why. Safe to show.
struct ImportNote {
  std::string what, why;

  friend bool operator==(const ImportNote&, const ImportNote&) = default;
};

struct Imported {
  std::string document;            // indented JSON; "" when nothing was understood
  std::vector<std::string> kinds;  // what was found in the texts, in their order
  // What the answer depends on most, and is not as a text has it: to be read first.
  std::vector<std::string> warnings;
  std::vector<ImportNote> taken;
  std::vector<ImportNote> ignored;
  std::vector<std::string> remarks;  // what was assumed, and what was measured
  // Members that no text says and that change the answer: "model.top_p_by_default".
  std::vector<std::string> assumed;
  Issues issues;  // of the document, or why there is none
};

// The scenario that the texts tell together; of two that differ the later wins, and a remark says
// so. What no text says is as in `base`, a scenario document, except a model or a GPU that is named
// and not known: the document has none then. O(size of the texts).
Imported Import(const std::vector<ImportText>& texts, std::string_view base);

// Of one text; the rest is as in the scenario preset llama-3.1-8b-h100-chat.
Imported Import(std::string_view text);

}  // namespace servecast
