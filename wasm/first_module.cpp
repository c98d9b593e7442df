// What a first visit's module has instead of clusters, pools, scalers, KV in groups, queue caps,
// drafts, seats of adapters, images, schedulers other than vLLM's and what a calibration says: no
// first verdict asks for them, and nothing calls these, as MissingModule names the whole module
// first.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cost/calibrated.h"
#include "cost/encoder_times.h"
#include "cost/kv_groups.h"
#include "io/draft_checks.h"
#include "io/epp_config.h"
#include "io/json_put.h"
#include "io/scaling_checks.h"
#include "metrics/summarize.h"
#include "servecast/workload_spec.h"
#include "serving/batch/batch_scheduler.h"
#include "serving/blis/blis_replica.h"
#include "serving/cluster/cluster.h"
#include "serving/cluster/epp/picker_router.h"
#include "serving/policy.h"
#include "serving/replica/draft_latency.h"
#include "serving/replica/queue_caps.h"
#include "serving/replica/replica.h"
#include "serving/replica/scheduler.h"
#include "serving/replica/slow_periods.h"
#include "serving/scaling/scaler.h"
#include "serving/vllm/encode_scheduler.h"
#include "serving/vllm/vllm_scheduler.h"
#include "workload/image_drawer.h"
#include "workload/retries.h"

