// Wires a scenario's parts together and runs them; nothing clever. See simulation.h.
#include "servecast/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "cost/model_cost.h"
#include "cost/nodes.h"
#include "metrics/recorder.h"
#include "metrics/records.h"
#include "metrics/summarize.h"
#include "metrics/work.h"
#include "run_memory.h"
#include "serving/blis_replica.h"
#include "serving/clients.h"
#include "serving/cluster.h"
#include "serving/former_replica.h"
#include "serving/hooks.h"
#include "serving/inbox.h"
#include "serving/pipeline.h"
#include "serving/policy.h"
#include "serving/pool_parts.h"
#include "serving/replica.h"
#include "workload/workload.h"

namespace servecast {
namespace {

// Of a step on any replica.
std::int64_t MostTokens(const Scenario& s) {
  std::int64_t most = s.engine.max_num_batched_tokens;
  for (const PoolSpec& pool : s.cluster.pools) {
    if (pool.engine) most = std::max(most, pool.engine->max_num_batched_tokens);
  }
  return most;
}

TimeNs SecondsToNs(double seconds) { return static_cast<TimeNs>(std::nearbyint(seconds * 1e9)); }

}  // namespace

struct Simulation::State {
  State(Scenario s, Trace t, const ModelCost& c, RequestTable table)
      : scenario(std::move(s)),
        trace(std::move(t)),
        cost(c),
        requests(std::move(table)),
        recorder(SecondsToNs(scenario.measure.warmup_s), ExpertsRead(cost, MostTokens(scenario))),
        horizon(scenario.measure.horizon_s ? SecondsToNs(*scenario.measure.horizon_s) : kNever) {}

  // Of the only pool, or of any.
  bool HasFormer() const {
    return std::any_of(
        scenario.cluster.pools.begin(), scenario.cluster.pools.end(), [this](const PoolSpec& pool) {
          return (pool.scheduler ? *pool.scheduler : scenario.scheduler).policy != "vllm";
        });
  }

  void StartReplica(StepObserver* observer) {
    const std::int64_t max_model_len =
        pools.empty() ? MaxModelLenOf(scenario, cost) : ShortestMaxModelLen(pools);
    if (pools.empty() && HasFormer()) {
      former = MakeFormerSetup(scenario, cost, max_model_len, requests);
    }
    clients = std::make_unique<Clients>(requests, *latency, max_model_len, results);
    inbox = std::make_unique<Inbox>(*clients, requests, results, false);
    scratch = std::make_unique<ReplicaScratch>(requests);
    const ReplicaInput input{
        scenario.engine,
        scenario.scheduler,
        cost.pool_blocks,
        max_model_len,
        requests,
        *inbox,
        *latency,
        results,
        recorder,
        *scratch,
        horizon,
        observer,
        KvTiersOf(scenario.engine.kv_offload,
                  cost.kv_bytes_per_token * static_cast<double>(scenario.engine.block_size),
                  cost.tensor_parallel),
        0,
        false,
        stages.empty() ? nullptr : &stages,
        former.get()};
    if (!HasCluster() && former != nullptr) {
      replica = std::make_unique<FormerReplica>(input);
      return;
    }
    if (!HasCluster()) {
      replica = std::make_unique<Replica>(input);
      return;
    }
    const RouterEntry& router = FindRouter(scenario.cluster.router);
    results.replica.assign(static_cast<std::size_t>(requests.size()), -1);
    const ClusterSpec& cluster = scenario.cluster;
    const RouterEntry& decode_router = FindRouter(cluster.decode_router);
    DisaggregationSpec disaggregation = cluster.disaggregation;
    disaggregation.bandwidth_gb_s = TransferGbS(scenario);
    replica = MakeCluster(
        {input, cluster.Replicas(), &router, ParamValues(router.params, cluster.router_params),
         scenario.seed, *clients, PoolsOf(pools, max_model_len, requests), &decode_router,
         ParamValues(decode_router.params, cluster.decode_router_params), disaggregation});
  }

