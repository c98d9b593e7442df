// The fewest GPUs (servecast/plan.h). Each question "how few replicas of this pool, given so many
// of the other" is a Plan. What to do with the answers is written as if all were known (Solve):
// where one is not, it is found first, and Solve begins again.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "plan/bound.h"
#include "plan/line.h"
#include "servecast/plan.h"
#include "servecast/simulation.h"

namespace servecast {
namespace {

constexpr int kRounds = 8;  // of one pool after the other
// Of scouts only: times its own replicas, that a pool is given before the other is despaired of.
constexpr std::int64_t kMostAtOnce = 8;
constexpr std::int64_t kLeastWork = 100'000;  // of a question when little is left for all

using Counts = std::vector<std::int64_t>;

struct FleetQuestion {
  std::size_t pool = 0;  // is varied; beyond the last: none, all counts are given
  Counts others;         // its own entry is 0
  friend bool operator<(const FleetQuestion& a, const FleetQuestion& b) {
    return std::tie(a.pool, a.others) < std::tie(b.pool, b.others);
  }
};

bool HasRoles(const ClusterSpec& cluster) {
  return cluster.pools.size() == 2 && cluster.Has(PoolRole::kPrefill) &&
         cluster.Has(PoolRole::kDecode);
}

template <class Get>
auto Sum(const std::vector<FleetAnswer::Pool>& pools, Get get) {
  decltype(get(pools[0])) sum = 0;
  for (const FleetAnswer::Pool& pool : pools) sum += get(pool);
  return sum;
}

// Rows that are known as well as they claim: those with as many runs as the answer has, and of the
// others those that are sure of what the answer implies.
std::vector<PlanPoint> RowsOf(const std::vector<PlanPoint>& curve, std::int64_t replicas) {
  std::int64_t runs = 0;
  for (const PlanPoint& point : curve) runs = Whole(point.at) == replicas ? point.runs : runs;
  std::vector<PlanPoint> rows;
  std::copy_if(curve.begin(), curve.end(), std::back_inserter(rows), [&](const PlanPoint& point) {
    const bool fewer = Whole(point.at) < replicas;
    return point.runs >= runs || (fewer ? point.low > 1 : point.high <= 1);
  });
  return rows;
}

}  // namespace

std::int64_t FleetAnswer::Gpus() const {
  return Sum(pools, [](const Pool& p) { return p.replicas * p.gpus_per_replica; });
}
std::int64_t FleetAnswer::LowGpus() const {
  return Sum(pools, [](const Pool& p) { return p.low * p.gpus_per_replica; });
}
std::int64_t FleetAnswer::HighGpus() const {
  return Sum(pools, [](const Pool& p) { return p.high * p.gpus_per_replica; });
}
double FleetAnswer::LeastGpus() const {
  return Sum(pools, [](const Pool& p) {
    return std::max(p.least_by_compute, p.least_by_bandwidth) *
           static_cast<double>(p.gpus_per_replica);
  });
}

struct FleetPlan::State {
  State(Scenario s, Trace t, PlanOptions o)
      : scenario(std::move(s)), trace(std::move(t)), options(o) {
    for (const PoolSpec& pool : scenario.cluster.pools) {
      own.push_back(pool.replicas);
      gpus.push_back(pool.GpusOfReplica());
    }
    options.line = PlanLine::kReplicas;
  }

