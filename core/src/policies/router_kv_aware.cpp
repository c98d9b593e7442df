// The cost of a request on a replica, in KV blocks, as NVIDIA Dynamo's KV router has it
// (docs.nvidia.com/dynamo, "KV cache routing"; its kv_overlap_score_weight is 1, too):
//
//     overlap_weight x blocks to compute + blocks of what the replica then has
//
// Blocks to compute: of the prompt, less those that were sent there before (PrefixIndex). What a
// replica has: the blocks that each request on it had to compute there when it was placed, so that
// what several share counts once. Dynamo counts decoded blocks, too, and hears of what prefills
// have left; this gateway knows what it sent.
#include <limits>
#include <vector>

#include "base/whole_engine.h"
#include "serving/cluster/prefix_index.h"
#include "serving/cluster/router.h"

namespace servecast::router_kv_aware {
namespace {

class KvAware final : public Router {
 public:
  explicit KvAware(const RouterInput& input)
      : overlap_weight_(input.params[0]),
        block_size_(input.block_size),
        index_(input.replicas),
        blocks_(input.replicas.size(), 0) {}

  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads&) override {
    const std::int64_t prompt = CeilDiv(request.prompt_tokens, block_size_);
    const std::vector<std::int64_t>& matched = index_.Match(request.content);
    std::size_t chosen = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const std::int64_t missing = prompt - matched[i];
      const double cost = overlap_weight_ * static_cast<double>(missing) +
                          static_cast<double>(blocks_[i] + missing);
      if (cost >= least) continue;
      least = cost;
      chosen = i;
    }
    const auto r = static_cast<std::size_t>(request.number);
    if (r >= added_.size()) added_.resize(r + 1, 0);
    added_[r] = static_cast<std::int32_t>(prompt - matched[chosen]);
    blocks_[chosen] += added_[r];
    index_.Sent(request.content, static_cast<std::int32_t>(chosen));
    return static_cast<std::int32_t>(chosen);
  }

  void Left(RequestId request, std::int32_t replica) override {
    blocks_[static_cast<std::size_t>(replica)] -= added_[static_cast<std::size_t>(request)];
  }

 private:
  double overlap_weight_;
  std::int64_t block_size_;
  PrefixIndex index_;
  std::vector<std::int64_t> blocks_;  // by replica
  std::vector<std::int32_t> added_;   // to it, by request
};

std::unique_ptr<Router> Make(const RouterInput& input) { return std::make_unique<KvAware>(input); }

constexpr ParamSpec kParams[] = {
    {"overlap_weight", "1", 0, 1000, 1,
     "weight of a KV block to compute, relative to a KV block of the replica's requests"},
    kStaleness};

}  // namespace

extern const RouterEntry kEntry = {.name = "kv_aware",
                                   .help =
                                       "the replica with the least overlap_weight x KV blocks to "
                                       "compute + KV blocks of its requests",
                                   .make = OfWholeEngine(Make),
                                   .params = kParams,
                                   .reads_content = true};

}  // namespace servecast::router_kv_aware
