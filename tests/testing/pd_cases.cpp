#include "testing/pd_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"
#include "cost/model_cost.h"
#include "metrics/time_split.h"
#include "serving/cluster/cluster.h"
#include "serving/scaling/hpa.h"
#include "serving/scaling/keda.h"
#include "serving/scaling/whole.h"

namespace servecast::testing {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  std::int64_t UpTo(std::int64_t most) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((state_ >> 33) % static_cast<std::uint64_t>(most + 1));
  }
  bool Percent(std::int64_t percent) { return UpTo(99) < percent; }
  template <class T>
  T Pick(std::initializer_list<T> of) {
    return of.begin()[UpTo(static_cast<std::int64_t>(of.size()) - 1)];
  }

 private:
  std::uint64_t state_;
};

// A scheduler or pipeline stages of its own, in half of the cases.
void AddRules(Dice& dice, PdCase& c) {
  if (!dice.Percent(60)) return;
  PdPool& pool = c.pools.back();
  EngineSpec& engine = pool.engine;
  pool.scheduler =
      dice.Pick({"vllm", "vllm", "vllm_v0", "sarathi", "orca", "lightllm", "faster_transformer"});
  const bool vllm = pool.scheduler == "vllm";
  std::int64_t stages = dice.Pick<std::int64_t>({1, 2, 2, 3, 4});
  if (pool.scheduler == "lightllm") stages = 1;
  if (!vllm || stages > 1) engine.async_scheduling = false;
  if (!vllm) {
    engine.max_num_seqs = std::max(stages, dice.Pick<std::int64_t>({1, 2, 3, 5, 8, 16, 64}));
    engine.max_num_batched_tokens = dice.Pick<std::int64_t>({60, 100, 300, 1000});
    engine.watermark = dice.Pick({0.0, 0.0, 0.01, 0.1, 0.3});
  }
  if (stages == 1) return;
  std::vector<RandomStage> random;
  for (std::int64_t i = 0; i < stages; ++i) {
    RandomStage stage;
    stage.weight = dice.Pick<TimeNs>({1, 1, 1, 2, 5});
    stage.send = i + 1 < stages ? dice.Pick<TimeNs>({0, 1, 100, 5000}) : 0;
    stage.send_per_token = i + 1 < stages ? dice.Pick<TimeNs>({0, 1, 13}) : 0;
    random.push_back(stage);
  }
  c.stages.push_back(
      std::make_unique<std::vector<PipelineStage>>(MakeStages(random, *pool.latency)));
  pool.stages = c.stages.back().get();
}

void AddPools(Dice& dice, Dice& rules, PoolRole role, PdCase& c) {
  const std::int64_t pools = dice.Percent(25) ? 2 : 1;
  for (std::int64_t i = 0; i < pools; ++i) {
    RandomCase own;
    own.latency = c.base.latency;
    own.latency.base *= dice.Pick<TimeNs>({1, 1, 2, 5});
    c.latencies.push_back(MakeLatency(own));
    PdPool pool;
    pool.role = role;
    pool.replicas = dice.Pick<std::int64_t>({1, 1, 2, 3});
    pool.engine = c.base.engine;
    pool.engine.async_scheduling = dice.Percent(40);
    if (dice.Percent(30)) pool.engine.max_num_seqs = std::max<std::int64_t>(1, dice.UpTo(3));
    if (dice.Percent(20)) pool.engine.enable_prefix_caching = !pool.engine.enable_prefix_caching;
    // KV of mixed pools does not travel.
    if (role == PoolRole::kMixed && c.seed % 2 == 1 && rules.Percent(30)) {
      pool.engine.block_size *= 2;
    }
    pool.pool_blocks = c.base.PoolBlocks() + (dice.Percent(30) ? dice.UpTo(6) : 0);
    pool.block_bytes = dice.Pick<std::int64_t>({1, 997, 65536});
    pool.latency = c.latencies.back().get();
    c.pools.push_back(pool);
    if (c.seed % 2 == 0) AddRules(rules, c);
    if (c.pools.back().stages == nullptr) c.pools.back().slowdowns = c.base.slowdowns;
  }
}

