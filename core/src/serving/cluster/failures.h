// When replicas fail and come back. Failures do not depend on what replicas do, so a replica can be
// told when it will end:
//
//   up --fails--> down --detect_s--> down, and the router knows --> up again, restart_s after it
//                                                                   failed
//
// A life ends by the schedule or, if that is earlier, after an exponential time. A scheduled
// failure of a replica that is down, or up again at that very moment, is none. Who fails beyond the
// horizon does not fail. Replicas that come later begin their first life when they are up.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"

namespace servecast {

class Failures {
 public:
  enum class Kind : std::uint8_t { kFails, kDetected, kComesUp };
  struct Event {
    Kind kind;
    std::int32_t replica = 0;
  };
  struct Outage {
    std::int32_t replica = 0;
    TimeNs down = 0, up = 0;
  };

  // `spec` outlives it. All of so many replicas are up at 0.
  Failures(const FailureSpec& spec, std::int64_t seed, std::int64_t replicas, TimeNs horizon);

  // Of the next event; kNever: none. O(replicas).
  TimeNs Next() const;
  // The next event happens: of one time that of the lowest replica. A detection is none where the
  // replica is up again before. Requires: there is one.
  Event Take();
  // One replica more, which is up from that time on.
  void Add(TimeNs up);
  // It fails no more; if it is down, it does not come back.
  void Retire(std::int32_t replica);
  // Whether it takes requests.
  bool Up(std::int32_t replica) const { return Of(replica).phase == Phase::kUp; }
  // Whether it is down and will be up again.
  bool Returns(std::int32_t replica) const { return !Up(replica) && Of(replica).up < kNever; }
  // The end of its present life; of one that is down, of its next.
  TimeNs DiesAt(std::int32_t replica) const {
    return Up(replica) ? Of(replica).down : Of(replica).next_down;
  }

  // Those that have begun by `end`, also what has not been taken. O(failures).
  std::vector<Outage> OutagesTo(TimeNs end) const;

 private:
  enum class Phase : std::uint8_t { kUp, kUnseen, kSeen };
  struct Replica {
    Phase phase = Phase::kUp;
    TimeNs down = kNever, up = kNever;  // of the next outage, or the present one
    TimeNs next_down = kNever;          // of the outage after that
    std::int64_t lives = 0;             // drawn
  };
  const Replica& Of(std::int32_t replica) const {
    return replicas_[static_cast<std::size_t>(replica)];
  }
  TimeNs EndOfLife(std::int32_t replica, TimeNs from, TimeNs after);
  void Plan(std::int32_t replica, TimeNs down);
  TimeNs NextOf(const Replica& replica) const;

  const FailureSpec* spec_;
  std::int64_t seed_;
  TimeNs horizon_, restart_, detect_;
  std::vector<Replica> replicas_;
  std::vector<Outage> outages_;  // that have begun
};

}  // namespace servecast
