// utilization-filter: upper limits of what an endpoint reports or has in flight.
#include <algorithm>
#include <string>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::filter_utilization {
namespace {

constexpr std::string_view kMetrics =
    "waiting-queue running-requests kv-cache-utilization active-requests";

double ValueOf(const Endpoint& endpoint, std::string_view metric) {
  if (metric == "waiting-queue") return Real(endpoint.waiting);
  if (metric == "running-requests") return Real(endpoint.running);
  if (metric == "kv-cache-utilization") return endpoint.kv;
  return Real(endpoint.inflight_requests);
}

class Utilization final : public Plugin {
 public:
  explicit Utilization(const Settings& settings) : all_if_none_(settings.Flag("fallbackOnEmpty")) {
    for (int i = 0;; ++i) {
      const std::string item = "conditions." + std::to_string(i);
      if (!settings.Has(item + ".metric")) break;
      conditions_.push_back(
          {std::string(settings.Text(item + ".metric")), settings.Real(item + ".maxValue")});
    }
  }

  void Filter(const Request&, Endpoints endpoints, Survivors& survivors) override {
    const auto holds = [&](const Endpoint& endpoint) {
      return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& condition) {
        return ValueOf(endpoint, condition.metric) <= condition.most;
      });
    };
    all_if_none_ ? KeepIfAny(endpoints, survivors, holds) : KeepIf(endpoints, survivors, holds);
  }

 private:
  struct Condition {
    std::string metric;
    double most = 0;
  };

  bool all_if_none_;
  std::vector<Condition> conditions_;
};

constexpr SettingSpec kSettings[] = {
    {.path = "conditions.*.metric", .kind = SettingSpec::Kind::kText, .words = kMetrics},
    {.path = "conditions.*.maxValue"},
    {.path = "fallbackOnEmpty", .kind = SettingSpec::Kind::kFlag}};

}  // namespace

extern const PluginEntry kEntry = {.type = "utilization-filter",
                                   .help = "keeps endpoints within all conditions",
                                   .filters = true,
                                   .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<Utilization>(settings);
                                   },
                                   .settings = kSettings};

}  // namespace servecast::epp::filter_utilization
