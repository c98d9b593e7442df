// A scenario as commands, manifests and a benchmark: what each can say comes back when it is
// imported, and what it cannot is named.
#include "servecast/export.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/import_texts.h"
#include "import/names.h"
#include "io/presets.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

std::string Text(const Result<Exported>& exported) {
  EXPECT_TRUE(exported.ok()) << Listed(exported.issues());
  return exported.ok() ? exported.value().text : "";
}

bool LeftOut(const Exported& exported, std::string_view what) {
  for (const ImportNote& note : exported.left_out) {
    if (note.what.find(what) != std::string::npos) return true;
  }
  return false;
}

// What a server is told by its options.
const std::vector<std::string> kEngine = {"max_num_seqs",
                                          "max_num_batched_tokens",
                                          "max_model_len",
                                          "block_size",
                                          "gpu_memory_utilization",
                                          "kv_cache_dtype",
                                          "num_gpu_blocks_override",
                                          "enable_prefix_caching",
                                          "enable_expert_parallel",
                                          "enable_chunked_prefill",
                                          "long_prefill_token_threshold",
                                          "async_scheduling",
                                          "hybrid_kv_cache_manager",
                                          "mamba_cache_mode"};

Json Settings(const Json& resolved, const std::vector<std::string>& engine, bool replicas,
              bool gpu) {
  Json out;
  out["model"] = resolved["model"];
  if (gpu) out["hardware"] = resolved["hardware"];
  for (const Json& pool : resolved["cluster"]["pools"]) {
    Json kept = {{"role", pool["role"]},
                 {"tensor_parallel", pool["tensor_parallel"]},
                 {"pipeline_parallel", pool["pipeline_parallel"]}};
    if (replicas) kept["replicas"] = pool["replicas"];
    const Json& own = pool.contains("engine") ? pool["engine"] : resolved["engine"];
    for (const std::string& name : engine) kept["engine"][name] = own.value(name, Json());
    out["pools"].push_back(std::move(kept));
  }
  return out;
}

void ExpectRoundTrip(const std::string& document, const std::string& target) {
  SCOPED_TRACE(target + ": " + document);
  const Result<Exported> exported = Export(document, target);
  ASSERT_TRUE(exported.ok()) << Listed(exported.issues());
  SCOPED_TRACE(exported.value().text);
  const Imported imported = Import(exported.value().text);
  const Json back = ResolvedImport(imported), from = JsonOf(Parsed(document).resolved_text);
  const bool replicas = target == "kubernetes" || target == "llm-d";
  EXPECT_EQ(Settings(back, kEngine, replicas, replicas),
            Settings(from, kEngine, replicas, replicas))
      << Listed(imported);
}

TEST(Export, ModelsAndGpus_ComeBackFromEveryTarget) {
  for (const std::string_view model : AllPresetIds("models")) {
    const std::string document =
        R"({"schema": 1, "model": {"preset": ")" + std::string(model) +
        R"("}, "hardware": {"preset": "h200-sxm"}, "workload": {"preset": "chat"}})";
    for (const char* target : {"vllm", "docker", "kubernetes", "llm-d"})
      ExpectRoundTrip(document, target);
  }
  int with_label = 0;
  for (const std::string_view gpu : AllPresetIds("hardware")) {
    const std::string document =
        R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": ")" +
        std::string(gpu) + R"("}, "workload": {"preset": "chat"}})";
    const Exported exported = Good(Export(document, "kubernetes"));
    const bool labelled = exported.text.find("nvidia.com/gpu.product") != std::string::npos;
    // Of another maker, or not known yet: then it is said.
    const bool said = std::any_of(exported.left_out.begin(), exported.left_out.end(),
                                  [](const ImportNote& note) { return note.what == "hardware"; });
    EXPECT_NE(labelled, said) << gpu;
    if (labelled) ExpectRoundTrip(document, "kubernetes");
    with_label += labelled ? 1 : 0;
  }
  EXPECT_GE(with_label, 20);
}

