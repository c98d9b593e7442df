#include <limits>

#include "serving/policy.h"

namespace servecast::order_edf {
namespace {

double Key(const QueuedRequest& r, Params) {
  if (r.ttft_deadline == kNever) return std::numeric_limits<double>::infinity();
  return static_cast<double>(r.arrival) + static_cast<double>(r.ttft_deadline);
}

}  // namespace

extern const OrderEntry kEntry = {
    "edf", "Earliest TTFT deadline first; requests without one come last", Key};

}  // namespace servecast::order_edf
