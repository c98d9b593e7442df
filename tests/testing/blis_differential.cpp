// A case is drawn anew from the ordinary one of its seed: its requests and what their prompts share
// stay, times, cache and limits become such that BLIS's rules meet.
#include "testing/blis_differential.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "metrics/recorder.h"
#include "serving/blis/blis_replica.h"
#include "testing/blis_golden.h"
#include "testing/engine_run.h"

namespace servecast::testing {
namespace {

constexpr TimeNs kUs = 1000;
constexpr std::int64_t kMostSteps = 20'000;  // no case that ends takes as many

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed * 2654435761u + 17) {}
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool Percent(std::int64_t percent) { return Between(1, 100) <= percent; }
  template <class T = std::int64_t>
  T Pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(
        Between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 bits_;
};

// Steps of tens of microseconds, so that arrivals, step ends and time-outs meet.
RandomLatencySpec MakeLatencySpec(Dice& dice, bool february) {
  RandomLatencySpec spec;
  spec.base = dice.Pick({1, 10, 10, 100, 1000}) * kUs;
  if (february && dice.Percent(10)) spec.base = 0;
  if (!dice.Percent(30)) {
    spec.per_decode = dice.Pick({0, 1, 7}) * kUs;
    spec.per_decode_context = dice.Pick({0, 1, 3}) * kUs;
    spec.per_chunk_token = dice.Pick({1, 5, 20}) * kUs;
    spec.per_chunk_context = dice.Pick({0, 1, 2}) * kUs;
    spec.per_chunk_prompt = dice.Pick({0, 3}) * kUs;
  }
  if (dice.Percent(50)) {
    spec.enqueue_base = dice.Pick({0, 1, 10, 500}) * kUs;
    spec.enqueue_per_token = dice.Pick({0, 0, 1, 10}) * kUs;
  }
  if (dice.Percent(40)) spec.output_token_delay = dice.Pick({1, 17, 1000}) * kUs;
  if (!february && dice.Percent(40)) spec.post_decode_delay = dice.Pick({1, 40, 777}) * kUs;
  return spec;
}

// Arrivals of the case by its old step time become those by the new one.
void MakeTimes(Dice& dice, RandomCase& c, TimeNs old_base) {
  const TimeNs base = std::max(c.latency.base, kUs);
  const auto in_steps = [&](TimeNs time) {
    const TimeNs scaled = time / old_base * base + time % old_base % base;
    return dice.Percent(95) ? scaled / kUs * kUs : scaled;
  };
  const bool together = dice.Percent(30);
  for (TimeNs& arrival : c.requests.arrival) {
    if (arrival < 0) continue;
    arrival = in_steps(arrival);
    if (together) arrival = arrival / (5 * base) * (5 * base);
  }
  for (TimeNs& think : c.requests.think) {
    if (think > 0) think = in_steps(think);
  }
  c.requests.timeout.clear();
  if (!dice.Percent(40)) return;
  const std::int64_t patience = dice.Pick({5, 30, 200});
  for (std::int64_t row = 0; row < c.requests.size(); ++row) {
    TimeNs timeout = kNever;
    if (dice.Percent(60)) timeout = dice.Between(1, patience) * base - dice.Pick({0, 0, 1}) * kUs;
    c.requests.timeout.push_back(std::max<TimeNs>(timeout, 0));
  }
}

void MakeCache(Dice& dice, RandomCase& c) {
  EngineSpec& engine = c.engine;
  RequestTable& requests = c.requests;
  engine.block_size = dice.Pick({1, 2, 4, 5, 16});
  std::int64_t longest = 0, longest_prompt = 0;
  const bool full_blocks = dice.Percent(40);
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    if (full_blocks) {
      requests.prompt_tokens[i] = static_cast<std::int32_t>(
          CeilDiv(requests.prompt_tokens[i], engine.block_size) * engine.block_size);
    }
    if (dice.Percent(10)) requests.output_tokens[i] = static_cast<std::int32_t>(dice.Between(1, 2));
    const std::int64_t prompt = requests.prompt_tokens[i];
    longest_prompt = std::max(longest_prompt, prompt);
    longest = std::max(longest, prompt + requests.output_tokens[i]);
  }
  const std::int64_t blocks = CeilDiv(longest, engine.block_size);
  if (dice.Percent(75)) {
    // A request that does not fit with all its tokens is preempted by itself for ever, so that
    // there are few such cases.
    engine.num_gpu_blocks_override = blocks * dice.Between(4, 14) / 4 + dice.Between(0, 2);
  } else if (dice.Percent(30)) {
    engine.num_gpu_blocks_override = std::max<std::int64_t>(blocks * dice.Between(1, 3) / 4, 1);
  } else {
    engine.num_gpu_blocks_override = blocks * requests.size();
  }
  engine.max_model_len.reset();
  c.model_max_len = 1 << 20;
  if (dice.Percent(30)) engine.max_model_len = dice.Between(longest_prompt / 2 + 1, longest + 1);
  if (dice.Percent(10)) engine.max_model_len = 0;  // none, not even what the cache holds
}

