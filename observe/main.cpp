// servecast-observe, which `servecast observe` becomes: a scenario's requests to a real server, and
// what came back as a file that `servecast calibrate` reads.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/printable.h"
#include "host/files.h"
#include "host/output_file.h"
#include "host/process.h"
#include "io/replaying.h"
#include "observe/client.h"
#include "observe/options.h"
#include "observe/result.h"
#include "servecast/scenario.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr int kNoneAnswered = 1;
constexpr int kInterruptedRun = 130;  // as a shell has it of SIGINT

constexpr const char* kObserveHelp =
    "servecast observe URL FILE|PRESET [options]\n"
    "\n"
    "Sends the scenario's requests, those that servecast run would simulate, to an "
    "OpenAI-compatible\n"
    "server at their own times, and notes when each token comes. The result is what\n"
    "`vllm bench serve --save-result --save-detailed` writes; servecast calibrate reads it.\n"
    "\n"
    "  -o FILE               where it goes; else to stdout\n"
    "  --model NAME          as the server calls it; else the first that URL/models names\n"
    "  --set path=value      change a member of the scenario; may be repeated\n"
    "  --trace FILE          replay a trace, as servecast run does\n"
    "  --max-concurrency N   at most so many requests at once; the others wait. Else open loop\n"
    "  --prompts ids|words   prompts as lists of token ids, of exact length (unless said "
    "otherwise),\n"
    "                        or as so many English words, for servers that take text only\n"
    "  --salt N              the same prompts as in the run that had it; else new ones, which no\n"
    "                        prefix cache knows\n"
    "  --timeout S           a request may take so long; 600 unless said otherwise\n"
    "  --stall S             and be silent for so long; else as long as it may take\n"
    "  --retries N           try again after 429, 503 or a connection that broke before the first\n"
    "                        token; 0 unless said otherwise, as vllm bench serve has it\n"
    "  --warm-up N           small requests before the first; 1 unless said otherwise\n"
    "\n"
    "URL is http://HOST:PORT or https://HOST, with /v1 or without; requests go to "
    "/v1/completions,\n"
    "streamed, with ignore_eos, and the key of $OPENAI_API_KEY if it is set. Prompts are drawn: "
    "they\n"
    "hold nothing of anybody. An interrupt (Ctrl-C) ends the run and writes what has come.\n"
    "Exit 0: written. 1: written, and no request was answered. 2: bad input or no such server.\n"
    "130: written, as far as it came.\n";

struct Planned {
  Scenario scenario;
  RequestTable requests;
};

Result<Planned> LoadRequests(const ObserveOptions& options) {
  const Result<Trace> trace = LoadTrace(options.trace);
  Result<std::string> text = ScenarioText(options.scenario);
  Issues issues;
  if (!text.ok()) issues = text.issues();
  if (!trace.ok()) issues.insert(issues.end(), trace.issues().begin(), trace.issues().end());
  if (!issues.empty()) return issues;
  const std::string label = ScenarioPreset(options.scenario) ? ""
                            : options.scenario == "-"        ? "stdin"
                                                             : options.scenario;
  if (!options.trace.empty()) text = ReplayingDocument(text.value(), trace.value().has_arrivals);
  if (!options.overrides.empty()) text = ApplyOverrides(text.value(), options.overrides);
  if (!text.ok()) return Labelled(label, text.issues());
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Labelled(label, scenario.issues());
  Result<RequestTable> requests = MakeRequests(scenario.value(), trace.value());
  if (!requests.ok()) return Labelled(label, requests.issues());
  issues = CheckRequests(requests.value());
  if (!issues.empty()) return Labelled(label, issues);
  return Planned{std::move(scenario.value()), std::move(requests.value())};
}

volatile std::sig_atomic_t stop = 0;

// The first signal ends the run, the second the program.
void StopOnSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto before = std::signal(signal, [](int which) {
      if (stop != 0) {
        RemoveUnfinishedFiles();
        std::signal(which, SIG_DFL);
        std::raise(which);
      }
      stop = 1;
    });
    if (before == SIG_IGN) std::signal(signal, SIG_IGN);  // as with nohup
  }
}

void ShowOnTerminal(const Progress& progress) {
  fmt::print(stderr, "\r{} sent, {} answered, {} at once ", progress.sent, progress.answered,
             progress.at_once);
}

int Main(std::vector<std::string> words) {
  const char* key = std::getenv("OPENAI_API_KEY");
  const Result<ObserveOptions> read = ReadObserveOptions(words, key);
  if (!read.ok()) return PrintIssues(read.issues());
  const ObserveOptions& options = read.value();
  if (options.help) {
    fmt::print("{}", kObserveHelp);
    return 0;
  }
  if (const auto problem = Collision({options.scenario, options.trace}, {options.out})) {
    return PrintIssues({{"-o", *problem}});
  }
  const Result<Planned> plan = LoadRequests(options);
  if (!plan.ok()) return PrintIssues(plan.issues());
  const RequestTable& requests = plan.value().requests;
  std::optional<OutputFile> file;
  if (!options.out.empty()) {  // Before the server works for it.
    file.emplace(options.out);
    if (!file->ok()) return kBadInput;
  }

  ObserveRun run;
  run.model = options.model;
  if (run.model.empty()) {
    const Result<std::string> model = FirstModel(options);
    if (!model.ok()) return PrintIssues(model.issues());
    run.model = model.value();
  }
  constexpr std::uint64_t kMostSalt = 1'000'000'000;  // short enough to be typed
  run.salt = options.salt.value_or(std::random_device{}() % kMostSalt);
  fmt::print(stderr, "observe  {}, model {}: {} requests\n", Printable(options.url),
             Printable(run.model), requests.size());
  const bool urgent = std::any_of(requests.priority.begin(), requests.priority.end(),
                                  [](auto priority) { return priority != 0; });
  if (!requests.lora.empty() || urgent) {
    fmt::print(stderr, "note     {} of the scenario are not sent\n",
               requests.lora.empty() ? "priorities"
               : urgent              ? "LoRA adapters and priorities"
                                     : "LoRA adapters");
  }
  if (!requests.images.empty()) {
    fmt::print(stderr, "note     images of the scenario are sent as text of as many tokens\n");
  }
  if (const auto issue = WarmUp(options, run)) return PrintIssues({*issue});
  if (const auto horizon_s = plan.value().scenario.measure.horizon_s) {
    run.horizon = NearestNs(*horizon_s * 1e9);
  }
  StopOnSignals();
  run.stop = &stop;
  const bool shown = isatty(STDERR_FILENO) != 0;
  if (shown) run.progress = ShowOnTerminal;
  const Observed observed = Observe(options, requests, run);

  if (shown) fmt::print(stderr, "\r{:60}\r", "");
  fmt::print(stderr, "{}", ObservedSummary(observed, requests));
  const ObservedOf of{run.model, HashText(plan.value().scenario.id), run.salt};
  const std::string text = ObservedJson(observed, of, options, requests);
  if (file) {
    file->Write(text);
    if (!file->Close() || !file->Place()) return kBadInput;
  } else {
    fmt::print("{}", text);
  }
  if (observed.interrupted) return kInterruptedRun;
  for (const Answer& answer : observed.answers) {
    if (answer.outcome == Outcome::kAnswered) return 0;
  }
  return kNoneAnswered;
}

}  // namespace
}  // namespace servecast

int main(int argc, char** argv) { return servecast::RunProgram(argc, argv, servecast::Main); }
