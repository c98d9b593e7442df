// The radix sort and the indexed heap, each against the library's plain counterpart.
#include "base/sort.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "base/indexed_heap.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

struct Item {
  std::uint64_t key = 0;
  int place = 0;
  friend bool operator==(const Item&, const Item&) = default;
};

TEST(RadixSort, AnyKeys_SortsStably) {
  const std::uint64_t masks[] = {0,         1, 0xFF, 0xF0F0F0F0F0F0F0F0ULL, ~0ULL, 0xFFFULL << 52,
                                 1ULL << 63};
  for (const std::uint64_t mask : masks) {
    for (const int size : {0, 1, 2, 100, 3000}) {
      std::vector<Item> items, scratch(7);
      for (int i = 0; i < size; ++i)
        items.push_back({RandomBits(1, Stream::kArrival, i) & mask, i});
      std::vector<Item> expected = items;
      std::stable_sort(expected.begin(), expected.end(),
                       [](const Item& a, const Item& b) { return a.key < b.key; });
      RadixSort(items, scratch, [](const Item& item) { return item.key; });
      EXPECT_EQ(items, expected) << mask << " " << size;
    }
  }
}

TEST(IndexedHeap, RandomOperations_AgreeWithASet) {
  constexpr std::int32_t kIds = 60;
  IndexedHeap heap(kIds);
  using Entry = std::tuple<std::int64_t, std::int64_t, std::int32_t>;
  std::set<Entry> model;
  std::vector<Entry> of(kIds);
  std::vector<bool> in(kIds, false);
  for (std::int64_t i = 0; i < 50000; ++i) {
    const std::uint64_t dice = RandomBits(2, Stream::kArrival, i);
    const auto id = static_cast<std::int32_t>(dice % kIds);
    const auto at = static_cast<std::size_t>(id);
    const auto key = static_cast<std::int64_t>((dice >> 20) % 50) - 25;  // many equal keys
    if (!in[at]) {
      of[at] = {key, id, id};
      heap.Push(id, key, id);
    } else {
      model.erase(of[at]);
      heap.Remove(id);
      in[at] = false;
      ASSERT_EQ(heap.empty(), model.empty());
      continue;
    }
    in[at] = true;
    model.insert(of[at]);
    ASSERT_EQ(heap.TopId(), std::get<2>(*model.begin()));
    ASSERT_EQ(heap.TopKey(), std::get<0>(*model.begin()));
  }
  while (!model.empty()) {
    ASSERT_EQ(heap.TopId(), std::get<2>(*model.begin()));
    heap.Remove(heap.TopId());
    model.erase(model.begin());
  }
  EXPECT_TRUE(heap.empty());
}

}  // namespace
}  // namespace servecast
