#include "serving/cluster/epp/producers.h"

#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp {
namespace producers {
namespace {

constexpr auto kWhole = SettingSpec::Kind::kWhole;
constexpr auto kFlag = SettingSpec::Kind::kFlag;
constexpr PrefixSettings kPrefix;
constexpr LoadSettings kLoad;

constexpr SettingSpec kPrefixSettings[] = {
    {.path = "autoTune", .kind = kFlag, .fallback = kPrefix.auto_tune ? 1.0 : 0.0},
    {.path = "blockSizeTokens",
     .kind = kWhole,
     .fallback = static_cast<double>(kPrefix.block_tokens),
     .least = 1,
     .most = 1e6},
    {.path = "lruCapacityPerServer",
     .kind = kWhole,
     .fallback = static_cast<double>(kPrefix.lru_capacity),
     .least = 1,
     .most = 1e8},
    {.path = "maxPrefixTokensToMatch",
     .kind = kWhole,
     .fallback = static_cast<double>(kPrefix.most_tokens)},
    {.path = "maxPrefixBlocksToMatch",
     .kind = kWhole,
     .fallback = static_cast<double>(kPrefix.most_blocks)}};

constexpr SettingSpec kLoadSettings[] = {
    {.path = "addEstimatedOutputTokens",
     .kind = kFlag,
     .fallback = kLoad.estimates_output ? 1.0 : 0.0},
    {.path = "outputRatio", .fallback = kLoad.output_ratio, .most = 1e6},
    {.path = "maxEstimatedOutputTokens",
     .kind = kWhole,
     .fallback = static_cast<double>(kLoad.most_estimated_tokens)}};

}  // namespace

namespace prefix {
extern const PluginEntry kEntry = {.type = "approx-prefix-cache-producer",
                                   .help = "which endpoint was sent which blocks of prompts",
                                   .settings = kPrefixSettings};
}  // namespace prefix

namespace load {
extern const PluginEntry kEntry = {.type = "inflight-load-producer",
                                   .help = "requests and prompt tokens in flight",
                                   .settings = kLoadSettings};
}  // namespace load

}  // namespace producers

namespace {

// The parameters of the first plugin of that type.
Settings SettingsOf(const EppConfig& config, const PluginEntry& type) {
  static const EppParameters kDefaults;
  const auto found =
      std::find_if(config.plugins.begin(), config.plugins.end(),
                   [&](const EppPlugin& plugin) { return plugin.type == type.type; });
  return {type.settings, found == config.plugins.end() ? kDefaults : found->parameters};
}

}  // namespace

PrefixSettings PrefixSettingsOf(const EppConfig& config) {
  const Settings settings = SettingsOf(config, producers::prefix::kEntry);
  return {.auto_tune = settings.Flag("autoTune"),
          .block_tokens = settings.Whole("blockSizeTokens"),
          .lru_capacity = settings.Whole("lruCapacityPerServer"),
          .most_tokens = settings.Whole("maxPrefixTokensToMatch"),
          .most_blocks = settings.Whole("maxPrefixBlocksToMatch")};
}

LoadSettings LoadSettingsOf(const EppConfig& config) {
  const Settings settings = SettingsOf(config, producers::load::kEntry);
  return {.estimates_output = settings.Flag("addEstimatedOutputTokens"),
          .output_ratio = settings.Real("outputRatio"),
          .most_estimated_tokens = settings.Whole("maxEstimatedOutputTokens")};
}

}  // namespace servecast::epp
