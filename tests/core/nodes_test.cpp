// Links between nodes: what a group on several of them takes, by a formula of this file's own;
// which stages send over them; how fast KV travels from prefill to decode; and that nobody pays for
// them who stays in a node.
#include "cost/nodes.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/documents.h"
#include "cost/all_reduce.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "serving/policy.h"
#include "serving/replica/pipeline.h"

namespace servecast {
namespace {

using testing::Changed;
using testing::Good;
using testing::Parsed;
using testing::RunToEnd;

const std::string kLarge = R"({"schema": 1, "model": {"preset": "llama-3.1-70b"},
  "hardware": {"preset": "h100-sxm"}, "latency": {"backend": "analytic"},
  "cluster": {"pools": [{"tensor_parallel": 16}]},
  "workload": {"arrivals": {"process": "constant", "rate_per_s": 2}, "requests": 20,
               "prompt_tokens": {"distribution": "fixed", "value": 500},
               "output_tokens": {"distribution": "fixed", "value": 20}}})";

TimeNs Price(const Scenario& s, const BatchShape& shape) {
  return ChosenLatencyModel(s).make(s, Good(ComputeModelCost(s)))->Price(shape).duration;
}

// All-reduces of N nodes of m GPUs: those of a node, then 1/m of the bytes of each GPU around a
// ring of N at 0.68 of its link, and two messages up and down a tree of nodes.
TEST(Nodes, GroupBeyondANode_TakesLinksBetweenNodes) {
  const double layers = 80, hidden = 8192;
  for (const auto& [node, link, latency] :
       {std::array{8.0, 50.0, 10.0}, {4, 25, 3}, {2, 1.5, 40}}) {
    Scenario s = Parsed(Changed({"hardware.gpus_per_node=" + std::to_string(int(node)),
                                 "hardware.inter_node_gb_s=" + std::to_string(link),
                                 "hardware.inter_node_latency_us=" + std::to_string(latency)},
                                kLarge));
    Scenario in_one = s;
    in_one.hardware.gpus_per_node = 0;
    const double nodes = 16 / node;
    for (const double tokens : {1.0, 64.0, 400.0}) {
      const BatchShape shape{static_cast<std::int64_t>(tokens), 0, {}};
      const double bytes = tokens * hidden * 2;
      const HardwareSpec& h = in_one.hardware;
      const double ring = AllReduceNs(h, 16, bytes) - AllReduceNs(h, node, bytes);
      const double wait = AllReduceWaitNs(h, 16, 1) - AllReduceWaitNs(h, node, 1);
      const double across = bytes / node * 2 * (nodes - 1) / nodes / (0.68 * link) +
                            2 * std::log2(nodes) * latency * 1e3;
      const auto more = static_cast<double>(Price(s, shape) - Price(in_one, shape));
      EXPECT_NEAR(more, 2 * layers * (across - ring - wait), 1e-6 * std::fabs(more) + 2)
          << node << " " << tokens;
    }
  }
}

TEST(Nodes, LargerGroupOrSlowerLink_IsNeverFaster) {
  HardwareSpec h = Parsed(kLarge).hardware;
  for (const double interconnect : {32.0, 450.0}) {
    h.interconnect_gb_s = interconnect;
    double before = 0, wait_before = 0;
    for (double group = 2; group <= 40; ++group) {
      const double now = AllReduceNs(h, group, 1e6), wait = AllReduceWaitNs(h, group, 1);
      EXPECT_GE(now, before) << group;
      EXPECT_GE(wait, wait_before) << group;
      before = now;
      wait_before = wait;
    }
  }
  HardwareSpec slower = h;
  slower.inter_node_gb_s = 49;
  EXPECT_GT(AllReduceNs(slower, 16, 1e6), AllReduceNs(h, 16, 1e6));
  slower.inter_node_latency_us = 11;
  EXPECT_GT(AllReduceWaitNs(slower, 16, 1), AllReduceWaitNs(h, 16, 1));
}

TEST(Nodes, WithinANode_NothingChangesAndNothingIsHashed) {
  const std::string eight = Changed({"cluster.pools.0.tensor_parallel=8"}, kLarge);
  const Report by_preset = RunToEnd(eight);
  for (const char* figure :
       {"gpus_per_node=0", "gpus_per_node=16", "inter_node_gb_s=1", "inter_node_latency_us=1000"}) {
    const Report other = RunToEnd(Changed({std::string("hardware.") + figure}, eight));
    EXPECT_EQ(other.fingerprint, by_preset.fingerprint) << figure;
  }
  EXPECT_EQ(by_preset.verdict.note.find("nodes"), std::string::npos);
  EXPECT_NE(RunToEnd(kLarge).fingerprint,
            RunToEnd(Changed({"hardware.inter_node_gb_s=25"}, kLarge)).fingerprint);
}

