// servecast card: a forecast as a picture for READMEs and pull requests, SVG of shapes and text
// alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "base/printable.h"
#include "base/text.h"
#include "commands.h"
#include "host/link.h"
#include "metrics/words.h"
#include "servecast/experiment.h"
#include "servecast/report.h"

namespace servecast {
namespace {

constexpr const char* kCardHelp =
    "servecast card LINK|FILE|PRESET [--badge] [--site ADDRESS] [--title TEXT]\n"
    "               [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "\n"
    "Prints a forecast as a picture, SVG: the verdict, each target with its 95 % interval, the "
    "tail\n"
    "of the latency that decides, and the link by which it can be checked. No browser is "
    "needed.\n"
    "  --badge         one line instead: the verdict and the closest target\n"
    "  --site ADDRESS  of the page, for the card's link; by default that of LINK\n"
    "  --title TEXT    by default the scenario's name\n"
    "The same scenario gives the same bytes. Exit 2: bad input.\n";

// Of the page's light theme (web/src/styles).
constexpr const char* kInk = "#14181f";
constexpr const char* kQuiet = "#5e6876";
constexpr const char* kLine = "#788391";
constexpr const char* kCurve = "#0072b2";
// The smallest text: 12 px where a README shows the card at 640 px.
constexpr int kSmall = 18;

struct Look {
  const char* colour;
  const char* shape;
};
Look LookOf(VerdictState state) {
  switch (state) {
    case VerdictState::kMeets:
      return {"#006b4e", "M-9 1l6 6L10-6"};
    case VerdictState::kNear:
      return {"#7a5000", "M-10 3c3-6 6-6 10-1s7 2 10-3"};
    case VerdictState::kMisses:
      return {"#a83700", "M-7-7L7 7M7-7L-7 7"};
    case VerdictState::kOverloaded:
      return {"#a83700", "M-8 0L0-8 8 0M-8 8L0 0 8 8"};
    default:
      return {kQuiet, "M-8 0H8"};
  }
}

std::size_t Letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Text of a scenario is anybody's: what XML has no letter for is left out.
std::string Markup(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      out += c;
    }
  }
  return out;
}

// By words; a word that is longer than a line is cut, and so is what is beyond the lines.
std::vector<std::string> Wrapped(std::string_view text, std::size_t most, std::size_t lines) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (!found.empty() && Letters(found.back()) + 1 + Letters(word) <= most) {
      found.back() += " " + std::string(word);
    } else {
      found.emplace_back(word);
    }
  }
  if (found.size() > lines) {
    found.resize(lines);
    found.back() += " …";
  }
  for (std::string& line : found) {
    if (Letters(line) <= most) continue;
    std::size_t end = 0;
    for (std::size_t letters = 0; letters + 1 < most; ++letters) {
      do ++end;
      while (end < line.size() && (line[end] & 0xC0) == 0x80);
    }
    line = line.substr(0, end) + "…";
  }
  return found;
}

std::string Text(double x, double y, int size, std::string_view content, std::string_view more) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" font-size=\"{}\" {}>{}</text>\n", x, y, size,
                     more, Markup(content));
}
std::string Quiet(double x, double y, int size, std::string_view content) {
  return Text(x, y, size, content, fmt::format("fill=\"{}\"", kQuiet));
}

const std::vector<double>& ColumnOf(const Report& report, const std::string& name) {
  const std::vector<Column>& all = Columns();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Column& each) { return each.name == name; });
  return report.columns[static_cast<std::size_t>(found - all.begin())];
}

// A value with where it lies: "14.9 ms", "14.6 ms to 15.4 ms".
struct Figure {
  std::string name, value, interval, note;
};
Figure FigureOf(const SloResult& result) {
  const SloSpec& slo = result.slo;
  Figure figure{Target(slo), "none", "", ""};
  if (slo.metric == SloMetric::kAttainment) {
    if (result.share) figure.value = Percent(*result.share);
    if (result.low_share) {
      figure.interval = Percent(*result.low_share) + " to " + Percent(*result.high_share);
    }
    return figure;
  }
  figure.name = fmt::format("{} p{:g}{}", MetricName(slo.metric), slo.percentile,
                            slo.of_class.empty() ? "" : " of " + slo.of_class);
  figure.note = "limit " + Ms(slo.limit_ms);
  if (result.unbounded) {
    figure.value = "no bound";
  } else if (result.value_ms) {
    figure.value = MeasuredMs(*result.value_ms);
  }
  if (result.low_ms && !result.unbounded) {
    figure.interval = MeasuredMs(*result.low_ms) + " to " + MeasuredMs(*result.high_ms);
  }
  return figure;
}

