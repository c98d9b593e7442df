// Arguments of the tools of servecast mcp: JSON on one side, the words of a subcommand on the
// other.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "io/json_writer.h"
#include "servecast/result.h"

namespace servecast {

// kScenario: a preset's name or a document. kChanges: an object of values by path. kVariants: an
// array of such objects. kNumbers, kTexts: arrays. kChoice: one of `choices`.
enum class Takes {
  kScenario,
  kChanges,
  kVariants,
  kFlag,
  kNumber,
  kNumbers,
  kText,
  kTexts,
  kChoice
};

struct ToolArgument {
  std::string_view name;
  Takes takes = Takes::kText;
  std::string_view option;  // of the subcommand; "": a word of its own
  std::string_view help;
  bool required = false;
  std::vector<std::string> choices = {};
};

// The JSON schema of an object with these members and no others.
void WriteSchema(const std::vector<ToolArgument>& arguments, JsonWriter& out);

struct ToolWords {
  Words words;
  std::string document;  // for stdin, where the scenario is one
};
// Issues: every argument that is unknown, missing or of the wrong type, by its JSON pointer. No
// value is taken for the name of a file.
Result<ToolWords> ReadToolArguments(const std::vector<ToolArgument>& arguments,
                                    const nlohmann::json& given);

}  // namespace servecast
