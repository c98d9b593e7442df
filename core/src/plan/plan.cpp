// See servecast/plan.h: runs what next_runs.cpp asks for, which answer_so_far.cpp puts together.
#include "servecast/plan.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "experiment/lives.h"
#include "experiment/replications.h"
#include "io/pool_checks.h"
#include "metrics/records.h"
#include "plan/answer_so_far.h"
#include "plan/design_requests.h"
#include "plan/line.h"
#include "plan/next_runs.h"
#include "plan/place.h"
#include "plan/so_far.h"
#include "plan/strain.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/cluster/deployment.h"
#include "serving/hooks.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr std::int64_t kScout = 2000;    // requests of a scout, if ours to choose
constexpr std::int64_t kPerClient = 20;  // requests of each client of a closed loop, at least
constexpr std::size_t kSeatsShare = 1;   // of BindingConstraint::shares
constexpr double kPerRunning = 10;       // requests of a run for each that runs at a time, at least

double CachedShare(const PrefixCacheReport& cache) {
  return cache.query_tokens == 0
             ? 0
             : static_cast<double>(cache.hit_tokens) / static_cast<double>(cache.query_tokens);
}

// The share of requests that is dropped for their length is that of the prompts drawn: no load and
// no number of replicas changes it. Where it is clearly (two standard errors) more than a target
// may lose, nothing keeps the target. Of several such targets the one that is missed most.
std::optional<NeverKept> NeverKeptOf(const Scenario& scenario, const RunRecords& run) {
  std::optional<NeverKept> never;
  double most = 0;
  for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
    const SloSpec& slo = scenario.slo[k];
    double dropped = 0, all = 0;
    for (std::size_t i = 0; i < run.requests.arrival.size(); ++i) {
      if (run.requests.arrival[i] < 0 || run.requests.arrival[i] > run.end) continue;
      const bool foreign =
          !slo.of_class.empty() &&
          (run.requests.of_class.empty() ||
           scenario.workload->classes[run.requests.of_class[i]].name != slo.of_class);
      if (foreign) continue;
      all += 1;
      dropped += run.results.state[i] == RequestState::kDropped ? 1 : 0;
    }
    if (dropped == 0) continue;
    const double share = dropped / all, allowed = 1 - slo.percentile / 100;
    const double excess = share - 2 * std::sqrt(share * (1 - share) / all) - allowed;
    if (excess <= most) continue;
    most = excess;
    never = NeverKept{k, share};
  }
  return never;
}

}  // namespace

struct Plan::State {
  State(Scenario s, Trace t, const PlanOptions& o, const Line& line, Deployment d)
      : p(std::move(s), o, line), trace(std::move(t)), deployment(std::move(d)) {
    has_itl = std::any_of(p.scenario.slo.begin(), p.scenario.slo.end(),
                          [](const SloSpec& slo) { return slo.metric == SloMetric::kItl; });
    p.length = p.steady && !p.replays ? kScout : p.scenario.workload->requests;
    if (p.replays) p.wanted = 1;
  }

  Result<Simulation> Make(const PlanPlace& place) {
    Scenario s = ScenarioAt(p.scenario, p.options, place.at);
    s.seed = SeedOfRun(p.scenario.seed, place.first_run + place.runs.size());
    s.workload->requests = place.length;
    if (s.workload->arrivals.process == ArrivalProcess::kClosedLoop) {
      s.workload->requests = std::min(
          std::max(place.length, kPerClient * s.workload->arrivals.concurrency), kMaxRequests);
    }
    SimulationHooks hooks;
    hooks.recorded = {.series = false, .gaps = has_itl};
    if (Issues issues = IssuesTogether(s); !issues.empty()) return issues;
    hooks.deployment = std::make_shared<Deployment>(Redeploy(deployment, s));
    if (const RequestTable* drawn = Drawn(s, place)) hooks.requests = *drawn;
    return Simulation::Create(std::move(s), trace, std::move(hooks));
  }

