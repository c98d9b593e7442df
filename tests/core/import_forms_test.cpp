// The forms in which people keep their servers: manifests of operators, values of charts, configs,
// logs and files that start containers. Each text in tests/import/forms is ours, and the
// facts beside its name were read from it by hand.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/import_texts.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

struct Form {
  std::string file, kind;
  std::vector<std::pair<std::string, Json>> members;  // of the document, by pointer
  std::vector<std::string> says = {};
  bool quiet = true;  // no warnings
};

void ExpectForm(const Form& form) {
  SCOPED_TRACE(form.file);
  const Imported imported = Import(ImportFile("forms/" + form.file));
  ASSERT_FALSE(imported.document.empty()) << Listed(imported);
  EXPECT_EQ(imported.kinds[0], form.kind);
  EXPECT_TRUE(imported.issues.empty()) << Listed(imported);
  if (form.quiet) EXPECT_TRUE(imported.warnings.empty()) << Listed(imported);
  const Json document = JsonOf(imported.document);
  for (const auto& [pointer, value] : form.members) {
    const Json::json_pointer at(pointer);
    ASSERT_TRUE(document.contains(at)) << pointer << "\n" << imported.document << Listed(imported);
    EXPECT_EQ(document[at], value) << pointer << "\n" << Listed(imported);
  }
  for (const std::string& words : form.says) {
    EXPECT_TRUE(Says(imported, words)) << words << "\n" << Listed(imported);
  }
}

Json Pool(std::int64_t replicas, std::int64_t tensor = 1, const std::string& role = "") {
  Json pool = {{"replicas", replicas}};
  if (tensor > 1) pool["tensor_parallel"] = tensor;
  if (!role.empty()) pool["role"] = role;
  return pool;
}

TEST(ImportForms, Kserve) {
  ExpectForm({"llmisvc-pd.yaml",
              "KServe's LLMInferenceService, prefill",
              {{"/model/preset", "llama-3.3-70b"},
               {"/hardware/preset", "h200-sxm"},
               {"/cluster/pools/0/replicas", 3},
               {"/cluster/pools/0/tensor_parallel", 2},
               {"/cluster/pools/0/role", "prefill"},
               {"/cluster/pools/1/replicas", 1},
               {"/cluster/pools/1/tensor_parallel", 4},
               {"/cluster/pools/1/role", "decode"},
               {"/cluster/pools/1/engine/max_model_len", 16384}}});
  ExpectForm({"llmisvc-command.yaml",
              "KServe's LLMInferenceService",
              {{"/model/preset", "qwen3-8b"},
               {"/engine/preset", "vllm-0.15"},
               {"/engine/max_num_seqs", 48},
               {"/cluster/pools", Json::array({Pool(2)})}}});
  ExpectForm({"isvc-huggingface.yaml",
              "a manifest (InferenceService)",
              {{"/model/preset", "llama-3.1-8b"},
               {"/model/torch_dtype", "float16"},
               {"/hardware/preset", "l4"},
               {"/engine/max_model_len", 8192},
               {"/cluster/pools", Json::array({Pool(2)})}}});
  ExpectForm({"isvc-runtime.yaml",
              "a manifest (InferenceService)",
              {{"/model/preset", "qwen3-14b"},
               {"/engine/preset", "vllm-0.15"},
               {"/engine/max_num_seqs", 40},
               {"/engine/max_model_len", 8192},
               {"/cluster/pools", Json::array({Pool(3, 2)})}}});
  ExpectForm({"isvc-storage.yaml",
              "a manifest (InferenceService)",
              {{"/model/preset", "qwen3-14b"}, {"/cluster/pools", Json::array({Pool(1, 2)})}},
              {"maxReplicas 4: KServe's autoscaling is not read; 1 replica here"},
              false});
}

TEST(ImportForms, ProductionStack) {
  ExpectForm({"stack-values.yaml",
              "production-stack's model chat",
              {{"/model/preset", "qwen3-32b"},
               {"/hardware/preset", "l40s"},
               {"/hardware/interconnect", "pcie_host"},
               {"/engine/preset", "vllm-0.15"},
               {"/engine/enable_prefix_caching", false},
               {"/engine/max_model_len", 32768},
               {"/engine/max_num_seqs", 96},
               {"/engine/block_size", 32},
               {"/engine/gpu_memory_utilization", 0.88},
               {"/cluster/router/policy", "prefix_aware"},
               {"/cluster/pools", Json::array({Pool(4, 2)})}}});
  ExpectForm({"stack-pd.yaml",
              "production-stack's model p",
              {{"/model/preset", "llama-3.1-8b"},
               {"/engine/max_model_len", 8192},
               {"/cluster/pools", {Pool(2, 1, "prefill"), Pool(1, 1, "decode")}}}});
  ExpectForm({"stack-runtime.yaml",
              "production-stack's VLLMRuntime",
              {{"/model/preset", "mistral-7b-v0.3"},
               {"/engine/preset", "vllm-0.19"},
               {"/engine/max_model_len", 4096},
               {"/engine/max_num_seqs", 32},
               {"/engine/max_num_batched_tokens", 4096},
               {"/engine/gpu_memory_utilization", 0.7},
               {"/engine/kv_offload/cpu_gib", 20},
               {"/cluster/pools/0/replicas", 3}},
              {"lmcacheConfig: 20 GiB of KV blocks in host memory"}});
}

