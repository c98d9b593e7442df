// servecast compare: one scenario under several settings, side by side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "arguments.h"
#include "band.h"
#include "base/printable.h"
#include "commands.h"
#include "io/coefficients.h"
#include "io/json_writer.h"
#include "metrics/words.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kCompareHelp =
    "servecast compare FILE|PRESET --with path=value [--and path=value]... [--with ...]...\n"
    "servecast compare FILE|PRESET --backends\n"
    "\n"
    "Runs the scenario as given (with --set, --trace and --coefficients as in run), then once for\n"
    "each --with, changed by it and by every --and after it, and prints the figures side by\n"
    "side, as servecast run finds them: targets (the one that decides comes first), latencies and\n"
    "rates are of all runs that the verdict rests on, counts and shares of time of the first run\n"
    "alone. All scenarios see the same seeds. Under rules other than vLLM's it also says how "
    "these\n"
    "differ. For example, step-time models:\n"
    "\n"
    "  servecast compare llama-3.1-8b-h100-chat --with latency.backend=roofline\n"
    "\n"
    "--backends: under analytic, operators, roofline, physics, and blackbox with the scenario's\n"
    "coefficients or BLIS's set for its model, GPU and tensor parallelism, where there is one.\n"
    "--once: one run of each scenario, faster and without intervals. --sampling: intervals of\n"
    "sampling alone, without the forecast's own error, in half the time.\n"
    "\n"
    "-o text (default on a terminal), json, jsonl or csv (a row for each run); --fields A,B;\n"
    "--color WHEN: as in run. Exit 0: done. 2: bad input. 70: a bug of servecast.\n";

struct Row {
  std::string name;
  std::function<double(const Report&)> value;  // NaN: there is none
};

double OrNone(const Distribution& d, double value) { return d.n > 0 ? value : std::nan(""); }

// Of the mean E2E of completed requests; none by BLIS's rules.
double MeanPart(const Report& r, std::size_t part) {
  return r.time_split.n > 0 ? r.time_split.e2e_ms[part] : std::nan("");
}

bool Same(const SloSpec& a, const SloSpec& b) {
  return a.metric == b.metric && a.percentile == b.percentile && a.of_class == b.of_class &&
         a.ttft_ms == b.ttft_ms && a.tpot_ms == b.tpot_ms && a.e2e_ms == b.e2e_ms;
}

// What this target, or one that is the same but for its limit, comes to.
double ValueOf(const SloSpec& slo, const Report& r) {
  for (const SloResult& result : r.slo) {
    if (!Same(slo, result.slo)) continue;
    if (result.slo.metric == SloMetric::kAttainment)
      return 100 * result.share.value_or(std::nan(""));
    return result.value_ms.value_or(std::nan(""));
  }
  return std::nan("");
}

std::string NameOf(const SloSpec& slo) {
  const std::string of = slo.of_class.empty() ? "" : " of " + Printable(slo.of_class);
  return slo.metric == SloMetric::kAttainment
             ? "within " + Limits(slo) + of + " %"
             : fmt::format("{} p{:g} ms{}", MetricName(slo.metric), slo.percentile, of);
}

// Those of the targets, the nearest to its limit, or the farthest beyond it, first.
std::vector<Row> TargetRows(const Report& report) {
  std::vector<const SloResult*> targets;
  for (const SloResult& result : report.slo) targets.push_back(&result);
  static constexpr double kNoValue = -1e300;  // it grows for as long as requests come
  std::stable_sort(targets.begin(), targets.end(), [](const SloResult* a, const SloResult* b) {
    return a->margin.value_or(kNoValue) < b->margin.value_or(kNoValue);
  });
  std::vector<Row> rows;
  for (const SloResult* target : targets) {
    rows.push_back(
        {NameOf(target->slo), [slo = target->slo](const Report& r) { return ValueOf(slo, r); }});
  }
  return rows;
}

