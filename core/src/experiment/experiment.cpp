// See servecast/experiment.h. A round is a number of runs of one length. Short ones lengthen the
// next round's runs, undecided ones add to their number; docs/model.md, "Certainty", says why.
#include "servecast/experiment.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "experiment/blame.h"
#include "experiment/findings.h"
#include "experiment/limits.h"
#include "servecast/simulation.h"
#include "serving/hooks.h"

namespace servecast {
namespace {

constexpr std::size_t kRuns = 16;         // of the first round; and batches of one run
constexpr std::int64_t kShortest = 2000;  // requests of a run whose length is ours to choose
constexpr std::int64_t kLengthen = 4;
constexpr std::int64_t kFewestBatched = 160;  // requests of a run that is cut into batches

constexpr std::size_t kReliefRuns = 4;  // of each relief
constexpr double kLoosest = 1;          // of an interval that counts as known

// The first run's seed is the scenario's own.
std::int64_t SeedOf(std::int64_t seed, std::size_t run) {
  if (run == 0) return seed;
  return static_cast<std::int64_t>(
      RandomBits(seed, Stream::kReplication, static_cast<std::int64_t>(run)) >> 1);
}

bool Replays(const WorkloadSpec& w) { return w.arrivals.process == ArrivalProcess::kTrace; }

// The load is the same throughout, for as long as one likes.
bool IsSteady(const Scenario& s) {
  const ArrivalSpec& a = s.workload.arrivals;
  return a.process != ArrivalProcess::kStatic && a.profile == RateProfile::kFlat &&
         a.spikes.empty() && !s.measure.horizon_s;
}

}  // namespace

struct Experiment::State {
  State(Scenario s, Trace t, ExperimentOptions o)
      : scenario(std::move(s)),
        trace(std::move(t)),
        options(o),
        length(scenario.workload.requests) {}

  Result<Simulation> Make(Scenario s, std::size_t run) const {
    s.seed = SeedOf(scenario.seed, run);
    s.workload.requests = length;
    return Simulation::Create(std::move(s), trace);
  }

  bool HasItl() const {
    return std::any_of(scenario.slo.begin(), scenario.slo.end(),
                       [](const SloSpec& slo) { return slo.metric == SloMetric::kItl; });
  }

  Observations Observed(const Simulation& simulation) const {
    return ObservationsOf(scenario, simulation.Records(),
                          HasItl() ? simulation.Snapshot(ReportDetail::kSummary) : Report());
  }

  void Take(const Simulation& simulation) {
    runs.push_back(Observed(simulation));
    if (options.blames && !IsBlis(scenario.engine.compat)) {
      blame.Add(simulation.Records(), scenario.measure.warmup_s);
    }
  }

  std::int64_t WorkOfARun() const {
    const double share = static_cast<double>(length) / static_cast<double>(first_length);
    return static_cast<std::int64_t>(static_cast<double>(first_work) * share);
  }

  // Whether `count` more runs may be made.
  bool Affords(std::size_t count) const {
    return work + static_cast<std::int64_t>(count) * WorkOfARun() <= options.most_work;
  }

  void AfterFirst() {
    const Report report = first->Snapshot(ReportDetail::kSummary);
    overloaded_first = report.saturation.state == SaturationState::kOverloaded;
    first_work = report.steps + report.arrived;
    first_length = std::max<std::int64_t>(report.arrived, 1);
    work = first_work;
    reading.steady = IsSteady(scenario);
    const bool judged = !scenario.slo.empty() || overloaded_first;
    if (!judged || report.verdict.state == VerdictState::kEmpty ||
        report.arrived == report.dropped + report.timed_out) {
      return Finish(Certainty::Method::kOneRun);
    }
    Take(*first);
    // All come at once, or to clients that are fewer: none comes into a system at work.
    if (reading.steady && runs[0].last_offered <= 0) return Finish(Certainty::Method::kOneRun);
    if (Replays(scenario.workload) || !Affords(kRuns - 1)) {
      if (report.arrived < kFewestBatched) return Finish(Certainty::Method::kOneRun);
      reading.batches = kRuns;
      findings = FindingsOf(scenario, reading, runs);
      overloaded = overloaded_first;
      return Finish(Certainty::Method::kBatchMeans);
    }
    wanted = kRuns;
    if (reading.steady && length < kShortest) Lengthen(kShortest);
  }

  void Lengthen(std::int64_t to) {
    length = to;
    runs.clear();
    blame.Clear();
    round_from = 0;
    wanted = kRuns;
  }

