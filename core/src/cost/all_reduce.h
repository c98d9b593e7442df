// All-reduces of a tensor-parallel group by the figures of its links (docs/model.md, section 6).
#pragma once

#include "servecast/scenario.h"

namespace servecast {

// ns that `calls` of them take beside their bytes; not decreasing in `group`.
double AllReduceWaitNs(const HardwareSpec& hardware, double group, double calls);

// ns of the bytes of a message: as a ring, not decreasing in `group`, and on a faster link shorter.
double AllReduceNs(const HardwareSpec& hardware, double group, double bytes);

}  // namespace servecast
