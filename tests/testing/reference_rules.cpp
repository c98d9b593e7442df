#include "testing/reference_rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/random.h"

namespace servecast::testing {
namespace {

constexpr double kNotThere = 1e300;  // cost of a replica that must not be chosen

// Blocks that a cache may hold, in those that the gateway counts in.
std::int64_t CachedBlocks(const ServedBy& replica, std::int64_t block_size) {
  return (replica.caches_prefixes ? replica.blocks * replica.block_size : 0) / block_size;
}

}  // namespace

bool ReferenceRules::SentPrompts::Has(const Block& block) const {
  for (const auto& [segment, blocks] : segments) {
    if (segment == block.first) return blocks.count(block.second) > 0;
  }
  return false;
}

void ReferenceRules::SentPrompts::Add(const std::vector<Block>& prompt) {
  std::vector<std::int32_t> order;  // of the segments, deepest first
  for (auto block = prompt.rbegin(); block != prompt.rend(); ++block) {
    if (order.empty() || order.back() != block->first) order.push_back(block->first);
  }
  for (const std::int32_t segment : order) {
    std::set<std::int64_t> blocks;
    segments.remove_if([&](const auto& known) {
      if (known.first != segment) return false;
      blocks = known.second;
      return true;
    });
    for (const Block& block : prompt) {
      if (block.first == segment) blocks.insert(block.second);
    }
    segments.emplace_back(segment, blocks);
  }
}

void ReferenceRules::SentPrompts::Trim(std::int64_t capacity) {
  while (Size() > capacity) segments.pop_front();
}

std::int64_t ReferenceRules::SentPrompts::Size() const {
  std::size_t all = 0;
  for (const auto& known : segments) all += known.second.size();
  return static_cast<std::int64_t>(all);
}

ReferenceRules::ReferenceRules(const RouterChoice& router, const RequestTable& requests,
                               std::vector<ServedBy> replicas)
    : router_(router),
      requests_(requests),
      replicas_(std::move(replicas)),
      block_size_(INT64_MAX),
      sent_(replicas_.size()),
      trees_(replicas_.size()),
      texts_(replicas_.size()),
      times_(replicas_.size()),
      placed_(replicas_.size()) {
  for (const ServedBy& replica : replicas_) {
    block_size_ = std::min(block_size_, replica.block_size);
  }
}

std::optional<std::size_t> ReferenceRules::Choose(std::size_t request,
                                                  const std::vector<ReplicaSight>& sights,
                                                  TimeNs time) {
  const std::vector<Block> blocks =
      PartsOf(request, block_size_, requests_.prompt_tokens[request] - 1);
  const std::vector<double> costs = CostsOf(request, blocks, sights, time);
  // The first of the lowest.
  const auto chosen =
      static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  if (costs[chosen] >= kNotThere) return std::nullopt;
  ++routed_;
  placed_[chosen].insert(request);
  added_[request] =
      CeilDiv(requests_.prompt_tokens[request], block_size_) - Matched(blocks, chosen);
  const ServedBy& replica = replicas_[chosen];
  sent_[chosen].Add(blocks);
  sent_[chosen].Trim(CachedBlocks(replica, block_size_));
  times_[chosen].push_back(time);
  if (router_.name == "cache_aware") trees_[chosen].Add(TokensOf(request));
  if (router_.name == "prefix_aware") texts_[chosen].push_back(TokensOf(request));
  for (const Block& block : blocks) homes_.emplace(block.first, chosen);
  if (!blocks.empty()) homes_[blocks.back().first] = chosen;
  return chosen;
}

ReferencePickerRouter& ReferenceRules::Picker() {
  if (picker_ == nullptr) {
    picker_ = std::make_unique<ReferencePickerRouter>(router_, requests_, replicas_);
  }
  return *picker_;
}

std::vector<double> ReferenceRules::CostsOf(std::size_t request, const std::vector<Block>& blocks,
                                            const std::vector<ReplicaSight>& sights, TimeNs time) {
  const std::string& name = router_.name;
  if (name == "epp") {
    return Only(Picker().Choose(request, FirstTurn(request), sights, time));
  }
  if (name == "power_of_two") return PowerOfTwo(request, sights);
  if (name == "prefix_affinity") return PrefixAffinity(blocks, sights);
  if (name == "kv_aware") return KvAware(request, blocks, sights);
  if (name == "cache_aware") return CacheAware(request, sights, time);
  if (name == "prefix_aware") return PrefixAware(request);
  if (name == "kv_lookup") return KvLookup(request, blocks, time);
  if (name == "vllm_dp") return VllmDp(sights, time);
  if (name == "weighted") return Weighted(blocks, sights);
  if (name == "central_queue") return CentralQueue(sights);
  if (name == "round_robin") return Only(routed_ % replicas_.size());
  if (name == "session_affinity") return Only(SessionHash(request));
  if (name == "random") {
    const double u = Uniform(router_.seed, Stream::kRouter, static_cast<std::int64_t>(request), 0);
    return Only(static_cast<std::size_t>(u * static_cast<double>(replicas_.size())));
  }
  if (name != "least_outstanding") return AskRouter(request, blocks, sights);
  std::vector<double> costs;
  for (const ReplicaSight& sight : sights) costs.push_back(static_cast<double>(sight.outstanding));
  return costs;
}

std::vector<double> ReferenceRules::AskRouter(std::size_t request, const std::vector<Block>& blocks,
                                              const std::vector<ReplicaSight>& sights) {
  const RouterEntry& entry = FindRouter(router_.name);
  if (asked_ == nullptr) {
    std::vector<RoutedReplica> replicas;
    for (const ServedBy& replica : replicas_) {
      replicas.push_back({replica.seats, CachedBlocks(replica, block_size_)});
    }
    asked_ = entry.make(
        {router_.seed, replicas, ParamValues(entry.params, router_.params), block_size_});
  }
  ReplicaLoads loads(static_cast<std::int64_t>(sights.size()));
  for (std::size_t i = 0; i < sights.size(); ++i) {
    const auto replica = static_cast<std::int32_t>(i);
    loads.Change(replica, sights[i].outstanding);
    loads.SetEngine(replica, {sights[i].waiting, sights[i].blocks_used, replicas_[i].blocks});
    const std::set<std::size_t> there(sights[i].own.begin(), sights[i].own.end());
    for (auto placed = placed_[i].begin(); placed != placed_[i].end();) {
      const bool left = there.count(*placed) == 0;
      if (left && !entry.ignores_load) asked_->Left(static_cast<RequestId>(*placed), replica);
      placed = left ? placed_[i].erase(placed) : std::next(placed);
    }
  }
  std::vector<ContentRange> content;
  for (const Block& block : blocks) {
    if (content.empty() || content.back().segment != block.first) {
      content.push_back({block.first, block.second, block.second});
    }
    content.back().last = block.second + 1;
  }
  if (!entry.reads_content) content.clear();
  const std::int32_t chosen = asked_->Choose(
      {static_cast<RequestId>(request), static_cast<std::int64_t>(FirstTurn(request)),
       requests_.prompt_tokens[request], content},
      loads);
  if (chosen == Router::kHold) return std::vector<double>(replicas_.size(), kNotThere);
  return Only(static_cast<std::size_t>(chosen));
}

std::vector<double> ReferenceRules::Only(std::size_t replica) const {
  std::vector<double> costs(replicas_.size(), kNotThere);
  costs[replica] = 0;
  return costs;
}

std::size_t ReferenceRules::FirstTurn(std::size_t request) const {
  while (!requests_.think.empty() && requests_.think[request] >= 0) --request;
  return request;
}

// With n replicas the key is on the last one that it ever moved to as they grew to n; moving from
// `at` it next moves when there are more than (at + 1) / u, u in (0, 1] drawn from the key.
std::size_t ReferenceRules::SessionHash(std::size_t request) const {
  std::uint64_t key = Mix64(static_cast<std::uint64_t>(FirstTurn(request)) + 1);
  std::size_t at = 0;
  for (;;) {
    key = key * 2862933555777941757u + 1;  // the paper's generator
    const double u = static_cast<double>((key >> 33) + 1) / 2147483648.0;
    const auto next = static_cast<std::size_t>(static_cast<double>(at + 1) / u);
    if (next >= replicas_.size()) return at;
    at = next;
  }
}

std::vector<ReferenceRules::Block> ReferenceRules::PartsOf(std::size_t request, std::int64_t size,
                                                           std::int64_t end) const {
  std::vector<Block> parts;
  if (requests_.content.empty()) return parts;
  for (std::int64_t k = 0; (k + 1) * size <= end; ++k) {
    std::int32_t segment = requests_.content[request];
    const auto at = [&] { return requests_.segments[static_cast<std::size_t>(segment)]; };
    while (at().parent >= 0 && (k + 1) * size <= at().shared_tokens) segment = at().parent;
    parts.push_back({segment, k});
  }
  return parts;
}

std::vector<ReferenceRules::Block> ReferenceRules::TokensOf(std::size_t request) const {
  const std::int64_t prompt = requests_.prompt_tokens[request];
  std::vector<Block> tokens = PartsOf(request, 1, prompt);
  for (auto k = static_cast<std::int64_t>(tokens.size()); k < prompt; ++k) {
    tokens.push_back({static_cast<std::int32_t>(request), k});  // nobody else's
  }
  return tokens;
}

std::int64_t ReferenceRules::Matched(const std::vector<Block>& blocks, std::size_t replica) const {
  std::int64_t matched = 0;
  for (const Block& block : blocks) {
    if (!sent_[replica].Has(block)) break;
    ++matched;
  }
  return matched;
}

std::vector<double> ReferenceRules::PowerOfTwo(std::size_t request,
                                               const std::vector<ReplicaSight>& sights) const {
  std::vector<double> costs(replicas_.size(), kNotThere);
  const auto n = static_cast<double>(replicas_.size());
  const auto number = static_cast<std::int64_t>(request);
  const auto first =
      static_cast<std::size_t>(Uniform(router_.seed, Stream::kRouter, number, 0) * n);
  costs[first] = static_cast<double>(sights[first].outstanding);
  if (replicas_.size() == 1) return costs;
  auto second =
      static_cast<std::size_t>(Uniform(router_.seed, Stream::kRouter, number, 1) * (n - 1));
  if (second >= first) ++second;
  costs[second] = static_cast<double>(sights[second].outstanding);
  return costs;
}

std::vector<double> ReferenceRules::PrefixAffinity(const std::vector<Block>& blocks,
                                                   const std::vector<ReplicaSight>& sights) const {
  std::int64_t all = 1;
  std::vector<double> costs;
  for (const ReplicaSight& sight : sights) {
    all += sight.outstanding;
    costs.push_back(static_cast<double>(sight.outstanding));
  }
  const double most = std::ceil(router_.Param("load_factor") *
                                (static_cast<double>(all) / static_cast<double>(sights.size())));
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    const auto home = homes_.find(block->first);
    if (home == homes_.end() || costs[home->second] >= most) continue;
    costs[home->second] = -1;
    break;
  }
  return costs;
}

