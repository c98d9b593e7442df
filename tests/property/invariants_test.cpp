// The numbered invariants of the design on random scenarios, from outside: the public interface of
// Simulation and an observer of its steps, with a bookkeeper that believes nothing of what it sees.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing {
namespace {

constexpr std::uint64_t kCases = 150;
constexpr std::uint64_t kFirstSeed = 100'000;  // not those of the differential test

// The case for an engine whose queue and batch can be booked from outside: first come, first
// served, synchronous, without prefix caching, the last one running as the victim. Turns come by
// themselves, at the arrival of the first.
RandomCase PlainCase(std::uint64_t seed) {
  RandomCase plain = MakeRandomCase(seed);
  plain.engine.enable_prefix_caching = false;
  plain.engine.async_scheduling = false;
  plain.scheduler = SchedulerSpec{};
  RequestTable& requests = plain.requests;
  for (std::size_t i = 1; i < requests.arrival.size(); ++i) {
    if (requests.arrival[i] < 0) requests.arrival[i] = requests.arrival[i - 1];
  }
  requests.think.clear();
  requests.timeout.clear();
  return plain;
}

// A case that was changed may lose its end if victims are chosen by priority; at the tail it has
// one.
RandomCase WithTailVictims(RandomCase random_case) {
  random_case.scheduler.preemption = "tail";
  return random_case;
}

// Books every step of a plain case and keeps the first rule that one breaks.
class Bookkeeper : public StepObserver {
 public:
  explicit Bookkeeper(const RandomCase& random_case)
      : case_(random_case),
        engine_(random_case.engine),
        usable_(random_case.PoolBlocks() - 1),
        books_(static_cast<std::size_t>(random_case.requests.size())) {
    max_len_ = std::min(random_case.model_max_len, usable_ * engine_.block_size);
    if (engine_.max_model_len) max_len_ = std::min(max_len_, *engine_.max_model_len);
    if (!engine_.enable_chunked_prefill) {
      max_len_ = std::min(max_len_, engine_.max_num_batched_tokens + 1);
    }
    const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case.latency);
    for (std::size_t i = 0; i < books_.size(); ++i) {
      const std::int64_t prompt = random_case.requests.prompt_tokens[i];
      books_[i].prompt = prompt;
      books_[i].enqueue = random_case.requests.arrival[i] + latency->EnqueueDelay(prompt);
      if (prompt < max_len_) arrivals_.push_back(static_cast<RequestId>(i));
    }
    std::stable_sort(arrivals_.begin(), arrivals_.end(),
                     [this](RequestId a, RequestId b) { return Of(a).enqueue < Of(b).enqueue; });
  }

  void OnStep(const StepRecord& step) override {
    now_ = step.index;
    CheckClock(step);
    while (!arrivals_.empty() && Of(arrivals_.front()).enqueue <= step.scheduled) {
      waiting_.push_back(arrivals_.front());
      arrivals_.pop_front();
    }
    for (const RequestId id : step.preempted) Preempt(id);
    CheckMembers(step);
    CheckLevels(step);
    CheckWorkConserving(step);
    for (const StepMember& member : step.members) Deliver(member, step);
    for (const RequestId id : step.finished) Finish(id);
    Check(step.running_after_step == Count(running_), "I1", "running after the step");
    Check(step.waiting_after_step == Count(waiting_), "I1", "waiting after the step");
    Check(step.free_after_step == usable_ - Held(), "I4", "free after the step");
    last_end_ = step.end;
  }

