// The analytic step time obeys physics, on random models, GPUs and batches: never faster than its
// exact work at the peaks, monotone in work, never faster on a slower GPU.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "core/documents.h"
#include "cost/launch.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "serving/policy.h"

namespace servecast::latency_analytic_test {
namespace {

constexpr int kCases = 400;

// Dice that never run out; a case is a function of its number.
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

// Hardware from toy to future, so that every part of a step is bound by either peak somewhere.
Scenario RandomScenario(Dice& dice, bool experts) {
  Scenario s;
  ModelSpec& m = s.model;
  m.num_hidden_layers = dice.Integer(1, 100);
  m.num_key_value_heads = std::int64_t{1} << dice.Integer(0, 4);
  m.num_attention_heads = m.num_key_value_heads << dice.Integer(0, 5);
  m.head_dim = 16 * dice.Integer(2, 16);
  m.hidden_size = 64 * dice.Integer(2, 256);
  m.intermediate_size = 64 * dice.Integer(2, 512);
  m.vocab_size = dice.Integer(1000, 300000);
  m.max_position_embeddings = 1 << 20;
  if (experts) {
    m.num_local_experts = dice.Integer(1, 64);
    m.num_experts_per_tok = dice.Integer(1, m.num_local_experts);
  }
  HardwareSpec& h = s.hardware;
  h.memory_gib = 1e9;  // whatever the model, it fits
  h.peak_bf16_tflops = dice.Log(1, 10000);
  h.memory_bandwidth_gb_s = dice.Log(50, 20000);
  h.compute_efficiency = dice.Log(0.1, 1);
  h.bandwidth_efficiency = dice.Log(0.1, 1);
  if (dice.Next() < 0.5) h.kv_bandwidth_efficiency = dice.Log(0.1, 1);
  h.interconnect_gb_s = dice.Log(1, 1000);
  h.attention_efficiency = dice.Log(0.1, 1);
  h.mixed_attention_rows = dice.Log(1, 128);
  h.layer_latency_us = dice.Log(0.1, 100);
  s.engine.sampler_ns_per_logit = dice.Log(0.01, 1);
  s.engine.num_gpu_blocks_override = 1000;
  return s;
}

// Shapes that ExactWork has no words for: weights of fewer bits, latent attention, windows, shared
// experts and dense layers.
void SetVariants(Dice& dice, Scenario& s) {
  ModelSpec& m = s.model;
  m.quantization = static_cast<Quantization>(dice.Integer(0, 4));
  m.top_p_by_default = dice.Next() < 0.5;
  if (dice.Next() < 0.5) s.engine.kv_cache_dtype = KvCacheDType::kFp8;
  if (dice.Next() < 0.5) s.hardware.peak_fp8_tflops = 2 * s.hardware.peak_bf16_tflops;
  if (dice.Next() < 0.5) s.hardware.peak_fp4_tflops = 4 * s.hardware.peak_bf16_tflops;
  if (dice.Next() < 0.3) {
    m.kv_lora_rank = 64 * dice.Integer(1, 16);
    m.q_lora_rank = 64 * dice.Integer(0, 32);
    m.qk_nope_head_dim = m.v_head_dim = m.head_dim;
    m.qk_rope_head_dim = 32 * dice.Integer(1, 4);
  } else if (dice.Next() < 0.4) {
    m.sliding_window = dice.Integer(1, 8192);
    m.num_sliding_layers = dice.Integer(1, m.num_hidden_layers);
  }
  if (m.num_local_experts == 0) return;
  s.engine.enable_expert_parallel = dice.Next() < 0.5;
  if (dice.Next() < 0.5) s.engine.fp8_experts_read_share = dice.Log(0.1, 1);
  if (dice.Next() < 0.5) s.engine.unpacked_experts_tflops = dice.Log(100, 3000);
  s.engine.expert_exchange_latencies = dice.Log(1, 20);
  m.shared_expert_intermediate_size = 64 * dice.Integer(0, 64);
  m.num_dense_layers = dice.Integer(0, m.num_hidden_layers);
  m.dense_intermediate_size = 64 * dice.Integer(1, 512);
}

// A third of the cases each: as they are, graphs, and graphs with overlapped host time.
void SetOptions(Scenario& s, int i) {
  if (i % 3 == 0) return;
  s.engine.cuda_graphs = CudaGraphs::kCaptured;
  s.engine.cuda_graph_max_bs = 250;
  s.engine.overlap_scheduling = i % 3 == 2;
  s.engine.step_overhead_us = 500;
}

struct Batch {
  std::int64_t decodes = 0, context = 0;
  std::vector<PrefillChunk> chunks;
  BatchShape Shape() const { return {decodes, context, chunks}; }
};

Batch RandomBatch(Dice& dice) {
  Batch batch;
  const std::int64_t chunks = dice.Integer(0, 3);
  batch.decodes = dice.Integer(chunks == 0 ? 1 : 0, 300);
  if (batch.decodes > 0) {
    batch.context = batch.decodes * static_cast<std::int64_t>(dice.Log(1, 100000));
  }
  for (std::int64_t i = 0; i < chunks; ++i) {
    const auto tokens = static_cast<std::int64_t>(dice.Log(1, 10000));
    const std::int64_t context =
        dice.Next() < 0.5 ? 0 : static_cast<std::int64_t>(dice.Log(1, 100000));
    batch.chunks.push_back({tokens, context, context + tokens + 100, dice.Next() < 0.5});
  }
  return batch;
}

// The model and what it is made of: ComputeModelCost's result must live as long.
TimeNs StepTime(const Scenario& s, const Batch& batch) {
  const Result<ModelCost> cost = ComputeModelCost(s);
  const std::unique_ptr<LatencyModel> model = FindLatencyModel("analytic").make(s, cost.value());
  return model->Price(batch.Shape()).duration;
}

// Work of a batch by the architecture alone, without the engine's cost model: FLOPs and bytes that
// one GPU of the group must do and move.
struct Work {
  double flops = 0, bytes = 0;
};

Work ExactWork(const ModelSpec& m, const Batch& batch) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  double tokens = d(batch.decodes), sampled = d(batch.decodes);
  double pairs = d(batch.context + batch.decodes), kv_read = pairs;
  for (const PrefillChunk& c : batch.chunks) {
    tokens += d(c.tokens);
    sampled += c.samples ? 1 : 0;
    pairs += d(c.tokens) * d(c.context) + d(c.tokens) * (d(c.tokens) + 1) / 2;
    kv_read += d(c.context + c.tokens);
  }
  const double heads = d(m.num_attention_heads * m.head_dim),
               kv = d(m.num_key_value_heads * m.head_dim);
  const double attention = d(m.hidden_size) * (2 * heads + 2 * kv);
  const double mlp = 3 * d(m.hidden_size * m.intermediate_size);
  const double active = m.num_local_experts > 0 ? d(m.num_experts_per_tok) : 1;
  // Experts read: at least those of one token.
  const double read = active;
  const double head = d(m.vocab_size * m.hidden_size);
  const double layers = d(m.num_hidden_layers);
  Work w;
  w.flops = 2 * layers * (attention + active * mlp) * tokens + 2 * head * sampled +
            4 * layers * heads * pairs;
  w.bytes = 2 * (layers * (attention + read * mlp) + (sampled > 0 ? head : 0)) +
            2 * 2 * layers * kv * kv_read;
  return w;
}

TEST(Analytic, AnyStep_IsNotFasterThanItsWorkAtThePeaks) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(i);
    Scenario s = RandomScenario(dice, i % 2 == 1);
    SetOptions(s, i);
    const Batch batch = RandomBatch(dice);
    const Work work = ExactWork(s.model, batch);
    // Rounded to a nanosecond; a step never exceeds kMaxStepNs, which is for absurd input.
    const double compute_ns = work.flops / (s.hardware.peak_bf16_tflops * 1e3);
    const double memory_ns = work.bytes / s.hardware.memory_bandwidth_gb_s;
    const auto limit = static_cast<double>(kMaxStepNs);
    const auto time = static_cast<double>(StepTime(s, batch));
    EXPECT_GE(time + 1, std::min(compute_ns, limit)) << i;
    EXPECT_GE(time + 1, std::min(memory_ns, limit)) << i;
  }
}

