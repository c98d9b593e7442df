// Coefficients as the command and the page take them.
#include "io/coefficients.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

TEST(Coefficients, EverySet_IsAScenariosLatency) {
  const std::vector<CoefficientSet> sets = Good(PublishedCoefficientSets());
  EXPECT_EQ(sets.size(), 111u);
  std::set<std::string> ids;
  int faster = 0;
  for (const CoefficientSet& set : sets) {
    EXPECT_TRUE(ids.insert(set.id).second) << set.id;
    EXPECT_EQ(Listed(IssuesOf(Changed({"latency=" + set.latency}))), "") << set.id;
    faster += set.FasterThanLight() ? 1 : 0;
    EXPECT_EQ(WarningOf(set).empty(), !set.FasterThanLight());
  }
  EXPECT_EQ(faster, 14);
}

TEST(Coefficients, ASet_HasThePublishedNumbers) {
  const CoefficientSet set =
      Good(FindCoefficientSet("codellama-34b-instruct-hf/h100/tp1/vllm-0.8.4"));
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
      FindCoefficientSet("codellama-34b-instruct/h100/tp1/vllm-0.8.4");
  ASSERT_FALSE(set.ok());
  EXPECT_NE(set.issues()[0].message.find("codellama-34b-instruct-hf/h100/tp1"), std::string::npos);
}

TEST(Coefficients, OtherFiles_AreRefused) {
  for (const char* text : {"", "[]", "{}", R"({"sets": 1})", R"({"sets": [{"id": 1}]})"}) {
    EXPECT_FALSE(ReadCoefficientSets(text).ok()) << text;
  }
}

nlohmann::json AsThePageSees(const std::string& document, const std::string& file) {
  return nlohmann::json::parse(CoefficientsJson(document, file), nullptr, false);
}

TEST(CoefficientsJson, PublishedSets_ThoseOfTheScenarioAreFirst) {
  const auto all = AsThePageSees(SmallDocument(), "");
  ASSERT_EQ(all["sets"].size(), 111u);
  EXPECT_TRUE(all["issues"].empty());
  bool fits = true;
  int fitting = 0;
  for (const auto& set : all["sets"]) {
    EXPECT_TRUE(fits || !set["fits"].get<bool>()) << set["id"];
    fits = set["fits"].get<bool>();
    fitting += fits ? 1 : 0;
    EXPECT_EQ(set["warnings"].empty(), !set["faster_than_light"].get<bool>()) << set["id"];
    EXPECT_EQ(set["latency"]["backend"], "blackbox");
  }
  EXPECT_EQ(all["sets"][0]["id"].get<std::string>().find("llama-3.1-8b"), 0u);
  EXPECT_GT(fitting, 0);
  EXPECT_LT(fitting, 10);
}

TEST(CoefficientsJson, FileOfPhysics_IsASetWithWhatItWasNotTrainedOn) {
  nlohmann::json root = {{"spec_version", "1.0"},
                         {"variant", "corrected"},
                         {"alpha_target", "arrived_to_queued"},
                         {"alpha_coefficients", std::vector<int>(11, 1)},
                         {"beta_coefficients", std::vector<int>(16, 1)}};
  root["trained_on"] = {{"model", "Llama-3.1-8B"},
                        {"hardware", "A100"},
                        {"tp", 1},
                        {"engine_version", "vllm-0.8"},
                        {"training_date", "2025"},
                        {"n_samples_alpha", 10},
                        {"n_samples_beta", 10},
                        {"lambda_alpha", 0.1},
                        {"lambda_beta", 0.1},
                        {"gamma", 0.5},
                        {"hold_out_rmse_alpha", 1},
                        {"hold_out_rmse_beta", 1}};
  const auto read =
      AsThePageSees(SmallDocument(), nlohmann::json{{"physics_coefficients", root}}.dump());
  ASSERT_EQ(read["sets"].size(), 1u) << read.dump();
  const auto& set = read["sets"][0];
  EXPECT_EQ(set["id"], "Llama-3.1-8B/A100/tp1/vllm-0.8, 2025");
  EXPECT_FALSE(set["fits"].get<bool>());
  EXPECT_NE(set["warnings"].dump().find("A100"), std::string::npos) << set.dump();
  EXPECT_TRUE(IssuesOf(Changed({"latency=" + set["latency"].dump()})).empty());
  root["spec_version"] = "9";
  const auto refused =
      AsThePageSees(SmallDocument(), nlohmann::json{{"physics_coefficients", root}}.dump());
  EXPECT_EQ(refused["issues"][0]["path"], "/physics_coefficients/spec_version");
}

TEST(CoefficientsJson, OtherFiles_AreRefused) {
  for (const char* text : {"x", "[]", "{}", R"({"sets": [{"id": 1}]})"}) {
    const auto read = AsThePageSees("", text);
    EXPECT_TRUE(read["sets"].empty()) << text;
    EXPECT_FALSE(read["issues"].empty()) << text;
  }
}

}  // namespace
}  // namespace servecast::testing
