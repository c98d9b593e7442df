// A replica's scheduler that forms its batches anew at every iteration from what waits and what is
// between two iterations, as those of Vidur do (microsoft/vidur 7d47513; docs/model.md, "Schedulers
// after Vidur"). A scheduler is one file in policies/ and one line in the registry.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace servecast {

// A request on a replica. The first output token comes from the prefill's last pass, so `processed`
// jumps from `prompt` to prompt + 1 when a prefill ends, and a request ends at prompt + output.
// A restart makes what was generated part of the prompt.
struct Job {
  RequestId id = kNoRequest;
  double arrival = 0;  // in the clock's unit
  std::int64_t prompt = 0, output = 0, processed = 0;
  std::int64_t blocks = 0;  // of KV cache; > 0 from admission on
  std::int32_t restarts = 0;

  bool prefilled() const { return processed > prompt; }
  bool completed() const { return processed == prompt + output; }
};

using JobIndex = std::int32_t;

struct BatchMember {
  JobIndex job = -1;
  std::int64_t tokens = 0;
};
using Batch = std::vector<BatchMember>;

// What a scheduler may decide by. `stages` batches are in flight at most, so a batch has at most
// max_num_seqs / stages members.
struct FormerLimits {
  std::int64_t max_num_seqs = 128;  // admitted, and in a batch of one stage
  std::int64_t stages = 1;
  std::int64_t max_num_batched_tokens = 512;  // sarathi: the chunk; vllm_v0, lightllm: of a prefill
  std::int64_t block_size = 16;
  std::int64_t blocks = 0;
  std::int64_t watermark_blocks = 0;    // kept free by admissions
  std::int64_t max_model_len = 0;       // reserved by who reserves the longest request
  std::int64_t max_reserved = 0;        // so many of them fit
  std::int64_t max_waiting_iters = 10;  // lightllm: decodes between two looks at the queue

  std::int64_t batch_limit() const { return max_num_seqs / stages; }
};

// The state of a replica between two batches.
class FormerState {
 public:
  FormerState(const FormerLimits& limits, std::vector<Job>& jobs) : limits_(limits), jobs_(jobs) {}

  Job& job(JobIndex index) { return jobs_[static_cast<std::size_t>(index)]; }
  const FormerLimits& limits() const { return limits_; }
  std::int64_t used() const { return used_; }
  std::int64_t admitted() const { return admitted_; }  // requests that hold blocks

  bool Fits(std::int64_t blocks) const { return limits_.blocks - used_ >= blocks; }
  // A new request's whole prompt, above the watermark.
  bool FitsPrompt(const Job& job) const {
    return limits_.blocks - used_ - PromptBlocks(job) >= limits_.watermark_blocks;
  }
  std::int64_t PromptBlocks(const Job& job) const {
    return (job.prompt + limits_.block_size - 1) / limits_.block_size;
  }

  // A new request takes `blocks` at once.
  void Admit(JobIndex index, std::int64_t blocks) {
    SERVECAST_CHECK(job(index).blocks == 0 && blocks > 0, "a request is admitted once");
    job(index).blocks = blocks;
    used_ += blocks;
    ++admitted_;
  }
  // A decode takes one more block if the token that it computes has no room.
  void Grow(JobIndex index) {
    Job& j = job(index);
    if (j.processed <= j.blocks * limits_.block_size) return;
    ++j.blocks;
    ++used_;
  }
  void Free(JobIndex index) {
    used_ -= job(index).blocks;
    job(index).blocks = 0;
    --admitted_;
  }
  // Recompute preemption: to the front of the queue, with what was made as part of the prompt.
  void Restart(JobIndex index);

  std::deque<JobIndex> waiting;
  std::vector<JobIndex> parked;  // admitted, in no batch
  std::int64_t restarts = 0;
  // Upstream's fault: a prompt of which a part is processed is cut to that part, the rest counts as
  // output. Only in compat.
  bool cuts_partial_prompts = false;

 private:
  FormerLimits limits_;
  std::vector<Job>& jobs_;
  std::int64_t used_ = 0, admitted_ = 0;
};

class BatchFormer {
 public:
  virtual ~BatchFormer() = default;
  // Appends the next batch's members and takes their blocks; leaves `batch` empty when there is
  // nothing to run.
  virtual void Form(FormerState& state, Batch& batch) = 0;
};

struct FormerEntry {
  std::string_view name, help;
  std::unique_ptr<BatchFormer> (*make)();
};

// The registered ones, in the order of menus; see registry.cpp.
std::span<const FormerEntry> Formers();
const FormerEntry& FindFormer(std::string_view name);  // requires: a registered name

// What several of them do.

// A decode's block, preempting from the tail of the parked until there is one. False: the request
// itself had to go.
bool TakeDecodeBlock(FormerState& state, JobIndex index);
// By arrival; equals keep their order.
void SortParked(FormerState& state);

}  // namespace servecast
