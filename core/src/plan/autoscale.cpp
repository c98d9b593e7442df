// See autoscale.h. What is to be run is worked out from the start, as if every run were known;
// where one is not it is made first.
#include "plan/autoscale.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "experiment/observations.h"
#include "experiment/replications.h"
#include "experiment/statistics.h"
#include "io/pool_checks.h"
#include "plan/day.h"
#include "plan/line.h"
#include "plan/strain.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr std::int64_t kLeastDays = 4, kMostDays = 30;
constexpr std::int64_t kLeastForInterval = 4;
// A schedule is written by the quarter-hour of a day.
constexpr double kBinsOfSpan = 96, kLeastBinS = 60;
// More scalers than these are not run to the end once so many keep the targets.
constexpr std::size_t kEnough = 3;
// Twice the replicas must help by more than that, else the load is not what misses the targets.
constexpr double kLeastHelp = 0.01;
constexpr double kHourS = 3600;

// nullopt: the day has more requests than a run may have.
std::optional<Scenario> OverHours(Scenario s, const std::vector<double>& hours) {
  ArrivalSpec& arrivals = s.workload->arrivals;
  double sum = 0;
  arrivals.profile = RateProfile::kPiecewise;
  arrivals.rate_factors.clear();
  arrivals.spikes.clear();
  for (std::size_t i = 0; i < hours.size(); ++i) {
    arrivals.rate_factors.push_back({kHourS * static_cast<double>(i), hours[i]});
    sum += hours[i];
  }
  // More come than are asked for in one day of fifty; the horizon ends it.
  const double mean = static_cast<double>(RequestsIn(*s.workload, kHourS * sum));
  const double most = mean + 10 * std::sqrt(mean) * std::max(1.0, arrivals.cv) + 1;
  if (most > static_cast<double>(kMaxRequests)) return std::nullopt;
  s.workload->requests = static_cast<std::int64_t>(most);
  s.measure.horizon_s = kHourS * static_cast<double>(hours.size());
  return s;
}

AutoscaleRow::Figure FigureOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double mean = sum / n;
  if (static_cast<std::int64_t>(values.size()) < kLeastForInterval)
    return {mean, mean, mean, false};
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double half = StudentT(n - 1, 0.975) * std::sqrt(squares / (n - 1) / n);
  return {mean, std::max(0.0, mean - half), mean + half};
}

// Of the windows in which requests came: in which no target has more beyond its limit than it may.
double WindowsKept(const Scenario& scenario, const Observations& run) {
  constexpr auto kWindow = static_cast<TimeNs>(kAutoscaleWindowS * 1e9);
  std::int64_t windows = 0, kept = 0;
  for (std::size_t begin = 0; begin < run.arrival.size();) {
    const TimeNs window = run.arrival[begin] / kWindow;
    std::size_t end = begin;
    while (end < run.arrival.size() && run.arrival[end] / kWindow == window) ++end;
    bool good = true;
    for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
      const SloSpec& slo = scenario.slo[k];
      if (slo.metric == SloMetric::kItl) continue;  // no request has one of its own
      double of = 0, beyond = 0;
      for (std::size_t i = begin; i < end; ++i) {
        if (run.unserved[k][i] == Observations::kForeign) continue;
        ++of;
        if (run.unserved[k][i] != 0 || run.latency_ms[k][i] > LimitOf(slo)) ++beyond;
      }
      good = good && beyond <= (1 - slo.percentile / 100) * of;
    }
    ++windows;
    kept += good ? 1 : 0;
    begin = end;
  }
  return windows == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(windows);
}

}  // namespace

Issues IssuesOf(const AutoscaleOptions& options) {
  Issues issues;
  if (options.days < kLeastDays || options.days > kMostDays) {
    issues.push_back(
        {"", Format("days: found {}, allowed {} to {}", options.days, kLeastDays, kMostDays)});
  }
  if (!(options.windows >= 0 && options.windows <= 1)) {
    issues.push_back(
        {"", Format("windows: found {} %, allowed 0 to 100", NumberText(100 * options.windows))});
  }
  CheckHours(options.hours, issues);
  return issues;
}