// Variants do less work than the plain model or read fewer bytes, but never none of what the cost
// model says is there.
TEST(Analytic, AnyVariant_IsNotFasterThanItsWorkAtThePeaks) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(7000 + i);
    Scenario s = RandomScenario(dice, i % 2 == 1);
    SetVariants(dice, s);
    const Batch batch = RandomBatch(dice);
    const Result<ModelCost> cost = ComputeModelCost(s);
    ASSERT_TRUE(cost.ok()) << i;
    const ModelCost& c = cost.value();
    auto tokens = static_cast<double>(batch.decodes);
    for (const PrefillChunk& chunk : batch.chunks) tokens += static_cast<double>(chunk.tokens);
    const HardwareSpec& h = s.hardware;
    const double peak = std::max({h.peak_bf16_tflops, h.peak_fp8_tflops, h.peak_fp4_tflops});
    const double flops = tokens * (c.dense_flops_per_token + c.expert_flops_per_token);
    const auto time = static_cast<double>(StepTime(s, batch));
    const auto limit = static_cast<double>(kMaxStepNs);
    EXPECT_GE(time + 1, std::min(flops / (peak * 1e3), limit)) << i;
    EXPECT_GE(time + 1, std::min(c.dense_bytes / h.memory_bandwidth_gb_s, limit)) << i;
  }
}

// Each stage does its share, and all of them together what the whole model does.
TEST(Analytic, AnyPipelineStage_IsNotFasterThanItsWorkAtThePeaks) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(8000 + i);
    Scenario s = RandomScenario(dice, i % 2 == 1);
    SetOptions(s, i);
    s.engine.overlap_scheduling = false;
    const std::int64_t count =
        dice.Integer(1, std::min<std::int64_t>(4, s.model.num_hidden_layers));
    s.cluster.pools[0].pipeline_parallel = count;
    const Batch batch = RandomBatch(dice);
    Work sum;
    for (std::int64_t stage = 0; stage < count; ++stage) {
      const Scenario part = StageScenario(s, stage);
      const Work work = ExactWork(part.model, batch);
      const double compute_ns = work.flops / (s.hardware.peak_bf16_tflops * 1e3);
      const double memory_ns = work.bytes / s.hardware.memory_bandwidth_gb_s;
      const auto limit = static_cast<double>(kMaxStepNs);
      const auto time = static_cast<double>(StepTime(part, batch));
      EXPECT_GE(time + 1, std::min(compute_ns, limit)) << i << " " << stage;
      EXPECT_GE(time + 1, std::min(memory_ns, limit)) << i << " " << stage;
      sum.flops += work.flops;
      sum.bytes += work.bytes;
    }
    const Work whole = ExactWork(s.model, batch);
    EXPECT_NEAR(sum.flops / whole.flops, 1, 1e-12) << i;
    EXPECT_NEAR(sum.bytes / whole.bytes, 1, 1e-12) << i;
  }
}