  Scenario With(const Counts& counts) const {
    Scenario s = scenario;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) s.cluster.pools[i].replicas = counts[i];
    }
    return s;
  }

  // nullptr: it has to be found first, and is `asked`.
  const PlanAnswer* Fewest(std::size_t pool, Counts counts) {
    counts[pool] = 0;
    const FleetQuestion question{pool, std::move(counts)};
    const auto known = answers.find(question);
    if (known != answers.end()) return &known->second;
    asked = question;
    return nullptr;
  }

  // As many replicas of a pool as are tried, that all fit in a run.
  std::int64_t Most(std::size_t pool) const {
    const std::int64_t most = kMostReplicas / static_cast<std::int64_t>(own.size());
    return options.scouts_only ? std::min(kMostAtOnce * own[pool], most) : most;
  }

  // One run with as many replicas of both as are tried at most: whether even these miss. nullopt:
  // it has to be made first.
  std::optional<bool> Hopeless() {
    const Counts most = {Most(0), Most(1)};
    const FleetQuestion question{own.size(), most};
    const auto known = answers.find(question);
    if (known == answers.end()) {
      asked = question;
      return std::nullopt;
    }
    const std::vector<PlanPoint>& tried = known->second.curve;
    return !tried.empty() && tried[0].low > 1;
  }

  // Takes replicas off both pools in turn for as long as one falls. Returns kFound, or why there is
  // no answer; nullopt: one is missing.
  std::optional<PlanOutcome> Descend(Counts& counts) {
    for (int round = 0; round < kRounds; ++round) {
      const Counts before = counts;
      for (const std::size_t pool : {std::size_t{1}, std::size_t{0}}) {
        const PlanAnswer* fewest = Fewest(pool, counts);
        while (fewest != nullptr && fewest->outcome == PlanOutcome::kNone) {
          missed = fewest->binding;
          if (fewest->never) return PlanOutcome::kNone;
          const std::optional<bool> hopeless = Hopeless();
          if (!hopeless) return std::nullopt;
          if (*hopeless) return PlanOutcome::kNone;
          // However many there are of this pool, the other one is too small.
          std::int64_t& other = counts[1 - pool];
          if (other >= Most(1 - pool)) return PlanOutcome::kNone;
          other = std::min(2 * other, Most(1 - pool));
          fewest = Fewest(pool, counts);
        }
        if (fewest == nullptr && Spent()) return PlanOutcome::kUnknown;
        if (fewest == nullptr) return std::nullopt;
        if (fewest->outcome == PlanOutcome::kUnknown) return PlanOutcome::kUnknown;
        counts[pool] = Whole(fewest->value);
      }
      if (counts == before) break;
    }
    return PlanOutcome::kFound;
  }

  std::int64_t GpusOf(const Counts& counts) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) sum += counts[i] * gpus[i];
    return sum;
  }

  // More or fewer of the first pool, for fewer or more of the second. False: an answer is missing.
  bool Exchange(Counts& best) {
    for (const std::int64_t step : {1, -1}) {
      for (Counts counts = best;;) {
        counts[0] += step;
        if (counts[0] < 1 || counts[0] > kMostReplicas) break;
        const PlanAnswer* fewest = Fewest(1, counts);
        if (fewest == nullptr && Spent()) return true;
        if (fewest == nullptr) return false;
        if (fewest->outcome != PlanOutcome::kFound) break;
        counts[1] = Whole(fewest->value);
        if (GpusOf(counts) > GpusOf(best)) break;
        if (GpusOf(counts) < GpusOf(best)) best = counts;
      }
    }
    return true;
  }

  // False: an answer is missing.
  bool Solve() {
    Counts counts = own;
    if (counts.size() == 1) {
      const PlanAnswer* fewest = Fewest(0, counts);
      if (fewest == nullptr) return false;
      counts[0] = Whole(fewest->value);
      missed = fewest->binding;
      return Conclude(counts, fewest->outcome);
    }
    const std::optional<PlanOutcome> outcome = Descend(counts);
    if (!outcome) return false;
    const bool exchanges = *outcome == PlanOutcome::kFound && !options.scouts_only;
    if (exchanges && !Exchange(counts)) return false;
    return Conclude(counts, *outcome);
  }

  // False: an answer is missing.
  bool Conclude(const Counts& counts, PlanOutcome outcome) {
    FleetAnswer found;
    found.outcome = outcome;
    if (outcome != PlanOutcome::kFound) {
      if (outcome == PlanOutcome::kUnknown) FindClosest(found);
      if (outcome == PlanOutcome::kNone) found.binding = missed;
      answer = std::move(found);
      return true;
    }
    // The larger end of one pool is found with that of the other: else what the other lacks would
    // be asked of this one.
    Counts most = counts;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const PlanAnswer* of = Fewest(i, most);
      if (of == nullptr && Spent()) of = Fewest(i, counts);
      if (of == nullptr) return false;
      most[i] = std::max(counts[i], Whole(of->high));
    }
    double requests_per_s = 0, cached_share = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const PlanAnswer* of = Fewest(i, counts);
      if (of == nullptr) return false;
      FleetAnswer::Pool& pool = found.pools.emplace_back();
      pool.replicas = counts[i];
      // A pool that an exchange made larger than it has to be alone.
      pool.low = std::min(counts[i], Whole(of->low));
      pool.high = most[i];
      pool.gpus_per_replica = gpus[i];
      pool.curve = RowsOf(of->curve, counts[i]);
      if (of->binding) found.binding = of->binding;
      cached_share = of->cached_share;
      for (const PlanPoint& point : of->curve) {
        if (Whole(point.at) == counts[i]) requests_per_s = point.requests_per_s;
      }
    }
    const auto least = LeastReplicasFor(With(counts), trace, requests_per_s, cached_share);
    for (std::size_t i = 0; least.ok() && i < counts.size(); ++i) {
      found.pools[i].least_by_compute = least.value()[i].compute;
      found.pools[i].least_by_bandwidth = least.value()[i].bandwidth;
    }
    answer = std::move(found);
    return true;
  }

  void FindClosest(FleetAnswer& found) const {
    for (const auto& [question, tried] : answers) {
      if (tried.outcome != PlanOutcome::kUnknown) continue;
      for (const PlanPoint& point : tried.curve) {
        if (found.closest && point.strain >= found.closest->strain) continue;
        found.closest = point;
        found.closest_replicas = question.others;
        if (question.pool < own.size()) found.closest_replicas[question.pool] = Whole(point.at);
      }
    }
  }

  bool Spent() const { return options.most_work_in_all > 0 && work >= options.most_work_in_all; }

  // Half of what is left, as others will come.
  PlanOptions OptionsOf(const FleetQuestion& question) const {
    PlanOptions of = options;
    of.fixed = question.pool == own.size();
    of.pool = of.fixed ? 0 : question.pool;
    if (of.most_work_in_all == 0 || own.size() == 1) return of;
    const std::int64_t left = (of.most_work_in_all - work) / 2;
    of.most_work = std::clamp(left, std::min(kLeastWork, of.most_work), of.most_work);
    return of;
  }

  bool Step(std::int64_t max_steps) {
    if (answer) return true;
    if (!current) {
      if (Solve()) return true;
      Result<Plan> made = Plan::Create(With(asked.others), trace, OptionsOf(asked));
      if (!made.ok()) {  // so many replicas are more than a run can hold
        answers[asked].outcome = PlanOutcome::kUnknown;
        return false;
      }
      current.emplace(std::move(made.value()));
    }
    if (!current->Advance(max_steps)) return false;
    const PlanAnswer& found = answers[asked] = current->Answer();
    if (!found.refused.empty()) refused = found.refused;
    if (found.never) never = found.never;
    runs += found.runs;
    requests += found.requests;
    work += found.work;
    current.reset();
    return false;
  }

  Scenario scenario;
  Trace trace;
  PlanOptions options;
  Counts own, gpus;  // by pool
  std::map<FleetQuestion, PlanAnswer> answers;
  FleetQuestion asked;
  std::optional<Plan> current;
  std::optional<FleetAnswer> answer;
  std::int64_t runs = 0, requests = 0, work = 0;
  std::string refused;
  std::optional<NeverKept> never;
  std::optional<std::size_t> missed;  // by all numbers of replicas that were asked for last
  mutable double shown = 0;
};

