// Where options of servers stand in a text of any form (a command, YAML, JSON), and the edits that
// write another one there. Whether an edit says what it should, only reading the text again tells.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servecast {

// "--max-num-seqs 128", "--no-enable-prefix-caching", "max_num_seqs: 128", "maxNumSeqs": 128.
struct OptionPlace {
  std::string name;                            // "max-num-seqs", without "no-"
  std::size_t begin = 0, end = 0;              // of the name as it is written, dashes included
  std::size_t value_begin = 0, value_end = 0;  // equal: it has none
  bool dashed = false;                         // else it is a member, "name:"
  bool negated = false;
  bool joined = false;  // "--name=value"

  bool HasValue() const { return value_begin < value_end; }
  // Of all of it.
  std::size_t Until() const { return HasValue() ? value_end : end; }
};

// In order. O(size of the text).
std::vector<OptionPlace> OptionPlaces(std::string_view text);

// What an option shall be.
struct WantedOption {
  std::string name;
  std::optional<std::string> value;  // none: it shall not be there
  bool is_switch = false;            // "true" or "false", of --name and --no-name
};

// The text with the option at that place as it is wanted; nullopt: that place cannot hold it.
std::optional<std::string> Replaced(std::string_view text, const OptionPlace& at,
                                    const WantedOption& wanted);
// The text with the option behind that place, in the same form. Requires: a value.
std::string InsertedBehind(std::string_view text, const OptionPlace& at,
                           const WantedOption& wanted);

}  // namespace servecast
