// prefix-cache-scorer: the share of the prompt's blocks that an endpoint holds.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_prefix {
namespace {

class Prefix final : public Plugin {
 public:
  explicit Prefix(const Settings& settings)
      : length_weight_(settings.Real("matchLengthWeight")),
        length_scale_(settings.Real("matchLengthScaleTokens")) {}

  void Score(const Request& request, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    ScoreEach(endpoints, survivors, scores, [&](const Endpoint& endpoint) {
      if (endpoint.matched_blocks < 0 || request.total_blocks == 0) return 0.0;
      const double share = Real(endpoint.matched_blocks) / Real(request.total_blocks);
      if (length_weight_ <= 0) return share;
      const double tokens = Real(endpoint.matched_blocks * request.block_tokens);
      const double length = std::min(1.0, tokens / length_scale_);
      return length_weight_ * (length * length) + (1 - length_weight_) * share;
    });
  }

 private:
  double length_weight_, length_scale_;
};

constexpr SettingSpec kSettings[] = {
    {.path = "matchLengthWeight", .most = 1},
    {.path = "matchLengthScaleTokens",
     .kind = SettingSpec::Kind::kWhole,
     .fallback = 8192,
     .least = 1},
    {.path = "prefixMatchInfoProducerName", .kind = SettingSpec::Kind::kText}};

}  // namespace

extern const PluginEntry kEntry = {.type = "prefix-cache-scorer",
                                   .help = "the share of the prompt that the endpoint holds",
                                   .scores = true,
                                   .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<Prefix>(settings);
                                   },
                                   .settings = kSettings};

}  // namespace servecast::epp::scorer_prefix
