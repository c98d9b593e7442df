// Paged KV cache of one replica: vLLM's block pool with prefix caching, without a block in it.
//
// Which physical block a request holds never matters, only what its content is and when it will be
// overwritten. So blocks are kept as parts: consecutive blocks of one content segment that were
// made findable together, are held by the same requests and, when no request holds them, lie side
// by side in the free list. Content that can never be asked for again has no name: while held it is
// a number; when free it is a nameless part of the list. Without prefix caching numbers suffice.
//
// Taking blocks from the front of the free list is deferred: it only matters once the list is read
// or written, so a run of decode steps costs one pass over what it overwrote. With tiers of slower
// memory behind it (kv_tiers.h) it is done at once, as there it matters when a block was taken.
//
// Rules 14 to 20 of the vLLM golden traces' README are meant by "rule" in kv_cache.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "cost/kv_groups.h"
#include "serving/kv/kv_tiers.h"
#include "workload/request_table.h"

namespace servecast {

class KvCache {
 public:
  struct Options {
    std::int64_t usable_blocks = 0;
    std::int64_t block_size = 16;
    bool prefix_caching = false;
    bool contentless_first = true;   // freed blocks without content go to the front
    double offload_threshold = 0;    // share of the blocks in use from which content is offloaded
    bool sparse = false;             // sees few of all requests
    KvWindows windows;               // without tiers only
    bool outlives_attempts = false;  // blocks are held on when an attempt of a request is over
  };

  // `requests` outlives the cache; of it only content and segments are read.
  KvCache(const Options& options, const RequestTable& requests, std::vector<KvTier> tiers = {});

  std::int64_t total() const { return options_.usable_blocks; }
  std::int64_t free() const { return free_; }  // cached but unused blocks are free
  std::int64_t used() const { return total() - free_; }
  std::int64_t block_size() const { return options_.block_size; }
  bool prefix_caching() const { return options_.prefix_caching; }
  bool tiered() const { return tiers_.has_value(); }

  // Blocks that hold the KV of so many tokens in the layers that keep all of them.
  std::int64_t BlocksFor(std::int64_t tokens) const { return CeilDiv(tokens, block_size()); }
  // Tokens that the last of them has room for.
  std::int64_t RoomBehind(std::int64_t tokens) const {
    return BlocksFor(tokens) * block_size() - tokens;
  }
  // The same and the blocks of its windows: what a request takes of the pool for its first `blocks`
  // blocks. What windows hold has no content: a hit saves none of it.
  const KvWindows& windows() const { return options_.windows; }
  std::int64_t WithWindows(std::int64_t blocks) const { return blocks + windows().Held(blocks); }
  std::int64_t FullBlocks(std::int64_t tokens) const { return tokens / block_size(); }

  // Check, then act: callers ask whether `blocks` <= free() before they take. O(1); with tiers
  // O(parts that are overwritten), and `now` is when they are.
  void Take(std::int64_t blocks, TimeNs now = 0) {
    free_ -= blocks;
    pending_ += blocks;
    SERVECAST_CHECK(free_ >= 0, "I4: used + free = total KV blocks");
    if (tiered()) [[unlikely]]
      PopFree(now);
  }

  // The blocks of a request from its first on that others can find, too: hits, and what it computed
  // of shared segments. What it holds beyond them is a number that the replica knows.
  struct Holding {
    struct Piece {
      std::int32_t part = -1;  // the first of parts linked by `sibling`
      std::int64_t blocks = 0;
    };
    std::vector<Piece> pieces;
    std::int64_t blocks = 0;
  };

  struct Hit {
    std::int64_t blocks = 0;
    std::int64_t idle = 0;    // of them held by no request: using them takes free ones
    bool copied = false;      // an idle one may have a copy that some request holds
    std::int64_t stored = 0;  // more blocks, behind those, in the tiers
  };

  // Longest cached beginning of `known_tokens` tokens of a request, at most all but one token.
  // Nothing is used by it: what is overwritten next stays the same. O(parts on its path).
  // `without_last`: the last block that is found does not count (drafters that need the model's
  // hidden states have none of it).
  Hit LookUp(RequestId request, std::int64_t known_tokens, bool without_last = false);
  // Holds what the last LookUp found. Requires: nothing happened in between.
  void HoldHit(Holding& holding);
  // Takes what the last LookUp found in the tiers out of them: the GPU blocks for it are the
  // caller's to take, after this. Requires: as HoldHit, and that it found some.
  KvTiers::Loaded LoadHit(TimeNs now);
  // Of what was loaded, see KvTiers.
  TimeNs TransferTime(const KvTiers::Loaded& loaded) const { return tiers_->TransferTime(loaded); }
  // The first `tokens` tokens of a request are scheduled: makes their full blocks findable. Content
  // that only its owner can ask for waits until Release.
  void Register(Holding& holding, RequestId request, std::int64_t tokens) {
    if (any_shared_) RegisterShared(holding, request, FullBlocks(tokens));
  }
  // Gives back all `held` blocks of a request, and those of its windows. Of the former those of its
  // first `registered_tokens` tokens have content; `findable`: a request (itself, or a later turn)
  // may ask for it.
  void Release(Holding& holding, RequestId request, std::int64_t held,
               std::int64_t registered_tokens, bool findable);

