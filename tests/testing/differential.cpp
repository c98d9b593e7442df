// Each comparison names what differs, the place of it and both values, in that order of detail.
#include "testing/differential.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "metrics/time_split.h"
#include "testing/engine_run.h"

namespace servecast::testing {
namespace {

using Mismatch = std::optional<std::string>;

std::string Show(const StepRecord& step) {
  std::string text = fmt::format(
      "[{}] {}..{} free {}/{} running {}/{} waiting {}/{};", step.index, step.start, step.end,
      step.free_after_schedule, step.free_after_step, step.running_after_schedule,
      step.running_after_step, step.waiting_after_schedule, step.waiting_after_step);
  for (const StepMember& member : step.members) {
    text += fmt::format(" {}{}:{}@{}{}", static_cast<char>(member.kind), member.id, member.tokens,
                        member.computed_before, std::string(member.sampled > 0 ? 1 : 0, '*'));
    if (member.drafts > 0) {
      text += fmt::format("({}/{}:{})", member.accepted, member.drafts, member.sampled);
    }
  }
  for (const StageSpan& span : step.stages) text += fmt::format(" {}..{}", span.start, span.end);
  if (step.transfer > 0) text += fmt::format(" transfer {}", step.transfer);
  if (step.interference > 0) text += fmt::format(" interference {}", step.interference);
  for (const RequestId id : step.preempted) text += fmt::format(" preempted {}", id);
  for (const RequestId id : step.finished) text += fmt::format(" finished {}", id);
  return text;
}

Mismatch CompareSteps(const std::vector<StepRecord>& expected,
                      const std::vector<StepRecord>& found) {
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    if (expected[i] == found[i]) continue;
    return fmt::format("step {}\n  reference {}\n  engine    {}", i, Show(expected[i]),
                       Show(found[i]));
  }
  if (expected.size() == found.size()) return std::nullopt;
  return fmt::format("{} steps, the engine has {}", expected.size(), found.size());
}

// Compares named values one by one and keeps the first that differ.
class Comparer {
 public:
  explicit Comparer(std::string where) : where_(std::move(where)) {}

  template <class T>
  void Equal(const char* what, const T& expected, const T& found) {
    if (mismatch_ || expected == found) return;
    mismatch_ = fmt::format("{}: {}: reference {}, engine {}", where_, what,
                            static_cast<double>(expected), static_cast<double>(found));
    const __int128 difference = static_cast<__int128>(found) - static_cast<__int128>(expected);
    *mismatch_ += fmt::format(" (engine - reference = {})", static_cast<double>(difference));
  }

  template <class T>
  void Column(const char* what, const std::vector<T>& expected, const std::vector<T>& found) {
    Equal(what, expected.size(), found.size());
    for (std::size_t i = 0; i < expected.size() && !mismatch_; ++i) {
      if (expected[i] == found[i]) continue;
      mismatch_ =
          fmt::format("{}: request {}: {}: reference {}, engine {}", where_, i, what,
                      static_cast<std::int64_t>(expected[i]), static_cast<std::int64_t>(found[i]));
    }
  }

  void Fail(std::string what) {
    if (!mismatch_) mismatch_ = fmt::format("{}: {}", where_, what);
  }

  const Mismatch& mismatch() const { return mismatch_; }

