#include "testing/scheduled_differential.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cost/model_cost.h"
#include "fmt/format.h"
#include "serving/cluster/cluster.h"
#include "testing/engine_run.h"

namespace servecast {
extern const SchedulerEntry kTestSchedulerLongestPrefix;  // longest_prefix_scheduler.cpp
}

namespace servecast::testing {
namespace {

constexpr const char* kLongestPrefix = "longest_prefix";

// A hash of the seed: of dice of its own, so that RandomCase stays what it is.
class Picks {
 public:
  explicit Picks(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x5bd1e995) {}
  std::int64_t Below(std::int64_t n) {
    state_ ^= state_ >> 29;
    state_ *= 0xbf58476d1ce4e5b9u;
    state_ ^= state_ >> 32;
    return static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(n));
  }
  template <class T>
  T Of(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(Below(static_cast<std::int64_t>(choices.size())))];
  }

 private:
  std::uint64_t state_;
};

Scenario ScenarioOf(const ScheduledCase& c) {
  Scenario scenario = MakeScenario(EngineCaseOf(c.base));
  // One that no scenario knows stands in for one that has the same limits.
  scenario.scheduler.policy = c.policy == kLongestPrefix ? "vllm_v0" : c.policy;
  return scenario;
}

bool CountsTokens(const ScheduledCase& c) { return c.policy == "lightllm"; }

std::int64_t MaxModelLen(const ScheduledCase& c) {
  EngineSpec engine = c.base.engine;
  engine.enable_chunked_prefill =
      c.policy != "vllm_v0" && c.policy != "lightllm" && c.policy != kLongestPrefix;
  return EffectiveMaxModelLen(engine, c.base.model_max_len, c.base.PoolBlocks() - 1);
}

template <class T>
std::string Text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += fmt::format(" {}", value);
  return text;
}

std::string Text(const StepRecord& s) {
  std::string text = fmt::format(
      "#{} formed {} {}..{} interference {} prefill {} free {}/{} running {}/{} waiting {}/{}:",
      s.index, s.scheduled, s.start, s.end, s.interference, s.prefill_tokens, s.free_after_schedule,
      s.free_after_step, s.running_after_schedule, s.running_after_step, s.waiting_after_schedule,
      s.waiting_after_step);
  for (const StepMember& m : s.members) {
    text += fmt::format(" {}:{}+{}{}{}", m.id, m.computed_before, m.tokens,
                        static_cast<char>(m.kind), m.sampled ? "!" : "");
  }
  return text + " preempted" + Text(s.preempted) + " finished" + Text(s.finished);
}

std::optional<std::string> StepDifference(const std::vector<StepRecord>& a,
                                          const std::vector<StepRecord>& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!(a[i] == b[i])) return Text(a[i]) + "\nreference " + Text(b[i]);
  }
  if (a.size() == b.size()) return std::nullopt;
  return fmt::format("{} steps, reference {}", a.size(), b.size());
}

std::optional<std::string> ResultDifference(const ScheduledReferenceOutput& a,
                                            const ScheduledReferenceOutput& b) {
  for (std::size_t r = 0; r < a.requests.arrival.size(); ++r) {
    const auto setbacks = [r](const RequestResults& results) {
      return results.setbacks.empty() ? Setbacks{} : results.setbacks[r];
    };
    const Setbacks x = setbacks(a.results), y = setbacks(b.results);
    const auto state = [](RequestState s) { return static_cast<std::int64_t>(s); };
    const std::pair<const char*, std::pair<std::int64_t, std::int64_t>> figures[] = {
        {"arrival", {a.requests.arrival[r], b.requests.arrival[r]}},
        {"first step", {a.results.first_scheduled[r], b.results.first_scheduled[r]}},
        {"first token", {a.results.first_token[r], b.results.first_token[r]}},
        {"completion", {a.results.completion[r], b.results.completion[r]}},
        {"generated", {a.results.generated[r], b.results.generated[r]}},
        {"preemptions", {a.results.preemptions[r], b.results.preemptions[r]}},
        {"state", {state(a.results.state[r]), state(b.results.state[r])}},
        {"cached tokens", {a.results.cached_tokens[r], b.results.cached_tokens[r]}},
        {"interference", {a.results.interference[r], b.results.interference[r]}},
        {"preempted", {x.preempted, y.preempted}},
        {"of it before the first token", {x.preempted_to_first, y.preempted_to_first}},
        {"recompute", {x.recompute, y.recompute}},
    };
    for (const auto& [name, values] : figures) {
      if (values.first == values.second) continue;
      return fmt::format("request {}: {} {}, reference {}", r, name, values.first, values.second);
    }
  }
  return std::nullopt;
}

