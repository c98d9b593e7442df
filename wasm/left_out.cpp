// Takes the places of what few visits need, in the module of a first one: BLIS's engine, models of
// step times but the default one, clusters of replicas, pipeline stages, schedulers but vLLM's,
// memory behind the KV cache, and traces. Simulation::Create then says that they are left out, and
// the page's worker goes on with the whole engine, as it does for every trace (decision 016). Names
// and help are those of the whole engine, as tests/wasm checks.
#include "cost/compared.h"
#include "cost/vidur_planner.h"
#include "io/pool_checks.h"
#include "metrics/summarize.h"
#include "servecast/trace.h"
#include "serving/blis_replica.h"
#include "serving/cluster.h"
#include "serving/former_replica.h"
#include "serving/kv_tiers.h"
#include "serving/pipeline.h"
#include "serving/policy.h"
#include "serving/pool_parts.h"
#include "serving/replica.h"
#include "serving/router_entries.h"

namespace servecast {

std::unique_ptr<AnyReplica> MakeBlisReplica(const BlisInput&) { return nullptr; }
void CheckPools(const Scenario&, Issues&) {}
void YieldToStages(nlohmann::json&) {}
Result<std::vector<PoolPart>> MakePoolParts(const Scenario&) { return std::vector<PoolPart>{}; }
std::int64_t ShortestMaxModelLen(const std::vector<PoolPart>&) { return 0; }
LatencyLabel LabelOf(const std::vector<PoolPart>&, const Scenario& s, const LatencyEntry& entry) {
  return entry.label(s);
}
std::vector<ClusterPool> PoolsOf(std::vector<PoolPart>&, std::int64_t, const RequestTable&) {
  return {};
}
void ReportPools(const RunView&, Report&) {}
double PoolsScarcestUse(const RunView&, std::size_t, std::size_t) { return 0; }
std::unique_ptr<AnyReplica> MakeCluster(const Cluster::Input&) { return nullptr; }

std::unique_ptr<AnyReplica> MakeFormerReplica(const ReplicaInput&) { return nullptr; }
std::unique_ptr<FormerSetup> MakeFormerSetup(const Scenario&, const ModelCost&, std::int64_t,
                                             const RequestTable&) {
  return nullptr;
}
std::optional<Issue> PlanAsVidur(const Scenario&, ModelCost&) { return std::nullopt; }

extern const FormerEntry kSchedulerVllmV0;
const FormerEntry kSchedulerVllmV0 = {
    "vllm_v0", "vLLM of 2023: whole prompts first, decodes only when none is admitted", nullptr};
extern const FormerEntry kSchedulerSarathi;
const FormerEntry kSchedulerSarathi = {
    "sarathi", "chunked prefill: decodes, then prompts in what is left of max_num_batched_tokens",
    nullptr};
extern const FormerEntry kSchedulerOrca;
const FormerEntry kSchedulerOrca = {
    "orca", "iteration-level batching with memory for the longest request reserved", nullptr};
extern const FormerEntry kSchedulerLightLlm;
const FormerEntry kSchedulerLightLlm = {
    "lightllm", "admits while the future peak of tokens fits; decodes between looks at the queue",
    nullptr};
extern const FormerEntry kSchedulerFasterTransformer;
const FormerEntry kSchedulerFasterTransformer = {
    "faster_transformer", "a batch is fixed until all its requests are done", nullptr};

bool KvTiers::Present() { return false; }
KvTiers::KvTiers(std::vector<KvTier>) {}
std::vector<KvTier> KvTiersOf(const KvOffloadSpec&, double, std::int64_t) { return {}; }
void KvTiers::Offload(std::int32_t, std::int64_t, std::int64_t, TimeNs) {}
std::int64_t KvTiers::FoundUpTo(std::int32_t, std::int64_t first, std::int64_t) const {
  return first;
}
void KvTiers::Load(std::int32_t, std::int64_t, std::int64_t, TimeNs, Loaded&) {}
TimeNs KvTiers::TransferTime(const Loaded&) const { return 0; }

std::vector<PipelineStage> MakeStages(const Scenario&, const LatencyEntry&) { return {}; }
Pipeline::Pipeline(const std::vector<PipelineStage>& stages) : stages_(stages) {}
StepPrice Pipeline::Price(const BatchShape&, TimeNs*) const { return {}; }
StepPrice Pipeline::Enter(const BatchShape&, TimeNs, TimeNs) { return {}; }
TimeNs Replica::QuietUntil() { return now_; }
void Replica::StartStages() {}
void Replica::Exchange(std::int32_t) {}
void Replica::OpenFreeGroup() {}
void Replica::OpenAppliedGroup(std::int32_t) {}
void Replica::PlacePrefills() {}
void Replica::Hold(const Slot&) {}
const Replica::Held* Replica::HeldOf(RequestId) const { return nullptr; }
void Replica::PutBackPassed() {}
void Replica::AbortHeld(RequestId) {}
void Replica::TakeFromBatch(TimeNs, bool) {}
void Replica::RecordStaged(const Batch&) {}

class TraceReader::Impl {};
TraceReader::TraceReader(std::string) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

namespace {

Issue NoTraces() {
  return {"", "found a trace, which this part of the engine does not read", "left_out"};
}

}  // namespace

bool TraceReader::Add(std::string_view) { return false; }
Result<Trace> TraceReader::Finish() { return NoTraces(); }
Result<std::string> FitTraceJson(const Trace&) { return NoTraces(); }

namespace {

std::unique_ptr<LatencyModel> LeftOut(const Scenario&, const ModelCost&) { return nullptr; }
LatencyLabel NoLabel(const Scenario&) { return {}; }

}  // namespace

extern const LatencyEntry kLatencyOperators;
const LatencyEntry kLatencyOperators = {
    "operators", "Measured latencies of each operator on the GPU, added up, plus host time",
    LeftOut, NoLabel, OperatorsWereNearer};

extern const LatencyEntry kLatencyRoofline;
const LatencyEntry kLatencyRoofline = {
    "roofline", "BLIS's roofline: work over data-sheet peaks, by phase", LeftOut, NoLabel};

extern const LatencyEntry kLatencyBlackbox;
const LatencyEntry kLatencyBlackbox = {
    "blackbox", "Linear coefficients fitted on a server (alpha and beta, microseconds)", LeftOut,
    NoLabel};

extern const LatencyEntry kLatencyTrainedPhysics;
const LatencyEntry kLatencyTrainedPhysics = {
    "trained_physics", "BLIS's trained model, faster than light in prefill: with compat blis only",
    LeftOut, NoLabel};

extern const LatencyEntry kLatencyPhysics;
const LatencyEntry kLatencyPhysics = {
    "physics", "Dot product of 16 physical features of a step with coefficients", LeftOut, NoLabel};

extern const RouterEntry kRouterPrefixAffinity, kRouterKvAware, kRouterWeighted,
    kRouterCentralQueue;
const RouterEntry kRouterPrefixAffinity = PrefixAffinityEntry(nullptr);
const RouterEntry kRouterKvAware = KvAwareEntry(nullptr);
const RouterEntry kRouterWeighted = WeightedEntry(nullptr);
const RouterEntry kRouterCentralQueue = CentralQueueEntry(nullptr);

}  // namespace servecast
