// KV blocks as objects, in the references that know other schedulers or several replicas: who holds
// each, what it is found by, and in which order the free ones go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast::testing {

using ContentKey = std::pair<std::int64_t, std::int64_t>;  // segment, block of it
using BlockId = std::size_t;

// Of block `index` of what a request knows.
inline ContentKey ContentOf(const RequestTable& requests, RequestId id, std::int64_t index,
                            std::int64_t block_size) {
  if (requests.content.empty()) return {id, index};
  std::int32_t segment = requests.content[static_cast<std::size_t>(id)];
  for (;;) {
    const ContentSegment& at = requests.segments[static_cast<std::size_t>(segment)];
    if ((index + 1) * block_size > at.shared_tokens) return {segment, index};
    segment = at.parent;
  }
}

class BlockPool {
 public:
  BlockPool(std::int64_t blocks, bool contentless_first)
      : contentless_first_(contentless_first), blocks_(static_cast<std::size_t>(blocks)) {
    for (BlockId id = 0; id < blocks_.size(); ++id) free_.push_back(id);
  }

  std::int64_t Free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t Used() const { return static_cast<std::int64_t>(blocks_.size()) - Free(); }
  std::int64_t Evicted() const { return evicted_; }
  bool Held(BlockId id) const { return blocks_[id].holders > 0; }

  void Take(std::int64_t count, std::vector<BlockId>& holder) {
    for (; count > 0; --count) {
      SERVECAST_CHECK(!free_.empty(), "pd reference: a block is taken that is not free");
      const BlockId id = free_.front();
      free_.pop_front();
      Block& block = blocks_[id];
      if (block.content) {
        std::vector<BlockId>& copies = cached_[*block.content];
        copies.erase(std::find(copies.begin(), copies.end(), id));
        block.content.reset();
        ++evicted_;
      }
      block.holders = 1;
      holder.push_back(id);
    }
  }
  void Share(BlockId id, std::vector<BlockId>& holder) {
    if (!Held(id)) free_.erase(std::find(free_.begin(), free_.end(), id));
    ++blocks_[id].holders;
    holder.push_back(id);
  }
  void Release(std::vector<BlockId>& holder) {
    for (; !holder.empty(); holder.pop_back()) {
      Block& block = blocks_[holder.back()];
      if (--block.holders > 0) continue;
      if (contentless_first_ && !block.content) {
        free_.push_front(holder.back());
      } else {
        free_.push_back(holder.back());
      }
    }
  }
  std::optional<BlockId> Find(const ContentKey& key) const {
    const auto at = cached_.find(key);
    if (at == cached_.end() || at->second.empty()) return std::nullopt;
    return at->second.front();
  }
  void Register(BlockId id, const ContentKey& key) {
    blocks_[id].content = key;
    cached_[key].push_back(id);
  }

 private:
  struct Block {
    int holders = 0;
    std::optional<ContentKey> content;
  };
  bool contentless_first_;
  std::vector<Block> blocks_;
  std::deque<BlockId> free_;
  std::map<ContentKey, std::vector<BlockId>> cached_;  // copies in order of registration
  std::int64_t evicted_ = 0;
};

}  // namespace servecast::testing
