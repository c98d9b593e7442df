// KV blocks of one replica whose layers form several groups (cost/kv_groups.h), as vLLM's hybrid
// coordinator keeps them: one pool, and for each request a table of blocks for each group.
//
//   positions of a table     0   1   2   3   4      (position k: tokens kb .. kb+b-1)
//   full                     #   #   #   #   #
//   window of 2 blocks       .   .   .   #   #      (.: given up, holds nothing)
//   state, mode align        .   .   .   .   #      (a block is the state at its end)
//
// "Rule" is one of section B or E of the README of the hybrid golden cases; rules 14 to 20 are
// those of vLLM's golden traces.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/base.h"
#include "cost/kv_groups.h"
#include "workload/request_table.h"

namespace servecast {

class GroupedKv {
 public:
  struct Options {
    std::int64_t usable_blocks = 0;
    bool contentless_first = true;  // freed blocks without content go to the front
    bool frees_across_gaps = true;  // B3: else the search stops at the first gap
  };

  // Both outlive it; of the requests only content, segments, images and prompt tokens are read.
  GroupedKv(const KvPlan& plan, const Options& options, const RequestTable& requests);

  using BlockId = std::int32_t;
  static constexpr BlockId kNone = -1;

  // Of a request that is admitted, by group.
  struct Table {
    struct OfGroup {
      std::vector<BlockId> blocks;   // by position; kNone: given up
      std::int64_t registered = 0;   // positions that were looked at by Register
      std::int64_t last_state = -1;  // B12: the position that was the last before
    };
    std::vector<OfGroup> groups;
  };

  // What the last LookUp found.
  struct Hit {
    std::int64_t tokens = 0;
    std::int64_t junction = 0;  // B15
    bool fresh_state = false;   // B14: it rests on a state of this call
  };

  std::int64_t total() const { return options_.usable_blocks; }
  std::int64_t free() const { return free_; }
  std::int64_t evicted() const { return evicted_; }
  std::int64_t taken() const { return taken_; }  // new blocks, so far
  bool prefix_caching() const { return plan_.rules.prefix_caching; }

  // A schedule call; at its end what was copied is let go (B16).
  void BeginCall() { fresh_.clear(); }
  void EndCall();

  // B6: of so many tokens, at most all but one. Nothing is used by it.
  const Hit& LookUp(RequestId request, std::int64_t known);

  // Blocks that an admission with the last hit takes for its first `tokens` tokens; `capped`: by
  // the test of a whole prompt (B4, B5, B12).
  std::int64_t NeededToAdmit(std::int64_t tokens, bool capped) const;
  // The same of a request that runs, with so many tokens computed or scheduled.
  std::int64_t Needed(const Table& table, std::int64_t computed, std::int64_t tokens) const;
  // B3: of a request with so many tokens computed by steps that are over.
  void GiveUp(Table& table, RequestId request, std::int64_t computed);
  // Takes the blocks; REQUIRES: they were counted, and are free. Admit holds the last hit first.
  void Admit(Table& table, std::int64_t tokens);
  void Take(Table& table, std::int64_t computed, std::int64_t tokens);
  // B7: the first `tokens` tokens are known and scheduled.
  void Register(Table& table, RequestId request, std::int64_t tokens);
  // B16: likewise the entry inside a block, of a step that begins behind `computed` tokens.
  void RegisterInside(Table& table, RequestId request, std::int64_t computed, std::int64_t tokens);
  // B8. `asks_again`: the request itself will look for what it leaves, as it was preempted.
  void Release(Table& table, RequestId request, bool asks_again);

  // The next number of computed tokens, above `computed`, at which a request that decodes may take,
  // give up or register a block, with `in_flight` of them in steps that are not over.
  std::int64_t NextChange(std::int64_t computed, std::int64_t in_flight) const;

  // Positions of a table that hold a block.
  static std::int64_t Held(const Table::OfGroup& group);

 private:
  using Key = std::uint64_t;
  struct Block {
    std::int32_t refs = 0;
    BlockId ahead = kNone, behind = kNone;  // in the free list
    BlockId copy = kNone;                   // the next of the same content
    Key key = 0;                            // 0: no content, or none that can be asked for
    bool content = false;
  };
  // Groups of equal specs, which a look-up asks together.
  struct Class {
    std::vector<std::size_t> groups;
    KvKind kind = KvKind::kFull;
    std::int64_t block_size = 16, window = 0;
    std::int64_t run = 0;  // of a window: blocks that serve it
  };
  // By class: blocks of each group by position, as found.
  struct Found {
    std::int64_t tokens = 0, positions = 0;
    std::vector<std::vector<BlockId>> blocks;  // by group of the class
    bool asked = false;                        // full attention: once
  };

