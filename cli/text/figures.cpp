// See figures.h.
#include "text/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "metrics/words.h"
#include "servecast/error_band.h"

namespace servecast {
namespace {

// Of "26.7 ms": the digits, and the unit.
std::pair<std::string, std::string> DigitsAndUnit(const std::string& text) {
  const std::size_t blank = text.rfind(' ');
  return {text.substr(0, blank), text.substr(blank + 1)};
}

// What stays on one line of a command: words, an option with its value.
std::vector<std::string> ShellParts(std::string_view command) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') quoted = !quoted;
    const bool ends = c == ' ' && !quoted;
    const bool option =
        parts.back().starts_with("--") && parts.back().find(' ') == std::string::npos;
    if (ends && !option) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

std::string Milliseconds(View ms) { return ms.Number() ? MeasuredMs(*ms.Number()) : "-"; }

std::string MillisecondRange(View low, View high) {
  if (!low.Number()) return "";
  const std::string from = MeasuredMs(*low.Number());
  if (!high.Number()) return from + " and more";
  const std::string to = MeasuredMs(*high.Number());
  const auto [digits, unit] = DigitsAndUnit(from);
  return (unit == DigitsAndUnit(to).second ? digits : from) + " to " + to;
}

std::string ShareText(View share) { return share.Number() ? Percent(*share.Number()) : "-"; }

std::string FigureText(View number) {
  return number.Number() ? ThreeDigits(*number.Number()) : "-";
}

std::string DollarText(View number) { return number.Number() ? Dollars(*number.Number()) : "-"; }

std::string WholePercent(double share) { return ShortNumber(std::nearbyint(100 * share)) + " %"; }

std::string ProbabilityText(double probability) {
  std::string text = SureText(probability);
  for (const auto& [words, sign] : {std::pair("more than ", ">"), {"less than ", "<"}}) {
    if (text.rfind(words, 0) == 0) text = sign + text.substr(std::string_view(words).size());
  }
  return text;
}

Tone ToneOfProbability(double probability) {
  const Sureness sureness;
  if (probability >= sureness.meets) return Tone::kGood;
  return probability <= sureness.misses ? Tone::kBad : Tone::kUnsure;
}

StateLook LookOfState(std::string_view state) {
  const bool bad = state == "misses" || state == "overloaded" || state == "does_not_fit";
  const bool unsure = state == "near" || state == "not_judged" || state == "partial";
  StateLook look{std::string(state), state == "meets" ? Tone::kGood
                                     : bad            ? Tone::kBad
                                     : unsure         ? Tone::kUnsure
                                                      : Tone::kPlain};
  if (state == "near") look.word = "too close to call";
  if (state == "no_slo") look.word = "no target";
  std::replace(look.word.begin(), look.word.end(), '_', ' ');
  return look;
}

std::string VerdictLine(const Style& style, std::string_view state, std::string_view sentence) {
  const StateLook look = LookOfState(state);
  std::string word = look.word;
  for (char& c : word) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  const std::string head = style.Mark(look.tone) + " " + word;
  return Wrapped(style, style.In(look.tone, head) + "  ", sentence);
}

std::string TargetName(View slo) {
  std::string name = slo["metric"].Words();
  const bool share = name == "attainment";
  if (!share) {
    for (char& c : name) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    name += " p" + NumberText(slo["percentile"].NumberOr(0));
  }
  const std::string of = slo["class"].Words();
  return of.empty() ? name : name + " of " + of;
}

std::string TargetLimit(View slo) {
  if (slo["limit_ms"].Number()) return Ms(*slo["limit_ms"].Number());
  return ShareText(slo["limit_share"]);
}

std::string RangeOfTarget(View slo) {
  if (slo["unbounded"].Truth()) return "";
  const View of = slo["band"].Is() ? slo["band"] : slo;
  if (!slo["limit_share"].Is()) return MillisecondRange(of["low"], of["high"]);
  if (!of["low"].Number()) return "";
  const std::string low = ShareText(of["low"]), high = ShareText(of["high"]);
  return low == high ? low : low + " to " + high;
}

std::string NamedLine(const Style& style, std::string_view name, std::string_view text) {
  if (text.empty()) return "";
  return Wrapped(style, "  " + style.In(Tone::kQuiet, fmt::format("{:<10}", name)) + " ", text);
}

std::string NextLines(const Style& style, const std::vector<Next>& commands,
                      const std::string& shown) {
  constexpr std::size_t kIndent = 13;
  std::string out;
  for (const Next& next : commands) {
    std::string line = fmt::format("servecast {} {}", next.command, shown);
    const bool first = out.empty(), fits = kIndent + WidthOf(line) <= style.width;
    if (!first && !fits) {
      line = fmt::format("servecast {} [same options]", next.command);
    }
    out += "  " + style.In(Tone::kQuiet, fmt::format("{:<10}", first ? "next" : "")) + " ";
    std::size_t at = kIndent;
    const std::vector<std::string> parts = ShellParts(line);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t behind = i + 1 < parts.size() ? 2 : 0;  // " \\"
      if (i > 0 && !fits && at + 1 + WidthOf(parts[i]) + behind > style.width) {
        out += " \\\n" + std::string(kIndent + 2, ' ');
        at = kIndent + 2;
      } else if (i > 0) {
        out += ' ', ++at;
      }
      out += parts[i];
      at += WidthOf(parts[i]);
    }
    const std::string why = "  # " + std::string(next.why);
    if (at + why.size() <= style.width) out += style.In(Tone::kQuiet, why);
    out += "\n";
  }
  return out;
}

}  // namespace servecast
