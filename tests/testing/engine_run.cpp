// The tiny model and the roomy GPU below are never asked for anything that reaches a result.
#include "testing/engine_run.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "cost/model_cost.h"
#include "metrics/recorder.h"
#include "servecast/workload_spec.h"
#include "serving/replica/replica.h"
#include "serving/replica/scheduler_setup.h"

namespace servecast::testing {

namespace {

double KvBlockBytes(const EngineCase& engine_case) {
  const Result<ModelCost> cost = ComputeModelCost(MakeScenario(engine_case));
  if (!cost.ok()) return 1;
  return cost.value().kv_bytes_per_token * static_cast<double>(engine_case.engine.block_size);
}

}  // namespace

EngineCase EngineCaseOf(const RandomCase& random_case) {
  return {random_case.requests,          random_case.engine,
          random_case.scheduler,         random_case.model_max_len,
          random_case.horizon,           random_case.stages,
          random_case.windows,           {},
          random_case.most_image_tokens, random_case.slowdowns};
}

EngineCase EngineCaseOf(const GoldenCase& golden) {
  EngineCase made = {golden.requests, golden.engine, golden.scheduler, golden.MaxModelLen(),
                     std::nullopt};
  made.model = golden.model;
  made.most_image_tokens = golden.most_image_tokens;
  return made;
}

Scenario MakeScenario(const EngineCase& engine_case) {
  Scenario scenario;
  scenario.name = "test";
  ModelSpec& model = scenario.model;
  model.name = "tiny";
  // Of a pipeline one a stage.
  const auto stages = static_cast<std::int64_t>(engine_case.stages.size());
  if (stages > 1) scenario.cluster.pools[0].pipeline_parallel = stages;
  model.num_hidden_layers = std::max<std::int64_t>(2, stages);
  if (const RandomWindows& windows = engine_case.windows; windows.layers > 0) {
    const std::int64_t each = std::max<std::int64_t>(1, stages);
    model.num_hidden_layers = each * (windows.layers + windows.others);
    model.num_sliding_layers = each * windows.layers;
    model.sliding_window = windows.window;
  }
  model.hidden_size = 128;
  model.num_attention_heads = 2;
  model.num_key_value_heads = 2;
  model.head_dim = 64;
  model.intermediate_size = 256;
  model.vocab_size = 1000;
  model.max_position_embeddings = engine_case.model_max_len;
  if (engine_case.model) model = *engine_case.model;
  if (engine_case.most_image_tokens > 0) {
    model.vision.num_hidden_layers = model.vision.num_attention_heads = 1;
    model.vision.hidden_size = model.vision.intermediate_size = 8;
    model.vision.max_image_tokens = engine_case.most_image_tokens;
  }
  HardwareSpec& hardware = scenario.hardware;
  hardware.name = "roomy";
  hardware.memory_gib = 1000;
  hardware.memory_bandwidth_gb_s = 1000;
  hardware.peak_bf16_tflops = 100;
  hardware.interconnect_gb_s = 100;
  hardware.compute_efficiency = 0.5;
  hardware.bandwidth_efficiency = 0.5;
  scenario.engine = engine_case.engine;
  scenario.cluster.slowdowns = engine_case.slowdowns;
  scenario.scheduler = engine_case.scheduler;
  PoolSpec& pool = scenario.cluster.pool();
  pool.replicas = pool.attention_data_parallel = engine_case.ranks;
  scenario.workload->name = "rows";
  scenario.workload->arrivals.process = ArrivalProcess::kTrace;
  scenario.workload->prompt_tokens.distribution = LengthDistribution::kTrace;
  scenario.workload->output_tokens.distribution = LengthDistribution::kTrace;
  scenario.workload->requests = engine_case.requests.size();
  scenario.workload->classes.resize(kTestClasses);
  for (std::size_t c = 0; c < kTestClasses; ++c) {
    scenario.workload->classes[c].name = std::string(1, static_cast<char>('a' + c));
  }
  if (engine_case.horizon) {
    scenario.measure.horizon_s = static_cast<double>(*engine_case.horizon) * 1e-9;
  }
  return scenario;
}

Result<Simulation> MakeSimulation(const EngineCase& engine_case, SimulationHooks hooks) {
  // The rows are there for the scenario to be a whole one; what is simulated is the table.
  Trace trace;
  trace.name = "rows.csv";
  trace.format = "servecast_csv";
  trace.hash = 1;
  const RequestTable& requests = engine_case.requests;
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    TraceRow row;
    row.arrival_ns = std::max<TimeNs>(requests.arrival[i], 0);
    row.prompt_tokens = requests.prompt_tokens[i];
    row.output_tokens = requests.output_tokens[i];
    trace.rows.push_back(row);
  }
  hooks.requests = requests;
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    hooks.requests->of_class.push_back(static_cast<std::uint8_t>(i % kTestClasses));
  }
  return Simulation::Create(MakeScenario(engine_case), std::move(trace), std::move(hooks));
}

Result<EngineRun> RunEngine(const EngineCase& engine_case, std::unique_ptr<LatencyModel> latency,
                            const RunOptions& options) {
  StepCollector collector;
  SimulationHooks hooks;
  hooks.stages = MakeStages(engine_case.stages, *latency);
  hooks.latency = std::move(latency);
  if (options.observe) hooks.observer = &collector;
  Result<Simulation> simulation = MakeSimulation(engine_case, std::move(hooks));
  if (!simulation.ok()) return Issues(simulation.issues());
  while (!simulation.value().Advance(options.slice)) {
  }
  EngineRun run;
  run.report = simulation.value().Snapshot();
  run.steps = std::move(collector.steps);
  return run;
}