const std::vector<Row>& Latencies() {
  static const std::vector<Row> rows = {
      {"scheduling delay mean ms",
       [](const Report& r) { return OrNone(r.scheduling_delay_ms, r.scheduling_delay_ms.mean); }},
      {"TTFT mean ms", [](const Report& r) { return OrNone(r.ttft_ms, r.ttft_ms.mean); }},
      {"TTFT p99 ms", [](const Report& r) { return OrNone(r.ttft_ms, r.ttft_ms.p99); }},
      {"TPOT mean ms", [](const Report& r) { return OrNone(r.tpot_ms, r.tpot_ms.mean); }},
      {"TPOT p99 ms", [](const Report& r) { return OrNone(r.tpot_ms, r.tpot_ms.p99); }},
      {"E2E mean ms", [](const Report& r) { return OrNone(r.e2e_ms, r.e2e_ms.mean); }},
      {"E2E p99 ms", [](const Report& r) { return OrNone(r.e2e_ms, r.e2e_ms.p99); }},
      {"requests/s", [](const Report& r) { return r.requests_per_s; }},
      {"goodput requests/s", [](const Report& r) { return r.goodput_per_s; }},
      {"output tokens/s", [](const Report& r) { return r.output_tokens_per_s; }},
      {"$/1M output tokens",
       [](const Report& r) { return r.cost_per_million_output_tokens.value_or(std::nan("")); }},
  };
  return rows;
}

const std::vector<Row>& RowsOfARun() {
  static const std::vector<Row> rows = {
      {"completed", [](const Report& r) { return static_cast<double>(r.completed); }},
      {"dropped", [](const Report& r) { return static_cast<double>(r.dropped); }},
      {"timed out", [](const Report& r) { return static_cast<double>(r.timed_out); }},
      {"steps", [](const Report& r) { return static_cast<double>(r.steps); }},
      {"preemptions", [](const Report& r) { return static_cast<double>(r.preemptions); }},
      {"prompt tokens cached",
       [](const Report& r) { return static_cast<double>(r.prefix_cache.hit_tokens); }},
      {"ITL mean ms", [](const Report& r) { return OrNone(r.itl_ms, r.itl_ms.mean); }},
      {"ITL p99 ms", [](const Report& r) { return OrNone(r.itl_ms, r.itl_ms.p99); }},
      {"E2E mean: host ms", [](const Report& r) { return MeanPart(r, 0); }},
      {"E2E mean: queue ms", [](const Report& r) { return MeanPart(r, 1); }},
      {"E2E mean: prefill ms", [](const Report& r) { return MeanPart(r, 2); }},
      {"E2E mean: decode ms", [](const Report& r) { return MeanPart(r, 3); }},
      {"E2E mean: interference ms", [](const Report& r) { return MeanPart(r, 4); }},
      {"E2E mean: preempted ms", [](const Report& r) { return MeanPart(r, 5); }},
      {"E2E mean: transfer ms", [](const Report& r) { return MeanPart(r, 6); }},
      {"E2E mean: handover ms", [](const Report& r) { return MeanPart(r, 7); }},
      {"MFU", [](const Report& r) { return r.mfu.value_or(std::nan("")); }},
      {"bandwidth use", [](const Report& r) { return r.bandwidth_use.value_or(std::nan("")); }},
      {"W a GPU", [](const Report& r) { return r.power ? r.power->mean_w : std::nan(""); }},
      {"J an output token",
       [](const Report& r) {
         return r.power ? r.power->j_per_output_token.value_or(std::nan("")) : std::nan("");
       }},
      {"simulated s", [](const Report& r) { return r.simulated_s; }},
  };
  return rows;
}

std::string Number(double value) {
  if (std::isnan(value)) return "-";
  return value == std::nearbyint(value) && std::fabs(value) < 1e15 ? fmt::format("{:.0f}", value)
                                                                   : fmt::format("{:.4g}", value);
}

// "+3.1 %", "=", or nothing where no share can be said.
std::string Difference(double value, double base) {
  if (std::isnan(value) || std::isnan(base)) return "";
  if (value == base) return "=";
  return base == 0 ? "" : fmt::format("{:+.3g} %", 100 * (value / base - 1));
}

// What was changed, and what came of it.
struct ComparedRun {
  std::string set;
  Judgement judged;

  const Report& report() const { return judged.report; }
};
using Runs = std::vector<ComparedRun>;

std::string ComparisonText(const Runs& runs) {
  std::string text = fmt::format("{:<26}", "");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    text += fmt::format(" {:>14}", i == 0 ? "as given" : fmt::format("({})", i));
    if (i > 0) text += fmt::format(" {:>10}", "");
  }
  text += '\n';
  std::vector<Row> rows = TargetRows(runs[0].report());
  for (const Row& row : Latencies()) {
    const bool told = std::any_of(rows.begin(), rows.end(),
                                  [&row](const Row& target) { return target.name == row.name; });
    if (!told) rows.push_back(row);
  }
  const std::size_t of_a_run = rows.size();
  rows.insert(rows.end(), RowsOfARun().begin(), RowsOfARun().end());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const Row& row = rows[at];
    if (at == of_a_run && runs[0].report().certainty) text += "of the first run:\n";
    const double base = row.value(runs[0].report());
    text += fmt::format("{:<26}", row.name);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double value = row.value(runs[i].report());
      text += fmt::format(" {:>14}", Number(value));
      if (i > 0) text += fmt::format(" {:>10}", Difference(value, base));
    }
    text += '\n';
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    text +=
        fmt::format("\n{}: {} {}\n", i == 0 ? "as given" : fmt::format("({})", i),
                    i == 0 ? "" : runs[i].set + ".", Printable(runs[i].report().verdict.sentence));
  }
  return text;
}

