// The part of servecast calibrate that trains coefficients on traces.
#pragma once

#include <optional>
#include <string>

#include "arguments.h"

namespace servecast {

struct TraceRequest {
  Words files, scenarios, overrides;
  std::string backend, out;  // "": physics
  bool noise_correction = false;
};

// nullopt: none of the files is a trace; else an exit code.
std::optional<int> CalibrateTraces(const TraceRequest& request);

}  // namespace servecast
