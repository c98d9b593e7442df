// BLIS's memory of the host in whole runs, by hand. Its lists are in blis_kv_test.cpp.
#include <vector>

#include "core/blis_case.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

// Blocks of 16 tokens of an 8B model are 2 MiB: 80 us each at 26.2144 GB/s.
Case WithHost(Compat compat, const std::vector<Row>& rows, double threshold) {
  Case c(compat, rows);
  c.scenario.engine.num_gpu_blocks_override = 4;
  KvOffloadSpec& offload = c.scenario.engine.kv_offload;
  offload.cpu_gib = 21.0 / 1024;  // ten blocks, and a half
  offload.cpu_latency_us = 0.9;   // cut to whole microseconds
  offload.cpu_bandwidth_gb_s = 26.2144;
  offload.threshold = threshold;
  return c;
}

TEST(BlisHost, TodaysHost_CostsTheTransferAndSavesNoCompute) {
  // The second takes all four blocks; of the third the host has three.
  const Case c = WithHost(kToday, {{0, 48, 1, 48}, {2000, 63, 1}, {5000, 63, 1, 48}}, 0);
  const Report r = c.Run();
  EXPECT_EQ(Us(r, "ttft_ms"), (Times{1480, 1630, 1630 + 3 * 80}));
  EXPECT_EQ(r.ColumnOf("cached_tokens"), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(r.prefix_cache.hit_blocks, 3);  // claimed all the same
  const KvOffloadReport& o = r.kv_offload;
  EXPECT_TRUE(o.on);
  EXPECT_EQ(o.tiers[0].blocks, 10);
  EXPECT_EQ(o.tiers[0].loaded_blocks, 3);
  EXPECT_EQ(o.tiers[0].hit_blocks, 3);
  EXPECT_EQ(o.tiers[0].hit_tokens, 48);
  EXPECT_EQ(o.offloaded_blocks, 3 + 3);
  EXPECT_EQ(o.thrashed_blocks, 0);
  EXPECT_EQ(o.transfer_ns, 240'000);
  EXPECT_EQ(c.Run(1).fingerprint, r.fingerprint);
}

TEST(BlisHost, FebruarysHost_GivesBlocksBackWhenSomebodyFindsNoRoom) {
  // The second leaves its block while three of four are in use; the third finds one block for two.
  const std::vector<Row> rows = {{0, 32, 4}, {500, 16, 1}, {2400, 32, 1}};
  const Report r = WithHost(kFebruary, rows, 0.5).Run();
  // Steps of 1,320, 1,165, 1,005 and 80 more, 1,005; and the gap too many.
  EXPECT_EQ(Us(r, "e2e_ms")[0], 4575 + 1005);
  EXPECT_EQ(Us(r, "ttft_ms"), (Times{1320, 1985, 3495}));
  const KvOffloadReport& o = r.kv_offload;
  EXPECT_EQ(o.tiers[0].loaded_blocks, 1);
  EXPECT_EQ(o.offloaded_blocks, 1);
  EXPECT_EQ(o.thrashed_blocks, 0);  // after 1,165 us
  EXPECT_EQ(o.transfer_ns, 80'000);
  // Its block that came back is a hit; six fresh blocks and three failures are misses: the room for
  // the second's last token, and two steps in which the third waits with nothing left to give.
  EXPECT_EQ(r.prefix_cache.hit_blocks, 1);
  EXPECT_EQ(WithHost(kFebruary, rows, 0.75).Run().kv_offload.offloaded_blocks, 0);
}

}  // namespace
}  // namespace servecast::testing
