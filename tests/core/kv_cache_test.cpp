// The KV cache by hand, in blocks of 4 tokens: what is found, what it costs, what is overwritten
// first. The differential test compares it with a pool of single blocks at random.
#include "serving/kv/kv_cache.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "workload/request_table.h"

namespace servecast {
namespace {

// Four requests whose first 8 tokens are those of a prefix (segment 0); 4 is a later turn of 0.
RequestTable Requests() {
  RequestTable requests;
  requests.arrival.assign(5, 0);
  requests.prompt_tokens.assign(5, 16);
  requests.output_tokens.assign(5, 1);
  requests.segments = {{}, {0, 8}, {0, 8}, {0, 8}, {0, 8}};
  requests.content = {1, 2, 3, 4, 1};
  return requests;
}

class KvCacheTest : public ::testing::Test {
 protected:
  // As a replica does it: look up, hold, take the rest, make it findable.
  KvCache::Hit Admit(RequestId request, std::int64_t tokens) {
    const KvCache::Hit hit = kv_.LookUp(request, tokens);
    kv_.HoldHit(holding_[static_cast<std::size_t>(request)]);
    kv_.Take(kv_.BlocksFor(tokens) - hit.blocks);
    kv_.Register(holding_[static_cast<std::size_t>(request)], request, tokens);
    return hit;
  }
  void Leave(RequestId request, std::int64_t tokens, bool findable = true) {
    kv_.Release(holding_[static_cast<std::size_t>(request)], request, kv_.BlocksFor(tokens), tokens,
                findable);
  }

  RequestTable requests_ = Requests();
  KvCache kv_{{.usable_blocks = 10, .block_size = 4, .prefix_caching = true}, requests_};
  std::vector<KvCache::Holding> holding_{5};
};

TEST_F(KvCacheTest, EmptyCache_FindsNothing) {
  EXPECT_EQ(Admit(0, 16).blocks, 0);
  EXPECT_EQ(kv_.used(), 4);
}

TEST_F(KvCacheTest, SharedBlocks_AreFoundAtOnceAndCountOnce) {
  Admit(0, 16);
  const KvCache::Hit hit = Admit(1, 16);
  EXPECT_EQ(hit.blocks, 2);  // the prefix, while its first owner still runs
  EXPECT_EQ(hit.idle, 0);
  EXPECT_EQ(kv_.used(), 6);
  Leave(0, 16);
  EXPECT_EQ(kv_.used(), 4);  // 1 holds the prefix too
  Leave(1, 16);
  EXPECT_EQ(kv_.used(), 0);
}

TEST_F(KvCacheTest, WholePromptCached_ComputesItsLastBlockAgain) {
  Admit(0, 16);
  Leave(0, 16);
  const KvCache::Hit hit = kv_.LookUp(0, 16);
  EXPECT_EQ(hit.blocks, 3);
  EXPECT_EQ(hit.idle, 3);
  EXPECT_EQ(kv_.LookUp(0, 17).blocks, 4);
}

TEST_F(KvCacheTest, LaterTurn_FindsTheConversation) {
  Admit(0, 18);  // two tokens of the fifth block: not full, not findable
  Leave(0, 18);
  EXPECT_EQ(kv_.LookUp(4, 24).blocks, 4);
}

TEST_F(KvCacheTest, WhatNobodyAsksFor_IsNotFindable) {
  Admit(0, 16);
  Leave(0, 16, false);
  EXPECT_EQ(kv_.LookUp(4, 24).blocks, 2);  // the prefix only
}

// Blocks without content are overwritten first, then the longest unused, of a request the last
// block before the first.
TEST_F(KvCacheTest, Overwriting_TakesTheTailOfTheOldestFirst) {
  Admit(0, 16);
  Leave(0, 16);  // cached: 4 blocks; 6 without content
  kv_.Take(6);
  EXPECT_EQ(kv_.Evicted(), 0);
  EXPECT_EQ(kv_.LookUp(4, 24).blocks, 4);
  kv_.Take(1);
  EXPECT_EQ(kv_.Evicted(), 1);
  EXPECT_EQ(kv_.LookUp(4, 24).blocks, 3);
  kv_.Take(1);
  EXPECT_EQ(kv_.LookUp(4, 24).blocks, 2);
}

// What is used again becomes the youngest.
TEST_F(KvCacheTest, Use_MakesYoung) {
  Admit(0, 16);
  Leave(0, 16);
  Admit(1, 16);  // takes the prefix back and two blocks more
  Leave(1, 16);
  kv_.Take(4 + 2);  // what had no content, then 0's own two
  EXPECT_EQ(kv_.Evicted(), 2);
  EXPECT_EQ(kv_.LookUp(4, 24).blocks, 2);
  EXPECT_EQ(kv_.LookUp(1, 17).blocks, 4);
}

TEST_F(KvCacheTest, WithoutCaching_OnlyNumbersCount) {
  KvCache plain({.usable_blocks = 10, .block_size = 4, .prefix_caching = false}, requests_);
  KvCache::Holding holding;
  EXPECT_EQ(plain.LookUp(0, 16).blocks, 0);
  plain.Take(4);
  plain.Register(holding, 0, 16);
  EXPECT_EQ(plain.used(), 4);
  plain.Release(holding, 0, 4, 16, true);
  EXPECT_EQ(plain.used(), 0);
  EXPECT_EQ(plain.LookUp(0, 17).blocks, 0);
  EXPECT_EQ(plain.Evicted(), 0);
}

}  // namespace
}  // namespace servecast
