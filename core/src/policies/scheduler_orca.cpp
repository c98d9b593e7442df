// Orca (Yu et al., OSDI 2022) and FasterTransformer, after Vidur: KV memory for the longest request
// is reserved at admission, prompts are computed whole, and nobody is preempted.
#include <algorithm>
#include <memory>

#include "serving/batch_former.h"

namespace servecast {
namespace {

std::int64_t Reservation(const FormerLimits& limits) {
  return limits.as_vidur ? std::max<std::int64_t>(1, limits.max_model_len / limits.block_size)
                         : CeilDiv(limits.max_model_len, limits.block_size);
}
std::int64_t MostMembers(const FormerLimits& limits) {
  return limits.as_vidur ? std::min(limits.max_reserved, limits.max_num_seqs)
                         : limits.batch_limit();
}

void Continue(FormerState& s, Batch& batch) {
  const std::size_t count =
      std::min(s.parked.size(), static_cast<std::size_t>(MostMembers(s.limits())));
  for (std::size_t i = 0; i < count; ++i) {
    const Job& job = s.job(s.parked[i]);
    batch.push_back({s.parked[i], job.prefilled() ? 1 : job.prompt - job.processed});
  }
  s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(count));
}

BlockedBy HeadBlockedBy(const FormerState& s, std::int64_t members) {
  const FormerLimits& limits = s.limits();
  const bool seats = limits.as_vidur || s.admitted() < limits.max_num_seqs;
  if (!seats || members >= MostMembers(limits)) return BlockedBy::kSeats;
  return s.Fits(Reservation(limits)) ? BlockedBy::kNothing : BlockedBy::kKvBlocks;
}

void Admit(FormerState& s, Batch& batch) {
  while (s.HasHead()) {
    s.blocked = HeadBlockedBy(s, static_cast<std::int64_t>(batch.size()));
    if (s.blocked != BlockedBy::kNothing) return;
    const JobIndex head = s.Head();
    s.PopHead();
    s.Admit(head, Reservation(s.limits()));
    batch.push_back({head, s.job(head).prompt});
  }
}

class Orca final : public BatchFormer {
 public:
  void Form(FormerState& s, Batch& batch) override {
    Continue(s, batch);
    Admit(s, batch);
  }
  DecodeForecast Forecast(FormerState& s) override {
    const auto decodes = static_cast<std::int64_t>(s.parked.size());
    DecodeForecast forecast =
        ForecastBehind(s, s.HasHead() ? HeadBlockedBy(s, decodes) : BlockedBy::kNothing);
    forecast.grows = false;
    return forecast;
  }
};

// A batch runs until all that it began with are done; only then is there another one.
class FasterTransformer final : public BatchFormer {
 public:
  void Form(FormerState& s, Batch& batch) override {
    if (s.parked.empty()) {
      Admit(s, batch);
      return;
    }
    Continue(s, batch);
    if (s.HasHead()) s.blocked = BlockedBy::kSeats;
  }
  DecodeForecast Forecast(FormerState& s) override {
    return {INT64_MAX, false, true, s.HasHead() ? BlockedBy::kSeats : BlockedBy::kNothing,
            BlockedBy::kSeats};
  }
};

}  // namespace

extern const FormerEntry kSchedulerOrca;
const FormerEntry kSchedulerOrca = {
    "orca",
    "iteration-level batching with memory for the longest request reserved",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<Orca>()); },
    false,
    false,
    "batches: whole prompts beside decodes, whatever max_num_batched_tokens; KV blocks of "
    "max_model_len are reserved for each request"};

extern const FormerEntry kSchedulerFasterTransformer;
const FormerEntry kSchedulerFasterTransformer = {
    "faster_transformer",
    "a batch is fixed until all its requests are done",
    [] { return std::unique_ptr<BatchFormer>(std::make_unique<FasterTransformer>()); },
    false,
    false,
    "batches: nobody joins a batch until all of it are done; KV blocks of max_model_len are "
    "reserved for each request"};

}  // namespace servecast
