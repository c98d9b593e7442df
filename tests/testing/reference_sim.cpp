// The reference in three parts: the KV block pool, the scheduler (one call: who computes how many
// tokens now), and the driver that passes time between calls and writes down what happened.
#include "testing/reference_sim.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <utility>

namespace servecast::testing {
namespace {

// Blocks by name, although only their number matters as long as no content is shared.
class KvPool {
 public:
  explicit KvPool(std::int64_t pool_blocks) {
    // Block 0 is reserved and never used (Settings).
    for (std::int64_t block = 1; block < pool_blocks; ++block) free_.push_back(block);
    usable_ = Free();
  }

  std::int64_t Usable() const { return usable_; }
  std::int64_t Free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t Used() const { return usable_ - Free(); }

  void Take(std::int64_t count, std::vector<std::int64_t>& holder) {
    SERVECAST_CHECK(count <= Free(), "reference: a block is taken that is not free");
    for (std::int64_t i = 0; i < count; ++i) {
      holder.push_back(free_.front());
      free_.pop_front();
    }
  }

  // Rule 19: from the last block to the first, all to the end of the list.
  void Release(std::vector<std::int64_t>& holder) {
    while (!holder.empty()) {
      free_.push_back(holder.back());
      holder.pop_back();
    }
  }

 private:
  std::deque<std::int64_t> free_;
  std::int64_t usable_ = 0;
};

struct Sequence {
  RequestId id = kNoRequest;
  std::int64_t prompt = 0;
  std::int64_t wanted = 0;  // output tokens until it ends
  bool capped = false;      // `wanted` is less than what was asked for

  std::int64_t generated = 0;
  std::int64_t computed = 0;  // tokens whose KV is done or scheduled
  std::vector<std::int64_t> blocks;
  bool prefilling = true;  // has not sampled since it was last admitted
  bool preempted = false;  // since its last admission
  TimeNs last_seen = -1;   // when the client saw its latest token

  std::int64_t Known() const { return prompt + generated; }
};

struct Member {
  Sequence* sequence = nullptr;
  StepMember record;
  bool decode = false;
};

struct ScheduledStep {
  std::vector<Member> members;
  std::vector<RequestId> preempted;

  std::int64_t Tokens() const {
    std::int64_t sum = 0;
    for (const Member& member : members) sum += member.record.tokens;
    return sum;
  }
};

class Scheduler {
 public:
  Scheduler(const EngineSpec& engine, std::int64_t pool_blocks, std::int64_t max_len)
      : engine_(engine),
        max_len_(max_len),
        watermark_blocks_(static_cast<std::int64_t>(
            std::floor(engine.watermark * static_cast<double>(pool_blocks)))),
        pool_(pool_blocks) {}

  void Enqueue(Sequence* sequence) { waiting_.push_back(sequence); }

  // One schedule call (rules 1 to 12).
  ScheduledStep Schedule() {
    ScheduledStep step;
    std::int64_t budget = engine_.max_num_batched_tokens;
    ScheduleRunning(step, budget);
    if (step.preempted.empty()) Admit(step, budget);  // rule 11
    for (Member& member : step.members) {
      Sequence& sequence = *member.sequence;
      sequence.computed += member.record.tokens;
      member.record.sampled = sequence.computed >= sequence.Known();  // rule 5
    }
    return step;
  }

  // A token of it is known; true when it was the last one.
  bool Sampled(Sequence& sequence) {
    sequence.prefilling = false;
    ++sequence.generated;
    if (sequence.generated < sequence.wanted) return false;
    pool_.Release(sequence.blocks);
    running_.erase(std::find(running_.begin(), running_.end(), &sequence));
    return true;
  }

  const KvPool& Pool() const { return pool_; }
  const std::vector<Sequence*>& Running() const { return running_; }
  const std::deque<Sequence*>& Waiting() const { return waiting_; }
  ReferenceCoverage& Coverage() { return coverage_; }

 private:
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, engine_.block_size); }

  std::int64_t CutToThreshold(std::int64_t tokens) const {
    const std::int64_t threshold = engine_.long_prefill_token_threshold;
    return threshold > 0 ? std::min(tokens, threshold) : tokens;
  }

