// Requests that decode together, at a cost proportional to changes of the group, not to tokens.
//
// Between two changes of the group every member advances by one token a step. So no progress is
// kept per member but, for all of them together: their number n, the sum K of their contexts, a
// counter D of steps, and phase[block_size], where phase[D mod block_size] of them need a new KV
// block at step D. A step of an unchanged group is then
//
//     take phase[D mod block_size] blocks;  dt = Price(n, K);  now += dt;  K += n;  ++D
//
// and touches no member and allocates nothing. The latency model is asked at every step, so this is
// exact for any model. Of a member one number is kept, by its replica: by how much its context
// is ahead of D. It holds from its joining to its leaving.
//
// When a member ends is known as it joins, so a heap of the steps of last tokens (DecodeGroup) says
// how long the group stays as it is. A scheduler that forms its batches from members that it knows
// one by one takes the sums alone (DecodeSums).
//
// With pipeline stages there are several groups, which take turns (vllm_stages.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/base.h"
#include "base/indexed_heap.h"
#include "cost/kv_groups.h"
#include "serving/batch.h"
#include "serving/policy.h"

namespace servecast {

// Members whose windows still grow (KvWindows): as phase[], by the step that takes their next
// block, and how many of them are full after a step. A member leaves by itself once it is.
class GrowingWindows {
 public:
  GrowingWindows(std::int64_t block_size, const KvWindows& windows);

  bool none() const { return due_.empty(); }
  // Units that step `step` takes.
  std::int64_t Due(std::int64_t step) const { return units_ * due_[At(due_, step)]; }
  void Step(std::int64_t step) {
    std::int64_t& full = full_[At(full_, step)];
    due_[At(due_, step)] -= full;
    full = 0;
  }
  // So many members with `computed` tokens come or go before step `step`.
  void Change(std::int64_t step, std::int64_t computed, std::int64_t members);
  void Clear();

 private:
  static std::size_t At(const std::vector<std::int64_t>& counts, std::int64_t step) {
    return static_cast<std::size_t>(step) % counts.size();
  }

  std::int64_t units_ = 0, last_ = 0;  // last: computed tokens when the last block is taken
  std::vector<std::int64_t> due_, full_;
};

class DecodeSums {
 public:
  explicit DecodeSums(std::int64_t block_size, const KvWindows& windows = {})
      : phase_(static_cast<std::size_t>(block_size), 0), growing_(block_size, windows) {}

  // The group before a step: the one that is next, or one that is looked ahead at.
  struct Point {
    std::int64_t size = 0;     // n
    std::int64_t context = 0;  // K: tokens that are computed
    std::int64_t blocks = 0;   // KV blocks of these
    std::int64_t step = 0;     // D
    std::size_t phase = 0;     // D mod block_size
  };
  const Point& next() const { return next_; }
  std::int64_t size() const { return next_.size; }
  std::int64_t context() const { return next_.context; }
  std::int64_t step() const { return next_.step; }

  // KV blocks that the step takes.
  std::int64_t Due(const Point& point) const { return phase_[point.phase]; }
  std::int64_t due() const { return Due(next_); }
  // What windows take in the next step.
  std::int64_t windows_due() const { return growing_.none() ? 0 : growing_.Due(next_.step); }
  // The step with nothing else in it.
  BatchShape Shape(const Point& point) const {
    BatchShape shape = {point.size, point.context, {}, point.blocks + Due(point), 0, 0};
    shape.decode_longest = std::max<std::int64_t>(0, point.step + most_ahead_);
    return shape;
  }
  BatchShape shape() const { return Shape(next_); }
  // Places for tokens in its blocks that are empty; that the step leaves empty.
  std::int64_t room() const { return next_.blocks * block_size() - next_.context; }
  std::int64_t unused() const { return room() + due() * block_size() - next_.size; }

  // Every member makes a token.
  void Step(Point& point) const {
    point.context += point.size;
    point.blocks += Due(point);
    ++point.step;
    if (++point.phase == phase_.size()) point.phase = 0;
  }
  void Step() {
    if (!growing_.none()) growing_.Step(next_.step);
    Step(next_);
  }

  // One of so many computed tokens joins; returns by how much it is ahead of step().
  std::int64_t Join(std::int64_t computed);
  void Leave(std::int64_t ahead);
  void Clear();  // none is left, and steps count from 0 on

 protected:
  static constexpr std::int64_t kNone = -(std::int64_t{1} << 62);
  std::int64_t most_ahead_ = kNone;  // of all members; kNone: there is none, or it is not kept

 private:
  std::int64_t block_size() const { return static_cast<std::int64_t>(phase_.size()); }
  void Change(std::int64_t computed, std::int64_t members);

  std::vector<std::int64_t> phase_;
  GrowingWindows growing_;
  Point next_;
};

class DecodeGroup : public DecodeSums {
 public:
  // Ids of members are below `seats`. `ranks`: the shape tells the longest context.
  DecodeGroup(std::int64_t block_size, const KvWindows& windows, std::size_t seats,
              bool ranks = false)
      : DecodeSums(block_size, windows),
        finishes_(static_cast<std::int32_t>(seats)),
        ranks_(ranks),
        contexts_(static_cast<std::int32_t>(ranks ? seats : 0)) {}

  // It will make `tokens` tokens. Of several that end at once the lowest `order` is the first.
  std::int64_t Join(std::int32_t id, std::int64_t computed, std::int64_t tokens,
                    std::int64_t order) {
    finishes_.Push(id, step() + tokens - 1, order);
    const std::int64_t ahead = DecodeSums::Join(computed);
    if (ranks_) {
      contexts_.Push(id, -ahead, 0);
      most_ahead_ = -contexts_.TopKey();
    }
    return ahead;
  }
  void Leave(std::int32_t id, std::int64_t ahead) {
    finishes_.Remove(id);
    DecodeSums::Leave(ahead);
    if (!ranks_) return;
    contexts_.Remove(id);
    most_ahead_ = contexts_.empty() ? kNone : -contexts_.TopKey();
  }

  // A member has made its last token: that one, which is to leave.
  bool HasEnded() const { return !finishes_.empty() && finishes_.TopKey() < step(); }
  std::int32_t Ended() const { return finishes_.TopId(); }
  // The first step that ends a member. Requires: there is one.
  std::int64_t last_step() const { return finishes_.TopKey(); }

  // When the first member ends, were the next step to start at `start` and none to come; earlier
  // where blocks run out, and where that is too far to look.
  // REQUIRES: no windows.
  TimeNs QuietUntil(const LatencyModel& latency, TimeNs start, std::int64_t free_blocks) const;

  TimeNs end = 0;           // of its latest step
  TimeNs interference = 0;  // by which prefills made its steps longer, so far

 private:
  IndexedHeap finishes_;  // by the step of the last token
  bool ranks_;
  IndexedHeap contexts_;  // by how far each is ahead, the most first; empty without ranks_
};

}  // namespace servecast
