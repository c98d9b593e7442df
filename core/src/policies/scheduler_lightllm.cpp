// LightLLM's router, after Vidur: tokens rather than blocks, and a request is admitted only if the
// most that all will ever hold fits. Requires: one token per block, one pipeline stage.
#include <algorithm>
#include <memory>
#include <utility>

#include "serving/batch_former.h"

namespace servecast {
namespace {

class LightLlm final : public BatchFormer {
 public:
  void Form(FormerState& s, Batch& batch) override {
    if (s.parked.empty()) {
      Prefills(s, batch);
      return;
    }
    if (iterations_ >= s.limits().max_waiting_iters) {
      iterations_ = 0;
      Prefills(s, batch);
      if (!batch.empty()) return;
    }
    Decodes(s, batch);
    ++iterations_;
  }

 private:
  // (tokens held now, tokens to come): the limit that its client set is taken to be what it makes.
  using Need = std::pair<std::int64_t, std::int64_t>;

  static Need NeedOf(const Job& job) {
    if (job.blocks == 0) return {job.prompt + 1, job.output - 2};
    const std::int64_t made = std::max<std::int64_t>(0, job.processed - job.prompt);
    return {job.processed, std::max<std::int64_t>(0, job.output - made - 1)};
  }

  // The most tokens held at once: who has longest to go is last to leave.
  std::int64_t Peak() {
    std::stable_sort(needs_.begin(), needs_.end(),
                     [](const Need& a, const Need& b) { return a.second > b.second; });
    std::int64_t held = 0, peak = 0, count = 0;
    for (const auto& [now, left] : needs_) {
      held += now;
      peak = std::max(peak, left * ++count + held);
    }
    return peak;
  }

  void Prefills(FormerState& s, Batch& batch) {
    const FormerLimits& limits = s.limits();
    needs_.clear();
    for (const JobIndex index : s.parked) needs_.push_back(NeedOf(s.job(index)));
    std::int64_t tokens = 0;
    while (!s.waiting.empty()) {
      const JobIndex head = s.waiting.front();
      const Job& job = s.job(head);
      needs_.push_back(NeedOf(job));
      if (tokens + job.prompt > limits.max_num_batched_tokens ||
          s.admitted() == limits.max_num_seqs ||
          static_cast<std::int64_t>(batch.size()) == limits.batch_limit() ||
          Peak() >= limits.blocks) {
        return;
      }
      s.waiting.pop_front();
      s.Admit(head, s.PromptBlocks(job));
      batch.push_back({head, job.prompt});
      tokens += job.prompt;
    }
  }

  static void Decodes(FormerState& s, Batch& batch) {
    for (const JobIndex index : s.parked) {
      s.Grow(index);
      batch.push_back({index, 1});
    }
    s.parked.clear();
  }

  std::int64_t iterations_ = 0;
  std::vector<Need> needs_;
};

}  // namespace

extern const FormerEntry kSchedulerLightLlm;
const FormerEntry kSchedulerLightLlm = {
    "lightllm", "admits while the future peak of tokens fits; decodes between looks at the queue",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<LightLlm>()); }};

}  // namespace servecast
