#include "serving/cluster/epp/approximate_index.h"

#include <algorithm>
#include <bit>

namespace servecast::epp {

ApproximateIndex::ApproximateIndex(std::size_t endpoints)
    : words_((endpoints + 63) / 64), lrus_(endpoints) {}

void ApproximateIndex::Match(std::span<const std::uint64_t> keys,
                             std::vector<std::int64_t>& matched) const {
  for (const std::uint64_t key : keys) {
    const BlockId found = ids_.Find(key);
    if (found < 0) return;
    const std::size_t first = static_cast<std::size_t>(found) * words_;
    for (std::size_t w = 0; w < words_; ++w) {
      for (std::uint64_t bits = holders_[first + w]; bits != 0; bits &= bits - 1) {
        ++matched[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
      }
    }
  }
}

void ApproximateIndex::Add(std::span<const std::uint64_t> keys, std::int32_t endpoint,
                           std::int64_t capacity) {
  if (keys.empty()) return;
  std::unique_ptr<Lru>& lru = lrus_[static_cast<std::size_t>(endpoint)];
  if (lru == nullptr) {
    lru = std::make_unique<Lru>();
    lru->capacity = std::max<std::int64_t>(capacity, 1);
  }
  added_.clear();
  for (const std::uint64_t key : keys) added_.push_back(Id(key));
  for (const BlockId block : added_) Touch(*lru, block, endpoint);
  for (const BlockId block : added_) Mark(block, endpoint);
  for (const BlockId block : added_) --held_[static_cast<std::size_t>(block)];  // see Id
}

void ApproximateIndex::Remove(std::int32_t endpoint) {
  const std::unique_ptr<Lru> lru = std::move(lrus_[static_cast<std::size_t>(endpoint)]);
  if (lru == nullptr) return;
  for (std::int32_t n = lru->nodes[0].newer; n != 0;) {
    const Lru::Node& node = lru->nodes[static_cast<std::size_t>(n)];
    Unmark(node.block, endpoint);
    n = node.newer;
  }
}

std::int64_t ApproximateIndex::Tracked(std::int32_t endpoint) const {
  const std::unique_ptr<Lru>& lru = lrus_[static_cast<std::size_t>(endpoint)];
  return lru == nullptr ? -1 : static_cast<std::int64_t>(lru->place.size());
}

// Holds the block until the addition ends, so that its id is not freed meanwhile.
ApproximateIndex::BlockId ApproximateIndex::Id(std::uint64_t key) {
  BlockId found = ids_.Find(key);
  if (found < 0) {
    if (free_.empty()) {
      free_.push_back(static_cast<BlockId>(keys_.size()));
      keys_.push_back(0);
      held_.push_back(0);
      holders_.resize(holders_.size() + words_);
    }
    found = free_.back();
    free_.pop_back();
    keys_[static_cast<std::size_t>(found)] = key;
    ids_.Insert(key, found);
  }
  ++held_[static_cast<std::size_t>(found)];
  return found;
}

void ApproximateIndex::Touch(Lru& lru, BlockId block, std::int32_t endpoint) {
  const std::int32_t place = lru.place.Find(block);
  if (place >= 0) {
    Unlink(lru, place);
    LinkNewest(lru, place);
    return;
  }
  if (static_cast<std::int64_t>(lru.place.size()) < lru.capacity) {
    const auto node = static_cast<std::int32_t>(lru.nodes.size());
    lru.place.Insert(block, node);
    lru.nodes.push_back({block, 0, 0});
    LinkNewest(lru, node);
    return;
  }
  const std::int32_t oldest = lru.nodes[0].newer;
  const BlockId out = lru.nodes[static_cast<std::size_t>(oldest)].block;
  lru.place.Erase(out);
  lru.place.Insert(block, oldest);
  Unlink(lru, oldest);
  lru.nodes[static_cast<std::size_t>(oldest)].block = block;
  LinkNewest(lru, oldest);
  Unmark(out, endpoint);
}

void ApproximateIndex::Unlink(Lru& lru, std::int32_t node) {
  const Lru::Node& out = lru.nodes[static_cast<std::size_t>(node)];
  lru.nodes[static_cast<std::size_t>(out.older)].newer = out.newer;
  lru.nodes[static_cast<std::size_t>(out.newer)].older = out.older;
}

void ApproximateIndex::LinkNewest(Lru& lru, std::int32_t node) {
  const std::int32_t newest = lru.nodes[0].older;
  lru.nodes[static_cast<std::size_t>(node)].older = newest;
  lru.nodes[static_cast<std::size_t>(node)].newer = 0;
  lru.nodes[static_cast<std::size_t>(newest)].newer = node;
  lru.nodes[0].older = node;
}

std::uint64_t& ApproximateIndex::Word(BlockId block, std::int32_t endpoint) {
  return holders_[static_cast<std::size_t>(block) * words_ +
                  static_cast<std::size_t>(endpoint) / 64];
}

void ApproximateIndex::Mark(BlockId block, std::int32_t endpoint) {
  const std::uint64_t bit = std::uint64_t{1} << (endpoint % 64);
  std::uint64_t& word = Word(block, endpoint);
  if ((word & bit) != 0) return;
  word |= bit;
  ++held_[static_cast<std::size_t>(block)];
}

void ApproximateIndex::Unmark(BlockId block, std::int32_t endpoint) {
  const std::uint64_t bit = std::uint64_t{1} << (endpoint % 64);
  std::uint64_t& word = Word(block, endpoint);
  if ((word & bit) == 0) return;
  word &= ~bit;
  if (--held_[static_cast<std::size_t>(block)] > 0) return;
  ids_.Erase(keys_[static_cast<std::size_t>(block)]);
  free_.push_back(block);
}

}  // namespace servecast::epp
