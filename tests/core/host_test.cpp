// engine.host: times of a machine between an engine's preset and a document's own; which host the
// measured servers had, and what another one means for evidence.
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "io/presets.h"
#include "serving/policy.h"

namespace servecast {
namespace {

using testing::Changed;
using testing::Parsed;

constexpr const char* kSlowHost = "engine.host=a100-pcie-2026";

Issues HostIssues(const std::string& document) {
  const Result<Scenario> scenario = ParseScenario(document);
  return scenario.ok() ? Issues() : scenario.issues();
}

TEST(Host, Constants_LieBetweenThePresetAndTheDocument) {
  const auto engine = [](const std::vector<std::string>& set) {
    return Parsed(Changed(set)).engine;
  };
  const EngineSpec usual = engine({"engine.preset=vllm-0.20"});
  EXPECT_EQ(usual.request_overhead_ms, 3.3);
  EXPECT_EQ(usual.delivery_overhead_us, 45);
  const EngineSpec slow = engine({"engine.preset=vllm-0.20", kSlowHost});
  EXPECT_EQ(slow.request_overhead_ms, 17);
  EXPECT_EQ(slow.prompt_token_overhead_us, 6);
  EXPECT_EQ(slow.delivery_overhead_us, 140);
  EXPECT_EQ(slow.step_overhead_us, usual.step_overhead_us);
  const EngineSpec own = engine({kSlowHost, "engine.request_overhead_ms=3.3"});
  EXPECT_EQ(own.request_overhead_ms, 3.3);
  EXPECT_EQ(own.delivery_overhead_us, 140);
  EXPECT_EQ(Parsed(Changed({"engine.host=default"})).content_hash,
            Parsed(Changed({})).content_hash);
  const Issues issues = HostIssues(Changed({"engine.host=a100"}));
  ASSERT_FALSE(issues.empty());
  EXPECT_EQ(issues[0].path, "/engine/host");
}

// Written and read again nothing is lost, also where a document's own time is the preset's.
TEST(Host, CanonicalText_NamesItAndMeansTheSame) {
  const std::vector<std::vector<std::string>> sets = {
      {kSlowHost},
      {kSlowHost, "engine.request_overhead_ms=3.3"},
      {kSlowHost, R"(cluster.pools=[{}, {"engine": {"preset": "vllm-0.15"}}])"},
      {kSlowHost,
       R"(cluster.pools=[{}, {"engine": {"host": "a100-pcie-2026", "block_size": 32}}])"}};
  for (const std::vector<std::string>& set : sets) {
    const Scenario s = Parsed(Changed(set));
    for (const std::string& text : {s.canonical_text, s.resolved_text}) {
      EXPECT_EQ(Parsed(text).content_hash, s.content_hash) << text;
    }
    EXPECT_EQ(Parsed(s.canonical_text).canonical_text, s.canonical_text);
    EXPECT_EQ(s.engine.host, "a100-pcie-2026");
  }
  const Scenario s = Parsed(Changed({kSlowHost}));
  EXPECT_EQ(s.canonical_text.find("overhead"), std::string::npos) << s.canonical_text;
}

// A pool may say the scenario's host; another one is refused where it stands.
TEST(Host, OneMachine_ServesAllPools) {
  const auto pool = [](const std::string& own) {
    return R"(cluster.pools=[{}, {"engine": )" + own + "}]";
  };
  for (const char* own : {R"({"host": "a100-pcie-2026"})", R"({"host": "none"})", R"({"host": 3})",
                          R"({"preset": "vllm-0.15", "host": "a100-pcie-2026"})"}) {
    const Issues issues = HostIssues(Changed({pool(own)}));
    ASSERT_EQ(issues.size(), 1U) << own;
    EXPECT_EQ(issues[0].path, "/cluster/pools/1/engine/host");
    EXPECT_NE(issues[0].message.find("\"default\""), std::string::npos) << issues[0].message;
  }
  for (const char* own :
       {R"({"host": "default"})", R"({"preset": "vllm-0.15", "host": "default"})"}) {
    EXPECT_FALSE(HostIssues(Changed({kSlowHost, pool(own)})).empty()) << own;
    EXPECT_TRUE(HostIssues(Changed({pool(own)})).empty()) << own;
  }
  EXPECT_EQ(
      Parsed(Changed({kSlowHost, pool(R"({"preset": "vllm-0.15"})")})).content_hash,
      Parsed(Changed({kSlowHost, pool(R"({"preset": "vllm-0.15", "host": "a100-pcie-2026"})")}))
          .content_hash);
}

// Constants were compared on the host that was measured: another one is a change.
TEST(Host, ThatWasNotMeasured_TakesTheClaimAway) {
  const auto evidence = [](const std::vector<std::string>& set) {
    std::vector<std::string> all = {"model.preset=llama-3.1-8b", "hardware.preset=a100-40gb",
                                    "engine.preset=vllm-0.20"};
    all.insert(all.end(), set.begin(), set.end());
    const Scenario s = Parsed(Changed(
        all, R"({"schema": 1, "workload": {"requests": 1, "arrivals": {"rate_per_s": 1}}})"));
    return ChosenLatencyModel(s).label(s).evidence;
  };
  EXPECT_EQ(evidence({kSlowHost}).of, EvidenceClass::kCalibrated);
  const Evidence other = evidence({});
  EXPECT_EQ(other.of, EvidenceClass::kUntested);
  EXPECT_NE(other.sentence.find("engine.delivery_overhead_us"), std::string::npos)
      << other.sentence;
  EXPECT_EQ(HostMeasuredWith("a100-40gb", "vllm-0.20"), "a100-pcie-2026");
  EXPECT_EQ(HostMeasuredWith("h100-sxm", "vllm-0.20"), "");
  EXPECT_EQ(HostMeasuredWith("a100-40gb", "vllm"), "");
}

}  // namespace
}  // namespace servecast
