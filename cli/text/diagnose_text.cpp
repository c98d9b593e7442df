// servecast diagnose for a person: what was measured beside the forecast, then what explains it.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "text/figures.h"
#include "text/table.h"
#include "text/texts.h"

namespace servecast {
namespace {

std::string Value(View figure, View value) {
  return figure["unit"].Words() == "ms" ? Milliseconds(value) : FigureText(value);
}

std::string Band(View figure) {
  if (!figure["low"].Number()) return "";
  if (figure["unit"].Words() == "ms") return MillisecondRange(figure["low"], figure["high"]);
  return FigureText(figure["low"]) + " to " + FigureText(figure["high"]);
}

// "+63 %".
std::string More(View figure) {
  if (!figure["more"].Number()) return "";
  const double percent = std::nearbyint(100 * *figure["more"].Number());
  return fmt::format("{}{:.0f} %", percent < 0 ? "-" : "+", std::fabs(percent));
}

std::vector<Cell> RowOfMeasured(View figure, const Style& style) {
  Cell judged("");
  if (!figure["counts"].Truth()) {
    judged = Cell("shown only", Tone::kQuiet);
  } else if (figure["low"].Number()) {
    const bool outside = figure["outside"].Truth();
    const Tone tone = outside ? Tone::kBad : Tone::kGood;
    judged = Cell(style.Mark(tone) + (outside ? " outside" : " within"), tone);
  }
  return {figure["words"].Words(),
          Value(figure, figure["measured"]),
          Value(figure, figure["forecast"]),
          Band(figure),
          More(figure),
          judged};
}

std::string Left(View cause) { return WholePercent(cause["left"].NumberOr(0)); }

// What was run and explains little: "prefix caching is off 33 %, ...".
std::string Others(View answer) {
  std::string text;
  for (const View each : answer["alone"].Elements()) {
    if (each["issues"].Is() || each["explains"].Truth()) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", each["cause"].Words(), Left(each));
  }
  return text;
}

std::string Explaining(View answer) {
  std::string text;
  for (const View each : answer["alone"].Elements()) {
    if (!each["explains"].Truth()) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", each["cause"].Words(), Left(each));
  }
  return text;
}

std::string Causes(View answer, const Style& style) {
  if (answer["alone"].Elements().empty()) return "";
  std::string out = fmt::format("\nCauses, each run; mean distance left of {}\n",
                                WholePercent(answer["distance"].NumberOr(0)));
  Table table("rlr");
  table.Row({"", "", "left"});
  int number = 0;
  for (const View each : answer["causes"].Elements()) {
    table.Row({fmt::format("{}", ++number), (number > 1 ? "and " : "") + each["cause"].Words(),
               Left(each)});
    table.Row({"", Cell(each["proof"].Words(), Tone::kQuiet), ""});
  }
  if (number > 0) out += table.Text(style);
  const std::string alone = Explaining(answer), others = Others(answer);
  if (!alone.empty()) out += Wrapped(style, "  ", "Alone: " + alone + ".");
  if (!others.empty()) out += Wrapped(style, "  ", "Explain little: " + others + ".");
  return out;
}

}  // namespace

std::string DiagnoseText(View answer, const Style& style) {
  std::string out = Wrapped(style, "", answer["sentence"].Words());
  if (!answer["detail"].Words().empty()) out += Wrapped(style, "", answer["detail"].Words());
  for (const View check : answer["checks"].Elements()) {
    const Tone tone = check["differs"].Truth() ? Tone::kBad : Tone::kGood;
    out += Wrapped(style, style.Mark(tone) + " ", check["sentence"].Words());
  }
  Table table("lrrrrl");
  table.Row({"", "measured", "forecast", "90 % band", "", ""});
  for (const View figure : answer["figures"].Elements()) table.Row(RowOfMeasured(figure, style));
  if (!table.empty()) out += "\n" + table.Text(style);
  return out + Causes(answer, style);
}

}  // namespace servecast
