// See blis_kv.h.
#include "serving/blis_kv.h"

#include <algorithm>

namespace servecast {

BlisKv::BlisKv(const Options& options, const RequestTable& requests)
    : options_(options), requests_(requests), free_(options.blocks), blocks_(2) {
  At(kEnds).previous = At(kEnds).next = kEnds;
  if (options.blocks > 0) Link(kUntouched, kEnds);
}

// Any key that is equal for equal beginnings does what BLIS's chain of hashes does: RequestTable
// says when full block k of two requests is the same.
std::uint64_t BlisKv::NameOf(RequestId request, std::int64_t block) const {
  std::int32_t segment =
      requests_.content.empty() ? request : requests_.content[static_cast<std::size_t>(request)];
  if (!requests_.segments.empty()) {
    const auto at = [this](std::int32_t s) {
      return requests_.segments[static_cast<std::size_t>(s)];
    };
    while ((block + 1) * options_.block_size <= at(segment).shared_tokens) {
      segment = at(segment).parent;
    }
  }
  return static_cast<std::uint64_t>(segment) << 32 | static_cast<std::uint64_t>(block);
}

std::int64_t BlisKv::LookUp(RequestId request, std::int64_t prompt_tokens) {
  found_.clear();
  if (!options_.prefix_caching) return 0;
  for (std::int64_t k = 0; k < prompt_tokens / options_.block_size; ++k) {
    const auto at = table_.find(NameOf(request, k));
    if (at == table_.end()) break;
    found_.push_back(at->second);
  }
  return static_cast<std::int64_t>(found_.size());
}

std::int64_t BlisKv::NewBlocksFor(const Holding& holding, std::int64_t tokens) const {
  const std::int64_t spare = holding.blocks.empty() ? 0 : options_.block_size - holding.last_fill;
  return CeilDiv(std::max<std::int64_t>(tokens - spare, 0), options_.block_size);
}

bool BlisKv::MayAllocate(const Holding& holding, std::int64_t tokens, std::int64_t cached,
                         bool prefill) {
  const std::int64_t fresh = NewBlocksFor(holding, tokens);
  if (!prefill || !options_.counts_claimed_blocks) return fresh <= free_;
  std::int64_t claimed = 0;
  for (std::int64_t i = 0; i < cached; ++i) {
    claimed += At(found_[static_cast<std::size_t>(i)]).holders == 0 ? 1 : 0;
  }
  return fresh + claimed <= free_;
}

bool BlisKv::Allocate(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                      std::int64_t cached, bool prefill) {
  if (!holding.blocks.empty()) cached = 0;
  if (!MayAllocate(holding, to - from, cached, prefill)) return false;
  if (from == to) return true;
  taken_.clear();
  Claim(holding, cached);
  while (from < to) {
    std::int64_t tokens = std::min(options_.block_size, to - from);
    const bool partial = !holding.blocks.empty() && holding.last_fill < options_.block_size;
    if (partial) {
      tokens = std::min(tokens, options_.block_size - holding.last_fill);
      holding.last_fill += tokens;
    } else if (!TakeFresh(holding, tokens)) {
      Undo(holding, cached);
      return false;
    }
    from += tokens;
    // A fresh block that is filled at once gets its name in prefill only.
    if (holding.last_fill == options_.block_size && (partial || prefill)) {
      SetName(holding.blocks.back(), request, from);
    }
  }
  return true;
}

void BlisKv::Claim(Holding& holding, std::int64_t cached) {
  claimed_free_.clear();
  for (std::int64_t i = 0; i < cached; ++i) {
    const BlockId id = found_[static_cast<std::size_t>(i)];
    claimed_free_.push_back(At(id).holders == 0);
    if (++At(id).holders == 1) {
      Unlink(id);
      --free_;
    }
    holding.blocks.push_back(id);
    holding.last_fill = options_.block_size;
  }
  hits_ += cached;
}

bool BlisKv::TakeFresh(Holding& holding, std::int64_t tokens) {
  const BlockId id = PopFree();
  if (id == kNone) return false;
  Block& block = At(id);
  taken_.push_back({id, block.named, block.name});
  if (block.named) {
    // Whoever owns the name by now.
    table_.erase(block.name);
    ++evicted_;
  }
  block.named = false;
  block.holders = 1;
  ++misses_;
  holding.blocks.push_back(id);
  holding.last_fill = tokens;
  return true;
}

// The last block ends with token `end` of the request. A block that does not begin at a multiple of
// the block size (possible in February 2026 after a preemption) has a name that nobody looks up.
void BlisKv::SetName(BlockId id, RequestId request, std::int64_t end) {
  if (!options_.prefix_caching || end % options_.block_size != 0) return;
  Block& block = At(id);
  block.named = true;
  block.name = NameOf(request, end / options_.block_size - 1);
  table_[block.name] = id;
}

// A first allocation found no block for its last tokens: fresh blocks return to the head of the
// free list under their old names, claimed ones to where they were not held: the tail.
void BlisKv::Undo(Holding& holding, std::int64_t claimed) {
  while (!taken_.empty()) {
    const Taken taken = taken_.back();
    taken_.pop_back();
    Block& block = At(taken.id);
    if (block.named) table_.erase(block.name);
    block.named = taken.named;
    block.name = taken.name;
    block.holders = 0;
    if (taken.named) {
      table_[taken.name] = taken.id;
      --evicted_;
    }
    Link(taken.id, At(kEnds).next);
    ++free_;
    --misses_;
  }
  for (std::int64_t i = 0; i < claimed; ++i) {
    const BlockId id = holding.blocks[static_cast<std::size_t>(i)];
    --At(id).holders;
    if (!claimed_free_[static_cast<std::size_t>(i)]) continue;
    Link(id, kEnds);
    ++free_;
  }
  hits_ -= claimed;
  holding = {};
}

void BlisKv::Release(Holding& holding) {
  for (std::size_t i = holding.blocks.size(); i > 0; --i) {
    const BlockId id = holding.blocks[i - 1];
    if (--At(id).holders > 0) continue;
    Link(id, kEnds);
    ++free_;
  }
  holding = {};
}

BlisKv::BlockId BlisKv::PopFree() {
  BlockId id = At(kEnds).next;
  if (id == kEnds) return kNone;
  --free_;
  if (id != kUntouched) {
    Unlink(id);
    return id;
  }
  id = static_cast<BlockId>(blocks_.size());
  blocks_.push_back({});
  if (static_cast<std::int64_t>(blocks_.size()) - 2 == options_.blocks) Unlink(kUntouched);
  return id;
}

void BlisKv::Link(BlockId id, BlockId before) {
  const BlockId previous = At(before).previous;
  At(id).previous = previous;
  At(id).next = before;
  At(previous).next = id;
  At(before).previous = id;
}

void BlisKv::Unlink(BlockId id) {
  At(At(id).previous).next = At(id).next;
  At(At(id).next).previous = At(id).previous;
}

}  // namespace servecast
