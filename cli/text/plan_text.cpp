// servecast plan and its search for a person.
#include <fmt/format.h>

#include <algorithm>
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

constexpr std::size_t kPlanCells = 10;

// What one place of a curve says of one target, by its interval.
Tone ToneOfPlace(View value, View target) {
  if (target["least_share"].Number()) {
    const bool met = value["share"].NumberOr(0) >= *target["least_share"].Number();
    return met ? Tone::kGood : Tone::kBad;
  }
  const double limit = target["limit_ms"].NumberOr(0);
  if (!value["value_ms"].Number()) return Tone::kUnsure;
  const double best = *value["value_ms"].Number();
  if (value["low"].NumberOr(best) > limit) return Tone::kBad;
  return value["high"].NumberOr(best) > limit ? Tone::kUnsure : Tone::kGood;
}

Tone Worse(Tone a, Tone b) {
  if (a == Tone::kBad || b == Tone::kBad) return Tone::kBad;
  return a == Tone::kUnsure || b == Tone::kUnsure ? Tone::kUnsure : Tone::kGood;
}

// "TPOT p99" of "TPOT p99 <= 40 ms"; "attainment" of a share.
std::string ShortTarget(View target) {
  const std::string name = target["name"].Words();
  if (target["least_share"].Number()) return "attainment";
  return name.substr(0, name.find(" <="));
}

// `counts`: places are whole numbers.
std::vector<Cell> CurveRow(View place, View targets, bool counts, const Style& style) {
  std::vector<Cell> cells{counts ? place["at"].Plain() : FigureText(place["at"])};
  const std::vector<View> values = place["slo"].Elements();
  Tone worst = place["overloaded"].Truth() ? Tone::kBad : Tone::kGood;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tone tone = ToneOfPlace(values[i], targets.At(i));
    worst = Worse(worst, tone);
    const bool share = values[i]["share"].Number().has_value();
    cells.emplace_back(share ? ShareText(values[i]["share"]) : Milliseconds(values[i]["value_ms"]),
                       tone);
  }
  // Who was lost is in it, too.
  if (worst == Tone::kGood && place["strain"].NumberOr(0) > 1) worst = Tone::kBad;
  const std::string word = place["overloaded"].Truth() ? "overloaded"
                           : worst == Tone::kGood      ? "ok"
                           : worst == Tone::kBad       ? "misses"
                                                       : "near";
  cells.emplace_back(style.Mark(worst) + " " + word, worst);
  const View strain = place["strain"];
  cells.emplace_back(strain.Number() ? Bar(style, *strain.Number(), kPlanCells) + " " +
                                           WholePercent(*strain.Number())
                                     : "");
  cells.emplace_back(place["runs"].Plain());
  return cells;
}

std::string CurveTable(View curve, View targets, const std::string& unit, bool counts,
                       const Style& style) {
  std::vector<View> places = curve.Elements();
  std::stable_sort(places.begin(), places.end(),
                   [](View a, View b) { return a["at"].NumberOr(0) < b["at"].NumberOr(0); });
  std::vector<Cell> head{unit};
  std::string sides = "r";
  for (const View target : targets.Elements()) {
    head.emplace_back(ShortTarget(target));
    sides += 'r';
  }
  for (const char* name : {"", "of the limit", "runs"}) head.emplace_back(name);
  Table table(sides + "llr");
  table.Row(std::move(head));
  for (const View place : places) table.Row(CurveRow(place, targets, counts, style));
  return table.empty() ? "" : "\n" + table.Text(style);
}

// How much of its limits a policy takes, of the closest target.
std::optional<double> StrainOfPolicy(View policy, View targets) {
  double most = 0;
  const std::vector<View> values = policy["targets"].Elements();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const View target = targets.At(i);
    const std::optional<double> least = target["least_share"].Number();
    const std::optional<double> value = values[i][least ? "share" : "value_ms"].Number();
    if (!value) return std::nullopt;
    const double strain =
        least ? (1 - *value) / std::max(1e-9, 1 - *least) : *value / target["limit_ms"].NumberOr(1);
    most = std::max(most, strain);
  }
  return most;
}

