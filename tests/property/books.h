// Two who watch every step of a run and believe nothing of what they see: they keep their own books
// and the first invariant that one breaks (the numbers are those of tests/README.md).
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "serving/hooks.h"
#include "testing/random_cases.h"
#include "testing/reference_stalls.h"
#include "testing/reference_take_up.h"

namespace servecast::testing {

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
    const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
    for (std::size_t i = 0; i < books_.size(); ++i) {
      books_[i].prompt = random_case.requests.prompt_tokens[i];
      if (books_[i].prompt < max_len_) arrivals_.push_back(static_cast<RequestId>(i));
    }
    const auto arrival = [&](RequestId r) {
      return random_case.requests.arrival[static_cast<std::size_t>(r)];
    };
    std::stable_sort(arrivals_.begin(), arrivals_.end(),
                     [&](RequestId a, RequestId b) { return arrival(a) < arrival(b); });
    ReferenceTakeUp front_end(engine_.api_server_count);
    for (const RequestId r : arrivals_) {
      Of(r).enqueue = front_end.Enter(arrival(r), latency->TakeUpTimes(Of(r).prompt));
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
      const bool refused = state == RequestState::kDropped || state == RequestState::kRejected;
      if (complete) CheckOf(i, completed || refused, "I2", "all end");
      if (book.generated == 0) continue;
      const TimeNs delay = case_.latency.output_token_delay;
      CheckOf(i, results.first_token[i] == book.first_token + delay + book.late, "I5",
              "first token");
      CheckOf(i, case_.requests.arrival[i] <= book.enqueue, "I5", "arrival <= enqueue");
      CheckOf(i, book.enqueue <= results.first_scheduled[i], "I5", "enqueue <= scheduled");
      CheckOf(i, results.first_scheduled[i] < results.first_token[i], "I5", "scheduled < token");
      if (!completed) continue;
      CheckOf(i, results.first_token[i] <= results.completion[i], "I5", "token <= completion");
      CheckOf(i, results.completion[i] == book.last_token + limit * delay + book.late, "I5",
              "completion");
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
    TimeNs late = 0;
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
      Check((member.sampled > 0) == (book.computed == known), "I6", "sampled when all is computed");
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
    const auto reserve = static_cast<std::int64_t>(
        std::ceil(engine_.admission_reserve * static_cast<double>(Blocks(known))));
    const std::int64_t blocks =
        running_.empty() ? Blocks(must_fit) : std::max(Blocks(must_fit), reserve) + watermark;
    Check(blocks > step.free_after_schedule, "I8",
          "the head of the queue could have been admitted");
  }

  void Deliver(const StepMember& member, const StepRecord& step) {
    Book& book = Of(member.id);
    if (book.first_scheduled < 0) book.first_scheduled = step.start;
    if (!member.sampled) return;
    ++tokens_made_;
    ++book.generated;
    if (book.generated == 1) {
      book.first_token = step.end;
      for (const StepMember& other : step.members) {
        book.late += other.sampled ? case_.latency.delivery_delay : 0;
      }
      book.late += ReferenceStall(case_.latency.stalls, 1, 0, step.end + book.late);
    }
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
    Check(engine.async_scheduling || Stages() > 1 || step.scheduled == step.start, "I3",
          "starts when scheduled");
    if (Stages() > 1) {
      CheckStages(step);
    } else {
      Check(step.start >= last_end_, "I3", "one step at a time");
    }
    Check(!case_.horizon || step.start < *case_.horizon, "I3", "none starts at the horizon");
    last_end_ = step.end;

    for (const RequestId id : step.preempted) {
      Book& book = Of(id);
      // Its last token may have been in flight then, and be recorded before this step.
      const std::int64_t in_flight_since = step.index - (engine.async_scheduling ? 1
                                                         : Stages() > 1          ? Stages() - 1
                                                                                 : 0);
      const bool in_flight = book.finished_in >= in_flight_since;
      Check(book.running || in_flight, "I2", "preempted, not running");
      book.running = false;
      ++book.preemptions;
    }
    std::int64_t tokens = 0;
    std::set<RequestId> seen;
    for (const StepMember& member : step.members) {
      Check(seen.insert(member.id).second, "I7", "a request is in a step once");
      CheckMember(member);
      if (Stages() > 1) {
        Check(step.scheduled >= Of(member.id).known_at, "I6", "computed before it was known");
        if (member.sampled) Of(member.id).known_at = step.end;
      }
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
      Of(id).finished_in = step.index;
    }
    Check(step.running_after_step > 0 || step.free_after_step == usable, "I4",
          "blocks in use, and nobody runs");
  }

  void CheckResults(const RequestResults& results) {
    now_ = -1;
    for (std::size_t i = 0; i < books_.size(); ++i) {
      const Book& book = books_[i];
      const std::int64_t prompt = case_.requests.prompt_tokens[i];
      const bool completed = results.state[i] == RequestState::kCompleted;
      const std::int64_t unread = book.generated - results.generated[i];
      const bool gave_up = results.state[i] == RequestState::kTimedOut;
      const bool may_be_unread = gave_up && (case_.engine.async_scheduling || Stages() > 1);
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
    std::int64_t finished_in = -2;
    TimeNs known_at = 0;  // its latest token
    std::int64_t computed = 0, generated = 0, preemptions = 0;
    std::int64_t cached = 0;     // by the first admission
    std::int64_t prefilled = 0;  // of the prompt, in all steps
  };

  Book& Of(RequestId id) { return books_[static_cast<std::size_t>(id)]; }

  void Check(bool holds, const char* rule, const char* what) {
    if (holds || !broken_.empty()) return;
    broken_ = fmt::format("{} broken in step {}: {}", rule, now_, what);
  }

  std::int64_t Stages() const {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(case_.stages.size()));
  }

  // Batches go from stage to stage, each of which has one at a time; no more than stages in flight.
  void CheckStages(const StepRecord& step) {
    const auto count = static_cast<std::size_t>(Stages());
    stage_free_.resize(count, 0);
    Check(step.stages.size() == count, "I3", "every stage has the batch");
    if (step.stages.size() != count) return;
    Check(step.stages.front().start == step.start, "I3", "the first stage starts the step");
    Check(step.stages.back().end == step.end, "I3", "the last stage ends it");
    TimeNs ready = step.start;
    for (std::size_t s = 0; s < count; ++s) {
      const StageSpan& span = step.stages[s];
      Check(span.start == std::max(ready, stage_free_[s]), "I3",
            "a stage is never idle for nothing");
      Check(span.end > span.start, "I3", "a stage takes time");
      stage_free_[s] = ready = span.end;
    }
    ends_.push_back(step.end);
    if (ends_.size() <= count) return;
    Check(ends_.front() <= step.scheduled, "I7", "as many batches in flight as stages");
    ends_.pop_front();
  }

  // Whether a schedule call can preempt and give no step, so that no record shows the preemption:
  // when the victim by priority is who needs the block, or the others' last tokens are in flight.
  bool CanPreemptAll() const {
    const SchedulerSpec& scheduler = case_.scheduler;
    return case_.engine.async_scheduling || Stages() > 1 || scheduler.preemption == "priority" ||
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
    Check((member.sampled > 0) == (book.computed == known), "I6", "sampled when all is computed");
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
  std::vector<TimeNs> stage_free_;
  std::deque<TimeNs> ends_;  // of the latest steps
  std::int64_t steps_ = 0, now_ = 0, tokens_made_ = 0;
  std::string broken_;
};

}  // namespace servecast::testing
