// servecast run for a person.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "metrics/words.h"
#include "text/figures.h"
#include "text/table.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr std::size_t kBarCells = 12;

// A value of a target against its limit; nullopt: it has none.
std::optional<double> ShareOfLimit(View slo) {
  if (!slo["margin"].Number()) return std::nullopt;
  return 1 - *slo["margin"].Number();
}

Tone ToneOfTarget(View slo) {
  const View band = slo["band"];
  if (band["probability"].Number()) return ToneOfProbability(*band["probability"].Number());
  return slo["met"].Truth() ? Tone::kGood : Tone::kBad;
}

std::string ValueOfTarget(View slo) {
  if (slo["unbounded"].Truth()) return "no bound";
  return slo["share"].Number() ? ShareText(slo["share"]) : Milliseconds(slo["value_ms"]);
}

// "TTFT 200 ms, TPOT 20 ms", of attainment.
std::string LimitsOfAttainment(View slo) {
  std::string text;
  for (const char* name : {"ttft", "tpot", "e2e"}) {
    const View limit = slo[std::string(name) + "_ms"];
    if (!limit.Number()) continue;
    std::string upper = name;
    for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    text += (text.empty() ? "" : " and ") + upper + " " + Ms(*limit.Number());
  }
  return text;
}

std::string PercentileTable(View report, const Style& style) {
  Table table("lrrrrrr");
  table.Row({"", "mean", "p50", "p90", "p95", "p99", "max"});
  const View itl = report["itl_ms"].Is() ? report["itl_ms"] : report["first_run"]["itl_ms"];
  const bool of_first = !report["itl_ms"].Is();
  const auto row = [&table](const std::string& name, View of) {
    if (!(of["n"].NumberOr(0) > 0)) return;
    std::vector<Cell> cells{name};
    for (const char* key : {"mean", "p50", "p90", "p95", "p99", "max"}) {
      cells.emplace_back(Milliseconds(of[key]));
    }
    table.Row(std::move(cells));
  };
  row("TTFT", report["ttft_ms"]);
  row("TPOT", report["tpot_ms"]);
  row(of_first ? "ITL, first run" : "ITL", itl);
  row("E2E", report["e2e_ms"]);
  return table.empty() ? "" : "\n" + table.Text(style);
}

// What a report has at its top, or of its first run alone.
View OfRun(View report, std::string_view key) {
  return report[key].Is() ? report[key] : report["first_run"][key];
}

std::string Serves(View report) {
  if (!report["requests_per_s"].Number()) return "";
  std::string text =
      fmt::format("{} requests/s, {} output tokens/s", FigureText(report["requests_per_s"]),
                  FigureText(report["output_tokens_per_s"]));
  if (report["gpus"].NumberOr(1) > 1) {
    text += fmt::format(" ({} a GPU)", FigureText(report["output_tokens_per_s_per_gpu"]));
  }
  if (report["attainment"].Number()) {
    text += fmt::format("; {} of requests within all limits", ShareText(report["attainment"]));
  }
  return text;
}

std::string Costs(View report) {
  const View price = report["cost_per_million_output_tokens"];
  if (!price.Number()) return "";
  const double per_hour = *price.Number() * report["output_tokens_per_s"].NumberOr(0) * 3600 / 1e6;
  return fmt::format("{} an hour, {} per million output tokens", Dollars(per_hour),
                     DollarText(price));
}

// "431 W a GPU (340 to 522); 2.1 J an output token (1.3 to 2.9)", and what the site pays.
std::string Draws(View report) {
  const View power = OfRun(report, "power");
  if (!power.Is()) return "";
  const auto range = [&power](const char* low, const char* high) {
    if (!power[low].Number()) return std::string();
    return fmt::format(" ({} to {})", FigureText(power[low]), FigureText(power[high]));
  };
  std::string text = FigureText(power["mean_w"]) + " W a GPU" + range("mean_w_low", "mean_w_high");
  if (power["j_per_output_token"].Number()) {
    text += fmt::format("; {} J an output token{}", FigureText(power["j_per_output_token"]),
                        range("j_per_output_token_low", "j_per_output_token_high"));
  }
  if (power["site_kwh_per_hour"].Number()) {
    text += fmt::format("; {} kW with hosts and cooling", FigureText(power["site_kwh_per_hour"]));
  }
  if (power["electricity_per_hour"].Number()) {
    text += fmt::format("; electricity {} an hour", DollarText(power["electricity_per_hour"]));
  }
  if (power["co2_kg_per_hour"].Number()) {
    text += fmt::format("; {} kg of CO2 an hour", FigureText(power["co2_kg_per_hour"]));
  }
  return report["power"].Is() ? text : text + "; in the first run";
}

