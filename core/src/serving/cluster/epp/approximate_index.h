// The approximate prefix index: which endpoint was sent which blocks. Servers tell it nothing back.
//
//   Add(prompt, endpoint):  each block in order goes to the newest place of the endpoint's LRU, and
//                           the oldest falls out; then all blocks are marked as held there
//
// So the head of a prompt falls out before its tail, and blocks that fell out during their own
// addition stay marked though no LRU has them: they match until a later addition evicts them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/number_map.h"

namespace servecast::epp {

class ApproximateIndex {
 public:
  // Endpoints are 0 .. endpoints-1.
  explicit ApproximateIndex(std::size_t endpoints);

  // Adds to `matched[e]` the blocks that e is marked to hold, up to the first block that no
  // endpoint holds. A gap of one endpoint alone does not stop the search. O(keys x holders).
  void Match(std::span<const std::uint64_t> keys, std::vector<std::int64_t>& matched) const;

  // Adds one prompt; several of a request are added one after the other. `capacity`: of its LRU, in
  // blocks; used when the endpoint has none yet. O(keys).
  void Add(std::span<const std::uint64_t> keys, std::int32_t endpoint, std::int64_t capacity);

  // The endpoint has left the pool: its LRU and what is in it go. Blocks in no LRU stay marked.
  void Remove(std::int32_t endpoint);

  // Blocks in the LRU of the endpoint; -1: it has none.
  std::int64_t Tracked(std::int32_t endpoint) const;

 private:
  using BlockId = std::int32_t;
  static constexpr BlockId kNone = -1;

  // Blocks from the oldest to the newest, as a ring with a sentinel at 0.
  struct Lru {
    struct Node {
      BlockId block = kNone;
      std::int32_t older = 0, newer = 0;
    };
    std::int64_t capacity = 0;
    std::vector<Node> nodes{Node{}};
    NumberMap<BlockId> place;
  };

  BlockId Id(std::uint64_t key);
  void Touch(Lru& lru, BlockId block, std::int32_t endpoint);
  static void Unlink(Lru& lru, std::int32_t node);
  static void LinkNewest(Lru& lru, std::int32_t node);
  void Mark(BlockId block, std::int32_t endpoint);
  void Unmark(BlockId block, std::int32_t endpoint);
  std::uint64_t& Word(BlockId block, std::int32_t endpoint);

  std::size_t words_;                          // of 64 endpoints, per block
  NumberMap<std::uint64_t> ids_;               // of blocks that are held
  std::vector<std::uint64_t> keys_, holders_;  // by block
  std::vector<std::int32_t> held_;             // by how many; 0: the id is free
  std::vector<BlockId> free_, added_;
  std::vector<std::unique_ptr<Lru>> lrus_;  // by endpoint
};

}  // namespace servecast::epp
