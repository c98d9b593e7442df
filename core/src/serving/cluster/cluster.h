// Replicas in pools, by vLLM's rules or another scheduler's, with gateways before them. A pool may
// differ from others, in its role, too: some only prefill, and others decode what these have
// prefilled, whose KV blocks travel over a link. Without roles there is one gateway before all
// replicas; with them one before those that decode, one before those that prefill, and one before
// those that serve a request whole. Where some encode images for the others one stands before
// these: a request with images goes there first, and with what they became to its prompt's gateway.
//
// Each replica has a clock of its own. The one furthest behind runs next, never beyond the next
// event that all must have come to: a request for a gateway to place, room for one that it holds, a
// look at the engines, a transfer. Replicas are coupled where what one does may matter to another
// at once, because answers bring requests (sessions, closed loops) or a request needs several of
// them: then none runs beyond the others' clocks either. At one moment transfers end first, then
// clients that hedge see first tokens, then replicas fail or come back, by number, then they come
// and go, then gateways look at engines, clients give up there, and held requests find room (for
// decoding before others) or are turned away, then requests arrive, then they are handed over, by
// id, then steps are formed, by replica.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/indexed_heap.h"
#include "metrics/recorder.h"
#include "serving/cluster/failures.h"
#include "serving/cluster/fleet.h"
#include "serving/cluster/gateway.h"
#include "serving/cluster/kv_link.h"
#include "serving/cluster/membership.h"
#include "serving/cluster/planner_view.h"
#include "serving/cluster/router.h"

namespace servecast {

class Cluster final : public Fleet {
 public:
  // All that is referred to outlives it. Requires: with one role the other, too; all replicas serve
  // sequences of the same length; delays before the queue do not depend on load.
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
    // Of pools that encode images.
    const RouterEntry* encode_router = nullptr;
    std::vector<double> encode_router_params = {};
    std::int64_t embed_bytes = 0;  // of a token of an image
    double embeddings_gb_s = 0;    // of their link, which is else as `disaggregation` says
    // Replicas are replaced; then one pool, without a scaler.
    const RollingUpdateSpec* rolling_update = nullptr;  // nullptr: none
    const FailureSpec* failures = nullptr;              // nullptr: no replica fails
    const EppSpec* epp = nullptr;                       // of the router "epp"
  };
  explicit Cluster(const Input& input);

  bool Advance(std::int64_t max_steps) override;

  std::int64_t queued() const override;
  std::int64_t timed_out() const override;
  std::int64_t rejected() const override;
  std::int64_t lost() const override { return Fleet::lost() + refused_; }
  // Of all replicas and of the gateways, up to `end`.
  void WriteRecords(TimeNs end, Recorder& recorder) const override;
  ScalingReport ScalingTo(TimeNs end) const override;

 private:
  struct Timed {
    TimeNs time = 0;
    RequestId request = kNoRequest;
  };
  static bool Later(const Timed& a, const Timed& b) {
    return a.time != b.time ? a.time > b.time : a.request > b.request;
  }

  std::size_t Open(PoolRole role, const RouterEntry& router, const std::vector<double>& params,
                   std::int64_t seed);
  TimeNs NextEvent();
  TimeNs LimitOf(std::int32_t index, TimeNs event) const;
  void Process(TimeNs time);
  bool ProcessAt(Gateway& gateway, TimeNs time);
  std::int32_t LeastWaiting() const;
  void Route(Gateway& gateway, RequestId request, TimeNs time);
  void Cycle(Gateway& gateway, TimeNs time);
  void Place(const Gateway& gateway, RequestId request, std::int32_t place, TimeNs time);
  std::int64_t Run(std::int32_t index, TimeNs until, std::int64_t max_steps);
  void PassDepartures(std::int32_t index);
  void PassHandOvers(Node& node);
  void PassLink(TimeNs time);
  void PassEmbeddings(TimeNs time);
  void GoOn(RequestId request, TimeNs time);
  Gateway& GatewayOfPrompt(RequestId request);
  void PassFirstToken();
  bool MembersMayChange() const;
  void PassMembership(TimeNs time);
  void PassScrape(TimeNs time);
  void PassChange(const Membership::Change& change, TimeNs time);
  void SetAvailable(std::int32_t index, bool available);
  std::int64_t HeldBefore(PoolRole role) const;
  void PlaceHeld(TimeNs time);
  void Free(RequestId request, TimeNs time);
  void Activate(std::int32_t index, TimeNs time);
  void TellGateways(std::int32_t index, TimeNs time, RequestId request);

  // Replicas that end (cluster_failures.cpp), and requests with them.
  struct Ended {
    std::int64_t lost = 0, timed_out = 0;
  };
  bool ReplicasMayFail() const;
  void PassFailure(TimeNs time);
  void Fail(std::int32_t index, TimeNs time);
  bool IsOver(RequestId request) const;
  bool EndReplica(std::int32_t index, TimeNs time);
  void LoseKv(std::int32_t prefill, RequestId request, TimeNs time, Ended& ended);
  void StopTransfer(RequestId request, TimeNs time);
  void EndOn(std::int32_t index, RequestId request, TimeNs time, Ended& ended);
  void End(RequestId request, TimeNs time, Ended& ended);
  void Refuse(std::int32_t index, RequestId request, TimeNs time);
  void Lose(RequestId request, TimeNs time);
  void LeavesAt(std::int32_t index, RequestId request, TimeNs time);

  Clients& clients_;
  TimeNs horizon_;
  std::vector<std::int32_t> session_of_;  // by request; empty: each its own
  // In order of their turns. Of a request that comes: whole_ or prefill_, with images to encode
  // elsewhere encode_ before (0: nowhere); that is prefilled: the first.
  std::vector<Gateway> gateways_;
  std::size_t whole_ = 0, prefill_ = 0, encode_ = 0;
  std::int64_t above_tokens_;   // longer prompts are for prefill_
  bool roles_, by_vidur_;       // by Vidur's rules LeastWaiting chooses
  bool coupled_, independent_;  // independent: requests may be placed before replicas come to them
  // All that is asked of replicas is what left: then one that only decodes stays behind until
  // a request does.
  bool lags_;
  std::unique_ptr<Membership> membership_;      // null: fixed, and none fails
  std::optional<PlannerView> planner_view_;     // none: no scaler is a planner
  std::optional<Failures> failures_;            // none: no replica fails
  std::vector<std::vector<RequestId>> placed_;  // by replica, on its present life
  std::int64_t refused_ = 0;  // requests that were sent to a replica that was down
  TimeNs changed_ = 0;        // the last event that was not the membership's or a failure
  IndexedHeap active_;  // by when it may matter next; a replica with nothing to do is not in it

  const EppSpec* epp_;  // Input's
  // Heap, of those that go on elsewhere: prefilled or encoded, or whose embeddings are there.
  std::vector<Timed> handed_on_;
  // Heap, of clients that hedge: when they see first tokens.
  std::vector<Timed> first_tokens_;
  KvLink link_;
  KvLink embeddings_link_;
  std::int64_t embed_bytes_;
  std::int64_t travelling_ = 0;  // requests whose embeddings are on their way, which wait there
  Recorder of_embeddings_;
};

// What the page's first module has no copy of (HasCluster).
std::unique_ptr<Engine> MakeCluster(const Cluster::Input& input);

}  // namespace servecast
