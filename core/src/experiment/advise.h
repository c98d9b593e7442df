// One-step changes of a deployment that might bring a missed target, each as overrides of the
// document: what a person would try next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "servecast/scenario.h"

namespace servecast {

struct Change {
  std::string words;                   // "max_num_seqs 512"
  std::vector<std::string> overrides;  // as ApplyOverrides takes them
};

// Whether requests may share content, of which a cache keeps what it has blocks for.
bool MayReuse(const WorkloadSpec& workload);

// Those that make sense of this scenario, in no order.
std::vector<Change> ChangesOf(const Scenario& scenario);

// " of NAME", " for decode", " of pool 1", where there are several: which pool is meant.
std::string OfPool(const std::vector<PoolSpec>& pools, std::size_t index);

// Overrides of a member of engines, for the scenario and each pool that has its own: "max_loras=4".
std::vector<std::string> OfEngines(const std::vector<PoolSpec>& pools,
                                   const std::string& assignment);

// What the GPUs of a scenario cost, $ an hour; none where one has no price.
std::optional<double> CostPerHour(const Scenario& scenario);

}  // namespace servecast