TEST(Analytic, MoreWork_NeverTakesLess) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(1000 + i);
    Scenario s = RandomScenario(dice, i % 2 == 1);
    if (i % 4 >= 2) SetVariants(dice, s);
    SetOptions(s, i);
    const Batch batch = RandomBatch(dice);
    const TimeNs time = StepTime(s, batch);
    Batch more = batch;
    more.decodes += 1;
    EXPECT_GE(StepTime(s, more), time) << i << ": a decode";
    more = batch;
    more.context += batch.decodes > 0 ? 1000 : 0;
    EXPECT_GE(StepTime(s, more), time) << i << ": context";
    more = batch;
    more.chunks.push_back({1, 0, 10, false});
    // But for padding: a prefill makes the step an eager one, which computes none.
    const bool padded = s.engine.cuda_graphs == CudaGraphs::kCaptured && batch.chunks.empty();
    if (!padded) {
      EXPECT_GE(StepTime(s, more), time) << i << ": a chunk";
    }
    if (batch.chunks.empty()) continue;
    more = batch;
    more.chunks[0].tokens += 1;
    EXPECT_GE(StepTime(s, more), time) << i << ": a prefill token";
    more = batch;
    more.chunks[0].context += 100;
    EXPECT_GE(StepTime(s, more), time) << i << ": context of a chunk";
    more = batch;
    more.chunks[0].samples = true;
    EXPECT_GE(StepTime(s, more), time) << i << ": a sample";
  }
}

// Launching kernels: so long in eager mode, so long as a graph, which computes its padding, too.
TEST(Analytic, CudaGraphs_ReplaceTheLaunchOfDecodeSteps) {
  for (int i = 0; i < 50; ++i) {
    Dice dice(5000 + i);
    Scenario s = RandomScenario(dice, i % 2 == 1);
    s.hardware.memory_bandwidth_gb_s = s.hardware.peak_bf16_tflops = 1e5;  // no step at its limit
    const Batch five{5, 500, {}}, six{6, 499, {}}, more{33, 500, {}};
    Batch mixed = five;
    mixed.chunks = {{10, 0, 10, true}};
    Scenario eager = s;
    eager.engine.cuda_graphs = CudaGraphs::kEager;
    eager.engine.launch_eager_us = 100;
    Scenario captured = eager;
    captured.engine.cuda_graphs = CudaGraphs::kCaptured;
    captured.engine.launch_replay_us = 10;
    captured.engine.cuda_graph_max_bs = 32;
    for (const Batch& batch : {five, six, more, mixed}) {
      EXPECT_LE(std::abs(StepTime(eager, batch) - StepTime(s, batch) - 100'000), 1) << i;
    }
    EXPECT_LE(std::abs(StepTime(captured, six) - StepTime(s, six) - 10'000), 1) << i;
    EXPECT_EQ(StepTime(captured, five), StepTime(captured, six)) << i << ": 5 is padded to 6";
    EXPECT_EQ(StepTime(captured, more), StepTime(eager, more)) << i << ": beyond what is captured";
    EXPECT_EQ(StepTime(captured, mixed), StepTime(eager, mixed)) << i << ": a prefill";
  }
}

// The longer of host and device, instead of their sum.
TEST(Analytic, OverlapScheduling_HidesTheShorter) {
  for (int i = 0; i < 50; ++i) {
    Dice dice(6000 + i);
    Scenario s = RandomScenario(dice, false);
    s.hardware.memory_bandwidth_gb_s = s.hardware.peak_bf16_tflops = 1e5;
    const Batch batch = RandomBatch(dice);
    const TimeNs device = StepTime(s, batch);
    s.engine.overlap_scheduling = true;
    EXPECT_EQ(StepTime(s, batch), device) << i << ": no host time";
    for (const double host_us : {0.1, 10.0, 1e3, 1e5}) {
      s.engine.step_overhead_us = host_us;
      const auto host = static_cast<TimeNs>(host_us * 1e3);
      EXPECT_LE(std::abs(StepTime(s, batch) - std::max(device, host)), 1) << i;
    }
  }
}

TEST(Analytic, SlowerGpu_IsNeverFaster) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(2000 + i);
    Scenario s = RandomScenario(dice, i % 2 == 1);
    if (i % 4 >= 2) SetVariants(dice, s);
    s.cluster.pools[0].tensor_parallel = s.model.num_key_value_heads > 1 ? 2 : 1;
    s.hardware.interconnect_latency_us = 5;
    const Batch batch = RandomBatch(dice);
    const TimeNs time = StepTime(s, batch);
    double HardwareSpec::*const figures[] = {
        &HardwareSpec::peak_bf16_tflops,       &HardwareSpec::memory_bandwidth_gb_s,
        &HardwareSpec::compute_efficiency,     &HardwareSpec::bandwidth_efficiency,
        &HardwareSpec::attention_efficiency,   &HardwareSpec::peak_fp8_tflops,
        &HardwareSpec::peak_fp4_tflops,        &HardwareSpec::interconnect_gb_s,
        &HardwareSpec::kv_bandwidth_efficiency};
    for (double HardwareSpec::*const figure : figures) {
      Scenario slower = s;
      slower.hardware.*figure *= 0.7;
      EXPECT_GE(StepTime(slower, batch), time) << i;
    }
    Scenario slower = s;
    slower.hardware.interconnect_latency_us = 6;
    EXPECT_GE(StepTime(slower, batch), time) << i;
  }
}

TEST(Analytic, TwoGpusWithAFreeLink_AreNeverSlower) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(3000 + i);
    Scenario one = RandomScenario(dice, i % 2 == 1);
    if (one.model.num_attention_heads % 2 != 0) continue;
    one.hardware.interconnect_gb_s = 1e15;
    one.hardware.interconnect_latency_us = 0;
    Scenario two = one;
    two.cluster.pools[0].tensor_parallel = 2;
    const Batch batch = RandomBatch(dice);
    const TimeNs t1 = StepTime(one, batch), t2 = StepTime(two, batch);
    EXPECT_LE(t2, t1) << i;
    // Nor can they do better than half, but for the nanosecond of rounding.
    EXPECT_GE(2 * t2 + 1, t1) << i;
  }
}

