// See known_error.h.
#include "experiment/known_error.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cost/calibrated.h"
#include "cost/own_models.h"
#include "serving/policy.h"

namespace servecast {
namespace {

// What of a scenario no server was measured with: its engine counts as unknown.
bool IsUnmeasured(const Scenario& s) {
  return s.cluster.pools.size() > 1 || s.engine.speculative.On() || s.engine.max_loras > 0 ||
         s.cluster.pool().pipeline_parallel > 1;
}

// Standard deviation of what a calibration was off by on rows that it was not fitted to; nullopt:
// it says of none.
std::optional<double> NoiseOf(const CalibrationSpec& calibration) {
  constexpr double kMedianOfNormal = 0.6745;
  for (const char* figure : {"tpot", "step", "e2e"}) {
    for (const CalibrationSpec::Error& error : calibration.errors) {
      if (error.held_out && error.figure == figure) return error.median / 100 / kMedianOfNormal;
    }
  }
  return std::nullopt;
}

// One's own server, where its calibration is of this scenario: one more measured place, with the
// laboratory known, so that the whole bias there counts. Beyond what was measured it says less.
std::optional<StepError> CalibratedError(const Scenario& pool, SetupFeatures& features) {
  constexpr double kBeyond = 0.05;
  if (!pool.calibration.On() || !CalibrationMismatches(pool).empty()) return std::nullopt;
  const std::optional<double> noise = NoiseOf(pool.calibration);
  if (!noise) return std::nullopt;
  features.laboratory = "calibrated";
  features.gpu = pool.hardware.compared_as == "none" ? "own" : pool.hardware.compared_as;
  features.engine = pool.engine.compared_as == "none" ? "own" : pool.engine.compared_as;
  std::vector<FieldPoint> points(MeasuredPoints().begin(), MeasuredPoints().end());
  const double beyond = BeyondCalibration(pool).empty() ? 0 : kBeyond;
  points.push_back({features, 0, std::sqrt(*noise * *noise + beyond * beyond)});
  StepError error = ErrorField(std::move(points)).At(features, MeasuredScale().q, true);
  error.nearest.clear();  // they are of the field's own points
  const bool says_first_tokens =
      std::any_of(pool.calibration.errors.begin(), pool.calibration.errors.end(),
                  [](const CalibrationSpec::Error& e) { return e.figure == "ttft"; });
  if (!says_first_tokens) error.strange = MeasuredField().StrangenessOf(features);
  return error;
}

}  // namespace

std::optional<KnownError> KnownErrorOf(const Scenario& scenario) {
  Scenario first = scenario;
  if (first.cluster.pools.size() == 1) first.UsePool(0);
  if (!IsOwnModel(ChosenLatencyModel(first).name) || IsBlis(scenario.engine.compat))
    return std::nullopt;
  KnownError of;
  of.features = FeaturesOf(first);
  if (IsUnmeasured(scenario)) of.features.engine = "";
  const std::optional<StepError> calibrated = CalibratedError(first, of.features);
  of.error = calibrated ? *calibrated : MeasuredField().At(of.features, MeasuredScale().q);
  return of;
}

}  // namespace servecast
