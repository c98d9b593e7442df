// utilization-detector: queue and KV cache that servers report, relative to limits. Metrics that
// are too old count as exactly saturated.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::detector_utilization {
namespace {

class Utilization final : public Plugin {
 public:
  explicit Utilization(const Settings& settings)
      : queue_(settings.Real("queueDepthThreshold")),
        kv_(settings.Real("kvCacheUtilThreshold")),
        stale_(settings.Duration("metricsStalenessThreshold")),
        headroom_(settings.Real("headroom")) {}

  double Saturation(Endpoints endpoints) const override {
    if (endpoints.empty()) return 1;
    double sum = 0;
    for (const Endpoint& endpoint : endpoints) {
      sum +=
          endpoint.age > stale_ ? 1 : std::max(Real(endpoint.waiting) / queue_, endpoint.kv / kv_);
    }
    return sum / Real(static_cast<std::int64_t>(endpoints.size()));
  }

  // Reports that grow too old count as saturated.
  Falls falls() const override { return Falls::kAtReports; }

  void Filter(const Request&, Endpoints endpoints, Survivors& survivors) override {
    KeepIfAny(endpoints, survivors, [&](const Endpoint& endpoint) {
      return endpoint.age <= stale_ && Real(endpoint.waiting) < queue_ * (1 + headroom_) &&
             endpoint.kv < kv_ * (1 + headroom_);
    });
  }

 private:
  double queue_, kv_;
  TimeNs stale_;
  double headroom_;
};

constexpr SettingSpec kSettings[] = {
    {.path = "queueDepthThreshold", .kind = SettingSpec::Kind::kWhole, .fallback = 5, .least = 1},
    {.path = "kvCacheUtilThreshold", .fallback = 0.8, .least = 1e-6, .most = 1},
    {.path = "metricsStalenessThreshold",
     .kind = SettingSpec::Kind::kDuration,
     .fallback = 200 * kMs},
    {.path = "headroom"}};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "utilization-detector",
    .help = "saturation by reported queues and KV caches; as a filter, keeps unsaturated endpoints",
    .filters = true,
    .detects = true,
    .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
      return std::make_unique<Utilization>(settings);
    },
    .settings = kSettings};

}  // namespace servecast::epp::detector_utilization