// The latency that decides over the share of requests, on a scale of nines.
class Tail {
 public:
  Tail(const Report& report, double x, double y, double width, double height)
      : x_(x), y_(y), width_(width), height_(height) {
    // Of latencies that have a curve the one that decides, as the sentence of the verdict has it:
    // missed before too close to call before met, then the closest to its limit.
    std::pair<int, double> most{-1, 0};
    for (const SloResult& each : report.slo) {
      if (each.slo.metric == SloMetric::kAttainment || each.slo.metric == SloMetric::kItl) continue;
      const double limit = each.slo.limit_ms;
      const int side = each.unbounded || each.low_ms.value_or(0) > limit ? 2
                       : each.high_ms.value_or(limit) > limit            ? 1
                                                                         : 0;
      const double over = -each.margin.value_or(-std::numeric_limits<double>::infinity());
      if (std::pair(side, over) <= most) continue;
      most = {side, over};
      slo_ = each.slo;
    }
    metric_ = slo_ ? MetricName(slo_->metric) : "TTFT";
    std::string name = "cdf_";
    for (const char c : metric_) name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const std::vector<double>& shares = ColumnOf(report, "cdf_fraction");
    const std::vector<double>& values = ColumnOf(report, name + "_ms");
    for (std::size_t i = 0; i < std::min(shares.size(), values.size()); ++i) {
      if (shares[i] < 0.5 || shares[i] > 0.999 || !std::isfinite(values[i])) continue;
      points_.emplace_back(shares[i], values[i]);
    }
    for (const auto& [share, value] : points_) top_ = std::max(top_, value);
    top_ = 1.1 * std::max(top_, slo_ ? slo_->limit_ms : 0);
  }

  // "" of fewer than two points.
  std::string Svg() const {
    if (points_.size() < 2) return "";
    std::string out = Quiet(x_, y_ - 38, kSmall, metric_ + " of one run, by share of requests");
    out += fmt::format("<path d=\"M{} {}v{}h{}\" fill=\"none\" stroke=\"{}\"/>\n", x_, y_, height_,
                       width_, kLine);
    if (slo_) {
      const double at = Down(slo_->limit_ms);
      out += fmt::format("<path d=\"M{} {:.1f}h{}\" stroke=\"{}\" stroke-dasharray=\"4 4\"/>\n", x_,
                         at, width_, kInk);
      const std::string name =
          fmt::format("dashed: limit {} at p{:g}", Ms(slo_->limit_ms), slo_->percentile);
      out += Quiet(x_, y_ - 14, kSmall, name);
    }
    std::string path;
    for (const auto& [share, value] : points_) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", Across(share), Down(value));
    }
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\"/>\n", path,
                       kCurve);
    for (const char* percent : {"50", "90", "99", "99.9"}) {
      out += Text(Across(std::stod(percent) / 100), y_ + height_ + 22, kSmall,
                  std::string("p") + percent,
                  fmt::format("fill=\"{}\" text-anchor=\"middle\"", kQuiet));
    }
    return out;
  }

 private:
  double Across(double share) const {
    const double half = std::log10(2.0);
    return x_ + width_ * (std::min(3.0, -std::log10(1 - share)) - half) / (3 - half);
  }
  double Down(double value) const { return y_ + height_ - height_ * value / top_; }

  double x_, y_, width_, height_;
  double top_ = 0;
  std::string metric_;
  std::optional<SloSpec> slo_;
  std::vector<std::pair<double, double>> points_;
};

std::string Card(const Report& report, const std::string& title, const std::string& address) {
  constexpr int kWidth = 960, kHeight = 504, kLeft = 48;
  const Look look = LookOf(report.verdict.state);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"system-ui, sans-serif\" fill=\"{2}\" role=\"img\" "
      "aria-label=\"{3}\">\n<title>{4}</title>\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"#ffffff\"/><rect x=\"0.5\" y=\"0.5\" width=\"{5}\" height=\"{6}\" fill=\"none\" "
      "stroke=\"#dadee4\"/>\n",
      kWidth, kHeight, kInk, Markup(report.verdict.sentence), Markup(title), kWidth - 1,
      kHeight - 1);
  for (const std::string& line : Wrapped(title, 84, 1)) out += Quiet(kLeft, 52, 20, line);
  out += fmt::format(
      "<g transform=\"translate({} 98)\" fill=\"none\" stroke=\"{}\" stroke-width=\"3\"><circle "
      "r=\"18\" stroke-width=\"2\"/><path d=\"{}\"/></g>\n",
      kLeft + 14, look.colour, look.shape);
  double y = 106;
  for (const std::string& line : Wrapped(report.verdict.sentence, 57, 3)) {
    out += Text(kLeft + 48, y, 26, line, "font-weight=\"600\"");
    y += 34;
  }
  std::vector<Figure> figures;
  for (const SloResult& each : report.slo) {
    if (figures.size() < 2) figures.push_back(FigureOf(each));
  }
  figures.push_back(
      {"Output per GPU", ShortNumber(report.output_tokens_per_s_per_gpu), "", "tokens/s"});
  y = 234;
  for (const Figure& figure : figures) {
    out += Quiet(kLeft, y, kSmall, Wrapped(figure.name, 36, 1)[0]);
    out += Text(kLeft, y + 32, 30, figure.value, "");
    out += Quiet(kLeft + 150, y + 32, kSmall, figure.note);
    if (!figure.interval.empty()) out += Quiet(kLeft + 150, y + 10, kSmall, figure.interval);
    y += 72;
  }
  out += Tail(report, 440, 244, 460, 144).Svg();
  if (!address.empty()) {
    constexpr std::size_t kMostAddress = 84;
    const bool whole = Letters(address) <= kMostAddress;
    const std::string shown = whole ? address : address.substr(0, address.find('#')) + "#…";
    out += fmt::format("<a href=\"{}\">{}</a>\n", Markup(address),
                       Text(kLeft, kHeight - 46, kSmall, shown, "text-decoration=\"underline\""));
  }
  out += Quiet(kLeft, kHeight - 20, kSmall,
               fmt::format("engine {} · fingerprint {:016x}{}", kEngineVersion, report.fingerprint,
                           report.certainty && report.certainty->runs > 1
                               ? fmt::format(" · intervals: 95 %, {} runs", report.certainty->runs)
                               : ""));
  return out + "</svg>\n";
}