void MakeScheduling(Dice& dice, RandomCase& c, bool february) {
  SchedulerSpec& scheduler = c.scheduler;
  scheduler.params.clear();
  c.engine.enable_prefix_caching = dice.Percent(95);
  scheduler.order =
      dice.Pick<std::string>({"fcfs", "fcfs", "priority_fcfs", "sjf", "reverse_priority"});
  scheduler.priority = dice.Pick<std::string>({"class", "class", "class", "constant"});
  scheduler.preemption =
      dice.Pick<std::string>({"auto", "tail", "priority", "priority", "priority"});
  if (february && dice.Percent(30)) {
    scheduler.priority = dice.Pick<std::string>({"slo_based", "inverted_slo"});
    c.requests.priority.clear();
  }
  if (dice.Percent(50)) c.engine.max_num_seqs = dice.Pick({1, 2, 4, 64});
  c.engine.max_num_batched_tokens =
      dice.Percent(70) ? dice.Between(1, dice.Pick({4, 20, 60})) : 2048;
}

// In BLIS's units, from the fields of a scenario, which the engine has to understand in this way.
BlisHost HostOf(const RandomCase& c) {
  const KvOffloadSpec& offload = c.engine.kv_offload;
  const auto bytes = static_cast<double>(c.KvBlockBytes());
  // Ten digits, as what is drawn has fewer.
  const double us = std::nearbyint(bytes / offload.cpu_bandwidth_gb_s * 1e7) / 1e10;
  return {
      static_cast<std::int64_t>(offload.cpu_gib * 0x1p30 / bytes), offload.threshold,
      static_cast<std::int64_t>(offload.cpu_latency_us) + static_cast<std::int64_t>(std::ceil(us))};
}

// Memory of the host: of a few blocks to several caches; what comes back costs nothing, little, or
// more than a step.
void MakeHost(Dice& dice, RandomCase& c) {
  c.engine.kv_offload = {};
  if (!c.engine.enable_prefix_caching || dice.Percent(35)) return;
  KvOffloadSpec& offload = c.engine.kv_offload;
  const auto bytes = static_cast<double>(c.KvBlockBytes());
  const std::int64_t pool = c.PoolBlocks();
  const std::int64_t blocks =
      dice.Percent(40) ? dice.Between(1, 6) : dice.Between(1, dice.Pick({1, 4}) * pool);
  offload.cpu_gib = (static_cast<double>(blocks) + dice.Pick<double>({0, 0.5})) * bytes / 0x1p30;
  offload.cpu_latency_us = dice.Pick<double>({0, 0, 1, 2.9, 300});
  // Tokens per us, as BLIS has it: a fifth is 80 us for 16 of them.
  offload.cpu_bandwidth_gb_s = dice.Pick<double>({0.2, 0.3, 1, 7, 100}) * bytes /
                               static_cast<double>(c.engine.block_size) / 1e3;
  offload.threshold = dice.Pick<double>({0, 0.1, 0.5, 0.5, 0.75, 0.9});
}

struct BlisRun {
  RequestTable requests;
  RequestResults results;
  std::map<TimeNs, std::int64_t> gaps;
  PrefixCacheReport prefix_cache;
  KvOffloadReport host;
  std::int64_t steps = 0, preemptions = 0, length_capped = 0, timed_out = 0, completed = 0;
  std::int64_t output_tokens = 0, used_blocks = 0;
  std::int64_t allocation_failures = 0, peak_unused = 0;
  std::map<TimeNs, std::int64_t> step_delays;
  TimeNs end = 0;
};