// The other gateway draws apart.
std::int64_t DrawsOfDecodes(std::int64_t seed) {
  return static_cast<std::int64_t>(Mix64(static_cast<std::uint64_t>(seed)));
}

class Collector final : public StepObserver {
 public:
  explicit Collector(std::vector<std::vector<StepRecord>>& steps) : steps_(steps) {}
  void OnStep(const StepRecord& step) override {
    const auto replica = static_cast<std::size_t>(step.replica);
    if (replica >= steps_.size()) steps_.resize(replica + 1);
    steps_[replica].push_back(step);
  }

 private:
  std::vector<std::vector<StepRecord>>& steps_;
};

}  // namespace

bool PdCase::Apart() const {
  return std::any_of(pools.begin(), pools.end(),
                     [](const PdPool& pool) { return pool.role != PoolRole::kMixed; });
}

bool PdCase::HasBatchScheduler() const {
  return std::any_of(pools.begin(), pools.end(),
                     [](const PdPool& pool) { return pool.scheduler != "vllm"; });
}

std::int64_t PdCase::MaxLen() const {
  std::int64_t shortest = INT64_MAX;
  for (const PdPool& pool : pools) {
    EngineSpec limits = pool.engine;
    const SchedulerEntry& entry = FindScheduler(pool.scheduler);
    if (!entry.obeys_chunked_prefill) limits.enable_chunked_prefill = !entry.whole_prompts;
    const std::int64_t own = EffectiveMaxModelLen(limits, base.model_max_len, pool.pool_blocks - 1);
    shortest = std::min(shortest, own);
  }
  return shortest;
}

PdInput PdCase::Input() const {
  return {base.requests,
          base.scheduler.order,
          pools,
          MaxLen(),
          router,
          decode_router,
          disaggregation,
          base.horizon,
          base.engine.api_server_count,
          failures};
}

std::optional<PdCase> MakePdCase(std::uint64_t seed) {
  PdCase c;
  c.seed = seed;
  c.base = MakeRandomCase(seed);
  if (!c.base.requests.pause.empty()) return std::nullopt;
  Dice dice(seed), rules(seed + 77'000'000);
  c.base.latency.physics.reset();
  c.base.scheduler = {};
  c.base.scheduler.order = dice.Pick({"fcfs", "fcfs", "sjf"});
  EngineSpec& engine = c.base.engine;
  engine.kv_offload = {};
  engine.gc_pass_us = engine.admission_reserve = 0;
  c.disaggregation.first_token_from_decode = dice.Percent(50);
  c.disaggregation.base_latency_us = dice.Pick({0.0, 0.5, 3.0, 250.0});
  // So that a block takes a small part of a step, or many steps.
  c.disaggregation.bandwidth_gb_s = dice.Pick({0.001, 0.02, 0.75, 33.0, 900.0});
  // Most of the cases with schedulers of their own have plain routers.
  const bool other_rules = seed % 2 == 0, plain = other_rules && seed % 3 != 0;
  RouterChoice first, second;
  if (other_rules) {
    first.name = dice.Pick({"round_robin", "least_outstanding"});
    second.name = dice.Pick({"round_robin", "least_outstanding"});
  }
  if (seed % 8 == 4 || (!other_rules && dice.Percent(25))) {  // pools of whole requests
    c.disaggregation = {};
    c.disaggregation.above_tokens = INT64_MAX;
    AddPools(dice, rules, PoolRole::kMixed, c);
    AddPools(dice, rules, PoolRole::kMixed, c);
  } else {
    AddPools(dice, rules, PoolRole::kPrefill, c);
    if (dice.Percent(40)) {
      c.disaggregation.above_tokens = dice.Pick<std::int64_t>({5, 20, 60});
      if (dice.Percent(50)) AddPools(dice, rules, PoolRole::kMixed, c);
    }
    AddPools(dice, rules, PoolRole::kDecode, c);
    if (dice.Percent(30)) std::reverse(c.pools.begin(), c.pools.end());
  }
  c.router = plain ? first : MakeRouterChoice(seed * 2, c.base.latency.base);
  c.decode_router = plain ? second : MakeRouterChoice(seed * 2 + 1, c.base.latency.base);
  // More often than by chance: queues at both gateways, and both with old news of engines.
  if (seed % 16 == 1) {
    c.router = {"central_queue", {{"max_outstanding", static_cast<double>(dice.UpTo(3))}}};
    c.decode_router = {"central_queue", {{"max_outstanding", static_cast<double>(dice.UpTo(2))}}};
  } else if (seed % 16 == 3) {
    const double step_ms = static_cast<double>(c.base.latency.base) / 1e6;
    c.router = {"weighted", {{"staleness_ms", step_ms * dice.Pick({0.5, 1.5, 7.0})}}};
    c.decode_router = {"weighted", {{"staleness_ms", step_ms * dice.Pick({0.7, 2.3, 9.0})}}};
  }
  // Of engines in a pipeline, or by other schedulers, the reference does not know what they say.
  for (RouterChoice* router : {&c.router, &c.decode_router}) {
    if (FindRouter(router->name).reads_engines && other_rules) *router = {"least_outstanding", {}};
  }
  c.router.seed = static_cast<std::int64_t>(seed % 1000);
  c.decode_router.seed = DrawsOfDecodes(c.router.seed);
  return c;
}