std::vector<double> ReferenceRules::KvAware(std::size_t request, const std::vector<Block>& blocks,
                                            const std::vector<ReplicaSight>& sights) const {
  std::vector<double> costs;
  for (std::size_t i = 0; i < sights.size(); ++i) {
    const std::int64_t missing =
        CeilDiv(requests_.prompt_tokens[request], block_size_) - Matched(blocks, i);
    std::int64_t there = missing;
    for (const std::size_t other : sights[i].own) there += added_.at(other);
    costs.push_back(router_.Param("overlap_weight") * static_cast<double>(missing) +
                    static_cast<double>(there));
  }
  return costs;
}

std::vector<double> ReferenceRules::CacheAware(std::size_t request,
                                               const std::vector<ReplicaSight>& sights,
                                               TimeNs time) {
  const auto intervals = time / static_cast<TimeNs>(router_.Param("eviction_interval_s") * 1e9);
  if (trimmed_ < intervals) {
    trimmed_ = intervals;
    const std::int64_t tokens = static_cast<std::int64_t>(router_.Param("max_tree_size")) / 4;
    for (SentPrompts& tree : trees_) tree.Trim(tokens);
  }
  std::vector<double> loads, matches, sizes;
  const std::vector<Block> text = TokensOf(request);
  for (std::size_t i = 0; i < sights.size(); ++i) {
    loads.push_back(static_cast<double>(sights[i].outstanding));
    const auto matched = std::find_if(text.begin(), text.end(),
                                      [&](const Block& token) { return !trees_[i].Has(token); });
    matches.push_back(-static_cast<double>(matched - text.begin()));
    sizes.push_back(static_cast<double>(trees_[i].Size()));
  }
  const auto [low, high] = std::minmax_element(loads.begin(), loads.end());
  if (*high - *low > router_.Param("balance_abs_threshold") &&
      *high > router_.Param("balance_rel_threshold") * *low) {
    return loads;
  }
  const double longest = -*std::min_element(matches.begin(), matches.end());
  const double least = router_.Param("cache_threshold") * static_cast<double>(text.size());
  return longest > least ? matches : sizes;
}

