// Step times from measured operators: what the files of presets/operators say, composed by a second
// reading; and physics, on random models, GPUs, parallelism and batches.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "core/documents.h"
#include "cost/all_reduce.h"
#include "cost/model_cost.h"
#include "cost/octaves.h"
#include "cost/operator_step.h"
#include "gtest/gtest.h"
#include "serving/policy.h"
#include "testing/csv_table.h"
#include "testing/data_files.h"
#include "testing/operator_reference.h"

namespace servecast::latency_operators_test {
namespace {

using testing::Parsed;

class Dice {
 public:
  explicit Dice(int number) : number_(number) {}
  std::int64_t Integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(Next() * static_cast<double>(high - low + 1));
  }
  double Log(double low, double high) { return low * std::exp(Next() * std::log(high / low)); }
  double Next() { return Uniform(number_, Stream::kArrival, drawn_++); }

 private:
  std::int64_t number_, drawn_ = 0;
};

const std::vector<std::string> kGpus = {"a100-80gb", "b200-sxm", "h100-sxm",    "h200-sxm",
                                        "l40s",      "rtx-4090", "rtx-pro-6000"};

Scenario ScenarioOf(const std::string& model, const std::string& gpu, std::int64_t tp) {
  Scenario s = Parsed(
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
          "engine": {"preset": "vllm-0.23"}, "workload": {"arrivals": {"process": "poisson", "rate_per_s": 1},
          "prompt_tokens": {"distribution": "fixed", "value": 1},
          "output_tokens": {"distribution": "fixed", "value": 1}}})");
  const auto other = [](const char* section, const std::string& preset) {
    return Parsed(std::string(R"({"schema": 1, "model": {"preset": ")") +
                  (section == std::string("model") ? preset : "llama-3.1-8b") +
                  R"("}, "hardware": {"preset": ")" +
                  (section == std::string("hardware") ? preset : "h100-sxm") +
                  R"("}, "workload": {"arrivals": {"process": "poisson", "rate_per_s": 1},
          "prompt_tokens": {"distribution": "fixed", "value": 1},
          "output_tokens": {"distribution": "fixed", "value": 1}}})");
  };
  s.model = other("model", model).model;
  s.hardware = other("hardware", gpu).hardware;
  s.hardware.memory_gib = 1e6;  // whatever the model, it fits
  s.cluster.pools[0].tensor_parallel = tp;
  s.engine.num_gpu_blocks_override = 1000;
  return s;
}

struct Batch {
  std::int64_t decodes = 0, context = 0;
  std::vector<PrefillChunk> chunks;
  BatchShape Shape() const { return {decodes, context, chunks}; }
};

Batch RandomBatch(Dice& dice, std::int64_t most_decodes, double most_tokens,
                  double most_context = 100000) {
  Batch batch;
  const std::int64_t chunks = dice.Integer(0, 3);
  batch.decodes = dice.Integer(chunks == 0 ? 1 : 0, most_decodes);
  if (batch.decodes > 0) {
    batch.context = batch.decodes * static_cast<std::int64_t>(dice.Log(1, most_context));
  }
  for (std::int64_t i = 0; i < chunks; ++i) {
    const auto tokens = static_cast<std::int64_t>(dice.Log(1, most_tokens));
    const std::int64_t before =
        dice.Next() < 0.5 ? 0 : static_cast<std::int64_t>(dice.Log(1, 100000));
    batch.chunks.push_back({tokens, before, before + tokens + 100, dice.Next() < 0.5});
  }
  return batch;
}

std::unique_ptr<LatencyModel> ModelOf(const Scenario& s) {
  return FindLatencyModel("operators").make(s, testing::Good(ComputeModelCost(s)));
}

