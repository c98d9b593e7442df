// See radix_cache.h.
#include "serving/kv/radix_cache.h"

#include <algorithm>

namespace servecast {
namespace {

constexpr std::int64_t kFewNodes = 16;  // of a path, whose walk takes no time to speak of

}  // namespace

RadixCache::RadixCache(std::int64_t page, RadixEviction order, const RequestTable& requests,
                       bool sparse)
    : page_(page), order_(order), requests_(requests), sparse_(sparse) {
  const std::size_t segments =
      requests.segments.empty() ? requests.prompt_tokens.size() : requests.segments.size();
  if (!sparse_) heads_.assign(segments, kNone);
  nodes_.emplace_back().locks = 1;
}

// ---- Texts -----------------------------------------------------------------------------------

void RadixCache::ReadText(RequestId request, std::int64_t tokens) {
  length_ = Whole(tokens);
  text_.clear();
  std::int32_t segment =
      requests_.content.empty() ? request : requests_.content[static_cast<std::size_t>(request)];
  for (std::int64_t to = length_; to > 0;) {
    const ContentSegment content = Content(segment);
    const std::int64_t from = std::min<std::int64_t>(content.shared_tokens, to);
    if (from < to) text_.push_back({segment, from, to});
    to = from;
    segment = content.parent;
  }
}

// Of the text that ends in `segment`.
std::int32_t RadixCache::SegmentIn(std::int32_t segment, std::int64_t place) const {
  while (place < Content(segment).shared_tokens) segment = Content(segment).parent;
  return segment;
}

std::int32_t RadixCache::SegmentAt(std::int64_t place) const {
  for (const Part& part : text_) {
    if (place >= part.from) return part.segment;
  }
  return -1;
}

// Where the text parts from the node's, or ends, or the node does: the deepest segment that both
// have is where it is.
std::int64_t RadixCache::SharedUpTo(const Node& node) const {
  std::int64_t to = node.end;
  for (std::int32_t segment = node.segment; to > 0; segment = Content(segment).parent) {
    const std::int64_t from = std::min<std::int64_t>(Content(segment).shared_tokens, to);
    for (const Part& part : text_) {
      if (part.segment == segment && from < to) return Whole(std::min(part.to, to));
    }
    to = from;
  }
  return 0;
}

// ---- Nodes -----------------------------------------------------------------------------------

RadixCache::NodeId& RadixCache::Head(std::int32_t segment) {
  if (!sparse_) return heads_[static_cast<std::size_t>(segment)];
  return some_.try_emplace(segment, kNone).first->second;
}

// All nodes of a list lie on one path, in its order: who comes before a node is its parent, or
// nobody.
RadixCache::NodeId& RadixCache::LinkTo(std::int32_t segment, NodeId parent) {
  return At(parent).head == segment ? At(parent).next : Head(segment);
}

void RadixCache::Link(NodeId id) {
  Node& node = At(id);
  node.head = SegmentIn(node.segment, node.start + page_ - 1);
  NodeId& link = LinkTo(node.head, node.parent);
  node.next = link;
  link = id;
}

void RadixCache::Unlink(NodeId id) {
  const Node& node = At(id);
  NodeId& link = LinkTo(node.head, node.parent);
  SERVECAST_CHECK(link == id, "I6: a node's list has it behind its parent");
  link = node.next;
  if (sparse_ && Head(node.head) == kNone) some_.erase(node.head);
}

// The one that the text goes on in behind `node`, where `start` is.
RadixCache::NodeId RadixCache::Child(NodeId node, std::int64_t start) {
  if (start >= length_) return kNone;
  const std::int32_t segment = SegmentAt(start + page_ - 1);
  const bool goes_on = At(node).head == segment;
  if (!goes_on && sparse_ && some_.count(segment) == 0) return kNone;
  const NodeId id = goes_on ? At(node).next : Head(segment);
  return id != kNone && At(id).start == start ? id : kNone;
}

RadixCache::NodeId RadixCache::NewNode() {
  ++alive_;
  if (unused_.empty()) {
    unused_.push_back(static_cast<NodeId>(nodes_.size()));
    nodes_.emplace_back();
  }
  const NodeId id = unused_.back();
  unused_.pop_back();
  At(id) = {};
  At(id).alive = true;
  At(id).stamp = ++ticks_;
  return id;
}

// Rule 43: the upper part is the new node.
RadixCache::NodeId RadixCache::Split(NodeId id, std::int64_t at) {
  const NodeId upper = NewNode();
  Unlink(id);
  Node& made = At(upper);
  Node& lower = At(id);
  made.segment = SegmentIn(lower.segment, at - 1);
  made.start = lower.start;
  made.end = lower.start = at;
  made.parent = lower.parent;
  lower.parent = upper;
  made.children = 1;
  made.locks = lower.locks;
  made.hits = lower.hits;
  made.priority = lower.priority;
  made.place = lower.place;
  made.used = ++ticks_;
  made.born = ++ticks_;
  Link(upper);
  Link(id);
  return upper;
}

// Into a child, as far as the text goes.
RadixCache::NodeId RadixCache::Step(NodeId child, std::int64_t& matched, std::int64_t now) {
  At(child).used = now;
  if (At(child).children == 0) Offer(child);
  const Node& node = At(child);
  const bool own = node.segment == text_.front().segment;  // mostly: all of it is the text's
  matched = own ? std::min(node.end, length_) : SharedUpTo(node);
  return matched < At(child).end ? Split(child, matched) : child;
}

// ---- Looking up and putting in ---------------------------------------------------------------

void RadixCache::CountWalked(std::int64_t nodes) {
  if (nodes > kFewNodes) walked_ += nodes;
}

// Rule 42.
RadixCache::Match RadixCache::Find(RequestId request, std::int64_t tokens) {
  ReadText(request, tokens);
  const std::int64_t now = ++ticks_;
  Match match;
  std::int64_t nodes = 0;
  for (NodeId child = Child(kRoot, 0); child != kNone; child = Child(match.node, match.tokens)) {
    const std::int64_t end = At(child).end;
    match.node = Step(child, match.tokens, now);
    ++nodes;
    if (match.tokens < end) break;
  }
  CountWalked(nodes);
  return match;
}

// Rule 44.
RadixCache::Match RadixCache::Insert(RequestId request, std::int64_t tokens, std::int64_t priority,
                                     bool of_chunk) {
  ReadText(request, tokens);
  const std::int64_t now = ++ticks_;
  NodeId node = kRoot;
  std::int64_t there = 0, nodes = 0;
  for (NodeId child = Child(kRoot, 0); child != kNone; child = Child(node, there)) {
    node = Step(child, there, now);
    ++nodes;
    At(node).priority = std::max(At(node).priority, priority);
    At(node).hits += of_chunk ? 0 : 1;
    if (At(node).children == 0) Offer(node);
  }
  CountWalked(nodes);
  if (there == length_) return {there, node};
  const NodeId id = NewNode();
  Node& leaf = At(id);
  leaf.segment = text_.front().segment;
  leaf.start = there;
  leaf.end = length_;
  leaf.parent = node;
  leaf.priority = priority;
  leaf.hits = of_chunk ? 0 : 1;
  leaf.used = ++ticks_;
  leaf.born = leaf.place = ++ticks_;
  ++At(node).children;
  Link(id);
  if (awaited_.count(leaf.head) > 0) At(node).stamp = ++ticks_;
  evictable_ += leaf.size();
  Offer(id);
  return {there, id};
}

std::int32_t RadixCache::Await(std::int64_t matched) {
  if (matched >= length_) return -1;
  const std::int32_t segment = SegmentAt(matched + page_ - 1);
  ++awaited_[segment];
  return segment;
}

void RadixCache::Forget(std::int32_t awaited) {
  const auto found = awaited_.find(awaited);
  if (found != awaited_.end() && --found->second == 0) awaited_.erase(found);
}

void RadixCache::Touch(NodeId node) {
  ++ticks_;
  std::int64_t nodes = 0;
  for (NodeId id = node; id != kRoot; id = At(id).parent, ++nodes) At(id).used = ticks_;
  CountWalked(nodes);
  Offer(node);
}

void RadixCache::Lock(NodeId node) {
  for (; node != kRoot; node = At(node).parent) {
    if (At(node).locks++ == 0) evictable_ -= At(node).size();
  }
}

void RadixCache::Unlock(NodeId node) {
  for (; node != kRoot; node = At(node).parent) {
    SERVECAST_CHECK(At(node).locks > 0, "I6: what is unlocked was locked");
    if (--At(node).locks > 0) continue;
    evictable_ += At(node).size();
    Offer(node);
  }
}

void RadixCache::MoveLock(NodeId from, NodeId to) {
  NodeId above = to;
  while (above != kRoot && At(above).end > At(from).end) above = At(above).parent;
  if (above != from) {
    Unlock(from);
    return Lock(to);
  }
  for (; to != from; to = At(to).parent) {
    if (At(to).locks++ == 0) evictable_ -= At(to).size();
  }
}

// ---- Eviction --------------------------------------------------------------------------------

// Rule 51: the smallest goes first.
RadixCache::Rank RadixCache::RankOf(const Node& node) const {
  switch (order_) {
    case RadixEviction::kLru:
      break;
    case RadixEviction::kLfu:
      return {node.hits, node.used};
    case RadixEviction::kSlru:
      return {node.hits >= 2 ? 1 : 0, node.used};
    case RadixEviction::kFifo:
      return {node.born, 0};
    case RadixEviction::kFilo:
      return {-node.born, 0};
    case RadixEviction::kMru:
      return {-node.used, 0};
    case RadixEviction::kPriority:
      return {node.priority, node.used};
  }
  return {node.used, 0};
}

// To be evicted, if it may be. Entries that are no longer true are thrown out when they are many.
void RadixCache::Offer(NodeId id) {
  const Node& node = At(id);
  if (id == kRoot || node.locks > 0 || node.children > 0) return;
  const std::size_t entries = queue_.size() - first_ + heap_.size();
  if (static_cast<std::int64_t>(entries) > 4 * alive_ + 64) return OfferAll();
  const Candidate candidate = {RankOf(node), id};
  if (queue_.empty() || candidate.rank >= queue_.back().rank) {
    queue_.push_back(candidate);
  } else {
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end());
  }
}

