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
    return std::min(InOrder().time, std::min(front_.Top().time, queue_.Top().time));
  }
  // Requires: there is one.
  RequestId TakeNext();
  // Of a request that was just taken. False: it comes to the queue now. True: it has only arrived,
  // as others may come before those that are known of, or find another load. It comes to the queue
  // when the front end has taken it up, unless its client gives up before, which is such a moment,
  // too.
  bool Arrives(RequestId request, const EngineLoad& load) {
    return !taken_up_.empty() && taken_up_[static_cast<std::size_t>(request)] != kTakenUp &&
           SendUnder(request, load);
  }

  // The front end takes up who arrives before that, so that NextEnqueue is of the queue, or not
  // before it. Not where load matters. Requires: nothing happens before, but for what begins with
  // the next one in the queue, so that nobody else arrives.
  void TakeUpBefore(TimeNs time) {
    if (!TakesUpAhead()) return;
    while (FirstAtFront().time < time && !Later(FirstAtFront(), queue_.Top())) TakeUpFirst();
  }
  // Likewise, where nothing happens before, whoever comes to the queue.
  void TakeUpAllBefore(TimeNs time) {
    if (!TakesUpAhead()) return;
    while (FirstAtFront().time < time) TakeUpFirst();
  }

  // Whether the client of a request that has arrived is gone by then.
  bool GaveUpBefore(RequestId request, TimeNs time) const {
    const auto r = static_cast<std::size_t>(request);
    return !requests_.timeout.empty() && requests_.timeout[r] < time - requests_.arrival[r];
  }
  bool HasNextTurn(RequestId request) const {
    const std::size_t next = static_cast<std::size_t>(requests_.RequestOf(request)) + 1;
    return next < requests_.think.size() && requests_.think[next] >= 0;
  }
  // The request is complete: its client sends the next one, if there is one, after thinking.
  void Answered(RequestId request);
  // It timed out, which the engine learns at `heard`, between steps: in a closed loop its client
  // goes on from there.
  void GaveUp(RequestId request, TimeNs heard);
  // Clients that hedge keep one of two attempts: the other one is cancelled at that time, as if its
  // client gave it up. REQUIRES: all have come to that time.
  void Cancel(RequestId request, TimeNs time) {
    const auto r = static_cast<std::size_t>(request);
    requests_.timeout[r] = time - requests_.arrival[r];
  }
  // It was turned away, or lost with a replica, at that time.
  void TurnedAway(RequestId request, TimeNs time) {
    if (InLoop()) Failed(request, time);
  }
  // Answers and time-outs may bring requests at that very moment.
  bool InLoop() const { return !requests_.pause.empty() || !requests_.backoff.empty(); }

  // The last arrival so far, dropped ones included; 0 without any.
  TimeNs LastArrival() const;

  // The states that follow from the clock alone, at `end`: what is still to come, is on its way to
  // the queue, gave up on that way, or was dropped as it arrived. `over`: the clock has stopped for
  // want of events, so a request that will never reach the queue has given up or was dropped.
  void MarkArrivals(TimeNs end, bool over);

 private:
  // To the front end; it has taken the request up; in a closed loop the client gives up before
  // that, and goes on at that moment: clients are free in order of time.
  enum Way : std::uint8_t { kOnItsWay, kTakenUp, kGivesUp };
  struct Timed {
    TimeNs time = kNever, arrival = kNever;
    RequestId request = kNoRequest;
  };
  static bool Later(const Timed& a, const Timed& b) {
    if (a.time != b.time) return a.time > b.time;
    return a.arrival != b.arrival ? a.arrival > b.arrival : a.request > b.request;
  }
  class Heap {
   public:
    // The first; of kNever without any.
    Timed Top() const { return heap_.empty() ? Timed{} : heap_.front(); }
    void Push(Timed timed) {
      heap_.push_back(timed);
      std::push_heap(heap_.begin(), heap_.end(), Later);
    }
    RequestId Pop() {
      std::pop_heap(heap_.begin(), heap_.end(), Later);
      const RequestId request = heap_.back().request;
      heap_.pop_back();
      return request;
    }

   private:
    std::vector<Timed> heap_;
  };

  bool ComesByItself(std::size_t r) const {
    return !requests_.IsRetry(r) && (requests_.think.empty() || requests_.think[r] < 0) &&
           (requests_.pause.empty() || requests_.pause[r] < 0);
  }
  TimeNs EnqueueOf(RequestId request) const {
    return results_.enqueue[static_cast<std::size_t>(request)];
  }
  Timed WhenOf(RequestId request) const {
    return {EnqueueOf(request), requests_.arrival[static_cast<std::size_t>(request)], request};
  }
  Timed InOrder() const { return arrived_ < order_.size() ? WhenOf(order_[arrived_]) : Timed{}; }
  Timed FirstAtFront() const {
    const Timed in_order = InOrder(), other = front_.Top();
    return Later(in_order, other) ? other : in_order;
  }
  RequestId TakeAtFront();
  bool TakesUpAhead() const { return !taken_up_.empty() && !latency_.DelayByLoad(); }
  void TakeUpFirst() { SendUnder(TakeAtFront(), {}); }
  void SendAll();
  bool Send(RequestId request);
  bool SendUnder(RequestId request, const EngineLoad& load);
  bool TakesUp(RequestId request, HostTimes times);
  TimeNs OverUnserved(RequestId request) const;
  void Failed(RequestId request, TimeNs time);
  bool Sends(RequestId request);
  bool IsHedge(RequestId request) const {
    return requests_.Hedges() && requests_.IsRetry(static_cast<std::size_t>(request));
  }
  bool NeedsHedge(RequestId request);
  void Free(TimeNs time);

  RequestTable& requests_;
  const LatencyModel& latency_;
  std::int64_t max_model_len_;
  RequestResults& results_;
  TakeUp front_end_;
  std::vector<RequestId> order_;  // those that come by themselves, as NextEnqueue says
  std::size_t arrived_ = 0;       // of order_
  Heap front_;                    // others that arrive, and clients that give up before the queue
  Heap queue_;                    // taken up, on their way to the queue
  std::int64_t firsts_ = 0, retries_ = 0;  // attempts sent, where clients try again
  std::size_t waiting_ = 0;                // closed loop: before it, no row waits for a client
  // By request; of one on its way the enqueue time stands for the arrival. Empty: all were taken
  // up, as all arrivals were known.
  std::vector<Way> taken_up_;
};

}  // namespace servecast