AutoscaleRow::Figure AutoscaleRow::GpuHours() const {
  std::vector<double> values;
  for (const AutoscaleDay& day : days) values.push_back(day.gpu_hours);
  return FigureOf(values);
}

std::optional<AutoscaleRow::Figure> AutoscaleRow::Value(std::size_t target) const {
  std::vector<double> values;
  for (const AutoscaleDay& day : days) {
    if (!day.values[target]) return std::nullopt;
    values.push_back(*day.values[target]);
  }
  return FigureOf(values);
}

AutoscaleRow::Figure AutoscaleRow::WindowsKept() const {
  std::vector<double> values;
  for (const AutoscaleDay& day : days) values.push_back(day.windows_kept);
  return FigureOf(values);
}

std::int64_t AutoscaleRow::DaysMet() const {
  return std::count_if(days.begin(), days.end(), [](const AutoscaleDay& day) { return day.met; });
}

std::int64_t AutoscaleRow::PeakUp() const {
  std::int64_t most = 0;
  for (const AutoscaleDay& day : days) most = std::max(most, day.peak_up);
  return most;
}

VerdictState StateOf(const AutoscaleRow& row, const AutoscaleAnswer& answer,
                     const Scenario& scenario) {
  bool certain = true;
  for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
    const SloSpec& slo = scenario.slo[k];
    const std::optional<AutoscaleRow::Figure> figure = row.Value(k);
    if (!figure) return VerdictState::kMisses;
    const bool share = slo.metric == SloMetric::kAttainment;
    const double limit = share ? slo.percentile / 100 : slo.limit_ms;
    if (share ? figure->high < limit : figure->low > limit) return VerdictState::kMisses;
    certain = certain && (share ? figure->low >= limit : figure->high <= limit);
  }
  const AutoscaleRow::Figure windows = row.WindowsKept();
  if (windows.high < answer.windows) return VerdictState::kMisses;
  certain = certain && windows.low >= answer.windows;
  if (static_cast<std::int64_t>(row.days.size()) < answer.days) return VerdictState::kPartial;
  return certain ? VerdictState::kMeets : VerdictState::kNear;
}

struct AutoscalePlan::State {
  State(Scenario s, Trace t, std::int64_t days, double windows)
      : scenario(std::move(s)), trace(std::move(t)), own(scenario.cluster.scaling) {
    result.days = days;
    result.windows = windows;
    const PoolSpec& pool = scenario.cluster.pool();
    own_replicas = pool.replicas;
    result.price_per_gpu_hour =
        (pool.hardware ? *pool.hardware : scenario.hardware).price_per_gpu_hour;
  }

  // The policy's row with so many days; null: a run is missing, and asked for.
  const AutoscaleRow* Days(const AutoscalePolicy& policy, std::int64_t days) {
    AutoscaleRow& row = rows[policy.name];
    if (row.days.empty()) row.policy = policy;
    if (static_cast<std::int64_t>(row.days.size()) >= days) return &row;
    asked = &row;
    return nullptr;
  }
  const AutoscaleRow* All(const AutoscalePolicy& policy) { return Days(policy, result.days); }
  bool Keeps(const AutoscaleRow& row) const {
    return StateOf(row, result, scenario) == VerdictState::kMeets;
  }

  // ---- What is run, in order. Each returns false where a run is missing. ---------------------

