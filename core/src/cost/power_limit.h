// What a power limit that is set below a card's own does to its arithmetic. A clock that keeps the
// limit slows products; memory has a clock of its own. The share of large products' speed that is
// left is (limit / cap)^0.8: the A100's GEMMs reach 0.80 of the peak at 400 W (SXM), those of its
// PCIe form of 250 W, the same silicon, 0.55 under load (docs/fidelity.md). One pair of cards;
// what others do is a forecast.
#pragma once

#include <algorithm>

#include "base/math.h"
#include "servecast/scenario.h"

namespace servecast {

// In (0, 1]; 1 without a limit, or with one that is no lower than the cap.
inline double ArithmeticUnderLimit(const HardwareSpec& hardware) {
  constexpr double kExponent = 0.8;
  if (hardware.power_limit_w <= 0 || hardware.power_cap_w <= 0) return 1;
  const double share = hardware.power_limit_w / hardware.power_cap_w;
  return share < 1 ? Exp(kExponent * Log(share)) : 1;
}

}  // namespace servecast
