// See limits.h.
#include "experiment/limits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/text.h"
#include "cost/all_reduce.h"
#include "cost/model_cost.h"
#include "cost/nodes.h"
#include "experiment/advise.h"
#include "metrics/words.h"
#include "workload/adapters.h"

namespace servecast {
namespace {

// At least one more, or one less.
std::int64_t Times(std::int64_t count, double factor) {
  const auto near = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(count) * factor));
  return factor > 1 ? std::max(count + 1, near)
                    : std::max<std::int64_t>(1, std::min(count - 1, near));
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

void Compute(Scenario& s, double factor, const Report&) {
  ChangeHardware(s, [factor](HardwareSpec& h) {
    h.peak_bf16_tflops *= factor;
    h.peak_fp8_tflops *= factor;
    h.peak_fp4_tflops *= factor;
    h.peak_int8_tops *= factor;
  });
}
void Bandwidth(Scenario& s, double factor, const Report&) {
  ChangeHardware(s, [factor](HardwareSpec& h) { h.memory_bandwidth_gb_s *= factor; });
}
void Link(Scenario& s, double factor, const Report&) {
  ChangeHardware(s, [factor](HardwareSpec& h) {
    Interconnect kind = InterconnectOf(h);
    h.interconnect_gb_s *= factor;
    // What the host lets through is no figure of the link: without it cards are peers.
    if (factor > 1 && kind == Interconnect::kPcieHost) kind = Interconnect::kPcieP2p;
    if (kind != InterconnectOf(h)) h.interconnect = kind;
    h.interconnect_latency_us /= factor;
    h.inter_node_gb_s *= factor;
    h.inter_node_latency_us /= factor;
  });
}
void Host(Scenario& s, double factor, const Report&) {
  ChangeEngines(s, [factor](EngineSpec& e) {
    e.step_overhead_us /= factor;
    e.sequence_overhead_us /= factor;
    e.sampler_ns_per_logit /= factor;
    e.request_overhead_ms /= factor;
    e.prompt_token_overhead_us /= factor;
    e.delivery_overhead_us /= factor;
    e.host_stall_ms /= factor;
    e.launch_eager_us /= factor;
    e.launch_replay_us /= factor;
  });
  ChangeHardware(s, [factor](HardwareSpec& h) { h.layer_latency_us /= factor; });
}
// Of each pool's own cache.
void KvBlocks(Scenario& s, double factor, const Report& report) {
  if (s.cluster.pools.size() == 1) {
    s.UsePool(0);
    s.engine.num_gpu_blocks_override = Times(report.kv_blocks, factor) + 1;
    return;
  }
  for (std::size_t p = 0; p < s.cluster.pools.size(); ++p) {
    PoolSpec& pool = s.cluster.pools[p];
    if (!pool.engine) pool.engine = s.engine;
    Scenario alone = s;
    alone.UsePool(p);
    const Result<ModelCost> cost = ComputeModelCost(alone);
    if (cost.ok()) {
      pool.engine->num_gpu_blocks_override = Times(cost.value().usable_blocks, factor) + 1;
    }
  }
}
void Seats(Scenario& s, double factor, const Report&) {
  ChangeEngines(s, [factor](EngineSpec& e) { e.max_num_seqs = Times(e.max_num_seqs, factor); });
}
void AdapterSeats(Scenario& s, double factor, const Report&) {
  ChangeEngines(s, [factor](EngineSpec& e) {
    if (e.max_loras > 0) e.max_loras = Times(e.max_loras, factor);
  });
}
void TokenBudget(Scenario& s, double factor, const Report&) {
  ChangeEngines(s, [factor](EngineSpec& e) {
    e.max_num_batched_tokens = Times(e.max_num_batched_tokens, factor);
  });
}
void Transfer(Scenario& s, double factor, const Report&) {
  s.cluster.disaggregation.bandwidth_gb_s = TransferGbS(s) * factor;
  s.cluster.disaggregation.base_latency_us /= factor;
}

bool HasLink(const Scenario& s) {
  return std::any_of(s.cluster.pools.begin(), s.cluster.pools.end(), [](const PoolSpec& pool) {
    return pool.tensor_parallel > 1 || pool.pipeline_parallel > 1;
  });
}
bool HasTransfer(const Scenario& s) { return s.cluster.Has(PoolRole::kDecode); }

constexpr Resource kResources[] = {
    {"compute", "arithmetic", Compute},
    {"bandwidth", "memory bandwidth", Bandwidth},
    {"link", "the link between GPUs", Link, HasLink},
    {"host", "host time", Host},
    {"kv_blocks", "KV memory", KvBlocks},
    {"seats", "max_num_seqs", Seats},
    {"adapter_seats", "max_loras", AdapterSeats, MayLackSeats},
    {"token_budget", "max_num_batched_tokens", TokenBudget},
    {"transfer", "the link between prefill and decode", Transfer, HasTransfer},
};

}  // namespace

