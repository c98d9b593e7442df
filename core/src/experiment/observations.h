// What one run tells an experiment: its requests in order of arrival, with what each target asks of
// them, and, if the report pools them, all their latencies. Warm-up and drain are cut later, when
// all runs are known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/base.h"
#include "metrics/records.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

struct Observations {
  static constexpr double kNone = -1;          // it has no such latency
  static constexpr std::uint8_t kForeign = 2;  // the target is of another class

  std::vector<TimeNs> arrival;    // ascending
  std::vector<double> in_system;  // requests that each found there
  // By target, then by request; of attainment the latency over its limit, of its limits the most.
  std::vector<std::vector<double>> latency_ms;
  // Likewise: 1 counts as beyond any limit; of attainment, who is beyond one.
  std::vector<std::vector<std::uint8_t>> unserved;
  std::vector<std::uint8_t> good;      // within every limit that is its own
  std::vector<std::uint8_t> lost;      // dropped, rejected, timed out or lost
  std::vector<std::uint8_t> of_class;  // index into the workload's; empty: it has none
  // Of complete ones in order of time: when, how many tokens, and whether good.
  struct Completion {
    TimeNs time = 0;
    std::int32_t tokens = 0;
    std::uint8_t of_class = 0;
    bool good = false;
  };
  std::vector<Completion> completions;
  // With Keep::kAll the latencies that are `kPooled`, by request. Those that a target of all
  // classes asks for are in latency_ms, and empty here: LatenciesOf finds either.
  static constexpr std::size_t kPooled = 4;  // TTFT, TPOT, E2E, scheduling delay
  std::array<std::vector<double>, kPooled> other_ms;
  TimeNs end = 0;
  std::vector<TimeNs> dropped;  // arrivals of those that can never be served, or that
                                // a full queue turned away
  // Arrival of the last that waited for no answer; of a closed loop: when the last of those that
  // waited for a client had one, as clients that come after it find nothing to ask.
  TimeNs last_offered = 0;
  double mean_e2e_s = 0;                  // of complete ones
  TimeNs usual_e2e = 0;                   // that nine in ten of the complete ones stay below
  std::vector<double> gap_percentile_ms;  // by target: of ITL, else kNone
  std::int64_t steps = 0;
  bool gives_up = false;    // some client did
  bool overloaded = false;  // as one run judges it
};

// How fast requests were completed while some still waited: while load was offered, in its second
// half; where most completions came later, in the middle half of them, as the first came from an
// empty system and the last leave it empty.
struct Pace {
  double completed = 0, seconds = 0;
  std::size_t begin = 0, end = 0;  // of these completions
  TimeNs from = 0, until = 0;
};
Pace PaceOf(const Observations& run);

enum class Keep { kTargets, kAll };

// `report`: of the same run.
Observations ObservationsOf(const Scenario& scenario, const RunRecords& records,
                            const Report& report, Keep keep = Keep::kTargets);

// Of a run that kept all: the latencies of index `pooled`, by request, kNone where there is none.
const std::vector<double>& LatenciesOf(const Scenario& scenario, const Observations& run,
                                       std::size_t pooled);

}  // namespace servecast
