// See blis_kv.h.
#include "serving/blis/blis_kv.h"

#include <algorithm>
#include <utility>

#include "serving/blis/blis_events.h"
#include "serving/policy.h"

namespace servecast {
namespace {

std::size_t SegmentsOf(const RequestTable& requests) {
  return std::max(requests.segments.size(), static_cast<std::size_t>(requests.size()));
}

}  // namespace

BlisKv::BlisKv(const Options& options, const RequestTable& requests)
    : options_(options),
      requests_(requests),
      runs_(options.blocks, SegmentsOf(requests), offloads()),
      mirror_(options.host.blocks, mirrors() ? SegmentsOf(requests) : 0) {
  report_.tiers[0].blocks = options.host.blocks;
  FindObserved();
}

// A segment is observed if another one begins with it, or if two of its requests may be there at
// once: turns come one after the other.
void BlisKv::FindObserved() {
  const std::vector<SegmentId>& content = requests_.content;
  if (content.empty()) return;
  observed_.assign(SegmentsOf(requests_), false);
  for (const ContentSegment& segment : requests_.segments) {
    if (segment.parent >= 0) observed_[static_cast<std::size_t>(segment.parent)] = true;
  }
  std::vector<bool> seen(observed_.size(), false);
  for (std::size_t i = 0; i < content.size(); ++i) {
    const auto segment = static_cast<std::size_t>(content[i]);
    const bool follows = i > 0 && content[i - 1] == content[i] && i < requests_.think.size() &&
                         requests_.think[i] >= 0;
    if (seen[segment] && !follows) observed_[segment] = true;
    seen[segment] = true;
  }
}

// Any key that is equal for equal beginnings does what BLIS's chain of hashes does: RequestTable
// says when full block k of two requests is the same. Of the full blocks [first, last) of a request
// those that are in one segment with the first.
BlisKv::Range BlisKv::RangeOf(RequestId request, std::int64_t first, std::int64_t last) const {
  SegmentId segment = SegmentOf(request);
  if (!requests_.segments.empty()) {
    const auto shared = [this](SegmentId s) {
      return requests_.segments[static_cast<std::size_t>(s)].shared_tokens / options_.block_size;
    };
    for (; first < shared(segment);) {
      last = std::min(last, shared(segment));
      segment = requests_.segments[static_cast<std::size_t>(segment)].parent;
    }
  }
  return {segment, first, last};
}

std::int64_t BlisKv::LookUp(RequestId request, std::int64_t prompt_tokens) {
  found_.clear();
  found_blocks_ = 0;
  if (!options_.prefix_caching) return 0;
  const std::int64_t full = prompt_tokens / options_.block_size;
  while (found_blocks_ < full) {
    const Range range = RangeOf(request, found_blocks_, full);
    found_blocks_ = runs_.Find(range, found_);
    if (found_blocks_ < range.last) break;
  }
  return found_blocks_;
}

// --- Taking and giving back ----------------------------------------------------------------------

std::int64_t BlisKv::IdleFound() const {
  std::int64_t idle = 0;
  for (const BlisRuns::Found& found : found_) {
    idle += runs_.IsFree(found) ? found.last - found.first : 0;
  }
  return idle;
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
  if (mirrors() && holding.whole_at != runs_.losses()) {
    ReloadPrompt(request);
    holding.whole_at = Whole(holding, request) ? runs_.losses() : -1;
  }
  if (Take(holding, request, from, to, false, prefill)) return true;
  return offloads() && ReloadAll() && Take(holding, request, from, to, false, prefill);
}

bool BlisKv::TakeBehindFound(Holding& holding, RequestId request, std::int64_t to) {
  const std::int64_t from = std::min(found() * options_.block_size, to);
  return Take(holding, request, from, to, holding.blocks == 0, true);
}

// `claim`: what the last LookUp found stands before. A first allocation of February that finds no
// block for its last tokens, as it forgot that it claims free ones, is undone.
bool BlisKv::Take(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                  bool claim, bool prefill) {
  const std::int64_t fresh = NewBlocksFor(holding, to - from);
  const std::int64_t needed = fresh + (claim ? IdleFound() : 0);
  if (fresh > free() || (needed > free() && options_.counts_claimed_blocks)) return false;
  if (from == to) return true;
  if (needed > free()) {
    Undo(request);
    return false;
  }
  if (claim) Claim(holding);
  misses_ += fresh;
  unused_ += fresh * options_.block_size - (to - from);
  Extend(holding, request, from, to, prefill, true);
  return true;
}

void BlisKv::Claim(Holding& holding) {
  for (const BlisRuns::Found& found : found_) holding.pieces.push_back(runs_.Hold(found));
  holding.blocks = found_blocks_;
  holding.last_fill = options_.block_size;
  hits_ += found_blocks_;
}

// The tokens [from, to) behind what a request holds, into free blocks (`takes`) or such that were
// taken before. A block that gets full has a name from then on, unless a decode fills it at once. A
// block that does not begin at a multiple of the block size (possible in February 2026 after a
// preemption) has a name that is never looked up, so here it gets none.
void BlisKv::Extend(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                    bool prefill, bool takes) {
  const std::int64_t size = options_.block_size;
  bool open = RoomIn(holding) > 0;  // the last block is taken and in no piece
  const std::int64_t begin = from - (open ? holding.last_fill : 0);
  const std::int64_t rest = (to - begin) % size;
  holding.blocks += CeilDiv(to - begin, size) - (open ? 1 : 0);
  holding.last_fill = rest > 0 ? rest : size;
  const bool named = options_.prefix_caching && (prefill || size > 1) && begin % size == 0;
  const std::int64_t end = begin / size + (to - begin) / size;
  for (std::int64_t block = begin / size; block < end;) {
    Range range{BlisRuns::kNameless, block, end};
    if (named) range = RangeOf(request, block, end);
    if (open) {
      range.last = block + 1;
    } else if (takes) {
      range.last = block + runs_.Take(range.size(), range.segment, holding.numbers);
    }
    open = false;
    runs_.Append(holding.pieces, range, holding.numbers);
    block = range.last;
  }
  if (takes && rest > 0 && !open) runs_.Take(1, BlisRuns::kNameless, holding.numbers);
}

// What the allocation would have taken before it found no more: all free blocks but those that it
// claimed, one after the other.
void BlisKv::Undo(RequestId request) {
  const std::int64_t end = found_blocks_ + free() - IdleFound();
  std::vector<Range> ranges;
  for (std::int64_t block = found_blocks_; block < end; block = ranges.back().last) {
    ranges.push_back(RangeOf(request, block, end));
  }
  runs_.Undo(found_, ranges);
}

void BlisKv::Release(Holding& holding) {
  const std::int64_t room = RoomIn(holding);
  unused_ -= room;
  runs_.ReleaseNameless(room > 0 ? 1 : 0, holding.numbers);
  for (; !holding.pieces.empty(); holding.pieces.pop_back()) runs_.Release(holding.pieces.back());
  holding.blocks = holding.last_fill = 0;
  holding.whole_at = -1;
  if (offloads()) Offload();
}

// --- Decodes that are counted --------------------------------------------------------------------

bool BlisKv::IsUnobserved(const Holding& holding, RequestId request, std::int64_t tokens) const {
  if (options_.host.blocks > 0) return false;
  if (!options_.prefix_caching) return true;
  const std::int64_t begin = tokens - (RoomIn(holding) > 0 ? holding.last_fill : 0);
  const std::int64_t block = begin / options_.block_size;
  const SegmentId segment = RangeOf(request, block, block + 1).segment;
  const bool observed = !observed_.empty() && observed_[static_cast<std::size_t>(segment)];
  return !observed && runs_.EndsBefore(segment, block);
}

void BlisKv::TakeForDecodes(std::int64_t blocks) {
  misses_ += blocks;
  unused_ += blocks * options_.block_size;
  while (blocks > 0) blocks -= runs_.Take(blocks, BlisRuns::kNameless, numbers_);
}

// --- The host's memory ---------------------------------------------------------------------------

// February, after a release: moves all free blocks that have a name, in the order in which they
// would be overwritten, as far as there is room. They stay free, without their names, behind all
// others.
void BlisKv::Offload() {
  const double usage = static_cast<double>(used()) / static_cast<double>(options_.blocks);
  const auto full = [this] {
    return static_cast<std::int64_t>(offloaded_.size()) >= options_.host.blocks;
  };
  if (usage <= options_.host.threshold || full()) return;
  runs_.Strip([&](BlisRuns::BlockId number, BlisRuns::Name name) {
    if (full()) return false;
    offloaded_[number] = {name, now_};
    ++report_.offloaded_blocks;
    return true;
  });
}

// February, after a failed allocation: whatever is not on the GPU comes back, in order of the
// blocks it was in, into the blocks that would be overwritten next; these may have come back just
// now. False: nothing came back.
bool BlisKv::ReloadAll() {
  bool any = false;
  for (auto at = offloaded_.begin(); at != offloaded_.end();) {
    if (runs_.Finds(at->second.name)) {
      ++at;
      continue;
    }
    if (free() == 0) break;
    Reload(at->second.name);
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
  const std::int64_t full = prompt / options_.block_size;
  std::int64_t block = LookUp(request, prompt);
  bool any = false;
  for (std::int64_t room = free(); room > 0 && block < full; --room, ++block) {
    const BlisRuns::Name name{RangeOf(request, block, block + 1).segment,
                              static_cast<std::int32_t>(block)};
    if (!mirror_.Has(name)) break;
    Reload(name);
    mirror_.Touch(name);
    any = true;
  }
  if (any) LookUp(request, prompt);
}

void BlisKv::Reload(BlisRuns::Name name) {
  runs_.Rename(name);
  pending_ = std::min(pending_ + options_.host.reload, kMaxStepNs / 1000);
  ++report_.tiers[0].loaded_blocks;
}

BlisKv::Us BlisKv::TakeTransfer() {
  transferred_ = BlisEvents::Sum(transferred_, pending_);
  report_.transfer_ns = transferred_ * 1000;
  return std::exchange(pending_, 0);
}

void BlisKv::Mirror(const Holding& holding) {
  if (!mirrors()) return;
  for (const BlisRuns::Piece& piece : holding.pieces) {
    runs_.ForEach(piece, [this](const Range& range) {
      if (range.segment != BlisRuns::kNameless) mirror_.Put(range, report_);
    });
  }
}

// After a LookUp: whether a request has every full block of its prompt where it is found or under
// the same name. Then there is nothing to reload for it until a name is lost.
bool BlisKv::Whole(const Holding& holding, RequestId request) const {
  const std::int64_t full = PromptOf(request) / options_.block_size;
  if (found() < full) return false;
  std::int64_t block = 0;
  bool same = true;
  for (const BlisRuns::Piece& piece : holding.pieces) {
    runs_.ForEach(piece, [&](const Range& range) {
      for (const std::int64_t end = std::min(block + range.size(), full); same && block < end;) {
        const Range own = RangeOf(request, block, end);
        same = own.segment == range.segment && range.first <= block && block < range.last;
        block = own.last;
      }
    });
  }
  return same && block >= full;
}

}  // namespace servecast
