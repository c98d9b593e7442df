// Fuzz target: runs of any valid scenario: a document and, after a cut, a trace. The document may
// ask for more than a second has; how much of it runs is bounded here, the engine is as ever.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"
#include "fuzz/inputs.h"
#include "io/json_document.h"
#include "servecast/simulation.h"
#include "servecast/workload_spec.h"
#include "serving/hooks.h"

namespace servecast::fuzz {
namespace {

constexpr std::int64_t kMostRequests = 120;
constexpr std::int64_t kMostGroups = 1000;
constexpr std::int64_t kMostSteps = 2000;
constexpr std::int64_t kMostSnapshots = 8;
constexpr std::int64_t kUnknown = -1;

// What holds for the steps of every replica, by its own pool's options.
class Watcher final : public StepObserver {
 public:
  void OnStep(const StepRecord& step) override {
    // Replicas that come are as the first ones of one pool, and of any of several.
    const auto number = static_cast<std::size_t>(step.replica);
    if (number >= replicas_.size() && pools_ > 1) return;
    const OfReplica& own = replicas_[scaled_ && pools_ == 1 ? 0 : number];
    SERVECAST_CHECK(step.start >= step.scheduled && step.end > step.start, "I3: a step takes time");
    std::int64_t tokens = 0;
    for (const StepMember& member : step.members) tokens += member.tokens;
    SERVECAST_CHECK(tokens > 0 && tokens <= own.token_budget, "I7: the token budget");
    SERVECAST_CHECK(step.running_after_schedule <= own.seats, "I7: seats");
    for (const std::int64_t free : {step.free_after_schedule, step.free_after_step}) {
      SERVECAST_CHECK(free >= 0 && (own.blocks == kUnknown || free <= own.blocks),
                      "I4: free KV blocks are of the pool");
    }
    // With prefill and decode apart, what is on its way holds blocks at both ends.
    SERVECAST_CHECK(apart_ || step.running_after_step > 0 || own.blocks == kUnknown ||
                        step.free_after_step == own.blocks,
                    "I4: no KV block is used when nobody runs");
  }

  void Expect(const Scenario& scenario, const Report& report) {
    const std::vector<PoolSpec>& pools = scenario.cluster.pools;
    apart_ = scenario.cluster.Has(PoolRole::kDecode);
    scaled_ = scenario.cluster.Scales();
    pools_ = pools.size();
    for (std::size_t p = 0; p < pools.size(); ++p) {
      const SchedulerSpec& own = pools[p].scheduler ? *pools[p].scheduler : scenario.scheduler;
      const std::string& policy = own.policy;
      const EngineSpec& engine = pools[p].engine ? *pools[p].engine : scenario.engine;
      const bool unlimited =
          policy == "orca" || policy == "faster_transformer" ||
          (policy == "sglang" && !engine.enable_chunked_prefill);  // whole prompts
      // Of several pools a report says tokens alone, and of layers of several kinds no blocks
      // follow from these: their number is not known here.
      const bool known = report.pools.empty() ||
                         (scenario.model.layers.empty() && scenario.model.num_sliding_layers == 0);
      const std::int64_t unit = policy == "lightllm" ? 1 : engine.block_size;
      const std::int64_t blocks = report.pools.empty() ? report.kv_blocks * engine.block_size / unit
                                                       : report.pools[p].kv_tokens / unit;
      replicas_.insert(replicas_.end(), static_cast<std::size_t>(pools[p].replicas),
                       {unlimited          ? kNever
                        : policy == "vllm" ? engine.max_num_batched_tokens
                                           : std::max(engine.max_num_batched_tokens,
                                                      engine.max_num_seqs),  // decodes
                        engine.max_num_seqs, known ? blocks : kUnknown});
    }
  }

