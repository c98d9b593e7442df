#include "serving/cluster.h"

#include <algorithm>

#include "serving/disaggregated.h"

namespace servecast {

Cluster::Cluster(const Input& input)
    : Fleet(input.replica, input.replicas, input.pools, input.clients),
      in_(input),
      router_(input.router->make(input.seed)),
      loads_(static_cast<std::int64_t>(nodes_.size())),
      active_(static_cast<std::int32_t>(nodes_.size())),
      answers_bring_requests_(!input.replica.requests.think.empty() ||
                              !input.replica.requests.pause.empty()),
      session_of_(SessionsOf(input.replica.requests)) {
  in_.replica.horizon = std::min(in_.replica.horizon, kClockEnd);
}

std::unique_ptr<AnyReplica> MakeCluster(const Cluster::Input& input) {
  for (const ClusterPool& pool : input.pools) {
    if (pool.role != PoolRole::kMixed) return std::make_unique<Disaggregated>(input);
  }
  return std::make_unique<Cluster>(input);
}

bool Cluster::Advance(std::int64_t max_steps) {
  const bool independent = in_.router->ignores_load && !answers_bring_requests_;
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs arrival = in_.clients.NextEnqueue();
    const bool comes = arrival < in_.replica.horizon;
    if (comes && (independent || active_.empty() || active_.TopKey() >= arrival)) {
      Route(in_.clients.TakeNext(), arrival);
    } else if (!active_.empty()) {
      const std::int32_t node = active_.TopId();
      active_.Remove(node);
      TimeNs until = comes ? arrival : kNever;
      if (answers_bring_requests_ && !active_.empty()) {
        until = std::min(until, active_.TopKey() + 1);
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

// Steps that it took.
std::int64_t Cluster::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = *nodes_[static_cast<std::size_t>(index)];
  const std::int64_t before = node.recorder.steps();
  node.inbox.AllowUntil(until);
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) active_.Push(index, node.replica->now(), index);
  for (const TimeNs time : node.inbox.departures()) {
    if (in_.router->ignores_load) break;
    departures_.push_back({time, index});
    std::push_heap(departures_.begin(), departures_.end(), Later);
  }
  node.inbox.departures().clear();
  return node.recorder.steps() - before;
}

void Cluster::Route(RequestId request, TimeNs time) {
  while (!departures_.empty() && departures_.front().time <= time) {
    loads_.Change(departures_.front().replica, -1);
    std::pop_heap(departures_.begin(), departures_.end(), Later);
    departures_.pop_back();
  }
  const std::int32_t index =
      router_->Choose(DescribeForRouter(in_.replica.requests, session_of_, request), loads_);
  if (!in_.router->ignores_load) loads_.Change(index, 1);
  in_.replica.results.replica[static_cast<std::size_t>(request)] = index;
  Node& node = *nodes_[static_cast<std::size_t>(index)];
  const bool idle = !active_.Has(index);
  node.inbox.Send(request, time);
  if (idle) active_.Push(index, std::max(time, node.replica->now()), index);
}

std::vector<std::int32_t> SessionsOf(const RequestTable& requests) {
  std::vector<std::int32_t> sessions;
  for (std::size_t r = 0; r < requests.think.size(); ++r) {
    const auto row = static_cast<std::int32_t>(r);
    sessions.push_back(requests.think[r] >= 0 ? sessions.back() : row);
  }
  return sessions;
}

RoutedRequest DescribeForRouter(const RequestTable& requests,
                                const std::vector<std::int32_t>& sessions, RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  RoutedRequest routed;
  routed.number = request;
  routed.session = sessions.empty() ? request : sessions[r];
  routed.prompt_tokens = requests.prompt_tokens[r];
  if (!requests.segments.empty()) {
    std::int32_t segment = requests.content[r];
    while (segment >= 0 && requests.segments[static_cast<std::size_t>(segment)].parent >= 0) {
      segment = requests.segments[static_cast<std::size_t>(segment)].parent;
      routed.prefix = segment;
    }
  }
  return routed;
}

}  // namespace servecast
