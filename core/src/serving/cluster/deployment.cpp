#include "serving/cluster/deployment.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "cost/calibrated.h"
#include "cost/layers/layer_kind.h"
#include "serving/replica/draft_latency.h"
#include "serving/vllm/encode_scheduler.h"

namespace servecast {
namespace {

// An issue of a scenario with this pool alone, now naming the pool among several.
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

// The longest sequence that a replica serves with its scheduler.
std::int64_t MaxModelLenOf(const Pool& pool) {
  const Scenario& s = pool.scenario;
  EngineSpec limits = s.engine;
  const SchedulerEntry& entry = FindScheduler(s.scheduler.policy);
  if (!entry.obeys_chunked_prefill) limits.enable_chunked_prefill = !entry.whole_prompts;
  const std::int64_t room = entry.keeps_room == nullptr ? 0 : entry.keeps_room(s.engine);
  return EffectiveMaxModelLen(limits, s.model.max_position_embeddings, pool.cost.usable_blocks,
                              pool.cost.windows, pool.cost.kv_plan.get()) -
         room;
}

// What a GPU holds of a KV block of so many tokens.
double BlockBytesOfGpu(const ModelCost& cost, std::int64_t block_size) {
  return cost.kv_bytes_per_token * static_cast<double>(block_size);
}

std::int64_t BlockBytes(const ModelCost& cost, std::int64_t block_size) {
  return static_cast<std::int64_t>(BlockBytesOfGpu(cost, block_size)) * cost.tensor_parallel;
}

Pool MakePool(Scenario alone, const ModelCost& cost, const LatencyEntry& entry) {
  Pool pool{.scenario = std::move(alone),
            .cost = cost,
            .latency = nullptr,
            .stages = {},
            .kv_tiers = {},
            .setup = nullptr};
  const EngineSpec& engine = pool.scenario.engine;
  if (pool.spec().role == PoolRole::kEncode) {
    pool.latency = MakeEncodeLatency(pool.scenario, pool.cost);
    return pool;
  }
  pool.latency = WithDrafter(entry.make(pool.scenario, pool.cost), pool.scenario, entry);
  if (pool.spec().pipeline_parallel > 1) pool.stages = MakeStages(pool.scenario, entry);
  pool.kv_tiers = KvTiersOf(engine.kv_offload, BlockBytesOfGpu(pool.cost, engine.block_size),
                            pool.cost.tensor_parallel);
  pool.block_bytes = BlockBytes(pool.cost, engine.block_size);
  return pool;
}

// Of several pools the weakest counts, with all that is to be said.
void AddEvidence(const LatencyLabel& label, Evidence& all) {
  Evidence own = label.evidence;
  if (own.sentence.empty()) own.sentence = label.known_error;
  const std::string said = all.sentence;
  std::vector<std::string> warnings = std::move(all.warnings);
  for (const std::string& warning : own.warnings) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
      warnings.push_back(warning);
    }
  }
  const std::string more = own.sentence;
  if (said.empty() || own.of > all.of) all = std::move(own);
  all.sentence = said;
  if (said.find(more) == std::string::npos) all.sentence += (said.empty() ? "" : " ") + more;
  all.warnings = std::move(warnings);
}

// Of pools on different GPUs "this GPU" would be any.
void NameGpu(const HardwareSpec& gpu, LatencyLabel& label) {
  const std::string name = (gpu.name.empty() ? "A GPU without a name" : gpu.name) + ": ";
  if (!label.known_error.empty()) label.known_error = name + label.known_error;
  if (!label.evidence.sentence.empty()) label.evidence.sentence = name + label.evidence.sentence;
}

void AddLabel(const LatencyLabel& label, LatencyLabel& all) {
  const auto add = [](std::string& text, const char* between, const std::string& more) {
    if (text.find(more) == std::string::npos) text += (text.empty() ? "" : between) + more;
  };
  if (all.backend.empty()) {
    all = label;
    all.evidence = {};
  }
  add(all.description, "; ", label.description);
  if (!label.known_error.empty()) add(all.known_error, " ", label.known_error);
  AddEvidence(label, all.evidence);
}

}  // namespace

