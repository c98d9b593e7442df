// servecast plan search: the cheapest of many designs that keeps its targets.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "host/process.h"
#include "host/workers.h"
#include "io/axes.h"
#include "io/design_json.h"
#include "plan/design_plan.h"
#include "plan/design_search.h"
#include "plan/named_axes.h"
#include "progress.h"
#include "ranges.h"
#include "servecast/scenario.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kSearchHelp =
    "servecast plan search FILE|PRESET [--axes NAMES] [--over path=a,b,c]... [--least cost|energy] "
    "[--threads N] [options]\n"
    "\n"
    "The cheapest design that keeps all targets (slo) at the scenario's load: of every "
    "combination\n"
    "of the values, put into the scenario as servecast sweep does, with the fewest replicas that\n"
    "keep them. Without --axes and --over those of --axes gpu,tp,quantization. The scenario is\n"
    "always among them itself; 10,000 designs at most.\n"
    "\n"
    "  --axes NAMES       some of these, between commas:\n"
    "                       gpu           each GPU with a price, and the scenario's own\n"
    "                       roles         aggregated: one pool does everything; disaggregated:\n"
    "                                     one prefills, one decodes, in the cheapest ratio\n"
    "                       tp            tensor parallel 1, 2, 4, 8\n"
    "                       pp            pipeline parallel 1, 2, 4\n"
    "                       dp            replicas that share experts: 1, 2, 4, 8\n"
    "                       ep            without expert parallelism, and with it\n"
    "                       quantization  what weights may be stored as\n"
    "                       max_num_seqs  64, 128, 256\n"
    "                       max_num_batched_tokens  2048, 4096, 8192\n"
    "                     --over with the path of one gives it other values (see axes in the\n"
    "                     answer); other paths are added\n"
    "  --over path=a,b,c  values as in --set; in brackets, braces and quotes a comma is a comma.\n"
    "                     cluster.pools.*.member sets it in every pool; hardware.preset takes the\n"
    "                     scenario's own figures of a GPU, its price too, with that GPU; a path\n"
    "                     of replicas fixes their number\n"
    "  --prices LIST      of GPUs: reserved-1y, or on-demand (AWS's), instead of the presets' "
    "own,\n"
    "                     which are reserved for a year; a price that the scenario gives stays\n"
    "  --least WHAT       cost (default), or energy: of one output token, by the GPUs' power. "
    "Points\n"
    "                     then have j_per_output_token and mean_w (null: the power of a GPU is "
    "not\n"
    "                     known), least_energy is the answer's id, and a dearer design that needs\n"
    "                     less energy is on the frontier, too\n"
    "  --threads N        designs that run at once (default: all cores); the bytes do not depend\n"
    "                     on it\n"
    "  --set, --trace, --coefficients  as in run\n"
    "\n"
    "Prints JSON, and a sentence on stderr. answer: the price of the cheapest, with low and high;\n"
    "cheapest, frontier (cost against the closest target's share of its limit, by rising cost) "
    "and\n"
    "dominated_by are ids of points. Each point says what it needs, its targets, how it was found\n"
    "(rung: bound, in closed form; coarse, one run a number of replicas; certain, with "
    "intervals),\n"
    "and in reason why it is not on the frontier: what misses, what does not fit, what is better.\n"
    "Exit 0 also when none keeps the targets: answer is null then. 2: bad input. 70: a bug of\n"
    "servecast.\n"
    "\n"
    "-o text (default on a terminal), json, jsonl or csv (a row for each design); --fields A,B;\n"
    "--color WHEN: as in run.\n";

// The line of a task's point. A design of which a file is missing cannot be: natively all are here.
std::string LineOf(const DesignTask& task, const Trace& trace) {
  Result<DesignPlan> plan = DesignPlan::Create(task, trace);
  if (!plan.ok()) {
    DesignPoint point;
    point.id = task.id;
    point.rung = task.rung;
    point.state = DesignState::kRefused;
    point.issues = plan.issues();
    point.reason = plan.issues()[0].message;
    return PointJson(point) + "\n";
  }
  while (!plan.value().Advance(INT64_MAX)) {
  }
  return PointJson(plan.value().Point()) + "\n";
}

