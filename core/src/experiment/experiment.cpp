// See servecast/experiment.h. A round is a number of runs of one length. What one leaves undecided
// lengthens the next round's runs, and adds to their number where their length is not ours to
// choose; docs/model.md, "Certainty", says why.
#include "servecast/experiment.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "experiment/blame.h"
#include "experiment/findings.h"
#include "experiment/limits.h"
#include "experiment/lives.h"
#include "experiment/pooled.h"
#include "experiment/replications.h"
#include "metrics/saturation.h"
#include "metrics/summarize.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"

namespace servecast {
namespace {

constexpr std::size_t kRuns = 10;             // of a round: fewer say little of how they scatter
constexpr std::size_t kBatches = 16;          // of one run
constexpr std::int64_t kShortest = 3000;      // requests of a run whose length is ours to choose
constexpr std::int64_t kFewestBatched = 160;  // requests of a run that is cut into batches

constexpr std::int64_t kSetUp = 1000;  // work of a run, for each replica, before it begins
constexpr std::int64_t kWalked = 2;    // requests and blocks in whose time a step is
constexpr std::int64_t kTooMuch = 2;   // times the work that there may be, of a round

constexpr std::size_t kReliefRuns = 4;          // of each relief
constexpr std::int64_t kOfReliefs = 40;         // of these runs, in the work that there may be
constexpr std::int64_t kReliefRequests = 2000;  // of each of them, at most as many as of a run
// Of an interval that counts as known: its looseness, and half its width over its value.
constexpr double kLoosest = 1;
constexpr double kWidest = 0.15;

// How many times as long the next round's runs are.
constexpr std::int64_t kLeastTimes = 2;
constexpr std::int64_t kMostAtOnce = 16;
constexpr double kUsualTimes = 3, kMostTimes = 9;
constexpr double kSurer = 1.5;  // the square of a 98 % interval over that of 95 %

double WidthOf(const Interval& interval) {
  return interval.value > 0 ? (interval.high - interval.low) / 2 / interval.value : 0;
}

bool IsKnown(const Interval& interval) {
  return interval.looseness < kLoosest && WidthOf(interval) <= kWidest;
}

}  // namespace

struct Experiment::State {
  State(Scenario s, Trace t, ExperimentOptions o)
      : scenario(std::move(s)),
        trace(std::move(t)),
        options(o),
        length(scenario.workload->requests) {}

  Result<Simulation> Make(Scenario s, std::size_t run) const {
    s.seed = SeedOfRun(scenario.seed, run);
    s.workload->requests = length;
    SimulationHooks hooks;
    // The first one's course is shown; of a round of other runs its first tells how near saturation
    // they are.
    hooks.recorded = {.series = !certain && runs.empty(), .gaps = HasItl()};
    return Simulation::Create(std::move(s), trace, std::move(hooks));
  }

  bool HasItl() const {
    return std::any_of(scenario.slo.begin(), scenario.slo.end(),
                       [](const SloSpec& slo) { return slo.metric == SloMetric::kItl; });
  }

  Observations Observed(const Simulation& simulation, Keep keep) const {
    return ObservationsOf(scenario, simulation.Records(),
                          HasItl() ? simulation.Snapshot(ReportDetail::kSummary) : Report(), keep);
  }

  void Take(const Simulation& simulation) {
    if (runs.empty()) round = simulation.Snapshot(ReportDetail::kSummary);
    runs.push_back(Observed(simulation, Keep::kAll));
    if (options.blames && !IsBlis(scenario.engine.compat)) {
      blame.Add(simulation.Records(), scenario.measure.warmup_s);
    }
  }

  std::int64_t SetUp() const { return kSetUp * scenario.cluster.Replicas(); }
  // What a run took.
  std::int64_t WorkOf(const Report& report) const {
    return SetUp() + report.steps + report.arrived + report.counts.walked / kWalked;
  }
  // What one of so many requests would take.
  std::int64_t WorkOfARun(std::int64_t requests) const {
    const double share = static_cast<double>(requests) / static_cast<double>(first_length);
    return SetUp() + static_cast<std::int64_t>(static_cast<double>(first_work - SetUp()) * share);
  }
  std::int64_t WorkOfARun() const { return WorkOfARun(length); }