// Of an autoscaling plan: what was run to the end, by kind and GPU-hours.
std::string PolicyTable(View answer, const Style& style) {
  const View targets = answer["targets"];
  const std::vector<View> policies = answer["policies"].Elements();
  const double days = answer["days"].NumberOr(0), chosen = answer["chosen"].NumberOr(-1);
  Table table("lrrrrll");
  table.Row({"", "days", "GPU-h", "of limit", "5 min", "", "policy"});
  std::int64_t others = 0;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const View policy = policies[i];
    if (policy["days"].NumberOr(0) < days) {
      ++others;
      continue;
    }
    const StateLook look = LookOfState(policy["state"].Words());
    const std::optional<double> strain = StrainOfPolicy(policy, targets);
    const bool best = static_cast<double>(i) == chosen;
    table.Row({Cell(style.Mark(look.tone), look.tone),
               policy["days_met"].Plain() + "/" + policy["days"].Plain(),
               FigureText(policy["gpu_hours"]["value"]), strain ? WholePercent(*strain) : "",
               ShareText(policy["windows_kept"]), best ? "->" : "",
               Cell(policy["name"].Words(), best ? Tone::kStrong : Tone::kPlain)});
  }
  std::string out = table.empty() ? "" : "\n" + table.Text(style);
  out += "\n" + NamedLine(style, "days", "on which every target was kept");
  out += NamedLine(style, "5 min", "of such windows, those in which every target was kept");
  if (const double start = answer["cold_start_s"].NumberOr(0); start > 0) {
    out += NamedLine(style, "cold start", ShortNumber(start) + " s of a replica");
  }
  if (others > 0) {
    out += NamedLine(style, "others",
                     fmt::format("{} more, run for one day alone; -o json has all", others));
  }
  if (chosen >= 0) {
    const View settings = policies[static_cast<std::size_t>(chosen)]["settings"];
    std::string words;
    for (const std::string& path : settings.Keys()) {
      // With blanks it may go on on another line, as JSON may.
      std::string value;
      for (const char c : settings[path].Plain()) value += c == ',' ? ", " : std::string(1, c);
      words += (words.empty() ? "" : " ") + (settings[path].IsObject()
                                                 ? fmt::format("--set '{}={}'", path, value)
                                                 : fmt::format("--set {}={}", path, value));
    }
    out += NamedLine(style, "settings", words);
  }
  return out;
}

}  // namespace

namespace {

std::string SetWords(const std::string& path, const std::string& value) {
  return " --set " + ShellWord(path + "=" + value);
}

// The settings of the policy of that number; "": none was chosen.
std::string PolicyWords(View answer, View chosen) {
  const double number = chosen.NumberOr(-1);
  if (number < 0) return "";
  const View settings = answer["policies"].At(static_cast<std::size_t>(number))["settings"];
  std::string words;
  for (const std::string& path : settings.Keys()) words += SetWords(path, settings[path].Plain());
  return words;
}

// The replicas of each pool that were found.
std::string ReplicaWords(const std::vector<View>& pools) {
  std::string words;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    words += SetWords(fmt::format("cluster.pools.{}.replicas", i), pools[i]["replicas"].Plain());
  }
  return words;
}

std::string Whole(View number) { return ShortNumber(number.NumberOr(0)); }

// Of a growing load: which replicas are enough from when to when.
std::string ScheduleTable(View schedule, const Style& style) {
  Table table("rrrrr");
  table.Row({"replicas", "GPUs", "from month", "to", "hold"});
  for (const View part : schedule.Elements()) {
    const View holds = part["answer"];
    table.Row({Whole(part["replicas"]), Whole(part["gpus"]), Whole(part["needed_from_month"]),
               part["until_month"].Number() ? Whole(part["until_month"]) : "-",
               holds.Is() ? FigureText(holds["value"]) + " " + holds["unit"].Words() : "-"});
  }
  return table.empty() ? "" : "\n" + table.Text(style);
}

std::string HoursTable(View answer, const Style& style) {
  Table table("rrrr");
  table.Row({"hour", answer["unit"].Words(), "replicas", "hold"});
  for (const View hour : answer["hours"].Elements()) {
    table.Row({Whole(hour["hour"]), FigureText(hour["load"]), Whole(hour["replicas"]),
               FigureText(hour["held"])});
  }
  return table.empty() ? "" : "\n" + table.Text(style);
}

// What the target comes to with less and more of each input.
std::string InputsTable(View answer, const Style& style) {
  const std::string by = WholePercent(answer["turned_by"].NumberOr(0)),
                    unit = " " + answer["unit"].Words();
  const auto value = [&](View turned) {
    const StateLook look = LookOfState(turned["state"].Words());
    const bool bounded = turned["value"].Number() && !turned["unbounded"].Truth();
    return Cell(style.Mark(look.tone) + " " +
                    (bounded ? FigureText(turned["value"]) + unit : turned["state"].Words()),
                look.tone);
  };
  Table table("lll");
  table.Row({"input", by + " less", by + " more"});
  for (const View input : answer["inputs"].Elements()) {
    table.Row({input["input"].Words(), value(input["less"]), value(input["more"])});
  }
  return table.empty() ? "" : "\n" + table.Text(style);
}