std::vector<Resource> ResourcesOf(const Scenario& scenario) {
  std::vector<Resource> own;
  for (const Resource& resource : kResources) {
    if (resource.has == nullptr || resource.has(scenario)) own.push_back(resource);
  }
  return own;
}

std::vector<Relaxed> RelaxedScenarios(const Scenario& scenario, const Report& report) {
  std::vector<Relaxed> all = {{"none", scenario}};
  for (const Resource& resource : ResourcesOf(scenario)) {
    all.push_back({resource.name, scenario});
    resource.change(all.back().scenario, kRelief, report);
  }
  if (scenario.cluster.Replicas() > 1 && scenario.cluster.router != "least_outstanding" &&
      scenario.cluster.router != "central_queue" && !scenario.cluster.ControlsFlow()) {
    all.push_back({"router", scenario});
    all.back().scenario.cluster.router = "least_outstanding";
    all.back().scenario.cluster.router_params.clear();
  }
  return all;
}

void RelaxInPools(const std::vector<Relief>& reliefs, std::vector<Relaxed>& relaxed) {
  const std::size_t pools = relaxed[0].scenario.cluster.pools.size();
  if (pools < 2 || reliefs.empty() || reliefs[0].gain < kHelps) return;
  const std::string_view name = reliefs[0].name;
  if (name == "transfer" || name == "router") return;
  const auto greatest = std::find_if(relaxed.begin(), relaxed.end(),
                                     [name](const Relaxed& each) { return each.name == name; });
  const Scenario more = greatest->scenario;
  for (std::size_t p = 0; p < pools; ++p) {
    relaxed.push_back({name, relaxed[0].scenario});
    const PoolSpec& from = more.cluster.pools[p];
    PoolSpec& to = relaxed.back().scenario.cluster.pools[p];
    to.hardware = from.hardware.value_or(more.hardware);
    to.engine = from.engine.value_or(more.engine);
  }
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

namespace {

// " for decode": the pool whose relief alone does most of what that of all does.
std::string OfPools(const std::vector<PoolSpec>& pools, const Relief& relief) {
  constexpr double kMost = 0.7;
  const auto top = std::max_element(relief.pools.begin(), relief.pools.end());
  if (top == relief.pools.end() || *top < kMost * relief.gain) return "";
  return OfPool(pools, static_cast<std::size_t>(top - relief.pools.begin()));
}

}  // namespace

void NameTheLimit(const Scenario& scenario, const std::vector<Relief>& reliefs, bool overloaded,
                  std::size_t target, Report& report) {
  if (reliefs.empty() || reliefs[0].gain < kHelps) return;
  const std::string_view name = reliefs[0].name;
  const auto* resource = std::find_if(std::begin(kResources), std::end(kResources),
                                      [name](const Resource& r) { return r.name == name; });
  const bool router = resource == std::end(kResources);
  const std::string_view limit =
      router ? "the router: replicas are loaded unevenly" : resource->words;
  // As Link has it.
  const bool peers = name == "link" && InterconnectOf(scenario.hardware) == Interconnect::kPcieHost;
  const std::string_view more = router  ? "least_outstanding"
                                : peers ? "a faster link of cards that read each other's memory"
                                : name == "link" || name == "transfer" ? "a 10 % faster link"
                                : name == "host"                       ? "10 % less of it"
                                : name == "adapter_seats"              ? "one more, or 10 % more,"
                                                                       : "10 % more of it";
  BindingConstraint& binding = report.binding;
  binding.name = reliefs[0].name;
  binding.share = 0;
  const std::string_view measured = binding.name == "host" || binding.name == "link" ? "overhead"
                                    : binding.name == "adapter_seats"                ? "seats"
                                                                                     : binding.name;
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
  report.verdict.limit = Format("The limit is {}{}: {} {}.", limit,
                                OfPools(scenario.cluster.pools, reliefs[0]), more, effect);
}

}  // namespace servecast
