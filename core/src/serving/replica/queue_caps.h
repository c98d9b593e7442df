// Whom a server turns away as it comes to the queue (max_num_queued_reqs, max_num_queued_tokens):
// of the requests that it took it counts those that are not over, and the prompt tokens of those
// without a first token. Replicas hear of requests between steps, later than they came: so what
// steps do to the counts waits here for its time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

class QueueCaps {
 public:
  // `requests` outlives it.
  QueueCaps(const EngineSpec& engine, const RequestTable& requests)
      : requests_(requests),
        most_requests_(engine.max_num_queued_reqs),
        most_tokens_(engine.max_num_queued_tokens),
        tokenless_(On() ? requests.arrival.size() : 0, 0) {}

  bool On() const { return most_requests_.has_value() || most_tokens_.has_value(); }

  // Whether a request that comes at `time` is taken. What ended at that moment counts as ended.
  // Requires: On(), and times in order.
  bool Takes(RequestId request, TimeNs time);

  // It has its first token, or is over, at `time`. Requires: times in order.
  void FirstToken(RequestId request, TimeNs time) {
    if (On()) changes_.push_back({time, request, false});
  }
  void Over(RequestId request, TimeNs time) {
    if (On()) changes_.push_back({time, request, true});
  }

 private:
  struct Event {
    TimeNs time = 0;
    RequestId request = kNoRequest;
    bool over = false;
  };

  std::int64_t Prompt(RequestId request) const {
    return requests_.prompt_tokens[static_cast<std::size_t>(request)];
  }
  void Change(const Event& event);

  const RequestTable& requests_;
  std::optional<std::int64_t> most_requests_, most_tokens_;
  std::int64_t taken_ = 0, tokens_ = 0;  // as of the last request that came
  std::vector<std::uint8_t> tokenless_;  // by request
  std::deque<Event> changes_;            // since then
};

}  // namespace servecast
