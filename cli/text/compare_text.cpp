// servecast compare for a person: targets and figures of each run, three runs at most side by side.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "metrics/words.h"
#include "text/figures.h"
#include "text/table.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr std::size_t kRunsAbreast = 3;

// "-29.6 %"; "=" of what differs by less than that shows.
std::string ChangeText(View value, View base) {
  if (!value.Number() || !base.Number() || *base.Number() == 0) return "";
  const double change = *value.Number() / *base.Number() - 1;
  const std::string size = Percent(std::fabs(change));
  return size == "0 %" ? "=" : (change < 0 ? "-" : "+") + size;
}

struct FigureRow {
  std::string name;
  std::function<View(View)> value;
  std::function<std::string(View)> text;
  bool changes = true;  // shown beside the value
};

// The one in the same place, or else the first of that name; nothing of a run that has none.
View TargetLike(View report, std::size_t place, const std::string& name) {
  if (TargetName(report["slo"].At(place)) == name) return report["slo"].At(place);
  for (const View target : report["slo"].Elements()) {
    if (TargetName(target) == name) return target;
  }
  return View();
}

// Of several runs the first one's.
View PowerOf(View report) {
  const View first = report["first_run"];
  return first.Is() ? first["power"] : report["power"];
}

std::vector<FigureRow> FigureRows(View base) {
  std::vector<FigureRow> rows;
  const std::vector<View> targets = base["slo"].Elements();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const bool share = targets[i]["limit_share"].Is();
    const char* const sign = share ? " >= " : " <= ";
    const auto same = [i, name = TargetName(targets[i])](View r) { return TargetLike(r, i, name); };
    rows.push_back({TargetName(targets[i]) + sign + TargetLimit(targets[i]),
                    [same, share](View r) { return same(r)[share ? "share" : "value_ms"]; },
                    share ? ShareText : Milliseconds});
    if (targets[i]["band"].Is()) rows.push_back({"  90 % band", same, RangeOfTarget, false});
  }
  for (const auto& [name, key] :
       {std::pair("TTFT", "ttft_ms"), {"TPOT", "tpot_ms"}, {"E2E", "e2e_ms"}}) {
    for (const char* figure : {"mean", "p99"}) {
      rows.push_back({fmt::format("{} {}", name, figure),
                      [key = std::string(key), figure = std::string(figure)](View r) {
                        return r[key][figure];
                      },
                      Milliseconds});
    }
  }
  rows.push_back({"requests/s", [](View r) { return r["requests_per_s"]; }, FigureText});
  rows.push_back({"output tokens/s", [](View r) { return r["output_tokens_per_s"]; }, FigureText});
  if (PowerOf(base).Is()) {
    rows.push_back({"W a GPU", [](View r) { return PowerOf(r)["mean_w"]; }, FigureText});
    rows.push_back(
        {"J an output token", [](View r) { return PowerOf(r)["j_per_output_token"]; }, FigureText});
  }
  rows.push_back({"$ per 1M output tokens",
                  [](View r) { return r["cost_per_million_output_tokens"]; }, DollarText});
  return rows;
}

std::string RunsTable(const std::vector<View>& runs, std::size_t from, const Style& style) {
  const std::size_t until = std::min(runs.size(), from + kRunsAbreast - 1);
  const View base = runs[0]["report"];
  std::string sides = "lr";
  std::vector<Cell> head{"", "as given"}, verdicts{"verdict"}, evidence{"evidence"};
  std::vector<Cell> sure{"met with"};
  const auto probability = [](View run) {
    const View p = run["report"]["verdict"]["probability"];
    return p.Number() ? ProbabilityText(*p.Number()) : std::string();
  };
  sure.emplace_back(probability(runs[0]));
  const auto verdict = [&style](View run) {
    const StateLook look = LookOfState(run["report"]["verdict"]["state"].Words());
    return Cell(style.Mark(look.tone) + " " + look.word, look.tone);
  };
  verdicts.push_back(verdict(runs[0]));
  evidence.emplace_back(base["evidence"]["class"].Words());
  for (std::size_t i = from; i < until; ++i) {
    head.emplace_back(fmt::format("({})", i));
    verdicts.push_back(verdict(runs[i]));
    sure.emplace_back(probability(runs[i]));
    evidence.emplace_back(runs[i]["report"]["evidence"]["class"].Words());
    sides += "r";
  }
  Table table(sides);
  table.Row(std::move(head));
  table.Row(std::move(verdicts));
  if (base["verdict"]["probability"].Number()) table.Row(std::move(sure));
  for (const FigureRow& row : FigureRows(base)) {
    std::vector<Cell> cells{row.name, row.text(row.value(base))};
    for (std::size_t i = from; i < until; ++i) {
      const View value = row.value(runs[i]["report"]);
      const std::string text = row.text(value);
      cells.emplace_back(
          row.changes ? fmt::format("{} {:>7}", text, ChangeText(value, row.value(base))) : text);
    }
    table.Row(std::move(cells));
  }
  table.Row(std::move(evidence));
  return table.Text(style) + "\n";
}

}  // namespace

std::string CompareText(View answer, const Style& style) {
  const std::vector<View> runs = answer["runs"].Elements();
  std::string out;
  for (std::size_t from = 1; from < std::max<std::size_t>(runs.size(), 2);
       from += kRunsAbreast - 1) {
    out += RunsTable(runs, from, style);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string name = i == 0 ? "as given" : fmt::format("({})", i);
    const std::string set = runs[i]["set"].Words();
    out += NamedLine(
        style, name,
        (set.empty() ? "" : set + ": ") + runs[i]["report"]["verdict"]["sentence"].Words());
    for (const View rule : runs[i]["other_rules"].Elements()) {
      out += NamedLine(style, "", rule.Words());
    }
  }
  return out;
}

}  // namespace servecast