std::optional<std::string> SumDifference(const ScheduledReferenceOutput& a,
                                         const ScheduledReferenceOutput& b) {
  const PrefixCacheReport &x = a.prefix_cache, &y = b.prefix_cache;
  const std::pair<const char*, std::pair<__int128, __int128>> figures[] = {
      {"running", {a.running_ns, b.running_ns}},
      {"waiting", {a.waiting_ns, b.waiting_ns}},
      {"blocks", {a.block_ns, b.block_ns}},
      {"batch tokens", {a.token_ns, b.token_ns}},
      {"unused room", {a.unused_ns, b.unused_ns}},
      {"most unused room", {a.peak_unused, b.peak_unused}},
      {"allocation failures", {a.allocation_failures, b.allocation_failures}},
      {"output tokens", {a.output_tokens, b.output_tokens}},
      {"preemptions", {a.preemptions, b.preemptions}},
      {"length capped", {a.length_capped, b.length_capped}},
      {"timed out", {a.timed_out, b.timed_out}},
      {"prefill tokens", {a.prefill_tokens, b.prefill_tokens}},
      {"padding tokens", {a.padding_tokens, b.padding_tokens}},
      {"blocked by nothing", {a.blocked_ns[0], b.blocked_ns[0]}},
      {"blocked by KV blocks", {a.blocked_ns[1], b.blocked_ns[1]}},
      {"blocked by seats", {a.blocked_ns[2], b.blocked_ns[2]}},
      {"blocked by tokens", {a.blocked_ns[3], b.blocked_ns[3]}},
      {"query tokens", {x.query_tokens, y.query_tokens}},
      {"query blocks", {x.query_blocks, y.query_blocks}},
      {"hit tokens", {x.hit_tokens, y.hit_tokens}},
      {"hit blocks", {x.hit_blocks, y.hit_blocks}},
      {"hit tokens of resumed requests", {x.resumed_hit_tokens, y.resumed_hit_tokens}},
      {"evicted blocks", {x.evicted_blocks, y.evicted_blocks}},
      {"end", {a.now, b.now}},
  };
  for (const auto& [name, values] : figures) {
    if (values.first == values.second) continue;
    return fmt::format("{} {}, reference {}", name, static_cast<double>(values.first),
                       static_cast<double>(values.second));
  }
  if (a.step_delays != b.step_delays) return "delays of steps differ";
  if (a.itl != b.itl) return "gaps between tokens differ";
  return std::nullopt;
}

}  // namespace