// Of as many runs of the scenario as there are at once; a bad document has other issues.
std::optional<Issue> TooLarge(const std::string& document, const Trace& trace,
                              std::size_t threads) {
  const Result<Scenario> scenario = ParseScenario(document);
  if (!scenario.ok()) return std::nullopt;
  RunMemory need = MemoryOfRun(scenario.value(), trace);
  need.bytes *= static_cast<std::int64_t>(threads);
  return BeyondRoom(need, MemoryRoom());
}

// False: a worker ended before its work did.
bool Run(DesignSearch& search, const Trace& trace, std::size_t threads) {
  Progress progress;
  while (!search.finished()) {
    const std::vector<DesignTask> tasks = search.Tasks();
    std::vector<DesignPoint> points;
    bool read = true;
    const bool good = InOrder(
        tasks.size(), threads, [&](std::size_t i) { return LineOf(tasks[i], trace); },
        [&](const std::string& line) {
          Result<DesignPoint> point = ReadPoint(line);
          read = read && point.ok();
          if (point.ok()) points.push_back(std::move(point.value()));
          if (!point.ok()) PrintIssues(point.issues());
          progress.Show(search.Progress(), fmt::format("{} designs", search.designs().size()));
        });
    if (!good || !read) return false;
    for (DesignPoint& point : points) search.Take(std::move(point));
  }
  return true;
}

}  // namespace

int SearchCommand(const Words& words) {
  Arguments args;
  std::vector<Axis> axes;
  std::string threads_text, names, least = "cost";
  Options options{.help = kSearchHelp, .answers = true};
  options.values = {{"--threads", &threads_text},
                    {"--axes", &names},
                    {"--prices", &args.prices},
                    {"--least", &least}};
  options.lists = {{"--over", [&axes](const std::string& text) -> std::string {
                      std::optional<Axis> axis = AxisOrRange(text);
                      if (!axis) return "--over: found " + text + kAllowedOver;
                      axes.push_back(*std::move(axis));
                      return "";
                    }}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  const std::optional<std::size_t> threads = ThreadsOf(threads_text);
  if (!threads) return Usage("--threads: found " + threads_text + ", allowed 1 to 1024");
  if (least != "cost" && least != "energy") {
    return Usage("--least: found " + least + ", allowed cost, energy");
  }
  Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return PrintIssues(trace.issues());
  const Result<std::string> document = LoadDocument(args, !trace.value().has_arrivals);
  if (!document.ok()) return PrintIssues(document.issues());
  if (auto beyond = TooLarge(document.value(), trace.value(), *threads)) {
    return PrintIssues(Labelled(LabelOf(args), {*std::move(beyond)}));
  }
  Result<std::vector<Axis>> asked = AxesAsked(document.value(), names, std::move(axes));
  if (!asked.ok()) return PrintIssues(asked.issues());
  if (!args.prices.empty()) asked.value().push_back({std::string(kPricesPath), {args.prices}});
  Result<DesignSearch> search =
      DesignSearch::Create(document.value(), std::move(asked.value()),
                           {.least = least == "energy" ? Least::kEnergy : Least::kCost});
  if (!search.ok()) return PrintIssues(Labelled(LabelOf(args), search.issues()));
  if (!Run(search.value(), trace.value(), *threads)) {
    fmt::print(stderr, "servecast: a worker process ended before its work was done\n");
    return kBug;
  }
  const std::string sentence = search.value().Sentence();
  const int printed = PrintAnswer(
      args.form,
      {.json = search.value().Json(true),
       .text = [&](View answer,
                   const Style& style) { return SearchText(answer, style, sentence, args.typed); },
       .rows = [](View answer) { return answer["points"].Elements(); }});
  if (printed == 0 && !args.form.ForPeople()) fmt::print(stderr, "{}\n", sentence);
  return printed;
}

}  // namespace servecast
