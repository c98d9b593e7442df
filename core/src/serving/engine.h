// What a simulation needs of an engine, whichever rules it follows: replica.h has vLLM's,
// blis_replica.h has BLIS's. One virtual call per slice; loops run inside.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "servecast/report.h"
#include "serving/policy.h"

namespace servecast {

class Engine {
 public:
  virtual ~Engine() = default;

  // Runs at most `max_steps` steps; true when there is nothing left to do.
  virtual bool Advance(std::int64_t max_steps) = 0;

  virtual TimeNs now() const = 0;
  // Of a replica that has something to do: it has answered all that it answers before this time,
  // and does nothing before it unless more is sent.
  virtual TimeNs ready() const { return now(); }
  // Likewise: no request leaves it before this time unless more is sent, though it may be busy.
  virtual TimeNs QuietUntil() { return ready(); }
  // Of a replica that has nothing to do until it is sent more or a transfer ends: when it acts even
  // so, say for a client that gives up.
  virtual TimeNs Wakes() { return kNever; }

  // Arrive: a transfer of KV to this replica, which decodes, has ended. FreeHandedOver: one from
  // this replica has ended, or is not needed any more. It acts on that between steps. Requires:
  // times in order, and no step formed at or after this one.
  virtual void Arrive(RequestId, TimeNs) {}
  virtual void FreeHandedOver(RequestId, TimeNs) {}

  // LoseTransfer: the replica ends that has the KV of a request here, which has not arrived. The
  // request leaves; of one whose client gave up before, its blocks are free. WithheldFor: requests
  // whose KV this replica has for others, by id.
  virtual void LoseTransfer(RequestId, TimeNs) {}
  virtual std::vector<RequestId> WithheldFor() const { return {}; }

  // The replica ends at that time: what was sent to it is in its queue, output tokens so far are in
  // RequestResults, and it is not called any more but for its figures. Requires: ReplicaInput's
  // dies_at.
  virtual void Die(TimeNs) {}

  // From `now` on it has until `time`, or until the end of the step that is under way now, if that
  // is later; Die comes then. Returns that time; kNever: not before the horizon. Requires: it has
  // come to `now`, and `time` is not before.
  virtual TimeNs EndBy(TimeNs /*now*/, TimeNs time) { return time; }

  // Its running list and KV blocks at `time`; with a step under way, as they were when that was
  // formed. Requires: it has run up to `time`, or has nothing to do. Of waiting requests it knows
  // fewer than the router has sent.
  virtual EngineLoad LoadAt(TimeNs) const { return {running(), kv_blocks_used()}; }
  virtual LastStep LastStepAt(TimeNs) const { return {}; }  // requires: as LoadAt
  virtual std::int64_t running() const = 0;
  virtual std::int64_t queued() const = 0;
  virtual std::int64_t completed() const = 0;
  virtual std::int64_t timed_out() const = 0;
  virtual std::int64_t rejected() const { return 0; }
  virtual std::int64_t lost() const { return 0; }  // with replicas that failed
  virtual std::int64_t length_capped() const = 0;
  virtual std::int64_t kv_blocks_used() const = 0;
  virtual const PrefixCacheReport& prefix_cache() = 0;
  virtual SchedulerCounts counts() const { return {}; }
  virtual KvOffloadReport kv_offload() const { return {}; }
  // Why its results differ from those of the default engine on the same requests; sentences for a
  // reader.
  virtual std::vector<std::string_view> departures() const { return {}; }
  // Several replicas keep records of their own: adds them up, to `end`. One writes as it goes.
  virtual void WriteRecords(TimeNs, Recorder&) const {}
  virtual void WritePoolRecords(TimeNs, std::int64_t /*pool*/, Recorder&) const {}
  virtual std::size_t PoolOf(std::int32_t /*replica*/) const { return 0; }
  // Of each of several, up to `end`; one alone has no more to say than the run's report.
  virtual std::vector<ReplicaReport> PerReplica(TimeNs) const { return {}; }
  // Of replicas that come and go, or fail, up to `end` and without requests that were lost; else
  // off.
  virtual ScalingReport ScalingTo(TimeNs) const { return {}; }
  // Output tokens so far of a running request; for the others see RequestResults::generated.
  virtual void WriteProgress(std::vector<std::int32_t>& generated) const = 0;
};

}  // namespace servecast
