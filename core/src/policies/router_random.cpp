#include "base/random.h"
#include "serving/cluster/router.h"

namespace servecast::router_random {
namespace {

class Random final : public Router {
 public:
  explicit Random(std::int64_t seed) : seed_(seed) {}
  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    const double u = Uniform(seed_, Stream::kRouter, request.number);
    return loads.Available(static_cast<std::int64_t>(u * static_cast<double>(loads.available())));
  }

 private:
  std::int64_t seed_;
};

}  // namespace

extern const RouterEntry kEntry = {
    "random", "a random replica",
    [](const RouterInput& input) {
      return std::unique_ptr<Router>(std::make_unique<Random>(input.seed));
    },
    true};

}  // namespace servecast::router_random
