// See diagnosis.h. Runs, in this order: the scenario with a few seeds; with its step and prompt
// times at the factors that bands take; each cause alone; the causes that help on top of the best
// one, and so on. All but the seeds have the requests of the first run, so that a cause's figure is
// the forecast's times the ratio of two runs of the same requests.
#include "experiment/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/math.h"
#include "base/text.h"
#include "evidence/response.h"
#include "experiment/known_error.h"
#include "experiment/replications.h"
#include "experiment/scaled_times.h"
#include "metrics/words.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"

namespace servecast {
namespace {

// Requests of a run at most: of a load that is the same throughout, of others.
constexpr std::int64_t kMostOfSteady = 4000, kMostOfOthers = 20'000;
constexpr std::size_t kSeeds = 4;
// Causes that explain it together at most, and those that are tried on top of others.
constexpr std::size_t kMostTogether = 3, kTriedOnTop = 4;
// Nearer than that there is nothing to explain.
constexpr double kAsGoodAsEqual = 0.02;

bool NeedsFile(const Issue& issue) { return issue.kind == "missing_file"; }

using Figures = std::vector<std::optional<double>>;

}  // namespace

const char* WordOf(DiagnosisState state) {
  switch (state) {
    case DiagnosisState::kAgrees:
      return "agrees";
    case DiagnosisState::kDiffers:
      return "differs";
    case DiagnosisState::kNotJudged:
      return "not_judged";
    case DiagnosisState::kNothingMeasured:
      return "nothing_measured";
  }
  return "";
}

bool DiagnosisFindings::IsOutside(std::size_t figure) const {
  const ForecastFigure& of = forecasts[figure];
  if (!figures[figure].counts || !of.low) return false;
  return figures[figure].measured < *of.low || (of.high && figures[figure].measured > *of.high);
}

struct Diagnosis::State {
  enum class Stage { kSeeds, kFactors, kAlone, kOnTop, kDone };

  // The scenario of a document, with as many requests as a run has here.
  static Result<Scenario> Read(const std::string& text) {
    Result<Scenario> read = ParseScenario(text);
    if (!read.ok()) return read;
    std::int64_t& requests = read.value().workload->requests;
    if (!ReplaysTrace(read.value())) {
      requests = std::min(requests, IsSteady(read.value()) ? kMostOfSteady : kMostOfOthers);
    }
    return read;
  }

  Issues Start(Scenario of, SimulationHooks hooks = {}) {
    const bool gaps =
        std::any_of(found.figures.begin(), found.figures.end(),
                    [](const ServerFigure& figure) { return figure.name.rfind("itl_ms", 0) == 0; });
    hooks.recorded = {.series = false, .gaps = gaps};
    Result<Simulation> made = Simulation::Create(std::move(of), trace, std::move(hooks));
    if (!made.ok()) return made.issues();
    run.emplace(std::move(made.value()));
    return {};
  }

  // The run that is next; issues: it cannot be made.
  Issues StartNext() {
    if (stage == Stage::kSeeds) {
      Scenario of = scenario;
      of.seed = SeedOfRun(of.seed, next);
      return Start(std::move(of));
    }
    if (stage == Stage::kFactors) {
      Result<std::shared_ptr<Deployment>> scaled = DeployScaled(scenario, factors[next]);
      if (!scaled.ok()) return scaled.issues();
      SimulationHooks hooks;
      hooks.deployment = std::move(scaled.value());
      return Start(scenario, std::move(hooks));
    }
    TriedCause& cause = trying[next];
    const Result<std::string> text = ApplyOverrides(DocumentBefore(), cause.cause.overrides);
    if (!text.ok()) return text.issues();
    cause.document = text.value();
    Result<Scenario> read = Read(cause.document);
    return read.ok() ? Start(std::move(read.value())) : read.issues();
  }

  const std::string& DocumentBefore() const {
    return found.chain.empty() ? document : found.chain.back().document;
  }

  bool Step(std::int64_t max_steps) {
    if (stage == Stage::kDone) return true;
    problems.clear();
    if (!run) {
      Issues issues = StartNext();
      if (std::any_of(issues.begin(), issues.end(), NeedsFile)) {
        problems = std::move(issues);
        return false;
      }
      if (!issues.empty()) return TakeIssues(std::move(issues));
    }
    if (!run->Advance(max_steps)) return false;
    const Report report = run->Snapshot(ReportDetail::kSummary);
    run.reset();
    return Take(report);
  }

