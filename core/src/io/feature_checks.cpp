#include "io/feature_checks.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "cost/model_cost.h"
#include "cost/power_limit.h"
#include "servecast/workload_spec.h"
#include "serving/policy.h"
#include "serving/replica/scheduler_entry.h"

namespace servecast {
namespace features {  // others of this folder have constants of the same names
namespace {

using enum Feature;

using S = const Scenario&;

constexpr unsigned kRules = kOfScheduler | kOfCompat, kAll = kRules | kOfLatency;
constexpr std::string_view kBackend = "/latency/backend";

// The first class with time-outs, by number; as many as there are: none.
std::size_t FirstWithTimeout(const Scenario& s) {
  const std::vector<ClassSpec>& classes = s.workload->classes;
  std::size_t i = 0;
  while (i < classes.size() && !classes[i].timeout_s) ++i;
  return i;
}

constexpr const char* kSimpleNames = "round_robin, random and least_outstanding";

// nullptr: auto, which takes one that has what is asked.
const LatencyEntry* LatencyOf(const Scenario& s) {
  return s.latency.backend == "auto" ? nullptr : &FindLatencyModel(s.latency.backend);
}

template <Feature feature>
bool LatencyNeeds(const Scenario& s) {
  const LatencyEntry* entry = LatencyOf(s);
  return entry != nullptr && entry->needs.Has(feature);
}

const SchedulerEntry& SchedulerOf(const Scenario& s) { return FindScheduler(s.scheduler.policy); }

constexpr FeatureRow kRows[] = {
    {kVidur, kOfScheduler, [](S s) { return s.engine.compat == Compat::kVidur; }, "/engine/compat",
     "\"none\"", "with engine.compat \"vidur\"", true},
    {kBlis, kOfScheduler, [](S s) { return IsBlis(s.engine.compat); }, "/engine/compat", "\"none\"",
     "with BLIS's rules in engine.compat", true},
    {kStages, kRules, [](S s) { return s.cluster.pool().pipeline_parallel > 1; },
     "/cluster/pools/0/pipeline_parallel", "1", "with pipeline_parallel above 1"},
    {kMoreStagesThanSeats, kOfScheduler,
     [](S s) { return s.cluster.pool().pipeline_parallel > s.engine.max_num_seqs; },
     "/cluster/pools/0/pipeline_parallel", "up to max_num_seqs", "with fewer seats than stages"},
    {kRoles, kRules,
     [](S s) {
       const PoolRole role = s.cluster.pool().role;
       return role == PoolRole::kPrefill || role == PoolRole::kDecode;
     },
     "/cluster/pools/0/role", "\"mixed\"", "in a pool for prefill or decode"},
    {kReplicas, kOfCompat, [](S s) { return s.cluster.Replicas() > 1; },
     "/cluster/pools/0/replicas", "1", "with several replicas"},
    {kExpertReplicas, kOfCompat | kOfLatency,
     [](S s) { return s.cluster.pool().attention_data_parallel > 1; },
     "/cluster/pools/0/attention_data_parallel", "1", "with attention_data_parallel above 1"},
    {kLoadRouters, kOfCompat, [](S s) { return WeighsLoad(s.cluster.router); },
     "/cluster/router/policy", kSimpleNames, "with cluster.router.policy"},
    {kScaling, kOfCompat, [](S s) { return s.cluster.scaling.On(); }, "/cluster/scaling/policy",
     "\"none\"", "with cluster.scaling"},
    {kFailures, kRules, [](S s) { return s.cluster.failures.On(); }, "/cluster/failures", "none",
     "with cluster.failures"},
    {kFailures, kRules,
     [](S s) {
       return s.cluster.scaling.On() && s.cluster.scaling.termination_grace_period_s.has_value();
     },
     "/cluster/scaling/termination_grace_period_s", "none", "with a replica that is cut off"},
    {kFailures, kRules,
     [](S s) {
       return s.cluster.rolling_update.On() &&
              s.cluster.rolling_update.termination_grace_period_s.has_value();
     },
     "/cluster/rolling_update/termination_grace_period_s", "none",
     "with a replica that is cut off"},
    {kRollingUpdate, kOfCompat, [](S s) { return s.cluster.rolling_update.On(); },
     "/cluster/rolling_update", "none", "with cluster.rolling_update"},
    {kSlowdowns, kOfCompat, [](S s) { return s.cluster.slowdowns.On(); }, "/cluster/slowdowns",
     "none", "with cluster.slowdowns"},
    {kTimeouts, kRules, [](S s) { return FirstWithTimeout(s) < s.workload->classes.size(); },
     "/workload/classes/*/timeout_s", "none", "with time-outs"},
    {kClosedLoop, kOfCompat,
     [](S s) { return s.workload->arrivals.process == ArrivalProcess::kClosedLoop; },
     "/workload/arrivals/process", "any other", "in a closed loop"},
    {kCappedClients, kOfCompat, [](S s) { return CapsClients(s.workload->arrivals); },
     "/workload/arrivals/max_concurrency", "none", "with max_concurrency"},
    {kRetries, kRules, [](S s) { return s.workload->retries.On(); }, "/workload/retries/max", "0",
     "with workload.retries"},
    {kHedges, kRules, [](S s) { return s.workload->retries.Hedges(); },
     "/workload/retries/hedge_after_s", "none", "with hedged requests"},
    {kRetriedCaps, 0,
     [](S s) {
       return s.workload->retries.On() &&
              (s.engine.max_num_queued_reqs || s.engine.max_num_queued_tokens);
     },
     "/workload/retries/max", "0", "with caps of the queue"},
    {kOrders, kRules, [](S s) { return s.scheduler.order != "fcfs"; }, "/scheduler/order",
     "\"fcfs\"", "with scheduler.order"},
    {kPriorities, kRules, [](S s) { return s.scheduler.priority != "class"; },
     "/scheduler/priority", "\"class\"", "with scheduler.priority"},
    {kVictims, kOfScheduler, [](S s) { return s.scheduler.preemption != "auto"; },
     "/scheduler/preemption", "\"auto\"", "with scheduler.preemption"},
    {kVictimByPriority, kOfCompat, [](S s) { return s.scheduler.preemption == "priority"; },
     "/scheduler/preemption", "\"auto\" and \"tail\"", "with scheduler.preemption \"priority\""},
    {kDrafts, kAll, [](S s) { return s.engine.speculative.On(); }, "/engine/speculative/method",
     "\"none\"", "with speculative decoding"},
    {kAdapters, kAll, [](S s) { return s.engine.max_loras > 0; }, "/engine/max_loras", "0",
     "with max_loras above 0"},
    {kImages, kAll,
     [](S s) { return s.workload->HasImages() && s.cluster.pool().role != PoolRole::kEncode; },
     "/workload/images/per_request", "0", "with images"},
    {kQueueCaps, kRules, [](S s) { return s.engine.max_num_queued_reqs.has_value(); },
     "/engine/max_num_queued_reqs", "none", "with max_num_queued_reqs"},
    {kQueueCaps, kRules, [](S s) { return s.engine.max_num_queued_tokens.has_value(); },
     "/engine/max_num_queued_tokens", "none", "with max_num_queued_tokens"},
    {kTiers, kOfScheduler, [](S s) { return s.engine.kv_offload.On(); }, "/engine/kv_offload",
     "none", "with kv_offload"},
    {kDisk, kOfCompat, [](S s) { return s.engine.kv_offload.disk_gib > 0; },
     "/engine/kv_offload/disk_gib", "0", "with a disk behind the cache"},
    {kLongPrefills, kOfScheduler, [](S s) { return s.engine.long_prefill_token_threshold > 0; },
     "/engine/long_prefill_token_threshold", "0", "with long_prefill_token_threshold above 0"},
    {kReserve, kOfScheduler, [](S s) { return s.engine.admission_reserve > 0; },
     "/engine/admission_reserve", "0", "with admission_reserve above 0"},
    {kGarbage, kOfScheduler, [](S s) { return s.engine.gc_pass_us > 0; }, "/engine/gc_pass_us", "0",
     "with gc_pass_us above 0"},
    {kHostOverlap, kRules, [](S s) { return s.engine.overlap_scheduling; },
     "/engine/overlap_scheduling", "false", "with overlap_scheduling"},
    {kWholePrompts, kOfScheduler, [](S s) { return !s.engine.enable_chunked_prefill; },
     "/engine/enable_chunked_prefill", "true", "without enable_chunked_prefill"},
    {kExpertParallel, kOfLatency, [](S s) { return s.engine.enable_expert_parallel; },
     "/engine/enable_expert_parallel", "false", "with enable_expert_parallel"},
    {kFloat32, kOfCompat | kOfLatency, [](S s) { return s.model.torch_dtype == DType::kFloat32; },
     "/model/torch_dtype", "16 bits only", "with model.torch_dtype \"float32\""},
    {kQuantized, kOfLatency, [](S s) { return s.model.quantization != Quantization::kNone; },
     "/model/quantization", "\"none\"", "with model.quantization"},
    {kCacheDtype, kOfLatency, [](S s) { return s.engine.kv_cache_dtype != KvCacheDType::kAuto; },
     "/engine/kv_cache_dtype", "\"auto\"", "with kv_cache_dtype"},
    {kLatentAttention, kOfLatency, [](S s) { return s.model.kv_lora_rank > 0; },
     "/model/kv_lora_rank", "0", "of a model with latent attention"},
    {kSharedExperts, kOfLatency, [](S s) { return s.model.shared_expert_intermediate_size > 0; },
     "/model/shared_expert_intermediate_size", "0", "of a model with shared experts"},
    {kDenseLayers, kOfLatency, [](S s) { return s.model.num_dense_layers > 0; },
     "/model/num_dense_layers", "0", "of a model with dense layers among experts"},
    {kLayerKinds, kOfLatency, [](S s) { return !s.model.layers.empty(); }, "/model/layers",
     "no list", "of a model with layers of several kinds"},
    {kPowerLimit, kOfLatency, [](S s) { return ArithmeticUnderLimit(s.hardware) < 1; },
     "/hardware/power_limit_w", "0", "with hardware.power_limit_w"},
    {kKvGroups, kRules, [](S s) { return !s.model.layers.empty() && NeedsKvGroups(s); },
     "/model/layers", "layers of full attention only",
     "of a model whose layers keep KV in several groups"},
    {kPreemptionMean, kRules, LatencyNeeds<kPreemptionMean>, kBackend, "any other", ""},
    {kBlisPrices, kOfCompat, LatencyNeeds<kBlisPrices>, kBackend, "any other", ""},
    // What only pairs ask.
    {kAsync, 0, [](S s) { return s.engine.async_scheduling && SchedulerOf(s).overlaps; },
     "/engine/async_scheduling", "false", "with async_scheduling"},
    {kSync, 0, [](S s) { return !s.engine.async_scheduling; }, "/engine/async_scheduling", "true",
     "without async_scheduling"},
    {kCapturedGraphs, 0, [](S s) { return s.engine.cuda_graphs == CudaGraphs::kCaptured; },
     "/engine/cuda_graphs", "\"implied\" and \"eager\"", "with captured CUDA graphs"},
    {kNgram, 0, [](S s) { return s.engine.speculative.method == DraftMethod::kNgram; },
     "/engine/speculative/method", "any other", "with speculative.method \"ngram\""},
    {kExperts, 0, [](S s) { return s.model.num_local_experts > 0; }, "/model/num_local_experts",
     "0", "of a model with experts"},
    {kDense, 0, [](S s) { return s.model.num_local_experts == 0; }, "/model/num_local_experts",
     "from 1 up", "of a model without experts"},
    {kNoPrefixCache, 0, [](S s) { return !s.engine.enable_prefix_caching; },
     "/engine/enable_prefix_caching", "true", "without enable_prefix_caching"},
    {kLockStep, 0, [](S s) { return s.RanksInStep() > 1; }, "/scheduler/enable_attention_dp",
     "false", "with scheduler.enable_attention_dp"},
    {kEncoders, 0, [](S s) { return s.cluster.pool().role == PoolRole::kEncode; },
     "/cluster/pools/0/role", "any other", "beside a pool that encodes images"},
    {kFlowControl, 0, [](S s) { return s.cluster.ControlsFlow(); }, "/cluster/router/profile",
     "one without flow control", "with flow control"},
};

constexpr FeaturePair kPairs[] = {
    {kAsync, kStages,
     "its rules for several stages are not modelled, and as many batches as stages are in flight "
     "without it"},
    {kTiers, kStages, "loads for several stages are not modelled"},
    {kDrafts, kStages, "drafts in several stages are not modelled"},
    {kAdapters, kStages, "adapters in several stages are not modelled"},
    {kExpertReplicas, kStages, ""},
    {kExpertReplicas, kDense, ""},
    {kExpertParallel, kDense, ""},
    {kTiers, kRoles, "loads from them beside transfers between replicas are not modelled"},
    {kGarbage, kRoles, "blocks that a transfer frees are free at once"},
    {kDrafts, kRoles, "drafts across a hand-over are not modelled"},
    {kAdapters, kRoles, "adapters across a hand-over are not modelled"},
    {kTiers, kDrafts, "its drafts and loads from slower memory are not modelled together"},
    {kCapturedGraphs, kDrafts, "graphs of several tokens a request are not modelled"},
    {kHostOverlap, kDrafts, ""},
    {kAsync, kNgram, "as in vLLM, the host finds drafts when a step has ended"},
    {kAdapters, kExperts, "what their adapters cost is not modelled"},
    {kAdapters, kLatentAttention, "what their adapters cost is not modelled"},
    {kCapturedGraphs, kAdapters, "graphs of steps with adapters are not modelled"},
    {kHostOverlap, kAdapters, ""},
    {kImages, kStages, "images in several stages are not modelled"},
    {kImages, kRoles, "images across a hand-over are modelled with a pool of role \"encode\" only"},
    {kTimeouts, kEncoders, "a client that gives up while its images are encoded is not modelled"},
    {kRetries, kEncoders, ""},
    {kHedges, kEncoders, ""},
    {kScaling, kEncoders, "encoders that come and go are not modelled"},
    {kFailures, kEncoders, "whose embeddings are on their way when a side fails is not modelled"},
    {kRollingUpdate, kEncoders, "an update has one pool"},
    {kFlowControl, kEncoders, ""},
    {kImages, kDrafts, "drafts behind images are not modelled"},
    {kImages, kAdapters, "adapters behind images are not modelled"},
    {kQueueCaps, kClosedLoop, "a client that is turned away would ask again at once"},
    {kQueueCaps, kCappedClients, "a client that is turned away would ask again at once"},
    {kScaling, kLoadRouters, "that router knows a fixed number of replicas"},
    {kScaling, kExpertReplicas, "replicas that share experts start together"},
    {kFailures, kLoadRouters, "that router knows a fixed number of replicas"},
    {kFailures, kExpertReplicas, "replicas that share experts fail together"},
    {kFailures, kStages, "a failure with batches in several stages is not modelled"},
    {kFailures, kKvGroups, "a failure with KV in groups is not modelled"},
    {kFailures, kDrafts, "a failure with drafts in flight is not modelled"},
    {kSlowdowns, kStages, "a slow GPU slows one stage, which is not modelled"},
    {kSlowdowns, kExpertReplicas, "replicas that share experts wait for the slowest"},
    {kRollingUpdate, kRoles, "an update has one pool"},
    {kRollingUpdate, kLoadRouters, "that router knows a fixed number of replicas"},
    {kRollingUpdate, kExpertReplicas, "replicas that share experts start together"},
    {kRollingUpdate, kScaling, "their number stays as they are replaced"},
    {kQueueCaps, kRollingUpdate, "whom one turns away a router would send to another"},
    {kQueueCaps, kScaling, "whom one turns away a router would send to another"},
    {kQueueCaps, kFailures, "whom one turns away a router would send to another"},
    {kQueueCaps, kFlowControl, "whom one turns away a router would send to another"},
    {kQueueCaps, kReplicas, "whom one turns away a router would send to another"},
    {kLoadRouters, kLockStep, "what it hears of a server's ranks is not modelled"},
    {kTiers, kNoPrefixCache, "they keep what the prefix cache overwrites"},
    {kHostOverlap, kSync,
     "host work for a step can run beside the step before it only if that step is formed so early"},
    {kHedges, kRoles, "which of two prefills goes on is not modelled"},
    {kHedges, kLoadRouters, "that router cannot be told to leave out a replica"},
    {kHedges, kStages,
     "an attempt that is cancelled with batches in several stages is not modelled"},
    {kHedges, kKvGroups, ""},
    {kHedges, kClosedLoop, "when a client goes on of whom two attempts fail is not modelled"},
    {kHedges, kCappedClients, "when a client goes on of whom two attempts fail is not modelled"},
    {kHedges, kDrafts, "an attempt that is cancelled with drafts in flight is not modelled"},
    {kQueueCaps, kHedges, "whom one turns away a router would send to another"},
    {kRetries, kKvGroups, ""},
    {kRetriedCaps, kLoadRouters, "a replica behind it turns nobody away"},
    {kFloat32, kQuantized, ""},
    {kStages, kKvGroups, "groups in several stages are planned, but not scheduled"},
    {kRoles, kKvGroups, "KV in groups between replicas is not modelled"},
    {kTiers, kKvGroups, "KV in groups in slower memory is not modelled"},
    {kDrafts, kKvGroups, "a state behind rejected drafts is not modelled"},
    {kAdapters, kKvGroups, "adapters with groups are not modelled"},
    {kReserve, kKvGroups, "it is a number of blocks of one table"},
    {kGarbage, kKvGroups, "blocks of groups are free at once"},
};

std::string Behind(std::string_view why) { return why.empty() ? "" : Format(": {}", why); }

std::string_view WhyNot(Lacks lacks, Feature feature) {
  for (const Lack& lack : lacks) {
    if (lack.feature == feature) return lack.why;
  }
  return "";
}

class FeatureChecks {
 public:
  FeatureChecks(const Scenario& scenario, Issues& issues) : s_(scenario), issues_(issues) {}