  void ScheduleRunning(ScheduledStep& step, std::int64_t& budget) {
    std::size_t at = 0;
    while (at < running_.size() && budget > 0) {
      Sequence* sequence = running_[at];
      std::int64_t tokens = CutToThreshold(sequence->Known() - sequence->computed);  // rule 2
      tokens = std::min(tokens, budget);
      tokens = std::min(tokens, max_len_ - sequence->computed - 1);
      SERVECAST_CHECK(tokens > 0, "reference: a running request has nothing to compute");
      if (!MakeRoom(sequence, tokens, step)) return;  // rule 9: it went itself
      step.members.push_back(Decide(sequence, tokens, MemberKind::kContinued));
      budget -= tokens;
      ++at;
    }
    coverage_.skipped += static_cast<std::int64_t>(running_.size() - at);
  }

  // Rules 6, 9, 10: blocks for a running request; false when it had to preempt itself.
  bool MakeRoom(Sequence* sequence, std::int64_t tokens, ScheduledStep& step) {
    for (;;) {
      const std::int64_t needed =
          Blocks(sequence->computed + tokens) - static_cast<std::int64_t>(sequence->blocks.size());
      if (needed <= pool_.Free()) {
        pool_.Take(needed, sequence->blocks);
        return true;
      }
      Sequence* victim = running_.back();
      running_.pop_back();
      if (victim == sequence) ++coverage_.self_preemptions;
      if (victim->prefilling) ++coverage_.prefill_preemptions;
      Preempt(victim);
      step.preempted.push_back(victim->id);
      if (victim == sequence) return false;
    }
  }

  void Preempt(Sequence* victim) {
    pool_.Release(victim->blocks);
    victim->computed = 0;
    victim->preempted = true;
    victim->prefilling = true;
    waiting_.push_front(victim);
  }

  void Admit(ScheduledStep& step, std::int64_t& budget) {
    while (!waiting_.empty() && budget > 0 &&
           static_cast<std::int64_t>(running_.size()) < engine_.max_num_seqs) {
      Sequence* sequence = waiting_.front();
      std::int64_t tokens = CutToThreshold(sequence->Known());
      if (!engine_.enable_chunked_prefill && tokens > budget) {  // rule 3
        ++coverage_.refused_unchunked;
        return;
      }
      tokens = std::min(tokens, budget);
      if (!Admissible(Blocks(tokens), Blocks(sequence->Known()))) return;
      pool_.Take(Blocks(tokens), sequence->blocks);
      waiting_.pop_front();
      running_.push_back(sequence);
      step.members.push_back(
          Decide(sequence, tokens, sequence->preempted ? MemberKind::kResumed : MemberKind::kNew));
      if (sequence->preempted) ++coverage_.resumes;
      sequence->preempted = false;
      budget -= tokens;
    }
  }

  // Rules 7 and 8: may blocks for a first chunk be taken, given what all known tokens will need?
  bool Admissible(std::int64_t first_chunk, std::int64_t all_known) {
    const std::int64_t watermark = running_.empty() ? 0 : watermark_blocks_;
    const std::int64_t needed =
        engine_.scheduler_reserve_full_isl ? std::max(first_chunk, all_known) : first_chunk;
    if (needed + watermark <= pool_.Free()) return true;
    if (needed <= pool_.Free()) {
      ++coverage_.refused_by_watermark;
    } else if (first_chunk + watermark <= pool_.Free()) {
      ++coverage_.refused_by_full_prompt;
    }
    return false;
  }

  static Member Decide(Sequence* sequence, std::int64_t tokens, MemberKind kind) {
    Member member;
    member.sequence = sequence;
    member.decode = !sequence->prefilling;
    member.record.id = sequence->id;
    member.record.tokens = tokens;
    member.record.computed_before = sequence->computed;
    member.record.kind = kind;
    return member;
  }

  const EngineSpec engine_;
  const std::int64_t max_len_;
  const std::int64_t watermark_blocks_;
  KvPool pool_;
  std::vector<Sequence*> running_;  // in order of admission
  std::deque<Sequence*> waiting_;
  ReferenceCoverage coverage_;
};

class Driver {
 public:
  explicit Driver(const ReferenceInput& input)
      : input_(input),
        max_len_(MaxLen(input)),
        scheduler_(input.engine, input.pool_blocks, max_len_) {
    output_.results.Resize(input.requests.size());
    for (std::int64_t row = 0; row < input.requests.size(); ++row) AddRequest(row);
    std::stable_sort(enqueues_.begin(), enqueues_.end(),
                     [](const Enqueue& a, const Enqueue& b) { return a.time < b.time; });
  }

