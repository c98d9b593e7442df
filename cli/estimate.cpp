// servecast estimate and validate: the closed-form answer beside the simulated one, and whether a
// scenario and its coefficients can be true.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "arguments.h"
#include "base/text.h"
#include "commands.h"
#include "io/json_writer.h"
#include "policies/estimate.h"
#include "policies/plausibility.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr const char* kEstimateHelp =
    "servecast estimate FILE|PRESET [--set path=value]... [--trace FILE] [--coefficients ID|FILE]\n"
    "\n"
    "Prints the steady state under the scenario's mean load in closed form, beside what the\n"
    "simulation finds, for one replica with an equal share of the load. It uses Little's law, the\n"
    "latency model's step time, and a regression for the wait in the queue\n"
    "(latency.wait_coefficients).\n"
    "\n"
    "-o text (default), json, jsonl or csv (a row for each figure); --fields A,B: as in run.\n"
    "\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

constexpr const char* kValidateHelp =
    "servecast validate FILE|PRESET [--set path=value]... [--coefficients ID|FILE]\n"
    "\n"
    "Prints every issue with its place in the document (a JSON pointer), or the scenario's id.\n"
    "This includes whether the model fits the GPU and, with coefficients, whether they are\n"
    "plausible: their signs, and whether any step would be faster than the GPU's peaks allow.\n"
    "\n"
    "Exit 0: done. 2: bad input, every issue on stderr. 70: a bug of servecast.\n";

std::string FourDigits(double value) {
  return std::isinf(value) ? "grows" : fmt::format("{:.4g}", value);
}

// Means of the requests; a rate of 0 when they do not come over time.
Demand DemandOf(const Scenario& s, const RequestTable& requests) {
  Demand demand;
  TimeNs last = 0;
  const auto rows = static_cast<double>(requests.size());
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    demand.prompt_tokens += requests.prompt_tokens[i] / rows;
    demand.output_tokens += requests.output_tokens[i] / rows;
    last = std::max(last, requests.arrival[i]);
  }
  if (last == 0 || s.workload->arrivals.process == ArrivalProcess::kClosedLoop) return demand;
  // Of one replica of equals.
  demand.requests_per_s =
      rows / (static_cast<double>(last) * 1e-9) / static_cast<double>(s.cluster.pool().replicas);
  if (s.engine.enable_prefix_caching && s.workload->prefix.groups > 0) {
    const auto shared = static_cast<double>(s.workload->prefix.tokens);
    demand.prefix_hit_ratio = std::min(shared / demand.prompt_tokens, 1.0);
  }
  return demand;
}

Result<Estimate> EstimateOf(const Scenario& asked, const Trace& trace) {
  Scenario scenario = asked;
  if (scenario.cluster.pools.size() == 1) scenario.UsePool(0);
  const std::int64_t stages = scenario.cluster.pool().pipeline_parallel;
  if (stages > 1) {
    return Issue{"/cluster/pools/0/pipeline_parallel",
                 fmt::format("found {}, allowed 1 for an estimate: its closed form is that of one "
                             "batch after the other",
                             stages)};
  }
  if (scenario.cluster.pools.size() > 1) {
    return Issue{
        "/cluster/pools",
        fmt::format("found {} pools, allowed 1 for an estimate: its closed form is that of "
                    "equal replicas",
                    scenario.cluster.pools.size())};
  }
  if (scenario.scheduler.policy != "vllm") {
    return Issue{"/scheduler/policy",
                 fmt::format("found \"{}\", allowed \"vllm\" for an estimate: its closed form is "
                             "that of vLLM's batches",
                             scenario.scheduler.policy)};
  }
  if (scenario.engine.max_loras > 0) {
    return Issue{
        "/engine/max_loras",
        fmt::format("found {}, allowed 0 for an estimate: its closed form knows no adapters",
                    scenario.engine.max_loras)};
  }
  if (scenario.engine.speculative.method != DraftMethod::kNone) {
    return Issue{
        "/engine/speculative/method",
        "found drafts, allowed \"none\" for an estimate: its closed form is one token a step"};
  }
  if (scenario.workload->HasImages()) {
    return Issue{"/workload/images/per_request",
                 "found images, allowed 0 for an estimate: its closed form has no encoder"};
  }
  if (CapsClients(scenario.workload->arrivals)) {
    return Issue{"/workload/arrivals/max_concurrency",
                 fmt::format("found {}, allowed none for an estimate: in its closed form requests "
                             "come however many there are",
                             *scenario.workload->arrivals.max_concurrency)};
  }
  const Result<ModelCost> cost = ComputeModelCost(scenario);
  if (!cost.ok()) return Issues(cost.issues());
  const Result<RequestTable> requests = MakeRequests(scenario, trace);
  if (!requests.ok()) return Issues(requests.issues());
  const Demand demand = DemandOf(scenario, requests.value());
  if (demand.requests_per_s == 0) {
    return Issue{"/workload/arrivals", "an estimate needs requests that come over time, at a rate"};
  }
  const auto model = ChosenLatencyModel(scenario).make(scenario, cost.value());
  return EstimateSteadyState(scenario, cost.value(), *model, demand);
}

// A figure of the closed form, and the simulation's; NaN: it has none.
struct Beside {
  const char *title, *key;
  double closed, simulated;
};

