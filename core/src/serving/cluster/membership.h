// Which replicas there are over time. A pool's scaler says how many, new ones take a cold start,
// and one that is not wanted any more drains: it gets no request and ends when its last one has
// left and the KV that it has prefilled for others is gone, or its time is over. One that fails is
// back after its restart, with its number.
//
//   starting --cold start--> up --not wanted--> draining --last request leaves--> down
//                           |  ^                    \---fails--> down
//                     fails v  | restart
//                         failed --not wanted--> down
//
// Replicas keep their numbers, and one that starts is a new number with empty caches. Scaled down
// are those that start, the youngest first, then those that have failed, then those that are up,
// likewise, as a ReplicaSet of Kubernetes chooses: a pod that is not ready before one that is. The
// scaler sees what was scraped last, `scrape_delay_s` before, at multiples of `scrape_period_s`.
//
// A scaler may have warm replicas beside its own, which are started and asleep. One that is needed
// is taken from those asleep, if there is one, and serves `wake` later; at that moment another one
// begins its cold start, to be asleep. Who drains ends, and is not put to sleep.
//
// A rolling update replaces those that are there at its begin, as a Deployment of Kubernetes does
// where the GPUs are those of all wanted replicas and of `max_surge` more: new ones start while so
// many are free, which one that drains is not yet; old ones drain, the last to come up first, while
// more than all but `max_unavailable` are up or are old ones that have failed, and these go first.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/cluster/failures.h"
#include "serving/policy.h"
#include "serving/scaling/scaler.h"

namespace servecast {

class Membership {
 public:
  struct Pool {
    const ScalingSpec* scaling = nullptr;  // nullptr: no scaler; of several pools of a planner one
    PlannedPool planned = {};              // for a planner
    TimeNs cold_start = 0;                 // of a new replica
    TimeNs wake = 0;                       // of a warm one
    std::int64_t initial = 1;              // replicas that are up at 0
  };
  struct Input {
    std::vector<Pool> pools;  // by whose order replicas have their numbers, from 0 on
    const RollingUpdateSpec* rolling_update = nullptr;  // nullptr: none; of one pool, not scaled
  };                                                    // what is referred to outlives it
  // What an engine says when it is scraped.
  struct Scraped {
    EngineLoad load;
    std::int64_t kv_blocks = 1;
    LastStep step = {};  // for a planner, as what is queued
    QueuedWork queued = {};
  };
  struct Change {
    std::size_t pool = 0;
    std::int64_t start = 0;           // new replicas, which the caller makes and names by Started
    std::vector<std::int32_t> drain;  // of those up: they get no request from now on
    std::vector<std::int32_t> gone;   // of those that start or have failed: they never come up
  };
  virtual ~Membership() = default;

  // When the time of one that drains is over, the next replica comes up, a scrape is due, the
  // scaler decides or the update goes on. At one time in that order.
  virtual TimeNs Next() const = 0;
  // One that was told to drain is ended then, if it still has requests.
  virtual void EndsBy(std::int32_t replica, TimeNs time) = 0;
  // Those that are, by number.
  virtual std::vector<std::int32_t> CutOff(TimeNs time) = 0;
  // The replicas whose cold start ends by then; each once.
  virtual std::vector<std::int32_t> ComeUp(TimeNs time) = 0;
  virtual bool ScrapesAt(TimeNs time) const = 0;
  // Whether the replica is up or draining.
  virtual bool Serves(std::int32_t replica) const = 0;
  // `scraped`: by number, of all replicas; not looked at where it does not serve. `held`: by pool,
  // requests that wait for one of its replicas, and for others that serve the same. Planners see
  // `served`.
  virtual void Scrape(TimeNs time, const std::vector<Scraped>& scraped,
                      const std::vector<std::int64_t>& held, const ServedTotals& served) = 0;
  // Of several pools' scalers one after another.
  virtual bool DecidesAt(TimeNs time) const = 0;
  virtual Change Decide(TimeNs time) = 0;
  virtual bool RollsAt(TimeNs time) const = 0;
  virtual Change Roll(TimeNs time) = 0;
  // When it, of the pool of the change, will be up.
  virtual TimeNs Started(std::int32_t replica, std::size_t pool, TimeNs time) = 0;

  // A replica that is up or draining fails at that time, with or without requests; one that has
  // failed is up again. False: it does not come back, for it was draining.
  virtual bool Failed(std::int32_t replica, TimeNs time, bool with_requests) = 0;
  virtual void Recovered(std::int32_t replica, TimeNs time) = 0;

  // A request is placed on a replica, or leaves it at that time, which may lie ahead; where it is
  // handed over its KV stays, and goes then.
  virtual void Placed(std::int32_t replica) = 0;
  virtual void Left(std::int32_t replica, TimeNs time, bool kv_stays = false) = 0;
  virtual void KvWent(std::int32_t replica, TimeNs time) = 0;
  // Requests on replicas that have not been said to leave; the latest time that was said. Which of
  // them are said by a time depends on how the run is sliced, who leaves by then does not.
  // Whether what comes next is worth waiting for: a replica that starts, or one of a limited number
  // of decisions.
  virtual bool Expects() const = 0;
  virtual std::int64_t Staying() const = 0;
  virtual TimeNs LastLeft() const = 0;

  // Up to `end`, without weights_s, requests and what depends on GPUs and prices; with the outages
  // that began by then; also of each of several pools. O((replicas ever + outages) log) a pool.
  virtual ScalingReport ReportTo(TimeNs end,
                                 const std::vector<Failures::Outage>& outages) const = 0;
};

// In a file of its own, which the page's first module leaves out.
std::unique_ptr<Membership> MakeMembership(const Membership::Input& input);

}  // namespace servecast
