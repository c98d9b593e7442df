// Servers of TensorRT-LLM as scenarios, and back: trtllm-serve, Dynamo's workers, and their YAML.
#include <string>

#include "core/import_texts.h"
#include "servecast/export.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

const char kYaml[] = R"(# of TensorRT-LLM's LLM API
tensor_parallel_size: 2
max_batch_size: 64
enable_chunked_prefill: true
disable_overlap_scheduler: true
enable_attention_dp: true
kv_cache_config:
  free_gpu_memory_fraction: 0.8
  tokens_per_block: 64
  enable_block_reuse: false
  copy_on_partial_reuse: false
scheduler_config:
  capacity_scheduler_policy: MAX_UTILIZATION
  context_chunking_policy: EQUAL_PROGRESS
batch_wait_timeout_iters: 5
batch_wait_max_tokens_ratio: 0.5
cuda_graph_config:
  enable_padding: true
)";

// What the YAML above is, whatever brought it.
void ExpectOfYaml(const Imported& imported) {
  const Json of = ResolvedImport(imported);
  ASSERT_TRUE(of.is_object()) << Listed(imported);
  EXPECT_EQ(of["engine"]["max_num_seqs"], 64);
  EXPECT_EQ(of["engine"]["block_size"], 64);
  EXPECT_EQ(of["engine"]["enable_chunked_prefill"], true);
  EXPECT_EQ(of["engine"]["enable_prefix_caching"], false);
  EXPECT_EQ(of["engine"]["async_scheduling"], false);
  EXPECT_EQ(of["cluster"]["pools"][0]["tensor_parallel"], 2);
  const Json& scheduler = of["scheduler"];
  EXPECT_EQ(scheduler["policy"], "trtllm");
  EXPECT_EQ(scheduler["free_gpu_memory_fraction"], 0.8);
  EXPECT_EQ(scheduler["copy_on_partial_reuse"], false);
  EXPECT_EQ(scheduler["capacity_scheduler_policy"], "max_utilization");
  EXPECT_EQ(scheduler["context_chunking_policy"], "equal_progress");
  EXPECT_EQ(scheduler["batch_wait_timeout_iters"], 5);
  EXPECT_EQ(scheduler["batch_wait_max_tokens_ratio"], 0.5);
  // Of a model without experts.
  EXPECT_FALSE(scheduler.value("enable_attention_dp", false));
  EXPECT_TRUE(Says(imported, "attention data parallelism")) << Listed(imported);
}

TEST(ImportTrtllm, Command_IsModelEngineAndPool) {
  const Imported imported = Import(
      "trtllm-serve meta-llama/Llama-3.1-70B-Instruct --tp_size 4 --max_batch_size 128 "
      "--max_num_tokens 4096 --max_seq_len 8192 --kv_cache_free_gpu_memory_fraction 0.85 --port 9");
  const Json of = ResolvedImport(imported);
  ASSERT_TRUE(of.is_object()) << Listed(imported);
  EXPECT_EQ(imported.kinds[0], "a command of TensorRT-LLM");
  EXPECT_EQ(of["scheduler"]["policy"], "trtllm");
  EXPECT_EQ(of["scheduler"]["free_gpu_memory_fraction"], 0.85);
  EXPECT_EQ(of["engine"]["max_num_seqs"], 128);
  EXPECT_EQ(of["engine"]["max_num_batched_tokens"], 4096);
  EXPECT_EQ(of["engine"]["max_model_len"], 8192);
  EXPECT_EQ(of["cluster"]["pools"][0]["tensor_parallel"], 4);
}

TEST(ImportTrtllm, YamlInAHeredoc_OverridesOptions) {
  ExpectOfYaml(Import("cat > /tmp/extra.yml <<'EOF'\n" + std::string(kYaml) +
                      "EOF\ntrtllm-serve meta-llama/Llama-3.1-8B-Instruct --max_batch_size 9 "
                      "--extra_llm_api_options /tmp/extra.yml\n"));
}

TEST(ImportTrtllm, YamlAlone_IsAServer) { ExpectOfYaml(Import(kYaml)); }