// As a scenario says it.
std::unique_ptr<SchedulerSetup> SetupOf(const PdPool& pool, const PdCase& c) {
  Scenario scenario;
  scenario.engine = pool.engine;
  scenario.scheduler.policy = pool.scheduler;
  scenario.cluster.pools[0].pipeline_parallel =
      pool.stages == nullptr ? 1 : static_cast<std::int64_t>(pool.stages->size());
  ModelCost cost;
  cost.pool_blocks = pool.pool_blocks;
  cost.usable_blocks = pool.pool_blocks - 1;
  cost.kv_tokens = cost.usable_blocks * pool.engine.block_size;
  std::unique_ptr<SchedulerSetup> setup =
      MakeSchedulerSetup(scenario, cost, c.MaxLen(), c.base.requests);
  setup->limits.decodes = pool.role == PoolRole::kDecode;
  return setup;
}

// A planner's pools share the first one's.
static const ScalingSpec* ScalingOf(const PdPool& pool, const PdCase& c) {
  if (!pool.scaling) return nullptr;
  for (const PdPool& other : c.pools) {
    if (other.scaling && other.scaling->make_planner) return &other.scaling->spec;
  }
  return &pool.scaling->spec;
}

PdRun RunPdCase(const PdCase& c, std::int64_t slice, bool observe) {
  PdRun run;
  run.requests = c.base.requests;
  run.results.Resize(run.requests.size());
  run.results.replica.assign(run.requests.arrival.size(), -1);
  std::int64_t replicas = 0;
  for (const PdPool& pool : c.pools) replicas += pool.replicas;
  run.steps.resize(static_cast<std::size_t>(replicas));
  Collector collector(run.steps);
  Clients clients(run.requests, *c.pools[0].latency, c.MaxLen(), run.results,
                  c.base.engine.api_server_count);
  Inbox unused(clients, run.requests, run.results, true);
  ReplicaScratch scratch(run.requests);
  Recorder recorder(0);
  std::vector<std::unique_ptr<SchedulerSetup>> setups;
  std::vector<FleetPool> pools;
  for (const PdPool& pool : c.pools) {
    setups.push_back(SetupOf(pool, c));
    pools.push_back({.each = {.engine = pool.engine,
                              .scheduler = c.base.scheduler,
                              .setup = *setups.back(),
                              .pool_blocks = pool.pool_blocks,
                              .max_model_len = c.MaxLen(),
                              .requests = run.requests,
                              .inbox = &unused,
                              .latency = *pool.latency,
                              .results = run.results,
                              .recorder = &recorder,
                              .scratch = scratch,
                              .horizon = c.base.horizon.value_or(kNever),
                              .observer = observe ? &collector : nullptr,
                              .stages = pool.stages,
                              .role = pool.role,
                              .first_token_from_decode = c.disaggregation.first_token_from_decode,
                              .slowdowns = pool.slowdowns.On() ? &pool.slowdowns : nullptr},
                     .replicas = pool.replicas,
                     .gpus = pool.gpus,
                     .block_bytes = pool.block_bytes,
                     .scaling = ScalingOf(pool, c),
                     .cold_start = pool.scaling ? pool.scaling->cold_start : 0,
                     .grace = pool.grace});
  }
  const RouterEntry &router = FindRouter(c.router.name),
                    &decode_router = FindRouter(c.decode_router.name);
  Cluster cluster(
      {.pools = std::move(pools),
       .router = &router,
       .router_params = ParamValues(router.params, c.router.params),
       .seed = c.router.seed,
       .clients = clients,
       .decode_router = &decode_router,
       .decode_router_params = ParamValues(decode_router.params, c.decode_router.params),
       .disaggregation = c.disaggregation,
       .failures = c.failures ? &*c.failures : nullptr});
  while (!cluster.Advance(slice)) {
  }
  cluster.WriteProgress(run.results.generated);
  cluster.WriteRecords(cluster.now(), recorder);
  run.results.hand_overs.resize(run.requests.arrival.size());  // without roles there are none
  run.completed = cluster.completed();
  run.timed_out = cluster.timed_out();
  run.lost = cluster.lost();
  run.output_tokens = recorder.output_tokens();
  run.preemptions = recorder.preemptions();
  run.now = cluster.now();
  run.scaling = cluster.ScalingTo(run.now);
  return run;
}

