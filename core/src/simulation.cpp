// Wires a scenario's parts together and runs them; nothing clever. See simulation.h.
#include "servecast/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "cost/model_bytes.h"
#include "cost/model_cost.h"
#include "cost/nodes.h"
#include "io/scaling_checks.h"
#include "metrics/recorder.h"
#include "metrics/records.h"
#include "metrics/summarize.h"
#include "metrics/work.h"
#include "run_memory.h"
#include "servecast/workload_spec.h"
#include "serving/blis/blis_replica.h"
#include "serving/clients.h"
#include "serving/cluster/cluster.h"
#include "serving/cluster/deployment.h"
#include "serving/hooks.h"
#include "serving/inbox.h"
#include "serving/policy.h"
#include "serving/replica/pipeline.h"
#include "serving/replica/replica.h"
#include "workload/retries.h"
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

// The scenario as it is run: the only pool's own settings are its.
Result<Deployment> Deployed(Scenario& scenario, const Trace& trace, Deployment* made = nullptr) {
  if (scenario.cluster.pools.size() == 1) scenario.UsePool(0);
  Result<Deployment> deployment =
      made != nullptr ? Result<Deployment>(std::move(*made)) : Deploy(scenario);
  if (!deployment.ok()) return deployment;
  if (scenario.cluster.slowdowns.On() || scenario.cluster.failures.On()) {
    if (Issues often = CheckChanceOver(scenario, trace); !often.empty()) return often;
  }
  const RunMemory memory = MemoryOfRun(scenario, trace);
  if (sizeof(void*) == 4 && memory.bytes > std::int64_t{UINT32_MAX}) {
    return Issue{"/workload", Format("found {} requests, whose run takes about {} MB; allowed what "
                                     "fits 4,295 MB, all that WebAssembly has",
                                     memory.requests, memory.bytes / 1'000'000)};
  }
  return deployment;
}

}  // namespace

struct Simulation::State {
  State(Scenario s, Trace t, Deployment d, RequestTable table, Recorded recorded)
      : scenario(std::move(s)),
        trace(std::move(t)),
        deployment(std::move(d)),
        requests(std::move(table)),
        recorder(SecondsToNs(scenario.measure.warmup_s),
                 ExpertsRead(first().cost, MostTokens(scenario)), recorded),
        horizon(scenario.measure.horizon_s ? SecondsToNs(*scenario.measure.horizon_s) : kNever) {}

  // Its memory is that of a report.
  const Pool& first() const { return deployment.pools.front(); }

  ReplicaInput EachOf(const Pool& pool, StepObserver* observer) {
    const ClusterSpec& cluster = scenario.cluster;
    return {.engine = pool.scenario.engine,
            .scheduler = pool.scenario.scheduler,
            .setup = *pool.setup,
            .pool_blocks = pool.cost.pool_blocks,
            .max_model_len = deployment.max_model_len,
            .requests = requests,
            .inbox = inbox.get(),
            .latency = *pool.latency,
            .results = results,
            .recorder = &recorder,
            .scratch = *scratch,
            .horizon = horizon,
            .observer = observer,
            .kv_tiers = pool.kv_tiers,
            .stages = pool.stages.empty() ? nullptr : &pool.stages,
            .role = pool.spec().role,
            .first_token_from_decode = scenario.cluster.disaggregation.first_token_from_decode,
            .seed = scenario.seed,
            .windows = pool.cost.windows,
            .kv_plan = pool.cost.kv_plan.get(),
            .most_image_tokens = MostImageTokens(scenario.model.vision),
            .ranks = pool.scenario.RanksInStep(),
            .slowdowns = cluster.slowdowns.On() ? &cluster.slowdowns : nullptr,
            .encodes_images = !cluster.Has(PoolRole::kEncode)};
  }

