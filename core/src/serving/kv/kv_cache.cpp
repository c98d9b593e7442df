// See kv_cache.h.
#include "serving/kv/kv_cache.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace servecast {

KvCache::KvCache(const Options& options, const RequestTable& requests, std::vector<KvTier> tiers)
    : options_(options), requests_(requests), free_(options.usable_blocks) {
  if (!options_.prefix_caching) return;
  if (!tiers.empty()) {
    tiers_.emplace(std::move(tiers));
    offload_from_ = static_cast<std::int64_t>(
        std::ceil(options_.offload_threshold * static_cast<double>(total())));
  }
  const std::size_t segments =
      requests.segments.empty() ? requests.arrival.size() : requests.segments.size();
  segments_.Resize(segments, options_.sparse);
  for (const ContentSegment& segment : requests.segments) {
    if (segment.parent < 0) continue;
    if (shared_.empty()) shared_.assign(segments, false);
    shared_[static_cast<std::size_t>(segment.parent)] = true;
    any_shared_ = true;
  }
  if (options_.outlives_attempts && !requests.backoff.empty()) {
    shared_.assign(segments, true);
    any_shared_ = true;
  }
  PushFree(kBlank, free_, true);
}

// ---- Finding and holding -------------------------------------------------------------------

// The first `blocks` full blocks of a request by segment, into path_, its own segment first.
void KvCache::PathOf(RequestId request, std::int64_t blocks) {
  path_.clear();
  SegmentId segment = SegmentOf(request);
  for (std::int64_t last = blocks; last > 0 && segment >= 0;) {
    const ContentSegment content = Content(segment);
    const std::int64_t first = content.parent < 0 ? 0 : FullBlocks(content.shared_tokens);
    if (first < last) path_.push_back({segment, first, last});
    last = std::min(last, first);
    segment = content.parent;
  }
}

KvCache::Hit KvCache::LookUp(RequestId request, std::int64_t known_tokens, bool without_last) {
  Hit hit;
  found_.clear();
  if (!options_.prefix_caching) return hit;
  Settle();
  PathOf(request, FullBlocks(known_tokens - 1));  // rule 14: never all of it
  for (std::size_t i = path_.size(); i > 0; --i) {
    if (!FindIn(path_[i - 1])) break;
  }
  if (without_last && !found_.empty() && --found_.back().last == found_.back().first) {
    found_.pop_back();
  }
  for (const Found& found : found_) {
    hit.blocks += found.last - found.first;
    if (At(found.part).holders > 0) continue;
    hit.idle += found.last - found.first;
    hit.copied = hit.copied || segments_.Copied(At(found.part).segment);
  }
  if (tiered()) hit.stored = FindInTiers(hit.blocks);
  return hit;
}

// The blocks of path_ from `block` on, up to the first that no tier has, into stored_; how many.
std::int64_t KvCache::FindInTiers(std::int64_t block) {
  const std::int64_t from = block;
  stored_.clear();
  for (std::size_t i = path_.size(); i > 0; --i) {
    const Range& range = path_[i - 1];
    if (range.last <= block) continue;
    const std::int64_t last = tiers_->FoundUpTo(range.segment, block, range.last);
    if (last > block) stored_.push_back({range.segment, block, last});
    block = last;
    if (last < range.last) break;
  }
  return block - from;
}

KvTiers::Loaded KvCache::LoadHit(TimeNs now) {
  KvTiers::Loaded loaded{};
  for (const Range& range : stored_) {
    tiers_->Load(range.segment, range.first, range.last, now, loaded);
  }
  return loaded;
}

// Extends found_ by the cached blocks of a range, of several copies the one that was registered
// first (rule 17). False when some block is missing: nothing behind it counts.
bool KvCache::FindIn(const Range& range) {
  PartId start = segments_.Head(range.segment);
  std::int64_t block = range.first;
  while (block < range.last) {
    while (start != kNone && At(start).first + At(start).count <= block) start = At(start).after;
    PartId best = kNone;
    std::int64_t last = range.last;
    for (PartId id = start; id != kNone; id = At(id).after) {
      const Part& part = At(id);
      if (part.first > block) {
        if (best == kNone || part.first >= At(best).first + At(best).count) break;
        if (part.registered > At(best).registered) continue;
        last = std::min(last, part.first);  // an older copy begins: look again there
        break;
      }
      if (part.first + part.count <= block) continue;
      if (best == kNone || part.registered < At(best).registered) best = id;
    }
    if (best == kNone) return false;
    last = std::min(last, At(best).first + At(best).count);
    if (!found_.empty() && found_.back().part == best && found_.back().last == block) {
      found_.back().last = last;
    } else {
      found_.push_back({best, block, last});
    }
    block = last;
  }
  return true;
}

