// The latency models of BLIS against single steps worked out elsewhere: BLIS's own unit values and
// those of a verified implementation (whole microseconds, cut off).
#include <vector>

#include "core/documents.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "serving/policy.h"

namespace servecast::testing {
namespace {

enum Dims { k8B, kQwen, k70B, kMixtral };

Scenario H100(Dims dims, std::int64_t tp, const char* backend) {
  Scenario s;
  s.hardware.peak_bf16_tflops = 989.5;
  s.hardware.memory_bandwidth_gb_s = 3350;
  ModelSpec& m = s.model;
  const std::int64_t shapes[][5] = {{32, 4096, 32, 8, 14336},
                                    {28, 3584, 28, 4, 18944},
                                    {80, 8192, 64, 8, 28672},
                                    {32, 4096, 32, 8, 14336}};
  m.num_hidden_layers = shapes[dims][0];
  m.hidden_size = shapes[dims][1];
  m.num_attention_heads = shapes[dims][2];
  m.num_key_value_heads = shapes[dims][3];
  m.intermediate_size = shapes[dims][4];
  if (dims == kMixtral) {
    m.num_local_experts = 8;
    m.num_experts_per_tok = 2;
  }
  s.cluster.pools[0].tensor_parallel = tp;
  s.latency.backend = backend;
  s.engine.compat = Compat::kBlis;
  return s;
}

struct Batch {
  std::vector<PrefillChunk> prefill;
  std::int64_t decodes = 0, context_each = 0;
};

std::int64_t Microseconds(const Scenario& s, const Batch& batch) {
  const auto model = ChosenLatencyModel(s).make(s, ModelCost{});
  const TimeNs time =
      model->Price({batch.decodes, batch.decodes * batch.context_each, batch.prefill}).duration;
  EXPECT_EQ(time % 1000, 0);
  return time / 1000;
}

const Batch kBatches[] = {
    {{{512, 0, 512, true}}},
    {{{2048, 0, 2048, true}}},
    {{{2048, 4096, 8192, false}}},
    {{}, 1, 1024},
    {{}, 64, 1024},
    {{}, 256, 700},
    {{{1024, 0, 1024, true}}, 32, 600},
};

TEST(LatencyBlis, TrainedPhysics_SingleSteps) {
  const struct {
    Dims dims;
    std::int64_t tp, us[7];
  } cases[] = {
      {k8B, 1, {7965, 11737, 12751, 6912, 12110, 21632, 10765}},
      {k8B, 2, {4621, 6688, 7195, 4035, 6780, 11988, 6156}},
      {kQwen, 1, {7388, 10834, 11611, 6371, 8801, 13444, 9271}},
      {k70B, 4, {19804, 29836, 31104, 16668, 20076, 26515, 24154}},
      {kMixtral, 2, {21114, 24512, 25019, 20084, 22830, 28037, 23093}},
  };
  for (const auto& c : cases) {
    const Scenario s = H100(c.dims, c.tp, "trained_physics");
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(Microseconds(s, kBatches[i]), c.us[i])
          << c.dims << " tp " << c.tp << " batch " << i;
    }
  }
}

TEST(LatencyBlis, RooflineOfToday_SingleSteps) {
  const struct {
    Dims dims;
    std::int64_t tp, us[7];
  } cases[] = {
      {k8B, 1, {11884, 49409, 59383, 3085, 5616, 10086, 25215}},
      {k8B, 2, {5942, 24704, 29691, 1542, 2808, 5043, 12607}},
      {kQwen, 1, {10753, 44446, 52082, 2778, 3887, 8220, 22769}},
      {k70B, 4, {28745, 117321, 129788, 7437, 9022, 21813, 60600}},
      {kMixtral, 2, {10263, 41989, 46976, 2664, 10661, 12895, 21655}},
  };
  for (const auto& c : cases) {
    const Scenario s = H100(c.dims, c.tp, "roofline");
    for (int i = 0; i < 7; ++i) {
      EXPECT_EQ(Microseconds(s, kBatches[i]), c.us[i])
          << c.dims << " tp " << c.tp << " batch " << i;
    }
  }
}

TEST(LatencyBlis, RooflineOfTheSeed_SingleSteps) {
  const Batch batches[] = {kBatches[0], kBatches[1], kBatches[3], kBatches[4], kBatches[6]};
  const struct {
    Dims dims;
    std::int64_t tp, us[5];
  } cases[] = {
      {k8B, 1, {12367, 47410, 6983, 10499, 30656}},
      {k8B, 2, {8033, 25555, 5341, 7099, 17178}},
      {k70B, 4, {32689, 116559, 19525, 24113, 75209}},
  };
  for (const auto& c : cases) {
    Scenario s = H100(c.dims, c.tp, "roofline");
    s.engine.compat = Compat::kBlisFebruary2026;
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(Microseconds(s, batches[i]), c.us[i]) << c.dims << " tp " << c.tp << " batch " << i;
    }
    // Outside of BLIS's rules the same, not rounded to microseconds.
    s.engine.compat = Compat::kNone;
    const auto model = FindLatencyModel("roofline").make(s, ModelCost{});
    const TimeNs time = model->Price({0, 0, kBatches[0].prefill}).duration;
    EXPECT_NEAR(static_cast<double>(time), static_cast<double>(c.us[0]) * 1e3, 500) << c.dims;
  }
}