TEST(Export, SettingsAndPools_ComeBackFromEveryTarget) {
  const std::string kScenarios[] = {
      R"("engine": {"max_num_seqs": 7, "api_server_count": 3, "max_num_batched_tokens": 4096, "max_model_len": 9000, "block_size": 32,
          "gpu_memory_utilization": 0.85, "kv_cache_dtype": "fp8", "num_gpu_blocks_override": 5000, "enable_prefix_caching": false,
          "long_prefill_token_threshold": 512, "async_scheduling": false}, "cluster": {"pools": [{"tensor_parallel": 4, "replicas": 3}]})",
      R"("engine": {"max_loras": 4, "max_lora_rank": 64})",
      R"("engine": {"hybrid_kv_cache_manager": "off", "mamba_cache_mode": "all"})",
      R"("engine": {"hybrid_kv_cache_manager": "on"})",
      R"("engine": {"enable_chunked_prefill": false, "max_num_batched_tokens": 40960}, "cluster": {"pools": [{"pipeline_parallel": 2}]})",
      R"("cluster": {"pools": [{"role": "prefill", "replicas": 2, "engine": {"max_num_batched_tokens": 16384}},
          {"role": "decode", "tensor_parallel": 2, "replicas": 3, "engine": {"max_num_seqs": 512}}]})"};
  for (const std::string& settings : kScenarios) {
    const std::string document =
        R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "h100-sxm"}, )"
        R"("workload": {"preset": "chat"}, )" +
        settings + "}";
    for (const char* target : {"vllm", "docker", "kubernetes", "llm-d"})
      ExpectRoundTrip(document, target);
  }
}

// Where NCCL may use peers, it would be faster than the forecast.
TEST(Export, LinksThroughTheHost_ComeBackFromEveryTarget) {
  const auto exported = [](const char* target, const char* link, int gpus) {
    return Good(
        Export(R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "l40s",
                "interconnect": ")" +
                   std::string(link) + R"("}, "workload": {"preset": "chat"},
                "cluster": {"pools": [{"tensor_parallel": )" +
                   std::to_string(gpus) + "}]}}",
               target));
  };
  for (const char* target : {"vllm", "docker", "sglang", "kubernetes", "llm-d"}) {
    const Exported text = exported(target, "pcie_host", 2);
    SCOPED_TRACE(text.text);
    EXPECT_EQ(JsonOf(Import(text.text).document)["hardware"]["interconnect"], "pcie_host");
    EXPECT_FALSE(LeftOut(text, "hardware.interconnect"));
    EXPECT_TRUE(LeftOut(exported(target, "pcie_p2p", 2), "hardware.interconnect"));
    EXPECT_NE(text.text.find("--disable-custom-all-reduce"), std::string::npos);
    EXPECT_TRUE(LeftOut(exported(target, "pcie_host", 1), "hardware.interconnect"));
    EXPECT_EQ(exported(target, "auto", 2).text.find("NCCL"), std::string::npos);
  }
}

TEST(Export, LinksOfOnePool_ComeBackAsItsOwn) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "l40s"},
          "workload": {"preset": "chat"}, "cluster": {"pools": [{"tensor_parallel": 2},
          {"tensor_parallel": 2, "hardware": {"interconnect": "pcie_host"}}]}})";
  const Json back = JsonOf(Import(Good(Export(document, "kubernetes")).text).document);
  EXPECT_FALSE(back["hardware"].contains("interconnect")) << back;
  EXPECT_EQ(back["cluster"]["pools"][1]["hardware"]["interconnect"], "pcie_host") << back;
  // A figure of its own is not a link of its own.
  const Exported shared = Good(Export(
      R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "l40s",
          "interconnect": "pcie_host"}, "workload": {"preset": "chat"}, "cluster": {"pools": [
          {"tensor_parallel": 2, "hardware": {"memory_gib": 40}}]}})",
      "vllm"));
  EXPECT_NE(shared.text.find("NCCL_P2P_DISABLE=1 vllm serve"), std::string::npos);
  EXPECT_FALSE(LeftOut(shared, "hardware.interconnect"));
}

TEST(Export, ScenarioPresets_ComeBackFromManifests) {
  for (const std::string_view id : PresetIds("scenarios")) {
    for (const char* target : {"kubernetes", "llm-d", "docker"})
      ExpectRoundTrip(std::string(*ScenarioPreset(id)), target);
  }
}

TEST(Export, VersionsOfVllm_AreTagsOfImages) {
  for (const char* preset : {"vllm-0.11", "vllm-0.15", "vllm-0.19", "vllm-0.20", "vllm-0.23"}) {
    const std::string document = Changed({std::string("engine.preset=") + preset});
    const Json back = JsonOf(Import(Text(Export(document, "docker"))).document);
    EXPECT_EQ(back["engine"]["preset"], preset);
  }
}