  // A router that places at once has nothing to decide about one replica.
  bool HasCluster() const {
    return scenario.cluster.Replicas() > 1 || FindRouter(scenario.cluster.router).holds;
  }

  // It sees to arrivals, drops and time-outs itself.
  void StartBlisReplica(const KvTier& host, StepObserver* observer) {
    clients = std::make_unique<Clients>(requests, *latency, INT64_MAX, results);
    replica = std::make_unique<BlisReplica>(
        BlisInput{scenario.engine, scenario.scheduler, cost.usable_blocks,
                  scenario.model.max_position_embeddings, requests, *latency, results, recorder,
                  horizon, host, observer});
  }

  // Where the clock stands: a finished run's at its last event or at the horizon, if that is later.
  TimeNs End() const {
    if (!finished) return replica->now();
    return std::max(replica->now(), horizon != kNever ? horizon : clients->LastArrival());
  }

  bool Replays() const {
    const WorkloadSpec& w = scenario.workload;
    return w.arrivals.process == ArrivalProcess::kTrace ||
           w.prompt_tokens.distribution == LengthDistribution::kTrace ||
           w.output_tokens.distribution == LengthDistribution::kTrace;
  }

  Scenario scenario;
  Trace trace;
  ModelCost cost;
  std::vector<PoolPart> pools;  // where there are several
  RequestTable requests;
  RequestResults results;
  Recorder recorder;
  TimeNs horizon;
  std::unique_ptr<LatencyModel> latency;
  std::vector<PipelineStage> stages;  // empty: one
  LatencyLabel label;
  std::unique_ptr<Clients> clients;
  std::unique_ptr<Inbox> inbox;
  std::unique_ptr<ReplicaScratch> scratch;
  std::unique_ptr<FormerSetup> former;
  std::unique_ptr<AnyReplica> replica;
  bool finished = false;
};

Simulation::Simulation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Simulation::Simulation(Simulation&&) noexcept = default;
Simulation& Simulation::operator=(Simulation&&) noexcept = default;
Simulation::~Simulation() = default;

Result<Simulation> Simulation::Create(Scenario scenario, Trace trace) {
  return Create(std::move(scenario), std::move(trace), SimulationHooks{});
}

Result<Simulation> Simulation::Create(Scenario scenario, Trace trace, SimulationHooks hooks) {
  if (scenario.cluster.pools.size() == 1) scenario.UsePool(0);
  Result<std::vector<PoolPart>> pools = MakePoolParts(scenario);
  if (!pools.ok()) return Issues(pools.issues());
  const Result<ModelCost> cost =
      pools.value().empty() ? ComputeModelCost(scenario) : pools.value()[0].cost;
  if (!cost.ok()) return Issues(cost.issues());
  const RunMemory memory = MemoryOfRun(scenario, trace);
  if (sizeof(void*) == 4 && memory.bytes > std::int64_t{UINT32_MAX}) {
    return Issue{"/workload", Format("found {} requests, whose run takes about {} MB; allowed what "
                                     "fits 4,295 MB, all that WebAssembly has",
                                     memory.requests, memory.bytes / 1'000'000)};
  }
  if (pools.value().empty()) {
    if (Issues missing = MissingFiles(scenario); !missing.empty()) return missing;
  }
  Result<RequestTable> requests =
      hooks.requests ? std::move(*hooks.requests) : MakeRequests(scenario, trace);
  if (!requests.ok()) return Issues(requests.issues());
  trace.rows = {};  // now in the table
  auto state = std::make_unique<State>(std::move(scenario), std::move(trace), cost.value(),
                                       std::move(requests.value()));
  State& s = *state;
  s.pools = std::move(pools.value());
  const LatencyEntry& entry = ChosenLatencyModel(s.scenario);
  s.label = LabelOf(s.pools, s.scenario, entry);
  s.latency = hooks.latency ? std::move(hooks.latency) : entry.make(s.scenario, s.cost);
  if (s.pools.empty() && s.scenario.cluster.pools[0].pipeline_parallel > 1) {
    s.stages = hooks.stages.empty() ? MakeStages(s.scenario, entry) : std::move(hooks.stages);
  }
  if (s.HasFormer() && s.latency->DelayByLoad()) {
    return Issue{"/scheduler/policy",
                 Format("found \"{}\", allowed \"vllm\" with a delay before the queue that "
                        "depends on load",
                        s.scenario.scheduler.policy)};
  }
  if (s.HasCluster() && s.latency->DelayByLoad()) {
    return Issue{"/cluster/pools/0/replicas",
                 "found a router, allowed 1 replica and no central_queue with a delay before the "
                 "queue that depends on load: "
                 "alpha_coefficients of physics beyond those of prompt and bias"};
  }
  s.results.Resize(s.requests.size());
  if (s.scenario.cluster.Replicas() == 1) s.recorder.ReserveGaps(8 * s.requests.size());
  if (!IsBlis(s.scenario.engine.compat)) {
    s.StartReplica(hooks.observer);
  } else {
    const std::vector<KvTier> tiers =
        KvTiersOf(s.scenario.engine.kv_offload,
                  s.cost.kv_bytes_per_token * static_cast<double>(s.scenario.engine.block_size),
                  s.cost.tensor_parallel);
    const KvTier host = tiers.empty() ? KvTier{} : tiers[0];
    const std::int64_t most = std::max(s.cost.usable_blocks, host.blocks);
    if (most <= kMostBlisBlocks) {
      s.StartBlisReplica(host, hooks.observer);
      return Simulation(std::move(state));
    }
    return Issue{
        most == host.blocks ? "/engine/kv_offload/cpu_gib" : "/engine/num_gpu_blocks_override",
        "found " + NumberText(static_cast<double>(most)) +
            " KV blocks, allowed with this compat up to " +
            NumberText(static_cast<double>(kMostBlisBlocks)) + ", as it lists each"};
  }
  return Simulation(std::move(state));
}

bool Simulation::Advance(std::int64_t max_steps) {
  State& s = *state_;
  if (!s.finished) s.finished = s.replica->Advance(max_steps);
  return s.finished;
}

double Simulation::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  const auto total = static_cast<double>(std::max<std::int64_t>(s.requests.size(), 1));
  double progress = static_cast<double>(s.replica->completed() + s.replica->timed_out()) / total;
  if (s.horizon != kNever) {
    progress =
        std::max(progress, static_cast<double>(s.replica->now()) / static_cast<double>(s.horizon));
  }
  return std::min(progress, 0.999);
}