 private:
  struct OfReplica {
    std::int64_t token_budget = 0, seats = 0, blocks = 0;
  };
  std::vector<OfReplica> replicas_;
  bool apart_ = false, scaled_ = false;
  std::size_t pools_ = 1;
};

void CheckReport(const Report& r) {
  SERVECAST_CHECK(r.arrived == r.completed + r.queued + r.running + r.dropped + r.timed_out +
                                   r.rejected + r.scaling.failures.lost,
                  "I1: arrived = completed + queued + running + lost");
  SERVECAST_CHECK(std::min({r.completed, r.queued, r.running, r.dropped, r.timed_out, r.rejected,
                            r.steps, r.output_tokens}) >= 0,
                  "I1: counts");
  SERVECAST_CHECK(r.kv_peak_usage >= 0 && r.kv_peak_usage <= 1, "I4: peak of the KV pool");
}

// In slices, looked at on the way, against the whole in one: the same report.
void Compare(const Scenario& scenario, const Trace& trace, std::int64_t slice) {
  Result<Simulation> whole = Simulation::Create(scenario, trace);
  if (!whole.ok()) {
    CheckIssues(whole.issues());
    return;
  }
  Watcher watcher;
  SimulationHooks hooks;
  hooks.observer = &watcher;
  Result<Simulation> sliced = Simulation::Create(scenario, trace, std::move(hooks));
  SERVECAST_CHECK(sliced.ok(), "I10: the same scenario is as possible again");

  Report report = sliced.value().Snapshot();
  CheckReport(report);
  watcher.Expect(scenario, report);
  double progress = sliced.value().Progress();
  std::int64_t arrived = report.arrived, completed = report.completed;
  bool finished = false;
  std::int64_t left = kMostSteps;
  for (std::int64_t looks = 0; left > 0 && !finished; ++looks) {
    const std::int64_t steps = looks < kMostSnapshots ? std::min(slice, left) : left;
    finished = sliced.value().Advance(steps);
    left -= steps;
    report = sliced.value().Snapshot();
    CheckReport(report);
    const double now = sliced.value().Progress();
    SERVECAST_CHECK(now >= progress && now <= 1 && (now == 1) == finished, "progress never falls");
    SERVECAST_CHECK(report.arrived >= arrived && report.completed >= completed,
                    "I1: counters never fall");
    SERVECAST_CHECK(report.finished == finished, "a report knows whether the run is over");
    progress = now;
    arrived = report.arrived;
    completed = report.completed;
  }
  const bool alike = whole.value().Advance(kMostSteps) == finished;
  // Where an unfinished run stands differs: each replica is elsewhere, and other schedulers, when
  // watched, have a batch in flight.
  const PoolSpec& pool = scenario.cluster.pools[0];
  const SchedulerSpec& scheduler = pool.scheduler ? *pool.scheduler : scenario.scheduler;
  const bool comparable = scenario.cluster.Replicas() == 1 && scheduler.policy == "vllm";
  if (!comparable && !(alike && finished)) return;
  SERVECAST_CHECK(alike, "I10: slices change no end");
  const Report other = whole.value().Snapshot();
  SERVECAST_CHECK(other.fingerprint == report.fingerprint, "I10: slices change no fingerprint");
  const std::string json = ReportJson(report, ReportParts::kWithSeries);
  SERVECAST_CHECK(json == ReportJson(other, ReportParts::kWithSeries),
                  "I10: slices change nothing");
  SERVECAST_CHECK(ParseJson(json).ok(), "a report is JSON");
  SERVECAST_CHECK(RequestsCsv(report) == RequestsCsv(other), "I10: slices change no request");
}

void Run(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input);
  Result<Scenario> read = ParseScenario(parts[0]);
  if (!read.ok()) return;
  Scenario& scenario = read.value();
  WorkloadSpec& workload = *scenario.workload;
  workload.requests = std::min(workload.requests, kMostRequests);
  workload.prefix.groups = std::min(workload.prefix.groups, kMostGroups);
  Trace trace;
  if (parts.size() > 1) {
    Result<Trace> traced = ParseTrace(parts[1], "fuzz");
    if (traced.ok()) trace = std::move(traced.value());
  }
  const auto rows = std::min(trace.rows.size(), static_cast<std::size_t>(kMostRequests));
  trace.rows.resize(rows);
  trace.prefixes.resize(std::min(trace.prefixes.size(), rows));
  Compare(scenario, trace, 1 + static_cast<std::int64_t>(scenario.id % 97));
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::Run(servecast::fuzz::TextOf(data, size));
  return 0;
}