// Its rules are the engine's, which recordings hold.
static PdHpa MakeHpa(const ScalingSpec& scaling) {
  HpaSpec spec;
  spec.min = scaling.min_replicas;
  spec.max = scaling.max_replicas;
  spec.metrics = {{HpaMetricKind::kExternal, HpaTarget::kAverageValue,
                   static_cast<std::int64_t>(scaling.params.at("target") * 1000)}};
  HpaBehavior behavior;
  behavior.up = {.window = 0,
                 .policies = {{false, 4, 15 * kNsPerS}, {true, 100, 15 * kNsPerS}},
                 .tolerance = {}};
  behavior.down = {.window = NsOf(scaling.params.at("down_window_s")),
                   .policies = {{true, 100, 15 * kNsPerS}},
                   .tolerance = {}};
  spec.behavior = behavior;
  std::shared_ptr<Keda> keda;
  if (scaling.policy == "keda") {
    KedaSpec above;
    above.min = scaling.min_replicas;
    above.max = scaling.max_replicas;
    above.cooldown = NsOf(scaling.params.at("cooldown_s"));
    keda = std::make_shared<Keda>(above);
    spec = HpaOf(above, spec);
  }
  return [keda, hpa = std::make_shared<Hpa>(spec)](TimeNs now, std::int64_t wanted,
                                                   std::int64_t present,
                                                   std::optional<std::int64_t> total) {
    if (keda) wanted = keda->At({now, total, wanted}).replicas;
    std::vector<HpaReading> readings(1);
    readings[0].failed = !total;
    readings[0].total = total.value_or(0);
    return hpa->Sync({now, wanted, present, {}, readings}).desired;
  };
}

