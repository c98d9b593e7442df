// Why, as JSON: what the relief of each limit would do, and where the time of the slowest requests
// went.
#pragma once

#include "io/json_writer.h"
#include "servecast/experiment.h"

namespace servecast {

// The members "limits" and "blame" of the object that is open.
void WriteExplanation(const Experiment& experiment, JsonWriter& out);

}  // namespace servecast
