// Where the time of the slowest requests went, of several runs together. So many requests that a
// longer experiment takes no more memory for it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "experiment/findings.h"
#include "metrics/records.h"
#include "servecast/experiment.h"

namespace servecast {

class TailBlame {
 public:
  static constexpr std::size_t kMost = 250'000;

  // Complete requests that arrived after the warm-up; of a run with more than kMost requests every
  // second, third ...; none once there are kMost. Requires: served by vLLM's rules.
  void Add(const RunRecords& records, double warmup_s);
  void Clear() { *this = {}; }
  // Of those that count, as `counted` says by run; empty: of all.
  std::vector<Blame> Find(const std::vector<CountedRequests>& counted) const;

 private:
  struct Times {
    std::array<TimeNs, TimeSplitReport::kParts> ttft{}, e2e{};
    TimeNs first = 0, all = 0;  // their sums
    std::int64_t later_tokens = 0;
    TimeNs arrival = 0;
    std::size_t run = 0;
  };
  std::vector<Times> requests_;
  std::size_t runs_ = 0;
};

}  // namespace servecast
