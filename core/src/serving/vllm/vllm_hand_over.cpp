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

#include "serving/vllm/vllm_scheduler.h"

namespace servecast {

void VllmScheduler::HandOn(RequestId request, SlotId id, TimeNs end) {
  if (LosesToken(request)) return;
  Slot& slot = SlotAt(id);
  --endings_;
  const std::int64_t prompt = in_.requests.prompt_tokens[static_cast<std::size_t>(request)];
  Machine::Withheld held{request, std::exchange(slot.holding, {}), kv_.BlocksFor(prompt), prompt};
  RemoveFromRunning(id);
  machine_.HandOn(std::move(held), end);
}

// Requires: HeadBlockedBy found that it can be, and nothing happened since.
void VllmScheduler::Reserve(RequestId request) {
  Incoming incoming{request, {}};
  kv_.HoldHit(incoming.holding);
  kv_.Take(kv_.BlocksFor(Known(request)) - hit_.blocks, machine_.now());
  incoming_.push_back(std::move(incoming));
  const std::int64_t of_prompt =
      kv_.BlocksFor(in_.requests.prompt_tokens[static_cast<std::size_t>(request)]);
  machine_.SendForKv(request, of_prompt - hit_.blocks);
}

void VllmScheduler::Arrive(RequestId request, TimeNs) {
  if (in_.results.state[static_cast<std::size_t>(request)] != RequestState::kTimedOut) {
    arrived_.push_back(request);
    return;
  }
  FreeIncoming(request);
}

void VllmScheduler::LoseTransfer(RequestId request) {
  if (ComesByTransfer(request)) return LeaveQueue(request);
  const RequestState state = in_.results.state[static_cast<std::size_t>(request)];
  if (state != RequestState::kTimedOut) machine_.ExpectNoMore();
  FreeIncoming(request);
}

void VllmScheduler::FreeIncoming(RequestId request) {
  const auto at = std::find_if(incoming_.begin(), incoming_.end(),
                               [request](const Incoming& i) { return i.request == request; });
  kv_.Release(at->holding, request, kv_.BlocksFor(Known(request)), 0, false);
  incoming_.erase(at);
}

// Those that have arrived, in that order, while there are seats and budget.
void VllmScheduler::AdmitArrived(Call& call) {
  std::size_t admitted = 0;
  for (; admitted < arrived_.size(); ++admitted) {
    if (running_ >= in_.engine.max_num_seqs) call.plan.blocked = BlockedBy::kSeats;
    if (call.budget <= 0) call.plan.blocked = BlockedBy::kTokenBudget;
    if (call.plan.blocked != BlockedBy::kNothing) break;
    const RequestId request = arrived_[admitted];
    machine_.Resume(request);
    const auto at = std::find_if(incoming_.begin(), incoming_.end(),
                                 [request](const Incoming& i) { return i.request == request; });
    const SlotId id = AddToRunning(request);
    Slot& slot = SlotAt(id);
    slot.holding = std::move(at->holding);
    incoming_.erase(at);
    slot.kind = MemberKind::kNew;
    slot.known = Known(request);
    slot.computed = slot.known - 1;
    slot.chunk = 1;
    slot.blocks = kv_.BlocksFor(slot.known);
    slot.decodes = true;
    slot.decodes_before = group_->size();
    kv_.Register(slot.holding, request, slot.known);
    --call.budget;
    apart_.push_back(id);
  }
  arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(admitted));
}

// The client of a request that waits gave up. False: it waits in the queue. Blocks that KV is on
// its way to are free when it has arrived.
bool VllmScheduler::GiveUpTransfer(RequestId request) {
  if (in_.role != PoolRole::kDecode || !in_.results.HandedOver(static_cast<std::size_t>(request))) {
    return false;
  }
  if (ComesByTransfer(request)) {
    in_.inbox->Report({Inbox::HandOverEvent::Kind::kAbandoned, request, machine_.now()});
    return false;
  }
  const auto held = std::find_if(incoming_.begin(), incoming_.end(),
                                 [request](const Incoming& i) { return i.request == request; });
  if (held == incoming_.end()) return false;  // preempted, since it arrived
  machine_.ExpectNoMore();
  const auto there = std::find(arrived_.begin(), arrived_.end(), request);
  if (there == arrived_.end()) return true;
  arrived_.erase(there);
  FreeIncoming(request);
  return true;
}

}  // namespace servecast
