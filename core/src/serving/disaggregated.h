// A cluster where some replicas only prefill, and others decode what these have prefilled. What one
// does may matter to another at once: a prefill that ends sends its request on, blocks that are
// taken start a transfer and slow down others, a transfer that ends frees blocks on one side and
// lets a request decode on the other. So whoever is furthest behind runs next, and nobody beyond
// the others' clocks, nor beyond the next event on the link or at the routers. At one moment
// transfers end first, then requests arrive, then they are handed over, by id, then steps are
// formed, by replica.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/indexed_heap.h"
#include "serving/cluster.h"
#include "serving/fleet.h"
#include "serving/kv_link.h"
#include "serving/router.h"

namespace servecast {

class Disaggregated final : public Fleet {
 public:
  // Requires: pools of both roles. Delays before the queue do not depend on load.
  explicit Disaggregated(const Cluster::Input& input);

  bool Advance(std::int64_t max_steps) override;

 private:
  struct Gate;
  struct Departure {
    TimeNs time = 0;
    std::int32_t place = 0;
    RequestId request = kNoRequest;
    Gate* gate = nullptr;  // that had placed it
  };
  static bool Later(const Departure& a, const Departure& b) {
    if (a.time != b.time) return a.time > b.time;
    return a.place != b.place ? a.place > b.place : a.request > b.request;
  }
  // Replicas of one role.
  struct Side {
    std::vector<std::int32_t> nodes;
    ReplicaLoads loads{0};
    std::vector<Departure> departures;  // heap, of those not yet counted in loads
  };
  // Who chooses among them.
  struct Gate {
    const RouterEntry* entry = nullptr;
    std::unique_ptr<Router> router;
    Side* side = nullptr;
  };
  struct Prefilled {
    TimeNs time = 0;
    RequestId request = kNoRequest;
  };
  static bool LaterPrefill(const Prefilled& a, const Prefilled& b) {
    return a.time != b.time ? a.time > b.time : a.request > b.request;
  }

  void Open(Gate& gate, const RouterEntry& entry, const std::vector<double>& params, PoolRole role);
  TimeNs NextEvent() const;
  void Happen(TimeNs time);
  void Route(Gate& gate, RequestId request, TimeNs time);
  std::int64_t Run(std::int32_t index, TimeNs until, std::int64_t max_steps);
  void Hear(Node& node);
  void Free(RequestId request, TimeNs time);
  void Activate(std::int32_t index, TimeNs time);
  static TimeNs Wakes(const Node& node);

  Cluster::Input in_;
  TimeNs horizon_;
  std::vector<Side> sides_;          // by role
  std::vector<std::int32_t> place_;  // of a node on its side
  Gate whole_, prefill_, decode_;
  std::vector<Prefilled> prefilled_;  // heap, to be sent to a decode replica
  KvLink link_;
  IndexedHeap active_;  // by the replica's clock, or when a sleeping one wakes
  std::vector<std::int32_t> session_of_;
  std::vector<Gate*> gate_of_;  // by request: that placed it last
};

}  // namespace servecast