  Figures FiguresIn(const Report& report) const {
    Figures of;
    for (const ServerFigure& figure : found.figures) of.push_back(figure.In(report));
    return of;
  }

  // Of a run that cannot be made. The first one was tried before.
  bool TakeIssues(Issues issues) {
    if (stage == Stage::kSeeds) return EndSeeds();
    if (stage == Stage::kFactors) {
      responses.clear();  // no band
      return EndFactors();
    }
    trying[next].issues = std::move(issues);
    return EndOfCause();
  }

  bool Take(const Report& report) {
    if (stage == Stage::kSeeds) {
      if (next == 0) {
        first = report;
        Check();
        if (found.figures.empty()) return Finish();
      }
      seeds.push_back(FiguresIn(report));
      return ++next == seeds_wanted ? EndSeeds() : false;
    }
    if (stage == Stage::kFactors) {
      responses.push_back(FiguresIn(report));
      return ++next == factors.size() ? EndFactors() : false;
    }
    TriedCause& cause = trying[next];
    const Figures with = FiguresIn(report);
    for (std::size_t i = 0; i < with.size(); ++i) {
      const std::optional<double>& forecast = found.forecasts[i].value;
      const bool known = with[i] && forecast && seeds[0][i] && *seeds[0][i] > 0;
      cause.figures.push_back(known ? std::optional<double>(*forecast * *with[i] / *seeds[0][i])
                                    : std::nullopt);
    }
    cause.distance = DistanceOf(found.figures, cause.figures);
    return EndOfCause();
  }

