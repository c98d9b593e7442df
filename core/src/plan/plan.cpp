// See servecast/plan.h. First scouts, one run a place, find about where the targets cease to be
// met; then every place that is asked has as many runs as all others, on the same seeds, and three
// curves along the line are followed to where each passes 1: the strain of the targets' values and
// of both ends of their intervals. Too wide an interval doubles the runs; docs/model.md, "Plans".
#include "servecast/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "experiment/findings.h"
#include "experiment/replications.h"
#include "plan/line.h"
#include "plan/search.h"
#include "plan/strain.h"
#include "servecast/simulation.h"
#include "serving/cluster/deployment.h"
#include "serving/hooks.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr std::size_t kRuns = 16;        // of a place at first; and batches of one run
constexpr double kScoutRatio = 1.1;      // between the two places that scouts end with
constexpr std::int64_t kLength = 2000;   // requests of a run, if ours to choose
constexpr std::int64_t kPerClient = 20;  // requests of each client of a closed loop, at least
constexpr double kPerRunning = 10;       // requests of a run for each that runs at a time, at least
constexpr double kPlaces = 6;            // that are asked about as a rule, after the scouts
constexpr std::int64_t kLengthen = 4;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// One place of the line and its runs.
struct Place {
  double at = 0;
  std::int64_t length = 0;  // requests of a run
  std::vector<Observations> runs;
  PlanPoint found;
  bool read = false, known = true;  // every target has samples
  bool long_warmup = false;
  double cached_share = 0;  // of prompt tokens, in its last run
};

enum class Curve { kHigh, kValue, kLow };
constexpr Curve kCurves[] = {Curve::kValue, Curve::kHigh, Curve::kLow};

double On(Curve curve, const PlanPoint& p) {
  return curve == Curve::kValue ? p.strain : curve == Curve::kHigh ? p.high : p.low;
}

std::vector<Sample> SamplesOf(const std::vector<Place>& places, Curve curve) {
  std::vector<Sample> samples;
  for (const Place& place : places) {
    if (place.read) samples.push_back({place.at, On(curve, place.found)});
  }
  return samples;
}

}  // namespace

struct Plan::State {
  State(Scenario s, Trace t, PlanOptions o, const Line& l, Deployment d)
      : scenario(std::move(s)),
        trace(std::move(t)),
        options(o),
        slope(l),
        deployment(std::move(d)) {
    replays = ReplaysTrace(scenario);
    steady = IsSteady(scenario);
    length = scenario.workload.requests;
    if (steady && !replays) length = kLength;
    wanted = replays ? 1 : kRuns;
  }

  // ---- Running ------------------------------------------------------------------------------

  Result<Simulation> Make(const Place& place) {
    Scenario s = ScenarioAt(scenario, options, place.at);
    s.seed = SeedOfRun(scenario.seed, place.runs.size());
    s.workload.requests = place.length;
    if (s.workload.arrivals.process == ArrivalProcess::kClosedLoop) {
      s.workload.requests = std::min(
          std::max(place.length, kPerClient * s.workload.arrivals.concurrency), kMaxRequests);
    }
    SimulationHooks hooks;
    hooks.deployment = std::make_shared<Deployment>(Redeploy(deployment, s));
    if (const RequestTable* drawn = Drawn(s, place)) hooks.requests = *drawn;
    return Simulation::Create(std::move(s), trace, std::move(hooks));
  }

  // Any number of replicas is sent the same requests: those of the first run, which every place
  // has, are drawn once.
  const RequestTable* Drawn(const Scenario& s, const Place& place) {
    if (options.line != PlanLine::kReplicas || replays || !place.runs.empty()) return nullptr;
    const auto known = tables.find(s.workload.requests);
    if (known != tables.end()) return &known->second;
    Result<RequestTable> made = MakeRequests(s, trace);
    return made.ok() ? &(tables[s.workload.requests] = std::move(made.value())) : nullptr;
  }

  std::size_t RunsOfPlace() const { return scouting ? 1 : wanted; }
  std::vector<Place>& Places() { return scouting ? scouts : places; }

