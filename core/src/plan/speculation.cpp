// See speculation.h.
#include "plan/speculation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/math.h"
#include "base/text.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/line.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr double kClose = 1.1;  // between the two loads around the answer
constexpr std::size_t kMostPlaces = 24;
constexpr std::int64_t kPairs = 4, kPairsAround = 8;  // of runs, at a place; around the answer
constexpr double kLeastAtOnce = 0.3;                  // of requests: with fewer no load is lighter
constexpr double kAtOnceInARun = 10;  // a run has so many times the requests that run at once
constexpr std::int64_t kMostRequests = 20'000;  // beyond the scenario's own
// Two-sided, 95 %, of Student's t with one degree of freedom fewer than pairs.
constexpr double kStudent[] = {0, 0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365};

Scenario WithoutDrafts(Scenario scenario) {
  scenario.engine.speculative = {};
  for (PoolSpec& pool : scenario.cluster.pools) {
    if (pool.engine) pool.engine->speculative = {};
  }
  return scenario;
}

bool HasDrafts(const Scenario& scenario) {
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  return std::any_of(pools.begin(), pools.end(), [&scenario](const PoolSpec& pool) {
    return (pool.engine ? *pool.engine : scenario.engine).speculative.On();
  });
}

struct Place {
  double at = 0;
  std::vector<double> logs;  // of the ratio, of each pair
  double with_ms = 0, without_ms = 0;
  std::int64_t overloaded = 0;  // pairs

  std::int64_t pairs() const { return static_cast<std::int64_t>(logs.size()); }
  double Mean() const {
    double sum = 0;
    for (const double log : logs) sum += log;
    return sum / static_cast<double>(logs.size());
  }
  double HalfWidth() const {
    const double mean = Mean(), n = static_cast<double>(logs.size());
    double squares = 0;
    for (const double log : logs) squares += (log - mean) * (log - mean);
    return kStudent[logs.size()] * std::sqrt(squares / (n - 1) / n);
  }
};

// Where a line through (a, f(a)) and (b, f(b)), in logarithms of `at`, is 0.
double Zero(double a, double at_a, double b, double at_b) {
  if (at_a == at_b) return a;
  const double share = std::clamp(at_a / (at_a - at_b), 0.0, 1.0);
  return Exp(Log(a) + share * (Log(b) - Log(a)));
}

}  // namespace

struct SpeculationPlan::State {
  Scenario scenario;
  Trace trace;
  Line line;
  std::vector<Place> places;  // ascending
  std::size_t current = 0;    // of them, where a pair runs
  std::int64_t seed = 0;      // of the pair, from the scenario's own
  std::optional<Simulation> run;
  bool with = true;
  double with_ms = 0;  // of this pair
  bool with_overloaded = false;
  std::int64_t runs = 0, requests = 0;
  bool finished = false, failed = false;
  double progress = 0;

  // ---- One pair after the other ----

  // Enough requests for what runs at once at `at`, by the nearest place that is known.
  std::int64_t RequestsAt(double at) const {
    const std::int64_t own = scenario.workload->requests;
    const ArrivalProcess process = scenario.workload->arrivals.process;
    if (process == ArrivalProcess::kTrace) return own;
    double at_once = at;  // clients
    if (process != ArrivalProcess::kClosedLoop) {
      const Place* known = nullptr;
      for (const Place& place : places) {
        if (!place.logs.empty() && place.at <= at) known = &place;
      }
      at_once = known == nullptr ? 0 : at * known->without_ms / 1e3;
    }
    const double wanted = std::min(kAtOnceInARun * at_once, static_cast<double>(kMostRequests));
    return std::max(own, static_cast<std::int64_t>(wanted));
  }

  bool Begin() {
    Place& place = places[current];
    PlanOptions load;
    Scenario s = ScenarioAt(scenario, load, place.at);
    s.seed = scenario.seed + place.pairs();
    s.workload->requests = RequestsAt(place.at);
    if (!with) s = WithoutDrafts(std::move(s));
    Result<Simulation> made = Simulation::Create(std::move(s), trace);
    if (!made.ok()) return false;
    run.emplace(std::move(made.value()));
    return true;
  }

