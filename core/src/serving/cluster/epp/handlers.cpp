// Profile handlers, and the deciders of the one for prefill and decode.
#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::handlers {
namespace {

class Always final : public Plugin {
 public:
  bool Disaggregates(const Request&, const Endpoint&) const override { return true; }
};

class PrefixBased final : public Plugin {
 public:
  explicit PrefixBased(const Settings& settings)
      : uncached_(settings.Whole("nonCachedTokens")), prompt_(settings.Whole("promptTokens")) {}

  bool Disaggregates(const Request& request, const Endpoint& decode) const override {
    if (uncached_ == 0 || request.tokens < prompt_ || request.tokens < uncached_) return false;
    if (decode.matched_blocks < 0) return false;
    const std::int64_t cached =
        decode.cached_blocks < 0 ? decode.matched_blocks : decode.cached_blocks;
    return request.tokens - cached * request.block_tokens >= uncached_;
  }

 private:
  std::int64_t uncached_, prompt_;
};

constexpr SettingSpec kPrefixBased[] = {
    {.path = "nonCachedTokens", .kind = SettingSpec::Kind::kWhole},
    {.path = "promptTokens", .kind = SettingSpec::Kind::kWhole}};

constexpr SettingSpec kDisaggregated[] = {
    {.path = "deciders.prefill", .kind = SettingSpec::Kind::kText},
    {.path = "profiles.prefill", .kind = SettingSpec::Kind::kText, .words = "prefill"},
    {.path = "profiles.decode", .kind = SettingSpec::Kind::kText, .words = "decode"},
    {.path = "stageOrder", .kind = SettingSpec::Kind::kText, .words = "decode-first"}};

}  // namespace

namespace single {
extern const PluginEntry kEntry = {.type = "single-profile-handler",
                                   .help = "runs the one profile"};
}  // namespace single

namespace disaggregated {
extern const PluginEntry kEntry = {
    .type = "disagg-profile-handler",
    .help = "runs profile decode, then profile prefill if the decider says so",
    .settings = kDisaggregated};
}  // namespace disaggregated

namespace always {
extern const PluginEntry kEntry = {
    .type = "always-disagg-pd-decider",
    .help = "every prompt goes to a prefill endpoint",
    .decides = true,
    .make = [](const Settings&) -> std::unique_ptr<Plugin> { return std::make_unique<Always>(); }};
}  // namespace always

namespace prefix_based {
extern const PluginEntry kEntry = {
    .type = "prefix-based-pd-decider",
    .help = "prompts with so many tokens that the decode endpoint does not hold",
    .decides = true,
    .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
      return std::make_unique<PrefixBased>(settings);
    },
    .settings = kPrefixBased};
}  // namespace prefix_based

}  // namespace servecast::epp::handlers
