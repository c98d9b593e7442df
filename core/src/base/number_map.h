// A map from numbers to numbers of 0 and more, for hot look-ups: open addressing in a power of two
// of slots, half of them at most taken, no tombstones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace servecast {

template <class Key>
class NumberMap {
 public:
  static constexpr std::int32_t kNone = -1;

  std::size_t size() const { return size_; }

  // kNone: not there.
  std::int32_t Find(Key key) const {
    if (slots_.empty()) return kNone;
    for (std::size_t at = Home(key);; at = Next(at)) {
      if (slots_[at].value == kNone || slots_[at].key == key) return slots_[at].value;
    }
  }

  // Requires: it is not there, and value >= 0.
  void Insert(Key key, std::int32_t value) {
    if (2 * ++size_ > slots_.size()) Grow();
    Put(key, value);
  }

  // Requires: it is there. Those behind it that it kept from their homes move up.
  void Erase(Key key) {
    std::size_t gap = Home(key);
    while (slots_[gap].key != key) gap = Next(gap);
    for (std::size_t at = Next(gap); slots_[at].value != kNone; at = Next(at)) {
      const std::size_t from_home = (at - Home(slots_[at].key)) & (slots_.size() - 1);
      if (from_home < ((at - gap) & (slots_.size() - 1))) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
    --size_;
  }

 private:
  struct Slot {
    Key key = 0;
    std::int32_t value = kNone;
  };

  std::size_t Home(Key key) const {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(key) * kGolden) >> 32) &
           (slots_.size() - 1);
  }
  std::size_t Next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  void Put(Key key, std::int32_t value) {
    std::size_t at = Home(key);
    while (slots_[at].value != kNone) at = Next(at);
    slots_[at] = {key, value};
  }

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value != kNone) Put(slot.key, slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace servecast