RunRecords Simulation::Records() const {
  return {state_->requests, state_->results, state_->End(), state_->latency->OutputTokenDelay()};
}

Report Simulation::Snapshot(ReportDetail detail) const {
  State& s = *state_;
  const TimeNs end = s.End();
  s.replica->WriteProgress(s.results.generated);
  s.clients->MarkArrivals(end, s.finished && s.horizon == kNever);
  std::optional<Recorder> all;  // of several replicas
  if (!s.results.replica.empty()) s.replica->WriteRecords(end, all.emplace(s.recorder));
  std::vector<PoolRun> pools;
  for (std::size_t i = 0; i < s.pools.size(); ++i) {
    pools.push_back({s.pools[i].scenario, s.pools[i].cost, s.recorder});
    s.replica->WritePoolRecords(end, static_cast<std::int64_t>(i), pools.back().recorder);
    pools.back().recorder.WidenTo(*all);
  }
  Report report =
      Summarize({s.scenario, s.cost, s.trace.name, s.Replays() ? s.trace.hash : 0, s.requests,
                 s.results, all ? *all : s.recorder, s.replica->running(),
                 s.replica->length_capped(), s.replica->prefix_cache(), end, s.finished, s.label,
                 s.replica->counts(), s.replica->kv_offload(), s.latency->OutputTokenDelay(),
                 std::move(pools), s.replica->PerReplica(end)},
                detail);
  report.departures = s.replica->departures();
  return report;
}

}  // namespace servecast
