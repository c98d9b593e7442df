// What a scenario asks for that its scheduler, its compat mode or its latency model lacks, and what
// does not go together: two tables, and the one function that prints every refusal of them.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/features.h"

namespace servecast {

// Who must have a feature.
enum Owner : unsigned { kOfScheduler = 1, kOfCompat = 2, kOfLatency = 4 };

// How a scenario of one pool asks for a feature.
struct FeatureRow {
  Feature feature;
  unsigned owners;  // 0: only pairs ask
  bool (*asks)(const Scenario&);
  std::string_view path, allowed;  // where it is asked ("*": the number of the class), and what may
                                   // stand there without it
  std::string_view words;          // "with speculative decoding"
  bool at_owner = false;           // the scheduler is refused, not what asks
};
// A router that is neither round_robin nor random nor least_outstanding.
bool WeighsLoad(std::string_view router);

std::span<const FeatureRow> FeatureRows();

// Two features that do not go together: what is asked at the first's path is refused.
struct FeaturePair {
  Feature refused, beside;
  std::string_view why;
};
std::span<const FeaturePair> FeaturePairs();

// Requires: `scenario` has one pool, with as many replicas as all its pools have. "found %" stands
// for the value at an issue's path. O(rows + pairs).
void CheckFeatures(const Scenario& scenario, Issues& issues);

}  // namespace servecast
