// vLLM as it was in 2023, after Vidur: prompts first and whole, never in one batch with decodes.
#include <algorithm>
#include <memory>

#include "serving/replica/batch_scheduler.h"

namespace servecast {
namespace {

class VllmV0 final : public BatchScheduler {
 public:
  void Form(SchedulerState& s, Batch& batch) override {
    s.JoinArrived();
    Prefills(s, batch);
    if (batch.empty()) Decodes(s, batch);
  }

  DecodeForecast Forecast(SchedulerState& s) override {
    SortParked(s);
    return ForecastBehind(s, s.HasHead() ? HeadBlockedBy(s, 0, 0) : BlockedBy::kNothing);
  }

 private:
  // Prompts are padded to the longest: their number times that must fit.
  static BlockedBy HeadBlockedBy(const SchedulerState& s, std::int64_t members,
                                 std::int64_t longest) {
    const SchedulerLimits& limits = s.limits();
    const Job& job = s.job(s.Head());
    if (job.remote) return RemoteBlockedBy(s, s.FitsPrompt(job));
    if (s.admitted() >= limits.max_num_seqs || members >= limits.batch_limit()) {
      return BlockedBy::kSeats;
    }
    if ((members + 1) * std::max(longest, job.prompt) > limits.max_num_batched_tokens) {
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
      s.PopHead();
      s.Admit(head, s.PromptBlocks(s.job(head)));
      if (s.job(head).remote) continue;
      batch.push_back({head, s.job(head).prompt});
      longest = std::max(longest, s.job(head).prompt);
    }
  }

  // A victim comes from the tail, so the walk's end moves.
  static void Decodes(SchedulerState& s, Batch& batch) {
    SortParked(s);
    std::size_t at = 0;
    while (at < s.parked.size() &&
           static_cast<std::int64_t>(batch.size()) < s.limits().batch_limit()) {
      at = DecodeNext(s, at, batch);
    }
    s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // Who stands before `at` is in the batch, and no victim.
  static std::size_t DecodeNext(SchedulerState& s, std::size_t at, Batch& batch) {
    const JobIndex index = s.parked[at];
    if (s.Fits(1)) {
      s.Grow(index);
    } else {
      s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      if (TakeDecodeBlock(s, index)) batch.push_back({index, 1});
      return 0;
    }
    batch.push_back({index, 1});
    return at + 1;
  }
};

}  // namespace

extern const SchedulerEntry kSchedulerVllmV0;
const SchedulerEntry kSchedulerVllmV0 = {
    .name = "vllm_v0",
    .help = "vLLM of 2023: whole prompts first, decodes only when none is admitted",
    .make = [] { return std::unique_ptr<BatchScheduler>(std::make_unique<VllmV0>()); },
    .whole_prompts = true,
    .departure =
        "batches: whole prompts, padded to the longest, or decodes, never both; decodes wait for "
        "prompts",
};

}  // namespace servecast