// As many bytes and operations in all, but a step waits for the busiest GPU; where every expert is
// read anyway and rows are many, that is hardly more.
TEST(Analytic, WholeExperts_AreNeverFasterThanSlicesOfAll) {
  std::int64_t slower = 0;
  for (int i = 0; i < kCases; ++i) {
    Dice dice(9000 + i);
    Scenario slices = RandomScenario(dice, true);
    slices.cluster.pools[0].tensor_parallel = slices.model.num_key_value_heads;
    Scenario whole = slices;
    whole.engine.enable_expert_parallel = true;
    const Batch batch = RandomBatch(dice);
    const TimeNs of_slices = StepTime(slices, batch), of_whole = StepTime(whole, batch);
    EXPECT_GE(of_whole, of_slices) << i;
    slower += of_whole > of_slices ? 1 : 0;
    if (slices.model.num_key_value_heads == 1) {
      EXPECT_EQ(of_whole, of_slices) << i;
    }
  }
  EXPECT_GT(slower, kCases / 4);
}

// All-reduces cost 0.9 of their latency and half of it more with every doubling, on a free link.
TEST(Analytic, LargerGroups_WaitLongerAtAnAllReduce) {
  Dice dice(1);
  Scenario s = RandomScenario(dice, false);
  s.model.num_attention_heads = s.model.num_key_value_heads = 8;
  s.hardware.interconnect_gb_s = 1e15;
  const Batch batch = RandomBatch(dice);
  for (const auto& [tp, latencies] : {std::pair{2, 1.4}, {4, 1.9}, {8, 2.4}}) {
    s.cluster.pools[0].tensor_parallel = tp;
    s.hardware.interconnect_latency_us = 0;
    const TimeNs free = StepTime(s, batch);
    s.hardware.interconnect_latency_us = 10;
    const double all_reduces = 2.0 * static_cast<double>(s.model.num_hidden_layers);
    EXPECT_NEAR(static_cast<double>(StepTime(s, batch) - free), all_reduces * 1e4 * latencies, 2);
  }
}

// A KV cache is read at its own share of the bandwidth, if one is known.
TEST(Analytic, KvReads_HaveAShareOfTheirOwn) {
  Dice dice(3);
  Scenario s = RandomScenario(dice, false);
  s.hardware.peak_bf16_tflops = 1e6;
  s.hardware.bandwidth_efficiency = 0.5;
  const Batch near{10, 10'000, {}}, far{10, 10'000'000, {}};
  const auto reads = [&](double share) {
    s.hardware.kv_bandwidth_efficiency = share;
    return static_cast<double>(StepTime(s, far) - StepTime(s, near));
  };
  EXPECT_NEAR(reads(0), reads(0.5), 2);
  EXPECT_NEAR(reads(0.5) / reads(1), 2, 1e-6);
}

// Where kernels split each sequence alike a step of latents reads as many of its longest context as
// the graph has places, up to one multiprocessor a sequence; a step with a prompt has no graph.
TEST(Analytic, LatentsOfASplitGpu_AreReadAsIfAllContextsWereTheLongest) {
  Scenario s = testing::Parsed(
      R"({"schema": 1, "model": {"preset": "deepseek-v3"}, "hardware": {"preset": "b200-sxm"},
          "cluster": {"pools": [{"replicas": 1, "tensor_parallel": 8}]},
          "workload": {"requests": 1}})");
  s.hardware.memory_gib = 1e5;
  const PrefillChunk prompt[] = {{1, 0, 10, false}};
  // ns by which contexts make the step longer than empty ones do.
  const auto reads = [&](std::int64_t n, std::int64_t mean, std::int64_t longest,
                         bool beside = false) {
    const Result<ModelCost> cost = ComputeModelCost(s);
    const std::unique_ptr<LatencyModel> model = ChosenLatencyModel(s).make(s, cost.value());
    const auto time = [&](std::int64_t context, std::int64_t most) {
      BatchShape shape = {n, n * context, {}};
      if (beside) shape.prefill = prompt;
      shape.decode_longest = most;
      return static_cast<double>(model->Price(shape).duration);
    };
    return time(mean, longest) - time(0, 0);
  };
  const double one = 40'000.0 * 61 * 576 * 2 / (8000 * 0.75);
  EXPECT_NEAR(reads(1, 40'000, 40'000), one, 2);
  EXPECT_NEAR(reads(8, 10'000, 40'000), 8 * one, 9);
  EXPECT_NEAR(reads(5, 10'000, 40'000), 8 * one, 9) << "padded";
  EXPECT_NEAR(reads(5, 10'000, 40'000, true), 5 * one, 9) << "without a graph";
  EXPECT_NEAR(reads(8, 40'000, 0), 8 * one, 9) << "not known: as if all were alike";
  EXPECT_NEAR(reads(256, 10'000, 40'000) / one, 148, 0.01) << "one has a multiprocessor";
  EXPECT_NEAR(reads(256, 39'000, 40'000) / one, 256 * 0.975, 0.01) << "their sum";
  s.cluster.pools[0].tensor_parallel = 4;
  EXPECT_NEAR(reads(8, 10'000, 40'000), 8 * one / 0.7, 9) << "half of a tile";
  s.hardware.latent_split_efficiency = 0;
  EXPECT_NEAR(reads(8, 10'000, 40'000), 2 * one * 0.75 / 0.9, 9) << "the sum";
}

// 5 to 8 tokens fill a graph of 8, and all 8 choose experts; beyond 512 there are no graphs.
TEST(Analytic, TokensThatPadAGraph_ChooseExperts) {
  Dice dice(4);
  Scenario s = RandomScenario(dice, true);
  s.model.num_local_experts = 4096;
  s.model.num_experts_per_tok = 1;
  s.hardware.peak_bf16_tflops = 1e6;
  s.model.num_key_value_heads = 1;
  const auto more = [&](std::int64_t a, std::int64_t b) {
    return StepTime(s, {b, b, {}}) - StepTime(s, {a, a, {}});
  };
  for (const std::int64_t n : {8, 64, 504}) EXPECT_GT(more(n, n + 1), 5 * more(n + 1, n + 8));
  EXPECT_GT(more(4, 5), 5 * more(5, 8));
  EXPECT_GT(more(2, 3), 2 * more(3, 4));
  EXPECT_GT(more(513, 520), 5 * more(513, 514));
  EXPECT_LT(more(512, 520), 16 * more(512, 513));
}

TEST(Analytic, ChunkedPrompt_NeverHasLessAttention) {
  // What a prompt's attention adds to a step: its time less that of as many tokens without context,
  // which is everything else. Hardware so slow that nanoseconds do not matter.
  for (int i = 0; i < kCases; ++i) {
    Dice dice(4000 + i);
    Scenario s = RandomScenario(dice, false);
    s.engine.step_overhead_us = 0;
    const std::int64_t prompt = dice.Integer(2, 20000), cut = dice.Integer(1, prompt - 1);
    Batch whole, first, second;
    whole.chunks = {{prompt, 0, prompt, false}};
    first.chunks = {{cut, 0, prompt, false}};
    second.chunks = {{prompt - cut, cut, prompt, false}};
    Batch both;  // in one step, so that only attention differs
    both.chunks = {first.chunks[0], second.chunks[0]};
    s.engine.sequence_overhead_us = 0;
    EXPECT_GE(StepTime(s, both) + 1, StepTime(s, whole)) << i;
    EXPECT_GE(StepTime(s, first) + StepTime(s, second) + 1, StepTime(s, whole)) << i;
  }
}

TEST(Analytic, OneExpert_CostsWhatADenseModelCosts) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(5000 + i);
    const Scenario dense = RandomScenario(dice, false);
    Scenario moe = dense;
    moe.model.num_local_experts = 1;
    moe.model.num_experts_per_tok = 1;
    const Batch batch = RandomBatch(dice);
    const auto a = static_cast<double>(StepTime(dense, batch));
    const auto b = static_cast<double>(StepTime(moe, batch));
    // The router, one column beside the MLP's 3 * intermediate_size, is all that it adds.
    EXPECT_GE(b + 1, a) << i;
    EXPECT_LE(b, a * (1 + 1 / (3.0 * static_cast<double>(dense.model.intermediate_size))) + 1) << i;
  }
}