RequestResults ResultsOf(const Report& report, const RequestTable& requests) {
  RequestResults results;
  results.Resize(requests.size());
  const auto size = static_cast<std::size_t>(requests.size());
  const auto times = [&](std::string_view name, std::vector<TimeNs>& out) {
    const std::vector<double>& column = report.ColumnOf(name);
    for (std::size_t i = 0; i < size && i < column.size(); ++i) {
      if (std::isnan(column[i])) continue;
      out[i] = requests.arrival[i] + static_cast<TimeNs>(std::nearbyint(column[i] * 1e6));
    }
  };
  const auto counts = [&](std::string_view name, std::vector<std::int32_t>& out) {
    const std::vector<double>& column = report.ColumnOf(name);
    for (std::size_t i = 0; i < size && i < column.size(); ++i) {
      out[i] = static_cast<std::int32_t>(column[i]);
    }
  };
  times("scheduling_delay_ms", results.first_scheduled);
  times("ttft_ms", results.first_token);
  times("e2e_ms", results.completion);
  counts("output_tokens", results.generated);
  counts("preemptions", results.preemptions);
  counts("cached_tokens", results.cached_tokens);
  const std::vector<double>& state = report.ColumnOf("state");
  for (std::size_t i = 0; i < size && i < state.size(); ++i) {
    results.state[i] = static_cast<RequestState>(static_cast<int>(state[i]));
  }
  return results;
}

std::map<TimeNs, std::int64_t> StepDelaysOf(const Recorder& recorder) {
  std::map<TimeNs, std::int64_t> delays;
  if (recorder.in_turn() > 0) delays[0] = recorder.in_turn();
  for (const WeightedSample& sample : recorder.step_delays().Sorted()) {
    delays[sample.value] += sample.weight;
  }
  return delays;
}

ReplicaRun RunReplica(const EngineCase& engine_case, const LatencyModel& latency, TimeNs end) {
  ReplicaRun run;
  run.requests = engine_case.requests;
  const bool windows = engine_case.windows.layers > 0;
  const std::int64_t pool_blocks =
      windows ? engine_case.windows.pool_blocks : *engine_case.engine.num_gpu_blocks_override;
  EngineSpec limits = engine_case.engine;
  const SchedulerEntry& entry = FindScheduler(engine_case.scheduler.policy);
  if (!entry.obeys_chunked_prefill) limits.enable_chunked_prefill = true;
  std::int64_t max_model_len = EffectiveMaxModelLen(limits, engine_case.model_max_len,
                                                    pool_blocks - 1, engine_case.windows.held);
  ModelCost cost;
  cost.pool_blocks = pool_blocks;
  cost.usable_blocks = pool_blocks - 1;
  const std::unique_ptr<SchedulerSetup> setup =
      MakeSchedulerSetup(MakeScenario(engine_case), cost, max_model_len, run.requests);
  if (entry.keeps_room != nullptr) max_model_len -= entry.keeps_room(engine_case.engine);
  run.results.Resize(run.requests.size());
  if (engine_case.ranks > 1) {
    run.results.rank.assign(static_cast<std::size_t>(run.requests.size()), -1);
  }
  Clients clients(run.requests, latency, max_model_len, run.results,
                  engine_case.engine.api_server_count);
  Inbox inbox(clients, run.requests, run.results, false);
  ReplicaScratch scratch(run.requests);

  const std::vector<PipelineStage> stages = MakeStages(engine_case.stages, latency);
  Recorder recorder(0);
  StepCollector collector;
  Replica replica({engine_case.engine,
                   engine_case.scheduler,
                   *setup,
                   pool_blocks,
                   max_model_len,
                   run.requests,
                   &inbox,
                   latency,
                   run.results,
                   &recorder,
                   scratch,
                   engine_case.horizon.value_or(kNever),
                   &collector,
                   KvTiersOf(engine_case.engine.kv_offload, KvBlockBytes(engine_case), 1),
                   engine_case.number,
                   false,
                   stages.empty() ? nullptr : &stages,
                   PoolRole::kMixed,
                   false,
                   1,
                   engine_case.windows.held,
                   nullptr,
                   engine_case.most_image_tokens,
                   kNever,
                   engine_case.ranks,
                   engine_case.slowdowns.On() ? &engine_case.slowdowns : nullptr});
  while (!replica.Advance(INT64_MAX)) {
  }
  replica.WriteProgress(run.results.generated);

  run.steps = std::move(collector.steps);
  run.preemptions = recorder.preemptions();
  run.length_capped = replica.length_capped();
  run.timed_out = replica.timed_out();
  run.prefix_cache = replica.prefix_cache();
  run.counts = replica.counts();
  run.kv_offload = replica.kv_offload();
  for (const WeightedSample& sample : recorder.itl().Sorted()) {
    run.itl[sample.value] += sample.weight;
  }
  run.peak_kv_blocks = recorder.peak_kv_blocks();
  run.peak_kv_unused = recorder.peak_kv_unused();
  run.kv_unused_ns = recorder.kv_unused();
  run.allocation_failures = recorder.blocks_refused();
  run.step_delays = StepDelaysOf(recorder);
  TimeNs width = 0;
  for (const SeriesBin& bin : recorder.BinsUpTo(end, &width)) {
    run.running_ns += bin.running;
    run.waiting_ns += bin.waiting;
    run.kv_block_ns += bin.kv_blocks;
    run.batch_token_ns += bin.batch_tokens;
    run.work.Add(bin.work);
  }
  run.busy_ns = recorder.busy_ns();
  run.now = replica.now();
  run.kv_blocks_used = replica.kv_blocks_used();
  run.running = replica.running();
  run.output_tokens = recorder.output_tokens();
  run.step_count = recorder.steps();
  return run;
}

}  // namespace servecast::testing
