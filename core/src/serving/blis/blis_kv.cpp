// See blis_kv.h.
#include "serving/blis/blis_kv.h"

#include <algorithm>
#include <utility>

#include "serving/policy.h"

namespace servecast {

BlisKv::BlisKv(const Options& options, const RequestTable& requests)
    : options_(options), requests_(requests), free_(options.blocks), blocks_(2) {
  At(kEnds).previous = At(kEnds).next = kEnds;
  if (options.blocks > 0) Link(kUntouched, kEnds);
  report_.tiers[0].blocks = options.host.blocks;
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
    const auto at = by_name_.find(NameOf(request, k));
    if (at == by_name_.end() || Of(at->second).owner == kNone) break;
    found_.push_back(Of(at->second).owner);
  }
  return found();
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

bool BlisKv::Admit(Holding& holding, RequestId request, std::int64_t to) {
  if (mirrors()) ReloadPrompt(request);
  if (TakeBehindFound(holding, request, to)) return true;
  if (!offloads() || !ReloadAll()) return false;
  LookUp(request, PromptOf(request));
  return TakeBehindFound(holding, request, to);
}

bool BlisKv::Allocate(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                      bool prefill) {
  if (mirrors() && holding.whole_at != losses_) {
    ReloadPrompt(request);
    holding.whole_at = Whole(holding, request) ? losses_ : -1;
  }
  if (Take(holding, request, from, to, 0, prefill)) return true;
  return offloads() && ReloadAll() && Take(holding, request, from, to, 0, prefill);
}

bool BlisKv::TakeBehindFound(Holding& holding, RequestId request, std::int64_t to) {
  const std::int64_t from = std::min(found() * options_.block_size, to);
  return Take(holding, request, from, to, holding.blocks.empty() ? found() : 0, true);
}

// The first `cached` blocks of the last LookUp are claimed before.
bool BlisKv::Take(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                  std::int64_t cached, bool prefill) {
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
  const bool named = block.content != kNone;
  taken_.push_back({id, named, named ? Of(block.content).name : 0});
  Forget(id);
  evicted_ += named ? 1 : 0;
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
  Name(id, NameOf(request, end / options_.block_size - 1));
}

// Requires: the block carries no name. It is where the content is found from now on.
void BlisKv::Name(BlockId id, std::uint64_t name) {
  const auto [at, is_new] = by_name_.try_emplace(name, kNone);
  if (is_new) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<ContentId>(contents_.size()));
      contents_.emplace_back();
    }
    at->second = unused_.back();
    unused_.pop_back();
    Of(at->second) = Content{};
    Of(at->second).name = name;
  }
  At(id).content = at->second;
  Of(at->second).owner = id;
  ++Of(at->second).carriers;
}

// Whoever owns its name by now loses that, too.
void BlisKv::Forget(BlockId id) {
  const ContentId content = At(id).content;
  if (content == kNone) return;
  At(id).content = kNone;
  Of(content).owner = kNone;
  losses_ += --Of(content).carriers > 0 ? 1 : 0;
  DropUnused(content);
}

void BlisKv::DropUnused(ContentId id) {
  if (Of(id).carriers > 0 || Of(id).mirrored) return;
  by_name_.erase(Of(id).name);
  unused_.push_back(id);
}

