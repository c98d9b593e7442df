// A server's front end, the naive way. Not the engine's: serving/take_up.h.
#pragma once

#include <algorithm>
#include <vector>

#include "base/base.h"
#include "serving/policy.h"

namespace servecast::testing {

class ReferenceTakeUp {
 public:
  // 0: none waits for another.
  explicit ReferenceTakeUp(std::int64_t servers) : servers_(static_cast<std::size_t>(servers)) {}

  // When it is in the queue. To be asked in the order of arrivals.
  TimeNs Enter(TimeNs arrival, HostTimes times) {
    if (servers_.empty()) return arrival + times.work + times.wait;
    Server* first = &servers_[0];
    for (Server& server : servers_) {
      const bool sooner = server.free < first->free ||
                          (server.free == first->free && server.handed_on < first->handed_on);
      if (sooner) first = &server;
    }
    first->free = std::max(first->free, arrival) + times.work;
    first->handed_on = std::max(first->handed_on, first->free + times.wait);
    return first->handed_on;
  }

 private:
  struct Server {
    TimeNs free = 0, handed_on = 0;
  };
  std::vector<Server> servers_;
};

}  // namespace servecast::testing
