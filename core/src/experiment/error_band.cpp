// See servecast/error_band.h. Every node runs the same requests, so that a target's figure moves
// with the factors alone; what it moves by is applied to the experiment's own figure.
#include "servecast/error_band.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/text.h"
#include "evidence/response.h"
#include "experiment/evidence_text.h"
#include "experiment/known_error.h"
#include "experiment/replications.h"
#include "experiment/scaled_times.h"
#include "experiment/verdict_text.h"
#include "metrics/words.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"

namespace servecast {
namespace {

constexpr double kZ95 = 1.959963984540054;
// Requests of a node's run, at most.
constexpr std::int64_t kMostRequests = 4000;

bool Judged(VerdictState state) {
  return state == VerdictState::kMeets || state == VerdictState::kNear ||
         state == VerdictState::kMisses || state == VerdictState::kOverloaded ||
         state == VerdictState::kNotJudged;
}

bool Waits(SloMetric metric) {
  return metric == SloMetric::kTtft || metric == SloMetric::kE2e ||
         metric == SloMetric::kAttainment;
}

// A target as a number whose limit is another one: ms, or of attainment the share beyond.
struct Figure {
  double value = 0, limit = 0, sampling = 0;
  bool loses = false;  // more requests than a target of a latency allows
};

double SamplingOf(double low, double high) {
  return low > 0 && high > low ? Log(high / low) / (2 * kZ95) : 0;
}

// A share of no request counts as that of half a one.
double Beyond(double share, double requests) {
  return std::max(1 - share, 0.5 / std::max(requests, 1.0));
}

bool LosesTooMany(const SloResult& result) {
  return result.slo.metric != SloMetric::kAttainment &&
         result.unserved_share > 1 - result.slo.percentile / 100;
}

Figure FigureOf(const SloResult& result, double requests) {
  Figure f;
  if (result.slo.metric == SloMetric::kAttainment) {
    f.limit = std::max(1 - result.slo.percentile / 100, 1e-9);
    if (result.share) f.value = Beyond(*result.share, requests);
    if (result.low_share) {
      f.sampling =
          SamplingOf(Beyond(*result.high_share, requests), Beyond(*result.low_share, requests));
    }
    return f;
  }
  f.limit = result.slo.limit_ms;
  f.value = result.value_ms.value_or(0);
  f.loses = LosesTooMany(result);
  if (result.low_ms) f.sampling = SamplingOf(*result.low_ms, *result.high_ms);
  return f;
}

}  // namespace

struct ErrorBand::State {
  Scenario scenario;
  Trace trace;
  SetupFeatures features;
  StepError error;
  std::vector<ErrorFactors> factors;
  std::optional<Simulation> current;
  std::size_t node = 0;
  std::vector<std::vector<Figure>> figures;  // by node and target; value infinite: not served
  bool failed = false;                       // a run could not be made

  bool Start() {
    Result<std::shared_ptr<Deployment>> scaled = DeployScaled(scenario, factors[node]);
    if (!scaled.ok()) return false;
    SimulationHooks hooks;
    hooks.deployment = std::move(scaled.value());
    const bool gaps = std::any_of(scenario.slo.begin(), scenario.slo.end(),
                                  [](const SloSpec& s) { return s.metric == SloMetric::kItl; });
    hooks.recorded = {.series = false, .gaps = gaps};
    Result<Simulation> made = Simulation::Create(scenario, trace, std::move(hooks));
    if (!made.ok()) return false;
    current.emplace(std::move(made.value()));
    return true;
  }

  void Take(const Report& report) {
    const bool overloaded =
        IsSteady(scenario) && report.saturation.state == SaturationState::kOverloaded;
    std::vector<Figure>& of = figures.emplace_back();
    for (const SloResult& result : report.slo) {
      Figure f = FigureOf(result, static_cast<double>(report.arrived));
      if (overloaded && Waits(result.slo.metric)) f.value = std::numeric_limits<double>::infinity();
      of.push_back(f);
    }
  }

  bool Step(std::int64_t max_steps) {
    if (failed || node == factors.size()) return true;
    if (!current && !Start()) {
      failed = true;
      return true;
    }
    if (!current->Advance(max_steps)) return false;
    Take(current->Snapshot(ReportDetail::kSummary));
    current.reset();
    return ++node == factors.size();
  }

  // Whether the load is more than is served at a node, by what the experiment served at most: a
  // node's run is short, and may end before the queue is long.
  bool IsOverloadedAt(std::size_t n, const Report& report) const {
    if (!report.overload) return false;
    const double fastest = factors[n].step * std::min(1.0, factors[n].prompt);
    return report.overload->high < report.overload->offered_per_s * fastest;
  }