// Of any architecture that a document can say.
Scenario RandomScenario(Dice& dice) {
  static const char* const kModels[] = {"llama-3.1-8b",         "mixtral-8x7b", "deepseek-v3",
                                        "gpt-oss-20b",          "qwen3-0.6b",   "gpt2-xl",
                                        "llama-4-scout-17b-16e"};
  const auto gpu = static_cast<std::size_t>(dice.Integer(0, 6));
  Scenario s = ScenarioOf(kModels[dice.Integer(0, 6)], kGpus[gpu], 1);
  ModelSpec& m = s.model;
  if (dice.Next() < 0.7) {
    m.hidden_size = 64 * dice.Integer(4, 256);
    m.intermediate_size = 64 * dice.Integer(4, 512);
    m.num_hidden_layers = dice.Integer(1, 100);
    m.num_sliding_layers = std::min(m.num_sliding_layers, m.num_hidden_layers);
    m.num_dense_layers = std::min(m.num_dense_layers, m.num_hidden_layers - 1);
    m.vocab_size = dice.Integer(1000, 300000);
    m.quantization = static_cast<Quantization>(dice.Integer(0, 4));
    if (m.kv_lora_rank == 0) {
      m.num_key_value_heads = std::int64_t{1} << dice.Integer(0, 4);
      m.num_attention_heads = m.num_key_value_heads << dice.Integer(0, 5);
      m.head_dim = 16 * dice.Integer(2, 16);
    }
  }
  if (dice.Next() < 0.3) s.engine.kv_cache_dtype = KvCacheDType::kFp8;
  for (const std::int64_t tp : {8, 4, 2}) {
    s.cluster.pools[0].tensor_parallel = tp;
    if (dice.Next() < 0.2 && ComputeModelCost(s).ok()) break;
    s.cluster.pools[0].tensor_parallel = 1;
  }
  if (dice.Next() < 0.3) {  // a GPU that nobody has measured
    s.hardware.memory_bandwidth_gb_s *= dice.Log(0.3, 3);
    s.hardware.peak_bf16_tflops *= dice.Log(0.3, 3);
  }
  return s;
}

TEST(Octaves, FindAndKnot_AreInverse) {
  for (const int bits : {2, 3, 5}) {
    const Octaves octaves(bits);
    std::int64_t before = -1;
    for (std::size_t i = 0; i < 40U << bits; ++i) {
      const std::int64_t knot = octaves.Knot(i);
      EXPECT_GT(knot, before);
      EXPECT_EQ(octaves.Find(knot).index, i);
      EXPECT_EQ(octaves.Find(knot).fraction, 0);
      if (knot - 1 > before) {
        const Octaves::Place at = octaves.Find(knot - 1);
        EXPECT_EQ(at.index, i - 1);
        EXPECT_GT(at.fraction, 0);
        EXPECT_LT(at.fraction, 1);
      }
      before = knot;
    }
  }
}

TEST(Operators, AnyStep_TakesWhatTheFilesSay) {
  struct Case {
    const char *model, *gpu;
    std::int64_t tp, shared = 1;
  };
  const Case cases[] = {
      {"llama-3.1-8b", "h100-sxm", 1},      {"llama-2-7b", "a100-80gb", 1},
      {"llama-3.3-70b", "b200-sxm", 4},     {"qwen3-32b", "l40s", 2},
      {"mixtral-8x7b", "h200-sxm", 2},      {"gpt-oss-20b", "h100-sxm", 1},
      {"qwen3-30b-a3b", "rtx-pro-6000", 1}, {"llama-3.1-8b", "rtx-4090", 1},
      {"mixtral-8x7b", "h200-sxm", 2, 4},   {"mixtral-8x7b", "h200-sxm", 1, 4},
      {"gpt2-xl", "h100-sxm", 1},           {"llama-3.3-70b", "h100-sxm", 16},  // two nodes
      {"mixtral-8x7b", "h200-sxm", 4, 8}};
  int number = 0;
  for (const Case& c : cases) {
    Scenario s = ScenarioOf(c.model, c.gpu, c.tp);
    s.engine.max_loras = s.model.num_local_experts == 0 && s.model.mlp_matrices == 3 ? 4 : 0;
    s.engine.lora_overhead_us = 30;
    s.cluster.pools[0].replicas = s.cluster.pools[0].attention_data_parallel = c.shared;
    const testing::OperatorReference reference(c.gpu, s);
    const std::unique_ptr<LatencyModel> model = ModelOf(s);
    for (int i = 0; i < 100; ++i) {
      Dice dice(++number);
      // Within what is a table: beyond, times grow in proportion.
      const Batch batch =
          RandomBatch(dice, 256, 5000, static_cast<double>(s.model.max_position_embeddings - 1));
      BatchShape shape = batch.Shape();
      if (s.engine.max_loras > 0) shape.lora = {dice.Integer(0, 4), dice.Integer(1, 5000)};
      const double slow = reference.StepNs(shape);
      const auto fast = static_cast<double>(model->Price(shape).duration);
      EXPECT_NEAR(fast, slow, 1e-9 * slow + 1)
          << c.model << " on " << c.gpu << ", batch " << number;
    }
  }
}