  // What a finished run's report says of its requests.
  void CheckResults(const RequestResults& results, bool complete) {
    now_ = -1;
    for (std::size_t i = 0; i < books_.size(); ++i) {
      const Book& book = books_[i];
      const bool drop = book.prompt >= max_len_;
      const RequestState state = results.state[i];
      const std::int64_t limit = Limit(i);
      CheckOf(i, results.generated[i] == book.generated, "I6", "tokens delivered");
      CheckOf(i, results.preemptions[i] == book.preemptions, "I2", "preemptions");
      CheckOf(i, results.first_scheduled[i] == book.first_scheduled, "I5", "first_scheduled");
      const bool completed = state == RequestState::kCompleted;
      CheckOf(i, completed == (book.generated == limit && !drop), "I2", "completed");
      CheckOf(i, completed == (results.completion[i] >= 0), "I2", "completion time");
      CheckOf(i, (book.generated > 0) == (results.first_token[i] >= 0), "I2", "first token time");
      CheckOf(i, (state == RequestState::kRunning) == IsRunning(i), "I2", "running");
      if (drop) {
        CheckOf(i, book.first_scheduled < 0, "I2", "a dropped request ran");
        CheckOf(i, state == RequestState::kDropped || state == RequestState::kPending, "I2",
                "a prompt that cannot be served");
      }
      if (complete) CheckOf(i, completed || state == RequestState::kDropped, "I2", "all end");
      if (book.generated == 0) continue;
      const TimeNs delay = case_.latency.output_token_delay;
      CheckOf(i, results.first_token[i] == book.first_token + delay, "I5", "first token");
      CheckOf(i, case_.requests.arrival[i] <= book.enqueue, "I5", "arrival <= enqueue");
      CheckOf(i, book.enqueue <= results.first_scheduled[i], "I5", "enqueue <= scheduled");
      CheckOf(i, results.first_scheduled[i] < results.first_token[i], "I5", "scheduled < token");
      if (!completed) continue;
      CheckOf(i, results.first_token[i] <= results.completion[i], "I5", "token <= completion");
      CheckOf(i, results.completion[i] == book.last_token + limit * delay, "I5", "completion");
    }
    if (running_.empty()) Check(Held() == 0, "I4", "no request, no block");
  }

  std::int64_t tokens_made() const { return tokens_made_; }
  const std::string& broken() const { return broken_; }

 private:
  // What the bookkeeper knows of a request.
  struct Book {
    std::int64_t prompt = 0;
    TimeNs enqueue = 0, first_scheduled = -1, first_token = -1, last_token = -1;
    std::int64_t computed = 0, generated = 0, preemptions = 0;
  };

