// What requests come to beside the limits of a target.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

// Until when who has not finished has waited in a run up to `end`: for ever where it finished
// without a horizon, as nothing can happen any more.
TimeNs WaitsUntil(const Scenario& scenario, bool finished, TimeNs end);

// A request's latency over its limit, of several limits the most: above 1 it is beyond, as is who
// was dropped, timed out or lost, however far it came. `end`: by WaitsUntil; -1: who waits may
// yet be within. None: so may this one.
std::optional<double> StrainOf(const std::vector<SloLimit>& limits, const RequestTable& requests,
                               const RequestResults& results, std::size_t request, TimeNs end);

// From its value, or its share, to whether it is met.
void PutMargin(SloResult& result);

}  // namespace servecast
