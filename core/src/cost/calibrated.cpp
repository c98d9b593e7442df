// See calibrated.h.
#include "cost/calibrated.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/printable.h"
#include "base/text.h"
#include "cost/compared.h"
#include "cost/fitted_constants.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

using Error = CalibrationSpec::Error;
using Range = CalibrationSpec::Range;

// Beyond this median error no verdict would hold (as of what was compared).
constexpr double kKnownBadPercent = 25;

const Range* SeenOf(const CalibrationSpec& c, std::string_view of) {
  for (const Range& range : c.seen) {
    if (range.of == of) return &range;
  }
  return nullptr;
}

// Of a distribution as far as it says so; else nothing.
std::optional<Range> RangeOf(const LengthSpec& lengths) {
  const auto range = [](auto low, auto high) {
    return Range{"", static_cast<double>(low), static_cast<double>(high)};
  };
  switch (lengths.distribution) {
    case LengthDistribution::kFixed:
      return range(lengths.value, lengths.value);
    case LengthDistribution::kUniform:
      return range(lengths.min, lengths.max.value_or(lengths.min));
    case LengthDistribution::kLognormal:
      return range(lengths.median, lengths.p99);
    default:
      return std::nullopt;
  }
}

void CheckLengths(const CalibrationSpec& c, std::string_view of, const std::string& what,
                  const LengthSpec& lengths, std::vector<std::string>& lines) {
  const Range* seen = SeenOf(c, of);
  const std::optional<Range> ours = RangeOf(lengths);
  if (seen == nullptr || !ours || (ours->low >= seen->low && ours->high <= seen->high)) return;
  const std::string range = ours->low == ours->high
                                ? ShortNumber(ours->low)
                                : ShortNumber(ours->low) + " to " + ShortNumber(ours->high);
  lines.push_back(Format(
      "{} with {} tokens lie outside of what was measured, {} to {}: there the calibration is "
      "a guess.",
      what, range, ShortNumber(seen->low), ShortNumber(seen->high)));
}

void CheckLoad(const Scenario& s, std::vector<std::string>& lines) {
  const CalibrationSpec& c = s.calibration;
  const ArrivalSpec& arrivals = s.workload->arrivals;
  const bool rate = HasRate(arrivals.process);
  if (!rate && arrivals.process != ArrivalProcess::kClosedLoop) return;
  const Range* seen = SeenOf(c, rate ? "rate_per_s" : "concurrency");
  const double replicas = static_cast<double>(s.cluster.Replicas());
  // Arrivals of sessions are their first turns.
  const double all = rate ? arrivals.rate_per_s * static_cast<double>(s.workload->sessions.turns)
                          : static_cast<double>(arrivals.concurrency);
  const double each = all / replicas;
  if (seen != nullptr) {
    if (each <= seen->high) return;  // less asks nothing new of a server
    lines.push_back(
        Format("{} {} a replica are more than the {} that were measured: there the calibration is "
               "a guess.",
               ShortNumber(each), rate ? "requests/s" : "clients", ShortNumber(seen->high)));
  } else if (c.backend == "analytic") {  // traces of steps say no rate
    lines.push_back(
        Format("No run {} was measured: how much slower such load makes the server is a "
               "guess.",
               rate ? "at a rate" : "of a closed loop"));
  }
}

bool Holds(const Error& error, bool held_out, std::string_view figure) {
  return error.held_out == held_out && error.figure == figure && error.points > 0;
}

// Of what was held out where there is any, else of what was fitted; of a figure runs before steps.
// What the class goes by is first.
std::vector<const Error*> ErrorsToShow(const CalibrationSpec& c) {
  std::vector<const Error*> shown;
  for (const bool held_out : {true, false}) {
    for (const std::string_view figure : {"tpot", "e2e", "ttft", "step"}) {
      const Error* best = nullptr;
      for (const Error& e : c.errors) {
        if (!Holds(e, held_out, figure)) continue;
        if (best == nullptr || (e.of == "run" && best->of != "run")) best = &e;
      }
      if (best != nullptr && (shown.empty() || best->of == shown[0]->of)) shown.push_back(best);
    }
    if (!shown.empty()) break;
  }
  return shown;
}

std::string PercentText(double percent) {
  return ShortNumber(percent < 10 ? std::nearbyint(percent * 10) / 10 : std::nearbyint(percent)) +
         " %";
}

std::string FigureText(const Error& e) {
  const char* name = e.figure == "tpot"   ? "TPOT"
                     : e.figure == "e2e"  ? "E2E"
                     : e.figure == "ttft" ? "TTFT"
                                          : "step times";
  return Format("{} ±{}", name, PercentText(e.median));
}

// "Calibrated by the scenario's own measurements: TPOT ±1.2 % and E2E ±2 % on 14 held-out rows
// (runs)."
std::string ErrorsSentence(const std::vector<const Error*>& errors) {
  if (errors.empty())
    return "Calibrated by the scenario's own measurements; how far it is off is not said.";
  std::string figures;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    figures += i == 0 ? "" : i + 1 == errors.size() ? " and " : ", ";
    figures += FigureText(*errors[i]);
  }
  const Error& first = *errors[0];
  const char* rows = first.of == "run"    ? "runs"
                     : first.of == "step" ? "decode steps"
                                          : "single prompts";
  const char* of = first.figure == "step" ? "steps, in the mean" : rows;
  const std::string n =
      Format("{} {} row{} ({})", first.points, first.held_out ? "held-out" : "fitted",
             first.points == 1 ? "" : "s", of);
  return Format("Calibrated by the scenario's own measurements: {} on {}{}", figures, n,
                first.held_out ? "." : "; nothing was held out, so it is off by more elsewhere.");
}

