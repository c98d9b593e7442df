// Scorers with weights, as the gateways of llm-d and BLIS have them: each gives a replica a score
// in [0, 1], the highest weighted sum serves, of equals the lowest number (theirs draw). Weights
// are by default those of llm-d's profile in BLIS: prefix 3, queue depth 2, KV utilisation 2.
#include <algorithm>
#include <array>
#include <vector>

#include "base/whole_engine.h"
#include "serving/cluster/prefix_index.h"
#include "serving/cluster/router.h"

namespace servecast::router_weighted {
namespace {

class Weighted final : public Router {
 public:
  explicit Weighted(const RouterInput& input) : index_(input.replicas) {
    std::copy_n(input.params.begin(), weights_.size(), weights_.begin());
  }

  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    const auto count = static_cast<std::int32_t>(loads.count());
    std::int64_t shortest = loads.Engine(0).waiting, longest = shortest;
    for (std::int32_t i = 1; i < count; ++i) {
      shortest = std::min(shortest, loads.Engine(i).waiting);
      longest = std::max(longest, loads.Engine(i).waiting);
    }
    const std::vector<std::int64_t>& matched = index_.Match(request.content);
    const std::int64_t blocks = request.content.empty() ? 0 : request.content.back().last;
    std::int32_t chosen = 0;
    double best = -1;
    for (std::int32_t i = 0; i < count; ++i) {
      const EngineSignals& engine = loads.Engine(i);
      const double score = weights_[0] * Share(matched[static_cast<std::size_t>(i)], blocks, 0) +
                           weights_[1] * Share(longest - engine.waiting, longest - shortest, 1) +
                           weights_[2] * (1 - Share(engine.kv_blocks_used, engine.kv_blocks, 0)) +
                           weights_[3] / static_cast<double>(1 + loads.Outstanding(i));
      if (score <= best) continue;
      best = score;
      chosen = i;
    }
    index_.Sent(request.content, chosen);
    return chosen;
  }

 private:
  static double Share(std::int64_t part, std::int64_t whole, double of_nothing) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : of_nothing;
  }

  std::array<double, 4> weights_;
  PrefixIndex index_;
};

std::unique_ptr<Router> Make(const RouterInput& input) { return std::make_unique<Weighted>(input); }

constexpr ParamSpec kParams[] = {
    {"prefix_weight", "1", 0, 1000, 3,
     "weight of the share of the prompt that the replica was sent before"},
    {"queue_depth_weight", "1", 0, 1000, 2,
     "weight of a short queue, relative to the other replicas"},
    {"kv_utilization_weight", "1", 0, 1000, 2, "weight of the share of free KV blocks"},
    {"load_weight", "1", 0, 1000, 0, "weight of 1 / (1 + requests waiting or running)"},
    kStaleness};

}  // namespace

extern const RouterEntry kEntry = {
    .name = "weighted",
    .help =
        "the replica with the highest weighted sum of scores: prefix, queue depth, free KV, load",
    .make = OfWholeEngine(Make),
    .params = kParams,
    .reads_content = true,
    .reads_engines = true};

}  // namespace servecast::router_weighted
