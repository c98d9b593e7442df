// servecast explain: where the slowest requests' time goes, and which limit is the limit.
#pragma once

#include <string>

#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

extern const char kExplainHelp[];

// Prints JSON. Returns an exit code.
int Explain(Scenario scenario, Trace trace);

}  // namespace servecast
