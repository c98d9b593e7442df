// What a diagnosis found, in words and as JSON (see diagnosis.h).
#include <algorithm>
#include <cmath>
#include <string>

#include "base/math.h"
#include "base/text.h"
#include "experiment/diagnosis.h"
#include "io/json_writer.h"
#include "metrics/words.h"

namespace servecast {
namespace {

// A mean of logarithms as a share: 0.29 is 33 %.
double Apart(double distance) { return Exp(distance) - 1; }

std::string PercentOf(double share) {
  const double percent = std::min(100 * share, 1e9);
  return percent >= 9.95 ? Format("{} %", static_cast<std::int64_t>(std::nearbyint(percent)))
                         : ThreeDigits(std::nearbyint(10 * percent) / 10).substr(0, 3) + " %";
}

std::string ValueText(const ServerFigure& figure, double value) {
  return figure.is_latency ? MeasuredMs(value) : ThreeDigits(value);
}

// "51.3 to 110 ms"; "51.3 ms and more".
std::string BandText(const ServerFigure& figure, const ForecastFigure& of) {
  const std::string low = ValueText(figure, *of.low);
  if (!of.high) return low + " and more";
  const std::string high = ValueText(figure, *of.high);
  const std::size_t blank = low.rfind(' '), unit = high.rfind(' ');
  const bool same = blank != std::string::npos && low.substr(blank) == high.substr(unit);
  return (same ? low.substr(0, blank) : low) + " to " + high;
}

// The figure that is farthest from its forecast: of those outside their bands, where there is one.
std::optional<std::size_t> Farthest(const DiagnosisFindings& found) {
  std::optional<std::size_t> farthest;
  double most = -1;
  const bool differs = found.state == DiagnosisState::kDiffers;
  for (std::size_t i = 0; i < found.figures.size(); ++i) {
    const std::optional<double>& value = found.forecasts[i].value;
    if (!value || !found.figures[i].counts || (differs && !found.IsOutside(i))) continue;
    const double apart = std::fabs(Log(found.figures[i].measured / *value));
    if (apart > most) most = apart, farthest = i;
  }
  return farthest;
}

// "TTFT mean is 122 ms, 63 % above the forecast of 75.1 ms (51.3 to 110 ms)".
std::string FigureSentence(const DiagnosisFindings& found, std::size_t i) {
  const ServerFigure& figure = found.figures[i];
  const ForecastFigure& of = found.forecasts[i];
  const double more = figure.measured / *of.value - 1;
  std::string text =
      Format("{} {} {}, {} {} the forecast of {}", figure.words, figure.is_latency ? "is" : "are",
             ValueText(figure, figure.measured), PercentOf(std::fabs(more)),
             more < 0 ? "below" : "above", ValueText(figure, *of.value));
  if (of.low) text += Format(" ({})", BandText(figure, of));
  return text;
}

// "TTFT mean, TTFT p99".
std::string Names(const DiagnosisFindings& found, bool outside) {
  std::string names;
  for (std::size_t i = 0; i < found.figures.size(); ++i) {
    if (!found.figures[i].counts || !found.forecasts[i].low || found.IsOutside(i) != outside)
      continue;
    names += (names.empty() ? "" : ", ") + found.figures[i].words;
  }
  return names;
}

std::string SpeedText(const DiagnosisFindings& found) {
  bool above = false, below = false;
  for (std::size_t i = 0; i < found.figures.size(); ++i) {
    if (!found.IsOutside(i)) continue;
    const bool more = found.figures[i].measured > *found.forecasts[i].value;
    (more == found.figures[i].is_latency ? above : below) = true;
  }
  if (above && below) return "differs from its forecast";
  return above ? "is slower than its forecast" : "is faster than its forecast";
}

std::string ChainText(const DiagnosisFindings& found) {
  std::string text;
  for (std::size_t i = 0; i < found.chain.size(); ++i) {
    const bool last = i + 1 == found.chain.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + found.chain[i].cause.words;
  }
  return text;
}

std::string MostLikely(const DiagnosisFindings& found) {
  if (found.chain.empty()) {
    return found.alone.empty()
               ? ""
               : Format(" None of the {} causes that were run explains it.", found.alone.size());
  }
  return Format(" Most likely: {}. {} of a difference of {} is left then.", ChainText(found),
                PercentOf(Apart(found.chain.back().distance)), PercentOf(Apart(found.distance)));
}

std::string Sentence(const DiagnosisFindings& found) {
  const std::optional<std::size_t> farthest = Farthest(found);
  switch (found.state) {
    case DiagnosisState::kAgrees:
      return "The server does what its forecast says: every figure lies within its 90 % band.";
    case DiagnosisState::kDiffers:
      return Format("The server {}: {}.{}", SpeedText(found), FigureSentence(found, *farthest),
                    MostLikely(found));
    case DiagnosisState::kNotJudged:
      if (!farthest) return "The forecast has none of the figures that were measured.";
      return Format("How far off such forecasts are is not known: {}.{}",
                    FigureSentence(found, *farthest), MostLikely(found));
    case DiagnosisState::kNothingMeasured:
      break;
  }
  const auto differs = std::find_if(found.checks.begin(), found.checks.end(),
                                    [](const PlanCheck& check) { return check.differs; });
  if (differs != found.checks.end()) return differs->sentence;
  return found.checks.empty()
             ? "The texts say no latency and no rate that stands beside a forecast."
             : "What the texts say of the server is as planned; they have no latency and no rate.";
}

// Where the two part, and where not.
std::string Detail(const DiagnosisFindings& found) {
  const std::string outside = Names(found, true), within = Names(found, false);
  if (outside.empty()) return "";
  return Format("Outside of the 90 % band: {}.{}", outside,
                within.empty() ? std::string() : Format(" Within: {}.", within));
}

class DiagnosisWriter {
 public:
  DiagnosisWriter(const DiagnosisFindings& found, bool with_documents)
      : found_(found), with_documents_(with_documents), out_(!with_documents) {}

