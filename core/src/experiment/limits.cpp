// See limits.h.
#include "experiment/limits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/text.h"
#include "cost/nodes.h"
#include "metrics/words.h"

namespace servecast {
namespace {

// Less than this of ten per cent of relief is noise of the batches.
constexpr double kHelps = 0.01;

std::int64_t More(std::int64_t count) {
  return std::max(count + 1,
                  static_cast<std::int64_t>(std::nearbyint(static_cast<double>(count) * kRelief)));
}

// Of the scenario and of every pool that has its own.
template <class Change>
void ChangeHardware(Scenario& s, Change change) {
  change(s.hardware);
  for (PoolSpec& pool : s.cluster.pools) {
    if (pool.hardware) change(*pool.hardware);
  }
}
template <class Change>
void ChangeEngines(Scenario& s, Change change) {
  change(s.engine);
  for (PoolSpec& pool : s.cluster.pools) {
    if (pool.engine) change(*pool.engine);
  }
}

void FasterArithmetic(HardwareSpec& h) {
  h.peak_bf16_tflops *= kRelief;
  h.peak_fp8_tflops *= kRelief;
  h.peak_fp4_tflops *= kRelief;
}
void FasterLink(HardwareSpec& h) {
  h.interconnect_gb_s *= kRelief;
  h.interconnect_latency_us /= kRelief;
  h.inter_node_gb_s *= kRelief;
  h.inter_node_latency_us /= kRelief;
}
void FasterHost(EngineSpec& e) {
  e.step_overhead_us /= kRelief;
  e.sequence_overhead_us /= kRelief;
  e.sampler_ns_per_logit /= kRelief;
  e.request_overhead_ms /= kRelief;
  e.prompt_token_overhead_us /= kRelief;
  e.delivery_overhead_us /= kRelief;
  e.launch_eager_us /= kRelief;
  e.launch_replay_us /= kRelief;
}

// More memory for the cache: more of the GPU's, so that every pool gets its own.
void MoreKv(Scenario& s, const Report& report) {
  if (s.cluster.pools.size() == 1) {
    s.UsePool(0);
    s.engine.num_gpu_blocks_override = More(report.kv_blocks) + 1;
    return;
  }
  for (std::size_t p = 0; p < s.cluster.pools.size(); ++p) {
    PoolSpec& pool = s.cluster.pools[p];
    if (!pool.engine) pool.engine = s.engine;
    const std::int64_t tokens = p < report.pools.size() ? report.pools[p].kv_tokens : 0;
    if (tokens > 0)
      pool.engine->num_gpu_blocks_override = More(tokens / pool.engine->block_size) + 1;
  }
}

bool HasLink(const Scenario& s) {
  return std::any_of(s.cluster.pools.begin(), s.cluster.pools.end(), [](const PoolSpec& pool) {
    return pool.tensor_parallel > 1 || pool.pipeline_parallel > 1;
  });
}

}  // namespace

std::vector<Relaxed> RelaxedScenarios(const Scenario& scenario, const Report& report) {
  std::vector<Relaxed> all;
  const auto add = [&](std::string_view name, auto change) {
    all.push_back({name, scenario});
    change(all.back().scenario);
  };
  add("none", [](Scenario&) {});
  add("compute", [](Scenario& s) { ChangeHardware(s, FasterArithmetic); });
  add("bandwidth", [](Scenario& s) {
    ChangeHardware(s, [](HardwareSpec& h) { h.memory_bandwidth_gb_s *= kRelief; });
  });
  if (HasLink(scenario)) add("link", [](Scenario& s) { ChangeHardware(s, FasterLink); });
  add("host", [](Scenario& s) {
    ChangeEngines(s, FasterHost);
    ChangeHardware(s, [](HardwareSpec& h) { h.layer_latency_us /= kRelief; });
  });
  add("kv_blocks", [&report](Scenario& s) { MoreKv(s, report); });
  add("seats", [](Scenario& s) {
    ChangeEngines(s, [](EngineSpec& e) { e.max_num_seqs = More(e.max_num_seqs); });
  });
  add("token_budget", [](Scenario& s) {
    ChangeEngines(s,
                  [](EngineSpec& e) { e.max_num_batched_tokens = More(e.max_num_batched_tokens); });
  });
  if (scenario.cluster.Has(PoolRole::kDecode)) {
    add("transfer", [](Scenario& s) {
      s.cluster.disaggregation.bandwidth_gb_s = TransferGbS(s) * kRelief;
      s.cluster.disaggregation.base_latency_us /= kRelief;
    });
  }
  if (scenario.cluster.Replicas() > 1 && scenario.cluster.router != "least_outstanding" &&
      scenario.cluster.router != "central_queue") {
    add("router", [](Scenario& s) {
      s.cluster.router = "least_outstanding";
      s.cluster.router_params.clear();
    });
  }
  return all;
}

double Badness(const Scenario& scenario, const Observations& run, std::size_t target,
               bool overloaded) {
  if (overloaded || scenario.slo.empty()) {
    const Pace pace = PaceOf(run);
    return pace.seconds / std::max(pace.completed, 1.0);
  }
  const SloSpec& slo = scenario.slo[target];
  if (slo.metric == SloMetric::kItl) return run.gap_percentile_ms[target];
  std::vector<double> values;
  for (const double ms : run.latency_ms[target]) {
    if (ms >= 0) values.push_back(ms);
  }
  if (values.empty()) return 0;
  const double share = std::min(1.0, 5 * (1 - slo.percentile / 100));
  const auto slowest = std::max<std::size_t>(
      1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(slowest - 1),
                   values.end(), std::greater<>());
  // In one order whatever the library: the sum of doubles depends on it.
  std::sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(slowest),
            std::greater<>());
  double sum = 0;
  for (std::size_t i = 0; i < slowest; ++i) sum += values[i];
  return sum / static_cast<double>(slowest);
}