TEST(Export, GpuAndEngineOfAPool_AreItsOwn) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "h100-sxm"},
          "workload": {"preset": "chat"}, "cluster": {"pools": [{"engine": {"max_num_seqs": 64}},
          {"hardware": {"preset": "l40s", "memory_gib": 40}, "engine": {"preset": "vllm-0.11"}}]}})";
  const std::string text = Good(Export(document, "kubernetes")).text;
  const std::size_t second = text.find("---");
  ASSERT_NE(second, std::string::npos);
  const std::string of_first = text.substr(0, second), of_second = text.substr(second);
  EXPECT_NE(of_first.find("H100"), std::string::npos) << text;
  EXPECT_NE(of_first.find("vllm-openai:latest"), std::string::npos) << text;
  EXPECT_NE(of_second.find("NVIDIA-L40S"), std::string::npos) << text;
  EXPECT_NE(of_second.find("vllm-openai:v0.11.0"), std::string::npos) << text;
}

// What a person has to install and to have is named of the pool that needs it.
TEST(Export, NotesOfPools_NameTheirPool) {
  const auto exported = [](const char* pools, const char* target) {
    return Good(Export(
        R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "h100-sxm"},
        "workload": {"preset": "chat"}, "cluster": {"pools": [)" +
            std::string(pools) + "]}}",
        target));
  };
  const Exported vllm = exported(
      R"({}, {"hardware": {"preset": "l40s"}, "engine": {"preset": "vllm-0.11"}})", "vllm");
  EXPECT_TRUE(LeftOut(vllm, "hardware h100-sxm"));
  EXPECT_TRUE(LeftOut(vllm, "cluster.pools.1.hardware l40s"));
  EXPECT_TRUE(LeftOut(vllm, "cluster.pools.1.engine.preset vllm-0.11"));
  const Exported sglang = exported(
      R"({"engine": {"preset": "sglang-0.5.9"}}, {"engine": {"preset": "vllm-0.15"}})", "sglang");
  EXPECT_FALSE(LeftOut(sglang, "sglang-0.5.9"));
  EXPECT_TRUE(LeftOut(sglang, "cluster.pools.1.engine.preset vllm-0.15"));
  const char* beyond = "cluster.pools.0: 16 GPUs of a server";
  EXPECT_TRUE(
      LeftOut(exported(R"({"tensor_parallel": 8, "pipeline_parallel": 2})", "kubernetes"), beyond));
  EXPECT_FALSE(LeftOut(exported(R"({"tensor_parallel": 8})", "kubernetes"), "GPUs of a server"));
}

TEST(Export, ASharedSetOfExperts_ComesBack) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "deepseek-v3"}, "hardware": {"preset": "h200-sxm"},
    "engine": {"enable_expert_parallel": true}, "cluster": {"pools": [{"replicas": 16, "attention_data_parallel": 8}]},
    "workload": {"preset": "chat"}})";
  for (const char* target : {"kubernetes", "llm-d"}) {
    const Json pool =
        JsonOf(Import(Text(Export(document, target))).document)["cluster"]["pools"][0];
    EXPECT_EQ(pool["replicas"], 16) << target;
    EXPECT_EQ(pool["attention_data_parallel"], 8) << target;
  }
}

