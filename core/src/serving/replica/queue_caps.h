// Whom a server turns away as it comes to the queue (max_num_queued_reqs, max_num_queued_tokens):
// of the requests that it took it counts those that are not over, and the prompt tokens of those
// without a first token. Replicas hear of requests between steps, later than they came: so what
// steps do to the counts waits here for its time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

class QueueCaps {
 public:
  // `requests` outlives it.
  QueueCaps(const EngineSpec& engine, const RequestTable& requests);

  // Whether a request that comes at `time` is taken. What ended at that moment counts as ended.
  // Requires: times in order.
  bool Takes(RequestId request, TimeNs time);

  // It has its first token, or is over, at `time`. Requires: times in order.
  void FirstToken(RequestId request, TimeNs time);
  void Over(RequestId request, TimeNs time);

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

// nullptr: the engine has none. Functions, as the page's first module has neither.
std::shared_ptr<QueueCaps> MakeQueueCaps(const EngineSpec& engine, const RequestTable& requests);

}  // namespace servecast