TEST(ImportTrtllm, YamlBesideACommand_IsOfItsServer) {
  const std::string_view base = *ScenarioPreset("llama-3.1-8b-h100-chat");
  const std::string command = "trtllm-serve meta-llama/Llama-3.1-8B-Instruct --config extra.yml";
  ExpectOfYaml(Import({{"serve.sh", command}, {"extra.yml", kYaml}}, base));
}

const char kRanksYaml[] = R"(tensor_parallel_size: 4
moe_expert_parallel_size: 4
enable_attention_dp: true
attention_dp_config:
  enable_balance: true
  timeout_iters: 60
  batching_wait_iters: 5
kv_cache_config:
  free_gpu_memory_fraction: 0.8
)";

TEST(ImportTrtllm, AttentionDataParallelism_IsRanksInLockStep) {
  const std::string file = "cat > x.yml <<'EOF'\n" + std::string(kRanksYaml) + "EOF\n";
  for (const char* command : {"trtllm-serve Qwen/Qwen3-30B-A3B --extra_llm_api_options x.yml",
                              "python3 -m dynamo.trtllm --model-path Qwen/Qwen3-30B-A3B "
                              "--extra-engine-args x.yml"}) {
    const Imported imported = Import(file + command + "\n");
    const Json of = ResolvedImport(imported);
    ASSERT_TRUE(of.is_object()) << Listed(imported);
    const Json& pool = of["cluster"]["pools"][0];
    EXPECT_EQ(pool.value("tensor_parallel", 1), 1);
    EXPECT_EQ(pool["replicas"], 4);
    EXPECT_EQ(pool["attention_data_parallel"], 4);
    EXPECT_EQ(of["engine"]["enable_expert_parallel"], true);
    EXPECT_EQ(of["scheduler"]["enable_attention_dp"], true);
    EXPECT_EQ(of["scheduler"]["attention_dp_enable_balance"], true);
    EXPECT_EQ(of["scheduler"]["attention_dp_timeout_iters"], 60);
    EXPECT_EQ(of["scheduler"]["attention_dp_batching_wait_iters"], 5);
  }
  // Not of stages, or of prefill and decode apart.
  const Imported stages =
      Import(file + "trtllm-serve Qwen/Qwen3-30B-A3B --pp_size 2 --extra_llm_api_options x.yml\n");
  const Json of = ResolvedImport(stages);
  ASSERT_TRUE(of.is_object()) << Listed(stages);
  EXPECT_EQ(of["cluster"]["pools"][0]["tensor_parallel"], 4);
  EXPECT_TRUE(Says(stages, "lock step")) << Listed(stages);
  const Imported alone =
      Import("enable_attention_dp: true\nkv_cache_config:\n  max_tokens: 9000\n");
  EXPECT_TRUE(ResolvedImport(alone).is_object()) << Listed(alone);
}

TEST(ImportTrtllm, FileThatIsNotHere_IsNamed) {
  const Imported imported =
      Import("trtllm-serve meta-llama/Llama-3.1-8B-Instruct --extra_llm_api_options other.yml");
  EXPECT_TRUE(Says(imported, "other.yml")) << Listed(imported);
}

TEST(ImportTrtllm, DynamosWorker_IsAServer) {
  const Imported imported = Import(
      "python3 -m dynamo.trtllm --model-path Qwen/Qwen3-32B --tensor-parallel-size 2 "
      "--free-gpu-memory-fraction 0.7 --kv-block-size 32");
  const Json of = ResolvedImport(imported);
  ASSERT_TRUE(of.is_object()) << Listed(imported);
  EXPECT_EQ(of["scheduler"]["free_gpu_memory_fraction"], 0.7);
  EXPECT_EQ(of["cluster"]["pools"][0]["tensor_parallel"], 2);
}

