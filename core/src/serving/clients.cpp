#include "serving/clients.h"

namespace servecast {

Clients::Clients(RequestTable& requests, const LatencyModel& latency, std::int64_t max_model_len,
                 RequestResults& results)
    : requests_(requests),
      latency_(latency),
      max_model_len_(max_model_len),
      results_(results),
      delayed_(latency.DelayByLoad() ? requests.arrival.size() : 0, 0) {
  order_.reserve(static_cast<std::size_t>(requests.size()));
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    const auto request = static_cast<RequestId>(i);
    if (!ComesByItself(i)) continue;
    if (Send(request)) {
      order_.push_back(request);
    } else {
      Free(OverUnserved(request));
    }
  }
  const auto earlier = [this](RequestId a, RequestId b) {
    return EnqueueOf(a) != EnqueueOf(b) ? EnqueueOf(a) < EnqueueOf(b) : a < b;
  };
  if (!std::is_sorted(order_.begin(), order_.end(), earlier)) {
    std::sort(order_.begin(), order_.end(), earlier);
  }
}

// Its arrival is known now; false when it never comes to the queue, as it is too long to be served
// or its client gives up before.
bool Clients::Send(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  const std::int64_t prompt = requests_.prompt_tokens[r];
  if (prompt >= max_model_len_) return false;
  const TimeNs delay = delayed_.empty() ? latency_.EnqueueDelay(prompt) : 0;
  const TimeNs patience = requests_.timeout.empty() ? kNever : requests_.timeout[r];
  if (patience < delay) return false;
  results_.enqueue[r] = requests_.arrival[r] + delay;
  return true;
}

bool Clients::SendUnder(RequestId request, const EngineLoad& load) {
  const auto r = static_cast<std::size_t>(request);
  delayed_[r] = 1;
  TimeNs delay = latency_.DelayUnder(requests_.prompt_tokens[r], load);
  if (!requests_.timeout.empty()) delay = std::min(delay, requests_.timeout[r]);
  results_.enqueue[r] = requests_.arrival[r] + delay;
  SendLater(request);
  return true;
}

RequestId Clients::TakeNext() {
  const RequestId first = arrived_ < order_.size() ? order_[arrived_] : kNoRequest;
  const bool turn = !next_turns_.empty() &&
                    (first == kNoRequest || Later({EnqueueOf(first), first}, next_turns_.front()));
  if (!turn) {
    ++arrived_;
    return first;
  }
  const RequestId request = next_turns_.front().request;
  std::pop_heap(next_turns_.begin(), next_turns_.end(), Later);
  next_turns_.pop_back();
  return request;
}

void Clients::Answered(RequestId request) {
  const TimeNs completion = results_.completion[static_cast<std::size_t>(request)];
  if (!HasNextTurn(request)) return Free(completion);
  const RequestId next = request + 1;
  const auto n = static_cast<std::size_t>(next);
  requests_.arrival[n] =
      static_cast<TimeNs>(std::min(WideInt{completion} + requests_.think[n], WideInt{kClockEnd}));
  if (!Send(next)) return Free(OverUnserved(next));
  SendLater(next);
}

void Clients::GaveUp(RequestId request, TimeNs heard) {
  if (InLoop()) Free(std::max(heard, OverUnserved(request)));
}

// It is on its way to the queue, by its enqueue time.
void Clients::SendLater(RequestId request) {
  next_turns_.push_back({EnqueueOf(request), request});
  std::push_heap(next_turns_.begin(), next_turns_.end(), Later);
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
    requests_.arrival[waiting_] = static_cast<TimeNs>(
        std::min(WideInt{time} + requests_.pause[waiting_], WideInt{kClockEnd}));
    if (Send(request)) {
      ++waiting_;
      return SendLater(request);
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
    if (requests_.arrival[i] < 0) continue;
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