void NameTheLimit(const Scenario& scenario, const std::vector<Relief>& reliefs, bool overloaded,
                  std::size_t target, Report& report) {
  if (reliefs.empty() || reliefs[0].gain < kHelps) return;
  struct Words {
    std::string_view name, limit, more;
  };
  static constexpr Words kWords[] = {
      {"compute", "arithmetic", "a tenth more of it"},
      {"bandwidth", "memory bandwidth", "a tenth more of it"},
      {"link", "the link between GPUs", "a link faster by a tenth"},
      {"host", "host time", "a tenth less of it"},
      {"kv_blocks", "KV memory", "a tenth more of it"},
      {"seats", "max_num_seqs", "a tenth more of it"},
      {"token_budget", "max_num_batched_tokens", "a tenth more of it"},
      {"transfer", "the link between prefill and decode", "a link faster by a tenth"},
      {"router", "the router: replicas are loaded unevenly", "least_outstanding"},
  };
  const Words* words = std::find_if(std::begin(kWords), std::end(kWords),
                                    [&](const Words& w) { return w.name == reliefs[0].name; });
  BindingConstraint& binding = report.binding;
  binding.name = reliefs[0].name;
  binding.share = 0;
  const std::string_view measured =
      binding.name == "host" || binding.name == "link" ? "overhead" : binding.name;
  for (std::size_t i = 0; i < binding.shares.size(); ++i) {
    if (BindingConstraint::kNames[i] == measured) binding.share = binding.shares[i];
  }
  const double gain = reliefs[0].gain;
  std::string effect;
  if (overloaded) {
    effect = Format("serves {} more", Percent(1 / (1 - gain) - 1));
  } else {
    const SloSpec& slo = scenario.slo[target];
    const bool latencies = slo.metric != SloMetric::kAttainment;
    effect = Format("takes {} off the slowest {}s{}", Percent(gain),
                    latencies ? MetricName(slo.metric) : "request",
                    slo.of_class.empty() ? "" : " of " + slo.of_class);
  }
  report.verdict.limit = Format("The limit is {}: {} {}.", words->limit, words->more, effect);
}

}  // namespace servecast
