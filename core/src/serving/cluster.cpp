#include "serving/cluster.h"

#include <algorithm>
#include <cmath>

#include "serving/former_replica.h"

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

static RouterInput RouterInputOf(const Cluster::Input& input) {
  const EngineSpec& engine = input.replica.engine;
  return {input.seed,
          input.replicas,
          input.router_params,
          engine.block_size,
          engine.enable_prefix_caching ? input.replica.pool_blocks - 1 : 0,
          engine.max_num_seqs};
}

Cluster::Cluster(const Input& input)
    : in_(input),
      router_(input.router->make(RouterInputOf(input))),
      loads_(input.replicas),
      period_(PeriodOf(input)),
      held_(input.replica.requests, input.replica.results),
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
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(in_.replicas); ++i) {
    const EngineLoad load = nodes_[static_cast<std::size_t>(i)]->replica->LoadAt(time);
    loads_.SetEngine(i, {std::max<std::int64_t>(loads_.Outstanding(i) - load.running, 0),
                         load.kv_blocks_used, in_.replica.pool_blocks - 1});
  }
}

// Steps that it took.
std::int64_t Cluster::Run(std::int32_t index, TimeNs until, std::int64_t max_steps) {
  Node& node = *nodes_[static_cast<std::size_t>(index)];
  const std::int64_t before = node.recorder.steps();
  node.inbox.AllowUntil(until, !held_.empty());
  const bool idle = node.replica->Advance(max_steps);
  if (!idle) {
    active_.Push(index, in_.replica.former != nullptr ? node.replica->ready() : node.replica->now(),
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
  } else if (in_.replica.former != nullptr) {  // it may be ready earlier now
    active_.Remove(replica);
    active_.Push(replica, node.replica->ready(), replica);
  }
}

RoutedRequest Cluster::Describe(RequestId request) {
  const RequestTable& requests = in_.replica.requests;
  const auto r = static_cast<std::size_t>(request);
  content_.clear();
  if (in_.router->reads_content && !requests.content.empty()) {
    const std::int64_t block_size = in_.replica.engine.block_size;
    std::int32_t segment = requests.content[r];
    for (std::int64_t last = (requests.prompt_tokens[r] - 1) / block_size;
         last > 0 && segment >= 0;) {
      const ContentSegment& content = requests.segments[static_cast<std::size_t>(segment)];
      const std::int64_t first = content.parent < 0 ? 0 : content.shared_tokens / block_size;
      if (first < last) content_.push_back({segment, first, last});
      last = std::min(last, first);
      segment = content.parent;
    }
    std::reverse(content_.begin(), content_.end());
  }
  return {request, session_of_.empty() ? request : session_of_[r], requests.prompt_tokens[r],
          content_};
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

std::vector<ReplicaReport> Cluster::PerReplica(TimeNs end) const {
  const RequestTable& requests = in_.replica.requests;
  const RequestResults& results = in_.replica.results;
  std::vector<ReplicaReport> reports(nodes_.size());
  std::vector<std::int64_t> first_tokens(nodes_.size(), 0);
  std::vector<double> ttft_ns(nodes_.size(), 0), outstanding_ns(nodes_.size(), 0);
  for (std::size_t r = 0; r < results.replica.size(); ++r) {
    if (results.replica[r] < 0) continue;
    const auto i = static_cast<std::size_t>(results.replica[r]);
    TimeNs over = results.completion[r] >= 0 ? results.completion[r] : end;
    if (results.state[r] == RequestState::kTimedOut) {
      over = std::min(over, requests.arrival[r] + requests.timeout[r]);
    }
    ++reports[i].requests;
    outstanding_ns[i] += static_cast<double>(std::min(over, end) - results.enqueue[r]);
    if (results.first_token[r] < 0) continue;
    ++first_tokens[i];
    ttft_ns[i] += static_cast<double>(results.first_token[r] - requests.arrival[r]);
  }
  const auto all = static_cast<double>(std::max<TimeNs>(end, 1));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Recorder& recorder = nodes_[i]->recorder;
    reports[i].busy_share = static_cast<double>(recorder.busy_ns()) / all;
    reports[i].mean_outstanding = outstanding_ns[i] / all;
    reports[i].kv_peak_usage = static_cast<double>(recorder.peak_kv_blocks()) /
                               static_cast<double>(in_.replica.pool_blocks - 1);
    if (first_tokens[i] > 0) {
      reports[i].ttft_mean_ms = ttft_ns[i] / static_cast<double>(first_tokens[i]) / 1e6;
    }
  }
  return reports;
}

void Cluster::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const auto& node : nodes_) node->replica->WriteProgress(generated);
}

void Cluster::WriteRecords(TimeNs end, Recorder& recorder) const {
  for (const auto& node : nodes_) recorder.Add(node->recorder, end);
  recorder.Add(held_.recorder(), end);
}

}  // namespace servecast
