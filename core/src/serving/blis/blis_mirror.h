// What the host's memory has by today's rules of BLIS: full blocks by their names, those touched
// last last. It keeps copies, so that nothing here depends on where the GPU has them.
#pragma once

#include <cstdint>
#include <vector>

#include "servecast/report.h"
#include "serving/blis/blis_names.h"
#include "serving/blis/blis_runs.h"

namespace servecast {

class BlisMirror {
 public:
  // Of so many blocks; segments are below `segments`.
  BlisMirror(std::int64_t blocks, std::size_t segments) : blocks_(blocks), by_name_(segments) {}

  bool Has(BlisNames::Name name) const { return by_name_.Find(name) != kNone; }
  // Requires: it has it.
  void Touch(BlisNames::Name name) { Touch(by_name_.Find(name), by_name_.Find(name)); }
  // Copies the blocks, one after the other, or touches those that are there.
  void Put(const BlisRuns::Range& range, KvOffloadReport& report);

 private:
  using EntryId = std::int32_t;
  static constexpr EntryId kNone = BlisNames::kNone;

  struct Entry {
    BlisNames::Name name;
    EntryId ahead = kNone, behind = kNone;  // the one ahead leaves earlier
  };

  Entry& At(EntryId id) { return entries_[static_cast<std::size_t>(id)]; }

  void Insert(BlisNames::Name name, KvOffloadReport& report);
  void Touch(EntryId first, EntryId last);
  void Cut(EntryId first, EntryId last);
  void Append(EntryId first, EntryId last);

  std::int64_t blocks_;
  BlisNames by_name_;
  std::vector<Entry> entries_;
  EntryId oldest_ = kNone, newest_ = kNone;
};

}  // namespace servecast