TEST(LatencyBlis, InterleavedExperts_CountHalfTheLayersAndBillEachOfThem) {
  Scenario s = H100(kMixtral, 2, "trained_physics");
  const std::int64_t all = Microseconds(s, kBatches[3]);
  s.latency.interleave_moe_layer_step = 1;
  s.latency.intermediate_size_mlp = 14336;
  // 16 layers of 7 experts less to read, 16 times 481.86 us more.
  const double weights = 16 * 7.0 / 2 * 3 * 4096 * 14336 * 2 / 3.35e6 * 1.36252915;
  const double more = 16 * 481.8613888;
  EXPECT_NEAR(static_cast<double>(Microseconds(s, kBatches[3])),
              static_cast<double>(all) - weights + more, 100);
}

TEST(LatencyBlis, WeightsOfOneByte_HaveTheirOwnPeak) {
  Scenario s = H100(k8B, 1, "roofline");
  s.latency.weight_bytes = 1;
  EXPECT_EQ(Microseconds(s, kBatches[1]), 49409);
  s.latency.peak_fp8_tflops = 1979;
  EXPECT_EQ(Microseconds(s, kBatches[1]), 24704);
}

TEST(LatencyBlis, SharesOfThePeak_CanBeSet) {
  Scenario s = H100(k8B, 1, "roofline");
  s.latency.mfu_prefill = 0.9;
  EXPECT_EQ(Microseconds(s, kBatches[1]), 24704);
  s.latency.mfu_decode = 0.01;
  EXPECT_GT(Microseconds(s, kBatches[5]), 270'000);
}

TEST(LatencyBlis, DelaysOfTrainedPhysics_AreCutToMicroseconds) {
  const Scenario s = H100(k8B, 1, "trained_physics");
  const auto model = FindLatencyModel("trained_physics").make(s, ModelCost{});
  EXPECT_EQ(model->EnqueueDelay(1), 15'563'000);
  EXPECT_EQ(model->EnqueueDelay(100000), 15'563'000);
  EXPECT_EQ(model->PostDecodeDelay(), 777'000);
  EXPECT_EQ(model->OutputTokenDelay(), 45'000);
}

TEST(LatencyBlis, Blackbox_CutsUnderCompatAndRoundsElsewhere) {
  Scenario s;
  s.latency.alpha = {1.9, 0.5, 2.75};
  s.latency.beta = {10.9996, 0, 0};
  const auto time = [&s](Compat compat) {
    s.engine.compat = compat;
    const auto model = FindLatencyModel("blackbox").make(s, ModelCost{});
    return std::vector<TimeNs>{model->Price({}).duration, model->EnqueueDelay(1),
                               model->OutputTokenDelay()};
  };
  EXPECT_EQ(time(Compat::kNone), (std::vector<TimeNs>{11'000, 2'400, 2'750}));
  EXPECT_EQ(time(Compat::kBlis), (std::vector<TimeNs>{10'000, 2'000, 2'000}));
  // Today a step takes a microsecond at least; in February 2026 it may take no time.
  s.latency.beta = {0.5, 0, 0};
  EXPECT_EQ(time(Compat::kBlis)[0], 1'000);
  EXPECT_EQ(time(Compat::kBlisFebruary2026)[0], 0);
}

TEST(LatencyBlis, TrainedPhysics_IsBelowThePhysicalMinimum) {
  // 8,192 tokens of an 8B model at the peak of an H100 take 133 ms; in one chunk it bills 32.5 ms.
  const Batch chunk = {{{8192, 0, 8192, true}}};
  EXPECT_LT(Microseconds(H100(k8B, 1, "trained_physics"), chunk), 33'000);
}

TEST(LatencyBlis, TrainedPhysicsOutsideOfBlis_IsAnIssue) {
  const auto with = [](const char* compat) {
    return ParseScenario(
        ApplyOverrides(*ScenarioPreset("llama-3.1-8b-h100-chat"),
                       {"latency.backend=trained_physics", std::string("engine.compat=") + compat})
            .value());
  };
  EXPECT_TRUE(with("blis").ok());
  for (const char* compat : {"none", "blis-2026-02"}) {
    ASSERT_FALSE(with(compat).ok()) << compat;
    EXPECT_EQ(with(compat).issues()[0].path, "/latency/backend");
    EXPECT_NE(with(compat).issues()[0].message.find("faster than the GPU"), std::string::npos);
  }
}

}  // namespace
}  // namespace servecast::testing
