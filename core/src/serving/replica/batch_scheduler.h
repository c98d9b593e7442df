// A replica's scheduler that forms its batches anew at every iteration from what waits and what is
// between two iterations, as those of Vidur do (microsoft/vidur 7d47513; docs/model.md, "Other
// schedulers"). A scheduler is one file in policies/ and one line in the registry.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"
#include "metrics/causes.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// A request on a replica. The first output token comes from the prefill's last pass, so `processed`
// jumps from `prompt` to prompt + 1 when a prefill ends. A restart makes what was generated part of
// the prompt. When it ends, a scheduler does not know: only how long it may become.
struct Job {
  TimeNs arrival = 0;
  std::int64_t prompt = 0, processed = 0;
  std::int64_t declared = 0;  // prompt and output at most, as its client says
  std::int64_t blocks = 0;    // of KV cache; > 0 from admission on
  std::int64_t stored = 0;    // tokens whose KV is there, or on its way
  bool gone = false;          // its client gave up while it waited
  // Prefilled on another replica: once admitted it is in no batch, but waits for its KV.
  bool remote = false;

  bool prefilled() const { return processed > prompt; }
};

using JobIndex = std::int32_t;

struct BatchMember {
  JobIndex job = -1;
  std::int64_t tokens = 0;
};
using Batch = std::vector<BatchMember>;

// What a scheduler may decide by. `stages` batches are in flight at most, so a batch has at most
// max_num_seqs / stages members.
struct SchedulerLimits {
  std::int64_t max_num_seqs = 128;  // admitted, and in a batch of one stage
  std::int64_t stages = 1;
  std::int64_t max_num_batched_tokens = 512;  // sarathi: the chunk; vllm_v0, lightllm: of a prefill
  std::int64_t block_size = 16;
  std::int64_t blocks = 0;
  std::int64_t watermark_blocks = 0;    // kept free by admissions
  std::int64_t max_model_len = 0;       // reserved where the longest request is
  std::int64_t max_waiting_iters = 10;  // lightllm: decodes between two looks at the queue
  // Vidur's faults, for compat vidur. A decode asks for a spare block though it needs none; the
  // watermark holds for the only request, too; a prompt that is preempted in the middle is cut
  // there, the rest counts as output; with pipeline stages orca and faster_transformer fill each
  // batch to `max_reserved`, and reserve whole blocks of the greatest length only.
  bool as_vidur = false;
  std::int64_t max_reserved = 0;
  bool decodes = false;  // on a replica that others prefill for: remote jobs may come

  std::int64_t batch_limit() const { return max_num_seqs / stages; }
};

// The state of a replica between two batches: its jobs, its queue, its KV blocks.
class SchedulerState {
 public:
  explicit SchedulerState(const SchedulerLimits& limits) : limits_(limits) {}

  Job& job(JobIndex index) { return jobs_[static_cast<std::size_t>(index)]; }
  const Job& job(JobIndex index) const { return jobs_[static_cast<std::size_t>(index)]; }
  const SchedulerLimits& limits() const { return limits_; }
  std::int64_t used() const { return used_; }
  std::int64_t admitted() const { return admitted_; }  // requests that hold blocks
  std::int64_t withheld() const { return withheld_; }  // blocks of jobs that have ended
  std::int64_t stored() const { return stored_; }      // tokens, of all that hold blocks

  bool Fits(std::int64_t blocks) const { return limits_.blocks - used_ >= blocks; }
  // A new request's whole prompt, above the watermark, which the only request need not heed.
  bool FitsPrompt(const Job& job) const {
    const bool heeds = admitted_ > 0 || limits_.as_vidur;
    return Fits(PromptBlocks(job) + (heeds ? limits_.watermark_blocks : 0));
  }
  std::int64_t PromptBlocks(const Job& job) const {
    return CeilDiv(job.prompt, limits_.block_size);
  }

  // The queue, first come, first served; one that restarts is its head.
  JobIndex Add(const Job& job);  // at its end; the index is valid until the job ends or leaves
  std::int64_t waiting() const { return waiting_; }
  bool HasHead();
  JobIndex Head() const { return queue_.front(); }  // requires: HasHead()
  void PopHead();
  void LeaveQueue(JobIndex index);  // its client gave up