  Book& Of(RequestId id) { return books_[static_cast<std::size_t>(id)]; }
  template <class List>
  static std::int64_t Count(const List& list) {
    return static_cast<std::int64_t>(list.size());
  }
  std::int64_t Limit(std::size_t i) const {
    return std::min<std::int64_t>(case_.requests.output_tokens[i], max_len_ - books_[i].prompt);
  }
  bool IsRunning(std::size_t i) const {
    return std::count(running_.begin(), running_.end(), static_cast<RequestId>(i)) > 0;
  }
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, engine_.block_size); }
  std::int64_t Held() {
    std::int64_t blocks = 0;
    for (const RequestId id : running_) blocks += Blocks(Of(id).computed);
    return blocks;
  }

  void Check(bool holds, const char* rule, const char* what) {
    if (holds || !broken_.empty()) return;
    broken_ = fmt::format("{} broken in step {}: {}", rule, now_, what);
  }
  void CheckOf(std::size_t id, bool holds, const char* rule, const char* what) {
    if (holds || !broken_.empty()) return;
    broken_ = fmt::format("{} broken by request {}: {}", rule, id, what);
  }

  // I3, and that the replica idles only when there is nobody to serve.
  void CheckClock(const StepRecord& step) {
    Check(step.index == steps_++, "I3", "steps are numbered in turn");
    Check(step.scheduled == step.start, "I3", "a step starts when it is scheduled");
    Check(step.start >= last_end_, "I3", "one step at a time");
    Check(step.end > step.start, "I3", "a step takes time");
    Check(!case_.horizon || step.start < *case_.horizon, "I3", "none starts at the horizon");
    TimeNs earliest = last_end_;
    if (running_.empty() && waiting_.empty() && !arrivals_.empty()) {
      earliest = std::max(last_end_, Of(arrivals_.front()).enqueue);
    }
    Check(step.start == earliest, "I8", "no idle time while somebody waits");
  }

  void Preempt(RequestId id) {
    Check(!running_.empty() && running_.back() == id, "I2", "the victim is the last one running");
    running_.erase(std::remove(running_.begin(), running_.end(), id), running_.end());
    waiting_.push_front(id);
    ++Of(id).preemptions;
    Of(id).computed = 0;
  }

  // I2, I6 and I7 of the members; those that were admitted leave the queue in its order.
  void CheckMembers(const StepRecord& step) {
    std::int64_t tokens = 0;
    std::set<RequestId> seen;
    for (const StepMember& member : step.members) {
      Book& book = Of(member.id);
      Check(seen.insert(member.id).second, "I7", "a request is in a step once");
      if (member.kind == MemberKind::kContinued) {
        Check(IsRunning(static_cast<std::size_t>(member.id)), "I2", "continued, not running");
      } else {
        Check(step.preempted.empty(), "I2", "no admission in a step that preempted");
        const bool head = !waiting_.empty() && waiting_.front() == member.id;
        Check(head, "I11", "admitted out of order");
        if (head) waiting_.pop_front();
        running_.push_back(member.id);
        const bool resumed = member.kind == MemberKind::kResumed;
        Check(resumed == (book.preemptions > 0), "I2", "new or resumed");
      }
      const std::int64_t known = book.prompt + book.generated;
      Check(member.tokens >= 1, "I6", "a member computes something");
      Check(member.computed_before == book.computed, "I6", "tokens computed before");
      book.computed += member.tokens;
      Check(book.computed <= known, "I6", "no token is computed before it is known");
      Check(member.sampled == (book.computed == known), "I6", "sampled when all is computed");
      if (engine_.long_prefill_token_threshold > 0) {
        Check(member.tokens <= engine_.long_prefill_token_threshold, "I7", "threshold");
      }
      tokens += member.tokens;
    }
    tokens_in_step_ = tokens;
    Check(tokens >= 1 && tokens <= engine_.max_num_batched_tokens, "I7", "token budget");
    Check(Count(running_) <= engine_.max_num_seqs, "I7", "max_num_seqs");
  }

  void CheckLevels(const StepRecord& step) {
    Check(step.running_after_schedule == Count(running_), "I1", "running after the schedule");
    Check(step.waiting_after_schedule == Count(waiting_), "I1", "waiting after the schedule");
    Check(step.free_after_schedule >= 0, "I4", "free blocks are not negative");
    Check(step.free_after_schedule == usable_ - Held(), "I4", "used + free = total");
  }

  // I8: who still waits at the head could not have been admitted.
  void CheckWorkConserving(const StepRecord& step) {
    const std::int64_t budget = engine_.max_num_batched_tokens - tokens_in_step_;
    if (waiting_.empty() || !step.preempted.empty() || budget == 0) return;
    if (Count(running_) >= engine_.max_num_seqs) return;
    const Book& head = Of(waiting_.front());
    const std::int64_t known = head.prompt + head.generated;
    const std::int64_t threshold = engine_.long_prefill_token_threshold;
    const std::int64_t chunk = threshold > 0 ? std::min(known, threshold) : known;
    if (!engine_.enable_chunked_prefill && chunk > budget) return;
    const std::int64_t must_fit =
        engine_.scheduler_reserve_full_isl ? known : std::min(chunk, budget);
    const auto watermark = static_cast<std::int64_t>(
        std::floor(engine_.watermark * static_cast<double>(case_.PoolBlocks())));
    Check(Blocks(must_fit) + (running_.empty() ? 0 : watermark) > step.free_after_schedule, "I8",
          "the head of the queue could have been admitted");
  }

  void Deliver(const StepMember& member, const StepRecord& step) {
    Book& book = Of(member.id);
    if (book.first_scheduled < 0) book.first_scheduled = step.start;
    if (!member.sampled) return;
    ++tokens_made_;
    ++book.generated;
    if (book.generated == 1) book.first_token = step.end;
    book.last_token = step.end;
    const auto i = static_cast<std::size_t>(member.id);
    const bool ended =
        std::find(step.finished.begin(), step.finished.end(), member.id) != step.finished.end();
    Check(ended == (book.generated == Limit(i)), "I6", "a request ends with its last token");
    Check(book.prompt + book.generated <= max_len_, "I7", "max_model_len");
  }

  void Finish(RequestId id) {
    Check(IsRunning(static_cast<std::size_t>(id)), "I2", "finished, not running");
    running_.erase(std::remove(running_.begin(), running_.end(), id), running_.end());
  }

  const RandomCase& case_;
  const EngineSpec& engine_;
  const std::int64_t usable_;
  std::int64_t max_len_ = 0;
  std::vector<Book> books_;
  std::deque<RequestId> arrivals_;  // not yet in the queue
  std::deque<RequestId> waiting_;
  std::vector<RequestId> running_;
  TimeNs last_end_ = 0;
  std::int64_t steps_ = 0, now_ = 0, tokens_in_step_ = 0, tokens_made_ = 0;
  std::string broken_;
};

