// Tiers behind the KV cache: what a load costs and saves, by hand, and the lists of the tiers.
#include "serving/kv/kv_tiers.h"

#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

// A pool of four blocks of 512 tokens, 64 MiB each: at 67.108864 GB/s a block takes 1 ms. A step
// is 1 ms and 10 us a token.
const char* const kTiny = R"({"schema": 1, "model": {"preset": "llama-3.1-8b"},
  "hardware": {"preset": "h100-sxm"},
  "engine": {"async_scheduling": false, "block_size": 512, "num_gpu_blocks_override": 5,
             "kv_offload": {"cpu_gib": 0.125, "cpu_latency_us": 100,
                            "cpu_bandwidth_gb_s": 67.108864, "disk_latency_us": 200,
                            "disk_bandwidth_gb_s": 6.7108864}},
  "latency": {"backend": "blackbox", "alpha": [0, 0, 0], "beta": [1000, 10, 0]},
  "workload": {"arrivals": {"process": "trace"}, "prompt_tokens": {"distribution": "trace"},
               "output_tokens": {"distribution": "trace"}}})";

Trace TraceOf(const std::string& rows) {
  return Good(ParseTrace("arrival_s,input_tokens,output_tokens,hash_ids_512\n" + rows, "t.csv"));
}

// Two full blocks and a token each. B takes three blocks, the last of them A's second; the last row
// begins as A did: its first block is still on the GPU.
const char* const kReturn = "0,1025,1,1 2 3\n1,1025,1,4 5 6\n2,1025,1,1 2 7\n";

TEST(KvOffload, ContentFromTheCpu_CostsTheTransferAndSavesTheCompute) {
  const Report r = RunToEnd(kTiny, TraceOf(kReturn));
  EXPECT_EQ(r.ColumnOf("cached_tokens"), (std::vector<double>{0, 0, 1024}));
  // 1.01 ms for one token, 1.1 ms for one block.
  EXPECT_EQ(r.ColumnOf("ttft_ms"), (std::vector<double>{11.25, 11.25, 2.11}));
  EXPECT_EQ(r.prefix_cache.hit_tokens, 512);
  const KvOffloadReport& o = r.kv_offload;
  EXPECT_EQ(o.tiers[0].blocks, 2);
  EXPECT_EQ(o.tiers[1].blocks, 0);
  EXPECT_EQ(o.tiers[0].hit_tokens, 512);
  EXPECT_EQ(o.tiers[0].hit_blocks, 1);
  EXPECT_EQ(o.tiers[0].loaded_blocks, 1);
  EXPECT_EQ(o.offloaded_blocks, 2);  // the load takes a block, too: B's second goes
  EXPECT_EQ(o.thrashed_blocks, 0);
  EXPECT_EQ(o.transfer_ns, 1'100'000);
  const std::string json = ReportJson(r, ReportParts::kSummary);
  EXPECT_NE(json.find(R"("transfer_s": 0.0011)"), std::string::npos) << json;
}

TEST(KvOffload, Off_LosesWhatIsOverwritten) {
  for (const char* off : {"engine.kv_offload=null", "engine.kv_offload.cpu_gib=0"}) {
    const Report r = RunToEnd(Changed({off}, kTiny), TraceOf(kReturn));
    EXPECT_EQ(r.ColumnOf("ttft_ms")[2], 1 + 0.01 * 513);
    EXPECT_FALSE(r.kv_offload.on);
    EXPECT_EQ(ReportJson(r, ReportParts::kSummary).find("kv_offload"), std::string::npos);
    EXPECT_EQ(r.resolved_scenario.find("kv_offload"), std::string::npos);
  }
  const Result<Scenario> without =
      ParseScenario(Changed({"engine.enable_prefix_caching=false"}, kTiny));
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.issues()[0].path, "/engine/kv_offload");
}

// With B's three of four blocks, A's second is overwritten.
TEST(KvOffload, Threshold_IsTheShareInUseWithTheBlock) {
  const auto ttft = [](const char* threshold) {
    return RunToEnd(Changed({threshold}, kTiny), TraceOf(kReturn)).ColumnOf("ttft_ms")[2];
  };
  EXPECT_EQ(ttft("engine.kv_offload.threshold=0.75"), 2.11);
  EXPECT_EQ(ttft("engine.kv_offload.threshold=0.76"), 1 + 0.01 * 513);
}

