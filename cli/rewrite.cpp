// servecast rewrite: the text that a scenario came from, with other settings.
#include <fmt/format.h>

#include <string>

#include "arguments.h"
#include "base/diff.h"
#include "base/printable.h"
#include "commands.h"
#include "host/files.h"
#include "import_texts.h"
#include "servecast/export.h"
#include "servecast/import.h"

namespace servecast {
namespace {

constexpr const char* kRewriteHelp =
    "servecast rewrite FILE|TEXT [--set path=value]... [--as FILE|PRESET]\n"
    "\n"
    "Prints a diff that gives the servers in a text that import reads (a command, a manifest, a\n"
    "chart's values) the settings of --set: servecast rewrite launch.sh --set "
    "engine.max_num_seqs=128\n"
    "Options are edited where they stand, or added behind others; each edit is read again, and is "
    "kept\n"
    "only if it changes nothing else that import reads. Apply it with patch FILE; - reads stdin. "
    "Workload\n"
    "and targets are no settings of servers, and are not compared.\n"
    "\n"
    "  --as FILE|PRESET  the servers of this scenario, as plan or advise found it, --set on top\n"
    "  --whole           the whole text instead of a diff\n"
    "\n"
    "Exit 0: done, also where nothing is to change. 2: bad input, a text without a server, or one "
    "on\n"
    "several nodes. 3: some settings could not be written; stderr says which, and why. 70: a bug "
    "of\n"
    "servecast.\n";

// The scenario of --as, or else of the text, with what --set says.
Result<std::string> DocumentOf(const Arguments& args, const std::string& text,
                               const std::string& as) {
  std::string document;
  if (as.empty()) {
    const Imported imported = Import({{"", text}}, *ScenarioPreset("llama-3.1-8b-h100-chat"));
    if (!imported.issues.empty()) return imported.issues;
    document = imported.document;
  } else {
    const Result<std::string> read = ScenarioText(as);
    if (!read.ok()) return read.issues();
    document = read.value();
  }
  return ApplyOverrides(document, args.overrides);
}

}  // namespace

int RewriteCommand(const Words& words) {
  Arguments args;
  std::string as;
  bool whole = false;
  Options options{.help = kRewriteHelp, .replays = false};
  options.values = {{"--as", &as}};
  options.flags = {{"--whole", &whole}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  const Result<std::string> text = TextOf(args.scenario);
  if (!text.ok()) return PrintIssues(text.issues());
  const Result<std::string> wanted = DocumentOf(args, text.value(), as);
  if (!wanted.ok()) return PrintIssues(wanted.issues());
  const Result<Rewritten> rewritten = Rewrite({"", text.value()}, wanted.value());
  if (!rewritten.ok()) return PrintIssues(rewritten.issues());
  const Rewritten& out = rewritten.value();
  const std::string name = IsText(args.scenario) ? "text" : args.scenario;
  fmt::print("{}", whole ? out.text : UnifiedDiff(text.value(), out.text, name));
  for (const ImportNote& note : out.left_out) {
    fmt::print(stderr, "left out {}: {}\n", Printable(note.what), Printable(note.why));
  }
  if (out.left_out.empty() && out.text == text.value()) {
    fmt::print(stderr, "nothing to change\n");
  }
  return out.left_out.empty() ? 0 : 3;
}

}  // namespace servecast
