// vLLM production-stack's router with --routing-logic kvaware (its routing_logic.py): the replica
// with the longest match of the prompt, if that leaves `kv_aware_threshold` tokens at most to
// compute; else the one of the lowest QPS, which is one never used or has the fewest requests of
// the last 60 s. There LMCache's controller knows what replicas hold; here the PrefixIndex does.
#include <algorithm>
#include <deque>
#include <vector>

#include "base/whole_engine.h"
#include "serving/cluster/prefix_index.h"
#include "serving/cluster/router.h"

namespace servecast::router_kv_lookup {
namespace {

constexpr TimeNs kWindow = 60 * kNsPerS;  // its --request-stats-window

class KvLookup final : public Router {
 public:
  explicit KvLookup(const RouterInput& input)
      : threshold_(static_cast<std::int64_t>(input.params[0])),
        block_size_(input.block_size),
        index_(input.replicas),
        sent_(input.replicas.size()) {}

  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads&) override {
    const std::vector<std::int64_t>& matched = index_.Match(request.content);
    const auto best = std::max_element(matched.begin(), matched.end());
    const bool found = *best > 0 && request.prompt_tokens - *best * block_size_ <= threshold_;
    const auto chosen =
        found ? static_cast<std::int32_t>(best - matched.begin()) : LowestRate(request.time);
    index_.Sent(request.content, chosen);
    Sent& sent = sent_[static_cast<std::size_t>(chosen)];
    sent.ever = true;
    sent.times.push_back(request.time);
    return chosen;
  }

 private:
  struct Sent {
    bool ever = false;
    std::deque<TimeNs> times;  // of the last window
  };

  std::int32_t LowestRate(TimeNs time) {
    std::size_t lowest = 0;
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      std::deque<TimeNs>& times = sent_[i].times;
      while (!times.empty() && times.front() < time - kWindow) times.pop_front();
      if (!sent_[i].ever) return static_cast<std::int32_t>(i);
      if (times.size() < sent_[lowest].times.size()) lowest = i;
    }
    return static_cast<std::int32_t>(lowest);
  }

  std::int64_t threshold_, block_size_;
  PrefixIndex index_;
  std::vector<Sent> sent_;  // by replica
};

std::unique_ptr<Router> Make(const RouterInput& input) { return std::make_unique<KvLookup>(input); }

constexpr ParamSpec kParams[] = {{"kv_aware_threshold", "tokens", 0, 1e9, 2000,
                                  "most tokens left to compute where the longest match decides",
                                  true}};

}  // namespace

extern const RouterEntry kEntry = {
    .name = "kv_lookup",
    .help =
        "production-stack's kvaware: the longest match if it leaves few "
        "tokens, else the lowest QPS",
    .make = OfWholeEngine(Make),
    .ignores_load = true,
    .params = kParams,
    .reads_content = true};

}  // namespace servecast::router_kv_lookup
