// One queue for all replicas: a replica is sent as many requests as it may have at a time, and the
// next in line when it has ended one. With as many as its seats, nobody waits behind a request on
// one replica while another has a seat free.
#include <cmath>

#include "serving/router_entries.h"

namespace servecast {
namespace {

class CentralQueue final : public Router {
 public:
  explicit CentralQueue(const RouterInput& input)
      : most_(input.params[0] > 0 ? static_cast<std::int64_t>(std::ceil(input.params[0]))
                                  : input.seats) {}

  std::int32_t Choose(const RoutedRequest&, const ReplicaLoads& loads) override {
    const std::int32_t least = loads.Least();
    return loads.Outstanding(least) < most_ ? least : kHold;
  }

 private:
  std::int64_t most_;
};

}  // namespace

extern const RouterEntry kRouterCentralQueue;
const RouterEntry kRouterCentralQueue = CentralQueueEntry([](const RouterInput& input) {
  return std::unique_ptr<Router>(std::make_unique<CentralQueue>(input));
});

}  // namespace servecast