FleetPlan::FleetPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
FleetPlan::FleetPlan(FleetPlan&&) noexcept = default;
FleetPlan& FleetPlan::operator=(FleetPlan&&) noexcept = default;
FleetPlan::~FleetPlan() = default;

Result<FleetPlan> FleetPlan::Create(Scenario scenario, Trace trace, PlanOptions options) {
  const ClusterSpec& cluster = scenario.cluster;
  if (cluster.pools.size() > 1 && !HasRoles(cluster)) {
    return Issue{
        "/cluster/pools",
        Format("found {} pools, allowed 1, or one that prefills and one that decodes: which "
               "of several alike should have fewer replicas is no question of capacity",
               cluster.pools.size())};
  }
  Issues issues;
  CheckNamesNoReplica(scenario, issues);
  if (!issues.empty()) return issues;
  options.line = PlanLine::kReplicas;
  options.pool = 0;
  Result<Plan> first = Plan::Create(scenario, trace, options);
  if (!first.ok()) return Issues(first.issues());
  return FleetPlan(std::make_unique<State>(std::move(scenario), std::move(trace), options));
}

bool FleetPlan::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double FleetPlan::Progress() const {
  const State& s = *state_;
  if (s.answer) return 1;
  // With roles some six questions.
  const double questions = s.own.size() == 1 ? 1 : 6;
  const double part = s.current ? s.current->Progress() : 0;
  const double done = (static_cast<double>(s.answers.size()) + part) / questions;
  s.shown = std::max(s.shown, std::min(done, 0.99));
  return s.shown;
}

FleetAnswer FleetPlan::Answer() const {
  FleetAnswer answer = state_->answer.value_or(FleetAnswer());
  answer.runs = state_->runs;
  answer.requests = state_->requests;
  answer.refused = state_->refused;
  answer.never = state_->never;
  return answer;
}

}  // namespace servecast
