#include "serving/cluster/kv_link.h"

#include <algorithm>

namespace servecast {

KvLink::KvLink(TimeNs base_latency, std::int64_t bytes_per_s)
    : latency_(std::max<TimeNs>(base_latency, 1)), rate_(bytes_per_s) {}

void KvLink::Start(RequestId request, std::int64_t bytes, TimeNs time) {
  waiting_.push_back({time + latency_, request, WideInt{bytes} * kNsPerS});
}

TimeNs KvLink::Next() const {
  TimeNs next = waiting_.empty() ? kNever : waiting_.front().begins;
  if (flows_.empty()) return next;
  const WideInt left = (flows_.front().ends - virtual_) * static_cast<WideInt>(flows_.size());
  const WideInt end = since_ + (left + rate_ - 1) / rate_;
  return end < next ? static_cast<TimeNs>(end) : next;
}

bool KvLink::Stop(RequestId request, TimeNs time) {
  const auto is_it = [request](const auto& one) { return one.request == request; };
  if (std::erase_if(waiting_, is_it) > 0) return true;
  const auto flow = std::find_if(flows_.begin(), flows_.end(), is_it);
  if (flow == flows_.end()) return false;
  PassTo(time);
  flows_.erase(flow);
  std::make_heap(flows_.begin(), flows_.end(), Later);
  return true;
}

void KvLink::PassTo(TimeNs time) {
  if (!flows_.empty()) {
    virtual_ += WideInt{rate_} * (time - since_) / static_cast<WideInt>(flows_.size());
  }
  since_ = time;
}

const std::vector<RequestId>& KvLink::Pass() {
  const TimeNs now = Next();
  PassTo(now);
  for (; !waiting_.empty() && waiting_.front().begins <= now; waiting_.pop_front()) {
    flows_.push_back({virtual_ + waiting_.front().work, waiting_.front().request});
    std::push_heap(flows_.begin(), flows_.end(), Later);
  }
  arrived_.clear();
  while (!flows_.empty() && flows_.front().ends <= virtual_) {
    arrived_.push_back(flows_.front().request);
    std::pop_heap(flows_.begin(), flows_.end(), Later);
    flows_.pop_back();
  }
  std::sort(arrived_.begin(), arrived_.end());
  return arrived_;
}

}  // namespace servecast