std::string Memory(View report) {
  const View weights = report["memory"]["weights_gib"], total = report["memory"]["total_gib"];
  if (!total.Number()) return "";
  const View usage = report["kv"]["mean_usage"].Is() ? report["kv"] : report["first_run"]["kv"];
  std::string text =
      fmt::format("weights {} of {} GiB a GPU", FigureText(weights), FigureText(total));
  if (usage["mean_usage"].Number()) {
    text += fmt::format("; KV cache {} used, {} at the peak", ShareText(usage["mean_usage"]),
                        ShareText(usage["peak_usage"]));
  }
  const View preemptions = OfRun(report, "preemptions");
  if (preemptions.Number()) {
    const auto count = static_cast<std::int64_t>(*preemptions.Number());
    text += count == 0 ? "; no preemptions" : "; " + Count(count, "preemption");
  }
  const View hits = OfRun(report, "prefix_cache")["hit_rate"];
  if (hits.NumberOr(0) > 0) text += fmt::format("; prefix hits {}", ShareText(hits));
  return text;
}

std::string Images(View report) {
  const View images = OfRun(report, "images");
  if (!images.Is()) return "";
  std::string text = fmt::format("{} tokens each; encoding takes {} of the steps' time",
                                 FigureText(images["tokens"]), ShareText(images["encode_share"]));
  if (images["ttft_ms"].Number()) {
    text += fmt::format(", {} ms of the mean TTFT", FigureText(images["ttft_ms"]));
  }
  return report["images"].Is() ? text : text + "; in the first run";
}

std::string Retries(View report) {
  const View retries = OfRun(report, "retries");
  if (!retries.Is()) return "";
  const auto count = [&](const char* key) {
    return static_cast<std::int64_t>(retries[key].NumberOr(0));
  };
  return fmt::format("{} attempts per request; {} given up, {} lost",
                     FigureText(retries["amplification"]), Count(count("given_up"), "request"),
                     Count(count("tokens_lost"), "output token"));
}

// Of replicas that come and go, or are replaced.
std::string Fleet(View report) {
  const View scaling = OfRun(report, "scaling");
  if (!scaling.Is()) return "";
  const auto count = [&](const char* key) {
    return static_cast<std::int64_t>(scaling[key].NumberOr(0));
  };
  std::string text = fmt::format("{} and {} of replicas, up to {} up; {} GPUs on average",
                                 Count(count("starts"), "start"), Count(count("stops"), "stop"),
                                 count("peak_up"), FigureText(scaling["mean_gpus"]));
  if (scaling["rolling_update_s"].Number()) {
    text += fmt::format("; all replaced in {} s", FigureText(scaling["rolling_update_s"]));
  }
  std::string of_pools;
  const View of_first = report["first_run"]["pools"];
  std::size_t number = 0;
  for (const View pool : report["pools"].Elements()) {
    const View run = of_first.Is() ? of_first.At(number) : pool, own = run["scaling"];
    ++number;
    if (!own.Is()) continue;
    of_pools += fmt::format("{}{} {} on average, up to {} up", of_pools.empty() ? "" : "; ",
                            pool["role"].Words(), FigureText(own["mean_replicas"]),
                            static_cast<std::int64_t>(own["peak_up"].NumberOr(0)));
  }
  if (!of_pools.empty()) text += "; replicas by pool: " + of_pools;
  return text + (report["scaling"].Is() ? "" : ", in the first run");
}

std::string Failures(View report) {
  const View failures = OfRun(report, "failures");
  if (!failures.Is()) return "";
  const auto count = [&](const char* key) {
    return static_cast<std::int64_t>(failures[key].NumberOr(0));
  };
  return fmt::format("{} of replicas, {} available; {} and {} lost{}",
                     Count(count("failures"), "failure"), ShareText(failures["availability"]),
                     Count(count("lost_attempts"), "request"),
                     Count(count("tokens_lost"), "output token"),
                     report["failures"].Is() ? "" : ", in the first run");
}

