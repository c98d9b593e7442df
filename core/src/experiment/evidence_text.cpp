// See evidence_text.h.
#include "experiment/evidence_text.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/math.h"
#include "base/text.h"
#include "experiment/verdict_text.h"
#include "metrics/words.h"

namespace servecast {
namespace {

std::string Share(double of) { return Percent(std::nearbyint(of * 1000) / 1000); }

// "qwen3-32b in fp8 on h100-sxm with vllm-0.19 (closed loops, InferenceX)".
std::string SetupText(const SetupFeatures& f) {
  constexpr const char* kRuns[] = {"serving runs", "closed loops",   "runs at saturation",
                                   "decode steps", "single prompts", "requests all at once",
                                   "maximum load", "conversations"};
  return Format("{} in {} on {} x {} with {} ({}, {})", f.model,
                f.weights == "16" ? "16 bits" : f.weights, ShortNumber(f.tensor_parallel), f.gpu,
                f.engine, kRuns[static_cast<std::size_t>(f.run)], f.laboratory);
}

// The measured rows of one set-up: how many, and their median error.
struct Measured {
  std::size_t rows = 0;
  double median = 0;
};
Measured MeasuredOf(const SetupFeatures& setup) {
  std::vector<double> errors;
  for (const FieldPoint& point : MeasuredPoints()) {
    if (SameSetup(point.at, setup)) errors.push_back(point.error);
  }
  std::sort(errors.begin(), errors.end());
  return {errors.size(), errors.empty() ? 0 : errors[errors.size() / 2]};
}

std::string SlowerText(double error) {
  const double by = std::fabs(Exp(error) - 1);
  return by < 0.005 ? "as fast as forecast"
                    : Format("{} {} than forecast", Share(by), error > 0 ? "slower" : "faster");
}

// The targets that the figure is beyond, of those with a value.
std::size_t Beyond(const Report& r) {
  return static_cast<std::size_t>(
      std::count_if(r.slo.begin(), r.slo.end(), [](const SloResult& t) { return !t.met; }));
}

double Strain(const SloResult& result) {
  if (result.value_ms) return *result.value_ms / result.slo.limit_ms;
  const double allowed = std::max(1 - result.slo.percentile / 100, 1e-9);
  return result.share ? (1 - *result.share) / allowed : 1e9;
}

// The target that decides: the one least sure to be met, by whole per cent, then the most strained.
std::size_t Closest(const Banded& banded, const Report& r) {
  std::size_t closest = 0;
  const auto key = [&](std::size_t k) {
    return std::pair(-std::round(100 * banded.targets[k]->probability), Strain(r.slo[k]));
  };
  for (std::size_t k = 1; k < r.slo.size(); ++k) {
    if (key(k) > key(closest)) closest = k;
  }
  return closest;
}

// "TPOT p99, 14.9 of 20 ms (13.6 to 16.8)" with the band as its interval; or who was lost, where
// that alone misses the target.
std::string BandedFigure(const SloResult& result, const TargetBand& band, const Report& r) {
  SloResult banded = result;
  const std::string name = TargetName(result.slo);
  if (result.unbounded || (!result.value_ms && !result.share)) {
    const bool share = result.slo.metric == SloMetric::kAttainment;
    return Format("{}, which {} for as long as requests come", name, share ? "falls" : "grows");
  }
  if (result.share) {
    banded.low_share = band.low;
    banded.high_share = band.high;
    return Format("{}, {}", name, FigureText(banded));
  }
  if (result.unserved_share > 1 - result.slo.percentile / 100) {
    return Format("{}: {}", name, LossText(result, r));
  }
  banded.low_ms = band.low;
  banded.high_ms = band.high;
  if (band.high) return Format("{}, {}", name, FigureText(banded));
  banded.low_ms.reset();
  return Format("{}, {} ({} at least; the queue may grow without bound)", name, FigureText(banded),
                Ms(band.low));
}

VerdictState StateOf(VerdictState was, double p, const Sureness& sureness) {
  if (was == VerdictState::kOverloaded || was == VerdictState::kMisses) {
    return p <= sureness.misses ? was : VerdictState::kNear;
  }
  if (p <= sureness.misses) return VerdictState::kMisses;
  return was == VerdictState::kMeets && p < sureness.meets ? VerdictState::kNear : was;
}

}  // namespace

std::string SureText(double p) {
  if (p > 0.99) return "more than 99 %";
  if (p < 0.01) return "less than 1 %";
  return Format("{} %", ShortNumber(std::nearbyint(p * 100)));
}

ModelError ModelErrorOf(const SetupFeatures& features, const StepError& error) {
  ModelError e;
  e.bias = Exp(error.bias) - 1;
  e.corrected = Exp(error.centre) - 1;
  e.half_width = Exp(error.half) - 1;
  e.nearness = kNearnessNames[static_cast<std::size_t>(error.nearness)];
  e.sentence =
      Format("Step times are within {} of the forecast with 90 % probability", Share(e.half_width));
  if (std::fabs(e.corrected) >= 0.005) {
    e.sentence += Format(", once moved by {} {}, {}what servers like this one were {} by",
                         Share(std::fabs(e.corrected)), e.corrected > 0 ? "up" : "down",
                         features.laboratory.empty() ? "half of " : "",
                         e.corrected > 0 ? "slower" : "faster");
  }
  e.sentence += ".";
  const double late = Exp(error.strange * MeasuredScale().first_high) - 1;
  if (late >= 0.1) {
    e.sentence += Format(
        " First tokens may come up to {} later beside it: no server like it was measured with "
        "requests that arrive over time.",
        Percent(std::nearbyint(late * 20) / 20));
  }
  if (features.laboratory == "calibrated") {
    e.sentence +=
        " This server was measured: its calibration was off by so little on rows that it "
        "was not fitted to.";
  }
  if (error.nearest.empty()) return e;
  const SetupFeatures& nearest = MeasuredPoints()[error.nearest[0]].at;
  const Measured measured = MeasuredOf(nearest);
  const char* how = error.nearness == Nearness::kNear ? "Near to it"
                    : error.nearness == Nearness::kMiddle
                        ? "Of its kind, the nearest"
                        : "No server like it was measured. The nearest";
  e.sentence +=
      Format(" {} is {}: {} that no fit had seen, in the median {}.", how, SetupText(nearest),
             Count(static_cast<std::int64_t>(measured.rows), "row"), SlowerText(measured.median));
  const bool experts_differ = features.Experts() != nearest.Experts();
  e.sentence +=
      Format(" A measurement of your own server{} narrows this most (servecast calibrate).",
             experts_differ ? ", or of any server with such a model," : "");
  return e;
}

void RestateVerdict(const Scenario& scenario, const Sureness& sureness, const Banded& banded,
                    Report& r) {
  const VerdictState was = r.verdict.state;
  if (was == VerdictState::kNotJudged || !banded.probability) return;
  const double p = *banded.probability;
  r.verdict.state = StateOf(was, p, sureness);
  if (was == VerdictState::kOverloaded && r.verdict.state == was) return;
  const std::string who = SubjectText(scenario), load = LoadText(scenario, r);
  const std::size_t closest = Closest(banded, r);
  const std::string figure = BandedFigure(r.slo[closest], *banded.targets[closest], r);
  const std::size_t all = r.slo.size();
  if (r.verdict.state == VerdictState::kMisses) {
    const std::size_t beyond = std::max<std::size_t>(Beyond(r), 1);
    // The probability is that of the first miss: others may be met.
    r.verdict.sentence = Format("{} misses {}{}, {} sure{}; {} {}.", who, TargetsText(beyond, all),
                                load, SureText(1 - p), beyond > 1 ? " of one at least" : "",
                                beyond > 1 ? "worst is" : "it is", figure);
    return;
  }
  if (r.verdict.state == VerdictState::kMeets) {
    r.verdict.sentence = Format("{} meets {}{}, {} sure; {} {}.", who, TargetsText(all, all), load,
                                SureText(p), all == 1 ? "it is" : "closest is", figure);
    return;
  }
  const bool other = was == VerdictState::kNear && p >= sureness.meets;
  const char* because =
      r.saturation.state == SaturationState::kNear ? ", but is close to saturation" : "";
  r.verdict.sentence =
      Format("{} meets {}{} with a probability of {}{}; closest is {}.", who, TargetsText(all, all),
             load, SureText(p), other ? because : "", figure);
}

}  // namespace servecast
