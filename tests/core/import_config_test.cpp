// A config.json of Hugging Face as the model of a scenario: the files that presets name as their
// source give the presets' figures, and what is not modelled is refused by name.
#include <filesystem>
#include <string>
#include <vector>

#include "core/import_texts.h"
#include "cost/model_cost.h"
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
  EXPECT_EQ(quantization(R"({"quant_method": "gptq", "bits": 8})"), "int8_w8a16");
  EXPECT_EQ(
      quantization(R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})"),
      "nvfp4");
  const std::string three = quantization(R"({"quant_method": "gptq", "bits": 3})");
  EXPECT_NE(three.find("gptq (bits 3), which are not modelled; next: "), std::string::npos)
      << three;
  for (
      const char* unknown :
      {R"({"quant_method": "bitsandbytes"})", R"({"quant_method": "aqlm"})", "{}",
       R"({"quant_method": "torchao", "quant_type": "uintx_weight_only"})",
       R"({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*down_proj": {"bits": 8}}})",
       R"({"quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"},
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}})"}) {
    EXPECT_NE(quantization(unknown).find("not modelled; next: "), std::string::npos) << unknown;
  }
}

// Bytes of a Qwen2.5-7B, matrix by matrix: what a checkpoint's own files take.
double QwenBytes(double bytes, double attention_bytes) {
  const double h = 3584, kv = 512, wide = 18944, words = 152064;
  const double attention = 2 * h * h + 2 * h * kv, mlp = 3 * h * wide;
  const double plain = 28 * (2 * h + h + 2 * kv) + h + 2 * words * h;  // norms, biases, both ends
  return 28 * (attention * attention_bytes + mlp * bytes) + 2 * plain;
}

// quantization_configs in the forms of their writers, with the bytes of a weight by their formats:
// scales, zero points and what stays in 16 bits.
TEST(ImportConfig, QuantisedCheckpoints_AreAsLargeAsTheirFiles) {
  struct Checkpoint {
    const char* quantized;
    const char* type;
    double bytes;
    double attention = 0;  // 0: the same
    bool warns = false;
  };
  const Checkpoint kCheckpoints[] = {
      // llm-compressor: a scale a row.
      {R"("quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"],
          "kv_cache_scheme": null, "config_groups": {"group_0": {"targets": ["Linear"],
          "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": true, "group_size": null},
          "input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true}}})",
       "int8", 1},
      {R"("quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
          "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null,
          "weights": {"num_bits": 8, "type": "int", "strategy": "group", "group_size": 64, "symmetric": true}}})",
       "int8_w8a16", 1 + 2.0 / 64},
      {R"("quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
          "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null,
          "weights": {"num_bits": 4, "type": "int", "strategy": "channel", "group_size": null, "symmetric": true}}})",
       "int4", 0.5},
      {R"("quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
          "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null,
          "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, "symmetric": false}}})",
       "int4", 0.5 + 2.5 / 32},
      {R"("quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "ignore": ["lm_head"])",
       "mxfp4_all", 0.5 + 1.0 / 32},
      // GPTQ: a scale of 16 bits and a zero point of the weights' for each group.
      {R"("quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": false, "sym": true)",
       "int8_w8a16", 1 + 3.0 / 128},
      {R"("quant_method": "gptq", "bits": 8, "group_size": -1, "desc_act": true, "sym": true)",
       "int8_w8a16", 1},
      {R"("quant_method": "gptq", "bits": 4, "group_size": 128, "sym": true)", "int4",
       0.5 + 2.5 / 128},
      {R"("quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"-:.*self_attn.*": {}})",
       "int4", 0.5 + 2.5 / 128, 2, true},
      {R"("quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": true)", "int4",
       0.5 + 2.5 / 128},
      // bitsandbytes: 32 bits for 64 weights, or these in 8 bits with 32 for 256 of them.
      {R"("quant_method": "bitsandbytes", "load_in_4bit": true, "load_in_8bit": false,
          "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": false, "llm_int8_skip_modules": ["lm_head"])",
       "nf4", 0.5 + 4.0 / 64},
      {R"("quant_method": "bitsandbytes", "_load_in_4bit": true, "_load_in_8bit": false,
          "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true)",
       "nf4", 0.5 + 1.0 / 64 + 4.0 / 64 / 256},
      {R"("quant_method": "bitsandbytes", "load_in_4bit": false, "load_in_8bit": true, "llm_int8_threshold": 6.0)",
       "int8", 1},
      // Quark.
      {R"("quant_method": "quark", "exclude": ["lm_head"], "export": {"kv_cache_group": []}, "layer_quant_config": {},
          "global_quant_config": {"input_tensors": {"dtype": "int8", "qscheme": "per_tensor"},
          "weight": {"dtype": "int8", "qscheme": "per_channel", "group_size": null}})",
       "int8", 1},
      {R"("quant_method": "quark", "exclude": ["lm_head"], "layer_quant_config": {},
          "global_quant_config": {"input_tensors": null,
          "weight": {"dtype": "uint4", "qscheme": "per_group", "group_size": 128}})",
       "int4", 0.5 + 2.5 / 128},
      {R"("quant_method": "quark", "exclude": ["lm_head"], "layer_quant_config": {},
          "global_quant_config": {"input_tensors": {"dtype": "fp4"},
          "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}})",
       "mxfp4_all", 0.5 + 1.0 / 32},
      // torchao: a scale and a zero point of 16 bits each.
      {R"("quant_method": "torchao", "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_version": 1,
          "_data": {"group_size": 64}}})",
       "int4", 0.5 + 4.0 / 64},
      {R"("quant_method": "torchao", "quant_type": "int8_weight_only")", "int8_w8a16", 1},
      {R"("quant_method": "torchao", "quant_type": {"default": {"_data": {},
          "_type": "Int8DynamicActivationInt8WeightConfig"}})",
       "int8", 1},
      {R"("quant_method": "torchao", "quant_type": {"default": {"_data": {},
          "_type": "Float8DynamicActivationFloat8WeightConfig"}})",
       "fp8", 1},
      // ModelOpt's SmoothQuant.
      {R"("quant_method": "modelopt", "quant_algo": "W8A8_SQ_PER_CHANNEL", "kv_cache_quant_algo": "INT8")",
       "int8", 1, 0, true},
  };
  const std::string config = ImportFile("configs/qwen2.5-7b.json");
  for (const Checkpoint& each : kCheckpoints) {
    SCOPED_TRACE(each.quantized);
    const Imported imported = Import(config.substr(0, config.rfind('}')) +
                                     ", \"quantization_config\": {" + each.quantized + "}}");
    const Json model = ResolvedImport(imported)["model"];
    EXPECT_EQ(model["quantization"], each.type) << Listed(imported);
    EXPECT_EQ(!imported.warnings.empty(), each.warns) << Listed(imported);
    Scenario s = Parsed(imported.document);
    const double bytes = ComputeModelCost(s).value().weight_bytes;
    const double files = QwenBytes(each.bytes, each.attention > 0 ? each.attention : each.bytes);
    EXPECT_NEAR(bytes / files, 1, each.attention > 0 ? 0.2 : 0.005) << Listed(imported);
  }
}