BlisRun RunBlisEngine(const RandomCase& c, std::int64_t slice) {
  BlisRun run;
  run.requests = c.requests;
  run.results.Resize(c.requests.size());
  const std::unique_ptr<LatencyModel> latency = MakeLatency(c);
  Recorder recorder(0);
  const std::vector<KvTier> tiers =
      KvTiersOf(c.engine.kv_offload, static_cast<double>(c.KvBlockBytes()), 1);
  const std::unique_ptr<Engine> replica = std::make_unique<BlisReplica>(BlisInput{
      c.engine, c.scheduler, c.PoolBlocks(), c.model_max_len, run.requests, *latency, run.results,
      recorder, c.horizon.value_or(kNever), tiers.empty() ? KvTier{} : tiers[0]});
  while (!replica->Advance(slice)) {
  }
  for (const WeightedSample& sample : recorder.itl().Sorted()) {
    run.gaps[sample.value] += sample.weight;
  }
  run.prefix_cache = replica->prefix_cache();
  run.host = replica->kv_offload();
  run.allocation_failures = recorder.blocks_refused();
  run.peak_unused = recorder.peak_kv_unused();
  run.step_delays = StepDelaysOf(recorder);
  run.steps = recorder.steps();
  run.preemptions = recorder.preemptions();
  run.output_tokens = recorder.output_tokens();
  run.length_capped = replica->length_capped();
  run.timed_out = replica->timed_out();
  run.completed = replica->completed();
  run.used_blocks = replica->kv_blocks_used();
  run.end = replica->now();
  return run;
}

class Comparer {
 public:
  void Equal(const std::string& what, std::int64_t expected, std::int64_t found) {
    if (mismatch_ || expected == found) return;
    mismatch_ = fmt::format("{}: reference {}, engine {}", what, expected, found);
  }
  template <class T>
  void Column(const char* what, const std::vector<T>& expected, const std::vector<T>& found) {
    Equal(what, static_cast<std::int64_t>(expected.size()),
          static_cast<std::int64_t>(found.size()));
    for (std::size_t i = 0; i < expected.size() && !mismatch_; ++i) {
      Equal(fmt::format("request {}: {}", i, what), static_cast<std::int64_t>(expected[i]),
            static_cast<std::int64_t>(found[i]));
    }
  }
  void Delays(const std::map<TimeNs, std::int64_t>& expected,
              const std::map<TimeNs, std::int64_t>& found) {
    std::map<TimeNs, std::int64_t> difference = expected;
    for (const auto& [delay, count] : found) difference[delay] -= count;
    for (const auto& [delay, count] : difference) {
      Equal(fmt::format("step delays of {} ns, more in the reference", delay), count, 0);
    }
  }
  void Gaps(const std::map<TimeNs, std::int64_t>& expected,
            const std::map<TimeNs, std::int64_t>& found) {
    std::map<TimeNs, std::int64_t> difference = expected;
    for (const auto& [gap, count] : found) difference[gap] -= count;
    for (const auto& [gap, count] : difference) {
      Equal(fmt::format("gaps of {} ns, more in the reference", gap), count, 0);
    }
  }
  const std::optional<std::string>& mismatch() const { return mismatch_; }

 private:
  std::optional<std::string> mismatch_;
};

// Nullopt, too, when BLIS would never end but for a horizon.
std::optional<std::string> MismatchOf(const RandomCase& c) {
  RandomCase whole = c;
  whole.horizon.reset();
  if (RunBlisReference(whole).endless) return std::nullopt;
  return FirstBlisMismatch(c, RunBlisReference(c));
}

// The smallest part that still differs, found by halving.
RandomCase Shrink(RandomCase c) {
  for (std::int64_t count = c.requests.size() / 2; count >= 1;) {
    const std::int64_t size = c.requests.size();
    bool smaller = false;
    for (std::int64_t first = 0; first < size && !smaller; first += count) {
      RandomCase part = WithoutRequests(c, first, std::min(count, size - first));
      if (part.requests.size() == 0 || !MismatchOf(part)) continue;
      c = std::move(part);
      smaller = true;
    }
    if (!smaller) count /= 2;
    count = std::min(count, c.requests.size() / 2);
  }
  return c;
}

}  // namespace

RandomCase MakeBlisCase(std::uint64_t seed) {
  const bool february = seed % 2 == 1;
  RandomCase c = MakeRandomCase(seed);
  Dice dice(seed);
  c.engine.compat = february ? Compat::kBlisFebruary2026 : Compat::kBlis;
  // Neither has closed loops: who waits for a client comes with the one before.
  for (std::size_t i = 0; i < c.requests.pause.size(); ++i) {
    if (c.requests.pause[i] >= 0) c.requests.arrival[i] = c.requests.arrival[0];
  }
  c.requests.pause.clear();
  c.requests.due.clear();
  c.stages.clear();
  const TimeNs old_base = c.latency.base;
  c.latency = MakeLatencySpec(dice, february);
  MakeTimes(dice, c, old_base);
  MakeCache(dice, c);
  MakeScheduling(dice, c, february);
  MakeHost(dice, c);
  c.horizon.reset();
  if (dice.Percent(15)) {
    const BlisReferenceOutput whole = RunBlisReference(c);
    if (!whole.endless) c.horizon = dice.Between(1, whole.end / kUs + 2) * kUs;
  }
  return c;
}

