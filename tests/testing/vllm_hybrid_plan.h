// How the real vLLM planned KV memory of models whose layers differ (section A of the hybrid golden
// cases' README), and the plan of the engine for the same layers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cost/kv_groups.h"
#include "servecast/scenario.h"

namespace servecast::testing {

// The layers and settings of a case by the engine's kinds of layers. Requires: their form.
KvPlan HybridPlanOf(const nlohmann::json& layers, const nlohmann::json& settings);

// Whether the folder's manifest.json has the form vllm-hybrid-golden-1.
bool IsHybridSet(const std::string& folder);

// Of a recorded run: the block of full attention beside states; 0: there are none.
std::int64_t HybridStateBlock(const nlohmann::json& settings);

// A model with these layers, small in all that KV does not depend on.
ModelSpec HybridModelOf(const nlohmann::json& layers, const nlohmann::json& settings);

// Of DIR/kv_cache_config/cases.json, by case: its name, and the first thing that differs; "": all
// is equal. Nothing: the file cannot be read.
struct PlanComparison {
  std::string name, difference;
};
std::optional<std::vector<PlanComparison>> ComparePlans(const std::string& folder);

}  // namespace servecast::testing
