// Where the KV content goes that the GPU evicts: tiers of slower memory, each a list in order of
// last use. What one evicts goes to the next; what the last one evicts is lost; what a request
// loads goes back to the GPU and leaves its tier. So a block is in one
// tier at most.
//
// Like the cache above it (kv_cache.h), a tier keeps runs of blocks of one segment, not blocks: the
// last block of a run leaves first, as it was the first to come.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// From a tier to the GPU, n blocks of one request take base_ns + n * block_ns.
struct KvTier {
  std::int64_t blocks = 0;  // capacity
  double base_ns = 0, block_ns = 0;
};

// Host memory, then disk, one of which may have no room; none: nothing is offloaded. `block_bytes`
// is what one GPU holds of a block; every GPU has its own link, and capacities are for all GPUs of
// the replica together.
std::vector<KvTier> KvTiersOf(const KvOffloadSpec& spec, double block_bytes, std::int64_t gpus);

class KvTiers {
 public:
  explicit KvTiers(std::vector<KvTier> tiers);

  // The GPU overwrote blocks [first, last) of a segment, from the last to the first.
  // O(log runs), and once more for each block that some tier had already.
  void Offload(std::int32_t segment, std::int64_t first, std::int64_t last, TimeNs now);

  // Up to where the blocks from `first` on, before `last`, are in some tier. O(runs on the way).
  std::int64_t FoundUpTo(std::int32_t segment, std::int64_t first, std::int64_t last) const;

  // How many blocks of each tier a request loads.
  using Loaded = std::array<std::int64_t, kKvTiers>;
  // Back to the GPU: takes blocks [first, last), which are there, out of their tiers.
  void Load(std::int32_t segment, std::int64_t first, std::int64_t last, TimeNs now,
            Loaded& loaded);
  // What that takes, at most the time of the longest step.
  TimeNs TransferTime(const Loaded& loaded) const;

  const KvOffloadReport& report() const { return report_; }

 private:
  using RunId = std::int32_t;
  static constexpr RunId kNone = -1;

  struct Run {
    std::int32_t segment = 0;
    std::int64_t first = 0, count = 0;
    std::size_t tier = 0;
    TimeNs since = 0;                     // offloaded
    RunId ahead = kNone, behind = kNone;  // in its tier; what is ahead leaves earlier
  };
  struct List {
    std::int64_t used = 0;
    RunId front = kNone, back = kNone;
  };
  using Index = std::map<std::pair<std::int32_t, std::int64_t>, RunId>;  // by (segment, first)

  Run& At(RunId id) { return runs_[static_cast<std::size_t>(id)]; }
  Index::const_iterator LastBefore(std::int32_t segment, std::int64_t block) const;
  void Push(std::size_t tier, std::int32_t segment, std::int64_t first, std::int64_t last,
            TimeNs since, TimeNs now);
  void Trim(std::size_t tier, TimeNs now);
  void Cut(RunId id, std::int64_t first, std::int64_t last);
  RunId NewRun(const Run& run);
  void Unlink(RunId id);

  std::vector<KvTier> tiers_;
  std::vector<List> lists_;
  std::vector<Run> runs_;
  std::vector<RunId> unused_;
  Index index_;
  KvOffloadReport report_;
};

}  // namespace servecast
