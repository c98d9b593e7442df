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

// "2026-11-25", in UTC: a pack says when it was fitted.
std::string Today();

// nullopt: none of the files is a trace; else an exit code.
std::optional<int> CalibrateTraces(const TraceRequest& request);

}  // namespace servecast
