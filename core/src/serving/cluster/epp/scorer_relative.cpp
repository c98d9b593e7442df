// queue-scorer and running-requests-size-scorer: requests that an endpoint's server reports,
// between the most and the fewest of all survivors.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_relative {
namespace {

class Relative final : public Plugin {
 public:
  explicit Relative(std::int64_t Endpoint::*count) : count_(count) {}

  void Score(const Request&, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    std::int64_t least = INT64_MAX, most = INT64_MIN;
    for (const std::int32_t i : survivors) {
      least = std::min(least, At(endpoints, i).*count_);
      most = std::max(most, At(endpoints, i).*count_);
    }
    ScoreEach(endpoints, survivors, scores, [&](const Endpoint& endpoint) {
      return most == least ? 1.0 : Real(most - endpoint.*count_) / Real(most - least);
    });
  }

 private:
  std::int64_t Endpoint::*count_;
};

}  // namespace

namespace queue {
extern const PluginEntry kEntry = {.type = "queue-scorer",
                                   .help = "1 for the shortest queue, 0 for the longest",
                                   .scores = true,
                                   .make = [](const Settings&) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<Relative>(&Endpoint::waiting);
                                   }};
}  // namespace queue

namespace running {
extern const PluginEntry kEntry = {.type = "running-requests-size-scorer",
                                   .help = "1 for the fewest running requests, 0 for the most",
                                   .scores = true,
                                   .make = [](const Settings&) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<Relative>(&Endpoint::running);
                                   }};
}  // namespace running

}  // namespace servecast::epp::scorer_relative
