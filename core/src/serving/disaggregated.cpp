#include "serving/disaggregated.h"

#include <algorithm>
#include <cmath>

namespace servecast {
namespace {

ReplicaInput ForAll(const Cluster::Input& input) {
  ReplicaInput all = input.replica;
  all.first_token_from_decode = input.disaggregation.first_token_from_decode;
  return all;
}

KvLink LinkOf(const DisaggregationSpec& spec) {
  return {static_cast<TimeNs>(std::nearbyint(spec.base_latency_us * 1e3)),
          static_cast<std::int64_t>(std::nearbyint(spec.bandwidth_gb_s * 1e9))};
}

}  // namespace

Disaggregated::Disaggregated(const Cluster::Input& input)
    : Fleet(ForAll(input), 0, input.pools, input.clients),
      in_(input),
      horizon_(std::min(input.replica.horizon, kClockEnd)),
      sides_(3),
      link_(LinkOf(input.disaggregation)),
      active_(static_cast<std::int32_t>(nodes_.size())),
      session_of_(SessionsOf(input.replica.requests)) {
  for (const auto& node : nodes_) {
    Side& side = sides_[static_cast<std::size_t>(pools_[node->pool].role)];
    side.nodes.push_back(static_cast<std::int32_t>(place_.size()));
    place_.push_back(static_cast<std::int32_t>(side.nodes.size()) - 1);
  }
  for (Side& side : sides_) side.loads = ReplicaLoads(static_cast<std::int64_t>(side.nodes.size()));
  const bool mixed = !sides_[static_cast<std::size_t>(PoolRole::kMixed)].nodes.empty();
  whole_ = GateOf(*in_.router, mixed ? PoolRole::kMixed : PoolRole::kDecode);
  prefill_ = GateOf(*in_.router, PoolRole::kPrefill);
  decode_ = GateOf(*in_.decode_router, PoolRole::kDecode);
  in_.replica.results.hand_overs.resize(in_.replica.requests.arrival.size());
}

Disaggregated::Gate Disaggregated::GateOf(const RouterEntry& entry, PoolRole role) {
  return {entry.make(in_.seed), &sides_[static_cast<std::size_t>(role)]};
}

bool Disaggregated::Advance(std::int64_t max_steps) {
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs event = NextEvent();
    const bool comes = event < horizon_;
    if (comes && (active_.empty() || active_.TopKey() >= event)) {
      Happen(event);
    } else if (!active_.empty()) {
      const std::int32_t index = active_.TopId();
      active_.Remove(index);
      TimeNs until = comes ? event : kNever - 1;
      if (!active_.empty()) until = std::min(until, active_.TopKey() + 1);
      steps += Run(index, until, max_steps - steps);
    } else {
      return Close();
    }
  }
  return false;
}

TimeNs Disaggregated::NextEvent() const {
  const TimeNs next = std::min(in_.clients.NextEnqueue(), link_.Next());
  return prefilled_.empty() ? next : std::min(next, prefilled_.front().time);
}

// One thing that does at `time`, that of the next event.
void Disaggregated::Happen(TimeNs time) {
  if (link_.Next() == time) {
    for (const RequestId request : link_.Pass()) {
      const std::int32_t index = in_.replica.results.replica[static_cast<std::size_t>(request)];
      NodeAt(index).replica->Arrive(request, time);
      Activate(index, time);
      Free(request, time);
    }
  } else if (in_.clients.NextEnqueue() == time) {
    const RequestId request = in_.clients.TakeNext();
    const std::int64_t prompt =
        in_.replica.requests.prompt_tokens[static_cast<std::size_t>(request)];
    Route(prompt > in_.disaggregation.above_tokens ? prefill_ : whole_, request, time);
  } else {
    const RequestId request = prefilled_.front().request;
    std::pop_heap(prefilled_.begin(), prefilled_.end(), LaterPrefill);
    prefilled_.pop_back();
    Route(decode_, request, time);
  }
}

void Disaggregated::Route(Gate& gate, RequestId request, TimeNs time) {
  Side& side = *gate.side;
  while (!side.departures.empty() && side.departures.front().time <= time) {
    side.loads.Change(side.departures.front().place, -1);
    std::pop_heap(side.departures.begin(), side.departures.end(), Later);
    side.departures.pop_back();
  }
  const std::int32_t place = gate.router->Choose(
      DescribeForRouter(in_.replica.requests, session_of_, request), side.loads);
  side.loads.Change(place, 1);
  const std::int32_t index = side.nodes[static_cast<std::size_t>(place)];
  in_.replica.results.replica[static_cast<std::size_t>(request)] = index;
  NodeAt(index).inbox.Send(request, time);
  if (!active_.Has(index) || NodeAt(index).replica->sleeps()) Activate(index, time);
}

// Steps that it took.
std::int64_t Disaggregated::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = NodeAt(index);
  const std::int64_t before = node.recorder.steps();
  node.inbox.AllowUntil(until);
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) {
    active_.Push(index, node.replica->now(), index);
  } else if (node.replica->sleeps() && node.replica->NextTimeout() < horizon_) {
    Activate(index, node.replica->NextTimeout());
  }
  Side& side = sides_[static_cast<std::size_t>(pools_[node.pool].role)];
  for (const TimeNs time : node.inbox.departures()) {
    side.departures.push_back({time, place_[static_cast<std::size_t>(index)]});
    std::push_heap(side.departures.begin(), side.departures.end(), Later);
  }
  node.inbox.departures().clear();
  Hear(node);
  return node.recorder.steps() - before;
}

// What a replica has to say to others.
void Disaggregated::Hear(Node& node) {
  for (const Inbox::Word& word : node.inbox.words()) {
    if (word.kind == Inbox::Word::Kind::kPrefilled) {
      prefilled_.push_back({word.time, word.request});
      std::push_heap(prefilled_.begin(), prefilled_.end(), LaterPrefill);
    } else if (word.kind == Inbox::Word::Kind::kReserved) {
      HandOver& hand_over = in_.replica.results.hand_overs[static_cast<std::size_t>(word.request)];
      hand_over.bytes = word.blocks * pools_[node.pool].block_bytes;
      link_.Start(word.request, hand_over.bytes, word.time);
    } else {
      Free(word.request, word.time);
    }
  }
  node.inbox.words().clear();
}

// The prefill side needs the request's blocks no more.
void Disaggregated::Free(RequestId request, TimeNs time) {
  const std::int32_t index =
      in_.replica.results.hand_overs[static_cast<std::size_t>(request)].prefill_replica;
  NodeAt(index).replica->FreeHandedOver(request, time);
  Activate(index, time);
}

// Something comes to a replica that may sleep.
void Disaggregated::Activate(std::int32_t index, TimeNs time) {
  const Replica& replica = *NodeAt(index).replica;
  const bool active = active_.Has(index);
  if (active && !replica.sleeps()) return;
  if (active) active_.Remove(index);
  active_.Push(index, std::max(time, replica.now()), index);
}

}  // namespace servecast
