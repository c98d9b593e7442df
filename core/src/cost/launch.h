// What the host takes to launch a step's kernels, by engine.cuda_graphs: one by one, or by
// replaying a graph that was captured for a batch of decodes.
#pragma once

#include <cstdint>

#include "cost/model_cost.h"
#include "servecast/scenario.h"

namespace servecast {

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
