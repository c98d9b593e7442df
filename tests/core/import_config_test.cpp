// A config.json of Hugging Face as the model of a scenario: the files that presets name as their
// source give the presets' figures, and what is not modelled is refused by name.
#include <filesystem>
#include <string>
#include <vector>

#include "core/import_texts.h"
#include "import/model_config.h"
#include "io/presets.h"

namespace servecast::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<std::string> Configs() {
  std::vector<std::string> ids;
  for (const auto& entry :
       fs::directory_iterator(std::string(SERVECAST_SOURCE_DIR) + "/tests/import/configs")) {
    ids.push_back(entry.path().stem().string());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string Model(const char* config) {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", )" +
         std::string(config) + "}";
}

// All figures of a model, defaults written out. Both types of 16 bits are one to a simulation.
Json Resolved(const Json& model) {
  const Json document = {{"schema", 1},
                         {"model", model},
                         {"hardware", {{"preset", "h100-sxm"}}},
                         {"workload", {{"requests", 1}}}};
  Json resolved = JsonOf(Parsed(document.dump()).resolved_text)["model"];
  for (const char* label : {"name", "top_p_by_default", "torch_dtype"}) resolved.erase(label);
  return resolved;
}

TEST(ImportConfig, EachConfig_IsItsPreset) {
  const std::vector<std::string> ids = Configs();
  EXPECT_GE(ids.size(), 30u);
  for (const std::string& id : ids) {
    SCOPED_TRACE(id);
    const std::string text = ImportFile("configs/" + id + ".json");
    const Result<std::string> model = ModelFromConfig(text, id);
    ASSERT_TRUE(model.ok()) << Listed(model.issues());
    EXPECT_EQ(Resolved(JsonOf(model.value())), Resolved({{"preset", id}}));
    // Two presets of one shape: by figures alone they are the same.
    const Imported imported = Import(text);
    const Json found = ResolvedImport(imported)["model"];
    Json preset = Resolved({{"preset", id}}), plain = found;
    for (const char* label : {"name", "top_p_by_default", "torch_dtype"}) plain.erase(label);
    EXPECT_EQ(plain, preset) << Listed(imported);
  }
}

TEST(ImportConfig, BesideItsGenerationConfig_SaysWhetherItSamples) {
  const std::string config = ImportFile("configs/mixtral-8x7b.json"),
                    base(*ScenarioPreset("llama-3.1-8b-h100-chat"));
  const auto samples = [&](const char* generation) {
    return ResolvedImport(Import({{"config.json", config}, {"generation_config.json", generation}},
                                 base))["model"]["top_p_by_default"];
  };
  EXPECT_EQ(samples(R"({"do_sample": true, "top_p": 0.9, "eos_token_id": 2})"), true);
  EXPECT_EQ(samples(R"({"eos_token_id": 2, "bos_token_id": 1})"), false);
}

TEST(ImportConfig, Quantizations_AreThoseOfTheirWriters) {
  const std::string figures =
      R"("num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 512,
    "vocab_size": 1000, "max_position_embeddings": 4096, "quantization_config": )";
  const auto quantization = [&](const char* config) {
    const Result<std::string> model = ModelFromConfig(Model((figures + config).c_str()), "");
    return model.ok() ? JsonOf(model.value()).value("quantization", "none")
                      : Listed(model.issues());
  };
  EXPECT_EQ(quantization(R"({"quant_method": "fp8"})"), "fp8");
  EXPECT_EQ(quantization(R"({"quant_method": "awq", "bits": 4})"), "int4");
  EXPECT_EQ(quantization(R"({"quant_method": "gptq", "bits": 8})").find("none"), std::string::npos);
  EXPECT_EQ(
      quantization(R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})"),
      "nvfp4");
  EXPECT_NE(quantization(R"({"quant_method": "bitsandbytes"})").find("not modelled"),
            std::string::npos);
}

TEST(ImportConfig, UnknownArchitectures_AreRefusedByName) {
  const Imported mamba = Import(
      R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba", "num_hidden_layers": 4})");
  EXPECT_TRUE(mamba.document.empty());
  EXPECT_TRUE(Says(mamba, "found mamba")) << Listed(mamba);
  const Imported linear =
      Import(R"({"architectures": ["Rwkv7ForCausalLM"], "model_type": "rwkv7"})");
  EXPECT_TRUE(Says(linear, "rwkv7")) << Listed(linear);
}

// The facts have lists of one entry a layer shortened: digits, or a period.
Json WithLists(const Json& of) {
  if (!of.is_object()) return of;
  if (of.contains("layers") && of.contains("list") && of["list"].is_array()) return of["list"];
  Json whole = Json::array();
  if (of.contains("layers") && of.contains("list")) {
    for (const char digit : of["list"].get<std::string>()) whole.push_back(digit - '0');
    return whole;
  }
  if (of.contains("layers") && of.contains("period")) {
    for (std::size_t i = 0; i < of["layers"].get<std::size_t>(); ++i) {
      whole.push_back(of["period"][i % of["period"].size()]);
    }
    return whole;
  }
  Json object = Json::object();
  for (const auto& [key, value] : of.items()) object[key] = WithLists(value);
  return object;
}

TEST(ImportConfig, FilesOfCurrentModels_AreModelsOrRefusedByName) {
  const std::string file =
      DataFolder("SERVECAST_GROUNDTRUTH_2026", "groundtruth-2026-11") + "/models_facts.json";
  const auto text = ReadFile(file);
  if (!text) GTEST_SKIP() << "skipped: no data at " << file;
  const Json models = JsonOf(*text);
  int imported = 0;
  for (const Json& each : models) {
    SCOPED_TRACE(each["model"].get<std::string>());
    const Json config = WithLists(each["config"]);
    const Imported found = Import(config.dump());
    if (found.document.empty()) {
      const std::string type = config.value("model_type", "");
      EXPECT_TRUE(Says(found, type) || Says(found, "not modelled") || Says(found, "missing"))
          << Listed(found);
      continue;
    }
    ++imported;
    ResolvedImport(found);
  }
  EXPECT_GE(imported, 40);
}

}  // namespace
}  // namespace servecast::testing
