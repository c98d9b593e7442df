#include "serving/cluster/cluster.h"

#include <algorithm>

#include "serving/cluster/disaggregated.h"

namespace servecast {

Cluster::Cluster(const Input& input)
    : Fleet(input.pools, input.clients),
      clients_(input.clients),
      horizon_(std::min(any().horizon, kClockEnd)),
      session_of_(SessionsOf(any().requests)),
      gateway_({.router = *input.router,
                .params = input.router_params,
                .seed = input.seed,
                .members = Members(),
                .requests = any().requests,
                .results = any().results,
                .sessions = session_of_}),
      by_vidur_(any().engine.compat == Compat::kVidur && !gateway_.ignores_load()),
      active_(static_cast<std::int32_t>(nodes_.size())),
      answers_bring_requests_(!any().requests.think.empty() || !any().requests.pause.empty()),
      lags_(!answers_bring_requests_ && !input.router->reads_engines && !by_vidur_) {}

std::unique_ptr<Engine> MakeCluster(const Cluster::Input& input) {
  for (const FleetPool& pool : input.pools) {
    if (pool.each.role != PoolRole::kMixed) return std::make_unique<Disaggregated>(input);
  }
  return std::make_unique<Cluster>(input);
}

bool Cluster::Advance(std::int64_t max_steps) {
  const bool independent = gateway_.ignores_load() && !answers_bring_requests_;
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs arrival = clients_.NextEnqueue();
    const TimeNs event = NextEvent(arrival);
    const bool comes = event < horizon_;
    if (comes && (independent || active_.empty() || active_.TopKey() >= event)) {
      Process(event, arrival);
    } else if (!active_.empty()) {
      const std::int32_t node = active_.TopId();
      active_.Remove(node);
      TimeNs until = comes ? event : kNever;
      if (answers_bring_requests_ && !active_.empty()) {
        // At one time the lowest goes first, however the run is sliced.
        until = std::min(until, active_.TopKey() + (node < active_.TopId() ? 1 : 0));
      } else if (answers_bring_requests_ && !comes) {
        until = kNever - 1;  // it may bring some itself
      }
      steps += Run(node, until, max_steps - steps);
    } else {
      return Close();
    }
  }
  return false;
}

// The next moment at which something happens that all replicas must have come to. Answers may bring
// a request at any moment from the slowest clock on.
TimeNs Cluster::NextEvent(TimeNs arrival) {
  TimeNs by = arrival;
  if (answers_bring_requests_ && !active_.empty()) by = std::min(by, active_.TopKey());
  return std::min({arrival, gateway_.NextLook(by), gateway_.NextOfHeld()});
}

// Of what happens at one time: signals, then clients that give up, then room for requests that are
// held, then the request that comes.
void Cluster::Process(TimeNs time, TimeNs arrival) {
  if (gateway_.LooksAt(time)) return gateway_.Look(time);
  if (gateway_.held() > 0 && gateway_.NextTimeout() <= time) {
    return clients_.GaveUp(gateway_.GiveUp(), time);
  }
  for (auto next = gateway_.ChooseForHeld(time); next.place != Router::kHold;
       next = gateway_.ChooseForHeld(time)) {
    Place(next.request, next.place, time);
  }
  if (time != arrival) return;
  const RequestId request = clients_.TakeNext();
  const std::int32_t place = by_vidur_ ? LeastWaiting() : gateway_.Choose(request, time);
  if (place != Router::kHold) Place(request, place, time);
}

// Steps that it took.
std::int64_t Cluster::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = *nodes_[static_cast<std::size_t>(index)];
  const std::int64_t before = node.recorder.steps();
  node.inbox.AllowUntil(until, gateway_.held() > 0);
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) {
    active_.Push(index, lags_ ? node.replica->QuietUntil() : node.replica->ready(), index);
  }
  for (const Inbox::Timed& left : node.inbox.departures()) {
    if (by_vidur_) break;
    gateway_.Left({left.time, index, left.request});
  }
  node.inbox.departures().clear();
  return node.recorder.steps() - before;
}

// Vidur's: what runs does not count.
std::int32_t Cluster::LeastWaiting() const {
  const auto waiting = [](const std::unique_ptr<Node>& node) {
    return node->replica->queued() + node->inbox.unread();
  };
  const auto least =
      std::min_element(nodes_.begin(), nodes_.end(),
                       [&](const auto& a, const auto& b) { return waiting(a) < waiting(b); });
  return static_cast<std::int32_t>(least - nodes_.begin());
}

void Cluster::Place(RequestId request, std::int32_t replica, TimeNs time) {
  gateway_.Placed(replica);
  any().results.replica[static_cast<std::size_t>(request)] = replica;
  Node& node = *nodes_[static_cast<std::size_t>(replica)];
  node.inbox.Send(request, time);
  const TimeNs matters = std::max(time, node.replica->ready());
  if (active_.Has(replica)) {
    if (active_.KeyOf(replica) <= matters) return;
    active_.Remove(replica);
  }
  active_.Push(replica, matters, replica);
}

void Cluster::WriteRecords(TimeNs end, Recorder& recorder) const {
  Fleet::WriteRecords(end, recorder);
  recorder.Add(gateway_.recorder(), end);
}

}  // namespace servecast