// What holds of every step of every engine, whatever its queue, cache and scheduling.
class StepChecker : public StepObserver {
 public:
  explicit StepChecker(const RandomCase& random_case)
      : case_(random_case), books_(static_cast<std::size_t>(random_case.requests.size())) {}

  void OnStep(const StepRecord& step) override {
    const EngineSpec& engine = case_.engine;
    const std::int64_t usable = case_.PoolBlocks() - 1;
    now_ = step.index;
    Check(step.index == steps_++, "I3", "steps are numbered in turn");
    Check(step.scheduled <= step.start && step.start < step.end, "I3", "scheduled <= start < end");
    Check(engine.async_scheduling || step.scheduled == step.start, "I3", "starts when scheduled");
    Check(step.start >= last_end_, "I3", "one step at a time");
    Check(!case_.horizon || step.start < *case_.horizon, "I3", "none starts at the horizon");
    last_end_ = step.end;

    for (const RequestId id : step.preempted) {
      Book& book = Of(id);
      Check(book.running, "I2", "preempted, not running");
      book.running = false;
      ++book.preemptions;
    }
    std::int64_t tokens = 0;
    std::set<RequestId> seen;
    for (const StepMember& member : step.members) {
      Check(seen.insert(member.id).second, "I7", "a request is in a step once");
      CheckMember(member);
      tokens += member.tokens;
    }
    Check(tokens >= 1 && tokens <= engine.max_num_batched_tokens, "I7", "token budget");
    Check(step.running_after_schedule <= engine.max_num_seqs, "I7", "max_num_seqs");
    for (const std::int64_t free : {step.free_after_schedule, step.free_after_step}) {
      Check(free >= 0 && free <= usable, "I4", "0 <= free <= total");
    }
    for (const RequestId id : step.finished) {
      Check(Of(id).running && seen.count(id) > 0, "I2", "finished, not running");
      Of(id).running = false;
    }
  }

  void CheckResults(const RequestResults& results) {
    now_ = -1;
    for (std::size_t i = 0; i < books_.size(); ++i) {
      const Book& book = books_[i];
      const std::int64_t prompt = case_.requests.prompt_tokens[i];
      const bool completed = results.state[i] == RequestState::kCompleted;
      const std::int64_t unread = book.generated - results.generated[i];
      const bool gave_up = results.state[i] == RequestState::kTimedOut;
      const bool may_be_unread = gave_up && case_.engine.async_scheduling;
      Check(unread == 0 || (unread == 1 && may_be_unread), "I6", "tokens delivered");
      Check(results.preemptions[i] == book.preemptions ||
                (results.preemptions[i] > book.preemptions && CanPreemptAll()),
            "I2", "preemptions");
      Check(results.cached_tokens[i] == book.cached, "I6", "tokens found in the cache");
      Check(completed == (results.completion[i] >= 0), "I2", "completion time");
      if (!completed || results.preemptions[i] > 0) continue;
      Check(book.cached + book.prefilled == prompt, "I6", "cached + prefilled = prompt");
    }
  }

