// servecast completion: what a shell offers for the next word. The scripts ask this command, so
// that they know what it knows: its option tables, the members of a scenario, and the presets.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "suggest.h"

namespace servecast {
namespace {

constexpr const char* kCompletionHelp =
    "servecast completion bash|zsh|fish\n"
    "\n"
    "Prints a script that completes commands, options, presets, the members of --set, --over and\n"
    "--with, and their choices:\n"
    "  bash: source <(servecast completion bash)      in ~/.bashrc\n"
    "  zsh:  source <(servecast completion zsh)       in ~/.zshrc, after compinit\n"
    "  fish: servecast completion fish | source       in ~/.config/fish/config.fish\n"
    "servecast completion words -- WORD... prints what may be the last of the words, one a line.\n"
    "\n"
    "Exit 0: done. 2: bad input. 70: a bug of servecast.\n";

constexpr const char* kBash =
    "_servecast() {\n"
    "  local IFS=$'\\n' line=\"${COMP_LINE:0:COMP_POINT}\" words\n"
    "  IFS=' ' read -r -a words <<< \"$line\"\n"
    "  [[ \"$line\" == *' ' ]] && words+=('')\n"
    "  local word=\"${words[-1]}\" found\n"
    "  found=$(servecast completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
    "  COMPREPLY=($found)\n"
    "  [[ ${#COMPREPLY[@]} -eq 0 ]] && COMPREPLY=($(compgen -f -- \"$word\"))\n"
    "  # Bash breaks words at = and replaces what stands behind it.\n"
    "  [[ \"$word\" == *=* ]] && COMPREPLY=(\"${COMPREPLY[@]#\"${word%\"${word##*=}\"}\"}\")\n"
    "  [[ ${#COMPREPLY[@]} -eq 1 && \"${COMPREPLY[0]}\" == *= ]] && compopt -o nospace\n"
    "}\n"
    "complete -o default -F _servecast servecast\n";

// Also as a file of zsh's functions, which #compdef at its head makes known.
constexpr const char* kZsh =
    "#compdef servecast\n"
    "_servecast() {\n"
    "  local -a found\n"
    "  found=(${(f)\"$(servecast completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
    "  if (( ${#found} )); then compadd -S '' -U -- \"${found[@]}\"; else _files; fi\n"
    "}\n"
    "if [[ $funcstack[1] == _servecast ]]; then _servecast \"$@\"; else compdef _servecast "
    "servecast; fi\n";

constexpr const char* kFish =
    "function __servecast\n"
    "  set -l words (commandline -opc) (commandline -ct)\n"
    "  servecast completion words -- $words[2..-1] 2>/dev/null\n"
    "end\n"
    "complete -c servecast -a '(__servecast)'\n";

bool Begins(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

// Paths with "=" behind them; of one that has it, the choices of the member.
Words ChangesThatBegin(const std::string& word) {
  Words found;
  const std::size_t equals = word.find('=');
  for (const Member& member : Members()) {
    if (equals == std::string::npos) {
      found.push_back(member.path + "=");
      continue;
    }
    // Those of presets, of which the catalogue has more, follow.
    if (member.path != word.substr(0, equals) || member.path.find(".preset") != std::string::npos) {
      continue;
    }
    for (const std::string& choice : member.choices) found.push_back(member.path + "=" + choice);
  }
  for (const auto& [section, kind] : {std::pair("model", "models"),
                                      {"hardware", "hardware"},
                                      {"engine", "engines"},
                                      {"workload", "workloads"}}) {
    const std::string path = fmt::format("{}.preset=", section);
    if (!Begins(word, path)) continue;
    for (const std::string& id : PresetIds(kind)) found.push_back(path + id);
  }
  return found;
}

Words ValuesOf(const std::string& option, const std::string& word, bool& known) {
  known = true;
  if (option == "--set" || option == "--over" || option == "--with" || option == "--and") {
    return ChangesThatBegin(word);
  }
  if (option == "-o" || option == "--output") return {"text", "json", "jsonl", "csv"};
  if (option == "--color") return {"auto", "always", "never"};
  if (option == "--prices") return {"reserved-1y", "on-demand"};
  if (option == "--least") return {"cost", "energy"};
  if (option == "--names") return {"servecast", "vidur"};
  if (option == "--to")
    return {"vllm", "docker", "kubernetes", "llm-d", "sglang", "trtllm", "bench"};
  known = false;
  return {};
}

Words Candidates(const Words& typed) {
  const std::string& word = typed.back();
  if (typed.size() == 1) return CommandNames();
  if (typed[0] == "help") return CommandNames();
  if (typed[0] == "catalog" && !Begins(word, "-")) {
    return {"models", "gpus", "engines", "workloads", "scenarios", "field"};
  }
  if (typed[0] == "completion") return {"bash", "zsh", "fish"};
  const bool plan = typed[0] == "plan";
  if (plan && typed.size() == 2) return PlanQuestions();
  bool known = false;
  const Words values = ValuesOf(typed[typed.size() - 2], word, known);
  if (known) return values;
  if (Begins(word, "-")) return OptionsOfCommand({typed.begin(), typed.begin() + (plan ? 2 : 1)});
  return PresetIds("scenarios");
}

}  // namespace

int CompletionCommand(const Words& words) {
  const std::string what = words.empty() ? "" : words[0];
  if (what == "--help" || what == "-h") {
    return PrintHelp(kCompletionHelp);
  }
  if (what == "bash" || what == "zsh" || what == "fish") {
    fmt::print("{}", what == "bash" ? kBash : what == "zsh" ? kZsh : kFish);
    return 0;
  }
  if (what != "words" || words.size() < 3 || words[1] != "--") {
    return Usage("completion: found " + (what.empty() ? "no shell" : what) +
                 ", allowed bash, zsh or fish");
  }
  const Words typed(words.begin() + 2, words.end());
  for (const std::string& candidate : Candidates(typed)) {
    if (Begins(candidate, typed.back())) fmt::print("{}\n", candidate);
  }
  return 0;
}

}  // namespace servecast
