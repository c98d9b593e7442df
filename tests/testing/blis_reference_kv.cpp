#include "testing/blis_reference_kv.h"

#include <algorithm>
#include <iterator>

#include "base/base.h"

namespace servecast::testing {

BlisReferenceKv::BlisReferenceKv(const RequestTable& requests, const EngineSpec& engine,
                                 std::int64_t blocks, const BlisHost& host)
    : requests_(requests),
      size_(engine.block_size),
      caching_(engine.enable_prefix_caching),
      february_(engine.compat == Compat::kBlisFebruary2026),
      host_(host),
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
                               bool admission) {
  const auto prefix = static_cast<std::int64_t>(found_.size());
  const std::int64_t prompt = requests_.prompt_tokens[static_cast<std::size_t>(request)];
  // An admission asks anew, with the prefix that there is after a reload.
  const auto look_again = [&] {
    if (!admission) return;
    const std::int64_t now = Find(request, prompt);
    if (now < prefix) ++counts_.prefixes_cut;
    if (now * size_ >= to) ++counts_.reloads_beyond_need;
    from = std::min(now * size_, to);
  };
  if (host_.blocks > 0 && !february_ && ReloadPrefix(request)) {
    if (!admission) ++counts_.reloads_by_running;
    look_again();
  }
  bool done = AllocateOnGpu(request, from, to, prefill, admission);
  if (!done && host_.blocks > 0 && february_ && ReloadEverything()) {
    if (!admission) ++counts_.reloads_by_running;
    look_again();
    done = AllocateOnGpu(request, from, to, prefill, admission);
    if (done) ++counts_.rescued;
  }
  return done;
}

