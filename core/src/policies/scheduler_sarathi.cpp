// Sarathi-Serve (Agrawal et al., OSDI 2024), after Vidur: prompts in chunks, beside the decodes.
#include <algorithm>
#include <memory>

#include "serving/batch_former.h"

namespace servecast {
namespace {

class Sarathi final : public BatchFormer {
 public:
  void Form(FormerState& s, Batch& batch) override {
    tokens_ = 0;
    Running(s, batch);
    SortParked(s);
    Admissions(s, batch);
  }

 private:
  std::int64_t ChunkOf(const FormerState& s, const Job& job) const {
    return std::max<std::int64_t>(
        0, std::min(job.prompt - job.processed, s.limits().max_num_batched_tokens - tokens_));
  }
  void Add(Batch& batch, JobIndex index, std::int64_t tokens) {
    batch.push_back({index, tokens});
    tokens_ += tokens;
  }

  // Decodes first, each one token, whatever the chunk; then the rest of prompts that have begun,
  // whatever the number of members. Who gets nothing stays parked.
  void Running(FormerState& s, Batch& batch) {
    partial_.clear();
    // A victim comes from the tail, so the walk's end moves.
    std::size_t at = 0;
    while (at < s.parked.size() &&
           static_cast<std::int64_t>(batch.size()) < s.limits().batch_limit()) {
      const JobIndex index = s.parked[at++];
      if (!s.job(index).prefilled()) {
        partial_.push_back(index);
        continue;
      }
      s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(at));
      at = 0;
      if (TakeDecodeBlock(s, index)) Add(batch, index, 1);
    }
    s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(at));
    std::size_t kept = 0;
    for (const JobIndex index : partial_) {
      const std::int64_t chunk = ChunkOf(s, s.job(index));
      if (chunk > 0) {
        Add(batch, index, chunk);
      } else {
        partial_[kept++] = index;
      }
    }
    s.parked.insert(s.parked.begin(), partial_.begin(),
                    partial_.begin() + static_cast<std::ptrdiff_t>(kept));
  }

  void Admissions(FormerState& s, Batch& batch) {
    const FormerLimits& limits = s.limits();
    while (!s.waiting.empty() && s.admitted() != limits.max_num_seqs &&
           static_cast<std::int64_t>(batch.size()) < limits.batch_limit()) {
      const JobIndex head = s.waiting.front();
      const std::int64_t chunk = ChunkOf(s, s.job(head));
      if (!s.FitsPrompt(s.job(head)) || chunk == 0) return;
      s.waiting.pop_front();
      s.Admit(head, s.PromptBlocks(s.job(head)));
      Add(batch, head, chunk);
    }
  }

  std::int64_t tokens_ = 0;
  std::vector<JobIndex> partial_;
};

}  // namespace

extern const FormerEntry kSchedulerSarathi;
const FormerEntry kSchedulerSarathi = {
    "sarathi", "chunked prefill: decodes, then prompts in what is left of max_num_batched_tokens",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<Sarathi>()); }};

}  // namespace servecast
