// servecast advise: one-step changes, each run on the same requests, by what they do.
#include <fmt/format.h>

#include <utility>

#include "arguments.h"
#include "commands.h"
#include "experiment/advice.h"

namespace servecast {
namespace {

constexpr const char* kAdviseHelp =
    "servecast advise FILE|PRESET [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "\n"
    "Runs about a dozen one-step changes (seats, token budget, chunking, caching, replicas, "
    "tensor\n"
    "parallelism, the next GPU, fewer bits, prefill and decode apart, router) on the same "
    "requests\n"
    "and prints them as JSON: first those that meet all targets, then by their effect on the\n"
    "deciding target, then by cost. \"effect\" is the share by which a change lowers that "
    "latency,\n"
    "or raises the served rate when overloaded. A change that cannot run has its issues instead.\n";

}  // namespace

int AdviseCommand(const Words& words) {
  Arguments args;
  if (const auto done = ReadArguments(words, {.help = kAdviseHelp}, args)) return *done;
  const Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  const Trace& trace = asked.value().trace;
  Result<Advice> created = Advice::Create(LoadDocument(args, !trace.has_arrivals).value(), trace);
  if (!created.ok()) return PrintIssues(created.issues());
  Advice& advice = created.value();
  while (!advice.Advance(INT64_MAX)) {
  }
  if (!advice.Problems().empty()) return PrintIssues(advice.Problems());
  fmt::print("{}\n", advice.Json(/*with_documents=*/false));
  return 0;
}

}  // namespace servecast