  // The geometric mean over seeds, and how far one run scatters around it.
  bool EndSeeds() {
    const auto n = static_cast<double>(seeds.size());
    for (std::size_t i = 0; i < found.figures.size(); ++i) {
      double sum = 0, squares = 0;
      bool known = true;
      for (const Figures& of : seeds) {
        known = known && of[i] && *of[i] > 0;
        if (known) sum += Log(*of[i]), squares += Log(*of[i]) * Log(*of[i]);
      }
      found.forecasts.emplace_back();
      scatter.push_back(0);
      if (!known) continue;
      found.forecasts.back().value = Exp(sum / n);
      if (n < 2) continue;
      const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1));
      scatter.back() = std::sqrt(variance * (1 + 1 / n));
    }
    found.distance = DistanceOf(found.figures, Values());
    found.slowness = SlownessOf(found.figures, Values());
    found.runs = static_cast<std::int64_t>(seeds.size());
    known_error = KnownErrorOf(scenario);
    if (!known_error) return EndFactors();
    factors = NodesOf(known_error->error, MeasuredScale());
    responses.push_back(seeds[0]);  // the first node is the forecast as it stands
    stage = Stage::kFactors;
    next = 1;
    return false;
  }

  Figures Values() const {
    Figures values;
    for (const ForecastFigure& figure : found.forecasts) values.push_back(figure.value);
    return values;
  }

  void PutBand(std::size_t i) {
    Response r;
    for (const Figures& of : responses) {
      if (!of[i] || !(*of[i] > 0)) return;
      r.at.push_back(*of[i]);
    }
    const ServerFigure& figure = found.figures[i];
    r.forecast = *found.forecasts[i].value;
    r.sampling = scatter[i];
    AddRest(figure.is_tail ? FigureKind::kTail : FigureKind::kMean, figure.is_first_token,
            known_error->features.Experts(), known_error->error, MeasuredScale(), r);
    const FigureBand band = BandOf(r);
    found.forecasts[i].low = band.low;
    if (std::isfinite(band.high)) found.forecasts[i].high = band.high;
  }

  bool EndFactors() {
    bool outside = false, judged = false;
    for (std::size_t i = 0; i < found.figures.size(); ++i) {
      if (found.forecasts[i].value && responses.size() == kNodes) PutBand(i);
      judged = judged || (found.figures[i].counts && found.forecasts[i].low);
      outside = outside || found.IsOutside(i);
    }
    found.state = !judged   ? DiagnosisState::kNotJudged
                  : outside ? DiagnosisState::kDiffers
                            : DiagnosisState::kAgrees;
    if (found.state == DiagnosisState::kAgrees || found.distance < kAsGoodAsEqual) return Finish();
    for (Cause& cause : CausesOf(scenario, *first, facts, found.slowness > 0)) {
      trying.push_back({std::move(cause), {}, {}, 0, {}});
    }
    return Begin(Stage::kAlone);
  }

  bool Begin(Stage now) {
    stage = now;
    next = 0;
    return trying.empty() ? EndOfRound() : false;
  }

  bool EndOfCause() { return ++next == trying.size() ? EndOfRound() : false; }

  // How far the figures are from the measured ones, with what explains them so far.
  double Left() const { return found.chain.empty() ? found.distance : found.chain.back().distance; }

  bool EndOfRound() {
    std::stable_sort(trying.begin(), trying.end(), [](const TriedCause& a, const TriedCause& b) {
      if (a.issues.empty() != b.issues.empty()) return a.issues.empty();
      return a.distance < b.distance;
    });
    const double left = Left();
    std::vector<TriedCause> round = std::exchange(trying, {});
    const bool explains = !round.empty() && round[0].issues.empty() &&
                          round[0].distance <= left - kExplains * found.distance;
    if (stage == Stage::kAlone) found.alone = round;
    if (!explains) return Finish();
    found.chain.push_back(std::move(round[0]));
    if (found.chain.size() == kMostTogether || Left() < kAsGoodAsEqual) return Finish();
    trying = OnTop();
    return Begin(Stage::kOnTop);
  }

  bool IsTaken(const std::string& kind) const {
    return std::any_of(found.chain.begin(), found.chain.end(),
                       [&kind](const TriedCause& each) { return each.cause.kind == kind; });
  }

  // The causes that helped alone, as the scenario that the chain has come to has them.
  std::vector<TriedCause> OnTop() const {
    std::vector<TriedCause> causes;
    const Result<Scenario> now = Read(DocumentBefore());
    if (!now.ok()) return causes;
    const std::vector<Cause> all = CausesOf(now.value(), *first, facts, found.slowness > 0);
    for (const TriedCause& tried : found.alone) {
      if (causes.size() == kTriedOnTop || !tried.issues.empty()) break;
      if (tried.distance >= found.distance || IsTaken(tried.cause.kind)) continue;
      const auto same = std::find_if(all.begin(), all.end(), [&tried](const Cause& each) {
        return each.words == tried.cause.words;
      });
      if (same != all.end()) causes.push_back({*same, {}, {}, 0, {}});
    }
    return causes;
  }

  bool Finish() {
    stage = Stage::kDone;
    return true;
  }

  void AddCheck(std::string name, std::string words, double said, double planned, double tolerance,
                std::string sentence) {
    PlanCheck check;
    check.name = std::move(name);
    check.words = std::move(words);
    check.said = said;
    check.planned = planned;
    check.differs = !(std::fabs(said / planned - 1) <= tolerance);
    check.sentence = std::move(sentence);
    found.checks.push_back(std::move(check));
  }

  // A room that the scenario states is what a text said: it stands beside the one that is planned
  // without it.
  std::int64_t PlannedTokens() const {
    if (!scenario.engine.num_gpu_blocks_override) return first->kv_tokens;
    Scenario plain = scenario;
    plain.engine.num_gpu_blocks_override.reset();
    for (PoolSpec& pool : plain.cluster.pools) {
      if (pool.engine) pool.engine->num_gpu_blocks_override.reset();
    }
    plain.workload->requests = 1;
    Result<Simulation> made = Simulation::Create(std::move(plain), trace);
    return made.ok() ? made.value().Snapshot(ReportDetail::kSummary).kv_tokens : 0;
  }

  void Check() {
    const auto count = [](double value) { return ShortNumber(value); };
    const auto room = ValueOf(facts.measured, "kv_tokens");
    const bool is_one = scenario.cluster.pools.size() == 1;
    const double planned = is_one ? static_cast<double>(PlannedTokens()) : 0;
    constexpr double kRoom = 0.05, kShares = 0.1;
    if (room && planned > 0) {
      const double more = *room / planned - 1;
      AddCheck("kv_tokens", "KV cache, tokens", *room, planned, kRoom,
               Format("The KV cache holds {} tokens, planned are {}: {} {}.", count(*room),
                      count(planned), Percent(std::fabs(more)), more < 0 ? "less" : "more"));
    }
    const auto length = ValueOf(facts.measured, "max_concurrency_tokens");
    const auto fit = ValueOf(facts.measured, "max_concurrency");
    if (length && fit && planned > 0 && *length > 0 && *fit > 0) {
      AddCheck("max_concurrency", Format("requests of {} tokens that fit", count(*length)), *fit,
               planned / *length, kRoom,
               Format("{} requests of {} tokens fit into it, planned are {}.", count(*fit),
                      count(*length), count(planned / *length)));
    }
    const PrefixCacheReport& cache = first->prefix_cache;
    if (const auto hits = ValueOf(facts.measured, "prefix_hit_share");
        hits && cache.query_tokens > 0) {
      const double share =
          static_cast<double>(cache.hit_tokens) / static_cast<double>(cache.query_tokens);
      AddCheck("prefix_hit_share", "prompt tokens from the prefix cache", *hits, share, kShares,
               Format("{} of prompt tokens came from the prefix cache, forecast are {}.",
                      Percent(*hits), Percent(share)));
      found.checks.back().differs = std::fabs(*hits - share) > kShares;
    }
  }

  std::string document;
  ServerFacts facts;
  Trace trace;
  Scenario scenario;
  DiagnosisFindings found;
  std::optional<Simulation> run;
  Stage stage = Stage::kSeeds;
  std::size_t next = 0, seeds_wanted = kSeeds;
  std::optional<Report> first;
  std::vector<Figures> seeds, responses;
  std::vector<double> scatter;
  std::optional<KnownError> known_error;
  std::vector<ErrorFactors> factors;
  std::vector<TriedCause> trying;
  Issues problems;
};