  std::string Write(const Scenario& scenario) {
    out_.BeginObject();
    out_.Key("state"), out_.Text(WordOf(found_.state));
    out_.Key("sentence"), out_.Text(Sentence(found_));
    out_.Key("detail"), out_.Text(Detail(found_));
    out_.Key("scenario"), out_.Text(scenario.name);
    out_.Key("distance"), out_.Number(Apart(found_.distance));
    out_.Key("runs"), out_.Integer(found_.runs);
    out_.Key("requests_per_run"), out_.Integer(found_.requests_per_run);
    out_.Key("figures"), out_.BeginArray();
    for (std::size_t i = 0; i < found_.forecasts.size(); ++i) WriteFigure(i);
    out_.EndArray();
    out_.Key("checks"), out_.BeginArray();
    for (const PlanCheck& check : found_.checks) WriteCheck(check);
    out_.EndArray();
    WriteCauses("causes", found_.chain);
    WriteCauses("alone", found_.alone);
    out_.EndObject();
    return out_.Take();
  }

 private:
  void Number(std::string_view key, const std::optional<double>& value) {
    out_.Key(key), value ? out_.Number(*value) : out_.Null();
  }

  void WriteFigure(std::size_t i) {
    const ServerFigure& figure = found_.figures[i];
    const ForecastFigure& of = found_.forecasts[i];
    out_.BeginObject();
    out_.Key("name"), out_.Text(figure.name);
    out_.Key("words"), out_.Text(figure.words);
    out_.Key("unit"), out_.Text(figure.is_latency ? "ms" : "1/s");
    out_.Key("measured"), out_.Number(figure.measured);
    Number("forecast", of.value);
    Number("low", of.low);
    Number("high", of.high);
    Number("more", of.value ? std::optional(figure.measured / *of.value - 1) : std::nullopt);
    out_.Key("counts"), out_.Boolean(figure.counts);
    out_.Key("outside");
    figure.counts&& of.low ? out_.Boolean(found_.IsOutside(i)) : out_.Null();
    out_.EndObject();
  }

  void WriteCheck(const PlanCheck& check) {
    out_.BeginObject();
    out_.Key("name"), out_.Text(check.name);
    out_.Key("words"), out_.Text(check.words);
    out_.Key("said"), out_.Number(check.said);
    out_.Key("planned"), out_.Number(check.planned);
    out_.Key("differs"), out_.Boolean(check.differs);
    out_.Key("sentence"), out_.Text(check.sentence);
    out_.EndObject();
  }

  void WriteCauses(std::string_view key, const std::vector<TriedCause>& causes) {
    out_.Key(key), out_.BeginArray();
    for (const TriedCause& each : causes) {
      out_.BeginObject();
      out_.Key("cause"), out_.Text(each.cause.words);
      out_.Key("proof"), out_.Text(each.cause.proof);
      out_.Key("set"), out_.BeginArray();
      for (const std::string& text : each.cause.overrides) out_.Text(text);
      out_.EndArray();
      if (with_documents_) out_.Key("document"), out_.Text(each.document);
      if (each.issues.empty()) {
        WriteAnswer(each);
      } else {
        out_.Key("issues"), out_.BeginArray();
        for (const Issue& issue : each.issues) out_.Text(issue.path + ": " + issue.message);
        out_.EndArray();
      }
      out_.EndObject();
    }
    out_.EndArray();
  }

  void WriteAnswer(const TriedCause& each) {
    out_.Key("left"), out_.Number(Apart(each.distance));
    out_.Key("explains"), out_.Boolean(each.distance <= (1 - kExplains) * found_.distance);
    out_.Key("figures"), out_.BeginArray();
    for (const auto& value : each.figures) value ? out_.Number(*value) : out_.Null();
    out_.EndArray();
  }

  const DiagnosisFindings& found_;
  const bool with_documents_;
  JsonWriter out_;
};

}  // namespace

std::string DiagnosisJson(const DiagnosisFindings& findings, const Scenario& scenario,
                          bool with_documents) {
  return DiagnosisWriter(findings, with_documents).Write(scenario);
}

}  // namespace servecast
