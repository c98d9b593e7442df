// Options of a command line, by a table: which member of a scenario each is, or why it is none.
#pragma once

#include <functional>
#include <initializer_list>
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
  kName,    // a word that others gave, of a model: whatever it is, it is one
  kWords,   // several words, up to the next option
  kFlag,    // nothing: it is there
  kSwitch   // nothing, or true and false; --no-NAME is its opposite
};

struct Option {
  std::string_view name;  // without --
  OptionValue value;
  std::string_view path = {};   // "engine.max_num_seqs"; "pool..." and "engine..." of this server
  std::string_view why = {};    // without a path: why it is left out; "" with one, or read apart
  std::string_view alias = {};  // "-tp"
  // What a word may be, "auto|fp8"; of a number, the words beside numbers. "": any.
  std::string_view choices = {};
  // Of an option that is read apart: what is taken where its value cannot be read.
  std::string_view otherwise = "as if it were not given";
};

// As the command line has it.
struct GivenOption {
  const Option* option = nullptr;  // nullptr: the table does not know it
  std::string name;                // "--max-num-seqs", as it was written
  std::optional<std::string> value;
  CommandWords all;      // of kWords, each of them; `value` has them in one
  bool negated = false;  // --no-NAME, or a switch with "false"

  // "--max-num-seqs 128".
  std::string Words() const;
};

struct GivenOptions {
  std::vector<GivenOption> options;
  CommandWords positionals;

  // Names those whose values cannot be read ("--max-num-seqs $SEATS"), each with what is taken
  // instead, and the positionals from `used` on; from here on they are not given. `traffic`: who is
  // asked what changes a forecast most, so warnings say it, too.
  void LeaveUnread(std::size_t used, bool traffic, Draft& draft);

  // The last of that name; nullptr: not given.
  const GivenOption* Find(std::string_view name) const;
  // Its value; "" when it is not given or has none.
  std::string Text(std::string_view name) const;
  // Its value where it is a number; `otherwise` when it is not given.
  std::optional<double> Number(std::string_view name) const;
};

// "--max_num_seqs" -> max-num-seqs.
std::string PlainName(std::string_view written);

// Words behind the command. Underscores in names are dashes.
GivenOptions ReadOptions(std::span<const std::string> words, std::span<const Option> table);

// Takes those with a path into the draft and names the others; those in `apart` are the caller's.
void TakeOptions(const GivenOptions& given, std::span<const std::string_view> apart, Draft& draft);

// Reads options into the draft, and names those that are read apart and have no effect beside the
// others ("--burstiness" without a rate). `read` is called once for each of these, too, with a
// draft of its own.
void ReadNamingIdle(const GivenOptions& given, Draft& draft,
                    const std::function<void(GivenOptions, Draft&)>& read);

// Options that say what a benchmark asks a server for: to pool ("openai-embeddings", "vllm-rerank",
// "rankings", "/v1/score"), or else nothing that takes time.
void TakePooled(const GivenOptions& given, std::initializer_list<std::string_view> names,
                Draft& draft);

// What has no effect on the time of requests.
inline constexpr std::string_view kNoTime = "has no effect on times";
inline constexpr std::string_view kNotModelled = "is not modelled";
// That is a warning, too: the server is read as one of whole requests.
inline constexpr std::string_view kEncodersApart =
    "images that another server encodes are not read: give its pool the role encode";

}  // namespace servecast
