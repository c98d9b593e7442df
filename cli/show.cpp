// servecast show and init: documents to begin with.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "arguments.h"
#include "base/text.h"
#include "commands.h"
#include "host/output_file.h"
#include "servecast/scenario.h"
#include "suggest.h"
#include "text/view.h"

namespace servecast {
namespace {

constexpr const char* kShowHelp =
    "servecast show PRESET|FILE [--set path=value]...\n"
    "\n"
    "Prints the document of a preset scenario, or of a file, with what the options change: to be\n"
    "saved and changed, servecast show llama-3.1-8b-h100-chat > mine.json. servecast catalog "
    "lists\n"
    "presets, and every member with its range and default.\n"
    "\n"
    "Exit 0: done. 2: bad input. 70: a bug of servecast.\n";

constexpr const char* kInitHelp =
    "servecast init [-o FILE] [--set path=value]...\n"
    "\n"
    "Prints a document to begin with: a model, a GPU, traffic and two targets, the members that\n"
    "most people change first; all others have defaults. servecast catalog lists them.\n"
    "  -o FILE           into a file, which must not be there yet\n"
    "  --set path=value  with another value, e.g. model.preset=qwen3-32b\n"
    "\n"
    "Exit 0: done. 2: bad input, or a file that is there. 70: a bug of servecast.\n";

constexpr const char* kFirstDocument = R"({
  "schema": 1,
  "name": "Chat on one H100",
  "model": {"preset": "llama-3.1-8b"},
  "hardware": {"preset": "h100-sxm"},
  "engine": {"preset": "vllm-0.15"},
  "cluster": {"pools": [{"replicas": 1, "tensor_parallel": 1}]},
  "workload": {
    "requests": 2000,
    "arrivals": {"process": "poisson", "rate_per_s": 10},
    "prompt_tokens": {"distribution": "lognormal", "median": 512, "p99": 3072},
    "output_tokens": {"distribution": "lognormal", "median": 128, "p99": 640}
  },
  "slo": [
    {"metric": "ttft", "percentile": 99, "limit_ms": 1000},
    {"metric": "tpot", "percentile": 99, "limit_ms": 50}
  ]
})";

}  // namespace

int ShowCommand(const Words& words) {
  Arguments args;
  const Options options{.help = kShowHelp, .replays = false};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  const Result<std::string> text = LoadDocument(args);
  if (!text.ok()) return PrintIssues(text.issues());
  const Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return PrintIssues(Labelled(LabelOf(args), scenario.issues()));
  fmt::print("{}\n", ParsedAnswer(text.value()).root().IndentedJson());
  return 0;
}

int InitCommand(const Words& words) {
  Arguments args;
  args.scenario = "init";  // there is none to name
  std::string out;
  Options options{.help = kInitHelp, .replays = false};
  options.values = {{"-o", &out}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  for (const std::string& change : args.overrides) {
    if (const auto meant = Suggestion(change)) return PrintIssues({*meant});
  }
  std::string document = kFirstDocument;
  if (!args.overrides.empty()) {
    const Result<std::string> changed = ApplyOverrides(document, args.overrides);
    if (!changed.ok()) return PrintIssues(changed.issues());
    document = ParsedAnswer(changed.value()).root().IndentedJson();
  }
  const Result<Scenario> scenario = ParseScenario(document);
  if (!scenario.ok()) return PrintIssues(scenario.issues());
  std::error_code error;
  if (!out.empty() && out != "-" && std::filesystem::exists(out, error)) {
    return PrintIssues({{out, "is there already, and stays as it is"}});
  }
  return WriteOrPrint(out == "-" ? "" : out, document + "\n") ? 0 : kBadInput;
}

}  // namespace servecast
