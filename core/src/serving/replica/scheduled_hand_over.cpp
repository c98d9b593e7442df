// Prefill on one replica, decode on another, where a BatchScheduler makes the batches of this one;
// with a replica by vLLM's rules on the other side as well (replica_hand_over.cpp).
//
// A prefill replica ends a request with its first token: its seat is free then, its blocks when its
// KV has gone. On the decode side the request joins the queue as any other, and is admitted by the
// scheduler's own rules, for all its tokens, but needs no place in a batch and no tokens of one:
// then its KV sets out. Once that is there the scheduler takes it in as a decode, which computes
// the latest token that is known: the one that the prefill made, or the last of the prompt again
// when the decode side sends the first. Its client may give up at any moment; blocks that KV is on
// its way to are free when it has come. A request that is preempted is computed again here.
#include <algorithm>

#include "serving/replica/scheduled_replica.h"

namespace servecast {

bool ScheduledReplica::HandsOver(RequestId request) const {
  if (in_.role != PoolRole::kPrefill) return false;
  const auto r = static_cast<std::size_t>(request);
  return in_.first_token_from_decode || (in_.requests.output_tokens[r] > 1 &&
                                         in_.max_model_len - in_.requests.prompt_tokens[r] > 1);
}

void ScheduledReplica::HandOn(JobIndex index, TimeNs end) {
  const RequestId request = SeatOf(index).request;
  const auto r = static_cast<std::size_t>(request);
  const auto [blocks, tokens] = state_.Withhold(index);
  withheld_.push_back({request, blocks, tokens});
  SeatOf(index).request = kNoRequest;
  in_.results.state[r] = RequestState::kQueued;
  in_.results.generated[r] = in_.first_token_from_decode ? 0 : 1;
  in_.scratch.last_token[r] = end;
  HandOver& hand_over = in_.results.hand_overs[r];
  hand_over.prefilled = end;
  hand_over.prefill_replica = static_cast<std::int32_t>(in_.number);
  in_.inbox.Report({Inbox::HandOverEvent::Kind::kPrefilled, request, end});
}

void ScheduledReplica::FreeHandedOver(RequestId request, TimeNs time) {
  const auto at = std::find_if(withheld_.begin(), withheld_.end(),
                               [request](const Withheld& w) { return w.request == request; });
  state_.GiveBack(at->blocks, at->tokens);
  withheld_.erase(at);
  woken_ = std::min(woken_, time);
}

// To this replica, that decodes: as one that restarts, but that its tokens are computed elsewhere.
void ScheduledReplica::AddRemote(RequestId request, Job& job, Seat& seat) const {
  const auto r = static_cast<std::size_t>(request);
  if (!in_.results.HandedOver(r)) return;
  job.remote = true;
  job.prompt += in_.results.generated[r];
  if (in_.results.generated[r] > 0) seat.last_token = in_.scratch.last_token[r];
}

// For those that were admitted behind the first ones.
void ScheduledReplica::SendForKv(std::size_t first) {
  for (std::size_t i = first; i < state_.under_way.size(); ++i) {
    const RequestId request = SeatOf(state_.under_way[i]).request;
    const auto r = static_cast<std::size_t>(request);
    ++expected_;
    in_.results.hand_overs[r].reserved = now_;
    state_.Store(state_.under_way[i], state_.job(state_.under_way[i]).prompt - 1);
    in_.inbox.Report({Inbox::HandOverEvent::Kind::kReserved, request, now_,
                      CeilDiv(in_.requests.prompt_tokens[r], setup_.limits.block_size)});
  }
}

void ScheduledReplica::Arrive(RequestId request, TimeNs time) {
  in_.results.hand_overs[static_cast<std::size_t>(request)].arrived = time;
  const auto at = std::find_if(state_.under_way.begin(), state_.under_way.end(),
                               [&](JobIndex index) { return SeatOf(index).request == request; });
  if (at == state_.under_way.end()) return FreeHandedOver(request, time);  // its client gave up
  Job& job = state_.job(*at);
  job.remote = false;
  job.processed = job.prompt--;
  SeatOf(*at).fresh = true;
  SeatOf(*at).last_step = time;
  state_.arrived.push_back(*at);
  state_.under_way.erase(at);
  woken_ = std::min(woken_, time);
}

void ScheduledReplica::ResumeFresh(const Batch& members) {
  for (const BatchMember& member : members) {
    const Seat& seat = SeatOf(member.job);
    if (!seat.fresh) continue;
    const auto r = static_cast<std::size_t>(seat.request);
    HandOver& hand_over = in_.results.hand_overs[r];
    SERVECAST_CHECK(hand_over.arrived >= 0 && hand_over.arrived <= now_,
                    "I14: no request decodes before its KV has arrived");
    hand_over.resumed = StartTime();
    in_.results.state[r] = RequestState::kRunning;
    --expected_;
  }
}

// It is preempted before it was in a batch: from now on it waits as any other that is.
void ScheduledReplica::LoseFresh(Seat& seat) {
  seat.fresh = false;
  in_.results.hand_overs[static_cast<std::size_t>(seat.request)].resumed = now_;
  --expected_;
}

// Its client gave up.
void ScheduledReplica::AbortAdmitted(RequestId request, JobIndex index) {
  if (state_.job(index).remote || SeatOf(index).fresh) {
    --expected_;
    in_.recorder.Waiting(now_, queued());
  }
  if (state_.job(index).remote) {
    state_.under_way.erase(std::find(state_.under_way.begin(), state_.under_way.end(), index));
    const auto [blocks, tokens] = state_.Withhold(index);
    withheld_.push_back({request, blocks, tokens});
    return;
  }
  std::vector<JobIndex>& parked =
      std::find(state_.arrived.begin(), state_.arrived.end(), index) != state_.arrived.end()
          ? state_.arrived
          : state_.parked;
  parked.erase(std::find(parked.begin(), parked.end(), index));
  state_.End(index);
}

}  // namespace servecast
