// See answer.h.
#include "calibrate/answer.h"

#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "calibrate/pack.h"
#include "calibrate/pack_json.h"
#include "calibrate/verdict.h"

namespace servecast {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered Texts(const std::vector<std::string>& texts) {
  Ordered list = Ordered::array();
  for (const std::string& text : texts) list.push_back(Printable(text));
  return list;
}

Ordered Named(const CalibrationParameter& p, double before) {
  return {{"path", p.path}, {"title", p.title}, {"of", p.of},
          {"unit", p.unit}, {"before", before}, {"told_by", p.told_by}};
}

// In the order of the table of constants, fitted or not.
Ordered ParametersOf(const Calibration& calibration, const Scenario& scenario) {
  Ordered list = Ordered::array();
  for (const CalibrationParameter& parameter : CalibrationParametersOf(scenario)) {
    for (const FittedParameter& p : calibration.fitted) {
      if (p.parameter != &parameter) continue;
      Ordered row = Named(parameter, p.before);
      row.update({{"value", p.value},
                  {"low", p.low},
                  {"high", p.high},
                  {"half", HalfIntervalOf(p)},
                  {"told", WordOf(ToldOf(p))}});
      list.push_back(std::move(row));
    }
    for (const UnknownParameter& p : calibration.unknown) {
      if (p.parameter != &parameter) continue;
      Ordered row = Named(parameter, p.value);
      row.update({{"value", nullptr},
                  {"told", WordOf(Told::kNot)},
                  {"like", p.like == nullptr ? Ordered() : Ordered(p.like->title)}});
      list.push_back(std::move(row));
    }
  }
  return list;
}

Ordered ErrorsOf(const Calibration& calibration) {
  Ordered list = Ordered::array();
  const auto off = [](const CalibrationError::Off& o) {
    return Ordered{{"mean", o.mean}, {"median", o.median}, {"max", o.most}};
  };
  for (const CalibrationError& e : calibration.errors) {
    list.push_back({{"of", WordOf(e.form)},
                    {"figure", WordOf(e.figure)},
                    {"held_out", e.held_out},
                    {"points", e.points},
                    {"before", off(e.before)},
                    {"after", off(e.after)}});
  }
  return list;
}

Ordered PointsOf(const Calibration& calibration) {
  Ordered list = Ordered::array();
  for (const PointResidual& r : calibration.residuals) {
    list.push_back({{"label", Printable(r.label)},
                    {"of", WordOf(r.form)},
                    {"figure", WordOf(r.figure)},
                    {"held_out", r.held_out},
                    {"at", r.at},
                    {"context", r.context},
                    {"measured_ms", r.measured_ms},
                    {"before_ms", r.before_ms},
                    {"after_ms", r.after_ms}});
  }
  return list;
}

Ordered ReplaysOf(const Calibration& calibration) {
  Ordered list = Ordered::array();
  for (const RunReplay& replay : calibration.replays) {
    list.push_back({{"label", Printable(replay.label)},
                    {"held_out", replay.held_out},
                    {"figures", ReplayJson(replay.before, replay.after)}});
  }
  return list;
}

Ordered AdviceOf(const MeasurementAdvice& advice) {
  Ordered measurements = Ordered::array(), expected = Ordered::array();
  for (const AdvisedMeasurement& m : advice.measurements) {
    measurements.push_back(
        {{"command", Printable(m.command)}, {"what", m.what}, {"tells", m.tells}});
  }
  const auto maybe = [](std::optional<double> half) { return half ? Ordered(*half) : Ordered(); };
  for (const MeasurementAdvice::Expected& e : advice.expected) {
    expected.push_back({{"title", e.parameter->title},
                        {"unit", e.parameter->unit},
                        {"now", maybe(e.now)},
                        {"then", maybe(e.then)}});
  }
  return {{"measurements", std::move(measurements)}, {"expected", std::move(expected)}};
}

}  // namespace

std::string AdviceJson(const MeasurementAdvice& advice) { return AdviceOf(advice).dump(); }

std::string CalibrationJson(const Calibration& calibration, const Measurements& measurements,
                            const Scenario& scenario, const std::string& document,
                            const MeasurementAdvice& advice, const std::string& date) {
  constexpr const char* kStates[] = {"good", "partly", "poor"};
  const PackOrigin origin = OriginOf(scenario, measurements, date);
  const CalibrationVerdict verdict = VerdictOf(calibration, measurements, origin);
  const std::string pack = PackJson(calibration, origin);
  const Result<CalibrationPack> read = ReadPack(pack);
  const Result<std::string> used =
      read.ok() ? CalibratedDocument(document, read.value()) : Result<std::string>(read.issues());
  const Ordered answer = {{"state", kStates[static_cast<std::size_t>(verdict.state)]},
                          {"sentence", verdict.sentence},
                          {"detail", verdict.detail},
                          {"parameters", ParametersOf(calibration, scenario)},
                          {"errors", ErrorsOf(calibration)},
                          {"points", PointsOf(calibration)},
                          {"replays", ReplaysOf(calibration)},
                          {"warnings", Texts(calibration.warnings)},
                          {"advice", AdviceOf(advice)},
                          {"pack", pack + "\n"},
                          {"document", used.ok() ? used.value() : ""}};
  return answer.dump(-1, ' ', false, Ordered::error_handler_t::replace);
}

}  // namespace servecast
