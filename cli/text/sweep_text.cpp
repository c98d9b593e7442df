// servecast sweep for a person: a row a point.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "metrics/words.h"
#include "text/figures.h"
#include "text/table.h"
#include "text/texts.h"

namespace servecast {
namespace {

// "max_num_seqs" of "engine.max_num_seqs".
std::string LastName(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// The targets of the first point that ran: of others they may have other limits.
View TargetsOf(const std::vector<View>& points) {
  for (const View point : points) {
    if (point["report"].Is()) return point["report"]["slo"];
  }
  return View();
}

std::string PointValue(View slo) {
  if (slo["unbounded"].Truth()) return "no bound";
  return slo["share"].Number() ? ShareText(slo["share"]) : Milliseconds(slo["value_ms"]);
}

}  // namespace

std::string SweepText(const std::vector<View>& points, const Style& style) {
  if (points.empty()) return "No points.\n";
  const std::vector<std::string> axes = points[0]["over"].Keys();
  const std::vector<View> targets = TargetsOf(points).Elements();
  std::vector<Cell> head;
  std::string sides;
  for (const std::string& axis : axes) head.emplace_back(LastName(axis)), sides += 'r';
  for (const View slo : targets) head.emplace_back(TargetName(slo)), sides += 'r';
  head.emplace_back("req/s"), head.emplace_back("verdict");
  Table table(sides + "rl");
  table.Row(std::move(head));
  constexpr std::size_t kMostIssuesShown = 5;
  std::set<std::string> issues;
  for (const View point : points) {
    std::vector<Cell> cells;
    for (const std::string& axis : axes) cells.emplace_back(point["over"][axis].Plain());
    const View report = point["report"];
    for (std::size_t i = 0; i < targets.size(); ++i) {
      cells.emplace_back(report.Is() ? PointValue(report["slo"].At(i)) : "");
    }
    cells.emplace_back(report.Is() ? FigureText(report["requests_per_s"]) : "");
    const StateLook look = LookOfState(report["verdict"]["state"].Words());
    cells.emplace_back(report.Is() ? Cell(style.Mark(look.tone) + " " + look.word, look.tone)
                                   : Cell("not run", Tone::kQuiet));
    table.Row(std::move(cells));
    const View issue = point["issues"].At(0);
    if (!issue.Is()) continue;
    const std::string why = issue["path"].Words() + ": " + issue["message"].Words();
    if (issues.size() < kMostIssuesShown) issues.insert(why);
  }
  std::string notes;
  for (const std::string& why : issues) notes += NamedLine(style, "not run", why);
  return table.Text(style) + "\n" + notes + "  " +
         Count(static_cast<std::int64_t>(points.size()), "point") +
         "; -o csv for a spreadsheet, a pipe gets a line of JSON for each\n";
}

}  // namespace servecast
