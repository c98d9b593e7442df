#include "serving/cluster/gateway.h"

#include <cmath>
#include <utility>

namespace servecast {
namespace {

// How often the router hears from replicas, by that parameter; 0: at once.
TimeNs PeriodOf(const Gateway::Input& in, const ParamSpec& param) {
  for (std::size_t i = 0; i < in.router.params.size(); ++i) {
    if (in.router.params[i].name != std::string_view(param.name)) continue;
    return static_cast<TimeNs>(std::nearbyint(in.params[i] * 1e6));
  }
  return 0;
}

std::int64_t LeastBlockSize(const std::vector<Gateway::Member>& members) {
  std::int64_t least = members[0].block_size;
  for (const Gateway::Member& member : members) least = std::min(least, member.block_size);
  return least;
}

std::unique_ptr<Router> MakeRouter(const Gateway::Input& in, std::int64_t block_size) {
  std::vector<RoutedReplica> replicas;
  for (const Gateway::Member& member : in.members) {
    const std::int64_t cached = member.caches_prefixes ? member.blocks : 0;
    replicas.push_back({member.seats, cached * member.block_size / block_size, member.block_size,
                        member.blocks + 1});
  }
  return in.router.make({in.seed, replicas, in.params, block_size, in.epp});
}

// RoutedRequest::content, of the first `last` blocks.
void WriteContent(const RequestTable& requests, RequestId request, std::int64_t block_size,
                  std::int64_t last, std::vector<ContentRange>& ranges) {
  ranges.clear();
  if (requests.content.empty()) return;
  const auto r = static_cast<std::size_t>(request);
  std::int32_t segment = requests.content[r];
  while (last > 0 && segment >= 0) {
    const ContentSegment& content = requests.segments[static_cast<std::size_t>(segment)];
    const std::int64_t first = content.parent < 0 ? 0 : content.shared_tokens / block_size;
    if (first < last) ranges.push_back({segment, first, last});
    last = std::min(last, first);
    segment = content.parent;
  }
  std::reverse(ranges.begin(), ranges.end());
}

}  // namespace

std::vector<std::int32_t> SessionsOf(const RequestTable& requests) {
  std::vector<std::int32_t> sessions;
  for (std::size_t r = 0; r < requests.think.size(); ++r) {
    const auto row = static_cast<std::int32_t>(r);
    sessions.push_back(requests.think[r] >= 0 ? sessions.back() : row);
  }
  const bool each_its_own = sessions.empty();
  for (std::size_t r = requests.requests(); r < requests.arrival.size(); ++r) {
    if (each_its_own && r == requests.requests()) {
      for (std::size_t first = 0; first < r; ++first) {
        sessions.push_back(static_cast<std::int32_t>(first));
      }
    }
    const RequestId request = requests.RequestOf(static_cast<RequestId>(r));
    sessions.push_back(sessions[static_cast<std::size_t>(request)]);
  }
  return sessions;
}

Gateway::Gateway(Input input)
    : in_(std::move(input)),
      block_size_(LeastBlockSize(in_.members)),
      loads_(static_cast<std::int64_t>(in_.members.size())),
      period_(std::max(PeriodOf(in_, kStaleness), PeriodOf(in_, kStatsInterval))),
      look_period_(std::max(period_, PeriodOf(in_, kPoll))),
      looks_(look_period_ > 0 && in_.router.reads_engines),
      waiting_(0) {
  router_ = MakeRouter(in_, block_size_);
  flow_ = router_->flow_queue();
}

// What ended, as far as the router knows at `time`.
void Gateway::CountDepartures(TimeNs time) {
  const TimeNs known = period_ > 0 ? time / period_ * period_ : time;
  while (!first_tokens_.empty() && first_tokens_.front().time <= known) {
    router_->FirstToken(first_tokens_.front().request);
    std::pop_heap(first_tokens_.begin(), first_tokens_.end(), LeavesLater);
    first_tokens_.pop_back();
  }
  while (!departures_.empty() && departures_.front().time <= known) {
    const Departure departure = departures_.front();
    std::pop_heap(departures_.begin(), departures_.end(), LeavesLater);
    departures_.pop_back();
    loads_.Change(departure.place, -1);
    first_left_ = std::min(first_left_, departure.time);
    if (departure.own) router_->Left(departure.request, departure.place);
  }
}

void Gateway::Look(TimeNs time) {
  CountDepartures(time);
  ReadEngines(time);
  looked_at_ = time;
  first_look_ = std::min(first_look_, time);
}

void Gateway::LookAsRequestsCome(TimeNs time) {
  CountDepartures(time);
  if (in_.router.reads_engines && look_period_ == 0) Look(time);
}

void Gateway::ReadEngines(TimeNs time) {
  for (std::size_t i = 0; i < in_.members.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i);
    const EngineLoad load = in_.members[i].replica->LoadAt(time);
    loads_.SetEngine(place, {std::max<std::int64_t>(loads_.Outstanding(place) - load.running, 0),
                             load.kv_blocks_used, in_.members[i].blocks, load.running});
  }
}