  // The fewest fixed replicas that keep the targets for certain; kNone where no number does.
  bool FindFixed(const AutoscaleRow*& found) {
    std::int64_t misses = 0, keeps = std::max<std::int64_t>(1, own_replicas);
    double before = 0;
    for (;; misses = keeps, keeps = std::min(2 * keeps, kMostReplicas)) {
      const AutoscaleRow* row = Days(FixedReplicas(keeps), 1);
      if (row == nullptr) return false;
      if (row->days[0].met) break;
      // Full replicas miss by as much, however many they are: then more may help yet.
      const double strain = StrainOfDay(row->days[0]);
      const bool idle = loads[row->policy.name].mean_in_system < static_cast<double>(keeps);
      const bool helps = before == 0 || strain < before * (1 - kLeastHelp);
      if (keeps == kMostReplicas || (idle && !helps)) return true;
      before = strain;
    }
    while (keeps - misses > 1) {
      const std::int64_t middle = misses + (keeps - misses) / 2;
      const AutoscaleRow* row = Days(FixedReplicas(middle), 1);
      if (row == nullptr) return false;
      (row->days[0].met ? keeps : misses) = middle;
    }
    for (std::int64_t replicas = keeps; replicas <= std::min(2 * keeps, kMostReplicas);
         ++replicas) {
      const AutoscaleRow* row = All(FixedReplicas(replicas));
      if (row == nullptr) return false;
      if (Keeps(*row)) {
        found = row;
        return true;
      }
    }
    return true;
  }

  // The boldest of the family that keeps the targets on the first day, as safer ones keep them
  // where bolder ones do; its size: none does. It begins where `found` says.
  bool FindBoldest(const AutoscaleFamily& family, std::size_t& found) {
    std::size_t misses = 0, keeps = family.size();  // [0, misses) are known to miss
    std::size_t next = std::min(found, family.size() - 1);
    while (misses < keeps) {
      const AutoscaleRow* row = Days(family[next], 1);
      if (row == nullptr) return false;
      if (row->days[0].met) {
        keeps = next;
      } else {
        misses = next + 1;
      }
      // The safest is asked before those between: where it misses, all do.
      next = keeps == family.size() ? family.size() - 1 : misses + (keeps - misses) / 2;
    }
    found = keeps;
    return true;
  }

  struct Candidate {
    const AutoscaleFamily* family = nullptr;
    std::size_t place = 0;
    double gpu_hours = 0;  // of the first day
  };

  // From the cheapest on, each to the end; who does not keep the targets for certain gives way to
  // the next safer of its family.
  bool RunCheapest(std::vector<Candidate> candidates, std::size_t enough) {
    std::size_t kept = 0;
    while (!candidates.empty()) {
      const auto next = std::min_element(
          candidates.begin(), candidates.end(),
          [](const Candidate& a, const Candidate& b) { return a.gpu_hours < b.gpu_hours; });
      if (kept >= enough) return true;
      const Candidate candidate = *next;
      candidates.erase(next);
      const AutoscaleRow* row = All((*candidate.family)[candidate.place]);
      if (row == nullptr) return false;
      if (Keeps(*row)) {
        ++kept;
        continue;
      }
      if (candidate.place + 1 == candidate.family->size()) continue;
      const AutoscaleRow* safer = Days((*candidate.family)[candidate.place + 1], 1);
      if (safer == nullptr) return false;
      candidates.push_back({candidate.family, candidate.place + 1, safer->days[0].gpu_hours});
    }
    return true;
  }

  bool RunFamilies(const std::vector<AutoscaleFamily>& families, std::size_t enough) {
    std::vector<Candidate> candidates;
    std::size_t boldest = 0;  // of the family before, which is often like the next
    for (const AutoscaleFamily& family : families) {
      if (boldest >= family.size()) boldest = family.size() / 2;
      if (!FindBoldest(family, boldest)) return false;
      if (boldest == family.size()) continue;
      candidates.push_back({&family, boldest, rows[family[boldest].name].days[0].gpu_hours});
    }
    return RunCheapest(std::move(candidates), enough);
  }

