// Binary min-heap over small dense ids with (key, tie) order, and removal or change by id.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace servecast {

class IndexedHeap {
 public:
  // Ids are 0..capacity-1. No allocation after construction.
  explicit IndexedHeap(std::int32_t capacity) : position_(static_cast<std::size_t>(capacity), -1) {
    heap_.reserve(static_cast<std::size_t>(capacity));
  }

  // One id more.
  void Grow() { position_.push_back(-1); }

  bool empty() const { return heap_.empty(); }
  bool Has(std::int32_t id) const { return position_[static_cast<std::size_t>(id)] >= 0; }
  // Requires: !empty().
  std::int32_t TopId() const { return heap_[0].id; }
  std::int64_t TopKey() const { return heap_[0].key; }

  // Requires: id is in the heap.
  std::int64_t KeyOf(std::int32_t id) const { return heap_[Position(id)].key; }

  // Requires: id is not in the heap. O(log n).
  void Push(std::int32_t id, std::int64_t key, std::int64_t tie) {
    heap_.push_back({key, tie, id});
    position_[static_cast<std::size_t>(id)] = static_cast<std::int32_t>(heap_.size() - 1);
    Up(heap_.size() - 1);
  }

  // Requires: id is in the heap. O(log n).
  void Remove(std::int32_t id) {
    std::size_t at = Position(id);
    position_[static_cast<std::size_t>(id)] = -1;
    const Item last = heap_.back();
    heap_.pop_back();
    if (at == heap_.size()) return;
    // The gap sinks to a leaf: there is where the last one most often belongs.
    for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1].Before(heap_[child])) ++child;
      Place(at, heap_[child]);
      at = child;
    }
    heap_[at] = last;
    Up(at);
  }

 private:
  struct Item {
    std::int64_t key, tie;
    std::int32_t id;
    bool Before(const Item& other) const {
      return key != other.key ? key < other.key : tie < other.tie;
    }
  };

  std::size_t Position(std::int32_t id) const {
    return static_cast<std::size_t>(position_[static_cast<std::size_t>(id)]);
  }
  void Place(std::size_t at, const Item& item) {
    heap_[at] = item;
    position_[static_cast<std::size_t>(item.id)] = static_cast<std::int32_t>(at);
  }
  void Up(std::size_t at) {
    const Item item = heap_[at];
    while (at > 0 && item.Before(heap_[(at - 1) / 2])) {
      Place(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    Place(at, item);
  }

  std::vector<Item> heap_;
  std::vector<std::int32_t> position_;  // -1: not in the heap
};

}  // namespace servecast