  void Check() {
    Features asked, refused;
    for (const FeatureRow& row : kRows) {
      if (!row.asks(s_)) continue;
      asked.Add(row.feature);
      if (!OwnersHave(row)) refused.Add(row.feature);
    }
    for (const FeaturePair& pair : kPairs) {
      const bool both = asked.Has(pair.refused) && asked.Has(pair.beside);
      if (both && !refused.Has(pair.refused) && !refused.Has(pair.beside)) RefusePair(pair);
    }
  }

 private:
  bool OwnersHave(const FeatureRow& row) {
    bool all = true;
    const SchedulerEntry& scheduler = SchedulerOf(s_);
    if ((row.owners & kOfScheduler) != 0 && !scheduler.has.Has(row.feature)) {
      all = false;
      const std::string_view why = WhyNot(scheduler.lacks, row.feature);
      if (row.at_owner) {
        Add("/scheduler/policy", NamesWith(Schedulers(), row.feature), row.words, why);
      } else {
        Add(std::string(row.path), row.allowed,
            Format("with scheduler.policy \"{}\"", scheduler.name), why);
      }
    }
    const CompatEntry& compat = FindCompat(s_.engine.compat);
    if ((row.owners & kOfCompat) != 0 && !compat.has.Has(row.feature)) {
      all = false;
      Add(std::string(row.path), row.allowed, Format("with engine.compat \"{}\"", compat.name),
          WhyNot(compat.lacks, row.feature));
    }
    const LatencyEntry* latency = LatencyOf(s_);
    if ((row.owners & kOfLatency) != 0 && latency != nullptr && !latency->has.Has(row.feature)) {
      all = false;
      Add(std::string(kBackend), "auto, " + NamesWith(LatencyModels(), row.feature), row.words,
          WhyNot(latency->lacks, row.feature));
    }
    return all;
  }

