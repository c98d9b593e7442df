// See blis_runs.h.
#include "serving/blis/blis_runs.h"

#include <algorithm>
#include <utility>

namespace servecast {
namespace {

using Numbers = BlisRuns::Numbers;

void MoveFirst(Numbers& from, std::int64_t count, Numbers& to) {
  const auto end = from.begin() + static_cast<std::ptrdiff_t>(count);
  to.insert(to.end(), from.begin(), end);
  from.erase(from.begin(), end);
}

}  // namespace

BlisRuns::BlisRuns(std::int64_t blocks, std::size_t segments, bool numbered)
    : numbered_(numbered), free_(blocks), segments_(segments) {
  if (blocks == 0) return;
  untouched_ = NewRun({kNameless, 0, blocks});
  LinkFree(untouched_, kNone);
}

// --- What is found by its name -------------------------------------------------------------------

std::int64_t BlisRuns::Find(Range range, std::vector<Found>& found) const {
  for (RunId id = Of(range.segment).head; id != kNone && range.size() > 0; id = At(id).after) {
    const Run& run = At(id);
    if (run.end() <= range.first) continue;
    if (run.first > range.first) break;
    const std::int64_t last = std::min(run.end(), range.last);
    found.push_back({id, range.first, last});
    range.first = last;
  }
  return range.first;
}

bool BlisRuns::Finds(Name name) const {
  RunId id = Of(name.segment).head;
  while (id != kNone && At(id).end() <= name.block) id = At(id).after;
  return id != kNone && At(id).first <= name.block;
}

bool BlisRuns::EndsBefore(SegmentId segment, std::int64_t block) const {
  const Segment& of = Of(segment);
  return of.shadows == 0 && (of.tail == kNone || At(of.tail).end() <= block);
}

// Nothing is found by these names any more.
void BlisRuns::Lose(const Range& range) {
  if (EndsBefore(range.segment, range.first)) return;
  for (RunId id = Of(range.segment).head; id != kNone && At(id).first < range.last;) {
    if (At(id).end() > range.first) {
      id = Part(id, std::max(range.first, At(id).first), std::min(range.last, At(id).end()));
      const RunId after = At(id).after;
      MakeShadow(id);
      id = after;
    } else {
      id = At(id).after;
    }
  }
}

// Requires: no run of its segment is found by these names.
void BlisRuns::MakeFound(RunId id) {
  Run& run = At(id);
  Segment& of = Of(run.segment);
  run.found = true;
  run.before = of.tail;
  while (run.before != kNone && At(run.before).first > run.first)
    run.before = At(run.before).before;
  run.after = run.before == kNone ? of.head : At(run.before).after;
  (run.before == kNone ? of.head : At(run.before).after) = id;
  (run.after == kNone ? of.tail : At(run.after).before) = id;
}

void BlisRuns::MakeShadow(RunId id) {
  Unfind(id);
  ++Of(At(id).segment).shadows;
}

void BlisRuns::Unfind(RunId id) {
  Run& run = At(id);
  Segment& of = Of(run.segment);
  run.found = false;
  (run.before == kNone ? of.head : At(run.before).after) = run.after;
  (run.after == kNone ? of.tail : At(run.after).before) = run.before;
}

// --- What is held --------------------------------------------------------------------------------

BlisRuns::Piece BlisRuns::Hold(const Found& found) {
  const RunId id = Part(found.run, found.first, found.last);
  Run& run = At(id);
  if (run.holders++ == 0) {
    UnlinkFree(id);
    free_ -= run.count;
  }
  return {id, run.count};
}

void BlisRuns::Append(std::vector<Piece>& pieces, const Range& range, Numbers& numbers) {
  if (range.segment != kNameless) Lose(range);
  RunId id = kNone;
  if (!pieces.empty()) {
    id = pieces.back().run;
    std::int64_t blocks = At(id).count;
    for (; blocks < pieces.back().blocks; blocks += At(id).count) id = At(id).sibling;
    const Run& run = At(id);
    const bool follows = run.segment == kNameless || (run.found && run.end() == range.first);
    if (run.segment != range.segment || run.holders > 1 || !follows) id = kNone;
  }
  if (id == kNone) {
    id = NewRun({range.segment, range.first, range.first});
    At(id).holders = 1;
    if (range.segment != kNameless) MakeFound(id);
    pieces.push_back({id, 0});
  }
  At(id).count += range.size();
  pieces.back().blocks += range.size();
  if (numbered_) MoveFirst(numbers, range.size(), NumbersOf(id));
}

void BlisRuns::Release(const Piece& piece) {
  release_.clear();
  std::int64_t blocks = 0;
  for (RunId id = piece.run; blocks < piece.blocks; id = At(id).sibling) {
    release_.push_back(id);
    blocks += At(id).count;
  }
  for (; !release_.empty(); release_.pop_back()) {
    if (--At(release_.back()).holders == 0) Free(release_.back());
  }
}

void BlisRuns::ReleaseNameless(std::int64_t blocks, Numbers& numbers) {
  if (blocks == 0) return;
  const RunId id = NewRun({kNameless, 0, blocks});
  if (numbered_) MoveFirst(numbers, blocks, NumbersOf(id));
  Free(id);
}

// To the end of the free list. Neighbours that would be taken one after the other are one run.
void BlisRuns::Free(RunId id) {
  Run& run = At(id);
  free_ += run.count;
  LinkFree(id, kNone);
  if (run.ahead == kNone) return;
  Run& ahead = At(run.ahead);
  if (ahead.segment != run.segment || ahead.found != run.found) return;
  if (run.segment == kNameless ? numbered_ : ahead.first != run.end() || !run.found) return;
  const RunId joined = run.ahead;
  run.count += ahead.count;
  if (numbered_) MoveFirst(NumbersOf(joined), ahead.count, NumbersOf(id));
  ahead.count = 0;
  UnlinkFree(joined);
  Drop(joined);
}

// --- The free list -------------------------------------------------------------------------------

std::int64_t BlisRuns::Take(std::int64_t most, SegmentId segment, Numbers& numbers) {
  const Run& run = At(front_);
  const bool named = run.segment != kNameless;
  const std::int64_t blocks = named && run.segment == segment ? 1 : std::min(most, run.count);
  if (named) evicted_ += blocks;
  Cut(front_, blocks, numbers);
  return blocks;
}

// The last blocks of a free run lose their names, whoever is found by these, and are not free.
void BlisRuns::Cut(RunId id, std::int64_t blocks, Numbers& numbers) {
  if (At(id).segment != kNameless) {
    const Range range{At(id).segment, At(id).end() - blocks, At(id).end()};
    losses_ += Of(range.segment).shadows > 0 ? 1 : 0;
    if (!At(id).found) Lose(range);
    named_free_ -= blocks;
  }
  Run& run = At(id);
  run.count -= blocks;
  free_ -= blocks;
  for (std::int64_t i = 0; numbered_ && i < blocks; ++i) {
    if (id == untouched_) {
      numbers.push_back(next_number_++);
    } else {
      numbers.push_back(NumbersOf(id).back());
      NumbersOf(id).pop_back();
    }
  }
  if (run.count > 0) return;
  UnlinkFree(id);
  Drop(id);
  if (id == untouched_) untouched_ = kNone;
}

void BlisRuns::Rename(Name name) {
  Numbers number;
  Take(1, name.segment, number);
  const Range range{name.segment, name.block, name.block + 1};
  Lose(range);
  const RunId id = NewRun(range);
  if (numbered_) NumbersOf(id) = std::move(number);
  MakeFound(id);
  Free(id);
}

void BlisRuns::Undo(const std::vector<Found>& found, const std::vector<Range>& ranges) {
  std::vector<Name> given;
  for (const Range& range : ranges) {
    for (std::int64_t block = range.first; block < range.last; ++block) {
      given.push_back({range.segment, static_cast<std::int32_t>(block)});
    }
  }
  for (const Found& claimed : found) {
    if (!IsFree(claimed)) continue;
    RunId id = claimed.run;
    for (std::int64_t block = claimed.first; block < claimed.last; ++block) {
      id = Part(id, block, block + 1);
      UnlinkFree(id);
      LinkFree(id, kNone);
    }
  }
  struct Old {
    RunId run;
    std::int64_t block;
  };
  std::vector<Old> old;  // of each of the others, in the order of the list
  for (RunId id = front_; old.size() < given.size(); id = At(id).behind) {
    for (std::int64_t block = At(id).end(); block > At(id).first; --block) {
      old.push_back({id, block - 1});
    }
  }
  for (std::size_t i = given.size(); i > 0; --i) {
    Lose({given[i - 1].segment, given[i - 1].block, given[i - 1].block + 1});
    const auto& [run, block] = old[i - 1];
    if (At(run).segment == kNameless) continue;
    const RunId id = Part(run, block, block + 1);
    if (At(id).found) continue;
    Lose({At(id).segment, block, block + 1});
    --Of(At(id).segment).shadows;
    MakeFound(id);
  }
}

BlisRuns::RunId BlisRuns::FirstNamedFree() const {
  std::int64_t left = named_free_;
  RunId id = back_;
  for (;; id = At(id).ahead) {
    if (id == kNone || left == 0) return id;
    if (At(id).segment != kNameless && (left -= At(id).count) == 0) return id;
  }
}

// Ahead of `behind`; kNone: at the end.
void BlisRuns::LinkFree(RunId id, RunId behind) {
  Run& run = At(id);
  named_free_ += run.segment == kNameless ? 0 : run.count;
  run.behind = behind;
  run.ahead = behind == kNone ? back_ : At(behind).ahead;
  (run.ahead == kNone ? front_ : At(run.ahead).behind) = id;
  (behind == kNone ? back_ : At(behind).ahead) = id;
}

void BlisRuns::UnlinkFree(RunId id) {
  Run& run = At(id);
  named_free_ -= run.segment == kNameless ? 0 : run.count;
  (run.ahead == kNone ? front_ : At(run.ahead).behind) = run.behind;
  (run.behind == kNone ? back_ : At(run.behind).ahead) = run.ahead;
}

// --- Runs ----------------------------------------------------------------------------------------

// Held by nobody, in no list. Its memory is that of one that was dropped.
BlisRuns::RunId BlisRuns::NewRun(const Range& range) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<RunId>(runs_.size()));
    runs_.emplace_back();
    if (numbered_) numbers_.emplace_back();
  }
  const RunId id = unused_.back();
  unused_.pop_back();
  Run& run = At(id);
  run.segment = range.segment;
  run.found = false;
  run.first = range.first;
  run.count = range.size();
  run.holders = 0;
  run.sibling = kNone;
  if (numbered_) NumbersOf(id).clear();
  return id;
}