BlisReferenceOutput RunBlisReference(const RandomCase& c) {
  const std::unique_ptr<LatencyModel> latency = MakeLatency(c);
  return RunBlisReference(BlisReferenceInput{.requests = c.requests,
                                             .engine = c.engine,
                                             .scheduler = c.scheduler,
                                             .blocks = c.PoolBlocks(),
                                             .model_max_len = c.model_max_len,
                                             .latency = *latency,
                                             .horizon = c.horizon,
                                             .most_steps = kMostSteps,
                                             .host = HostOf(c)});
}

// As a report shows them. A run with a horizon ends there in our reports.
std::optional<std::string> MismatchOfFigures(const RandomCase& c,
                                             const BlisReferenceOutput& reference) {
  if (c.horizon) return std::nullopt;
  const Result<EngineRun> run =
      RunEngine(EngineCaseOf(c), MakeLatency(c), {.slice = 7, .observe = false});
  if (!run.ok()) return "the engine refuses it: " + run.issues().front().message;
  const BlisFigures found = BlisFiguresOf(run.value().report);
  for (const auto& [name, expected] : BlisFiguresOf(reference)) {
    const auto at = found.find(name);
    if (at == found.end()) return name + " is not among the engine's figures";
    // A report does not tell who gave up before the queue from who did in it.
    if (name == "total_input_tokens" && reference.coverage.timed_out_before > 0) continue;
    const bool equal = expected == at->second || (std::isnan(expected) && std::isnan(at->second));
    if (equal || std::abs(at->second - expected) <= 1e-9 * std::abs(expected)) continue;
    return fmt::format("{}: reference {}, engine {}", name, expected, at->second);
  }
  return std::nullopt;
}

std::optional<std::string> FirstBlisMismatch(const RandomCase& c,
                                             const BlisReferenceOutput& reference) {
  BlisRun run = RunBlisEngine(c, c.seed % 3 == 0 ? 1 : INT64_MAX);
  Comparer comparer;
  comparer.Equal("preemptions", reference.preemptions, run.preemptions);
  comparer.Equal("length_capped", reference.length_capped, run.length_capped);
  const BlisReferenceKv::Counts& kv = reference.kv;
  const KvTierReport& host = run.host.tiers[0];
  comparer.Equal("hits", kv.hits + (reference.february ? kv.reloads : 0),
                 run.prefix_cache.hit_blocks);
  comparer.Equal("misses", kv.misses + kv.host_misses,
                 run.prefix_cache.query_blocks - run.prefix_cache.hit_blocks);
  comparer.Equal("host, blocks", HostOf(c).blocks, host.blocks);
  comparer.Equal("host, offloads", kv.offloads, run.host.offloaded_blocks);
  comparer.Equal("host, reloads", kv.reloads, host.loaded_blocks);
  comparer.Equal("host, thrashes", kv.thrashes, run.host.thrashed_blocks);
  comparer.Equal("host, hits", kv.host_hits, host.hit_blocks);
  comparer.Equal("host, hit tokens", kv.host_hits * c.engine.block_size, host.hit_tokens);
  comparer.Equal("host, transfer", kv.transfer * kUs, run.host.transfer_ns);
  comparer.Equal("used blocks", reference.used_blocks, run.used_blocks);
  comparer.Equal("allocation failures", reference.allocation_failures, run.allocation_failures);
  comparer.Equal("most unused room", reference.peak_unused, run.peak_unused);
  comparer.Delays(reference.step_delays, run.step_delays);
  comparer.Column("arrival", reference.requests.arrival, run.requests.arrival);
  for (std::size_t i = 0; i < run.results.state.size(); ++i) {
    // On its way to the queue: whether it came that far, the replica leaves to others to say.
    const bool coming = run.results.state[i] == RequestState::kPending &&
                        reference.results.state[i] == RequestState::kQueued;
    if (coming) run.results.state[i] = RequestState::kQueued;
    if (reference.results.enqueue[i] < 0) run.results.enqueue[i] = -1;
    if (reference.results.state[i] != RequestState::kCompleted) run.results.generated[i] = 0;
  }
  comparer.Column("enqueue", reference.results.enqueue, run.results.enqueue);
  comparer.Column("first_scheduled", reference.results.first_scheduled,
                  run.results.first_scheduled);
  comparer.Column("first_token", reference.results.first_token, run.results.first_token);
  comparer.Column("completion", reference.results.completion, run.results.completion);
  comparer.Column("preemptions", reference.results.preemptions, run.results.preemptions);
  comparer.Column("cached_tokens", reference.results.cached_tokens, run.results.cached_tokens);
  comparer.Column("state", reference.results.state, run.results.state);
  comparer.Column("generated", reference.results.generated, run.results.generated);
  comparer.Gaps(reference.gaps, run.gaps);
  comparer.Equal("steps", reference.steps_with_members, run.steps);
  comparer.Equal("end", reference.end, run.end);
  comparer.Equal("output tokens", reference.output_tokens, run.output_tokens);
  return comparer.mismatch() ? comparer.mismatch() : MismatchOfFigures(c, reference);
}

