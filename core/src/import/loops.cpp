// Loops of scripts: the first round is the scenario, and the others are named, with the servecast
// sweep that runs them all.
//
//   for C in 1 2 64; do vllm bench serve --max-concurrency $C --num-prompts $((C * 20)); done
//     C is 1 here ... servecast sweep FILE --over workload.arrivals.concurrency=1,2,64 runs these
//     --num-prompts is 20 to 1280 in the loop over C: workload.requests is 1280, enough for each
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/kinds.h"

namespace servecast {
namespace {

// Rounds of all loops are cut anew, so their text together is bounded.
constexpr std::size_t kMostRounds = 64, kMostLoopText = 8'000'000;

bool HasPart(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether a command starts a server or a benchmark.
bool RunsSomething(const CommandWords& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "serve" || HasPart(word, "bench") || HasPart(word, "launch_server");
  });
}

// The path of the one option that is given a loop's variable alone: "--max-concurrency $C"; "".
std::string LoopPath(const std::string& name, const std::vector<CommandWords>& commands) {
  std::string path;
  for (const CommandWords& words : commands) {
    const bool open = SendsAtARate(words);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      const bool joined = equals != std::string::npos;
      if (words[i].rfind("--", 0) != 0 || (!joined && i + 1 == words.size())) continue;
      const std::string value = joined ? words[i].substr(equals + 1) : words[i + 1];
      if (value != "$" + name && value != "${" + name + "}") continue;
      const std::string own = SweptPath(words[i].substr(0, equals), open);
      if (!path.empty() && !own.empty() && own != path) return "";
      if (!own.empty()) path = own;
    }
  }
  return path;
}

// An option's value in the first round, where it stands, and what it is in the others.
struct Varied {
  std::size_t command = 0, word = 0;
  std::string option;
  CommandWords values;  // of every round
};

// The value of `word`, of "--name=value" or behind "--name"; the option's name.
std::pair<std::string, std::string> OptionAt(const CommandWords& words, std::size_t at) {
  const std::size_t equals = words[at].find('=');
  if (words[at].rfind("--", 0) == 0 && equals != std::string::npos) {
    return {words[at].substr(0, equals), words[at].substr(equals + 1)};
  }
  const bool behind = at > 0 && words[at - 1].rfind("--", 0) == 0;
  return {behind ? words[at - 1] : "", words[at]};
}

// Options of servers and benchmarks whose values differ between rounds. `rounds` are the commands
// of each, the first those that are imported.
std::vector<Varied> VariedIn(const std::vector<std::vector<CommandWords>>& rounds) {
  std::vector<Varied> varied;
  const std::vector<CommandWords>& first = rounds[0];
  for (std::size_t c = 0; c < first.size(); ++c) {
    const bool alike = std::all_of(rounds.begin(), rounds.end(), [&](const auto& round) {
      return round.size() == first.size() && round[c].size() == first[c].size();
    });
    if (!alike || !RunsSomething(first[c])) continue;
    for (std::size_t w = 0; w < first[c].size(); ++w) {
      Varied each{c, w, OptionAt(first[c], w).first, {}};
      for (const auto& round : rounds) each.values.push_back(OptionAt(round[c], w).second);
      const bool same = std::all_of(each.values.begin(), each.values.end(),
                                    [&](const std::string& v) { return v == each.values[0]; });
      if (!same && !each.option.empty()) varied.push_back(std::move(each));
    }
  }
  return varied;
}

// What changes beside the option that the sweep is over: requests are enough for every step, other
// members stay as in the first round, which is said.
void HoldOthers(const std::string& name, const std::string& path, const std::vector<Varied>& varied,
                std::vector<CommandWords>& commands, Draft& draft) {
  static constexpr std::string_view kRequests[] = {"num-prompts", "num-requests", "request-count",
                                                   "max-requests"};
  for (const Varied& each : varied) {
    const std::string option = PlainName(each.option);
    CommandWords& words = commands[each.command];
    if (std::find(std::begin(kRequests), std::end(kRequests), option) != std::end(kRequests)) {
      const auto less = [](const std::string& a, const std::string& b) {
        return NumberIn(a).value_or(0) < NumberIn(b).value_or(0);
      };
      const auto [least, most] = std::minmax_element(each.values.begin(), each.values.end(), less);
      std::string& word = words[each.word];
      word.replace(word.size() - each.values[0].size(), std::string::npos, *most);
      draft.Warn(Format(
          "{} is {} to {} in the loop over {}: workload.requests is {}, enough for every step",
          each.option, ShownText(*least, 20), ShownText(*most, 20), ShownText(name, 40),
          ShownText(*most, 20)));
      continue;
    }
    const std::string own = SweptPath(each.option, SendsAtARate(words));
    if (own.empty() || own == path) continue;
    draft.Warn(Format("{} changes in the loop over {}, too: it stays {} here, and in that sweep",
                      each.option, ShownText(name, 40), ShownText(each.values[0], 40)));
  }
}

}  // namespace

void UnrollLoops(std::string_view text, std::vector<CommandWords>& commands, Draft& draft) {
  struct Loop {
    std::string name, path;
    CommandWords values;
  };
  Variables first;
  std::vector<Loop> loops;
  for (const auto& [name, values] : LoopsIn(commands)) {
    const auto uses = [name = "$" + name, braced = "${" + name](const CommandWords& words) {
      return RunsSomething(words) &&
             std::any_of(words.begin(), words.end(), [&](const std::string& word) {
               return HasPart(word, name) || HasPart(word, braced);
             });
    };
    if (std::none_of(commands.begin(), commands.end(), uses)) continue;
    first[name] = values[0];
    if (values.size() > 1) loops.push_back({name, LoopPath(name, commands), values});
  }
  if (first.empty()) return;
  commands = CommandsIn(text, first);
  std::size_t left = kMostLoopText / (text.size() + 1);
  for (const Loop& loop : loops) {
    draft.Warn(FirstOf(loop.name, loop.values, "a loop", loop.path));
    if (loop.path.empty()) continue;
    const std::size_t count = std::min(loop.values.size(), kMostRounds);
    if (count > left) {
      draft.Warn(
          Format("the script is too long to compare the rounds of its loop over {}: all "
                 "options are those of the first",
                 ShownText(loop.name, 40)));
      continue;
    }
    left -= count;
    std::vector<std::vector<CommandWords>> rounds = {CommandsIn(text, first)};
    for (std::size_t i = 1; i < count; ++i) {
      Variables round = first;
      round[loop.name] = loop.values[i];
      rounds.push_back(CommandsIn(text, round));
    }
    HoldOthers(loop.name, loop.path, VariedIn(rounds), commands, draft);
  }
}

}  // namespace servecast