  // Whether `count` more runs may be made.
  bool Affords(std::size_t count) const {
    return work + static_cast<std::int64_t>(count) * WorkOfARun() <= options.most_work;
  }

  void AfterFirst() {
    const Report report = first->Snapshot(ReportDetail::kSummary);
    reading.steady = IsSteady(scenario);
    // A run with an end of its own may be over before what came last has begun.
    overloaded_first = report.saturation.state == SaturationState::kOverloaded &&
                       (reading.steady || IsStrained(report));
    first_work = WorkOf(report);
    first_length = std::max<std::int64_t>(report.arrived, 1);
    work = first_work;
    const bool judged = !scenario.slo.empty() || overloaded_first;
    if (report.verdict.state == VerdictState::kEmpty || report.arrived == report.Lost()) {
      return Finish(Certainty::Method::kOneRun);
    }
    Take(*first);
    if (!judged) {  // its rates and latencies are without ramp and drain all the same
      reading.steady = reading.steady && runs[0].last_offered > 0;
      const Findings found = FindingsOf(scenario, reading, runs);
      counted = found.counted;
      pooled = PooledOf(scenario, reading, found, runs, false);
      return Finish(Certainty::Method::kOneRun);
    }
    if (reading.steady && !ReplaysTrace(scenario)) {
      first_until = runs[0].last_offered - runs[0].usual_e2e;
      lives = LivesOf(scenario, ServedSeconds(report, scenario.cluster, runs[0].mean_e2e_s));
      PriceConversations(report);
    }
    // All come at once, or to clients that are fewer: none comes into a system at work.
    if (reading.steady && runs[0].last_offered <= 0 && lives.seconds <= 0) {
      return Finish(Certainty::Method::kOneRun);
    }
    if (ReplaysTrace(scenario) || !Affords(kRuns - 1)) {
      if (report.arrived < kFewestBatched) return Finish(Certainty::Method::kOneRun);
      CutIntoBatches();
      overloaded = overloaded_first && !findings->too_short;
      return Finish(Certainty::Method::kBatchMeans);
    }
    wanted = kRuns;
    // Short ones as long as the work allows.
    const std::int64_t allowed =
        std::max<std::int64_t>(options.most_work / static_cast<std::int64_t>(kRuns) - SetUp(), 0) *
        first_length / (first_work - SetUp());
    const std::int64_t to = std::min({Shortest(), allowed, kMaxRequests});
    if (reading.steady && length < to) Lengthen(to);
  }

  // The only run there is.
  void CutIntoBatches() {
    reading.batches = kBatches;
    findings = FindingsOf(scenario, reading, runs);
  }

  // Conversations that pile up take far more work than a short run of them says. Where the first
  // run of a round tells that the round would take several times what there is, it stays alone.
  bool IsTooMuch() const {
    if (runs.size() != 1 || lives.seconds <= 0) return false;
    return WorkOf(*round) > kTooMuch * options.most_work / static_cast<std::int64_t>(kRuns);
  }
  void StayAlone() {
    CutIntoBatches();
    overloaded = round->saturation.state == SaturationState::kOverloaded && LongEnough();
    Finish(Certainty::Method::kBatchMeans);
  }

  // A first run of conversations that begin and end alone takes more steps a request than one with
  // all of them. Where runs cannot be that long, what it took stands.
  void PriceConversations(const Report& report) {
    if (lives.seconds <= 0 || !HasRate(scenario.workload->arrivals.process)) return;
    const auto requests = static_cast<double>(first_length);
    const double steps = static_cast<double>(report.steps) / report.simulated_s * requests *
                         lives.seconds / lives.requests;
    const double walks = static_cast<double>(report.counts.walked) / kWalked;
    const double price = requests + walks + std::min(steps, static_cast<double>(report.steps));
    const double affords = static_cast<double>(options.most_work) / kRuns * requests / price;
    if (affords < kFewestLives * lives.requests) return;
    first_work = SetUp() + static_cast<std::int64_t>(price);
  }

  // Requests of a run whose length is ours to choose.
  std::int64_t Shortest() const {
    return std::max(kShortest, static_cast<std::int64_t>(std::min(
                                   kLives * lives.requests, static_cast<double>(kMaxRequests))));
  }

