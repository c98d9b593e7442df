// The KV blocks of the BLIS reference (blis_reference.h): every block an object, the free ones in a
// list, the cached ones in a table; what the host has in a map or a list.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast::testing {

// The host's memory, as BLIS's command line has it.
struct BlisHost {
  std::int64_t blocks = 0;  // 0: none
  double threshold = 0.9;   // February's
  std::int64_t reload = 0;  // us per block
};

class BlisReferenceKv {
 public:
  struct Counts {
    std::int64_t hits = 0, misses = 0;
    std::int64_t rollbacks = 0;        // February: allocations that failed midway
    std::int64_t refused_by_hits = 0;  // today: that fail for the free blocks that they hit
    std::int64_t lost_hashes = 0;      // a content forgotten that another block has, too

    std::int64_t offloads = 0;     // into the host: moves, or copies of what it had not
    std::int64_t reloads = 0;      // out of it
    std::int64_t thrashes = 0;     // reloads within 1 ms of the move; or what had to leave the host
    std::int64_t host_hits = 0;    // blocks by which reloads made the prefix of who came longer
    std::int64_t host_misses = 0;  // February: failures with nothing to reload
    std::int64_t transfer = 0;     // us, in all
    // What else happened, for the coverage of tests.
    std::int64_t host_full = 0;       // February: offloads that found no room
    std::int64_t replaced = 0;        // February: moves from a block that had been moved before
    std::int64_t reloads_undone = 0;  // overwritten by a later reload of the same walk
    std::int64_t reloads_by_running = 0;
    std::int64_t prefixes_cut = 0;         // by reloads: what was found is overwritten
    std::int64_t reloads_beyond_need = 0;  // of more than the tokens of the step
    std::int64_t rescued = 0;              // February: allocations that a reload made possible
    std::int64_t reloads_of_present = 0;   // today: of what the GPU has, behind a gap
  };

  BlisReferenceKv(const RequestTable& requests, const EngineSpec& engine, std::int64_t blocks,
                  const BlisHost& host);

  std::int64_t Used() const { return static_cast<std::int64_t>(blocks_.size() - free_.size()); }
  // Tokens for which held blocks have room, and that they do not hold.
  std::int64_t Unused() const;
  const Counts& counts() const { return counts_; }

  // How many full blocks of the prompt, from its first on, are there.
  std::int64_t Find(RequestId request, std::int64_t prompt);
  // The same of the last one, which an admission repeats after a reload.
  std::int64_t Found() const { return static_cast<std::int64_t>(found_.size()); }
  // Room for the tokens [from, to) behind what the request has. At an admission `from` is where the
  // prefix of the last Find ends; who holds nothing has that, too. False: no room.
  bool Allocate(RequestId request, std::int64_t from, std::int64_t to, bool prefill,
                bool admission);
  void Release(RequestId request);

  void SetClock(std::int64_t us) { clock_ = us; }
  // Today, of a batch in its order: what is full goes to the host.
  void Mirror(const std::vector<RequestId>& batch);
  // us that reloads cost since this was asked last.
  std::int64_t ConsumeTransfer();

 private:
  using BlockId = std::size_t;
  using Hash = std::int64_t;  // of a block and all before it; 0: none
  using Token = std::int64_t;

  struct Block {
    std::int64_t tokens = 0;
    Hash hash = 0;
    std::int64_t holders = 0;
  };

  bool AllocateOnGpu(RequestId request, std::int64_t from, std::int64_t to, bool prefill,
                     bool cached);
  void Offload();
  bool ReloadEverything();
  bool ReloadPrefix(RequestId request);
  void Reload(Hash hash);
  void Forget(BlockId id);
  Token TokenAt(RequestId request, std::int64_t position) const;
  Hash HashOf(RequestId request, std::int64_t index);
  void Full(RequestId request, std::int64_t end);
  Block Pop(std::vector<BlockId>& held);
  void RollBack(RequestId request, std::int64_t claimed, const std::vector<Block>& before);

  const RequestTable& requests_;
  const std::int64_t size_;
  const bool caching_, february_;
  const BlisHost host_;
  Counts counts_;
  std::vector<Block> blocks_;
  std::deque<BlockId> free_;
  std::map<Hash, BlockId> table_;
  std::map<RequestId, std::vector<BlockId>> held_;
  std::vector<BlockId> found_;
  std::map<std::pair<Hash, std::vector<Token>>, Hash> hashes_;
  std::map<RequestId, std::vector<Hash>> hashes_of_;  // of its full blocks, as far as asked for

  std::int64_t clock_ = 0, pending_ = 0;
  struct Moved {
    Hash hash = 0;
    std::int64_t time = 0;
  };
  std::map<BlockId, Moved> moved_;  // February
  std::list<Hash> mirror_;          // today; who was touched last is last
  std::map<Hash, std::list<Hash>::iterator> in_mirror_;
};

}  // namespace servecast::testing
