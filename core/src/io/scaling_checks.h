// What a scaler asks of a pool whose replicas come and go.
#pragma once

#include <array>
#include <string_view>

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

// As documents have them, by ScalingMetric.
inline constexpr std::array<std::string_view, 4> kScalingMetricNames = {"waiting", "running",
                                                                        "outstanding", "kv_usage"};
// Likewise, by DynamoTarget.
inline constexpr std::array<std::string_view, 4> kDynamoTargetNames = {"throughput", "latency",
                                                                       "load", "sla"};

// A parameter of the chosen scaler: a document that was read has all of them.
double ParamOf(const ScalingSpec& scaling, std::string_view name);

// REQUIRES: cluster.Scales(). In a file of its own, which the page's first module leaves out:
// that one asks for the whole module before it runs such a scenario.
void CheckScaling(const ClusterSpec& cluster, Issues& issues);
// Likewise. REQUIRES: cluster.failures.On().
void CheckFailures(const Scenario& scenario, Issues& issues);
// Likewise. REQUIRES: cluster.slowdowns.On().
void CheckSlowdowns(const Scenario& scenario, Issues& issues);
// Likewise, of what happens by chance over a trace, whose length documents do not have.
Issues CheckChanceOver(const Scenario& scenario, const Trace& trace);
// Likewise. REQUIRES: cluster.rolling_update.On().
void CheckRollingUpdate(const ClusterSpec& cluster, Issues& issues);

}  // namespace servecast
