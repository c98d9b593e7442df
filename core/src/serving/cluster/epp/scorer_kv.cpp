// kv-cache-utilization-scorer: the free share of the KV cache.
#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_kv {
namespace {

class FreeKv final : public Plugin {
 public:
  void Score(const Request&, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    ScoreEach(endpoints, survivors, scores, [](const Endpoint& e) { return 1 - e.kv; });
  }
};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "kv-cache-utilization-scorer",
    .help = "the free share of the KV cache",
    .scores = true,
    .make = [](const Settings&) -> std::unique_ptr<Plugin> { return std::make_unique<FreeKv>(); }};

}  // namespace servecast::epp::scorer_kv
