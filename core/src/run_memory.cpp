// See run_memory.h.
#include "run_memory.h"

#include <algorithm>
#include <cmath>

#include "cost/model_cost.h"
#include "servecast/report.h"
#include "servecast/workload_spec.h"
#include "serving/blis/blis_replica.h"
#include "serving/replica/scheduler_entry.h"
#include "workload/request_table.h"

namespace servecast {
namespace {

constexpr std::int64_t kProgram = std::int64_t{16} << 20;
constexpr std::int64_t kMostGaps = std::int64_t{32} << 20;  // of a replica (metrics/samples.h)
constexpr std::int64_t kGapsOfRequest = 8 * 16;             // reserved (simulation.cpp)
constexpr std::int64_t kBytesOfBlisBlock = 32;

std::int64_t RequestsOf(const WorkloadSpec& w, const Trace& trace) {
  const ArrivalSpec& a = w.arrivals;
  if (a.process != ArrivalProcess::kTrace || a.repeat == 0) return w.requests;
  const double played = static_cast<double>(trace.rows.size()) * static_cast<double>(a.repeat);
  return static_cast<std::int64_t>(
      std::min(std::ceil(played * a.keep), static_cast<double>(kMaxRequests)));
}

// Of a row in the table of requests.
std::int64_t RowBytes(const Scenario& s, const Trace& trace) {
  const WorkloadSpec& w = *s.workload;
  std::int64_t bytes = 8 + 4 + 4;  // arrival, prompt, output
  bool turns = w.sessions.turns > 1, prefix = w.prefix.groups > 0, timeouts = false;
  bool adapters = w.adapters.count > 0 || !trace.adapters.empty();
  std::int64_t images = w.images.per_request, most_turns = w.sessions.turns;
  for (const ClassSpec& c : w.classes) {
    turns |= c.turns.value_or(1) > 1;
    prefix |= c.prefix_groups.value_or(0) > 0;
    timeouts |= c.timeout_s.has_value();
    adapters |= c.adapters.value_or(0) > 0;
    images = std::max(images, c.images_per_request.value_or(0));
    most_turns = std::max(most_turns, c.turns.value_or(1));
  }
  if (turns) bytes += 8;
  if (w.arrivals.process == ArrivalProcess::kClosedLoop) bytes += 8;
  if (CapsClients(w.arrivals)) bytes += 16;
  if (!w.classes.empty()) bytes += 1 + 4 + 8;  // class, priority, deadline
  if (timeouts) bytes += 8;
  if (adapters) bytes += 4;
  // Each turn has those before it; on average half of them.
  if (images > 0) bytes += 8 + 8 + 24 * images * (most_turns + 1) / 2;
  if (timeouts || !FindScheduler(s.scheduler.policy).as_vllm) bytes += 4;  // where it runs
  if (turns || prefix || !trace.prefixes.empty()) bytes += 4 + 8;  // content and its segment
  if (!trace.accepted_drafts.empty()) {
    std::int64_t numbers = 0;
    for (const auto& list : trace.accepted_drafts)
      numbers += static_cast<std::int64_t>(list.size());
    bytes += 24 + 4 * numbers / static_cast<std::int64_t>(trace.accepted_drafts.size());
  }
  return bytes;
}

// Of what is written about a request while it is served, and then in the report.
std::int64_t ResultBytes(const Scenario& s) {
  std::int64_t bytes = 5 * 8 + 3 * 4 + 1;        // times, counts, state
  bytes += 4 + 8;                                // order of arrival, last token
  if (s.cluster.Replicas() > 1) bytes += 4 + 4;  // its replica, its session
  if (s.cluster.Has(PoolRole::kPrefill)) bytes += static_cast<std::int64_t>(sizeof(HandOver));
  if (s.cluster.Has(PoolRole::kEncode)) bytes += static_cast<std::int64_t>(sizeof(Encoding) + 8);
  bytes += 5 * 8;  // samples of four latencies, and a copy that is sorted
  for (const Column& column : Columns()) bytes += column.kind == "request" ? 8 : 0;
  return bytes;
}

}  // namespace

RunMemory MemoryOfRun(const Scenario& asked, const Trace& trace) {
  Scenario s = asked;
  if (s.cluster.pools.size() == 1) s.UsePool(0);
  const std::int64_t requests = RequestsOf(*s.workload, trace);
  const std::int64_t replicas = s.cluster.MostReplicas();
  const std::int64_t gaps = std::min(replicas * kMostGaps, requests * kGapsOfRequest);
  // Attempts, and for the report a copy.
  const RetrySpec& spec = s.workload->retries;
  const std::int64_t retries = spec.Hedges() ? 1 : spec.max;
  const std::int64_t rows = requests * (1 + retries) * (retries > 0 ? 2 : 1);
  std::int64_t bytes =
      kProgram + rows * (RowBytes(s, trace) + ResultBytes(s)) + (replicas > 1 ? 2 : 1) * gaps;
  if (IsBlis(s.engine.compat)) {
    const Result<ModelCost> cost = ComputeModelCost(s);
    const std::int64_t blocks = cost.ok() ? cost.value().usable_blocks : 0;
    bytes += std::min(blocks, kMostBlisBlocks) * kBytesOfBlisBlock;
  }
  return {requests, bytes};
}

}  // namespace servecast
