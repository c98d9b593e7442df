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
    s.JoinArrived();
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

  DecodeForecast Forecast(FormerState& s) override {
    DecodeForecast forecast;
    forecast.most = s.limits().max_waiting_iters - iterations_;
    forecast.closed = true;
    return forecast;
  }
  void Decoded(std::int64_t batches) override { iterations_ += batches; }

 private:
  // (tokens held now, tokens to come): the limit that its client set is taken to be what it makes.
  using Need = std::pair<std::int64_t, std::int64_t>;

  static Need NeedOf(const Job& job) {
    if (job.processed == 0) return {job.prompt + 1, job.declared - job.prompt - 2};
    return {job.processed, std::max<std::int64_t>(0, job.declared - job.processed - 1)};
  }

  // Who waits for his KV will not grow in step with the others, and counts with all from the start.
  void Add(const Job& job) {
    if (job.remote) {
      apart_ += job.declared - 1;
    } else {
      needs_.push_back(NeedOf(job));
    }
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

  BlockedBy HeadBlockedBy(const FormerState& s, std::int64_t members, std::int64_t tokens) {
    const FormerLimits& limits = s.limits();
    const Job& job = s.job(s.Head());
    const bool full = !job.remote && members >= limits.batch_limit();
    if (s.admitted() >= limits.max_num_seqs || full) return BlockedBy::kSeats;
    if (!job.remote && tokens + job.prompt > limits.max_num_batched_tokens)
      return BlockedBy::kTokenBudget;
    Add(job);
    return Peak() + apart_ < limits.blocks - s.withheld() ? BlockedBy::kNothing
                                                          : BlockedBy::kKvBlocks;
  }

  void Prefills(FormerState& s, Batch& batch) {
    needs_.clear();
    apart_ = 0;
    for (const std::vector<JobIndex>* held : {&s.parked, &s.under_way}) {
      for (const JobIndex index : *held) Add(s.job(index));
    }
    std::int64_t tokens = 0;
    while (s.HasHead()) {
      s.blocked = HeadBlockedBy(s, static_cast<std::int64_t>(batch.size()), tokens);
      if (s.blocked != BlockedBy::kNothing) return;
      const JobIndex head = s.Head();
      const Job& job = s.job(head);
      s.PopHead();
      s.Admit(head, s.PromptBlocks(job));
      if (job.remote) continue;
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
  std::int64_t apart_ = 0;
};

}  // namespace

extern const FormerEntry kSchedulerLightLlm;
const FormerEntry kSchedulerLightLlm = {
    "lightllm",
    "admits while the future peak of tokens fits; decodes between looks at the queue",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<LightLlm>()); },
    true,
    true,
    "batches: whole prompts or decodes, never both; ten batches of decodes between two looks at "
    "the queue; KV memory in tokens, as much as all admitted may come to hold, by what their "
    "clients declare: the longest output of the workload"};

}  // namespace servecast