static void AddScaling(PdCase& c, TimeNs length) {
  Dice dice(c.seed + 91'000'000);
  const double seconds = static_cast<double>(std::max<TimeNs>(length, 1000)) / 1e9;
  const auto share = [&](std::int64_t least, std::int64_t most) {
    return seconds * static_cast<double>(least + dice.UpTo(most - least)) / 1000;
  };
  for (RouterChoice* router : {&c.router, &c.decode_router}) {
    router->name = dice.Pick({"round_robin", "random", "least_outstanding"});
    router->params.clear();
  }
  // What other engines say the reference does not know.
  const bool tells = std::all_of(c.pools.begin(), c.pools.end(), [](const PdPool& pool) {
    return pool.scheduler == "vllm" && pool.stages == nullptr;
  });
  for (PdPool& pool : c.pools) {
    if (dice.Percent(20)) continue;
    PdScaling& scaling = pool.scaling.emplace();
    scaling.cold_start = static_cast<TimeNs>(share(0, 200) * 1e9);
    scaling.spec.max_replicas = 5;
    scaling.spec.scrape_period_s = std::max(1e-6, share(20, 150));
    if (tells && dice.Percent(60)) {
      scaling.spec.policy = "hpa";
      scaling.spec.metric =
          dice.Pick({ScalingMetric::kWaiting, ScalingMetric::kRunning, ScalingMetric::kOutstanding,
                     ScalingMetric::kOutstanding, ScalingMetric::kKvUsage});
      scaling.spec.scrape_delay_s = dice.Percent(30) ? share(1, 100) : 0;
      const bool usage = scaling.spec.metric == ScalingMetric::kKvUsage;
      scaling.spec.params = {
          {"target", usage ? dice.Pick({0.1, 0.3, 0.6}) : dice.Pick({1.0, 2.0, 5.0})},
          {"sync_s", std::max(1e-6, share(20, 150))},
          {"down_window_s", dice.Pick({0.0, 1.0, 2.0}) * share(20, 150)}};
      if (!usage && scaling.spec.metric != ScalingMetric::kRunning && dice.Percent(50)) {
        scaling.spec.policy = "keda";  // it polls at each sync
        scaling.spec.min_replicas = dice.UpTo(1);
        scaling.spec.params["polling_s"] = scaling.spec.params["sync_s"];
        scaling.spec.params["cooldown_s"] = share(1, 200);
      }
      scaling.make_hpa = [spec = scaling.spec] { return MakeHpa(spec); };
      continue;
    }
    scaling.spec.policy = "schedule";
    scaling.spec.min_replicas = dice.Percent(30) ? 0 : 1;
    double at = 0;
    for (std::int64_t row = 0; row < 6; ++row) {
      at += share(20, 300);
      scaling.spec.schedule.push_back(
          {std::max(at, 1e-6 * static_cast<double>(row + 1)),
           static_cast<double>(scaling.spec.min_replicas + dice.UpTo(4))});
    }
    // Else other pools' scalers go on for an hour, as somebody waits.
    scaling.spec.schedule.back()[1] = std::max(1.0, scaling.spec.schedule.back()[1]);
  }
}

std::optional<PdCase> MakeScaledPdCase(std::uint64_t seed) {
  std::optional<PdCase> c = MakePdCase(seed);
  const TimeNs length = c ? RunPdCase(*c).now : 0;
  if (length == 0) return std::nullopt;
  // Scalers scrape to the horizon.
  if (c->base.horizon) c->base.horizon = std::min(*c->base.horizon, 5 * length);
  AddScaling(*c, length);
  return c;
}

// About three failures of a replica in a run of that length.
static FailureSpec DrawnFailures(Dice& dice, std::int64_t replicas, TimeNs length) {
  const auto share = [&](std::int64_t least, std::int64_t most) {
    return static_cast<double>(length) / 1e9 *
           static_cast<double>(least + dice.UpTo(most - least)) / 1000;
  };
  FailureSpec spec;
  if (dice.Percent(90)) spec.restart_s = share(0, 300);
  if (dice.Percent(40)) spec.detect_s = share(0, 150);
  if (dice.Percent(20)) spec.domain_replicas = 1 + dice.UpTo(3);
  const bool by_chance = dice.Percent(40);
  if (by_chance) spec.mtbf_s = share(100, 1000);
  for (std::int64_t row = 0; row < 2 * replicas && (!by_chance || dice.Percent(50)); ++row) {
    spec.schedule.push_back({share(0, 1000), static_cast<double>(dice.UpTo(replicas - 1))});
  }
  return spec;
}

static void AddRetries(Dice& dice, RandomCase& c) {
  RequestTable& requests = c.requests;
  const auto size = static_cast<std::size_t>(requests.size());
  if (requests.timeout.empty() && dice.Percent(50)) {
    const std::int64_t patience = dice.Pick<std::int64_t>({3, 30, 300});
    for (std::size_t i = 0; i < size; ++i) {
      requests.timeout.push_back(dice.Percent(80) ? (1 + dice.UpTo(patience)) * c.latency.base
                                                  : kNever);
    }
  }
  const auto each = static_cast<std::size_t>(dice.Pick<std::int64_t>({1, 1, 2, 3}));
  const std::int64_t longest = dice.Pick<std::int64_t>({1, 10, 100});
  std::vector<TimeNs> backoff;
  for (std::size_t i = 0; i < size * each; ++i) {
    backoff.push_back(dice.Percent(20) ? 1 : (1 + dice.UpTo(longest)) * c.latency.base);
  }
  SetRetries(requests, backoff);
  if (dice.Percent(30)) requests.retry_budget = dice.Pick({0.0, 0.1, 0.3, 1.0});
}

