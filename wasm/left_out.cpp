// Takes the places of what few visits need, in the module of a first one: BLIS's engine and its
// trained step times. Simulation::Create then says that they are left out, and the page's worker
// goes on with the whole engine (decision 016). The step times are not asked for anything before.
#include "serving/blis_replica.h"
#include "serving/policy.h"

namespace servecast {

std::unique_ptr<AnyReplica> MakeBlisReplica(const BlisInput&) { return nullptr; }

namespace {

const LatencyEntry& InPlace() { return FindLatencyModel("auto"); }

}  // namespace

extern const LatencyEntry kLatencyTrainedPhysics;
const LatencyEntry kLatencyTrainedPhysics = {
    "trained_physics", "BLIS's trained model, faster than light in prefill: with compat blis only",
    [](const Scenario& s, const ModelCost& cost) { return InPlace().make(s, cost); },
    [](const Scenario& s) { return InPlace().label(s); }};

}  // namespace servecast
