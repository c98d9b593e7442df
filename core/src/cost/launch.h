// What the host takes of a step beside a constant: for each sequence, and to launch the kernels by
// engine.cuda_graphs: one by one, or by replaying a graph that was captured for a batch of decodes.
#pragma once

#include <cstdint>

#include "cost/model_cost.h"
#include "servecast/scenario.h"

namespace servecast {

// Each rank of a tensor-parallel group is a worker of its own, and the step waits for the slowest:
// so much more for each sequence and each further rank. Closed loops and steps at saturation on 1
// to 8 H100, H200 and B200, three engines (ai-dynamo/aiconfigurator@095f58a,
// systems/silicon_sample.csv; ml-energy/leaderboard@0cd52da).
inline constexpr double kRankNs = 1e3;

// ns of the host for each sequence of a step. 0 where the engine's host takes no time for one.
inline double SequenceNs(const EngineSpec& e, std::int64_t tensor_parallel) {
  if (e.sequence_overhead_us <= 0) return 0;
  return e.sequence_overhead_us * 1e3 + kRankNs * static_cast<double>(tensor_parallel - 1);
}

struct Launch {
  double eager_ns = 0, replay_ns = 0;
  std::int64_t captured = 0;  // largest decode batch that is replayed

  Launch(const EngineSpec& e, const ModelCost& cost) {
    if (e.cuda_graphs != CudaGraphs::kImplied)
      eager_ns = e.launch_eager_us * 1e3 * cost.layer_share;
    if (e.cuda_graphs != CudaGraphs::kCaptured) return;
    replay_ns = e.launch_replay_us * 1e3;
    captured = e.cuda_graph_max_bs;
    while (CaptureSize(captured) != captured) --captured;
  }

  double Ns(bool replayed) const { return replayed ? replay_ns : eager_ns; }
};

}  // namespace servecast