  bool Step(std::int64_t max_steps) {
    if (finished) return true;
    if (!current) {
      Place* place = Unfinished();
      if (place == nullptr) return finished;
      Result<Simulation> made = Make(*place);
      if (!made.ok()) return Impossible(*place);
      current.emplace(std::move(made.value()));
    }
    if (!current->Advance(max_steps)) return false;
    Place& place = *Unfinished();
    const Report report = current->Snapshot(ReportDetail::kSummary);
    place.runs.push_back(ObservationsOf(scenario, current->Records(), report));
    const PrefixCacheReport& cache = report.prefix_cache;
    place.cached_share = cache.query_tokens == 0 ? 0
                                                 : static_cast<double>(cache.hit_tokens) /
                                                       static_cast<double>(cache.query_tokens);
    const std::int64_t needed = LengthFor(place, report);
    work += report.steps + report.arrived;
    requests += report.arrived;
    ++runs;
    current.reset();
    if (scouting && needed > place.length) {
      place.length = needed;
      place.runs.clear();  // of a system that fills up and empties
    } else if (place.runs.size() == RunsOfPlace()) {
      Read(place);
    }
    if (work > options.most_work) Finish();
    return finished;
  }

  // Of a large fleet a short run is over before the first requests are: then it tells nothing,
  // least of all whether what comes is completed. What waits does not count, or an overload had no
  // end.
  std::int64_t LengthFor(const Place& place, const Report& report) const {
    if (replays || !steady) return place.length;
    std::int64_t replicas = 0;
    for (const PoolSpec& pool : ScenarioAt(scenario, options, place.at).cluster.pools) {
      replicas += pool.replicas;
    }
    const double needed = kPerRunning * report.mean_batch_size * static_cast<double>(replicas);
    if (needed <= static_cast<double>(place.length)) return place.length;
    return std::clamp(static_cast<std::int64_t>(needed), std::min(2 * place.length, kMaxRequests),
                      kMaxRequests);
  }

  // The place that lacks runs; when none does, one more is chosen. nullptr: finished.
  Place* Unfinished() {
    for (;;) {
      for (Place& place : Places()) {
        if (place.runs.size() != RunsOfPlace()) return &place;
      }
      if (finished) return nullptr;
      Decide();
    }
  }

  // So many replicas, or so many requests, are more than a run can hold: the line ends before it.
  bool Impossible(const Place& place) {
    std::vector<Place>& all = Places();
    const double at = place.at;
    all.erase(all.begin() + (&place - all.data()));
    Line line = slope.line();
    (at > line.own ? line.most : line.least) = at > line.own ? std::max(line.own, at / 2) : at * 2;
    if (line.step > 0) line.most = line.step * std::floor(line.most / line.step);
    slope = Slope(line);
    if (++impossible > 40) Finish();
    return finished;
  }

  void Add(double at) {
    std::vector<Place>& all = Places();
    const auto after = std::find_if(
        all.begin(), all.end(), [&](const Place& place) { return slope.Lighter(at, place.at); });
    Place place;
    place.at = at;
    place.length = length;
    all.insert(after, std::move(place));
  }

  // ---- Reading ------------------------------------------------------------------------------