// Chunks of 32 tokens that are equal from the first on, of prompt and prompt; the last ones may be
// shorter, and are equal then if the prompts are.
std::vector<double> ReferenceRules::PrefixAware(std::size_t request) const {
  const std::vector<Block> text = TokensOf(request);
  std::vector<std::int64_t> chunks(replicas_.size(), 0);
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    for (const std::vector<Block>& other : texts_[i]) {
      const auto end = std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first;
      const std::int64_t equal = end - text.begin();
      chunks[i] = std::max(chunks[i], text == other ? CeilDiv(equal, 32) : equal / 32);
    }
  }
  std::vector<std::size_t> among;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i] == *std::max_element(chunks.begin(), chunks.end())) among.push_back(i);
  }
  const double u = Uniform(router_.seed, Stream::kRouter, static_cast<std::int64_t>(request), 0);
  return Only(among[static_cast<std::size_t>(u * static_cast<double>(among.size()))]);
}

std::vector<double> ReferenceRules::KvLookup(std::size_t request, const std::vector<Block>& blocks,
                                             TimeNs time) const {
  std::vector<double> matches, rates;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    matches.push_back(-static_cast<double>(Matched(blocks, i) * block_size_));
    const auto recent = std::count_if(times_[i].begin(), times_[i].end(), [time](TimeNs sent) {
      return sent >= time - 60'000'000'000;
    });
    rates.push_back(times_[i].empty() ? -1 : static_cast<double>(recent));
  }
  const double longest = -*std::min_element(matches.begin(), matches.end());
  const double left = static_cast<double>(requests_.prompt_tokens[request]) - longest;
  return longest > 0 && left <= router_.Param("kv_aware_threshold") ? matches : rates;
}