  ReferenceOutput Run() {
    for (;;) {
      for (Sequence* sequence : enqueued_) scheduler_.Enqueue(sequence);
      enqueued_.clear();
      const bool work = !scheduler_.Running().empty() || !scheduler_.Waiting().empty();
      if (work && (!input_.horizon || now_ < *input_.horizon)) {
        Execute(scheduler_.Schedule());
        continue;
      }
      // Nothing can be done before the next request comes.
      if (next_enqueue_ == enqueues_.size()) break;
      const TimeNs next = enqueues_[next_enqueue_].time;
      if (input_.horizon && next >= *input_.horizon) break;
      PassTime(next);
    }
    Finish();
    return std::move(output_);
  }

 private:
  struct Enqueue {
    TimeNs time = 0;
    Sequence* sequence = nullptr;
  };

  static std::int64_t MaxLen(const ReferenceInput& input) {
    std::int64_t max_len =
        std::min(input.model_max_len, (input.pool_blocks - 1) * input.engine.block_size);
    if (input.engine.max_model_len) max_len = std::min(max_len, *input.engine.max_model_len);
    if (!input.engine.enable_chunked_prefill) {
      // A prompt, and all that a resumed request has to recompute, must fit one step; vLLM refuses
      // to start where it might not.
      max_len = std::min(max_len, input.engine.max_num_batched_tokens + 1);
    }
    return max_len;
  }

  bool CanNeverFit(std::int64_t prompt) const { return prompt >= max_len_; }

  void AddRequest(std::int64_t row) {
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t prompt = input_.requests.prompt_tokens[at];
    if (CanNeverFit(prompt)) return;
    auto sequence = std::make_unique<Sequence>();
    sequence->id = static_cast<RequestId>(row);
    sequence->prompt = prompt;
    const std::int64_t asked = input_.requests.output_tokens[at];
    sequence->wanted = std::min(asked, max_len_ - prompt);
    sequence->capped = sequence->wanted < asked;
    const TimeNs time = input_.requests.arrival[at] + input_.latency.EnqueueDelay(prompt);
    enqueues_.push_back({time, sequence.get()});
    sequences_.push_back(std::move(sequence));
  }

  // To `to`; who is enqueued on the way waits from that instant.
  void PassTime(TimeNs to) {
    for (;;) {
      const bool enqueue = next_enqueue_ < enqueues_.size() && enqueues_[next_enqueue_].time <= to;
      const TimeNs until = enqueue ? enqueues_[next_enqueue_].time : to;
      const auto waiting =
          static_cast<std::int64_t>(scheduler_.Waiting().size() + enqueued_.size());
      output_.waiting_ns += static_cast<__int128>(waiting) * (until - now_);
      now_ = until;
      if (!enqueue) return;
      Sequence* sequence = enqueues_[next_enqueue_].sequence;
      if (executing_ && until == to) ++scheduler_.Coverage().enqueued_on_step_end;
      const TimeNs arrival = input_.requests.arrival[static_cast<std::size_t>(sequence->id)];
      if (arrival < latest_enqueued_arrival_) ++scheduler_.Coverage().reordered;
      latest_enqueued_arrival_ = std::max(latest_enqueued_arrival_, arrival);
      enqueued_.push_back(sequence);
      output_.results.enqueue[static_cast<std::size_t>(sequence->id)] = until;
      output_.results.state[static_cast<std::size_t>(sequence->id)] = RequestState::kQueued;
      ++next_enqueue_;
    }
  }

  void Execute(const ScheduledStep& step) {
    SERVECAST_CHECK(!step.members.empty(), "reference: work, and nothing of it can be done");
    StepRecord record;
    record.index = static_cast<std::int64_t>(output_.steps.size());
    record.scheduled = now_;
    record.start = now_;
    record.end = now_ + Price(step);
    record.preempted = step.preempted;
    record.free_after_schedule = scheduler_.Pool().Free();
    record.running_after_schedule = static_cast<std::int64_t>(scheduler_.Running().size());
    record.waiting_after_schedule = static_cast<std::int64_t>(scheduler_.Waiting().size());
    WriteScheduled(step, record);

    executing_ = true;
    PassTime(record.end);
    executing_ = false;
    for (const Member& member : step.members) {
      record.members.push_back(member.record);
      if (!member.record.sampled) continue;
      if (Deliver(*member.sequence, record.end)) record.finished.push_back(member.record.id);
    }
    record.free_after_step = scheduler_.Pool().Free();
    record.running_after_step = static_cast<std::int64_t>(scheduler_.Running().size());
    record.waiting_after_step = static_cast<std::int64_t>(scheduler_.Waiting().size());
    output_.steps.push_back(std::move(record));
  }