std::optional<ScheduledCase> MakeScheduledCase(std::uint64_t seed) {
  ScheduledCase c;
  c.base = MakeRandomCase(seed);
  if (c.base.latency.physics) return std::nullopt;
  Picks picks(seed);
  const char* const policies[] = {
      "vllm_v0", "sarathi", "orca", "lightllm", "faster_transformer", kLongestPrefix};
  c.policy = policies[seed % 6];
  EngineSpec& e = c.base.engine;
  const std::int64_t stages =
      c.policy == "lightllm" ? 1 : picks.Of<std::int64_t>({1, 1, 1, 2, 3, 4});
  c.base.stages.clear();
  for (std::int64_t i = 0; stages > 1 && i < stages; ++i) {
    RandomStage stage;
    stage.weight = picks.Of<std::int64_t>({1, 1, 1, 2, 5});
    stage.send = i + 1 < stages ? picks.Of<std::int64_t>({0, 1, 100, 5000}) : 0;
    stage.send_per_token = i + 1 < stages ? picks.Of<std::int64_t>({0, 1, 13}) : 0;
    c.base.stages.push_back(stage);
  }
  e.kv_offload = {};
  e.max_num_seqs = std::max(stages, picks.Of<std::int64_t>({1, 2, 3, 5, 8, 16, 64}));
  e.max_num_batched_tokens = picks.Of<std::int64_t>({1, 7, 16, 40, 100, 300, 1000});
  e.watermark = picks.Of<double>({0, 0, 0.01, 0.1, 0.3});
  // Often enough without a key, and with one by which what comes may be admitted before the head.
  c.base.scheduler.order =
      picks.Of<std::string>({"fcfs", "sjf", c.base.scheduler.order, c.base.scheduler.order});
  const bool preempts =
      c.policy == "vllm_v0" || c.policy == "sarathi" || c.policy == kLongestPrefix;
  if (!preempts) c.base.scheduler.preemption = "auto";
  return c;
}

ScheduledReferenceOutput RunScheduledEngine(const ScheduledCase& c,
                                            const ScheduledRunOptions& options) {
  ScheduledReferenceOutput run;
  run.requests = options.requests != nullptr ? *options.requests : c.base.requests;
  run.results.Resize(run.requests.size());
  const std::unique_ptr<LatencyModel> latency = MakeLatency(c.base);
  const std::int64_t max_model_len = MaxModelLen(c);
  Scenario scenario = ScenarioOf(c);
  const ModelCost cost = ComputeModelCost(scenario).value();
  const std::unique_ptr<SchedulerSetup> setup =
      MakeSchedulerSetup(scenario, cost, max_model_len, c.base.requests);
  if (c.policy == kLongestPrefix) setup->entry = &kTestSchedulerLongestPrefix;
  const std::vector<PipelineStage> stages = MakeStages(c.base.stages, *latency);
  if (options.as_vidur) {
    scenario.scheduler = {};
    setup->limits.as_vidur = true;
    setup->limits.caches_prefixes = false;
    setup->limits.max_reserved = setup->limits.max_num_seqs;
  }
  Clients clients(run.requests, *latency, max_model_len, run.results,
                  c.base.engine.api_server_count);
  Inbox inbox(clients, run.requests, run.results, options.replicas > 0);
  ReplicaScratch scratch(run.requests);
  Recorder recorder(0);
  StepCollector collector;
  const ReplicaInput input{.engine = scenario.engine,
                           .scheduler = scenario.scheduler,
                           .setup = *setup,
                           .pool_blocks = cost.pool_blocks,
                           .max_model_len = max_model_len,
                           .requests = run.requests,
                           .inbox = &inbox,
                           .latency = *latency,
                           .results = run.results,
                           .recorder = &recorder,
                           .scratch = scratch,
                           .horizon = c.base.horizon.value_or(kNever),
                           .observer = options.observe ? &collector : nullptr,
                           .stages = stages.empty() ? nullptr : &stages};
  std::unique_ptr<Engine> replica;
  if (options.replicas > 0) {
    run.results.replica.assign(run.requests.arrival.size(), -1);
    const RouterEntry& router = FindRouter(options.router);
    replica = std::make_unique<Cluster>(
        Cluster::Input{.pools = {{.each = input, .replicas = options.replicas}},
                       .router = &router,
                       .router_params = ParamValues(router.params, {}),
                       .seed = 7,
                       .clients = clients});
  } else {
    replica = MakeReplica(input);
  }
  while (!replica->Advance(options.slice)) {
  }
  run.now = replica->now();
  replica->WriteProgress(run.results.generated);
  replica->WriteRecords(run.now, recorder);
  run.steps = std::move(collector.steps);
  for (const WeightedSample& sample : recorder.itl().Sorted()) {
    run.itl[sample.value] += sample.weight;
  }
  for (int by = 0; by < kBlockedBy; ++by) {
    run.blocked_ns[static_cast<std::size_t>(by)] = recorder.blocked_ns(static_cast<BlockedBy>(by));
  }
  TimeNs width = 0;
  for (const SeriesBin& bin : recorder.BinsUpTo(run.now, &width)) {
    run.running_ns += bin.running;
    run.waiting_ns += bin.waiting;
    run.block_ns += bin.kv_blocks;
    run.token_ns += bin.batch_tokens;
  }
  run.unused_ns = recorder.kv_unused();
  run.peak_unused = recorder.peak_kv_unused();
  run.allocation_failures = recorder.blocks_refused();
  run.step_delays = StepDelaysOf(recorder);
  run.prefix_cache = replica->prefix_cache();
  run.output_tokens = recorder.output_tokens();
  run.preemptions = recorder.preemptions();
  run.length_capped = replica->length_capped();
  run.timed_out = replica->timed_out();
  run.prefill_tokens = replica->counts().prefill_tokens;
  run.padding_tokens = replica->counts().padding_tokens;
  return run;
}

