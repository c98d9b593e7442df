// The block lists of BLIS, rule by rule. Requests 0, 1, 2 share a beginning of 32 tokens; request 3
// is alone. Blocks have 16 tokens.
#include "serving/blis/blis_kv.h"

#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

class BlisKvTest : public ::testing::Test {
 protected:
  BlisKvTest() {
    requests_.content = {1, 2, 3, 4};
    requests_.segments = {{}, {0, 32}, {0, 32}, {0, 32}, {}};
    requests_.prompt_tokens = {48, 48, 48, 64};
  }

  BlisKv Make(std::int64_t blocks, bool counts_claimed = true, bool caching = true) {
    return BlisKv({blocks, 16, caching, counts_claimed}, requests_);
  }
  // Takes a whole prompt, cached beginning and all.
  static bool Prefill(BlisKv& kv, BlisKv::Holding& holding, RequestId request,
                      std::int64_t prompt) {
    kv.LookUp(request, prompt);
    return kv.Admit(holding, request, prompt);
  }

  // With memory of the host of `host` blocks, from where a block takes 80 us; February moves blocks
  // there while more than half are in use.
  BlisKv MakeTiered(std::int64_t blocks, std::int64_t host, bool today) {
    return BlisKv({blocks, 16, true, today, {host, today, 0.5, 80}}, requests_);
  }

  RequestTable requests_;
  BlisKv::Holding a_, b_, c_, d_;
};

TEST_F(BlisKvTest, SharedBeginning_IsFoundUpToTheFirstMiss) {
  BlisKv kv = Make(100);
  EXPECT_EQ(kv.LookUp(0, 64), 0);
  ASSERT_TRUE(Prefill(kv, a_, 0, 50));
  EXPECT_EQ(kv.used(), 4);
  EXPECT_EQ(kv.LookUp(1, 64), 2);  // 32 shared tokens
  EXPECT_EQ(kv.LookUp(1, 31), 1);  // full blocks of the prompt only
  EXPECT_EQ(kv.LookUp(0, 64), 3);  // its own third; the fourth is not full
  EXPECT_EQ(kv.LookUp(3, 64), 0);
  ASSERT_TRUE(Prefill(kv, b_, 1, 40));
  EXPECT_EQ(kv.used(), 5);
  EXPECT_EQ(kv.hits(), 2);
  EXPECT_EQ(kv.misses(), 5);
}

TEST_F(BlisKvTest, WithoutCaching_NothingIsFound) {
  BlisKv kv = Make(100, true, false);
  ASSERT_TRUE(Prefill(kv, a_, 0, 48));
  EXPECT_EQ(kv.LookUp(0, 48), 0);
}

TEST_F(BlisKvTest, WholePromptCached_ClaimsNothing) {
  BlisKv kv = Make(100);
  ASSERT_TRUE(Prefill(kv, a_, 0, 32));
  kv.Release(a_);
  EXPECT_EQ(kv.LookUp(1, 32), 2);
  ASSERT_TRUE(kv.Admit(b_, 1, 32));
  EXPECT_EQ(kv.used(), 0);
  EXPECT_EQ(kv.hits(), 0);
  // Its first decode takes a block of its own.
  ASSERT_TRUE(kv.Allocate(b_, 1, 32, 33, false));
  EXPECT_EQ(kv.used(), 1);
}

TEST_F(BlisKvTest, Release_PutsTheLastBlockFirst) {
  BlisKv kv = Make(3);
  ASSERT_TRUE(Prefill(kv, a_, 0, 48));
  kv.Release(a_);
  EXPECT_EQ(kv.used(), 0);
  EXPECT_EQ(kv.LookUp(0, 48), 3);
  // One block is overwritten: the last of the released request, which was freed first.
  ASSERT_TRUE(Prefill(kv, d_, 3, 10));
  EXPECT_EQ(kv.LookUp(0, 48), 2);
  EXPECT_EQ(kv.evicted(), 1);
}

TEST_F(BlisKvTest, BlocksNeverTaken_ComeBeforeReleasedOnes) {
  BlisKv kv = Make(4);
  ASSERT_TRUE(Prefill(kv, a_, 0, 32));
  kv.Release(a_);
  ASSERT_TRUE(Prefill(kv, d_, 3, 32));
  EXPECT_EQ(kv.LookUp(0, 32), 2);
  ASSERT_TRUE(kv.Allocate(d_, 3, 32, 33, false));
  EXPECT_EQ(kv.LookUp(0, 32), 1);
}