std::string OtherRules(const Runs& runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].report().departures.empty()) continue;
    text += fmt::format("\nOther rules than vLLM's, in {}:\n",
                        i == 0 ? "the scenario as given" : fmt::format("({})", i));
    for (const std::string_view rule : runs[i].report().departures) {
      text += fmt::format("  {}\n", rule);
    }
  }
  return text;
}

std::string ComparisonJson(const Runs& runs) {
  JsonWriter out(true);
  out.BeginObject();
  out.Key("runs"), out.BeginArray();
  for (const ComparedRun& run : runs) {
    out.BeginObject();
    out.Key("set"), out.Text(run.set);
    out.Key("other_rules"), out.BeginArray();
    for (const std::string_view rule : run.report().departures) out.Text(rule);
    out.EndArray();
    out.Key("report"), out.Raw(run.judged.Json(ReportParts::kSummary));
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
  return out.Take();
}

std::vector<std::vector<std::string>> BackendVariants(const Scenario& scenario) {
  std::vector<std::vector<std::string>> variants;
  for (const std::string_view name : {"analytic", "operators", "roofline", "physics"}) {
    // BLIS's rules refuse it.
    if (name == "physics" && scenario.engine.compat != Compat::kNone) continue;
    variants.push_back({fmt::format(R"(latency={{"backend":"{}"}})", name)});
  }
  std::string blackbox;
  const Result<std::vector<CoefficientSet>> sets = PublishedCoefficientSets();
  for (const CoefficientSet& set : sets.ok() ? sets.value() : std::vector<CoefficientSet>()) {
    if (IsSetOf(set, scenario)) blackbox = set.latency;
  }
  if (scenario.latency.backend == "blackbox") {
    blackbox =
        fmt::format(R"({{"backend":"blackbox","alpha":[{}],"beta":[{}]}})",
                    fmt::join(scenario.latency.alpha, ","), fmt::join(scenario.latency.beta, ","));
  }
  if (!blackbox.empty()) variants.push_back({"latency=" + blackbox});
  return variants;
}

}  // namespace

int CompareCommand(const Words& words) {
  Arguments args;
  std::vector<Words> variants;  // changes of each --with
  bool backends = false, once = false, sampling = false;
  Options options{.help = kCompareHelp, .answers = true};
  options.flags = {{"--backends", &backends}, {"--once", &once}, {"--sampling", &sampling}};
  options.lists = {{"--with",
                    [&variants](const std::string& change) {
                      variants.push_back({change});
                      return std::string();
                    }},
                   {"--and", [&variants](const std::string& change) {
                      if (variants.empty()) return std::string("--and before any --with");
                      variants.back().push_back(change);
                      return std::string();
                    }}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (backends) {
    const Result<Scenario> scenario = LoadScenario(args);
    if (!scenario.ok()) return PrintIssues(scenario.issues());
    variants = BackendVariants(scenario.value());
  }
  if (variants.empty()) return Usage("compare needs --with path=value");
  const Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return PrintIssues(trace.issues());
  variants.insert(variants.begin(), Words());
  Runs runs;
  Progress progress;
  for (const Words& changes : variants) {
    Arguments variant = args;
    variant.overrides.insert(variant.overrides.end(), changes.begin(), changes.end());
    const std::string name = fmt::format("{}", fmt::join(changes, " "));
    variant.label = runs.empty() ? "as given" : name;
    const Result<Scenario> scenario = LoadScenario(variant, !trace.value().has_arrivals);
    if (!scenario.ok()) return PrintIssues(scenario.issues());
    Result<Judgement> judged =
        Judge(variant, scenario.value(), trace.value(), DepthOf(once, sampling), &progress);
    if (!judged.ok()) return PrintIssues(judged.issues());
    runs.push_back({name, std::move(judged.value())});
  }
  return PrintAnswer(args.form, {.json = ComparisonJson(runs),
                                 .text = CompareText,
                                 .rows = [](View answer) { return answer["runs"].Elements(); },
                                 .as_ever = ComparisonText(runs) + OtherRules(runs)});
}

}  // namespace servecast
