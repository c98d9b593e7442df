// What presets carry of measurements: which model of step times `auto` is, and how far it was off.
// Both hold under overrides, labels are those of presets/compared.json, and a slower GPU is never
// faster.
#include "cost/compared.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "cost/model_cost.h"
#include "gtest/gtest.h"
#include "io/presets.h"
#include "serving/policy.h"
#include "testing/words.h"

namespace servecast::compared_test {
namespace {

using Json = nlohmann::json;
using testing::Changed;
using testing::Contains;
using testing::Parsed;
using testing::RunToEnd;

std::string Document(const std::string& model, const std::string& gpu,
                     const std::string& engine = "vllm") {
  return Changed({R"(model={"preset": ")" + model + R"("})",
                  R"(hardware={"preset": ")" + gpu + R"("})",
                  R"(engine={"preset": ")" + engine + R"("})"});
}

std::string KnownErrorOf(const std::string& document) {
  const Scenario s = Parsed(document);
  return ChosenLatencyModel(s).label(s).known_error;
}

// --- which model `auto` is

TEST(Auto, TouchedFigure_KeepsTheModelOfThePreset) {
  for (const char* gpu : {"a100-80gb", "rtx-pro-6000"}) {
    const std::string document = Document("llama-3.1-8b", gpu);
    const Report report = RunToEnd(document);
    EXPECT_EQ(report.latency_model.backend, "operators") << gpu;
    for (const char* set :
         {"interconnect_gb_s=301", "compute_efficiency=0.79", "layer_latency_us=27",
          "memory_bandwidth_gb_s=1791", "peak_bf16_tflops=300", "memory_gib=70"}) {
      const Report other = RunToEnd(Changed({std::string("hardware.") + set}, document));
      EXPECT_EQ(other.latency_model.backend, "operators") << gpu << " " << set;
    }
    // A link that no GPU uses costs nothing.
    const Report linked = RunToEnd(Changed({"hardware.interconnect_gb_s=299"}, document));
    EXPECT_EQ(linked.e2e_ms.mean, report.e2e_ms.mean) << gpu;
  }
}

TEST(Auto, IsWhatThePresetSays_WhereTablesCoverTheModel) {
  const auto chosen = [](const std::string& document) {
    return ChosenLatencyModel(Parsed(document)).name;
  };
  for (const char* gpu : {"h100-sxm", "h200-sxm", "b200-sxm", "a100-40gb", "l40s", "rtx-4090"}) {
    EXPECT_EQ(chosen(Document("llama-3.1-8b", gpu)), "analytic") << gpu;
  }
  // All-reduces of cards on PCIe were not measured and are a matter of figures in both models; what
  // each of a pair computes was, and of more cards not. Of the A100 groups of up to 8 were.
  const std::string card = Document("llama-3.1-8b", "rtx-pro-6000");
  const std::string pair = Changed({"cluster.pools.0.tensor_parallel=2"}, card);
  for (const char* link : {"interconnect_gb_s=1", "interconnect_gb_s=1000",
                           "interconnect_latency_us=500", "gpus_per_node=1"}) {
    EXPECT_EQ(chosen(Changed({std::string("hardware.") + link}, pair)), "operators") << link;
  }
  EXPECT_EQ(chosen(Changed({"cluster.pools.0.tensor_parallel=4"}, card)), "analytic");
  const Scenario cards = Parsed(pair);
  const LatencyLabel label = ChosenLatencyModel(cards).label(cards);
  EXPECT_EQ(label.provenance, "extrapolated");
  EXPECT_TRUE(Contains(label.description, "(all_reduce)")) << label.description;
  ASSERT_EQ(label.evidence.warnings.size(), 1U);
  EXPECT_TRUE(Contains(label.evidence.warnings[0], "peer-to-peer"));
  EXPECT_EQ(label.evidence.of, EvidenceClass::kUntested);
  const std::string a100 = Document("llama-3.1-8b", "a100-80gb");
  EXPECT_EQ(chosen(Changed({"cluster.pools.0.tensor_parallel=8"}, a100)), "operators");
  EXPECT_EQ(chosen(Changed({"latency.backend=analytic"}, a100)), "analytic");
  EXPECT_EQ(chosen(Changed({"hardware.auto_backend=analytic"}, a100)), "analytic");
}

// A document that runs alone: no preset is named, and nothing is lost.
TEST(Auto, ResolvedDocument_RunsAloneWithTheSameModelErrorAndFingerprint) {
  for (const std::vector<std::string>& set :
       {std::vector<std::string>{}, {"hardware.compute_efficiency=0.7"}}) {
    const std::string document = Changed(set, Document("llama-3.1-8b", "a100-80gb"));
    const std::string resolved = Parsed(document).resolved_text;
    EXPECT_FALSE(Contains(resolved, "preset"));
    const Report alone = RunToEnd(resolved), report = RunToEnd(document);
    EXPECT_EQ(alone.fingerprint, report.fingerprint);
    EXPECT_EQ(alone.latency_model.backend, "operators");
    EXPECT_EQ(alone.latency_model.known_error, report.latency_model.known_error);
  }
}

TEST(Auto, PoolsOfTheirOwn_HaveTheirOwnModelInTheLabel) {
  const Report report = RunToEnd(Changed({R"(cluster.pools=[{}, {"hardware": "a100-80gb"}])"},
                                         Document("llama-3.1-8b", "h100-sxm")));
  EXPECT_EQ(report.latency_model.backend, "analytic");
  EXPECT_TRUE(Contains(report.latency_model.description, "operators measured on A100"));
}

// --- a slower GPU is never faster

struct Figure {
  const char* name;
  double HardwareSpec::*value;
  bool more_is_faster;
};
constexpr Figure kFigures[] = {
    {"memory_bandwidth_gb_s", &HardwareSpec::memory_bandwidth_gb_s, true},
    {"peak_bf16_tflops", &HardwareSpec::peak_bf16_tflops, true},
    {"peak_fp8_tflops", &HardwareSpec::peak_fp8_tflops, true},
    {"peak_fp4_tflops", &HardwareSpec::peak_fp4_tflops, true},
    {"peak_int8_tops", &HardwareSpec::peak_int8_tops, true},
    {"interconnect_gb_s", &HardwareSpec::interconnect_gb_s, true},
    {"interconnect_latency_us", &HardwareSpec::interconnect_latency_us, false},
    {"layer_latency_us", &HardwareSpec::layer_latency_us, false},
    {"mixed_attention_rows", &HardwareSpec::mixed_attention_rows, false},
    {"compute_efficiency", &HardwareSpec::compute_efficiency, true},
    {"attention_efficiency", &HardwareSpec::attention_efficiency, true},
    {"bandwidth_efficiency", &HardwareSpec::bandwidth_efficiency, true},
    {"kv_bandwidth_efficiency", &HardwareSpec::kv_bandwidth_efficiency, true},
    {"latent_split_efficiency", &HardwareSpec::latent_split_efficiency, true},
    {"inter_node_gb_s", &HardwareSpec::inter_node_gb_s, true},
    {"inter_node_latency_us", &HardwareSpec::inter_node_latency_us, false},
};
// No speeds: room, money, power (a limit of it is in Power.*), and how many GPUs are near. Nor is
// the peak of 32-bit weights one here: no preset says it, and
// Types.Float32_TakesTwiceTheBytesAndPlainUnits has it.
const std::set<std::string> kNoSpeeds = {"memory_gib",    "price_per_gpu_hour",
                                         "gpus_per_node", "peak_fp32_tflops",
                                         "idle_w",        "power_cap_w",
                                         "busy_w",        "compute_w",
                                         "memory_w",      "power_limit_w",
                                         "power_error",   "energy_error",
                                         "host_w",        "pue",
                                         "price_per_kwh", "co2_g_per_kwh"};

TEST(Gpus, EveryNumberOfTheHardware_IsASpeedOrKnownNotToBe) {
  const Json catalog = Json::parse(CatalogJson(), nullptr, false);
  for (const Json& field : catalog["fields"]) {
    const std::string path = field["path"];
    if (path.rfind("/hardware/", 0) != 0) continue;
    if (field["type"] != "number" && field["type"] != "integer") continue;
    const std::string name = path.substr(10);
    const bool speed = std::any_of(std::begin(kFigures), std::end(kFigures),
                                   [&](const Figure& f) { return f.name == name; });
    EXPECT_NE(speed, kNoSpeeds.contains(name)) << name;
  }
}

TEST(Gpus, SlowerOnAnyFigure_IsNeverFaster) {
  const PrefillChunk prompt[] = {{700, 300, 2000, true}};
  const BatchShape shapes[] = {{1, 500, {}}, {96, 96 * 1500, {}}, {24, 24 * 700, prompt}};
  int steps = 0, moved = 0;
  for (const std::string_view gpu : PresetIds("hardware")) {
    for (const char* model :
         {"llama-3.1-8b", "llama-3.3-70b", "qwen3-30b-a3b", "gpt-oss-20b", "deepseek-v3"}) {
      const Scenario preset = Parsed(Document(model, std::string(gpu)));
      for (const std::int64_t tp : {1, 2, 8, 16}) {
        Scenario s = preset;
        s.hardware.memory_gib = 1e5;
        s.cluster.pools[0].tensor_parallel = tp;
        const Result<ModelCost> cost = ComputeModelCost(s);
        if (!cost.ok()) continue;  // heads that do not divide
        for (const Figure& figure : kFigures) {
          double HardwareSpec::*const value = figure.value;
          if (s.hardware.*value == 0) continue;
          std::vector<TimeNs> before(std::size(shapes), 0);
          std::string_view chosen;
          for (const double factor : {0.6, 0.99, 1.0, 1.01, 2.0}) {  // ever slower
            Scenario other = s;
            other.hardware.*value *= figure.more_is_faster ? 1 / factor : factor;
            if (Contains(figure.name, "efficiency")) {
              other.hardware.*value = std::min(1.0, other.hardware.*value);
            }
            const LatencyEntry& entry = ChosenLatencyModel(other);
            EXPECT_TRUE(chosen.empty() || chosen == entry.name) << gpu << " " << figure.name;
            chosen = entry.name;
            const std::unique_ptr<LatencyModel> latency = entry.make(other, cost.value());
            for (std::size_t i = 0; i < std::size(shapes); ++i) {
              const TimeNs time = latency->Price(shapes[i]).duration;
              EXPECT_GE(time, before[i]) << gpu << " " << model << " tp " << tp << " "
                                         << figure.name << " x " << factor << ", shape " << i;
              moved += time > before[i] && before[i] > 0 ? 1 : 0;
              before[i] = time;
              ++steps;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(steps, 10000);
  EXPECT_GT(moved, steps / 10);
}

TEST(Presets, MeasuredAsThemselves_AreUnchanged) {
  for (const std::string_view gpu : PresetIds("hardware")) {
    const Scenario s = Parsed(Document("llama-3.1-8b", std::string(gpu)));
    // "none": no server with it was measured yet.
    EXPECT_TRUE(s.hardware.compared_as == gpu || s.hardware.compared_as == "none") << gpu;
    EXPECT_TRUE(s.hardware.changed.empty()) << gpu;
    EXPECT_GT(s.hardware.gpus_per_node, 0) << gpu;
    EXPECT_GT(s.hardware.inter_node_gb_s, 0) << gpu;
  }
  // Versions of one engine are compared as one where their costs are the same.
  for (const std::string_view engine : PresetIds("engines")) {
    const Scenario s = Parsed(Document("llama-3.1-8b", "h100-sxm", std::string(engine)));
    EXPECT_NE(s.engine.compared_as, "none") << engine;
    EXPECT_TRUE(s.engine.changed.empty()) << engine << ": " << s.engine.changed.front();
  }
}

TEST(Presets, Menu_ListsFilesThatThereAre) {
  std::ifstream in(SERVECAST_SOURCE_DIR "/presets/menu.json", std::ios::binary);
  const Json menu = Json::parse(in, nullptr, false);
  ASSERT_EQ(menu.size(), 2u);
  for (const auto& [kind, listed] : menu.items()) {
    const std::vector<std::string_view> ids = PresetIds(kind);
    EXPECT_EQ(listed, Json(std::vector<std::string>(ids.begin(), ids.end()))) << kind;
    EXPECT_GT(AllPresetIds(kind).size(), ids.size()) << kind;
  }
}

// Which it has with more memory or more bandwidth.
TEST(Presets, NextGpu_IsOfTheMenuAndHasMore) {
  int found = 0;
  for (const std::string_view id : AllPresetIds("hardware")) {
    const std::string next = NextGpu(NameOfPreset("hardware", id).name);
    if (next.empty()) continue;
    ++found;
    EXPECT_TRUE(NameOfPreset("hardware", next).in_menu) << id;
    const Json& own = *FindPresetDocument("hardware", id);
    const Json& other = *FindPresetDocument("hardware", next);
    EXPECT_TRUE(other["memory_gib"] > own["memory_gib"] ||
                other["memory_bandwidth_gb_s"] > own["memory_bandwidth_gb_s"])
        << id;
  }
  EXPECT_GT(found, 25);
  EXPECT_EQ(NextGpu("H100 SXM 80 GB"), "h200-sxm");
  EXPECT_EQ(NextGpu("no such card"), "");
}

// What a preset of a measured GPU does not say is that of the one that it is like. A share of the
// peak means nothing beside a peak that is stated otherwise, or that the power limit cuts
// otherwise.
TEST(Presets, SharesOfThePeak_AreThoseOfCardsWithTheSamePeakAlone) {
  const auto file = [](const std::string& id) {
    std::ifstream in(SERVECAST_SOURCE_DIR "/presets/hardware/" + id + ".json", std::ios::binary);
    return Json::parse(in, nullptr, false);
  };
  int inherit = 0, own = 0;
  for (const std::string_view id : AllPresetIds("hardware")) {
    if (NameOfPreset("hardware", id).in_menu) continue;
    const Json card = file(std::string(id));
    ASSERT_TRUE(card.is_object() && card.contains("like")) << id;
    EXPECT_TRUE(NameOfPreset("hardware", card["like"].get<std::string>()).in_menu) << id;
    const Json like = file(card["like"]);
    for (const char* share : {"compute_efficiency", "attention_efficiency"}) {
      if (card["document"].contains(share)) {
        EXPECT_TRUE(card["sources"].contains(share)) << id << " " << share;
        ++own;
        continue;
      }
      ++inherit;
      ASSERT_TRUE(card.contains("peak") && like.contains("peak")) << id << " " << share;
      EXPECT_EQ(card["peak"]["rate"], like["peak"]["rate"]) << id << " " << share;
      const auto watts = [](const Json& of) {
        return of["peak"]["power_w"].get<double>() /
               of["document"]["peak_bf16_tflops"].get<double>();
      };
      EXPECT_NEAR(watts(card) / watts(like), 1, 0.15) << id << " " << share;
    }
  }
  EXPECT_GT(inherit, 3);
  EXPECT_GT(own, 20);
}

// --- how far it was off

const Json& Record() {
  static const Json file = [] {
    std::ifstream in(SERVECAST_SOURCE_DIR "/presets/compared.json", std::ios::binary);
    return Json::parse(in, nullptr, false);
  }();
  return file;
}

// "1.2 %", as a reader would round it.
std::string Percent(double share) {
  // As the engine keeps it: a tie would be rounded the other way.
  const double percent = 100 * static_cast<double>(static_cast<float>(share));
  char text[32];
  std::snprintf(text, sizeof text, percent < 9.95 ? "%.1f" : "%.0f", percent);
  std::string number = text;
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number + " %";
}

// With the features of a row.
Scenario With(const Json& row, const std::string& with) {
  const auto text = [&row](const char* name) { return row[name].get<std::string>(); };
  Scenario s = Parsed(Document("llama-3.1-8b", text("gpu"), "vllm"));
  s.engine.compared_as = text("engine");
  // By the rules of the engine that was measured, but where the row says not.
  if (!s.engine.compared_as.starts_with("vllm") && !Contains(with, "rules other")) {
    s.scheduler.policy = s.engine.compared_as;
  }
  const char* const weights[] = {"16-bit", "FP8", "INT4", "NVFP4", "MXFP4"};
  for (int i = 0; i < 5; ++i) {
    if (with.rfind(weights[i], 0) == 0) s.model.quantization = static_cast<Quantization>(i);
  }
  if (Contains(with, "8-bit KV")) s.engine.kv_cache_dtype = KvCacheDType::kFp8;
  if (Contains(with, "experts")) s.model.num_local_experts = 8;
  if (Contains(with, "windows")) s.model.num_sliding_layers = 4;
  if (Contains(with, "latent")) s.model.kv_lora_rank = 512;
  if (Contains(with, "parallelism")) s.engine.enable_expert_parallel = true;
  if (Contains(with, "stages")) s.cluster.pools[0].pipeline_parallel = 2;
  s.cluster.pools[0].tensor_parallel = row["most_gpus"];
  return s;
}

// Of a row's scenario with one more feature or one less, and with other weights.
std::vector<Scenario> NextTo(const Scenario& s) {
  std::vector<Scenario> others;
  const auto add = [&](auto change) { change(others.emplace_back(s)); };
  for (int i = 0; i <= static_cast<int>(Quantization::kMxfp4All); ++i) {
    add([i](Scenario& o) { o.model.quantization = static_cast<Quantization>(i); });
  }
  const bool small = s.engine.kv_cache_dtype == KvCacheDType::kFp8;
  add([&](Scenario& o) {
    o.engine.kv_cache_dtype = small ? KvCacheDType::kAuto : KvCacheDType::kFp8;
  });
  add([](Scenario& o) { o.model.num_local_experts = o.model.num_local_experts > 0 ? 0 : 8; });
  add([](Scenario& o) { o.model.num_sliding_layers = o.model.num_sliding_layers > 0 ? 0 : 4; });
  add([](Scenario& o) { o.model.kv_lora_rank = o.model.kv_lora_rank > 0 ? 0 : 512; });
  add([](Scenario& o) { o.engine.enable_expert_parallel = !o.engine.enable_expert_parallel; });
  return others;
}

// No row speaks for a scenario of another kind: neither for its error nor against its verdict.
TEST(KnownError, OfEveryKindNextToAMeasuredOne_IsOfItsOwnRowsOrUnknown) {
  int known = 0, unknown = 0;
  for (const Json& row : Record()["rows"]) {
    const auto key = [](const Json& of, const std::string& with) {
      return of["model"].get<std::string>() + of["gpu"].get<std::string>() +
             of["engine"].get<std::string>() + with;
    };
    for (const Scenario& s : NextTo(With(row, row["with"]))) {
      const bool measured =
          std::any_of(Record()["rows"].begin(), Record()["rows"].end(), [&](const Json& other) {
            return key(other, other["with"]) == key(row, FeaturesText(s));
          });
      const Evidence e = EvidenceOf(s, row["model"].get<std::string>());
      measured ? ++known : ++unknown;
      if (measured) {
        EXPECT_FALSE(Contains(e.sentence, "of this kind")) << FeaturesText(s) << e.sentence;
        continue;
      }
      EXPECT_TRUE(Contains(e.sentence, "No server of this kind was measured")) << e.sentence;
      EXPECT_FALSE(Contains(e.sentence, "%")) << e.sentence;
      EXPECT_EQ(e.of, EvidenceClass::kUntested) << e.sentence;
      EXPECT_TRUE(e.errors.empty());
    }
  }
  EXPECT_GT(known, 100);
  EXPECT_GT(unknown, 200);
}

// Closed loops measured TPOT alone.
TEST(KnownError, OfDecodesAlone_SaysNothingOfRunsThatPromptsBind) {
  const auto evidence = [](const char* prompt, const char* output) {
    const std::string document =
        Changed({R"(cluster={"pools": [{"tensor_parallel": 2}]})", "workload.requests=200",
                 R"(workload.arrivals={"process": "static"})",
                 std::string(R"(workload.prompt_tokens={"distribution": "fixed", "value": )") +
                     prompt + "}",
                 std::string(R"(workload.output_tokens={"distribution": "fixed", "value": )") +
                     output + "}"},
                Document("llama-3.1-8b", "h100-sxm", "vllm-0.11"));
    return RunToEnd(document).latency_model.evidence;
  };
  const Evidence decodes = evidence("200", "1000"), prompts = evidence("4000", "200");
  EXPECT_EQ(decodes.of, EvidenceClass::kCompared) << decodes.sentence;
  EXPECT_EQ(prompts.of, EvidenceClass::kUntested) << prompts.sentence;
  EXPECT_TRUE(prompts.errors.empty());
  EXPECT_TRUE(Contains(prompts.sentence, "times of prompts were not measured"));
}

TEST(KnownError, OfEveryRowOfTheRecord_IsWhatItsLabelSays) {
  ASSERT_TRUE(Record().is_object());
  EXPECT_GT(Record()["rows"].size(), 20u);
  std::set<std::string> seen;
  for (const Json& row : Record()["rows"]) {
    const auto text = [&row](const char* name) { return row[name].get<std::string>(); };
    const std::string with = text("with");
    const Scenario s = With(row, with);
    std::string features;
    for (const std::string_view name : ComparedFeatures(s)) {
      features += (features.empty() ? "" : ", ") + std::string(name);
    }
    EXPECT_EQ(features, with);
    const std::string said = KnownError(s, text("model"));
    EXPECT_TRUE(said.ends_with(".") && said.rfind("In ", 0) == 0) << said;
    // Of several rows that are like it the first one counts.
    const std::string number = row["runs"] == 1 ? "one" : row["runs"].dump();
    const std::string runs = "In " + number + " " + text("what") + " on this GPU ";
    if (said.rfind(runs, 0) != 0) continue;
    seen.insert(text("model") + text("gpu"));
    for (const auto& [figure, name] : {std::pair{"tpot", " of TPOT "},
                                       {"e2e", " of E2E "},
                                       {"ttft", " of TTFT "},
                                       {"ttft_p99", " of p99 TTFT "}}) {
      ASSERT_EQ(row.contains(figure), Contains(said, name)) << said;
      if (!row.contains(figure)) continue;
      const std::string after = said.substr(said.find(name) + std::string(name).size());
      const std::string share = after.rfind("was ", 0) == 0 ? after.substr(4) : after;
      EXPECT_EQ(share.rfind(Percent(row[figure]["median"]), 0), 0u)
          << figure << " " << row[figure].dump() << ": " << said;
    }
  }
  EXPECT_GE(seen.size(), 12u);
}

TEST(KnownError, ChangedFigure_EndsTheClaimInAWholeSentence) {
  const std::string document = Document("llama-3.1-8b", "h100-sxm");
  const std::string whole = KnownErrorOf(document);
  EXPECT_TRUE(Contains(whole, "serving runs on this GPU the median error of TPOT was")) << whole;
  const std::string ended =
      "; hardware.compute_efficiency was changed since, so this does not apply as it stands.";
  EXPECT_EQ(KnownErrorOf(Changed({"hardware.compute_efficiency=0.7"}, document)),
            whole.substr(0, whole.size() - 1) + ended);
  for (const char* overhead :
       {"step_overhead_us", "sequence_overhead_us", "sampler_ns_per_logit", "request_overhead_ms",
        "prompt_token_overhead_us", "delivery_overhead_us", "host_stall_ms", "host_stalls_per_s"}) {
    const std::string said =
        KnownErrorOf(Changed({std::string("engine.") + overhead + "=1"}, document));
    EXPECT_TRUE(Contains(said, std::string("engine.") + overhead + " was changed since")) << said;
  }
  // What experts cost, where there are some.
  const std::string experts = Document("mixtral-8x7b", "h100-sxm");
  for (const char* cost :
       {"fp8_experts_read_share", "unpacked_experts_tflops", "expert_exchange_latencies"}) {
    const std::string set = std::string("engine.") + cost + "=1";
    EXPECT_EQ(KnownErrorOf(Changed({set}, document)), whole) << cost;
    EXPECT_TRUE(Contains(KnownErrorOf(Changed({set}, experts)), " was changed since")) << cost;
  }
  // Neither room nor money nor a link that is not used.
  for (const char* other : {"hardware.memory_gib=60", "hardware.price_per_gpu_hour=2",
                            "hardware.name=H", "hardware.interconnect_gb_s=100",
                            "engine.max_num_seqs=64", "engine.gpu_memory_utilization=0.8"}) {
    EXPECT_EQ(KnownErrorOf(Changed({other}, document)), whole) << other;
  }
  EXPECT_TRUE(Contains(
      KnownErrorOf(Changed({"hardware.interconnect_gb_s=100", "cluster.pools.0.tensor_parallel=2"},
                           document)),
      "hardware.interconnect_gb_s was changed"));
  EXPECT_TRUE(Contains(
      KnownErrorOf(Changed({"hardware.peak_bf16_tflops=900", "hardware.compute_efficiency=0.7",
                            "hardware.layer_latency_us=20", "engine.step_overhead_us=1"},
                           document)),
      "; hardware.compute_efficiency, hardware.layer_latency_us and 2 more were changed since"));
}

TEST(KnownError, WhatNobodyMeasured_IsSaidInWholeSentences) {
  const auto said = [](const std::string& model, const std::string& gpu, const std::string& engine,
                       const std::vector<std::string>& set = {}) {
    return KnownErrorOf(Changed(set, Document(model, gpu, engine)));
  };
  EXPECT_EQ(said("llama-3.1-8b", "l40s", "vllm"),
            "No server with this GPU was measured, so the error is not known.");
  EXPECT_EQ(said("llama-3.1-8b", "a100-80gb", "sglang"),
            "No server with this engine was measured on this GPU, so the error is not known.");
  const std::string four =
      said("llama-3.1-70b", "h100-sxm", "sglang", {"cluster.pools.0.tensor_parallel=16"});
  EXPECT_EQ(
      four.rfind("No server with this GPU and engine was measured with 16 GPUs in a group. In "
                 "the nearest, ",
                 0),
      0u)
      << four;
  EXPECT_EQ(said("gpt-oss-20b", "h100-sxm", "sglang"),
            "No server of this kind was measured with this GPU and engine, so the error is not "
            "known: a mixture of experts, MXFP4 weights, a KV cache at full precision, sliding "
            "windows, no expert parallelism.");
  EXPECT_EQ(said("llama-3.3-70b", "rtx-4090", "vllm",
                 {"latency.backend=operators", "model.quantization=int4",
                  "cluster.pools.0.tensor_parallel=4"}),
            "No table covers all of a step, so the error is not known.");
  // Known, and bad.
  const std::string old = said("llama-3.1-8b", "h100-sxm", "vllm-0.11", {"model.quantization=fp8"});
  EXPECT_TRUE(Contains(old, "(too slow)")) << old;
}

}  // namespace
}  // namespace servecast::compared_test
