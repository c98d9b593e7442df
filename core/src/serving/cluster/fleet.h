// The replicas of a cluster, in pools that may differ, and their figures taken together. Which runs
// when, and what each is sent, is for cluster.h to say.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "metrics/recorder.h"
#include "serving/cluster/gateway.h"
#include "serving/engine.h"
#include "serving/inbox.h"
#include "serving/replica/replica.h"

namespace servecast {

// Equal replicas.
struct FleetPool {
  ReplicaInput each;  // but for the inbox, the recorder and the number, which are not looked at
  std::int64_t replicas = 1;
  std::int64_t gpus = 1;         // of a replica
  std::int64_t block_bytes = 0;  // of a KV block as its scheduler counts them, on all its GPUs
  // Whose replicas come and go, or are replaced; `replicas` are there first. Pools of the same
  // planner have the same one.
  const ScalingSpec* scaling = nullptr;  // nullptr: no scaler
  TimeNs cold_start = 0;                 // of those that come later
  TimeNs wake = 0;                       // of the scaler's warm ones
  TimeNs grace = kNever;                 // how long one drains at most
};

class Fleet : public Engine {
 public:
  TimeNs now() const override;
  std::int64_t running() const override { return Sum(&Engine::running); }
  std::int64_t queued() const override { return Sum(&Engine::queued); }
  std::int64_t completed() const override { return Sum(&Engine::completed); }
  std::int64_t timed_out() const override { return Sum(&Engine::timed_out); }
  std::int64_t lost() const override { return Sum(&Engine::lost); }
  std::int64_t length_capped() const override { return Sum(&Engine::length_capped); }
  std::int64_t kv_blocks_used() const override { return Sum(&Engine::kv_blocks_used); }
  std::vector<std::string_view> departures() const override;  // each once
  const PrefixCacheReport& prefix_cache() override;
  SchedulerCounts counts() const override;
  KvOffloadReport kv_offload() const override;
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  // Of a request served by two replicas, each counts its part.
  std::vector<ReplicaReport> PerReplica(TimeNs end) const override;
  // Of all replicas, up to `end`.
  void WriteRecords(TimeNs end, Recorder& recorder) const override;
  void WritePoolRecords(TimeNs end, std::int64_t pool, Recorder& recorder) const override;
  std::size_t PoolOf(std::int32_t replica) const override { return NodeAt(replica).pool; }

 protected:
  struct Node {
    Inbox inbox;
    Recorder recorder;
    std::unique_ptr<Engine> replica;
    std::size_t pool = 0;
    PoolRole role = PoolRole::kMixed;
    std::int32_t place = 0;  // among those of its role
  };

  // One pool at least; all have the same requests and results.
  Fleet(std::vector<FleetPool> pools, Clients& clients);

  // What all pools have in common is that of any.
  const ReplicaInput& any() const { return pools_.front().each; }

  Node& NodeAt(std::int32_t index) const { return *nodes_[static_cast<std::size_t>(index)]; }
  // One more replica of the pool, which ends at `dies_at`; its number.
  std::int32_t AddNode(std::size_t pool, TimeNs dies_at = kNever);
  Gateway::Member MemberAt(std::size_t index) const;
  // A new replica in the place of this one, with empty caches, which ends at `dies_at`. What the
  // old one did stays in the figures, and `timed_out` and `lost` requests that ended with it.
  void Replace(std::int32_t index, TimeNs dies_at, std::int64_t timed_out, std::int64_t lost);
  // For a gateway before those of a role, by place.
  std::vector<Gateway::Member> Members(PoolRole role) const;
  // From now on replicas note in their inboxes when first tokens come.
  void HearFirstTokens() {
    for (const auto& node : nodes_) node->inbox.HearFirstTokens();
  }
  // No request comes any more, and no replica has anything to do before the horizon.
  bool Close();

  std::vector<FleetPool> pools_;
  std::vector<std::unique_ptr<Node>> nodes_;

 private:
  // Figures of replicas that were replaced, together.
  class Replaced;

  std::unique_ptr<Engine> MakeFor(Node& node, std::int64_t number, TimeNs dies_at) const;
  // Of all replicas there ever were.
  std::vector<Engine*> All() const;

  Clients& clients_of_all_;
  std::unique_ptr<Engine> replaced_;  // null: none was

  std::int64_t Sum(std::int64_t (Engine::*figure)() const) const;

  PrefixCacheReport prefix_cache_;
};

}  // namespace servecast
