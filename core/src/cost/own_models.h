// Whether step times are Servecast's own: of what a step needs, by a card's data sheet. Others
// state them, or have another simulator's formula, and may be faster than a card can be.
#pragma once

#include <string_view>

namespace servecast {

inline bool IsOwnModel(std::string_view backend) {
  return backend == "analytic" || backend == "operators";
}

}  // namespace servecast
