// From what a run left behind to where the time of a request went (TimeSplit has the parts).
#pragma once

#include <array>

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast {

// In the order of TimeSplitReport::kNames.
constexpr std::array<TimeNs TimeSplit::*, 7> kTimeParts = {
    &TimeSplit::host,         &TimeSplit::queue,     &TimeSplit::prefill, &TimeSplit::decode,
    &TimeSplit::interference, &TimeSplit::preempted, &TimeSplit::transfer};

// Requires: the request is complete, and was served by vLLM's rules (Replica). O(1).
RequestTimes TimesOf(const RequestTable& requests, const RequestResults& results,
                     TimeNs token_delay, std::size_t request);

}  // namespace servecast
