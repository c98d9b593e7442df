// How long it holds, and what to buy when (servecast/plan.h): the highest load of so many replicas,
// then of about as many as the first month beyond it needs in proportion, more until they hold it,
// and so on.
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
  State(Scenario s, Trace t, GrowthOptions o, double l)
      : scenario(std::move(s)), trace(std::move(t)), options(o), load(l) {
    options.plan.line = PlanLine::kLoad;
    Begin(scenario.cluster.pools[0].replicas, 0);
  }

  void Begin(std::int64_t replicas, std::int64_t month) {
    const PoolSpec& pool = scenario.cluster.pools[0];
    const std::int64_t group = pool.attention_data_parallel;
    GrowthStep& step = steps.emplace_back();
    step.replicas = CeilDiv(replicas, group) * group;
    step.gpus = step.replicas * pool.tensor_parallel * pool.pipeline_parallel;
    step.from_month = month;
  }

  double LoadIn(std::int64_t month) const {
    return load * Exp(static_cast<double>(month) * Log(1 + options.growth));
  }

  double MonthsUntil(double most) const { return Log(most / load) / Log(1 + options.growth); }

  // The last month whose load is at most that; -1: not even today's.
  std::int64_t LastMonth(double most) const {
    std::int64_t month = -1;
    while (month < options.months && LoadIn(month + 1) <= most) ++month;
    return month;
  }

  bool Step(std::int64_t max_steps) {
    if (finished) return true;
    GrowthStep& step = steps.back();
    if (!current) {
      Scenario s = scenario;
      s.cluster.pools[0].replicas = step.replicas;
      Result<Plan> made = Plan::Create(std::move(s), trace, options.plan);
      if (!made.ok()) return finished = true;  // more than a run can hold
      current.emplace(std::move(made.value()));
    }
    if (!current->Advance(max_steps)) return false;
    step.most = current->Answer();
    current.reset();
    if (step.most.outcome != PlanOutcome::kFound) return finished = true;
    step.until_month = LastMonth(step.most.value);
    const bool first = steps.size() == 1;
    if (!first && step.until_month < step.from_month) {  // not enough for the month it is for
      const GrowthStep small = step;
      steps.pop_back();
      Begin(small.replicas + std::max<std::int64_t>(1, small.replicas / 20), small.from_month);
      return false;
    }
    step.low_month = LastMonth(step.most.low);
    step.high_month = LastMonth(step.most.high);
    step.months = MonthsUntil(step.most.value);
    step.low_months = MonthsUntil(step.most.low);
    step.high_months = MonthsUntil(step.most.high);
    if (step.until_month >= options.months) return finished = true;
    const std::int64_t next = step.until_month + 1;
    // More replicas share better, so a little fewer than in proportion may do.
    const double share = LoadIn(next) / step.most.value * static_cast<double>(step.replicas);
    const auto begin = static_cast<std::int64_t>(std::ceil(0.95 * share));
    Begin(std::max(step.replicas + 1, begin), next);
    return false;
  }

  Scenario scenario;
  Trace trace;
  GrowthOptions options;
  double load;
  std::vector<GrowthStep> steps;
  std::optional<Plan> current;
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
                                 NumberText(100 * options.growth))});
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
  const double load = LineOf(scenario, options.plan)->own;
  return GrowthPlan(std::make_unique<State>(std::move(scenario), std::move(trace), options, load));
}

bool GrowthPlan::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double GrowthPlan::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  // By the months that are settled; of the plan under way its part of one step more.
  const auto months = static_cast<double>(s.options.months);
  const auto done = static_cast<double>(std::max<std::int64_t>(s.steps.back().from_month, 0));
  const double part = s.current ? s.current->Progress() : 0;
  s.shown = std::max(s.shown, std::min((done + part) / (months + 1), 0.99));
  return s.shown;
}

double GrowthPlan::Load() const { return state_->load; }

const std::vector<GrowthStep>& GrowthPlan::Steps() const { return state_->steps; }

}  // namespace servecast
