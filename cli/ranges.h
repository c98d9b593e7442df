// Values of --over, of which ranges are written shorter: 10..100:10.
#pragma once

#include <optional>
#include <string>

#include "io/axes.h"

namespace servecast {

inline constexpr const char* kAllowedOver = ", allowed path=a,b,c or path=10..100:10";

// AxisOf, with each value "from..to:step" as all of its numbers; the step is 1 where none is given.
// nullopt: neither, a step that leads nowhere, or more than 10,000 numbers.
std::optional<Axis> AxisOrRange(const std::string& text);

}  // namespace servecast
