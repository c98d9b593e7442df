// Several replicas behind a router, by vLLM's rules or another scheduler's, in pools that may
// differ. Each has a clock of its own; whoever is furthest behind runs next, never beyond the next
// event that all must have come to - a request for the router to place, room for one that it holds,
// a look at the engines - nor, where answers bring requests (sessions, closed loops), beyond what
// another replica may still answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/indexed_heap.h"
#include "metrics/recorder.h"
#include "serving/fleet.h"
#include "serving/gateway.h"
#include "serving/router.h"

namespace servecast {

class Cluster final : public Fleet {
 public:
  // `replica`: what all have in common; its inbox and recorder are not looked at. All outlive it.
  // Requires: delays before the queue do not depend on load.
  struct Input {
    ReplicaInput replica;
    std::int64_t replicas = 1;
    const RouterEntry* router = nullptr;
    std::vector<double> router_params;  // of the router's, in their order
    std::int64_t seed = 0;
    Clients& clients;
    // Of several kinds: instead of `replicas` and what `replica` says of these. All serve sequences
    // of the same length.
    std::vector<ClusterPool> pools = {};
    const RouterEntry* decode_router = nullptr;
    std::vector<double> decode_router_params = {};
    DisaggregationSpec disaggregation = {};

    std::int64_t Replicas() const {
      std::int64_t sum = pools.empty() ? replicas : 0;
      for (const ClusterPool& pool : pools) sum += pool.replicas;
      return sum;
    }
  };
  explicit Cluster(const Input& input);

  bool Advance(std::int64_t max_steps) override;

  std::int64_t queued() const override { return Fleet::queued() + held_.size(); }
  std::int64_t timed_out() const override { return Fleet::timed_out() + held_.timed_out(); }
  // Of all replicas and of the gateway, up to `end`.
  void WriteRecords(TimeNs end, Recorder& recorder) const override;

 private:
  struct Departure {
    TimeNs time = 0;
    std::int32_t replica = 0;
    RequestId request = kNoRequest;
  };
  static bool Later(const Departure& a, const Departure& b) {
    if (a.time != b.time) return a.time > b.time;
    return a.replica != b.replica ? a.replica > b.replica : a.request > b.request;
  }

  TimeNs NextEvent(TimeNs arrival);
  TimeNs NextSignals(TimeNs arrival) const;
  void Happen(TimeNs time, TimeNs arrival);
  void CountDepartures(TimeNs time);
  void ReadEngines(TimeNs time);
  std::int32_t Choose(RequestId request);
  void PlaceHeld(TimeNs time);
  std::int32_t LeastWaiting() const;
  void Route(RequestId request, TimeNs time);
  void Place(RequestId request, std::int32_t replica, TimeNs time);
  RoutedRequest Describe(RequestId request);
  std::int64_t Run(std::int32_t node, TimeNs until, std::int64_t max_steps);

  Input in_;
  std::unique_ptr<Router> router_;
  ReplicaLoads loads_;
  TimeNs period_;       // of signals; 0: live
  TimeNs read_at_ = 0;  // when engines were looked at, with a period
  Gateway held_;
  std::vector<Departure> departures_;  // heap, of those not yet counted in loads_
  IndexedHeap active_;                 // by the replica's clock; who has nothing to do is not in it
  bool answers_bring_requests_;
  std::vector<std::int32_t> session_of_;  // by request; empty: each its own
  std::vector<ContentRange> content_;     // of the request that is routed
};

// The first request of each one's conversation; empty: each is its own.
std::vector<std::int32_t> SessionsOf(const RequestTable& requests);
// RoutedRequest::content.
std::vector<ContentRange> ContentFor(const RequestTable& requests, RequestId request,
                                     std::int64_t block_size);

// nullptr where clusters are left out: in the page's first module (wasm/left_out.cpp).
std::unique_ptr<AnyReplica> MakeCluster(const Cluster::Input& input);

}  // namespace servecast
