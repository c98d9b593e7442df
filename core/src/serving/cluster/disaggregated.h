// A cluster where some replicas only prefill, and others decode what these have prefilled. What one
// does may matter to another at once: a prefill that ends sends its request on, blocks that are
// taken start a transfer and slow down others, a transfer that ends frees blocks on one side and
// lets a request decode on the other. So the one furthest behind runs next, and none beyond
// the others' clocks, nor beyond the next event on the link or at the gateways: one before each
// side, and one of those that are served whole. At one moment transfers end first, then gateways
// look at engines, clients give up there, and held requests find room (for decoding before others),
// then requests arrive, then they are handed over, by id, then steps are formed, by replica.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/indexed_heap.h"
#include "serving/cluster/cluster.h"
#include "serving/cluster/fleet.h"
#include "serving/cluster/gateway.h"
#include "serving/cluster/kv_link.h"

namespace servecast {

class Disaggregated final : public Fleet {
 public:
  // Requires: pools of both roles. Delays before the queue do not depend on load.
  explicit Disaggregated(const Cluster::Input& input);

  bool Advance(std::int64_t max_steps) override;

  std::int64_t queued() const override;
  std::int64_t timed_out() const override;
  // Of all replicas and of the gateways, up to `end`.
  void WriteRecords(TimeNs end, Recorder& recorder) const override;

 private:
  enum Side : std::size_t {
    kDecode,
    kWhole,
    kPrefill,
    kSides
  };  // gateways, in order of their turns
  struct Prefilled {
    TimeNs time = 0;
    RequestId request = kNoRequest;
  };
  static bool LaterPrefill(const Prefilled& a, const Prefilled& b) {
    return a.time != b.time ? a.time > b.time : a.request > b.request;
  }

  void Open(Side side, PoolRole role);
  PoolRole RoleOf(std::int32_t node) const { return pools_[NodeAt(node).pool].each.role; }
  TimeNs NextEvent();
  void Process(TimeNs time);
  bool ProcessAtGateway(Side side, TimeNs time);
  void PassLink(TimeNs time);
  void Route(Side side, RequestId request, TimeNs time);
  void Place(Side side, RequestId request, std::int32_t place, TimeNs time);
  std::int64_t Run(std::int32_t index, TimeNs until, std::int64_t max_steps);
  void PassEvents(Node& node);
  void Free(RequestId request, TimeNs time);
  void Activate(std::int32_t index, TimeNs time);

  Cluster::Input in_;
  TimeNs horizon_;
  std::vector<std::int32_t> session_of_;
  // One that would never be asked is left out.
  struct Entrance {
    PoolRole role = PoolRole::kDecode;
    std::vector<std::int32_t> nodes;  // by place
    std::optional<Gateway> gateway;
  };
  std::array<Entrance, kSides> entrances_;
  std::vector<std::int32_t> place_;       // of a node among those of its role
  std::vector<std::uint8_t> entered_by_;  // Side, by request: that placed it last
  std::vector<Prefilled> prefilled_;      // heap, to be sent to a decode replica
  KvLink link_;
  IndexedHeap active_;  // by the replica's clock, or when a sleeping one wakes
};

}  // namespace servecast
