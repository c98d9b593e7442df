// The features of the latency model "physics": the golden file, the worked example of the model's
// specification with its arithmetic put right, and what physics demands of the corrected variant.
#include "cost/physics_features.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

const Json& Golden() {
  static const Json golden = [] {
    std::ifstream file(SERVECAST_SOURCE_DIR "/tests/golden/physics_features.json");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return Json::parse(text, nullptr, false);
  }();
  return golden;
}

PhysicsConfig ConfigOf(const Json& config, bool corrected) {
  const Json &m = config["model"], &hw = config["hardware"], &v = config["vllm"];
  const auto number = [](const Json& value) { return value.get<double>(); };
  PhysicsConfig k;
  k.corrected = corrected;
  k.layers = number(m["num_hidden_layers"]);
  k.hidden = number(m["hidden_size"]);
  k.heads = number(m["num_attention_heads"]);
  k.kv_heads = number(m["num_key_value_heads"]);
  k.head_dim = number(m["head_dim"]);
  k.intermediate = number(m["intermediate_size"]);
  k.vocab = number(m["vocab_size"]);
  k.mlp_matrices = number(m["n_mlp_proj"]);
  k.value_bytes = number(m["bytes_per_param"]);
  k.experts = number(m["num_local_experts"]);
  k.top_k = number(m["num_experts_per_tok"]);
  k.peak_tflops = number(hw["TFlopsPeak"]);
  k.bandwidth_gb_s = number(hw["bandwidth_gb_s"]);
  k.pcie_gb_s = number(hw["pcie_bandwidth_gb_s"]);
  k.pcie_efficiency = number(hw["pcie_efficiency"]);
  k.interconnect_gb_s = number(hw["interconnect_bandwidth_gb_s"]);
  k.interconnect_latency_us = number(hw["interconnect_latency_us"]);
  k.tp = number(config["tp"]);
  k.max_num_seqs = number(v["max_num_seqs"]);
  k.max_num_batched_tokens = number(v["max_num_batched_tokens"]);
  k.chunked_prefill = v["chunked_prefill_enabled"].get<bool>();
  k.cpu_offload = v["cpu_offloading"].get<bool>();
  k.block_size = number(v["block_size_tokens"]);
  k.gpu_blocks = number(v["total_kv_blocks_gpu"]);
  k.cpu_blocks = number(v["total_kv_blocks_cpu"]);
  return k;
}

AlphaInput AlphaInputOf(const Json& state) {
  const auto number = [&state](const char* name) { return state[name].get<double>(); };
  AlphaInput in;
  in.running_depth = number("running_depth");
  in.waiting_depth = number("waiting_depth");
  in.kv_usage_ratio = number("kv_usage_ratio");
  in.prompt_tokens = number("prompt_tokens");
  in.prefix_hit_ratio = number("prefix_hit_ratio");
  in.kv_free_bytes = number("kv_free_bytes");
  in.preemption_ema = number("preemption_ema");
  return in;
}

void AddChunk(BetaInput& in, double tokens, double before, bool last) {
  in.prefill_tokens += tokens;
  in.prefill_requests += 1;
  in.prefill_sampled += last ? 1 : 0;
  in.prefill_attention_work += (before + tokens) * tokens;
  in.prefill_pairs += tokens * before + tokens * (tokens + 1) / 2;
  in.prefill_keys += before + tokens;
}

BetaInput BetaInputOf(const Json& state) {
  const auto number = [&state](const char* name) { return state[name].get<double>(); };
  BetaInput in;
  for (const Json& chunk : state["prefill_chunks"]) {
    AddChunk(in, chunk[0].get<double>(), chunk[1].get<double>(), chunk[2].get<bool>());
  }
  in.decode_tokens = in.decode_requests = number("decode_tokens");
  in.decode_context_tokens = number("decode_context_tokens");
  in.decode_kv_blocks = number("sum_decode_kv_blocks");
  in.preemption_ema = number("preemption_ema");
  in.transfer_blocks = number("transfer_blocks");
  in.cpu_resident_read_blocks = number("cpu_resident_read_blocks");
  return in;
}

// 1e-10 of the expected value; exactly 0 where that is 0.
void ExpectClose(double found, const Json& expected, const std::string& what) {
  const double value = expected.get<double>();
  EXPECT_LE(std::fabs(found - value), 1e-10 * std::fabs(value)) << what << ": expected " << value;
}