// What to ask next: of the load as it is typed, but where the answer has settings.
std::vector<Next> NextOf(View answer, std::string_view question) {
  if (answer["policies"].IsArray()) return {{"run", "all figures"}};  // other plans take no scaler
  std::vector<Next> next;
  // The answer may be of another load; these are of the scenario's.
  const bool other = question == "max-rate" || question == "growth" || question == "day";
  if (question == "drill" || question == "tornado") next.push_back({"advise", "what helps"});
  if (question != "drill") {
    next.push_back({"plan drill", other ? "a replica lost, a slow one, a spike, at its own load"
                                        : "a replica lost, a slow one, a spike"});
  }
  if (question != "tornado") next.push_back({"plan tornado", "which input matters most"});
  return next;
}

}  // namespace

std::string PlanText(View answer, const Style& style, std::string_view question,
                     const std::string& sentence, const std::string& shown) {
  std::string out = Wrapped(style, "", sentence);
  const View targets = answer["targets"];
  if (answer["curve"].IsArray()) {
    out += CurveTable(answer["curve"], targets, answer["answer"]["unit"].Words(), false, style);
  }
  for (const View pool : answer["pools"].Elements()) {
    const std::string name = pool["name"].Words(), role = pool["role"].Words();
    const std::string unnamed = role == "mixed" ? "replicas" : role;
    out += CurveTable(pool["curve"], targets, name.empty() ? unnamed : name, true, style);
  }
  if (answer["policies"].IsArray()) out += PolicyTable(answer, style);
  out += ScheduleTable(answer["schedule"], style) + HoursTable(answer, style) +
         InputsTable(answer, style);
  std::string rests;
  for (const View check : answer["checked"].Elements()) {
    rests += NamedLine(style, "checked", check["of"].Words() + ": " + check["sentence"].Words());
  }
  const auto count = [&](const char* of) {
    return static_cast<std::int64_t>(answer[of].NumberOr(0));
  };
  if (count("runs") > 0) {
    const std::string requests =
        count("requests") > 0 ? ", " + Count(count("requests"), "request") : "";
    rests += NamedLine(style, "rests on", Count(count("runs"), "run") + requests);
  }
  if (!rests.empty()) out += "\n" + rests;
  const std::string chosen = answer["policies"].IsArray()
                                 ? PolicyWords(answer, answer["chosen"])
                                 : ReplicaWords(answer["pools"].Elements());
  return out + "\n" + NextLines(style, NextOf(answer, question), shown + chosen);
}

namespace {

// "H100 SXM" of "H100 SXM 80 GB": which GPU it is says the rest.
std::string WithoutMemory(std::string label) {
  const std::size_t end = label.find(" GB");
  if (end == std::string::npos || end == 0) return label;
  const std::size_t begin = label.rfind(' ', end - 1);
  if (begin == std::string::npos) return label;
  const std::string digits = label.substr(begin + 1, end - begin - 1);
  if (digits.find_first_not_of("0123456789.") != std::string::npos) return label;
  return label.erase(begin, end + 3 - begin);
}

// `energy`: a column of it.
std::vector<Cell> DesignRow(View point, bool best, bool energy, const Style& style) {
  const std::string state = point["state"].Words();
  const StateLook look = LookOfState(state);
  const View closest = point["targets"].At(static_cast<std::size_t>(point["closest"].NumberOr(0)));
  std::string metric = closest["metric"].Words();
  for (char& c : metric) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  const bool share = metric == "ATTAINMENT";
  const View strain = point["strain"];
  std::string label = WithoutMemory(point["label"].Words());
  if (point["own"].Truth()) label += " (as given)";
  std::vector<Cell> cells{DollarText(point["dollars_per_hour"]), point["gpus"].Plain()};
  if (energy) {
    const View joules = point["j_per_output_token"];
    cells.emplace_back(joules.Number() ? FigureText(joules) : "not known");
  }
  const std::vector<Cell> others{
      Cell(label, best ? Tone::kStrong : Tone::kPlain),
      closest["value"].Number() ? (share ? ShareText(closest["value"]) + " within"
                                         : metric + " " + Milliseconds(closest["value"]))
                                : "",
      strain.Number() ? WholePercent(*strain.Number()) : "",
      Cell(style.Mark(look.tone) + (state == "meets" ? "" : " " + look.word), look.tone),
      point["evidence"].Words(),
      best ? "<-" : ""};
  cells.insert(cells.end(), others.begin(), others.end());
  return cells;
}

// "16 meet, 3 do not fit".
std::string CountsText(View counts) {
  std::string out;
  for (const std::string& key : counts.Keys()) {
    if (!(counts[key].NumberOr(0) > 0)) continue;
    const std::string word = key == "meets"          ? "meet"
                             : key == "misses"       ? "miss"
                             : key == "does_not_fit" ? "do not fit"
                                                     : LookOfState(key).word;
    out += (out.empty() ? "" : ", ") + counts[key].Plain() + " " + word;
  }
  return out;
}

}  // namespace

