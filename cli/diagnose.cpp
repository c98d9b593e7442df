// servecast diagnose: what was measured on a server beside its forecast, and what would explain it.
#include <utility>

#include "commands.h"
#include "experiment/diagnosis.h"
#include "host/files.h"
#include "import_texts.h"
#include "progress.h"
#include "servecast/scenario.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kDiagnoseHelp =
    "servecast diagnose FILE|TEXT... [--scenario FILE|PRESET] [--set path=value]...\n"
    "\n"
    "What is wrong with this server? The files say together what it is and what was\n"
    "measured on it: a launch command or a manifest (or --scenario, the document of\n"
    "it), and a printed benchmark, its JSON, Prometheus text or a log; all that\n"
    "servecast import reads, in one file or in several. Prints, as JSON in a pipe:\n"
    "  figures  each measured figure beside the forecast and its 90 % band (error of\n"
    "           the forecast, and scatter of one run), and whether it lies outside\n"
    "  checks   what a log says of the KV cache and the prefix cache, beside what is\n"
    "           planned\n"
    "  causes   changes of the scenario that bring the forecast to what was measured,\n"
    "           each run on top of those before it; \"left\" is the mean distance that\n"
    "           remains, \"proof\" what to look at on the server\n"
    "  alone    every cause that was run, each alone: what was ruled out, too\n"
    "\n"
    "  --scenario FILE|PRESET  source of what no file says; default\n"
    "                          llama-3.1-8b-h100-chat\n"
    "\n"
    "-o text, json, jsonl or csv (a row for each figure); --fields A,B; --color WHEN:\n"
    "as in run, text on a terminal. On stderr: warnings, and what was found, taken\n"
    "and left out. Exit 0: done. 2: bad input. 3: the document needs one more answer.\n"
    "70: a bug of servecast.\n";

}  // namespace

int DiagnoseCommand(const std::vector<std::string>& words) {
  TextArguments args;
  if (const auto done = ReadTextArguments(words, "diagnose", kDiagnoseHelp, args, true)) {
    return *done;
  }
  const std::optional<AnswerForm> form = FormOf(args.answer);
  if (!form) return kBadInput;
  const Result<Imported> read = ImportTexts(args);
  if (!read.ok()) return PrintIssues(read.issues());
  const Imported& imported = read.value();
  PrintNotes(imported);
  if (const int code = CodeOf(imported); code != 0 && args.overrides.empty()) return code;
  Result<std::string> document = ApplyOverrides(imported.document, args.overrides);
  if (!document.ok()) return PrintIssues(document.issues());
  Result<Diagnosis> created =
      Diagnosis::Create(std::move(document.value()), {imported.measured, imported.said});
  if (!created.ok()) return PrintIssues(created.issues());
  Diagnosis& diagnosis = created.value();
  RunThrough(diagnosis);
  return PrintAnswer(*form, {.json = diagnosis.Json(/*with_documents=*/false),
                             .text = DiagnoseText,
                             .rows = [](View answer) { return answer["figures"].Elements(); }});
}

}  // namespace servecast
