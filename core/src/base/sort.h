// Radix sort of 64-bit keys: percentiles are most of what is left to do after a run, and on a
// million latencies this is several times faster than a comparison sort.
#pragma once

#include <cstdint>
#include <vector>

namespace servecast {

// Sorts ascending by `Key(item)` (stable), O(n) per digit that differs. `scratch` is overwritten.
template <class T, class Key>
void RadixSort(std::vector<T>& items, std::vector<T>& scratch, Key key) {
  constexpr int kDigitBits = 11;
  constexpr std::size_t kBuckets = std::size_t{1} << kDigitBits;
  std::uint64_t ones = 0, zeros = 0;  // bits that are set, and clear, in some key
  for (const T& item : items) {
    ones |= key(item);
    zeros |= ~key(item);
  }
  const std::uint64_t varying = ones & zeros;
  scratch.resize(items.size());
  for (int shift = 0; shift < 64; shift += kDigitBits) {
    if (((varying >> shift) & (kBuckets - 1)) == 0) continue;
    std::size_t offsets[kBuckets] = {};
    for (const T& item : items) ++offsets[(key(item) >> shift) & (kBuckets - 1)];
    std::size_t sum = 0;
    for (std::size_t& offset : offsets) {
      const std::size_t count = offset;
      offset = sum;
      sum += count;
    }
    for (const T& item : items) scratch[offsets[(key(item) >> shift) & (kBuckets - 1)]++] = item;
    items.swap(scratch);
  }
}

}  // namespace servecast
