#include "serving/cluster.h"

#include <algorithm>
#include <cmath>

#include "serving/disaggregated.h"

namespace servecast {

// How often the router hears from replicas; 0: at once.
static TimeNs PeriodOf(const Cluster::Input& input) {
  const std::span<const ParamSpec> specs = input.router->params;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name != std::string_view(kStaleness.name)) continue;
    return static_cast<TimeNs>(std::nearbyint(input.router_params[i] * 1e6));
  }
  return 0;
}

// Of replicas that differ: what the least of them has.
static RouterInput RouterInputOf(const Cluster::Input& input) {
  const EngineSpec& engine = input.replica.engine;
  RouterInput made{input.seed,
                   input.Replicas(),
                   input.router_params,
                   engine.block_size,
                   engine.enable_prefix_caching ? input.replica.pool_blocks - 1 : 0,
                   engine.max_num_seqs};
  for (std::size_t i = 0; i < input.pools.size(); ++i) {
    const EngineSpec& own = input.pools[i].engine;
    const std::int64_t cached = own.enable_prefix_caching ? input.pools[i].pool_blocks - 1 : 0;
    made.cached_blocks = i == 0 ? cached : std::min(made.cached_blocks, cached);
    made.seats = i == 0 ? own.max_num_seqs : std::min(made.seats, own.max_num_seqs);
    made.block_size = i == 0 ? own.block_size : std::max(made.block_size, own.block_size);
  }
  return made;
}

Cluster::Cluster(const Input& input)
    : Fleet(input.replica, input.replicas, input.pools, input.clients),
      in_(input),
      router_(input.router->make(RouterInputOf(input))),
      loads_(input.Replicas()),
      period_(PeriodOf(input)),
      held_(input.replica.requests, input.replica.results),
      active_(static_cast<std::int32_t>(input.Replicas())),
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

std::vector<std::int32_t> SessionsOf(const RequestTable& requests) {
  std::vector<std::int32_t> sessions;
  for (std::size_t r = 0; r < requests.think.size(); ++r) {
    const auto row = static_cast<std::int32_t>(r);
    sessions.push_back(requests.think[r] >= 0 ? sessions.back() : row);
  }
  return sessions;
}

