// concurrency-detector: requests or tokens in flight, relative to a limit per endpoint.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::detector_concurrency {
namespace {

enum class Mode { kRequests, kTokens, kHybrid };

Mode ModeOf(std::string_view name) {
  if (name == "tokens") return Mode::kTokens;
  return name == "hybrid" ? Mode::kHybrid : Mode::kRequests;
}

class Concurrency final : public Plugin {
 public:
  explicit Concurrency(const Settings& settings)
      : mode_(ModeOf(settings.Text("concurrencyMode"))),
        requests_(settings.Whole("maxConcurrency")),
        tokens_(settings.Whole("maxTokenConcurrency")),
        headroom_(settings.Real("headroom")) {}

  double Saturation(Endpoints endpoints) const override {
    if (endpoints.empty()) return 1;
    const auto count = static_cast<std::int64_t>(endpoints.size());
    std::int64_t requests = 0, tokens = 0;
    double higher = 0;
    for (const Endpoint& endpoint : endpoints) {
      requests += endpoint.inflight_requests;
      tokens += endpoint.inflight_tokens;
      higher += std::max(Real(endpoint.inflight_requests) / Real(requests_),
                         Real(endpoint.inflight_tokens) / Real(tokens_));
    }
    if (mode_ == Mode::kHybrid) return higher / Real(count);
    return mode_ == Mode::kRequests ? Real(requests) / Real(requests_ * count)
                                    : Real(tokens) / Real(tokens_ * count);
  }

  // Tokens fall at first tokens, too.
  Falls falls() const override {
    return mode_ == Mode::kRequests ? Falls::kAtEnds : Falls::kAnyTime;
  }

  void Filter(const Request&, Endpoints endpoints, Survivors& survivors) override {
    const auto most = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(Real(limit) * (1 + headroom_));
    };
    const std::int64_t most_requests = most(requests_), most_tokens = most(tokens_);
    KeepIf(endpoints, survivors, [&](const Endpoint& endpoint) {
      return (mode_ == Mode::kTokens || endpoint.inflight_requests < most_requests) &&
             (mode_ == Mode::kRequests || endpoint.inflight_tokens < most_tokens);
    });
  }

 private:
  Mode mode_;
  std::int64_t requests_, tokens_;
  double headroom_;
};

constexpr SettingSpec kSettings[] = {{.path = "concurrencyMode",
                                      .kind = SettingSpec::Kind::kText,
                                      .words = "requests tokens hybrid"},
                                     {.path = "maxConcurrency",
                                      .kind = SettingSpec::Kind::kWhole,
                                      .fallback = 100,
                                      .least = 1,
                                      .most = 1e9},
                                     {.path = "maxTokenConcurrency",
                                      .kind = SettingSpec::Kind::kWhole,
                                      .fallback = 1'000'000,
                                      .least = 1,
                                      .most = 1e12},
                                     {.path = "headroom", .most = 1000}};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "concurrency-detector",
    .help = "saturation by requests or tokens in flight; as a filter, may leave no endpoint",
    .filters = true,
    .detects = true,
    .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
      return std::make_unique<Concurrency>(settings);
    },
    .settings = kSettings};

}  // namespace servecast::epp::detector_concurrency