  std::int64_t tokens_made() const { return tokens_made_; }
  const std::string& broken() const { return broken_; }

 private:
  struct Book {
    bool running = false, scheduled = false;
    std::int64_t computed = 0, generated = 0, preemptions = 0;
    std::int64_t cached = 0;     // by the first admission
    std::int64_t prefilled = 0;  // of the prompt, in all steps
  };

  Book& Of(RequestId id) { return books_[static_cast<std::size_t>(id)]; }

  void Check(bool holds, const char* rule, const char* what) {
    if (holds || !broken_.empty()) return;
    broken_ = fmt::format("{} broken in step {}: {}", rule, now_, what);
  }

  // Whether a schedule call can preempt and give no step, so that no record shows the preemption:
  // when the victim by priority is who needs the block, or the others' last tokens are in flight.
  bool CanPreemptAll() const {
    const SchedulerSpec& scheduler = case_.scheduler;
    return case_.engine.async_scheduling || scheduler.preemption == "priority" ||
           (scheduler.preemption == "auto" && scheduler.order == "priority_fcfs");
  }

  void CheckMember(const StepMember& member) {
    const EngineSpec& engine = case_.engine;
    Book& book = Of(member.id);
    const std::int64_t prompt = case_.requests.prompt_tokens[static_cast<std::size_t>(member.id)];
    const std::int64_t known = prompt + book.generated;
    const std::int64_t before = member.computed_before;
    if (member.kind == MemberKind::kContinued) {
      Check(book.running, "I2", "continued, not running");
      Check(before == book.computed, "I6", "tokens computed before");
    } else {
      if (book.running && member.kind == MemberKind::kResumed) {
        Check(CanPreemptAll(), "I2", "a preemption that no step shows");
        book.running = false;
        ++book.preemptions;
      }
      Check(!book.running, "I2", "admitted, but running");
      Check((member.kind == MemberKind::kResumed) == (book.preemptions > 0), "I2",
            "new or resumed");
      Check(before % engine.block_size == 0, "I6", "the cache has whole blocks");
      Check(before == 0 || engine.enable_prefix_caching, "I6", "a hit without a cache");
      if (!book.scheduled) book.cached = before;
      book.running = book.scheduled = true;
    }
    book.computed = before + member.tokens;
    book.prefilled += std::max<std::int64_t>(std::min(book.computed, prompt) - before, 0);
    Check(member.tokens >= 1, "I6", "a member computes something");
    Check(book.computed <= known, "I6", "no token is computed before it is known");
    Check(member.sampled == (book.computed == known), "I6", "sampled when all is computed");
    if (engine.long_prefill_token_threshold > 0) {
      Check(member.tokens <= engine.long_prefill_token_threshold, "I7", "threshold");
    }
    if (!member.sampled) return;
    ++book.generated;
    ++tokens_made_;
  }

  const RandomCase& case_;
  std::vector<Book> books_;
  TimeNs last_end_ = 0;
  std::int64_t steps_ = 0, now_ = 0, tokens_made_ = 0;
  std::string broken_;
};

std::int64_t SliceOf(std::uint64_t seed) {
  const std::int64_t slices[] = {1, 2, 5, 16, 100};
  return slices[seed % 5];
}

