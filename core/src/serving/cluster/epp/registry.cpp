// Every plugin of the endpoint picker, one line each.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

// clang-format off: a new entry is one line, whatever its name's length.
#define SERVECAST_EPP_PLUGINS(X)  \
  X(filter_role::decode)          \
  X(filter_role::prefill)         \
  X(filter_prefix_affinity)       \
  X(filter_utilization)           \
  X(session_affinity::filter)     \
  X(detector_utilization)         \
  X(detector_concurrency)         \
  X(scorer_relative::queue)       \
  X(scorer_relative::running)     \
  X(scorer_kv)                    \
  X(scorer_load_aware)            \
  X(scorer_prefix)                \
  X(scorer_lora)                  \
  X(scorer_active_request)        \
  X(scorer_token_load)            \
  X(session_affinity::scorer)     \
  X(scorer_no_hit_lru)            \
  X(scorer_context_length)        \
  X(pickers::max_score)           \
  X(pickers::weighted_random)     \
  X(pickers::random)              \
  X(handlers::single)             \
  X(handlers::disaggregated)      \
  X(handlers::always)             \
  X(handlers::prefix_based)       \
  X(producers::prefix)            \
  X(producers::load)              \
  X(flow_policies::fcfs)          \
  X(flow_policies::edf)           \
  X(flow_policies::slo_deadline)  \
  X(flow_policies::global_strict) \
  X(flow_policies::round_robin)   \
  X(flow_policies::static_limit)  \
  X(flow_policies::holdback)      \
  X(flow_policies::soft_reflective)
// clang-format on

namespace servecast::epp {

#define SERVECAST_DECLARE_PLUGIN(plugin) \
  namespace plugin {                     \
  extern const PluginEntry kEntry;       \
  }
#define SERVECAST_LIST_PLUGIN(plugin) plugin::kEntry,
SERVECAST_EPP_PLUGINS(SERVECAST_DECLARE_PLUGIN)

std::span<const PluginEntry> PluginTypes() {
  static const PluginEntry kTable[] = {SERVECAST_EPP_PLUGINS(SERVECAST_LIST_PLUGIN)};
  return kTable;
}

const PluginEntry* FindPluginType(std::string_view type) {
  const auto types = PluginTypes();
  const auto found = std::find_if(types.begin(), types.end(),
                                  [&](const PluginEntry& entry) { return entry.type == type; });
  return found == types.end() ? nullptr : &*found;
}

const EppPlugin* PluginOf(const EppConfig& config, std::string_view name) {
  const auto found = std::find_if(config.plugins.begin(), config.plugins.end(),
                                  [&](const EppPlugin& plugin) { return plugin.name == name; });
  return found == config.plugins.end() ? nullptr : &*found;
}

const PluginEntry* TypeOf(const EppConfig& config, std::string_view name) {
  const EppPlugin* plugin = PluginOf(config, name);
  return FindPluginType(plugin == nullptr ? name : std::string_view(plugin->type));
}

}  // namespace servecast::epp