// B takes A's second block; C takes A's first and B's second, so that A's second falls to disk.
TEST(KvOffload, LeastRecentOfTheCpu_FallsToDisk) {
  const char* const rows = "0,1025,1,1 2 3\n1,1025,1,4 5 6\n2,1025,1,8 9 10\n3,1025,1,1 2 7\n";
  const Report with = RunToEnd(Changed({"engine.kv_offload.disk_gib=1"}, kTiny), TraceOf(rows));
  EXPECT_DOUBLE_EQ(with.ColumnOf("ttft_ms")[3], 1.01 + (0.1 + 1) + (0.2 + 10));
  EXPECT_EQ(with.kv_offload.tiers[0].hit_blocks, 1);
  EXPECT_EQ(with.kv_offload.tiers[1].hit_blocks, 1);
  EXPECT_EQ(with.kv_offload.tiers[1].blocks, 16);
  const Report without = RunToEnd(kTiny, TraceOf(rows));
  EXPECT_DOUBLE_EQ(without.ColumnOf("ttft_ms")[3], 1 + 0.01 * 513 + 0.1 + 1);
  const Report disk_only =
      RunToEnd(Changed({"engine.kv_offload.cpu_gib=0", "engine.kv_offload.disk_gib=1"}, kTiny),
               TraceOf(rows));
  EXPECT_DOUBLE_EQ(disk_only.ColumnOf("ttft_ms")[3], 1.01 + 0.2 + 20);
}

// Steps of 0.1 ms: the third request comes 0.2 ms, or 1 ms, after the second.
TEST(KvOffload, LoadedWithinAMillisecond_IsThrashing) {
  const auto thrashed = [](const char* last) {
    const std::string rows = "0,1025,1,1 2 3\n1,1025,1,4 5 6\n" + std::string(last);
    return RunToEnd(Changed({"latency.beta=[100,0,0]"}, kTiny), TraceOf(rows))
        .kv_offload.thrashed_blocks;
  };
  EXPECT_EQ(thrashed("1.0002,1025,1,1 2 7\n"), 1);
  EXPECT_EQ(thrashed("1.000999999,1025,1,1 2 7\n"), 1);
  EXPECT_EQ(thrashed("1.001,1025,1,1 2 7\n"), 0);
}

TEST(KvOffload, TensorParallelGpus_ShareTheCapacityButNotTheLink) {
  const KvOffloadSpec spec = [] {
    KvOffloadSpec s;
    s.cpu_gib = 1;
    s.cpu_bandwidth_gb_s = 50;
    return s;
  }();
  const std::vector<KvTier> one = KvTiersOf(spec, 1 << 21, 1), four = KvTiersOf(spec, 1 << 19, 4);
  EXPECT_EQ(one[0].blocks, 512);
  EXPECT_EQ(four[0].blocks, 512);
  EXPECT_DOUBLE_EQ(one[0].block_ns, 4 * four[0].block_ns);
  EXPECT_TRUE(KvTiersOf({}, 1 << 21, 1).empty());
}

// Content of one conversation that comes piece by piece, and leaves from its end.
TEST(KvTiers, Runs_LeaveFromTheirEndAndAreFoundFromAnywhere) {
  KvTiers tiers({{10, 0, 1}, {4, 0, 1}});
  for (TimeNs now = 0; now < 10; ++now) {
    const std::int64_t first = 9 - now;
    tiers.Offload(7, first, first + 1, now * kNsPerMs);
  }
  EXPECT_EQ(tiers.FoundUpTo(7, 0, 10), 10);
  EXPECT_EQ(tiers.FoundUpTo(7, 3, 5), 5);
  EXPECT_EQ(tiers.FoundUpTo(6, 0, 10), 0);
  tiers.Offload(8, 0, 6, 20 * kNsPerMs);  // 7 keeps [0, 4), of [4, 10) disk has the last to come
  EXPECT_EQ(tiers.FoundUpTo(7, 0, 10), 8);
  KvTiers::Loaded loaded{};
  tiers.Load(7, 3, 6, 20 * kNsPerMs, loaded);
  EXPECT_EQ(loaded, (KvTiers::Loaded{1, 2}));
  EXPECT_EQ(tiers.FoundUpTo(7, 0, 10), 3);
  EXPECT_EQ(tiers.FoundUpTo(7, 6, 10), 8);
  tiers.Offload(7, 2, 4, 21 * kNsPerMs);  // [2, 3) was there
  EXPECT_EQ(tiers.FoundUpTo(7, 0, 10), 4);
  EXPECT_EQ(tiers.TransferTime({3, 5}), 8);
}

}  // namespace
}  // namespace servecast::testing
