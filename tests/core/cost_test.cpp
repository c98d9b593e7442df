// Memory: parameters against the published counts, KV bytes, and the KV blocks that vLLM logged.
#include "cost/model_cost.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "io/presets.h"

namespace servecast::testing {
namespace {

// `model`: a preset's id, in quotes, or a whole section.
Scenario Deployment(const std::string& model, const std::string& gpu, int tensor_parallel = 1) {
  return Parsed(
      R"({"schema": 1, "model": )" + model + R"(, "hardware": {"preset": ")" + gpu +
      R"("}, "engine": {"max_num_seqs": 128}, "cluster": {"pools": [{"tensor_parallel": )" +
      std::to_string(tensor_parallel) + R"(}]}, "workload": {"preset": "chat"}})");
}

std::string Preset(const std::string& id) { return R"({"preset": ")" + id + R"("})"; }

// Not presets, but vLLM logged their blocks: the checkpoints' config.json.
const char* const kYi34B =
    R"({"num_hidden_layers": 60, "hidden_size": 7168, "num_attention_heads": 56,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 20480, "vocab_size": 64000,
        "max_position_embeddings": 4096})";
const char* const kCodeLlama34B =
    R"({"num_hidden_layers": 48, "hidden_size": 8192, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 22016, "vocab_size": 32000,
        "max_position_embeddings": 16384})";

