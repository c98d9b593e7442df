// From what a run left behind to a report: distributions, rates, verdict, columns.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "cost/model_cost.h"
#include "metrics/recorder.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

// A pool: the scenario as it is for this one.
struct PoolRun {
  const Scenario& scenario;
  const ModelCost& cost;
  const Recorder& recorder;  // of its replicas

  const PoolSpec& spec() const { return scenario.cluster.pool(); }
};

struct RunView {
  const Scenario& scenario;
  const ModelCost& cost;
  const std::string& trace_name;
  std::uint64_t trace_hash = 0;  // 0: nothing is replayed
  const RequestTable& requests;
  const RequestResults& results;  // `generated` up to date for running requests too
  const Recorder& recorder;
  std::int64_t running = 0;
  std::int64_t length_capped = 0;
  PrefixCacheReport prefix_cache;
  TimeNs end = 0;  // of the last step, or the horizon when the run reached it
  bool finished = false;
  LatencyLabel label;
  SchedulerCounts counts = {};
  KvOffloadReport kv_offload = {};
  TimeNs token_delay = 0;                 // of the latency model
  std::vector<PoolRun> pools;             // one at least
  ScalingReport scaling = {};             // but for GPUs and cost
  std::vector<std::size_t> pool_of = {};  // by replica; empty where there is one pool
  std::vector<ReplicaReport> replicas = {};
  RetryReport retries = {};
  const std::vector<std::int32_t>* attempts = nullptr;  // by request; nullptr: one each

  static constexpr std::size_t kNoClass = SIZE_MAX;

  bool HasPools() const { return pools.size() > 1; }  // several
  bool Arrived(std::size_t r) const {
    return requests.arrival[r] >= 0 && requests.arrival[r] <= end;
  }
  bool Measured(std::size_t r) const {
    return static_cast<double>(requests.arrival[r]) >= scenario.measure.warmup_s * 1e9;
  }
  std::size_t ClassOf(std::size_t r) const {
    return requests.of_class.empty() ? kNoClass : requests.of_class[r];
  }
  // Requires: complete, and more than one token.
  double TpotNs(std::size_t r) const {
    return static_cast<double>(results.completion[r] - results.first_token[r]) /
           static_cast<double>(results.generated[r] - 1);
  }
  // In FinishReasons::kNames. Requires: it arrived.
  std::size_t FinishReasonOf(std::size_t r) const;
  // Its first token came after its class's deadline, or can only come after it; none without one.
  std::optional<bool> DeadlineMissed(std::size_t r) const;
  // The end of the time in which load is offered; in a closed loop that is all of it. O(requests).
  TimeNs LastOffered() const;
};

// O(requests), and O(requests log) nowhere. Request columns only when `detail` asks for them.
Report Summarize(const RunView& run, ReportDetail detail);

// Of a report that is whole but for them.
std::vector<SanityCheck> SanityOf(const Report& report);

// Parts of Summarize.
// `of_class`: by target, the class or kNoClass.
void MeasureAttainment(const RunView& run, const std::vector<std::size_t>& of_class,
                       Report& report);
void SplitTimes(const RunView& run, Report& report);
// Requires: SplitTimes was called.
void ReportImages(const RunView& run, Report& report);
// What else is to be said where requests with images are left running; may be empty.
std::string HangWords(const Scenario& scenario, const Report& report);
// What else is to be said of clusters and of schedulers other than vLLM's; may be empty.
std::string ClusterNotes(const Scenario& scenario, const Report& report);
void ReportPools(const RunView& run, Report& report);
// Mean W of a GPU by interval of the series; empty: not known. Behind ReportPools.
std::vector<double> ReportPower(const RunView& run, Report& report);
double PoolsScarcestUse(const RunView& run, std::size_t first_bin, std::size_t last_bin);
void JudgeFairness(const RunView& run, Report& report);
// On average over a part of the run: replicas, those that start too; KV blocks, and the tokens that
// they have room for, of those that serve.
double MeanReplicas(const RunView& run, TimeNs from, TimeNs to);
double MeanReplicas(const RunView& run, std::size_t pool, TimeNs from, TimeNs to);
// The columns of replicas that come and go, of all and by role: those that serve, draining or not,
// and those that start, on average over each interval.
std::vector<std::pair<std::string, std::vector<double>>> ReplicasOverTime(const RunView& run,
                                                                          TimeNs width,
                                                                          std::size_t intervals);
// GPU time and cost of a pool's replicas that came and went, which else are of replicas.
void PutGpus(const PoolRun& pool, TimeNs end, ScalingReport& scaling);
double MeanKvBlocks(const RunView& run, TimeNs from, TimeNs to);
double MeanKvTokens(const RunView& run, TimeNs from, TimeNs to);
// Of the time of all replicas: so much of it; that in which KV blocks, seats or the token budget
// kept a request waiting.
double ShareOfTime(const RunView& run, TimeNs ns);
double BlockedShare(const RunView& run);
void ReportBinding(const RunView& run, Report& report);
void DoubtPrompts(const RunView& run, Report& report);
void FillRequestColumns(const RunView& run, Report& report);
std::uint64_t FingerprintOf(const RunView& run, const Report& report);

// What output tokens cost, from their rate.
void PutCost(const Scenario& scenario, Report& report);
// GPUs in use on average over the run, those of replicas that start or drain too.
double MeanGpus(const Report& report);

// Judges a report whose numbers are in: verdict, limit and note.
void Judge(const Scenario& scenario, Report& report);

// Where servers like this one are known to be predicted badly, takes the verdict back; the sentence
// then has the figures that were `simulated`, one whole sentence, instead.
void RefuseToJudge(const std::string& simulated, Report& report);

}  // namespace servecast
