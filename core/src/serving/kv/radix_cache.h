// SGLang's radix cache: a tree whose edges are texts, in whole pages, without a token in it.
//
// A token is named by its segment and its place (RequestTable), and that name says all that stands
// before it. So an edge is two places and the segment of its last token; where two texts part is
// found from the parts that they consist of; and the child that a text goes on in is found by the
// name of the last token of its first page: no token is ever compared.
//
// Time is a counter. Leaves that nobody locks wait to be evicted in the chosen order: mostly each
// is used, and made, after those that wait already, so it queues behind them, and only others go to
// a heap. An entry that is no longer true is thrown away when its turn comes.
//
// "Rule" in radix_cache.cpp is one of the README of SGLang's golden traces.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

class RadixCache {
 public:
  using NodeId = std::int32_t;
  static constexpr NodeId kRoot = 0, kNone = -1;

  // `requests` outlives it; of it only content and segments are read. `sparse`: few of its texts
  // will be here.
  RadixCache(std::int64_t page, RadixEviction order, const RequestTable& requests, bool sparse);

  struct Match {
    std::int64_t tokens = 0;  // whole pages
    NodeId node = kRoot;      // where they end
  };
  // The longest beginning of a request's first `tokens` tokens that is here. Its nodes are used by
  // it; one that matches in part is split. O(parts of the text, nodes on its path).
  Match Find(RequestId request, std::int64_t tokens);
  // Puts them in, in whole pages; returns how many were here already, and the node where all end.
  // `of_chunk`: of a prompt that is not computed to its end, which counts as no hit.
  Match Insert(RequestId request, std::int64_t tokens, std::int64_t priority, bool of_chunk);

  // Of the text that was looked up last, of which so many tokens are here: what its node has no
  // child for. That the node gets one changes its stamp, until it is forgotten as often.
  std::int32_t Await(std::int64_t matched);
  void Forget(std::int32_t awaited);
  // What a lookup does that ends in the node and splits none.
  void Touch(NodeId node);
  // The same as long as the node is here and has not got a child that is awaited.
  std::int64_t Stamp(NodeId node) const { return At(node).stamp; }

  // The path from the root to the node, of which nothing is evicted as long as it is locked.
  void Lock(NodeId node);
  void Unlock(NodeId node);
  // Unlock(from) and Lock(to). O(nodes between them) where the first is above the second.
  void MoveLock(NodeId from, NodeId to);
  // Evicts leaves that nobody locks until so many tokens are gone, or none is left; returns how
  // many are.
  std::int64_t Evict(std::int64_t tokens);

  std::int64_t evictable() const { return evictable_; }  // tokens of nodes that nobody locks
  std::int64_t evicted() const { return evicted_; }      // tokens, so far
  // Nodes on paths of more than a few, so far: prompts in many small chunks make such.
  std::int64_t walked() const { return walked_; }

  NodeId Parent(NodeId node) const { return At(node).parent; }
  // Among its siblings: in the order in which they came; a split keeps the place.
  std::int64_t Place(NodeId node) const { return At(node).place; }

 private:
  struct Node {
    std::int32_t segment = -1;        // of its last token
    std::int64_t start = 0, end = 0;  // places of its tokens
    NodeId parent = kNone;
    NodeId next = kNone;  // of those whose first page ends in the same segment, by place
    std::int32_t head = -1;
    std::int64_t children = 0, locks = 0, hits = 0, priority = 0;
    std::int64_t used = 0, born = 0, place = 0, stamp = 0;
    bool alive = false;

    std::int64_t size() const { return end - start; }
  };
  // A part of a text: tokens [from, to) are those of a segment.
  struct Part {
    std::int32_t segment;
    std::int64_t from, to;
  };
  using Rank = std::pair<std::int64_t, std::int64_t>;
  struct Candidate {
    Rank rank;
    NodeId node;
    // std::push_heap's top is the smallest.
    friend bool operator<(const Candidate& a, const Candidate& b) { return a.rank > b.rank; }
  };

  Node& At(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  const Node& At(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  ContentSegment Content(std::int32_t segment) const {
    return requests_.segments.empty() ? ContentSegment{}
                                      : requests_.segments[static_cast<std::size_t>(segment)];
  }
  std::int64_t Whole(std::int64_t tokens) const { return tokens / page_ * page_; }
  void ReadText(RequestId request, std::int64_t tokens);
  std::int32_t SegmentIn(std::int32_t segment, std::int64_t place) const;
  std::int32_t SegmentAt(std::int64_t place) const;
  std::int64_t SharedUpTo(const Node& node) const;
  NodeId Child(NodeId node, std::int64_t start);
  NodeId Step(NodeId child, std::int64_t& matched, std::int64_t now);
  NodeId Split(NodeId id, std::int64_t at);
  NodeId NewNode();
  void CountWalked(std::int64_t nodes);
  NodeId& Head(std::int32_t segment);
  NodeId& LinkTo(std::int32_t segment, NodeId parent);
  void Link(NodeId id);
  void Unlink(NodeId id);
  void Drop(NodeId id);
  Rank RankOf(const Node& node) const;
  void Offer(NodeId id);
  void OfferAll();
  Candidate TakeFirst();

  std::int64_t page_;
  RadixEviction order_;
  const RequestTable& requests_;
  bool sparse_;
  std::vector<Node> nodes_;
  std::vector<NodeId> unused_;
  std::vector<NodeId> heads_;                               // by segment: its list of nodes
  std::unordered_map<std::int32_t, NodeId> some_;           // likewise, when sparse
  std::unordered_map<std::int32_t, std::int64_t> awaited_;  // how often
  std::vector<Candidate> queue_;                            // in order, from `first_` on
  std::size_t first_ = 0;
  std::vector<Candidate> heap_;
  std::vector<Part> text_;   // scratch: of the text, its end first
  std::int64_t length_ = 0;  // likewise, in whole pages
  std::int64_t ticks_ = 0, evictable_ = 0, evicted_ = 0, alive_ = 0, walked_ = 0;
};

}  // namespace servecast
