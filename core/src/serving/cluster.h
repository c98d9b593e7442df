// Several replicas by vLLM's rules behind a router, in pools that may differ. Each has a clock of
// its own; whoever is furthest behind runs next, never beyond the next request that the router has
// to place, nor, where answers bring requests (sessions, closed loops), beyond what another replica
// may still answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/indexed_heap.h"
#include "serving/fleet.h"
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
    std::int64_t seed = 0;
    Clients& clients;
    // Of several kinds: instead of `replicas` and what `replica` says of these. All serve sequences
    // of the same length.
    std::vector<ClusterPool> pools = {};
    const RouterEntry* decode_router = nullptr;
    DisaggregationSpec disaggregation = {};
  };
  explicit Cluster(const Input& input);

  bool Advance(std::int64_t max_steps) override;

 private:
  struct Departure {
    TimeNs time = 0;
    std::int32_t replica = 0;
  };
  static bool Later(const Departure& a, const Departure& b) {
    return a.time != b.time ? a.time > b.time : a.replica > b.replica;
  }

  void Route(RequestId request, TimeNs time);
  std::int64_t Run(std::int32_t node, TimeNs until, std::int64_t max_steps);

  Input in_;
  std::unique_ptr<Router> router_;
  ReplicaLoads loads_;
  std::vector<Departure> departures_;  // heap, of those not yet counted in loads_
  IndexedHeap active_;                 // by the replica's clock; who has nothing to do is not in it
  bool answers_bring_requests_;
  std::vector<std::int32_t> session_of_;  // by request; empty: each its own
};

// The first request of each one's conversation; empty: each is its own.
std::vector<std::int32_t> SessionsOf(const RequestTable& requests);
RoutedRequest DescribeForRouter(const RequestTable& requests,
                                const std::vector<std::int32_t>& sessions, RequestId request);

// nullptr where clusters are left out: in the page's first module (wasm/left_out.cpp).
std::unique_ptr<AnyReplica> MakeCluster(const Cluster::Input& input);

}  // namespace servecast
