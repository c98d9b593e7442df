// Pools that encode images for the others: random cases, and what they are refused beside.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "servecast/export.h"
#include "testing/asked.h"
#include "testing/encode_cases.h"

namespace servecast::testing {
namespace {

TEST(Encoders, RandomCases_EqualTheReferenceAndTheRunBehind) {
  EncodersCompared sum;
  const std::int64_t cases = Asked("SERVECAST_CASES", 200);
  const auto first = static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1));
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(cases); ++seed) {
    const EncodersCompared one = CompareEncoders(seed);
    ASSERT_EQ(one.mismatch, "") << seed << " " << EncodersDocument(seed);
    sum.requests += one.requests;
    sum.texts += one.texts;
    sum.handed_over += one.handed_over;
    sum.images += one.images;
    sum.hits += one.hits;
    sum.cut += one.cut;
    sum.waited += one.waited;
    sum.shared += one.shared;
  }
  if (cases < 200) return;
  // Not hollow.
  EXPECT_GT(sum.requests, 5000);
  EXPECT_GT(sum.texts, 500);
  EXPECT_GT(sum.handed_over, 1000);
  EXPECT_GT(sum.images, 5000);
  EXPECT_GT(sum.hits, 1000);
  EXPECT_GT(sum.cut, 50);
  EXPECT_GT(sum.waited, 300);
  EXPECT_GT(sum.shared, 1000);
}

TEST(Encoders, Slices_ChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const std::string document = EncodersDocument(seed);
    EXPECT_EQ(RunToEnd(document).fingerprint, RunToEnd(document, {}, 1).fingerprint) << seed;
  }
}

const std::vector<std::string> kSeen = {
    "model.preset=qwen3-vl-8b", R"(workload.images={"per_request":1})",
    R"(cluster.pools=[{"replicas":1},{"role":"encode","name":"eyes","hardware":"l40s"}])"};

std::string WithImages(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = kSeen;
  all.insert(all.end(), more.begin(), more.end());
  return Changed(all);
}

TEST(Encoders, Report_HasThePoolItsTransfersAndItsCost) {
  const Report r = RunToEnd(WithImages());
  ASSERT_EQ(r.pools.size(), 2);
  EXPECT_EQ(r.pools[1].role, PoolRole::kEncode);
  EXPECT_EQ(r.pools[1].gpus, 1);
  EXPECT_EQ(r.pools[1].requests, r.completed);
  EXPECT_EQ(r.pools[1].output_tokens, 0);
  EXPECT_GT(r.pools[1].steps, 0);
  EXPECT_GT(r.pools[1].cost_per_hour.value_or(0), 0);
  EXPECT_EQ(r.images.embeddings.transfers, r.completed);
  // 1,024 tokens of an image, 4,096 values of two bytes, of four mergers.
  EXPECT_EQ(r.images.embeddings.bytes, r.completed * r.images.tokens * 4096 * 2 * 4);
  EXPECT_EQ(r.counts.encoded_images, r.completed);
  EXPECT_GT(r.images.ttft_ms.value_or(0), 0);
  for (const SanityCheck& check : r.sanity) EXPECT_TRUE(check.ok) << check.name;
  // It has no KV cache, and runs nothing of the language model.
  const nlohmann::json figures = nlohmann::json::parse(ReportJson(r, ReportParts::kSummary));
  for (const char* name : {"kv_tokens", "kv_mean_usage", "kv_peak_usage", "kv_mean_fragmentation",
                           "kv_peak_fragmentation", "mfu", "bandwidth_use"}) {
    EXPECT_TRUE(figures["pools"][0][name].is_number()) << name;
    EXPECT_TRUE(figures["pools"][1][name].is_null()) << name;
  }
  for (const char* name : {"tokens", "mean_usage", "peak_usage"}) {
    EXPECT_TRUE(figures["kv"]["pools"][0][name].is_number()) << name;
    EXPECT_TRUE(figures["kv"]["pools"][1][name].is_null()) << name;
  }
  EXPECT_TRUE(figures["replicas"]["kv_peak_usage"][0].is_number());
  EXPECT_TRUE(figures["replicas"]["kv_peak_usage"][1].is_null());
}

// Conversations send their images once more with each turn; a client's next request waits.
TEST(Encoders, TurnsAndClosedLoops_RunToTheirEnd) {
  const Report turns = RunToEnd(WithImages({R"(workload.sessions={"turns":3,"think_time_s":1})"}));
  EXPECT_EQ(turns.completed, turns.arrived);
  EXPECT_EQ(BrokenConservation(turns), "");
  EXPECT_GT(turns.counts.image_hits, 0);
  const Report loop =
      RunToEnd(WithImages({R"(workload.arrivals={"process":"closed_loop","concurrency":4})"}));
  EXPECT_EQ(loop.completed, loop.arrived);
  for (const SanityCheck& check : loop.sanity) EXPECT_TRUE(check.ok) << check.name;
}

