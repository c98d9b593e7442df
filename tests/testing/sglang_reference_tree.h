// SGLang's radix cache, the naive way: every edge has its tokens, children are searched one by one,
// and whoever is evicted is looked for in the whole tree. "Rule" is one of the README of the golden
// traces of SGLang.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace servecast::testing {

using SglangTokens = std::vector<std::int64_t>;

// Different at every reading (rule 40).
class SglangTicks {
 public:
  std::int64_t Next() { return ++now_; }

 private:
  std::int64_t now_ = 0;
};

class SglangTree {
 public:
  struct Node {
    SglangTokens key;
    Node* parent = nullptr;
    std::vector<std::unique_ptr<Node>> children;  // in order of creation; a split keeps the place
    std::int64_t locks = 0, used = 0, born = 0, hits = 0, priority = 0;
  };

  // `ticks` outlives it; `order` is a radix_eviction_policy.
  SglangTree(std::int64_t page, std::string order, SglangTicks& ticks);

  // The longest beginning of the tokens that is there, in whole pages, and the node where it ends.
  std::pair<std::int64_t, Node*> Match(const SglangTokens& tokens);
  // Returns how many of the tokens were there already.
  std::int64_t Insert(const SglangTokens& tokens, std::int64_t priority, bool of_chunk);
  // Of the path from the node to the root.
  void Lock(Node* node);
  void Unlock(Node* node);
  // Removes leaves that nobody locks until so many tokens are gone; returns how many are.
  std::int64_t Evict(std::int64_t wanted);
  // Tokens of nodes that nobody locks.
  std::int64_t Evictable() const;
  Node* root() { return root_.get(); }

 private:
  SglangTokens WholePages(SglangTokens tokens) const;
  Node* ChildFor(Node* node, const SglangTokens& tokens) const;
  std::int64_t Common(const SglangTokens& a, const SglangTokens& b) const;
  Node* Split(Node* node, std::int64_t tokens);
  std::pair<std::int64_t, std::int64_t> Rank(const Node& node) const;

  std::int64_t page_;
  std::string order_;
  SglangTicks& ticks_;
  std::unique_ptr<Node> root_;
};

}  // namespace servecast::testing
