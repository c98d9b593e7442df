// All-reduces of a tensor-parallel group by the figures of its links (docs/model.md, section 6).
#pragma once

#include "servecast/scenario.h"

namespace servecast {

// ns that `calls` of them take beside their bytes; not decreasing in `group`.
double AllReduceWaitNs(const HardwareSpec& hardware, double group, double calls);

// ns of the bytes of a message: as a ring, not decreasing in `group`, on a faster link not longer.
double AllReduceNs(const HardwareSpec& hardware, double group, double bytes);
// GB/s from one GPU of a node to another.
double SendGbS(const HardwareSpec& hardware);

// How the GPUs of a node reach each other, never kAuto, and whether that was not said and is not
// plain from the bandwidth.
Interconnect InterconnectOf(const HardwareSpec& hardware);
bool InterconnectIsGuessed(const HardwareSpec& hardware);
// PCIe is said, and the bandwidth is one of NVLink.
bool InterconnectContradictsItsBandwidth(const HardwareSpec& hardware);

}  // namespace servecast