// One line of 20 pixels: what it is, then the verdict and the closest target.
std::string Badge(const Report& report) {
  const SloResult* closest = nullptr;
  for (const SloResult& each : report.slo) {
    if (!each.margin) continue;
    if (closest == nullptr || *each.margin < *closest->margin) closest = &each;
  }
  std::string words = StateName(report.verdict.state);
  std::replace(words.begin(), words.end(), '_', ' ');
  if (closest != nullptr && report.verdict.state != VerdictState::kOverloaded) {
    const Figure figure = FigureOf(*closest);
    words += ", " + (figure.note.empty() ? figure.value + " of requests within"
                                         : figure.name + " " + figure.value);
  }
  constexpr const char* kName = "forecast";
  // System fonts differ: 6.6 pixels a letter, which textLength holds them to.
  const auto width = [](std::string_view text) {
    return static_cast<int>(std::ceil(6.6 * static_cast<double>(Letters(text))));
  };
  const int left = width(kName) + 12, right = width(words) + 12;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"20\" viewBox=\"0 0 {0} "
      "20\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#ffffff\" role=\"img\" "
      "aria-label=\"{1}: {2}\">\n<title>{3}</title>\n<rect width=\"{4}\" height=\"20\" "
      "fill=\"{5}\"/><rect x=\"{4}\" width=\"{6}\" height=\"20\" fill=\"{7}\"/>\n<text x=\"6\" "
      "y=\"14\" textLength=\"{8}\">{1}</text><text x=\"{9}\" y=\"14\" "
      "textLength=\"{10}\">{2}</text>\n</svg>\n",
      left + right, kName, Markup(words), Markup(report.verdict.sentence), left, kInk, right,
      LookOf(report.verdict.state).colour, width(kName), left + 6, width(words));
}

bool IsLink(const std::string& word) {
  return word.find('#') != std::string::npos || word.rfind("z1.", 0) == 0 ||
         word.rfind("p=", 0) == 0;
}

// The scenario and trace of a link, file or preset.
Result<Asked> AskedOf(const Arguments& args) {
  if (!IsLink(args.scenario)) return Load(args);
  const Result<Link> link = DecodeLink(args.scenario);
  if (!link.ok()) return Issues(link.issues());
  Result<Scenario> scenario = ParseScenario(link.value().document);
  if (!scenario.ok()) return Issues(scenario.issues());
  Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return Issues(trace.issues());
  return Asked{std::move(scenario.value()), std::move(trace.value())};
}

}  // namespace

int CardCommand(const Words& words) {
  Arguments args;
  bool badge = false;
  std::string site, title;
  Options options{.help = kCardHelp};
  options.flags = {{"--badge", &badge}};
  options.values = {{"--site", &site}, {"--title", &title}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (site.find('#') != std::string::npos) return Usage("--site is an address without #");
  if (IsLink(args.scenario) &&
      !(args.overrides.empty() && args.coefficients.empty() && args.calibration.empty())) {
    return Usage("a link is drawn as it is; servecast link decode it first, to change it");
  }
  Result<Asked> asked = AskedOf(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  const std::size_t slash = args.trace.find_last_of('/');
  const std::string trace = slash == std::string::npos ? args.trace : args.trace.substr(slash + 1);
  const std::string link = EncodeLink(asked.value().scenario.canonical_text, trace, "");
  if (site.empty() && IsLink(args.scenario)) {
    const std::size_t hash = args.scenario.find('#');
    if (hash != std::string::npos) site = args.scenario.substr(0, hash);
  }
  if (title.empty()) title = asked.value().scenario.name;
  if (title.empty()) title = "Servecast forecast";
  if (IsLink(args.scenario)) args.scenario = "link";  // what issues are of
  Result<Experiment> made =
      MakeRun<Experiment>(args, std::move(asked.value().scenario), std::move(asked.value().trace));
  if (!made.ok()) return PrintIssues(made.issues());
  while (!made.value().Advance(INT64_MAX)) {
  }
  const Report report = made.value().Snapshot(ReportDetail::kSummary);
  fmt::print("{}",
             badge ? Badge(report) : Card(report, title, site.empty() ? "" : site + "#" + link));
  return 0;
}

}  // namespace servecast
