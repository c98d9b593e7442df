// Where requests are placed: a router, what it knows of its replicas, and the requests that it
// holds, first come, first served, or by the router's own queue; their clients may give up here. It
// knows at once what it and other gateways placed; from replicas it hears at the period of its
// signals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "serving/cluster/router.h"
#include "serving/engine.h"
#include "workload/request_table.h"

namespace servecast {

// The first request of each request's conversation; empty: each is its own.
std::vector<std::int32_t> SessionsOf(const RequestTable& requests);

class Gateway {
 public:
  struct Member {
    const Engine* replica = nullptr;
    std::int32_t number = 0;                   // among all replicas
    std::int64_t block_size = 16, blocks = 1;  // of its KV cache
    bool caches_prefixes = false;
    std::int64_t seats = 1;
  };
  // A place is the number of a member, from 0 on. Those that are referred to outlive it; it writes
  // states of requests whose clients give up.
  struct Input {
    const RouterEntry& router;
    std::vector<double> params;  // of the router's, in their order
    std::int64_t seed = 0;
    PoolRole role = PoolRole::kMixed;  // of its members, which are all that have it
    std::vector<Member> members;
    const RequestTable& requests;
    RequestResults& results;
    const std::vector<std::int32_t>& sessions;
    const EppSpec* epp = nullptr;  // RouterInput's
  };
  explicit Gateway(Input input);

  bool ignores_load() const { return in_.router.ignores_load; }
  PoolRole role() const { return in_.role; }
  std::int32_t ReplicaAt(std::int32_t place) const {
    return in_.members[static_cast<std::size_t>(place)].number;
  }
  std::int64_t held() const { return held_; }
  std::int64_t timed_out() const { return timed_out_; }
  std::int64_t rejected() const { return rejected_; }
  const Recorder& recorder() const { return waiting_; }  // of the queue's length only

  // When it must look at the engines before a request comes that may come from `by` on; kNever.
  TimeNs NextLook(TimeNs by) const {
    if (flow_ != nullptr) by = std::min(by, NextOfQueue());
    if (!looks_ || by == kNever) return kNever;
    return std::max(by, looked_at_ + look_period_) / look_period_ * look_period_;
  }
  bool LooksAt(TimeNs time) const {
    return looks_ && time > looked_at_ && time % look_period_ == 0;
  }
  // Requires, as LoadAt does: all have come to that moment.
  void Look(TimeNs time);

  // When a held request may go on, or its client gives up; kNever.
  TimeNs NextOfHeld() {
    if (flow_ != nullptr) return std::min(NextOfQueue(), NextTimeout());
    if (held_ == 0) return kNever;
    const TimeNs left = departures_.empty() ? kNever : departures_.front().time;
    return std::min(left, NextTimeout());
  }
  TimeNs NextTimeout();
  // The first client to do so. Requires: NextTimeout() < kNever.
  RequestId GiveUp();

  // One that is held is over otherwise, as its state says.
  void Lost(TimeNs time) { Leaves(time); }

  struct Placement {
    RequestId request = kNoRequest;
    std::int32_t place = Router::kHold;
  };
  // The first that is held, where there is room for it at that moment; else none. Times of this
  // and of Choose do not go back.
  Placement ChooseForHeld(TimeNs time);
  // The place of a request that comes; kHold: it is held, behind those that are.
  std::int32_t Choose(RequestId request, TimeNs time);

  // The time-out of a request that came has become that.
  void Cancel(RequestId request, TimeNs time) {
    const Held held{request, in_.results.replica[static_cast<std::size_t>(request)]};
    ExpectTimeout(held, time);
  }

  // Where the router has a queue of its own, instead of Choose and ChooseForHeld: a request comes.
  // False: it is turned away. Cycle() follows, at the same time.
  bool queues() const { return flow_ != nullptr; }
  bool Queue(RequestId request, TimeNs time);
  // One cycle of that queue: the request that goes, or none.
  Placement Cycle(TimeNs time);
  bool SweepsAt(TimeNs time) const { return flow_->SweepsAt(time); }
  // Those that have waited too long are turned away; only where it sweeps at that time.
  std::vector<RequestId> Sweep(TimeNs time);

