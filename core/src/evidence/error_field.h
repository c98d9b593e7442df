// What a forecast of step times is off by, as a field over the features of set-ups: near what was
// measured it is known, far from it as uncertain as forecasts were at large. Built from the errors
// of forecasts that no fit had seen, ln(measured / predicted).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "evidence/setup_features.h"

namespace servecast {

// One measured row: where it was, and the error of its forecast.
struct FieldPoint {
  SetupFeatures at;
  double error = 0;  // ln(measured / predicted)
  double noise = 0;  // standard deviation of the measurement beside the field's own; 0: none
};

// Half-widths are of 90 %, in logarithms.
struct StepError {
  double centre = 0;  // what the figure is corrected by
  double half = 0;    // of the band around it
  double bias = 0;    // what servers like this one were off by
  // From 0, where the first tokens of such a server were measured, to 1, where none of any like it.
  double strange = 0;
  // The measured set-ups that count most, the nearest first; at most three, of `points`.
  std::vector<std::size_t> nearest;
  Nearness nearness = Nearness::kFar;
};

// Constants that the rows left out say (fidelity/evidence_fit.cpp).
struct FieldScale {
  double q = 2;       // half-width of 90 % over the field's standard deviation
  double prompt = 1;  // of times of prompts, over that of steps
  // The 5 and 95 % points of what p99 TTFT is off by beyond the mean, in logarithms.
  double p99_low[2] = {0, 0}, p99_high[2] = {0, 0};  // of dense models, of experts
  // The 95 % point of what first tokens come later than by steps and prompts, in logarithms, on a
  // server unlike all whose first tokens were measured: hosts and front ends differ more than
  // steps.
  double first_high = 0;
};

class ErrorField {
 public:
  // O(points^3): half a thousand take some 20 ms.
  explicit ErrorField(std::vector<FieldPoint> points);

  // Of a set-up under a load. With fewer points the half-width is never less, at equal q.
  // `own`: the points hold measurements of this very server, so that the whole bias counts.
  StepError At(const SetupFeatures& where, double q, bool own = false) const;
  // Its standard deviation and mean, without a scale: what q is found from.
  struct Moments {
    double mean = 0, sd = 0;
    double known = 0;  // variance that the points take away
    // Root mean square of what is left when `share` of the mean is corrected: sd, and that part of
    // the known variance. It never falls when points are left out.
    double Spread(double share) const;
  };
  Moments MomentsAt(const SetupFeatures& where) const;

  // StepError::strange. It never falls when points are left out.
  double StrangenessOf(const SetupFeatures& where) const;

  const std::vector<FieldPoint>& points() const { return points_; }

 private:
  // To the nearest set-up that was measured as it served, whoever measured.
  double DistanceToServing(const SetupFeatures& where) const;
  double Amplitude(const SetupFeatures& where) const;
  double Covariance(const SetupFeatures& a, double amplitude_a, const SetupFeatures& b,
                    double amplitude_b) const;

  std::vector<FieldPoint> points_;
  std::vector<double> amplitudes_;
  std::vector<double> factor_;   // Cholesky's, lower, row by row
  std::vector<double> weights_;  // C^-1 r
};

// The share of the bias that a stranger's figure is corrected by.
inline constexpr double kCorrected = 0.5;
// No band is narrower: one server measured twice differs by as much.
inline constexpr double kLeastHalf = 0.02, kLeastHalfP99 = 0.05;
// Half-width of 90 % over the standard deviation of a normal distribution.
inline constexpr double kZ90 = 1.6448536269514722;

// presets/evidence.json, embedded.
std::span<const FieldPoint> MeasuredPoints();
const FieldScale& MeasuredScale();
// The field of these points, built at the first call.
const ErrorField& MeasuredField();

}  // namespace servecast
