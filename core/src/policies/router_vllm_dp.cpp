// vLLM's own load balancer of data-parallel ranks, with internal or hybrid load balancing
// (DPLBAsyncMPClient in vllm/v1/engine/core_client.py; one API server): the lowest of
// 4 x waiting + running, of equals the lowest rank. Counts are those that the coordinator last
// published, each 100 ms; what was sent since then counts as waiting.
#include <vector>

#include "base/whole_engine.h"
#include "serving/cluster/router.h"

namespace servecast::router_vllm_dp {
namespace {

class VllmDp final : public Router {
 public:
  explicit VllmDp(const RouterInput& input)
      : live_(input.params[0] == 0), sent_(input.replicas.size(), 0) {}

  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    if (request.signals != published_) sent_.assign(sent_.size(), 0);
    published_ = request.signals;
    std::int32_t chosen = 0;
    for (std::int32_t i = 1; i < loads.count(); ++i) {
      if (Score(i, loads) < Score(chosen, loads)) chosen = i;
    }
    if (!live_) ++sent_[static_cast<std::size_t>(chosen)];
    return chosen;
  }

 private:
  std::int64_t Score(std::int32_t rank, const ReplicaLoads& loads) const {
    const EngineSignals& engine = loads.Engine(rank);
    return 4 * (engine.waiting + sent_[static_cast<std::size_t>(rank)]) + engine.running;
  }

  bool live_;
  std::vector<std::int64_t> sent_;  // by rank, since counts were published
  TimeNs published_ = 0;
};

std::unique_ptr<Router> Make(const RouterInput& input) { return std::make_unique<VllmDp>(input); }

constexpr ParamSpec kParams[] = {kStatsInterval};

}  // namespace

extern const RouterEntry kEntry = {
    .name = "vllm_dp",
    .help = "vLLM's own, of data-parallel ranks: least 4 x waiting + running",
    .make = OfWholeEngine(Make),
    .params = kParams,
    .reads_engines = true};

}  // namespace servecast::router_vllm_dp
