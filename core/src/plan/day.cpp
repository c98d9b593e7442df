// See day.h. The fewest replicas of an hour's load are a FleetPlan, and what so many hold is a
// Plan; all hours are worked out as if every answer were known, and where one is not it is found
// first.
#include "plan/day.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/line.h"

namespace servecast {
namespace {

// What a day comes to.
struct Sums {
  double gpu_hours = 0, low = 0, high = 0;
  double at_peak = 0;  // with the busiest hour's replicas all day
  double load = 0, held = 0;
  double IdleShare() const { return held > 0 ? std::max(0.0, 1 - load / held) : 0; }
};

Sums SumsOf(const DayAnswer& answer) {
  Sums sums;
  std::int64_t most = 0;
  const auto gpus = [&answer](std::int64_t replicas) {
    return static_cast<double>(replicas * answer.gpus_per_replica);
  };
  for (const DayHour& hour : answer.hours) {
    sums.gpu_hours += gpus(hour.replicas);
    sums.low += gpus(hour.low);
    sums.high += gpus(hour.high);
    sums.load += hour.load;
    sums.held += hour.held;
    most = std::max(most, hour.replicas);
  }
  sums.at_peak = gpus(most) * static_cast<double>(answer.hours.size());
  return sums;
}

}  // namespace

void CheckHours(const std::vector<double>& hours, Issues& issues) {
  if (hours.size() > kMostHours) {
    issues.push_back({"", Format("hours: found {}, allowed 1 to {}", hours.size(), kMostHours)});
    return;
  }
  for (const double share : hours) {
    if (share >= kLeastOfDay && share <= kMostOfDay) continue;
    issues.push_back(
        {"", Format("hours: found {} times the load, allowed {} to {}", NumberText(share),
                    NumberText(kLeastOfDay), NumberText(kMostOfDay))});
  }
}

Issues IssuesOf(const DayOptions& options) {
  Issues issues;
  if (options.hours.empty()) {
    issues.push_back({"", Format("hours: found 0, allowed 1 to {}", kMostHours)});
  }
  CheckHours(options.hours, issues);
  return issues;
}

struct DayPlan::State {
  State(Scenario s, Trace t, DayOptions o, const Line& line)
      : scenario(std::move(s)), trace(std::move(t)), options(std::move(o)) {
    options.plan.line = PlanLine::kLoad;
    const PoolSpec& pool = scenario.cluster.pool();
    result.unit = line.unit;
    result.gpus_per_replica = pool.GpusOfReplica();
    result.price_per_gpu_hour =
        (pool.hardware ? *pool.hardware : scenario.hardware).price_per_gpu_hour;
    for (const double share : options.hours) {
      const double load = share * line.own;
      result.hours.push_back(
          {line.step > 0 ? std::max(line.step, line.step * std::nearbyint(load / line.step))
                         : load});
    }
  }

  // False: an answer is missing, and is asked for. True: the day is known, or why it is not.
  bool Solve() {
    done = 0;
    for (DayHour& hour : result.hours) {
      const auto needed = fewest.find(hour.load);
      if (needed == fewest.end()) return !AskFewest(hour.load);
      if (needed->second.outcome != PlanOutcome::kFound) {
        result.never = needed->second.never;
        return Stop(needed->second.outcome);
      }
      const FleetAnswer::Pool& pool = needed->second.pools[0];
      const auto most = held.find(pool.replicas);
      if (most == held.end()) return !AskHeld(pool.replicas);
      if (most->second.outcome != PlanOutcome::kFound) return Stop(most->second.outcome);
      hour.replicas = pool.replicas;
      hour.low = pool.low;
      hour.high = pool.high;
      hour.held = std::max(most->second.value, hour.load);
      ++done;
    }
    return Stop(PlanOutcome::kFound);
  }

  bool Stop(PlanOutcome outcome) {
    result.outcome = outcome;
    return true;
  }

  // False: it cannot be asked, which is an answer.
  bool AskFewest(double load) {
    asked_load = load;
    Result<FleetPlan> made =
        FleetPlan::Create(ScenarioAt(scenario, options.plan, load), trace, options.plan);
    if (!made.ok()) return !Stop(PlanOutcome::kUnknown);
    finding.emplace(std::move(made.value()));
    return true;
  }

  bool AskHeld(std::int64_t replicas) {
    asked_replicas = replicas;
    Scenario s = scenario;
    s.cluster.pool().replicas = replicas;
    Result<Plan> made = Plan::Create(std::move(s), trace, options.plan);
    if (!made.ok()) return !Stop(PlanOutcome::kUnknown);
    holding.emplace(std::move(made.value()));
    return true;
  }

  bool Step(std::int64_t max_steps) {
    if (finished) return true;
    if (!finding && !holding) return finished = Solve();
    if (finding) {
      if (!finding->Advance(max_steps)) return false;
      const FleetAnswer& found = fewest[asked_load] = finding->Answer();
      result.runs += found.runs;
      finding.reset();
      return false;
    }
    if (!holding->Advance(max_steps)) return false;
    const PlanAnswer& found = held[asked_replicas] = holding->Answer();
    result.runs += found.runs;
    holding.reset();
    return false;
  }

