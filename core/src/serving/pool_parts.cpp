#include "serving/pool_parts.h"
#include "base/text.h"

#include <algorithm>
#include <string>

namespace servecast {
namespace {

// As of a scenario with one pool: says which of several it is.
Issue OfPool(const Issue& issue, std::size_t number, const PoolSpec& pool) {
  constexpr std::string_view kOnly = "/cluster/pools/0/";
  Issue of_pool = issue;
  const std::string path = Format("/cluster/pools/{}", number);
  of_pool.path =
      issue.path.rfind(kOnly, 0) == 0 ? path + issue.path.substr(kOnly.size() - 1) : path;
  const std::string name = pool.name.empty() ? "" : Format(" ({})", pool.name);
  of_pool.message = Format("pool {}{}: {}", number, name, issue.message);
  return of_pool;
}

}  // namespace

Result<std::vector<PoolPart>> MakePoolParts(const Scenario& scenario) {
  std::vector<PoolPart> parts;
  const std::size_t pools = scenario.cluster.pools.size();
  if (pools == 1) return parts;
  Issues issues;
  for (std::size_t i = 0; i < pools; ++i) {
    Scenario alone = scenario;
    alone.UsePool(i);
    const PoolSpec& pool = alone.cluster.pools[0];
    const Result<ModelCost> cost = ComputeModelCost(alone);
    if (!cost.ok()) {
      for (const Issue& issue : cost.issues()) issues.push_back(OfPool(issue, i, pool));
      continue;
    }
    if (Issues missing = MissingFiles(alone); !missing.empty()) return missing;
    const LatencyEntry& entry = ChosenLatencyModel(alone);
    PoolPart part{alone, cost.value(), entry.make(alone, cost.value()),
                  MaxModelLenOf(alone, cost.value())};
    if (pool.pipeline_parallel > 1) part.stages = MakeStages(alone, entry);
    parts.push_back(std::move(part));
  }
  if (!issues.empty()) return issues;
  return parts;
}

std::int64_t ShortestMaxModelLen(const std::vector<PoolPart>& pools) {
  std::int64_t shortest = pools[0].max_model_len;
  for (const PoolPart& pool : pools) shortest = std::min(shortest, pool.max_model_len);
  return shortest;
}

LatencyLabel LabelOf(const std::vector<PoolPart>& pools, const Scenario& scenario,
                     const LatencyEntry& entry) {
  if (pools.empty()) return entry.label(scenario);
  LatencyLabel all;
  const auto add = [](std::string& text, const char* between, const std::string& more) {
    if (text.find(more) == std::string::npos) text += (text.empty() ? "" : between) + more;
  };
  for (const PoolPart& pool : pools) {
    const LatencyLabel label = ChosenLatencyModel(pool.scenario).label(pool.scenario);
    if (all.backend.empty()) all = label;
    add(all.description, "; ", label.description);
    if (!label.known_error.empty()) add(all.known_error, " ", label.known_error);
  }
  return all;
}

std::vector<ClusterPool> PoolsOf(std::vector<PoolPart>& parts, std::int64_t max_model_len,
                                 const RequestTable& requests) {
  std::vector<ClusterPool> pools;
  for (PoolPart& part : parts) {
    const PoolSpec& spec = part.scenario.cluster.pools[0];
    const EngineSpec& engine = part.scenario.engine;
    std::int64_t block_size = engine.block_size;
    if (part.HasFormer()) {
      part.former = MakeFormerSetup(part.scenario, part.cost, max_model_len, requests);
      part.former->limits.decodes = spec.role == PoolRole::kDecode;
      block_size = part.former->limits.block_size;
    }
    const double of_gpu = part.cost.kv_bytes_per_token * static_cast<double>(block_size);
    const auto block_bytes = static_cast<std::int64_t>(of_gpu) * part.cost.tensor_parallel;
    pools.push_back({spec.role, spec.replicas, engine, *part.latency, part.cost.pool_blocks,
                     block_bytes, KvTiersOf(engine.kv_offload, of_gpu, part.cost.tensor_parallel),
                     part.stages.empty() ? nullptr : &part.stages, part.former.get(),
                     &part.scenario.scheduler});
  }
  return pools;
}

}  // namespace servecast
