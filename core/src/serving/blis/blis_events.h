// BLIS's event queue: Go's container/heap to the letter, since how it leaves ties is part of the
// February rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/base.h"

namespace servecast {

class BlisEvents {
 public:
  using Us = std::int64_t;  // simulated microseconds

  static constexpr Us kLastUs = kClockEnd / 1000;
  // Sums of delays stay within the clock.
  static Us Sum(Us a, Us b) { return std::min(a + b, kLastUs); }

  // In the order of today's BLIS at one time; it has no event of a preemption.
  enum class Kind : std::uint8_t {
    kArrival,
    kQueued,
    kStep,
    kScheduled,
    kLeft,
    kTimeout,
    kPreempted
  };

  struct Event {
    Us time;
    std::uint64_t rank;  // kind, then order of creation
    RequestId request;
  };
  static Kind KindOf(const Event& event) { return static_cast<Kind>(event.rank >> 56); }

  // `orders_ties`: events of one time go by rank; else the heap knows times only.
  explicit BlisEvents(bool orders_ties) : orders_ties_(orders_ties) {}

  bool empty() const { return !first_apart_ && events_.empty(); }
  const Event& Top() const { return first_apart_ ? first_ : events_.front(); }

  void Push(Us time, Kind kind, RequestId request) {
    Event event{time, static_cast<std::uint64_t>(kind) << 56 | created_++, request};
    // Where no two events are equal the first one may stand apart: mostly it is the next step,
    // which then costs nothing. February's ties depend on each event's way through the heap.
    if (orders_ties_ && (empty() || Before(event, Top()))) {
      std::swap(event, first_);
      if (!std::exchange(first_apart_, true)) return;
    }
    Insert(event);
  }

  // Requires: not empty.
  Event Pop() {
    if (std::exchange(first_apart_, false)) return first_;
    const std::size_t last = events_.size() - 1;
    std::swap(events_[0], events_[last]);
    for (std::size_t i = 0; 2 * i + 1 < last;) {
      std::size_t child = 2 * i + 1;
      if (child + 1 < last && Before(events_[child + 1], events_[child])) ++child;
      if (!Before(events_[child], events_[i])) break;
      std::swap(events_[i], events_[child]);
      i = child;
    }
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }

 private:
  bool Before(const Event& a, const Event& b) const {
    return a.time != b.time ? a.time < b.time : orders_ties_ && a.rank < b.rank;
  }

  void Insert(const Event& event) {
    events_.push_back(event);
    for (std::size_t i = events_.size() - 1; i > 0;) {
      const std::size_t parent = (i - 1) / 2;
      if (!Before(events_[i], events_[parent])) break;
      std::swap(events_[i], events_[parent]);
      i = parent;
    }
  }

  bool orders_ties_;
  std::uint64_t created_ = 0;
  std::vector<Event> events_;
  Event first_{};  // before all of events_, if first_apart_
  bool first_apart_ = false;
};

}  // namespace servecast