std::vector<Beside> FiguresOf(const Estimate& e, const Report& r) {
  const double none = std::nan("");
  const auto mean = [none](const Distribution& distribution, double less = 0) {
    return distribution.n > 0 ? distribution.mean - less : none;
  };
  return {{"requests running", "running", e.running, r.mean_batch_size},
          {"requests waiting", "waiting", e.waiting, none},
          {"KV cache in use %", "kv_usage_percent", 100 * e.kv_usage, 100 * r.kv_mean_usage},
          {"host delay ms", "host_ms", e.host_ms, none},
          {"delivery ms", "delivery_ms", e.delivery_ms, none},
          {"wait by regression ms", "regression_ms", e.regression_ms, none},
          {"wait for a step ms", "step_wait_ms", e.step_wait_ms, none},
          {"both waits ms", "waits_ms", e.regression_ms + e.step_wait_ms,
           mean(r.scheduling_delay_ms, e.host_ms)},
          {"TTFT mean ms", "ttft_ms", e.ttft_ms, mean(r.ttft_ms)},
          {"TPOT mean ms", "tpot_ms", e.tpot_ms, mean(r.tpot_ms)},
          {"E2E mean ms", "e2e_ms", e.e2e_ms, mean(r.e2e_ms)}};
}

std::string EstimateText(const Estimate& e, const Report& r) {
  const Demand& d = e.demand;
  std::string text = fmt::format(
      "{:.4g} requests/s of {:.4g} prompt and {:.4g} output tokens; at most {:.4g} requests/s{}\n\n"
      "{:<26} {:>14} {:>14}\n",
      d.requests_per_s, d.prompt_tokens, d.output_tokens, e.most_requests_per_s,
      e.overloaded ? ": overloaded, the queue grows" : "", "", "closed form", "simulated");
  for (const Beside& row : FiguresOf(e, r)) {
    text += fmt::format("{:<26} {:>14} {:>14}\n", row.title, FourDigits(row.closed),
                        std::isnan(row.simulated) ? "" : FourDigits(row.simulated));
  }
  return text +
         "\nThe regression (latency.wait_coefficients) is in the closed form only. The simulated\n"
         "wait is the scheduling delay minus the host delay.\n";
}

// What grows without bound is null.
std::string EstimateJson(const Estimate& e, const Report& r) {
  JsonWriter out(true);
  out.BeginObject();
  out.Key("requests_per_s"), out.Number(e.demand.requests_per_s);
  out.Key("prompt_tokens"), out.Number(e.demand.prompt_tokens);
  out.Key("output_tokens"), out.Number(e.demand.output_tokens);
  out.Key("most_requests_per_s"), out.Number(e.most_requests_per_s);
  out.Key("overloaded"), out.Boolean(e.overloaded);
  out.Key("figures"), out.BeginArray();
  for (const Beside& row : FiguresOf(e, r)) {
    out.BeginObject();
    out.Key("name"), out.Text(row.key);
    out.Key("closed_form"), out.Number(row.closed);
    out.Key("simulated"), out.Number(row.simulated);
    out.EndObject();
  }
  out.EndArray();
  out.EndObject();
  return out.Take();
}

std::string PlausibilityText(const Scenario& s) {
  const std::string& backend = s.latency.backend;
  if (backend != "physics" && backend != "blackbox") return "";
  const Result<ModelCost> cost = ComputeModelCost(s);
  if (!cost.ok()) return "";
  std::string text;
  if (backend == "physics") {
    for (const std::string& line : ImplausibleSigns(s.latency)) text += line + "\n";
  }
  const auto model = FindLatencyModel(backend).make(s, cost.value());
  const LightCheck check = CheckSpeedOfLight(s, cost.value(), *model);
  text += fmt::format(
      "{} of {} batches faster than light; the fastest takes {:.3g} of the least "
      "possible time: {}\n",
      check.faster, check.batches, check.least_share, check.fastest);
  if (check.shorter > 0) {
    text += fmt::format("{} of them take less time with more work\n", check.shorter);
  }
  return text;
}

}  // namespace

int EstimateCommand(const Words& words) {
  Arguments args;
  if (const auto done = ReadArguments(words, {.help = kEstimateHelp, .answers = true}, args)) {
    return *done;
  }
  const Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  const auto& [scenario, trace] = asked.value();
  const Result<Estimate> estimate = EstimateOf(scenario, trace);
  if (!estimate.ok()) return PrintIssues(Labelled(LabelOf(args), estimate.issues()));
  const std::optional<Report> report = RunOnce(args, trace);
  if (!report) return kBadInput;
  const std::string text = EstimateText(estimate.value(), *report);
  return PrintAnswer(args.form, {.json = EstimateJson(estimate.value(), *report),
                                 .text = [&text](View, const Style&) { return text; },
                                 .rows = [](View answer) { return answer["figures"].Elements(); },
                                 .as_ever = text});
}

int ValidateCommand(const Words& words) {
  Arguments args;
  const Options options{.help = kValidateHelp, .replays = false};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  Result<Scenario> scenario = LoadScenario(args);
  if (!scenario.ok()) return PrintIssues(scenario.issues());
  const std::string id = HashText(scenario.value().id);
  const bool traced = scenario.value().workload->arrivals.process == ArrivalProcess::kTrace;
  if (!traced) {
    const Result<Simulation> simulation = MakeRun<Simulation>(args, scenario.value(), Trace());
    if (!simulation.ok()) return PrintIssues(simulation.issues());
  }
  fmt::print("ok {}{}\n", id, traced ? " (needs a trace)" : "");
  fmt::print("{}", PlausibilityText(scenario.value()));
  return 0;
}

}  // namespace servecast
