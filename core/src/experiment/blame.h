// Where the time of the slowest requests went, of several runs together. So many requests that a
// longer experiment takes no more memory for it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "metrics/records.h"
#include "servecast/experiment.h"

namespace servecast {

class TailBlame {
 public:
  static constexpr std::size_t kMost = 250'000;

  // Complete requests that arrived after the warm-up; of a run with more than kMost requests every
  // second, third ...; none once there are kMost. Requires: served by vLLM's rules.
  void Add(const RunRecords& records, double warmup_s);
  void Clear() { requests_.clear(); }
  std::vector<Blame> Find() const;

 private:
  struct Times {
    std::array<TimeNs, TimeSplitReport::kParts> ttft{}, e2e{};
    TimeNs first = 0, all = 0;  // their sums
    std::int64_t later_tokens = 0;
  };
  std::vector<Times> requests_;
};

}  // namespace servecast