  void Take() {
    const Report report = run->Snapshot(ReportDetail::kSummary);
    run.reset();
    ++runs;
    requests += report.arrived;
    const bool overloaded = report.saturation.state == SaturationState::kOverloaded;
    const double ms = report.e2e_ms.mean;
    failed = failed || !(ms > 0);
    if (with) {
      with_ms = ms;
      with_overloaded = overloaded;
      with = false;
      return;
    }
    with = true;
    if (failed) return;
    Place& place = places[current];
    const auto n = static_cast<double>(place.pairs());
    place.logs.push_back(Log(with_ms / ms));
    place.with_ms += (with_ms - place.with_ms) / (n + 1);
    place.without_ms += (ms - place.without_ms) / (n + 1);
    place.overloaded += overloaded && with_overloaded ? 1 : 0;
  }

  // ---- Where to look next ----

  bool IsHeaviest(const Place& place) const {
    const bool loop = scenario.workload->arrivals.process == ArrivalProcess::kClosedLoop;
    std::int64_t seats = 0;
    for (const PoolSpec& pool : scenario.cluster.pools) {
      seats += pool.replicas * (pool.engine ? *pool.engine : scenario.engine).max_num_seqs;
    }
    if (loop) return place.at >= static_cast<double>(seats);
    return place.overloaded * 2 > place.pairs() || place.at >= line.most;
  }
  bool IsLightest(const Place& place) const {
    if (line.step > 0) return place.at <= line.least;
    const bool rate = scenario.workload->arrivals.process != ArrivalProcess::kTrace;
    const double at_once = place.at * place.without_ms / 1e3;
    return (rate && at_once < kLeastAtOnce) || place.at <= line.own / (1 << 10);
  }

  // The first place where it does not pay; places.size(): it does at all.
  std::size_t FirstLoss() const {
    std::size_t i = 0;
    while (i < places.size() && places[i].Mean() <= 0) ++i;
    return i;
  }

  bool Add(double at) {
    if (line.step > 0) at = line.step * std::nearbyint(at / line.step);
    at = std::clamp(at, line.least, line.most);
    const auto place = std::find_if(places.begin(), places.end(),
                                    [at](const Place& known) { return known.at >= at; });
    if (place != places.end() && place->at == at) return false;
    current = static_cast<std::size_t>(place - places.begin());
    Place added;
    added.at = at;
    places.insert(place, added);
    return true;
  }

  // More pairs at the places around the answer.
  bool Around(std::size_t loss) {
    for (const std::size_t i : {loss - 1, loss}) {
      if (places[i].pairs() < kPairsAround) {
        current = i;
        return true;
      }
    }
    return false;
  }

  // False: nothing is left to ask.
  bool Next() {
    if (places[current].pairs() < kPairs) return true;
    const std::size_t loss = FirstLoss();
    const bool more = places.size() < kMostPlaces;
    if (loss == places.size()) {
      const Place& last = places.back();
      return more && !IsHeaviest(last) && Add(last.at * 2);
    }
    if (loss == 0) {
      const Place& first = places.front();
      return more && !IsLightest(first) && Add(first.at / 2);
    }
    const double a = places[loss - 1].at, b = places[loss].at;
    if (more && b > a * kClose && Add(std::sqrt(a * b))) return true;
    return Around(loss);
  }
};

SpeculationPlan::SpeculationPlan(std::unique_ptr<State> state) : state_(std::move(state)) {}
SpeculationPlan::SpeculationPlan(SpeculationPlan&&) noexcept = default;
SpeculationPlan& SpeculationPlan::operator=(SpeculationPlan&&) noexcept = default;
SpeculationPlan::~SpeculationPlan() = default;

Result<SpeculationPlan> SpeculationPlan::Create(Scenario scenario, Trace trace) {
  if (!HasDrafts(scenario)) {
    return Issues{{"/engine/speculative/method",
                   "found \"none\", allowed any other: the question is until which load it pays"}};
  }
  Issues issues;
  CheckCanPlan(scenario, issues);
  if (!issues.empty()) return issues;
  const std::optional<Line> line = LineOf(scenario, {});
  if (!line) {
    return Issues{{"/workload/arrivals/process",
                   "found requests that all come at once, allowed a load that can be varied"}};
  }
  auto state = std::make_unique<State>();
  state->scenario = std::move(scenario);
  state->trace = std::move(trace);
  state->line = *line;
  for (const bool with : {false, true}) {
    const Scenario& s = state->scenario;
    Result<Simulation> made = Simulation::Create(with ? s : WithoutDrafts(s), state->trace);
    if (!made.ok()) return made.issues();
  }
  state->Add(line->own);
  return SpeculationPlan(std::move(state));
}

