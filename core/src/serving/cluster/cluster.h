// Several replicas behind a router, by vLLM's rules or another scheduler's, in pools that may
// differ. Each has a clock of its own; the one furthest behind runs next, never beyond the next
// event that all must have come to - a request for the router to place, room for one that it holds,
// a look at the engines - nor, where answers bring requests (sessions, closed loops), beyond what
// another replica may still answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/indexed_heap.h"
#include "metrics/recorder.h"
#include "serving/cluster/fleet.h"
#include "serving/cluster/gateway.h"
#include "serving/cluster/router.h"

namespace servecast {

class Cluster final : public Fleet {
 public:
  // All that is referred to outlives it. Requires: all replicas serve sequences of the same length,
  // and delays before the queue do not depend on load.
  struct Input {
    std::vector<FleetPool> pools;  // one at least
    const RouterEntry* router = nullptr;
    std::vector<double> router_params;  // of the router's, in their order
    std::int64_t seed = 0;
    Clients& clients;
    // With roles only.
    const RouterEntry* decode_router = nullptr;
    std::vector<double> decode_router_params = {};
    DisaggregationSpec disaggregation = {};  // its bandwidth is said
  };
  explicit Cluster(const Input& input);

  bool Advance(std::int64_t max_steps) override;

  std::int64_t queued() const override { return Fleet::queued() + gateway_.held(); }
  std::int64_t timed_out() const override { return Fleet::timed_out() + gateway_.timed_out(); }
  // Of all replicas and of the gateway, up to `end`.
  void WriteRecords(TimeNs end, Recorder& recorder) const override;

 private:
  TimeNs NextEvent(TimeNs arrival);
  void Process(TimeNs time, TimeNs arrival);
  std::int32_t LeastWaiting() const;
  void Place(RequestId request, std::int32_t replica, TimeNs time);
  std::int64_t Run(std::int32_t node, TimeNs until, std::int64_t max_steps);

  Clients& clients_;
  TimeNs horizon_;
  std::vector<std::int32_t> session_of_;  // by request; empty: each its own
  Gateway gateway_;
  bool by_vidur_;       // LeastWaiting chooses
  IndexedHeap active_;  // by when it may matter next; a replica with nothing to do is not in it
  bool answers_bring_requests_;
  // All that is asked of replicas is what left: then one that only decodes stays behind until
  // a request does.
  bool lags_;
};

// With pools that only prefill or only decode, a Disaggregated.
std::unique_ptr<Engine> MakeCluster(const Cluster::Input& input);

}  // namespace servecast