TEST(ImportForms, Routers) {
  const Json cache_aware = {{"policy", "cache_aware"},
                            {"cache_threshold", 0.5},
                            {"balance_abs_threshold", 32},
                            {"eviction_interval_s", 60}};
  ExpectForm({"sglang-router.sh",
              "a command of SGLang",
              {{"/cluster/router", cache_aware}, {"/cluster/pools/0/replicas", 3}}});
  ExpectForm({"sglang-router-server.sh",
              "a command of SGLang",
              {{"/cluster/router/policy", "power_of_two"}, {"/cluster/pools/0/replicas", 4}}});
  ExpectForm({"sglang-router-pd.sh",
              "a command of SGLang",
              {{"/cluster/router/policy", "cache_aware"},
               {"/cluster/decode_router/policy", "round_robin"},
               {"/cluster/pools", {Pool(1, 1, "prefill"), Pool(1, 1, "decode")}}}});
  ExpectForm({"stack-router.sh",
              "a command of vLLM",
              {{"/cluster/router", {{"policy", "kv_lookup"}, {"kv_aware_threshold", 1500}}},
               {"/cluster/pools/0/replicas", 2}}});
  for (const auto& [logic, policy] :
       {std::pair("roundrobin", "round_robin"), std::pair("session", "session_affinity"),
        std::pair("kvaware", "kv_lookup")}) {
    const Imported imported = Import(
        "servingEngineSpec:\n  modelSpec:\n  - {name: a, modelURL: Qwen/Qwen3-8B, replicaCount: "
        "2}\n"
        "routerSpec: {routingLogic: " +
        std::string(logic) + "}");
    EXPECT_EQ(ResolvedImport(imported)["cluster"]["router"]["policy"], policy) << Listed(imported);
  }
  // Without a policy SGLang's is its default; one that is not modelled is said.
  const std::string server = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B\n";
  const Imported none = Import(server + "python -m sglang_router.launch_router --worker-urls a b");
  EXPECT_EQ(ResolvedImport(none)["cluster"]["router"]["policy"], "cache_aware") << Listed(none);
  EXPECT_TRUE(Says(Import(server + "smg launch --policy bucket"),
                   "--policy bucket is no router that is modelled"));
  // vLLM balances its own ranks; those of another's balancer it does not.
  const std::string ranks = "vllm serve Qwen/Qwen3-8B --data-parallel-size 4";
  EXPECT_EQ(ResolvedImport(Import(ranks))["cluster"]["router"]["policy"], "vllm_dp");
  for (const char* others :
       {" --data-parallel-external-lb", " --port 8001 &\nvllm serve Qwen/Qwen3-8B --port 8002"}) {
    EXPECT_EQ(ResolvedImport(Import(ranks + others))["cluster"]["router"]["policy"], "round_robin");
  }
}

// Benchmarks, too, may run in containers; what starts nothing known is named.
TEST(ImportForms, ServicesThatAreNoServers) {
  const Imported imported = Import(
      "services:\n  s: {image: 'vllm/vllm-openai:v0.11.0', command: --model Qwen/Qwen3-8B}\n"
      "  b: {image: 'vllm/vllm-openai:v0.11.0', entrypoint: vllm, command: bench serve --model "
      "Qwen/Qwen3-8B --request-rate 7 --random-input-len 64}\n"
      "  p: {image: prom/prometheus}\n");
  EXPECT_EQ(ResolvedImport(imported)["workload"]["arrivals"]["rate_per_s"], 7) << Listed(imported);
  EXPECT_EQ(imported.servers, 1u);
  EXPECT_TRUE(Says(imported, "left service p: starts no server")) << Listed(imported);
}

TEST(ImportForms, Dynamo) {
  ExpectForm({"dynamo-sglang-pd.yaml",
              "Dynamo's Decode",
              {{"/model/preset", "qwen3-32b"},
               {"/hardware/preset", "h100-sxm"},
               {"/engine/preset", "sglang"},
               {"/engine/block_size", 16},
               {"/cluster/pools", {Pool(1, 4, "decode"), Pool(2, 2, "prefill")}}}});
  ExpectForm({"dynamo-planner.yaml",
              "Dynamo's Decode",
              {{"/model/preset", "qwen3-32b"},
               {"/cluster/pools", {Pool(1, 4, "decode"), Pool(2, 2, "prefill")}},
               {"/cluster/scaling/policy", "dynamo"},
               {"/cluster/scaling/optimization_target", "sla"},
               {"/cluster/scaling/enable_throughput_scaling", true},
               {"/cluster/scaling/throughput_adjustment_interval_s", 60},
               {"/cluster/scaling/itl_ms", 15.5},
               {"/cluster/scaling/max_gpu_budget", 16},
               {"/cluster/scaling/min_endpoint", 2}}});
  ExpectForm({"dynamo-trtllm.yaml",
              "Dynamo's TRTLLMWorker",
              {{"/model/preset", "llama-3.1-70b"},
               {"/engine/preset", "trtllm-1.2"},
               {"/engine/max_num_seqs", 128},
               {"/engine/max_num_batched_tokens", 4096},
               {"/cluster/pools", Json::array({Pool(3, 4)})}}});
  ExpectForm({"dynamo-script.sh",
              "a command of vLLM",
              {{"/model/preset", "qwen3-8b"},
               {"/engine/max_model_len", 8192},
               {"/cluster/pools", {Pool(1, 1, "decode"), Pool(1, 1, "prefill")}}}});
}

