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

// A pool's scaler, "schedule", "hpa" or "keda"; none: its replicas stay.
struct PdScaling {
  ScalingSpec spec;
  TimeNs cold_start = 0;
  // A new one, but with a schedule: recordings hold its rules, which are the caller's.
  std::function<PdHpa()> make_hpa = nullptr;
};

struct PdLife {
  std::size_t pool = 0;
  TimeNs from = 0, up = 0, drain = kNever;
  TimeNs gone = kNever;  // when its last request and its last KV for others have left

  bool Up(TimeNs time) const { return up <= time && time < drain; }
};

class PdMembers {
 public:
  // What a scrape finds of a replica, and before a pool.
  struct Seen {
    std::int64_t waiting = 0, running = 0;
    double kv_usage = 0;
  };

  // `replicas`: of each pool, that are there first.
  PdMembers(const std::vector<std::optional<PdScaling>>& scalings,
            const std::vector<std::int64_t>& replicas);

  bool Scale() const;
  const std::vector<PdLife>& lives() const { return lives_; }
  std::vector<PdLife>& lives() { return lives_; }
  // When a replica comes up, or a scaler scrapes or decides.
  TimeNs Next() const;
  // Whether some of that comes by itself, without end.
  bool Limited() const;
  // Likewise, of pools alone that scrape at `now`.
  bool Scrapes(std::size_t pool, TimeNs now) const;
  void Scrape(std::size_t pool, TimeNs now, std::vector<Seen> seen, std::int64_t held);
  // All that is due: the pools of new replicas, in the order of their numbers.
  std::vector<std::size_t> Pass(TimeNs now);

  // Replicas of a pool in each state.
  ScalingReport::Step At(std::size_t pool, TimeNs time) const;

 private:
  struct Snapshot {
    TimeNs time = 0;
    std::vector<Seen> seen;  // by number
    std::int64_t held = 0;
  };
  struct Pool {
    std::optional<PdScaling> scaling;
    PdHpa hpa;  // null with a schedule
    std::vector<Snapshot> snapshots;
    TimeNs next_scrape = kNever, next_decision = kNever;
    std::size_t row = 0;
    std::int64_t wanted = 0;
  };
  std::int64_t Decided(Pool& pool, std::size_t number, TimeNs now);

  std::vector<Pool> pools_;
  std::vector<PdLife> lives_;
  TimeNs passed_ = 0;
};

}  // namespace servecast::testing
