// What a gateway knows of the prefix caches behind it: the prompts that it sent to each replica, as
// many blocks as that replica's cache holds, least recently used forgotten first. It does not learn
// what a replica evicts or generates, as gateways without events of the engines' caches (BLIS's
// prefix-affinity scorer; docs/model.md).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "serving/cluster/router.h"

namespace servecast {

class PrefixIndex {
 public:
  // It remembers as many blocks of a replica as that one caches.
  explicit PrefixIndex(std::span<const RoutedReplica> replicas);

  // By replica: so many blocks of the prompt, from the first on, were sent to it. Good until the
  // next call. O(replicas + those that have something of it).
  const std::vector<std::int64_t>& Match(std::span<const ContentRange> content);
  // The prompt goes there. O(its segments x (replicas that have them + log)).
  void Sent(std::span<const ContentRange> content, std::int32_t replica);

  // The same in two steps: Add may exceed what a replica remembers, up to its Trim.
  void Add(std::span<const ContentRange> content, std::int32_t replica);
  void Trim(std::int32_t replica);
  // Blocks that it remembers of the replica.
  std::int64_t Blocks(std::int32_t replica) const {
    return memories_[static_cast<std::size_t>(replica)].blocks;
  }

 private:
  // Of a segment, on a replica: blocks [first, last).
  struct Entry {
    std::int32_t replica = 0;
    std::int64_t first = 0, last = 0;
    std::int64_t used = 0;  // by `uses`, the last time
  };
  struct Memory {  // of one replica
    std::int64_t capacity = 0;
    std::int64_t blocks = 0, uses = 0;
    std::map<std::int64_t, std::int32_t> by_use;  // segments
  };
  using Entries = std::vector<Entry>;  // one a replica

  void Forget(std::int32_t replica, Memory& memory);

  std::vector<Memory> memories_;       // by replica
  std::vector<Entries> by_segment_;    // grows with the segments seen
  std::vector<std::int64_t> matched_;  // by replica
};

}  // namespace servecast
