// Requests that a router holds before it places them: first come, first served. Their clients may
// give up here, too.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "workload/request_table.h"

namespace servecast {

class Gateway {
 public:
  // All outlive it. Writes states of requests whose clients give up.
  Gateway(const RequestTable& requests, RequestResults& results)
      : requests_(requests), results_(results), waiting_(0) {}

  std::int64_t size() const { return held_; }
  bool empty() const { return held_ == 0; }
  std::int64_t timed_out() const { return timed_out_; }
  const Recorder& recorder() const { return waiting_; }  // of the queue's length only

  void Hold(RequestId request, TimeNs time);
  // Who came first. Require: not empty.
  RequestId Front();
  void PopFront(TimeNs time);

  // When the next client of a request that is held gives up; kNever.
  TimeNs NextTimeout();
  // It does. Requires: NextTimeout() < kNever.
  RequestId GiveUp();

 private:
  struct Timed {
    TimeNs time = 0;
    RequestId request = kNoRequest;
  };
  static bool Later(const Timed& a, const Timed& b) {
    return a.time != b.time ? a.time > b.time : a.request > b.request;
  }
  bool IsHeld(RequestId request) const {
    const auto r = static_cast<std::size_t>(request);
    return results_.replica[r] < 0 && results_.state[r] != RequestState::kTimedOut;
  }

  const RequestTable& requests_;
  RequestResults& results_;
  Recorder waiting_;
  std::deque<RequestId> queue_;  // and some that have given up
  std::vector<Timed> timeouts_;  // heap; likewise, and some that have been placed
  std::int64_t held_ = 0, timed_out_ = 0;
};

}  // namespace servecast