void KvCache::HoldHit(Holding& holding) {
  SERVECAST_CHECK(pending_ == 0 || found_.empty(), "a hit is held before blocks are taken");
  for (const Found& found : found_) {
    PartId id = found.part;
    while (At(id).first + At(id).count <= found.first) id = At(id).sibling;
    if (At(id).first < found.first) id = SplitAt(id, found.first);
    if (At(id).first + At(id).count > found.last) SplitAt(id, found.last);
    Part& part = At(id);
    if (part.holders == 0) {
      UnlinkFree(id);
      free_ -= part.count;
    }
    ++part.holders;
    holding.pieces.push_back({id, part.count});
    holding.blocks += part.count;
  }
}

void KvCache::RegisterShared(Holding& holding, RequestId request, std::int64_t full) {
  if (!options_.prefix_caching || holding.blocks >= full) return;
  PathOf(request, full);
  for (std::size_t i = path_.size(); i > 0; --i) {
    const Range& range = path_[i - 1];
    if (range.last <= holding.blocks) continue;
    if (!shared_[static_cast<std::size_t>(range.segment)]) return;
    const std::int64_t count = range.last - holding.blocks;
    // What it registered last is near in the segment's list, the list's end may be far.
    const PartId near = holding.pieces.empty() ? kNone : holding.pieces.back().part;
    const bool same = near != kNone && At(near).segment == range.segment;
    const PartId id = NewPart(range.segment, holding.blocks, count, same ? near : kNone);
    At(id).holders = 1;
    holding.pieces.push_back({id, count});
    holding.blocks += count;
  }
}

// Rule 19: from the last block to the first.
void KvCache::Release(Holding& holding, RequestId request, std::int64_t held,
                      std::int64_t registered_tokens, bool findable) {
  const std::int64_t of_windows = windows().Held(held);
  free_ += of_windows;
  if (!options_.prefix_caching) {
    free_ += held;
    SERVECAST_CHECK(free_ <= total(), "I4: used + free = total KV blocks");
    return;
  }
  Settle();
  if (of_windows > 0) PushFree(kBlank, of_windows, false);
  const std::int64_t full = std::max(FullBlocks(registered_tokens), holding.blocks);
  if (held > full) {
    PushFree(kBlank, held - full, options_.contentless_first);
    free_ += held - full;
  }
  if (full > holding.blocks) {
    const SegmentId own = SegmentOf(request);
    const std::int64_t count = full - holding.blocks;
    const bool shared = !shared_.empty() && shared_[static_cast<std::size_t>(own)];
    // The retry of a request asks for what the attempt before it stored.
    if (findable || shared || tiered() ||
        !requests_.backoff.empty()) {  // in a tier, too, it is a block of its own segment
      LinkFree(NewPart(own, holding.blocks, count, kNone), kNone);
    } else {
      PushFree(kNameless, count, false);
    }
    free_ += count;
  }
  for (std::size_t i = holding.pieces.size(); i > 0; --i) {
    const Holding::Piece& piece = holding.pieces[i - 1];
    release_.clear();
    PartId id = piece.part;
    for (std::int64_t blocks = 0; blocks < piece.blocks; id = At(id).sibling) {
      release_.push_back(id);
      blocks += At(id).count;
    }
    for (std::size_t j = release_.size(); j > 0; --j) {
      Part& part = At(release_[j - 1]);
      if (--part.holders > 0) continue;
      free_ += part.count;
      LinkFree(release_[j - 1], kNone);
      MergeWithAhead(release_[j - 1]);
    }
  }
  holding.pieces.clear();
  holding.blocks = 0;
  SERVECAST_CHECK(free_ <= total(), "I4: used + free = total KV blocks");
}

// ---- Parts ---------------------------------------------------------------------------------

// Blocks come from the front of the free list, a part's last block first; content is lost.
void KvCache::PopFree(TimeNs now) {
  if (!options_.prefix_caching) {
    pending_ = 0;
    return;
  }
  while (pending_ > 0) {
    const PartId id = front_;
    Part& part = At(id);
    const std::int64_t count = std::min(pending_, part.count);
    part.count -= count;
    pending_ -= count;
    if (part.segment != kBlank) evicted_ += count;
    if (tiered() && part.segment != kBlank) {
      // With the last of these so many are in use, with the one before it one fewer.
      const std::int64_t in_use = used() - pending_;
      const std::int64_t offloaded = std::clamp<std::int64_t>(in_use - offload_from_ + 1, 0, count);
      const std::int64_t end = part.first + part.count + offloaded;
      if (offloaded > 0) tiers_->Offload(part.segment, end - offloaded, end, now);
    }
    if (part.count == 0) {
      UnlinkFree(id);
      Drop(id);
    }
  }
}