  Scenario scenario;
  Trace trace;
  DayOptions options;
  std::map<double, FleetAnswer> fewest;     // by load
  std::map<std::int64_t, PlanAnswer> held;  // by replicas
  std::optional<FleetPlan> finding;
  std::optional<Plan> holding;
  double asked_load = 0;
  std::int64_t asked_replicas = 0;
  DayAnswer result;
  std::size_t done = 0;  // hours
  bool finished = false;
  mutable double shown = 0;
};

DayPlan::DayPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
DayPlan::DayPlan(DayPlan&&) noexcept = default;
DayPlan& DayPlan::operator=(DayPlan&&) noexcept = default;
DayPlan::~DayPlan() = default;

Result<DayPlan> DayPlan::Create(Scenario scenario, Trace trace, DayOptions options) {
  Issues issues = IssuesOf(options);
  if (scenario.cluster.pools.size() > 1) {
    issues.push_back({"/cluster/pools", Format("found {} pools, allowed 1 for replicas by the hour",
                                               scenario.cluster.pools.size())});
  }
  options.plan.line = PlanLine::kLoad;
  const Result<Plan> first = Plan::Create(scenario, trace, options.plan);
  if (!first.ok()) issues.insert(issues.end(), first.issues().begin(), first.issues().end());
  if (!issues.empty()) return issues;
  const Line line = *LineOf(scenario, options.plan);
  return DayPlan(
      std::make_unique<State>(std::move(scenario), std::move(trace), std::move(options), line));
}

bool DayPlan::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double DayPlan::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  const double part = s.finding   ? s.finding->Progress() / 2
                      : s.holding ? 0.5 + s.holding->Progress() / 2
                                  : 0;
  const auto hours = static_cast<double>(s.result.hours.size());
  s.shown = std::max(s.shown, std::min((static_cast<double>(s.done) + part) / (hours + 1), 0.99));
  return s.shown;
}

DayAnswer DayPlan::Answer() const { return state_->result; }

void WriteDay(const DayAnswer& answer, JsonWriter& out) {
  const bool found = answer.outcome == PlanOutcome::kFound;
  const Sums sums = SumsOf(answer);
  out.Key("outcome"), out.Text(OutcomeName(answer.outcome));
  if (found) {
    WriteAnswer(sums.gpu_hours, sums.low, sums.high, "GPU-hours", out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("unit"), out.Text(answer.unit);
  out.Key("gpus_per_replica"), out.Integer(answer.gpus_per_replica);
  out.Key("gpu_hours_at_peak"), found ? out.Number(sums.at_peak) : out.Null();
  out.Key("idle_share"), found ? out.Number(sums.IdleShare()) : out.Null();
  out.Key("price_per_gpu_hour");
  answer.price_per_gpu_hour ? out.Number(*answer.price_per_gpu_hour) : out.Null();
  out.Key("hours"), out.BeginArray();
  for (std::size_t i = 0; found && i < answer.hours.size(); ++i) {
    const DayHour& hour = answer.hours[i];
    out.BeginObject();
    out.Key("hour"), out.Integer(static_cast<std::int64_t>(i));
    out.Key("load"), out.Number(hour.load);
    out.Key("replicas"), out.Integer(hour.replicas);
    out.Key("low"), out.Integer(hour.low);
    out.Key("high"), out.Integer(hour.high);
    out.Key("held"), out.Number(hour.held);
    out.EndObject();
  }
  out.EndArray();
  out.Key("runs"), out.Integer(answer.runs);
}

std::string DaySentence(const Scenario& scenario, const DayAnswer& answer) {
  if (answer.outcome == PlanOutcome::kNone) {
    return NeverSentence(scenario, answer.never, "No number of replicas");
  }
  if (answer.outcome == PlanOutcome::kUnbounded) return "Any number of replicas keeps the targets.";
  if (answer.outcome != PlanOutcome::kFound) return kTooFew;
  const Sums sums = SumsOf(answer);
  const auto [least, most] = std::minmax_element(
      answer.hours.begin(), answer.hours.end(),
      [](const DayHour& a, const DayHour& b) { return a.replicas < b.replicas; });
  std::string cost;
  if (answer.price_per_gpu_hour) {
    cost = Format(", {} instead of {}", Dollars(sums.gpu_hours * *answer.price_per_gpu_hour),
                  Dollars(sums.at_peak * *answer.price_per_gpu_hour));
  }
  const std::string replicas = least->replicas == most->replicas
                                   ? Count(most->replicas, "replica")
                                   : Format("{} to {} replicas", least->replicas, most->replicas);
  return Format(
      "{} GPU-hours ({} to {}) for {}, with {}: {} less than with {} throughout{}; "
      "{} of what is held is idle.",
      ShortNumber(sums.gpu_hours), ShortNumber(sums.low), ShortNumber(sums.high),
      Count(static_cast<std::int64_t>(answer.hours.size()), "hour"), replicas,
      Percent(sums.at_peak > 0 ? 1 - sums.gpu_hours / sums.at_peak : 0), most->replicas, cost,
      Percent(sums.IdleShare()));
}

}  // namespace servecast