void RadixCache::OfferAll() {
  queue_.clear();
  heap_.clear();
  first_ = 0;
  for (NodeId id = 1; id < static_cast<NodeId>(nodes_.size()); ++id) {
    const Node& node = At(id);
    const bool may_go = node.alive && node.locks == 0 && node.children == 0;
    if (may_go) heap_.push_back({RankOf(node), id});
  }
  std::make_heap(heap_.begin(), heap_.end());
}

// Requires: there is one.
RadixCache::Candidate RadixCache::TakeFirst() {
  const bool queued = first_ < queue_.size();
  if (queued && (heap_.empty() || !(queue_[first_] < heap_.front()))) {
    const Candidate taken = queue_[first_++];
    if (first_ == queue_.size()) {
      queue_.clear();
      first_ = 0;
    } else if (first_ >= 1024 && first_ * 2 >= queue_.size()) {
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return taken;
  }
  const Candidate taken = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
  return taken;
}

void RadixCache::Drop(NodeId id) {
  Unlink(id);
  Node& node = At(id);
  const NodeId parent = node.parent;
  evictable_ -= node.size();
  node.alive = false;
  node.stamp = 0;
  unused_.push_back(id);
  --alive_;
  --At(parent).children;
  Offer(parent);
}

// Rule 52.
std::int64_t RadixCache::Evict(std::int64_t tokens) {
  std::int64_t gone = 0;
  while (gone < tokens && queue_.size() + heap_.size() > 0) {
    const Candidate top = TakeFirst();
    const Node& node = At(top.node);
    const bool may_go = node.alive && node.locks == 0 && node.children == 0;
    if (!may_go || RankOf(node) != top.rank) continue;
    gone += node.size();
    Drop(top.node);
  }
  evicted_ += gone;
  return gone;
}

}  // namespace servecast
