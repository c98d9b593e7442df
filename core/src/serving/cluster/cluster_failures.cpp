// Replicas that fail or are cut off as they drain, and what ends with them.
//
// A request is lost with the replica that it waits for or runs on and, until its KV has wholly
// arrived on a decode replica, with the prefill replica that holds it. Connections close at that
// moment, between replicas, too: the other side knows at once, and frees blocks between two steps.
#include <algorithm>

#include "serving/cluster/cluster.h"

namespace servecast {

// Up to the horizon; without one while there is work, or replicas may come and go, and up to the
// last request: a replica may have run ahead of it.
bool Cluster::ReplicasMayFail() const {
  if (!failures_) return false;
  if (horizon_ < kClockEnd || clients_.NextEnqueue() < kNever || !active_.empty() ||
      MembersMayChange() || membership_->Staying() > 0 ||
      failures_->Next() <= membership_->LastLeft()) {
    return true;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const bool returns = failures_->Returns(static_cast<std::int32_t>(i));
    if (returns && HeldBefore(nodes_[i]->role) > 0) return true;
  }
  return false;
}

void Cluster::PassFailure(TimeNs time) {
  const Failures::Event event = failures_->Take();
  if (event.kind == Failures::Kind::kFails) {
    Fail(event.replica, time);
  } else {
    const bool up = event.kind == Failures::Kind::kComesUp;
    if (up) membership_->Recovered(event.replica, time);
    SetAvailable(event.replica, up);
  }
  // Replicas that come up at one moment share what is held.
  if (failures_->Next() > time || !ReplicasMayFail()) PlaceHeld(time);
}

void Cluster::Fail(std::int32_t index, TimeNs time) {
  const bool with_requests = EndReplica(index, time);
  if (!membership_->Failed(index, time, with_requests)) failures_->Retire(index);
}

bool Cluster::IsOver(RequestId request) const {
  const RequestState state = any().results.state[static_cast<std::size_t>(request)];
  return state == RequestState::kCompleted || IsLost(state);
}

// All that is on the replica ends with it: what its clients still wait for is lost. False: there
// was nothing.
bool Cluster::EndReplica(std::int32_t index, TimeNs time) {
  if (active_.Has(index)) active_.Remove(index);
  Node& node = NodeAt(index);
  Ended ended;
  const std::vector<RequestId> withheld = node.replica->WithheldFor();
  for (const RequestId request : withheld) LoseKv(index, request, time, ended);
  std::vector<RequestId>& placed = placed_[static_cast<std::size_t>(index)];
  std::sort(placed.begin(), placed.end());
  if (node.role == PoolRole::kDecode) {
    for (const RequestId request : placed) StopTransfer(request, time);
  }
  std::erase_if(placed, [&](RequestId request) {
    const bool gone_on = node.role == PoolRole::kPrefill &&
                         any().results.HandedOver(static_cast<std::size_t>(request));
    return gone_on || IsOver(request);
  });
  if (!placed.empty()) node.replica->Die(time);
  for (const RequestId request : placed) EndOn(index, request, time, ended);
  const bool some = !placed.empty() || !withheld.empty();
  placed.clear();
  Replace(index, failures_ ? failures_->DiesAt(index) : kNever, ended.timed_out, ended.lost);
  for (Gateway& gateway : gateways_) {
    if (gateway.role() == node.role) gateway.Replaced(node.place, node.replica.get());
  }
  return some;
}

// The prefill replica ends, and with it KV that it holds for a request which waits for a decode
// replica, or for the KV on one.
void Cluster::LoseKv(std::int32_t prefill, RequestId request, TimeNs time, Ended& ended) {
  membership_->KvWent(prefill, time);
  link_.Stop(request, time);
  const std::int32_t index = any().results.replica[static_cast<std::size_t>(request)];
  if (index != prefill) {
    NodeAt(index).replica->LoseTransfer(request, time);
    Activate(index, time);
    if (!IsOver(request)) EndOn(index, request, time, ended);
    return;
  }
  const auto comes = std::find_if(handed_on_.begin(), handed_on_.end(),
                                  [=](const Timed& one) { return one.request == request; });
  if (comes == handed_on_.end()) {
    gateways_.front().Lost(time);
  } else {
    handed_on_.erase(comes);
    std::make_heap(handed_on_.begin(), handed_on_.end(), Later);
  }
  End(request, time, ended);
}

// The decode replica ends on which the request waits for KV, if it does, or its client gave up as
// that was on its way.
void Cluster::StopTransfer(RequestId request, TimeNs time) {
  const RequestResults& results = any().results;
  const auto r = static_cast<std::size_t>(request);
  if (!results.HandedOver(r) || results.hand_overs[r].arrived >= 0) return;
  const bool waits = results.hand_overs[r].reserved < 0 && !IsOver(request);
  if (link_.Stop(request, time) || waits) Free(request, time);
}

// A request that is on a replica ends with it, or with its KV.
void Cluster::EndOn(std::int32_t index, RequestId request, TimeNs time, Ended& ended) {
  NodeAt(index).recorder.Left(time);
  LeavesAt(index, request, time);
  End(request, time, ended);
}

// Lost, but where its client's time is over.
void Cluster::End(RequestId request, TimeNs time, Ended& ended) {
  const auto r = static_cast<std::size_t>(request);
  const std::vector<TimeNs>& timeout = any().requests.timeout;
  if (timeout.empty() || timeout[r] > time - any().requests.arrival[r]) {
    ++ended.lost;
    return Lose(request, time);
  }
  ++ended.timed_out;
  any().results.state[r] = RequestState::kTimedOut;
  clients_.GaveUp(request, time);
}

void Cluster::Refuse(std::int32_t index, RequestId request, TimeNs time) {
  ++refused_;
  LeavesAt(index, request, time);
  Lose(request, time);
  if (any().results.HandedOver(static_cast<std::size_t>(request))) Free(request, time);
}

// The connection to the replica is closed or refused.
void Cluster::Lose(RequestId request, TimeNs time) {
  RequestResults& results = any().results;
  results.state[static_cast<std::size_t>(request)] = RequestState::kLost;
  results.lost_at[static_cast<std::size_t>(request)] = time;
  clients_.TurnedAway(request, time);
}

void Cluster::LeavesAt(std::int32_t index, RequestId request, TimeNs time) {
  membership_->Left(index, time);
  TellGateways(index, time, request);
}

}  // namespace servecast