// A first allocation found no block for its last tokens: fresh blocks return to the head of the
// free list under their old names, claimed ones to where they were not held: the tail.
void BlisKv::Undo(Holding& holding, std::int64_t claimed) {
  while (!taken_.empty()) {
    const Taken taken = taken_.back();
    taken_.pop_back();
    Forget(taken.id);
    At(taken.id).holders = 0;
    if (taken.named) {
      Name(taken.id, taken.name);
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
  if (offloads()) Offload();
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
  named_free_ += At(id).content == kNone ? 0 : 1;
  const BlockId previous = At(before).previous;
  At(id).previous = previous;
  At(id).next = before;
  At(previous).next = id;
  At(before).previous = id;
}

void BlisKv::Unlink(BlockId id) {
  named_free_ -= At(id).content == kNone ? 0 : 1;
  At(At(id).previous).next = At(id).next;
  At(At(id).next).previous = At(id).previous;
}

// --- The host's memory ---------------------------------------------------------------------------

// February, after a release: all free blocks that have a name, in the order in which they would be
// overwritten, as far as there is room. They stay free, without their names, behind all others.
void BlisKv::Offload() {
  const double usage = static_cast<double>(used()) / static_cast<double>(options_.blocks);
  const auto full = [this] {
    return static_cast<std::int64_t>(offloaded_.size()) >= options_.host.blocks;
  };
  if (usage <= options_.host.threshold || full()) return;
  // From the tail, where they are: what was here before has no names any more.
  std::vector<BlockId> named;
  BlockId at = kEnds;
  while (static_cast<std::int64_t>(named.size()) < named_free_) {
    at = At(at).previous;
    if (At(at).content != kNone) named.push_back(at);
  }
  for (; !named.empty() && !full(); named.pop_back()) {
    const BlockId id = named.back();
    offloaded_[id] = {Of(At(id).content).name, now_};
    ++report_.offloaded_blocks;
    Unlink(id);
    Forget(id);
    Link(id, kEnds);
  }
}

// February, after a failure: whatever is not on the GPU, in order of the blocks it was in, into the
// blocks that would be overwritten next; those may have come back just now. False: nothing.
bool BlisKv::ReloadAll() {
  bool any = false;
  for (auto at = offloaded_.begin(); at != offloaded_.end();) {
    const auto content = by_name_.find(at->second.name);
    if (content != by_name_.end() && Of(content->second).owner != kNone) {
      ++at;
      continue;
    }
    if (!Reload(at->second.name)) break;
    if (now_ - at->second.since < 1000) ++report_.thrashed_blocks;
    at = offloaded_.erase(at);
    any = true;
  }
  host_misses_ += any ? 0 : 1;
  return any;
}

// Today, before each allocation: what the host has of the prompt behind its cached beginning, one
// block after another, while there are free blocks that did not come back just now. What they held
// is lost, even of that beginning.
void BlisKv::ReloadPrompt(RequestId request) {
  const std::int64_t prompt = PromptOf(request);
  std::int64_t block = LookUp(request, prompt);
  bool any = false;
  for (std::int64_t room = free_; room > 0 && block < prompt / options_.block_size; --room) {
    const auto at = by_name_.find(NameOf(request, block));
    if (at == by_name_.end() || !Of(at->second).mirrored) break;
    const ContentId content = at->second;
    Reload(Of(content).name);
    Touch(content, content);
    any = true;
    ++block;
  }
  if (any) LookUp(request, prompt);
}

bool BlisKv::Reload(std::uint64_t name) {
  const BlockId id = PopFree();
  if (id == kNone) return false;
  evicted_ += At(id).content == kNone ? 0 : 1;
  Forget(id);
  Name(id, name);
  Link(id, kEnds);
  ++free_;
  pending_ = std::min(pending_ + options_.host.reload, kMaxStepNs / 1000);
  ++report_.tiers[0].loaded_blocks;
  return true;
}

BlisKv::Us BlisKv::TakeTransfer() { return std::exchange(pending_, 0); }

void BlisKv::Mirror(const Holding& holding) {
  if (!mirrors()) return;
  const std::vector<BlockId>& blocks = holding.blocks;
  for (std::size_t i = 0; i < blocks.size();) {
    const ContentId first = At(blocks[i++]).content;
    if (first == kNone) continue;
    if (!Of(first).mirrored) {
      Insert(first);
      continue;
    }
    // Contents that lie there one after the other, as the last step left them, move together.
    ContentId last = first;
    for (; i < blocks.size(); ++i) {
      const ContentId next = At(blocks[i]).content;
      if (next == kNone || Of(last).behind != next) break;
      last = next;
    }
    Touch(first, last);
  }
}

void BlisKv::Insert(ContentId id) {
  ++report_.offloaded_blocks;
  if (mirrored_ == options_.host.blocks) {
    const ContentId oldest = oldest_;
    Cut(oldest, oldest);
    --mirrored_;
    Of(oldest).mirrored = false;
    DropUnused(oldest);
    ++report_.thrashed_blocks;
  }
  ++mirrored_;
  Of(id).mirrored = true;
  Append(id, id);
}

// Those from `first` to `last`, of what the host has, become the last to leave it.
void BlisKv::Touch(ContentId first, ContentId last) {
  if (last == newest_) return;
  Cut(first, last);
  Append(first, last);
}

void BlisKv::Cut(ContentId first, ContentId last) {
  const ContentId ahead = Of(first).ahead, behind = Of(last).behind;
  (ahead == kNone ? oldest_ : Of(ahead).behind) = behind;
  (behind == kNone ? newest_ : Of(behind).ahead) = ahead;
}

void BlisKv::Append(ContentId first, ContentId last) {
  Of(first).ahead = newest_;
  Of(last).behind = kNone;
  (newest_ == kNone ? oldest_ : Of(newest_).behind) = first;
  newest_ = last;
}

// After a LookUp: whether a request has every full block of its prompt where it is found or under
// the same name. Then there is nothing to reload for it until a name is lost.
bool BlisKv::Whole(const Holding& holding, RequestId request) {
  const std::int64_t blocks = PromptOf(request) / options_.block_size;
  if (found() < blocks || static_cast<std::int64_t>(holding.blocks.size()) < blocks) return false;
  for (std::size_t k = 0; k < static_cast<std::size_t>(blocks); ++k) {
    if (At(holding.blocks[k]).content != At(found_[k]).content) return false;
  }
  return true;
}

}  // namespace servecast