  void StartReplicas(StepObserver* observer) {
    deployment.SetUpSchedulers(requests);
    clients = std::make_unique<Clients>(requests, *latency, deployment.max_model_len, results,
                                        FrontEndServers(scenario));
    inbox = std::make_unique<Inbox>(*clients, requests, results, false);
    scratch = std::make_unique<ReplicaScratch>(requests);
    if (!HasCluster(scenario)) {
      replica = MakeReplica(EachOf(first(), observer));
      return;
    }
    results.replica.assign(static_cast<std::size_t>(requests.size()), -1);
    if (first().scenario.RanksInStep() > 1) results.rank = results.replica;
    std::vector<FleetPool> pools;
    for (std::size_t p = 0; p < deployment.pools.size(); ++p) {
      const Pool& pool = deployment.pools[p];
      const ClusterSpec& alone = pool.scenario.cluster;
      const bool own = scenario.cluster.pools[p].scaling.has_value();
      const std::optional<double> grace = alone.TerminationGraceS(alone.pool());
      pools.push_back({.each = EachOf(pool, observer),
                       .replicas = pool.spec().replicas / pool.scenario.RanksInStep(),
                       .gpus = pool.spec().GpusOfReplica(),
                       .block_bytes = pool.block_bytes,
                       .scaling = !alone.scaling.On() ? nullptr
                                  : own               ? &alone.scaling
                                                      : &scenario.cluster.scaling,
                       .cold_start = ColdStart(pool),
                       .wake = SecondsToNs(alone.scaling.wake_s.value_or(0)),
                       .grace = grace ? SecondsToNs(*grace) : kNever});
    }
    const ClusterSpec& cluster = scenario.cluster;
    const RouterEntry& router = FindRouter(cluster.router);
    const RouterEntry& decode_router = FindRouter(cluster.decode_router);
    const RouterEntry& encode_router = FindRouter(cluster.encode_router);
    DisaggregationSpec disaggregation = cluster.disaggregation;
    disaggregation.bandwidth_gb_s = TransferGbS(scenario);
    replica = MakeCluster(Cluster::Input{
        .pools = std::move(pools),
        .router = &router,
        .router_params = ParamValues(router.params, cluster.router_params),
        .seed = scenario.seed,
        .clients = *clients,
        .decode_router = &decode_router,
        .decode_router_params = ParamValues(decode_router.params, cluster.decode_router_params),
        .disaggregation = disaggregation,
        .encode_router = &encode_router,
        .encode_router_params = ParamValues(encode_router.params, cluster.encode_router_params),
        .embed_bytes = EmbedBytes(scenario.model),
        .embeddings_gb_s = TransferGbS(scenario, true),
        .rolling_update = cluster.rolling_update.On() ? &cluster.rolling_update : nullptr,
        .failures = cluster.failures.On() ? &cluster.failures : nullptr,
        .epp = &cluster.epp});
  }

  // Of a replica's cold start: its weights come over one link.
  static double WeightsS(const Pool& pool) {
    const ScalingSpec& spec = pool.scenario.cluster.scaling;
    if (!spec.On()) return 0;
    const double gb =
        pool.cost.weights_gib * 1.073741824 * static_cast<double>(pool.spec().GpusOfReplica());
    return gb / spec.weights_gb_s;
  }

  // The parts of it one after another.
  static TimeNs ColdStart(const Pool& pool) {
    const ScalingSpec& spec = pool.scenario.cluster.scaling;
    const RollingUpdateSpec& update = pool.scenario.cluster.rolling_update;
    if (update.On()) return SecondsToNs(update.start_s);
    return spec.On() ? SecondsToNs(spec.node_s + spec.image_s + WeightsS(pool) + spec.engine_s) : 0;
  }

  ScalingReport ScalingTo(TimeNs end) const {
    ScalingReport scaling = replica->ScalingTo(end);
    for (std::size_t p = 0; p < deployment.pools.size(); ++p) {
      const double weights_s = WeightsS(deployment.pools[p]);
      scaling.weights_s = std::max(scaling.weights_s, weights_s);
      if (p < scaling.pools.size()) scaling.pools[p].weights_s = weights_s;
    }
    if (scenario.cluster.slowdowns.On()) {
      std::int64_t replicas = scenario.cluster.Replicas();
      for (const std::int32_t of : results.replica)
        replicas = std::max<std::int64_t>(replicas, of + 1);
      scaling.slow =
          ReportSlow(scenario.cluster.slowdowns, scenario.seed, replicas, requests, results, end);
    }
    return scaling;
  }

  // By replica, of those that had requests; empty where there is one pool.
  std::vector<std::size_t> PoolsOfReplicas() const {
    std::int32_t last = -1;
    for (const std::int32_t of : results.replica) last = std::max(last, of);
    for (const HandOver& h : results.hand_overs) last = std::max(last, h.prefill_replica);
    for (const Encoding& e : results.encodings) last = std::max(last, e.replica);
    std::vector<std::size_t> pools;
    if (deployment.pools.size() == 1) return pools;
    for (std::int32_t i = 0; i <= last; ++i) pools.push_back(replica->PoolOf(i));
    return pools;
  }