  // True: all is known.
  bool Solve() {
    asked = nullptr;
    const AutoscaleRow* fixed = nullptr;
    if (!FindFixed(fixed)) return false;
    if (fixed == nullptr) return Finish(nullptr);
    AutoscaleLoad& load = loads[fixed->policy.name];
    load.fixed = fixed->policy.replicas;
    if (load.fixed == 1 && !load.NearZero()) return Finish(fixed);
    if (scalers.empty()) scalers = Scalers(own, own_replicas, load);
    if (own.On() && All(scalers[0][0]) == nullptr) return false;
    if (!RunFamilies(scalers, kEnough)) return false;
    // The cold start is known by then.
    if (schedules.empty()) schedules = {Schedules(own, load, result.cold_start_s)};
    if (!schedules[0].empty() && !RunFamilies(schedules, 1)) return false;
    return Finish(fixed);
  }

  bool Finish(const AutoscaleRow* fixed) {
    const AutoscaleRow *schedule = nullptr, *chosen = nullptr;
    for (const auto& [name, row] : rows) {
      // Who takes no less than fixed replicas is no answer.
      const bool is_fixed = row.policy.kind == AutoscaleKind::kFixed;
      if (row.days.empty() || is_fixed || !Keeps(row)) continue;
      if (row.GpuHours().high >= fixed->GpuHours().value) continue;
      const AutoscaleRow*& best = row.policy.kind == AutoscaleKind::kScaler ? chosen : schedule;
      if (best == nullptr || row.GpuHours().value < best->GpuHours().value) best = &row;
    }
    result.outcome = chosen != nullptr ? PlanOutcome::kFound : PlanOutcome::kNone;
    result.rows = Rows();
    const auto place = [this](const AutoscaleRow* of) -> std::optional<std::size_t> {
      for (std::size_t i = 0; of != nullptr && i < result.rows.size(); ++i) {
        if (result.rows[i].policy.name == of->policy.name) return i;
      }
      return std::nullopt;
    };
    result.fixed = place(fixed);
    result.schedule = place(schedule);
    result.chosen = place(chosen);
    finished = true;
    return true;
  }

