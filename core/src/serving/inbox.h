// What one replica is sent, and what it answers. The only replica of a run takes requests from the
// clients as they come; one of several takes what the router gives it, and must not look further
// ahead than the router has decided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base.h"
#include "serving/clients.h"
#include "workload/request_table.h"

namespace servecast {

class Inbox {
 public:
  // All outlive it. `routed`: requests come by Send alone. `prefills`: they go on elsewhere.
  Inbox(Clients& clients, const RequestTable& requests, const RequestResults& results, bool routed,
        bool prefills = false)
      : clients_(clients),
        requests_(requests),
        results_(results),
        routed_(routed),
        prefills_(prefills) {}

  // See Clients; kNever: none is known of.
  TimeNs NextEnqueue() const {
    if (!routed_) return clients_.NextEnqueue();
    return next_ < sent_.size() ? sent_[next_].time : kNever;
  }
  // Requires: there is one.
  RequestId TakeNext() { return routed_ ? TakeSent() : clients_.TakeNext(); }
  bool Arrives(RequestId request, const EngineLoad& load) {
    return !routed_ && clients_.Arrives(request, load);
  }
  // See Clients.
  void TakeUpBefore(TimeNs time) {
    if (!routed_) clients_.TakeUpBefore(time);
  }
  void TakeUpAllBefore(TimeNs time) {
    if (!routed_) clients_.TakeUpAllBefore(time);
  }
  // It is in the queue: its client may give up from now on.
  void Enqueued(RequestId request) {
    if (!requests_.timeout.empty()) ExpectTimeout(request);
  }
  // No step may be formed at or after this time yet: a request may come before it that is not sent.
  TimeNs until() const { return until_; }
  // `to_departure`: nor from when a request leaves on; another may come in its place.
  void AllowUntil(TimeNs time, bool to_departure = false) {
    until_ = time;
    to_departure_ = to_departure;
  }

  // First tokens of others may end requests here: no step ends beyond until() from now on.
  void HearEndsOfOthers() { hears_first_ = keeps_within_ = true; }
  TimeNs EndsBy() const { return keeps_within_ ? until_ : kNever; }
  // The time-out of a request that was sent has become that.
  void Cancel(RequestId request) {
    const RequestState state = results_.state[static_cast<std::size_t>(request)];
    if (state == RequestState::kQueued || state == RequestState::kRunning) ExpectTimeout(request);
  }

  // By the router, in order of times: it comes to the replica's queue then. Requires: routed.
  void Send(RequestId request, TimeNs time) { sent_.push_back({time, request}); }
  // For another replica in the place of one that failed.
  void Reset() {
    sent_.clear();
    next_ = 0;
    timeouts_.clear();
    until_ = kNever;
  }
  // Sent, and not yet taken.
  std::int64_t unread() const { return static_cast<std::int64_t>(sent_.size() - next_); }

  bool GaveUpBefore(RequestId request, TimeNs time) const {
    return clients_.GaveUpBefore(request, time);
  }
  // When the next client of an unfinished request that was enqueued here gives up; kNever.
  TimeNs NextTimeout();
  // Requires: NextTimeout() < kNever, and nothing completed since.
  RequestId TakeTimeout();

  bool HasNextTurn(RequestId request) const { return clients_.HasNextTurn(request); }
  // The request is complete, for the engine at `time`: its client may send the next one.
  void Answered(RequestId request, TimeNs time) {
    clients_.Answered(request);
    if (routed_) Left(request, time);
  }
  // It timed out, as the engine hears at `heard`, and the router right after: so it does not matter
  // whether that is before or after others come to the same moment.
  void GaveUp(RequestId request, TimeNs heard) {
    clients_.GaveUp(request, heard);
    if (routed_) Left(request, heard + 1);
  }

  // It was turned away at that time. Requires: retries only where no router is before the replica.
  void TurnedAway(RequestId request, TimeNs time) { clients_.TurnedAway(request, time); }

  // What a replica tells others that share the work on a request; the cluster passes it on.
  struct HandOverEvent {
    enum class Kind : std::uint8_t {
      kPrefilled,  // it goes on elsewhere, and holds its blocks here until it has arrived there
      kReserved,   // its blocks are taken here: so many of them have to come
      kAbandoned,  // its client gave up before that
      kEncoded,    // its images are; it goes on elsewhere
    };
    Kind kind;
    RequestId request = kNoRequest;
    TimeNs time = 0;
    std::int64_t blocks = 0;
  };
  // From then on others may act on it, which may matter here: no step at that time or later, yet.
  void Report(const HandOverEvent& event) {
    events_.push_back(event);
    const bool leaves = event.kind == HandOverEvent::Kind::kPrefilled ||
                        event.kind == HandOverEvent::Kind::kEncoded;
    if (leaves) departures_.push_back({event.time, event.request});
    until_ = std::min(until_, event.time);
  }
  std::vector<HandOverEvent>& events() { return events_; }

  // Answers and time-outs may bring requests at that very moment.
  bool InLoop() const { return clients_.InLoop(); }

  struct Timed {
    TimeNs time = 0;
    RequestId request = kNoRequest;
  };
  // The requests that left, in order of time; the cluster takes them out.
  std::vector<Timed>& departures() { return departures_; }
  // The first token comes at that time; kept only after HearFirstTokens(), until the cluster takes
  // it out.
  void FirstToken(RequestId request, TimeNs time) {
    if (hears_first_) first_tokens_.push_back({time, request});
    if (keeps_within_) until_ = std::min(until_, time);
  }
  void HearFirstTokens() { hears_first_ = true; }
  std::vector<Timed>& first_tokens() { return first_tokens_; }

 private:
  static bool Later(const Timed& a, const Timed& b) {
    return a.time != b.time ? a.time > b.time : a.request > b.request;
  }
  RequestId TakeSent();
  void ExpectTimeout(RequestId request);
  // An answer may bring a request that comes before those that the router knew of.
  void Left(RequestId request, TimeNs time) {
    departures_.push_back({time, request});
    until_ = std::min(until_, clients_.NextEnqueue());
    if (to_departure_) until_ = std::min(until_, time);
  }

  Clients& clients_;
  const RequestTable& requests_;
  const RequestResults& results_;
  bool routed_, prefills_;
  TimeNs until_ = kNever;
  bool to_departure_ = false, hears_first_ = false, keeps_within_ = false;
  std::vector<Timed> sent_;
  std::size_t next_ = 0;
  std::vector<Timed> timeouts_;  // heap
  std::vector<Timed> departures_;
  std::vector<Timed> first_tokens_;
  std::vector<HandOverEvent> events_;
};

}  // namespace servecast
