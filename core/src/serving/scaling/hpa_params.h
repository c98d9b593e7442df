// What one may set of an HPA, alone or below KEDA. Defaults are Kubernetes'.
#pragma once

#include <array>

#include "serving/policy.h"

namespace servecast {

inline constexpr std::array<ParamSpec, 11> kHpaParams = {{
    {"target", "1", 1e-3, 1e9, 5, "value of the metric for each replica to aim at"},
    {"sync_s", "s", 1, 3600, 15, "time between decisions"},
    {"tolerance", "1", 0, 1, 0.1, "share by which the metric may miss the target without a change"},
    {"up_window_s", "s", 0, 3600, 0, "scaling up goes by the lowest proposal of this window"},
    {"up_pods", "replicas", 0, 1024, 4, "most replicas added in a period", true},
    {"up_percent", "%", 0, 1e4, 100,
     "most replicas added in a period, as a share; the larger of both counts", true},
    {"up_period_s", "s", 1, 1800, 15, "period of both limits"},
    {"down_window_s", "s", 0, 3600, 300,
     "scaling down goes by the highest proposal of this window"},
    {"down_pods", "replicas", 0, 1024, 0, "most replicas removed in a period", true},
    {"down_percent", "%", 0, 100, 100,
     "most replicas removed in a period, as a share; the larger of both counts", true},
    {"down_period_s", "s", 1, 1800, 15, "period of both limits"},
}};

}  // namespace servecast
