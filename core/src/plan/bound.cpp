#include "plan/bound.h"

#include <utility>

#include "cost/model_cost.h"
#include "serving/cluster/deployment.h"
#include "workload/workload.h"

namespace servecast {
namespace {

// Of an average request.
struct Need {
  double computed = 0;       // tokens of its prompt that are not cached
  double prefill_pairs = 0;  // (query, key) of them
  double decoded = 0;        // tokens after the first
  double decode_keys = 0;    // summed over these
};

Need NeedOf(const RequestTable& requests, double cached_share) {
  Need sum;
  for (std::size_t r = 0; r < requests.arrival.size(); ++r) {
    const double prompt = requests.prompt_tokens[r], cached = cached_share * prompt;
    const double steps = requests.output_tokens[r] - 1;
    sum.computed += prompt - cached;
    sum.prefill_pairs += (prompt * prompt - cached * cached) / 2;
    sum.decoded += steps;
    sum.decode_keys += steps * prompt + steps * (steps + 1) / 2;
  }
  const auto n = static_cast<double>(requests.size());
  return {sum.computed / n, sum.prefill_pairs / n, sum.decoded / n, sum.decode_keys / n};
}

// Seconds of a replica for the part of a request that a pool computes.
LeastReplicas SecondsOf(const Pool& pool, const Need& need) {
  const ModelCost& cost = pool.cost;
  const HardwareSpec& hardware = pool.scenario.hardware;
  const PoolRole role = pool.spec().role;
  if (role == PoolRole::kEncode) return {};  // as if its images cost nothing
  const double prefill = role == PoolRole::kDecode ? 0 : 1;
  const double decode = role == PoolRole::kPrefill ? 0 : 1;
  const double full = 1 - cost.window_share;  // layers with a window count as doing nothing
  const double tokens = prefill * need.computed + decode * need.decoded;
  const double flops = tokens * cost.dense_flops_per_token +
                       (prefill + decode * need.decoded) * cost.lm_head_flops_per_token +
                       full * (prefill * need.prefill_pairs * cost.attention_flops_per_pair +
                               decode * need.decode_keys * cost.decode_flops_per_pair);
  const double expert_flops = tokens * cost.expert_flops_per_token;
  // A step reads a key once for all the tokens that drafts may make of it.
  const SpeculativeSpec& drafts = pool.scenario.engine.speculative;
  const double at_once = drafts.On() ? 1 + static_cast<double>(drafts.num_speculative_tokens) : 1;
  const double bytes = decode * full * need.decode_keys * cost.kv_bytes_per_token / at_once;
  // A stage of a pipeline computes its layers only, all stages at once.
  const auto stages = static_cast<double>(pool.spec().pipeline_parallel);
  return {(flops / PeakTflops(hardware, cost.dense_type) +
           expert_flops / PeakTflops(hardware, cost.expert_type)) /
              1e12 / stages,
          bytes / (hardware.memory_bandwidth_gb_s * 1e9) / stages};
}

}  // namespace

std::vector<LeastReplicas> LeastReplicasOf(const Deployment& deployment,
                                           const RequestTable& requests, double requests_per_s,
                                           double cached_share) {
  const Need need = NeedOf(requests, cached_share);
  std::vector<LeastReplicas> least;
  for (const Pool& pool : deployment.pools) {
    const LeastReplicas seconds = SecondsOf(pool, need);
    least.push_back({seconds.compute * requests_per_s, seconds.bandwidth * requests_per_s});
  }
  return least;
}

Result<std::vector<LeastReplicas>> LeastReplicasFor(const Scenario& scenario, const Trace& trace,
                                                    double requests_per_s, double cached_share) {
  const Result<Deployment> deployment = Deploy(scenario);
  if (!deployment.ok()) return Issues(deployment.issues());
  const Result<RequestTable> requests = MakeRequests(scenario, trace);
  if (!requests.ok()) return Issues(requests.issues());
  return LeastReplicasOf(deployment.value(), requests.value(), requests_per_s, cached_share);
}

}  // namespace servecast
