// How requests come from a server's door to the scheduler's queue: its front end, which reads,
// tokenizes and hashes each before the engine hears of it. Hides who is at work there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base.h"

namespace servecast {

// Of one request: what one server of the front end works on it, and does nothing else meanwhile,
// and what passes besides, with no one at work. Each >= 0.
struct HostTimes {
  TimeNs work = 0, wait = 0;
};

// Of a time for the request and one for its prompt, in ns; their sum is rounded once.
inline HostTimes TakeUpTimesOf(double request_ns, double prompt_ns) {
  const TimeNs all = NearestNs(request_ns + prompt_ns);
  const TimeNs work = std::min(all, NearestNs(prompt_ns));
  return {work, all - work};
}

// A queue with several servers, first come, first served. A server hands its requests on in the
// order in which it took them, so with one nothing overtakes.
class TakeUp {
 public:
  // `servers` 0: one for each request, so that none waits for another.
  explicit TakeUp(std::int64_t servers) : servers_(static_cast<std::size_t>(servers)) {}

  // When a request that arrives then is in the scheduler's queue. Requires: arrivals in order.
  // O(log servers).
  TimeNs Enter(TimeNs arrival, HostTimes times) {
    if (servers_.empty()) return After(arrival, times.work + times.wait);
    Server& first = servers_.front();  // free first
    const TimeNs done = After(std::max(arrival, first.free), times.work);
    const TimeNs enqueue = std::max(first.latest, After(done, times.wait));
    std::pop_heap(servers_.begin(), servers_.end(), FreeLater);
    servers_.back() = {done, enqueue};
    std::push_heap(servers_.begin(), servers_.end(), FreeLater);
    return enqueue;
  }

 private:
  struct Server {
    TimeNs free = 0, latest = 0;  // done with its last request, which came to the queue then
  };
  static bool FreeLater(const Server& a, const Server& b) {
    return a.free != b.free ? a.free > b.free : a.latest > b.latest;
  }
  // Absurd times end with the clock.
  static TimeNs After(TimeNs time, TimeNs passed) {
    return static_cast<TimeNs>(std::min(WideInt{time} + passed, WideInt{kClockEnd}));
  }

  std::vector<Server> servers_;  // heap
};

}  // namespace servecast
