// Images in prompts: how many tokens they become and where they stand, what they take, and what
// they do not go with. Who encodes what when is in the differential test.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/documents.h"
#include "cost/encoder_times.h"
#include "cost/model_bytes.h"
#include "cost/model_cost.h"
#include "evidence/response.h"
#include "experiment/scaled_times.h"
#include "gtest/gtest.h"
#include "import/model_config.h"
#include "workload/workload.h"

namespace servecast::testing::images_test {
namespace {

std::string Document(std::vector<std::string> set = {}) {
  set.insert(set.begin(), {R"(model={"preset":"qwen3-vl-8b"})", "workload.images.per_request=1"});
  return Changed(set);
}
RequestTable TableOf(std::vector<std::string> set) {
  return Good(MakeRequests(Parsed(Document(std::move(set))), {}));
}
double GibOf(std::vector<std::string> set) {
  return Good(ComputeModelCost(Parsed(Document(std::move(set))))).weights_gib;
}

TEST(Images, Tokens_AreThoseOfSmartResize) {
  VisionSpec vision = Parsed(Document()).model.vision;
  EXPECT_EQ(ImageTokens(vision, 1024, 768), 32 * 24);
  EXPECT_EQ(ImageTokens(vision, 1040, 779), 32 * 24);  // 32.5 and 24.3: to the even, to the nearest
  EXPECT_EQ(ImageTokens(vision, 1072, 784), 34 * 24);  // 33.5 and 24.5
  EXPECT_EQ(ImageTokens(vision, 32, 32), 64);          // no fewer
  EXPECT_EQ(ImageTokens(vision, 100, 30), 15 * 5);     // 14.6 and 4.4, rounded up
  EXPECT_EQ(ImageTokens(vision, 4096, 4096), 128 * 128);
  for (const auto& [w, h] : {std::pair{4128, 4096}, {20'000, 300}, {65'536, 65'536}, {65'536, 1}}) {
    EXPECT_LE(ImageTokens(vision, w, h), 16'384) << w << " " << h;
  }
  EXPECT_EQ(ImageTokens(vision, 8192, 4096), 181 * 90);  // sqrt(2) and 1 / sqrt(2) times 128
  EXPECT_EQ(MostImageTokens(vision), 16'384);
  vision.image_size = 896;  // Gemma 3's
  vision.patch_size = 14;
  vision.merge_size = 4;
  EXPECT_EQ(ImageTokens(vision, 1, 9999), 256);
  EXPECT_EQ(MostImageTokens(vision), 256);
  EXPECT_EQ(ImageTokens({}, 100, 100), 0);
}

TEST(Images, Prompts_HaveThemInFrontOfTheirText) {
  const RequestTable table =
      TableOf({"workload.images.per_request=3", "model.vision.min_image_tokens=1",
               "workload.images.width=64", "workload.images.height=96", "workload.prefix.groups=1",
               "workload.prefix.tokens=40"});
  for (std::size_t r = 0; r < table.arrival.size(); ++r) {
    EXPECT_EQ(table.prompt_tokens[r], 40 + 3 * 6 + 100);
    const auto images = table.ImagesOf(static_cast<RequestId>(r));
    ASSERT_EQ(images.size(), 3);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(images[k].offset, 40 + 6 * static_cast<std::int32_t>(k));
      EXPECT_EQ(images[k].tokens, 6);
      EXPECT_EQ(images[k].embeds, 6);
      EXPECT_EQ(images[k].content, static_cast<std::int64_t>(3 * r + k));  // no two are the same
    }
  }
}

std::string Llama4(int width, int height) {
  return Document({R"(model={"preset":"llama-4-scout-17b-16e","vision":{"num_hidden_layers":34,)"
                   R"("hidden_size":1408,"num_attention_heads":16,"intermediate_size":5632,)"
                   R"("image_size":336,"max_tiles":16}})",
                   "cluster.pools.0.tensor_parallel=8",
                   "workload.images.width=" + std::to_string(width),
                   "workload.images.height=" + std::to_string(height)});
}

// Tiles of the grid that fits best, each of 144 tokens and one behind it; where there are several
// the whole image as one more; and three around them.
TEST(Images, Tiles_AreThoseOfTheGridThatFitsBest) {
  const struct {
    int width, height, tiles;
  } cases[] = {{336, 336, 1},  {100, 50, 1},     {512, 512, 4},   {1024, 1024, 16},
               {1000, 300, 3}, {300, 1000, 3},   {1200, 100, 4},  {673, 336, 3},
               {672, 336, 2},  {5000, 5000, 16}, {9000, 300, 16}, {2000, 1500, 12}};
  for (const auto& [width, height, tiles] : cases) {
    const VisionSpec vision = Parsed(Llama4(width, height)).model.vision;
    const int all = tiles > 1 ? tiles + 1 : 1, beside = (tiles > 1 ? tiles : 0) + 3;
    EXPECT_EQ(ImageEmbeds(vision, width, height), 144 * all) << width << " " << height;
    EXPECT_EQ(ImageTokens(vision, width, height), 144 * all + beside) << width << " " << height;
    EXPECT_EQ(MostImageTokens(vision), 17 * 144 + 16 + 3);
  }
  const RequestTable table = Good(MakeRequests(Parsed(Llama4(512, 512)), {}));
  EXPECT_EQ(table.images[0].tokens, 5 * 144 + 4 + 3);
  EXPECT_EQ(table.images[0].embeds, 5 * 144);
  EXPECT_EQ(table.prompt_tokens[0], 100 + 5 * 144 + 4 + 3);
}

// Each tile is encoded by itself: so many take so many times as long.
TEST(Images, Tiles_SeeEachOtherNot) {
  const auto times = [](int side) {
    const Scenario s = Parsed(Llama4(side, side));
    return EncoderTimes(s, Good(ComputeModelCost(s))).ComputeNs(1);
  };
  EXPECT_NEAR(times(1024) / times(336), 17, 1e-9);
  const Scenario s = Parsed(Llama4(336, 336));
  const VisionParameters p = VisionParametersOf(s.model);
  EXPECT_NEAR((p.layers + p.merger) / 1e6, 811 + 60.8, 3);  // published, and of the projection
  EXPECT_NE(Listed(IssuesOf(Changed({"model.vision.image_size=0"}, Llama4(336, 336))))
                .find("/model/vision/max_tiles"),
            std::string::npos);
}

TEST(Images, Turns_HaveThoseOfTheTurnsBefore) {
  const RequestTable table =
      TableOf({"model.vision.min_image_tokens=1", "workload.images.width=64",
               "workload.images.height=64", "workload.sessions.turns=3",
               "workload.sessions.think_time_s=1", "workload.arrivals.start=together"});
  for (std::size_t r = 0; r + 2 < table.arrival.size(); r += 3) {
    for (std::int32_t turn = 0; turn < 3; ++turn) {
      const auto images = table.ImagesOf(static_cast<RequestId>(r) + turn);
      ASSERT_EQ(images.size(), static_cast<std::size_t>(turn) + 1);
      for (std::int32_t k = 0; k <= turn; ++k) {
        EXPECT_EQ(images[static_cast<std::size_t>(k)].offset, k * (4 + 100 + 20));
      }
      EXPECT_EQ(table.prompt_tokens[r + static_cast<std::size_t>(turn)], 124 * turn + 104);
    }
  }
  // Conversations that are under way have sent theirs, too.
  const RequestTable spread = TableOf(
      {"model.vision.min_image_tokens=1", "workload.images.width=64", "workload.images.height=64",
       "workload.sessions.turns=3", "workload.sessions.think_time_s=10"});
  bool some = false;
  for (std::size_t r = 0; r < spread.arrival.size(); ++r) {
    const auto images = spread.ImagesOf(static_cast<RequestId>(r));
    const auto count = static_cast<std::int32_t>(images.size());
    EXPECT_EQ(spread.prompt_tokens[r], 124 * (count - 1) + 104);
    const bool first = spread.think[r] < 0;
    some |= first && count > 1;
    for (std::size_t k = 1; k < images.size(); ++k) {
      EXPECT_GE(images[k].offset, images[k - 1].end());
    }
    EXPECT_EQ(images.back().end() + 100, spread.prompt_tokens[r]);
  }
  EXPECT_TRUE(some);
}

TEST(Images, Classes_HaveTheirOwnNumber) {
  const RequestTable table = TableOf(
      {R"(workload.classes=[{"name":"text","images_per_request":0},{"name":"two","images_per_request":2},{"name":"as"}])",
       "workload.requests=300"});
  for (std::size_t r = 0; r < table.arrival.size(); ++r) {
    const std::size_t wanted[] = {0, 2, 1};
    EXPECT_EQ(table.ImagesOf(static_cast<RequestId>(r)).size(), wanted[table.of_class[r]]);
  }
}

// Equal images at the beginning of a prompt are found in both caches.
TEST(Images, Distinct_AreFoundAgain) {
  const std::vector<std::string> set = {"workload.requests=400", "workload.arrivals.rate_per_s=5"};
  std::vector<std::string> few = set;
  few.emplace_back("workload.images.distinct=3");
  const Report unlike = RunToEnd(Document(set)), alike = RunToEnd(Document(few));
  EXPECT_EQ(unlike.counts.encoded_images, 400);
  EXPECT_EQ(unlike.counts.image_hits, 0);
  EXPECT_EQ(unlike.prefix_cache.hit_tokens, 0);
  EXPECT_LT(alike.counts.encoded_images, 20);
  EXPECT_GT(alike.prefix_cache.hit_tokens, 380 * 1024);
}

// One request alone: its image's FLOPs by the formula of docs/model.md, written out.
TEST(Images, Encoding_TakesItsFlops) {
  const std::string document = Document({"workload.requests=1", "workload.images.per_request=2"});
  const Scenario s = Parsed(document);
  const Report report = RunToEnd(document);
  const double patches = 64 * 64, h = 1152, f = 4304, merged = 4 * h;
  const double products = 2 * patches * 27 * (4 * h * h + 2 * h * f) +
                          2 * (patches / 4) * 4 * (merged * merged + merged * 4096);
  const double attention = 4 * h * 27 * patches * patches * (128 / 72.0);
  const double flops = s.hardware.peak_bf16_tflops * 1e12;
  const double wanted_ms = 2e3 * (products / (flops * s.hardware.compute_efficiency) +
                                  attention / (flops * s.hardware.attention_efficiency));
  const double found_ms = report.ColumnOf("encode_ms")[0];
  EXPECT_NEAR(found_ms, wanted_ms + 27 * s.hardware.layer_latency_us / 1e3, 0.02 * wanted_ms);
  EXPECT_EQ(report.counts.encoded_images, 2);
  ASSERT_TRUE(report.images.ttft_ms);
  EXPECT_DOUBLE_EQ(*report.images.ttft_ms, found_ms);
  EXPECT_EQ(report.images.tokens, 1024);
  EXPECT_LT(found_ms, report.ColumnOf("ttft_ms")[0]);

  const Report text = RunToEnd(Changed({R"(model={"preset":"qwen3-vl-8b"})"}));
  EXPECT_FALSE(text.images.on);
  EXPECT_TRUE(std::isnan(text.ColumnOf("encode_ms")[0]));
}

// Never cheaper with more, larger, or on fewer GPUs.
TEST(Images, Encoding_IsMonotone) {
  const auto encode = [](std::vector<std::string> set) {
    set.emplace_back("workload.requests=1");
    return RunToEnd(Document(std::move(set))).ColumnOf("encode_ms")[0];
  };
  double before = 0;
  for (const char* side : {"64", "512", "1024", "2048", "4096"}) {
    const double now = encode({std::string("workload.images.width=") + side,
                               std::string("workload.images.height=") + side});
    EXPECT_GT(now, before) << side;
    before = now;
  }
  EXPECT_GT(encode({"workload.images.per_request=2"}), encode({}));
  EXPECT_LT(encode({"cluster.pools.0.tensor_parallel=2"}), encode({}));
  // Two GPUs take two images at once, and one image as one does.
  const std::string data = "engine.mm_encoder_tp_mode=data",
                    two = "cluster.pools.0.tensor_parallel=2";
  EXPECT_DOUBLE_EQ(encode({data, two}), encode({}));
  EXPECT_DOUBLE_EQ(encode({data, two, "workload.images.per_request=2"}), encode({}));
}

// What the band of a forecast is made of: the encoder's time alone is off.
TEST(Images, EncodersError_IsOfItsTimeAlone) {
  const Scenario s = Parsed(Document({"workload.requests=1"}));
  const auto times = [&s](const ErrorFactors& factors) {
    SimulationHooks hooks;
    hooks.deployment = Good(DeployScaled(s, factors));
    Simulation simulation = Good(Simulation::Create(s, {}, std::move(hooks)));
    while (!simulation.Advance(INT64_MAX)) {
    }
    const Report report = simulation.Snapshot();
    return std::pair{report.ColumnOf("encode_ms")[0], report.ColumnOf("e2e_ms")[0]};
  };
  const auto [encode, e2e] = times({});
  const auto [longer, later] = times({1, 1, 1.5});
  EXPECT_NEAR(longer, 1.5 * encode, 1e-5);
  EXPECT_NEAR(later - e2e, 0.5 * encode, 1e-5);
  StepError error;
  error.half = 0.1;
  for (const ErrorFactors& node : NodesOf(error, MeasuredScale())) {
    EXPECT_NEAR(std::fabs(std::log(node.encode)), node.prompt == 1 ? 0 : kEncodeHalf, 1e-12);
  }
}

TEST(Images, Encoder_TakesMemory) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  const double h = 1152, merged = 4 * h;
  const double parameters = 27 * (4 * h * h + 2 * h * 4304) + 4 * (merged * merged + merged * 4096);
  const double without =
      GibOf({"model.vision.num_hidden_layers=0", "workload.images.per_request=0"});
  EXPECT_NEAR(GibOf({}) - without, 2 * parameters / kGib, 1e-9);
  const std::string two = "cluster.pools.0.tensor_parallel=2";
  EXPECT_NEAR(GibOf({two, "engine.mm_encoder_tp_mode=data"}) - GibOf({two}), parameters / kGib,
              1e-9);
}

TEST(Images, Refusals_SayWhy) {
  const auto refusal = [](std::vector<std::string> set) {
    return Listed(IssuesOf(Document(std::move(set))));
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({R"(model={"preset":"llama-3.1-8b"})"}).find("only the text model is known"),
            std::string::npos);
  EXPECT_NE(refusal({"model.vision.hidden_size=0"}).find("/model/vision/hidden_size"),
            std::string::npos);
  EXPECT_NE(refusal({"engine.disable_chunked_mm_input=true"}).find("no step would have room"),
            std::string::npos);
  EXPECT_NE(refusal({"workload.images.width=60000", "workload.images.height=100"})
                .find("/workload/images/width"),
            std::string::npos);
  EXPECT_NE(refusal({"cluster.pools.0.tensor_parallel=32"}).find("/engine/mm_encoder_tp_mode"),
            std::string::npos);
  EXPECT_NE(refusal({"model.vision.num_full_layers=28"}).find("num_full_layers"),
            std::string::npos);
  for (const char* other :
       {R"(engine={"preset":"trtllm-1.2"})", "cluster.pools.0.pipeline_parallel=2",
        "engine.max_loras=1",
        R"(engine.speculative={"method":"eagle","num_speculative_tokens":2})"}) {
    EXPECT_NE(refusal({other}).find("/workload/images/per_request"), std::string::npos)
        << other << ": " << refusal({other});
  }
}

const char* const kSiglip =
    R"(model.vision={"num_hidden_layers":27,"hidden_size":1152,"num_attention_heads":16,)"
    R"("intermediate_size":4304,"patch_size":14,"merge_size":4,"num_mergers":0,"image_size":896})";

// The encoder's time is the same whoever schedules it, and all of it is in the first token's.
TEST(Images, BesideKvInGroupsOrBySglang_AreEncodedAlike) {
  const std::string gemma = R"(model={"preset":"gemma-3-4b"})";
  const auto run = [&](const std::string& engine, const char* images) {
    return RunToEnd(Changed({gemma, kSiglip, engine, "workload.requests=1",
                             "workload.prompt_tokens={\"distribution\":\"fixed\",\"value\":50}",
                             std::string("workload.images.per_request=") + images}));
  };
  double before = 0;
  for (const char* engine : {R"(engine={"preset":"vllm"})", R"(engine={"preset":"sglang"})"}) {
    const Report two = run(engine, "2"), none = run(engine, "0");
    EXPECT_EQ(two.counts.encoded_images, 2) << engine;
    EXPECT_EQ(two.images.tokens, 256) << engine;
    const double encode = two.ColumnOf("encode_ms")[0];
    EXPECT_GT(encode, 1) << engine;
    EXPECT_DOUBLE_EQ(*two.images.ttft_ms, encode) << engine;
    EXPECT_GT(two.ColumnOf("ttft_ms")[0], none.ColumnOf("ttft_ms")[0] + encode) << engine;
    const double prefill =
        two.ColumnOf("ttft_ms")[0] - two.ColumnOf("scheduling_delay_ms")[0] - encode;
    EXPECT_GT(prefill, 0) << engine;
    if (before > 0) EXPECT_DOUBLE_EQ(encode, before);
    before = encode;
  }
}

// SGLang encodes an image once while its embeds are kept, whoever sends it.
TEST(Images, BySglang_AreKeptByContent) {
  const std::vector<std::string> set = {R"(engine={"preset":"sglang"})", "workload.requests=200",
                                        "workload.arrivals.rate_per_s=5",
                                        "engine.enable_prefix_caching=false"};
  std::vector<std::string> few = set, many = set;
  few.emplace_back("workload.images.distinct=2");    // 25 MiB each
  many.emplace_back("workload.images.distinct=50");  // 100 MiB hold four
  const Report unlike = RunToEnd(Document(set)), alike = RunToEnd(Document(few)),
               most = RunToEnd(Document(many));
  EXPECT_EQ(unlike.counts.encoded_images, 200);
  EXPECT_EQ(alike.counts.encoded_images, 2);
  EXPECT_EQ(alike.counts.image_hits, 198);
  EXPECT_GT(most.counts.encoded_images, 150);
  EXPECT_EQ(most.counts.encoded_images + most.counts.image_hits, 200);
}

// vLLM issue 40707: the second image waits for room that the first one holds, whose prompt is cut
// where a state is kept.
TEST(Images, ThatVllmHangsOn_AreSaid) {
  const std::vector<std::string> set = {
      R"(model={"preset":"qwen3.5-27b"})",
      R"(model.vision={"num_hidden_layers":27,"hidden_size":1152,"num_attention_heads":16,)"
      R"("intermediate_size":4304,"patch_size":16,"max_image_tokens":2048})",
      R"(engine={"preset":"vllm","max_num_batched_tokens":2048})",
      "cluster.pools.0.tensor_parallel=2",
      R"(workload.images={"per_request":2,"width":1400,"height":1400})",
      "workload.requests=20"};
  const Report hangs = RunToEnd(Changed(set));
  EXPECT_EQ(hangs.completed, 0);
  EXPECT_NE(hangs.verdict.note.find("vLLM hangs here"), std::string::npos) << hangs.verdict.note;
  std::vector<std::string> roomy = set;
  roomy.emplace_back("engine.max_num_batched_tokens=8192");
  const Report serves = RunToEnd(Changed(roomy));
  EXPECT_EQ(serves.completed, 20);
  EXPECT_EQ(serves.verdict.note.find("vLLM hangs here"), std::string::npos);
}

// One larger than a step's token budget, which the encoder's then is: by any replica alike.
TEST(Images, LargerThanTheTokenBudget_AreServedByEveryReplica) {
  const std::vector<std::string> set = {
      "workload.images.width=2080",     "engine.max_num_batched_tokens=512",
      "engine.max_num_seqs=64",         "workload.requests=40",
      "workload.arrivals.rate_per_s=2", "cluster.router.policy=round_robin"};
  std::vector<std::string> several = set;
  several.emplace_back("cluster.pools.0.replicas=2");
  const Report one = RunToEnd(Document(set)), two = RunToEnd(Document(several));
  EXPECT_EQ(one.counts.encoded_images, 40);
  EXPECT_EQ(two.counts.encoded_images, 40);
  EXPECT_EQ(one.completed, 40);
  EXPECT_EQ(two.completed, 40);
  EXPECT_EQ(one.ColumnOf("encode_ms")[0], two.ColumnOf("encode_ms")[0]);
  EXPECT_EQ(one.ColumnOf("ttft_ms")[0], two.ColumnOf("ttft_ms")[0]);
}

TEST(Images, Config_SaysTheEncoderOfLlama4) {
  const auto vision_of = [](const std::string& vision) {
    const std::string model = Good(ModelFromConfig(
        R"({"model_type": "llama4", "vision_config": )" + vision + R"(, "text_config": {
            "model_type": "llama4_text", "hidden_size": 5120, "num_hidden_layers": 48,
            "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
            "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 16,
            "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "vocab_size": 202048,
            "max_position_embeddings": 131072}})",
        "config.json"));
    return Parsed(Changed({"model=" + model.substr(0, 1) + R"("name":"x",)" + model.substr(1),
                           "cluster.pools.0.tensor_parallel=8"}))
        .model.vision;
  };
  const VisionSpec all = vision_of(
      R"({"hidden_size": 1408, "num_hidden_layers": 34, "num_attention_heads": 16,
          "intermediate_size": 5632, "patch_size": 14, "image_size": 336,
          "pixel_shuffle_ratio": 0.5})");
  EXPECT_EQ(all, Parsed(Llama4(336, 336)).model.vision);
  EXPECT_FALSE(vision_of(R"({"hidden_size": 1408, "num_hidden_layers": 34})").On());
}

TEST(Images, Config_SaysTheEncoder) {
  const std::string model = Good(ModelFromConfig(
      R"({"model_type": "qwen2_5_vl", "hidden_size": 3584, "num_hidden_layers": 28,
          "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944,
          "vocab_size": 152064, "max_position_embeddings": 128000,
          "vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420,
            "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
            "fullatt_block_indexes": [7, 15, 23, 31]}})",
      "config.json"));
  const VisionSpec v =
      Parsed(Changed({"model=" + model.substr(0, 1) + R"("name":"x",)" + model.substr(1)}))
          .model.vision;
  EXPECT_EQ(v.num_hidden_layers, 32);
  EXPECT_EQ(v.hidden_size, 1280);
  EXPECT_EQ(v.num_attention_heads, 16);
  EXPECT_EQ(v.intermediate_size, 3420);
  EXPECT_EQ(v.mlp_matrices, 3);
  EXPECT_EQ(v.patch_size, 14);
  EXPECT_EQ(v.merge_size, 2);
  EXPECT_EQ(v.window_size, 112);
  EXPECT_EQ(v.num_full_layers, 4);
  EXPECT_EQ(v.num_mergers, 1);
}

}  // namespace
}  // namespace servecast::testing::images_test