  // Cached blocks whose content was overwritten, so far.
  std::int64_t Evicted() {
    Settle();
    return evicted_;
  }
  KvOffloadReport OffloadReport() const { return tiered() ? tiers_->report() : KvOffloadReport{}; }

 private:
  using PartId = std::int32_t;
  using SegmentId = std::int32_t;
  static constexpr PartId kNone = -1;
  static constexpr SegmentId kBlank = -1;     // without content
  static constexpr SegmentId kNameless = -2;  // content that no request can ask for

  struct Part {
    SegmentId segment = kBlank;
    std::int64_t first = 0, count = 0;  // blocks of the segment
    std::int64_t holders = 0;
    std::int64_t registered = 0;           // order in which copies became findable
    PartId before = kNone, after = kNone;  // in its segment, by (first, registered)
    PartId ahead = kNone, behind = kNone;  // in the free list
    PartId sibling = kNone;                // the next blocks of a part that was split
  };
  struct Range {
    SegmentId segment;
    std::int64_t first, last;  // blocks [first, last)
  };
  struct Found {
    PartId part;
    std::int64_t first, last;
  };

  // By segment: the head of its parts, whose `before` is the tail, and whether some block of it was
  // there twice since it was last empty. Sparse: of those with parts only.
  class Segments {
   public:
    void Resize(std::size_t count, bool sparse) {
      sparse_ = sparse;
      if (sparse) return;
      heads_.assign(count, kNone);
      copied_.assign(count, false);
    }
    PartId Head(SegmentId segment) const {
      if (!sparse_) return heads_[static_cast<std::size_t>(segment)];
      const auto at = some_.find(segment);
      return at == some_.end() ? kNone : at->second.first;
    }
    void SetHead(SegmentId segment, PartId head) {
      if (!sparse_) {
        heads_[static_cast<std::size_t>(segment)] = head;
      } else if (head == kNone) {
        some_.erase(segment);
      } else {
        some_[segment].first = head;
      }
    }
    bool Copied(SegmentId segment) const {
      if (!sparse_) return copied_[static_cast<std::size_t>(segment)];
      const auto at = some_.find(segment);
      return at != some_.end() && at->second.second;
    }
    // Requires: the segment has parts.
    void SetCopied(SegmentId segment, bool copied) {
      if (sparse_) {
        some_[segment].second = copied;
      } else {
        copied_[static_cast<std::size_t>(segment)] = copied;
      }
    }

   private:
    bool sparse_ = false;
    std::vector<PartId> heads_;
    std::vector<bool> copied_;
    std::map<SegmentId, std::pair<PartId, bool>> some_;
  };

  Part& At(PartId id) { return parts_[static_cast<std::size_t>(id)]; }
  SegmentId SegmentOf(RequestId request) const {
    return requests_.content.empty() ? request
                                     : requests_.content[static_cast<std::size_t>(request)];
  }
  ContentSegment Content(SegmentId segment) const {
    return requests_.segments.empty() ? ContentSegment{}
                                      : requests_.segments[static_cast<std::size_t>(segment)];
  }
  void PathOf(RequestId request, std::int64_t blocks);
  bool FindIn(const Range& range);
  void RegisterShared(Holding& holding, RequestId request, std::int64_t full);
  // Never with tiers: there nothing is left pending.
  void Settle() {
    if (pending_ > 0) PopFree(0);
  }
  void PopFree(TimeNs now);
  std::int64_t FindInTiers(std::int64_t block);

  PartId NewPart(SegmentId segment, std::int64_t first, std::int64_t count, PartId near);
  void Drop(PartId id);
  PartId SplitAt(PartId id, std::int64_t block);
  void LinkInSegment(PartId id, PartId start);
  void MergeWithAhead(PartId id);
  void PushFree(SegmentId nameless, std::int64_t count, bool front);
  void LinkFree(PartId id, PartId behind);
  void UnlinkFree(PartId id);

  Options options_;
  const RequestTable& requests_;
  std::optional<KvTiers> tiers_;
  std::int64_t offload_from_ = 0;  // used blocks
  std::int64_t free_, pending_ = 0, evicted_ = 0, registrations_ = 0;
  bool any_shared_ = false;
  std::vector<bool> shared_;  // segment: others may ask for it while it is held; empty: none
  Segments segments_;
  std::vector<Part> parts_;
  std::vector<PartId> unused_;
  PartId front_ = kNone, back_ = kNone;  // free list
  std::vector<Range> path_;              // scratch: leaf first
  std::vector<Found> found_;             // by the last LookUp
  std::vector<Range> stored_;            // likewise, in the tiers
  std::vector<PartId> release_;          // scratch
};

}  // namespace servecast
