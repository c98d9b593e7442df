// The decodes of a batch that all make a token in every step, as sums. See
// serving/replica/decode_group.h for the idea. Where nobody sees the names of its blocks a member
// is counted: that it takes a block is a number. A step touches only others whose last KV block is
// full (they take one) or gets full (it gets its name). Whether a name is found can depend on what
// is taken before it is given, so those that are due are listed by the phase of the step, in the
// batch's order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "serving/blis/blis_seats.h"

namespace servecast {

class BlisDecodes {
 public:
  using Members = std::vector<BlisMember>;

  explicit BlisDecodes(std::int64_t block_size)
      : block_size_(block_size), due_(static_cast<std::size_t>(block_size)) {}

  std::int64_t size() const { return size_; }
  std::int64_t context() const { return context_; }  // tokens that are computed, of all

  // In the batch's order. Those whose last block is full as the next step starts, or that have
  // none: such as are counted, and such as are not; and of these those whose last block has room
  // for one token, in a block of several.
  const Members& counted_due() const { return due_[At(0)].counted; }
  const Members& due() const { return due_[At(0)].touched; }
  const Members& filling() const { return block_size_ > 1 ? due_[At(1)].touched : none_; }

  // One of so many computed tokens, with room for `room` in its last block (0: it has none), which
  // makes its last token in the step after `steps` - 1 more.
  BlisTrack Join(const BlisMember& member, std::int64_t computed, std::int64_t room,
                 std::int64_t steps, bool counted) {
    const BlisTrack track{computed - step_, At(room), counted};
    Members& due = DueWith(track);
    due.insert(std::upper_bound(due.begin(), due.end(), member, BlisMember::Before), member);
    finishes_.push_back({step_ + steps, member});
    std::push_heap(finishes_.begin(), finishes_.end(), Finish::Later);
    ++size_;
    context_ += computed;
    return track;
  }
  void Leave(const BlisMember& member, const BlisTrack& track) {
    Members& due = DueWith(track);
    due.erase(std::lower_bound(due.begin(), due.end(), member, BlisMember::Before));
    --size_;
    context_ -= Computed(track);
  }
  void Clear() {
    for (Due& due : due_) {
      due.counted.clear();
      due.touched.clear();
    }
    finishes_.clear();
    size_ = context_ = 0;
  }

  std::int64_t Computed(const BlisTrack& track) const { return track.ahead + step_; }

  // All made a token.
  void Step() {
    ++step_;
    context_ += size_;
  }
  // Removes one that has made its last token from the list of finishes and gives it; false: there
  // is none. It may have left before.
  bool PopFinished(BlisMember& member) {
    if (finishes_.empty() || finishes_.front().step > step_) return false;
    member = finishes_.front().member;
    std::pop_heap(finishes_.begin(), finishes_.end(), Finish::Later);
    finishes_.pop_back();
    return true;
  }

 private:
  struct Finish {
    std::int64_t step = 0;
    BlisMember member;
    static bool Later(const Finish& a, const Finish& b) { return a.step > b.step; }
  };

  struct Due {
    Members counted, touched;
  };

  Members& DueWith(const BlisTrack& track) {
    Due& due = due_[track.phase];
    return track.counted ? due.counted : due.touched;
  }
  std::size_t At(std::int64_t ahead) const {
    return static_cast<std::size_t>((step_ + ahead) % block_size_);
  }

  std::int64_t block_size_;
  std::int64_t step_ = 0, size_ = 0, context_ = 0;
  std::vector<Due> due_;  // by the phase of the step at which they need a block
  Members none_;
  std::vector<Finish> finishes_;  // a heap
};

}  // namespace servecast
