// Which replicas of each pool are there over time, the slow way: a list of lives that is gone
// through at each scrape and decision.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast::testing {

// What an HPA wants, or KEDA above it: at that time, from the last number that it wanted, the
// replicas that start or are up, and the metric's sum in thousandths; none where no scrape is old
// enough.
using PdHpa =
    std::function<std::int64_t(TimeNs, std::int64_t, std::int64_t, std::optional<std::int64_t>)>;

// A replica's latest step, and who waits there: requests and their tokens.
struct PdReport {
  std::int64_t replica = 0;
  std::int64_t prefill_tokens = 0, prefill_requests = 0, decode_kv = 0, decode_requests = 0;
  std::int64_t queued_prefill_tokens = 0, queued_prefill_requests = 0;
  std::int64_t queued_decode_kv = 0, queued_decode_requests = 0;
};
// What clients had in an interval, on average.
struct PdTraffic {
  double requests = 0, input = 0, output = 0;
  std::optional<double> hit_rate;
};

// What a planner sees of one of its pools, and what it wants of each, at a tick of load or with the
// traffic of an interval.
struct PdPlanned {
  std::int64_t wanted = 0, ready = 0;
  bool changes = false;  // a replica starts or drains
  std::vector<PdReport> reports;
};
using PdPlanner = std::function<std::vector<std::int64_t>(bool, std::optional<PdTraffic>,
                                                          const std::vector<PdPlanned>&)>;

// A pool's scaler, "schedule", "hpa" or "keda", or "dynamo", one for all pools that have it; none:
// its replicas stay.
struct PdScaling {
  ScalingSpec spec;
  TimeNs cold_start = 0;
  // A new one, but with a schedule: recordings hold its rules, which are the caller's.
  std::function<PdHpa()> make_hpa = nullptr;
  std::function<PdPlanner()> make_planner = nullptr;
};

struct PdOutage {
  TimeNs down = 0, up = 0;
  bool seen = false;  // by routers
  bool back = false;  // it is over
};

struct PdLife {
  std::size_t pool = 0;
  TimeNs from = 0, up = 0, drain = kNever;
  TimeNs gone = kNever;  // when its last request and its last KV for others have left
  std::vector<PdOutage> outages = {};
  TimeNs fails = kNever;  // next
  TimeNs cut = kNever;    // when it is ended, if it still drains
  bool was_cut = false;
  std::int64_t drawn = 0;

  bool Down(TimeNs time) const;
  bool Up(TimeNs time) const { return up <= time && time < drain && !Down(time); }
  bool Available(TimeNs time) const {  // as routers see it
    return up <= time && time < drain && !(Down(time) && outages.back().seen);
  }
  // When it last came up. Of one that is down: before that.
  TimeNs Ready() const {
    TimeNs ready = up;
    for (const PdOutage& o : outages) ready = o.back ? o.up : ready;
    return ready;
  }
};

class PdMembers {
 public:
  // What a scrape finds of a replica, and before a pool.
  struct Seen {
    std::int64_t waiting = 0, running = 0;
    double kv_usage = 0;
    PdReport report;
    bool holds = false;  // requests, or KV for others
  };
  // What clients had before.
  struct Served {
    double requests = 0, input = 0, output = 0, cached = 0;
  };

  // `replicas`: of each pool, that are there first. None fails at or after the horizon.
  PdMembers(const std::vector<std::optional<PdScaling>>& scalings,
            const std::vector<std::int64_t>& replicas, const std::optional<FailureSpec>& failures,
            std::int64_t seed, TimeNs horizon);

  bool Scale() const;
  const std::vector<PdLife>& lives() const { return lives_; }
  std::vector<PdLife>& lives() { return lives_; }
  // When a replica comes up, or a scaler scrapes or decides.
  TimeNs Next() const;
  // Whether some of that comes by itself, without end.
  bool Limited() const;
  // When a replica fails, is seen to have failed or is up again.
  TimeNs NextOfFailures() const;
  TimeNs DueOf(const PdLife& life) const;
  // What is due of the replica: up again, or seen. True: it fails, and the caller calls Fail.
  bool FailsAt(std::size_t number, TimeNs now);
  // `with_something`: requests, or KV for others.
  void Fail(std::size_t number, TimeNs now, bool with_something);
  // Failures up to that time in which nothing else happens.
  void RunOn(TimeNs time);
  // Likewise, of pools alone that scrape at `now`.
  bool Scrapes(std::size_t pool, TimeNs now) const;
  void Scrape(std::size_t pool, TimeNs now, std::vector<Seen> seen, std::int64_t held,
              const Served& served);
  // All that is due: the pools of new replicas, in the order of their numbers.
  std::vector<std::size_t> Pass(TimeNs now);

  // Replicas of a pool in each state.
  ScalingReport::Step At(std::size_t pool, TimeNs time) const;

 private:
  struct Snapshot {
    TimeNs time = 0;
    std::vector<Seen> seen;  // by number
    std::int64_t held = 0;
    Served served;
  };
  struct Pool {
    std::optional<PdScaling> scaling;
    PdHpa hpa;  // null with a schedule
    std::vector<Snapshot> snapshots;
    TimeNs next_scrape = kNever, next_decision = kNever;
    std::size_t row = 0;
    std::int64_t wanted = 0;
    std::optional<std::int64_t> planned;
  };
  std::int64_t Decided(Pool& pool, std::size_t number, TimeNs now);
  const Snapshot* SeenAt(const Pool& pool, TimeNs now) const;
  void Plan(TimeNs now);
  PdPlanned PlannedOf(std::size_t number, TimeNs now) const;
  TimeNs EndOfLife(std::size_t number, TimeNs from);

  std::optional<FailureSpec> failures_;
  std::int64_t seed_;
  TimeNs horizon_;
  std::vector<Pool> pools_;
  std::vector<PdLife> lives_;
  TimeNs passed_ = 0;
  PdPlanner planner_;  // null: none
  TimeNs next_load_ = kNever, next_throughput_ = kNever;
  Served planned_by_;
};

}  // namespace servecast::testing
