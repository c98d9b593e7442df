// SGLang's router with --policy cache_aware, as its documentation has it (docs.sglang.ai, "SGLang
// Router"). While loads are out of balance (most - fewest > abs and most > rel x fewest) the least
// loaded replica serves; else the one whose tree of prompts matches the longest part of this one,
// if that is more than `cache_threshold` of it; else the one with the smallest tree. Defaults are
// those of sglang_router since 2025; earlier ones were 0.5, 32 and 1.0001.
//
// Theirs is a radix tree of characters, where leaves are evicted; here it is the PrefixIndex, in
// tokens, which forgets a content segment at a time. Of equals the lowest number.
#include <algorithm>
#include <vector>

#include "base/whole_engine.h"
#include "serving/cluster/prefix_index.h"
#include "serving/cluster/router.h"

namespace servecast::router_cache_aware {
namespace {

std::vector<RoutedReplica> TreesOf(const RouterInput& input) {
  const auto tokens = static_cast<std::int64_t>(input.params[3]) / kCharactersPerToken;
  return std::vector<RoutedReplica>(input.replicas.size(), {.cached_blocks = tokens});
}

class CacheAware final : public Router {
 public:
  explicit CacheAware(const RouterInput& input)
      : threshold_(input.params[0]),
        most_apart_(static_cast<std::int64_t>(input.params[1])),
        most_ratio_(input.params[2]),
        interval_(static_cast<TimeNs>(input.params[4] * 1e9)),
        trees_(TreesOf(input)) {}

  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    Evict(request.time, loads.count());
    // A prompt that shares nothing is a text, too.
    const ContentRange own{request.number, 0, request.prompt_tokens};
    const auto text = request.content.empty() ? std::span(&own, 1) : request.content;
    const std::int32_t chosen = Balanced(loads) ? ByTrees(text, loads) : loads.Least();
    trees_.Add(text, chosen);
    return chosen;
  }

 private:
  void Evict(TimeNs time, std::int64_t replicas) {
    if (time / interval_ == evictions_) return;
    evictions_ = time / interval_;
    for (std::int32_t i = 0; i < replicas; ++i) trees_.Trim(i);
  }

  bool Balanced(const ReplicaLoads& loads) const {
    const std::int64_t fewest = loads.Outstanding(loads.Least());
    std::int64_t most = fewest;
    for (std::int32_t i = 0; i < loads.count(); ++i) most = std::max(most, loads.Outstanding(i));
    return most - fewest <= most_apart_ ||
           static_cast<double>(most) <= most_ratio_ * static_cast<double>(fewest);
  }

  std::int32_t ByTrees(std::span<const ContentRange> text, const ReplicaLoads& loads) {
    const std::vector<std::int64_t>& matched = trees_.Match(text);
    const auto best = std::max_element(matched.begin(), matched.end());
    if (static_cast<double>(*best) > threshold_ * static_cast<double>(text.back().last)) {
      return static_cast<std::int32_t>(best - matched.begin());
    }
    std::int32_t smallest = 0;
    for (std::int32_t i = 1; i < loads.count(); ++i) {
      if (trees_.Blocks(i) < trees_.Blocks(smallest)) smallest = i;
    }
    return smallest;
  }

  double threshold_;
  std::int64_t most_apart_;
  double most_ratio_;
  TimeNs interval_;
  TimeNs evictions_ = 0;  // so far
  PrefixIndex trees_;     // in tokens
};

std::unique_ptr<Router> Make(const RouterInput& input) {
  return std::make_unique<CacheAware>(input);
}

constexpr ParamSpec kParams[] = {
    {"cache_threshold", "1", 0, 1, 0.3,
     "the longest match decides if it is more than this share of the prompt"},
    {"balance_abs_threshold", "requests", 0, 65536, 64,
     "loads this far apart at most are in balance", true},
    {"balance_rel_threshold", "1", 1, 1000, 1.5,
     "so are loads with at most this ratio of the most to the fewest"},
    {"max_tree_size", "characters", 4, 1e12, 67'108'864,
     "what a replica's tree is cut to, at 4 characters a token", true},
    {"eviction_interval_s", "s", 0.001, 86'400, 120, "how often trees are cut"},
    kStaleness};

}  // namespace

extern const RouterEntry kEntry = {
    .name = "cache_aware",
    .help =
        "SGLang's router: the longest match, else the smallest tree; "
        "out of balance the least loaded",
    .make = OfWholeEngine(Make),
    .params = kParams,
    .reads_content = true,
    .reads_tokens = true};

}  // namespace servecast::router_cache_aware