TEST(ImportForms, DynamosPlanner_NamesWhatItDoesNotRead) {
  const std::string graph =
      "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: a}\nspec:\n"
      "  services:\n"
      "    Worker:\n      componentType: worker\n      extraPodSpec: {mainContainer: {command: "
      "[python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-8B]}}\n"
      "    Planner:\n      componentType: planner\n      extraPodSpec: {mainContainer: ";
  const Imported shell =
      Import(graph + "{command: [sh, -c], args: [\"python3 -m dynamo.planner --ttft-ms=300\"]}}\n");
  EXPECT_EQ(JsonOf(shell.document)["cluster"]["scaling"]["ttft_ms"], 300) << Listed(shell);
  EXPECT_TRUE(Warns(shell, "optimization_target is not said")) << Listed(shell);
  const Imported unread =
      Import(graph + "{args: [--config, /etc/plan.json, --optimization-target, fast, --no-x]}}\n");
  for (const char* words : {"config /etc/plan.json", "optimization_target fast", "no_x true"}) {
    EXPECT_NE(Listed(unread).find(words), std::string::npos) << Listed(unread);
  }
}

TEST(ImportForms, RayServe) {
  ExpectForm({"ray-serve.yaml",
              "Ray Serve's LLMConfig",
              {{"/model/preset", "qwen3-32b"},
               {"/hardware/preset", "l40s"},
               {"/engine/max_model_len", 16384},
               {"/engine/enable_chunked_prefill", true},
               {"/engine/kv_cache_dtype", "fp8"},
               {"/cluster/pools", Json::array({Pool(3, 4)})}}});
  ExpectForm({"ray-service.yaml",
              "Ray Serve's LLMConfig",
              {{"/model/preset", "llama-3.1-8b"},
               {"/hardware/preset", "l4"},
               {"/engine/max_num_seqs", 100},
               {"/cluster/pools", Json::array({Pool(2)})}},
              {"autoscaling_config: Ray's autoscaler (2 to 5 replicas) is not read; 2 here"},
              false});
  ExpectForm({"ray-pd.yaml",
              "Ray Serve's LLMConfig, prefill",
              {{"/model/preset", "qwen3-8b"},
               {"/hardware/preset", "h100-sxm"},
               {"/cluster/pools", {Pool(2, 1, "prefill"), Pool(1, 2, "decode")}}}});
}

TEST(ImportForms, FilesOfOptions) {
  ExpectForm({"vllm-config.yaml",
              "a config file of vLLM",
              {{"/model/preset", "qwen3-14b"},
               {"/engine/max_num_seqs", 200},
               {"/engine/enable_prefix_caching", false},
               {"/engine/speculative", {{"method", "ngram"}, {"num_speculative_tokens", 4}}},
               {"/cluster/pools", Json::array({Pool(1, 2)})}}});
}

TEST(ImportForms, SetsOfRoles) {
  ExpectForm({"storm-service.yaml",
              "a manifest (StormService), role prefill",
              {{"/model/preset", "qwen3-14b"},
               {"/engine/preset", "vllm-0.15"},
               {"/engine/max_num_batched_tokens", 16384},
               {"/cluster/pools/0/replicas", 2},
               {"/cluster/pools/0/role", "prefill"},
               {"/cluster/pools/1/replicas", 6},
               {"/cluster/pools/1/tensor_parallel", 2},
               {"/cluster/pools/1/role", "decode"}},
              {"2 sets of its roles"}});
  ExpectForm({"disaggregated-set.yaml",
              "a manifest (DisaggregatedSet), role prefill",
              {{"/model/preset", "qwen3-30b-a3b"},
               {"/hardware/preset", "h200-sxm"},
               {"/cluster/pools/0/replicas", 2},
               {"/cluster/pools/1/replicas", 4},
               {"/cluster/pools/1/attention_data_parallel", 4},
               {"/cluster/pools/1/engine/enable_expert_parallel", true}}});
}

TEST(ImportForms, Scalers) {
  ExpectForm({"hpa.yaml",
              "a manifest (Deployment)",
              {{"/cluster/pools", Json::array({Pool(3)})},
               {"/cluster/scaling/policy", "hpa"},
               {"/cluster/scaling/metric", "waiting"},
               {"/cluster/scaling/target", 8},
               {"/cluster/scaling/min_replicas", 2},
               {"/cluster/scaling/max_replicas", 6},
               {"/cluster/scaling/down_window_s", 120},
               {"/cluster/scaling/down_pods", 1},
               {"/cluster/scaling/down_percent", 0},
               {"/cluster/scaling/down_period_s", 60}}});
  ExpectForm({"keda.yaml",
              "a manifest (Deployment)",
              {{"/cluster/scaling/policy", "keda"},
               {"/cluster/scaling/metric", "outstanding"},
               {"/cluster/scaling/target", 60},
               {"/cluster/scaling/min_replicas", 0},
               {"/cluster/scaling/max_replicas", 4},
               {"/cluster/scaling/polling_s", 10},
               {"/cluster/scaling/cooldown_s", 600}},
              {"ScaledObject: scaling by cron is left out"},
              false});
}

