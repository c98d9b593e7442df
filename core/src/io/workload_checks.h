// What fields of a workload must be together: lengths, their correlation, profiles, what requests
// share, and its classes.
#pragma once

#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

void CheckWorkload(const WorkloadSpec& workload, Issues& issues);

}  // namespace servecast