TEST_F(BlisKvTest, OverwrittenBlock_TakesTheNameEvenFromItsNewOwner) {
  BlisKv kv = Make(4);
  // Two prompts compute the same first block at once: the second owns its name.
  ASSERT_TRUE(kv.Allocate(a_, 0, 0, 16, true));
  ASSERT_TRUE(kv.Allocate(b_, 1, 0, 16, true));
  kv.Release(a_);
  EXPECT_EQ(kv.LookUp(2, 32), 1);
  ASSERT_TRUE(kv.Allocate(d_, 3, 0, 48, true));  // two untouched blocks, then a's
  EXPECT_EQ(kv.LookUp(2, 32), 0);                // though b still has the content
}

TEST_F(BlisKvTest, PartialBlockThatFillsUp_IsNamedInDecodeToo) {
  BlisKv kv = Make(10);
  ASSERT_TRUE(Prefill(kv, d_, 3, 15));
  EXPECT_EQ(kv.LookUp(3, 16), 0);
  ASSERT_TRUE(kv.Allocate(d_, 3, 15, 16, false));
  EXPECT_EQ(kv.LookUp(3, 16), 1);
  EXPECT_EQ(kv.used(), 1);
  // With blocks of one token every decode fills a fresh block at once: those are not named.
  BlisKv tiny({10, 1, true, true}, requests_);
  ASSERT_TRUE(tiny.Allocate(a_, 3, 0, 1, true));
  ASSERT_TRUE(tiny.Allocate(a_, 3, 1, 2, false));
  EXPECT_EQ(tiny.LookUp(3, 2), 1);
}

TEST_F(BlisKvTest, Chunk_NeedsBlocksBeyondWhatTheLastOneHasLeft) {
  BlisKv kv = Make(2);
  ASSERT_TRUE(kv.Allocate(d_, 3, 0, 10, true));
  EXPECT_FALSE(kv.Allocate(d_, 3, 10, 33, true));
  EXPECT_EQ(kv.used(), 1);
  EXPECT_TRUE(kv.Allocate(d_, 3, 10, 32, true));
  EXPECT_FALSE(kv.Allocate(d_, 3, 32, 33, false));
}

TEST_F(BlisKvTest, ClaimedFreeBlocks_CountTodayAndWereForgottenInFebruary) {
  // Three blocks, two of them free and cached: a prompt of two cached and two new ones needs four.
  for (const bool today : {true, false}) {
    BlisKv kv = Make(3, today);
    BlisKv::Holding a, b, d;
    ASSERT_TRUE(Prefill(kv, a, 0, 32));
    kv.Release(a);
    ASSERT_EQ(kv.LookUp(1, 64), 2);
    EXPECT_FALSE(kv.Admit(b, 1, 64));
    // February claimed two, took the third, found no fourth, and undid it all.
    EXPECT_EQ(kv.used(), 0);
    EXPECT_EQ(b.blocks, 0);
    EXPECT_EQ(kv.hits(), 0);
    EXPECT_EQ(kv.misses(), 2);
    EXPECT_EQ(kv.LookUp(1, 64), 2);
    // What was undone is first in line again: the third block, so that both cached ones stay.
    ASSERT_TRUE(Prefill(kv, d, 3, 16));
    EXPECT_EQ(kv.LookUp(1, 64), 2) << today;
  }
}

TEST_F(BlisKvTest, UndoneAllocation_GivesOverwrittenNamesBack) {
  BlisKv kv = Make(4, false);
  ASSERT_TRUE(Prefill(kv, d_, 3, 16));
  ASSERT_TRUE(Prefill(kv, a_, 0, 32));
  kv.Release(d_);
  kv.Release(a_);  // free: the untouched fourth, d's, a's second, a's first
  ASSERT_EQ(kv.LookUp(1, 96), 2);
  // Two claimed and four new of four free: takes the fourth and d's, then there is none.
  EXPECT_FALSE(kv.Admit(b_, 1, 96));
  EXPECT_EQ(kv.used(), 0);
  EXPECT_EQ(kv.LookUp(3, 16), 1);
  EXPECT_EQ(kv.evicted(), 0);
}

