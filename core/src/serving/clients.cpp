#include "serving/clients.h"

namespace servecast {

std::int64_t FrontEndServers(const Scenario& scenario) {
  if (scenario.engine.compat != Compat::kNone) return 0;
  std::int64_t servers = 0;
  for (const PoolSpec& pool : scenario.cluster.pools) {
    const EngineSpec& engine = pool.engine ? *pool.engine : scenario.engine;
    const bool prefills = pool.role != PoolRole::kDecode && pool.role != PoolRole::kEncode;
    if (prefills) servers += pool.replicas * engine.api_server_count;
  }
  return servers;
}

Clients::Clients(RequestTable& requests, const LatencyModel& latency, std::int64_t max_model_len,
                 RequestResults& results, std::int64_t servers)
    : requests_(requests),
      latency_(latency),
      max_model_len_(max_model_len),
      results_(results),
      front_end_(servers) {
  const bool all_known = requests.think.empty() && !InLoop();
  if (!all_known || latency.DelayByLoad()) taken_up_.assign(requests.arrival.size(), kOnItsWay);
  SendAll();
}

// Those that come by themselves.
void Clients::SendAll() {
  order_.reserve(static_cast<std::size_t>(requests_.size()));
  for (std::size_t i = 0; i < requests_.arrival.size(); ++i) {
    if (ComesByItself(i)) order_.push_back(static_cast<RequestId>(i));
  }
  const auto sort = [this](auto when) {
    const auto earlier = [&when](RequestId a, RequestId b) { return Later(when(b), when(a)); };
    if (!std::is_sorted(order_.begin(), order_.end(), earlier)) {
      std::sort(order_.begin(), order_.end(), earlier);
    }
  };
  if (taken_up_.empty()) {  // in the order of their arrivals
    sort([this](RequestId r) {
      return Timed{0, requests_.arrival[static_cast<std::size_t>(r)], r};
    });
  }
  const auto stays_away = [this](RequestId request) {
    if (Send(request)) return false;
    Free(OverUnserved(request));
    return true;
  };
  order_.erase(std::remove_if(order_.begin(), order_.end(), stays_away), order_.end());
  sort([this](RequestId r) { return WhenOf(r); });
}

// Its arrival is known now; false when it never comes to the queue, as it is too long to be served
// or its client gives up before.
bool Clients::Send(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  const std::int64_t prompt = requests_.prompt_tokens[r];
  if (prompt >= max_model_len_) return false;
  if (taken_up_.empty()) return TakesUp(request, latency_.TakeUpTimes(prompt));
  results_.enqueue[r] = requests_.arrival[r];
  return true;
}

// False when its client gives up before the front end is done with it, which hears nothing of that.
bool Clients::TakesUp(RequestId request, HostTimes times) {
  const auto r = static_cast<std::size_t>(request);
  const TimeNs arrival = requests_.arrival[r], enqueue = front_end_.Enter(arrival, times);
  const bool comes = requests_.timeout.empty() || enqueue - arrival <= requests_.timeout[r];
  results_.enqueue[r] = comes ? enqueue : -1;
  return comes;
}

bool Clients::SendUnder(RequestId request, const EngineLoad& load) {
  const auto r = static_cast<std::size_t>(request);
  if (taken_up_[r] == kGivesUp) {
    Failed(request, OverUnserved(request));
    return true;
  }
  const bool hedge = IsHedge(request);
  if (hedge && !NeedsHedge(request)) return true;
  taken_up_[r] = kTakenUp;
  if (!requests_.backoff.empty() && !Sends(request)) {
    results_.enqueue[r] = -1;
    results_.state[r] = RequestState::kRejected;
    Free(requests_.arrival[r]);
    return true;
  }
  if (requests_.Hedges() && !hedge) {
    const TimeNs arrival = requests_.arrival[r];
    const auto at =
        static_cast<TimeNs>(std::min(WideInt{arrival} + requests_.hedge_after, WideInt{kClockEnd}));
    front_.Push({at, at, requests_.OtherAttempt(request)});
  }
  const std::int64_t prompt = requests_.prompt_tokens[r];
  if (latency_.DelayByLoad()) {
    // What is known of the load at an arrival may come after what happens later, so whoever gives
    // up on the way is in the queue at that moment, to leave it at once: clients go on in order of
    // time.
    const TimeNs arrival = requests_.arrival[r];
    const TimeNs enqueue = front_end_.Enter(arrival, {0, latency_.DelayUnder(prompt, load)});
    const TimeNs patience = requests_.timeout.empty() ? kNever : requests_.timeout[r];
    results_.enqueue[r] = arrival + std::min(enqueue - arrival, patience);
    queue_.Push(WhenOf(request));
  } else if (TakesUp(request, latency_.TakeUpTimes(prompt))) {
    queue_.Push(WhenOf(request));
  } else if (InLoop()) {
    taken_up_[r] = kGivesUp;
    front_.Push({OverUnserved(request), requests_.arrival[r], request});
  }
  return true;
}

RequestId Clients::TakeAtFront() {
  return Later(InOrder(), front_.Top()) ? front_.Pop() : order_[arrived_++];
}

RequestId Clients::TakeNext() {
  return Later(FirstAtFront(), queue_.Top()) ? queue_.Pop() : TakeAtFront();
}

void Clients::Answered(RequestId request) {
  const TimeNs completion = results_.completion[static_cast<std::size_t>(request)];
  if (!HasNextTurn(request)) return Free(completion);
  const RequestId next = requests_.RequestOf(request) + 1;
  const auto n = static_cast<std::size_t>(next);
  if (requests_.Hedges() && requests_.arrival[n] >= 0) return;  // the other attempt was complete
  requests_.arrival[n] =
      static_cast<TimeNs>(std::min(WideInt{completion} + requests_.think[n], WideInt{kClockEnd}));
  if (!Send(next)) return Free(OverUnserved(next));
  front_.Push(WhenOf(next));
}

void Clients::GaveUp(RequestId request, TimeNs heard) {
  if (InLoop()) Failed(request, std::max(heard, OverUnserved(request)));
}

// False of a retry that is beyond the budget. In order of arrivals.
bool Clients::Sends(RequestId request) {
  const bool retry = requests_.IsRetry(static_cast<std::size_t>(request));
  const double budget = requests_.retry_budget;
  if (retry && budget >= 0 && Real(retries_ + 1) > budget * Real(firsts_)) return false;
  ++(retry ? retries_ : firsts_);
  return true;
}

// The time of a second attempt has come: whether it sets out. Not if the client has seen a first
// token or is gone, or if the first attempt is lost.
bool Clients::NeedsHedge(RequestId request) {
  const RequestId first = requests_.OtherAttempt(request);
  const auto f = static_cast<std::size_t>(first), r = static_cast<std::size_t>(request);
  const TimeNs at = requests_.arrival[f] + requests_.hedge_after, token = results_.first_token[f];
  const bool lost = results_.state[f] == RequestState::kLost;
  const bool gone = requests_.timeout[f] <= requests_.hedge_after;
  if (lost || gone || (token >= 0 && token <= at)) return false;
  requests_.arrival[r] = at;
  return true;
}

// An attempt is over at that time: its client tries again, or gives the request up. One that hedges
// does nothing: it has sent the other attempt already, or does not.
void Clients::Failed(RequestId request, TimeNs time) {
  if (requests_.Hedges()) return;
  const RequestId next = requests_.NextAttempt(request);
  if (next == kNoRequest) return Free(time);
  const auto n = static_cast<std::size_t>(next);
  const TimeNs backoff = requests_.backoff[n - requests_.requests()];
  requests_.arrival[n] = static_cast<TimeNs>(std::min(WideInt{time} + backoff, WideInt{kClockEnd}));
  Send(next);
  front_.Push(WhenOf(next));
}

// When the client of a request that is dropped or times out goes on.
TimeNs Clients::OverUnserved(RequestId request) const {
  const auto r = static_cast<std::size_t>(request);
  const TimeNs arrival = requests_.arrival[r];
  if (requests_.prompt_tokens[r] >= max_model_len_) return arrival;
  return static_cast<TimeNs>(std::min(WideInt{arrival} + requests_.timeout[r], WideInt{kClockEnd}));
}

// A client has nothing more to ask in its session: in a closed loop it starts the next one that
// waits, and again while these never come to the queue.
void Clients::Free(TimeNs time) {
  for (; waiting_ < requests_.pause.size(); ++waiting_) {
    if (requests_.pause[waiting_] < 0) continue;
    const auto request = static_cast<RequestId>(waiting_);
    const TimeNs due = requests_.due.empty() ? 0 : requests_.due[waiting_];
    const WideInt start = std::max(WideInt{time} + requests_.pause[waiting_], WideInt{due});
    requests_.arrival[waiting_] = static_cast<TimeNs>(std::min(start, WideInt{kClockEnd}));
    if (Send(request)) {
      ++waiting_;
      return front_.Push(WhenOf(request));
    }
    time = OverUnserved(request);
  }
}

TimeNs Clients::LastArrival() const {
  TimeNs last = 0;
  for (const TimeNs arrival : requests_.arrival) last = std::max(last, arrival);
  return last;
}

void Clients::MarkArrivals(TimeNs end, bool over) {
  for (std::size_t i = 0; i < requests_.arrival.size(); ++i) {
    RequestState& state = results_.state[i];
    if (requests_.arrival[i] < 0 || state == RequestState::kRejected) continue;
    if (requests_.prompt_tokens[i] >= max_model_len_) {
      state = requests_.arrival[i] <= end ? RequestState::kDropped : RequestState::kPending;
    } else if (results_.enqueue[i] < 0) {
      const bool gone = over || requests_.timeout[i] <= end - requests_.arrival[i];
      state = requests_.arrival[i] > end ? RequestState::kPending
              : gone                     ? RequestState::kTimedOut
                                         : RequestState::kQueued;
    } else if (state == RequestState::kPending && requests_.arrival[i] <= end) {
      state = RequestState::kQueued;
    }
  }
}

}  // namespace servecast
