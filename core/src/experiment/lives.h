// How long it takes until a load is new: what a conversation, or a client of a closed loop, lives
// through before it begins again. A run that is not several times as long shows its beginning.
#pragma once

#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// Times as long as a life that a run should be; shorter than the least, it tells nothing.
inline constexpr double kLives = 10, kFewestLives = 3;

struct Lives {
  double seconds = 0;    // of one; 0: nobody thinks or has a next turn
  double settled_s = 0;  // after which next to nothing is left of a run's beginning
  double requests = 0;   // of all, that come in so long; of a closed loop without thinking, too
};

// What a request takes where none waits, about: `e2e_s`, the mean of a run, at most. `report`: of
// the same run.
double ServedSeconds(const Report& report, const ClusterSpec& cluster, double e2e_s);

// `e2e_s`: the mean of a request. Requires: a steady load.
Lives LivesOf(const Scenario& scenario, double e2e_s);

}  // namespace servecast
