// Our figures under the names of Vidur's request_metrics.csv and batch_metrics.csv, in its units
// (seconds) and by its definitions; docs/model.md, section 6, has the table.
#pragma once

#include <cstdint>
#include <string>

#include "servecast/report.h"
#include "serving/hooks.h"

namespace servecast {

std::string VidurRequestHeader();
// "" for a request that did not complete: Vidur stores no other.
std::string VidurRequestRow(const Report& report, std::size_t request);

std::string VidurBatchHeader();
// `batch`: its number among those of all replicas.
std::string VidurBatchRow(std::int64_t batch, const StepRecord& step, std::int64_t tokens);

}  // namespace servecast
