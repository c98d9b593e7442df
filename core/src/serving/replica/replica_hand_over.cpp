// Prefill on one replica, decode on another, as vLLM's connectors have it. A prefill replica ends a
// request with its first token and keeps its blocks. On the decode side the request joins the queue
// as any other; at its head, with a seat free, the blocks of all its tokens are taken, but for
// those that the prefix cache has, and its KV sets out. Once that is there it runs before any
// in the queue, with one token to compute: the one that the prefill made, or the last of the prompt
// again when the decode side sends the first. If it is preempted later, it is computed again here.
// One that a prefill replica preempts with its token in flight (async scheduling) has lost that
// with its KV.
#include <algorithm>
#include <utility>

#include "serving/replica/replica.h"

namespace servecast {

void Replica::HandOn(const Output& output, TimeNs end) {
  const auto r = static_cast<std::size_t>(output.request);
  if (LosesToken(output.request)) return;
  Slot& slot = SlotAt(output.slot);
  --endings_;
  handed_over_.push_back({output.request, std::exchange(slot.holding, {})});
  RemoveFromRunning(output.slot);
  in_.results.state[r] = RequestState::kQueued;
  in_.results.generated[r] = in_.first_token_from_decode ? 0 : 1;
  last_token_[r] = end;
  HandOver& hand_over = in_.results.hand_overs[r];
  hand_over.prefilled = end;
  hand_over.prefill_replica = static_cast<std::int32_t>(in_.number);
  in_.inbox.Report({Inbox::HandOverEvent::Kind::kPrefilled, output.request, end});
}

// Its KV has arrived on the decode side, or is not wanted there any more.
void Replica::FreeHandedOver(RequestId request, TimeNs time) {
  const auto at = std::find_if(handed_over_.begin(), handed_over_.end(),
                               [request](const Parked& held) { return held.request == request; });
  const std::int64_t prompt = in_.requests.prompt_tokens[static_cast<std::size_t>(request)];
  kv_.Release(at->holding, request, kv_.BlocksFor(prompt), prompt, in_.inbox.HasNextTurn(request));
  handed_over_.erase(at);
  woken_ = std::min(woken_, time);
}

// Requires: HeadBlockedBy found that it can be, and nothing happened since.
void Replica::Reserve(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  Parked held{request, {}};
  kv_.HoldHit(held.holding);
  kv_.Take(kv_.BlocksFor(Known(request)) - hit_.blocks, now_);
  incoming_.push_back(std::move(held));
  ++expected_;
  in_.results.hand_overs[r].reserved = now_;
  const std::int64_t of_prompt = kv_.BlocksFor(in_.requests.prompt_tokens[r]);
  in_.inbox.Report({Inbox::HandOverEvent::Kind::kReserved, request, now_, of_prompt - hit_.blocks});
}

void Replica::Arrive(RequestId request, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  in_.results.hand_overs[r].arrived = time;
  woken_ = std::min(woken_, time);
  if (in_.results.state[r] != RequestState::kTimedOut) {
    arrived_.push_back(request);
    return;
  }
  const auto at = std::find_if(incoming_.begin(), incoming_.end(),
                               [request](const Parked& held) { return held.request == request; });
  kv_.Release(at->holding, request, kv_.BlocksFor(Known(request)), 0, false);
  incoming_.erase(at);
}

// Those that have arrived, in that order, while there are seats and budget.
void Replica::AdmitArrived(Plan& plan) {
  std::size_t admitted = 0;
  for (; admitted < arrived_.size(); ++admitted) {
    if (running_ >= seats_) plan.blocked = BlockedBy::kSeats;
    if (plan.budget <= 0) plan.blocked = BlockedBy::kTokenBudget;
    if (plan.blocked != BlockedBy::kNothing) break;
    const RequestId request = arrived_[admitted];
    HandOver& hand_over = in_.results.hand_overs[static_cast<std::size_t>(request)];
    SERVECAST_CHECK(hand_over.arrived >= 0 && hand_over.arrived <= now_,
                    "I14: no request decodes before its KV has arrived");
    hand_over.resumed = StartTime();
    const auto at = std::find_if(incoming_.begin(), incoming_.end(),
                                 [request](const Parked& held) { return held.request == request; });
    const SlotId id = AddToRunning(request);
    Slot& slot = SlotAt(id);
    slot.holding = std::move(at->holding);
    incoming_.erase(at);
    --expected_;
    slot.kind = MemberKind::kNew;
    slot.known = Known(request);
    slot.computed = slot.known - 1;
    slot.chunk = 1;
    slot.catches_up = true;
    slot.decodes_before = group_->size();
    kv_.Register(slot.holding, request, slot.known);
    --plan.budget;
    prefills_.push_back(id);
  }
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(admitted));
}

// The client of a request that waits gave up. False: it waits in the queue. Blocks that KV is on
// its way to are free when it has arrived.
bool Replica::GiveUpTransfer(RequestId request) {
  if (in_.role != PoolRole::kDecode || !in_.results.HandedOver(static_cast<std::size_t>(request))) {
    return false;
  }
  if (ComesByTransfer(request)) {
    in_.inbox.Report({Inbox::HandOverEvent::Kind::kAbandoned, request, now_});
    return false;
  }
  const auto held = std::find_if(incoming_.begin(), incoming_.end(),
                                 [request](const Parked& h) { return h.request == request; });
  if (held == incoming_.end()) return false;  // preempted, since it arrived
  --expected_;
  const auto there = std::find(arrived_.begin(), arrived_.end(), request);
  if (there == arrived_.end()) return true;
  arrived_.erase(there);
  kv_.Release(held->holding, request, kv_.BlocksFor(Known(request)), 0, false);
  incoming_.erase(held);
  return true;
}

}  // namespace servecast
