// Whatever features a scenario asks for, with any scheduler, compat mode and latency model: either
// it runs to its end, or it is refused with an issue. What an entry lacks is refused, and so is
// every pair that does not go together.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "io/feature_checks.h"
#include "serving/policy.h"
#include "serving/replica/scheduler_entry.h"

namespace servecast::testing {
namespace {

using Overrides = std::vector<std::string>;
using enum Feature;

const std::string kExpertModel = "model.preset=qwen3-30b-a3b";

// A scenario that asks for a feature, in the order of the rows: a feature may have several.
const std::multimap<Feature, Overrides>& Asking() {
  static const std::multimap<Feature, Overrides> kAsking = {
      {kVidur, {"engine.compat=vidur"}},
      {kBlis, {"engine.compat=blis"}},
      {kStages, {"cluster.pools.0.pipeline_parallel=2", "engine.async_scheduling=false"}},
      {kMoreStagesThanSeats,
       {"cluster.pools.0.pipeline_parallel=4", "engine.max_num_seqs=2",
        "engine.async_scheduling=false"}},
      {kRoles, {R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"}},
      {kReplicas, {"cluster.pools.0.replicas=2"}},
      {kExpertReplicas,
       {kExpertModel, "cluster.pools.0.replicas=2", "cluster.pools.0.attention_data_parallel=2"}},
      {kLoadRouters, {"cluster.router.policy=power_of_two"}},
      {kTimeouts, {R"(workload.classes=[{"name":"a","share":1,"timeout_s":5}])"}},
      {kRetries, {"workload.retries.max=2"}},
      {kFailures, {R"(cluster.failures={"mtbf_s":1000})"}},
      {kRetriedCaps, {"workload.retries.max=2", "engine.max_num_queued_reqs=20"}},
      {kClosedLoop, {R"(workload.arrivals={"process":"closed_loop","concurrency":4})"}},
      {kCappedClients, {"workload.arrivals.max_concurrency=4"}},
      {kOrders, {"scheduler.order=sjf"}},
      {kPriorities, {"scheduler.priority=constant"}},
      {kVictims, {"scheduler.preemption=tail"}},
      {kVictimByPriority, {"scheduler.preemption=priority"}},
      {kDrafts,
       {R"(engine.speculative={"method":"eagle","num_speculative_tokens":2,"acceptance_length":2})"}},
      {kAdapters, {"engine.max_loras=2"}},
      {kImages,
       {R"(workload.images={"per_request":2,"width":64,"height":96})",
        R"(model.vision={"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":2,)"
        R"("intermediate_size":128})"}},
      {kQueueCaps, {"engine.max_num_queued_reqs=20"}},
      {kQueueCaps, {"engine.max_num_queued_tokens=9000"}},
      {kTiers, {"engine.kv_offload.cpu_gib=4"}},
      {kDisk, {"engine.kv_offload.cpu_gib=4", "engine.kv_offload.disk_gib=8"}},
      {kLongPrefills, {"engine.long_prefill_token_threshold=256"}},
      {kReserve, {"engine.admission_reserve=1"}},
      {kGarbage, {"engine.gc_pass_us=20"}},
      {kScaling, {"cluster.scaling.policy=hpa"}},
      {kRollingUpdate, {R"(cluster.rolling_update={"at_s":10})"}},
      {kSlowdowns, {R"(cluster.slowdowns={"mean_gap_s":1000,"for_s":10})"}},
      {kHedges, {"workload.retries.hedge_after_s=2"}},
      {kHostOverlap, {"engine.overlap_scheduling=true", "engine.async_scheduling=true"}},
      {kWholePrompts, {"engine.enable_chunked_prefill=false"}},
      {kExpertParallel, {kExpertModel, "engine.enable_expert_parallel=true"}},
      {kFloat32, {"model.torch_dtype=float32", "hardware.peak_fp32_tflops=67"}},
      {kQuantized, {"model.quantization=fp8"}},
      {kCacheDtype, {"engine.kv_cache_dtype=fp8"}},
      {kLatentAttention, {"model.kv_lora_rank=512"}},
      {kSharedExperts, {kExpertModel, "model.shared_expert_intermediate_size=768"}},
      {kDenseLayers, {kExpertModel, "model.num_dense_layers=1"}},
      {kLayerKinds, {R"(model.layers=[{"kind":"full"}])"}},
      {kPowerLimit, {"hardware.power_limit_w=300"}},
      {kKvGroups, {R"(model.layers=[{"kind":"sliding","window":256,"count":3},{"kind":"full"}])"}},
      {kPreemptionMean, {"latency.backend=physics"}},
      {kBlisPrices, {"latency.backend=trained_physics"}},
      {kAsync, {"engine.async_scheduling=true"}},
      {kSync, {"engine.async_scheduling=false"}},
      {kCapturedGraphs, {"engine.cuda_graphs=captured"}},
      {kNgram,
       {R"(engine.speculative={"method":"ngram","num_speculative_tokens":2,"acceptance_length":2})"}},
      {kExperts, {kExpertModel}},
      {kDense, {"model.preset=llama-3.1-8b"}},
      {kNoPrefixCache, {"engine.enable_prefix_caching=false"}},
      {kLockStep,
       {kExpertModel, "cluster.pools.0.replicas=2", "cluster.pools.0.attention_data_parallel=2",
        "scheduler.policy=trtllm", "scheduler.enable_attention_dp=true"}},
      {kEncoders,
       {R"(workload.images={"per_request":2,"width":64,"height":96})",
        R"(model.vision={"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":2,)"
        R"("intermediate_size":128})",
        R"(cluster.pools=[{"replicas":1},{"role":"encode"}])"}},
      {kFlowControl, {"cluster.router.policy=epp", "cluster.router.profile=flow-control"}},
  };
  return kAsking;
}

struct Owners {
  const SchedulerEntry* scheduler;
  Compat compat;
  std::string backend = "auto";

  Overrides Names() const {
    return {"scheduler.policy=" + std::string(scheduler->name),
            "engine.compat=" + std::string(FindCompat(compat).name), "latency.backend=" + backend};
  }
};

std::vector<Owners> AllOwners() {
  std::vector<Owners> all;
  for (const SchedulerEntry& scheduler : Schedulers()) {
    for (const Compat compat :
         {Compat::kNone, Compat::kBlisFebruary2026, Compat::kBlis, Compat::kVidur}) {
      all.push_back({&scheduler, compat});
    }
  }
  for (const LatencyEntry& latency : LatencyModels()) {
    all.push_back({&FindScheduler("vllm"), Compat::kNone, std::string(latency.name)});
    all.push_back({&FindScheduler("vllm"), Compat::kBlis, std::string(latency.name)});
  }
  return all;
}

std::string Named(const Overrides& overrides) {
  std::string text;
  for (const std::string& one : overrides) text += one + " ";
  return text;
}

// The issues of a scenario; none: it ran, and served or lost each of its requests.
Issues Outcome(const Overrides& overrides) {
  const std::string document = Changed(overrides);
  Issues issues = IssuesOf(document);
  if (!issues.empty()) return issues;
  const Report report = RunToEnd(document);
  EXPECT_EQ(report.completed + report.Lost(), report.arrived) << Named(overrides);
  EXPECT_EQ(BrokenConservation(report), "") << Named(overrides);
  return {};
}

bool Lacks(const FeatureRow& row, const Owners& owners) {
  const bool scheduler =
      (row.owners & kOfScheduler) != 0 && !owners.scheduler->has.Has(row.feature);
  const bool compat =
      (row.owners & kOfCompat) != 0 && !FindCompat(owners.compat).has.Has(row.feature);
  const bool latency = (row.owners & kOfLatency) != 0 && owners.backend != "auto" &&
                       !FindLatencyModel(owners.backend).has.Has(row.feature);
  return scheduler || compat || latency;
}

Overrides Joined(Overrides first, const Overrides& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(Features, OfAnyEntries_RunOrAreRefused) {
  std::int64_t ran = 0, refused = 0;
  for (const Owners& owners : AllOwners()) {
    for (const FeatureRow& row : FeatureRows()) {
      const auto [begin, end] = Asking().equal_range(row.feature);
      ASSERT_NE(begin, end) << static_cast<int>(row.feature) << ": how is it asked for?";
      for (auto asking = begin; asking != end; ++asking) {
        const Overrides overrides = Joined(owners.Names(), asking->second);
        const Issues issues = Outcome(overrides);
        ++(issues.empty() ? ran : refused);
        for (const Issue& issue : issues) {
          EXPECT_FALSE(issue.message.empty()) << Named(overrides);
          EXPECT_EQ(issue.message.find("found %"), std::string::npos) << issue.message;
        }
        if (begin == std::prev(end) && Lacks(row, owners)) {
          EXPECT_FALSE(issues.empty()) << Named(overrides);
        }
      }
    }
  }
  EXPECT_GT(ran, 300);
  EXPECT_GT(refused, 500);
}

// By vLLM's rules and analytic times, which have every feature but those of other rules.
TEST(Features, Alone_RunWithVllm) {
  for (const auto& [feature, overrides] : Asking()) {
    if (feature == kVidur || feature == kBlisPrices) continue;
    if (feature == kNgram) continue;  // not with async scheduling, which is on
    const Issues issues = Outcome(overrides);
    EXPECT_EQ(Listed(issues), "") << Named(overrides);
  }
}

TEST(Features, PairsThatDoNotGoTogether_AreRefused) {
  for (const FeaturePair& pair : FeaturePairs()) {
    const Overrides &one = Asking().lower_bound(pair.refused)->second,
                    &other = Asking().lower_bound(pair.beside)->second;
    // One may take back what the other says.
    const Overrides first = Joined(one, other), last = Joined(other, one);
    EXPECT_FALSE(IssuesOf(Changed(first)).empty() && IssuesOf(Changed(last)).empty())
        << Named(first);
  }
}

}  // namespace
}  // namespace servecast::testing
