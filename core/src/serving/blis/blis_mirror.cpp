// See blis_mirror.h.
#include "serving/blis/blis_mirror.h"

namespace servecast {

void BlisMirror::Put(const BlisRuns::Range& range, KvOffloadReport& report) {
  const auto name = [&range](std::int64_t block) {
    return BlisNames::Name{range.segment, static_cast<std::int32_t>(block)};
  };
  for (std::int64_t block = range.first; block < range.last;) {
    const EntryId first = by_name_.Find(name(block));
    if (first == kNone) {
      Insert(name(block++), report);
      continue;
    }
    // Those that lie there one after the other, as the last step left them, move together.
    EntryId last = first;
    for (++block; block < range.last; ++block) {
      const EntryId next = by_name_.Find(name(block));
      if (next == kNone || At(last).behind != next) break;
      last = next;
    }
    Touch(first, last);
  }
}

// The one that was touched longest ago makes room.
void BlisMirror::Insert(BlisNames::Name name, KvOffloadReport& report) {
  ++report.offloaded_blocks;
  auto id = static_cast<EntryId>(entries_.size());
  if (id < blocks_) {
    entries_.emplace_back();
  } else {
    id = oldest_;
    Cut(id, id);
    by_name_.Erase(At(id).name);
    ++report.thrashed_blocks;
  }
  At(id).name = name;
  by_name_.Add(name, id);
  Append(id, id);
}

// Those from `first` to `last` become the last to leave.
void BlisMirror::Touch(EntryId first, EntryId last) {
  if (last == newest_) return;
  Cut(first, last);
  Append(first, last);
}

void BlisMirror::Cut(EntryId first, EntryId last) {
  const EntryId ahead = At(first).ahead, behind = At(last).behind;
  (ahead == kNone ? oldest_ : At(ahead).behind) = behind;
  (behind == kNone ? newest_ : At(behind).ahead) = ahead;
}

void BlisMirror::Append(EntryId first, EntryId last) {
  At(first).ahead = newest_;
  At(last).behind = kNone;
  (newest_ == kNone ? oldest_ : At(newest_).behind) = first;
  newest_ = last;
}

}  // namespace servecast