TEST(Export, Traffic_ComesBackFromTheBenchmark) {
  const std::string kTraffic[] = {
      R"({"arrivals": {"process": "poisson", "rate_per_s": 3.5}, "prompt_tokens": {"distribution": "fixed", "value": 1000},
          "output_tokens": {"distribution": "fixed", "value": 200}, "requests": 321})",
      R"({"arrivals": {"process": "gamma", "rate_per_s": 8, "cv": 2}, "prompt_tokens": {"distribution": "uniform", "min": 800, "max": 1200},
          "output_tokens": {"distribution": "uniform", "min": 80, "max": 120}, "prefix": {"groups": 1, "tokens": 500}})",
      R"({"arrivals": {"process": "poisson", "rate_per_s": 20, "max_concurrency": 64}, "prompt_tokens": {"value": 10}, "output_tokens": {"value": 10}})",
      R"({"arrivals": {"process": "closed_loop", "concurrency": 32}, "prompt_tokens": {"distribution": "fixed", "value": 256},
          "output_tokens": {"distribution": "fixed", "value": 64}, "prefix": {"groups": 5, "tokens": 1024}})",
      R"({"arrivals": {"process": "constant", "rate_per_s": 2}, "prompt_tokens": {"value": 10}, "output_tokens": {"value": 10}})",
      R"({"arrivals": {"process": "static"}, "prompt_tokens": {"value": 10}, "output_tokens": {"value": 10}})"};
  for (const std::string& traffic : kTraffic) {
    SCOPED_TRACE(traffic);
    const std::string document =
        R"({"schema": 1, "seed": 5, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "h100-sxm"}, "workload": )" +
        traffic +
        R"(, "slo": [{"metric": "attainment", "percentile": 99, "ttft_ms": 500, "e2e_ms": 9000}]})";
    const Imported imported = Import(Text(Export(document, "bench")));
    const Json back = ResolvedImport(imported), from = JsonOf(Parsed(document).resolved_text);
    for (const char* member :
         {"arrivals", "prompt_tokens", "output_tokens", "prefix", "requests"}) {
      EXPECT_EQ(back["workload"][member], from["workload"][member]) << member;
    }
    EXPECT_EQ(back["model"]["top_p_by_default"], from["model"]["top_p_by_default"]);
    EXPECT_EQ(back["slo"], from["slo"]);
    EXPECT_EQ(back["seed"], 5);
  }
}

TEST(Export, SglangsCommand_ComesBack) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "h100-sxm"},
    "engine": {"preset": "sglang", "max_num_seqs": 99, "max_num_batched_tokens": 8192, "enable_prefix_caching": false, "max_model_len": 9999},
    "cluster": {"pools": [{"tensor_parallel": 2}]}, "workload": {"preset": "chat"}})";
  const Imported imported = Import(Text(Export(document, "sglang")));
  const Json back = ResolvedImport(imported), from = JsonOf(Parsed(document).resolved_text);
  EXPECT_EQ(back["engine"], from["engine"]) << Listed(imported);
  EXPECT_EQ(back["cluster"], from["cluster"]);
}

// Every option that its server has an argument for, or a variable of its environment.
TEST(Export, SglangsScheduler_ComesBack) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "h100-sxm"},
    "engine": {"preset": "sglang", "block_size": 16, "async_scheduling": false, "enable_chunked_prefill": false},
    "scheduler": {"policy": "sglang", "mem_fraction_static": 0.82, "max_total_tokens": 100000, "schedule_policy": "lof",
      "schedule_conservativeness": 0.5, "max_prefill_tokens": 9000, "prefill_max_requests": 7, "enable_mixed_chunk": true,
      "radix_eviction_policy": "lfu", "enable_priority_scheduling": true, "schedule_low_priority_values_first": true,
      "disable_priority_preemption": true, "priority_scheduling_preemption_threshold": 3, "retraction_policy": "priority",
      "init_new_token_ratio": 0.5, "min_new_token_ratio_factor": 0.2, "new_token_ratio_decay_steps": 50, "retract_decode_steps": 5,
      "clip_max_new_tokens": 512, "in_batch_check_threshold": 16, "in_batch_deprioritize_threshold": 8},
    "workload": {"preset": "chat"}})";
  const Imported imported = Import(Text(Export(document, "sglang")));
  const Json back = ResolvedImport(imported), from = JsonOf(Parsed(document).resolved_text);
  EXPECT_EQ(back["scheduler"], from["scheduler"]) << Listed(imported);
  for (const char* member : {"block_size", "async_scheduling", "enable_chunked_prefill"}) {
    EXPECT_EQ(back["engine"][member], from["engine"][member]) << member;
  }
}

