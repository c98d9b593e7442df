// The KV blocks of BLIS, one by one as it keeps them: a list of free blocks that is taken from its
// head and given back to at its tail, a table from the content of a full block to the block that
// had it last, and memory of the host behind them. Hides that blocks which were never taken are not
// there yet. For the compatibility modes only: kv_cache.h is the engine's own, and cheaper.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "workload/request_table.h"

namespace servecast {

class BlisKv {
 public:
  using BlockId = std::int32_t;
  using Us = std::int64_t;  // simulated microseconds

  // Memory of the host for full blocks that have a name. February 2026 moves free ones there when a
  // release leaves more than a share of the blocks in use, and back when an allocation fails,
  // whosever they are. Today's copies all of the batch at each step, keeps those touched last, and
  // brings back what continues the cached beginning of whoever allocates.
  struct Host {
    std::int64_t blocks = 0;  // capacity; 0: there is none
    bool mirrors = true;      // today; false: February
    double threshold = 0;     // February's share
    Us reload = 0;            // by which a block that comes back makes a step longer
  };

  struct Options {
    std::int64_t blocks = 0;
    std::int64_t block_size = 16;
    bool prefix_caching = true;
    // True: a first allocation needs free blocks for its free cached blocks too. False (February
    // 2026): only the new blocks are counted, so that it may fail midway and is undone.
    bool counts_claimed_blocks = true;
    Host host = {};
  };

  // What a request holds, in order of its tokens.
  struct Holding {
    std::vector<BlockId> blocks;
    std::int64_t last_fill = 0;  // tokens in the last block
    std::int64_t whole_at = -1;  // see Whole
  };

  // `requests` outlives the blocks; of it only prompts, content and segments are read.
  BlisKv(const Options& options, const RequestTable& requests);

  std::int64_t free() const { return free_; }
  std::int64_t used() const { return options_.blocks - free_; }
  std::int64_t block_size() const { return options_.block_size; }
  std::int64_t hits() const { return hits_; }      // cached blocks claimed
  std::int64_t misses() const { return misses_; }  // fresh blocks taken
  std::int64_t evicted() const { return evicted_; }
  std::int64_t found() const { return static_cast<std::int64_t>(found_.size()); }  // by a LookUp

  // Finds the cached full blocks of a prompt from its first on, as many as follow each other, and
  // returns their number. O(blocks of the prompt).
  std::int64_t LookUp(RequestId request, std::int64_t prompt_tokens);
  // Takes room for the tokens of a request behind its cached blocks, up to `to`; who holds nothing
  // yet claims those. They are those of the last LookUp, unless the host gave blocks back: then it
  // is repeated. False: nothing is taken. Who needs no tokens claims nothing.
  bool Admit(Holding& holding, RequestId request, std::int64_t to);
  // The same for the tokens [from, to) of who was admitted; `prefill`: its prompt is not computed.
  bool Allocate(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
                bool prefill);
  // Gives everything back, the last block first; contents stay findable until overwritten.
  void Release(Holding& holding);

  // The host's part in a step: its time; what a request of the batch holds, in the batch's order;
  // and by how much a step is longer for what came back since this was last asked.
  void StartStep(Us now) { now_ = now; }
  void Mirror(const Holding& holding);
  Us TakeTransfer();
  // Blocks there, moves or copies into it, blocks that came back, and thrashing: in February those
  // that came back within 1 ms, today those that make room for others. Hits are not counted.
  const KvOffloadReport& host() const { return report_; }
  std::int64_t host_misses() const {
    return host_misses_;
  }  // February: failures that it cannot help

 private:
  using ContentId = std::int32_t;
  static constexpr BlockId kEnds = 0;       // the free list is a ring through this entry
  static constexpr BlockId kUntouched = 1;  // stands in the list for all blocks never taken
  static constexpr std::int32_t kNone = -1;

  struct Block {
    BlockId previous = kNone, next = kNone;
    std::int32_t holders = 0;
    ContentId content = kNone;  // whose name it carries, perhaps no longer its owner
  };

  // Of a full block, as long as a block carries its name or the host mirrors it.
  struct Content {
    std::uint64_t name = 0;  // segment and number of the block in it
    BlockId owner = kNone;   // where it is found
    std::int32_t carriers = 0;
    bool mirrored = false;
    ContentId ahead = kNone, behind = kNone;  // in the host; who is ahead leaves it earlier
  };

  Block& At(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  Content& Of(ContentId id) { return contents_[static_cast<std::size_t>(id)]; }
  std::int64_t PromptOf(RequestId r) const {
    return requests_.prompt_tokens[static_cast<std::size_t>(r)];
  }
  bool offloads() const { return options_.host.blocks > 0 && !options_.host.mirrors; }
  bool mirrors() const { return options_.host.blocks > 0 && options_.host.mirrors; }

  std::uint64_t NameOf(RequestId request, std::int64_t block) const;
  void SetName(BlockId id, RequestId request, std::int64_t end);
  void Name(BlockId id, std::uint64_t name);
  void Forget(BlockId id);
  void DropUnused(ContentId id);
  std::int64_t NewBlocksFor(const Holding& holding, std::int64_t tokens) const;
  bool MayAllocate(const Holding& holding, std::int64_t tokens, std::int64_t cached, bool prefill);
  bool TakeBehindFound(Holding& holding, RequestId request, std::int64_t to);
  bool Take(Holding& holding, RequestId request, std::int64_t from, std::int64_t to,
            std::int64_t cached, bool prefill);
  void Claim(Holding& holding, std::int64_t cached);
  bool TakeFresh(Holding& holding, std::int64_t tokens);
  void Undo(Holding& holding, std::int64_t claimed);
  BlockId PopFree();
  void Link(BlockId id, BlockId before);
  void Unlink(BlockId id);

  void Offload();
  bool ReloadAll();
  void ReloadPrompt(RequestId request);
  bool Reload(std::uint64_t name);
  void Insert(ContentId id);
  void Touch(ContentId first, ContentId last);
  void Cut(ContentId first, ContentId last);
  void Append(ContentId first, ContentId last);
  bool Whole(const Holding& holding, RequestId request);

  // A fresh block that the allocation under way took, as it was.
  struct Taken {
    BlockId id;
    bool named;
    std::uint64_t name;
  };
  struct Offloaded {
    std::uint64_t name;
    Us since;
  };

  Options options_;
  const RequestTable& requests_;
  std::int64_t free_, hits_ = 0, misses_ = 0, evicted_ = 0;
  std::int64_t named_free_ = 0;  // of the free blocks
  std::vector<Block> blocks_;    // after kEnds and kUntouched, in order of their first use
  std::vector<Content> contents_;
  std::vector<ContentId> unused_;
  std::unordered_map<std::uint64_t, ContentId> by_name_;
  std::vector<BlockId> found_;      // by LookUp
  std::vector<bool> claimed_free_;  // of the blocks claimed by this allocation: was it free?
  std::vector<Taken> taken_;        // by this allocation

  Us now_ = 0, pending_ = 0;
  std::map<BlockId, Offloaded> offloaded_;     // February: by the block that they were in
  ContentId oldest_ = kNone, newest_ = kNone;  // today: the host's, by when they were touched
  std::int64_t mirrored_ = 0;
  std::int64_t losses_ = 0;  // names that found nothing any more though a block carries them
  std::int64_t host_misses_ = 0;
  KvOffloadReport report_;
};

}  // namespace servecast
