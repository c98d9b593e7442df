// The KV blocks of the BLIS reference (blis_reference.h): every block an object, the free ones in a
// list, the cached ones in a table.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast::testing {

class BlisReferenceKv {
 public:
  struct Counts {
    std::int64_t hits = 0, misses = 0;
    std::int64_t rollbacks = 0;        // February: allocations that failed midway
    std::int64_t refused_by_hits = 0;  // today: that fail for the free blocks that they hit
    std::int64_t lost_hashes = 0;      // a content forgotten that another block has, too
  };

  BlisReferenceKv(const RequestTable& requests, const EngineSpec& engine, std::int64_t blocks);

  std::int64_t Used() const { return static_cast<std::int64_t>(blocks_.size() - free_.size()); }
  const Counts& counts() const { return counts_; }

  // How many full blocks of the prompt, from its first on, are there.
  std::int64_t Find(RequestId request, std::int64_t prompt);
  // Room for the tokens [from, to) behind what the request has; at its first, the blocks of the
  // last Find before them, if `cached`. False: nothing changed.
  bool Allocate(RequestId request, std::int64_t from, std::int64_t to, bool prefill, bool cached);
  void Release(RequestId request);

 private:
  using BlockId = std::size_t;
  using Hash = std::int64_t;  // of a block and all before it; 0: none
  using Token = std::int64_t;

  struct Block {
    std::int64_t tokens = 0;
    Hash hash = 0;
    std::int64_t holders = 0;
  };

  Token TokenAt(RequestId request, std::int64_t position) const;
  Hash HashOf(RequestId request, std::int64_t index);
  void Full(RequestId request, std::int64_t end);
  Block Pop(std::vector<BlockId>& held);
  void RollBack(RequestId request, std::int64_t claimed, const std::vector<Block>& before);

  const RequestTable& requests_;
  const std::int64_t size_;
  const bool caching_, february_;
  Counts counts_;
  std::vector<Block> blocks_;
  std::deque<BlockId> free_;
  std::map<Hash, BlockId> table_;
  std::map<RequestId, std::vector<BlockId>> held_;
  std::vector<BlockId> found_;
  std::map<std::pair<Hash, std::vector<Token>>, Hash> hashes_;
  std::map<RequestId, std::vector<Hash>> hashes_of_;  // of its full blocks, as far as asked for
};

}  // namespace servecast::testing
