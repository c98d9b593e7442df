// See root_finder.h.
#include "plan/root_finder.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "plan/strain.h"

namespace servecast {
namespace {

constexpr double kNearby = 0.02;    // to 1, of a strain; and between places where one is infinite
constexpr double kShortest = 0.04;  // of one step beyond what is known: closer places are alike
constexpr double kLongest = 0.25;
constexpr double kAlike = 0.01;  // between two whole loads: nothing is asked between them
constexpr double kLeastSlope = 0.5, kMostSlope = 30;

bool Finite(const Sample& s) { return std::isfinite(s.strain); }

// Growth of log strain from one sample to the next.
std::optional<double> GrowthFrom(const Slope& slope, const std::vector<Sample>& samples,
                                 std::size_t i) {
  if (i + 1 >= samples.size()) return std::nullopt;
  const Sample &a = samples[i], &b = samples[i + 1];
  if (!Finite(a) || !Finite(b)) return std::nullopt;
  const double run = slope.Along(b.at) - slope.Along(a.at);
  return std::clamp((LogOf(b.strain) - LogOf(a.strain)) / run, kLeastSlope, kMostSlope);
}

// A place in (lighter, heavier) of them, or nothing if there is none.
std::optional<double> Between(const Slope& slope, const Sample& a, const Sample& b, double along) {
  const double place = slope.PlaceAt(along);
  if (!slope.Lighter(a.at, place) || !slope.Lighter(place, b.at)) return std::nullopt;
  return place;
}

std::optional<double> Beyond(const Slope& slope, double from, double along) {
  double place = slope.PlaceAt(along);
  if (place == from && slope.line().step > 0) {
    const bool heavier = along > slope.Along(from);
    const double step = slope.line().step * (heavier == slope.line().relieves ? -1 : 1);
    place = std::clamp(from + step, slope.line().least, slope.line().most);
  }
  if (place == from) return std::nullopt;
  return place;
}

}  // namespace

double Slope::Along(double at) const { return line_.relieves ? -Log(at) : Log(at); }

double Slope::PlaceAt(double along) const {
  double at = Exp(line_.relieves ? -along : along);
  if (line_.step > 0) at = line_.step * std::nearbyint(at / line_.step);
  return std::clamp(at, line_.least, line_.most);
}

int LastWithin(const std::vector<Sample>& samples) {
  int last = -1;
  for (const Sample& s : samples) {
    if (s.strain > 1) break;
    ++last;
  }
  return last;
}

std::optional<double> NextScout(const Slope& slope, const std::vector<Sample>& samples,
                                double ratio, double first_step) {
  if (samples.empty()) return slope.PlaceAt(slope.Along(slope.line().own));
  const int last = LastWithin(samples);
  const auto own = slope.Along(slope.line().own);
  if (last + 1 == static_cast<int>(samples.size())) {  // on, by ever larger steps
    const double along = slope.Along(samples.back().at);
    return Beyond(slope, samples.back().at, along + std::max(Log(first_step), along - own));
  }
  if (last < 0) {
    const double along = slope.Along(samples.front().at);
    return Beyond(slope, samples.front().at, along - std::max(Log(first_step), own - along));
  }
  const Sample &a = samples[static_cast<std::size_t>(last)],
               &b = samples[static_cast<std::size_t>(last) + 1];
  const double from = slope.Along(a.at), to = slope.Along(b.at);
  if (to - from <= Log(ratio)) return std::nullopt;
  return Between(slope, a, b, (from + to) / 2);
}

bool Hopeless(const Slope& slope, const std::vector<Sample>& samples) {
  if (LastWithin(samples) >= 0 || samples.empty()) return false;
  if (slope.Along(samples.back().at) - slope.Along(samples.front().at) > Log(30.0)) return true;
  const Sample *light = nullptr, *heavy = nullptr;
  for (const Sample& s : samples) {
    if (!Finite(s)) break;
    if (light == nullptr) light = &s;
    heavy = &s;
  }
  if (light == nullptr) return false;
  const double apart = slope.Along(heavy->at) - slope.Along(light->at);
  if (apart < Log(1.9)) return false;
  const double falls = (LogOf(heavy->strain) - LogOf(light->strain)) / apart;
  return LogOf(light->strain) > falls * Log(16.0) || apart > Log(16.0);
}

std::optional<double> NextSample(const Slope& slope, const std::vector<Sample>& samples,
                                 double growth, double straight) {
  const int last = LastWithin(samples);
  if (last < 0 || last + 1 == static_cast<int>(samples.size())) {
    const bool heavy_end = last >= 0;
    const std::size_t first = heavy_end && samples.size() > 1 ? samples.size() - 2 : 0;
    const Sample& end = heavy_end ? samples.back() : samples.front();
    growth = GrowthFrom(slope, samples, first).value_or(growth);
    const double step = Finite(end) ? std::fabs(LogOf(end.strain)) / growth : kLongest / 3;
    const bool whole = slope.line().step > 0;
    const double by = std::clamp(1.2 * step, whole ? kNearby : kShortest, kLongest);
    return Beyond(slope, end.at, slope.Along(end.at) + (heavy_end ? by : -by));
  }
  const Sample &a = samples[static_cast<std::size_t>(last)],
               &b = samples[static_cast<std::size_t>(last) + 1];
  const double from = slope.Along(a.at), to = slope.Along(b.at);
  if (slope.line().step > 0) {
    if (!slope.line().relieves && to - from <= kAlike) return std::nullopt;
    if (!Finite(b)) return Between(slope, a, b, (from + to) / 2);
    const double share = -LogOf(a.strain) / (LogOf(b.strain) - LogOf(a.strain));
    const auto guess = Between(slope, a, b, from + std::clamp(share, 0.1, 0.9) * (to - from));
    return guess ? guess : Between(slope, a, b, (from + to) / 2);
  }
  if (!Finite(b)) {
    return to - from > kNearby ? Between(slope, a, b, (from + to) / 2) : std::nullopt;
  }
  const bool touches = LogOf(a.strain) > -kNearby || LogOf(b.strain) < kNearby;
  if (to - from <= straight || touches) return std::nullopt;
  const double share = -LogOf(a.strain) / (LogOf(b.strain) - LogOf(a.strain));
  return Between(slope, a, b, from + std::clamp(share, 0.15, 0.85) * (to - from));
}

double CrossingOf(const Slope& slope, const std::vector<Sample>& samples) {
  const int last = LastWithin(samples);
  if (last < 0) return samples.front().at;
  const Sample& a = samples[static_cast<std::size_t>(last)];
  if (slope.line().step > 0 || last + 1 == static_cast<int>(samples.size())) return a.at;
  const Sample& b = samples[static_cast<std::size_t>(last) + 1];
  const double from = slope.Along(a.at), to = slope.Along(b.at);
  const double share = Finite(b) ? -LogOf(a.strain) / (LogOf(b.strain) - LogOf(a.strain)) : 0.5;
  return Exp((slope.line().relieves ? -1 : 1) * (from + share * (to - from)));
}

std::optional<double> GrowthAround(const Slope& slope, const std::vector<Sample>& samples) {
  const int last = LastWithin(samples);
  for (const int i : {last, last - 1, last + 1}) {
    if (i < 0) continue;
    if (const auto growth = GrowthFrom(slope, samples, static_cast<std::size_t>(i))) return growth;
  }
  return std::nullopt;
}

}  // namespace servecast
