// servecast explain for a person: what relief helps, and where the time goes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "metrics/words.h"
#include "text/figures.h"
#include "text/table.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr std::size_t kBlockCells = 18;

std::string ResourceName(const std::string& name) {
  if (name == "compute") return "arithmetic";
  if (name == "bandwidth") return "memory bandwidth";
  if (name == "overhead" || name == "host") return "host time";
  if (name == "kv_blocks") return "KV blocks";
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string PartName(const std::string& name) {
  if (name == "prefill") return "own prefill";
  if (name == "decode") return "own decoding";
  if (name == "interference") return "others' prefills";
  return name == "handover" ? "hand-over" : name;
}

// "  mixed", "  decode 1", or its name: a row of a pool's own relief.
std::string PoolRow(const std::vector<View>& pools, std::size_t index) {
  const std::string name = pools[index]["name"].Words(), role = pools[index]["role"].Words();
  if (!name.empty()) return "  " + name;
  const auto alike = std::count_if(pools.begin(), pools.end(), [&role](const View pool) {
    return pool["role"].Words() == role;
  });
  return "  " + role + (alike > 1 ? fmt::format(" {}", index) : "");
}

constexpr const char* kNoReliefs =
    "none was run: a run of this scenario is too long or too short for it, or its clients give up";

// What a relief takes off a time, or of a run that is overloaded what it serves more, as the
// verdict has it: a completion takes that much less.
std::string GainText(double gain, bool overloaded) {
  return Percent(overloaded ? 1 / (1 - gain) - 1 : gain);
}

std::string ReliefTable(View limits, const std::vector<View>& pools, bool overloaded,
                        const Style& style) {
  constexpr double kNothing = 5e-4;  // is written as 0 %
  double most = 0;
  for (const View limit : limits.Elements()) {
    most = std::max(most, std::fabs(limit["gain"].NumberOr(0)));
  }
  Table table("lrl");
  table.Row({"10 % more of", overloaded ? "serves more" : "takes off the slowest", ""});
  for (const View limit : limits.Elements()) {
    const double exact = limit["gain"].NumberOr(0);
    const double gain = std::fabs(exact) < kNothing ? 0 : exact;
    const Tone tone = gain < 0 ? Tone::kBad : Tone::kPlain;
    const std::string block = most > 0 && gain > 0 ? Block(style, gain / most, kBlockCells) : "";
    table.Row({ResourceName(limit["name"].Words()), Cell(GainText(gain, overloaded), tone),
               gain < 0 ? "it makes things worse" : block});
    const std::vector<View> apart = limit["pools"].Elements();
    for (std::size_t p = 0; p < std::min(apart.size(), pools.size()); ++p) {
      table.Row(
          {PoolRow(pools, p), GainText(apart[p].NumberOr(0), overloaded), "that pool's alone"});
    }
  }
  return table.empty() ? "" : "\n" + table.Text(style);
}

// The parts of one metric, the largest of the slowest requests first; parts that are nothing in
// both are left out.
std::string PartsTable(const std::string& metric, View blame, const Style& style) {
  const View slowest = blame["slowest"], all = blame["all"];
  if (!slowest.Is()) return "";
  std::vector<std::string> parts = slowest["parts_ms"].Keys();
  const auto of = [](View side, const std::string& part) {
    return side["parts_ms"][part].NumberOr(0);
  };
  std::stable_sort(parts.begin(), parts.end(), [&](const std::string& a, const std::string& b) {
    return of(slowest, a) > of(slowest, b);
  });
  std::string upper = metric;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  Table table("lrlr");
  table.Row({upper + " of the slowest 1 %", Milliseconds(slowest["mean_ms"]),
             fmt::format("{} requests, mean; all:", FigureText(slowest["requests"])),
             Milliseconds(all["mean_ms"])});
  const double total = slowest["mean_ms"].NumberOr(0);
  for (const std::string& part : parts) {
    if (of(slowest, part) == 0 && of(all, part) == 0) continue;
    const double share = total > 0 ? of(slowest, part) / total : 0;
    table.Row({PartName(part), Milliseconds(slowest["parts_ms"][part]),
               Block(style, share, kBlockCells) + " " + WholePercent(share),
               Milliseconds(all["parts_ms"][part])});
  }
  return "\n" + table.Text(style);
}

// Whether slow replicas are why the slowest requests are slow.
std::string SlowLine(View slow, const Style& style) {
  if (!(slow["requests"].NumberOr(0) > 0)) return "";
  const double tail = slow["tail_share"].NumberOr(0), all = slow["share"].NumberOr(0);
  return "\n" + NamedLine(style, "slow",
                          fmt::format("{} of the slowest 1 % of requests were on a slow replica, "
                                      "and {} of all, in the first run (cluster.slowdowns)",
                                      WholePercent(tail), WholePercent(all)));
}

}  // namespace

std::string ExplainText(View answer, const Style& style, const std::string& shown) {
  const View report = answer["report"], verdict = report["verdict"];
  std::string out = VerdictLine(style, verdict["state"].Words(), verdict["sentence"].Words());
  if (!verdict["limit"].Words().empty()) out += Wrapped(style, "  ", verdict["limit"].Words());
  out += TargetTable(report, style);
  const View first = report["first_run"];
  out += SlowLine((first.Is() ? first : report)["slowdowns"], style);
  const bool overloaded = verdict["state"].Words() == "overloaded";
  const std::string reliefs =
      ReliefTable(answer["limits"], report["pools"].Elements(), overloaded, style);
  const bool judged = first.Is() && !report["slo"].Elements().empty();
  out += reliefs.empty() && judged ? "\n" + NamedLine(style, "reliefs", kNoReliefs) : reliefs;
  for (const std::string& metric : answer["blame"].Keys()) {
    out += PartsTable(metric, answer["blame"][metric], style);
  }
  return out + "\n" +
         NextLines(style, {{"advise", "what helps, run and ranked"}, {"run", "all figures"}},
                   shown);
}

}  // namespace servecast