bool SpeculationPlan::Advance(std::int64_t max_steps) {
  State& s = *state_;
  if (s.finished) return true;
  if (!s.run && !s.Begin()) s.failed = true;
  if (!s.failed) {
    if (!s.run->Advance(max_steps)) return false;
    s.Take();
  }
  if (s.with) s.finished = s.failed || !s.Next();
  s.finished = s.finished || s.failed;
  // How many places there will be is not known.
  s.progress = s.finished ? 1 : 1 - 60 / (60 + static_cast<double>(s.runs));
  return s.finished;
}

double SpeculationPlan::Progress() const { return state_->progress; }

SpeculationAnswer SpeculationPlan::Answer() const {
  const State& s = *state_;
  SpeculationAnswer answer;
  answer.unit = s.line.unit;
  answer.runs = s.runs;
  answer.requests = s.requests;
  std::vector<Place> known;
  for (const Place& place : s.places) {
    if (place.pairs() < 2) continue;
    known.push_back(place);
    const double mean = place.Mean(), half = place.HalfWidth();
    answer.curve.push_back({place.at, place.pairs(), Exp(mean), Exp(mean - half), Exp(mean + half),
                            place.with_ms, place.without_ms, place.overloaded * 2 > place.pairs()});
  }
  if (!s.finished || s.failed || known.empty()) return answer;
  const std::size_t loss = s.FirstLoss();
  if (loss == 0 || loss == known.size()) {
    const bool ended = loss == 0 ? s.IsLightest(known.front()) : s.IsHeaviest(known.back());
    answer.outcome = !ended      ? PlanOutcome::kUnknown
                     : loss == 0 ? PlanOutcome::kNone
                                 : PlanOutcome::kUnbounded;
    return answer;
  }
  answer.outcome = PlanOutcome::kFound;
  const auto zero = [&known](std::size_t i, double side) {  // between i - 1 and i
    const Place &a = known[i - 1], &b = known[i];
    return Zero(a.at, a.Mean() + side * a.HalfWidth(), b.at, b.Mean() + side * b.HalfWidth());
  };
  answer.value = zero(loss, 0);
  // Below `low` it pays for certain; above `high` it does not.
  std::size_t low = 0, high = known.size();
  while (low < loss && known[low].Mean() + known[low].HalfWidth() <= 0) ++low;
  while (high > loss && known[high - 1].Mean() - known[high - 1].HalfWidth() > 0) --high;
  answer.low = low == 0 ? known.front().at : zero(low, 1);
  answer.high = high == known.size() ? known.back().at : zero(high, -1);
  answer.low = std::min(answer.low, answer.value);
  answer.high = std::max(answer.high, answer.value);
  return answer;
}

void WriteSpeculation(const Scenario&, const SpeculationAnswer& answer, JsonWriter& out) {
  out.Key("outcome"), out.Text(OutcomeName(answer.outcome));
  if (answer.outcome == PlanOutcome::kFound) {
    WriteAnswer(answer.value, answer.low, answer.high, answer.unit, out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("pairs"), out.BeginArray();
  for (const SpeculationPoint& point : answer.curve) {
    out.BeginObject();
    out.Key("at"), out.Number(point.at);
    out.Key("runs"), out.Integer(2 * point.pairs);
    out.Key("overloaded"), out.Boolean(point.overloaded);
    out.Key("ratio"), out.Number(point.ratio);
    out.Key("low"), out.Number(point.low);
    out.Key("high"), out.Number(point.high);
    out.Key("with_ms"), out.Number(point.with_ms);
    out.Key("without_ms"), out.Number(point.without_ms);
    out.EndObject();
  }
  out.EndArray();
  out.Key("runs"), out.Integer(answer.runs);
  out.Key("requests"), out.Integer(answer.requests);
}

std::string SpeculationSentence(const Scenario&, const SpeculationAnswer& answer) {
  switch (answer.outcome) {
    case PlanOutcome::kFound:
      return Format(
          "Speculation pays up to {} {} ({} to {}): beyond, the mean request is complete "
          "sooner without drafts.",
          ThreeDigits(answer.value), answer.unit, ThreeDigits(answer.low),
          ThreeDigits(answer.high));
    case PlanOutcome::kNone:
      return "Speculation pays at no load: the mean request is complete sooner without drafts.";
    case PlanOutcome::kUnbounded:
      return "Speculation pays at every load that is served.";
    case PlanOutcome::kUnknown:
      break;
  }
  return "The loads that were tried do not tell until where speculation pays.";
}

}  // namespace servecast
