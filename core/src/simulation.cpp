// Wires a scenario's parts together and runs them; nothing clever. See simulation.h.
#include "servecast/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "cost/model_cost.h"
#include "metrics/recorder.h"
#include "metrics/summarize.h"
#include "serving/blis_replica.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "serving/replica.h"
#include "workload/workload.h"

namespace servecast {
namespace {

TimeNs SecondsToNs(double seconds) { return static_cast<TimeNs>(std::nearbyint(seconds * 1e9)); }

}  // namespace

struct Simulation::State {
  State(Scenario s, Trace t, const ModelCost& c, RequestTable table)
      : scenario(std::move(s)),
        trace(std::move(t)),
        cost(c),
        requests(std::move(table)),
        recorder(SecondsToNs(scenario.measure.warmup_s)),
        horizon(scenario.measure.horizon_s ? SecondsToNs(*scenario.measure.horizon_s) : kNever) {}

  // Enqueue times, drops, and who comes in which order.
  void Prepare() {
    results.Resize(requests.size());
    order.reserve(static_cast<std::size_t>(requests.size()));
    bool sorted = true;
    TimeNs latest = 0;
    for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
      if (requests.arrival[i] < 0) continue;  // a later turn: comes when the one before is complete
      last_arrival = std::max(last_arrival, requests.arrival[i]);
      const TimeNs enqueue =
          EnqueueTime(requests, static_cast<RequestId>(i), *latency, max_model_len);
      if (enqueue < 0) continue;
      results.enqueue[i] = enqueue;
      sorted = sorted && enqueue >= latest;
      latest = std::max(latest, enqueue);
      order.push_back(static_cast<RequestId>(i));
    }
    if (sorted) return;
    std::sort(order.begin(), order.end(), [this](RequestId a, RequestId b) {
      const TimeNs ea = results.enqueue[static_cast<std::size_t>(a)];
      const TimeNs eb = results.enqueue[static_cast<std::size_t>(b)];
      return ea != eb ? ea < eb : a < b;
    });
  }

  void StartReplica(StepObserver* observer) {
    max_model_len = EffectiveMaxModelLen(scenario.engine, scenario.model.max_position_embeddings,
                                         cost.usable_blocks);
    Prepare();
    replica = std::make_unique<Replica>(
        ReplicaInput{scenario.engine, scenario.scheduler, cost.pool_blocks, max_model_len, requests,
                     order, *latency, results, recorder, horizon, observer});
  }

  // It sees to arrivals, drops and time-outs itself.
  void StartBlisReplica() {
    max_model_len = INT64_MAX;
    results.Resize(requests.size());
    replica = std::make_unique<BlisReplica>(BlisInput{
        scenario.engine, scenario.scheduler, cost.usable_blocks,
        scenario.model.max_position_embeddings, requests, *latency, results, recorder, horizon});
    for (const TimeNs arrival : requests.arrival) last_arrival = std::max(last_arrival, arrival);
  }

  // Where the clock stands: a finished run's at its last event or at the horizon, if that is later.
  TimeNs End() const {
    if (!finished) return replica->now();
    if (horizon != kNever) return std::max(replica->now(), horizon);
    TimeNs end = std::max(replica->now(), last_arrival);
    // A later turn that is dropped as it arrives is nobody's event.
    for (std::size_t i = 0; i < requests.think.size(); ++i)
      end = std::max(end, requests.arrival[i]);
    return end;
  }