TEST(Nodes, Verdict_SaysThatAGroupSpansNodes) {
  const auto note = [](const std::vector<std::string>& set) {
    return RunToEnd(Changed(set, kLarge)).verdict.note;
  };
  EXPECT_NE(
      note({}).find("A group of 16 GPUs spans 2 nodes, whose links count as 50 GB/s per GPU, by "
                    "the data sheet; no server was measured with them."),
      std::string::npos)
      << note({});
  EXPECT_NE(note({"hardware.nodes_assumed=true"}).find("which is assumed"), std::string::npos);
  EXPECT_NE(note({"hardware.inter_node_gb_s=0"}).find("is priced as if in one"), std::string::npos);
  EXPECT_EQ(note({"hardware.gpus_per_node=72"}).find("nodes"), std::string::npos);
}

// Stages fill nodes in their order: two of 4 GPUs are in one of 8, and the third begins the next.
TEST(Nodes, Stages_SendOverTheLinkThatLiesBetween) {
  Scenario s = Parsed(Changed({R"(cluster.pools=[{"tensor_parallel": 4, "pipeline_parallel": 4}])",
                               "engine.async_scheduling=false"},
                              kLarge));
  const std::vector<PipelineStage> stages = MakeStages(s, ChosenLatencyModel(s));
  ASSERT_EQ(stages.size(), 4u);
  const double bytes = 8192 * 2;
  const auto expect = [&](int stage, double wait_us, double gb_s) {
    EXPECT_DOUBLE_EQ(stages[stage].send_ns, wait_us * 1e3) << stage;
    EXPECT_DOUBLE_EQ(stages[stage].send_ns_per_token, bytes / gb_s) << stage;
  };
  expect(0, 5, 450);
  expect(1, 10, 0.68 * 50);
  expect(2, 5, 450);
  // Of six GPUs, the second stage lies on both nodes.
  s.cluster.pools[0].tensor_parallel = 6;
  EXPECT_DOUBLE_EQ(StageSend(s, 0).gb_s, 0.68 * 50);
  s.hardware.gpus_per_node = 0;
  EXPECT_DOUBLE_EQ(StageSend(s, 1).gb_s, 450);
}

TEST(Nodes, KvTransfer_IsThatOfTheSlowestSideUnlessSaid) {
  const auto transfer = [](const std::vector<std::string>& set) {
    std::vector<std::string> all = {
        R"(cluster.pools=[{"role": "prefill"}, {"role": "decode", "replicas": 2}])"};
    all.insert(all.end(), set.begin(), set.end());
    return TransferGbS(Parsed(Changed(all)));
  };
  EXPECT_DOUBLE_EQ(transfer({}), 34);
  EXPECT_DOUBLE_EQ(transfer({R"(hardware={"preset": "a100-80gb"})"}), 17);
  EXPECT_DOUBLE_EQ(transfer({"cluster.pools.0.hardware=\"a100-80gb\""}), 17);
  EXPECT_DOUBLE_EQ(transfer({"hardware.inter_node_gb_s=0"}), 34);
  EXPECT_DOUBLE_EQ(transfer({R"(hardware={"preset": "a100-80gb"})",
                             "cluster.disaggregation.bandwidth_gb_s=900"}),
                   900);
}

// What was the link's default is what an H100 comes to, so nobody's results moved.
TEST(Nodes, UnsaidLink_RunsAsSaid) {
  const std::vector<std::string> apart = {
      R"(cluster.pools=[{"role": "prefill"}, {"role": "decode"}])"};
  const std::string document = Changed(apart);
  const Report unsaid = RunToEnd(document);
  const Report said = RunToEnd(Changed({"cluster.disaggregation.bandwidth_gb_s=34"}, document));
  EXPECT_EQ(unsaid.e2e_ms.mean, said.e2e_ms.mean);
  EXPECT_EQ(unsaid.kv_transfer.bytes, said.kv_transfer.bytes);
  const Scenario scenario = Parsed(document);
  EXPECT_EQ(Parsed(scenario.resolved_text).content_hash, scenario.content_hash);
  const Report assumed = RunToEnd(Changed({R"(hardware={"preset": "l40s"})"}, document));
  EXPECT_NE(assumed.verdict.note.find("which is assumed of this GPU's nodes"), std::string::npos);
}

}  // namespace
}  // namespace servecast