  std::vector<AutoscaleRow> Rows() const {
    std::vector<AutoscaleRow> sorted;
    for (const auto& [name, row] : rows) {
      if (!row.days.empty()) sorted.push_back(row);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      if (a.policy.kind != b.policy.kind) return a.policy.kind < b.policy.kind;
      return a.GpuHours().value < b.GpuHours().value;
    });
    return sorted;
  }

  // ---- Its runs ------------------------------------------------------------------------------

  double StrainOfDay(const AutoscaleDay& day) const {
    double most = 0;
    for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
      const SloSpec& slo = scenario.slo[k];
      const std::optional<double>& value = day.values[k];
      if (!value) return kNoAnswer;
      const double strain = slo.metric == SloMetric::kAttainment
                                ? (1 - *value) / std::max(1e-9, 1 - slo.percentile / 100)
                                : *value / slo.limit_ms;
      most = std::max(most, strain);
    }
    return most;
  }

  // False: it cannot be made, which ends the plan.
  bool Begin() {
    Scenario s = ScenarioUnder(scenario, asked->policy);
    s.seed = SeedOfRun(scenario.seed, asked->days.size());
    running = s;
    Result<Simulation> made = Simulation::Create(std::move(s), trace);
    if (!made.ok()) {
      problems = made.issues();
      finished = true;
      return false;
    }
    current.emplace(std::move(made.value()));
    return true;
  }

  void Take() {
    const Report report = current->Snapshot(ReportDetail::kSummary);
    const Observations run = ObservationsOf(running, current->Records(), report);
    const double gpus = static_cast<double>(scenario.cluster.pool().GpusOfReplica());
    AutoscaleDay day;
    day.met = true;
    for (const SloResult& slo : report.slo) {
      const bool share = slo.slo.metric == SloMetric::kAttainment;
      const bool answered = share || slo.unserved_share <= 1 - slo.slo.percentile / 100;
      day.values.push_back(share ? slo.share : answered ? slo.value_ms : std::nullopt);
      day.met = day.met && slo.met;
    }
    const bool is_fixed = asked->policy.kind == AutoscaleKind::kFixed;
    day.gpu_hours =
        is_fixed ? static_cast<double>(asked->policy.replicas) * gpus * report.simulated_s / kHourS
                 : report.scaling.gpu_hours;
    day.peak_up = is_fixed ? asked->policy.replicas : report.scaling.peak_up;
    day.windows_kept = WindowsKept(running, run);
    day.met = day.met && day.windows_kept >= result.windows;
    if (asked->days.empty()) {
      asked->steps = report.scaling.steps;
      if (is_fixed) loads[asked->policy.name] = LoadOf(run, report);
    }
    if (report.scaling.cold_start_s > 0) result.cold_start_s = report.scaling.cold_start_s;
    result.span_s = std::max(result.span_s, report.simulated_s);
    asked->days.push_back(std::move(day));
    ++result.runs;
    result.requests += report.arrived;
    current.reset();
  }

  static AutoscaleLoad LoadOf(const Observations& run, const Report& report) {
    AutoscaleLoad load;
    const double last_s = run.arrival.empty() ? 0 : static_cast<double>(run.arrival.back()) / 1e9;
    load.bin_s = std::max(kLeastBinS, last_s / kBinsOfSpan);
    load.per_s.assign(static_cast<std::size_t>(last_s / load.bin_s) + 1, 0);
    for (const TimeNs at : run.arrival) {
      load.per_s[static_cast<std::size_t>(static_cast<double>(at) / 1e9 / load.bin_s)] +=
          1 / load.bin_s;
    }
    // Of a part of a bin nothing is known.
    if (load.per_s.size() > 1) load.per_s.back() = load.per_s[load.per_s.size() - 2];
    load.mean_e2e_s = report.e2e_ms.mean / 1000;
    load.mean_kv_usage = report.kv_mean_usage;
    load.mean_in_system = report.mean_in_system;
    return load;
  }

  bool Step(std::int64_t max_steps) {
    if (finished) return true;
    if (!current) {
      if (Solve()) return true;
      return !Begin();
    }
    if (current->Advance(max_steps)) Take();
    return false;
  }

  double Progress() const {
    if (finished) return 1;
    // Runs until the end, as far as families are known.
    const double families = scalers.empty() ? 12 : static_cast<double>(scalers.size());
    const double all = 10 + 3 * families + 3 * static_cast<double>(result.days) * 2;
    const double part = current ? current->Progress() : 0;
    shown = std::max(shown, std::min((static_cast<double>(result.runs) + part) / all, 0.99));
    return shown;
  }

  Scenario scenario;
  Trace trace;
  ScalingSpec own;
  std::int64_t own_replicas = 1;
  std::map<std::string, AutoscaleRow> rows;    // by name; without days: asked for
  std::map<std::string, AutoscaleLoad> loads;  // by name, of fixed replicas
  std::vector<AutoscaleFamily> scalers, schedules;
  AutoscaleRow* asked = nullptr;
  Scenario running;
  std::optional<Simulation> current;
  AutoscaleAnswer result;
  Issues problems;
  bool finished = false;
  mutable double shown = 0;
};

AutoscalePlan::AutoscalePlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
AutoscalePlan::AutoscalePlan(AutoscalePlan&&) noexcept = default;
AutoscalePlan& AutoscalePlan::operator=(AutoscalePlan&&) noexcept = default;
AutoscalePlan::~AutoscalePlan() = default;

