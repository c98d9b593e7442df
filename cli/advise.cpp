// See advise.h.
#include "advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "experiment/advise.h"
#include "files.h"
#include "io/json_writer.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

const char kAdviseHelp[] =
    "servecast advise FILE|PRESET [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "\n"
    "Runs about a dozen one-step changes (seats, token budget, chunking, caching, replicas, "
    "tensor\n"
    "parallelism, the next GPU, fewer bits, prefill and decode apart, router) on the same "
    "requests\n"
    "and prints them as JSON, those that meet all targets first, then by what they do to the "
    "target\n"
    "that decides, then by cost. \"effect\" is the share that a change takes off it, or adds to "
    "what is\n"
    "served when overloaded; a change that cannot run has its issues instead.\n";

namespace {

constexpr double kHelps = 0.01;
constexpr std::int64_t kWorkOfAChange = 600'000;

struct Outcome {
  Change change;
  std::optional<Report> report;
  Issues issues;
  std::int64_t gpus = 0;
  std::optional<double> cost_per_hour;
  double effect = 0;
  bool own_gpus = false;  // some pool has a GPU that is not the scenario's
};

Outcome Try(const std::string& document, Change change, const Trace& trace) {
  Outcome out;
  Result<std::string> text = ApplyOverrides(document, change.overrides);
  out.change = std::move(change);
  Result<Scenario> scenario =
      text.ok() ? ParseScenario(text.value()) : Result<Scenario>(text.issues());
  if (!scenario.ok()) {
    out.issues = scenario.issues();
    return out;
  }
  out.gpus = GpusOf(scenario.value());
  const std::vector<PoolSpec>& pools = scenario.value().cluster.pools;
  out.own_gpus = std::any_of(pools.begin(), pools.end(),
                             [](const PoolSpec& pool) { return pool.hardware.has_value(); });
  out.cost_per_hour = CostPerHour(scenario.value());
  ExperimentOptions options;
  options.most_work = kWorkOfAChange;
  options.names_limit = false;
  Result<Experiment> experiment = Experiment::Create(std::move(scenario.value()), trace, options);
  if (!experiment.ok()) {
    out.issues = experiment.issues();
    return out;
  }
  while (!experiment.value().Advance(INT64_MAX)) {
  }
  out.report = experiment.value().Snapshot(ReportDetail::kSummary);
  return out;
}

bool Overloaded(const Report& r) { return r.verdict.state == VerdictState::kOverloaded; }

// The target with the least margin; none where a latency has no bound.
std::optional<std::size_t> Deciding(const Report& r) {
  std::optional<std::size_t> least;
  for (std::size_t k = 0; k < r.slo.size(); ++k) {
    if (r.slo[k].margin && (!least || *r.slo[k].margin < *r.slo[*least].margin)) least = k;
  }
  return least;
}

double ServedPerS(const Report& r) {
  return r.overload ? r.overload->served_per_s : r.requests_per_s;
}

double EffectOf(const Report& base, const Report& changed) {
  if (Overloaded(base)) return ServedPerS(changed) / ServedPerS(base) - 1;
  if (Overloaded(changed)) return -1;
  const std::optional<std::size_t> k = Deciding(base);
  if (!k || !changed.slo[*k].value_ms) return 0;
  return 1 - *changed.slo[*k].value_ms / *base.slo[*k].value_ms;
}

// As many replicas as would serve all that comes, with a tenth to spare.
std::optional<Change> EnoughReplicas(const Scenario& scenario, const Report& base) {
  if (!base.overload || scenario.cluster.pools.size() > 1) return std::nullopt;
  const auto now = static_cast<double>(scenario.cluster.pools[0].replicas);
  const double wanted = 1.1 * now * base.overload->offered_per_s / base.overload->served_per_s;
  if (!(wanted > now + 1 && wanted < 1000)) return std::nullopt;
  const auto replicas = static_cast<std::int64_t>(std::ceil(wanted));
  return Change{fmt::format("{} replicas", replicas),
                {fmt::format("cluster.pools.0.replicas={}", replicas)}};
}

bool Meets(const Outcome& o) {
  return o.report &&
         std::all_of(o.report->slo.begin(), o.report->slo.end(),
                     [](const auto& result) {
                       return result.met && result.high_ms.value_or(0) <= result.slo.limit_ms;
                     }) &&
         !Overloaded(*o.report);
}

bool Before(const Outcome& a, const Outcome& b) {
  if (a.report.has_value() != b.report.has_value()) return a.report.has_value();
  if (Meets(a) != Meets(b)) return Meets(a);
  if (Meets(a)) {  // the cheapest that is enough
    const double x = a.cost_per_hour.value_or(static_cast<double>(a.gpus));
    const double y = b.cost_per_hour.value_or(static_cast<double>(b.gpus));
    if (a.cost_per_hour.has_value() == b.cost_per_hour.has_value() && x != y) return x < y;
  }
  return a.effect > b.effect;
}

void WriteTargets(const Report& r, JsonWriter& out) {
  out.Key("sentence"), out.Text(r.verdict.sentence);
  out.Key("slo"), out.BeginArray();
  const auto number = [&out](std::string_view key, const std::optional<double>& value) {
    out.Key(key), value ? out.Number(*value) : out.Null();
  };
  for (const SloResult& result : r.slo) {
    out.BeginObject();
    number("value_ms", result.value_ms);
    number("low", result.low_ms);
    number("high", result.high_ms);
    number("limit_ms", result.slo.limit_ms);
    out.EndObject();
  }
  out.EndArray();
}

void Write(const Outcome& o, JsonWriter& out) {
  out.BeginObject();
  out.Key("change"), out.Text(o.change.words);
  out.Key("set"), out.BeginArray();
  for (const std::string& text : o.change.overrides) out.Text(text);
  out.EndArray();
  out.Key("gpus"), out.Integer(o.gpus);
  out.Key("cost_per_hour"), o.cost_per_hour ? out.Number(*o.cost_per_hour) : out.Null();
  if (o.report) {
    out.Key("effect"), out.Number(o.effect);
    out.Key("meets"), out.Boolean(Meets(o));
    WriteTargets(*o.report, out);
  } else {
    out.Key("issues"), out.BeginArray();
    for (const Issue& issue : o.issues) out.Text(issue.path + ": " + issue.message);
    out.EndArray();
  }
  out.EndObject();
}

std::string Answer(const std::vector<Outcome>& outcomes) {
  if (outcomes.empty() || !outcomes[0].report ||
      (!Meets(outcomes[0]) && outcomes[0].effect < kHelps)) {
    return "Nothing that was tried helps.";
  }
  const Outcome& best = outcomes[0];
  return fmt::format("{}{}: {}", best.change.words, Meets(best) ? "" : ", which is not enough",
                     best.report->verdict.sentence);
}

}  // namespace

