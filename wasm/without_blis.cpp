// Takes the places of BLIS's engine and of its trained step times in the page's module, which would
// not fit the page's budget with them (decision 014). Simulation::Create then says that the command
// has them; the step times are not asked for anything before.
#include "serving/blis_replica.h"
#include "serving/policy.h"

namespace servecast {

std::unique_ptr<AnyReplica> MakeBlisReplica(const BlisInput&) { return nullptr; }

namespace {

const LatencyEntry& InPlace() { return FindLatencyModel("auto"); }

}  // namespace

extern const LatencyEntry kLatencyTrainedPhysics;
const LatencyEntry kLatencyTrainedPhysics = {
    "trained_physics", "BLIS's trained model, faster than light in prefill: by the command only",
    [](const Scenario& s, const ModelCost& cost) { return InPlace().make(s, cost); },
    [](const Scenario& s) { return InPlace().label(s); }};

}  // namespace servecast
