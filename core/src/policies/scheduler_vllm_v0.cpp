// vLLM as it was in 2023, after Vidur: prompts first and whole, never in one batch with decodes.
#include <algorithm>
#include <memory>

#include "serving/batch_former.h"

namespace servecast {
namespace {

class VllmV0 final : public BatchFormer {
 public:
  void Form(FormerState& s, Batch& batch) override {
    Prefills(s, batch);
    if (batch.empty()) Decodes(s, batch);
  }

 private:
  // Prompts are padded to the longest: their number times that must fit.
  static void Prefills(FormerState& s, Batch& batch) {
    const FormerLimits& limits = s.limits();
    std::int64_t longest = 0;
    while (!s.waiting.empty()) {
      const JobIndex head = s.waiting.front();
      const Job& job = s.job(head);
      longest = std::max(longest, job.prompt);
      const auto members = static_cast<std::int64_t>(batch.size());
      if (!s.FitsPrompt(job) || (members + 1) * longest > limits.max_num_batched_tokens ||
          s.admitted() == limits.max_num_seqs || members == limits.batch_limit()) {
        return;
      }
      s.waiting.pop_front();
      s.Admit(head, s.PromptBlocks(job));
      batch.push_back({head, job.prompt});
    }
  }

  static void Decodes(FormerState& s, Batch& batch) {
    SortParked(s);
    while (!s.parked.empty() &&
           static_cast<std::int64_t>(batch.size()) < s.limits().batch_limit()) {
      const JobIndex first = s.parked.front();
      s.parked.erase(s.parked.begin());
      if (TakeDecodeBlock(s, first)) batch.push_back({first, 1});
    }
  }
};

}  // namespace

extern const FormerEntry kSchedulerVllmV0;
const FormerEntry kSchedulerVllmV0 = {
    "vllm_v0", "vLLM of 2023: whole prompts first, decodes only when none is admitted",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<VllmV0>()); }};

}  // namespace servecast