// I1 and I3 of one snapshot, and that nothing which only grows shrank since the one before.
std::string FirstBroken(const Report& before, const Report& report) {
  if (report.arrived != report.completed + report.queued + report.running + report.dropped +
                            report.timed_out + report.rejected) {
    return "I1: arrived = completed + queued + running + dropped + timed_out + rejected";
  }
  for (const std::int64_t count : {report.completed, report.queued, report.running, report.dropped,
                                   report.timed_out, report.rejected}) {
    if (count < 0) return "I1: no count is negative";
  }
  if (report.length_capped > report.completed) return "I1: the capped are among the completed";
  if (report.simulated_s < before.simulated_s) return "I3: time does not run backwards";
  if (report.arrived < before.arrived || report.completed < before.completed ||
      report.preemptions < before.preemptions || report.steps < before.steps ||
      report.output_tokens < before.output_tokens) {
    return "I1: a counter fell";
  }
  return "";
}

// Runs the case slice by slice under the eyes of `checker`; nothing if a rule broke.
template <class Checker>
void RunInSlices(const RandomCase& random_case, Checker& checker, Report& last) {
  SimulationHooks hooks;
  hooks.latency = MakeLatency(random_case.latency);
  hooks.observer = &checker;
  Result<Simulation> created = MakeSimulation(EngineCaseOf(random_case), std::move(hooks));
  ASSERT_TRUE(created.ok()) << created.issues().front().message << Describe(random_case);
  Simulation& simulation = created.value();

  double progress = simulation.Progress();
  for (bool finished = false; !finished;) {
    const std::int64_t slice = SliceOf(random_case.seed);
    finished = simulation.Advance(slice);
    const Report report = simulation.Snapshot();
    ASSERT_EQ(FirstBroken(last, report), "") << Describe(random_case);
    ASSERT_LE(report.steps - last.steps, slice) << "a slice is at most its steps";
    ASSERT_EQ(report.finished, finished) << Describe(random_case);
    // A token in flight is made, but not delivered, if its client gives up.
    const std::int64_t unread = checker.tokens_made() - report.output_tokens;
    ASSERT_GE(unread, 0) << "I6" << Describe(random_case);
    ASSERT_LE(unread, random_case.engine.async_scheduling ? report.timed_out : 0)
        << "I6" << Describe(random_case);
    ASSERT_EQ(checker.broken(), "") << Describe(random_case);
    ASSERT_GE(simulation.Progress(), progress) << "I3" << Describe(random_case);
    progress = simulation.Progress();
    ASSERT_EQ(progress == 1, finished) << Describe(random_case);
    last = report;
  }
  // I6: each token is somebody's first or the end of a gap.
  ASSERT_EQ(last.itl_ms.n + last.ttft_ms.n, last.output_tokens) << Describe(random_case);
  ASSERT_TRUE(simulation.Advance(1)) << "a finished run stays so";
  ASSERT_EQ(simulation.Snapshot().fingerprint, last.fingerprint);
}

TEST(Invariants, PlainScenarios_HoldAtEverySliceAndStep) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    const RandomCase random_case = PlainCase(seed);
    Bookkeeper books(random_case);
    Report report;
    RunInSlices(random_case, books, report);
    if (HasFatalFailure()) return;
    books.CheckResults(ResultsOf(report, random_case.requests), !random_case.horizon);
    ASSERT_EQ(books.broken(), "") << Describe(random_case);
  }
}

TEST(Invariants, RandomScenarios_HoldAtEverySliceAndStep) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    StepChecker checker(random_case);
    Report report;
    RunInSlices(random_case, checker, report);
    if (HasFatalFailure()) return;
    const RequestResults results = ResultsOf(report, random_case.requests);
    checker.CheckResults(results);
    ASSERT_EQ(std::accumulate(results.generated.begin(), results.generated.end(), std::int64_t{0}),
              report.output_tokens)
        << "I6" << Describe(random_case);
    ASSERT_EQ(checker.broken(), "") << Describe(random_case);
  }
}

EngineRun RunOf(const RandomCase& random_case) {
  Result<EngineRun> run =
      RunEngine(EngineCaseOf(random_case), MakeLatency(random_case.latency), {});
  EXPECT_TRUE(run.ok());
  return run.ok() ? std::move(run.value()) : EngineRun{};
}