std::vector<ContentRange> ContentFor(const RequestTable& requests, RequestId request,
                                     std::int64_t block_size) {
  std::vector<ContentRange> ranges;
  if (requests.content.empty()) return ranges;
  const auto r = static_cast<std::size_t>(request);
  std::int32_t segment = requests.content[r];
  for (std::int64_t last = (requests.prompt_tokens[r] - 1) / block_size;
       last > 0 && segment >= 0;) {
    const ContentSegment& content = requests.segments[static_cast<std::size_t>(segment)];
    const std::int64_t first = content.parent < 0 ? 0 : content.shared_tokens / block_size;
    if (first < last) ranges.push_back({segment, first, last});
    last = std::min(last, first);
    segment = content.parent;
  }
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

bool Cluster::Advance(std::int64_t max_steps) {
  const bool independent = in_.router->ignores_load && !answers_bring_requests_;
  for (std::int64_t steps = 0; steps < max_steps;) {
    const TimeNs arrival = in_.clients.NextEnqueue();
    const TimeNs event = NextEvent(arrival);
    const bool comes = event < in_.replica.horizon;
    if (comes && (independent || active_.empty() || active_.TopKey() >= event)) {
      Happen(event, arrival);
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

// The next moment at which something happens that all replicas must have come to.
TimeNs Cluster::NextEvent(TimeNs arrival) {
  TimeNs event = std::min(arrival, NextSignals(arrival));
  if (held_.empty()) return event;
  if (!departures_.empty()) event = std::min(event, departures_.front().time);
  return std::min(event, held_.NextTimeout());
}

// When engines are to be looked at before the next request comes; kNever: they have been. Answers
// may still bring one at any moment from the slowest clock on.
TimeNs Cluster::NextSignals(TimeNs arrival) const {
  if (period_ == 0 || !in_.router->reads_engines) return kNever;
  TimeNs by = arrival;
  if (answers_bring_requests_ && !active_.empty()) {
    by = std::min(by, std::max(active_.TopKey(), read_at_ + period_));
  }
  const TimeNs at = by / period_ * period_;
  return by == kNever || at <= read_at_ ? kNever : at;
}

// Of what happens at one time: signals, then clients who give up, then room for those who are held,
// then who comes.
void Cluster::Happen(TimeNs time, TimeNs arrival) {
  if (NextSignals(arrival) == time) {
    CountDepartures(time);
    ReadEngines(time);
    read_at_ = time;
    return;
  }
  if (!held_.empty() && held_.NextTimeout() <= time) {
    in_.clients.GaveUp(held_.GiveUp(), time);
    return;
  }
  CountDepartures(period_ > 0 ? time / period_ * period_ : time);
  PlaceHeld(time);
  if (time == arrival) Route(in_.clients.TakeNext(), time);
}

void Cluster::CountDepartures(TimeNs time) {
  while (!departures_.empty() && departures_.front().time <= time) {
    const Departure departure = departures_.front();
    std::pop_heap(departures_.begin(), departures_.end(), Later);
    departures_.pop_back();
    loads_.Change(departure.replica, -1);
    router_->Left(departure.request, departure.replica);
  }
}

void Cluster::ReadEngines(TimeNs time) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(nodes_.size()); ++i) {
    const Node& node = NodeAt(i);
    const EngineLoad load = node.replica->LoadAt(time);
    loads_.SetEngine(i, {std::max<std::int64_t>(loads_.Outstanding(i) - load.running, 0),
                         load.kv_blocks_used, pools_[node.pool].pool_blocks - 1});
  }
}

// Steps that it took.
std::int64_t Cluster::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = *nodes_[static_cast<std::size_t>(index)];
  const std::int64_t before = node.recorder.steps();
  node.inbox.AllowUntil(until, !held_.empty());
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) {
    active_.Push(index, node.by_former != nullptr ? node.replica->ready() : node.replica->now(),
                 index);
  }
  for (const Inbox::Timed& left : node.inbox.departures()) {
    if (in_.router->ignores_load) break;
    departures_.push_back({left.time, index, left.request});
    std::push_heap(departures_.begin(), departures_.end(), Later);
  }
  node.inbox.departures().clear();
  return node.recorder.steps() - before;
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

std::int32_t Cluster::Choose(RequestId request) {
  const bool vidur = in_.replica.engine.compat == Compat::kVidur && !in_.router->ignores_load;
  return vidur ? LeastWaiting() : router_->Choose(Describe(request), loads_);
}

void Cluster::PlaceHeld(TimeNs time) {
  while (!held_.empty()) {
    const RequestId request = held_.Front();
    const std::int32_t replica = Choose(request);
    if (replica == Router::kHold) return;
    Place(request, replica, time);
    held_.PopFront(time);
  }
}

void Cluster::Route(RequestId request, TimeNs time) {
  if (in_.router->reads_engines && period_ == 0) ReadEngines(time);
  const std::int32_t replica = held_.empty() ? Choose(request) : Router::kHold;
  if (replica == Router::kHold) {
    held_.Hold(request, time);
  } else {
    Place(request, replica, time);
  }
}

void Cluster::Place(RequestId request, std::int32_t replica, TimeNs time) {
  if (!in_.router->ignores_load) loads_.Change(replica, 1);
  in_.replica.results.replica[static_cast<std::size_t>(request)] = replica;
  Node& node = *nodes_[static_cast<std::size_t>(replica)];
  const bool idle = !active_.Has(replica);
  node.inbox.Send(request, time);
  if (idle) {
    active_.Push(replica, std::max(time, node.replica->ready()), replica);
  } else if (node.by_former != nullptr) {  // it may be ready earlier now
    active_.Remove(replica);
    active_.Push(replica, node.replica->ready(), replica);
  }
}

RoutedRequest Cluster::Describe(RequestId request) {
  const RequestTable& requests = in_.replica.requests;
  const auto r = static_cast<std::size_t>(request);
  content_.clear();
  if (in_.router->reads_content) {
    content_ = ContentFor(requests, request, pools_[0].engine.block_size);
  }
  return {request, session_of_.empty() ? request : session_of_[r], requests.prompt_tokens[r],
          content_};
}

void Cluster::WriteRecords(TimeNs end, Recorder& recorder) const {
  Fleet::WriteRecords(end, recorder);
  recorder.Add(held_.recorder(), end);
}

}  // namespace servecast
