// Where BLIS's KV blocks are, without a block in it. BLIS keeps a list of free blocks, taken from
// its head and given back at its tail, and a table from the name of a full block to the block that
// got it last. Which blocks these are matters to nobody; what they contain, and when they will be
// overwritten, does. So they are kept as runs: consecutive blocks of one content segment, or
// nameless ones, with the same holders, that lie side by side in the free list when there are none.
//
// A block keeps its name until it is overwritten. When another block gets the name meanwhile, the
// first is not found by it any more; when either is overwritten the name is not found at all,
// though one block has it still. A run whose name was lost in this way is called a shadow.
//
// A run is taken from its end, since a request gives its last block back first. Only the rules of
// February's host memory ask for a block by its number; then runs carry these, too.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "serving/blis/blis_names.h"

namespace servecast {

class BlisRuns {
 public:
  using RunId = std::int32_t;
  using SegmentId = std::int32_t;
  using BlockId = std::int32_t;
  using Numbers = std::vector<BlockId>;
  using Name = BlisNames::Name;
  static constexpr SegmentId kNameless = -1;

  // Blocks [first, last) of a segment; of nameless ones only their number means something.
  struct Range {
    SegmentId segment = kNameless;
    std::int64_t first = 0, last = 0;
    std::int64_t size() const { return last - first; }
  };
  // What a request holds of a run and of those that were split from its end.
  struct Piece {
    RunId run = -1;
    std::int64_t blocks = 0;
  };
  struct Found {
    RunId run = -1;
    std::int64_t first = 0, last = 0;
  };

  // Segments are below `segments`.
  BlisRuns(std::int64_t blocks, std::size_t segments, bool numbered);

  std::int64_t free() const { return free_; }
  std::int64_t evicted() const { return evicted_; }  // blocks with a name that were taken
  // Of names by which nothing is found any more though a block has them; some more may be counted.
  std::int64_t losses() const { return losses_; }

  // Extends `found` by the blocks of the range that are found, up to the first that is not, and
  // returns that one.
  std::int64_t Find(Range range, std::vector<Found>& found) const;
  bool Finds(Name name) const;
  bool IsFree(const Found& found) const { return At(found.run).holders == 0; }
  // No block from `block` on of the segment has a name, and none of it is a shadow.
  bool EndsBefore(SegmentId segment, std::int64_t block) const;

  // One more holds what was found. Requires: nothing happened since.
  Piece Hold(const Found& found);
  // Takes at least one and at most `most` free blocks, and returns how many: as many as can be
  // taken before the first of them gets a name of `segment`. Their numbers are added to `numbers`.
  std::int64_t Take(std::int64_t most, SegmentId segment, Numbers& numbers);
  // Who holds `pieces` has filled a range of taken blocks behind them. They are found by their
  // names from now on. The first of `numbers` are theirs.
  void Append(std::vector<Piece>& pieces, const Range& range, Numbers& numbers);
  // One holder less; blocks without one become free, the last one first.
  void Release(const Piece& piece);
  void ReleaseNameless(std::int64_t blocks, Numbers& numbers);
  // The ranges of a piece, in order.
  template <class F>
  void ForEach(const Piece& piece, F f) const {
    std::int64_t blocks = 0;
    for (RunId id = piece.run; blocks < piece.blocks; id = At(id).sibling) {
      f(Range{At(id).segment, At(id).first, At(id).first + At(id).count});
      blocks += At(id).count;
    }
  }

  // The free block that is next gets the name, and is the last to be taken.
  void Rename(Name name);
  // An allocation that claimed `found`, of the beginning of a request, then gave the names of
  // `ranges` to all other free blocks, is undone: what it claimed goes to the end of the free list
  // block by block, all others get their old names back, the last one first.
  void Undo(const std::vector<Found>& found, const std::vector<Range>& ranges);
  // Goes through the free blocks that have names, in the order in which they would be taken, as
  // long as `take(number, name)` says yes: they lose their names and go to the end of the list.
  // Requires: numbered.
  template <class F>
  void Strip(F take) {
    std::int64_t left = named_free_;
    for (RunId id = FirstNamedFree(); left > 0;) {
      const Run& run = At(id);
      if (run.segment == kNameless) {
        id = run.behind;
        continue;
      }
      if (!take(NumbersOf(id).back(), NameOfLast(run))) return;
      --left;
      const RunId ahead = run.ahead;
      Numbers number;
      Cut(id, 1, number);
      ReleaseNameless(1, number);
      id = ahead == kNone ? front_ : At(ahead).behind;
    }
  }

 private:
  static constexpr std::int32_t kNone = -1;

  struct Run {
    SegmentId segment = kNameless;
    bool found = false;  // by its names; a named run that is not is a shadow
    std::int64_t first = 0, count = 0;
    std::int32_t holders = 0;
    std::int64_t end() const { return first + count; }
    RunId before = kNone, after = kNone;  // of its segment, of those that are found, by blocks
    RunId ahead = kNone, behind = kNone;  // in the free list
    RunId sibling = kNone;                // the next blocks of a run that was split
  };
  struct Segment {
    RunId head = kNone, tail = kNone;  // of the runs that are found
    std::int32_t shadows = 0;
  };

  Run& At(RunId id) { return runs_[static_cast<std::size_t>(id)]; }
  const Run& At(RunId id) const { return runs_[static_cast<std::size_t>(id)]; }
  Segment& Of(SegmentId id) { return segments_[static_cast<std::size_t>(id)]; }
  const Segment& Of(SegmentId id) const { return segments_[static_cast<std::size_t>(id)]; }

  Numbers& NumbersOf(RunId id) { return numbers_[static_cast<std::size_t>(id)]; }
  static Name NameOfLast(const Run& run) {
    return {run.segment, static_cast<std::int32_t>(run.first + run.count - 1)};
  }
  RunId NewRun(const Range& range);
  void Drop(RunId id);
  RunId SplitAt(RunId id, std::int64_t block);
  RunId Part(RunId id, std::int64_t first, std::int64_t last);
  void Cut(RunId id, std::int64_t blocks, Numbers& numbers);
  void Lose(const Range& range);
  void MakeFound(RunId id);
  void MakeShadow(RunId id);
  void Unfind(RunId id);
  void Free(RunId id);
  RunId FirstNamedFree() const;
  void LinkFree(RunId id, RunId behind);
  void UnlinkFree(RunId id);

  const bool numbered_;
  std::int64_t free_, named_free_ = 0, evicted_ = 0, losses_ = 0;
  BlockId next_number_ = 0;  // of the blocks that were never taken
  RunId untouched_ = kNone;  // these
  std::vector<Segment> segments_;
  std::vector<Run> runs_;
  std::vector<RunId> unused_;
  std::vector<Numbers> numbers_;        // by run, in order of its blocks, if numbered
  RunId front_ = kNone, back_ = kNone;  // free list
  std::vector<RunId> release_;          // scratch
};

}  // namespace servecast