RoutedRequest Gateway::Describe(RequestId request, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  const std::int64_t prompt = in_.requests.prompt_tokens[r];
  if (in_.router.reads_tokens) {
    WriteContent(in_.requests, request, 1, prompt, content_);
  } else if (in_.router.reads_content) {
    WriteContent(in_.requests, request, block_size_, (prompt - 1) / block_size_, content_);
  }
  return {request,   in_.sessions.empty() ? request : in_.sessions[r], prompt, content_, time,
          looked_at_};
}

Gateway::Placement Gateway::ChooseForHeld(TimeNs time) {
  if (held_ == 0) return {};
  CountDepartures(time);
  if (loads_.available() == 0) return {};
  while (!IsHeld(queue_.front())) queue_.pop_front();
  const RequestId request = queue_.front().request;
  const std::int32_t place = ChooseFor(request, time);
  if (place == Router::kHold) return {};
  queue_.pop_front();
  Leaves(time);
  return {request, place};
}

bool Gateway::Queue(RequestId request, TimeNs time) {
  CountDepartures(time);
  const auto r = static_cast<std::size_t>(request);
  RoutedRequest routed = Describe(request, time);
  if (!in_.requests.priority.empty()) routed.priority = -in_.requests.priority[r];
  if (!in_.requests.of_class.empty()) routed.of_class = in_.requests.of_class[r];
  const std::vector<TimeNs>& deadline = in_.requests.ttft_deadline;
  if (!deadline.empty() && deadline[r] != kNever) routed.ttft_deadline = deadline[r];
  if (flow_->Comes(routed)) {
    Hold(request, time);
    return true;
  }
  in_.results.state[r] = RequestState::kRejected;
  ++rejected_;
  return false;
}

Gateway::Placement Gateway::Cycle(TimeNs time) {
  LookAsRequestsCome(time);
  const RequestId request = flow_->Cycle(time, looked_at_, loads_);
  first_look_ = first_left_ = kNever;
  if (request == kNoRequest) return {};
  Leaves(time);
  return {request, router_->Choose(Describe(request, time), loads_)};
}

std::vector<RequestId> Gateway::Sweep(TimeNs time) {
  std::vector<RequestId> expired;
  if (SweepsAt(time)) flow_->Sweep(time, expired);
  for (const RequestId request : expired) {
    in_.results.state[static_cast<std::size_t>(request)] = RequestState::kRejected;
    in_.results.lost_at[static_cast<std::size_t>(request)] = time;
    ++rejected_;
    Leaves(time);
  }
  return expired;
}

void Gateway::Leaves(TimeNs time) {
  waiting_.Waiting(time, --held_);
  waiting_.Left(time);
}

std::int32_t Gateway::Choose(RequestId request, TimeNs time) {
  LookAsRequestsCome(time);
  const bool waits = held_ > 0 || loads_.available() == 0;
  const std::int32_t place = waits ? Router::kHold : ChooseFor(request, time);
  if (place == Router::kHold) Hold(request, time);
  return place;
}

// A second attempt goes to another replica than the first one, if there is one.
std::int32_t Gateway::ChooseFor(RequestId request, TimeNs time) {
  const RequestTable& t = in_.requests;
  std::int32_t beside = -1;
  if (t.Hedges() && t.IsRetry(static_cast<std::size_t>(request))) {
    beside = in_.results.replica[static_cast<std::size_t>(t.OtherAttempt(request))];
  }
  const bool leaves_out = beside >= 0 && loads_.IsAvailable(beside) && loads_.available() > 1;
  if (leaves_out) loads_.SetAvailable(beside, false);
  const std::int32_t place = router_->Choose(Describe(request, time), loads_);
  if (leaves_out) loads_.SetAvailable(beside, true);
  return place;
}

void Gateway::Hold(RequestId request, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  const Held held{request, in_.results.replica[r]};
  if (flow_ == nullptr) queue_.push_back(held);
  waiting_.Waiting(time, ++held_);
  waiting_.Came(time);
  ExpectTimeout(held, time);
}

void Gateway::ExpectTimeout(const Held& held, TimeNs time) {
  const auto r = static_cast<std::size_t>(held.request);
  if (in_.requests.timeout.empty() || in_.requests.timeout[r] == kNever) return;
  const WideInt end = WideInt{in_.requests.arrival[r]} + in_.requests.timeout[r];
  const auto from = static_cast<TimeNs>(std::min(end, WideInt{kNever}));
  timeouts_.push_back({std::max(from, time), held});
  std::push_heap(timeouts_.begin(), timeouts_.end(), Later);
}

TimeNs Gateway::NextTimeout() {
  while (!timeouts_.empty() && !IsHeld(timeouts_.front().held)) {
    std::pop_heap(timeouts_.begin(), timeouts_.end(), Later);
    timeouts_.pop_back();
  }
  return timeouts_.empty() ? kNever : timeouts_.front().time;
}

RequestId Gateway::GiveUp() {
  const Timed next = timeouts_.front();
  in_.results.state[static_cast<std::size_t>(next.held.request)] = RequestState::kTimedOut;
  ++timed_out_;
  Leaves(next.time);
  if (flow_ != nullptr) flow_->GaveUp(next.held.request);
  return next.held.request;
}

}  // namespace servecast
