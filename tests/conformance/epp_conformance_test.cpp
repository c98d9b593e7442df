// The endpoint picker's rules against what llm-d's real one decided. The data is outside the
// project: SERVECAST_EPP_GOLDEN, or ../shared/reference/epp-golden beside it.
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "gtest/gtest.h"
#include "serving/cluster/epp/approximate_index.h"
#include "serving/cluster/epp/inflight_load.h"
#include "serving/cluster/epp/prefix_blocks.h"
#include "serving/cluster/epp/scheduler.h"
#include "testing/data_files.h"
#include "testing/epp_golden.h"

namespace servecast::testing::epp_conformance_test {
namespace {

std::string EppFolder() { return DataFolder("SERVECAST_EPP_GOLDEN", "reference/epp-golden"); }

TEST(EppConformance, EveryFile_DecidesAsLlmdsPicker) {
  std::error_code error;
  if (!std::filesystem::exists(EppFolder() + "/manifest.json", error)) {
    GTEST_SKIP() << "skipped: no data";
  }
  const Result<std::vector<std::string>> files = EppFiles(EppFolder());
  ASSERT_TRUE(files.ok());
  ASSERT_FALSE(files.value().empty());
  for (const std::string& name : files.value()) {
    const Result<EppFile> file = ReplayEppFile(EppFolder(), name);
    ASSERT_TRUE(file.ok()) << name;
    EXPECT_EQ(file.value().difference, "") << name;
    EXPECT_GT(file.value().rows, 0u) << name;
  }
}

TEST(EppGoldenReader, MissingFolder_IsAnIssue) { EXPECT_FALSE(EppFiles("/nowhere/at/all").ok()); }

std::vector<std::uint64_t> KeysOf(std::int64_t text, std::int64_t tokens) {
  std::vector<std::uint64_t> keys;
  const std::vector<epp::TextPiece> prompt{{text, 0, tokens}};
  epp::AppendKeys({}, epp::BlockTokens({}, 0), 0, prompt, keys);
  return keys;
}

std::vector<std::int64_t> Matched(const epp::ApproximateIndex& index,
                                  const std::vector<std::uint64_t>& keys) {
  std::vector<std::int64_t> matched(2);
  index.Match(keys, matched);
  return matched;
}

TEST(EppPrefixIndex, ConfiguredBlocksOf16_Are64AndThePartialLastOneCounts) {
  EXPECT_EQ(KeysOf(1, 64).size(), 1u);
  EXPECT_EQ(KeysOf(1, 65).size(), 2u);
}

TEST(EppPrefixIndex, PromptLongerThanTheLru_StaysMarked) {
  epp::ApproximateIndex index(2);
  const auto prompt = KeysOf(1, 640);
  index.Add(prompt, 0, 4);
  EXPECT_EQ(index.Tracked(0), 4);
  EXPECT_EQ(Matched(index, prompt), (std::vector<std::int64_t>{10, 0}));
  index.Remove(0);
  EXPECT_EQ(Matched(index, prompt)[0], 6);  // those in no LRU
}

TEST(EppPrefixIndex, EvictedHead_EndsTheSearchWhereNobodyHasIt) {
  epp::ApproximateIndex index(2);
  const auto prompt = KeysOf(1, 256), other = KeysOf(2, 64);
  index.Add(prompt, 0, 4);
  index.Add(other, 0, 4);
  EXPECT_EQ(Matched(index, prompt)[0], 0);
  index.Add(prompt, 1, 4);
  EXPECT_EQ(Matched(index, prompt), (std::vector<std::int64_t>{3, 4}));
}

TEST(EppLoad, PartialLastBlock_IsRoundedUp) {
  epp::Request request{.tokens = 100, .total_blocks = 2, .block_tokens = 64};
  EXPECT_EQ(epp::UncachedTokens(request, 0), 128);
  EXPECT_EQ(epp::UncachedTokens(request, epp::kUnknown), 100);
  EXPECT_EQ(epp::EstimatedOutput({.estimates_output = true}, 3, 0), 5);  // 4.5, away from zero
}

TEST(EppConfig, WrongConfigurations_AreNamed) {
  const auto first = [](EppConfig config) {
    const std::vector<std::string> wrong = epp::WrongConfig(config);
    return wrong.empty() ? std::string() : wrong.front();
  };
  EXPECT_EQ(first({}), "");
  EXPECT_EQ(first({.plugins = {}, .profiles = {epp::DefaultProfile()}}), "");
  EXPECT_NE(first({.plugins = {{"a", "no-such-scorer", {}}}, .profiles = {}}).find("no-such"),
            std::string::npos);
  EXPECT_NE(first({.plugins = {{"a", "queue-scorer", {{"x", 1.0}}}}, .profiles = {}})
                .find("not a parameter"),
            std::string::npos);
  EXPECT_NE(first({.plugins = {{"a", "load-aware-scorer", {{"threshold", 0.0}}}}, .profiles = {}})
                .find("must be 1"),
            std::string::npos);
  EXPECT_NE(first({.plugins = {}, .profiles = {{"p", {{"random-picker"}, {"max-score-picker"}}}}})
                .find("more than one picker"),
            std::string::npos);
  EXPECT_NE(
      first({.plugins = {{"h", "disagg-profile-handler", {}}}, .profiles = {epp::DefaultProfile()}})
          .find("\"decode\""),
      std::string::npos);
}

TEST(EppSettings, Durations_AreGos) {
  EXPECT_EQ(epp::DurationNs("200ms"), 200 * kNsPerMs);
  EXPECT_EQ(epp::DurationNs("1m30s"), 90 * kNsPerS);
  EXPECT_EQ(epp::DurationNs("1.5s"), 1500 * kNsPerMs);
  EXPECT_FALSE(epp::DurationNs("5").has_value());
  EXPECT_FALSE(epp::DurationNs("fast").has_value());
  EXPECT_FALSE(epp::DurationNs("").has_value());
}

}  // namespace
}  // namespace servecast::testing::epp_conformance_test
