// The clients: when each request comes to the queue, whether it has a next turn, when its client
// gives up. Hides that a session's later turns have no arrival until the turn before is complete,
// and that in a closed loop a session has none until a client is free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast {

class Clients {
 public:
  // Requests of `max_model_len` tokens or more are dropped as they arrive. Writes arrivals of later
  // turns into `requests`, enqueue times into `results`; all of them outlive this.
  Clients(RequestTable& requests, const LatencyModel& latency, std::int64_t max_model_len,
          RequestResults& results);

  // When the next request comes to the queue, by (enqueue time, id); kNever: none is on its way.
  TimeNs NextEnqueue() const {
    const TimeNs next = arrived_ < order_.size() ? EnqueueOf(order_[arrived_]) : kNever;
    return next_turns_.empty() ? next : std::min(next, next_turns_.front().time);
  }
  // Requires: there is one.
  RequestId TakeNext();
  // Of a request that was just taken. False: it comes to the queue now. True, where the delay
  // before the queue depends on load: it has only arrived, and comes after the delay, or when its
  // client gives up.
  bool DelaysByLoad(RequestId request, const EngineLoad& load) {
    return !delayed_.empty() && delayed_[static_cast<std::size_t>(request)] == 0 &&
           SendUnder(request, load);
  }

  // Whether the client of a request that has arrived is gone by then.
  bool GaveUpBefore(RequestId request, TimeNs time) const {
    const auto r = static_cast<std::size_t>(request);
    return !requests_.timeout.empty() && requests_.timeout[r] < time - requests_.arrival[r];
  }
  bool HasNextTurn(RequestId request) const {
    const std::size_t next = static_cast<std::size_t>(request) + 1;
    return next < requests_.think.size() && requests_.think[next] >= 0;
  }
  // The request is complete: its client sends the next one, if there is one, after thinking.
  void Answered(RequestId request);
  // It timed out, which the engine learns at `heard`, between steps: in a closed loop its client
  // goes on from there.
  void GaveUp(RequestId request, TimeNs heard);
  // Answers and time-outs may bring requests at that very moment.
  bool InLoop() const { return !requests_.pause.empty(); }

  // The last arrival so far, dropped ones included; 0 without any.
  TimeNs LastArrival() const;

  // The states that follow from the clock alone, at `end`: what is still to come, is on its way to
  // the queue, gave up on that way, or was dropped as it arrived. `over`: the clock has stopped for
  // want of events, so a request that will never reach the queue has given up or was dropped.
  void MarkArrivals(TimeNs end, bool over);

 private:
  struct Timed {
    TimeNs time = 0;
    RequestId request = kNoRequest;
  };
  static bool Later(const Timed& a, const Timed& b) {
    return a.time != b.time ? a.time > b.time : a.request > b.request;
  }

  bool ComesByItself(std::size_t r) const {
    return (requests_.think.empty() || requests_.think[r] < 0) &&
           (requests_.pause.empty() || requests_.pause[r] < 0);
  }
  TimeNs EnqueueOf(RequestId request) const {
    return results_.enqueue[static_cast<std::size_t>(request)];
  }
  bool Send(RequestId request);
  bool SendUnder(RequestId request, const EngineLoad& load);
  void SendLater(RequestId request);
  TimeNs OverUnserved(RequestId request) const;
  void Free(TimeNs time);

  RequestTable& requests_;
  const LatencyModel& latency_;
  std::int64_t max_model_len_;
  RequestResults& results_;
  std::vector<RequestId> order_;   // those that come by themselves, by (enqueue time, id)
  std::size_t arrived_ = 0;        // of order_
  std::vector<Timed> next_turns_;  // heap: later turns on their way, by enqueue time
  std::size_t waiting_ = 0;        // closed loop: before it, no row waits for a client
  // Delay by load: whose enqueue time is known; of the others it stands for the arrival.
  std::vector<std::uint8_t> delayed_;
};

}  // namespace servecast