  // The states that follow from the clock alone: who is still to come, is on its way to the queue,
  // gave up on that way, or was dropped as it arrived.
  void MarkArrivals(TimeNs end) {
    for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
      RequestState& state = results.state[i];
      if (requests.arrival[i] < 0) continue;
      if (requests.prompt_tokens[i] >= max_model_len) {
        state = requests.arrival[i] <= end ? RequestState::kDropped : RequestState::kPending;
      } else if (results.enqueue[i] < 0) {
        const bool all_over = finished && horizon == kNever;
        const bool gone = all_over || requests.timeout[i] <= end - requests.arrival[i];
        state = requests.arrival[i] > end ? RequestState::kPending
                : gone                    ? RequestState::kTimedOut
                                          : RequestState::kQueued;
      } else if (state == RequestState::kPending && requests.arrival[i] <= end) {
        state = RequestState::kQueued;
      }
    }
  }

  bool Replays() const {
    const WorkloadSpec& w = scenario.workload;
    return w.arrivals.process == ArrivalProcess::kTrace ||
           w.prompt_tokens.distribution == LengthDistribution::kTrace ||
           w.output_tokens.distribution == LengthDistribution::kTrace;
  }

  Scenario scenario;
  Trace trace;
  ModelCost cost;
  RequestTable requests;
  RequestResults results;
  std::vector<RequestId> order;
  Recorder recorder;
  TimeNs horizon;
  TimeNs last_arrival = 0;
  std::int64_t max_model_len = 0;  // effective
  std::unique_ptr<LatencyModel> latency;
  LatencyLabel label;
  std::unique_ptr<AnyReplica> replica;
  bool finished = false;
};

Simulation::Simulation(std::unique_ptr<State> state) : state_(std::move(state)) {}
Simulation::Simulation(Simulation&&) noexcept = default;
Simulation& Simulation::operator=(Simulation&&) noexcept = default;
Simulation::~Simulation() = default;

Result<Simulation> Simulation::Create(Scenario scenario, Trace trace) {
  return Create(std::move(scenario), std::move(trace), SimulationHooks{});
}

Result<Simulation> Simulation::Create(Scenario scenario, Trace trace, SimulationHooks hooks) {
  const Result<ModelCost> cost = ComputeModelCost(scenario);
  if (!cost.ok()) return Issues(cost.issues());
  Result<RequestTable> requests =
      hooks.requests ? std::move(*hooks.requests) : MakeRequests(scenario, trace);
  if (!requests.ok()) return Issues(requests.issues());
  trace.rows = {};  // now in the table
  auto state = std::make_unique<State>(std::move(scenario), std::move(trace), cost.value(),
                                       std::move(requests.value()));
  State& s = *state;
  const LatencyEntry& entry = FindLatencyModel(s.scenario.latency.backend);
  s.label = entry.label(s.scenario);
  s.latency = hooks.latency ? std::move(hooks.latency) : entry.make(s.scenario, s.cost);
  s.recorder.ReserveGaps(8 * s.requests.size());
  if (s.scenario.engine.compat == Compat::kNone) {
    s.StartReplica(hooks.observer);
  } else if (s.cost.usable_blocks <= kMostBlisBlocks) {
    s.StartBlisReplica();
  } else {
    return Issue{"/engine/num_gpu_blocks_override",
                 "found " + NumberText(static_cast<double>(s.cost.usable_blocks)) +
                     " KV blocks, allowed with this compat up to " +
                     NumberText(static_cast<double>(kMostBlisBlocks)) + ", as it lists each"};
  }
  return Simulation(std::move(state));
}

bool Simulation::Advance(std::int64_t max_steps) {
  State& s = *state_;
  if (!s.finished) s.finished = s.replica->Advance(max_steps);
  return s.finished;
}

double Simulation::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  const auto total = static_cast<double>(std::max<std::int64_t>(s.requests.size(), 1));
  double progress = static_cast<double>(s.replica->completed()) / total;
  if (s.horizon != kNever) {
    progress =
        std::max(progress, static_cast<double>(s.replica->now()) / static_cast<double>(s.horizon));
  }
  return std::min(progress, 0.999);
}

Report Simulation::Snapshot(ReportDetail detail) const {
  State& s = *state_;
  const TimeNs end = s.End();
  s.replica->WriteProgress(s.results.generated);
  s.MarkArrivals(end);
  return Summarize({s.scenario, s.cost, s.trace.name, s.Replays() ? s.trace.hash : 0, s.requests,
                    s.results, s.recorder, s.replica->running(), s.replica->length_capped(),
                    s.replica->prefix_cache(), end, s.finished, s.label},
                   detail);
}

}  // namespace servecast