  void SetLatency(SimulationHooks& hooks) {
    std::unique_ptr<LatencyModel> other = std::move(hooks.latency);
    if (deployment.pools.size() == 1) {
      Pool& pool = deployment.pools[0];
      if (other != nullptr) pool.latency = std::move(other);
      if (!hooks.stages.empty() && !pool.stages.empty()) pool.stages = std::move(hooks.stages);
      latency = pool.latency.get();
      return;
    }
    if (other == nullptr) other = ChosenLatencyModel(scenario).make(scenario, first().cost);
    of_scenario = std::move(other);
    latency = of_scenario.get();
  }

  // It sees to arrivals, drops and time-outs itself.
  void StartBlisReplica(const KvTier& host, StepObserver* observer) {
    const ModelCost& cost = first().cost;
    clients = std::make_unique<Clients>(requests, *latency, INT64_MAX, results, 0);
    replica = MakeBlisReplica(BlisInput{scenario.engine, scenario.scheduler, cost.usable_blocks,
                                        scenario.model.max_position_embeddings, requests, *latency,
                                        results, recorder, horizon, host, observer,
                                        SecondsToNs(scenario.measure.warmup_s)});
  }

  // Where the clock stands: a finished run's at its last event or at the horizon, if that is later.
  TimeNs End() const {
    if (!finished) return replica->now();
    return std::max(replica->now(), horizon != kNever ? horizon : clients->LastArrival());
  }

  // States of requests that no replica ever had, which nothing else writes.
  void MarkArrivals() { clients->MarkArrivals(End(), finished && horizon == kNever); }

  bool Replays() const {
    const WorkloadSpec& w = *scenario.workload;
    return w.arrivals.process == ArrivalProcess::kTrace ||
           w.prompt_tokens.distribution == LengthDistribution::kTrace ||
           w.output_tokens.distribution == LengthDistribution::kTrace;
  }

  Scenario scenario;
  Trace trace;
  Deployment deployment;
  RequestTable requests;
  RequestResults results;
  Recorder recorder;
  TimeNs horizon;
  // Of delays before the queue and behind the engine: the only pool's, or of the scenario itself.
  const LatencyModel* latency = nullptr;
  std::unique_ptr<LatencyModel> of_scenario;
  std::unique_ptr<Clients> clients;
  std::unique_ptr<Inbox> inbox;
  std::unique_ptr<ReplicaScratch> scratch;
  std::unique_ptr<Engine> replica;
  std::optional<RequestsOfAttempts> folded;  // where clients try again, as of the last look
  bool finished = false;

  // By request instead of by attempt. In place, as records are views.
  void Fold(TimeNs end, std::int64_t output_tokens) {
    if (requests.backoff.empty()) return;
    if (!folded) folded.emplace();
    *folded = FoldAttempts(requests, results, end, output_tokens);
  }
};

Simulation::Simulation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Simulation::Simulation(Simulation&&) noexcept = default;
Simulation& Simulation::operator=(Simulation&&) noexcept = default;
Simulation::~Simulation() = default;

Issues Simulation::Refusals(Scenario scenario, const Trace& trace) {
  const Result<Deployment> deployment = Deployed(scenario, trace);
  return deployment.ok() ? Issues{} : deployment.issues();
}

Result<Simulation> Simulation::Create(Scenario scenario, Trace trace) {
  return Create(std::move(scenario), std::move(trace), SimulationHooks{});
}