void ExpectConstants(const PhysicsConstants& c, const Json& expected, const std::string& where) {
  const std::pair<const char*, double> values[] = {
      {"kv_dim", c.kv_dim},
      {"flops_attn_linear", c.flops_attn_linear},
      {"flops_mlp", c.flops_mlp},
      {"flops_lm_head", c.flops_lm_head},
      {"flops_linear_per_token", c.flops_linear_per_token},
      {"weight_bytes_attn", c.weight_bytes_attn},
      {"weight_bytes_mlp", c.weight_bytes_mlp},
      {"weight_bytes_total", c.weight_bytes_total},
      {"kv_bytes_per_token", c.kv_bytes_per_token},
      {"comm_bytes_per_token", c.comm_bytes_per_token},
      {"hw_peak_flops", c.hw_peak_flops},
      {"hw_peak_bandwidth", c.hw_peak_bandwidth},
      {"hw_pcie_bandwidth_eff", c.hw_pcie_bandwidth_eff},
      {"hw_interconnect_bw", c.hw_interconnect_bw},
      {"roofline_step_time", c.roofline_step_time},
  };
  EXPECT_EQ(expected.size(), std::size(values));
  for (const auto& [name, value] : values) ExpectClose(value, expected[name], where + name);
}

void ExpectSums(const BetaInput& in, const Json& expected, const std::string& where) {
  const std::pair<const char*, double> values[] = {
      {"prefill_tokens", in.prefill_tokens},
      {"scheduled_tokens", in.prefill_tokens + in.decode_tokens},
      {"num_prefill_reqs", in.prefill_requests},
      {"num_prefills_that_end", in.prefill_sampled},
      {"sum_prefill_attn_work", in.prefill_attention_work},
      {"sum_prefill_pairs", in.prefill_pairs},
      {"sum_prefill_keys", in.prefill_keys},
  };
  EXPECT_EQ(expected.size(), std::size(values));
  for (const auto& [name, value] : values) ExpectClose(value, expected[name], where + name);
}

template <std::size_t n>
void ExpectFeatures(const std::array<double, n>& found, const Json& expected,
                    const std::string& where) {
  ASSERT_EQ(expected.size(), n) << where;
  for (std::size_t i = 0; i < n; ++i) {
    ExpectClose(found[i], expected[i], where + std::to_string(i + 1));
  }
}

TEST(PhysicsFeatures, GoldenFile_ConstantsAndFeaturesOfEveryCase) {
  ASSERT_TRUE(Golden().is_object());
  EXPECT_GE(Golden()["cases"].size(), 50u);
  for (const Json& c : Golden()["cases"]) {
    for (const char* variant : {"seed", "corrected"}) {
      const std::string where = c["id"].get<std::string>() + ", " + variant + ", ";
      const Json& expected = c[variant];
      const PhysicsConstants constants =
          MakePhysicsConstants(ConfigOf(c["config"], std::string(variant) == "corrected"));
      ExpectSums(BetaInputOf(c["beta_input"]), c["beta_sums"], where);
      ExpectConstants(constants, expected["physics_config"], where);
      ExpectFeatures(AlphaFeatures(constants, AlphaInputOf(c["alpha_input"])),
                     expected["alpha_features"], where + "alpha ");
      ExpectFeatures(BetaFeatures(constants, BetaInputOf(c["beta_input"])),
                     expected["beta_features"], where + "beta ");
    }
  }
}