  void RefusePair(const FeaturePair& pair) {
    const auto beside =
        std::find_if(std::begin(kRows), std::end(kRows),
                     [&](const FeatureRow& row) { return row.feature == pair.beside; });
    for (const FeatureRow& row : kRows) {
      if (row.feature != pair.refused || !row.asks(s_)) continue;
      Add(std::string(row.path), row.allowed, WordsOf(*beside), pair.why);
    }
  }

  template <class Entries>
  static std::string NamesWith(Entries entries, Feature feature) {
    std::string names, last;
    for (const auto& entry : entries) {
      if (!entry.has.Has(feature)) continue;
      if (!last.empty()) names += (names.empty() ? "" : ", ") + last;
      last = entry.name;
    }
    return names.empty() ? last : names + " and " + last;
  }

  // A router that is in the way, by its name, and those that are not.
  std::string WordsOf(const FeatureRow& row) const {
    if (row.feature != kLoadRouters) return std::string(row.words);
    return Format("{} \"{}\" (any with {})", row.words, s_.cluster.router, kSimpleNames);
  }

  // One a path: what is allowed instead is the same.
  void Add(std::string path, std::string_view allowed, std::string_view words,
           std::string_view why) {
    const std::size_t star = path.find('*');
    if (star != std::string::npos) path.replace(star, 1, Format("{}", FirstWithTimeout(s_)));
    const auto same = [&](const Issue& issue) { return issue.path == path; };
    if (std::any_of(issues_.begin(), issues_.end(), same)) return;
    issues_.push_back(
        {std::string(path), Format("found %, allowed {} {}{}", allowed, words, Behind(why))});
  }

  const Scenario& s_;
  Issues& issues_;
};

}  // namespace
}  // namespace features

bool WeighsLoad(std::string_view router) {
  constexpr std::string_view kSimple[] = {"round_robin", "random", "least_outstanding"};
  return std::find(std::begin(kSimple), std::end(kSimple), router) == std::end(kSimple);
}

std::span<const FeatureRow> FeatureRows() { return features::kRows; }
std::span<const FeaturePair> FeaturePairs() { return features::kPairs; }

void CheckFeatures(const Scenario& scenario, Issues& issues) {
  features::FeatureChecks(scenario, issues).Check();
  const SchedulerEntry& scheduler = FindScheduler(scenario.scheduler.policy);
  if (scheduler.refuse != nullptr) scheduler.refuse(scenario, issues);
}

}  // namespace servecast