TEST(ParameterCount, Presets_AreThePublishedCounts) {
  const struct {
    const char* preset;
    double parameters;
  } known[] = {
      {"llama-2-7b", 6'738'415'616},
      {"llama-3.1-8b", 8'030'261'248},
      {"llama-3.1-70b", 70'553'706'496},
      {"qwen2.5-7b", 7'615'616'512},
      {"mistral-nemo-12b", 12'247'782'400},
      {"mixtral-8x7b", 46'702'792'704},
      // 1,557,611,200 are published: with a table of 1,024 positions, biases of the output and of
      // both matrices of the MLP, and those of the norms.
      {"gpt2-xl", 1'557'611'200 - 1024 * 1600 - 48 * (1600 + 6400 + 1600 + 2 * 1600) - 1600},
      // 596,049,920 are published; as of Qwen3-14B.
      {"qwen3-0.6b", 596'049'920 - 28 * 2 * 128},
      // 14,768,307,200 are published. The missing 10,240 are Qwen3's RMS norms of queries and keys
      // (40 layers x 2 x head_dim 128), for which a ModelSpec has no word: 20 KiB of 27.5 GiB.
      {"qwen3-14b", 14'768'307'200 - 40 * 2 * 128},
  };
  for (const auto& k : known) {
    EXPECT_EQ(ParameterCount(Deployment(Preset(k.preset), "h200-sxm", 2).model), k.parameters)
        << k.preset;
  }
}

// Expert layers, dense layers, shared experts, latent attention, windows: to a half percent, as
// model cards round and count norms, biases of experts and sinks that a ModelSpec has no words for.
TEST(ParameterCount, MixturesOfExperts_AreThePublishedCounts) {
  const struct {
    const char* preset;
    double billions;
  } known[] = {
      {"mixtral-8x22b", 140.6}, {"qwen3-30b-a3b", 30.53},
      {"deepseek-v3", 671.0},   {"llama-4-scout-17b-16e", 107.8},
      {"gpt-oss-20b", 20.9},    {"gpt-oss-120b", 116.8},
      {"qwen3-32b", 32.76},     {"yi-34b", 34.39},
      {"codellama-34b", 33.74}, {"gpt2-xl", 1.558},
  };
  for (const auto& k : known) {
    const Scenario s = Deployment(Preset(k.preset), "b200-sxm", 1);
    EXPECT_NEAR(ParameterCount(s.model) / 1e9, k.billions, 0.005 * k.billions) << k.preset;
  }
}

// Models that menus list apart, by what their cards or safetensors say; OPT, GPT-2, StarCoder2 and
// GPT-NeoX have positions and biases beside, to a thousandth or two.
TEST(ParameterCount, MeasuredModels_AreThePublishedCounts) {
  const std::map<std::string, double> billions = {
      {"falcon-40b", 41.30},
      {"falcon-7b", 6.922},
      {"gemma-2-27b", 27.23},
      {"gemma-2-9b", 9.242},
      {"gemma-3-12b", 11.77},
      {"gemma-3-27b", 27.01},
      {"gemma-3-4b", 3.880},
      {"glm-4.5", 352.8},
      {"glm-4.5-air", 106.9},
      {"gpt-neox-20b", 20.55},
      {"granite-3.1-8b", 8.171},
      {"kimi-k2", 1026.4},
      {"llama-2-13b", 13.02},
      {"llama-2-70b", 68.98},
      {"llama-3-70b", 70.55},
      {"llama-3-8b", 8.030},
      {"llama-3.1-405b", 405.9},
      {"llama-3.2-1b", 1.236},
      {"llama-3.2-3b", 3.213},
      {"llama-4-maverick-17b-128e", 400.7},
      {"minimax-m2.5", 228.7},
      {"mistral-7b", 7.242},
      {"mistral-7b-v0.2", 7.242},
      {"mistral-7b-v0.3", 7.248},
      {"mistral-large", 122.6},
      {"mistral-small-24b", 23.57},
      {"opt-13b", 12.85},
      {"opt-30b", 29.97},
      {"opt-6.7b", 6.658},
      {"opt-66b", 65.72},
      {"phi-3-medium", 13.96},
      {"phi-3-mini", 3.821},
      {"phi-4", 14.66},
      {"qwen2.5-0.5b", 0.494},
      {"qwen2.5-1.5b", 1.544},
      {"qwen2.5-14b", 14.77},
      {"qwen2.5-32b", 32.76},
      {"qwen2.5-3b", 3.086},
      {"qwen2.5-72b", 72.71},
      {"qwen3-1.7b", 1.721},
      {"qwen3-235b-a22b", 235.1},
      {"qwen3-4b", 4.022},
      {"qwen3-8b", 8.191},
      {"qwen3-vl-30b-a3b", 30.53},
      {"qwen3-vl-8b", 8.191},
      {"qwen3-coder-480b-a35b", 480.2},
      {"starcoder2-15b", 15.96},
      {"yi-6b", 6.061},
      {"qwen3.5-27b", 26.9},
      {"qwen3.5-35b-a3b", 34.66},
      {"qwen3.5-122b-a10b", 122.1},
      {"qwen3.5-397b-a17b", 396.3},
      {"deepseek-v3.2", 671.9},
      {"deepseek-v4-flash", 284.3},
      {"glm-5", 743.9},
      {"gemma-4-26b-a4b", 25.23},
      {"nemotron-3-nano-30b-a3b", 31.58},
      {"nemotron-3-super-120b-a12b", 120.7},
      {"llama-3.3-nemotron-super-49b", 49.87},
      {"glm-5.1", 743.9},
      {"kimi-k2.5", 1026.4},
      {"minimax-m2.7", 228.7},
      {"qwen3.6-27b", 26.9},
      {"qwen3.6-35b-a3b", 34.66},
      {"gemma-4-31b", 30.70},
      {"glm-5.2", 743.9},
      {"deepseek-v4-pro", 1573.2},
      {"kimi-k3", 2771.5},
      {"minimax-m3", 425.7},
      {"mimo-v2-flash", 309},
      {"step-3.7-flash", 196},
      {"nemotron-3-ultra-550b-a55b", 550},
      {"gpt2-xl", 1.556},
      {"yi-34b", 34.39},
      {"codellama-34b", 33.74},
  };
  std::vector<std::string_view> ids = AllPresetIds("models");
  std::erase_if(ids, [](std::string_view id) { return NameOfPreset("models", id).in_menu; });
  EXPECT_EQ(ids.size(), billions.size());
  for (const std::string_view id : ids) {
    const auto known = billions.find(std::string(id));
    ASSERT_NE(known, billions.end()) << id;
    Scenario s = Deployment(FindPresetDocument("models", id)->dump(), "h200-sxm");
    EXPECT_NEAR(ParameterCount(s.model) / 1e9, known->second, 0.002 * known->second) << id;
    s.model.vision = {};  // of the text: an encoder has a test of its own (images_test.cpp)
    s.hardware.memory_gib = 4000;
    const auto cost = ComputeModelCost(s);
    ASSERT_TRUE(cost.ok()) << id << Listed(cost.issues());
    if (s.model.expert_quantization != Quantization::kNone ||
        s.model.quantization == Quantization::kMxfp4) {
      continue;  // of two types
    }
    // Embeddings and the matrix of logits stay in 16 bits.
    const double vocabulary =
        2e-9 * static_cast<double>(s.model.vocab_size) * static_cast<double>(s.model.hidden_size);
    const double stored =
        s.model.quantization == Quantization::kFp8 ? known->second + vocabulary : 2 * known->second;
    EXPECT_NEAR(cost.value().weight_bytes / 1e9, stored, 0.006 * stored) << id;
  }
}

// Kimi-K2.5: 1,014.7 of 1,026.4 billion weights are experts in int4 with a scale for 32, 4.5 bits
// each.
TEST(ModelCost, GroupsOfInt4_HaveAScaleEach) {
  Scenario s = Deployment(FindPresetDocument("models", "kimi-k2")->dump(), "b200-sxm");
  s.model.quantization = Quantization::kNone;
  s.model.expert_quantization = Quantization::kInt4;
  s.model.quantization_group_size = 32;
  s.hardware.memory_gib = 4000;
  const double bytes = ComputeModelCost(s).value().weight_bytes;
  const double experts = 60.0 * 384 * 3 * 7168 * 2048;
  EXPECT_NEAR(bytes, experts * 0.5625 + (1026.4e9 - experts) * 2, 0.01 * bytes);
  s.model.quantization_group_size = 0;
  EXPECT_NEAR(ComputeModelCost(s).value().weight_bytes, bytes - experts * 6 / 128, 1e-6 * bytes);
}

TEST(ModelCost, LatentAttention_CachesTheLatent) {
  const auto cost = ComputeModelCost(Deployment(Preset("deepseek-v3"), "b200-sxm", 8));
  ASSERT_TRUE(cost.ok()) << Listed(cost.issues());
  EXPECT_EQ(cost.value().kv_bytes_per_token, 61 * (512 + 64) * 2);
  EXPECT_EQ(cost.value().attention_flops_per_pair, 2.0 * 61 * 128 * (128 + 64 + 128) / 8);
  EXPECT_EQ(cost.value().decode_flops_per_pair, 2.0 * 61 * 128 * (2 * 512 + 64) / 8);
}

TEST(ModelCost, Quantization_ShrinksTheMatricesAlone) {
  Scenario s = Deployment(Preset("llama-3.1-8b"), "b200-sxm", 1);
  const auto plain = ComputeModelCost(s);
  s.model.quantization = Quantization::kFp8;
  s.engine.kv_cache_dtype = KvCacheDType::kFp8;
  const auto eight = ComputeModelCost(s);
  s.model.quantization = Quantization::kNvfp4;
  const auto four = ComputeModelCost(s);
  ASSERT_TRUE(plain.ok() && eight.ok() && four.ok());
  EXPECT_EQ(eight.value().dense_bytes, plain.value().dense_bytes / 2);
  EXPECT_EQ(eight.value().dense_flops_per_token, plain.value().dense_flops_per_token);
  EXPECT_EQ(eight.value().lm_head_bytes, plain.value().lm_head_bytes);
  EXPECT_EQ(eight.value().kv_bytes_per_token, plain.value().kv_bytes_per_token / 2);
  EXPECT_EQ(four.value().dense_bytes, plain.value().dense_bytes / 2 * 0.5625);
}

TEST(ModelCost, LayersWithWindows_ArePlannedByGroups) {
  // 12 layers with a window of 128 tokens and 12 without: a block of each kind for 16 tokens.
  Scenario s = Deployment(Preset("gpt-oss-20b"), "h100-sxm", 1);
  const ModelCost kept = ComputeModelCost(s).value();
  ASSERT_NE(kept.kv_plan, nullptr);
  EXPECT_EQ(kept.kv_plan->groups.groups.size(), 2u);
  EXPECT_FALSE(kept.windows.any());
  s.engine.gc_pass_us = 1;  // garbage is not known by group: windows are counted
  const ModelCost c = ComputeModelCost(s).value();
  EXPECT_EQ(c.kv_plan, nullptr);
  EXPECT_EQ(kept.pool_blocks, c.pool_blocks);
  EXPECT_EQ(c.kv_bytes_per_token, 2.0 * 24 * 8 * 64 * 2);
  EXPECT_EQ(c.window_share, 0.5);
  const double block = c.kv_bytes_per_token / 2 * 16 / std::exp2(30);
  EXPECT_EQ(c.pool_blocks, static_cast<std::int64_t>(c.kv_gib / block));
  EXPECT_EQ(c.windows.units, 1);
  EXPECT_EQ(c.windows.Held(3), 3);
  EXPECT_EQ(c.windows.Held(1000), 9);  // 128 tokens, wherever they begin
  // Every token counts twice while a prompt is shorter than what steps in flight compute.
  EXPECT_EQ(c.windows.Asked(60, 0), 60);
  EXPECT_EQ(c.windows.Asked(60, 50), 19);
  const std::int64_t most = c.windows.MostPositions(c.usable_blocks);
  EXPECT_LE(most + c.windows.Asked(most, 0), c.usable_blocks);
  EXPECT_GT(most + 1 + c.windows.Asked(most + 1, 0), c.usable_blocks);
  // A scheduler without groups keeps all tokens of all layers, and so does one that sends KV.
  s.scheduler.policy = "sglang";
  const ModelCost whole = ComputeModelCost(s).value();
  EXPECT_FALSE(whole.windows.any());
  EXPECT_NEAR(static_cast<double>(whole.pool_blocks), static_cast<double>(c.pool_blocks) / 2, 1);
}

TEST(ModelCost, MostlyFullLayers_ShareOneGroupOfWindows) {
  Scenario s = Deployment(Preset("llama-3.1-8b"), "h100-sxm", 1);
  s.model.sliding_window = 1024;
  s.model.num_sliding_layers = 8;  // of 32: three groups of the others
  s.engine.gc_pass_us = 1;         // so that windows are counted
  const ModelCost c = ComputeModelCost(s).value();
  EXPECT_EQ(c.windows.units, 1);
  EXPECT_EQ(c.windows.every, 3);
  EXPECT_EQ(c.windows.Held(65), 22);
  EXPECT_EQ(c.windows.Held(1000), 22);
}

// All of a cost that a reader may see or a step's time may come from.
std::vector<double> FiguresOf(const ModelCost& c) {
  return {c.weight_bytes,
          c.kv_bytes_per_token,
          c.dense_bytes,
          c.dense_flops_per_token,
          c.lm_head_bytes,
          c.lm_head_flops_per_token,
          c.attention_flops_per_pair,
          c.decode_flops_per_pair,
          c.activation_bytes_per_token,
          c.collective_bytes_per_token,
          c.usable_gib,
          c.weights_gib,
          c.overhead_gib,
          c.kv_gib,
          static_cast<double>(c.pool_blocks),
          static_cast<double>(c.kv_tokens)};
}

bool Sound(double figure) { return std::isfinite(figure) && figure > 0 && figure < 1e18; }

// Every preset of a model, with whatever drafts, shards, quantises or adapts it.
TEST(ModelCost, EveryFigure_IsFiniteAndPositive) {
  std::int64_t planned = 0, refused = 0;
  for (const std::string_view id : AllPresetIds("models")) {
    Scenario s = Deployment(Preset(std::string(id)), "b200-sxm", 1);
    const Quantization own = s.model.quantization;
    for (int i = 0; i < 9 * 2 * 3 * 3 * 2 * 2; ++i) {
      int rest = i;
      int digit[6];
      const int counts[6] = {9, 2, 3, 3, 2, 2};
      for (int d = 0; d < 6; ++d) digit[d] = rest % counts[d], rest /= counts[d];
      s.engine.speculative.method = static_cast<DraftMethod>(digit[0]);
      s.engine.enable_expert_parallel = digit[1] == 1;
      s.cluster.pools[0].tensor_parallel = std::int64_t{1} << 2 * digit[2];
      s.model.quantization = digit[3] == 0   ? own
                             : digit[3] == 1 ? Quantization::kFp8
                                             : Quantization::kInt4;
      s.engine.kv_cache_dtype = digit[4] == 0 ? KvCacheDType::kAuto : KvCacheDType::kFp8;
      s.engine.max_loras = digit[5] == 0 ? 0 : 4;
      s.cluster.pools[0].attention_data_parallel = 1 + digit[1];
      const std::string which = std::string(id) + " " + std::to_string(i);
      if (const std::optional<Unfit> unfit = UnfitOf(s)) {
        for (const double figure : {unfit->weights_gib, unfit->overhead_gib, unfit->usable_gib}) {
          EXPECT_TRUE(Sound(figure) && figure < 1e5) << which << " " << figure;
        }
      }
      const Result<ModelCost> cost = ComputeModelCost(s);
      ++(cost.ok() ? planned : refused);
      if (!cost.ok()) continue;
      const ModelCost& c = cost.value();
      for (const double figure : FiguresOf(c)) ASSERT_TRUE(Sound(figure)) << which << " " << figure;
      for (const double figure : {c.expert_bytes, c.expert_flops_per_token}) {
        ASSERT_TRUE(c.experts > 0 ? Sound(figure) : figure == 0) << which << " " << figure;
      }
      if (!s.engine.speculative.HasDrafter()) continue;
      const ModelCost d = WorkOf(DrafterScenario(s));
      for (const double figure : {d.dense_bytes, d.dense_flops_per_token, d.kv_bytes_per_token}) {
        ASSERT_TRUE(Sound(figure)) << which << " " << figure;
      }
    }
  }
  EXPECT_GT(planned, 2 * refused) << refused;
}

TEST(ParameterCount, ArchitectureArithmetic_IsTheSum) {
  // A model small enough to add up by hand: 2 layers of (q 8x6, k and v 8x3 each, o 6x8, biases
  // 6 + 3 + 3, gate, up and down 8x5 each, two norms of 8), embedding and head 10x8, last norm 8.
  ModelSpec m;
  m.num_hidden_layers = 2;
  m.hidden_size = 8;
  m.num_attention_heads = 2;
  m.num_key_value_heads = 1;
  m.head_dim = 3;
  m.intermediate_size = 5;
  m.vocab_size = 10;
  const double layer = 48 + 24 + 24 + 48 + 3 * 40 + 16;
  EXPECT_EQ(ParameterCount(m), 2 * layer + 2 * 80 + 8);
  m.attention_bias = true;
  EXPECT_EQ(ParameterCount(m), 2 * (layer + 12) + 2 * 80 + 8);
  m.tie_word_embeddings = true;
  EXPECT_EQ(ParameterCount(m), 2 * (layer + 12) + 80 + 8);
  m.num_local_experts = 4;  // four MLPs instead of one, and a router of 8x4
  m.num_experts_per_tok = 2;
  EXPECT_EQ(ParameterCount(m), 2 * (layer + 12 + 3 * 120 + 32) + 80 + 8);
  m.mlp_matrices = 2;  // each without its gate
  EXPECT_EQ(ParameterCount(m), 2 * (layer + 12 + 3 * 120 + 32 - 4 * 40) + 80 + 8);
}

// A model without gates: what its MLP has to read, to do and to hold is two thirds.
TEST(ModelCost, TwoMatrices_AreTwoThirdsOfThree) {
  Scenario s = Deployment(Preset("llama-3.1-8b"), "h200-sxm");
  const auto three = ComputeModelCost(s);
  s.model.mlp_matrices = 2;
  const auto two = ComputeModelCost(s);
  ASSERT_TRUE(two.ok() && three.ok());
  const double gates = 32.0 * 4096 * 14336;
  EXPECT_EQ(three.value().dense_bytes - two.value().dense_bytes, 2 * gates);
  EXPECT_EQ(three.value().weight_bytes - two.value().weight_bytes, 2 * gates);
  EXPECT_EQ(three.value().dense_flops_per_token - two.value().dense_flops_per_token, 2 * gates);
  EXPECT_EQ(three.value().activation_bytes_per_token - two.value().activation_bytes_per_token,
            32.0 * 14336 * 2);
}

// Replicas of attention that share experts: each GPU holds and reads a share of these and all else.
TEST(ModelCost, SharedExperts_AreSpreadOverAllReplicas) {
  Scenario s = Deployment(Preset("deepseek-v3"), "b200-sxm", 2);
  s.hardware.memory_gib = 1000;
  const auto alone = ComputeModelCost(s);
  s.cluster.pools[0].attention_data_parallel = 4;
  const auto shared = ComputeModelCost(s);
  ASSERT_TRUE(alone.ok() && shared.ok()) << Listed(shared.issues());
  const ModelCost &a = alone.value(), &b = shared.value();
  const double experts = 58.0 * 3 * 7168 * 2048 * 256;  // in 8 bits
  EXPECT_EQ(a.expert_bytes, experts / 2);
  EXPECT_EQ(b.expert_bytes, experts / 8);
  EXPECT_DOUBLE_EQ(a.weight_bytes - b.weight_bytes, experts * 3 / 8);
  EXPECT_EQ(a.dense_bytes, b.dense_bytes);
  // As many tokens of others come to its experts as its own go to theirs.
  EXPECT_EQ(a.expert_flops_per_token, b.expert_flops_per_token);
  EXPECT_EQ(b.expert_replicas, 4);
  EXPECT_EQ(b.expert_layers, 58);
  EXPECT_GT(b.pool_blocks, a.pool_blocks);
}

TEST(ModelCost, KvBytesPerToken_AreKAndVOfAllLayers) {
  const struct {
    const char* preset;
    int tensor_parallel;
    double bytes;
  } known[] = {
      {"llama-2-7b", 1, 2.0 * 32 * 32 * 128 * 2},   // 512 KiB
      {"llama-3.1-8b", 1, 2.0 * 32 * 8 * 128 * 2},  // 128 KiB
      {"llama-3.1-8b", 2, 2.0 * 32 * 4 * 128 * 2},     {"llama-3.1-8b", 8, 2.0 * 32 * 1 * 128 * 2},
      {"llama-3.1-8b", 16, 2.0 * 32 * 1 * 128 * 2},     // 8 heads on 16 GPUs: each is there twice
      {"mistral-nemo-12b", 1, 2.0 * 40 * 8 * 128 * 2},  // head_dim 128, not 5120 / 32
      {"qwen2.5-7b", 1, 2.0 * 28 * 4 * 128 * 2},
  };
  for (const auto& k : known) {
    const auto cost = ComputeModelCost(Deployment(Preset(k.preset), "h100-sxm", k.tensor_parallel));
    ASSERT_TRUE(cost.ok()) << k.preset << Listed(cost.issues());
    EXPECT_EQ(cost.value().kv_bytes_per_token, k.bytes) << k.preset << " tp " << k.tensor_parallel;
  }
}

TEST(ModelCost, ReplicatedKvHeads_CostWeightsToo) {
  // Per GPU, 16 GPUs hold as much of the k and v projections as 8 do.
  const auto eight = ComputeModelCost(Deployment(Preset("llama-3.1-8b"), "h100-sxm", 8));
  const auto sixteen = ComputeModelCost(Deployment(Preset("llama-3.1-8b"), "h100-sxm", 16));
  ASSERT_TRUE(eight.ok() && sixteen.ok());
  const double kv_weights = 32.0 * 2 * 4096 * 128 * 2;  // bytes of one head's k and v, all layers
  const double norms = (32.0 * 2 * 4096 + 4096) * 2;    // on every GPU
  EXPECT_DOUBLE_EQ(2 * (sixteen.value().weight_bytes - kv_weights - norms),
                   eight.value().weight_bytes - kv_weights - norms);
}

TEST(ModelCost, KvBlocks_AreWithinTwoPercentOfTheLogs) {
  const struct {
    const char* name;
    std::string model;
    const char* gpu;
    int tensor_parallel;
    double logged;
  } known[] = {
      {"Llama-2-7B", Preset("llama-2-7b"), "h100-sxm", 1, 7463},
      {"Qwen2.5-7B", Preset("qwen2.5-7b"), "h100-sxm", 1, 65368},
      {"Mistral-Nemo", Preset("mistral-nemo-12b"), "h100-sxm", 1, 19251},
      {"Mistral-Nemo", Preset("mistral-nemo-12b"), "h100-sxm", 2, 48009},
      {"Yi-34B", kYi34B, "h100-sxm", 2, 20793},
      {"CodeLlama-34B", kCodeLlama34B, "h100-sxm", 2, 26602},
      {"Mixtral-8x7B", Preset("mixtral-8x7b"), "h100-sxm", 2, 27510},
      {"Llama-3.1-70B", Preset("llama-3.1-70b"), "h100-sxm", 4, 30425},
      {"Llama-3.1-8B", Preset("llama-3.1-8b"), "a100-40gb", 1, 9929},
  };
  for (const auto& k : known) {
    const auto cost = ComputeModelCost(Deployment(k.model, k.gpu, k.tensor_parallel));
    ASSERT_TRUE(cost.ok()) << k.name << Listed(cost.issues());
    const auto blocks = static_cast<double>(cost.value().pool_blocks);
    EXPECT_NEAR(blocks / k.logged, 1, 0.02) << k.name << " tp " << k.tensor_parallel;
    EXPECT_EQ(cost.value().usable_blocks, cost.value().pool_blocks - 1);
  }
}

// A wide step of the profile run takes room where logits are few. Logged: 203,264 tokens.
TEST(ModelCost, Activations_TakeRoomWhereSeatsAreFew) {
  Scenario s = Deployment(Preset("qwen3-14b"), "l40s");
  s.model.quantization = Quantization::kInt4;
  s.engine.gpu_memory_utilization = 0.95;
  s.engine.max_num_seqs = 8;
  s.engine.max_num_batched_tokens = 8192;
  const double wide = static_cast<double>(ComputeModelCost(s).value().kv_tokens);
  EXPECT_NEAR(wide / 203264, 1, 0.02);
  s.engine.max_num_batched_tokens = 2048;
  EXPECT_GT(static_cast<double>(ComputeModelCost(s).value().kv_tokens), 1.01 * wide);
  s.engine.max_num_seqs = 256;  // logits take more
  const std::int64_t narrow = ComputeModelCost(s).value().kv_tokens;
  s.engine.max_num_batched_tokens = 1024;
  EXPECT_EQ(ComputeModelCost(s).value().kv_tokens, narrow);
}

TEST(ModelCost, Memory_AddsUp) {
  for (const char* gpu : {"a100-40gb", "a100-80gb", "h100-sxm", "h200-sxm", "l40s", "rtx-4090"}) {
    const auto cost = ComputeModelCost(Deployment(Preset("llama-3.1-8b"), gpu));
    ASSERT_TRUE(cost.ok()) << gpu;
    const ModelCost& c = cost.value();
    EXPECT_NEAR(c.usable_gib, c.weights_gib + c.overhead_gib + c.kv_gib, 1e-9) << gpu;
    EXPECT_LT(c.usable_gib, c.total_gib) << gpu;
    const double block_gib = c.kv_bytes_per_token * 16 / 1024 / 1024 / 1024;
    EXPECT_LE(static_cast<double>(c.pool_blocks) * block_gib, c.kv_gib) << gpu;
    EXPECT_GT(static_cast<double>(c.pool_blocks + 1) * block_gib, c.kv_gib) << gpu;
  }
}

TEST(CaptureSize, IsTheNextOfSfllmsList) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t n = 1; n <= 32; ++n) {
    EXPECT_GE(CaptureSize(n), n);
    if (CaptureSize(n) == n) sizes.push_back(n);
    EXPECT_EQ(CaptureSize(CaptureSize(n)), CaptureSize(n)) << "only captured sizes";
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32}));
}

TEST(ModelCost, CapturedGraphs_TakeMemoryFromTheKvCache) {
  Scenario s = Deployment(Preset("llama-3.1-8b"), "h100-sxm");
  const ModelCost without = ComputeModelCost(s).value();
  s.engine.cuda_graphs = CudaGraphs::kEager;
  EXPECT_EQ(ComputeModelCost(s).value().pool_blocks, without.pool_blocks);
  s.engine.cuda_graphs = CudaGraphs::kCaptured;
  s.engine.cuda_graph_max_bs = 32;  // 14 sizes
  s.engine.cuda_graph_mib = 128;
  const ModelCost with = ComputeModelCost(s).value();
  EXPECT_NEAR(with.overhead_gib - without.overhead_gib, 14 * 128.0 / 1024, 1e-12);
  // A block has 2 MiB (128 KiB a token).
  EXPECT_NEAR(static_cast<double>(without.pool_blocks - with.pool_blocks), 14 * 128 / 2, 1);
}

TEST(ModelCost, ModelThatDoesNotFit_SaysTheNumbers) {
  const auto cost = ComputeModelCost(Deployment(Preset("llama-3.1-70b"), "h100-sxm"));
  ASSERT_FALSE(cost.ok());
  ASSERT_EQ(cost.issues().size(), 1u);
  const std::string& message = cost.issues()[0].message;
  EXPECT_EQ(cost.issues()[0].path, "/model");
  // 70,553,706,496 x 2 bytes = 131.4 GiB; 79.19 x 0.9 = 71.3 GiB.
  for (const char* part : {"Llama-3.1-70B", "131 GiB", "71.3 GiB", "79.19 GiB", "0.9", "1 x ",
                           "tensor_parallel 2 would fit"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  }
  EXPECT_TRUE(ComputeModelCost(Deployment(Preset("llama-3.1-70b"), "h100-sxm", 2)).ok());
}

TEST(ModelCost, HeadsThatDoNotDivide_AreAnIssueAtTheField) {
  for (const int tensor_parallel : {3, 5, 64, 24}) {
    const auto cost =
        ComputeModelCost(Deployment(Preset("llama-3.1-8b"), "h200-sxm", tensor_parallel));
    ASSERT_FALSE(cost.ok()) << tensor_parallel;
    EXPECT_EQ(cost.issues()[0].path, "/cluster/pools/0/tensor_parallel");
  }
}

TEST(ModelCost, BlocksOverride_IsThePool) {
  Scenario s = Deployment(Preset("llama-3.1-8b"), "h100-sxm");
  s.engine.num_gpu_blocks_override = 100;
  const auto cost = ComputeModelCost(s);
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost.value().pool_blocks, 100);
  EXPECT_EQ(cost.value().usable_blocks, 99);
  // But it does not conjure memory for the weights.
  Scenario large = Deployment(Preset("llama-3.1-70b"), "h100-sxm");
  large.engine.num_gpu_blocks_override = 100;
  EXPECT_FALSE(ComputeModelCost(large).ok());
}

TEST(SharedExperts, WhatTheyDoNotGoWith_IsRefused) {
  const std::vector<std::string> moe = {"model.preset=mixtral-8x7b",
                                        "cluster.pools.0.tensor_parallel=2",
                                        "cluster.pools.0.replicas=4"};
  const auto issues = [&moe](std::vector<std::string> more) {
    std::vector<std::string> all = moe;
    all.insert(all.end(), more.begin(), more.end());
    return Listed(IssuesOf(Changed(all)));
  };
  const std::string field = "cluster.pools.0.attention_data_parallel";
  EXPECT_EQ(issues({field + "=4"}), "");
  EXPECT_EQ(issues({field + "=2", "latency.backend=operators"}), "");
  const struct {
    std::vector<std::string> more;
    const char* allowed;
    const char* path = "/cluster/pools/0/attention_data_parallel";
  } refused[] = {
      {{field + "=3"}, "a divisor of replicas 4"},
      {{field + "=8"}, "a divisor of replicas 4"},
      {{field + "=2", "model.preset=llama-3.1-8b"}, "1 of a model without experts"},
      {{field + "=2", "cluster.pools.0.pipeline_parallel=2", "engine.async_scheduling=false"},
       "1 with pipeline_parallel above 1"},
      {{field + "=2", "latency.backend=roofline"},
       "auto, analytic, operators and blackbox with attention_data_parallel above 1",
       "/latency/backend"},
  };
  for (const auto& r : refused) {
    const std::string found = issues(r.more);
    EXPECT_NE(found.find(r.path), std::string::npos) << found;
    EXPECT_NE(found.find(r.allowed), std::string::npos) << found;
  }
}

TEST(Types, Float32_TakesTwiceTheBytesAndPlainUnits) {
  const std::vector<std::string> wide = {"model.torch_dtype=float32"};
  const Issues issues = IssuesOf(Changed(wide));
  ASSERT_EQ(issues.size(), 1U) << Listed(issues);
  EXPECT_EQ(issues[0].path, "/hardware/peak_fp32_tflops");
  std::vector<std::string> peak = wide;
  peak.emplace_back("hardware.peak_fp32_tflops=67");
  const Report narrow = RunToEnd(SmallDocument()), report = RunToEnd(Changed(peak));
  EXPECT_NEAR(report.memory.weights_gib, 2 * narrow.memory.weights_gib, 0.01);
  EXPECT_GT(report.itl_ms.mean, 1.5 * narrow.itl_ms.mean);
  // The prompt's arithmetic at 67 instead of 989.5.
  EXPECT_GT(report.ttft_ms.mean, 3 * narrow.ttft_ms.mean);
  EXPECT_EQ(report.latency_model.backend, "analytic");
  EXPECT_NE(report.latency_model.known_error.find("32-bit"), std::string::npos);
  for (const char* other : {"latency.backend=operators", "latency.backend=roofline",
                            "engine.compat=blis", "model.quantization=fp8"}) {
    std::vector<std::string> refused = peak;
    refused.emplace_back(other);
    EXPECT_NE(Listed(IssuesOf(Changed(refused))).find("torch_dtype"), std::string::npos) << other;
  }
}

}  // namespace
}  // namespace servecast::testing
