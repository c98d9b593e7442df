#include "serving/cluster/prefix_index.h"

#include <algorithm>

namespace servecast {

PrefixIndex::PrefixIndex(std::span<const RoutedReplica> replicas)
    : memories_(replicas.size()), matched_(replicas.size(), 0) {
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    memories_[i].capacity = replicas[i].cached_blocks;
  }
}

const std::vector<std::int64_t>& PrefixIndex::Match(std::span<const ContentRange> content) {
  std::fill(matched_.begin(), matched_.end(), 0);
  for (const ContentRange& range : content) {
    const auto segment = static_cast<std::size_t>(range.segment);
    if (segment >= by_segment_.size()) continue;
    for (const Entry& entry : by_segment_[segment]) {
      std::int64_t& matched = matched_[static_cast<std::size_t>(entry.replica)];
      if (matched == range.first) matched = std::min(range.last, entry.last);
    }
  }
  return matched_;
}

void PrefixIndex::Sent(std::span<const ContentRange> content, std::int32_t replica) {
  if (memories_[static_cast<std::size_t>(replica)].capacity == 0) return;
  Add(content, replica);
  Trim(replica);
}

// From the last segment to the first, so that a prefix is forgotten after what follows it.
void PrefixIndex::Add(std::span<const ContentRange> content, std::int32_t replica) {
  Memory& memory = memories_[static_cast<std::size_t>(replica)];
  for (std::size_t i = content.size(); i > 0; --i) {
    const ContentRange& range = content[i - 1];
    const auto segment = static_cast<std::size_t>(range.segment);
    if (segment >= by_segment_.size()) by_segment_.resize(segment + 1);
    Entries& entries = by_segment_[segment];
    auto entry = std::find_if(entries.begin(), entries.end(),
                              [replica](const Entry& e) { return e.replica == replica; });
    if (entry == entries.end()) {
      entry = entries.insert(entries.end(), {replica, range.first, range.first, 0});
    } else {
      memory.by_use.erase(entry->used);
    }
    memory.blocks += std::max<std::int64_t>(range.last - entry->last, 0);
    entry->last = std::max(entry->last, range.last);
    entry->used = ++memory.uses;
    memory.by_use.emplace_hint(memory.by_use.end(), entry->used, range.segment);
  }
}

void PrefixIndex::Trim(std::int32_t replica) {
  Memory& memory = memories_[static_cast<std::size_t>(replica)];
  while (memory.blocks > memory.capacity) Forget(replica, memory);
}

// The segment that was used the longest ago.
void PrefixIndex::Forget(std::int32_t replica, Memory& memory) {
  Entries& entries = by_segment_[static_cast<std::size_t>(memory.by_use.begin()->second)];
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [replica](const Entry& e) { return e.replica == replica; });
  memory.blocks -= entry->last - entry->first;
  entries.erase(entry);
  memory.by_use.erase(memory.by_use.begin());
}

}  // namespace servecast