// What has no images of its own serves prompts whose images are encoded elsewhere.
TEST(Encoders, OthersNeedNoEncoder) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"scheduler.policy=trtllm"},
           {"scheduler.policy=sglang"},
           {"scheduler.policy=sarathi"},
           {"engine.max_loras=2"},
           {"cluster.pools.0.pipeline_parallel=2", "engine.async_scheduling=false"},
           {R"(engine.speculative={"method":"eagle","num_speculative_tokens":2,)"
            R"("acceptance_length":2})"},
           {R"(cluster.pools=[{"role":"prefill"},{"role":"decode"},{"role":"encode"}])"}}) {
    const std::string document = WithImages(more);
    ASSERT_EQ(Listed(IssuesOf(document)), "") << more[0];
    const Report r = RunToEnd(document);
    EXPECT_EQ(r.completed, r.arrived) << more[0];
    EXPECT_EQ(r.images.embeddings.transfers, r.completed) << more[0];
    EXPECT_EQ(r.counts.encoded_images, r.completed) << more[0];
  }
}

// How servers are told to encode only, no source says.
TEST(Encoders, Export_LeavesThemOutAndSaysSo) {
  const Exported exported = Good(Export(WithImages(), "vllm"));
  EXPECT_EQ(exported.text.find("pool 1"), std::string::npos) << exported.text;
  EXPECT_TRUE(std::any_of(exported.left_out.begin(), exported.left_out.end(),
                          [](const ImportNote& note) { return note.what == "cluster.pools.1"; }));
}

TEST(Encoders, WhatDoesNotGoTogether_IsToldByPath) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(workload.images={"per_request":0})", "/cluster/pools/1/role"},
      {"model.preset=llama-3.1-8b", "/model/vision/num_hidden_layers"},
      {R"(cluster.pools=[{"role":"encode"},{"replicas":1}])", "/cluster/pools/0/role"},
      {R"(cluster.pools=[{"role":"encode"}])", "/cluster/pools/0/role"},
      {R"(cluster.pools=[{},{"role":"encode","pipeline_parallel":2}])",
       "/cluster/pools/1/pipeline_parallel"},
      {R"(cluster.pools=[{},{"role":"encode","tensor_parallel":3}])", "/engine/mm_encoder_tp_mode"},
      {R"(cluster.pools=[{},{"role":"encode","scheduler":"sglang"}])",
       "/cluster/pools/1/scheduler"},
      {R"(cluster.pools=[{"role":"prefill"},{"role":"encode"}])", "/cluster/pools/0/role"},
      {R"(cluster.scaling={"policy":"hpa"})", "/cluster/scaling/policy"},
      {R"(cluster.pools=[{"scaling":{"policy":"hpa"}},{"role":"encode"}])",
       "/cluster/pools/1/role"},
      {R"(workload.classes=[{"name":"a","share":1,"timeout_s":5}])",
       "/workload/classes/0/timeout_s"},
      {"workload.retries.max=2", "/workload/retries/max"},
      {R"(cluster.failures={"mtbf_s":1000})", "/cluster/failures"},
      {R"(cluster.rolling_update={"at_s":10})", "/cluster/rolling_update"},
      {"cluster.encode_router.policy=prefix_affinity", "/cluster/encode_router/policy"},
      {"cluster.encode_router.policy=epp", "/cluster/encode_router/policy"},
      {"cluster.disaggregation.above_tokens=9", "/cluster/disaggregation"},
  };
  for (const auto& [set, path] : cases) {
    const Issues issues = IssuesOf(WithImages({set}));
    EXPECT_NE(Listed(issues).find(path), std::string::npos) << set << "\n" << Listed(issues);
  }
  // One cause, one issue.
  for (const char* set : {R"(cluster.scaling={"policy":"hpa"})",
                          R"(cluster.pools=[{},{"role":"encode","scaling":{"policy":"hpa"}}])"}) {
    EXPECT_EQ(IssuesOf(WithImages({set})).size(), 1u) << set;
  }
  EXPECT_NE(Listed(IssuesOf(Changed({"cluster.encode_router.policy=random"})))
                .find("/cluster/encode_router/policy"),
            std::string::npos);
}

}  // namespace
}  // namespace servecast::testing