TEST_F(BlisKvTest, CountedDecodes_AreToldLaterAndFoundThen) {
  BlisKv kv = Make(8), plain = Make(8);
  BlisKv::Holding told;
  ASSERT_TRUE(Prefill(kv, d_, 3, 20));
  ASSERT_TRUE(Prefill(plain, told, 3, 20));
  ASSERT_TRUE(kv.IsUnobserved(d_, 3, 20));
  for (std::int64_t token = 20; token < 70; ++token) {
    kv.TakeForDecodes(token % 16 == 0 ? 1 : 0);
    kv.Fill(1);
    ASSERT_TRUE(plain.Allocate(told, 3, token, token + 1, false));
    EXPECT_EQ(kv.used(), plain.used());
    EXPECT_EQ(kv.unused(), plain.unused());
    EXPECT_EQ(kv.misses(), plain.misses());
  }
  EXPECT_EQ(kv.LookUp(3, 64), 1);
  kv.CatchUp(d_, 3, 20, 70);
  EXPECT_EQ(kv.LookUp(3, 64), 4);
  EXPECT_EQ(d_.blocks, told.blocks);
  EXPECT_EQ(d_.last_fill, told.last_fill);
  kv.Release(d_);
  EXPECT_EQ(kv.used(), 0);
  EXPECT_EQ(kv.unused(), 0);
}

TEST_F(BlisKvTest, Decodes_AreObservedWhereOthersBeginWithThemOrCopiesAreAbout) {
  // Requests 4 and 5 have one content, at once; 6 and 7 are turns of another.
  requests_.content = {1, 2, 3, 4, 5, 5, 6, 6};
  requests_.segments.resize(7);
  requests_.prompt_tokens.assign(8, 16);
  requests_.think = {-1, -1, -1, -1, -1, -1, -1, 0};
  BlisKv kv = Make(100);
  BlisKv::Holding others, turn;
  ASSERT_TRUE(Prefill(kv, others, 4, 16));
  EXPECT_FALSE(kv.IsUnobserved(others, 4, 16));
  ASSERT_TRUE(Prefill(kv, turn, 6, 16));
  EXPECT_TRUE(kv.IsUnobserved(turn, 6, 16));
  // Within what it shares with 1 and 2, its decodes are theirs, too.
  ASSERT_TRUE(Prefill(kv, a_, 0, 16));
  EXPECT_FALSE(kv.IsUnobserved(a_, 0, 16));
  // It was preempted after 32 decodes, whose blocks it does not look for.
  ASSERT_TRUE(Prefill(kv, d_, 3, 16));
  kv.TakeForDecodes(2);
  kv.CatchUp(d_, 3, 16, 48);
  kv.Release(d_);
  ASSERT_TRUE(Prefill(kv, d_, 3, 20));
  EXPECT_FALSE(kv.IsUnobserved(d_, 3, 20));
  // Without prefix caching names are nothing, and with a host all is looked at.
  BlisKv uncached = Make(100, true, false), tiered = MakeTiered(100, 10, false);
  BlisKv::Holding b, c;
  ASSERT_TRUE(Prefill(uncached, b, 0, 16));
  EXPECT_TRUE(uncached.IsUnobserved(b, 0, 16));
  ASSERT_TRUE(Prefill(tiered, c, 6, 16));
  EXPECT_FALSE(tiered.IsUnobserved(c, 6, 16));
}

TEST_F(BlisKvTest, FebruarysHost_TakesFreeBlocksWhileMoreThanTheThresholdAreInUse) {
  BlisKv kv = MakeTiered(5, 2, false);
  ASSERT_TRUE(Prefill(kv, d_, 3, 20));
  ASSERT_TRUE(Prefill(kv, a_, 0, 48));
  kv.StartStep(7000);
  kv.Release(d_);  // 3 of 5 are in use
  EXPECT_EQ(kv.host().offloaded_blocks, 1);
  EXPECT_EQ(kv.LookUp(3, 64), 0);
  kv.Release(a_);  // none
  EXPECT_EQ(kv.host().offloaded_blocks, 1);
  EXPECT_EQ(kv.LookUp(0, 48), 3);
  // What was moved is free still, behind the one that had no name: both are taken before a's.
  ASSERT_TRUE(Prefill(kv, b_, 1, 60));
  EXPECT_EQ(kv.LookUp(0, 48), 3);
}