std::optional<PdCase> MakeFailingPdCase(std::uint64_t seed) {
  Dice dice(seed + 55'000'000);
  std::optional<PdCase> c = MakePdCase(2 * seed + 1);  // of vLLM's scheduler alone
  if (!c) return std::nullopt;
  c->seed = seed;
  if (dice.Percent(50)) AddRetries(dice, c->base);
  for (RouterChoice* router : {&c->router, &c->decode_router}) {
    router->name = dice.Pick({"round_robin", "random", "least_outstanding"});
    router->params.clear();
  }
  const TimeNs length = RunPdCase(*c).now;
  if (length == 0) return std::nullopt;
  // The reference goes through all slow periods for each step.
  const double gap_s = c->base.slowdowns.mean_gap_s.value_or(kClockEnd);
  if (static_cast<double>(length) > 1e4 * gap_s * 1e9) return std::nullopt;
  const bool scaled = dice.Percent(50);
  if (scaled) AddScaling(*c, length);
  // Scalers that see a request held which nobody will serve go on for an hour.
  const bool endless = std::any_of(c->pools.begin(), c->pools.end(), [](const PdPool& pool) {
    return pool.scaling && pool.scaling->spec.policy != "schedule";
  });
  if (c->base.horizon || endless) {
    c->base.horizon = std::min(c->base.horizon.value_or(kNever), 5 * length);
  }
  for (PdPool& pool : c->pools) {
    if (pool.scaling && dice.Percent(60)) {
      pool.grace = dice.Percent(30) ? 0 : length * dice.UpTo(100) / 1000;
    }
  }
  std::int64_t replicas = 0;
  for (const PdPool& pool : c->pools) replicas += pool.replicas;
  if (!scaled || dice.Percent(70)) c->failures = DrawnFailures(dice, replicas, length);
  return c;
}

static std::string Text(const StepRecord& s) {
  std::string text = fmt::format(
      "scheduled {} start {} end {} free {}/{} used {} running {}/{} waiting {}/{} interference "
      "{}:",
      s.scheduled, s.start, s.end, s.free_after_schedule, s.free_after_step, s.used_after_schedule,
      s.running_after_schedule, s.running_after_step, s.waiting_after_schedule,
      s.waiting_after_step, s.interference);
  for (const StepMember& m : s.members) {
    text += fmt::format(" {}:{}+{}{}{}", m.id, m.computed_before, m.tokens,
                        static_cast<char>(m.kind), m.sampled ? "!" : "");
  }
  return text;
}

static std::string SchedulerOf(const PdCase& c, std::size_t replica) {
  for (const PdPool& pool : c.pools) {
    if (replica < static_cast<std::size_t>(pool.replicas)) return pool.scheduler;
    replica -= static_cast<std::size_t>(pool.replicas);
  }
  return "";
}

static std::optional<std::string> StepMismatch(const PdCase& c, const PdOutput& reference,
                                               const PdRun& run) {
  const std::size_t replicas = std::max(run.steps.size(), reference.steps.size());
  const auto of = [](const std::vector<std::vector<StepRecord>>& steps, std::size_t i) {
    return i < steps.size() ? steps[i] : std::vector<StepRecord>();
  };
  for (std::size_t i = 0; i < replicas; ++i) {
    const std::vector<StepRecord> made = of(run.steps, i), wanted = of(reference.steps, i);
    for (std::size_t k = 0; k < std::min(made.size(), wanted.size()); ++k) {
      const StepRecord &found = made[k], &expected = wanted[k];
      if (found == expected) continue;
      return fmt::format("case {}, replica {} ({}), step {}: {}\nreference {}", c.seed, i,
                         SchedulerOf(c, i), k, Text(found), Text(expected));
    }
    if (made.size() != wanted.size()) {
      return fmt::format("case {}, replica {}: {} steps, reference {}", c.seed, i, made.size(),
                         wanted.size());
    }
  }
  return std::nullopt;
}

