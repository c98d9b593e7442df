// What a simulation needs of an engine instance, whichever rules it plays by: replica.h has vLLM's,
// blis_replica.h those of BLIS. One virtual call per slice; loops run inside.
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
  // Of a replica that has something to do: all that it answers up to then is answered, and unless
  // more is sent, it does nothing before.
  virtual TimeNs ready() const { return now(); }
  // Likewise: no request leaves it before, unless more is sent, though it may have much to do.
  virtual TimeNs QuietUntil() { return ready(); }
  // Of one that has nothing to do until it is sent more, or a transfer ends: when it will all the
  // same.
  virtual TimeNs Wakes() { return kNever; }

  // A transfer of KV ended that it takes part in, as the one that decodes; as the one that
  // prefilled, or its request needs none any more. It acts on that between steps. Requires: times
  // in order, and no step formed at or after this one.
  virtual void Arrive(RequestId, TimeNs) {}
  virtual void FreeHandedOver(RequestId, TimeNs) {}

  // Its running list and KV blocks as they are at `time`, for a look from outside: with a
  // step under way as the latest one was formed. Requires: it has run up to `time`, or has nothing
  // to do. Of what waits it knows less than its sender.
  virtual EngineLoad LoadAt(TimeNs) const { return {running(), kv_blocks_used()}; }
  virtual std::int64_t running() const = 0;
  virtual std::int64_t queued() const = 0;
  virtual std::int64_t completed() const = 0;
  virtual std::int64_t timed_out() const = 0;
  virtual std::int64_t length_capped() const = 0;
  virtual std::int64_t kv_blocks_used() const = 0;
  virtual const PrefixCacheReport& prefix_cache() = 0;
  virtual SchedulerCounts counts() const { return {}; }
  virtual KvOffloadReport kv_offload() const { return {}; }
  // How its results come to differ from those of the default engine on the same requests; sentences
  // for a reader.
  virtual std::vector<std::string_view> departures() const { return {}; }
  // Several replicas keep records of their own: adds them up, to `end`. One writes as it goes.
  virtual void WriteRecords(TimeNs, Recorder&) const {}
  virtual void WritePoolRecords(TimeNs, std::int64_t /*pool*/, Recorder&) const {}
  // Of each of several, up to `end`; one alone has no more to say than the run's report.
  virtual std::vector<ReplicaReport> PerReplica(TimeNs) const { return {}; }
  // Output tokens so far of a running request; for the others see RequestResults::generated.
  virtual void WriteProgress(std::vector<std::int32_t>& generated) const = 0;
};

}  // namespace servecast