std::vector<double> ReferenceRules::VllmDp(const std::vector<ReplicaSight>& sights,
                                           TimeNs time) const {
  std::vector<double> costs;
  for (std::size_t i = 0; i < sights.size(); ++i) {
    std::int64_t waiting = sights[i].waiting;
    for (const TimeNs sent : times_[i]) {
      waiting += router_.Period() > 0 && sent >= time - sights[i].age ? 1 : 0;
    }
    costs.push_back(static_cast<double>(4 * waiting + sights[i].running));
  }
  return costs;
}

std::vector<double> ReferenceRules::Weighted(const std::vector<Block>& blocks,
                                             const std::vector<ReplicaSight>& sights) const {
  std::int64_t low = INT64_MAX, high = 0;
  for (const ReplicaSight& sight : sights) {
    low = std::min(low, sight.waiting);
    high = std::max(high, sight.waiting);
  }
  std::vector<double> costs;
  for (std::size_t i = 0; i < sights.size(); ++i) {
    const double prefix = blocks.empty() ? 0
                                         : static_cast<double>(Matched(blocks, i)) /
                                               static_cast<double>(blocks.size());
    const double queue = high == low ? 1
                                     : static_cast<double>(high - sights[i].waiting) /
                                           static_cast<double>(high - low);
    const double used =
        static_cast<double>(sights[i].blocks_used) / static_cast<double>(replicas_[i].blocks);
    costs.push_back(
        -(router_.Param("prefix_weight") * prefix + router_.Param("queue_depth_weight") * queue +
          router_.Param("kv_utilization_weight") * (1 - used) +
          router_.Param("load_weight") / static_cast<double>(1 + sights[i].outstanding)));
  }
  return costs;
}

// Whoever has room by his own limit; of several the one with the fewest.
std::vector<double> ReferenceRules::CentralQueue(const std::vector<ReplicaSight>& sights) const {
  std::vector<double> costs;
  for (std::size_t i = 0; i < sights.size(); ++i) {
    const auto set = static_cast<std::int64_t>(router_.Param("max_outstanding"));
    const std::int64_t most = set > 0 ? set : replicas_[i].seats;
    const bool room = sights[i].outstanding < most;
    costs.push_back(room ? static_cast<double>(sights[i].outstanding) : kNotThere);
  }
  return costs;
}

}  // namespace servecast::testing
