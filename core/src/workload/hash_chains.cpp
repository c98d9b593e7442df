// See hash_chains.h.
#include "workload/hash_chains.h"

#include <algorithm>

#include "base/random.h"

namespace servecast {

TracePrefix HashChains::Add(std::int32_t row, std::int32_t prompt_tokens,
                            std::span<const std::uint64_t> ids, std::int64_t id_tokens) {
  TracePrefix prefix;
  std::uint64_t chain = 0;
  std::int64_t end = 0;
  for (const std::uint64_t id : ids) {
    chain = Mix64(chain + 0x9E3779B97F4A7C15ULL) ^ Mix64(id + 1);
    chain = Mix64(chain);
    end = std::min(end + id_tokens, std::int64_t{prompt_tokens});
    const auto tokens = static_cast<std::int32_t>(end);
    if ((used_ + 1) * 4 > nodes_.size() * 3) Grow();
    Node& node = Find(chain);
    if (node.row < 0) {
      node = {chain, row, tokens};
      ++used_;
      continue;
    }
    const std::int32_t shared = std::min(node.tokens, tokens);
    if (node.row != row && shared > prefix.tokens) prefix = {node.row, shared};
    if (tokens > node.tokens) node = {chain, row, tokens};
  }
  return prefix;
}

HashChains::Node& HashChains::Find(std::uint64_t chain) {
  const std::size_t mask = nodes_.size() - 1;
  std::size_t at = static_cast<std::size_t>(chain) & mask;
  while (nodes_[at].row >= 0 && nodes_[at].chain != chain) at = (at + 1) & mask;
  return nodes_[at];
}

void HashChains::Grow() {
  std::vector<Node> old(std::max<std::size_t>(1024, nodes_.size() * 2));
  old.swap(nodes_);
  for (const Node& node : old) {
    if (node.row >= 0) Find(node.chain) = node;
  }
}

}  // namespace servecast
