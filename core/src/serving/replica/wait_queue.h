// The waiting queue of a replica: in order of enqueue, with preempted requests in front, or by a
// policy's key. Requests that end in it (their client gave up, or their last token came while they
// waited) are forgotten when they get to the head.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast {

class WaitQueue {
 public:
  // `states` outlives the queue: a request that waits is kQueued. `by_key`: a heap by (key,
  // arrival, id).
  WaitQueue(const std::vector<RequestState>& states, bool by_key)
      : states_(states), by_key_(by_key) {}

  std::int64_t size() const { return size_; }
  bool by_key() const { return by_key_; }

  // O(1), by key O(log n).
  void Push(double key, TimeNs arrival, RequestId request) {
    ++size_;
    if (!by_key_) {
      arrived_.push_back(request);
      return;
    }
    heap_.push_back({key, arrival, request});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }

  // A preempted request: to the front, by key to its place.
  void PushPreempted(double key, TimeNs arrival, RequestId request) {
    if (by_key_) return Push(key, arrival, request);
    ++size_;
    preempted_.push_back(request);
  }

  // Requires: size() > 0.
  RequestId Head() {
    if (by_key_) {
      while (!Waits(heap_.front().request)) PopHeap();
      return heap_.front().request;
    }
    while (!preempted_.empty()) {
      if (Waits(preempted_.back())) return preempted_.back();
      preempted_.pop_back();
    }
    while (!Waits(arrived_[first_])) ++first_;
    return arrived_[first_];
  }

  // Removes the head that Head() gave.
  void Pop() {
    --size_;
    if (by_key_) {
      PopHeap();
    } else if (!preempted_.empty()) {
      preempted_.pop_back();
    } else if (++first_ == arrived_.size()) {
      arrived_.clear();
      first_ = 0;
    } else if (first_ >= 4096 && 2 * first_ >= arrived_.size()) {
      arrived_.erase(arrived_.begin(), arrived_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

  // A request that waits does so no longer; its state is about to say so.
  void DropOne() { --size_; }

  // Removes one that waits, wherever it stands. O(all that wait), but for the head.
  void Remove(RequestId request) {
    SERVECAST_CHECK(size_ > 0, "I2: who leaves a queue is in it");
    if (Head() == request) return Pop();
    --size_;
    const auto is = [request](const Entry& entry) { return entry.request == request; };
    if (by_key_) {
      const auto at = std::find_if(heap_.begin(), heap_.end(), is);
      SERVECAST_CHECK(at != heap_.end(), "I2: who leaves a queue is in it");
      heap_.erase(at);
      std::make_heap(heap_.begin(), heap_.end(), Later);
      return;
    }
    for (std::vector<RequestId>* part : {&preempted_, &arrived_}) {
      const auto at = std::find(part->rbegin(), part->rend(), request);
      if (at == part->rend()) continue;
      part->erase(std::next(at).base());
      return;
    }
  }

  // All that wait, the head first. O(all that wait), by key times the logarithm of that.
  void List(std::vector<RequestId>& waiting) const {
    waiting.clear();
    const auto add = [&](RequestId request) {
      if (Waits(request)) waiting.push_back(request);
    };
    if (by_key_) {
      std::vector<Entry> sorted = heap_;
      std::sort(sorted.begin(), sorted.end(),
                [](const Entry& a, const Entry& b) { return Later(b, a); });
      for (const Entry& entry : sorted) add(entry.request);
      return;
    }
    std::for_each(preempted_.rbegin(), preempted_.rend(), add);
    std::for_each(arrived_.begin() + static_cast<std::ptrdiff_t>(first_), arrived_.end(), add);
  }

 private:
  struct Entry {
    double key = 0;
    TimeNs arrival = 0;
    RequestId request = kNoRequest;
  };
  static bool Later(const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key > b.key;
    return a.arrival != b.arrival ? a.arrival > b.arrival : a.request > b.request;
  }
  bool Waits(RequestId request) const {
    return states_[static_cast<std::size_t>(request)] == RequestState::kQueued;
  }
  void PopHeap() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    heap_.pop_back();
  }

  const std::vector<RequestState>& states_;
  bool by_key_;
  std::int64_t size_ = 0;
  std::vector<RequestId> preempted_;  // the next at the back
  std::vector<RequestId> arrived_;    // from first_ on, in order of enqueue
  std::size_t first_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace servecast