  // Any number of replicas is sent the same requests: those of the first run, which every place
  // has, are drawn once.
  const RequestTable* Drawn(const Scenario& s, const PlanPlace& place) {
    if (p.options.line != PlanLine::kReplicas || p.replays || !place.runs.empty()) return nullptr;
    const auto known = tables.find(s.workload->requests);
    if (known != tables.end()) return &known->second;
    Result<RequestTable> made = MakeRequests(s, trace);
    return made.ok() ? &(tables[s.workload->requests] = std::move(made.value())) : nullptr;
  }

  bool Step(std::int64_t max_steps) {
    if (p.finished) return true;
    if (!current) {
      PlanPlace* place = Unfinished();
      if (place == nullptr) return p.finished;
      Result<Simulation> made = Make(*place);
      if (!made.ok()) return Impossible(*place, made.issues()[0]);
      current.emplace(std::move(made.value()));
    }
    if (!current->Advance(max_steps)) return false;
    PlanPlace& place = *Unfinished();
    std::int64_t needed = place.length;
    Report report;
    if (place.runs.empty() || has_itl) {
      report = current->Snapshot(has_itl ? ReportDetail::kSummary : ReportDetail::kTotals);
      place.work = report.steps + report.arrived;
      place.cached_share = CachedShare(report.prefix_cache);
      p.seats_to_spare =
          p.seats_to_spare && report.binding.shares[kSeatsShare] == 0 && report.kv_peak_usage < 0.5;
    }
    Observations& seen =
        place.runs.emplace_back(ObservationsOf(p.scenario, current->Records(), report));
    CountThoseWithoutAnswer(seen);
    if (p.runs == 0 && !IsBlis(p.scenario.engine.compat)) {
      p.never = NeverKeptOf(p.scenario, current->Records());
    }
    if (place.runs.size() == 1 || has_itl) needed = LengthFor(place, report, seen.mean_e2e_s);
    p.work += place.work;
    p.requests += static_cast<std::int64_t>(seen.arrival.size());
    ++p.runs;
    current.reset();
    if (p.scouting && needed > place.length && !p.never) {
      place.length = needed;
      place.runs.clear();  // of a system that fills up and empties
    } else if (place.runs.size() == place.wanted || p.never) {
      Read(place);
    }
    if (p.work > p.options.most_work || p.never) p.finished = true;
    return p.finished;
  }

  // Within no limits of attainment: see strain.h.
  void CountThoseWithoutAnswer(Observations& seen) const {
    for (std::size_t k = 0; k < p.scenario.slo.size(); ++k) {
      if (p.scenario.slo[k].metric != SloMetric::kAttainment) continue;
      for (std::size_t i = 0; i < seen.unserved[k].size(); ++i) {
        const bool never = seen.unserved[k][i] == 1 && seen.latency_ms[k][i] < 0;
        if (never) seen.latency_ms[k][i] = kNoAnswer;
      }
    }
  }

  // Of a large fleet, and of long conversations, a short run is over before the first requests are,
  // and tells nothing. What waits does not count, or an overload had no end.
  std::int64_t LengthFor(const PlanPlace& place, const Report& report, double e2e_s) const {
    if (p.replays || !p.steady) return place.length;
    const Scenario s = ScenarioAt(p.scenario, p.options, place.at);
    const double running = report.mean_batch_size * static_cast<double>(s.cluster.Replicas());
    const Lives lives = LivesOf(s, ServedSeconds(report, s.cluster, e2e_s));
    const bool loop = s.workload->arrivals.process == ArrivalProcess::kClosedLoop;  // see Make
    const double needed = std::max(kPerRunning * running, loop ? 0 : kLives * lives.requests);
    if (needed <= static_cast<double>(place.length)) return place.length;
    return std::clamp(static_cast<std::int64_t>(needed), std::min(2 * place.length, kMaxRequests),
                      kMaxRequests);
  }

