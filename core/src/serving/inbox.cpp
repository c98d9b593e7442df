#include "serving/inbox.h"

namespace servecast {

RequestId Inbox::TakeSent() {
  const RequestId request = sent_[next_++].request;
  if (next_ == sent_.size()) {
    sent_.clear();
    next_ = 0;
  }
  return request;
}

void Inbox::ExpectTimeout(RequestId request) {
  const auto r = static_cast<std::size_t>(request);
  if (requests_.timeout[r] == kNever) return;
  const WideInt time = WideInt{requests_.arrival[r]} + requests_.timeout[r];
  timeouts_.push_back({static_cast<TimeNs>(std::min(time, WideInt{kNever})), request});
  std::push_heap(timeouts_.begin(), timeouts_.end(), Later);
}

TimeNs Inbox::NextTimeout() {
  while (!timeouts_.empty()) {
    const auto r = static_cast<std::size_t>(timeouts_.front().request);
    const RequestState state = results_.state[r];
    const bool over =
        state == RequestState::kCompleted || IsLost(state) || (prefills_ && results_.HandedOver(r));
    if (!over) return timeouts_.front().time;
    TakeTimeout();
  }
  return kNever;
}

RequestId Inbox::TakeTimeout() {
  const RequestId request = timeouts_.front().request;
  std::pop_heap(timeouts_.begin(), timeouts_.end(), Later);
  timeouts_.pop_back();
  return request;
}

}  // namespace servecast