// What the specification's example gives once its products are multiplied out right; what it prints
// instead is in docs/physics-model.md.
TEST(PhysicsFeatures, WorkedExample_WithItsArithmeticPutRight) {
  const Json& c = Golden()["cases"][0];
  const PhysicsConstants k = MakePhysicsConstants(ConfigOf(c["config"], false));
  EXPECT_EQ(k.flops_attn_linear, 83'886'080);
  EXPECT_EQ(k.flops_mlp, 352'321'536);
  EXPECT_EQ(k.flops_lm_head, 1'050'673'152);
  EXPECT_EQ(k.flops_linear_per_token, 15'009'316'864);
  EXPECT_EQ(k.weight_bytes_attn, 83'886'080);
  EXPECT_EQ(k.weight_bytes_mlp, 352'321'536);
  EXPECT_EQ(k.weight_bytes_total, 13'958'643'712);
  EXPECT_EQ(k.kv_bytes_per_token, 262'144);
  EXPECT_NEAR(k.roofline_step_time, 0.1243239, 5e-8);
  const auto alpha = AlphaFeatures(k, AlphaInputOf(c["alpha_input"]));
  const double expected_alpha[] = {0.09375, 0.72,   7.7702e-3, 1, 0.2038512, 0.01679,
                                   0,       54.583, 0.03731,   0, 0.74625};
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    EXPECT_NEAR(alpha[i], expected_alpha[i], 1e-4 * expected_alpha[i]) << "alpha " << i + 1;
  }
  const auto beta = BetaFeatures(k, BetaInputOf(c["beta_input"]));
  const double expected_beta[] = {7.7702e-3, 6.94838e-5, 0,           0,    0, 0.0625, 1, 0,
                                  0,         0.25,       0.001953125, 0.05, 0, 0,      0, 1};
  for (std::size_t i = 0; i < beta.size(); ++i) {
    EXPECT_NEAR(beta[i], expected_beta[i], 1e-4 * expected_beta[i]) << "beta " << i + 1;
  }
  EXPECT_EQ(MakePhysicsConstants(ConfigOf(c["config"], true)).kv_bytes_per_token, 131'072);
}

BetaInput Prefill(std::initializer_list<std::pair<double, double>> chunks) {
  BetaInput in;
  for (const auto& [tokens, before] : chunks) AddChunk(in, tokens, before, false);
  return in;
}

TEST(PhysicsFeatures, ChunksOfAPrompt_HaveItsAttentionWork) {
  const Json& config = Golden()["cases"][0]["config"];
  const auto attention = [&config](bool corrected, const BetaInput& in) {
    return BetaFeatures(MakePhysicsConstants(ConfigOf(config, corrected)), in)[1];
  };
  double of_chunks[2] = {0, 0};
  for (int i = 0; i < 8; ++i) {
    for (const bool corrected : {false, true}) {
      of_chunks[corrected ? 1 : 0] += attention(corrected, Prefill({{512, 512.0 * i}}));
    }
  }
  EXPECT_NEAR(of_chunks[1] / attention(true, Prefill({{4096, 0}})), 1, 1e-12);
  // As specified it makes attention cheaper to cut a prompt up.
  EXPECT_NEAR(of_chunks[0] / attention(true, Prefill({{4096, 0}})), 0.562, 5e-4);
}

double Sum(const PhysicsConstants& k, const BetaInput& in) {
  const auto f = BetaFeatures(k, in);
  return f[0] + f[1] + f[2] + f[3] + f[4] + f[8] + f[12] + f[13];
}

TEST(PhysicsFeatures, Corrected_MoreGpusAreFaster_AsSpecifiedSlower) {
  Json config = Golden()["cases"][0]["config"];
  const BetaInput in = Prefill({{512, 0}});
  const auto compute = [&](bool corrected, int tp) {
    config["tp"] = tp;
    return BetaFeatures(MakePhysicsConstants(ConfigOf(config, corrected)), in)[0];
  };
  EXPECT_NEAR(compute(true, 4) * 4, compute(true, 1), 1e-12);
  EXPECT_NEAR(compute(false, 4), 4 * compute(false, 1), 1e-12);
}

TEST(PhysicsFeatures, Corrected_MoreWorkNeverTakesLess) {
  for (const Json& c : Golden()["cases"]) {
    const PhysicsConstants k = MakePhysicsConstants(ConfigOf(c["config"], true));
    const BetaInput in = BetaInputOf(c["beta_input"]);
    const double time = Sum(k, in);
    BetaInput more = in;
    more.decode_tokens += 1;
    more.decode_context_tokens += 100;
    EXPECT_GE(Sum(k, more), time) << c["id"];
    more = in;
    AddChunk(more, 7, 100, true);
    EXPECT_GE(Sum(k, more), time) << c["id"];
  }
}

TEST(PhysicsFeatures, OneExpert_IsDense) {
  Json config = Golden()["cases"][0]["config"];
  const PhysicsConstants dense = MakePhysicsConstants(ConfigOf(config, true));
  config["model"]["num_local_experts"] = config["model"]["num_experts_per_tok"] = 1;
  const PhysicsConstants one = MakePhysicsConstants(ConfigOf(config, true));
  BetaInput in = Prefill({{512, 0}});
  in.decode_tokens = 10;
  // But for the router, 4,096 weights a layer.
  EXPECT_NEAR(Sum(one, in) / Sum(dense, in), 1, 2e-5);
}

}  // namespace
}  // namespace servecast::testing
