#include "testing/pd_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"
#include "metrics/time_split.h"
#include "serving/cluster.h"

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

void AddPools(Dice& dice, PoolRole role, PdCase& c) {
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
    if (role == PoolRole::kMixed && dice.Percent(30)) pool.engine.block_size *= 2;
    pool.pool_blocks = c.base.PoolBlocks() + (dice.Percent(30) ? dice.UpTo(6) : 0);
    pool.block_bytes = dice.Pick<std::int64_t>({1, 997, 65536});
    pool.latency = c.latencies.back().get();
    c.pools.push_back(pool);
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
    steps_[static_cast<std::size_t>(step.replica)].push_back(step);
  }

 private:
  std::vector<std::vector<StepRecord>>& steps_;
};

}  // namespace

std::int64_t PdCase::MaxLen() const {
  std::int64_t shortest = INT64_MAX;
  for (const PdPool& pool : pools) {
    const std::int64_t own =
        EffectiveMaxModelLen(pool.engine, base.model_max_len, pool.pool_blocks - 1);
    shortest = std::min(shortest, own);
  }
  return shortest;
}

PdInput PdCase::Input() const {
  return {base.requests, base.scheduler.order, pools,          MaxLen(),
          router,        decode_router,        disaggregation, base.horizon};
}

std::optional<PdCase> MakePdCase(std::uint64_t seed) {
  PdCase c;
  c.seed = seed;
  c.base = MakeRandomCase(seed);
  if (!c.base.requests.pause.empty()) return std::nullopt;
  Dice dice(seed);
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
  if (dice.Percent(30)) {  // without roles
    AddPools(dice, PoolRole::kMixed, c);
    AddPools(dice, PoolRole::kMixed, c);
  } else {
    AddPools(dice, PoolRole::kPrefill, c);
    if (dice.Percent(40)) {
      c.disaggregation.above_tokens = dice.Pick<std::int64_t>({5, 20, 60});
      if (dice.Percent(50)) AddPools(dice, PoolRole::kMixed, c);
    }
    AddPools(dice, PoolRole::kDecode, c);
  }
  if (dice.Percent(30)) std::reverse(c.pools.begin(), c.pools.end());
  c.router = MakeRouterChoice(seed * 2, c.base.latency.base);
  c.decode_router = MakeRouterChoice(seed * 2 + 1, c.base.latency.base);
  c.decode_router.seed = DrawsOfDecodes(c.router.seed);
  return c;
}

PdRun RunPdCase(const PdCase& c, std::int64_t slice) {
  PdRun run;
  run.requests = c.base.requests;
  run.results.Resize(run.requests.size());
  run.results.replica.assign(run.requests.arrival.size(), -1);
  std::int64_t replicas = 0;
  std::vector<ClusterPool> pools;
  for (const PdPool& pool : c.pools) {
    replicas += pool.replicas;
    pools.push_back(
        {pool.role, pool.replicas, pool.engine, *pool.latency, pool.pool_blocks, pool.block_bytes});
  }
  run.steps.resize(static_cast<std::size_t>(replicas));
  Collector collector(run.steps);
  Clients clients(run.requests, *c.pools[0].latency, c.MaxLen(), run.results);
  Inbox unused(clients, run.requests, run.results, true);
  ReplicaScratch scratch(run.requests);
  Recorder recorder(0);
  const RouterEntry &router = FindRouter(c.router.name),
                    &decode_router = FindRouter(c.decode_router.name);
  const std::unique_ptr<AnyReplica> cluster = MakeCluster(
      {{c.base.engine, c.base.scheduler, 0, c.MaxLen(), run.requests, unused, *c.pools[0].latency,
        run.results, recorder, scratch, c.base.horizon.value_or(kNever), &collector},
       0,
       &router,
       ParamValues(router.params, c.router.params),
       c.router.seed,
       clients,
       pools,
       &decode_router,
       ParamValues(decode_router.params, c.decode_router.params),
       c.disaggregation});
  while (!cluster->Advance(slice)) {
  }
  cluster->WriteProgress(run.results.generated);
  cluster->WriteRecords(cluster->now(), recorder);
  run.results.hand_overs.resize(run.requests.arrival.size());  // without roles there are none
  run.completed = cluster->completed();
  run.timed_out = cluster->timed_out();
  run.output_tokens = recorder.output_tokens();
  run.preemptions = recorder.preemptions();
  return run;
}

std::optional<std::string> FirstPdMismatch(const PdCase& c, const PdOutput& reference,
                                           std::int64_t slice) {
  const PdRun run = RunPdCase(c, slice);
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    for (std::size_t k = 0; k < std::min(run.steps[i].size(), reference.steps[i].size()); ++k) {
      const StepRecord &found = run.steps[i][k], &expected = reference.steps[i][k];
      if (found == expected) continue;
      return fmt::format(
          "case {}, replica {}, step {}: scheduled {} start {} end {} members {} free {}/{} "
          "running "
          "{}/{} waiting {}/{} interference {}, reference {} {} {} {} {}/{} {}/{} {}/{} {}",
          c.seed, i, k, found.scheduled, found.start, found.end, found.members.size(),
          found.free_after_schedule, found.free_after_step, found.running_after_schedule,
          found.running_after_step, found.waiting_after_schedule, found.waiting_after_step,
          found.interference, expected.scheduled, expected.start, expected.end,
          expected.members.size(), expected.free_after_schedule, expected.free_after_step,
          expected.running_after_schedule, expected.running_after_step,
          expected.waiting_after_schedule, expected.waiting_after_step, expected.interference);
    }
    if (run.steps[i].size() != reference.steps[i].size()) {
      return fmt::format("case {}, replica {}: {} steps, reference {}", c.seed, i,
                         run.steps[i].size(), reference.steps[i].size());
    }
  }
  if (run.output_tokens != reference.output_tokens) {
    return fmt::format("case {}: {} output tokens, reference {}", c.seed, run.output_tokens,
                       reference.output_tokens);
  }
  const RequestResults &a = run.results, &b = reference.results;
  for (std::size_t r = 0; r < a.state.size(); ++r) {
    const bool over =
        b.state[r] == RequestState::kCompleted || b.state[r] == RequestState::kTimedOut;
    const HandOver &h = a.hand_overs[r], &g = b.hand_overs[r];
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

}  // namespace servecast::testing
