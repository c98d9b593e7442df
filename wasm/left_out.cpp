// Takes the places of what few visits need, in the module of a first one: BLIS's engine, two models
// of step times, clusters of replicas, and traces. Simulation::Create then says that they are left
// out, and the page's worker goes on with the whole engine, as it does for every trace (decision
// 016). Names and help are those of the whole engine, as tests/wasm checks.
#include "servecast/trace.h"
#include "serving/blis_replica.h"
#include "serving/cluster.h"
#include "serving/policy.h"

namespace servecast {

std::unique_ptr<AnyReplica> MakeBlisReplica(const BlisInput&) { return nullptr; }
std::unique_ptr<AnyReplica> MakeCluster(const Cluster::Input&) { return nullptr; }

class TraceReader::Impl {};
TraceReader::TraceReader(std::string) {}
TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

namespace {

Issue NoTraces() {
  return {"", "found a trace, which this part of the engine does not read", "left_out"};
}

}  // namespace

bool TraceReader::Add(std::string_view) { return false; }
Result<Trace> TraceReader::Finish() { return NoTraces(); }
Result<std::string> FitTraceJson(const Trace&) { return NoTraces(); }

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