  TimeNs Price(const ScheduledStep& step) const {
    BatchShape shape;
    std::vector<PrefillChunk> chunks;
    for (const Member& member : step.members) {
      if (member.decode) {
        ++shape.decode_seqs;
        shape.decode_context_tokens += member.record.computed_before;
      } else {
        chunks.push_back({.tokens = member.record.tokens,
                          .context = member.record.computed_before,
                          .prompt = member.sequence->prompt,
                          .samples = member.record.sampled});
      }
    }
    shape.prefill = chunks;
    return input_.latency.Price(shape).duration;
  }

  void WriteScheduled(const ScheduledStep& step, const StepRecord& record) {
    RequestResults& results = output_.results;
    for (const RequestId id : step.preempted) {
      ++output_.preemptions;
      ++results.preemptions[static_cast<std::size_t>(id)];
      results.state[static_cast<std::size_t>(id)] = RequestState::kQueued;
    }
    for (const Member& member : step.members) {
      const auto at = static_cast<std::size_t>(member.record.id);
      results.state[at] = RequestState::kRunning;
      if (results.first_scheduled[at] < 0) results.first_scheduled[at] = record.start;
    }
    const TimeNs duration = record.end - record.start;
    const std::int64_t used = scheduler_.Pool().Used();
    output_.peak_kv_blocks = std::max(output_.peak_kv_blocks, used);
    output_.running_ns += static_cast<__int128>(record.running_after_schedule) * duration;
    output_.kv_block_ns += static_cast<__int128>(used) * duration;
    output_.batch_token_ns += static_cast<__int128>(step.Tokens()) * duration;
    output_.busy_ns += duration;
  }

  // The next token of a sequence is out at `end`; true when it was the last one.
  bool Deliver(Sequence& sequence, TimeNs end) {
    RequestResults& results = output_.results;
    const auto at = static_cast<std::size_t>(sequence.id);
    const bool last = scheduler_.Sampled(sequence);
    const TimeNs seen = end + sequence.generated * input_.latency.OutputTokenDelay();
    results.generated[at] = static_cast<std::int32_t>(sequence.generated);
    if (sequence.generated == 1) {
      results.first_token[at] = seen;
    } else {
      ++output_.itl[seen - sequence.last_seen];
    }
    sequence.last_seen = seen;
    if (last) {
      results.completion[at] = seen;
      results.state[at] = RequestState::kCompleted;
      if (sequence.capped) ++output_.length_capped;
    }
    return last;
  }

  // The clock's last reading, and who had arrived by then.
  void Finish() {
    TimeNs end = now_;
    if (input_.horizon) {
      end = std::max(now_, *input_.horizon);
    } else {
      for (const TimeNs arrival : input_.requests.arrival) end = std::max(end, arrival);
    }
    PassTime(end);
    output_.end = end;
    for (std::int64_t row = 0; row < input_.requests.size(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      if (input_.requests.arrival[at] > end) continue;
      if (CanNeverFit(input_.requests.prompt_tokens[at])) {
        output_.results.state[at] = RequestState::kDropped;
        ++output_.dropped;
      } else if (output_.results.state[at] == RequestState::kPending) {
        output_.results.state[at] = RequestState::kQueued;  // on its way to the queue
      }
    }
    output_.coverage = scheduler_.Coverage();
  }

  const ReferenceInput& input_;
  const std::int64_t max_len_;
  Scheduler scheduler_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Enqueue> enqueues_;  // by (time, id)
  std::size_t next_enqueue_ = 0;
  std::vector<Sequence*> enqueued_;  // since the last schedule call, in order
  TimeNs now_ = 0;
  bool executing_ = false;  // time passes within a step
  TimeNs latest_enqueued_arrival_ = -1;
  ReferenceOutput output_;
};

}  // namespace

ReferenceOutput RunReference(const ReferenceInput& input) {
  SERVECAST_CHECK(!input.engine.enable_prefix_caching, "reference: prefix caching is not here yet");
  return Driver(input).Run();
}

}  // namespace servecast::testing
