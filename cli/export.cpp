// servecast export: a scenario as what other programs read.
#include "servecast/export.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "arguments.h"
#include "base/printable.h"
#include "commands.h"
#include "host/files.h"

namespace servecast {
namespace {

std::string Help() {
  std::string text =
      "servecast export FILE|PRESET --to TARGET [--set path=value]...\n"
      "\n"
      "Prints the scenario as another program takes it:\n";
  for (const ExportTarget& target : ExportTargets()) {
    text += fmt::format("  --to {:<11} {}\n", target.name, target.help);
  }
  return text +
         "\n"
         "What the target cannot say goes to stderr, with why. servecast import reads all of "
         "these\n"
         "back. --set and --coefficients as in run.\n"
         "\n"
         "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";
}

}  // namespace

int ExportCommand(const Words& words) {
  Arguments args;
  std::string target;
  const std::string help = Help();
  Options options{.help = help.c_str(), .replays = false};
  options.values = {{"--to", &target}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (target.empty()) return Usage("export needs --to TARGET; see servecast export --help");
  const Result<std::string> document = LoadDocument(args);
  if (!document.ok()) return PrintIssues(document.issues());
  const Result<Exported> exported = Export(document.value(), target);
  if (!exported.ok()) return PrintIssues(Labelled(LabelOf(args), exported.issues()));
  for (const ImportNote& note : exported.value().left_out) {
    fmt::print(stderr, "left out {}: {}\n", Printable(note.what), Printable(note.why));
  }
  fmt::print("{}", exported.value().text);
  return 0;
}

}  // namespace servecast
