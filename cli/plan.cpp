// servecast plan: how much load a scenario holds within its targets, and the replicas a load needs.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "base/text.h"
#include "commands.h"
#include "io/json_writer.h"
#include "metrics/words.h"
#include "plan/drill.h"
#include "servecast/experiment.h"
#include "servecast/plan.h"
#include "servecast/report.h"

namespace servecast {
namespace {

constexpr const char* kPlanHelp =
    "servecast plan QUESTION FILE|PRESET [options] [--set path=value]... [--trace FILE]\n"
    "               [--coefficients ID|FILE]\n"
    "\n"
    "  max-rate  the highest load that keeps all targets (slo): arrivals of all classes in\n"
    "            proportion, the clients of a closed loop, or how fast a trace is played\n"
    "  min-gpus  the fewest replicas that keep them at the scenario's load; of a prefill and a\n"
    "            decode pool both counts. least_gpus: what the load keeps busy at the peaks\n"
    "            of the data sheet, which no system can beat\n"
    "  growth    --percent P: how many months a load that grows by P % a month is held (-1:\n"
    "            not even today's), and what is needed when; --months N to look ahead (24),\n"
    "            --from YYYY-MM for dates\n"
    "  drill     whether the targets hold with one replica fewer, with one slow replica (70 %\n"
    "            of its GPUs' speed), and with a spike (--spike TIMES for --seconds S; 2 for\n"
    "            60); what the scenario cannot have, such as one replica fewer of one, is left\n"
    "            out\n"
    "  search    the cheapest of many designs that keeps them: plan search --help\n"
    "\n"
    "Prints JSON, and a sentence on stderr. answer has value, and low and high of its 95 %\n"
    "interval: on its good side every target is met for certain, beyond the other end one is\n"
    "missed; binding is the target that ends it; curve the places that were tried. Each has as\n"
    "many runs as the interval needs, on the same seeds. Exit 0 also when there is none: answer\n"
    "is null then, and outcome says why.\n";

void WriteNumber(std::string_view key, const std::optional<double>& value, JsonWriter& out) {
  out.Key(key), value ? out.Number(*value) : out.Null();
}

const char* OutcomeName(PlanOutcome outcome) {
  switch (outcome) {
    case PlanOutcome::kFound:
      return "found";
    case PlanOutcome::kNone:
      return "none";
    case PlanOutcome::kUnbounded:
      return "unbounded";
    case PlanOutcome::kUnknown:
      break;
  }
  return "unknown";
}

std::string BindingOf(const Scenario& scenario, const std::optional<std::size_t>& target) {
  return target ? Target(scenario.slo[*target]) : "capacity";
}

const char* RoleName(PoolRole role) {
  return role == PoolRole::kPrefill ? "prefill" : role == PoolRole::kDecode ? "decode" : "mixed";
}

constexpr const char* kTooFew = "Too few requests have an answer to judge a target.";

void WriteTarget(const SloSpec& slo, const PlanTarget& target, JsonWriter& out) {
  out.BeginObject();
  if (slo.metric == SloMetric::kAttainment) {
    out.Key("share"), out.Number(1 - target.unserved_share);
  } else {
    WriteNumber("value_ms", target.value, out);
    WriteNumber("low", target.low, out);
    WriteNumber("high", target.high, out);
    out.Key("unserved_share"), out.Number(target.unserved_share);
  }
  out.EndObject();
}

void WritePoint(const Scenario& scenario, const PlanPoint& point, JsonWriter& out) {
  out.BeginObject();
  out.Key("at"), out.Number(point.at);
  out.Key("runs"), out.Integer(point.runs);
  out.Key("overloaded"), out.Boolean(point.overloaded);
  out.Key("requests_per_s"), out.Number(point.requests_per_s);
  out.Key("goodput_per_s"), out.Number(point.goodput_per_s);
  out.Key("slo"), out.BeginArray();
  for (std::size_t k = 0; k < point.targets.size(); ++k) {
    WriteTarget(scenario.slo[k], point.targets[k], out);
  }
  out.EndArray();
  out.EndObject();
}

void WriteAnswer(double value, double low, double high, std::string_view unit, JsonWriter& out) {
  out.Key("answer"), out.BeginObject();
  out.Key("value"), out.Number(value);
  out.Key("low"), out.Number(low);
  out.Key("high"), out.Number(high);
  out.Key("unit"), out.Text(unit);
  out.EndObject();
}

void WriteCurve(const Scenario& scenario, const std::vector<PlanPoint>& curve, JsonWriter& out) {
  out.Key("curve"), out.BeginArray();
  for (const PlanPoint& point : curve) WritePoint(scenario, point, out);
  out.EndArray();
}

template <class Asked>
auto ToEnd(Result<Asked> made) -> Result<Asked> {
  while (made.ok() && !made.value().Advance(INT64_MAX)) {
  }
  return made;
}

// What is printed: the JSON, and the sentence for a person.
int Print(JsonWriter& out, const std::string& sentence) {
  fmt::print("{}\n", out.Take());
  fmt::print(stderr, "{}\n", sentence);
  return 0;
}

// What a question is given besides the scenario, as typed.
struct Typed {
  std::string percent, months, from, spike, seconds;
};

// A number of an option; what is not given keeps its value. False: it is said on stderr.
template <class Value>
bool ReadNumber(const char* option, const std::string& text, Value least, Value most,
                Value& value) {
  if (text.empty()) return true;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end && value >= least && value <= most) return true;
  Usage(fmt::format("{}: found {}, allowed {} to {}", option, text, least, most));
  return false;
}

// ---- max-rate -----------------------------------------------------------------------------------

std::string MaxRateSentence(const Scenario& scenario, const PlanAnswer& answer) {
  switch (answer.outcome) {
    case PlanOutcome::kFound:
      return fmt::format("Keeps its targets up to {} {} ({} to {}); {} ends it.",
                         ShortNumber(answer.value), answer.unit, ShortNumber(answer.low),
                         ShortNumber(answer.high), BindingOf(scenario, answer.binding));
    case PlanOutcome::kNone:
      return fmt::format("Misses a target at any load, {} among them.",
                         BindingOf(scenario, answer.binding));
    case PlanOutcome::kUnbounded:
      return "Keeps its targets at every load that was tried.";
    case PlanOutcome::kUnknown:
      break;
  }
  return kTooFew;
}

int MaxRate(Asked asked, const Typed&) {
  const Scenario scenario = asked.scenario;
  const Result<Plan> plan = ToEnd(Plan::Create(std::move(asked.scenario), std::move(asked.trace)));
  if (!plan.ok()) return PrintIssues(plan.issues());
  const PlanAnswer answer = plan.value().Answer();
  JsonWriter out(true);
  out.BeginObject();
  out.Key("outcome"), out.Text(OutcomeName(answer.outcome));
  if (answer.outcome == PlanOutcome::kFound) {
    WriteAnswer(answer.value, answer.low, answer.high, answer.unit, out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("binding");
  answer.outcome == PlanOutcome::kUnbounded || answer.outcome == PlanOutcome::kUnknown
      ? out.Null()
      : out.Text(BindingOf(scenario, answer.binding));
  out.Key("monotone"), out.Boolean(answer.monotone);
  WriteNumber("knee", answer.knee, out);
  WriteCurve(scenario, answer.curve, out);
  out.Key("runs"), out.Integer(answer.runs);
  out.Key("requests"), out.Integer(answer.requests);
  out.EndObject();
  return Print(out, MaxRateSentence(scenario, answer));
}

// ---- min-gpus -----------------------------------------------------------------------------------

void WritePool(const Scenario& scenario, std::size_t index, const FleetAnswer::Pool& pool,
               JsonWriter& out) {
  const PoolSpec& spec = scenario.cluster.pools[index];
  out.BeginObject();
  out.Key("name"), out.Text(spec.name);
  out.Key("role"), out.Text(RoleName(spec.role));
  out.Key("replicas"), out.Integer(pool.replicas);
  out.Key("low"), out.Integer(pool.low);
  out.Key("high"), out.Integer(pool.high);
  out.Key("gpus"), out.Integer(pool.replicas * pool.gpus_per_replica);
  out.Key("least_replicas_by_compute"), out.Number(pool.least_by_compute);
  out.Key("least_replicas_by_bandwidth"), out.Number(pool.least_by_bandwidth);
  WriteCurve(scenario, pool.curve, out);
  out.EndObject();
}

std::string MinGpusSentence(const Scenario& scenario, const FleetAnswer& answer) {
  if (answer.outcome == PlanOutcome::kNone) return "No number of replicas keeps the targets.";
  if (answer.outcome == PlanOutcome::kUnbounded) return "Any number of replicas keeps the targets.";
  if (answer.outcome != PlanOutcome::kFound) return kTooFew;
  std::string pools;
  for (std::size_t i = 0; i < answer.pools.size(); ++i) {
    const PoolRole role = scenario.cluster.pools[i].role;
    pools += fmt::format("{}{} replica{}{}", i == 0 ? "" : " and ", answer.pools[i].replicas,
                         answer.pools[i].replicas == 1 ? "" : "s",
                         role == PoolRole::kMixed ? "" : fmt::format(" for {}", RoleName(role)));
  }
  const bool least = std::all_of(answer.pools.begin(), answer.pools.end(),
                                 [](const auto& pool) { return pool.replicas == 1; });
  const std::string fewer =
      least ? ""
            : "; with fewer, " + (answer.binding
                                      ? Target(scenario.slo[*answer.binding]) + " is missed"
                                      : std::string("the load is more than is served"));
  const std::string bound = answer.LeastGpus() > 0
                                ? fmt::format(" No system could do with less than {} GPUs.",
                                              ShortNumber(answer.LeastGpus()))
                                : "";
  return fmt::format("{} GPU{} ({} to {}): {}{}.{}", answer.Gpus(), answer.Gpus() == 1 ? "" : "s",
                     answer.LowGpus(), answer.HighGpus(), pools, fewer, bound);
}

int MinGpus(Asked asked, const Typed&) {
  const Scenario scenario = asked.scenario;
  const Result<FleetPlan> plan =
      ToEnd(FleetPlan::Create(std::move(asked.scenario), std::move(asked.trace)));
  if (!plan.ok()) return PrintIssues(plan.issues());
  const FleetAnswer answer = plan.value().Answer();
  const bool found = answer.outcome == PlanOutcome::kFound;
  JsonWriter out(true);
  out.BeginObject();
  out.Key("outcome"), out.Text(OutcomeName(answer.outcome));
  if (found) {
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    WriteAnswer(number(answer.Gpus()), number(answer.LowGpus()), number(answer.HighGpus()), "GPUs",
                out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("least_gpus"), found ? out.Number(answer.LeastGpus()) : out.Null();
  out.Key("binding"), found ? out.Text(BindingOf(scenario, answer.binding)) : out.Null();
  out.Key("pools"), out.BeginArray();
  for (std::size_t i = 0; i < answer.pools.size(); ++i) {
    WritePool(scenario, i, answer.pools[i], out);
  }
  out.EndArray();
  out.Key("runs"), out.Integer(answer.runs);
  out.Key("requests"), out.Integer(answer.requests);
  out.EndObject();
  return Print(out, MinGpusSentence(scenario, answer));
}

// ---- growth -------------------------------------------------------------------------------------

// "2026-11" as months; nullopt: it is none.
std::optional<std::int64_t> MonthOf(const std::string& text) {
  std::int64_t year = 0, month = 0;
  if (text.size() != 7 || text[4] != '-') return std::nullopt;
  const char* begin = text.data();
  if (std::from_chars(begin, begin + 4, year).ptr != begin + 4) return std::nullopt;
  if (std::from_chars(begin + 5, begin + 7, month).ptr != begin + 7) return std::nullopt;
  if (year < 1 || month < 1 || month > 12) return std::nullopt;
  return 12 * year + month - 1;
}

std::string DateOf(std::int64_t month) {
  return fmt::format("{:04}-{:02}", month / 12, month % 12 + 1);
}

void WriteStep(const GrowthStep& step, const std::optional<std::int64_t>& from, JsonWriter& out) {
  out.BeginObject();
  out.Key("replicas"), out.Integer(step.replicas);
  out.Key("gpus"), out.Integer(step.gpus);
  out.Key("needed_from_month"), out.Integer(step.from_month);
  if (from) out.Key("needed_from"), out.Text(DateOf(*from + step.from_month));
  out.Key("outcome"), out.Text(OutcomeName(step.most.outcome));
  if (step.most.outcome == PlanOutcome::kFound) {
    WriteAnswer(step.most.value, step.most.low, step.most.high, step.most.unit, out);
    out.Key("until_month"), out.Integer(step.until_month);
    out.Key("until_month_low"), out.Integer(step.low_month);
    out.Key("until_month_high"), out.Integer(step.high_month);
  } else {
    out.Key("answer"), out.Null();
  }
  out.EndObject();
}

std::string GrowthSentence(const std::vector<GrowthStep>& steps, const GrowthOptions& options,
                           const std::optional<std::int64_t>& from) {
  const GrowthStep& now = steps.front();
  switch (now.most.outcome) {
    case PlanOutcome::kFound:
      break;
    case PlanOutcome::kNone:
      return "A target is missed at any load.";
    case PlanOutcome::kUnbounded:
      return "The targets hold at every load that was tried.";
    case PlanOutcome::kUnknown:
      return kTooFew;
  }
  const bool more = steps.size() > 1;
  if (now.until_month < 0) {
    return "The targets are missed at today's load already" +
           (more ? fmt::format(": {} GPUs are needed now.", steps[1].gpus) : std::string("."));
  }
  if (now.until_month >= options.months) {
    return fmt::format("The targets hold for {} ahead.", Count(options.months, "month"));
  }
  const std::int64_t breaks = now.until_month + 1;
  return fmt::format("The targets break {} ({} to {} from now){}",
                     from ? "in " + DateOf(*from + breaks) : fmt::format("in month {}", breaks),
                     now.low_month + 1, Count(now.high_month + 1, "month"),
                     more ? fmt::format(": {} GPUs are needed then.", steps[1].gpus) : ".");
}

int Growth(Asked asked, const Typed& typed) {
  GrowthOptions options;
  double percent = 100 * options.growth;
  if (typed.percent.empty()) return Usage("plan growth needs --percent");
  if (!ReadNumber("--percent", typed.percent, 0.1, 1000.0, percent) ||
      !ReadNumber("--months", typed.months, std::int64_t{1}, std::int64_t{120}, options.months)) {
    return kBadInput;
  }
  options.growth = percent / 100;
  const std::optional<std::int64_t> from = MonthOf(typed.from);
  if (!typed.from.empty() && !from) {
    return Usage("--from: found " + typed.from + ", allowed a month such as 2026-11");
  }
  const Result<GrowthPlan> plan =
      ToEnd(GrowthPlan::Create(std::move(asked.scenario), std::move(asked.trace), options));
  if (!plan.ok()) return PrintIssues(plan.issues());
  const std::vector<GrowthStep>& steps = plan.value().Steps();
  const GrowthStep& now = steps.front();
  const bool found = now.most.outcome == PlanOutcome::kFound;
  JsonWriter out(true);
  out.BeginObject();
  out.Key("outcome"), out.Text(OutcomeName(now.most.outcome));
  if (found) {
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    WriteAnswer(number(now.until_month), number(now.low_month), number(now.high_month), "months",
                out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("growth_per_month"), out.Number(options.growth);
  out.Key("looks_ahead_months"), out.Integer(options.months);
  out.Key("schedule"), out.BeginArray();
  for (const GrowthStep& step : steps) WriteStep(step, from, out);
  out.EndArray();
  out.EndObject();
  return Print(out, GrowthSentence(steps, options, from));
}

// ---- drill --------------------------------------------------------------------------------------

int DrillAll(Asked asked, const Typed& typed) {
  DrillOptions options;
  if (!ReadNumber("--spike", typed.spike, 1.0, 100.0, options.spike) ||
      !ReadNumber("--seconds", typed.seconds, 1.0, 3600.0, options.spike_s)) {
    return kBadInput;
  }
  if (asked.scenario.slo.empty()) {
    return PrintIssues({{"/slo", "found no target, allowed one at least: a plan keeps targets"}});
  }
  JsonWriter out(true);
  out.BeginObject();
  out.Key("drills"), out.BeginArray();
  std::string lines;
  for (Drill& drill : DrillsOf(asked.scenario, options)) {
    Arguments named;
    named.label = drill.name;
    const Result<Experiment> run =
        ToEnd(MakeRun<Experiment>(named, std::move(drill.scenario), asked.trace));
    if (!run.ok()) return PrintIssues(run.issues());
    const Report report = run.value().Snapshot(ReportDetail::kSummary);
    out.BeginObject();
    out.Key("drill"), out.Text(drill.name);
    out.Key("report"), out.Raw(ReportJson(report, ReportParts::kSummary));
    out.EndObject();
    lines +=
        fmt::format("{}{}: {}", lines.empty() ? "" : "\n", drill.name, report.verdict.sentence);
  }
  out.EndArray();
  out.EndObject();
  return Print(out, lines);
}

struct QuestionEntry {
  std::string_view name;
  int (*answer)(Asked asked, const Typed& typed);
  std::vector<std::string_view> options;
};

}  // namespace

int PlanCommand(std::vector<std::string> words) {
  static const std::vector<QuestionEntry> questions = {
      {"max-rate", MaxRate, {}},
      {"min-gpus", MinGpus, {}},
      {"growth", Growth, {"--percent", "--months", "--from"}},
      {"drill", DrillAll, {"--spike", "--seconds"}}};
  const std::string name = words.empty() ? "" : words[0];
  if (name == "search") return SearchCommand({words.begin() + 1, words.end()});
  if (name == "--help" || name == "-h") {
    fmt::print("{}", kPlanHelp);
    return 0;
  }
  const auto question = std::find_if(questions.begin(), questions.end(),
                                     [&name](const auto& entry) { return entry.name == name; });
  if (question == questions.end()) {
    return Usage("plan: found " + (name.empty() ? "no question" : name) +
                 ", allowed max-rate, min-gpus, growth, drill or search");
  }
  words.erase(words.begin());
  Arguments args;
  Typed typed;
  Options options{.help = kPlanHelp};
  for (const std::string_view option : question->options) {
    options.values.emplace_back(option, option == "--percent"  ? &typed.percent
                                        : option == "--months" ? &typed.months
                                        : option == "--from"   ? &typed.from
                                        : option == "--spike"  ? &typed.spike
                                                               : &typed.seconds);
  }
  if (const auto done = ReadArguments(words, options, args)) return *done;
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  return question->answer(std::move(asked.value()), typed);
}

}  // namespace servecast