 private:
  std::string where_;
  Mismatch mismatch_;
};

void CompareResults(Comparer& comparer, const RequestResults& expected,
                    const RequestResults& found) {
  comparer.Column("first_scheduled", expected.first_scheduled, found.first_scheduled);
  comparer.Column("first_token", expected.first_token, found.first_token);
  comparer.Column("completion", expected.completion, found.completion);
  comparer.Column("generated", expected.generated, found.generated);
  comparer.Column("preemptions", expected.preemptions, found.preemptions);
  comparer.Column("cached_tokens", expected.cached_tokens, found.cached_tokens);
}

void ComparePrefixCache(Comparer& comparer, const PrefixCacheReport& expected,
                        const PrefixCacheReport& found) {
  comparer.Equal("query_tokens", expected.query_tokens, found.query_tokens);
  comparer.Equal("hit_tokens", expected.hit_tokens, found.hit_tokens);
  comparer.Equal("query_blocks", expected.query_blocks, found.query_blocks);
  comparer.Equal("hit_blocks", expected.hit_blocks, found.hit_blocks);
  comparer.Equal("resumed_hit_tokens", expected.resumed_hit_tokens, found.resumed_hit_tokens);
  comparer.Equal("evicted_blocks", expected.evicted_blocks, found.evicted_blocks);
}

void CompareCounts(Comparer& comparer, const SchedulerCounts& expected,
                   const SchedulerCounts& found) {
  comparer.Equal("prefill_tokens", expected.prefill_tokens, found.prefill_tokens);
  comparer.Equal("padding_tokens", expected.padding_tokens, found.padding_tokens);
  comparer.Equal("gc_passes", expected.gc_passes, found.gc_passes);
  comparer.Equal("stage_busy_ns", expected.stage_busy_ns, found.stage_busy_ns);
  comparer.Equal("verified_steps", expected.verified_steps, found.verified_steps);
  comparer.Equal("draft_tokens", expected.draft_tokens, found.draft_tokens);
  comparer.Equal("accepted_tokens", expected.accepted_tokens, found.accepted_tokens);
  comparer.Equal("used_draft_tokens", expected.used_draft_tokens, found.used_draft_tokens);
  comparer.Equal("encoded_images", expected.encoded_images, found.encoded_images);
  comparer.Equal("encode_ns", expected.encode_ns, found.encode_ns);
  comparer.Equal("image_hits", expected.image_hits, found.image_hits);
}

void CompareOffload(Comparer& comparer, const KvOffloadReport& expected,
                    const KvOffloadReport& found) {
  comparer.Equal("offload", expected.on, found.on);
  for (std::size_t i = 0; i < kKvTiers; ++i) {
    const std::string tier = std::string(KvOffloadReport::kNames[i]) + " ";
    const KvTierReport &a = expected.tiers[i], &b = found.tiers[i];
    comparer.Equal((tier + "blocks").c_str(), a.blocks, b.blocks);
    comparer.Equal((tier + "hit_tokens").c_str(), a.hit_tokens, b.hit_tokens);
    comparer.Equal((tier + "hit_blocks").c_str(), a.hit_blocks, b.hit_blocks);
    comparer.Equal((tier + "loaded_blocks").c_str(), a.loaded_blocks, b.loaded_blocks);
  }
  comparer.Equal("offloaded_blocks", expected.offloaded_blocks, found.offloaded_blocks);
  comparer.Equal("thrashed_blocks", expected.thrashed_blocks, found.thrashed_blocks);
  comparer.Equal("transfer_ns", expected.transfer_ns, found.transfer_ns);
}

void CompareSplit(Comparer& comparer, const std::string& of, const TimeSplit& expected,
                  const TimeSplit& found) {
  const std::pair<const char*, TimeNs TimeSplit::*> parts[] = {
      {"host", &TimeSplit::host},
      {"queue", &TimeSplit::queue},
      {"prefill", &TimeSplit::prefill},
      {"decode", &TimeSplit::decode},
      {"interference", &TimeSplit::interference},
      {"preempted", &TimeSplit::preempted},
      {"transfer", &TimeSplit::transfer}};
  for (const auto& [name, part] : parts) {
    comparer.Equal((of + name).c_str(), expected.*part, found.*part);
  }
}

// Of each completed request; the parts add up to what the client saw.
void CompareTimes(Comparer& comparer, const ReferenceOutput& expected, const ReplicaRun& found,
                  TimeNs token_delay) {
  for (std::size_t i = 0; i < expected.results.completion.size(); ++i) {
    if (expected.results.completion[i] < 0) continue;
    const RequestTimes times = TimesOf(found.requests, found.results, token_delay, i);
    CompareSplit(comparer, fmt::format("request {}: of its TTFT ", i), expected.times[i].ttft,
                 times.ttft);
    CompareSplit(comparer, fmt::format("request {}: of its E2E ", i), expected.times[i].e2e,
                 times.e2e);
    const TimeNs arrival = expected.requests.arrival[i];
    comparer.Equal("sum of the parts of TTFT", expected.results.first_token[i] - arrival,
                   times.ttft.Sum());
    comparer.Equal("sum of the parts of E2E", expected.results.completion[i] - arrival,
                   times.e2e.Sum());
  }
}

Mismatch CompareReplica(const ReferenceOutput& expected, const ReplicaRun& found,
                        TimeNs token_delay) {
  if (Mismatch mismatch = CompareSteps(expected.steps, found.steps)) return mismatch;
  Comparer comparer("replica");
  comparer.Column("arrival", expected.requests.arrival, found.requests.arrival);
  CompareResults(comparer, expected.results, found.results);
  for (std::size_t i = 0; i < expected.results.enqueue.size(); ++i) {
    const TimeNs enqueue = expected.results.enqueue[i];
    if (enqueue >= 0) comparer.Equal("enqueue", enqueue, found.results.enqueue[i]);
  }
  for (std::size_t i = 0; i < expected.results.state.size(); ++i) {
    comparer.Equal("encode", expected.results.Encode(i), found.results.Encode(i));
  }
  comparer.Equal("preemptions", expected.preemptions, found.preemptions);
  comparer.Equal("length_capped", expected.length_capped, found.length_capped);
  comparer.Equal("peak_kv_blocks", expected.peak_kv_blocks, found.peak_kv_blocks);
  comparer.Equal("peak_kv_unused", expected.peak_kv_unused, found.peak_kv_unused);
  comparer.Equal("kv_unused_ns", expected.kv_unused_ns, found.kv_unused_ns);
  comparer.Equal("allocation failures", expected.allocation_failures, found.allocation_failures);
  if (expected.step_delays != found.step_delays) comparer.Fail("delays of steps");
  comparer.Equal("busy_ns", expected.busy_ns, found.busy_ns);
  comparer.Equal("running_ns", expected.running_ns, found.running_ns);
  comparer.Equal("kv_block_ns", expected.kv_block_ns, found.kv_block_ns);
  comparer.Equal("batch_token_ns", expected.batch_token_ns, found.batch_token_ns);
  comparer.Equal("waiting_ns", expected.waiting_ns, found.waiting_ns);
  comparer.Equal("tokens", expected.tokens, __int128{found.work.tokens});
  comparer.Equal("decode_keys", expected.decode_keys, found.work.decode_keys);
  comparer.Equal("prefill_keys", expected.prefill_keys, found.work.prefill_keys);
  comparer.Equal("prefill_pairs", expected.prefill_pairs, found.work.prefill_pairs);
  const auto steps = static_cast<std::int64_t>(expected.steps.size());
  comparer.Equal("steps", steps * kStepUnit, found.work.steps);
  comparer.Equal("steps without head", expected.steps_without_head * kStepUnit,
                 found.work.without_head);
  CompareTimes(comparer, expected, found, token_delay);
  ComparePrefixCache(comparer, expected.prefix_cache, found.prefix_cache);
  CompareCounts(comparer, expected.counts, found.counts);
  CompareOffload(comparer, expected.kv_offload, found.kv_offload);
  for (const auto& [gap, count] : expected.itl) {
    const auto other = found.itl.find(gap);
    comparer.Equal(fmt::format("gaps of {} ns", gap).c_str(), count,
                   other == found.itl.end() ? 0 : other->second);
  }
  comparer.Equal("different gaps", static_cast<std::int64_t>(expected.itl.size()),
                 static_cast<std::int64_t>(found.itl.size()));
  return comparer.mismatch();
}

std::int64_t CountState(const RequestResults& results, RequestState state) {
  return std::count(results.state.begin(), results.state.end(), state);
}

// What each class's requests came to, one by one.
void CompareClasses(Comparer& comparer, const ReferenceOutput& expected, const Report& report) {
  comparer.Equal("classes", kTestClasses, report.classes.size());
  const RequestResults& results = expected.results;
  for (std::size_t c = 0; c < report.classes.size(); ++c) {
    std::int64_t arrived = 0, completed = 0, dropped = 0, timed_out = 0, rejected = 0, missed = 0,
                 deadlines = 0;
    __int128 ttft = 0, e2e = 0;
    std::int64_t first_tokens = 0;
    for (std::size_t i = c; i < results.state.size(); i += kTestClasses) {
      if (results.state[i] == RequestState::kPending) continue;
      const TimeNs arrival = expected.requests.arrival[i], first = results.first_token[i];
      ++arrived;
      dropped += results.state[i] == RequestState::kDropped ? 1 : 0;
      timed_out += results.state[i] == RequestState::kTimedOut ? 1 : 0;
      rejected += results.state[i] == RequestState::kRejected ? 1 : 0;
      if (first >= 0) ++first_tokens, ttft += first - arrival;
      if (results.completion[i] >= 0) ++completed, e2e += results.completion[i] - arrival;
      if (expected.requests.ttft_deadline.empty()) continue;
      const TimeNs deadline = expected.requests.ttft_deadline[i];
      if (deadline == kNever) continue;
      ++deadlines;
      const bool lost = IsLost(results.state[i]);
      const TimeNs waited = (first >= 0 ? first : expected.end) - arrival;
      missed += waited > deadline || (first < 0 && lost) ? 1 : 0;
    }
    const ClassReport& found = report.classes[c];
    comparer.Equal("arrived of a class", arrived, found.arrived);
    comparer.Equal("completed of a class", completed, found.completed);
    comparer.Equal("dropped of a class", dropped, found.dropped);
    comparer.Equal("timed out of a class", timed_out, found.timed_out);
    comparer.Equal("rejected of a class", rejected, found.rejected);
    comparer.Equal("has deadlines", deadlines > 0, found.deadline_misses.has_value());
    comparer.Equal("deadlines missed", missed, found.deadline_misses.value_or(0));
    comparer.Equal("TTFTs of a class", first_tokens, found.ttft_ms.n);
    comparer.Equal("E2Es of a class", completed, found.e2e_ms.n);
    const auto near = [](double a, double b) { return std::fabs(a - b) <= 1e-9 * std::fabs(a); };
    if (first_tokens > 0 &&
        !near(static_cast<double>(ttft) / 1e6 / static_cast<double>(first_tokens),
              found.ttft_ms.mean)) {
      comparer.Fail("mean TTFT of a class");
    }
    if (completed > 0 &&
        !near(static_cast<double>(e2e) / 1e6 / static_cast<double>(completed), found.e2e_ms.mean)) {
      comparer.Fail("mean E2E of a class");
    }
  }
}

// By request: what its last attempt came to, from the arrival of its first one on.
ReferenceOutput ByRequest(ReferenceOutput all) {
  const auto retries = static_cast<std::int64_t>(all.requests.backoff.size());
  const std::int64_t size = all.requests.size() - retries;
  if (retries == 0) return all;
  ReferenceOutput out = all;
  RequestResults& r = out.results;
  out.timed_out = out.rejected = 0;
  for (std::int64_t request = 0; request < size; ++request) {
    const std::int64_t each = retries / size, first = size + request * each;
    std::int64_t row = request, attempts = 0;
    for (; attempts < each; ++attempts) {
      const TimeNs arrival = all.requests.arrival[static_cast<std::size_t>(first + attempts)];
      if (arrival < 0 || arrival > all.end) break;
      const auto at = static_cast<std::size_t>(first + attempts);
      if (all.results.state[at] == RequestState::kRejected && all.results.enqueue[at] < 0) {
        attempts = each;  // beyond the budget
        break;
      }
      row = first + attempts;
    }
    const auto to = static_cast<std::size_t>(request), from = static_cast<std::size_t>(row);
    r.first_scheduled[to] = all.results.first_scheduled[from];
    r.first_token[to] = all.results.first_token[from];
    r.completion[to] = all.results.completion[from];
    r.generated[to] = all.results.generated[from];
    r.preemptions[to] = all.results.preemptions[from];
    r.cached_tokens[to] = all.results.cached_tokens[from];
    r.state[to] = all.results.state[from];
    const bool failed =
        r.state[to] == RequestState::kTimedOut || r.state[to] == RequestState::kRejected;
    if (failed && attempts < each) {  // the next one is still to come
      r.first_scheduled[to] = r.first_token[to] = r.completion[to] = -1;
      r.generated[to] = 0;
      r.state[to] = RequestState::kQueued;
    }
    out.timed_out += r.state[to] == RequestState::kTimedOut ? 1 : 0;
    out.rejected += r.state[to] == RequestState::kRejected ? 1 : 0;
  }
  const auto n = static_cast<std::size_t>(size);
  out.requests.arrival.resize(n);
  for (auto* column : {&r.first_scheduled, &r.first_token, &r.completion}) column->resize(n);
  for (auto* column : {&r.generated, &r.preemptions, &r.cached_tokens}) column->resize(n);
  r.state.resize(n);
  return out;
}

Mismatch CompareReport(const ReferenceOutput& by_attempt, const EngineRun& run) {
  const ReferenceOutput expected = ByRequest(by_attempt);
  const RequestTable& requests = expected.requests;
  Comparer comparer("report");
  const Report& report = run.report;
  const RequestResults found = ResultsOf(report, requests);
  CompareResults(comparer, expected.results, found);
  const std::int64_t pending = CountState(expected.results, RequestState::kPending);
  const auto state = [&](RequestState s) { return CountState(expected.results, s); };
  comparer.Equal("arrived", requests.size() - pending, report.arrived);
  comparer.Equal("completed", state(RequestState::kCompleted), report.completed);
  comparer.Equal("queued", state(RequestState::kQueued), report.queued);
  comparer.Equal("running", state(RequestState::kRunning), report.running);
  comparer.Equal("dropped", expected.dropped, report.dropped);
  comparer.Equal("timed_out", expected.timed_out, report.timed_out);
  comparer.Equal("rejected", expected.rejected, report.rejected);
  comparer.Column("state", expected.results.state, found.state);
  comparer.Equal("length_capped", expected.length_capped, report.length_capped);
  comparer.Equal("preemptions", expected.preemptions, report.preemptions);
  comparer.Equal("steps", static_cast<std::int64_t>(expected.steps.size()), report.steps);
  comparer.Equal("simulated_s", static_cast<double>(expected.end) / 1e9, report.simulated_s);
  ComparePrefixCache(comparer, expected.prefix_cache, report.prefix_cache);
  CompareCounts(comparer, expected.counts, report.counts);
  CompareOffload(comparer, expected.kv_offload, report.kv_offload);
  std::int64_t gaps = 0;
  for (const auto& [gap, weight] : expected.itl) gaps += weight;
  comparer.Equal("itl_ms.n", gaps, report.itl_ms.n);
  comparer.Equal("allocation_failures", expected.allocation_failures, report.allocation_failures);
  std::int64_t steps = 0;
  for (const auto& [delay, weight] : expected.step_delays) steps += weight;
  comparer.Equal("step_delay_ms.n", steps, report.step_delay_ms.n);
  CompareClasses(comparer, expected, report);
  if (!report.finished) comparer.Fail("a run that ended says it is not finished");
  return comparer.mismatch();
}

// The smallest part that still differs, found by halving.
RandomCase Shrink(RandomCase random_case) {
  const auto differs = [](const RandomCase& part) {
    return FirstMismatch(part, RunReference(part)).has_value();
  };
  for (std::int64_t count = static_cast<std::int64_t>(random_case.requests.requests()) / 2;
       count >= 1;) {
    const std::int64_t size = static_cast<std::int64_t>(random_case.requests.requests());
    bool smaller = false;
    for (std::int64_t first = 0; first < size && !smaller; first += count) {
      // Without the requests [first, first + count).
      RandomCase part = WithoutRequests(random_case, first, std::min(count, size - first));
      if (part.requests.size() == 0 || !differs(part)) continue;
      random_case = std::move(part);
      smaller = true;
    }
    if (!smaller) count /= 2;
    count = std::min(count, static_cast<std::int64_t>(random_case.requests.requests()) / 2);
  }
  return random_case;
}

}  // namespace