// A method that an option names says how files are read, not how many bits they have.
TEST(ImportConfig, MethodsOfOptions_LeaveBitsToTheFiles) {
  const std::string config = ImportFile("configs/qwen2.5-7b.json");
  const std::string eight =
      config.substr(0, config.rfind('}')) +
      R"(, "quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 128}})";
  const std::string base(*ScenarioPreset("llama-3.1-8b-h100-chat"));
  const auto type = [&](std::vector<ImportText> texts) {
    return JsonOf(Import(texts, base).document)["model"].value("quantization", "none");
  };
  const std::string served = "vllm serve Qwen/Qwen2.5-7B-Instruct --quantization gptq_marlin";
  EXPECT_EQ(type({{"config.json", eight}, {"serve.sh", served}}), "int8_w8a16");
  EXPECT_EQ(type({{"serve.sh", served}, {"config.json", eight}}), "int8_w8a16");
  EXPECT_EQ(type({{"", "vllm serve Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8 -q gptq"}}), "int8_w8a16");
  EXPECT_EQ(type({{"", "vllm serve Qwen/Qwen2.5-7B-Instruct -q bitsandbytes"}}), "nf4");
  EXPECT_EQ(type({{"", "vllm serve RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a8"}}), "int8");
  EXPECT_EQ(type({{"", "vllm serve RedHatAI/Qwen2.5-7B-Instruct-quantized.w8a16"}}), "int8_w8a16");
  EXPECT_EQ(type({{"", "vllm serve unsloth/Qwen2.5-7B-Instruct-bnb-4bit"}}), "nf4");
  EXPECT_EQ(type({{"", "vllm serve amd/Llama-3.3-70B-Instruct-MXFP4"}}), "mxfp4_all");
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
