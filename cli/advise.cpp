// servecast advise: one-step changes, each run on the same requests, by what they do.
#include <utility>

#include "arguments.h"
#include "commands.h"
#include "experiment/advice.h"
#include "progress.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kAdviseHelp =
    "servecast advise FILE|PRESET [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "\n"
    "Runs about a dozen one-step changes (seats, token budget, chunking, caching, replicas, "
    "tensor\n"
    "parallelism, the next GPU, fewer bits, prefill and decode apart, router) on the same "
    "requests\n"
    "and prints them, as JSON in a pipe: first those that meet all targets, the cheapest of them\n"
    "first, then the others by how sure it is that they meet all, then by effect. \"effect\" is\n"
    "the share by which a change lowers the latency of the deciding target, or raises the served\n"
    "rate when overloaded. A change that cannot run has its issues instead.\n"
    "\n"
    "-o text, json, jsonl or csv (a row for each change); --fields A,B; --color WHEN: as in run,\n"
    "text on a terminal. Exit 0: done. 2: bad input. 70: a bug of servecast.\n";

}  // namespace

int AdviseCommand(const Words& words) {
  Arguments args;
  if (const auto done = ReadArguments(words, {.help = kAdviseHelp, .answers = true}, args)) {
    return *done;
  }
  const Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  const Trace& trace = asked.value().trace;
  Result<Advice> created = Advice::Create(LoadDocument(args, !trace.has_arrivals).value(), trace);
  if (!created.ok()) return PrintIssues(created.issues());
  Advice& advice = created.value();
  RunThrough(advice);
  if (!advice.Problems().empty()) return PrintIssues(advice.Problems());
  return PrintAnswer(args.form, {.json = advice.Json(/*with_documents=*/false),
                                 .text =
                                     [&args](View answer, const Style& style) {
                                       return AdviseText(answer, style, args.typed);
                                     },
                                 .rows = [](View answer) { return answer["changes"].Elements(); }});
}

}  // namespace servecast
