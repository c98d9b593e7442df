// See response.h. The two factors are independent; a latency is interpolated between the nodes in
// the logarithm of the latency and the normal quantile of the factor.
#include "evidence/response.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/math.h"

namespace servecast {
namespace {

// Quantiles 5, 25, 50, 75, 95 %.
constexpr std::array<double, kStepPoints> kZ = {-kZ90, -0.6744897501960817, 0, 0.6744897501960817,
                                                kZ90};
constexpr std::size_t kCentre = 1 + kStepPoints / 2, kPromptLow = 1 + kStepPoints;
// Beyond the outer nodes the response goes on as between the last two, so far.
constexpr double kFarthest = 2.6;
// Points of equal probability at which the two factors are taken.
constexpr int kStepGrid = 101, kPromptGrid = 15;
// Logarithm of a latency that grows for as long as requests come, over any limit.
constexpr double kUnbounded = 60;

double LogOf(double value) {
  if (!(value > 0)) return 0;
  return std::isfinite(value) ? Log(value) : kUnbounded;
}

double Between(double z, double z0, double y0, double z1, double y1) {
  return y0 + (y1 - y0) * (z - z0) / (z1 - z0);
}

// The logarithm of a latency where the factors are at these normal quantiles.
class Surface {
 public:
  explicit Surface(const Response& r) {
    for (std::size_t i = 0; i < kNodes; ++i) logs_[i] = LogOf(r.at[i]);
    const bool shifts = r.forecast > 0 && std::isfinite(r.forecast) && logs_[0] < kUnbounded;
    shift_ = shifts ? LogOf(r.forecast) - logs_[0] : 0;
  }

  double At(double step, double prompt) const {
    const double z = std::clamp(step, -kFarthest, kFarthest);
    std::size_t i = 0;
    while (i + 2 < kStepPoints && z > kZ[i + 1]) ++i;
    const double of_step = Between(z, kZ[i], logs_[1 + i], kZ[i + 1], logs_[2 + i]);
    const double centre = logs_[kCentre];
    const double side = prompt < 0 ? logs_[kPromptLow] : logs_[kPromptLow + 1];
    return of_step + shift_ + (side - centre) * std::fabs(prompt) / kZ90;
  }

 private:
  std::array<double, kNodes> logs_{};
  double shift_ = 0;
};

// P(rest and sampling <= x): normal on each side of zero.
double RestCdf(const Response& r, double x) {
  const double of = (x < 0 ? r.rest_low : r.rest_high) / kZ90;
  const double sd = std::sqrt(of * of + r.sampling * r.sampling);
  // Beyond eight deviations a normal tail is below the last bit.
  if (std::fabs(x) >= 8.3 * sd) return x < 0 ? 0 : 1;
  return NormalCdf(x / sd);
}

struct Grid {
  std::array<double, kStepGrid> step;
  std::array<double, kPromptGrid> prompt;
};
const Grid& GridOfFactors() {
  static const Grid grid = [] {
    Grid g{};
    for (int i = 0; i < kStepGrid; ++i) g.step[i] = NormalQuantile((i + 0.5) / kStepGrid);
    for (int i = 0; i < kPromptGrid; ++i) g.prompt[i] = NormalQuantile((i + 0.5) / kPromptGrid);
    return g;
  }();
  return grid;
}

// The mean of `of` over the factors.
template <class Function>
double MeanOverFactors(const Function& of) {
  double sum = 0;
  for (const double step : GridOfFactors().step) {
    for (const double prompt : GridOfFactors().prompt) sum += of(step, prompt);
  }
  return sum / (kStepGrid * kPromptGrid);
}

// Where that share of the mixture lies below, to 1e-10: false position as Illinois has it (Dowell
// and Jarratt, 1971), with a bisection now and then where the mixture has a gap.
double Quantile(const std::vector<double>& logs, const Response& r, double share) {
  const auto beyond = [&](double x) {
    double below = -share * static_cast<double>(logs.size());
    for (const double at : logs) below += RestCdf(r, x - at);
    return below;
  };
  const auto [least, most] = std::minmax_element(logs.begin(), logs.end());
  const double margin = 10 * (r.rest_high - r.rest_low + r.sampling) + 1e-6;
  double low = *least - margin, high = *most + margin;
  double at_low = beyond(low), at_high = beyond(high);
  bool raised_low = false, raised_high = false;
  for (int i = 1; i < 200 && high - low > 1e-10; ++i) {
    const double x =
        i % 4 == 0 ? (low + high) / 2 : low + at_low / (at_low - at_high) * (high - low);
    const double at = beyond(x);
    if (at < 0) {
      low = x, at_low = at;
      if (std::exchange(raised_low, true)) at_high /= 2;
      raised_high = false;
    } else {
      high = x, at_high = at;
      if (std::exchange(raised_high, true)) at_low /= 2;
      raised_low = false;
    }
  }
  return high;
}

}  // namespace

std::vector<ErrorFactors> NodesOf(const StepError& error, const FieldScale& scale) {
  std::vector<ErrorFactors> nodes = {{}};
  const auto step = [&error](double z) { return Exp(error.centre + z / kZ90 * error.half); };
  for (const double z : kZ) nodes.push_back({step(z), 1});
  for (const double sign : {-1.0, 1.0}) {
    nodes.push_back({step(0), Exp(sign * scale.prompt * error.half), Exp(sign * kEncodeHalf)});
  }
  return nodes;
}

void AddRest(FigureKind kind, bool first_token, bool experts, const StepError& error,
             const FieldScale& scale, Response& r) {
  const double least = kind == FigureKind::kTail ? kLeastHalfP99 : kLeastHalf;
  r.rest_low = -least;
  r.rest_high = least;
  if (!first_token) return;
  if (kind == FigureKind::kTail) {
    r.rest_low = std::min(r.rest_low, scale.p99_low[experts ? 1 : 0]);
    r.rest_high = std::max(r.rest_high, scale.p99_high[experts ? 1 : 0]);
  }
  const double strange = error.strange * scale.first_high;
  r.rest_high = std::sqrt(r.rest_high * r.rest_high + strange * strange);
}

FigureBand BandOf(const Response& r) {
  const Surface surface(r);
  std::vector<double> logs;
  MeanOverFactors([&](double step, double prompt) {
    logs.push_back(surface.At(step, prompt));
    return 0.0;
  });
  const double high = Quantile(logs, r, 0.95);
  // A low end beyond all bounds says no more than the forecast.
  const double low = Quantile(logs, r, 0.05);
  return {low > kUnbounded / 2 ? r.forecast : Exp(low),
          high > kUnbounded / 2 ? std::numeric_limits<double>::infinity() : Exp(high)};
}

double ProbabilityMet(std::span<const Response> responses) {
  std::vector<Surface> surfaces(responses.begin(), responses.end());
  return MeanOverFactors([&](double step, double prompt) {
    double all = 1;
    for (std::size_t k = 0; k < responses.size(); ++k) {
      all *= RestCdf(responses[k], LogOf(responses[k].limit) - surfaces[k].At(step, prompt));
    }
    return all;
  });
}

}  // namespace servecast