// A new part with content, findable from now on. `near`: some part of the segment that comes before
// it, or kNone.
KvCache::PartId KvCache::NewPart(SegmentId segment, std::int64_t first, std::int64_t count,
                                 PartId near) {
  PartId id;
  if (unused_.empty()) {
    id = static_cast<PartId>(parts_.size());
    parts_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
    At(id) = Part{};
  }
  Part& part = At(id);
  part.segment = segment;
  part.first = first;
  part.count = count;
  if (segment < 0) return id;
  part.registered = ++registrations_;
  const PartId head = segments_.Head(segment);
  LinkInSegment(id, near != kNone || head == kNone ? near : At(head).before);
  if (head == kNone) {
    segments_.SetCopied(segment, false);
    return id;
  }
  const PartId before = id == segments_.Head(segment) ? kNone : At(id).before;
  const PartId after = At(id).after;
  if ((before != kNone && At(before).first + At(before).count > first) ||
      (after != kNone && At(after).first < first + count)) {
    segments_.SetCopied(segment, true);
  }
  return id;
}

// Puts a part into its segment's list: `start`, or some part before it, comes before it; kNone: the
// list is empty.
void KvCache::LinkInSegment(PartId id, PartId start) {
  Part& part = At(id);
  const PartId head = segments_.Head(part.segment);
  if (head == kNone) {
    segments_.SetHead(part.segment, id);
    part.before = id;
    return;
  }
  const auto precedes = [&](PartId other) {
    const Part& o = At(other);
    return o.first != part.first ? o.first < part.first : o.registered < part.registered;
  };
  PartId at = start;
  while (at != head && !precedes(at)) at = At(at).before;
  if (!precedes(at)) {  // it is the new head
    part.after = head;
    part.before = At(head).before;
    At(head).before = id;
    segments_.SetHead(part.segment, id);
    return;
  }
  while (At(at).after != kNone && precedes(At(at).after)) at = At(at).after;
  part.before = at;
  part.after = At(at).after;
  At(at).after = id;
  (part.after == kNone ? At(head) : At(part.after)).before = id;
}

// Its blocks have no content any more.
void KvCache::Drop(PartId id) {
  Part& part = At(id);
  if (part.segment >= 0) {
    const PartId head = segments_.Head(part.segment);
    if (head == id) {
      segments_.SetHead(part.segment, part.after);
      if (part.after != kNone) At(part.after).before = part.before;
    } else {
      At(part.before).after = part.after;
      (part.after == kNone ? At(head) : At(part.after)).before = part.before;
    }
  }
  unused_.push_back(id);
}

// `block` and what is behind it becomes a part of its own, which is returned.
KvCache::PartId KvCache::SplitAt(PartId id, std::int64_t block) {
  const PartId high = NewPart(kNameless, 0, 0, kNone);
  Part& a = At(id);
  Part& b = At(high);
  b.segment = a.segment;
  b.first = block;
  b.count = a.first + a.count - block;
  b.holders = a.holders;
  b.registered = a.registered;
  b.sibling = a.sibling;
  a.sibling = high;
  a.count = block - a.first;
  LinkInSegment(high, id);
  if (a.holders == 0) LinkFree(high, id);  // its last blocks are taken first
  return high;
}

// A free part right behind the free part that goes on where it ends becomes one with it: their
// blocks are taken in the same order, and while no block has a copy it does not matter which was
// registered first. So a conversation of many turns, or a prefix of many chunks, is one part again.
void KvCache::MergeWithAhead(PartId id) {
  Part& part = At(id);
  const PartId ahead = part.ahead;
  if (ahead == kNone || part.segment < 0 || At(ahead).segment != part.segment ||
      At(ahead).first != part.first + part.count || segments_.Copied(part.segment)) {
    return;
  }
  part.count += At(ahead).count;
  UnlinkFree(ahead);
  Drop(ahead);
}

// Blocks whose content no request can ask for, to the free list; equal neighbours are one part.
void KvCache::PushFree(SegmentId nameless, std::int64_t count, bool front) {
  const PartId neighbour = front ? front_ : back_;
  if (neighbour != kNone && At(neighbour).segment == nameless) {
    At(neighbour).count += count;
    return;
  }
  LinkFree(NewPart(nameless, 0, count, kNone), front ? front_ : kNone);
}

// Into the free list ahead of `behind`; kNone: at its end.
void KvCache::LinkFree(PartId id, PartId behind) {
  Part& part = At(id);
  part.behind = behind;
  part.ahead = behind == kNone ? back_ : At(behind).ahead;
  (part.ahead == kNone ? front_ : At(part.ahead).behind) = id;
  (behind == kNone ? back_ : At(behind).ahead) = id;
}

void KvCache::UnlinkFree(PartId id) {
  Part& part = At(id);
  (part.ahead == kNone ? front_ : At(part.ahead).behind) = part.behind;
  (part.behind == kNone ? back_ : At(part.behind).ahead) = part.ahead;
  part.ahead = part.behind = kNone;
}

}  // namespace servecast