  void Read(Place& place) {
    place.read = true;
    Reading reading;
    reading.steady = steady;
    reading.batches = place.runs.size() == 1 ? kRuns : 0;
    const Findings found = FindingsOf(scenario, reading, place.runs);
    PlanPoint& p = place.found;
    p = {};
    p.at = place.at;
    p.runs = static_cast<std::int64_t>(place.runs.size());
    p.overloaded = steady && !found.gives_up && found.falls_behind;
    place.long_warmup = steady && found.long_warmup;
    if (found.rates) {
      p.requests_per_s = found.rates->requests_per_s;
      p.goodput_per_s = found.rates->goodput_per_s;
      p.output_tokens_per_s = found.rates->tokens_per_s;
    }
    place.known = true;
    for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
      const SloSpec& slo = scenario.slo[k];
      const TargetFinding& target = found.targets[k];
      PlanTarget& out = p.targets.emplace_back();
      out.unserved_share = target.unserved.value;
      if (!target.ms) {
        place.known = false;
        continue;
      }
      out = {target.ms->value, target.ms->low, target.ms->high, target.unserved.value};
      p.strain = std::max(p.strain, StrainOf(slo, target.ms->value, target.unserved.value));
      p.high = std::max(p.high, StrainOf(slo, target.ms->high, target.unserved.high));
      p.low = std::max(p.low, StrainOf(slo, target.ms->low, target.unserved.low));
    }
    if (p.overloaded) p.strain = p.low = p.high = kInfinite;
    if (!place.known && !p.overloaded) return Finish();
    place.known = true;
  }

  // ---- Deciding -----------------------------------------------------------------------------

  void Decide() {
    if (scouting) {
      const std::vector<Sample> seen = SamplesOf(scouts, Curve::kValue);
      const bool hopeless = options.scouts_only && Hopeless(slope, seen);
      const auto at = NextScout(slope, seen, kScoutRatio, options.first_step);
      if (at && !hopeless) return Add(*at);
      if (options.scouts_only) return Finish();
      scouting = false;
      const int last = LastWithin(seen);
      for (int i = std::max(last, 0); i <= last + 1 && i < static_cast<int>(scouts.size()); ++i) {
        length = std::max(length, scouts[static_cast<std::size_t>(i)].length);
      }
      // Of runs that had to be long, one in batches stands for many.
      if (length > kLength && !Affords(static_cast<std::int64_t>(kPlaces * kRuns))) wanted = 1;
      return Add(CrossingOf(slope, seen));
    }
    for (const Curve curve : kCurves) {
      if (const auto at = NextSample(slope, SamplesOf(places, curve))) return Add(*at);
    }
    if (Lengthens() || Doubles()) return;
    Finish();
  }

  // Keeps the places next to where a curve passes 1.
  void KeepTheDeciding() {
    std::vector<bool> keeps(places.size(), false);
    for (const Curve curve : kCurves) {
      const int last = LastWithin(SamplesOf(places, curve));
      for (const int i : {last, last + 1}) {
        if (i >= 0 && i < static_cast<int>(places.size()))
          keeps[static_cast<std::size_t>(i)] = true;
      }
    }
    std::vector<Place> kept;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (keeps[i]) {
        kept.push_back(std::move(places[i]));
      } else {
        left.push_back(places[i].found);
      }
    }
    places = std::move(kept);
  }

  bool Affords(std::int64_t more_runs) const {
    return work + work / std::max<std::int64_t>(runs, 1) * more_runs <= options.most_work;
  }

  // Runs not much longer than their warm-up are made longer.
  bool Lengthens() {
    if (replays || !steady || lengthened == 2 || wanted == 1) return false;
    const bool warm = std::none_of(places.begin(), places.end(),
                                   [](const Place& place) { return place.long_warmup; });
    if (warm || length * kLengthen > kMaxRequests) return false;
    if (!Affords(kLengthen * static_cast<std::int64_t>(places.size() * kRuns))) return false;
    ++lengthened;
    length *= kLengthen;
    wanted = kRuns;
    for (Place& place : places) {
      left.push_back(place.found);
      place.runs.clear();
      place.read = false;
      place.length = length;
    }
    return true;
  }

  // A wide interval has more runs.
  bool Doubles() {
    if (wanted == 1) return false;
    const auto [value, low, high] = Ends();
    const double step = slope.line().step;
    const bool narrow =
        step > 0 ? high - low < step / 2 : high - low <= 2 * options.precision * value;
    if (narrow) return false;
    KeepTheDeciding();
    if (!Affords(static_cast<std::int64_t>(places.size() * wanted))) return false;
    wanted *= 2;
    return true;
  }

  void Finish() { finished = true; }

  // ---- Answering ----------------------------------------------------------------------------

  struct Values {
    double value = 0, low = 0, high = 0;
  };
  Values Ends() const {
    double at[3];
    for (std::size_t c = 0; c < 3; ++c) at[c] = CrossingOf(slope, SamplesOf(places, kCurves[c]));
    return {at[0], std::min({at[0], at[1], at[2]}), std::max({at[0], at[1], at[2]})};
  }

  const std::vector<Place>& Known() const {
    const bool some =
        std::any_of(places.begin(), places.end(), [](const auto& p) { return p.read; });
    return some ? places : scouts;
  }

  PlanAnswer Answer() const {
    PlanAnswer answer;
    answer.unit = slope.line().unit;
    answer.runs = runs;
    answer.requests = requests;
    for (const std::vector<Place>* of : {&scouts, &places}) {
      for (const Place& place : *of) {
        if (place.read) answer.curve.push_back(place.found);
      }
    }
    answer.curve.insert(answer.curve.end(), left.begin(), left.end());
    KeepBest(answer.curve);
    double most = 0;
    for (const PlanPoint& point : answer.curve) {
      if (point.goodput_per_s <= most) continue;
      most = point.goodput_per_s;
      answer.knee = point.at;
    }
    std::vector<Sample> seen = SamplesOf(Known(), Curve::kValue);
    const bool known =
        std::all_of(Known().begin(), Known().end(), [](const Place& place) { return place.known; });
    if (seen.empty() || !known) return answer;
    Conclude(seen, answer);
    return answer;
  }

  void Conclude(const std::vector<Sample>& seen, PlanAnswer& answer) const {
    const int last = LastWithin(seen);
    const auto count = static_cast<int>(seen.size());
    if (last < 0) {
      if (finished) answer.outcome = PlanOutcome::kNone;
      return Bind(seen.front().at, answer);
    }
    const bool all = last + 1 == count && seen.back().at != slope.heaviest();
    answer.outcome = all ? PlanOutcome::kUnbounded : PlanOutcome::kFound;
    for (const Place& place : Known()) {
      if (place.at == seen[static_cast<std::size_t>(last)].at) {
        answer.cached_share = place.cached_share;
      }
    }
    if (&Known() == &places) {
      const Values ends = {Ends()};
      answer.value = ends.value;
      answer.low = ends.low;
      answer.high = ends.high;
    } else {
      // One run each: between the last that keeps the targets and the first that does not.
      answer.value = CrossingOf(slope, seen);
      const double beyond = seen[static_cast<std::size_t>(std::min(last + 1, count - 1))].at;
      const double within = seen[static_cast<std::size_t>(last)].at;
      answer.low = std::min({answer.value, within, beyond});
      answer.high = std::max({answer.value, within, beyond});
    }
    Bind(seen[static_cast<std::size_t>(std::min(last + 1, count - 1))].at, answer);
    for (std::size_t i = 0; i < answer.curve.size(); ++i) {
      for (std::size_t j = 0; j < answer.curve.size(); ++j) {
        const PlanPoint &light = answer.curve[i], &heavy = answer.curve[j];
        if (slope.Lighter(light.at, heavy.at) && light.low > 1 && heavy.high <= 1) {
          answer.monotone = false;
        }
      }
    }
  }

  // The target that is strained most at a place.
  void Bind(double at, PlanAnswer& answer) const {
    for (const PlanPoint& point : answer.curve) {
      if (point.at != at || point.overloaded) continue;
      double most = -1;
      for (std::size_t k = 0; k < point.targets.size(); ++k) {
        const PlanTarget& target = point.targets[k];
        if (!target.value) continue;
        const double strain = StrainOf(scenario.slo[k], *target.value, target.unserved_share);
        if (strain <= most) continue;
        most = strain;
        answer.binding = k;
      }
    }
  }

  // In order, and of several at one place the one with most runs.
  static void KeepBest(std::vector<PlanPoint>& points) {
    std::stable_sort(points.begin(), points.end(), [](const PlanPoint& a, const PlanPoint& b) {
      return a.at != b.at ? a.at < b.at : a.runs > b.runs;
    });
    points.erase(std::unique(points.begin(), points.end(),
                             [](const auto& a, const auto& b) { return a.at == b.at; }),
                 points.end());
  }

  Scenario scenario;
  Trace trace;
  PlanOptions options;
  Slope slope;
  Deployment deployment;                        // of its own place; runs share its step times
  std::map<std::int64_t, RequestTable> tables;  // by number of requests; see Drawn
  bool replays = false, steady = true;
  std::int64_t length = 0;
  std::size_t wanted = kRuns;  // runs of each place
  int lengthened = 0, impossible = 0;
  bool scouting = true, finished = false;
  std::vector<Place> scouts, places;  // from light to heavy
  std::vector<PlanPoint> left;        // places that decide nothing any more
  std::optional<Simulation> current;
  std::int64_t work = 0, runs = 0, requests = 0;
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
  const std::optional<Line> line = LineOf(scenario, options);
  if (!line) {
    issues.push_back(
        {"/workload/arrivals/process",
         "found requests that all come at once, allowed a process with a rate, a trace "
         "or a closed loop: a plan varies the load"});
  }
  Scenario alone = scenario;
  if (alone.cluster.pools.size() == 1) alone.UsePool(0);
  Result<Deployment> deployment = Deploy(alone);
  SimulationHooks hooks;
  if (deployment.ok()) {
    hooks.deployment = std::make_shared<Deployment>(Redeploy(deployment.value(), scenario));
  }
  const Result<Simulation> first = Simulation::Create(scenario, trace, std::move(hooks));
  if (!first.ok()) {
    issues.insert(issues.end(), first.issues().begin(), first.issues().end());
  }
  if (!issues.empty()) return issues;
  return Plan(std::make_unique<State>(std::move(scenario), std::move(trace), options, *line,
                                      std::move(deployment.value())));
}

bool Plan::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double Plan::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  // How many places there will be is not known: scouts are ten or so, and each of the others takes
  // many runs.
  const double done = static_cast<double>(s.runs) / static_cast<double>(s.runs + 5 * s.wanted);
  s.shown = std::max(s.shown, std::min(done, 0.99));
  return s.shown;
}

PlanAnswer Plan::Answer() const { return state_->Answer(); }

}  // namespace servecast
