// active-request-scorer: requests that the gateway has sent and that have not ended.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_active_request {
namespace {

class ActiveRequest final : public Plugin {
 public:
  explicit ActiveRequest(const Settings& settings)
      : idle_(settings.Whole("idleThreshold")), busy_score_(settings.Real("maxBusyScore")) {}

  void Score(const Request&, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    std::int64_t most = 0;
    for (const std::int32_t i : survivors) {
      most = std::max(most, At(endpoints, i).inflight_requests);
    }
    ScoreEach(endpoints, survivors, scores, [&](const Endpoint& endpoint) {
      const std::int64_t n = endpoint.inflight_requests;
      return n <= idle_ ? 1.0 : Real(most - n) / Real(most) * busy_score_;
    });
  }

 private:
  std::int64_t idle_;
  double busy_score_;
};

constexpr SettingSpec kSettings[] = {
    {.path = "idleThreshold", .kind = SettingSpec::Kind::kWhole},
    {.path = "maxBusyScore", .fallback = 1, .most = 1},
    {.path = "requestTimeout", .kind = SettingSpec::Kind::kDuration}};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "active-request-scorer",
    .help = "1 where hardly any request is in flight, 0 where most are",
    .scores = true,
    .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
      return std::make_unique<ActiveRequest>(settings);
    },
    .settings = kSettings};

}  // namespace servecast::epp::scorer_active_request