void BlisCasesCoverage::Add(const RandomCase& c, const BlisReferenceOutput& output) {
  ++cases;
  ++(c.engine.compat == Compat::kBlis ? today : february);
  if (output.endless) {
    ++endless;
    return;
  }
  steps += output.steps;
  preemptions += output.preemptions;
  length_capped += output.length_capped;
  for (std::size_t i = 0; i < output.results.state.size(); ++i) {
    const RequestState state = output.results.state[i];
    unfinished += state == RequestState::kQueued || state == RequestState::kRunning ? 1 : 0;
    if (state == RequestState::kCompleted && output.results.preemptions[i] > 0) {
      ++resumed_completions;
    }
  }
  kv.hits += output.kv.hits;
  kv.rollbacks += output.kv.rollbacks;
  kv.refused_by_hits += output.kv.refused_by_hits;
  kv.lost_hashes += output.kv.lost_hashes;
  BlisReferenceKv::Counts& host = c.engine.compat == Compat::kBlis ? host_today : host_february;
  host.offloads += output.kv.offloads;
  host.reloads += output.kv.reloads;
  host.thrashes += output.kv.thrashes;
  host.host_hits += output.kv.host_hits;
  host.host_misses += output.kv.host_misses;
  host.host_full += output.kv.host_full;
  host.replaced += output.kv.replaced;
  host.reloads_undone += output.kv.reloads_undone;
  host.reloads_by_running += output.kv.reloads_by_running;
  host.prefixes_cut += output.kv.prefixes_cut;
  host.reloads_beyond_need += output.kv.reloads_beyond_need;
  host.rescued += output.kv.rescued;
  host.reloads_of_present += output.kv.reloads_of_present;
  const BlisCoverage& more = output.coverage;
  rules.preemptions_of_who_asked += more.preemptions_of_who_asked;
  rules.preemptions_of_prefills += more.preemptions_of_prefills;
  rules.preemptions_not_of_the_tail += more.preemptions_not_of_the_tail;
  rules.victims_given_tokens += more.victims_given_tokens;
  rules.parallel_chains += more.parallel_chains;
  rules.out_of_budget += more.out_of_budget;
  rules.all_cached += more.all_cached;
  rules.empty_steps += more.empty_steps;
  rules.overlaps += more.overlaps;
  rules.timed_out_running += more.timed_out_running;
  rules.timed_out_queued += more.timed_out_queued;
  rules.timed_out_before += more.timed_out_before;
  rules.dropped_too_long += more.dropped_too_long;
  rules.dropped_too_big += more.dropped_too_big;
  rules.final_slot_refused += more.final_slot_refused;
  rules.turns += more.turns;
}

std::optional<std::string> RunBlisCases(std::uint64_t seed, std::int64_t cases,
                                        BlisCasesCoverage* coverage) {
  for (std::int64_t i = 0; i < cases; ++i) {
    const RandomCase random_case = MakeBlisCase(seed + static_cast<std::uint64_t>(i));
    const BlisReferenceOutput reference = RunBlisReference(random_case);
    if (coverage != nullptr) coverage->Add(random_case, reference);
    if (reference.endless) {
      RunBlisEngine(random_case, INT64_MAX);
    } else if (FirstBlisMismatch(random_case, reference)) {
      const RandomCase smallest = Shrink(random_case);
      return fmt::format("{}, max_num_seqs {}, delay after the last token {}\n{}{}",
                         smallest.engine.compat == Compat::kBlis ? "today" : "February",
                         smallest.engine.max_num_seqs, smallest.latency.post_decode_delay,
                         Describe(smallest), MismatchOf(smallest).value_or(""));
    }
  }
  return std::nullopt;
}

}  // namespace servecast::testing
