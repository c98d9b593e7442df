// servecast advise: one-step changes, each run on the same requests, by what they do.
#pragma once

#include <string>

#include "servecast/trace.h"

namespace servecast {

extern const char kAdviseHelp[];

// Prints JSON. Returns an exit code. `document`: a good one.
int Advise(const std::string& document, const Trace& trace);

}  // namespace servecast
