#include "serving/cluster.h"

#include <algorithm>

#include "serving/former_replica.h"

namespace servecast {

Cluster::Cluster(const Input& input)
    : in_(input),
      router_(input.router->make(input.seed)),
      loads_(input.replicas),
      active_(static_cast<std::int32_t>(input.replicas)),
      answers_bring_requests_(!input.replica.requests.think.empty() ||
                              !input.replica.requests.pause.empty()) {
  in_.replica.horizon = std::min(in_.replica.horizon, kClockEnd);
  const RequestTable& requests = in_.replica.requests;
  for (std::int64_t i = 0; i < in_.replicas; ++i) {
    nodes_.push_back(std::make_unique<Node>(
        Node{Inbox(in_.clients, requests, in_.replica.results, true), in_.replica.recorder, {}}));
    Node& node = *nodes_.back();
    // All but the inbox and the recorder as given.
    const ReplicaInput one{in_.replica.engine,
                           in_.replica.scheduler,
                           in_.replica.pool_blocks,
                           in_.replica.max_model_len,
                           requests,
                           node.inbox,
                           in_.replica.latency,
                           in_.replica.results,
                           node.recorder,
                           in_.replica.scratch,
                           input.replica.horizon,
                           in_.replica.observer,
                           in_.replica.kv_tiers,
                           i,
                           true,
                           in_.replica.stages,
                           in_.replica.former};
    if (one.former != nullptr) {
      node.replica = MakeFormerReplica(one);
    } else {
      node.replica = std::make_unique<Replica>(one);
    }
  }
  for (std::size_t r = 0; r < requests.think.size(); ++r) {
    const auto row = static_cast<std::int32_t>(r);
    session_of_.push_back(requests.think[r] >= 0 ? session_of_.back() : row);
  }
}

std::unique_ptr<AnyReplica> MakeCluster(const Cluster::Input& input) {
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
  if (!idle) active_.Push(index, node.replica->ready(), index);
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
  const bool vidur = in_.replica.engine.compat == Compat::kVidur && !in_.router->ignores_load;
  const std::int32_t index = vidur ? LeastWaiting() : router_->Choose(Describe(request), loads_);
  if (!in_.router->ignores_load) loads_.Change(index, 1);
  in_.replica.results.replica[static_cast<std::size_t>(request)] = index;
  Node& node = *nodes_[static_cast<std::size_t>(index)];
  node.inbox.Send(request);
  if (active_.Has(index)) active_.Remove(index);  // it may be ready earlier now
  active_.Push(index, node.replica->ready(), index);
}

// Vidur's: who runs does not count.
std::int32_t Cluster::LeastWaiting() const {
  const auto waiting = [](const std::unique_ptr<Node>& node) {
    return node->replica->queued() + node->inbox.unread();
  };
  const auto least =
      std::min_element(nodes_.begin(), nodes_.end(),
                       [&](const auto& a, const auto& b) { return waiting(a) < waiting(b); });
  return static_cast<std::int32_t>(least - nodes_.begin());
}

RoutedRequest Cluster::Describe(RequestId request) const {
  const RequestTable& requests = in_.replica.requests;
  const auto r = static_cast<std::size_t>(request);
  RoutedRequest routed;
  routed.number = request;
  routed.session = session_of_.empty() ? request : session_of_[r];
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

// Nobody comes any more, and nobody has anything to do before the horizon.
bool Cluster::Close() {
  for (const auto& node : nodes_) {
    node->inbox.AllowUntil(kNever);
    node->replica->Advance(1);
  }
  return true;
}

// ---- All replicas together ----------------------------------------------------------------

TimeNs Cluster::now() const {
  TimeNs latest = 0;
  for (const auto& node : nodes_) latest = std::max(latest, node->replica->now());
  return latest;
}

std::int64_t Cluster::Sum(std::int64_t (AnyReplica::*figure)() const) const {
  std::int64_t sum = 0;
  for (const auto& node : nodes_) sum += ((*node->replica).*figure)();
  return sum;
}

const PrefixCacheReport& Cluster::prefix_cache() {
  prefix_cache_ = {};
  for (const auto& node : nodes_) {
    const PrefixCacheReport& one = node->replica->prefix_cache();
    prefix_cache_.query_tokens += one.query_tokens;
    prefix_cache_.hit_tokens += one.hit_tokens;
    prefix_cache_.query_blocks += one.query_blocks;
    prefix_cache_.hit_blocks += one.hit_blocks;
    prefix_cache_.resumed_hit_tokens += one.resumed_hit_tokens;
    prefix_cache_.evicted_blocks += one.evicted_blocks;
  }
  return prefix_cache_;
}

SchedulerCounts Cluster::counts() const {
  SchedulerCounts sum;
  for (const auto& node : nodes_) {
    const SchedulerCounts one = node->replica->counts();
    sum.prefill_tokens += one.prefill_tokens;
    sum.padding_tokens += one.padding_tokens;
    sum.gc_passes += one.gc_passes;
    sum.stage_busy_ns += one.stage_busy_ns;
  }
  return sum;
}

KvOffloadReport Cluster::kv_offload() const {
  KvOffloadReport sum;
  for (const auto& node : nodes_) {
    const KvOffloadReport one = node->replica->kv_offload();
    sum.on = one.on;
    for (std::size_t i = 0; i < kKvTiers; ++i) {
      sum.tiers[i].blocks += one.tiers[i].blocks;
      sum.tiers[i].hit_tokens += one.tiers[i].hit_tokens;
      sum.tiers[i].hit_blocks += one.tiers[i].hit_blocks;
      sum.tiers[i].loaded_blocks += one.tiers[i].loaded_blocks;
    }
    sum.offloaded_blocks += one.offloaded_blocks;
    sum.thrashed_blocks += one.thrashed_blocks;
    sum.transfer_ns += one.transfer_ns;
  }
  return sum;
}

void Cluster::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const auto& node : nodes_) node->replica->WriteProgress(generated);
}

void Cluster::WriteRecords(TimeNs end, Recorder& recorder) const {
  for (const auto& node : nodes_) recorder.Add(node->recorder, end);
}

}  // namespace servecast
