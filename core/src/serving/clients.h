// The clients: when each request comes to the queue, whether it has a next turn, when its client
// gives up. Hides that a session's later turns have no arrival until the turn before is complete,
// that in a closed loop a session has none until a client is free, and that all pass the front end
// (take_up.h) in the order of their arrivals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base.h"
#include "serving/policy.h"
#include "serving/take_up.h"
#include "workload/request_table.h"

namespace servecast {

// Of the front end of all replicas that requests come to first; 0: as many as requests, by the
// rules of the simulators that `engine.compat` names.
std::int64_t FrontEndServers(const Scenario& scenario);

class Clients {
 public:
  // Requests of `max_model_len` tokens or more are dropped as they arrive. Writes arrivals of later
  // turns into `requests`, enqueue times into `results`; all of them outlive this. `servers`: those
  // of the front end, see TakeUp.
  Clients(RequestTable& requests, const LatencyModel& latency, std::int64_t max_model_len,
          RequestResults& results, std::int64_t servers);

  // When the next request comes to the queue or to the front end, by (time, arrival, id); kNever:
  // none is on its way.
  TimeNs NextEnqueue() const {
    const TimeNs next = arrived_ < order_.size() ? EnqueueOf(order_[arrived_]) : kNever;
    return next_turns_.empty() ? next : std::min(next, next_turns_.front().time);
  }
  // Requires: there is one.
  RequestId TakeNext();
  // Of a request that was just taken. False: it comes to the queue now. True: it has only arrived,
  // as others may come before those that are known of, or find another load. It comes to the queue
  // when the front end has taken it up, unless its client gives up before.
  bool Arrives(RequestId request, const EngineLoad& load) {
    return !taken_up_.empty() && taken_up_[static_cast<std::size_t>(request)] == 0 &&
           SendUnder(request, load);
  }

  // The front end takes up who arrives before that, so that NextEnqueue is of the queue, or not
  // before it. Not where load matters. Requires: nothing else happens before, so that nobody else
  // arrives.
  void TakeUpBefore(TimeNs time) {
    if (taken_up_.empty() || latency_.DelayByLoad()) return;
    while (NextEnqueue() < time && TakeUpFirst()) {
    }
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
    TimeNs time = 0, arrival = 0;
    RequestId request = kNoRequest;
  };
  static bool Later(const Timed& a, const Timed& b) {
    if (a.time != b.time) return a.time > b.time;
    return a.arrival != b.arrival ? a.arrival > b.arrival : a.request > b.request;
  }

  bool ComesByItself(std::size_t r) const {
    return (requests_.think.empty() || requests_.think[r] < 0) &&
           (requests_.pause.empty() || requests_.pause[r] < 0);
  }
  TimeNs EnqueueOf(RequestId request) const {
    return results_.enqueue[static_cast<std::size_t>(request)];
  }
  Timed WhenOf(RequestId request) const {
    return {EnqueueOf(request), requests_.arrival[static_cast<std::size_t>(request)], request};
  }
  // Requires: there is one.
  RequestId Next() const { return TurnIsNext() ? next_turns_.front().request : order_[arrived_]; }
  bool TurnIsNext() const;
  void SendAll();
  bool Send(RequestId request);
  bool SendUnder(RequestId request, const EngineLoad& load);
  bool TakesUp(RequestId request, HostTimes times);
  bool TakeUpFirst();
  void SendLater(RequestId request);
  TimeNs OverUnserved(RequestId request) const;
  void Free(TimeNs time);

  RequestTable& requests_;
  const LatencyModel& latency_;
  std::int64_t max_model_len_;
  RequestResults& results_;
  TakeUp front_end_;
  std::vector<RequestId> order_;   // those that come by themselves, as NextEnqueue says
  std::size_t arrived_ = 0;        // of order_
  std::vector<Timed> next_turns_;  // heap: others on their way
  std::size_t waiting_ = 0;        // closed loop: before it, no row waits for a client
  // Whom the front end has taken up; of the others the enqueue time stands for the arrival. Empty:
  // all were, as all arrivals were known.
  std::vector<std::uint8_t> taken_up_;
};

}  // namespace servecast