  void AfterRound() {
    const Findings& found = findings.emplace(FindingsOf(scenario, reading, runs));
    past += (1 - past) * kRoundsShare;
    round_from = runs.size();
    bool settled = true;
    for (const TargetFinding& target : found.targets) {
      settled = settled && target.settled && target.ms->looseness < kLoosest;
    }
    const bool doubtful = reading.steady && (found.long_warmup || found.falls_behind);
    const bool tells = reading.steady && !found.gives_up;  // what is completed, of what comes
    overloaded = tells ? found.falls_behind && (overloaded_first || lengthened) : overloaded_first;
    if (overloaded || (settled && !doubtful)) {
      return Finish(Certainty::Method::kReplications);
    }
    if (doubtful) {
      for (const std::int64_t times : {kLengthen, kLengthen / 2}) {
        const std::int64_t cost = static_cast<std::int64_t>(kRuns) * WorkOfARun() * times;
        if (length * times > kMaxRequests || work + cost > options.most_work) continue;
        lengthened = true;
        return Lengthen(length * times);
      }
    } else if (Affords(runs.size())) {
      wanted *= 2;
      return;
    }
    overloaded = tells ? found.falls_behind : overloaded_first;
    Finish(Certainty::Method::kReplications);
  }

  void Finish(Certainty::Method by) {
    method = by;
    certain = true;
    runs_made = std::max<std::size_t>(runs.size(), 1);
    length_made = length;
    if (NeedsALimit()) return StartReliefs();
    finished = true;
  }

  bool NeedsALimit() const {
    if (!findings || IsBlis(scenario.engine.compat)) return false;
    if (overloaded && findings->gives_up) return false;  // what is served says little
    // Where a few runs are much of the work that there may be.
    if (WorkOfARun() > options.most_work / 40) return false;
    const bool clear =
        !overloaded && std::all_of(findings->targets.begin(), findings->targets.end(),
                                   [](const auto& t) { return t.side == Side::kWithin; });
    return options.names_always || (options.names_limit && !clear);
  }

  void StartReliefs() {
    const Report report = Judged(ReportDetail::kSummary);
    relaxed = RelaxedScenarios(scenario, report);
    decides = DecidingTarget(*findings, report);
    badness.assign(relaxed.size(), 0);
    runs.clear();
    round_from = 0;
    length = std::min(length, std::max(first_length, kShortest));
    past += (1 - past) * kRoundsShare;
  }

  // A run of one of the reliefs has ended, or could not be made (`run` is null).
  void AfterRelief(const Simulation* run) {
    double& own = badness[relief];
    if (run == nullptr) {
      own = -1;
    } else {
      own += Badness(scenario, Observed(*run), decides, overloaded);
      if (++relief_run < (Replays(scenario.workload) ? 1 : kReliefRuns)) return;
    }
    relief_run = 0;
    if (++relief < relaxed.size()) return;
    for (std::size_t i = 1; i < relaxed.size(); ++i) {
      if (badness[i] < 0 || badness[0] <= 0) continue;
      reliefs.push_back({relaxed[i].name, 1 - badness[i] / badness[0]});
    }
    std::stable_sort(reliefs.begin(), reliefs.end(),
                     [](const Relief& a, const Relief& b) { return a.gain > b.gain; });
    finished = true;
  }

  // The report of the first run with the findings of all.
  Report Judged(ReportDetail detail) const {
    Report report = first->Snapshot(detail);
    Certainty& c = report.certainty.emplace();
    c.method = method;
    c.runs = static_cast<std::int64_t>(certain ? runs_made : std::max<std::size_t>(runs.size(), 1));
    c.requests_per_run = certain ? length_made : length;
    c.batches = static_cast<std::int64_t>(reading.batches);
    if (!certain) {
      JudgePartial(scenario, wanted, report);
    } else if (findings) {
      JudgeExperiment(scenario, *findings, overloaded, report);
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
  bool first_done = false, finished = false;
  bool overloaded_first = false, overloaded = false, lengthened = false;
  std::vector<Observations> runs;
  std::size_t wanted = 0;
  std::optional<Findings> findings;
  TailBlame blame;
  bool certain = false;  // the verdict is known; the limit may not be
  std::size_t runs_made = 1;
  std::int64_t length_made = 0;
  std::vector<Relaxed> relaxed;
  std::vector<double> badness;                          // by relaxed scenario; -1: it cannot run
  std::size_t decides = 0, relief = 0, relief_run = 0;  // the target that decides
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
  return state_->finished ? state_->blame.Find() : std::vector<Blame>();
}

}  // namespace servecast