bool BlisReferenceKv::AllocateOnGpu(RequestId request, std::int64_t from, std::int64_t to,
                                    bool prefill, bool cached) {
  const bool first = held_.find(request) == held_.end();
  const std::int64_t spare = first ? 0 : size_ - blocks_[held_[request].back()].tokens;
  const std::int64_t fresh = CeilDiv(std::max<std::int64_t>(to - from - spare, 0), size_);
  const auto free = static_cast<std::int64_t>(free_.size());
  if (fresh > free) return false;
  std::vector<BlockId> claimed;
  if (cached && first) claimed = found_;
  const std::int64_t idle = std::count_if(claimed.begin(), claimed.end(),
                                          [this](BlockId id) { return blocks_[id].holders == 0; });
  if (!february_ && fresh + idle > free) {
    ++counts_.refused_by_hits;
    return false;
  }
  if (from == to) return true;  // what it hit it does not hold
  std::vector<BlockId>& held = held_[request];
  for (const BlockId id : claimed) {
    if (blocks_[id].holders++ == 0) free_.erase(std::find(free_.begin(), free_.end(), id));
    held.push_back(id);
    ++counts_.hits;
  }
  std::vector<Block> before;  // the blocks popped here, as they were
  for (std::int64_t at = from; at < to;) {
    const bool partial = !held.empty() && blocks_[held.back()].tokens < size_;
    if (!partial && free_.empty()) {
      RollBack(request, static_cast<std::int64_t>(claimed.size()), before);
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
  Forget(id);
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

std::int64_t BlisReferenceKv::Unused() const {
  // Only full blocks are shared, and each request fills its blocks in their order.
  std::int64_t unused = 0;
  for (const auto& [request, held] : held_) {
    for (auto id = held.rbegin(); id != held.rend() && blocks_[*id].tokens < size_; ++id) {
      unused += size_ - blocks_[*id].tokens;
    }
  }
  return unused;
}

void BlisReferenceKv::Release(RequestId request) {
  const std::vector<BlockId> held = held_[request];
  for (auto id = held.rbegin(); id != held.rend(); ++id) {
    if (--blocks_[*id].holders == 0) free_.push_back(*id);
  }
  held_.erase(request);
  if (february_ && host_.blocks > 0) Offload();
}

void BlisReferenceKv::Forget(BlockId id) {
  const auto entry = table_.find(blocks_[id].hash);
  blocks_[id].hash = 0;
  if (entry == table_.end()) return;
  if (entry->second != id) ++counts_.lost_hashes;
  table_.erase(entry);
}

// --- The host, in February -----------------------------------------------------------------------

void BlisReferenceKv::Offload() {
  while (static_cast<double>(Used()) / static_cast<double>(blocks_.size()) > host_.threshold) {
    const auto hashed = std::find_if(free_.begin(), free_.end(),
                                     [this](BlockId id) { return blocks_[id].hash != 0; });
    if (hashed == free_.end()) return;
    if (static_cast<std::int64_t>(moved_.size()) >= host_.blocks) {
      ++counts_.host_full;
      return;
    }
    const BlockId id = *hashed;
    counts_.replaced += static_cast<std::int64_t>(moved_.count(id));
    moved_[id] = {blocks_[id].hash, clock_};
    ++counts_.offloads;
    Forget(id);
    free_.erase(hashed);
    free_.push_back(id);
  }
}

bool BlisReferenceKv::ReloadEverything() {
  std::vector<Hash> reloaded;
  const std::map<BlockId, Moved> all = moved_;
  for (const auto& [from, content] : all) {
    if (table_.count(content.hash) > 0) continue;
    if (free_.empty()) break;
    Reload(content.hash);
    reloaded.push_back(content.hash);
    if (clock_ - content.time < 1000) ++counts_.thrashes;
    moved_.erase(from);
  }
  for (const Hash hash : reloaded) counts_.reloads_undone += table_.count(hash) == 0 ? 1 : 0;
  if (reloaded.empty()) ++counts_.host_misses;
  return !reloaded.empty();
}

// --- The host, today -----------------------------------------------------------------------------

bool BlisReferenceKv::ReloadPrefix(RequestId request) {
  const std::int64_t prompt = requests_.prompt_tokens[static_cast<std::size_t>(request)];
  std::int64_t next = 0;
  while (caching_ && (next + 1) * size_ <= prompt && table_.count(HashOf(request, next)) > 0) {
    ++next;
  }
  const auto room = static_cast<std::int64_t>(free_.size());
  std::int64_t reloaded = 0;
  for (; caching_ && reloaded < room && (next + 1) * size_ <= prompt; ++next, ++reloaded) {
    const Hash hash = HashOf(request, next);
    const auto there = in_mirror_.find(hash);
    if (there == in_mirror_.end()) break;
    if (table_.count(hash) > 0) ++counts_.reloads_of_present;
    Reload(hash);
    mirror_.splice(mirror_.end(), mirror_, there->second);
  }
  return reloaded > 0;
}

void BlisReferenceKv::Mirror(const std::vector<RequestId>& batch) {
  if (february_ || host_.blocks == 0) return;
  for (const RequestId request : batch) {
    const auto held = held_.find(request);
    if (held == held_.end()) continue;
    for (const BlockId id : held->second) {
      const Block& block = blocks_[id];
      if (block.hash == 0 || block.tokens < size_) continue;
      const auto there = in_mirror_.find(block.hash);
      if (there != in_mirror_.end()) {
        mirror_.splice(mirror_.end(), mirror_, there->second);
        continue;
      }
      if (static_cast<std::int64_t>(mirror_.size()) == host_.blocks) {
        in_mirror_.erase(mirror_.front());
        mirror_.pop_front();
        ++counts_.thrashes;
      }
      mirror_.push_back(block.hash);
      in_mirror_[block.hash] = std::prev(mirror_.end());
      ++counts_.offloads;
    }
  }
}

// --- The host, both ------------------------------------------------------------------------------

// Into the free block that would be overwritten next, which then is the last to be.
void BlisReferenceKv::Reload(Hash hash) {
  const BlockId id = free_.front();
  free_.pop_front();
  Forget(id);
  blocks_[id] = Block{size_, hash, 0};
  table_[hash] = id;
  free_.push_back(id);
  pending_ += host_.reload;
  ++counts_.reloads;
}

std::int64_t BlisReferenceKv::ConsumeTransfer() {
  const std::int64_t us = pending_;
  pending_ = 0;
  counts_.transfer += us;
  return us;
}

}  // namespace servecast::testing
