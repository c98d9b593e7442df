// A scheduler that only tests have, written as those of core/src/policies are: of all that wait it
// admits whoever's prompt has most in the prefix cache. It shows what such a file takes that picks
// from the middle of the queue; registered, it needs one line there and one in the build.
#include <cstdint>
#include <memory>

#include "serving/batch/batch_scheduler.h"

namespace servecast {
namespace {

class LongestPrefix final : public BatchScheduler {
 public:
  void Form(SchedulerState& s, Batch& batch) override {
    s.JoinArrived();
    std::int64_t tokens = 0;
    while (s.HasHead()) {
      const JobIndex next = Next(s);
      s.blocked = NextBlockedBy(s, next, static_cast<std::int64_t>(batch.size()), tokens);
      if (s.blocked != BlockedBy::kNothing) break;
      s.AdmitPrompt(next);
      if (s.job(next).remote) continue;
      batch.push_back({next, s.job(next).to_prefill()});
      tokens += batch.back().tokens;
    }
    if (batch.empty()) DecodeParked(s, batch);
  }
  // What decodes overwrite may change who is next.
  DecodeForecast Forecast(SchedulerState&) override { return {}; }

 private:
  static JobIndex Next(SchedulerState& s) {
    JobIndex next = s.Head();
    std::int64_t most = 0;
    for (const JobIndex index : s.Waiting()) {
      const std::int64_t cached = s.CachedTokens(s.job(index));
      if (cached <= most) continue;
      most = cached;
      next = index;
    }
    return next;
  }
  static BlockedBy NextBlockedBy(SchedulerState& s, JobIndex next, std::int64_t members,
                                 std::int64_t tokens) {
    const SchedulerLimits& limits = s.limits();
    const Job& job = s.job(next);
    if (job.remote) return RemoteBlockedBy(s, s.FitsPrompt(job));
    if (s.admitted() >= limits.max_num_seqs || members >= limits.batch_limit()) {
      return BlockedBy::kSeats;
    }
    if (tokens + s.UncachedTokens(job) > limits.max_num_batched_tokens) {
      return BlockedBy::kTokenBudget;
    }
    return s.FitsPrompt(job) ? BlockedBy::kNothing : BlockedBy::kKvBlocks;
  }
};

}  // namespace

extern const SchedulerEntry kTestSchedulerLongestPrefix;
const SchedulerEntry kTestSchedulerLongestPrefix = {
    .name = "longest_prefix",
    .help = "whole prompts, those with most in the prefix cache first; decodes in between",
    .has = kBatchesHave,
    .lacks = kBatchesLack,
    .make = kMakes<LongestPrefix>,
    .whole_prompts = true,
    .preempts = true,
    .departure = "batches: whole prompts or decodes, never both; whoever finds most goes first",
    .machine = MakeJobScheduler,
};

}  // namespace servecast
