#include "serving/cluster/planner_view.h"

namespace servecast {
namespace {

enum class Waits : std::uint8_t { kNot, kToPrefill, kToDecode };

// On the replica that it was sent to last.
Waits WaitsThere(std::size_t r, const RequestResults& results) {
  if (results.first_scheduled[r] < 0) return Waits::kToPrefill;
  if (results.state[r] != RequestState::kQueued) return Waits::kNot;
  const bool sent_on =
      !results.HandedOver(r) || results.hand_overs[r].prefill_replica != results.replica[r];
  return sent_on ? Waits::kToDecode : Waits::kNot;
}

}  // namespace

PlannedPool PlannedFrom(const FleetPool& pool) {
  const ReplicaInput& each = pool.each;
  const SpeculativeSpec& drafts = each.engine.speculative;
  return {.role = each.role,
          .gpus = pool.gpus,
          .max_num_batched_tokens = each.engine.max_num_batched_tokens,
          .max_num_seqs = each.engine.max_num_seqs,
          .max_kv_tokens = (each.pool_blocks - 1) * each.engine.block_size,
          .max_model_len = each.max_model_len,
          .block_size = each.engine.block_size,
          .speculative_tokens = drafts.On() ? drafts.num_speculative_tokens : 0,
          .latency = &each.latency,
          .stages = each.stages};
}

ServedTotals PlannerView::Look(TimeNs time, const RequestTable& requests,
                               const RequestResults& results, const SchedulerCounts& counts,
                               std::vector<Membership::Scraped>& scraped) {
  std::erase_if(open_, [&](RequestId request) {
    const auto r = static_cast<std::size_t>(request);
    const RequestState state = results.state[r];
    if (state == RequestState::kTimedOut || IsLost(state)) return true;
    const std::int64_t prompt = requests.prompt_tokens[r];
    if (state == RequestState::kCompleted) {
      if (results.completion[r] >= time) return false;
      ++served_.requests;
      served_.prompt_tokens += prompt;
      served_.output_tokens += results.generated[r];
      served_.cached_tokens += results.cached_tokens[r];
      return true;
    }
    QueuedWork& queued = scraped[static_cast<std::size_t>(results.replica[r])].queued;
    const Waits waits = WaitsThere(r, results);
    if (waits == Waits::kToPrefill) {
      ++queued.prefill_requests;
      queued.prefill_tokens += prompt;
    } else if (waits == Waits::kToDecode) {
      ++queued.decode_requests;
      queued.decode_tokens += prompt;
    }
    return false;
  });
  served_.verified_steps = counts.verified_steps;
  served_.accepted_tokens = counts.accepted_tokens;
  return served_;
}

}  // namespace servecast
