// Every policy of the project, one line each, in the order of menus. A table rather than static
// registration: the order is fixed and the linker cannot drop an entry.
#include <span>

#include "serving/policy.h"

#define SERVECAST_LATENCY_MODELS(X) \
  X(kLatencyAnalytic)               \
  X(kLatencyBlackbox)

namespace servecast {

#define SERVECAST_DECLARE(entry) extern const LatencyEntry entry;
SERVECAST_LATENCY_MODELS(SERVECAST_DECLARE)
#undef SERVECAST_DECLARE

std::span<const LatencyEntry> LatencyModels() {
#define SERVECAST_LIST(entry) entry,
  static const LatencyEntry kTable[] = {SERVECAST_LATENCY_MODELS(SERVECAST_LIST)};
#undef SERVECAST_LIST
  return kTable;
}

const LatencyEntry& FindLatencyModel(std::string_view name) {
  for (const LatencyEntry& entry : LatencyModels()) {
    if (entry.name == name) return entry;
  }
  SERVECAST_CHECK(name == "auto", "a latency model is registered");
  return LatencyModels()[0];
}

}  // namespace servecast