TEST(ImportForms, LogsAndPrintedResults) {
  ExpectForm({"vllm-start.log",
              "a log of vLLM",
              {{"/model/preset", "qwen3-32b"},
               {"/engine/preset", "vllm-0.15"},
               {"/engine/max_model_len", 40960},
               {"/engine/enable_prefix_caching", false},
               {"/engine/gpu_memory_utilization", 0.93},
               {"/engine/speculative", {{"method", "ngram"}, {"num_speculative_tokens", 3}}},
               {"/cluster/pools", Json::array({Pool(1, 2)})}},
              {"room for 412,304 tokens", "at most 40 running and 3 waiting",
               "running 38, waiting 0, KV cache in use 58 %, 1,702 output tokens/s",
               "the log says no rate"},
              false});
  ExpectForm({"sglang-start.log",
              "a log of SGLang",
              {{"/model/preset", "llama-3.1-8b"},
               {"/engine/max_num_seqs", 128},
               {"/engine/max_num_batched_tokens", 4096},
               {"/scheduler/mem_fraction_static", 0.82},
               {"/scheduler/schedule_policy", "lpm"},
               {"/cluster/pools", Json::array({Pool(1, 2)})}},
              {"room for 441,812 tokens", "running 17, waiting 0"},
              false});
  ExpectForm({"bench-printed.txt",
              "a command of vLLM",
              {{"/engine/max_num_seqs", 64},
               {"/workload/requests", 400},
               {"/workload/arrivals", {{"process", "poisson"}, {"rate_per_s", 8}}},
               {"/workload/prompt_tokens", {{"distribution", "fixed"}, {"value", 512}}},
               {"/workload/output_tokens", {{"distribution", "fixed"}, {"value", 256}}}},
              {"measured: TTFT mean 61.2, median 55.1, p99 141 ms; TPOT mean 12.3, p99 15 ms",
               "7.26 requests/s"}});
  ExpectForm({"bench-printed-alone.txt",
              "what sglang.bench_serving printed",
              {{"/workload/requests", 640},
               {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 32}}},
               {"/workload/prompt_tokens/value", 1024},
               {"/workload/output_tokens/value", 256}},
              {"E2E mean 5,010 ms"}});
}

TEST(ImportForms, FilesThatStartContainers) {
  ExpectForm({"Dockerfile",
              "a Dockerfile",
              {{"/model/preset", "qwen3-32b"},
               {"/engine/preset", "vllm-0.15"},
               {"/engine/max_num_seqs", 48},
               {"/cluster/pools", Json::array({Pool(1, 2)})}}});
  ExpectForm({"vllm.service",
              "a command of vLLM",
              {{"/model/preset", "qwen3-8b"},
               {"/engine/max_num_seqs", 72},
               {"/engine/max_model_len", 8192}}});
  ExpectForm({"vllm.container",
              "a quadlet of Podman",
              {{"/model/preset", "qwen3-14b"},
               {"/engine/preset", "vllm-0.19"},
               {"/engine/max_model_len", 8192},
               {"/cluster/pools", Json::array({Pool(1, 2)})}}});
  ExpectForm({"powershell.ps1",
              "docker run of vLLM",
              {{"/model/preset", "qwen3-8b"},
               {"/engine/preset", "vllm-0.15"},
               {"/engine/max_num_seqs", 40}}});
  ExpectForm({"cmd.bat",
              "docker run of vLLM",
              {{"/model/preset", "qwen3-14b"}, {"/engine/max_num_seqs", 24}}});
}

TEST(ImportForms, OthersWaysToSayAServer) {
  ExpectForm({"kaito.yaml",
              "KAITO's Workspace",
              {{"/model/preset", "phi-4"},
               {"/hardware/preset", "a100-pcie-80gb"},
               {"/engine/max_model_len", 12288},
               {"/engine/gpu_memory_utilization", 0.9},
               {"/cluster/pools", Json::array({Pool(1, 2)})}}});
  ExpectForm({"ray-config.py",
              "Ray Serve's LLMConfig",
              {{"/model/preset", "qwen3-8b"},
               {"/hardware/preset", "l4"},
               {"/engine/max_model_len", 4096},
               {"/cluster/pools", Json::array({Pool(2, 2)})}}});
  ExpectForm({"trtllm-disaggregated.yaml",
              "context_servers of TensorRT-LLM",
              {{"/model/preset", "llama-3.1-8b"},
               {"/engine/max_num_batched_tokens", 8192},
               {"/cluster/pools/0/replicas", 2},
               {"/cluster/pools/0/role", "prefill"},
               {"/cluster/pools/1/tensor_parallel", 2},
               {"/cluster/pools/1/role", "decode"},
               {"/cluster/pools/1/engine/max_num_seqs", 64}}});
  ExpectForm({"srt-slurm.yaml",
              "srt-slurm's prefill",
              {{"/model/preset", "deepseek-v3"},
               {"/hardware/preset", "gb200"},
               {"/engine/max_num_batched_tokens", 16384},
               {"/cluster/pools/0/replicas", 2},
               {"/cluster/pools/0/tensor_parallel", 8},
               {"/cluster/pools/0/role", "prefill"},
               {"/cluster/pools/1/tensor_parallel", 16},
               {"/cluster/pools/1/role", "decode"},
               {"/cluster/pools/1/engine/max_num_seqs", 512},
               {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 128}}},
               {"/workload/prompt_tokens/value", 1024}},
              {"benchmark.concurrencies is 128 here, the first of 128x256"},
              false});
  ExpectForm({"stack-keda.yaml",
              "production-stack's model a",
              {{"/cluster/scaling/policy", "keda"},
               {"/cluster/scaling/metric", "waiting"},
               {"/cluster/scaling/target", 5},
               {"/cluster/scaling/max_replicas", 3},
               {"/cluster/scaling/polling_s", 20}}});
}