static std::optional<std::string> ResultMismatch(const PdCase& c, const PdOutput& reference,
                                                 const PdRun& run) {
  if (run.output_tokens != reference.output_tokens) {
    return fmt::format("case {}: {} output tokens, reference {}", c.seed, run.output_tokens,
                       reference.output_tokens);
  }
  const RequestResults &a = run.results, &b = reference.results;
  for (std::size_t r = 0; r < a.state.size(); ++r) {
    const bool over = b.state[r] == RequestState::kCompleted ||
                      b.state[r] == RequestState::kTimedOut || b.state[r] == RequestState::kLost;
    const auto lost_at = [r](const RequestResults& of) {
      return of.state[r] == RequestState::kLost ? of.lost_at[r] : -1;
    };
    const HandOver h = c.Apart() ? a.hand_overs[r] : HandOver{}, g = b.hand_overs[r];
    const std::pair<const char*, std::pair<std::int64_t, std::int64_t>> figures[] = {
        {"arrival", {run.requests.arrival[r], reference.requests.arrival[r]}},
        {"replica", {a.replica[r], b.replica[r]}},
        {"first scheduled", {a.first_scheduled[r], b.first_scheduled[r]}},
        {"first token", {a.first_token[r], b.first_token[r]}},
        {"completion", {a.completion[r], b.completion[r]}},
        {"generated", {a.generated[r], b.generated[r]}},
        {"preemptions", {a.preemptions[r], b.preemptions[r]}},
        {"cached tokens", {a.cached_tokens[r], b.cached_tokens[r]}},
        {"prefilled", {h.prefilled, g.prefilled}},
        {"reserved", {h.reserved, g.reserved}},
        {"arrived", {h.arrived, g.arrived}},
        {"resumed", {h.resumed, g.resumed}},
        {"bytes", {h.bytes, g.bytes}},
        {"prefill replica", {h.prefill_replica, g.prefill_replica}},
        {"lost at", {lost_at(a), lost_at(b)}},
        {"state",
         {over ? static_cast<int>(a.state[r]) : 0, over ? static_cast<int>(b.state[r]) : 0}},
    };
    for (const auto& [name, values] : figures) {
      if (values.first == values.second) continue;
      return fmt::format("case {}, request {}: {} {}, reference {}", c.seed, r, name, values.first,
                         values.second);
    }
    if (b.state[r] != RequestState::kCompleted) continue;
    const RequestTimes found = TimesOf(run.requests, a, c.pools[0].latency->OutputTokenDelay(), r);
    const RequestTimes& expected = reference.times[r];
    for (std::size_t p = 0; p < kTimeParts.size(); ++p) {
      for (const auto of : {&RequestTimes::ttft, &RequestTimes::e2e}) {
        if (found.*of.*kTimeParts[p] == expected.*of.*kTimeParts[p]) continue;
        return fmt::format("case {}, request {}: {} of {} {}, reference {}", c.seed, r,
                           TimeSplitReport::kNames[p], of == &RequestTimes::ttft ? "TTFT" : "E2E",
                           found.*of.*kTimeParts[p], expected.*of.*kTimeParts[p]);
      }
    }
    if (found.e2e.Sum() != a.completion[r] - run.requests.arrival[r] ||
        found.ttft.Sum() != a.first_token[r] - run.requests.arrival[r]) {
      return fmt::format("case {}, request {}: its parts do not add up", c.seed, r);
    }
  }
  return std::nullopt;
}

