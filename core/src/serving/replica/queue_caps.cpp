#include "serving/replica/queue_caps.h"

namespace servecast {

std::shared_ptr<QueueCaps> MakeQueueCaps(const EngineSpec& engine, const RequestTable& requests) {
  if (!engine.max_num_queued_reqs && !engine.max_num_queued_tokens) return nullptr;
  return std::make_shared<QueueCaps>(engine, requests);
}

QueueCaps::QueueCaps(const EngineSpec& engine, const RequestTable& requests)
    : requests_(requests),
      most_requests_(engine.max_num_queued_reqs),
      most_tokens_(engine.max_num_queued_tokens),
      tokenless_(requests.arrival.size(), 0) {}

void QueueCaps::FirstToken(RequestId request, TimeNs time) {
  changes_.push_back({time, request, false});
}

void QueueCaps::Over(RequestId request, TimeNs time) { changes_.push_back({time, request, true}); }

bool QueueCaps::Takes(RequestId request, TimeNs time) {
  for (; !changes_.empty() && changes_.front().time <= time; changes_.pop_front()) {
    Change(changes_.front());
  }
  if (most_requests_ && taken_ + 1 > *most_requests_) return false;
  if (most_tokens_ && tokens_ >= *most_tokens_) return false;
  ++taken_;
  tokens_ += Prompt(request);
  tokenless_[static_cast<std::size_t>(request)] = 1;
  return true;
}

void QueueCaps::Change(const Event& event) {
  std::uint8_t& tokenless = tokenless_[static_cast<std::size_t>(event.request)];
  if (tokenless != 0) tokens_ -= Prompt(event.request);
  tokenless = 0;
  if (event.over) --taken_;
}

}  // namespace servecast