namespace {

// The pools of a design that has other roles than the scenario, by what each replica has.
std::string PoolsOfDesign(View design) {
  const double stages = design["values"]["cluster.pools.*.pipeline_parallel"].NumberOr(1);
  std::string list;
  for (const View pool : design["pools"].Elements()) {
    const std::string role = pool["role"].Words();
    list += fmt::format("{}{{\"role\":\"{}\",\"tensor_parallel\":{}}}", list.empty() ? "" : ",",
                        role, std::lround(pool["gpus_per_replica"].NumberOr(1) / stages));
  }
  return SetWords("cluster.pools", "[" + list + "]");
}

// What makes the scenario `design`, as far as `own`, which is the scenario, differs; "": not known.
std::string DesignWords(View design, View own) {
  if (!design.Is() || !own.Is()) return "";
  constexpr std::string_view kEvery = "cluster.pools.*.";
  std::string words;
  const std::vector<View> pools = design["pools"].Elements();
  if (design["values"]["roles"].Plain() != own["values"]["roles"].Plain()) {
    words += PoolsOfDesign(design);
  }
  for (const std::string& path : design["values"].Keys()) {
    const std::string value = design["values"][path].Plain();
    const bool same = value == own["values"][path].Plain();
    if (same || path == "roles" || path == "prices") continue;
    if (path == "hardware.preset") {
      words += SetWords("hardware", "{\"preset\":\"" + value + "\"}");
      continue;
    }
    const bool every = path.rfind(kEvery, 0) == 0;
    for (std::size_t i = 0; i < (every ? pools.size() : 1); ++i) {
      const std::string one =
          every ? fmt::format("cluster.pools.{}.{}", i, path.substr(kEvery.size())) : path;
      words += SetWords(one, value);
    }
  }
  return words + ReplicaWords(pools);
}

}  // namespace

std::string SearchText(View answer, const Style& style, const std::string& sentence,
                       const std::string& shown) {
  std::vector<View> points;
  const std::vector<View> frontier = answer["frontier"].Elements();
  const auto on_frontier = [&frontier](View point) {
    return std::any_of(frontier.begin(), frontier.end(),
                       [&](View id) { return id.NumberOr(-1) == point["id"].NumberOr(-2); });
  };
  const std::vector<View> all = answer["points"].Elements();
  std::copy_if(all.begin(), all.end(), std::back_inserter(points),
               [&](View point) { return point["own"].Truth() || on_frontier(point); });
  std::stable_sort(points.begin(), points.end(), [](View a, View b) {
    return a["dollars_per_hour"].NumberOr(1e300) < b["dollars_per_hour"].NumberOr(1e300);
  });
  const bool energy = answer["least_energy"].There();
  const View best = answer[energy ? "least_energy" : "cheapest"];
  Table table(energy ? "rrrlrrlll" : "rrlrrlll");
  std::vector<Cell> head{"$/h", "GPUs"};
  if (energy) head.emplace_back("J/token");
  for (const char* name : {"design", "closest", "of limit", "", "evidence", ""}) {
    head.emplace_back(name);
  }
  table.Row(std::move(head));
  for (const View point : points) {
    const bool is_best = best.Is() && best.NumberOr(-1) == point["id"].NumberOr(-2);
    table.Row(DesignRow(point, is_best, energy, style));
  }
  std::string out = Wrapped(style, "", sentence) + "\n" + table.Text(style) + "\n";
  out += NamedLine(style, "of all",
                   CountsText(answer["counts"]) + "; -o csv lists each with its reason");
  for (const View warning : answer["warnings"].Elements()) {
    out += NamedLine(style, "note", warning.Words());
  }
  const auto point_of = [&all](auto is) {
    const auto found = std::find_if(all.begin(), all.end(), is);
    return found == all.end() ? View() : *found;
  };
  const View found = point_of(
      [&best](View point) { return best.Is() && point["id"].NumberOr(-2) == best.NumberOr(-1); });
  const View own = point_of([](View point) { return point["own"].Truth(); });
  return out + "\n" +
         NextLines(style, {{"plan max-rate", "how far the load may grow"}, {"run", "all figures"}},
                   shown + DesignWords(found, own));
}

}  // namespace servecast