  void Lengthen(std::int64_t to) {
    length = to;
    runs.clear();
    blame.Clear();
    round_from = 0;
    wanted = kRuns;
  }

  void AfterRound() {
    Findings& found = findings.emplace(FindingsOf(scenario, reading, runs));
    if (found.from < first_until) found.until = std::min(found.until, first_until);
    past += (1 - past) * kRoundsShare;
    round_from = runs.size();
    const bool settled = std::all_of(found.targets.begin(), found.targets.end(),
                                     [](const auto& t) { return t.settled && IsKnown(*t.ms); });
    const bool doubtful = reading.steady && (found.long_warmup || found.long_memory ||
                                             found.grows || found.too_short);
    const bool tells = reading.steady && !found.gives_up;  // what is completed, of what comes
    // Conversations that begin look like load that piles up.
    const bool seen = (overloaded_first && !found.lives) || lengthened;
    overloaded = tells ? found.falls_behind && seen : overloaded_first;
    const bool hopeless = std::any_of(found.targets.begin(), found.targets.end(),
                                      [](const TargetFinding& t) { return t.never; });
    if (overloaded || hopeless || (settled && !doubtful))
      return Finish(Certainty::Method::kReplications);
    if (reading.steady ? Lengthens(TimesNeeded()) : Doubles()) return;
    // Still growing in runs as long as can be, with less served than comes.
    const bool filled = !found.lives || *found.lives >= kLives;
    const bool grows = found.grows && lengthened && filled && ServesLess(found);
    if (tells) overloaded = found.falls_behind ? LongEnough() : grows;
    Finish(Certainty::Method::kReplications);
  }

  bool ServesLess(const Findings& found) const {
    const double offered = OfferedRate(scenario).value_or(found.offered_per_s);
    return !found.served_per_s || found.served_per_s->high < offered;
  }

  // Of an overload conversations last the longer the longer the run, so it goes by those of the
  // first one.
  bool LongEnough() const {
    const double offered_s = static_cast<double>(runs[0].last_offered) / 1e9;
    return offered_s >= kFewestLives * lives.seconds;
  }

  // More of runs that are what they are.
  bool Doubles() {
    if (!Affords(runs.size())) return false;
    wanted *= 2;
    return true;
  }

  // Not more runs: what a run's empty beginning takes from its percentile is the same in each,
  // however many there are. They are as long as the targets ask for, and what work there is allows.
  bool Lengthens(double times_needed) {
    const std::int64_t left = options.most_work - work;
    const std::int64_t affordable =
        std::min(left / std::max<std::int64_t>(WorkOfARun() * kRuns, 1), kMaxRequests / length);
    if (affordable < kLeastTimes) return false;
    auto times = static_cast<std::int64_t>(std::clamp(times_needed, kUsualTimes, kMostTimes));
    // What would not leave enough for another round is taken at once.
    if (times * (1 + kLeastTimes) > affordable) times = std::min(affordable, kMostAtOnce);
    lengthened = true;
    Pool();  // in case that longer runs cannot be made
    Lengthen(length * times);
    return true;
  }

  // How many times as long runs should be for every target to be known and clear of its limit.
  double TimesNeeded() const {
    double times = 0;
    for (std::size_t k = 0; k < findings->targets.size(); ++k) {
      const TargetFinding& target = findings->targets[k];
      if (!target.ms) return kMostTimes;
      const double width = WidthOf(*target.ms) / kWidest;
      times = std::max({times, width * width,
                        target.settled ? 0 : kSurer * TimesToTell(scenario.slo[k], target)});
    }
    return findings->too_short ? std::max(times, kLives / std::max(*findings->lives, 0.1)) : times;
  }

  void Finish(Certainty::Method by) {
    method = by;
    certain = true;
    runs_made = std::max<std::size_t>(runs.size(), 1);
    length_made = length;
    Pool();
    if (NeedsALimit()) return StartReliefs();
    finished = true;
  }

  void Pool() {
    if (!findings || findings->counted.size() != runs.size()) return;
    counted = findings->counted;
    pooled = PooledOf(scenario, reading, *findings, runs, overloaded);
  }