void CasesCoverage::Add(const ReferenceOutput& output) {
  ++cases;
  steps += static_cast<std::int64_t>(output.steps.size());
  preemptions += output.preemptions;
  dropped += output.dropped;
  length_capped += output.length_capped;
  unfinished += CountState(output.results, RequestState::kQueued) +
                CountState(output.results, RequestState::kRunning);
  hit_blocks += output.prefix_cache.hit_blocks;
  resumed_hit_tokens += output.prefix_cache.resumed_hit_tokens;
  evicted_blocks += output.prefix_cache.evicted_blocks;
  offloaded_blocks += output.kv_offload.offloaded_blocks;
  thrashed_blocks += output.kv_offload.thrashed_blocks;
  for (const KvTierReport& tier : output.kv_offload.tiers) tier_hit_blocks += tier.hit_blocks;
  const ReferenceCoverage& more = output.coverage;
  rules.resumes += more.resumes;
  rules.waits_for_front_end += more.waits_for_front_end;
  rules.self_preemptions += more.self_preemptions;
  rules.prefill_preemptions += more.prefill_preemptions;
  rules.unscheduled_victims += more.unscheduled_victims;
  rules.empty_calls += more.empty_calls;
  rules.refused_by_watermark += more.refused_by_watermark;
  rules.refused_by_full_prompt += more.refused_by_full_prompt;
  rules.refused_by_unused_hits += more.refused_by_unused_hits;
  rules.refused_unchunked += more.refused_unchunked;
  rules.enqueued_on_step_end += more.enqueued_on_step_end;
  rules.reordered += more.reordered;
  rules.skipped += more.skipped;
  rules.last_in_flight += more.last_in_flight;
  rules.hits_on_held += more.hits_on_held;
  rules.hits_on_unused += more.hits_on_unused;
  rules.full_hits += more.full_hits;
  rules.same_call_hits += more.same_call_hits;
  rules.duplicates += more.duplicates;
  rules.late_registrations += more.late_registrations;
  rules.stale_tokens += more.stale_tokens;
  rules.turns += more.turns;
  rules.timed_out_running += more.timed_out_running;
  rules.timed_out_queued += more.timed_out_queued;
  rules.timed_out_in_flight += more.timed_out_in_flight;
  rules.timed_out_in_the_last_step += more.timed_out_in_the_last_step;
  rules.timed_out_on_the_way += more.timed_out_on_the_way;
  rules.refused_by_reserve += more.refused_by_reserve;
  rules.gc_for_running += more.gc_for_running;
  rules.gc_for_admission += more.gc_for_admission;
  rules.preempted_after_gc += more.preempted_after_gc;
  rules.steps_of_many_buckets += more.steps_of_many_buckets;
  rules.not_offloaded += more.not_offloaded;
  rules.offloaded_again += more.offloaded_again;
  rules.lost_by_tiers += more.lost_by_tiers;
  rules.hits_of_both_tiers += more.hits_of_both_tiers;
  rules.disk_loads += more.disk_loads;
  rules.behind_gpu_hits += more.behind_gpu_hits;
  rules.arrivals_under_load += more.arrivals_under_load;
  rules.arrivals_at_a_cache += more.arrivals_at_a_cache;
  rules.loop_starts += more.loop_starts;
  rules.loop_dues += more.loop_dues;
  rules.loop_drops += more.loop_drops;
  rules.loop_timeouts += more.loop_timeouts;
  rules.retries += more.retries;
  rules.retries_rejected += more.retries_rejected;
  rules.last_attempts += more.last_attempts;
  rules.over_budget += more.over_budget;
  rules.interfered += more.interfered;
  rules.sat_out += more.sat_out;
  rules.overlapping += more.overlapping;
  rules.waits_for_stage += more.waits_for_stage;
  rules.waits_for_token += more.waits_for_token;
  rules.chunks_in_flight += more.chunks_in_flight;
  rules.victims_in_flight += more.victims_in_flight;
  rules.victims_passed += more.victims_passed;
  rules.victims_timed_out += more.victims_timed_out;
  rules.verified += more.verified;
  rules.cut_drafts += more.cut_drafts;
  rules.lost_drafts += more.lost_drafts;
  rules.kept_drafts += more.kept_drafts;
  rules.padded += more.padded;
  rules.padding_waits += more.padding_waits;
  rules.dropped_hits += more.dropped_hits;
  rules.cut_outputs += more.cut_outputs;
  rules.unneeded += more.unneeded;
  rules.ended_in_queue += more.ended_in_queue;
  rules.refused_by_lookahead += more.refused_by_lookahead;
  rules.adapters_without_seat += more.adapters_without_seat;
  rules.rejected_by_requests += more.rejected_by_requests;
  rules.rejected_by_tokens += more.rejected_by_tokens;
  rules.window_blocks += more.window_blocks;
  rules.full_windows += more.full_windows;
  rules.refused_by_windows += more.refused_by_windows;
  rules.encoded_images += more.encoded_images;
  rules.image_hits += more.image_hits;
  rules.evicted_images += more.evicted_images;
  rules.cut_before_images += more.cut_before_images;
  rules.waits_for_encoder += more.waits_for_encoder;
  rules.refused_by_encoder += more.refused_by_encoder;
  rules.unencoded_victims += more.unencoded_victims;
}