  // A new request takes `blocks` at once.
  void Admit(JobIndex index, std::int64_t blocks) {
    SERVECAST_CHECK(job(index).blocks == 0 && blocks > 0, "a request is admitted once");
    Take(index, blocks);
    ++admitted_;
    if (job(index).remote) under_way.push_back(index);
  }
  void Take(JobIndex index, std::int64_t blocks) {
    job(index).blocks += blocks;
    used_ += blocks;
    SERVECAST_CHECK(used_ <= limits_.blocks, "I4: no more KV blocks than there are");
  }
  void Store(JobIndex index, std::int64_t tokens) {
    job(index).stored += tokens;
    stored_ += tokens;
  }
  // Whether the token that a decode computes has no room in its blocks.
  bool Grows(const Job& job) const { return job.processed > job.blocks * limits_.block_size; }
  void Grow(JobIndex index) {
    if (Grows(job(index))) Take(index, 1);
  }
  // An admitted job ends.
  void End(JobIndex index);
  // The same, but for its blocks, which stay taken until they are given back: so many, and so many
  // tokens in them.
  std::pair<std::int64_t, std::int64_t> Withhold(JobIndex index);
  void GiveBack(std::int64_t blocks, std::int64_t tokens);
  // Recompute preemption: to the front of the queue, with what was made as part of the prompt.
  void Restart(JobIndex index);
  // Those whose KV is there, or the first of them, are parked with the others.
  void JoinArrived(std::int64_t most = INT64_MAX);

  std::vector<JobIndex> parked;  // admitted, in no batch
  // Admitted, and remote: their KV is to come; it is there, in that order, and none of them is
  // remote any more.
  std::vector<JobIndex> under_way, arrived;
  // Of the batch that is formed: why the head of the queue is not in it, and what was preempted.
  struct Restarted {
    JobIndex job = -1;
    bool prefilled = false;  // before it
  };
  BlockedBy blocked = BlockedBy::kNothing;
  std::vector<Restarted> restarted;

 private:
  SchedulerLimits limits_;
  std::vector<Job> jobs_;
  std::vector<JobIndex> free_;
  std::deque<JobIndex> queue_;
  std::int64_t used_ = 0, admitted_ = 0, waiting_ = 0, withheld_ = 0, stored_ = 0;
};

// Batches of all parked decodes and nothing else, one after another, as long as none ends and,
// but for a `closed` queue, no request comes.
struct DecodeForecast {
  std::int64_t most = 0;  // batches; 0: the next one may be another
  bool grows = true;      // decodes take blocks as they need them
  bool closed = false;    // no request can be admitted, whatever comes
  // Why the head of the queue waits, and why one that comes to an empty queue would.
  BlockedBy blocked = BlockedBy::kNothing, comers_blocked = BlockedBy::kNothing;
};

class BatchScheduler {
 public:
  virtual ~BatchScheduler() = default;
  // Appends the next batch's members and takes their blocks; leaves `batch` empty when there is
  // nothing to run. Says in `state` why the head of the queue had to wait. Admits remote jobs in
  // their turn, and takes in those that have arrived.
  virtual void Form(SchedulerState& state, Batch& batch) = 0;
  // What Form would do next. Requires: one stage, all parked are decodes, there is one, none has
  // arrived. May sort them as Form would.
  virtual DecodeForecast Forecast(SchedulerState& state) = 0;
  // So many of these batches were formed.
  virtual void Decoded(std::int64_t) {}
};

struct SchedulerEntry {
  std::string_view name, help;
  std::unique_ptr<BatchScheduler> (*make)();
  bool splits_prompts = false;  // else it computes each in one batch
  bool whole_prompts = false;   // each must fit max_num_batched_tokens
  bool counts_tokens = false;   // of KV cache, instead of blocks
  std::string_view departure;   // how its batches differ from those of vLLM
  // What it does not go with in a scenario of one pool, beside what none of them does (see
  // RefuseForBatchScheduler); nullptr: nothing.
  void (*refuse)(const Scenario& scenario, Issues& issues) = nullptr;
};

// The registered ones, in the order of menus; see registry.cpp.
std::span<const SchedulerEntry> Schedulers();
const SchedulerEntry& FindScheduler(std::string_view name);  // requires: a registered name

// What several of them do.

// Of a remote head of the queue, by whether the blocks that it would take are free.
inline BlockedBy RemoteBlockedBy(const SchedulerState& state, bool fits) {
  if (state.admitted() >= state.limits().max_num_seqs) return BlockedBy::kSeats;
  return fits ? BlockedBy::kNothing : BlockedBy::kKvBlocks;
}
// A decode's block, preempting from the tail of the parked until there is one. False: the request
// itself had to go.
bool TakeDecodeBlock(SchedulerState& state, JobIndex index);
// By arrival; equals keep their order.
void SortParked(SchedulerState& state);
// With the queue's head refused for `blocked`: none behind it can be admitted. Without a head:
// none that comes, if all seats are taken.
DecodeForecast ForecastBehind(SchedulerState& state, BlockedBy blocked);

}  // namespace servecast
