// The constants of a scenario that a calibration may change: fields that the latency model
// "analytic" reads.
#pragma once

#include <string_view>

#include "servecast/scenario.h"

namespace servecast {

struct FittedConstant {
  const char* path;  // in a document
  double (*read)(const Scenario&);
  void (*write)(Scenario&, double);
};

inline constexpr FittedConstant kFittedConstants[] = {
    {"hardware.compute_efficiency", [](const Scenario& s) { return s.hardware.compute_efficiency; },
     [](Scenario& s, double v) { s.hardware.compute_efficiency = v; }},
    {"hardware.attention_efficiency",
     [](const Scenario& s) { return s.hardware.attention_efficiency; },
     [](Scenario& s, double v) { s.hardware.attention_efficiency = v; }},
    {"hardware.bandwidth_efficiency",
     [](const Scenario& s) { return s.hardware.bandwidth_efficiency; },
     [](Scenario& s, double v) { s.hardware.bandwidth_efficiency = v; }},
    {"hardware.kv_bandwidth_efficiency",
     [](const Scenario& s) {
       const double own = s.hardware.kv_bandwidth_efficiency;
       return own > 0 ? own : s.hardware.bandwidth_efficiency;
     },
     [](Scenario& s, double v) { s.hardware.kv_bandwidth_efficiency = v; }},
    {"hardware.mixed_attention_rows",
     [](const Scenario& s) { return s.hardware.mixed_attention_rows; },
     [](Scenario& s, double v) { s.hardware.mixed_attention_rows = v; }},
    {"engine.step_overhead_us", [](const Scenario& s) { return s.engine.step_overhead_us; },
     [](Scenario& s, double v) { s.engine.step_overhead_us = v; }},
    {"engine.sequence_overhead_us", [](const Scenario& s) { return s.engine.sequence_overhead_us; },
     [](Scenario& s, double v) { s.engine.sequence_overhead_us = v; }},
    {"engine.request_overhead_ms", [](const Scenario& s) { return s.engine.request_overhead_ms; },
     [](Scenario& s, double v) { s.engine.request_overhead_ms = v; }},
    {"engine.prompt_token_overhead_us",
     [](const Scenario& s) { return s.engine.prompt_token_overhead_us; },
     [](Scenario& s, double v) { s.engine.prompt_token_overhead_us = v; }},
    {"engine.delivery_overhead_us", [](const Scenario& s) { return s.engine.delivery_overhead_us; },
     [](Scenario& s, double v) { s.engine.delivery_overhead_us = v; }},
};

// Requires: there is one of that path.
constexpr const FittedConstant& ConstantOf(std::string_view path) {
  std::size_t at = 0;
  while (std::string_view(kFittedConstants[at].path) != path) ++at;
  return kFittedConstants[at];
}

}  // namespace servecast
