// The coefficient sets of presets/coefficients, as the command reads them.
#include "io/coefficients.h"

#include <fstream>
#include <set>
#include <sstream>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

std::string PublishedFile() {
  std::ifstream file(SERVECAST_SOURCE_DIR "/presets/coefficients/blis-blackbox.json");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Coefficients, EverySet_IsAScenariosLatency) {
  const std::vector<CoefficientSet> sets = Good(ReadCoefficientSets(PublishedFile()));
  EXPECT_EQ(sets.size(), 111u);
  std::set<std::string> ids;
  int faster = 0;
  for (const CoefficientSet& set : sets) {
    EXPECT_TRUE(ids.insert(set.id).second) << set.id;
    EXPECT_EQ(Listed(IssuesOf(Changed({"latency=" + set.latency}))), "") << set.id;
    faster += set.prefill_time_over_peak > 0 && set.prefill_time_over_peak < 1 ? 1 : 0;
  }
  EXPECT_EQ(faster, 14);
}

TEST(Coefficients, ASet_HasThePublishedNumbers) {
  const CoefficientSet set =
      Good(FindCoefficientSet(PublishedFile(), "codellama-34b-instruct-hf/h100/tp1/vllm-0.8.4"));
  const Scenario s = Parsed(Changed({"latency=" + set.latency}));
  EXPECT_EQ(s.latency.backend, "blackbox");
  EXPECT_EQ(s.latency.alpha, (std::vector<double>{13450.510995636703, 0.041813767451373045, 0}));
  EXPECT_EQ(s.latency.beta,
            (std::vector<double>{26595.2781995357, 96.28441960829817, 56.58626882402723}));
  // 2 * 33.7e9 / 989.5e12 s = 68.1 us
  EXPECT_NEAR(set.prefill_time_over_peak, 96.284 / 68.115, 0.01);
}

TEST(Coefficients, UnknownId_NamesTheNearest) {
  const Result<CoefficientSet> set =
      FindCoefficientSet(PublishedFile(), "codellama-34b-instruct/h100/tp1/vllm-0.8.4");
  ASSERT_FALSE(set.ok());
  EXPECT_NE(set.issues()[0].message.find("codellama-34b-instruct-hf/h100/tp1"), std::string::npos);
}

TEST(Coefficients, OtherFiles_AreRefused) {
  for (const char* text : {"", "[]", "{}", R"({"sets": 1})", R"({"sets": [{"id": 1}]})"}) {
    EXPECT_FALSE(ReadCoefficientSets(text).ok()) << text;
  }
}

}  // namespace
}  // namespace servecast::testing
