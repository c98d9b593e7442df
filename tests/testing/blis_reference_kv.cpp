#include "testing/blis_reference_kv.h"

#include <algorithm>

#include "base/base.h"

namespace servecast::testing {

BlisReferenceKv::BlisReferenceKv(const RequestTable& requests, const EngineSpec& engine,
                                 std::int64_t blocks)
    : requests_(requests),
      size_(engine.block_size),
      caching_(engine.enable_prefix_caching),
      february_(engine.compat == Compat::kBlisFebruary2026),
      blocks_(static_cast<std::size_t>(blocks)) {
  for (BlockId id = 0; id < blocks_.size(); ++id) free_.push_back(id);
}

// Equal numbers: the same token at the same place of a content.
BlisReferenceKv::Token BlisReferenceKv::TokenAt(RequestId request, std::int64_t position) const {
  std::int64_t segment = request;  // without the column every request has a content of its own
  if (!requests_.content.empty()) {
    const auto at = [this](std::int64_t s) {
      return requests_.segments[static_cast<std::size_t>(s)];
    };
    segment = requests_.content[static_cast<std::size_t>(request)];
    while (position < at(segment).shared_tokens) segment = at(segment).parent;
  }
  return (segment << 32) + position;
}

// A chain: of the hash of the block before and the tokens of this one. Instead of SHA-256, which
// tells different ones apart, different ones are numbered.
BlisReferenceKv::Hash BlisReferenceKv::HashOf(RequestId request, std::int64_t index) {
  std::vector<Hash>& known = hashes_of_[request];
  for (auto k = static_cast<std::int64_t>(known.size()); k <= index; ++k) {
    std::vector<Token> tokens;
    for (std::int64_t i = 0; i < size_; ++i) tokens.push_back(TokenAt(request, k * size_ + i));
    const auto next = static_cast<Hash>(hashes_.size()) + 1;
    const Hash before = known.empty() ? 0 : known.back();
    known.push_back(hashes_.emplace(std::make_pair(before, std::move(tokens)), next).first->second);
  }
  return known[static_cast<std::size_t>(index)];
}

std::int64_t BlisReferenceKv::Find(RequestId request, std::int64_t prompt) {
  found_.clear();
  for (std::int64_t k = 0; caching_ && (k + 1) * size_ <= prompt; ++k) {
    const auto entry = table_.find(HashOf(request, k));
    if (entry == table_.end()) break;
    found_.push_back(entry->second);
  }
  return static_cast<std::int64_t>(found_.size());
}

bool BlisReferenceKv::Allocate(RequestId request, std::int64_t from, std::int64_t to, bool prefill,
                               bool cached) {
  const bool first = held_.find(request) == held_.end();
  const std::int64_t spare = first ? 0 : size_ - blocks_[held_[request].back()].tokens;
  const std::int64_t fresh = CeilDiv(std::max<std::int64_t>(to - from - spare, 0), size_);
  const auto free = static_cast<std::int64_t>(free_.size());
  if (fresh > free) return false;
  if (!cached || !first) found_.clear();
  const std::int64_t idle = std::count_if(found_.begin(), found_.end(),
                                          [this](BlockId id) { return blocks_[id].holders == 0; });
  if (!february_ && fresh + idle > free) {
    ++counts_.refused_by_hits;
    return false;
  }
  if (from == to) return true;  // what it hit it does not hold
  std::vector<BlockId>& held = held_[request];
  for (const BlockId id : found_) {
    if (blocks_[id].holders++ == 0) free_.erase(std::find(free_.begin(), free_.end(), id));
    held.push_back(id);
    ++counts_.hits;
  }
  std::vector<Block> before;  // the blocks popped here, as they were
  for (std::int64_t at = from; at < to;) {
    const bool partial = !held.empty() && blocks_[held.back()].tokens < size_;
    if (!partial && free_.empty()) {
      RollBack(request, static_cast<std::int64_t>(found_.size()), before);
      return false;
    }
    if (!partial) before.push_back(Pop(held));
    Block& last = blocks_[held.back()];
    for (; at < to && last.tokens < size_; ++at) ++last.tokens;
    // A block that is filled at once is hashed in prefill only.
    if (last.tokens == size_ && (partial || prefill)) Full(request, at);
  }
  return true;
}

// The last block ends with token `end`. February's queue may hold blocks that do not begin at a
// multiple of their size; no prompt has their hash.
void BlisReferenceKv::Full(RequestId request, std::int64_t end) {
  if (end % size_ != 0) return;
  const BlockId id = held_[request].back();
  blocks_[id].hash = HashOf(request, end / size_ - 1);
  table_[blocks_[id].hash] = id;
}

// Returns what the block was before. Its hash is forgotten, whoever has that content by now.
BlisReferenceKv::Block BlisReferenceKv::Pop(std::vector<BlockId>& held) {
  const BlockId id = free_.front();
  free_.pop_front();
  const Block before = blocks_[id];
  const auto entry = table_.find(before.hash);
  if (entry != table_.end()) {
    if (entry->second != id) ++counts_.lost_hashes;
    table_.erase(entry);
  }
  blocks_[id] = Block{0, 0, 1};
  held.push_back(id);
  ++counts_.misses;
  return before;
}

void BlisReferenceKv::RollBack(RequestId request, std::int64_t claimed,
                               const std::vector<Block>& before) {
  ++counts_.rollbacks;
  std::vector<BlockId>& held = held_[request];
  for (auto block = before.rbegin(); block != before.rend(); ++block) {
    const BlockId id = held.back();
    held.pop_back();
    table_.erase(blocks_[id].hash);
    blocks_[id] = *block;
    if (block->hash != 0) table_[block->hash] = id;
    free_.push_front(id);
    --counts_.misses;
  }
  for (const BlockId id : held) {
    if (--blocks_[id].holders == 0) free_.push_back(id);
  }
  counts_.hits -= claimed;
  held_.erase(request);
}

void BlisReferenceKv::Release(RequestId request) {
  const std::vector<BlockId> held = held_[request];
  for (auto id = held.rbegin(); id != held.rend(); ++id) {
    if (--blocks_[*id].holders == 0) free_.push_back(*id);
  }
  held_.erase(request);
}

}  // namespace servecast::testing
