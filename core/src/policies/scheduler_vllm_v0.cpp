// vLLM as it was in 2023, after Vidur: prompts first and whole, never in one batch with decodes.
#include <algorithm>
#include <memory>

#include "serving/batch/batch_scheduler.h"

namespace servecast::scheduler_vllm_v0 {
namespace {

class VllmV0 final : public BatchScheduler {
 public:
  void Form(SchedulerState& s, Batch& batch) override {
    s.JoinArrived();
    Prefills(s, batch);
    if (batch.empty()) DecodeParked(s, batch);
  }

  DecodeForecast Forecast(SchedulerState& s) override {
    SortParked(s);
    return ForecastBehind(s, s.HasHead() ? HeadBlockedBy(s, 0, 0) : BlockedBy::kNothing);
  }

 private:
  // Prompts, but for what is cached of them, are padded to the longest: their number times that
  // must fit.
  static BlockedBy HeadBlockedBy(SchedulerState& s, std::int64_t members, std::int64_t longest) {
    const SchedulerLimits& limits = s.limits();
    const Job& job = s.job(s.Head());
    if (job.remote) return RemoteBlockedBy(s, s.FitsPrompt(job));
    if (s.admitted() >= limits.max_num_seqs || members >= limits.batch_limit()) {
      return BlockedBy::kSeats;
    }
    if ((members + 1) * std::max(longest, s.UncachedTokens(job)) > limits.max_num_batched_tokens) {
      return BlockedBy::kTokenBudget;
    }
    return s.FitsPrompt(job) ? BlockedBy::kNothing : BlockedBy::kKvBlocks;
  }

  static void Prefills(SchedulerState& s, Batch& batch) {
    std::int64_t longest = 0;
    while (s.HasHead()) {
      s.blocked = HeadBlockedBy(s, static_cast<std::int64_t>(batch.size()), longest);
      if (s.blocked != BlockedBy::kNothing) return;
      const JobIndex head = s.Head();
      s.AdmitPrompt(head);
      if (s.job(head).remote) continue;
      batch.push_back({head, s.job(head).to_prefill()});
      longest = std::max(longest, batch.back().tokens);
    }
  }
};

}  // namespace

extern const SchedulerEntry kEntry = {
    .name = "vllm_v0",
    .help = "vLLM of 2023: whole prompts first; decodes only when no prompt is admitted",
    .has = kBatchesHave | Features{Feature::kVictims, Feature::kWholePrompts},
    .lacks = kBatchesLack,
    .make = kMakes<VllmV0>,
    .whole_prompts = true,
    .preempts = true,
    .departure =
        "batches: whole prompts, padded to the longest, or decodes, never both; decodes wait for "
        "prompts",
    .machine = MakeJobScheduler,
};

}  // namespace servecast::scheduler_vllm_v0