TEST(ImportForms, CommandsOfBenchmarks) {
  const auto fixed = [](std::int64_t tokens) {
    return Json{{"distribution", "fixed"}, {"value", tokens}};
  };
  ExpectForm(
      {"sglang-bench.sh",
       "a command of SGLang",
       {{"/workload/requests", 300},
        {"/workload/arrivals", {{"process", "poisson"}, {"rate_per_s", 12}}},
        {"/workload/prompt_tokens", {{"distribution", "uniform"}, {"min", 500}, {"max", 1000}}},
        {"/workload/output_tokens", {{"distribution", "uniform"}, {"min", 200}, {"max", 400}}}}});
  ExpectForm({"sglang-bench-prefix.sh",
              "sglang.bench_serving",
              {{"/workload/requests", 200},
               {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 24}}},
               {"/workload/prefix", {{"groups", 8}, {"tokens", 1500}}},
               {"/workload/prompt_tokens", fixed(100)},
               {"/workload/output_tokens", fixed(80)}}});
  ExpectForm({"guidellm.sh",
              "guidellm benchmark",
              {{"/workload/requests", 320},
               {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 16}}},
               {"/workload/prompt_tokens",
                {{"distribution", "normal"},
                 {"mean", 1024},
                 {"stddev", 128},
                 {"min", 512},
                 {"max", 2048}}},
               {"/workload/output_tokens", fixed(200)}}});
  ExpectForm({"guidellm-constant.sh",
              "guidellm benchmark",
              {{"/workload/requests", 300},
               {"/workload/arrivals", {{"process", "constant"}, {"rate_per_s", 5}}},
               {"/workload/prompt_tokens", fixed(256)}},
              {"--rate is 5 here, the first of 5,10,20"},
              false});
  ExpectForm(
      {"aiperf.sh",
       "aiperf profile",
       {{"/model/preset", "qwen3-14b"},
        {"/workload/requests", 400},
        {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 20}}},
        {"/workload/prompt_tokens", {{"distribution", "normal"}, {"mean", 800}, {"stddev", 100}}},
        {"/workload/output_tokens", fixed(150)}}});
  ExpectForm({"genai-perf.sh",
              "aiperf profile",
              {{"/workload/requests", 200},
               {"/workload/arrivals", {{"process", "poisson"}, {"rate_per_s", 4}}},
               {"/workload/prompt_tokens", fixed(300)},
               {"/workload/output_tokens", fixed(100)}}});
  ExpectForm({"inference-perf.yaml",
              "a config of inference-perf",
              {{"/model/preset", "qwen3-8b"},
               {"/workload/requests", 300},
               {"/workload/arrivals/process", "poisson"},
               {"/workload/arrivals/rate_factors", {{0, 2}, {60, 6}}},
               {"/workload/prompt_tokens/mean", 500},
               {"/workload/prompt_tokens/max", 900},
               {"/workload/output_tokens", fixed(50)}}});
}

TEST(ImportForms, ReportsOfBenchmarks) {
  ExpectForm({"aiperf.json",
              "a report of aiperf",
              {{"/model/preset", "qwen3-8b"},
               {"/workload/requests", 500},
               {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 40}}},
               {"/workload/prompt_tokens/stddev", 20},
               {"/workload/output_tokens/value", 120}},
              {"TTFT mean 80.5, median 70, p99 210 ms", "6.2 requests/s"}});
  ExpectForm({"guidellm.json",
              "a report of guidellm",
              {{"/workload/requests", 210},
               {"/workload/arrivals", {{"process", "poisson"}, {"rate_per_s", 3.5}}},
               {"/workload/prompt_tokens/value", 512},
               {"/workload/output_tokens/value", 128}},
              {"TTFT mean 66, median 60, p99 150 ms; TPOT mean 9 ms"}});
  ExpectForm({"sglang-results.jsonl",
              "a result of sglang.bench_serving",
              {{"/workload/requests", 160},
               {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 16}}},
               {"/workload/prompt_tokens/value", 100}},
              {"2 results, a line each: the last counts here", "E2E mean 1,150 ms"},
              false});
}

