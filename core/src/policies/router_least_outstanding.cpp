#include "serving/cluster/router.h"

namespace servecast {
namespace {

class LeastOutstanding final : public Router {
 public:
  std::int32_t Choose(const RoutedRequest&, const ReplicaLoads& loads) override {
    return loads.Least();
  }
};

}  // namespace

extern const RouterEntry kRouterLeastOutstanding;
const RouterEntry kRouterLeastOutstanding = {
    "least_outstanding",
    "the replica with the fewest requests waiting or running",
    [](const RouterInput&) {
      return std::unique_ptr<Router>(std::make_unique<LeastOutstanding>());
    },
    false,
    {&kStaleness, 1}};

}  // namespace servecast