TEST(ExportTrtllm, Scheduler_ComesBack) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "qwen3-14b"}, "hardware": {"preset": "h100-sxm"},
    "engine": {"preset": "trtllm-1.2", "max_num_seqs": 99, "block_size": 64, "async_scheduling": false,
      "enable_chunked_prefill": true, "max_model_len": 9999},
    "scheduler": {"policy": "trtllm", "free_gpu_memory_fraction": 0.7, "max_tokens": 100000,
      "capacity_scheduler_policy": "max_utilization", "context_chunking_policy": "equal_progress",
      "enable_partial_reuse": false, "batch_wait_timeout_iters": 3, "batch_wait_max_tokens_ratio": 0.25},
    "cluster": {"pools": [{"tensor_parallel": 2}]}, "workload": {"preset": "chat"}})";
  const Result<Exported> written = Export(document, "trtllm");
  ASSERT_TRUE(written.ok()) << Listed(written.issues());
  const Imported imported = Import(written.value().text);
  const Json back = ResolvedImport(imported);
  const Result<Scenario> from = ParseScenario(document);
  ASSERT_TRUE(from.ok());
  const Json resolved = JsonOf(from.value().resolved_text);
  EXPECT_EQ(back["scheduler"], resolved["scheduler"]) << Listed(imported) << written.value().text;
  EXPECT_EQ(back["engine"], resolved["engine"]);
  EXPECT_EQ(back["cluster"], resolved["cluster"]);
}

TEST(ExportTrtllm, Ranks_ComeBack) {
  const std::string document =
      R"({"schema": 1, "model": {"preset": "qwen3-30b-a3b"}, "hardware": {"preset": "h100-sxm"},
    "engine": {"preset": "trtllm-1.2", "enable_expert_parallel": true},
    "scheduler": {"policy": "trtllm", "free_gpu_memory_fraction": 0.7, "enable_attention_dp": true,
      "attention_dp_config": {"enable_balance": true, "timeout_iters": 20, "batching_wait_iters": 2}},
    "cluster": {"pools": [{"replicas": 4, "attention_data_parallel": 4}]},
    "workload": {"preset": "chat"}})";
  const Result<Exported> written = Export(document, "trtllm");
  ASSERT_TRUE(written.ok()) << Listed(written.issues());
  const Imported imported = Import(written.value().text);
  const Json back = ResolvedImport(imported);
  const Result<Scenario> from = ParseScenario(document);
  ASSERT_TRUE(from.ok()) << Listed(from.issues());
  const Json resolved = JsonOf(from.value().resolved_text);
  EXPECT_EQ(back["scheduler"], resolved["scheduler"]) << Listed(imported) << written.value().text;
  EXPECT_EQ(back["engine"], resolved["engine"]);
  EXPECT_EQ(back["cluster"]["pools"], resolved["cluster"]["pools"]) << back["cluster"].dump();
}

// TensorRT-LLM's own names, in a document.
TEST(TrtllmNames, InADocument_AreTheEnginesMembers) {
  const Result<Scenario> scenario = ParseScenario(
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
    "scheduler": {"policy": "trtllm", "max_batch_size": 7, "max_num_tokens": 4096, "max_seq_len": 5000,
      "disable_overlap_scheduler": true, "capacity_scheduler_policy": "MAX_UTILIZATION",
      "kv_cache_config": {"tokens_per_block": 64, "enable_block_reuse": false, "max_tokens": 64000,
                          "enable_partial_reuse": false}}, "workload": {"preset": "chat"}})");
  ASSERT_TRUE(scenario.ok()) << Listed(scenario.issues());
  const Scenario& s = scenario.value();
  EXPECT_EQ(s.engine.max_num_seqs, 7);
  EXPECT_EQ(s.engine.max_num_batched_tokens, 4096);
  EXPECT_EQ(s.engine.max_model_len, 5000);
  EXPECT_EQ(s.engine.block_size, 64);
  EXPECT_FALSE(s.engine.async_scheduling);
  EXPECT_FALSE(s.engine.enable_prefix_caching);
  EXPECT_EQ(s.scheduler.trtllm.max_tokens, 64000);
  EXPECT_FALSE(s.scheduler.trtllm.enable_partial_reuse);
  EXPECT_EQ(s.scheduler.trtllm.capacity_scheduler_policy, TrtllmCapacity::kMaxUtilization);
}

}  // namespace
}  // namespace servecast::testing
