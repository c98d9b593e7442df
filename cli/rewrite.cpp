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
    "Prints what to change in a text that import reads (a command, a manifest, a chart's values) "
    "for\n"
    "its servers to be as --set says, as a diff that patch takes: options are edited where they "
    "stand,\n"
    "or put behind others. Each edit is read again, and is made only if it changes nothing else. "
    "What\n"
    "the text cannot say goes to stderr, with why.\n"
    "\n"
    "  --as FILE|PRESET  the servers of this scenario, as plan or advise found it, --set on top\n"
    "  --whole           the whole text instead of a diff\n"
    "\n"
    "Exit 0: done, also where nothing is to change. 2: bad input, or a text without a server. 3: "
    "some\n"
    "of it the text cannot say. 70: a bug of servecast.\n";

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