Diagnosis::Diagnosis(std::unique_ptr<State> state) : state_(std::move(state)) {}
Diagnosis::Diagnosis(Diagnosis&&) noexcept = default;
Diagnosis& Diagnosis::operator=(Diagnosis&&) noexcept = default;
Diagnosis::~Diagnosis() = default;

Result<Diagnosis> Diagnosis::Create(std::string document, ServerFacts facts, Trace trace) {
  auto state = std::make_unique<State>();
  State& s = *state;
  Result<Scenario> read = State::Read(document);
  if (!read.ok()) return read.issues();
  s.document = std::move(document);
  s.scenario = std::move(read.value());
  s.facts = std::move(facts);
  s.trace = std::move(trace);
  s.found.figures = FiguresOf(s.facts.measured);
  if (ReplaysTrace(s.scenario)) s.seeds_wanted = 1;
  s.found.requests_per_run = s.scenario.workload->requests;
  Issues issues = s.StartNext();
  if (!issues.empty()) return issues;
  return Diagnosis(std::move(state));
}

bool Diagnosis::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double Diagnosis::Progress() const {
  const State& s = *state_;
  if (s.stage == State::Stage::kDone) return 1;
  // Of the time of all runs, about; a round of causes has one run a cause.
  constexpr double kShares[] = {0, 0.15, 0.4, 0.75, 1};
  const auto stage = static_cast<std::size_t>(s.stage);
  const std::size_t runs = s.stage == State::Stage::kSeeds     ? s.seeds_wanted
                           : s.stage == State::Stage::kFactors ? s.factors.size()
                                                               : s.trying.size();
  double done = (static_cast<double>(s.next) + (s.run ? s.run->Progress() : 0)) /
                static_cast<double>(std::max<std::size_t>(runs, 1));
  if (s.stage == State::Stage::kOnTop)
    done = (static_cast<double>(s.found.chain.size() - 1) + done) / (kMostTogether - 1);
  return std::min(0.999, kShares[stage] + done * (kShares[stage + 1] - kShares[stage]));
}

const Issues& Diagnosis::Problems() const { return state_->problems; }

const DiagnosisFindings& Diagnosis::Findings() const { return state_->found; }

std::string Diagnosis::Json(bool with_documents) const {
  return DiagnosisJson(state_->found, state_->scenario, with_documents);
}

}  // namespace servecast
