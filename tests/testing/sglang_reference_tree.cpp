#include "testing/sglang_reference_tree.h"

#include <algorithm>

namespace servecast::testing {
namespace {

template <class Visit>
void EachNode(SglangTree::Node* node, const Visit& visit) {
  visit(node);
  for (const auto& child : node->children) EachNode(child.get(), visit);
}

}  // namespace

SglangTree::SglangTree(std::int64_t page, std::string order, SglangTicks& ticks)
    : page_(page), order_(std::move(order)), ticks_(ticks), root_(std::make_unique<Node>()) {
  root_->locks = 1;
}

SglangTokens SglangTree::WholePages(SglangTokens tokens) const {
  const auto size = static_cast<std::int64_t>(tokens.size());
  tokens.resize(static_cast<std::size_t>(size / page_ * page_));
  return tokens;
}

// The one whose first page is that of the tokens.
SglangTree::Node* SglangTree::ChildFor(Node* node, const SglangTokens& tokens) const {
  for (const auto& child : node->children) {
    if (Common(child->key, tokens) >= page_) return child.get();
  }
  return nullptr;
}

std::int64_t SglangTree::Common(const SglangTokens& a, const SglangTokens& b) const {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return static_cast<std::int64_t>(n) / page_ * page_;
}

// Rule 43: the upper part is the new node.
SglangTree::Node* SglangTree::Split(Node* node, std::int64_t tokens) {
  auto upper = std::make_unique<Node>();
  Node* const made = upper.get();
  const auto middle = node->key.begin() + static_cast<std::ptrdiff_t>(tokens);
  made->key.assign(node->key.begin(), middle);
  node->key.erase(node->key.begin(), middle);
  made->parent = node->parent;
  made->locks = node->locks;
  made->hits = node->hits;
  made->priority = node->priority;
  made->used = ticks_.Next();
  made->born = ticks_.Next();
  for (auto& child : node->parent->children) {
    if (child.get() != node) continue;
    upper->children.push_back(std::move(child));
    child = std::move(upper);
    break;
  }
  node->parent = made;
  return made;
}

// Rule 42.
std::pair<std::int64_t, SglangTree::Node*> SglangTree::Match(const SglangTokens& tokens) {
  SglangTokens left = WholePages(tokens);
  const std::int64_t now = ticks_.Next();
  Node* node = root();
  std::int64_t matched = 0;
  while (!left.empty()) {
    Node* const child = ChildFor(node, left);
    if (child == nullptr) break;
    child->used = now;
    const std::int64_t n = Common(child->key, left);
    matched += n;
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(n));
    if (n < static_cast<std::int64_t>(child->key.size())) {
      node = Split(child, n);
      break;
    }
    node = child;
  }
  return {matched, node};
}

// Rule 44.
std::int64_t SglangTree::Insert(const SglangTokens& tokens, std::int64_t priority, bool of_chunk) {
  SglangTokens left = WholePages(tokens);
  const std::int64_t now = ticks_.Next();
  Node* node = root();
  std::int64_t there = 0;
  while (!left.empty()) {
    Node* const child = ChildFor(node, left);
    if (child == nullptr) break;
    child->used = now;
    const std::int64_t n = Common(child->key, left);
    there += n;
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(n));
    node = n < static_cast<std::int64_t>(child->key.size()) ? Split(child, n) : child;
    node->priority = std::max(node->priority, priority);
    node->hits += of_chunk ? 0 : 1;
  }
  if (left.empty()) return there;
  auto leaf = std::make_unique<Node>();
  leaf->key = std::move(left);
  leaf->parent = node;
  leaf->priority = priority;
  leaf->hits = of_chunk ? 0 : 1;
  leaf->used = ticks_.Next();
  leaf->born = ticks_.Next();
  node->children.push_back(std::move(leaf));
  return there;
}

void SglangTree::Lock(Node* node) {
  for (; node != root(); node = node->parent) ++node->locks;
}

void SglangTree::Unlock(Node* node) {
  for (; node != root(); node = node->parent) --node->locks;
}

// Rule 51: the smallest is the first to go.
std::pair<std::int64_t, std::int64_t> SglangTree::Rank(const Node& node) const {
  if (order_ == "lfu") return {node.hits, node.used};
  if (order_ == "slru") return {node.hits >= 2 ? 1 : 0, node.used};
  if (order_ == "fifo") return {node.born, 0};
  if (order_ == "filo") return {-node.born, 0};
  if (order_ == "mru") return {-node.used, 0};
  if (order_ == "priority") return {node.priority, node.used};
  return {node.used, 0};
}

// Rule 52.
std::int64_t SglangTree::Evict(std::int64_t wanted) {
  std::int64_t gone = 0;
  while (gone < wanted) {
    Node* victim = nullptr;
    EachNode(root(), [&](Node* node) {
      if (node->locks > 0 || !node->children.empty()) return;
      if (victim == nullptr || Rank(*node) < Rank(*victim)) victim = node;
    });
    if (victim == nullptr) break;
    gone += static_cast<std::int64_t>(victim->key.size());
    auto& siblings = victim->parent->children;
    siblings.erase(std::find_if(siblings.begin(), siblings.end(),
                                [&](const auto& child) { return child.get() == victim; }));
  }
  return gone;
}

std::int64_t SglangTree::Evictable() const {
  std::int64_t tokens = 0;
  EachNode(root_.get(), [&](Node* node) {
    if (node->locks == 0) tokens += static_cast<std::int64_t>(node->key.size());
  });
  return tokens;
}

}  // namespace servecast::testing