TEST(Analytic, MoreActiveExperts_NeverTakeLess) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(6000 + i);
    Scenario s = RandomScenario(dice, true);
    s.model.num_local_experts = 16;
    const Batch batch = RandomBatch(dice);
    TimeNs before = 0;
    for (std::int64_t k = 1; k <= 16; ++k) {
      s.model.num_experts_per_tok = k;
      const TimeNs time = StepTime(s, batch);
      EXPECT_GE(time, before) << i << " " << k;
      before = time;
    }
  }
}

// Replicas with alike batches that share experts: each GPU reads its share of what all of them
// touch, and all of their tokens cross its links, once to the experts and once back.
TEST(Analytic, ReplicasThatShareExperts_ReadWhatAllTouchAndExchangeTokens) {
  for (int i = 0; i < kCases; ++i) {
    Dice dice(9000 + i);
    Scenario s = RandomScenario(dice, true);
    s.model.num_local_experts = dice.Integer(8, 256);
    s.model.num_experts_per_tok = dice.Integer(1, 8);
    s.hardware.peak_bf16_tflops = 1e9;  // arithmetic is free
    s.hardware.interconnect_gb_s = 1e9;
    s.hardware.interconnect_latency_us = 0;
    const std::int64_t tokens = 8 * dice.Integer(1, 60);
    s.hardware.memory_bandwidth_gb_s = 20000;  // so that no step is cut off
    const Batch batch{tokens, tokens, {}};
    const double replicas = static_cast<double>(dice.Integer(2, 16));
    const auto alone = static_cast<double>(StepTime(s, batch));
    s.cluster.pools[0].attention_data_parallel = static_cast<std::int64_t>(replicas);
    const auto together = static_cast<double>(StepTime(s, batch));
    const auto d = [](std::int64_t x) { return static_cast<double>(x); };
    const ModelSpec& m = s.model;
    const HardwareSpec& h = s.hardware;
    const double all = 2 * d(m.num_hidden_layers) * 3 * d(m.hidden_size * m.intermediate_size) *
                       d(m.num_local_experts);
    const double missed = 1 - d(m.num_experts_per_tok) / d(m.num_local_experts);
    const double per_ns = h.memory_bandwidth_gb_s * h.bandwidth_efficiency;
    const auto touched_by = [missed](double of) {
      return missed > 0 ? 1 - missed * std::pow(1 - (of - 1) * std::log(missed) / 4, -4) : 1;
    };
    const double touched = touched_by(d(tokens));
    const double touched_by_all = touched_by(d(tokens) * replicas);
    const double saved = all * (touched - touched_by_all / replicas) / per_ns;
    EXPECT_NEAR(alone - together, saved, 1e-5 * (alone + together) + 2) << i;

    s.hardware.interconnect_gb_s = 50 * dice.Log(6, 100);  // no PCIe
    s.hardware.interconnect_latency_us = 10;
    const double linked = static_cast<double>(StepTime(s, batch)) - together;
    const double message = d(tokens) * replicas * d(m.hidden_size) * 2;
    const double ring = 2 * (replicas - 1) / replicas;
    const double wire = std::sqrt(ring) * message / (0.5 * h.interconnect_gb_s);
    const double wait = 2 * 10e3 * (0.9 + 0.5 * std::log2(replicas));
    EXPECT_NEAR(linked, d(m.num_hidden_layers) * (wire + wait), 1e-5 * together + 1e-6 * linked + 2)
        << i;
  }
}