  // nullopt: some run has no figure of it. `whether_met`: a run that loses too many misses,
  // whatever the latency of the others.
  std::optional<Response> ResponseOf(const Report& report, std::size_t k, double requests,
                                     bool whether_met) const {
    const SloResult& result = report.slo[k];
    const Figure own = FigureOf(result, requests);
    Response r;
    for (std::size_t n = 0; n < figures.size(); ++n) {
      const std::vector<Figure>& of = figures[n];
      if (!(of[k].value > 0)) return std::nullopt;
      const bool misses =
          (whether_met && of[k].loses) || (Waits(result.slo.metric) && IsOverloadedAt(n, report));
      r.at.push_back(misses ? std::numeric_limits<double>::infinity() : of[k].value);
    }
    r.forecast = result.unbounded ? 0 : own.value;
    r.sampling = own.sampling;
    r.limit = own.limit;
    const bool tail = result.slo.metric != SloMetric::kAttainment && result.slo.percentile >= 95;
    AddRest(tail ? FigureKind::kTail : FigureKind::kMean, result.slo.metric == SloMetric::kTtft,
            features.Experts(), error, MeasuredScale(), r);
    return r;
  }

  // But for its probability.
  static TargetBand BandFor(Response r, bool share) {
    const FigureBand whole = servecast::BandOf(r);
    r.sampling = 0;
    const FigureBand model = servecast::BandOf(r);
    if (share) {
      const auto kept = [](double beyond) { return std::clamp(1 - beyond, 0.0, 1.0); };
      return {kept(whole.high), kept(whole.low), kept(model.high), kept(model.low), 0};
    }
    const auto finite = [](double ms) {
      return std::isfinite(ms) ? std::optional(ms) : std::nullopt;
    };
    return {whole.low, finite(whole.high), model.low, finite(model.high), 0};
  }
};

ErrorBand::ErrorBand(std::unique_ptr<State> state) : state_(std::move(state)) {}
ErrorBand::ErrorBand(ErrorBand&&) noexcept = default;
ErrorBand& ErrorBand::operator=(ErrorBand&&) noexcept = default;
ErrorBand::~ErrorBand() = default;

std::optional<ErrorBand> ErrorBand::Create(Scenario scenario, Trace trace) {
  if (scenario.slo.empty()) return std::nullopt;
  std::optional<KnownError> known = KnownErrorOf(scenario);
  if (!known) return std::nullopt;
  auto state = std::make_unique<State>();
  State& s = *state;
  s.features = std::move(known->features);
  s.error = std::move(known->error);
  s.factors = NodesOf(s.error, MeasuredScale());
  s.scenario = std::move(scenario);
  s.trace = std::move(trace);
  std::int64_t& requests = s.scenario.workload->requests;
  if (!ReplaysTrace(s.scenario)) requests = std::min(requests, kMostRequests);
  return ErrorBand(std::move(state));
}

std::optional<ErrorBand> ErrorBand::Create(Scenario scenario, Trace trace, const Report& report) {
  if (!Judged(report.verdict.state)) return std::nullopt;
  return Create(std::move(scenario), std::move(trace));
}

bool ErrorBand::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

std::optional<Banded> ErrorBand::Put(const Sureness& sureness, Report& report) const {
  const State& s = *state_;
  if (s.failed) return std::nullopt;
  Banded banded;
  banded.error = ModelErrorOf(s.features, s.error);
  std::vector<Response> responses;
  const auto requests =
      static_cast<double>(report.counted ? report.counted->requests : report.arrived);
  for (std::size_t k = 0; k < report.slo.size(); ++k) {
    std::optional<TargetBand>& band = banded.targets.emplace_back();
    const SloResult& result = report.slo[k];
    // A figure of one run has no interval, so nobody knows how far it scatters.
    if (!result.low_ms && !result.low_share && !result.unbounded) continue;
    const std::optional<Response> response = s.ResponseOf(report, k, requests, false);
    if (!response) continue;
    band = State::BandFor(*response, result.slo.metric == SloMetric::kAttainment);
    responses.push_back(*s.ResponseOf(report, k, requests, true));
    band->probability = ProbabilityMet({&responses.back(), 1});
  }
  // A band says nothing of requests that are not served: where these alone are too many, they
  // decide.
  if (report.verdict.state == VerdictState::kMisses) {
    bool decided = false;
    for (std::size_t k = 0; k < report.slo.size(); ++k) {
      if (!LosesTooMany(report.slo[k])) continue;
      if (banded.targets[k]) banded.targets[k]->probability = 0;
      decided = true;
    }
    if (decided) {
      banded.probability = 0;
      return banded;
    }
  }
  if (responses.size() != report.slo.size()) return banded;
  banded.probability = ProbabilityMet(responses);
  RestateVerdict(s.scenario, sureness, banded, report);
  return banded;
}

}  // namespace servecast
