// Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", IEEE TPDS 12 (2001).
#include "base/random.h"
#include "serving/cluster/router.h"

namespace servecast::router_power_of_two {
namespace {

class PowerOfTwo final : public Router {
 public:
  explicit PowerOfTwo(std::int64_t seed) : seed_(seed) {}
  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    const std::int64_t n = loads.count();
    if (n == 1) return 0;
    const auto draw = [&](std::int64_t index, std::int64_t among) {
      const double u = Uniform(seed_, Stream::kRouter, request.number, index);
      return static_cast<std::int32_t>(u * static_cast<double>(among));
    };
    const std::int32_t first = draw(0, n);
    std::int32_t second = draw(1, n - 1);
    if (second >= first) ++second;
    const std::int64_t a = loads.Outstanding(first), b = loads.Outstanding(second);
    return b < a || (b == a && second < first) ? second : first;
  }

 private:
  std::int64_t seed_;
};

}  // namespace

extern const RouterEntry kEntry = {
    "power_of_two",
    "of two random replicas, the one with fewer requests waiting or running",
    [](const RouterInput& input) {
      return std::unique_ptr<Router>(std::make_unique<PowerOfTwo>(input.seed));
    },
    false,
    {&kStaleness, 1}};

}  // namespace servecast::router_power_of_two
