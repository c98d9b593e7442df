#include "serving/cluster/router.h"

namespace servecast::router_least_outstanding {
namespace {

class LeastOutstanding final : public Router {
 public:
  std::int32_t Choose(const RoutedRequest&, const ReplicaLoads& loads) override {
    return loads.Least();
  }
};

}  // namespace

extern const RouterEntry kEntry = {
    "least_outstanding",
    "the replica with the fewest requests waiting or running",
    [](const RouterInput&) {
      return std::unique_ptr<Router>(std::make_unique<LeastOutstanding>());
    },
    false,
    {&kStaleness, 1}};

}  // namespace servecast::router_least_outstanding