  const KvGroup& GroupAt(std::size_t g) const { return plan_.groups.groups[g]; }
  std::size_t groups() const { return plan_.groups.groups.size(); }
  bool Aligns(std::size_t g) const {
    return GroupAt(g).kind == KvKind::kState && GroupAt(g).mode == StateMode::kAlign;
  }
  // B3: tokens that the group no longer needs.
  std::int64_t Passed(std::size_t g, std::int64_t computed) const;
  // Whether the block that its prompt ends in, and those behind it, are its own: as tokens that are
  // made complete it, vLLM keys it by the last image alone, of two or more that lie in it (E7).
  bool OwnBehindImages(RequestId request, std::int64_t tokens) const {
    const std::int64_t prompt = requests_.prompt_tokens[static_cast<std::size_t>(request)];
    if (tokens <= prompt) return false;
    const std::span<const PromptImage> images = requests_.ImagesOf(request);
    const std::int64_t from = prompt / plan_.groups.hash_block * plan_.groups.hash_block;
    return from > 0 && images.size() > 1 && images[images.size() - 2].end() > from;
  }
  Key KeyOf(RequestId request, std::int64_t tokens, std::size_t group) const;
  BlockId Find(Key key) const;
  bool Asked(RequestId request) const;
  bool FindAll(const Class& c, RequestId request, std::int64_t position, Found& found);
  bool FindAt(const Class& c, RequestId request, std::int64_t tokens, Found& found);
  std::int64_t Serve(std::size_t c, RequestId request, std::int64_t length);
  void SearchFull(const Class& c, RequestId request, std::int64_t length, Found& found);
  void SearchWindow(const Class& c, RequestId request, std::int64_t most, Found& found);
  void SearchChunk(const Class& c, RequestId request, std::int64_t length, Found& found);
  void SearchState(const Class& c, RequestId request, std::int64_t length, Found& found);
  const std::vector<BlockId>& FoundOf(std::size_t group) const;
  // B16: whether the last hit ends inside a block of the group.
  bool EndsInside(std::size_t g) const {
    return unit_ > 0 && hit_.tokens % GroupAt(g).block_size != 0;
  }
  // B16: whether the next step would write over an entry inside the request's block.
  bool KeepsInside(std::size_t g, const Table::OfGroup& own, std::int64_t computed) const;
  void MoveInside(std::size_t g, const Table::OfGroup& own, std::int64_t computed);
  std::int64_t Needed(std::size_t g, std::int64_t positions, std::int64_t tokens) const;
  void TakeOf(std::size_t g, Table::OfGroup& own, std::int64_t tokens);
  void RegisterOf(std::size_t g, Table::OfGroup& own, RequestId request, std::int64_t tokens);

  BlockId Pop();
  void Hold(BlockId id);
  void Free(const std::vector<BlockId>& blocks);
  void Name(BlockId id, Key key);
  void Forget(Block& block, BlockId id);
  void Link(BlockId id, BlockId behind);
  void Unlink(BlockId id);

  const KvPlan& plan_;
  Options options_;
  const RequestTable& requests_;
  std::vector<Class> classes_;                                 // full attention first
  std::vector<std::pair<std::size_t, std::size_t>> class_of_;  // by group: class, place in it
  std::int64_t alignment_ = 16;                                // of hits
  std::int64_t rounding_ = 1;                                  // of registrations
  std::int64_t unit_ = 0;                                      // B16; 0: whole blocks
  std::vector<bool> shared_;                                   // segment: others may ask for it
  std::vector<bool> again_;                                    // request: it was preempted
  // The first is both ends of the free list, the second stands in it for all that were never used
  // and are not made yet: of memory that nobody needs nothing is kept.
  static constexpr BlockId kEnds = 0, kUntouched = 1;
  std::vector<Block> blocks_;
  std::unordered_map<Key, BlockId> named_;
  std::int64_t free_ = 0, evicted_ = 0, taken_ = 0;
  std::vector<Key> fresh_;                           // B14: states registered by this call
  std::vector<std::pair<BlockId, BlockId>> copies_;  // B16: original and copy, of this call
  Hit hit_;
  std::vector<Found> found_;  // by class, of the last LookUp
  std::vector<BlockId> scratch_;
};

}  // namespace servecast
