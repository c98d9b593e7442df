// All-reduces by kind of link: each law against what was measured, and which law counts.
#include "cost/all_reduce.h"

#include <string>
#include <tuple>
#include <utility>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

using testing::Changed;
using testing::RunToEnd;

constexpr Interconnect kKinds[] = {Interconnect::kNvlink, Interconnect::kPcieP2p,
                                   Interconnect::kPcieHost};

HardwareSpec Link(Interconnect kind, double gb_s, double latency_us = 13) {
  HardwareSpec h;
  h.interconnect = kind;
  h.interconnect_gb_s = gb_s;
  h.interconnect_latency_us = latency_us;
  return h;
}

// All-reduces of 4 Mi and 256 Mi bfloat16 values, vLLM under CUDA graphs, us
// (ai-dynamo/aiconfigurator@095f58a, systems/data).
TEST(AllReduce, OverPcie_TakesWhatWasMeasured) {
  struct Row {
    Interconnect kind;
    double gb_s, gpus, us_of_8_mib, us_of_512_mib;
  };
  const Row rows[] = {
      {Interconnect::kPcieP2p, 32, 2, 449.9, 27988},  // L40S
      {Interconnect::kPcieHost, 32, 4, 3321.8, 216162},
      {Interconnect::kPcieHost, 32, 8, 8167.5, 480823},
      {Interconnect::kPcieP2p, 63, 2, 244.5, 13845},  // RTX PRO 6000
      {Interconnect::kPcieP2p, 63, 4, 462.0, 26784},
      {Interconnect::kPcieP2p, 63, 8, 674.6, 38802},
  };
  for (const Row& row : rows) {
    const HardwareSpec h = Link(row.kind, row.gb_s);
    for (const auto& [bytes, us] :
         {std::pair{8388608.0, row.us_of_8_mib}, {536870912.0, row.us_of_512_mib}}) {
      EXPECT_NEAR(AllReduceNs(h, row.gpus, bytes) / (us * 1e3), 1, 0.1) << row.gpus << " " << bytes;
    }
  }
}

TEST(AllReduce, ThroughTheHost_GroupsShareWhatItCarries) {
  const HardwareSpec h = Link(Interconnect::kPcieHost, 32);
  for (const double group : {2.0, 4.0, 8.0}) {
    EXPECT_NEAR(AllReduceNs(h, group, 15e6), 2 * (group - 1) * 1e6, 1e-3) << group;
  }
  // A link that is slower than the host's part is what they wait for.
  const HardwareSpec slow = Link(Interconnect::kPcieHost, 1);
  const HardwareSpec peers = Link(Interconnect::kPcieP2p, 1);
  EXPECT_EQ(AllReduceNs(slow, 2, 1e6), AllReduceNs(peers, 2, 1e6));
  EXPECT_EQ(SendGbS(h), 15);
  EXPECT_EQ(SendGbS(slow), 1);
  EXPECT_EQ(SendGbS(Link(Interconnect::kPcieP2p, 32)), 32);
}

// A ring of NCCL takes a hop for each member: the latency is that of four cards on PCIe.
TEST(AllReduce, Wait_GrowsByHopsOnPcieAndByDoublingsBehindASwitch) {
  for (const auto& [group, switched, ring] :
       {std::tuple{2.0, 1.4, 1.4}, {4.0, 1.9, 2.0}, {8.0, 2.4, 3.5}}) {
    for (const Interconnect kind : kKinds) {
      const double waits = kind == Interconnect::kNvlink ? switched : ring;
      EXPECT_NEAR(AllReduceWaitNs(Link(kind, 50, 10), group, 3), 3e4 * waits, 1e-6) << group;
    }
  }
}

TEST(AllReduce, SlowerLinkLargerGroupOrAWayThroughTheHost_IsNeverFaster) {
  for (double gb_s = 1; gb_s < 2000; gb_s *= 1.07) {
    for (const Interconnect kind : {Interconnect::kAuto, kKinds[0], kKinds[1], kKinds[2]}) {
      const HardwareSpec h = Link(kind, gb_s), faster = Link(kind, gb_s * 1.07);
      double before = 0, wait_before = 0;
      for (double group = 2; group <= 16; ++group) {
        const double ns = AllReduceNs(h, group, 1e6), wait = AllReduceWaitNs(h, group, 1);
        EXPECT_GE(ns, before) << group;
        EXPECT_GE(wait, wait_before) << group;
        EXPECT_LE(AllReduceNs(faster, group, 1e6), ns) << group << " " << gb_s;
        EXPECT_LE(AllReduceWaitNs(faster, group, 1), wait) << group << " " << gb_s;
        before = ns;
        wait_before = wait;
      }
    }
    const HardwareSpec peers = Link(Interconnect::kPcieP2p, gb_s);
    EXPECT_GE(AllReduceNs(Link(Interconnect::kPcieHost, gb_s), 4, 1e6), AllReduceNs(peers, 4, 1e6));
  }
}

