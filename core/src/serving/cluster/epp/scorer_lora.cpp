// lora-affinity-scorer: whether the adapter is loaded, or could be. Room for it is worth more than
// a place in the queue for adapters.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_lora {
namespace {

bool Has(const std::vector<std::int32_t>& adapters, std::int32_t adapter) {
  return std::find(adapters.begin(), adapters.end(), adapter) != adapters.end();
}

class LoraAffinity final : public Plugin {
 public:
  void Score(const Request& request, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    static const Adapters kNone;
    ScoreEach(endpoints, survivors, scores, [&](const Endpoint& endpoint) {
      const Adapters& adapters = endpoint.adapters == nullptr ? kNone : *endpoint.adapters;
      if (Has(adapters.active, request.adapter)) return 1.0;
      const auto taken =
          static_cast<std::int64_t>(adapters.active.size() + adapters.waiting.size());
      if (taken < adapters.most) return 0.8;
      return Has(adapters.waiting, request.adapter) ? 0.6 : 0.0;
    });
  }
};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "lora-affinity-scorer",
    .help = "1 where the adapter is loaded, 0.8 where there is room for it, 0.6 where it waits",
    .scores = true,
    .make = [](const Settings&) -> std::unique_ptr<Plugin> {
      return std::make_unique<LoraAffinity>();
    }};

}  // namespace servecast::epp::scorer_lora