// One of them is meant, and nobody says which.
TEST(ImportForms, AlternativesAndLoops_AskWhichIsMeant) {
  ExpectForm({"alternatives.sh",
              "a command of vLLM",
              {{"/engine/max_model_len", 8192}, {"/cluster/pools", Json::array({Pool(1)})}},
              {"2 more commands start another server on the same port"},
              false});
  ExpectForm({"compose-profiles.yaml",
              "a Compose service (large)",
              {{"/model/preset", "qwen3-32b"}, {"/cluster/pools", Json::array({Pool(1, 4)})}},
              {"Compose starts one profile at a time: profile large here, without small"},
              false});
  ExpectForm({"branches.sh",
              "a command of vLLM",
              {{"/cluster/pools", Json::array({Pool(1, 8)})},
               {"/workload/requests", 500},
               {"/workload/prompt_tokens/median", 120},
               {"/workload/output_tokens/median", 126}},
              {"TP is 8 here, the last of what branches set (2, 8): which is meant?",
               "ShareGPT: prompts of 215 and answers of 198 tokens in the mean are published"},
              false});
  const Imported fleet = Import(ImportFile("forms/fleet.sh"));
  EXPECT_TRUE(fleet.warnings.empty()) << Listed(fleet);
  EXPECT_EQ(JsonOf(fleet.document)["cluster"]["pools"][0]["replicas"], 2);
  EXPECT_EQ(JsonOf(fleet.document)["cluster"]["pools"].size(), 2u);
  const Imported loop = Import(
      "for C in 4 16 64; do vllm bench serve --model Qwen/Qwen3-8B --random-input-len 9 "
      "--max-concurrency $C --num-prompts $((C*20)); done");
  EXPECT_TRUE(
      Says(Import("for C in 4 16; do vllm bench serve --model Qwen/Qwen3-8B --request-rate inf "
                  "--max-concurrency $C; done"),
           "--over workload.arrivals.concurrency=4,16"));
  EXPECT_TRUE(
      Says(Import("for C in 4 16; do vllm bench serve --model Qwen/Qwen3-8B --request-rate 9 "
                  "--max-concurrency $C; done"),
           "--over workload.arrivals.max_concurrency=4,16"));
  const Json workload = JsonOf(loop.document)["workload"];
  EXPECT_EQ(workload["arrivals"]["concurrency"], 4) << Listed(loop);
  // Enough for every step of the sweep.
  EXPECT_EQ(workload["requests"], 1280);
  ASSERT_EQ(loop.warnings.size(), 2u) << Listed(loop);
  EXPECT_EQ(
      loop.warnings[0],
      "C is 4 here, the first of 4, 16, 64 in a loop: which of these is meant? servecast sweep "
      "FILE --over workload.arrivals.concurrency=4,16,64 runs these");
}

// Broken, huge and nested beyond reason: an answer within a second.
// Facts of texts, read by hand from the texts: tests/import/forms.json. What a document leaves to
// its presets counts as these have it.
TEST(ImportForms, TextsWithFacts_AreAsTheirReaderHasThem) {
  const Json facts = JsonOf(ImportFile("forms.json"));
  EXPECT_GE(facts.size(), 17u);
  for (const auto& [file, members] : facts.items()) {
    SCOPED_TRACE(file);
    const Imported imported = Import(ImportFile("forms/" + file));
    ASSERT_FALSE(imported.document.empty()) << Listed(imported);
    const Json document = JsonOf(imported.document), resolved = ResolvedImport(imported);
    for (const auto& [pointer, value] : members.items()) {
      const Json::json_pointer at(pointer);
      const Json& of = document.contains(at) ? document : resolved;
      ASSERT_TRUE(of.contains(at)) << pointer << "\n" << Listed(imported);
      EXPECT_EQ(of[at], value) << pointer << "\n" << Listed(imported);
    }
  }
}

// Decoders that pool what they read are planned with one token; encoders are refused by name.
TEST(ImportForms, PoolingModels_AreOnePassOrRefused) {
  const std::string sizes =
      R"("hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,"num_key_value_heads":8,)"
      R"("head_dim":128,"intermediate_size":12288,"vocab_size":151665,"max_position_embeddings":40960})";
  for (const char* architecture :
       {"Qwen3Model", "Qwen3ForSequenceClassification", "Qwen3ForRewardModel"}) {
    const Imported imported = Import(std::string(R"({"architectures":[")") + architecture +
                                     R"("],"model_type":"qwen3",)" + sizes);
    ASSERT_FALSE(imported.document.empty()) << architecture;
    EXPECT_EQ(JsonOf(imported.document)["workload"]["output_tokens"]["value"], 1);
    ASSERT_EQ(imported.warnings.size(), 1u) << Listed(imported);
    EXPECT_NE(imported.warnings[0].find("decodes nothing"), std::string::npos);
  }
  for (const char* both_ways :
       {R"({"architectures":["XLMRobertaModel"],"model_type":"xlm-roberta",)",
        R"({"architectures":["Qwen3Model"],"model_type":"qwen3","is_causal":false,)"}) {
    const Imported imported = Import(both_ways + sizes);
    EXPECT_TRUE(imported.document.empty());
    ASSERT_EQ(imported.issues.size(), 1u);
    EXPECT_NE(imported.issues[0].message.find("in both directions"), std::string::npos)
        << imported.issues[0].message;
  }
}

// A line that does more than set a variable stays; a note behind a value is none of it.
TEST(ImportForms, VariablesOfWindows_TakeNoCommandAway) {
  for (const char* text : {"$ CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --max-num-seqs 32",
                           "set HF_HOME=D:\\hf && vllm serve Qwen/Qwen3-8B --max-num-seqs 32",
                           "$env:VLLM_USE_V1 = \"1\"; vllm serve Qwen/Qwen3-8B --max-num-seqs 32",
                           "$Seats = 32   # seats\n$Model = 'Qwen/Qwen3-8B';\n"
                           "vllm serve $Model --max-num-seqs $Seats"}) {
    const Imported imported = Import(std::string(text));
    ASSERT_FALSE(imported.document.empty()) << text;
    const Json document = JsonOf(imported.document);
    EXPECT_EQ(document["engine"]["max_num_seqs"], 32) << text << Listed(imported);
    EXPECT_EQ(document["model"]["preset"], "qwen3-8b") << text << Listed(imported);
  }
}

