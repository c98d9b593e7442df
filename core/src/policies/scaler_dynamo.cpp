#include "serving/scaling/scaler.h"

namespace servecast::scaler_dynamo {
namespace {

// In the order of serving/scaling/dynamo_scaler.cpp.
constexpr ParamSpec kParams[] = {
    {"load_adjustment_interval_s", "s", 0.1, 3600, 5, "time between decisions by load"},
    {"throughput_adjustment_interval_s", "s", 1, 86400, 180, "time between those by throughput"},
    {"ttft_ms", "ms", 1, 1e7, 500, "limit of its estimates of TTFT"},
    {"itl_ms", "ms", 0.01, 1e6, 50, "limit of its estimates of ITL"},
    {"load_scaling_down_sensitivity", "%", 0, 100, 80,
     "share of the limits below which a replica is removed"},
    {"load_min_observations", "1", 1, 1e6, 5, "reports of replicas before it estimates", true},
    {"min_endpoint", "replicas", 1, 1024, 1, "fewest replicas", true},
    {"max_gpu_budget", "GPUs", -1, 1e6, 8, "most GPUs of all its pools; -1: no limit", true},
    {"min_gpu_budget", "GPUs", -1, 1e6, -1, "fewest GPUs of all its pools; -1: no limit", true},
    {"prefill_scale_up_queue_tokens", "tokens", 0, 1e9, 0,
     "target load: queue from which a replica is added", true},
    {"prefill_scale_down_queue_tokens", "tokens", 0, 1e9, 0,
     "target load: queue up to which a replica is removed", true},
    {"decode_scale_up_kv_rate", "%", 0, 1e4, 0,
     "target load: KV usage from which a replica is added"},
    {"decode_scale_down_kv_rate", "%", 0, 1e4, 0,
     "target load: KV usage up to which a replica is removed"},
};

}  // namespace

extern const ScalerEntry kEntry = {.name = "dynamo",
                                   .help = "Dynamo's planner, also one for prefill and decode",
                                   .make = MakeDynamoScaler,
                                   .params = kParams,
                                   .plans = true};

}  // namespace servecast::scaler_dynamo
