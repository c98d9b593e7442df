// The constants of a card's power law (metrics/power.h), from its mean power beside runs. Runs are
// simulated for what their steps need; of them power is linear in the constants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/measurements.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

struct PowerConstant {
  const char* name;  // "busy_w"
  double HardwareSpec::*member;
};
// Those that measurements may change. What an idle card draws, busy_w makes up for where all
// measured runs are busy.
inline constexpr PowerConstant kPowerConstants[] = {{"busy_w", &HardwareSpec::busy_w},
                                                    {"compute_w", &HardwareSpec::compute_w},
                                                    {"memory_w", &HardwareSpec::memory_w}};
inline constexpr double kMostConstantW = 1e5;

struct FittedPower {
  const PowerConstant* constant = nullptr;
  double before = 0, value = 0;
  double low = 0, high = 0;  // 95 %
};

struct PowerRow {
  std::string label;
  bool held_out = false;
  double measured_w = 0, after_w = 0;
  std::optional<double> before_w;  // none: no law of the card was known
};

struct PowerFit {
  std::vector<FittedPower> fitted;  // empty: no power was measured
  std::vector<PowerRow> rows;
  std::vector<std::string> warnings;
};

// Of a server with the constants of time that were fitted. The cost of two runs a row. Issues:
// power without a run, or a card whose power_cap_w is not known; a run that cannot be simulated.
Result<PowerFit> FitPower(const Scenario& server, const std::vector<MeasuredPower>& measured);

// With the fitted constants.
void WritePower(const PowerFit& fit, Scenario& server);

}  // namespace servecast