TEST(Operators, AnyStep_IsNotFasterThanItsWorkAtThePeaks) {
  for (int i = 0; i < 300; ++i) {
    Dice dice(10000 + i);
    const Scenario s = RandomScenario(dice);
    const ModelCost c = testing::Good(ComputeModelCost(s));
    const Batch batch = RandomBatch(dice, 600, 30000);
    auto tokens = static_cast<double>(batch.decodes), sampled = tokens;
    const auto contexts = static_cast<double>(batch.context + batch.decodes);
    double pairs = 0, keys = 0;
    for (const PrefillChunk& chunk : batch.chunks) {
      const auto n = static_cast<double>(chunk.tokens), before = static_cast<double>(chunk.context);
      tokens += n;
      sampled += chunk.samples ? 1 : 0;
      pairs += n * before + n * (n + 1) / 2;
      keys += before + n;
    }
    const double full = 1 - c.window_share;  // sliding layers may do less
    const double per_ns = s.hardware.peak_bf16_tflops * 1e3;
    const double compute =
        tokens * (c.dense_flops_per_token / (PeakTflops(s.hardware, c.dense_type) * 1e3) +
                  c.expert_flops_per_token / (PeakTflops(s.hardware, c.expert_type) * 1e3)) +
        (sampled * c.lm_head_flops_per_token + full * pairs * c.attention_flops_per_pair +
         full * contexts * c.decode_flops_per_pair) /
            per_ns;
    const double experts = c.expert_bytes > 0
                               ? c.expert_bytes * static_cast<double>(c.experts_per_token) /
                                     static_cast<double>(c.experts)
                               : 0;
    const double memory = (c.dense_bytes + experts + (sampled > 0 ? c.lm_head_bytes : 0) +
                           full * (contexts + keys) * c.kv_bytes_per_token) /
                          s.hardware.memory_bandwidth_gb_s;
    const auto time = static_cast<double>(ModelOf(s)->Price(batch.Shape()).duration);
    EXPECT_GE(time * (1 + 1e-9) + 1, std::min(compute, static_cast<double>(kMaxStepNs))) << i;
    EXPECT_GE(time * (1 + 1e-9) + 1, std::min(memory, static_cast<double>(kMaxStepNs))) << i;
  }
}

TEST(Operators, MoreWork_NeverTakesLess) {
  for (int i = 0; i < 300; ++i) {
    Dice dice(20000 + i);
    const Scenario s = RandomScenario(dice);
    const std::unique_ptr<LatencyModel> model = ModelOf(s);
    const auto time_of = [&](const Batch& batch) { return model->Price(batch.Shape()).duration; };
    for (int j = 0; j < 10; ++j) {
      const Batch batch = RandomBatch(dice, 600, 30000);
      const TimeNs time = time_of(batch);
      Batch more = batch;
      more.decodes += 1;
      EXPECT_GE(time_of(more), time) << i << ": a decode";
      more = batch;
      more.context += batch.decodes > 0 ? dice.Integer(1, 1000) : 0;
      EXPECT_GE(time_of(more), time) << i << ": context";
      more = batch;
      more.chunks.push_back({1, 0, 10, false});
      EXPECT_GE(time_of(more), time) << i << ": a chunk";
      if (batch.chunks.empty()) continue;
      more = batch;
      more.chunks[0].tokens += 1;
      EXPECT_GE(time_of(more), time) << i << ": a prefill token";
      more = batch;
      more.chunks[0].context += 100;
      EXPECT_GE(time_of(more), time) << i << ": context of a chunk";
      more = batch;
      more.chunks[0].samples = true;
      EXPECT_GE(time_of(more), time) << i << ": a sample";
    }
  }
}

