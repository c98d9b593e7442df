// Takes the places of what few visits need, in the module of a first one: BLIS's engine, and two
// models of step times. Simulation::Create then says that they are left out, and the page's worker
// goes on with the whole engine (decision 016). Names and help are those of the whole engine, as
// tests/wasm checks.
#include "serving/blis_replica.h"
#include "serving/policy.h"

namespace servecast {

std::unique_ptr<AnyReplica> MakeBlisReplica(const BlisInput&) { return nullptr; }

namespace {

std::unique_ptr<LatencyModel> LeftOut(const Scenario&, const ModelCost&) { return nullptr; }
LatencyLabel NoLabel(const Scenario&) { return {}; }

}  // namespace

extern const LatencyEntry kLatencyTrainedPhysics;
const LatencyEntry kLatencyTrainedPhysics = {
    "trained_physics", "BLIS's trained model, faster than light in prefill: with compat blis only",
    LeftOut, NoLabel};

extern const LatencyEntry kLatencyPhysics;
const LatencyEntry kLatencyPhysics = {
    "physics", "Dot product of 16 physical features of a step with coefficients", LeftOut, NoLabel};

}  // namespace servecast
