#include "serving/cluster/disaggregated.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace servecast {
namespace {

KvLink LinkOf(const DisaggregationSpec& spec) {
  return {static_cast<TimeNs>(std::nearbyint(spec.base_latency_us * 1e3)),
          static_cast<std::int64_t>(std::nearbyint(*spec.bandwidth_gb_s * 1e9))};
}

}  // namespace

Disaggregated::Disaggregated(const Cluster::Input& input)
    : Fleet(input.pools, input.clients),
      in_(input),
      horizon_(std::min(any().horizon, kClockEnd)),
      session_of_(SessionsOf(any().requests)),
      entered_by_(any().requests.arrival.size(), kSides),
      link_(LinkOf(input.disaggregation)),
      active_(static_cast<std::int32_t>(nodes_.size())) {
  bool mixed = false;
  for (const FleetPool& pool : pools_) mixed = mixed || pool.each.role == PoolRole::kMixed;
  Open(kDecode, PoolRole::kDecode);
  if (in_.disaggregation.above_tokens > 0) {
    Open(kWhole, mixed ? PoolRole::kMixed : PoolRole::kDecode);
  }
  Open(kPrefill, PoolRole::kPrefill);
  any().results.hand_overs.resize(any().requests.arrival.size());
}

// Draws for both replicas of a request are independent of each other.
void Disaggregated::Open(Side side, PoolRole role) {
  Entrance& entrance = entrances_[side];
  entrance.role = role;
  place_.resize(nodes_.size());
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(nodes_.size()); ++i) {
    if (RoleOf(i) != role) continue;
    place_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(entrance.nodes.size());
    entrance.nodes.push_back(i);
  }
  const bool decode = side == kDecode;
  const std::int64_t own = static_cast<std::int64_t>(Mix64(static_cast<std::uint64_t>(in_.seed)));
  entrance.gateway.emplace(
      Gateway::Input{.router = decode ? *in_.decode_router : *in_.router,
                     .params = decode ? in_.decode_router_params : in_.router_params,
                     .seed = decode ? own : in_.seed,
                     .members = Members(role),
                     .requests = any().requests,
                     .results = any().results,
                     .sessions = session_of_});
}

bool Disaggregated::Advance(std::int64_t max_steps) {
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs event = NextEvent();
    const bool comes = event < horizon_;
    if (comes && (active_.empty() || active_.TopKey() >= event)) {
      Process(event);
    } else if (!active_.empty()) {
      const std::int32_t index = active_.TopId();
      active_.Remove(index);
      TimeNs until = comes ? event : kNever - 1;
      // At one time the lowest goes first, however the run is sliced.
      if (!active_.empty()) {
        until = std::min(until, active_.TopKey() + (index < active_.TopId() ? 1 : 0));
      }
      steps += Run(index, until, max_steps - steps);
    } else {
      return Close();
    }
  }
  return false;
}

TimeNs Disaggregated::NextEvent() {
  TimeNs next = std::min(in_.clients.NextEnqueue(), link_.Next());
  if (!prefilled_.empty()) next = std::min(next, prefilled_.front().time);
  const TimeNs by = active_.empty() ? next : std::min(next, active_.TopKey());
  for (Entrance& entrance : entrances_) {
    if (!entrance.gateway) continue;
    next = std::min({next, entrance.gateway->NextLook(by), entrance.gateway->NextOfHeld()});
  }
  return next;
}

// One thing that does at `time`, that of the next event.
void Disaggregated::Process(TimeNs time) {
  if (link_.Next() == time) return PassLink(time);
  for (const Side side : {kDecode, kWhole, kPrefill}) {
    if (entrances_[side].gateway && ProcessAtGateway(side, time)) return;
  }
  if (in_.clients.NextEnqueue() == time) {
    const RequestId request = in_.clients.TakeNext();
    const std::int64_t prompt = any().requests.prompt_tokens[static_cast<std::size_t>(request)];
    Route(prompt > in_.disaggregation.above_tokens ? kPrefill : kWhole, request, time);
  } else {
    const RequestId request = prefilled_.front().request;
    std::pop_heap(prefilled_.begin(), prefilled_.end(), LaterPrefill);
    prefilled_.pop_back();
    Route(kDecode, request, time);
  }
}

// False: nothing of its own does.
bool Disaggregated::ProcessAtGateway(Side side, TimeNs time) {
  Gateway& gateway = *entrances_[side].gateway;
  if (gateway.LooksAt(time)) {
    gateway.Look(time);
    return true;
  }
  if (gateway.NextOfHeld() > time) return false;
  if (gateway.NextTimeout() <= time) {
    const RequestId request = gateway.GiveUp();
    in_.clients.GaveUp(request, time);
    if (side == kDecode) Free(request, time);
    return true;
  }
  for (auto next = gateway.ChooseForHeld(time); next.place != Router::kHold;
       next = gateway.ChooseForHeld(time)) {
    Place(side, next.request, next.place, time);
  }
  return true;
}

