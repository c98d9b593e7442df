// vLLM production-stack's router with --routing-logic prefixaware (its routing_logic.py and
// prefix/hashtrie.py): a trie over chunks of 128 characters, the last partial one too, which is
// never evicted. A random one of the replicas that were sent the most chunks of the prompt,
// whatever their load; without a match, of all.
#include <algorithm>
#include <vector>

#include "base/random.h"
#include "base/whole_engine.h"
#include "serving/cluster/epp/approximate_index.h"
#include "serving/cluster/epp/prefix_blocks.h"
#include "serving/cluster/router.h"

namespace servecast::router_prefix_aware {
namespace {

constexpr std::int64_t kChunkTokens = 128 / kCharactersPerToken;

class PrefixAware final : public Router {
 public:
  explicit PrefixAware(const RouterInput& input)
      : seed_(input.seed), trie_(input.replicas.size()), matched_(input.replicas.size()) {}

  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads&) override {
    ReadChunks(request.content);
    std::fill(matched_.begin(), matched_.end(), 0);
    trie_.Match(chunks_, matched_);
    const std::int64_t most = *std::max_element(matched_.begin(), matched_.end());
    const auto among = std::count(matched_.begin(), matched_.end(), most);
    const double u = Uniform(seed_, Stream::kRouter, request.number);
    auto left = static_cast<std::int64_t>(u * static_cast<double>(among));
    std::int32_t chosen = 0;
    while (matched_[static_cast<std::size_t>(chosen)] != most || left-- > 0) ++chosen;
    trie_.Add(chunks_, chosen, INT64_MAX);
    return chosen;
  }

 private:
  void ReadChunks(std::span<const ContentRange> content) {
    std::vector<epp::TextPiece> pieces;
    for (const ContentRange& range : content) {
      pieces.push_back({range.segment, range.first, range.last});
    }
    chunks_.clear();
    epp::AppendKeys({.most_tokens = 0, .most_blocks = 0}, kChunkTokens, /*context=*/0, pieces,
                    chunks_);
  }

  std::int64_t seed_;
  epp::ApproximateIndex trie_;
  std::vector<std::uint64_t> chunks_;
  std::vector<std::int64_t> matched_;  // by replica
};

std::unique_ptr<Router> Make(const RouterInput& input) {
  return std::make_unique<PrefixAware>(input);
}

}  // namespace

extern const RouterEntry kEntry = {
    .name = "prefix_aware",
    .help =
        "production-stack's prefixaware: a random one of those with the "
        "longest known prefix",
    .make = OfWholeEngine(Make),
    .ignores_load = true,
    .reads_content = true,
    .reads_tokens = true};

}  // namespace servecast::router_prefix_aware