Result<AutoscalePlan> AutoscalePlan::Create(Scenario scenario, Trace trace,
                                            AutoscaleOptions options) {
  Issues issues = IssuesOf(options);
  if (scenario.slo.empty()) {
    issues.push_back({"/slo", "found no target, allowed one at least: a plan keeps targets"});
  }
  const bool of_requests =
      std::all_of(scenario.slo.begin(), scenario.slo.end(),
                  [](const SloSpec& slo) { return slo.metric != SloMetric::kItl; });
  if (options.windows > 0 && !of_requests) {
    issues.push_back({"",
                      "windows: found some beside a target of ITL, allowed none: no request "
                      "has an ITL of its own"});
  }
  if (scenario.cluster.pools.size() > 1) {
    issues.push_back({"/cluster/pools", Format("found {} pools, allowed 1: each has a scaler",
                                               scenario.cluster.pools.size())});
  }
  scenario.cluster.scaling = scenario.cluster.ScalingOf(scenario.cluster.pool());
  scenario.cluster.pool().scaling.reset();
  CheckNamesNoReplica(scenario, issues);
  if (scenario.cluster.rolling_update.On()) {
    issues.push_back(
        {"/cluster/rolling_update", "found one, allowed none: it is not modelled beside a scaler"});
  }
  CheckIsNotCapped(scenario, issues);
  const ArrivalSpec& arrivals = scenario.workload->arrivals;
  const bool trace_alone = ReplaysTrace(scenario);
  if (!HasRate(arrivals.process) && !trace_alone) {
    issues.push_back({"/workload/arrivals/process",
                      "found one without a rate, allowed one with a rate, or a trace: a scaler "
                      "follows a load"});
  } else if (!options.hours.empty() && trace_alone) {
    issues.push_back({"", "hours: found some, allowed none with a trace, which has its own"});
  } else if (options.hours.empty() && !trace_alone && arrivals.profile == RateProfile::kFlat &&
             arrivals.spikes.empty()) {
    issues.push_back({"/workload/arrivals/profile",
                      "found \"flat\", allowed one that changes, or the load of each hour (hours): "
                      "a load that stays the same needs no scaler"});
  }
  if (!options.hours.empty()) {
    const double span_s = kHourS * static_cast<double>(options.hours.size());
    if (scenario.measure.horizon_s) {
      issues.push_back({"/measure/horizon_s", Format("found {} s, allowed none beside hours, whose "
                                                     "end is the horizon",
                                                     NumberText(*scenario.measure.horizon_s))});
    }
    if (scenario.measure.warmup_s >= span_s) {
      issues.push_back({"/measure/warmup_s", Format("found {} s, allowed less than the hours last",
                                                    NumberText(scenario.measure.warmup_s))});
    }
  }
  if (!issues.empty()) return issues;
  if (!options.hours.empty()) {
    std::optional<Scenario> day = OverHours(std::move(scenario), options.hours);
    if (!day) {
      return Issues{{"/workload/arrivals/rate_per_s",
                     Format("found more than {} requests in these hours, allowed up to that: "
                            "fewer hours, or a lower rate",
                            kMaxRequests)}};
    }
    scenario = *std::move(day);
  }
  // What scalers cannot go with, said before anything is run.
  ScalingSpec any = scenario.cluster.scaling;
  if (!any.On()) any.policy = "hpa";
  any.min_replicas = std::min(any.min_replicas, scenario.cluster.pool().replicas);
  any.max_replicas = std::max(any.max_replicas, scenario.cluster.pool().replicas);
  const Scenario tried = ScenarioUnder(
      scenario, {AutoscaleKind::kScaler, "", scenario.cluster.pool().replicas, std::move(any)});
  issues = IssuesTogether(tried);
  if (issues.empty()) issues = Simulation::Refusals(tried, trace);
  if (!issues.empty()) return issues;
  return AutoscalePlan(std::make_unique<State>(std::move(scenario), std::move(trace),
                                               trace_alone ? 1 : options.days, options.windows));
}

bool AutoscalePlan::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }
double AutoscalePlan::Progress() const { return state_->Progress(); }
const Scenario& AutoscalePlan::scenario() const { return state_->scenario; }
const Issues& AutoscalePlan::Problems() const { return state_->problems; }

AutoscaleAnswer AutoscalePlan::Answer() const {
  AutoscaleAnswer answer = state_->result;
  if (!state_->finished) answer.rows = state_->Rows();
  return answer;
}

}  // namespace servecast
