// Sarathi-Serve (Agrawal et al., OSDI 2024), after Vidur: prompts in chunks, beside the decodes.
#include <algorithm>
#include <memory>

#include "serving/batch/batch_scheduler.h"

namespace servecast::scheduler_sarathi {
namespace {

class Sarathi final : public BatchScheduler {
 public:
  void Form(SchedulerState& s, Batch& batch) override {
    tokens_ = 0;
    s.JoinArrived();
    if (s.victim_by_priority()) SortParked(s);
    Running(s, batch);
    SortParked(s);
    Admissions(s, batch);
  }

  DecodeForecast Forecast(SchedulerState& s) override {
    const auto decodes = static_cast<std::int64_t>(s.parked.size());
    tokens_ = decodes;
    return ForecastBehind(s, s.HasHead() ? HeadBlockedBy(s, decodes) : BlockedBy::kNothing);
  }

 private:
  std::int64_t ChunkOf(const SchedulerState& s, const Job& job) const {
    return std::max<std::int64_t>(
        0, std::min(job.to_prefill(), s.limits().max_num_batched_tokens - tokens_));
  }
  void Add(Batch& batch, JobIndex index, std::int64_t tokens) {
    batch.push_back({index, tokens});
    tokens_ += tokens;
  }
  BlockedBy HeadBlockedBy(SchedulerState& s, std::int64_t members) const {
    const Job& job = s.job(s.Head());
    if (job.remote) return RemoteBlockedBy(s, s.FitsPrompt(job));
    if (s.admitted() >= s.limits().max_num_seqs || members >= s.limits().batch_limit()) {
      return BlockedBy::kSeats;
    }
    if (ChunkOf(s, job) == 0) return BlockedBy::kTokenBudget;
    return s.FitsPrompt(job) ? BlockedBy::kNothing : BlockedBy::kKvBlocks;
  }

  // Decodes first, each one token, whatever the chunk; then the rest of prompts that have begun,
  // whatever the number of members. What gets nothing stays parked.
  void Running(SchedulerState& s, Batch& batch) {
    partial_.clear();
    // A victim comes from the tail, so the walk's end moves.
    std::size_t at = 0;
    const auto drop_seen = [&] {
      s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(at));
      at = 0;
    };
    while (at < s.parked.size() &&
           static_cast<std::int64_t>(batch.size()) < s.limits().batch_limit()) {
      const JobIndex index = s.parked[at++];
      if (!s.job(index).prefilled()) {
        partial_.push_back(index);
      } else if (s.Fits(1)) {
        s.Grow(index);
        Add(batch, index, 1);
      } else {
        drop_seen();
        if (TakeDecodeBlock(s, index)) Add(batch, index, 1);
      }
    }
    drop_seen();
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

  void Admissions(SchedulerState& s, Batch& batch) {
    while (s.HasHead()) {
      s.blocked = HeadBlockedBy(s, static_cast<std::int64_t>(batch.size()));
      if (s.blocked != BlockedBy::kNothing) return;
      const JobIndex head = s.Head();
      s.AdmitPrompt(head);
      if (s.job(head).remote) continue;
      Add(batch, head, ChunkOf(s, s.job(head)));
    }
  }

  std::int64_t tokens_ = 0;
  std::vector<JobIndex> partial_;
};

}  // namespace

extern const SchedulerEntry kEntry = {
    .name = "sarathi",
    .help = "chunked prefill: decodes first, then prompts in the rest of max_num_batched_tokens",
    .has = kBatchesHave | Features{Feature::kVictims},
    .lacks = kBatchesLack,
    .make = kMakes<Sarathi>,
    .splits_prompts = true,
    .preempts = true,
    .departure =
        "batches: every decode gets its token regardless of max_num_batched_tokens; a prompt takes "
        "all its KV blocks when it begins",
    .machine = MakeJobScheduler,
};

}  // namespace servecast::scheduler_sarathi
