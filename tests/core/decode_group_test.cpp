// A group of decodes against its members followed one by one.
#include "serving/replica/decode_group.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

constexpr std::int64_t kBlock = 4;

struct Member {
  std::int32_t id;
  std::int64_t computed, left, ahead, order;
};

// One step takes a nanosecond for each of its decodes, a thousand for each token of context, a
// million for each block.
class Sum final : public LatencyModel {
 public:
  StepPrice Price(const BatchShape& s) const override {
    return {s.decode_seqs + 1000 * s.decode_context_tokens + 1000000 * s.decode_kv_blocks,
            StepBound::kBandwidth};
  }
  HostTimes TakeUpTimes(std::int64_t) const override { return {}; }
};

TEST(DecodeGroup, RandomJoinsStepsAndLeaves_SumsAreThoseOfTheMembers) {
  DecodeGroup group(kBlock, {}, 8, true);
  std::vector<Member> members;
  for (std::int64_t i = 0; i < 20000; ++i) {
    const auto drawn = static_cast<std::int64_t>(Mix64(static_cast<std::uint64_t>(i)) >> 8);
    const auto id = static_cast<std::int32_t>(drawn % 8);
    const auto at =
        std::find_if(members.begin(), members.end(), [id](const Member& m) { return m.id == id; });
    if (drawn / 8 % 3 > 0) {
      for (Member& m : members) ++m.computed, --m.left;
      group.Step();
    } else if (at == members.end()) {
      Member m{id, drawn / 64 % 100 + 1, drawn / 8192 % 30 + 1, 0, i};
      m.ahead = group.Join(m.id, m.computed, m.left, m.order);
      members.push_back(m);
    } else {
      group.Leave(at->id, at->ahead);
      members.erase(at);
    }
    while (group.HasEnded()) {
      const auto ended =
          std::min_element(members.begin(), members.end(), [](const Member& a, const Member& b) {
            return a.left != b.left ? a.left < b.left : a.order < b.order;
          });
      ASSERT_EQ(ended->left, 0);
      ASSERT_EQ(group.Ended(), ended->id);
      group.Leave(ended->id, ended->ahead);
      members.erase(ended);
    }
    std::int64_t context = 0, blocks = 0, due = 0, longest = 0;
    for (const Member& m : members) {
      ASSERT_GT(m.left, 0);
      ASSERT_EQ(group.step() + m.ahead, m.computed);
      context += m.computed;
      longest = std::max(longest, m.computed);
      blocks += CeilDiv(m.computed + 1, kBlock);
      due += m.computed % kBlock == 0 ? 1 : 0;
    }
    ASSERT_EQ(group.size(), static_cast<std::int64_t>(members.size()));
    ASSERT_EQ(group.shape().decode_context_tokens, context);
    ASSERT_EQ(group.shape().decode_longest, longest);
    ASSERT_EQ(group.shape().decode_kv_blocks, blocks);
    ASSERT_EQ(group.due(), due);
  }
}

TEST(DecodeGroup, LooksAhead_QuietUntilItsFirstMemberEndsOrBlocksRunOut) {
  DecodeGroup group(kBlock, {}, 2);
  group.Join(0, 6, 3, 0);  // computes tokens 7, 8 and, in a third block, 9
  group.Join(1, 2, 9, 1);
  const TimeNs first = 2 + 8000 + 3000000, second = 2 + 10000 + 3000000,
               third = 2 + 12000 + 5000000;
  EXPECT_EQ(group.QuietUntil(Sum(), 100, 2), 100 + first + second + third);
  EXPECT_EQ(group.QuietUntil(Sum(), 100, 1), 100 + first + second);
  EXPECT_EQ(group.step(), 0);
}

}  // namespace
}  // namespace servecast
