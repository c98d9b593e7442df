// TensorRT-LLM's KV blocks with reuse: which block a sequence takes, what it finds of others, and
// what is left behind (rules 40 to 57 of the README of its golden traces, which "rule" means here).
//
// Blocks are kept one by one, as it matters which one is taken: the front of the free queue loses
// its content, and with it all that is stored below. A stored block lies below the block of the
// tokens before it. A token is named by its content segment and its place (RequestTable), and that
// name says all that stands before it: so a block is found by the name of its last token, those
// that begin alike by the name of their first, and no token is ever compared.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "base/number_map.h"
#include "workload/request_table.h"

namespace servecast {

class BlockTree {
 public:
  using SequenceId = std::int32_t;  // below Options::sequences

  struct Options {
    std::int64_t blocks = 0, block_size = 32;
    bool partial = true;  // enable_partial_reuse
    bool copies = true;   // copy_on_partial_reuse
    std::int64_t sequences = 0;
  };

  // `requests` outlives it; of it only content and segments are read.
  BlockTree(const Options& options, const RequestTable& requests);

  std::int64_t free() const { return free_; }  // blocks that no sequence holds
  std::int64_t evicted() const { return evicted_; }
  std::int64_t walked() const { return walked_; }  // blocks of texts, looked for or stored

  // What is stored of the full blocks of a text's first `tokens` tokens (exact matches).
  struct Found {
    std::int64_t all = 0;         // blocks
    std::int64_t used = 0;        // of them, held by a sequence
    std::uint64_t first_new = 0;  // the name of the first that is not stored; 0: all are
  };
  Found Find(RequestId request, std::int64_t tokens);

  // A sequence of the first `tokens` tokens of a request's text takes all its blocks.
  struct Admission {
    SequenceId sequence = -1;
    RequestId request = kNoRequest;
    std::int64_t tokens = 0;
    std::int64_t reused = 0;  // answer: tokens that were found
  };
  // Those of one step, in its order (rule 43). REQUIRES: there are blocks for all of them.
  void Admit(std::vector<Admission>& admissions);

  void Grow(SequenceId sequence);  // one block more

  // Stores the full blocks of the first `computed` tokens (rule 51).
  void Store(SequenceId sequence, std::int64_t computed);
  // Stores these tokens, a partial last block included, and gives all blocks back (rule 50).
  void Release(SequenceId sequence, std::int64_t computed);

  // Blocks that are free if these sequences, in this order, give theirs back: of the last one, on
  // top of those before it. REQUIRES: StartVictims before the first one.
  void StartVictims() { ++victims_round_; }
  std::int64_t FreedBy(SequenceId victim);

 private:
  using BlockId = std::int32_t;
  static constexpr BlockId kNone = -1, kRoot = -2;

  // Neighbours in one of the lists that a block is in.
  struct Link {
    BlockId before = kNone, after = kNone;
  };
  struct List {
    BlockId first = kNone, last = kNone;
  };
  struct Block {
    std::int64_t users = 0;
    bool queued = true;
    Link queue;
    // The sequence that was the last to take it new, and whose that was.
    SequenceId taker = -1;
    RequestId taker_request = kNoRequest;
    // Where it is stored: below `parent`, kNone: nowhere. Its last token is that of `segment` at
    // place end - 1.
    BlockId parent = kNone;
    std::int32_t segment = -1;
    std::int64_t end = 0;
    std::uint64_t head = 0;  // the name of its first token
    List children;
    Link sibling, cousin;  // of one parent; those with the same first token, by age
    // In the step that is being admitted, rule 45.
    std::int64_t step = 0;
    std::int64_t chooser = -1;  // the last admission that found a part of it
    bool in_full = false;       // one found all of it
    // By a round of victims.
    std::int64_t round = 0, left = 0;
  };
  // Tokens [from, to) of a text are those of a segment.
  struct Part {
    std::int32_t segment;
    std::int64_t from, to;
  };
  struct Match {
    BlockId block = kNone;
    bool partial = false, busy = false;  // busy: others use it, or something lies below it
    bool held = false;                   // a sequence held it as it was found
  };
  struct Plan {
    std::vector<Match> matches;
  };
  struct Sequence {
    std::vector<BlockId> blocks;
    RequestId request = kNoRequest;
    bool alive = false, may_store = false;
  };

  Block& At(BlockId id) { return blocks_[static_cast<std::size_t>(id)]; }
  Sequence& Of(SequenceId id) { return sequences_[static_cast<std::size_t>(id)]; }
  ContentSegment Content(std::int32_t segment) const {
    return requests_.segments.empty() ? ContentSegment{}
                                      : requests_.segments[static_cast<std::size_t>(segment)];
  }
  void ReadText(RequestId request, std::int64_t tokens);
  std::int32_t SegmentAt(std::int64_t place) const;
  std::uint64_t NameAt(std::int64_t place) const;
  std::int64_t SharedUpTo(const Block& block) const;
  // The stored block whose last token is the one before `end`, and which begins where blocks do.
  BlockId FindExact(std::int64_t end) const { return stored_.Find(NameAt(end - 1)); }
  BlockId FindLongest(BlockId parent, std::int64_t from, std::int64_t to, std::int64_t& longest);

  void Append(List& list, Link Block::*link, BlockId id);
  void Remove(List& list, Link Block::*link, BlockId id);
  void Enqueue(BlockId id);
  void Dequeue(BlockId id);
  List& CousinsOf(std::uint64_t head);
  List& ChildrenOf(BlockId parent) { return parent == kRoot ? roots_ : At(parent).children; }
  void Place(BlockId id, BlockId parent, std::int64_t from, std::int64_t to);
  void Unplace(BlockId id);
  void UnplaceBelow(BlockId id);
  BlockId Take(SequenceId sequence);
  BlockId Mark(BlockId id, SequenceId sequence);
  void Hold(Sequence& sequence, BlockId id);

  void Claim(Admission& admission, std::int64_t number, Plan& plan);
  void ClaimPart(BlockId id, std::int64_t number, Plan& plan);
  void ClaimFull(BlockId id, Plan& plan);
  void TakeMatched(Admission& admission, std::int64_t number, const Match& match);
  void Put(const Sequence& sequence, std::int64_t tokens);

  Options options_;
  const RequestTable& requests_;
  std::vector<Block> blocks_;  // that were ever taken
  std::vector<Sequence> sequences_;
  List queue_, roots_;
  std::int64_t free_ = 0, evicted_ = 0, walked_ = 0, steps_ = 0, victims_round_ = 0;
  NumberMap<std::uint64_t> stored_;    // blocks by the name of the last token
  NumberMap<std::uint64_t> heads_;     // places in cousins_, by that of the first
  std::vector<List> cousins_;          // stored blocks that begin with the same token
  std::vector<std::int32_t> no_head_;  // places in cousins_ that are free
  std::vector<BlockId> lent_;          // sources of copies of this step, not in the queue meanwhile
  std::vector<Part> text_;             // scratch: its end first
  std::int64_t length_ = 0;            // likewise
  std::vector<Plan> plans_;            // likewise
  std::vector<BlockId> below_;         // likewise
};

}  // namespace servecast