ScheduledReferenceOutput RunScheduledReference(const ScheduledCase& c) {
  const std::unique_ptr<LatencyModel> latency = MakeLatency(c.base);
  const EngineSpec& e = c.base.engine;
  const std::int64_t unit = CountsTokens(c) ? e.block_size : 1;
  ScheduledReferenceInput in;
  in.requests = c.base.requests;
  in.latency = latency.get();
  in.scheduler = c.base.scheduler;
  ScheduledSettings& settings = in.settings;
  settings.policy = c.policy;
  if (!c.base.stages.empty()) in.stages.clear();
  for (const RandomStage& stage : c.base.stages) {
    in.stages.push_back({stage.weight, stage.send, stage.send_per_token});
  }
  settings.max_num_seqs = e.max_num_seqs;
  settings.max_num_batched_tokens = e.max_num_batched_tokens;
  settings.max_model_len = MaxModelLen(c);
  settings.block_size = e.block_size / unit;
  settings.blocks = (c.base.PoolBlocks() - 1) * unit;
  settings.prefix_caching = e.enable_prefix_caching;
  settings.contentless_first = e.free_contentless_first;
  settings.watermark_blocks =
      static_cast<std::int64_t>(e.watermark * static_cast<double>(c.base.PoolBlocks() * unit));
  in.horizon = c.base.horizon.value_or(kNever);
  in.front_end_servers = e.api_server_count;
  return RunScheduledReference(in);
}

std::optional<std::string> FirstScheduledMismatch(const ScheduledCase& c,
                                                  const ScheduledReferenceOutput& reference) {
  ScheduledReferenceOutput wanted = reference;
  if (CountsTokens(c)) {  // reports count blocks
    const std::int64_t unit = c.base.engine.block_size;
    wanted.block_ns = 0;
    TimeNs before = 0;
    for (StepRecord& step : wanted.steps) {
      step.used_after_schedule = CeilDiv(step.used_after_schedule, unit);
      wanted.block_ns += static_cast<__int128>(step.used_after_schedule) *
                         (step.end - std::max(step.start, before));
      before = step.end;
    }
  }
  const ScheduledRunOptions ways[] = {
      {true, INT64_MAX}, {false, INT64_MAX}, {false, 1}, {false, 7}};
  for (const ScheduledRunOptions& way : ways) {
    ScheduledReferenceOutput run = RunScheduledEngine(c, way);
    // Who was dropped or never came is the simulation's business.
    for (std::size_t r = 0; r < run.results.state.size(); ++r) {
      RequestState& state = run.results.state[r];
      if (wanted.results.state[r] == RequestState::kPending) state = RequestState::kPending;
    }
    const std::string what =
        fmt::format("{} in {} stages, {}slices of {}: ", c.policy, c.base.stages.size(),
                    way.observe ? "observed, " : "", way.slice);
    if (way.observe) {
      if (const auto difference = StepDifference(run.steps, wanted.steps)) {
        return what + *difference;
      }
    }
    if (const auto difference = ResultDifference(run, wanted)) return what + *difference;
    if (const auto difference = SumDifference(run, wanted)) return what + *difference;
  }
  return std::nullopt;
}

}  // namespace servecast::testing