TEST(Analytic, HostTime_AddsUp) {
  Dice dice(1);
  Scenario s = RandomScenario(dice, false);
  Batch batch = RandomBatch(dice);
  batch.chunks.resize(2, {10, 0, 20, false});
  const TimeNs bare = StepTime(s, batch);
  s.engine.step_overhead_us = 1300;
  s.engine.sequence_overhead_us = 20;
  EXPECT_NEAR(static_cast<double>(StepTime(s, batch) - bare),
              1'300'000 + 20'000 * static_cast<double>(batch.decodes + 2), 1);
}

TEST(Analytic, RanksOfAGroup_TakeTimeForEachSequence) {
  Dice dice(1);
  Scenario s = RandomScenario(dice, false);
  s.model.num_attention_heads = s.model.num_key_value_heads = 8;
  s.cluster.pools[0].tensor_parallel = 8;
  const Batch batch = RandomBatch(dice);
  const TimeNs bare = StepTime(s, batch);
  s.engine.sequence_overhead_us = 20;
  const auto sequences =
      static_cast<double>(batch.decodes) + static_cast<double>(batch.chunks.size());
  EXPECT_NEAR(static_cast<double>(StepTime(s, batch) - bare), (20'000 + 7 * kRankNs) * sequences,
              1);
}

// Fused kernels start and end less often; those of latent attention do not.
TEST(Analytic, KernelShare_IsOfTheLayersLatency) {
  Dice dice(1);
  Scenario s = RandomScenario(dice, false);
  s.cluster.pools[0].tensor_parallel = 1;
  s.model.quantization = Quantization::kNone;
  s.hardware.layer_latency_us = 100;
  const Batch batch = RandomBatch(dice);
  const TimeNs whole = StepTime(s, batch);
  s.engine.kernel_share = 0.5;
  const double saved = 50e3 * static_cast<double>(s.model.num_hidden_layers);
  EXPECT_NEAR(static_cast<double>(whole - StepTime(s, batch)), saved, 1);
  s.model.kv_lora_rank = 64;
  s.model.qk_nope_head_dim = s.model.v_head_dim = s.model.head_dim;
  s.model.qk_rope_head_dim = 32;
  const TimeNs latent = StepTime(s, batch);
  s.engine.kernel_share = 1;
  EXPECT_EQ(StepTime(s, batch), latent);
}

// Where reads bind fewer bits are faster, where arithmetic does they are not: unpacking takes time.
TEST(Analytic, WeightsThatAreUnpacked_CostArithmetic) {
  Dice dice(4);
  Scenario s = RandomScenario(dice, false);
  s.model.hidden_size = 4096;
  s.model.intermediate_size = 16384;
  s.hardware.peak_fp8_tflops = s.hardware.peak_fp4_tflops = 0;
  s.hardware.peak_bf16_tflops = 300;
  s.hardware.memory_bandwidth_gb_s = 2000;
  const Batch few{1, 100, {}}, many{4000, 4000, {}};
  const TimeNs of_few = StepTime(s, few), of_many = StepTime(s, many);
  for (const Quantization bits : {Quantization::kFp8, Quantization::kInt4, Quantization::kNvfp4}) {
    s.model.quantization = bits;
    EXPECT_LT(StepTime(s, few), of_few);
    EXPECT_GT(StepTime(s, many), of_many);
  }
  s.hardware.peak_fp8_tflops = 600;
  s.model.quantization = Quantization::kFp8;
  EXPECT_LT(StepTime(s, many), of_many) << "units of 8 bits multiply them as they are";
}

// Integers with rounded activations multiply at the peak of 8-bit integers where the card's is
// known, as floats of 8 bits do at theirs; without rounding they are unpacked. NF4 is written out
// in 16 bits first.
TEST(Analytic, WeightsInIntegers_MultiplyAsTheirKernelsDo) {
  Dice dice(4);
  Scenario s = RandomScenario(dice, false);
  s.model.hidden_size = 4096;
  s.model.intermediate_size = 16384;
  s.hardware.peak_fp8_tflops = s.hardware.peak_int8_tops = s.hardware.peak_fp4_tflops = 0;
  s.hardware.peak_bf16_tflops = 300;
  s.hardware.memory_bandwidth_gb_s = 2000;
  const Batch few{1, 100, {}}, many{4000, 4000, {}};
  const auto time = [&](Quantization bits, const Batch& batch) {
    s.model.quantization = bits;
    return StepTime(s, batch);
  };
  const TimeNs plain_few = time(Quantization::kNone, few),
               plain_many = time(Quantization::kNone, many);
  for (const Quantization bits : {Quantization::kInt8, Quantization::kInt8W8A16}) {
    EXPECT_LT(time(bits, few), plain_few);
    EXPECT_GT(time(bits, many), plain_many);
    EXPECT_EQ(time(bits, many), time(Quantization::kFp8, many));
  }
  EXPECT_LT(time(Quantization::kInt4, few), time(Quantization::kInt8, few));
  EXPECT_GT(time(Quantization::kNf4, few), plain_few);
  EXPECT_GT(time(Quantization::kNf4, many), plain_many);
  s.hardware.peak_int8_tops = 600;
  const TimeNs units = time(Quantization::kInt8, many);
  EXPECT_LT(units, plain_many);
  EXPECT_GT(time(Quantization::kInt8W8A16, many), plain_many);
  s.hardware.peak_fp8_tflops = 600;
  EXPECT_EQ(time(Quantization::kFp8, many), units);
  s.hardware.peak_fp4_tflops = 1200;
  EXPECT_LT(time(Quantization::kMxfp4All, many), units);
}

// Kernels without a tuned tile read more slowly once a step has more tokens than a GPU has experts.
TEST(Analytic, WholeExpertsInSixteenBits_AreReadMoreSlowlyBeyondTheirTile) {
  Dice dice(5);
  Scenario s = RandomScenario(dice, true);
  s.model.quantization = Quantization::kNone;
  s.model.num_attention_heads = s.model.num_key_value_heads = 8;
  s.model.num_local_experts = 128;
  s.model.num_experts_per_tok = 8;
  s.model.hidden_size = 4096;
  s.model.intermediate_size = 1536;
  s.hardware.peak_bf16_tflops = 1000;
  s.hardware.memory_bandwidth_gb_s = 3000;
  s.engine.enable_expert_parallel = true;
  s.cluster.pools[0].tensor_parallel = 8;
  const auto rise = [&](std::int64_t from, std::int64_t to) {
    const auto at = [&](std::int64_t n) {
      return static_cast<double>(StepTime(s, {n, n * 100, {}}));
    };
    return at(to) / at(from);
  };
  const double whole = rise(16, 17);  // 16 experts a GPU
  EXPECT_LT(rise(15, 16), 1.05);
  s.engine.enable_expert_parallel = false;
  EXPECT_GT(whole, 1.15 * rise(16, 17)) << "slices; tokens that pad a graph choose experts, too";
}

TEST(Analytic, Delivery_IsTheEngines) {
  Dice dice(1);
  Scenario s = RandomScenario(dice, false);
  const Result<ModelCost> cost = ComputeModelCost(s);
  const auto delay = [&] {
    return FindLatencyModel("analytic").make(s, cost.value())->DeliveryDelay();
  };
  EXPECT_EQ(delay(), 0);
  s.engine.delivery_overhead_us = 45.5;
  EXPECT_EQ(delay(), 45'500);
}

TEST(Analytic, ExpertsOfFourBits_AreUnpackedWhereTheGpuHasNoProductsOfThem) {
  Dice dice(2);
  Scenario s = RandomScenario(dice, true);
  ModelSpec& m = s.model;
  m.num_hidden_layers = 24;
  m.hidden_size = m.intermediate_size = 2880;
  m.num_local_experts = 32;
  m.num_experts_per_tok = 4;
  m.quantization = Quantization::kMxfp4;
  s.cluster.pools[0].tensor_parallel = 1;
  s.hardware.layer_latency_us = 1;
  s.hardware.peak_bf16_tflops = 1e6;
  s.hardware.memory_bandwidth_gb_s = 1e6;
  const Batch all_touched{1000, 1000, {}};
  // 4,600 weights a nanosecond, however fast the memory is.
  const auto least = static_cast<TimeNs>(24.0 * 3 * 2880 * 2880 * 32 / 4600);
  const TimeNs unpacked = StepTime(s, all_touched);
  EXPECT_GE(unpacked, least);
  EXPECT_LE(unpacked, least * 3 / 2);
  s.hardware.peak_fp4_tflops = 4e6;
  EXPECT_LT(StepTime(s, all_touched) + least / 2, unpacked);
}

// One token reads the experts that it chose, further ones fewer new ones than if all were chosen
// alike: popularity has a gamma distribution, here with draws of its own.
TEST(Analytic, ExpertsThatTokensChoose_AreSomeMoreThanOthers) {
  Dice dice(2);
  Scenario s = RandomScenario(dice, true);
  ModelSpec& m = s.model;
  m.num_hidden_layers = 24;
  m.hidden_size = m.intermediate_size = 2048;
  m.num_local_experts = 64;
  m.num_experts_per_tok = 2;
  s.cluster.pools[0].tensor_parallel = 1;
  s.hardware.peak_bf16_tflops = 1e8;
  s.hardware.memory_bandwidth_gb_s = 1000;
  s.hardware.bandwidth_efficiency = 1;
  const double expert = 24.0 * 3 * 2048 * 2048 * 2 / 1000;  // ns
  const auto read = [&](std::int64_t n) {
    const auto more = static_cast<double>(StepTime(s, {n, n, {}}) - StepTime(s, {1, n, {}}));
    return 2 + more / expert;
  };
  for (const auto& [tokens, alike] : {std::pair{8, 14.4}, {32, 40.8}, {128, 62.9}}) {
    // The mean over popularities of 1 - (1 - k/E) exp(-p x), with x of the other tokens.
    const double x = -std::log(1 - 2.0 / 64) * (tokens - 1);
    double left = 0;
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) {  // a gamma of shape 4 is a sum of four exponentials
      double popularity = 0;
      for (int k = 0; k < 4; ++k) popularity -= std::log(dice.Next()) / 4;
      left += std::exp(-popularity * x) / kDraws;
    }
    EXPECT_NEAR(read(tokens), 64 * (1 - 62.0 / 64 * left), 0.4) << tokens;
    EXPECT_LT(read(tokens), alike);
    EXPECT_GT(read(tokens), 0.85 * alike);
  }
}

// Kernels of 8-bit experts that read all of them in each step, at a share of what others reach.
TEST(Analytic, ExpertsOfEightBits_AreAllReadWhereTheEngineDoes) {
  Dice dice(2);
  Scenario s = RandomScenario(dice, true);
  ModelSpec& m = s.model;
  m.num_hidden_layers = 24;
  m.hidden_size = m.intermediate_size = 2048;
  m.num_local_experts = 128;
  m.num_experts_per_tok = 2;
  m.quantization = Quantization::kFp8;
  s.hardware.peak_bf16_tflops = 1e6;
  s.hardware.peak_fp8_tflops = 2e6;
  s.hardware.memory_bandwidth_gb_s = 1000;
  s.hardware.bandwidth_efficiency = 0.8;
  const auto seconds = [&](std::int64_t n) {
    return static_cast<double>(StepTime(s, {n, n, {}})) * 1e-9;
  };
  const double chosen = seconds(1), all = 24.0 * 3 * 2048 * 2048 * 128 / (1000e9 * 0.8);
  const double others = chosen - all * 2 / 128;
  s.engine.fp8_experts_read_share = 1;
  EXPECT_NEAR(seconds(1), others + all, 1e-3 * all);
  EXPECT_NEAR(seconds(64), seconds(1), 1e-2 * all);
  s.engine.fp8_experts_read_share = 0.5;
  EXPECT_NEAR(seconds(1), others + 2 * all, 1e-3 * all);
  // A GPU without products of 8 bits reads them, too; of other weights it says nothing.
  s.hardware.peak_fp8_tflops = 0;
  EXPECT_GE(seconds(1), 2 * all);
  for (const Quantization q : {Quantization::kNone, Quantization::kNvfp4}) {
    m.quantization = q;
    const double with = seconds(8);
    s.engine.fp8_experts_read_share = 0;
    EXPECT_EQ(seconds(8), with);
    s.engine.fp8_experts_read_share = 0.5;
  }
}

// On Hopper kernels of an engine unpack 4-bit experts at a rate of their own, and what binds is as
// much longer as their operations take at it; elsewhere it changes nothing.
TEST(Analytic, ExpertsThatAnEngineUnpacks_TakeAsLongMore_OnHopperAlone) {
  const auto prompt_s = [](const char* gpu, const char* tflops) {
    const Scenario s = testing::Parsed(testing::Changed(
        {R"(model={"preset":"gpt-oss-20b"})", std::string(R"(hardware={"preset":")") + gpu + "\"}",
         std::string("engine.unpacked_experts_tflops=") + tflops}));
    return static_cast<double>(StepTime(s, {0, 0, {{4000, 0, 4000, true}}})) * 1e-9;
  };
  const double flops = 4000.0 * 24 * 4 * 3 * 2 * 2880 * 2880;
  for (const char* hopper : {"h100-sxm", "h200-sxm"}) {
    EXPECT_EQ(prompt_s(hopper, "0"), prompt_s(hopper, "1600"));
    EXPECT_NEAR(prompt_s(hopper, "400") - prompt_s(hopper, "800"),
                flops * (1 / 400e12 - 1 / 800e12), 1e-4);
  }
  for (const char* other : {"a100-80gb", "l40s", "b200-sxm", "mi300x"}) {
    EXPECT_EQ(prompt_s(other, "0"), prompt_s(other, "200")) << other;
  }
}

// Where replicas share experts, a layer waits as many latencies of all their GPUs as the engine
// needs.
TEST(Analytic, ExpertsThatReplicasShare_WaitForTheirExchange) {
  Dice dice(2);
  Scenario s = RandomScenario(dice, true);
  s.model.num_local_experts = 64;
  s.model.num_experts_per_tok = 2;
  s.cluster.pools[0].attention_data_parallel = 4;
  s.hardware.interconnect = Interconnect::kNvlink;
  s.hardware.interconnect_latency_us = 10;
  const Batch batch{8, 800, {}};
  const TimeNs two = StepTime(s, batch);
  s.engine.expert_exchange_latencies = 10;
  const double layers = static_cast<double>(s.model.num_hidden_layers);
  EXPECT_NEAR(static_cast<double>(StepTime(s, batch) - two), layers * 8 * 1e4 * 1.9, 2);
}

TEST(LatencyModels, PricingTwice_GivesTheSame) {
  for (int i = 0; i < 50; ++i) {
    Dice dice(7000 + i);
    Scenario s = RandomScenario(dice, i % 2 == 1);
    s.latency.beta = {dice.Log(1, 1e4), dice.Log(0.1, 100), dice.Log(0.1, 100)};
    const Result<ModelCost> cost = ComputeModelCost(s);
    for (const LatencyEntry& entry : LatencyModels()) {
      const std::unique_ptr<LatencyModel> model = entry.make(s, cost.value());
      const Batch a = RandomBatch(dice), b = RandomBatch(dice);
      const StepPrice first = model->Price(a.Shape());
      (void)model->Price(b.Shape());
      EXPECT_EQ(model->Price(a.Shape()).duration, first.duration) << entry.name;
      EXPECT_GE(first.duration, 1);
      EXPECT_LE(first.duration, kMaxStepNs);
    }
  }
}

TEST(Blackbox, Coefficients_ArePricedInMicroseconds) {
  Scenario s;
  s.latency.alpha = {100, 0.5, 7};
  s.latency.beta = {1000, 10, 5};
  const auto model = FindLatencyModel("blackbox").make(s, ModelCost{});
  const PrefillChunk chunks[] = {{20, 0, 20, true}, {3, 5, 8, true}};
  EXPECT_EQ(model->Price({2, 99, chunks}).duration, 1'240'000);
  EXPECT_EQ(model->Price({0, 0, {}}).duration, 1'000'000);
  EXPECT_EQ(model->EnqueueDelay(40), 120'000);
  EXPECT_EQ(model->OutputTokenDelay(), 7'000);
}

}  // namespace
}  // namespace servecast::latency_analytic_test
