// When a replica is slow. A step that begins then lasts `factor` times as long, all of it: host
// work and loads from slower memory, too. Requests' way to the queue and the link between replicas
// are as fast as ever.
//
// Periods belong to the replica's number, whatever its lives: those of the schedule, and others by
// chance, each an exponential time after the end of the one before, the first after 0. Where two
// overlap it is slow once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

class SlowPeriods {
 public:
  struct Period {
    TimeNs from = kNever, to = kNever;
  };
  SlowPeriods(const SlowdownSpec& spec, std::int64_t seed, std::int64_t replica);

  // How long what begins then lasts, up to kMaxStepNs. In order of times.
  TimeNs Stretched(TimeNs start, TimeNs duration);

  // Those that begin by `end`, without overlaps, in their order. Of one that was asked nothing.
  std::vector<Period> To(TimeNs end);

 private:
  Period At(TimeNs time);
  void Draw();

  std::int64_t seed_, replica_;
  TimeNs length_;
  double mean_gap_ns_, factor_;  // mean_gap_ns_ 0: none by chance
  std::vector<Period> scheduled_;
  std::size_t next_ = 0;  // of scheduled_
  Period drawn_;
  std::int64_t draws_ = 0;
};

// In a file of its own, which the page's first module leaves out. nullptr: the replica is never
// slow.
std::shared_ptr<SlowPeriods> MakeSlowPeriods(const SlowdownSpec* spec, std::int64_t seed,
                                             std::int64_t replica);

// Of a run up to `end` of so many replicas. O(requests log + periods).
SlowReport ReportSlow(const SlowdownSpec& spec, std::int64_t seed, std::int64_t replicas,
                      const RequestTable& requests, const RequestResults& results, TimeNs end);

}  // namespace servecast
