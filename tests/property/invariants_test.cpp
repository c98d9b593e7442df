// The numbered invariants of the design on random scenarios, from outside: the public interface of
// Simulation and an observer of its steps, with a bookkeeper that believes nothing of what it sees.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
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

// Books every step and keeps the first rule that one breaks.
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

  std::int64_t tokens_delivered() const { return tokens_delivered_; }
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
    ++tokens_delivered_;
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
  std::int64_t steps_ = 0, now_ = 0, tokens_in_step_ = 0, tokens_delivered_ = 0;
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

TEST(Invariants, RandomScenarios_HoldAtEverySliceAndStep) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    const EngineCase engine_case = EngineCaseOf(random_case);
    Bookkeeper books(random_case);
    SimulationHooks hooks;
    hooks.latency = MakeLatency(random_case.latency);
    hooks.observer = &books;
    Result<Simulation> created = MakeSimulation(engine_case, std::move(hooks));
    ASSERT_TRUE(created.ok()) << created.issues().front().message << Describe(random_case);
    Simulation& simulation = created.value();

    Report before;
    double progress = simulation.Progress();
    for (bool finished = false; !finished;) {
      const std::int64_t slice = SliceOf(seed);
      finished = simulation.Advance(slice);
      const Report report = simulation.Snapshot();
      ASSERT_EQ(FirstBroken(before, report), "") << Describe(random_case);
      ASSERT_LE(report.steps - before.steps, slice) << "a slice is at most its steps";
      ASSERT_EQ(report.finished, finished) << Describe(random_case);
      ASSERT_EQ(report.output_tokens, books.tokens_delivered()) << "I6" << Describe(random_case);
      ASSERT_EQ(books.broken(), "") << Describe(random_case);
      ASSERT_GE(simulation.Progress(), progress) << "I3" << Describe(random_case);
      progress = simulation.Progress();
      ASSERT_EQ(progress == 1, finished) << Describe(random_case);
      before = report;
    }
    books.CheckResults(ResultsOf(before, random_case.requests), !random_case.horizon);
    ASSERT_EQ(books.broken(), "") << Describe(random_case);
    // I6: each token is somebody's first or the end of a gap.
    ASSERT_EQ(before.itl_ms.n + before.ttft_ms.n, before.output_tokens) << Describe(random_case);
    ASSERT_TRUE(simulation.Advance(1)) << "a finished run stays so";
    ASSERT_EQ(simulation.Snapshot().fingerprint, before.fingerprint);
  }
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
    const RandomCase random_case = MakeRandomCase(seed);
    const Result<EngineRun> run =
        RunEngine(EngineCaseOf(random_case), MakeLatency(random_case.latency), {});
    ASSERT_TRUE(run.ok());
    // A horizon may cut off what changes; where all is dropped no step can change.
    if (random_case.horizon || run.value().report.steps == 0) continue;
    RandomCase changed = random_case;
    changed.latency.base += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
    changed = random_case;
    changed.requests.arrival.back() += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
    changed = random_case;
    changed.requests.prompt_tokens.front() += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
  }
}

}  // namespace
}  // namespace servecast::testing