// Asked alone, what the tables cover is the same to the last bit.
TEST(Operators, Coverage_IsThatOfTheStepsThatItIsSaidOf) {
  for (int i = 0; i < 100; ++i) {
    Dice dice(40000 + i);
    const Scenario s = RandomScenario(dice);
    const ModelCost cost = testing::Good(ComputeModelCost(s));
    const OperatorStep step(s, cost), coverage(s, cost, OperatorStep::For::kCoverage);
    EXPECT_EQ(coverage.ExtrapolatedShare(), step.ExtrapolatedShare()) << i;
    EXPECT_EQ(coverage.Extrapolated(), step.Extrapolated()) << i;
    EXPECT_EQ(coverage.Exact(), step.Exact()) << i;
  }
}

TEST(Operators, TableReadToAPoint_IsTheWholeOneUpToThere) {
  for (int i = 0; i < 100; ++i) {
    Dice dice(50000 + i);
    const HardwareSpec h = RandomScenario(dice).hardware;
    const OperatorTable& table = *FindTable(*FindOperators(h).set, "gemm", "bf16");
    const auto bound = [](const OperatorPoint& p) { return 1e-3 * p[0] * p[1] * p[2]; };
    const OperatorPoint most = {dice.Log(1, 40000), dice.Log(1, 200000), dice.Log(1, 40000)};
    const OperatorGrid whole(table, bound), part(table, bound, 0, most);
    for (int j = 0; j < 20; ++j) {
      OperatorPoint at = most;
      for (double& x : at) x = dice.Integer(0, 3) == 0 ? x : std::fmin(x, dice.Log(1, 40000));
      EXPECT_EQ(part.Ns(at), whole.Ns(at)) << i;
      EXPECT_EQ(part.Covers(at), whole.Covers(at)) << i;
    }
  }
}

TEST(Operators, ChunkedPrompt_NeverHasLessAttention) {
  for (int i = 0; i < 100; ++i) {
    Dice dice(30000 + i);
    const Scenario s = RandomScenario(dice);
    const std::unique_ptr<LatencyModel> model = ModelOf(s);
    const std::int64_t prompt = dice.Integer(2, 20000), cut = dice.Integer(1, prompt - 1);
    const auto of = [&](std::vector<PrefillChunk> chunks) {
      const OperatorStep step(s, testing::Good(ComputeModelCost(s)));
      AttentionWork work;
      for (const PrefillChunk& c : chunks) step.Add(c.tokens, c.context, work);
      // What windows leave of it is bounded from above, not counted.
      work.windowed_pairs = work.pairs;
      work.windowed_keys = work.keys;
      work.windowed_slowest = work.slowest;
      return step.Attention(work);
    };
    const double whole = of({{prompt, 0, prompt, false}});
    EXPECT_GE(of({{cut, 0, prompt, false}}) + of({{prompt - cut, cut, prompt, false}}),
              whole * (1 - 1e-9))
        << i;
  }
}

