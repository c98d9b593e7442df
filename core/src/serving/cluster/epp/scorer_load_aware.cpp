// load-aware-scorer: 0.5 for an empty queue, less for each request in it.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_load_aware {
namespace {

class LoadAware final : public Plugin {
 public:
  explicit LoadAware(const Settings& settings) : threshold_(settings.Real("threshold")) {}

  void Score(const Request&, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    ScoreEach(endpoints, survivors, scores, [&](const Endpoint& endpoint) {
      if (endpoint.waiting == 0) return 0.5;
      return 0.5 * (1 - std::min(Real(endpoint.waiting), threshold_) / threshold_);
    });
  }

 private:
  double threshold_;
};

constexpr SettingSpec kSettings[] = {
    {.path = "threshold", .kind = SettingSpec::Kind::kWhole, .fallback = 128, .least = 1}};

}  // namespace

extern const PluginEntry kEntry = {.type = "load-aware-scorer",
                                   .help = "0.5 for an empty queue, 0 at the threshold",
                                   .scores = true,
                                   .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<LoadAware>(settings);
                                   },
                                   .settings = kSettings};

}  // namespace servecast::epp::scorer_load_aware