// Of each pool's replicas over time, and of their sums.
static std::optional<std::string> LivesMismatch(const PdCase& c, const PdOutput& reference,
                                                const PdRun& run) {
  const ScalingReport& all = run.scaling;
  if ((!all.on && !all.failures.on) || run.now == 0) return std::nullopt;  // or nobody ran
  PdMembers members = *reference.members;
  members.RunOn(run.now);
  const auto text = [](const ScalingReport::Step& step) {
    return fmt::format("{} starting, {} up, {} draining", step.starting, step.up, step.draining);
  };
  std::int64_t starts = 0, stops = 0;
  double replica_s = 0;
  for (const ScalingReport::Step& step : all.steps) {
    const auto at = static_cast<TimeNs>(step.at_s * 1e9 + 0.5);
    if (at >= c.base.horizon.value_or(kNever)) break;  // with the end of a step
    ScalingReport::Step sum;
    for (std::size_t p = 0; p < c.pools.size(); ++p) {
      const ScalingReport::Step of = members.At(p, at);
      sum.starting += of.starting, sum.up += of.up, sum.draining += of.draining;
    }
    if (text(step) == text(sum)) continue;
    return fmt::format("case {} at {}: {}, reference {}", c.seed, at, text(step), text(sum));
  }
  std::int64_t failures = 0;
  for (const PdLife& life : members.lives()) {
    failures += std::count_if(life.outages.begin(), life.outages.end(),
                              [&](const PdOutage& o) { return o.down <= run.now; });
  }
  if (failures != all.failures.failures) {
    return fmt::format("case {}: {} failures, reference {}", c.seed, all.failures.failures,
                       failures);
  }
  for (std::size_t p = 0; all.on && p < c.pools.size(); ++p) {
    const ScalingReport& own = all.pools.empty() ? all : all.pools[p];  // one pool is all
    for (const ScalingReport::Step& step : own.steps) {
      const auto at = static_cast<TimeNs>(step.at_s * 1e9 + 0.5);
      if (at >= c.base.horizon.value_or(kNever)) break;
      const std::string expected = text(members.At(p, at));
      if (text(step) == expected) continue;
      return fmt::format("case {}, pool {} at {}: {}, reference {}", c.seed, p, at, text(step),
                         expected);
    }
    starts += own.starts;
    stops += own.stops;
    replica_s += own.replica_s;
  }
  if (!all.on) return std::nullopt;
  if (starts != all.starts || stops != all.stops ||
      std::abs(replica_s - all.replica_s) > 1e-9 * replica_s) {
    return fmt::format("case {}: pools start {}, stop {}, {} s; all {}, {}, {} s", c.seed, starts,
                       stops, replica_s, all.starts, all.stops, all.replica_s);
  }
  return std::nullopt;
}

static std::string PoolsOf(const PdCase& c) {
  static constexpr const char* kRoles[] = {"mixed", "prefill", "decode"};
  std::string text = "\n" + Describe(c.base);
  for (const PdPool& pool : c.pools) {
    text += fmt::format("\n{} {} x {}, {} stages, {} seats, {} tokens, {} blocks, async {}",
                        pool.replicas, kRoles[static_cast<std::size_t>(pool.role)], pool.scheduler,
                        pool.stages == nullptr ? 1 : pool.stages->size(), pool.engine.max_num_seqs,
                        pool.engine.max_num_batched_tokens, pool.pool_blocks,
                        pool.engine.async_scheduling);
    if (!pool.scaling) continue;
    const ScalingSpec& spec = pool.scaling->spec;
    text += fmt::format(", {} metric {} cold {} scrape {} delay {}", spec.policy,
                        static_cast<int>(spec.metric), pool.scaling->cold_start,
                        spec.scrape_period_s, spec.scrape_delay_s);
    for (const auto& [name, value] : spec.params) text += fmt::format(" {} {}", name, value);
    for (const auto& row : spec.schedule) text += fmt::format(" [{}, {}]", row[0], row[1]);
    if (pool.grace < kNever) text += fmt::format(" grace {}", pool.grace);
  }
  if (!c.failures) return text;
  text += fmt::format("\nfailures: mtbf {}, restart {}, detect {}, domain {}, seed {}",
                      c.failures->mtbf_s.value_or(0), c.failures->restart_s, c.failures->detect_s,
                      c.failures->domain_replicas, c.router.seed);
  for (const auto& row : c.failures->schedule) text += fmt::format(" [{}, {}]", row[0], row[1]);
  return text;
}

std::optional<std::string> FirstPdMismatch(const PdCase& c, const PdOutput& reference,
                                           std::int64_t slice) {
  const PdRun run = RunPdCase(c, slice);
  std::optional<std::string> mismatch = StepMismatch(c, reference, run);
  if (!mismatch) mismatch = ResultMismatch(c, reference, run);
  if (!mismatch) mismatch = LivesMismatch(c, reference, run);
  if (!mismatch && c.HasBatchScheduler()) {
    mismatch = ResultMismatch(c, reference, RunPdCase(c, slice, false));
    if (mismatch) *mismatch += ", not observed";
  }
  if (mismatch) *mismatch += PoolsOf(c);
  return mismatch;
}

}  // namespace servecast::testing
