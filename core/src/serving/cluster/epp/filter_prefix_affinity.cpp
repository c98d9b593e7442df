// prefix-cache-affinity-filter: only endpoints that hold most of the prompt, unless their queue of
// prompt tokens is so much longer that another endpoint would answer sooner.
#include <algorithm>
#include <limits>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::filter_prefix_affinity {
namespace {

class PrefixAffinity final : public Plugin {
 public:
  explicit PrefixAffinity(const Settings& settings)
      : threshold_(settings.Real("affinityThreshold")),
        penalty_ms_(settings.Real("maxTTFTPenaltyMs")),
        throughput_(settings.Real("peakPrefillThroughput")) {}

  void Filter(const Request& request, Endpoints endpoints, Survivors& survivors) override {
    if (survivors.size() <= 1) return;
    double sticky_ms = std::numeric_limits<double>::infinity(), other_ms = sticky_ms;
    sticky_.clear();
    for (const std::int32_t i : survivors) {
      const Endpoint& endpoint = At(endpoints, i);
      const bool sticks = IsSticky(request, endpoint);
      if (sticks) sticky_.push_back(i);
      double& least = sticks ? sticky_ms : other_ms;
      least = std::min(least, Real(endpoint.inflight_tokens) / throughput_ * 1000);
    }
    if (sticky_.empty() || sticky_.size() == survivors.size()) return;
    if (penalty_ms_ > 0 && sticky_ms - other_ms > penalty_ms_) return;
    survivors = sticky_;
  }

 private:
  bool IsSticky(const Request& request, const Endpoint& endpoint) const {
    const bool known = endpoint.matched_blocks >= 0 && request.total_blocks > 0;
    const double share = known ? Real(endpoint.matched_blocks) / Real(request.total_blocks) : 0;
    return share >= threshold_;
  }

  double threshold_, penalty_ms_, throughput_;
  Survivors sticky_;
};

constexpr SettingSpec kSettings[] = {
    {.path = "affinityThreshold", .fallback = 0.8, .most = 1},
    {.path = "maxTTFTPenaltyMs", .fallback = 18000},
    {.path = "peakPrefillThroughput", .fallback = 15928, .least = 1e-6},
    {.path = "explorationProbability", .most = 0}};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "prefix-cache-affinity-filter",
    .help = "keeps endpoints that hold most of the prompt, unless waiting there costs too much",
    .filters = true,
    .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
      return std::make_unique<PrefixAffinity>(settings);
    },
    .settings = kSettings};

}  // namespace servecast::epp::filter_prefix_affinity