Result<Simulation> Simulation::Create(Scenario scenario, Trace trace, SimulationHooks hooks) {
  Result<Deployment> deployment = Deployed(scenario, trace, hooks.deployment.get());
  if (!deployment.ok()) return Issues(deployment.issues());
  Result<RequestTable> requests =
      hooks.requests ? std::move(*hooks.requests) : MakeRequests(scenario, trace);
  if (requests.ok()) requests = WithRetries(scenario, std::move(requests.value()));
  if (!requests.ok()) return Issues(requests.issues());
  trace.rows = {};  // now in the table
  trace.accepted_drafts = {};
  trace.adapters = {};
  auto state =
      std::make_unique<State>(std::move(scenario), std::move(trace), std::move(deployment.value()),
                              std::move(requests.value()), hooks.recorded);
  State& s = *state;
  s.SetLatency(hooks);
  if (s.latency->DelayByLoad() && !s.deployment.AllHave(Feature::kPreemptionMean)) {
    return Issue{"/scheduler/policy",
                 Format("found \"{}\", allowed \"vllm\" with a delay before the queue that "
                        "depends on load",
                        s.scenario.scheduler.policy)};
  }
  if (HasCluster(s.scenario) && s.latency->DelayByLoad()) {
    return Issue{"/cluster/pools/0/replicas",
                 "found a router, allowed 1 replica and no central_queue with a delay before the "
                 "queue that depends on load: "
                 "alpha_coefficients of physics beyond those of prompt and bias"};
  }
  s.results.Resize(s.requests.size());
  if (hooks.recorded.gaps && s.scenario.cluster.Replicas() == 1)
    s.recorder.ReserveGaps(8 * static_cast<std::int64_t>(s.requests.requests()));
  if (!IsBlis(s.scenario.engine.compat)) {
    s.StartReplicas(hooks.observer);
  } else {
    const KvTier host = s.first().kv_tiers.empty() ? KvTier{} : s.first().kv_tiers[0];
    const std::int64_t most = std::max(s.first().cost.usable_blocks, host.blocks);
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
  const auto total = static_cast<double>(std::max<std::size_t>(s.requests.requests(), 1));
  double progress = static_cast<double>(s.replica->completed() + s.replica->timed_out() +
                                        s.replica->rejected() + s.replica->lost()) /
                    total;
  if (s.horizon != kNever) {
    progress =
        std::max(progress, static_cast<double>(s.replica->now()) / static_cast<double>(s.horizon));
  }
  return std::min(progress, 0.999);
}

RunRecords Simulation::Records() const {
  State& s = *state_;
  s.MarkArrivals();
  if (s.requests.backoff.empty()) return Attempts();
  s.Fold(s.End(), 0);
  return {s.folded->requests, s.folded->results, s.End(), s.latency->OutputTokenDelay(),
          s.finished};
}

RunRecords Simulation::Attempts() const {
  const State& s = *state_;
  return {s.requests, s.results, s.End(), s.latency->OutputTokenDelay(), s.finished};
}

Report Simulation::Snapshot(ReportDetail detail) const {
  State& s = *state_;
  const TimeNs end = s.End();
  s.replica->WriteProgress(s.results.generated);
  s.MarkArrivals();
  std::optional<Recorder> all;  // of several replicas
  if (!s.results.replica.empty()) s.replica->WriteRecords(end, all.emplace(s.recorder));
  const Recorder& whole = all ? *all : s.recorder;
  s.Fold(end, whole.output_tokens());
  const std::vector<Pool>& pools = s.deployment.pools;
  std::vector<Recorder> of_pools;  // where there are several
  std::vector<PoolRun> runs;
  of_pools.reserve(pools.size());
  for (const Pool& pool : pools) {
    if (pools.size() > 1) {
      const auto number = static_cast<std::int64_t>(of_pools.size());
      s.replica->WritePoolRecords(end, number, of_pools.emplace_back(s.recorder));
      of_pools.back().WidenTo(whole);
    }
    runs.push_back({.scenario = pool.scenario,
                    .cost = pool.cost,
                    .recorder = pools.size() > 1 ? of_pools.back() : whole});
  }
  Report report =
      Summarize({.scenario = s.scenario,
                 .cost = s.first().cost,
                 .trace_name = s.trace.name,
                 .trace_hash = s.Replays() ? s.trace.hash : 0,
                 .requests = s.folded ? s.folded->requests : s.requests,
                 .results = s.folded ? s.folded->results : s.results,
                 .recorder = whole,
                 .running = s.requests.Hedges() ? s.folded->running : s.replica->running(),
                 .length_capped = s.replica->length_capped(),
                 .prefix_cache = s.replica->prefix_cache(),
                 .end = end,
                 .finished = s.finished,
                 .label = s.deployment.label,
                 .counts = s.replica->counts(),
                 .kv_offload = s.replica->kv_offload(),
                 .token_delay = s.latency->OutputTokenDelay(),
                 .pools = std::move(runs),
                 .scaling = s.ScalingTo(end),
                 .pool_of = s.PoolsOfReplicas(),
                 .replicas = detail == ReportDetail::kTotals ? std::vector<ReplicaReport>()
                                                             : s.replica->PerReplica(end),
                 .retries = s.folded ? s.folded->report : RetryReport{},
                 .attempts = s.folded ? &s.folded->attempts : nullptr},
                detail);
  report.departures = s.replica->departures();
  if (report.counts.lost_victims > 0) {
    report.departures.push_back(
        "preemption: the victims of one that is then refused wait here; SGLang 0.5.16 loses them");
  }
  return report;
}

}  // namespace servecast