void Disaggregated::PassLink(TimeNs time) {
  for (const RequestId request : link_.Pass()) {
    const std::int32_t index = any().results.replica[static_cast<std::size_t>(request)];
    NodeAt(index).replica->Arrive(request, time);
    Activate(index, time);
    Free(request, time);
  }
}

void Disaggregated::Route(Side side, RequestId request, TimeNs time) {
  const std::int32_t place = entrances_[side].gateway->Choose(request, time);
  if (place != Router::kHold) Place(side, request, place, time);
}

void Disaggregated::Place(Side side, RequestId request, std::int32_t place, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  const Entrance& to = entrances_[side];
  for (Entrance& entrance : entrances_) {
    if (entrance.gateway && entrance.role == to.role) entrance.gateway->Placed(place);
  }
  entered_by_[r] = static_cast<std::uint8_t>(side);
  const std::int32_t index = to.nodes[static_cast<std::size_t>(place)];
  any().results.replica[r] = index;
  NodeAt(index).inbox.Send(request, time);
  Activate(index, time);
}

// Steps that it took.
std::int64_t Disaggregated::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = NodeAt(index);
  const std::int64_t before = node.recorder.steps();
  const PoolRole role = RoleOf(index);
  bool to_departure = false;
  for (const Entrance& entrance : entrances_) {
    if (entrance.gateway && entrance.role == role) to_departure |= entrance.gateway->held() > 0;
  }
  node.inbox.AllowUntil(until, to_departure);
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) {
    active_.Push(index, node.replica->ready(), index);
  } else if (const TimeNs wakes = node.replica->Wakes(); wakes < horizon_) {
    active_.Push(index, std::max(wakes, node.replica->now()), index);
  }
  for (const Inbox::Timed& left : node.inbox.departures()) {
    const std::size_t own = entered_by_[static_cast<std::size_t>(left.request)];
    for (std::size_t side = 0; side < kSides; ++side) {
      Entrance& entrance = entrances_[side];
      if (!entrance.gateway || entrance.role != role) continue;
      entrance.gateway->Left(
          {left.time, place_[static_cast<std::size_t>(index)], left.request, side == own});
    }
  }
  node.inbox.departures().clear();
  PassEvents(node);
  return node.recorder.steps() - before;
}

// What a replica has to say to others.
void Disaggregated::PassEvents(Node& node) {
  for (const Inbox::HandOverEvent& event : node.inbox.events()) {
    if (event.kind == Inbox::HandOverEvent::Kind::kPrefilled) {
      prefilled_.push_back({event.time, event.request});
      std::push_heap(prefilled_.begin(), prefilled_.end(), LaterPrefill);
    } else if (event.kind == Inbox::HandOverEvent::Kind::kReserved) {
      HandOver& hand_over = any().results.hand_overs[static_cast<std::size_t>(event.request)];
      hand_over.bytes = event.blocks * pools_[node.pool].block_bytes;
      link_.Start(event.request, hand_over.bytes, event.time);
    } else {
      Free(event.request, event.time);
    }
  }
  node.inbox.events().clear();
}

// The prefill side needs the request's blocks no more.
void Disaggregated::Free(RequestId request, TimeNs time) {
  const std::int32_t index =
      any().results.hand_overs[static_cast<std::size_t>(request)].prefill_replica;
  NodeAt(index).replica->FreeHandedOver(request, time);
  Activate(index, time);
}

// Something comes to a replica that may sleep, or wait for a batch while another could be formed.
void Disaggregated::Activate(std::int32_t index, TimeNs time) {
  const TimeNs matters = std::max(time, NodeAt(index).replica->ready());
  if (active_.Has(index)) {
    if (active_.KeyOf(index) <= matters) return;
    active_.Remove(index);
  }
  active_.Push(index, matters, index);
}

std::int64_t Disaggregated::queued() const {
  std::int64_t sum = Fleet::queued();
  for (const Entrance& entrance : entrances_) {
    if (entrance.gateway) sum += entrance.gateway->held();
  }
  return sum;
}

std::int64_t Disaggregated::timed_out() const {
  std::int64_t sum = Fleet::timed_out();
  for (const Entrance& entrance : entrances_) {
    if (entrance.gateway) sum += entrance.gateway->timed_out();
  }
  return sum;
}

void Disaggregated::WriteRecords(TimeNs end, Recorder& recorder) const {
  Fleet::WriteRecords(end, recorder);
  for (const Entrance& entrance : entrances_) {
    if (entrance.gateway) recorder.Add(entrance.gateway->recorder(), end);
  }
}

}  // namespace servecast
