// Config files of models whose layers differ: each is read, comes to the figures that
// tests/import/model_figures.py counts matrix by matrix, and runs or is refused with words. The
// files are outside the project: SERVECAST_MODEL_CONFIGS, or ../shared/model-configs beside it.
#include <cmath>
#include <string>

#include "core/import_texts.h"
#include "cost/model_cost.h"
#include "import/model_config.h"
#include "testing/data_files.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

Json Figures() { return Json::parse(ImportFile("model_figures.json")); }

std::optional<std::string> ConfigOf(const std::string& model) {
  return ReadFile(DataFolder("SERVECAST_MODEL_CONFIGS", "model-configs") + "/" + model +
                  "_config.json");
}

std::string Document(const std::string& model, const char* tensor_parallel) {
  const Json document = {
      {"schema", 1},
      {"model", Json::parse(model)},
      {"hardware", {{"preset", "h200-sxm"}}},
      {"cluster", {{"pools", {{{"tensor_parallel", std::stoi(tensor_parallel)}}}}}},
      {"workload", {{"requests", 20}}}};
  return document.dump();
}

TEST(ImportLayers, EachConfig_ComesToTheScriptsFigures) {
  int compared = 0;
  const Json figures = Figures();
  for (auto each = figures.begin(); each != figures.end(); ++each) {
    const std::string& name = each.key();
    const Json& expected = each.value();
    std::optional<std::string> config = ConfigOf(name);
    if (!config) continue;
    SCOPED_TRACE(name);
    // Python's JSON, which is none.
    if (const std::size_t at = config->find("Infinity"); at != std::string::npos) {
      config->replace(at, 8, "1000000");
    }
    const Result<std::string> model = ModelFromConfig(*config, name);
    ASSERT_TRUE(model.ok()) << Listed(model.issues());
    const Scenario scenario = Parsed(Document(model.value(), "1"));
    const ModelFigures found = FiguresOf(scenario.model);
    ++compared;
    const auto near = [&](const char* what, double figure, double share) {
      const double wanted = expected[what].get<double>();
      EXPECT_NEAR(figure, wanted, share * wanted) << what;
    };
    near("parameters", found.parameters, 0.001);
    near("active", found.active, 0.004);
    near("kv_bytes_per_token", found.kv_bytes_per_token, 0);
    near("state_bytes", found.state_bytes, 0);
  }
  if (compared == 0) GTEST_SKIP() << "skipped: no data";
}

// Sizes by config files, cut to what tells them, against what their makers say of each model, which
// they round.
TEST(ImportLayers, Families_ComeToThePublishedSizes) {
  for (const Json& each : Json::parse(ImportFile("model_families.json"))) {
    SCOPED_TRACE(each["name"].get<std::string>());
    const Result<std::string> model = ModelFromConfig(each["config"].dump(), "config.json");
    EXPECT_TRUE(model.ok()) << Listed(model.issues());
    if (!model.ok()) continue;
    const ModelFigures found = FiguresOf(Parsed(Document(model.value(), "1")).model);
    const auto near = [&](const char* what, double figure, double share) {
      if (each[what].is_null()) return;
      EXPECT_NEAR(figure, each[what].get<double>(), share * each[what].get<double>()) << what;
    };
    near("parameters", found.parameters, 0.012);
    near("active", found.active, 0.12);  // some leave the embeddings out
    Json halved = Json::parse(model.value());
    if (found.parameters > 5e11) continue;  // for more GPUs than a replica has
    halved["quantization"] = "fp8";         // so that four hold the largest
    EXPECT_EQ(RunToEnd(Document(halved.dump(), "4")).completed, 20);
  }
}