// But for all-reduces, whose latencies are measured and stay when links are made free.
TEST(Operators, TwoGpus_AreNeverSlowerInCompute) {
  int cases = 0;
  for (int i = 0; i < 300; ++i) {
    Dice dice(40000 + i);
    Scenario one = RandomScenario(dice);
    one.cluster.pools[0].tensor_parallel = 1;
    if (one.model.num_attention_heads % 16 != 0 || one.model.num_key_value_heads % 16 != 0)
      continue;
    one.hardware.interconnect_gb_s = 1e15;
    one.hardware.interconnect_latency_us = 0;
    Scenario more = one;
    more.cluster.pools[0].tensor_parallel = 16;
    if (!ComputeModelCost(one).ok() || !ComputeModelCost(more).ok()) continue;
    ++cases;
    const Batch batch = RandomBatch(dice, 300, 10000);
    auto tokens = static_cast<double>(batch.decodes);
    for (const PrefillChunk& chunk : batch.chunks) tokens += static_cast<double>(chunk.tokens);
    const GroupAllReduce all_reduce(*FindOperators(more.hardware).set, more.hardware, 16, 2);
    const double links = 2 * static_cast<double>(more.model.num_hidden_layers) *
                         all_reduce.Ns(tokens * static_cast<double>(more.model.hidden_size));
    EXPECT_LE(static_cast<double>(ModelOf(more)->Price(batch.Shape()).duration),
              static_cast<double>(ModelOf(one)->Price(batch.Shape()).duration) + 1.01 * links + 1)
        << i;
  }
  EXPECT_GT(cases, 20);
}

TEST(Operators, TimesOfAnyModelAndGpu_AreContinuousWhereTablesEnd) {
  for (int i = 0; i < 60; ++i) {
    Dice dice(50000 + i);
    const Scenario s = RandomScenario(dice);
    const std::unique_ptr<LatencyModel> model = ModelOf(s);
    for (const std::int64_t edge : {8192, 16384, 32768, 65536, 131072}) {
      const auto at = [&](std::int64_t tokens) {
        const PrefillChunk chunk{tokens, 0, tokens, true};
        return static_cast<double>(model->Price({0, 0, {&chunk, 1}}).duration);
      };
      EXPECT_NEAR(at(edge + 1) / at(edge), 1, 0.002) << i;
      const auto decode = [&](std::int64_t contexts) {
        return static_cast<double>(model->Price({4, 4 * contexts, {}}).duration);
      };
      EXPECT_NEAR(decode(edge + 1) / decode(edge), 1, 0.002) << i;
    }
  }
}

TEST(Operators, AllReduceOfAnUnmeasuredGroup_FollowsFromTheNearest) {
  for (const std::string& gpu : kGpus) {
    HardwareSpec h = ScenarioOf("llama-3.1-8b", gpu, 1).hardware;
    h.gpus_per_node = 0;  // all in one
    const OperatorSet& set = *FindOperators(h).set;
    const bool has_table = !gpu.starts_with("rtx");
    for (double values = 100; values < 1e10; values *= 1.7) {
      const auto ns = [&](std::int64_t group) {
        return GroupAllReduce(set, h, group, 2).Ns(values);
      };
      if (!has_table) {
        const double by_figures = AllReduceWaitNs(h, 4, 1) + AllReduceNs(h, 4, 2 * values);
        EXPECT_NEAR(ns(4) / by_figures, 1, 1e-12);
        EXPECT_FALSE(GroupAllReduce(set, h, 4, 2).Measured(values));
      }
      double before = ns(8);
      for (const std::int64_t group : {9, 10, 12, 16, 32, 64, 1024}) {
        EXPECT_GT(ns(group), before) << gpu << " " << group << " " << values;
        before = ns(group);
      }
      EXPECT_LT(ns(9), 1.3 * ns(8)) << gpu << " " << values;
      // By hops or traffic, and no more.
      const double traffic = AllReduceNs(h, 16, 1) / AllReduceNs(h, 8, 1);
      if (has_table) {
        EXPECT_LE(ns(16), std::max(15.0 / 7, traffic) * ns(8) * (1 + 1e-9)) << gpu;
      }
      for (const auto& [low, group, high] : {std::array{2, 3, 4}, {4, 6, 8}}) {
        EXPECT_GE(ns(group), std::min(ns(low), ns(high))) << gpu << " " << values;
        EXPECT_LE(ns(group), std::max(ns(low), ns(high))) << gpu << " " << values;
      }
    }
    EXPECT_EQ(GroupAllReduce(set, h, 8, 2).Measured(1e6), has_table);
    EXPECT_FALSE(GroupAllReduce(set, h, 16, 2).Measured(1e6));
  }
}