std::string RestsOn(View report) {
  std::string text;
  const View certainty = report["certainty"];
  if (certainty.Is()) {
    text = Count(static_cast<std::int64_t>(certainty["runs"].NumberOr(1)), "run") + " of " +
           Count(static_cast<std::int64_t>(certainty["requests_per_run"].NumberOr(0)), "request") +
           ". ";
  } else if (report["arrived"].Number()) {
    text = "1 run of " + Count(static_cast<std::int64_t>(*report["arrived"].Number()), "request") +
           ". ";
  }
  text += report["evidence"]["sentence"].Words();
  for (const View warning : report["evidence"]["warnings"].Elements()) {
    text += " " + warning.Words();
  }
  // Its first sentence; the others are in the JSON.
  const std::string error = report["model_error"]["sentence"].Words();
  return error.empty() ? text : text + " " + error.substr(0, error.find(". ") + 1);
}

std::vector<Next> NextOf(std::string_view state, bool plans) {
  if (state == "meets" && plans) {
    return {{"plan max-rate", "the highest load"}, {"plan min-gpus", "the fewest GPUs"}};
  }
  if (state == "meets") return {{"explain", "what binds"}};
  if (state == "does_not_fit") return {{"plan search", "designs that fit"}};
  if (state == "no_slo") return {{"explain", "what binds"}};
  if (state == "empty") return {};
  std::vector<Next> next = {{"explain", "why"}, {"advise", "what helps"}};
  if (plans) next.push_back({"plan min-gpus", "the GPUs it needs"});
  return next;
}

}  // namespace

std::string TargetTable(View report, const Style& style) {
  const std::vector<View> targets = report["slo"].Elements();
  const bool banded =
      std::any_of(targets.begin(), targets.end(), [](View slo) { return slo["band"].Is(); });
  Table table("lrrlrll");
  table.Row({"target", "limit", "value", banded ? "90 % band" : "95 % interval",
             banded ? "met with" : "", "", "of the limit"});
  std::string notes;
  for (const View slo : targets) {
    const Tone tone = ToneOfTarget(slo);
    const View probability = slo["band"]["probability"];
    const std::optional<double> share = ShareOfLimit(slo);
    table.Row({TargetName(slo), TargetLimit(slo), Cell(ValueOfTarget(slo), tone),
               RangeOfTarget(slo),
               probability.Number() ? ProbabilityText(*probability.Number()) : "",
               Cell(style.Mark(tone), tone),
               share ? Bar(style, *share, kBarCells) + " " + WholePercent(*share) : ""});
    if (slo["limit_share"].Is()) {
      notes += Wrapped(style, "  ",
                       "attainment: the share of requests within " + LimitsOfAttainment(slo));
    }
  }
  return table.empty() ? "" : "\n" + table.Text(style) + notes;
}

std::string RunText(View report, const Style& style, const std::string& shown, bool plans) {
  const View verdict = report["verdict"];
  const std::string state = verdict["state"].Words();
  std::string out = VerdictLine(style, state, verdict["sentence"].Words());
  out += TargetTable(report, style);
  out += PercentileTable(report, style);
  if (report["unfit"].Is()) return out + "\n" + NextLines(style, NextOf(state, plans), shown);
  out += "\n";
  out += NamedLine(style, "serves", Serves(report));
  out += NamedLine(style, "costs", Costs(report));
  out += NamedLine(style, "draws", Draws(report));
  out += NamedLine(style, "memory", Memory(report));
  out += NamedLine(style, "replicas", Fleet(report));
  out += NamedLine(style, "failures", Failures(report));
  out += NamedLine(style, "images", Images(report));
  out += NamedLine(style, "retries", Retries(report));
  out += NamedLine(style, "limit", verdict["limit"].Words());
  out += NamedLine(style, "note", verdict["note"].Words());
  out += NamedLine(style, "rests on", RestsOn(report));
  out += NamedLine(style, "identity", report["fingerprint"].Words());
  return out + "\n" + NextLines(style, NextOf(state, plans), shown);
}

}  // namespace servecast
