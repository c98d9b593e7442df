// Orca (Yu et al., OSDI 2022) and FasterTransformer, after Vidur: KV memory for the longest request
// is reserved at admission, prompts are computed whole, and no request is preempted.
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "serving/batch/batch_scheduler.h"

namespace servecast::scheduler_orca {
namespace {

std::int64_t Reservation(const SchedulerLimits& limits) {
  return limits.as_vidur ? std::max<std::int64_t>(1, limits.max_model_len / limits.block_size)
                         : CeilDiv(limits.max_model_len, limits.block_size);
}
std::int64_t MostMembers(const SchedulerLimits& limits) {
  return limits.as_vidur ? std::min(limits.max_reserved, limits.max_num_seqs)
                         : limits.batch_limit();
}

void Continue(SchedulerState& s, Batch& batch) {
  const std::size_t count =
      std::min(s.parked.size(), static_cast<std::size_t>(MostMembers(s.limits())));
  for (std::size_t i = 0; i < count; ++i) {
    const Job& job = s.job(s.parked[i]);
    batch.push_back({s.parked[i], job.prefilled() ? 1 : job.to_prefill()});
  }
  s.parked.erase(s.parked.begin(), s.parked.begin() + static_cast<std::ptrdiff_t>(count));
}

BlockedBy HeadBlockedBy(SchedulerState& s, std::int64_t members) {
  const SchedulerLimits& limits = s.limits();
  if (s.job(s.Head()).remote) return RemoteBlockedBy(s, s.Fits(Reservation(limits)));
  const bool seats = limits.as_vidur || s.admitted() < limits.max_num_seqs;
  if (!seats || members >= MostMembers(limits)) return BlockedBy::kSeats;
  return s.Fits(Reservation(limits)) ? BlockedBy::kNothing : BlockedBy::kKvBlocks;
}

void Admit(SchedulerState& s, Batch& batch) {
  while (s.HasHead()) {
    s.blocked = HeadBlockedBy(s, static_cast<std::int64_t>(batch.size()));
    if (s.blocked != BlockedBy::kNothing) return;
    const JobIndex head = s.Head();
    s.Admit(head, Reservation(s.limits()));
    if (s.job(head).remote) continue;
    batch.push_back({head, s.job(head).prompt});
  }
}

class Orca final : public BatchScheduler {
 public:
  void Form(SchedulerState& s, Batch& batch) override {
    s.JoinArrived();
    Continue(s, batch);
    Admit(s, batch);
  }
  DecodeForecast Forecast(SchedulerState& s) override {
    const auto decodes = static_cast<std::int64_t>(s.parked.size());
    DecodeForecast forecast =
        ForecastBehind(s, s.HasHead() ? HeadBlockedBy(s, decodes) : BlockedBy::kNothing);
    forecast.grows = false;
    return forecast;
  }
};

// A batch runs until all that it began with are done; only then is there another one. KV that is to
// come for the next one travels meanwhile, while there are blocks for it.
class FasterTransformer final : public BatchScheduler {
 public:
  void Form(SchedulerState& s, Batch& batch) override {
    if (s.parked.empty()) {
      s.JoinArrived(MostMembers(s.limits()));
      Continue(s, batch);
      Admit(s, batch);
      return;
    }
    Continue(s, batch);
    while (s.HasHead()) {
      s.blocked = HeadBlocked(s);
      if (s.blocked != BlockedBy::kNothing) return;
      s.Admit(s.Head(), Reservation(s.limits()));
    }
  }
  DecodeForecast Forecast(SchedulerState& s) override {
    // What comes to be decoded may be admitted, unless it queues behind another.
    const bool closed = !s.limits().decodes || (s.HasHead() && !s.queue_by_key());
    const BlockedBy blocked = s.HasHead() ? HeadBlocked(s) : BlockedBy::kNothing;
    const bool admits = s.HasHead() && blocked == BlockedBy::kNothing;
    return {admits ? 0 : INT64_MAX, false, closed, blocked, BlockedBy::kSeats};
  }

 private:
  // While a batch runs.
  static BlockedBy HeadBlocked(SchedulerState& s) {
    return s.job(s.Head()).remote ? HeadBlockedBy(s, 0) : BlockedBy::kSeats;
  }
};

constexpr auto kFasterTransformerLacks = [] {
  auto lacks = std::to_array(kBatchesLack);
  lacks[0].why = "Vidur's never frees a request that ends early, and stops";
  return lacks;
}();

constexpr std::string_view kNothingShared =
    "prefix caching: none, as a request's memory is one reservation, of which no other has a part";

}  // namespace

extern const SchedulerEntry kEntry = {
    .name = "orca",
    .help = "iteration-level batching; each request reserves memory for the longest one",
    .has = kBatchesHave | Features{Feature::kWholePrompts},
    .lacks = kBatchesLack,
    .make = kMakes<Orca>,
    .no_prefix_caching = kNothingShared,
    .departure =
        "batches: whole prompts beside decodes, regardless of max_num_batched_tokens; each request "
        "reserves the KV blocks of max_model_len",
    .machine = MakeJobScheduler,
};

}  // namespace servecast::scheduler_orca

namespace servecast::scheduler_faster_transformer {

extern const SchedulerEntry kEntry = {
    .name = "faster_transformer",
    .help = "a batch stays as it is until all its requests are done",
    .has = {Feature::kRoles, Feature::kTimeouts, Feature::kOrders, Feature::kPriorities,
            Feature::kStages, Feature::kWholePrompts},
    .lacks = scheduler_orca::kFasterTransformerLacks,
    .make = kMakes<scheduler_orca::FasterTransformer>,
    .no_prefix_caching = scheduler_orca::kNothingShared,
    .departure =
        "batches: no request joins a batch until all requests in it are done; each request "
        "reserves the KV blocks of max_model_len",
    .machine = MakeJobScheduler,
};

}  // namespace servecast::scheduler_faster_transformer
