#include "serving/cluster/router.h"

namespace servecast::router_round_robin {
namespace {

class RoundRobin final : public Router {
 public:
  std::int32_t Choose(const RoutedRequest&, const ReplicaLoads& loads) override {
    return loads.Available(routed_++ % loads.available());
  }

 private:
  std::int64_t routed_ = 0;
};

}  // namespace

extern const RouterEntry kEntry = {
    "round_robin", "the replicas in turn",
    [](const RouterInput&) { return std::unique_ptr<Router>(std::make_unique<RoundRobin>()); },
    true};

}  // namespace servecast::router_round_robin