// Of every type of weights that the model's files do not have: an option says it, or it is named.
TEST(Export, WeightsOfAnotherType_AreSaidOrNamed) {
  const auto exported = [](const std::string& model, const std::string& member, const char* to) {
    return Good(Export(R"({"schema": 1, "model": {"preset": ")" + model + "\"" + member +
                           R"(}, "hardware": {"preset": "h200-sxm"}, "workload": {"preset": "chat"},
                             "cluster": {"pools": [{"tensor_parallel": 4}]}})",
                       to));
  };
  for (const char* to : {"vllm", "sglang", "trtllm"}) {
    for (const char* type : {"fp8", "int4", "nvfp4", "mxfp4_all", "int8", "int8_w8a16", "nf4"}) {
      const Exported text =
          exported("qwen3-14b", R"(, "quantization": ")" + std::string(type) + "\"", to);
      const bool said = text.text.find("--quantization") != std::string::npos;
      EXPECT_NE(said, LeftOut(text, "model.quantization = " + std::string(type)))
          << to << " " << type;
      EXPECT_FALSE(said && std::string_view(to) == "trtllm");
    }
    EXPECT_FALSE(LeftOut(exported("gpt-oss-20b", "", to), "model.quantization")) << to;
    EXPECT_FALSE(LeftOut(exported("qwen3-14b", "", to), "model.")) << to;
    EXPECT_TRUE(LeftOut(exported("qwen3-14b", R"(, "num_hidden_layers": 20)", to),
                        "model.num_hidden_layers = 20"))
        << to;
  }
}

TEST(Export, WhatATargetCannotSay_IsNamed) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "qwen3-14b", "quantization": "int4"}, "hardware": {"preset": "h100-sxm"},
    "engine": {"preset": "vllm", "watermark": 0.02, "step_overhead_us": 1, "kv_offload": {"cpu_gib": 10, "disk_gib": 5}},
    "scheduler": {"order": "sjf"}, "cluster": {"pools": [{"replicas": 2}], "router": {"policy": "least_outstanding"}},
    "workload": {"preset": "multi-turn-chat", "classes": [{"name": "a"}]}, "measure": {"warmup_s": 5}})";
  const Result<Exported> vllm = Export(document, "vllm");
  ASSERT_TRUE(vllm.ok()) << Listed(vllm.issues());
  for (const char* what :
       {"model.quantization = int4", "engine.watermark", "engine.step_overhead_us",
        "engine.kv_offload.disk_gib", "scheduler.order = sjf", "cluster.pools.0.replicas",
        "cluster.router.policy", "workload", "measure", "hardware"}) {
    EXPECT_TRUE(LeftOut(vllm.value(), what)) << what;
  }
  const Result<Exported> bench = Export(document, "bench");
  for (const char* what :
       {"workload.prompt_tokens", "workload.sessions", "workload.classes", "engine", "measure"}) {
    EXPECT_TRUE(LeftOut(bench.value(), what)) << what;
  }
}

TEST(Export, NamesOfOthers_AreNoPartOfACommand) {
  const std::string model = JsonOf(Parsed(SmallDocument()).resolved_text)["model"].dump();
  Json document = JsonOf(SmallDocument());
  document["model"] = JsonOf(model);
  for (const char* name : {"a; rm -rf ~", "$(id)", "--help", "a\nb", ""}) {
    document["model"]["name"] = name;
    for (const ExportTarget& target : ExportTargets()) {
      const std::string text = Text(Export(document.dump(), target.name));
      if (target.name != "llm-d-router" && target.name != "autoscaler") {
        EXPECT_NE(text.find("MODEL"), std::string::npos);
      }
      EXPECT_EQ(text.find("rm -rf"), std::string::npos);
      EXPECT_EQ(text.find("$(id)"), std::string::npos);
    }
  }
}

// The note has the command that starts the router, and its import is that router.
TEST(Export, RoutersOfOthers_AreCommandsInTheNote) {
  for (const char* router :
       {R"({"policy": "cache_aware", "cache_threshold": 0.4, "eviction_interval_s": 60})",
        R"({"policy": "power_of_two"})", R"({"policy": "prefix_aware"})",
        R"({"policy": "kv_lookup", "kv_aware_threshold": 1500})",
        R"({"policy": "session_affinity"})"}) {
    Json document = JsonOf(SmallDocument());
    document["cluster"] = {{"pools", {{{"replicas", 2}}}}, {"router", JsonOf(router)}};
    const Exported exported = Good(Export(document.dump(), "vllm"));
    std::string command;
    for (const ImportNote& note : exported.left_out) {
      const std::size_t colon = note.why.find(": ");
      if (note.what.find("cluster.router.policy") == 0) command = note.why.substr(colon + 2);
    }
    const Imported back = Import("vllm serve Qwen/Qwen3-8B &\n" + command);
    const Json wanted = JsonOf(router), got = JsonOf(back.document)["cluster"]["router"];
    for (const auto& [member, value] : wanted.items()) {
      EXPECT_EQ(got.value(member, Json()), value) << command << "\n" << Listed(back);
    }
  }
}

