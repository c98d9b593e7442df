// The figures of a report that are of all runs of an experiment together, each computed from what
// counts of every run.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "experiment/findings.h"
#include "experiment/observations.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

struct Pooled {
  // Of all requests, or of those of a class.
  struct Part {
    std::array<Distribution, Observations::kPooled> ms;
    Counted counted;
    double good = 0;  // of counted.requests: within all limits
  };
  Part all;
  std::vector<Part> classes;  // empty: the workload has none
  std::array<std::vector<double>, Observations::kPooled> cdfs;
  // By target. None: nobody has such a latency, or it is of ITL.
  struct Target {
    std::optional<double> ms;
    double unserved = 0;  // of the counted requests that it is of; of attainment, of those beyond
  };
  std::vector<Target> targets;
};

// Requires: every run kept all (Keep::kAll), and `findings` are of these runs. O(requests).
Pooled PooledOf(const Scenario& scenario, const Reading& reading, const Findings& findings,
                const std::vector<Observations>& runs, bool overloaded);

// In place of those of one run.
void PutPooled(const Scenario& scenario, const Pooled& pooled, Report& report);

// Gives the percentiles the intervals of the targets that are of them.
void PutIntervals(Report& report);

}  // namespace servecast