  bool NeedsALimit() const {
    if (!findings || IsBlis(scenario.engine.compat)) return false;
    if (overloaded && findings->gives_up) return false;  // what is served says little
    // Where a few runs are much of the work that there may be; asked for, one of each will do.
    const std::int64_t most = options.most_work / (options.names_always ? 4 : kOfReliefs);
    if (WorkOfARun(ReliefLength()) > most) return false;
    const bool clear =
        !overloaded && std::all_of(findings->targets.begin(), findings->targets.end(),
                                   [](const auto& t) { return t.side == Side::kWithin; });
    return options.names_always || (options.names_limit && !clear);
  }

  std::size_t ReliefRuns() const {
    const bool long_run = WorkOfARun(ReliefLength()) > options.most_work / kOfReliefs;
    return ReplaysTrace(scenario) || long_run ? 1 : kReliefRuns;
  }

  std::int64_t ReliefLength() const {
    return std::min(length, std::max(first_length, kReliefRequests));
  }

  void StartReliefs() {
    const Report report = Judged(ReportDetail::kSummary);
    relaxed = RelaxedScenarios(scenario, report);
    decides = DecidingTarget(*findings, report);
    badness.assign(relaxed.size(), 0);
    runs.clear();
    round_from = 0;
    relief_runs = ReliefRuns();
    length = ReliefLength();
    past += (1 - past) * kRoundsShare;
  }

  // A run of one of the reliefs has ended, or could not be made (`run` is null).
  void AfterRelief(const Simulation* run) {
    double& own = badness[relief];
    if (run == nullptr) {
      own = -1;
    } else {
      own += Badness(scenario, Observed(*run, Keep::kTargets), decides, overloaded);
      if (++relief_run < relief_runs) return;
    }
    relief_run = 0;
    if (++relief < relaxed.size()) return;
    const auto gain = [this](std::size_t i) {
      return badness[i] < 0 ? 0 : 1 - badness[i] / badness[0];
    };
    if (relieved == 0) {
      relieved = relaxed.size();
      for (std::size_t i = 1; i < relieved; ++i) {
        if (badness[i] < 0 || badness[0] <= 0) continue;
        const Relief one{relaxed[i].name, gain(i), {}};
        reliefs.insert(
            std::upper_bound(reliefs.begin(), reliefs.end(), one,
                             [](const auto& a, const auto& b) { return a.gain > b.gain; }),
            one);
      }
      RelaxInPools(reliefs, relaxed);
      badness.resize(relaxed.size());
      if (relief < relaxed.size()) return;
    }
    for (std::size_t i = relieved; i < relaxed.size(); ++i) reliefs[0].pools.push_back(gain(i));
    finished = true;
  }

  // Of runs as long as those that the verdict rests on; whether they fill up, all of them say.
  Saturation RoundSaturation() const {
    Report judged = *round;
    if (findings && reading.steady && reading.batches == 0 && !overloaded) {
      PutFilling(findings->grows, judged);
    }
    return judged.saturation;
  }

  // The report of the first run, with what is pooled, and the findings, of all.
  Report Judged(ReportDetail detail) const {
    Report report = first->Snapshot(detail);
    Certainty& c = report.certainty.emplace();
    c.method = method;
    c.runs = static_cast<std::int64_t>(certain ? runs_made : std::max<std::size_t>(runs.size(), 1));
    c.requests_per_run = certain ? length_made : length;
    c.batches = static_cast<std::int64_t>(reading.batches);
    if (!certain) {
      JudgePartial(scenario, wanted, report);
    } else if (pooled) {
      report.saturation = RoundSaturation();
      PutPooled(scenario, *pooled, report);
      Judge(scenario, report);
      if (!findings) return report;
      JudgeExperiment(scenario, *findings, overloaded, report);
      PutIntervals(report);
    }
    return report;
  }

