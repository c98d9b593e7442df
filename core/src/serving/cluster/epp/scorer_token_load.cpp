// token-load-scorer: prompt tokens in flight at the endpoint, with those of this request.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_token_load {
namespace {

class TokenLoad final : public Plugin {
 public:
  explicit TokenLoad(const Settings& settings) : most_(settings.Real("queueThresholdTokens")) {}

  void Score(const Request&, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    ScoreEach(endpoints, survivors, scores, [&](const Endpoint& endpoint) {
      const std::int64_t tokens = endpoint.inflight_tokens + endpoint.uncached_tokens;
      return tokens <= 0 ? 1.0 : 1 - std::min(Real(tokens), most_) / most_;
    });
  }

 private:
  double most_;
};

constexpr SettingSpec kSettings[] = {{.path = "queueThresholdTokens",
                                      .kind = SettingSpec::Kind::kWhole,
                                      .fallback = 4'194'304,
                                      .least = 1}};

}  // namespace

extern const PluginEntry kEntry = {.type = "token-load-scorer",
                                   .help = "1 without prompt tokens in flight, 0 at the threshold",
                                   .scores = true,
                                   .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
                                     return std::make_unique<TokenLoad>(settings);
                                   },
                                   .settings = kSettings};

}  // namespace servecast::epp::scorer_token_load