// What was measured for a group of 8 L40S is no reason for 16 of them to be faster.
TEST(Operators, SixteenGpusOnPcie_AreNotFasterThanEight) {
  Scenario s = ScenarioOf("llama-2-7b", "l40s", 8);
  const Batch prompt{0, 0, {{4096, 0, 4096, true}}};
  const TimeNs eight = ModelOf(s)->Price(prompt.Shape()).duration;
  s.cluster.pools[0].tensor_parallel = 16;
  EXPECT_GT(ModelOf(s)->Price(prompt.Shape()).duration, eight);
}

TEST(Operators, Label_SaysFromWhatAndHowMuchIsExtrapolated) {
  const auto label = [](const Scenario& s) { return FindLatencyModel("operators").label(s); };
  const LatencyLabel inside = label(ScenarioOf("llama-3.1-8b", "h100-sxm", 1));
  EXPECT_EQ(inside.provenance, "interpolated");
  EXPECT_NE(inside.description.find("aiconfigurator@095f58a"), std::string::npos);
  // Four GPUs of a kind whose links were not measured, and weights of a type that was not.
  Scenario s = ScenarioOf("llama-3.3-70b", "rtx-4090", 4);
  s.model.quantization = Quantization::kInt4;
  const LatencyLabel outside = label(s);
  EXPECT_EQ(outside.provenance, "extrapolated");
  EXPECT_NE(outside.description.find("all_reduce"), std::string::npos);
  EXPECT_NE(outside.description.find("qkv_proj"), std::string::npos);
  s = ScenarioOf("llama-3.1-8b", "h100-sxm", 1);
  s.hardware.memory_bandwidth_gb_s *= 0.7;
  EXPECT_NE(label(s).description.find("scaled to the data sheet"), std::string::npos);
  EXPECT_EQ(label(s).provenance, "extrapolated");
}

// Query heads of a KV head are a model's, and one alone may take longer than two: FlashAttention 2
// then does not split the keys of long contexts.
TEST(Operators, LongContextsOfGroupedHeads_AreNotPricedAsThoseOfSingleOnes) {
  Scenario s = ScenarioOf("llama-3.1-8b", "a100-80gb", 1);
  const auto attention = [&](std::int64_t heads) {
    s.model.num_attention_heads = heads;
    const OperatorStep step(s, testing::Good(ComputeModelCost(s)));
    return step.Attention({1, 16384});
  };
  EXPECT_GT(attention(8), 4 * attention(16));  // measured: 385 and 63 us a layer
  EXPECT_LT(attention(32), 1.1 * attention(16));
}

