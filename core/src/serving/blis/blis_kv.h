// The KV blocks of BLIS by its rules: what a request takes, claims of what is cached, and gives
// back; and memory of the host behind them. Hides that there are no blocks, but runs of them
// (blis_runs.h). For the compatibility modes only: kv_cache.h is the engine's own.
//
// A decode fills a block in so many steps, takes one, and the full one gets its name. Where these
// names are seen by nobody before the request gives them back (IsUnobserved), it is enough to count
// what decodes take (TakeForDecodes, Fill); what they hold is told later, by CatchUp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "serving/blis/blis_mirror.h"
#include "serving/blis/blis_runs.h"
#include "workload/request_table.h"

namespace servecast {

class BlisKv {
 public:
  using Us = std::int64_t;  // simulated microseconds

  // Memory of the host for full blocks that have a name. February 2026 moves free ones there when a
  // release leaves more than a share of the blocks in use, and moves any of them back when an
  // allocation fails. Today's copies all blocks of the batch at each step, keeps those touched
  // last, and at an allocation brings back what continues the cached beginning of the request's
  // prompt.
  struct Host {
    std::int64_t blocks = 0;  // capacity; 0: there is none
    bool mirrors = true;      // today; false: February
    double threshold = 0;     // February's share
    Us reload = 0;            // by so much a block that comes back makes a step longer
  };

  struct Options {
    std::int64_t blocks = 0;
    std::int64_t block_size = 16;
    bool prefix_caching = true;
    // True: a first allocation needs free blocks for the free cached blocks that it claims, too.
    // False (February 2026): only new blocks are counted, so that it may fail midway and is undone.
    bool counts_claimed_blocks = true;
    Host host = {};
  };

  // What a request holds, in order of its tokens.
  struct Holding {
    std::vector<BlisRuns::Piece> pieces;  // full blocks
    BlisRuns::Numbers numbers;            // of the blocks behind them, if they have any
    std::int64_t blocks = 0;              // in all
    std::int64_t last_fill = 0;           // tokens in the last block
    std::int64_t whole_at = -1;           // see Whole
  };

  // `requests` outlives the blocks; of it only prompts, content, segments and turns are read.
  BlisKv(const Options& options, const RequestTable& requests);

  std::int64_t free() const { return runs_.free(); }
  std::int64_t used() const { return options_.blocks - free(); }
  std::int64_t block_size() const { return options_.block_size; }
  // Tokens for which the blocks in use have room and that they do not hold, by what requests were
  // told. A block with several holders counts for each.
  std::int64_t unused() const { return unused_; }
  bool mirrors() const { return options_.host.blocks > 0 && options_.host.mirrors; }
  std::int64_t hits() const { return hits_; }      // cached blocks claimed
  std::int64_t misses() const { return misses_; }  // fresh blocks taken
  std::int64_t evicted() const { return runs_.evicted(); }
  std::int64_t found() const { return found_blocks_; }  // by a LookUp

  // Finds the cached full blocks of a prompt from its first on, as many as follow each other, and
  // returns their number. O(runs on its path).
  std::int64_t LookUp(RequestId request, std::int64_t prompt_tokens);
  // Takes room for the tokens of a request behind its cached blocks, up to `to`; a request that
  // holds nothing yet claims these blocks. They are those of the last LookUp, unless the host gave
  // blocks back: then it is repeated. False: nothing is taken. A request that needs no tokens
  // claims nothing.
  bool Admit(Holding& holding, RequestId request, std::int64_t to);
  // The same for the tokens [from, to) of an admitted request: of its prompt (`prefill`), or one
  // behind it.
  bool Allocate(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                bool prefill);
  // Blocks that an Allocate of so many tokens takes.
  std::int64_t NewBlocksFor(const Holding& holding, std::int64_t tokens) const {
    return CeilDiv(std::max<std::int64_t>(tokens - RoomIn(holding), 0), options_.block_size);
  }
  // Of its last block, in tokens.
  std::int64_t RoomIn(const Holding& holding) const {
    return holding.blocks == 0 ? 0 : options_.block_size - holding.last_fill;
  }
  // Gives everything back, the last block first; contents can be found until they are overwritten.
  void Release(Holding& holding);

  // No other request can look for what the request computes behind its `tokens` tokens as long as
  // it is there, and nothing else has, or is to get, a name of these.
  bool IsUnobserved(const Holding& holding, RequestId request, std::int64_t tokens) const;
  // Decodes that are told later: so many take a block. Requires: there are as many.
  void TakeForDecodes(std::int64_t blocks);
  // And so many tokens went into last blocks.
  void Fill(std::int64_t tokens) { unused_ -= tokens; }
  // The tokens [from, to) of a decode were counted in this way.
  void CatchUp(Holding& holding, RequestId request, std::int64_t from, std::int64_t to) {
    if (from < to) Extend(holding, request, from, to, false, false);
  }

  // The host's part in a step: its time; what a request of the batch holds, in the batch's order;
  // and by how much a step is longer for what came back since this was last asked.
  void StartStep(Us now) { now_ = now; }
  void Mirror(const Holding& holding);
  Us TakeTransfer();
  // Blocks there, moves or copies into it, blocks that came back and their time, and thrashing: in
  // February those that came back within 1 ms, today those that make room for others. No hits.
  const KvOffloadReport& host() const { return report_; }
  // February: failed allocations for which it had nothing to give back.
  std::int64_t host_misses() const { return host_misses_; }

 private:
  using SegmentId = BlisRuns::SegmentId;
  using Range = BlisRuns::Range;

  std::int64_t PromptOf(RequestId r) const {
    return requests_.prompt_tokens[static_cast<std::size_t>(r)];
  }
  SegmentId SegmentOf(RequestId r) const {
    return requests_.content.empty() ? r : requests_.content[static_cast<std::size_t>(r)];
  }
  bool offloads() const { return options_.host.blocks > 0 && !options_.host.mirrors; }

  void FindObserved();
  Range RangeOf(RequestId request, std::int64_t first, std::int64_t last) const;
  std::int64_t IdleFound() const;
  bool TakeBehindFound(Holding& holding, RequestId request, std::int64_t to);
  bool Take(Holding& holding, RequestId request, std::int64_t from, std::int64_t to, bool claim,
            bool prefill);
  void Claim(Holding& holding);
  void Extend(Holding& holding, RequestId request, std::int64_t from, std::int64_t to, bool prefill,
              bool takes);
  void Undo(RequestId request);

  void Offload();
  bool ReloadAll();
  void ReloadPrompt(RequestId request);
  void Reload(BlisNames::Name name);
  bool Whole(const Holding& holding, RequestId request) const;

  struct Offloaded {
    BlisNames::Name name;
    Us since;
  };

  Options options_;
  const RequestTable& requests_;
  BlisRuns runs_;
  std::int64_t hits_ = 0, misses_ = 0, unused_ = 0;
  std::vector<bool> observed_;          // segment: by others than one request; empty: none
  std::vector<BlisRuns::Found> found_;  // by LookUp
  std::int64_t found_blocks_ = 0;
  BlisRuns::Numbers numbers_;  // scratch

  Us now_ = 0, pending_ = 0, transferred_ = 0;
  std::map<BlisRuns::BlockId, Offloaded> offloaded_;  // February: by the block that they were in
  BlisMirror mirror_;                                 // today
  std::int64_t host_misses_ = 0;
  KvOffloadReport report_;
};

}  // namespace servecast
