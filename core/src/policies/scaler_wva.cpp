#include "serving/scaling/scaler.h"

namespace servecast::scaler_wva {
namespace {

constexpr ParamSpec kParams[] = {
    {"interval_s", "s", 1, 3600, 30, "time between decisions"},
    {"kv_threshold", "1", 0.01, 1, 0.8, "KV usage from which a replica is saturated"},
    {"queue_threshold", "requests", 1, 1e6, 5, "waiting requests from which it is"},
    {"kv_spare", "1", 0, 1, 0.1, "spare KV usage below which a replica is added"},
    {"queue_spare", "requests", 0, 1e6, 3, "spare queue below which one is"},
};

}  // namespace

extern const ScalerEntry kEntry = {"wva", "llm-d's workload variant autoscaler, by saturation",
                                   MakeWvaScaler, kParams};

}  // namespace servecast::scaler_wva
