// Options of a command line, by a table: which member of a scenario each is, or why it is none.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/draft.h"
#include "import/words.h"

namespace servecast {

// What stands behind an option.
enum class OptionValue {
  kCount,   // a whole number, 32k too
  kNumber,  // a number
  kText,    // a word
  kFlag,    // nothing: it is there
  kSwitch   // nothing, or true and false; --no-NAME is its opposite
};

struct Option {
  std::string_view name;  // without --
  OptionValue value;
  std::string_view path = {};   // "engine.max_num_seqs"; "pool..." and "engine..." of this server
  std::string_view why = {};    // without a path: why it is left out; "" with one, or read apart
  std::string_view alias = {};  // "-tp"
};

// As the command line has it.
struct GivenOption {
  const Option* option = nullptr;  // nullptr: the table does not know it
  std::string name;                // "--max-num-seqs", as it was written
  std::optional<std::string> value;
  bool negated = false;  // --no-NAME, or a switch with "false"

  // "--max-num-seqs 128".
  std::string Words() const;
};

struct GivenOptions {
  std::vector<GivenOption> options;
  CommandWords positionals;

  // The last of that name; nullptr: not given.
  const GivenOption* Find(std::string_view name) const;
  // Its value; "" when it is not given or has none.
  std::string Text(std::string_view name) const;
  // Its value where it is a number; `otherwise` when it is not given.
  std::optional<double> Number(std::string_view name) const;
};

// Words behind the command. Underscores in names are dashes.
GivenOptions ReadOptions(std::span<const std::string> words, std::span<const Option> table);

// Takes those with a path into the draft and names the others; those in `apart` are the caller's.
void TakeOptions(const GivenOptions& given, std::span<const std::string_view> apart, Draft& draft);

// What has no effect on the time of requests.
inline constexpr std::string_view kNoTime = "has no effect on times";
inline constexpr std::string_view kNotModelled = "is not modelled";

}  // namespace servecast