TEST(ImportLayers, ListsShorterThanTheModel_AreRefused) {
  const auto refused = [](const char* name, const char* list, Json shorter) {
    for (const Json& each : Json::parse(ImportFile("model_families.json"))) {
      if (each["name"] != name) continue;
      Json config = each["config"];
      config[Json::json_pointer(list)] = std::move(shorter);
      const Result<std::string> model = ModelFromConfig(config.dump(), "config.json");
      return model.ok() ? "nothing refused" : Listed(model.issues());
    }
    return std::string("no such model");
  };
  for (const auto& [name, list] :
       {std::pair("ibm-granite/granite-4.0-h-small", "/layer_types"),
        std::pair("MiniMaxAI/MiniMax-Text-01", "/attn_type_list"),
        std::pair("XiaomiMiMo/MiMo-V2-Flash", "/hybrid_layer_pattern"),
        std::pair("LGAI-EXAONE/K-EXAONE-236B-A23B", "/layer_types"),
        std::pair("MiniMaxAI/MiniMax-M3", "/sparse_attention_config/sparse_attention_freq")}) {
    const std::string listed = refused(name, list, Json::array());
    EXPECT_NE(listed.find("found 0 entries"), std::string::npos) << name << listed;
  }
  EXPECT_NE(refused("moonshotai/Kimi-K3", "/linear_attn_config/kda_layers", {1, 2})
                .find("layer 3 is in neither list"),
            std::string::npos);
}

TEST(ImportLayers, OfSeveralKinds_Run) {
  for (const char* name : {"Qwen--Qwen3.5-35B-A3B", "google--gemma-4-26B-A4B",
                           "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "openai--gpt-oss-20b",
                           "nvidia--Llama-3_3-Nemotron-Super-49B-v1"}) {
    const std::optional<std::string> config = ConfigOf(name);
    if (!config) continue;
    SCOPED_TRACE(name);
    const Result<std::string> model = ModelFromConfig(*config, name);
    ASSERT_TRUE(model.ok()) << Listed(model.issues());
    const Report report = RunToEnd(Document(model.value(), "2"));
    EXPECT_EQ(report.completed, 20);
    EXPECT_GT(report.kv_tokens, 0);
  }
}

TEST(Layers, WithoutSizes_AreRefusedWithWhatIsMissing) {
  const std::string document = Changed(
      {R"(model.layers=[{"kind":"gated_delta"},{"kind":"sliding"},{"kind":"full","mlp":"experts"}])"});
  const std::string listed = Listed(IssuesOf(document));
  EXPECT_NE(listed.find("/model/layers/0: found 0 as state_heads"), std::string::npos) << listed;
  EXPECT_NE(listed.find("/model/layers/1: found 0 as window"), std::string::npos) << listed;
  EXPECT_NE(listed.find("/model/layers/2/mlp"), std::string::npos) << listed;
}

TEST(Layers, OneKindAsAList_IsTheModelItself) {
  const Scenario plain = Parsed(Changed({}));
  const Scenario listed = Parsed(Changed({R"(model.layers=[{"kind":"full"}])"}));
  const Result<ModelCost> a = ComputeModelCost(plain), b = ComputeModelCost(listed);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a.value().pool_blocks, b.value().pool_blocks);
  EXPECT_EQ(a.value().kv_tokens, b.value().kv_tokens);
  EXPECT_DOUBLE_EQ(a.value().dense_bytes, b.value().dense_bytes);
  EXPECT_EQ(b.value().kv_plan, nullptr);
}

TEST(Layers, InGroupsWithDrafts_AreRefused) {
  const std::string document = Changed(
      {R"(model.layers=[{"kind":"sliding","window":64},{"kind":"full"}])",
       R"(engine.speculative={"method":"ngram","num_speculative_tokens":2,"acceptance_length":2})",
       "engine.async_scheduling=false"});
  EXPECT_NE(Listed(IssuesOf(document)).find("a state behind rejected drafts"), std::string::npos)
      << Listed(IssuesOf(document));
}

TEST(Layers, TooFewBlocksForARequest_AreRefusedWithTheNumbers) {
  const std::string document =
      Changed({R"(model.layers=[{"kind":"sliding","window":64,"count":3},{"kind":"full"}])",
               "engine.num_gpu_blocks_override=4"});
  const Scenario scenario = Parsed(document);
  const Result<ModelCost> cost = ComputeModelCost(scenario);
  ASSERT_FALSE(cost.ok());
  EXPECT_NE(Listed(cost.issues()).find("holds no request"), std::string::npos);
}

}  // namespace
}  // namespace servecast::testing