// A wrapper's own name says nothing of the language model in it.
TEST(ImportForms, WrappersThatGenerate_DoNotPool) {
  const std::string inner =
      R"({"architectures":["Qwen2ForCausalLM"],"model_type":"qwen2","hidden_size":3584,)"
      R"("num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,)"
      R"("intermediate_size":18944,"vocab_size":152064,"max_position_embeddings":32768})";
  for (const char* architecture : {"InternVLChatModel", "Qwen2_5OmniModel"}) {
    const Imported imported =
        Import(std::string(R"({"architectures":[")") + architecture +
               R"("],"model_type":"internvl_chat","llm_config":)" + inner + "}");
    ASSERT_FALSE(imported.document.empty()) << Listed(imported);
    for (const std::string& warning : imported.warnings) {
      EXPECT_EQ(warning.find("decodes nothing"), std::string::npos) << warning;
    }
  }
}

// Whatever program sends them; and what else they name has no effect on times.
TEST(ImportForms, BenchmarksOfEmbeddings_AreOnePass) {
  for (const char* command :
       {"python3 -m sglang.bench_serving --backend sglang-embedding --model Qwen/Qwen3-8B "
        "--dataset-name random --random-input-len 600 --request-rate 5",
        "aiperf profile --model Qwen/Qwen3-8B --endpoint-type embeddings --isl 600 "
        "--isl-stddev 0 --request-rate 5",
        "genai-perf profile -m Qwen/Qwen3-8B --endpoint-type rankings --isl 600 --request-rate 5",
        "aiperf profile -m Qwen/Qwen3-8B --endpoint /v1/embeddings --isl 600 --osl 9 "
        "--request-rate 5",
        "guidellm benchmark --target http://x --model Qwen/Qwen3-8B --request-type embeddings "
        "--rate-type constant --rate 5 --data prompt_tokens=600"}) {
    const Imported imported = Import(std::string(command));
    ASSERT_FALSE(imported.document.empty()) << command << Listed(imported);
    const Json workload = JsonOf(imported.document)["workload"];
    EXPECT_EQ(workload["output_tokens"]["value"], 1) << command << Listed(imported);
    EXPECT_EQ(workload["arrivals"]["rate_per_s"], 5) << command;
    const Json& prompt = workload["prompt_tokens"];
    EXPECT_EQ(prompt.contains("value") ? prompt["value"] : prompt["max"], 600) << command;
    EXPECT_TRUE(std::any_of(imported.warnings.begin(), imported.warnings.end(),
                            [](const std::string& warning) {
                              return warning.find("decodes nothing") != std::string::npos;
                            }))
        << command << Listed(imported);
  }
  for (const char* command :
       {"python3 -m sglang.bench_serving --backend sglang-oai --model Qwen/Qwen3-8B",
        "aiperf profile --model Qwen/Qwen3-8B --endpoint-type chat --isl 600 --osl 40",
        "vllm serve Qwen/Qwen3-Embedding-8B --runner generate"}) {
    const Imported imported = Import(std::string(command));
    ASSERT_FALSE(imported.document.empty()) << command << Listed(imported);
    for (const std::string& warning : imported.warnings) {
      EXPECT_EQ(warning.find("decodes nothing"), std::string::npos) << command << warning;
    }
  }
}

// No target and no class asks for tokens that are not made.
TEST(ImportForms, PoolingModels_KeepNoTargetOfTokens) {
  const Imported goodput =
      Import(std::string("vllm bench serve --backend openai-embeddings --model Qwen/Qwen3-8B "
                         "--request-rate 5 --goodput tpot:50"));
  EXPECT_TRUE(goodput.issues.empty()) << Listed(goodput);
  EXPECT_TRUE(JsonOf(goodput.document)["slo"].empty());
  const Imported classes = Import(
      {{"", "vllm serve Qwen/Qwen3-Embedding-8B"}},
      R"({"schema":1,"model":{"preset":"qwen3-8b"},"hardware":{"preset":"h100-sxm"},)"
      R"("workload":{"preset":"chat","arrivals":{"rate_per_s":5},"requests":100,"classes":)"
      R"([{"name":"a","output_tokens":{"distribution":"fixed","value":300}},{"name":"b"}]}})");
  EXPECT_EQ(JsonOf(classes.document)["workload"]["classes"],
            Json::parse(R"([{"name":"a"},{"name":"b"}])"))
      << Listed(classes);
}