TEST(AllReduce, KindThatNobodySaid_IsPlainFromTheBandwidthOrAGuess) {
  EXPECT_EQ(InterconnectOf(Link(Interconnect::kAuto, 300)), Interconnect::kNvlink);
  EXPECT_FALSE(InterconnectIsGuessed(Link(Interconnect::kAuto, 300)));
  EXPECT_EQ(InterconnectOf(Link(Interconnect::kAuto, 64)), Interconnect::kPcieHost);
  EXPECT_TRUE(InterconnectIsGuessed(Link(Interconnect::kAuto, 64)));
  for (const Interconnect kind : kKinds) {
    EXPECT_EQ(InterconnectOf(Link(kind, 64)), kind);
    EXPECT_FALSE(InterconnectIsGuessed(Link(kind, 64)));
  }
}

// A pair of cards on PCIe: the guess is said in the verdict, a choice is not; peers are faster.
TEST(AllReduce, GuessOfAPair_IsInTheVerdict) {
  const auto run = [](const std::string& kind, const std::string& by = "tensor") {
    return RunToEnd(
        Changed({"cluster.pools.0." + by + "_parallel=2", "hardware.interconnect=" + kind},
                R"({"schema": 1, "model": {"preset": "llama-3.1-8b"},
                                "hardware": {"preset": "l40s"},
                                "workload": {"requests": 20, "arrivals": {"rate_per_s": 1}}})"));
  };
  const Report guessed = run("auto"), host = run("pcie_host"), peers = run("pcie_p2p");
  EXPECT_NE(guessed.verdict.note.find("is a guess"), std::string::npos) << guessed.verdict.note;
  EXPECT_EQ(peers.verdict.note.find("is a guess"), std::string::npos) << peers.verdict.note;
  EXPECT_NE(peers.verdict.note.find("No server of several"), std::string::npos);
  EXPECT_EQ(guessed.e2e_ms.mean, host.e2e_ms.mean);
  EXPECT_LT(peers.e2e_ms.mean, host.e2e_ms.mean);
  // Stages hand on over the same link.
  EXPECT_NE(run("auto", "pipeline").verdict.note.find("is a guess"), std::string::npos);
}

// What PCIe would cost is not told by NVLink's bandwidth.
TEST(AllReduce, PcieWithTheBandwidthOfNvlink_IsWarnedOf) {
  const auto warned = [](const std::vector<std::string>& set) {
    const Report report =
        RunToEnd(Changed(set, R"({"schema": 1, "model": {"preset": "llama-3.1-8b"},
            "hardware": {"preset": "h100-sxm"}, "cluster": {"pools": [{"tensor_parallel": 2}]},
            "workload": {"requests": 20, "arrivals": {"rate_per_s": 1}}})"));
    return report.verdict.note.find("interconnect_gb_s is 450 GB/s") != std::string::npos;
  };
  EXPECT_FALSE(warned({}));
  EXPECT_TRUE(warned({"hardware.interconnect=pcie_p2p"}));
  EXPECT_TRUE(warned({"hardware.interconnect=pcie_host"}));
  EXPECT_FALSE(warned({"hardware.interconnect=pcie_p2p", "hardware.interconnect_gb_s=64"}));
  EXPECT_FALSE(warned({"hardware.interconnect=pcie_p2p", "cluster.pools.0.tensor_parallel=1"}));
}

TEST(AllReduce, PoolsOnSeveralGpus_SayWhoseErrorItIs) {
  const auto known = [](const std::string& pools) {
    return RunToEnd(
               R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
        "workload": {"requests": 20, "arrivals": {"rate_per_s": 1}}, "cluster": {"pools": [)" +
               pools + "]}}")
        .latency_model;
  };
  const LatencyLabel two = known(R"({}, {"hardware": {"preset": "l40s"}})");
  for (const std::string& text : {two.known_error, two.evidence.sentence}) {
    EXPECT_EQ(text.rfind("H100 SXM 80 GB: ", 0), 0u) << text;
    EXPECT_NE(text.find(" L40S 48 GB: "), std::string::npos) << text;
  }
  EXPECT_EQ(known(R"({}, {"replicas": 2})").known_error.find("H100 SXM 80 GB: "),
            std::string::npos);
}

}  // namespace
}  // namespace servecast