TEST(Invariants, NothingInCommonNorPreempted_CachingChangesNothing) {
  int compared = 0;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    RandomCase random_case = WithTailVictims(MakeRandomCase(seed));
    RequestTable& requests = random_case.requests;
    if (!requests.think.empty()) continue;  // turns have their conversation in common
    requests.content.clear();
    requests.segments.clear();
    random_case.engine.enable_prefix_caching = false;
    const EngineRun without = RunOf(random_case);
    if (without.report.preemptions > 0) continue;
    random_case.engine.enable_prefix_caching = true;
    const EngineRun with = RunOf(random_case);
    ASSERT_EQ(with.steps, without.steps) << Describe(random_case);
    const RequestResults a = ResultsOf(with.report, requests);
    const RequestResults b = ResultsOf(without.report, requests);
    ASSERT_EQ(a.first_scheduled, b.first_scheduled) << Describe(random_case);
    ASSERT_EQ(a.first_token, b.first_token) << Describe(random_case);
    ASSERT_EQ(a.completion, b.completion) << Describe(random_case);
    ASSERT_EQ(a.generated, b.generated) << Describe(random_case);
    ASSERT_EQ(a.preemptions, b.preemptions) << Describe(random_case);
    ASSERT_EQ(a.cached_tokens, b.cached_tokens) << Describe(random_case);
    ASSERT_EQ(a.state, b.state) << Describe(random_case);
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TEST(Invariants, SharedPrefixes_CachingDoesNotLowerTheMedianThroughput) {
  std::vector<double> with, without;
  for (std::uint64_t seed = kFirstSeed; with.size() < 200; ++seed) {
    RandomCase random_case = WithTailVictims(MakeRandomCase(seed));
    if (random_case.requests.segments.empty()) continue;
    random_case.requests.timeout.clear();
    random_case.horizon.reset();
    for (const bool caching : {false, true}) {
      random_case.engine.enable_prefix_caching = caching;
      const Report report = RunOf(random_case).report;
      const auto tokens = static_cast<double>(report.output_tokens);
      (caching ? with : without)
          .push_back(report.simulated_s > 0 ? tokens / report.simulated_s : 0);
    }
  }
  EXPECT_GE(Median(with), Median(without));
}

std::uint64_t FingerprintOf(const RandomCase& random_case, const RunOptions& options) {
  const Result<EngineRun> run =
      RunEngine(EngineCaseOf(random_case), MakeLatency(random_case.latency), options);
  EXPECT_TRUE(run.ok());
  return run.ok() ? run.value().report.fingerprint : 0;
}

TEST(Invariants, I10_SameScenario_HasTheSameFingerprint) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 30; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    const std::uint64_t whole = FingerprintOf(random_case, {});
    EXPECT_EQ(whole, FingerprintOf(random_case, {})) << seed;
    EXPECT_EQ(whole, FingerprintOf(random_case, {.slice = 1, .observe = false})) << seed;
    EXPECT_EQ(whole, FingerprintOf(random_case, {.slice = 13, .observe = true})) << seed;
  }
}

TEST(Invariants, I10_OneNanosecondOrToken_ChangesTheFingerprint) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 30; ++seed) {
    const RandomCase random_case = WithTailVictims(MakeRandomCase(seed));
    const Result<EngineRun> run =
        RunEngine(EngineCaseOf(random_case), MakeLatency(random_case.latency), {});
    ASSERT_TRUE(run.ok());
    // A horizon may cut off what changes; where all is dropped no step can change.
    if (random_case.horizon || run.value().report.steps == 0) continue;
    RandomCase changed = random_case;
    changed.latency.base += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
    changed = random_case;
    // The last one that comes by itself; later turns have no arrival to change.
    std::vector<TimeNs>& arrival = changed.requests.arrival;
    *std::find_if(arrival.rbegin(), arrival.rend(), [](TimeNs at) { return at >= 0; }) += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
    changed = random_case;
    changed.requests.prompt_tokens.front() += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
  }
}

}  // namespace
}  // namespace servecast::testing