std::optional<std::string> FirstMismatch(const RandomCase& random_case,
                                         const ReferenceOutput& reference) {
  const EngineCase engine_case = EngineCaseOf(random_case);
  const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
  const ReplicaRun replica = RunReplica(engine_case, *latency, reference.end);
  if (Mismatch mismatch = CompareReplica(reference, replica, latency->OutputTokenDelay())) {
    return mismatch;
  }

  // Three of these a case, all of them over a few cases.
  constexpr RunOptions kVariants[] = {{INT64_MAX, true}, {1, false}, {7, true},
                                      {7, false},        {1, true},  {1000, false},
                                      {INT64_MAX, false}};
  std::vector<RunOptions> variants;
  for (std::uint64_t i = 0; i < 3; ++i)
    variants.push_back(kVariants[(random_case.seed + 2 * i) % 7]);
  std::optional<std::uint64_t> fingerprint;
  for (const RunOptions& options : variants) {
    const Result<EngineRun> run = RunEngine(engine_case, MakeLatency(random_case), options);
    if (!run.ok()) {
      return fmt::format("the engine refuses it: {}: {}", run.issues().front().path,
                         run.issues().front().message);
    }
    const std::string variant = fmt::format("slices of {}, {}: ", options.slice,
                                            options.observe ? "observed" : "not observed");
    if (options.observe) {
      if (Mismatch mismatch = CompareSteps(reference.steps, run.value().steps)) {
        return variant + *mismatch;
      }
    }
    if (Mismatch mismatch = CompareReport(reference, run.value())) {
      return variant + *mismatch;
    }
    if (!fingerprint) fingerprint = run.value().report.fingerprint;
    if (*fingerprint != run.value().report.fingerprint) return variant + "another fingerprint";
  }
  return std::nullopt;
}

std::optional<std::string> RunCases(std::uint64_t seed, std::int64_t cases, CasesCoverage* coverage,
                                    RandomCase (*make)(std::uint64_t)) {
  for (std::int64_t i = 0; i < cases; ++i) {
    const RandomCase random_case = make(seed + static_cast<std::uint64_t>(i));
    const ReferenceOutput reference = RunReference(random_case);
    if (coverage != nullptr) coverage->Add(reference);
    if (!FirstMismatch(random_case, reference)) continue;
    const RandomCase smallest = Shrink(random_case);
    return Describe(smallest) + FirstMismatch(smallest, RunReference(smallest)).value_or("");
  }
  return std::nullopt;
}

}  // namespace servecast::testing
