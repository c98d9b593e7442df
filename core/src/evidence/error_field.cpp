// See error_field.h. A Gaussian field: K(s,t) = a_s a_t (0.14^2 e^-D' + 0.14^2 e^-D) and, of one
// set-up in one laboratory, 0.12^2 a_s a_t; D and D' are the distances with and without lengths.
#include "evidence/error_field.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/math.h"
#include "evidence/measured_points.h"

namespace servecast {
namespace {

constexpr double kOfSetup = 0.14 * 0.14, kOfShape = 0.14 * 0.14, kOfServer = 0.12 * 0.12;
constexpr double kRowNoise = 0.024, kPrintNoise = 0.01;
constexpr double kDense = 0.6, kVllm = 0.7, kServing = 0.35;
constexpr double kClip = 0.6;
// Of a maker of GPUs of whose fewer than three set-ups were measured.
constexpr double kUnknownMaker = 0.3;
constexpr std::size_t kEnoughSetups = 3;
// Within 0.2 of a server whose first tokens were measured they are known as well as there, beyond 1
// not at all. Of powers 1 to 4 of the distance, 2 and 3 have the best score left out, and 3 is the
// narrower one near measurements.
constexpr double kStrangeness = 3, kAllStrange = 5;

}  // namespace

double ErrorField::Moments::Spread(double share) const {
  return std::sqrt(sd * sd + (1 - share) * (1 - share) * known);
}

ErrorField::ErrorField(std::vector<FieldPoint> points) : points_(std::move(points)) {
  const std::size_t n = points_.size();
  for (const FieldPoint& point : points_) amplitudes_.push_back(Amplitude(point.at));
  factor_.assign(n * n, 0);
  weights_.assign(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = Covariance(points_[i].at, amplitudes_[i], points_[j].at, amplitudes_[j]);
      if (i == j) {
        const double row = kRowNoise * amplitudes_[i];
        sum += row * row + kPrintNoise * kPrintNoise + points_[i].noise * points_[i].noise;
      }
      for (std::size_t k = 0; k < j; ++k) sum -= factor_[i * n + k] * factor_[j * n + k];
      factor_[i * n + j] = i == j ? std::sqrt(sum) : sum / factor_[j * n + j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    double sum = std::clamp(points_[i].error, -kClip, kClip);
    for (std::size_t k = 0; k < i; ++k) sum -= factor_[i * n + k] * weights_[k];
    weights_[i] = sum / factor_[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    double sum = weights_[i];
    for (std::size_t k = i + 1; k < n; ++k) sum -= factor_[k * n + i] * weights_[k];
    weights_[i] = sum / factor_[i * n + i];
  }
}

// Runs that serve scatter less, near to where such runs were measured.
double ErrorField::Amplitude(const SetupFeatures& where) const {
  double amplitude = (where.Experts() ? 1 : kDense) * (where.Vllm() ? kVllm : 1);
  if (where.run != RunKind::kServing && where.run != RunKind::kStep) return amplitude;
  SetupFeatures here = where;  // however it was loaded
  here.run = RunKind::kServing;
  return amplitude * (kServing + (1 - kServing) * (1 - Exp(-DistanceToServing(here))));
}

double ErrorField::DistanceToServing(const SetupFeatures& where) const {
  double nearest = 700;
  SetupFeatures here = where;
  for (const FieldPoint& point : points_) {
    if (point.at.run != RunKind::kServing) continue;
    here.laboratory = point.at.laboratory;
    nearest = std::min(nearest, DistanceOf(here, point.at).setup);
  }
  return nearest;
}

double ErrorField::StrangenessOf(const SetupFeatures& where) const {
  const double distance = std::min(DistanceToServing(where), kAllStrange);
  return 1 - Exp(-kStrangeness * distance * distance * distance);
}

double ErrorField::Covariance(const SetupFeatures& a, double amplitude_a, const SetupFeatures& b,
                              double amplitude_b) const {
  const SetupDistance d = DistanceOf(a, b);
  const double server = SameSetup(a, b) ? kOfServer : 0;
  return amplitude_a * amplitude_b * (kOfSetup * Exp(-d.setup) + kOfShape * Exp(-d.all) + server);
}

ErrorField::Moments ErrorField::MomentsAt(const SetupFeatures& where) const {
  const std::size_t n = points_.size();
  const double amplitude = Amplitude(where);
  std::vector<double> solved(n);
  Moments m;
  for (std::size_t i = 0; i < n; ++i) {
    const double k = Covariance(where, amplitude, points_[i].at, amplitudes_[i]);
    m.mean += k * weights_[i];
    double sum = k;
    for (std::size_t j = 0; j < i; ++j) sum -= factor_[i * n + j] * solved[j];
    solved[i] = sum / factor_[i * n + i];
    m.known += solved[i] * solved[i];
  }
  const double row = kRowNoise * amplitude;
  const double own = amplitude * amplitude * (kOfSetup + kOfShape + kOfServer);
  double variance = std::max(own - m.known, 0.0) + row * row + kPrintNoise * kPrintNoise;
  std::vector<const FieldPoint*> of_maker;
  for (const FieldPoint& point : points_) {
    if (where.GpuMaker().empty() || point.at.GpuMaker() != where.GpuMaker()) continue;
    const bool counted = std::any_of(of_maker.begin(), of_maker.end(), [&](const FieldPoint* p) {
      return SameSetup(p->at, point.at);
    });
    if (!counted) of_maker.push_back(&point);
    if (of_maker.size() == kEnoughSetups) break;
  }
  if (of_maker.size() < kEnoughSetups) variance += kUnknownMaker * kUnknownMaker;
  m.sd = std::sqrt(variance);
  return m;
}

StepError ErrorField::At(const SetupFeatures& where, double q, bool own) const {
  const Moments m = MomentsAt(where);
  const double share = own ? 1 : kCorrected;
  StepError e;
  e.bias = m.mean;
  e.centre = share * m.mean;
  e.half = std::max(q * m.Spread(share), kLeastHalf);
  e.strange = StrangenessOf(where);
  std::vector<double> distances;
  for (const FieldPoint& point : points_) distances.push_back(DistanceOf(where, point.at).all);
  std::vector<std::size_t> order(points_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distances[a] < distances[b]; });
  for (const std::size_t i : order) {
    e.nearness = std::min(e.nearness, NearnessOf(where, points_[i].at));
    const bool known = std::any_of(e.nearest.begin(), e.nearest.end(), [&](std::size_t j) {
      return SameSetup(points_[i].at, points_[j].at);
    });
    if (!known && e.nearest.size() < 3) e.nearest.push_back(i);
  }
  return e;
}

std::span<const FieldPoint> MeasuredPoints() {
  static const std::vector<FieldPoint> points = [] {
    std::vector<FieldPoint> all;
    for (const EvidenceRow& row : EvidenceRows()) {
      const EvidenceSetup& s = EvidenceSetups()[row.setup];
      FieldPoint& point = all.emplace_back();
      point.at = {.laboratory = std::string(s.laboratory),
                  .model = std::string(s.model),
                  .form = std::string(s.form),
                  .weights = std::string(s.weights),
                  .gpu = std::string(s.gpu),
                  .engine = std::string(s.engine),
                  .run = RunKindOf(s.run).value_or(RunKind::kLoop),
                  .expert_parallel = s.expert_parallel,
                  .tensor_parallel = s.tensor_parallel,
                  .active_billions = s.active_billions,
                  .prompt = row.prompt,
                  .output = row.output,
                  .clients = row.clients,
                  .gpus = s.gpus};
      point.error = row.error;
    }
    return all;
  }();
  return points;
}

const ErrorField& MeasuredField() {
  static const ErrorField field(
      std::vector<FieldPoint>(MeasuredPoints().begin(), MeasuredPoints().end()));
  return field;
}

}  // namespace servecast
