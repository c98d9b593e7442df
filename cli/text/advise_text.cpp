// servecast advise for a person: each change beside what there is.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "export/targets.h"
#include "metrics/words.h"
#include "text/figures.h"
#include "text/table.h"
#include "text/texts.h"

namespace servecast {
namespace {

// "14.9 of 20 ms", "980 ms of 1.5 s".
std::string PartOfLimit(double value_ms, double limit_ms) {
  std::string value = MeasuredMs(value_ms);
  const std::string limit = Ms(limit_ms);
  const std::size_t blank = value.rfind(' ');
  if (value.substr(blank) == limit.substr(limit.rfind(' '))) value.resize(blank);
  return value + " of " + limit;
}

// The target that is closest to its limit in `change`, as of the values of advice.
std::string ClosestTarget(View change) {
  std::optional<std::pair<double, double>> most;
  std::string text;
  for (const View target : change["slo"].Elements()) {
    const View value = target["value_ms"], limit = target["limit_ms"];
    if (!value.Number() || !limit.Number()) continue;
    // As the sentence has it: the least sure by whole per cent, then the most strained.
    const std::pair of(-std::round(100 * target["band"]["probability"].NumberOr(0)),
                       *value.Number() / *limit.Number());
    if (most && of <= *most) continue;
    most = of;
    text = PartOfLimit(*value.Number(), *limit.Number());
  }
  return text;
}

// By how much the latency is less, or more is served.
std::string EffectText(double effect, bool more) {
  const std::string size = Percent(std::fabs(effect));
  if (size == "0 %") return "=";
  return ((effect > 0) == more ? "+" : "-") + size;
}

std::vector<Cell> ChangeRow(View change, const std::string& number, bool more, const Style& style) {
  if (change["issues"].Is()) {
    return {number, change["change"].Words(), "", "", "", "", Cell("not run", Tone::kQuiet)};
  }
  const bool overloaded = change["overloaded"].Truth(), meets = change["meets"].Truth();
  const std::optional<double> sure = change["probability"].Number();
  const Tone tone = meets                 ? Tone::kGood
                    : sure && !overloaded ? ToneOfProbability(*sure)
                                          : Tone::kBad;
  const std::string word = overloaded ? "overloaded"
                           : sure     ? ProbabilityText(*sure)
                           : meets    ? "meets"
                                      : "no";
  return {number,
          change["change"].Words(),
          ShortNumber(change["gpus"].NumberOr(0)),
          DollarText(change["cost_per_hour"]),
          number.empty() ? "" : EffectText(change["effect"].NumberOr(0), more),
          ClosestTarget(change),
          Cell(style.Mark(tone) + " " + word, tone)};
}

}  // namespace

std::string AdviseText(View answer, const Style& style, const std::string& shown) {
  std::string out = Wrapped(style, "", answer["answer"].Words()) + "\n";
  const bool overloaded = answer["base"]["overloaded"].Truth();
  Table table("rmrrrrl");
  table.Row({"", "change", "GPUs", "$/h", overloaded ? "served" : "latency", "closest target",
             answer["base"]["probability"].Number() ? "sure" : "targets"});
  table.Row(ChangeRow(answer["base"], "", overloaded, style));
  int number = 0;
  std::string set, untested, refused;
  for (const View change : answer["changes"].Elements()) {
    table.Row(ChangeRow(change, fmt::format("{}", ++number), overloaded, style));
    if (change["issues"].Is()) {
      refused += Wrapped(style, "  ",
                         fmt::format("{} not run: {}", number, change["issues"].At(0).Words()));
    }
    if (change["evidence"].Words() == "untested") {
      untested += (untested.empty() ? "" : ", ") + std::to_string(number);
    }
    if (number > 1) continue;
    for (const View each : change["set"].Elements()) set += " --set " + ShellWord(each.Words());
  }
  out += table.Text(style);
  if (!untested.empty()) {
    out += Wrapped(style, "  ", "Untested, no server like these was measured: " + untested);
  }
  if (number > 1) {
    out += Wrapped(style, "  ", "Changes below the first rest on a fifth of its runs.");
  }
  out += refused + "\n";
  return out + NextLines(style, {{"run", "with the first of them"}}, shown + set);
}

}  // namespace servecast
