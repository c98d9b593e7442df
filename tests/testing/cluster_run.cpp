#include "testing/cluster_run.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "cost/model_cost.h"
#include "serving/cluster/cluster.h"
#include "serving/replica/scheduler_setup.h"
#include "serving/scaling/whole.h"
#include "testing/engine_run.h"

namespace servecast::testing {

namespace {

TimeNs GraceOf(const ClusterScaling* scaling, const RollingUpdateSpec* update) {
  std::optional<double> seconds;
  if (scaling != nullptr) seconds = scaling->spec.termination_grace_period_s;
  if (update != nullptr) seconds = update->termination_grace_period_s;
  return seconds ? NsOf(*seconds) : kNever;
}

}  // namespace

ClusterRun RunCluster(const RandomCase& random_case, std::int64_t replicas,
                      const RouterChoice& router, std::int64_t slice, const ClusterScaling* scaling,
                      const FailureSpec* failures, const RollingUpdateSpec* rolling_update) {
  const EngineCase engine_case = EngineCaseOf(random_case);
  const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
  ClusterRun run;
  run.requests = engine_case.requests;
  run.results.Resize(run.requests.size());
  run.results.replica.assign(run.requests.arrival.size(), -1);
  const std::int64_t pool_blocks = *engine_case.engine.num_gpu_blocks_override;
  EngineSpec limits = engine_case.engine;
  const SchedulerEntry& scheduler = FindScheduler(engine_case.scheduler.policy);
  if (!scheduler.obeys_chunked_prefill) limits.enable_chunked_prefill = true;
  std::int64_t max_model_len =
      EffectiveMaxModelLen(limits, engine_case.model_max_len, pool_blocks - 1);
  ModelCost cost;
  cost.pool_blocks = pool_blocks;
  cost.usable_blocks = pool_blocks - 1;
  const std::unique_ptr<SchedulerSetup> setup =
      MakeSchedulerSetup(MakeScenario(engine_case), cost, max_model_len, run.requests);
  if (scheduler.keeps_room != nullptr) max_model_len -= scheduler.keeps_room(engine_case.engine);
  Clients clients(run.requests, *latency, max_model_len, run.results,
                  replicas * engine_case.engine.api_server_count);
  Inbox unused(clients, run.requests, run.results, true);
  ReplicaScratch scratch(run.requests);
  const std::vector<PipelineStage> stages = MakeStages(engine_case.stages, *latency);
  Recorder recorder(0);
  StepCollector collector;
  const RouterEntry& entry = FindRouter(router.name);
  const ReplicaInput each{
      .engine = engine_case.engine,
      .scheduler = engine_case.scheduler,
      .setup = *setup,
      .pool_blocks = pool_blocks,
      .max_model_len = max_model_len,
      .requests = run.requests,
      .inbox = &unused,
      .latency = *latency,
      .results = run.results,
      .recorder = &recorder,
      .scratch = scratch,
      .horizon = engine_case.horizon.value_or(kNever),
      .observer = &collector,
      .kv_tiers = KvTiersOf(engine_case.engine.kv_offload,
                            static_cast<double>(random_case.KvBlockBytes()), 1),
      .stages = stages.empty() ? nullptr : &stages,
      .slowdowns = engine_case.slowdowns.On() ? &engine_case.slowdowns : nullptr};
  std::vector<FleetPool> pools;
  const std::int64_t fixed = scaling == nullptr ? 0 : scaling->fixed;
  if (fixed > 0) pools.push_back({.each = each, .replicas = fixed});
  pools.push_back({.each = each,
                   .replicas = replicas - fixed,
                   .scaling = scaling == nullptr ? nullptr : &scaling->spec,
                   .cold_start = scaling != nullptr          ? scaling->cold_start
                                 : rolling_update != nullptr ? NsOf(rolling_update->start_s)
                                                             : 0,
                   .wake = scaling != nullptr ? NsOf(scaling->spec.wake_s.value_or(0)) : 0,
                   .grace = GraceOf(scaling, rolling_update)});
  Cluster cluster({.pools = std::move(pools),
                   .router = &entry,
                   .router_params = ParamValues(entry.params, router.params),
                   .seed = router.seed,
                   .clients = clients,
                   .rolling_update = rolling_update,
                   .failures = failures,
                   .epp = &router.epp});
  while (!cluster.Advance(slice)) {
  }
  cluster.WriteProgress(run.results.generated);
  run.now = cluster.now();
  cluster.WriteRecords(run.now, recorder);
  TimeNs width = 0;
  for (const SeriesBin& bin : recorder.BinsUpTo(run.now, &width)) run.waiting_ns += bin.waiting;
  run.reports = cluster.PerReplica(run.now);
  run.scaling = cluster.ScalingTo(run.now);
  run.lost = cluster.lost();
  run.steps.resize(run.reports.size());
  for (StepRecord& step : collector.steps) {
    run.steps[static_cast<std::size_t>(step.replica)].push_back(std::move(step));
  }
  run.step_count = recorder.steps();
  run.completed = cluster.completed();
  run.timed_out = cluster.timed_out();
  run.queued = cluster.queued();
  return run;
}

bool AnswersBringRequests(const RandomCase& random_case) {
  return !random_case.requests.think.empty() || !random_case.requests.pause.empty();
}

}  // namespace servecast::testing