// What the objects say is what their import takes.
TEST(Export, Autoscalers_ComeBack) {
  for (const char* scaling :
       {R"({"policy": "hpa", "metric": "outstanding", "target": 46, "down_window_s": 60,
            "up_pods": 2, "min_replicas": 1, "max_replicas": 6})",
        R"({"policy": "hpa", "metric": "kv_usage", "target": 0.7, "down_pods": 1,
            "down_percent": 0, "down_period_s": 60})",
        R"({"policy": "hpa", "metric": "waiting", "target": 3, "down_pods": 0,
            "down_percent": 0})",
        R"({"policy": "keda", "metric": "waiting", "target": 2, "min_replicas": 0,
            "cooldown_s": 600, "polling_s": 10})"}) {
    for (const char* engine : {"vllm", "sglang"}) {
      const std::string document = Changed(
          {std::string("cluster.scaling=") + scaling, std::string("engine.preset=") + engine});
      const Exported exported = Good(Export(document, "autoscaler"));
      const Imported imported = Import({{"", exported.text}}, document);
      ASSERT_TRUE(imported.issues.empty()) << exported.text << Listed(imported.issues);
      const ScalingSpec before = Parsed(document).cluster.scaling,
                        after = Parsed(imported.document).cluster.scaling;
      EXPECT_EQ(after.policy, before.policy) << exported.text;
      EXPECT_EQ(after.metric, before.metric) << exported.text;
      EXPECT_EQ(after.params, before.params) << exported.text;
      EXPECT_EQ(after.min_replicas, before.min_replicas);
      EXPECT_EQ(after.max_replicas, before.max_replicas);
    }
  }
  const Result<Exported> fixed = Export(SmallDocument(), "autoscaler");
  EXPECT_TRUE(LeftOut(fixed.value(), "cluster.scaling.policy = none"));
}

TEST(Export, PoolsThatScaleApart_HaveAnObjectEach) {
  const std::string document =
      Changed({R"(cluster.pools=[{"role":"prefill","scaling":{"max_replicas":3}},{"role":"decode",)"
               R"("scaling":{"policy":"keda","metric":"kv_usage","target":0.7}}])",
               R"(cluster.scaling={"policy":"hpa","target":5,"metric":"waiting"})"});
  const std::string text = Text(Export(document, "autoscaler"));
  EXPECT_NE(text.find(R"(kind: "HorizontalPodAutoscaler")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(name: "vllm-prefill-0")"), std::string::npos) << text;
  EXPECT_NE(text.find("maxReplicas: 3"), std::string::npos) << text;
  EXPECT_NE(text.find("---\n"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(kind: "ScaledObject")"), std::string::npos) << text;
  EXPECT_NE(text.find("kv_cache_usage_perc{pod=~"), std::string::npos) << text;
  EXPECT_NE(text.find("vllm-decode-1-.*"), std::string::npos) << text;
  // Whatever is read first.
  const std::string servers = Text(Export(document, "kubernetes"));
  const Imported imported = Import({{"", servers + "---\n" + text}}, SmallDocument());
  EXPECT_EQ(Import({{"scalers", text}, {"servers", servers}}, SmallDocument()).document,
            imported.document);
  const ClusterSpec before = Parsed(document).cluster, after = Parsed(imported.document).cluster;
  ASSERT_EQ(after.pools.size(), 2u) << imported.document;
  for (std::size_t i = 0; i < 2; ++i) {
    const ScalingSpec &was = before.ScalingOf(before.pools[i]),
                      &is = after.ScalingOf(after.pools[i]);
    EXPECT_EQ(after.pools[i].role, before.pools[i].role);
    EXPECT_EQ(is.policy, was.policy) << imported.document;
    EXPECT_EQ(is.metric, was.metric);
    EXPECT_EQ(is.max_replicas, was.max_replicas);
  }
}

TEST(Export, BadInput_IsRefused) {
  EXPECT_FALSE(Export(SmallDocument(), "helm").ok());
  EXPECT_NE(
      Listed(Export(SmallDocument(), "helm").issues()).find("allowed vllm, docker, kubernetes"),
      std::string::npos);
  EXPECT_FALSE(Export("{", "vllm").ok());
}

}  // namespace
}  // namespace servecast::testing