// Numbers of the rows of a measured table that have `type` in their first column.
std::vector<std::vector<double>> MeasuredRows(const std::string& text, const std::string& type) {
  std::vector<std::vector<double>> rows;
  for (std::string line : testing::Split(text, '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    const std::vector<std::string> cells = testing::Split(line, ',');
    if (cells[0] != type) continue;
    rows.emplace_back();
    for (std::size_t i = 1; i < cells.size(); ++i) {
      rows.back().push_back(testing::ParseDouble(cells[i]).value());
    }
  }
  return rows;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

// The rows that the tables were reduced from, most of which are not in them.
TEST(Operators, Tables_AreNearTheMeasurements) {
  const std::string folder =
      testing::DataFolder("SERVECAST_GROUNDTRUTH", "groundtruth") + "/ops/aiconfigurator/";
  if (!testing::ReadFile(folder + "h100_sxm__gemm.csv.gz")) GTEST_SKIP() << "skipped: no data";
  const std::pair<const char*, const char*> gpus[] = {{"a100_sxm", "a100-80gb"},
                                                      {"h100_sxm", "h100-sxm"},
                                                      {"h200_sxm", "h200-sxm"},
                                                      {"b200_sxm", "b200-sxm"},
                                                      {"l40s", "l40s"}};
  for (const auto& [file, preset] : gpus) {
    const HardwareSpec h = ScenarioOf("llama-3.1-8b", preset, 1).hardware;
    const double flop_ns = 1 / (h.peak_bf16_tflops * 1e3), byte_ns = 1 / h.memory_bandwidth_gb_s;
    const NearestOperators found = FindOperators(h);
    ASSERT_TRUE(found.exact);
    EXPECT_EQ(found.set->name, h.name);
    const OperatorGrid gemm(*FindTable(*found.set, "gemm", "bf16"), [=](const OperatorPoint& p) {
      return std::max(2 * p[0] * p[1] * p[2] * flop_ns, 2 * p[1] * p[2] * byte_ns);
    });
    std::vector<double> errors;
    const auto gemms = testing::ReadFile(folder + file + "__gemm.csv.gz");
    for (const std::vector<double>& row : MeasuredRows(gemms.value(), "bfloat16")) {  // m, n, k, ms
      if (row[1] < 1024 || row[1] > 16384 || row[2] < 1024 || row[2] > 16384) continue;
      errors.push_back(std::fabs(gemm.Ns({row[0], row[1], row[2]}) / (row[3] * 1e6) - 1));
    }
    EXPECT_LT(Median(errors), 0.08) << preset;
    const OperatorGrid decode(
        *FindTable(*found.set, "decode", "bf16"), [=](const OperatorPoint& p) {
          return p[1] * p[2] * std::max(4 * 128 * byte_ns, p[0] * 4 * 128 * flop_ns);
        });
    errors.clear();
    // batch, input, step, heads, KV heads, head size, ms
    const auto attention = testing::ReadFile(folder + file + "__attention__gen.csv.gz");
    for (const std::vector<double>& row : MeasuredRows(attention.value(), "bfloat16")) {
      const OperatorPoint at = {row[3] / row[4], row[0] * row[4], row[2] + 1};
      if (at[0] <= 16 && at[2] >= 64) {
        errors.push_back(std::fabs(decode.Ns(at) / (row[6] * 1e6) - 1));
      }
    }
    EXPECT_LT(Median(errors), 0.1) << preset;
    // A model of each shape that was measured, so that the whole composition is compared.
    errors.clear();
    Scenario s = ScenarioOf("llama-3.1-8b", preset, 1);
    s.model.num_hidden_layers = 1;
    const auto prompts = testing::ReadFile(folder + file + "__attention__ctx.csv.gz");
    std::map<std::pair<double, double>, std::unique_ptr<OperatorStep>> steps;
    for (const std::vector<double>& row : MeasuredRows(prompts.value(), "bfloat16")) {
      if (row[1] < 128 || row[5] != 128 || static_cast<std::int64_t>(row[3]) % 8 != 0) continue;
      s.model.num_attention_heads = static_cast<std::int64_t>(row[3]);
      s.model.num_key_value_heads = static_cast<std::int64_t>(row[4]);
      auto& step = steps[{row[3], row[4]}];
      if (!step) step = std::make_unique<OperatorStep>(s, testing::Good(ComputeModelCost(s)));
      AttentionWork work;
      for (double i = 0; i < row[0]; ++i) step->Add(static_cast<std::int64_t>(row[1]), 0, work);
      errors.push_back(std::fabs(step->Attention(work) / (row[6] * 1e6) - 1));
    }
    EXPECT_LT(Median(errors), 0.07) << preset;
  }
}

// No name changes a result, so none may choose the tables.
TEST(Operators, NameOfTheGpu_DoesNotMatter) {
  Scenario s = ScenarioOf("llama-3.1-8b", "l40s", 1);
  const Batch batch{10, 1000, {{100, 0, 100, true}}};
  const TimeNs time = ModelOf(s)->Price(batch.Shape()).duration;
  s.hardware.name = "H100";
  EXPECT_EQ(ModelOf(s)->Price(batch.Shape()).duration, time);
}

}  // namespace
}  // namespace servecast::latency_operators_test