void BlisRuns::Drop(RunId id) {
  const Run& run = At(id);
  if (run.found) {
    Unfind(id);
  } else if (run.segment != kNameless) {
    --Of(run.segment).shadows;
  }
  unused_.push_back(id);
}

// The blocks [first, last) of a run, or of one that was split from its end, as a run of their own.
BlisRuns::RunId BlisRuns::Part(RunId id, std::int64_t first, std::int64_t last) {
  while (At(id).end() <= first) id = At(id).sibling;
  if (At(id).first < first) id = SplitAt(id, first);
  if (At(id).end() > last) SplitAt(id, last);
  return id;
}

// `block` and what is behind it becomes a run of its own, which is returned.
BlisRuns::RunId BlisRuns::SplitAt(RunId id, std::int64_t block) {
  const RunId upper = NewRun({At(id).segment, block, At(id).end()});
  Run &low = At(id), &high = At(upper);
  if (low.holders == 0) named_free_ -= high.count;
  low.count -= high.count;
  high.holders = low.holders;
  high.sibling = std::exchange(low.sibling, upper);
  if (numbered_) {
    Numbers &lower = NumbersOf(id), &higher = NumbersOf(upper);
    higher.assign(lower.begin() + static_cast<std::ptrdiff_t>(low.count), lower.end());
    lower.resize(static_cast<std::size_t>(low.count));
  }
  if (low.found) {
    MakeFound(upper);
  } else {
    ++Of(low.segment).shadows;
  }
  if (low.holders == 0) LinkFree(upper, id);  // its last blocks are taken first
  return upper;
}

}  // namespace servecast