// The first row of a sweep is the scenario, the others are axes of servecast sweep.
TEST(ImportForms, Sweeps_AreTheirFirstRowAndTheAxesOfAll) {
  ExpectForm({"bench-sweep.sh",
              "vllm bench sweep",
              {{"/model/preset", "qwen3-8b"},
               {"/engine/max_num_seqs", 64},
               {"/engine/max_num_batched_tokens", 4096},
               {"/engine/enable_prefix_caching", false},
               {"/workload/requests", 400},
               {"/workload/prompt_tokens", {{"distribution", "fixed"}, {"value", 1500}}},
               {"/workload/output_tokens", {{"distribution", "fixed"}, {"value", 100}}},
               {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 8}}}},
              {"max_num_seqs is 64 here, the first of 64, 256 in vllm bench sweep: servecast sweep "
               "FILE --over engine.max_num_seqs=64,256 runs these",
               "--over workload.arrivals.concurrency=8,32 runs these"},
              false});
  const std::string base(*ScenarioPreset("llama-3.1-8b-h100-chat"));
  const std::string command = ImportFile("forms/bench-sweep-sla.sh");
  // Files of rows, beside the command in any order.
  const Imported sla =
      Import({{"tp.json", R"({"one": {"tensor_parallel_size": 2, "max_num_seqs": 32},
                       "two": {"tensor_parallel_size": 4, "max_num_seqs": 64}})"},
              {"run.sh", command},
              {"configs/sla.json",
               R"([{"p99_ttft_ms": "<=300", "median_tpot_ms": "<40", "mean_e2el_ms": "<=9"}])"}},
             base);
  const Json document = JsonOf(sla.document);
  EXPECT_EQ(document["cluster"]["pools"], Json::array({Pool(1, 2)})) << Listed(sla);
  EXPECT_EQ(document["engine"]["max_num_seqs"], 32);
  EXPECT_EQ(document["workload"]["arrivals"]["rate_per_s"], 4);
  EXPECT_EQ(document["slo"],
            Json::array({{{"metric", "tpot"}, {"percentile", 50}, {"limit_ms", 40}},
                         {{"metric", "ttft"}, {"percentile", 99}, {"limit_ms", 300}}}))
      << document;
  for (const char* words :
       {"--over cluster.pools.0.tensor_parallel=2,4 runs these", "2 rows of 4 combinations",
        "--link-vars max_num_seqs=max_concurrency: only rows where both are equal run",
        "mean_e2el_ms <=9: not a target here", "servecast plan max-rate"}) {
    EXPECT_TRUE(Says(sla, words)) << words << "\n" << Listed(sla);
  }
  EXPECT_FALSE(Says(sla, "nothing that can be imported")) << Listed(sla);
  const Imported alone = Import(command);
  EXPECT_TRUE(Says(alone, "--serve-params tp.json: the file is not here")) << Listed(alone);
  EXPECT_EQ(JsonOf(alone.document)["workload"]["arrivals"]["rate_per_s"], 4);
}

TEST(ImportForms, SweepsThatCannotBeTyped_AskWhichIsMeant) {
  const auto sweep = [](const std::string& serve, const std::string& params) {
    return Import("vllm bench sweep serve --serve-cmd '" + serve +
                  "' --bench-cmd 'vllm bench serve --model Qwen/Qwen3-8B --num-prompts 10' "
                  "--bench-params '" +
                  params + "'");
  };
  const Imported rates =
      sweep("vllm serve Qwen/Qwen3-8B", R"([{"request_rate": "inf"}, {"request_rate": 4}])");
  EXPECT_TRUE(Says(rates, "which of these is meant?")) << Listed(rates);
  EXPECT_FALSE(Says(rates, "--over")) << Listed(rates);
  const Imported inner = sweep(R"(bash -lc "vllm serve Qwen/Qwen3-8B --max-num-seqs 16")",
                               R"([{"max_concurrency": 2}])");
  EXPECT_EQ(JsonOf(inner.document)["engine"]["max_num_seqs"], 16) << Listed(inner);
  const Imported broken = sweep("vllm serve Qwen/Qwen3-8B", "[");
  EXPECT_TRUE(Says(broken, "no list of objects")) << Listed(broken);
  // A container's first line alone is no Dockerfile.
  const Imported docker = Import(
      "FROM the docs:\n\ndocker run --gpus all vllm/vllm-openai --model Qwen/Qwen3-8B "
      "--tensor-parallel-size 2\n");
  EXPECT_EQ(JsonOf(docker.document)["cluster"]["pools"], Json::array({Pool(1, 2)}))
      << Listed(docker);
}

TEST(ImportForms, HostileForms_HaveAnAnswerInTime) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* name : {"llmisvc-pd.yaml", "stack-values.yaml", "dynamo-sglang-pd.yaml",
                           "ray-service.yaml", "storm-service.yaml", "keda.yaml", "vllm-start.log",
                           "bench-printed.txt", "vllm-config.yaml", "Dockerfile"}) {
    const std::string text = ImportFile(std::string("forms/") + name);
    for (std::size_t cut = 0; cut < text.size(); cut += 1 + text.size() / 12) {
      std::string changed = text;
      changed[cut] = static_cast<char>(cut * 41 + 3);
      for (const std::string& each : {text.substr(0, cut), text.substr(cut), changed}) {
        const Imported imported = Import(each);
        EXPECT_TRUE(!imported.document.empty() || !imported.issues.empty());
      }
    }
  }
  const std::string many(2'000'000, '(');
  for (const std::string& text :
       {"non-default args: {" + many, "ServerArgs(" + many, "FROM a\n" + many, "[Service]\n" + many,
        "Serving Benchmark Result" + many, "for C in " + many + "\ndo vllm serve $C",
        "model: a\nmax-model-len: " + many,
        "kind: RayService\nspec: {serveConfigV2: '" + many + "'}",
        "kind: StormService\nspec:\n  roles:\n" + std::string(100'000, '-')}) {
    const Imported imported = Import(text);
    EXPECT_TRUE(!imported.document.empty() || !imported.issues.empty());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took.count(), 30.0);  // sanitizers take ten times as long
}

}  // namespace
}  // namespace servecast::testing