  bool Step(std::int64_t max_steps) {
    if (finished) return true;
    if (!first_done) {
      first_done = first->Advance(max_steps);
      if (first_done) AfterFirst();
      return finished;
    }
    if (!current) {
      Result<Simulation> made =
          certain ? Make(relaxed[relief].scenario, relief_run) : Make(scenario, runs.size());
      if (!made.ok()) {
        if (certain) {
          AfterRelief(nullptr);
        } else {  // so many requests are more than a run can hold
          Finish(findings ? Certainty::Method::kReplications : Certainty::Method::kOneRun);
        }
        return finished;
      }
      current.emplace(std::move(made.value()));
    }
    if (!current->Advance(max_steps)) return false;
    if (certain) {
      AfterRelief(&*current);
    } else {
      work += WorkOfARun();
      Take(*current);
      if (IsTooMuch()) StayAlone();
    }
    current.reset();
    if (!certain && runs.size() == wanted) AfterRound();
    return finished;
  }

  double Share() const {
    const double part = !first_done ? first->Progress() : current ? current->Progress() : 0;
    double now = static_cast<double>(runs.size() - round_from) + part;
    auto of = static_cast<double>(std::max(wanted, kRuns) - round_from);
    if (certain) {
      now = static_cast<double>(relief);
      of = static_cast<double>(relaxed.size());
    }
    return past + (1 - past) * kRoundsShare * now / of;
  }

  Scenario scenario;
  Trace trace;
  ExperimentOptions options;
  Reading reading;
  std::int64_t length = 0, first_length = 1, first_work = 0, work = 0;
  std::optional<Simulation> first, current;
  Lives lives;  // by the first run
  TimeNs first_until =
      kNever;  // of the first run's arrivals, which may be fewer than of later runs
  bool first_done = false, finished = false;
  bool overloaded_first = false, overloaded = false, lengthened = false;
  std::vector<Observations> runs;
  std::size_t wanted = 0;
  std::optional<Findings> findings;
  std::optional<Report> round;           // of the first of `runs`
  std::vector<CountedRequests> counted;  // of `pooled`; empty: all
  std::optional<Pooled> pooled;  // once certain; none: nothing was served, or all comes at once
  TailBlame blame;
  bool certain = false;  // the verdict is known; the limit may not be
  std::size_t runs_made = 1;
  std::int64_t length_made = 0;
  std::vector<Relaxed> relaxed;
  std::vector<double> badness;  // by relaxed scenario; -1: it cannot run
  std::size_t decides = 0;      // the target that does
  std::size_t relief = 0, relief_run = 0, relief_runs = 0;  // that runs; of each
  std::size_t relieved = 0;  // of the relaxed, those of all pools at once, when they have run
  std::vector<Relief> reliefs;
  Certainty::Method method = Certainty::Method::kOneRun;
  // Of the progress: what rounds before took. Whether more will come is not known.
  static constexpr double kRoundsShare = 0.7;
  double past = 0;
  std::size_t round_from = 0;
  mutable double shown = 0;
};

Experiment::Experiment(std::unique_ptr<State> state) : state_(std::move(state)) {}
Experiment::Experiment(Experiment&&) noexcept = default;
Experiment& Experiment::operator=(Experiment&&) noexcept = default;
Experiment::~Experiment() = default;

Result<Experiment> Experiment::Create(Scenario scenario, Trace trace, ExperimentOptions options) {
  return Create(std::move(scenario), std::move(trace), options, SimulationHooks{});
}

Result<Experiment> Experiment::Create(Scenario scenario, Trace trace, ExperimentOptions options,
                                      SimulationHooks hooks) {
  Result<Simulation> first = Simulation::Create(scenario, trace, std::move(hooks));
  if (!first.ok()) return Issues(first.issues());
  auto state = std::make_unique<State>(std::move(scenario), std::move(trace), options);
  state->first.emplace(std::move(first.value()));
  return Experiment(std::move(state));
}

bool Experiment::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double Experiment::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  s.shown = std::max(s.shown, std::min(s.Share(), 0.999));
  return s.shown;
}

Report Experiment::Snapshot(ReportDetail detail) const {
  const State& s = *state_;
  Report report = s.Judged(detail);
  if (s.finished && s.findings)
    NameTheLimit(s.scenario, s.reliefs, s.overloaded, s.decides, report);
  return report;
}

const std::vector<Relief>& Experiment::Reliefs() const { return state_->reliefs; }

std::vector<Blame> Experiment::Blames() const {
  const State& s = *state_;
  if (!s.finished) return {};
  return s.blame.Find(s.counted);
}

}  // namespace servecast
