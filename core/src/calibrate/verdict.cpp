// See verdict.h.
#include "calibrate/verdict.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "base/text.h"

namespace servecast {
namespace {

// Per cent, in the median of what was held out; where nothing was, of what was fitted.
constexpr double kGood = 5, kPartly = 15;

struct Load {
  double rate_per_s = 0, clients = 0;
  bool runs = false, bursts = false;
};

Load LoadSeen(const std::vector<CalibrationPoint>& points) {
  Load load;
  for (const CalibrationPoint& point : points) {
    if (point.held_out || !point.run) continue;
    load.runs = true;
    load.rate_per_s = std::max(load.rate_per_s, point.run->rate_per_s);
    const auto clients = static_cast<double>(point.run->concurrency.value_or(0));
    load.clients = std::max(load.clients, clients);
  }
  return load;
}

std::string LoadText(const Load& load, std::int64_t replicas) {
  if (!load.runs) return "for single prompts and decode steps, not for load";
  std::string text;
  if (load.rate_per_s > 0) {
    text = Format("up to {} requests/s", ShortNumber(load.rate_per_s));
  }
  if (load.clients > 0) {
    text += Format("{}with up to {} client{} at a time", text.empty() ? "" : ", and ",
                   ShortNumber(load.clients), load.clients == 1 ? "" : "s");
  }
  if (text.empty()) text = "for the arrivals that were measured";
  return replicas > 1 ? Format("{} over {} replicas", text, replicas) : text;
}

// The one to go by: of runs before steps and prompts, TPOT before E2E before TTFT.
const CalibrationError* MainError(const std::vector<CalibrationError>& errors, bool held_out) {
  const CalibrationError* best = nullptr;
  const auto rank = [](const CalibrationError& e) {
    const int figure = e.figure == Figure::kTpot ? 0 : e.figure == Figure::kE2e ? 1 : 2;
    return figure + (e.form == PointForm::kRun ? 0 : 3);
  };
  for (const CalibrationError& e : errors) {
    if (e.held_out != held_out) continue;
    if (best == nullptr || rank(e) < rank(*best)) best = &e;
  }
  return best;
}

std::string PercentText(double percent) {
  const double shown = percent < 10 ? std::nearbyint(percent * 10) / 10 : std::nearbyint(percent);
  return ShortNumber(shown) + " %";
}

const char* Title(Figure figure) {
  return figure == Figure::kTpot ? "TPOT" : figure == Figure::kE2e ? "E2E" : "TTFT";
}

}  // namespace

const char* WordOf(Told told) {
  constexpr const char* kWords[] = {"found", "weak", "cannot tell", "at its limit"};
  return kWords[static_cast<std::size_t>(told)];
}

double HalfIntervalOf(const FittedParameter& p) {
  const double of =
      p.parameter->inverse ? p.value : std::max(p.value, static_cast<double>(p.parameter->coarse));
  return (p.high - p.low) / 2 / of;
}

Told ToldOf(const FittedParameter& p) {
  constexpr double kFound = 0.1, kWeak = 0.2;
  if (p.at_limit) return Told::kAtLimit;
  const double half = HalfIntervalOf(p);
  return half < kFound ? Told::kFound : half < kWeak ? Told::kWeak : Told::kNot;
}

CalibrationVerdict VerdictOf(const Calibration& calibration, const Measurements& measurements,
                             const PackOrigin& origin) {
  CalibrationVerdict verdict;
  const Load load = LoadSeen(measurements.points);
  const CalibrationError* fitted = MainError(calibration.errors, false);
  const CalibrationError* held_out = MainError(calibration.errors, true);
  std::string text = Format("{} calibrate{} {} on {} {}",
                            measurements.found.size() == 1 ? "This file" : "These files",
                            measurements.found.size() == 1 ? "s" : "", Printable(origin.model),
                            Printable(origin.gpu), LoadText(load, calibration.replicas));
  if (fitted != nullptr) {
    text += Format(": {} within {} on what was fitted", Title(fitted->figure),
                   PercentText(fitted->after.most));
  }
  if (held_out != nullptr) {
    text += Format(", {} off in the median on what was not", PercentText(held_out->after.median));
  }
  verdict.sentence = text + ".";
  const CalibrationError* judge = held_out != nullptr ? held_out : fitted;
  const double off = judge == nullptr ? 100 : judge->after.median;
  const bool limited = std::any_of(calibration.fitted.begin(), calibration.fitted.end(),
                                   [](const FittedParameter& p) { return p.at_limit; });
  verdict.state = off > kPartly ? CalibrationState::kPoor
                  : off <= kGood && load.runs && held_out != nullptr && !limited
                      ? CalibrationState::kGood
                      : CalibrationState::kPartly;
  // Each beside its like: the most with the most, the median with the median.
  if (fitted != nullptr) {
    verdict.detail =
        Format("Before: {} within {}", Title(fitted->figure), PercentText(fitted->before.most));
  }
  if (held_out != nullptr) {
    verdict.detail +=
        Format("{}{} off in the median on what was not",
               fitted != nullptr ? ", " : "Before: ", PercentText(held_out->before.median));
  }
  if (judge != nullptr) verdict.detail += ".";
  const auto add = [&verdict](std::string_view more) {
    verdict.detail += Format("{}{}", verdict.detail.empty() ? "" : " ", more);
  };
  if (!load.runs) add("No file has a run under load, so they cannot say how much slower it gets.");
  if (held_out == nullptr) add("Nothing was held out: how far off it is elsewhere is not known.");
  if (limited) add("A constant ends at its limit: something is slower than the model knows.");
  return verdict;
}

}  // namespace servecast
