#include <limits>

#include "serving/policy.h"

namespace servecast {
namespace {

double Key(const QueuedRequest& r, Params) {
  if (r.ttft_deadline == kNever) return std::numeric_limits<double>::infinity();
  return static_cast<double>(r.arrival) + static_cast<double>(r.ttft_deadline);
}

}  // namespace

extern const OrderEntry kOrderEdf;
const OrderEntry kOrderEdf = {"edf", "Earliest TTFT deadline first; requests without one come last",
                              Key};

}  // namespace servecast