TEST_F(BlisKvTest, FebruarysHost_GivesBackWhenAnAllocationFailsWhoseverItWas) {
  for (const std::int64_t later : {999, 1000}) {
    BlisKv kv = MakeTiered(4, 10, false);
    BlisKv::Holding a, d;
    ASSERT_TRUE(Prefill(kv, d, 3, 16));
    ASSERT_TRUE(Prefill(kv, a, 0, 48));
    kv.StartStep(7000);
    kv.Release(d);
    ASSERT_EQ(kv.host().offloaded_blocks, 1);
    kv.StartStep(7000 + later);
    // One block is free, two are asked for; it gets d's content back, and that is all.
    EXPECT_FALSE(kv.Allocate(a, 0, 48, 80, true));
    EXPECT_EQ(kv.LookUp(3, 64), 1);
    EXPECT_EQ(kv.host().tiers[0].loaded_blocks, 1);
    EXPECT_EQ(kv.host().thrashed_blocks, later < 1000 ? 1 : 0);
    EXPECT_EQ(kv.host_misses(), 0);
    EXPECT_EQ(kv.TakeTransfer(), 80);
    EXPECT_EQ(kv.TakeTransfer(), 0);
    EXPECT_FALSE(kv.Allocate(a, 0, 48, 80, true));
    EXPECT_EQ(kv.host_misses(), 1);
    EXPECT_EQ(kv.used(), 3);
  }
}

TEST_F(BlisKvTest, TodaysHost_MirrorsTheBatchAndKeepsWhatWasTouchedLast) {
  BlisKv kv = MakeTiered(4, 3, true);
  ASSERT_TRUE(Prefill(kv, a_, 0, 48));
  kv.Mirror(a_);
  kv.Mirror(a_);
  EXPECT_EQ(kv.host().offloaded_blocks, 3);
  kv.Release(a_);
  ASSERT_TRUE(Prefill(kv, d_, 3, 63));  // in all blocks; three are full, none is mirrored yet
  kv.Release(d_);
  ASSERT_EQ(kv.LookUp(1, 48), 0);
  ASSERT_TRUE(kv.Admit(b_, 1, 48));
  EXPECT_EQ(kv.found(), 2);  // what b shares with a, not a's third
  EXPECT_EQ(kv.hits(), 2);
  EXPECT_EQ(kv.used(), 3);
  EXPECT_EQ(kv.host().tiers[0].loaded_blocks, 2);
  EXPECT_EQ(kv.TakeTransfer(), 160);
  kv.Mirror(b_);  // b's third pushes a's out, which was not touched
  EXPECT_EQ(kv.host().offloaded_blocks, 4);
  EXPECT_EQ(kv.host().thrashed_blocks, 1);
  kv.Release(b_);
  ASSERT_TRUE(Prefill(kv, d_, 3, 64));
  kv.Release(d_);
  ASSERT_EQ(kv.LookUp(0, 48), 0);
  ASSERT_TRUE(kv.Admit(a_, 0, 48));
  EXPECT_EQ(kv.found(), 2);
}

TEST_F(BlisKvTest, TodaysHost_BringsNoMoreBackThanAreFree) {
  BlisKv kv = MakeTiered(4, 10, true);
  ASSERT_TRUE(Prefill(kv, a_, 0, 48));
  kv.Mirror(a_);
  kv.Release(a_);
  ASSERT_TRUE(Prefill(kv, d_, 3, 64));
  kv.Release(d_);
  requests_.prompt_tokens[3] = 33;
  ASSERT_TRUE(Prefill(kv, d_, 3, 33));  // two cached ones and a fresh one: one more is free
  ASSERT_EQ(kv.LookUp(0, 48), 0);
  EXPECT_FALSE(kv.Admit(a_, 0, 48));
  EXPECT_EQ(kv.found(), 1);
  EXPECT_EQ(kv.host().tiers[0].loaded_blocks, 1);
  EXPECT_EQ(kv.used(), 3);
}

TEST_F(BlisKvTest, TodaysHost_CanOverwriteThePrefixThatItContinues) {
  BlisKv kv = MakeTiered(3, 10, true);
  ASSERT_TRUE(Prefill(kv, a_, 0, 48));
  kv.Mirror(a_);
  kv.Release(a_);
  ASSERT_TRUE(Prefill(kv, d_, 3, 16));  // in the block of a's third
  ASSERT_EQ(kv.LookUp(0, 48), 2);
  // The next free block is that of a's second: the third comes back instead of it.
  EXPECT_FALSE(kv.Admit(a_, 0, 48));
  EXPECT_EQ(kv.found(), 1);
}

}  // namespace
}  // namespace servecast::testing
