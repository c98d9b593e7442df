// The waiting queue of a replica: in order of enqueue, with preempted requests in front, or by a
// policy's key. Requests that leave it from the middle (their client gave up, or their last token
// came while they waited) are forgotten when they get to the head.
#pragma once

#include <algorithm>
#include <cstdint>
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