int Advise(const std::string& document, const Trace& trace) {
  const Outcome base = Try(document, {"as it is", {}}, trace);
  if (!base.report) return PrintIssues(base.issues);
  const Scenario scenario = ParseScenario(document).value();
  if (scenario.slo.empty() && !Overloaded(*base.report)) {
    return PrintIssues(
        {{"/slo", "found no target, allowed one at least: changes are ranked by it"}});
  }
  std::vector<Change> changes = ChangesOf(scenario);
  if (std::optional<Change> enough = EnoughReplicas(scenario, *base.report)) {
    changes.push_back(std::move(*enough));
  }
  std::vector<Outcome> outcomes;
  for (Change& change : changes) {
    Outcome outcome = Try(document, std::move(change), trace);
    // The next GPU is the scenario's, which a pool with its own does not run on.
    if (outcome.own_gpus && outcome.change.words.rfind("GPU ", 0) == 0) continue;
    if (outcome.report) outcome.effect = EffectOf(*base.report, *outcome.report);
    outcomes.push_back(std::move(outcome));
  }
  std::stable_sort(outcomes.begin(), outcomes.end(), Before);
  JsonWriter out(true);
  out.BeginObject();
  out.Key("answer"), out.Text(Answer(outcomes));
  out.Key("base"), Write(base, out);
  out.Key("changes"), out.BeginArray();
  for (const Outcome& outcome : outcomes) Write(outcome, out);
  out.EndArray();
  out.EndObject();
  fmt::print("{}\n", out.Take());
  return 0;
}

}  // namespace servecast