  // The place that lacks runs; when none does, one more is chosen. nullptr: finished.
  PlanPlace* Unfinished() {
    for (;;) {
      for (PlanPlace& place : p.Asked()) {
        if (place.runs.size() < place.wanted) return &place;
      }
      if (p.finished) return nullptr;
      ChooseNext(p);
    }
  }

  // So many replicas are more than a run can hold, or refused: the line ends before it.
  bool Impossible(const PlanPlace& place, const Issue& why) {
    std::vector<PlanPlace>& all = p.Asked();
    const double at = place.at;
    p.refused = Format("{} {}: {}{}{}", ShortNumber(at), p.slope.line().unit, why.path,
                       why.path.empty() ? "" : ": ", why.message);
    all.erase(all.begin() + (&place - all.data()));
    Line line = p.slope.line();
    (at > line.own ? line.most : line.least) = at > line.own ? std::max(line.own, at / 2) : at * 2;
    if (line.step > 0) line.most = line.step * std::floor(line.most / line.step);
    p.slope = Slope(line);
    if (++impossible > 40) p.finished = true;
    return p.finished;
  }

  void Read(PlanPlace& place) {
    ReadPlace(p.scenario, p.steady, p.lengthened > 0, place);
    if (!place.known) p.finished = true;
  }

  SoFar p;
  Trace trace;
  Deployment deployment;                        // of its own place; runs share its step times
  std::map<std::int64_t, RequestTable> tables;  // by number of requests; see Drawn
  bool has_itl = false;
  int impossible = 0;
  std::optional<Simulation> current;
  mutable double shown = 0;
};

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

Result<Plan> Plan::Create(Scenario scenario, Trace trace, PlanOptions options) {
  Issues issues;
  if (scenario.slo.empty()) {
    issues.push_back({"/slo", "found no target, allowed one at least: a plan keeps targets"});
  }
  CheckCanPlan(scenario, issues);
  const std::optional<Line> line = LineOf(scenario, options);
  if (!line) {
    issues.push_back(
        {"/workload/arrivals/process",
         "found requests that all come at once, allowed a process with a rate, a trace "
         "or a closed loop: a plan varies the load"});
  }
  Scenario alone = scenario;
  if (alone.cluster.pools.size() == 1) alone.UsePool(0);
  Result<Deployment> deployment = Deploy(alone, /*labelled=*/false);
  SimulationHooks hooks;
  hooks.recorded = {.series = false, .gaps = false};
  if (deployment.ok()) {
    hooks.deployment = std::make_shared<Deployment>(Redeploy(deployment.value(), scenario));
  }
  // As long as a scout, its requests are those of scouts of any number of replicas.
  std::optional<RequestTable> shared;
  if (options.line == PlanLine::kReplicas && scenario.workload->requests == kScout) {
    Result<RequestTable> made = DrawnRequests(scenario, trace);
    if (made.ok()) hooks.requests = shared.emplace(std::move(made.value()));
  }
  const Result<Simulation> first = Simulation::Create(scenario, trace, std::move(hooks));
  if (!first.ok()) {
    issues.insert(issues.end(), first.issues().begin(), first.issues().end());
  }
  if (!issues.empty()) return issues;
  auto state = std::make_unique<State>(std::move(scenario), std::move(trace), options, *line,
                                       std::move(deployment.value()));
  if (shared) state->tables[kScout] = std::move(*shared);
  return Plan(std::move(state));
}

bool Plan::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double Plan::Progress() const {
  const State& s = *state_;
  if (s.p.finished) return 1;
  // How many places there will be is not known: scouts are ten or so, and each of the others takes
  // many runs.
  const double done =
      static_cast<double>(s.p.runs) / static_cast<double>(s.p.runs + 5 * s.p.wanted);
  s.shown = std::max(s.shown, std::min(done, 0.99));
  return s.shown;
}

PlanAnswer Plan::Answer() const { return AnswerSoFar(state_->p); }

}  // namespace servecast