std::string OriginSentence(const CalibrationSpec& c) {
  std::string text = Format("Fitted to {} row{}", c.measurements, c.measurements == 1 ? "" : "s");
  if (!c.files.empty()) text += Format(" ({})", Printable(c.files));
  if (!c.stated.empty()) text += Format(" of {}", Printable(c.stated));
  if (!c.date.empty()) text += Format(", {}", Printable(c.date));
  return text + ".";
}

// Whether a constant of it is left, or none was fitted.
bool IsInForce(const Scenario& s) {
  const CalibrationSpec& c = s.calibration;
  if (c.backend != "analytic") {
    return c.coefficients.empty() || c.coefficients == CoefficientsHash(s.latency);
  }
  return c.parameters.empty() ||
         std::any_of(c.parameters.begin(), c.parameters.end(), [&s](const auto& parameter) {
           return ConstantOf(parameter.path).read(s) == parameter.value;
         });
}

Evidence EvidenceOfCalibration(const Scenario& pool, const Scenario& scenario) {
  const CalibrationSpec& c = pool.calibration;
  const std::vector<const Error*> errors = ErrorsToShow(c);
  Evidence e;
  e.sentence = ErrorsSentence(errors) + " " + OriginSentence(c);
  e.rows = errors.empty() ? 0 : errors[0]->points;
  e.left_out = !errors.empty() && errors[0]->held_out;
  e.warnings = CalibrationMismatches(pool);
  const std::vector<std::string> beyond = BeyondCalibration(scenario);
  e.warnings.insert(e.warnings.end(), beyond.begin(), beyond.end());
  if (!errors.empty() && errors[0]->median > kKnownBadPercent) {
    e.of = EvidenceClass::kKnownBad;
    e.bad = Format("the calibration itself is {} off", PercentText(errors[0]->median));
  } else if (!errors.empty() && e.warnings.empty()) {
    e.of = EvidenceClass::kCalibrated;
    for (const Error* error : errors) {
      for (const char* figure : kComparedFigures) {
        if (error->figure == figure)
          e.errors.push_back({figure, error->median / 100, std::nullopt});
      }
    }
  }
  return e;
}

}  // namespace

std::string CoefficientsHash(const LatencySpec& latency) {
  Hasher hash;
  const auto add = [&hash](const std::vector<double>& numbers) {
    for (const double number : numbers) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      hash.Add(bits);
    }
  };
  hash.Add(std::string_view(latency.backend));
  hash.Add(std::string_view(latency.variant));
  add(latency.alpha), add(latency.beta);
  add(latency.alpha_coefficients), add(latency.beta_coefficients), add(latency.wait_coefficients);
  add({latency.preemption_gamma});
  return HashText(hash.Finish());
}

std::vector<std::string> CalibrationMismatches(const Scenario& s) {
  const CalibrationSpec& c = s.calibration;
  std::vector<std::string> lines;
  const auto name = [&lines](const char* what, const std::string& measured,
                             const std::string& ours) {
    if (measured.empty() || measured == ours) return;
    lines.push_back(Format("The calibration was measured on {} {}, the scenario has {}.", what,
                           Printable(measured), ours.empty() ? "another" : Printable(ours)));
  };
  name("model", c.model, s.model.name);
  name("GPU", c.gpu, s.hardware.name);
  name("engine", c.engine, s.engine.name);
  const std::int64_t group = s.cluster.pool().tensor_parallel;
  if (group != c.tensor_parallel) {
    lines.push_back(
        Format("The calibration was measured with tensor_parallel {}, the scenario has {}.",
               c.tensor_parallel, group));
  }
  name("a server with", c.with, FeaturesText(s));
  std::vector<std::string> changed;
  for (const CalibrationSpec::Parameter& parameter : c.parameters) {
    if (ConstantOf(parameter.path).read(s) != parameter.value) changed.push_back(parameter.path);
  }
  if (!c.coefficients.empty() && c.coefficients != CoefficientsHash(s.latency)) {
    changed.emplace_back("latency");
  }
  if (!changed.empty()) {
    lines.push_back(
        Format("{}{} changed since the calibration, which does not say how far it is "
               "off now.",
               changed[0],
               changed.size() == 1 ? " was" : Format(" and {} more were", changed.size() - 1)));
  }
  return lines;
}

std::vector<std::string> BeyondCalibration(const Scenario& s) {
  std::vector<std::string> lines;
  const WorkloadSpec& w = *s.workload;
  CheckLengths(s.calibration, "prompt_tokens", "Prompts", w.prompt_tokens, lines);
  CheckLengths(s.calibration, "output_tokens", "Outputs", w.output_tokens, lines);
  for (const ClassSpec& own : w.classes) {
    const std::string of = " of class " + Printable(own.name);
    CheckLengths(s.calibration, "prompt_tokens", "Prompts" + of, own.prompt_tokens, lines);
    CheckLengths(s.calibration, "output_tokens", "Outputs" + of, own.output_tokens, lines);
  }
  CheckLoad(s, lines);
  return lines;
}

void TakeCalibration(const Scenario& pool, const Scenario& scenario, LatencyLabel& label) {
  if (label.backend != scenario.calibration.backend) {
    label.evidence.warnings.push_back(
        Format("The scenario carries a calibration of the latency model {}, and step times are of "
               "{}: it says nothing of them.",
               scenario.calibration.backend, label.backend));
    return;
  }
  if (!IsInForce(pool)) {
    label.evidence.warnings.emplace_back(
        "The scenario carries a calibration of which no constant is left: it says nothing of it.");
    return;
  }
  label.evidence = EvidenceOfCalibration(pool, scenario);
  label.known_error = label.evidence.sentence;
}

}  // namespace servecast
