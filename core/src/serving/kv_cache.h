// Paged KV cache of one replica: blocks as counts. Without prefix caching a block has no content
// that anybody could find again, so which block a request holds never matters, only how many.
#pragma once

#include <cstdint>

#include "base/base.h"

namespace servecast {

class KvCache {
 public:
  KvCache(std::int64_t usable_blocks, std::int64_t block_size)
      : total_(usable_blocks), free_(usable_blocks), block_size_(block_size) {}

  std::int64_t total() const { return total_; }
  std::int64_t free() const { return free_; }
  std::int64_t used() const { return total_ - free_; }
  std::int64_t block_size() const { return block_size_; }

  // Blocks that hold the KV of so many tokens.
  std::int64_t BlocksFor(std::int64_t tokens) const { return CeilDiv(tokens, block_size_); }

  // Check, then act: callers ask whether `blocks` <= free() before they take.
  void Take(std::int64_t blocks) {
    free_ -= blocks;
    SERVECAST_CHECK(free_ >= 0, "I4: used + free = total KV blocks");
  }
  void Release(std::int64_t blocks) {
    free_ += blocks;
    SERVECAST_CHECK(free_ <= total_, "I4: used + free = total KV blocks");
  }

 private:
  std::int64_t total_, free_, block_size_;
};

}  // namespace servecast