namespace servecast {

bool IsWholeEngine() { return false; }

void TakeCalibration(const Scenario&, const Scenario&, LatencyLabel&) { std::abort(); }
std::vector<std::string> CalibrationMismatches(const Scenario&) { std::abort(); }
std::vector<std::string> BeyondCalibration(const Scenario&) { std::abort(); }

KvGroups GroupLayers(std::vector<KvLayer>, const KvRules&) { std::abort(); }
std::int64_t KvGroup::Planned(std::int64_t, const KvRules&) const { std::abort(); }
std::int64_t KvGroup::Asked(std::int64_t, const KvRules&) const { std::abort(); }
std::int64_t KvGroups::Asked(std::int64_t, const KvRules&) const { std::abort(); }
std::int64_t KvGroups::Planned(std::int64_t, const KvRules&) const { std::abort(); }
std::int64_t KvGroups::Longest(std::int64_t, std::int64_t, const KvRules&) const { std::abort(); }
std::int64_t KvGroups::BlockBytes(std::int64_t, std::int64_t) const { std::abort(); }

std::string ClusterNotes(const Scenario&, const Report&) { return ""; }
void ReportPools(const RunView&, Report&) { std::abort(); }
double PoolsScarcestUse(const RunView&, std::size_t, std::size_t) { std::abort(); }

void CheckScaling(const ClusterSpec&, Issues&) {}
void CheckFailures(const Scenario&, Issues&) {}
void CheckRollingUpdate(const ClusterSpec&, Issues&) {}
void CheckSlowdowns(const Scenario&, Issues&) {}
Issues CheckChanceOver(const Scenario&, const Trace&) { return {}; }
void ReadEpp(EppSpec&, Issues&) {}
void CheckEpp(const ClusterSpec&, Issues&) {}

void CheckDrafts(const Scenario&, Issues&) {}

void CheckRetries(const WorkloadSpec&, Issues&) {}
Result<RequestTable> WithRetries(const Scenario&, RequestTable table) { return table; }
RequestsOfAttempts FoldAttempts(const RequestTable&, const RequestResults&, TimeNs, std::int64_t) {
  std::abort();
}

std::unique_ptr<Engine> MakeBlisReplica(const BlisInput&) { std::abort(); }
std::unique_ptr<Engine> MakeCluster(const Cluster::Input&) { std::abort(); }
std::unique_ptr<Router> epp::MakePickerRouter(const RouterInput&) { std::abort(); }
std::unique_ptr<Scaler> MakeHpaScaler(const ScalerInput&) { std::abort(); }
std::unique_ptr<Scaler> MakeKedaScaler(const ScalerInput&) { std::abort(); }
std::unique_ptr<Scaler> MakeWvaScaler(const ScalerInput&) { std::abort(); }
std::unique_ptr<Scaler> MakeDynamoScaler(const ScalerInput&) { std::abort(); }
std::unique_ptr<Scaler> MakeScheduledScaler(const ScalerInput&) { std::abort(); }
std::unique_ptr<Scheduler> MakeJobScheduler(Machine&) { std::abort(); }
std::unique_ptr<Scheduler> MakeSglangScheduler(Machine&) { std::abort(); }
std::unique_ptr<Scheduler> MakeTrtllmScheduler(Machine&) { std::abort(); }
std::unique_ptr<Scheduler> MakeGroupedScheduler(Machine&) { std::abort(); }
std::unique_ptr<Scheduler> MakeEncodeScheduler(Machine&) { std::abort(); }
std::unique_ptr<LatencyModel> MakeEncodeLatency(const Scenario&, const ModelCost&) { std::abort(); }

std::shared_ptr<SlowPeriods> MakeSlowPeriods(const SlowdownSpec*, std::int64_t, std::int64_t) {
  return nullptr;
}
SlowReport ReportSlow(const SlowdownSpec&, std::int64_t, std::int64_t, const RequestTable&,
                      const RequestResults&, TimeNs) {
  std::abort();
}
TimeNs SlowPeriods::Stretched(TimeNs, TimeNs duration) { return duration; }
bool Replica::EndsAfter(TimeNs, const DecodeRun&) const { return false; }
void Replica::Die(TimeNs) {}
TimeNs Replica::EndBy(TimeNs, TimeNs) { std::abort(); }
void Replica::LoseTransfer(RequestId, TimeNs) {}
std::vector<RequestId> Replica::WithheldFor() const { std::abort(); }
void Machine::HandOn(Withheld, TimeNs) {}
void Machine::Encoded(RequestId, TimeNs) {}
void Machine::Withhold(Withheld) {}
void Machine::FreeWithheld(RequestId, TimeNs) {}
void Machine::SendForKv(RequestId, std::int64_t) {}
void Replica::Arrive(RequestId, TimeNs) {}
void Machine::Resume(RequestId) {}
StepPrice Replica::PriceRanks(bool) { std::abort(); }
void Replica::CountRanks(Step&) {}
void Replica::RecordRanks(const Step&, std::int64_t) {}
void VllmScheduler::HandOn(RequestId, SlotId, TimeNs) {}
void VllmScheduler::Reserve(RequestId) {}
void VllmScheduler::Arrive(RequestId, TimeNs) {}
void VllmScheduler::LoseTransfer(RequestId) {}
void VllmScheduler::AdmitArrived(Call&) {}
bool VllmScheduler::GiveUpTransfer(RequestId) { return false; }
void VllmScheduler::StartDrafts() {}
void VllmScheduler::BeginDrafts(Call&) {}
void VllmScheduler::DrawOutputs() {}
void VllmScheduler::FillGroup(StepPlan&) {}
void VllmScheduler::AdvanceDrafted(Step&) {}
void VllmScheduler::ApplyDrafted(Step&) {}
void VllmScheduler::GiveUpDrafted(SlotId) {}

void AdapterSeats::BeginStep() {}
void AdapterSeats::Add(RequestId) {}
bool AdapterSeats::MaySeat(RequestId) const { return true; }
const AdapterSeats::Place* AdapterSeats::Next() const { return nullptr; }
bool AdapterSeats::Take(RequestId) { return false; }
void AdapterSeats::SetAside(Place) {}
bool AdapterSeats::Remove(RequestId) { return false; }
void AdapterSeats::CountInGroup(std::int32_t, std::int64_t) {}

std::shared_ptr<ImageDrawer> MakeImageDrawer(const Scenario&) { return nullptr; }
void ImageDrawer::Extend(const Session&, ContentSegment&, RequestTable&) {}
void ImageDrawer::Add(const Session&, std::int64_t, std::int64_t, std::size_t, RequestTable&) {}
void CheckImages(const Scenario&, Issues&) {}
void CheckEncoders(const Scenario&, std::size_t, Issues&) {}
// Nothing is refused here that the whole one lets pass, which is asked for such a pool.
void LeaveToEncoders(const PoolSpec& pool, Scenario& s) {
  if (pool.role != PoolRole::kEncode) return;
  s.engine = {};
  s.scheduler = {};
  s.latency = {};
  s.workload->adapters = {};
}
void ReportImages(const RunView&, Report&) {}
std::string HangWords(const Scenario&, const Report&) { return ""; }
EncoderTimes::EncoderTimes(const Scenario&, const ModelCost&) {}

void VisitPools(const Report&, Scope, JsonPut&) {}
void VisitReplicas(const Report&, JsonPut&) {}
void VisitScaling(const ScalingReport&, JsonPut&) {}
void VisitFailures(const ScalingReport&, JsonPut&) {}
void VisitSlow(const SlowReport&, JsonPut&) {}
void VisitRetries(const RetryReport&, JsonPut&) {}
void VisitSpeculation(const SchedulerCounts&, JsonPut&) {}
void VisitImages(const Report&, JsonPut&) {}

std::shared_ptr<EncoderCache> MakeEncoderCache(const ReplicaInput&) { return nullptr; }
void EncoderCache::Mark() {}
void EncoderCache::Undo() {}
void EncoderCache::BeginStep() {}
std::int64_t EncoderCache::Cut(RequestId, std::int64_t, std::int64_t tokens) { return tokens; }
void EncoderCache::Take(RequestId) {}
void EncoderCache::TakeOut(RequestId) {}
void EncoderCache::Computed(RequestId, std::int64_t) {}
void EncoderCache::Passed(RequestId, bool) {}
void EncoderCache::Drop(RequestId) {}

std::shared_ptr<QueueCaps> MakeQueueCaps(const EngineSpec&, const RequestTable&) { return nullptr; }
bool QueueCaps::Takes(RequestId, TimeNs) { std::abort(); }
void QueueCaps::FirstToken(RequestId, TimeNs) {}
void QueueCaps::Over(RequestId, TimeNs) {}

std::shared_ptr<const LatencyModel> WithDrafter(std::unique_ptr<LatencyModel> model,
                                                const Scenario&, const LatencyEntry&) {
  return model;
}

}  // namespace servecast
