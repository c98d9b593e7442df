// The KV blocks of BLIS, one by one as it keeps them: a list of free blocks that is taken from its
// head and given back to at its tail, and a table from the content of a full block to the block
// that had it last. Hides that blocks which were never taken are not there yet. For the
// compatibility modes only: kv_cache.h is the engine's own, and cheaper.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast {

class BlisKv {
 public:
  using BlockId = std::int32_t;

  struct Options {
    std::int64_t blocks = 0;
    std::int64_t block_size = 16;
    bool prefix_caching = true;
    // True: a first allocation needs free blocks for its free cached blocks too. False (February
    // 2026): only the new blocks are counted, so that it may fail midway and is undone.
    bool counts_claimed_blocks = true;
  };

  // What a request holds, in order of its tokens.
  struct Holding {
    std::vector<BlockId> blocks;
    std::int64_t last_fill = 0;  // tokens in the last block
  };

  // `requests` outlives the blocks; of it only content and segments are read.
  BlisKv(const Options& options, const RequestTable& requests);

  std::int64_t used() const { return options_.blocks - free_; }
  std::int64_t block_size() const { return options_.block_size; }
  std::int64_t hits() const { return hits_; }      // cached blocks claimed
  std::int64_t misses() const { return misses_; }  // fresh blocks taken
  std::int64_t evicted() const { return evicted_; }

  // Finds the cached full blocks of a prompt from its first on, as many as follow each other, and
  // returns their number. O(blocks of the prompt).
  std::int64_t LookUp(RequestId request, std::int64_t prompt_tokens);
  // Takes room for the tokens [from, to) of a request; `prefill`: it has not computed its prompt.
  // When it holds nothing yet, the first `cached` blocks of the last LookUp are claimed before.
  // False: nothing is taken. An empty range claims nothing.
  bool Allocate(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                std::int64_t cached, bool prefill);
  // Gives everything back, the last block first; contents stay findable until overwritten.
  void Release(Holding& holding);

 private:
  static constexpr BlockId kEnds = 0;       // the free list is a ring through this entry
  static constexpr BlockId kUntouched = 1;  // stands in the list for all blocks never taken
  static constexpr BlockId kNone = -1;

  struct Block {
    BlockId previous = kNone, next = kNone;
    std::int32_t holders = 0;
    bool named = false;      // carries the name of its content, perhaps no longer its owner
    std::uint64_t name = 0;  // segment and number of the block in it
  };

  Block& At(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  std::uint64_t NameOf(RequestId request, std::int64_t block) const;
  void SetName(BlockId id, RequestId request, std::int64_t end);
  std::int64_t NewBlocksFor(const Holding& holding, std::int64_t tokens) const;
  bool MayAllocate(const Holding& holding, std::int64_t tokens, std::int64_t cached, bool prefill);
  void Claim(Holding& holding, std::int64_t cached);
  bool TakeFresh(Holding& holding, std::int64_t tokens);
  void Undo(Holding& holding, std::int64_t claimed);
  BlockId PopFree();
  void Link(BlockId id, BlockId before);
  void Unlink(BlockId id);

  // A fresh block that the allocation under way took, as it was.
  struct Taken {
    BlockId id;
    bool named;
    std::uint64_t name;
  };

  Options options_;
  const RequestTable& requests_;
  std::int64_t free_, hits_ = 0, misses_ = 0, evicted_ = 0;
  std::vector<Block> blocks_;  // after kEnds and kUntouched, in order of their first use
  std::unordered_map<std::uint64_t, BlockId> table_;
  std::vector<BlockId> found_;      // by LookUp
  std::vector<bool> claimed_free_;  // of the blocks claimed by this allocation: was it free?
  std::vector<Taken> taken_;        // by this allocation
};

}  // namespace servecast