  // A member more, which takes no requests until it is available. Only with routers that do not
  // look at members one by one.
  void AddMember(const Member& member) {
    in_.members.push_back(member);
    loads_.Add();
  }
  void SetAvailable(std::int32_t place, bool available) { loads_.SetAvailable(place, available); }

  // Another replica has taken a member's place.
  void Replaced(std::int32_t place, const Engine* replica) {
    in_.members[static_cast<std::size_t>(place)].replica = replica;
  }

  // A request goes to a member, by this gateway or another.
  void Placed(std::int32_t place) {
    if (!ignores_load()) loads_.Change(place, 1);
  }
  // A member ends a request at that time, which may lie ahead.
  struct Departure {
    TimeNs time = 0;
    std::int32_t place = 0;
    RequestId request = kNoRequest;
    bool own = true;  // this gateway placed it
  };
  void Left(const Departure& departure) {
    if (ignores_load()) return;
    departures_.push_back(departure);
    std::push_heap(departures_.begin(), departures_.end(), LeavesLater);
  }
  // The first token of a request comes at that time, likewise. Ignored by routers that do not hear
  // of them.
  void FirstToken(const Departure& first) {
    if (!in_.router.hears_first_tokens) return;
    first_tokens_.push_back(first);
    std::push_heap(first_tokens_.begin(), first_tokens_.end(), LeavesLater);
  }

 private:
  // Still held while its replica is the one noted here.
  struct Held {
    RequestId request = kNoRequest;
    std::int32_t replica = -1;
  };
  struct Timed {
    TimeNs time = 0;
    Held held;
  };
  static bool LeavesLater(const Departure& a, const Departure& b) {
    if (a.time != b.time) return a.time > b.time;
    return a.place != b.place ? a.place > b.place : a.request > b.request;
  }
  static bool Later(const Timed& a, const Timed& b) {
    return a.time != b.time ? a.time > b.time : a.held.request > b.held.request;
  }
  bool IsHeld(const Held& held) const {
    const auto r = static_cast<std::size_t>(held.request);
    return in_.results.replica[r] == held.replica && !IsLost(in_.results.state[r]);
  }
  TimeNs NextOfQueue() const {
    const TimeNs look = looks_ ? (looked_at_ + look_period_) / look_period_ * look_period_ : 0;
    const TimeNs departure = departures_.empty() ? kNever : departures_.front().time;
    return flow_->Next(std::min(first_look_, look), std::min(first_left_, departure));
  }

  void CountDepartures(TimeNs time);
  // Where no period is set, engines are looked at for each request.
  void LookAsRequestsCome(TimeNs time);
  void ReadEngines(TimeNs time);
  RoutedRequest Describe(RequestId request, TimeNs time);
  std::int32_t ChooseFor(RequestId request, TimeNs time);
  void Hold(RequestId request, TimeNs time);
  void ExpectTimeout(const Held& held, TimeNs time);
  void Leaves(TimeNs time);

  Input in_;
  std::unique_ptr<Router> router_;
  FlowQueue* flow_ = nullptr;                         // the router's; null: none
  TimeNs first_look_ = kNever, first_left_ = kNever;  // since its last cycle
  std::int64_t block_size_;  // of the index of prompts: the least of any member
  ReplicaLoads loads_;
  TimeNs period_;       // of departures; 0: live
  TimeNs look_period_;  // of the engines' signals; 0: live
  bool looks_;          // at engines, at multiples of look_period_
  TimeNs looked_at_ = 0;
  std::vector<Departure> departures_;    // heap, of those not yet counted in loads_
  std::vector<Departure> first_tokens_;  // heap, of those not yet told to the router
  std::vector<ContentRange> content_;    // of the request that is routed

  Recorder waiting_;
  std::deque<Held> queue_;  // also some whose clients have given up; not of a queue of the router's
  std::vector<Timed> timeouts_;  // heap; also those, and some that have been placed
  std::int64_t held_ = 0, timed_out_ = 0, rejected_ = 0;
};

}  // namespace servecast