bool Deployment::AllHave(Feature feature) const {
  return std::all_of(pools.begin(), pools.end(), [feature](const Pool& p) {
    return FindScheduler(p.scenario.scheduler.policy).has.Has(feature);
  });
}

void Deployment::SetUpSchedulers(const RequestTable& requests) {
  for (Pool& pool : pools) {
    pool.setup = MakeSchedulerSetup(pool.scenario, pool.cost, max_model_len, requests);
    pool.setup->limits.decodes = pool.spec().role == PoolRole::kDecode;
    pool.block_bytes = BlockBytes(pool.cost, pool.setup->limits.block_size);
  }
}

Result<Deployment> Deploy(const Scenario& scenario, bool labelled) {
  if (Issues missing = MissingModule(scenario); !missing.empty()) return missing;
  Deployment deployment;
  Issues issues;
  const std::vector<PoolSpec>& specs = scenario.cluster.pools;
  const auto gpu_of = [&scenario](const PoolSpec& pool) -> const std::string& {
    return pool.hardware ? pool.hardware->name : scenario.hardware.name;
  };
  const bool several_gpus = std::any_of(specs.begin(), specs.end(), [&](const PoolSpec& pool) {
    return gpu_of(pool) != gpu_of(specs[0]);
  });
  for (std::size_t i = 0; i < specs.size(); ++i) {
    Scenario alone = scenario;
    alone.UsePool(i);
    if (!KvByGroups(alone)) alone.engine.block_size = KvBlockSize(alone);
    const Result<ModelCost> cost = ComputeModelCost(alone);
    if (!cost.ok()) {
      for (const Issue& issue : cost.issues()) {
        issues.push_back(specs.size() > 1 ? OfPool(issue, i, specs[i]) : issue);
      }
      continue;
    }
    if (Issues missing = MissingFiles(alone); !missing.empty()) return missing;
    const LatencyEntry& model = ChosenLatencyModel(alone);
    const Pool& pool =
        deployment.pools.emplace_back(MakePool(std::move(alone), cost.value(), model));
    if (pool.spec().role == PoolRole::kEncode) continue;
    deployment.max_model_len = std::min(deployment.max_model_len, MaxModelLenOf(pool));
    if (!labelled) continue;
    LatencyLabel label = model.label(pool.scenario);
    if (scenario.calibration.On()) TakeCalibration(pool.scenario, scenario, label);
    if (several_gpus) NameGpu(pool.scenario.hardware, label);
    AddLabel(label, deployment.label);
  }
  if (!issues.empty()) return issues;
  const auto untested = [&](const char* why) {
    Evidence& evidence = deployment.label.evidence;
    evidence.of = std::max(evidence.of, EvidenceClass::kUntested);
    evidence.sentence += why;
  };
  if (scenario.cluster.Has(PoolRole::kDecode)) {
    untested(" No server with prefill and decode apart was measured.");
  }
  if (scenario.cluster.Has(PoolRole::kEncode)) {
    untested(
        " No server with images was compared, nor one with its encoder apart: the encoder's time "
        "is its bytes and arithmetic.");
  }
  if (std::any_of(deployment.pools.begin(), deployment.pools.end(),
                  [](const Pool& p) { return p.scenario.engine.speculative.On(); })) {
    untested(" No server with speculative decoding was compared.");
  }
  return deployment;
}

Deployment Redeploy(const Deployment& like, const Scenario& scenario) {
  Deployment deployment;
  deployment.max_model_len = like.max_model_len;
  deployment.label = like.label;
  for (std::size_t i = 0; i < like.pools.size(); ++i) {
    const Pool& pool = like.pools[i];
    Scenario alone = scenario;
    alone.UsePool(i);
    deployment.pools.push_back({.scenario = std::move(alone),
                                .cost = pool.cost,
                                .latency = pool.latency,
                                .stages = pool.stages,
                                .kv_tiers = pool.kv_tiers,
                                .setup = nullptr,
                                .block_bytes = pool.block_bytes});
  }
  return deployment;
}

}  // namespace servecast
