#include "serving/gateway.h"

#include <algorithm>

namespace servecast {

void Gateway::Hold(RequestId request, TimeNs time) {
  const auto r = static_cast<std::size_t>(request);
  queue_.push_back(request);
  waiting_.Waiting(time, ++held_);
  if (requests_.timeout.empty() || requests_.timeout[r] == kNever) return;
  const WideInt end = WideInt{requests_.arrival[r]} + requests_.timeout[r];
  timeouts_.push_back({static_cast<TimeNs>(std::min(end, WideInt{kNever})), request});
  std::push_heap(timeouts_.begin(), timeouts_.end(), Later);
}

RequestId Gateway::Front() {
  while (!IsHeld(queue_.front())) queue_.pop_front();
  return queue_.front();
}

void Gateway::PopFront(TimeNs time) {
  queue_.pop_front();
  waiting_.Waiting(time, --held_);
}

TimeNs Gateway::NextTimeout() {
  while (!timeouts_.empty() && !IsHeld(timeouts_.front().request)) {
    std::pop_heap(timeouts_.begin(), timeouts_.end(), Later);
    timeouts_.pop_back();
  }
  return timeouts_.empty() ? kNever : timeouts_.front().time;
}

RequestId Gateway::GiveUp() {
  const Timed next = timeouts_.front();
  results_.state[static_cast<std::size_t>(next.request)] = RequestState::kTimedOut;
  ++timed_out_;
  waiting_.Waiting(next.time, --held_);
  return next.request;
}

}  // namespace servecast
