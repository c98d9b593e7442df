// How long it holds, and what to buy when (servecast/plan.h): the highest load of so many replicas,
// then the fewest that hold the first month beyond it, as FleetPlan has it, and so on.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/base.h"
#include "base/math.h"
#include "base/text.h"
#include "plan/line.h"
#include "servecast/plan.h"

namespace servecast {

struct GrowthPlan::State {
  State(Scenario s, Trace t, GrowthOptions o, const Line& line)
      : scenario(std::move(s)), trace(std::move(t)), options(o), load(line.own), step(line.step) {
    options.plan.line = PlanLine::kLoad;
    const PoolSpec& pool = scenario.cluster.pool();
    const std::int64_t group = pool.attention_data_parallel;
    Begin(CeilDiv(pool.replicas, group) * group, 0);
  }

  void Begin(std::int64_t replicas, std::int64_t month) {
    const PoolSpec& pool = scenario.cluster.pool();
    GrowthStep& next = steps.emplace_back();
    next.replicas = replicas;
    next.gpus = replicas * pool.GpusOfReplica();
    next.from_month = month;
  }

  double LoadIn(std::int64_t month) const {
    const double then = load * Exp(static_cast<double>(month) * Log(1 + options.growth));
    return step > 0 ? step * std::nearbyint(then / step) : then;
  }

  double MonthsUntil(double most) const { return Log(most / load) / Log(1 + options.growth); }

  // The last month whose load is at most that; -1: not even today's.
  std::int64_t LastMonth(double most) const {
    std::int64_t month = -1;
    while (month < options.months && LoadIn(month + 1) <= most) ++month;
    return month;
  }

  // The last step holds up to its month and not to the next: how many do. False: no plan can say.
  bool Ask() {
    if (steps.back().until_month >= options.months) return false;
    const double then = LoadIn(steps.back().until_month + 1);
    Result<FleetPlan> made =
        FleetPlan::Create(ScenarioAt(scenario, options.plan, then), trace, options.plan);
    if (!made.ok()) return false;
    fewest.emplace(std::move(made.value()));
    return true;
  }

  bool Advance(std::int64_t max_steps) {
    if (finished) return true;
    if (fewest) {
      if (!fewest->Advance(max_steps)) return false;
      const FleetAnswer answer = fewest->Answer();
      fewest.reset();
      if (answer.outcome != PlanOutcome::kFound) return finished = true;
      GrowthStep& last = steps.back();
      if (answer.pools[0].replicas <= last.replicas) {  // within what is not sure of `most`
        last.high_month = std::max(last.high_month, ++last.until_month);
        return finished = !Ask();
      }
      Begin(answer.pools[0].replicas, last.until_month + 1);
      return false;
    }
    GrowthStep& last = steps.back();
    if (!held) {
      Scenario s = scenario;
      s.cluster.pool().replicas = last.replicas;
      Result<Plan> made = Plan::Create(std::move(s), trace, options.plan);
      if (!made.ok()) return finished = true;  // more than a run can hold
      held.emplace(std::move(made.value()));
    }
    if (!held->Advance(max_steps)) return false;
    last.most = held->Answer();
    held.reset();
    if (last.most.outcome != PlanOutcome::kFound) return finished = true;
    const std::int64_t least = steps.size() == 1 ? -1 : last.from_month;  // that month is held
    last.until_month = std::max(LastMonth(last.most.value), least);
    last.low_month = LastMonth(last.most.low);
    last.high_month = std::max(LastMonth(last.most.high), last.until_month);
    last.months = MonthsUntil(last.most.value);
    last.low_months = MonthsUntil(last.most.low);
    last.high_months = MonthsUntil(last.most.high);
    return finished = !Ask();
  }

  Scenario scenario;
  Trace trace;
  GrowthOptions options;
  double load, step;
  std::vector<GrowthStep> steps;
  std::optional<Plan> held;         // what the last step holds
  std::optional<FleetPlan> fewest;  // how many the month after it needs
  bool finished = false;
  mutable double shown = 0;
};

GrowthPlan::GrowthPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
GrowthPlan::GrowthPlan(GrowthPlan&&) noexcept = default;
GrowthPlan& GrowthPlan::operator=(GrowthPlan&&) noexcept = default;
GrowthPlan::~GrowthPlan() = default;

Result<GrowthPlan> GrowthPlan::Create(Scenario scenario, Trace trace, GrowthOptions options) {
  Issues issues;
  if (!(options.growth >= 0.001 && options.growth <= 10)) {
    issues.push_back({"", Format("growth: found {} % a month, allowed 0.1 to 1000",
                                 ShortNumber(100 * options.growth))});
  }
  if (options.months < 1 || options.months > 120) {
    issues.push_back({"", Format("months: found {}, allowed 1 to 120", options.months)});
  }
  if (scenario.cluster.pools.size() > 1) {
    issues.push_back(
        {"/cluster/pools", Format("found {} pools, allowed 1 for a schedule of replicas",
                                  scenario.cluster.pools.size())});
  }
  options.plan.line = PlanLine::kLoad;
  const Result<Plan> first = Plan::Create(scenario, trace, options.plan);
  if (!first.ok()) issues.insert(issues.end(), first.issues().begin(), first.issues().end());
  if (!issues.empty()) return issues;
  const Line line = *LineOf(scenario, options.plan);
  return GrowthPlan(std::make_unique<State>(std::move(scenario), std::move(trace), options, line));
}

bool GrowthPlan::Advance(std::int64_t max_steps) { return state_->Advance(max_steps); }

double GrowthPlan::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  // By the months that are settled; of the plan under way its part of one step more.
  const auto months = static_cast<double>(s.options.months);
  const auto done = static_cast<double>(std::max<std::int64_t>(s.steps.back().from_month, 0));
  const double part = s.held     ? s.held->Progress() / 2
                      : s.fewest ? 0.5 + s.fewest->Progress() / 2
                                 : 0;
  s.shown = std::max(s.shown, std::min((done + part) / (months + 1), 0.99));
  return s.shown;
}

double GrowthPlan::Load() const { return state_->load; }

double GrowthPlan::LoadIn(std::int64_t month) const { return state_->LoadIn(month); }

const std::vector<GrowthStep>& GrowthPlan::Steps() const { return state_->steps; }

}  // namespace servecast
