// Scenarios from what other programs write: each kind of text, several together, and what is not
// understood.
#include <string>
#include <utility>
#include <vector>

#include "core/import_texts.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

struct Expected {
  std::string file, kind;
  // Of the document, by pointer.
  std::vector<std::pair<std::string, Json>> members;
  std::vector<std::string> says = {};
};

void Expect(const Expected& expected) {
  SCOPED_TRACE(expected.file);
  const Imported imported = Import(ImportFile("texts/" + expected.file));
  ASSERT_FALSE(imported.document.empty()) << Listed(imported);
  EXPECT_EQ(imported.kinds[0], expected.kind);
  EXPECT_TRUE(imported.issues.empty()) << Listed(imported);
  const Json document = JsonOf(imported.document);
  for (const auto& [pointer, value] : expected.members) {
    const Json::json_pointer at(pointer);
    ASSERT_TRUE(document.contains(at)) << pointer << "\n" << imported.document;
    EXPECT_EQ(document[at], value) << pointer;
  }
  for (const std::string& words : expected.says)
    EXPECT_TRUE(Says(imported, words)) << words << "\n" << Listed(imported);
}

TEST(Import, CommandsOfVllm_AreModelEngineAndPools) {
  const std::string kind = "a command of vLLM";
  const Expected kCommands[] = {
      {"vllm-llama-8b.sh",
       kind,
       {{"/model/preset", "llama-3.1-8b"},
        {"/engine/preset", "vllm"},
        {"/engine/max_model_len", 8192},
        {"/engine/gpu_memory_utilization", 0.92},
        {"/engine/max_num_seqs", 128},
        {"/engine/max_num_batched_tokens", 8192}},
       {"a server of vLLM starts so on h100-sxm"}},
      {"vllm-llama-70b-fp8.sh",
       kind,
       {{"/model", {{"preset", "llama-3.1-70b"}, {"quantization", "fp8"}}},
        {"/cluster/pools/0/tensor_parallel", 4},
        {"/engine/kv_cache_dtype", "fp8"},
        {"/engine/max_num_batched_tokens", 16384},
        {"/engine/enable_prefix_caching", false}}},
      {"vllm-api-server-mixtral.sh",
       kind,
       {{"/model/preset", "mixtral-8x7b"},
        {"/model/torch_dtype", "float16"},
        {"/cluster/pools/0/tensor_parallel", 2}},
       {"--swap-space 16"}},
      {"vllm-deepseek-ranks.sh",
       kind,
       {{"/model/preset", "deepseek-v3"},
        {"/engine/enable_expert_parallel", true},
        {"/cluster/pools/0/replicas", 8},
        {"/cluster/pools/0/attention_data_parallel", 8}}},
      {"vllm-gpt-oss.sh",
       kind,
       {{"/model/preset", "gpt-oss-120b"},
        {"/engine/async_scheduling", true},
        {"/engine/max_num_seqs", 512},
        {"/engine/max_num_batched_tokens", 8192}},
       {"--compilation-config"}},
      {"vllm-qwen3-moe.sh",
       kind,
       {{"/model/preset", "qwen3-30b-a3b"},
        {"/engine/enable_expert_parallel", true},
        {"/engine/cuda_graphs", "eager"},
        {"/engine/speculative", {{"method", "ngram"}, {"num_speculative_tokens", 5}}}},
       {"engine.launch_eager_us", "acceptance_length"}},
      {"vllm-lora.sh",
       kind,
       {{"/model/preset", "llama-3.1-8b"},
        {"/engine/max_loras", 4},
        {"/engine/max_lora_rank", 32},
        {"/workload/adapters/count", 3}},
       {"--max-cpu-loras 16", "workload.adapters.theta"}},
      {"vllm-awq.sh",
       kind,
       {{"/model/preset", "qwen2.5-72b"},
        {"/model/quantization", "int4"},
        {"/cluster/pools/0/tensor_parallel", 2},
        {"/cluster/pools/0/pipeline_parallel", 2},
        {"/engine/block_size", 32},
        {"/scheduler/order", "priority_fcfs"}}},
      {"vllm-no-peers.sh",
       kind,
       {{"/model/preset", "qwen3-32b"},
        {"/cluster/pools/0/tensor_parallel", 2},
        {"/hardware/interconnect", "pcie_host"}}},
      {"vllm-variables.sh",
       kind,
       {{"/model/preset", "llama-3.3-70b"},
        {"/cluster/pools/0/tensor_parallel", 8},
        {"/engine/max_model_len", 16384}},
       {"left --max-num-seqs $SEATS"}},
      {"vllm-prefill-decode.sh",
       kind,
       {{"/model/preset", "qwen3-8b"},
        {"/cluster/pools",
         {{{"role", "prefill"}, {"replicas", 1}},
          {{"role", "decode"}, {"replicas", 1}, {"tensor_parallel", 2}}}}}},
  };
  for (const Expected& each : kCommands) Expect(each);
}

TEST(Import, ScriptsAndSeveralNodes_AreTheirServers) {
  Expect({"vllm-two-nodes.sh",
          "a command of vLLM",
          {{"/model/preset", "deepseek-v3"},
           {"/cluster/pools", {{{"replicas", 16}, {"attention_data_parallel", 16}}}}},
          {"--headless: a node of the server above, no server of its own"}});
  Expect({"vllm-arrays.sh",
          "a command of vLLM",
          {{"/cluster/pools/0/tensor_parallel", 2},
           {"/engine/max_num_seqs", 96},
           {"/engine/enable_prefix_caching", false}},
          {"left $MORE: the text does not say what that is"}});
  Expect({"vllm-dotted.sh",
          "a command of vLLM",
          {{"/engine/speculative", {{"method", "mtp"}, {"num_speculative_tokens", 2}}}}});
  Expect({"sglang-two-nodes.sh",
          "a command of SGLang",
          {{"/model/quantization", "fp8"},
           {"/cluster/pools", {{{"replicas", 1}, {"tensor_parallel", 16}}}}},
          {"--node-rank 1: a node of the server above"}});
  Expect({"sglang-prefill-decode.sh",
          "a command of SGLang",
          {{"/engine/preset", "sglang"},
           {"/scheduler/policy", "vllm"},
           {"/engine/max_num_batched_tokens", 4096},
           {"/cluster/pools/0/role", "prefill"},
           {"/cluster/pools/1/role", "decode"},
           {"/cluster/pools/1/engine/max_num_batched_tokens", 8192}},
          {"vLLM's is in its place",
           "left --chunked-prefill-size $CHUNK: the text does not say what that is; "
           "max_num_batched_tokens is 8192 here"}});
  Expect({"kubernetes-environment.yaml",
          "a manifest (Deployment)",
          {{"/model/preset", "qwen3-8b"},
           {"/hardware/preset", "a100-sxm-40gb"},
           {"/engine/preset", "vllm-0.19"},
           {"/engine/max_num_seqs", 96},
           {"/engine/max_model_len", 16384},
           {"/cluster/pools/0", {{"replicas", 3}, {"tensor_parallel", 2}}}}});
  Expect({"llm-d-script.yaml",
          "llm-d's decode",
          {{"/model/preset", "deepseek-v3"},
           {"/hardware/preset", "h200-sxm"},
           {"/engine/preset", "vllm"},
           {"/engine/max_num_seqs", 128},
           {"/cluster/pools/0/replicas", 16}},
          {"ghcr.io/llm-d/llm-d-cuda:v0.5.0: the image's tag is no version of vLLM"}});
}

// Labels, types of machines and resources that are no preset's GPU: never an H100 in silence.
TEST(Import, MachinesOfAManifest_AreTheirGpusOrNamed) {
  const auto pod = [](const std::string& selector, const std::string& resource) {
    return Import("kind: Pod\nspec:\n  nodeSelector: {" + selector +
                  "}\n  containers:\n  - image: vllm/vllm-openai:v0.11.0\n    args: [--model, "
                  "Qwen/Qwen3-8B]\n    resources: {limits: {" +
                  resource + ": 1}}\n");
  };
  const std::string type = "node.kubernetes.io/instance-type: ";
  for (const auto& [selector, preset] :
       {std::pair(type + "p5.48xlarge", "h100-sxm"),
        {type + "ml.p5en.48xlarge", "h200-sxm"},
        {type + "g4-standard-48", "rtx-pro-6000"},
        {type + "p6e-gb200.36xlarge", "gb200"},
        {std::string("cloud.google.com/gke-accelerator: nvidia-tesla-a100"), "a100-sxm-40gb"},
        {std::string("cloud.google.com/gke-accelerator: nvidia-a100-80gb"), "a100-80gb"},
        {std::string("karpenter.k8s.aws/instance-gpu-name: l40s"), "l40s"},
        {std::string("gpu.nvidia.com/class: H200"), "h200-sxm"},
        {std::string("amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM"), "mi300x"}}) {
    const Imported imported = pod(selector, "nvidia.com/gpu");
    EXPECT_EQ(JsonOf(imported.document)["hardware"]["preset"], preset) << selector << "\n"
                                                                       << Listed(imported);
  }
  for (const auto& [selector, resource] :
       {std::pair(type + "trn2.48xlarge", "nvidia.com/gpu"),
        {type + "x", "nvidia.com/gpu"},
        {std::string(), "amd.com/gpu"},
        {std::string(), "google.com/tpu"},
        {std::string(), "habana.ai/gaudi"},
        {std::string(), "nvidia.com/mig-1g.10gb"},
        {std::string("gpu.nvidia.com/model: Z9"), "nvidia.com/gpu"}}) {
    const Imported imported = pod(selector, resource);
    EXPECT_FALSE(JsonOf(imported.document).contains("hardware")) << selector << resource;
    EXPECT_TRUE(Says(imported, "no preset is the GPU ")) << Listed(imported);
  }
}

TEST(Import, ImagesOfOthers_HaveVersionsOfTheirOwn) {
  for (const auto& [image, preset] : {std::pair("vllm/vllm-openai:v0.11.0", "vllm-0.11"),
                                      {"registry.corp/mirror/vllm-openai:v0.15.1", "vllm-0.15"},
                                      {"ghcr.io/llm-d/llm-d-cuda:v0.7.0", "vllm"},
                                      {"nvcr.io/nvidia/vllm:26.01-py3", "vllm"},
                                      {"nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0", "vllm"}}) {
    const Imported imported =
        Import(std::string("docker run --gpus all ") + image + " --model Qwen/Qwen3-8B");
    EXPECT_EQ(JsonOf(imported.document)["engine"]["preset"], preset) << image;
  }
}

// What a quantised checkpoint says beside the type of its weights.
TEST(Import, CheckpointsOfModelOpt_HaveTheirKvCache) {
  const std::string config = ImportFile("configs/qwen3-14b.json");
  const std::string quantized =
      config.substr(0, config.rfind('}')) +
      R"(, "quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8",
      "kv_cache_scheme": {"num_bits": 8, "type": "float"}, "ignore": ["lm_head", "*self_attn*"]}})";
  const std::string beside =
      R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}})";
  const auto read = [](const std::string& text, const std::string& options) {
    return Import({{"config.json", text}, {"a.sh", "vllm serve Qwen/Qwen3-14B" + options}},
                  *ScenarioPreset("llama-3.1-8b-h100-chat"));
  };
  for (const char* options : {"", " --kv-cache-dtype auto"}) {
    const Imported imported = read(quantized, options);
    EXPECT_EQ(JsonOf(imported.document)["engine"]["kv_cache_dtype"], "fp8") << Listed(imported);
    EXPECT_TRUE(
        Says(imported, "1 of its layers stay in 16 bits; the weights are planned 13.4 % smaller"));
  }
  EXPECT_EQ(
      JsonOf(read(quantized, " --kv-cache-dtype bfloat16").document)["engine"]["kv_cache_dtype"],
      "auto");
  const Json nvidia = JsonOf(read(beside, "").document);
  EXPECT_EQ(nvidia["model"], (Json{{"preset", "qwen3-14b"}, {"quantization", "nvfp4"}}));
  EXPECT_EQ(nvidia["engine"]["kv_cache_dtype"], "fp8");
  EXPECT_EQ(JsonOf(Import("vllm serve unsloth/gpt-oss-20b-BF16").document)["model"],
            (Json{{"preset", "gpt-oss-20b"}, {"quantization", "none"}}));
}

// Experts of another type than the rest: what a checkpoint leaves in 16 bits, counted by matrix.
TEST(Import, CheckpointsWithLayersIn16Bits_AreTheirWeights) {
  const std::string config = ImportFile("configs/qwen3-30b-a3b.json");
  const auto read = [&config](const std::string& left, const std::string& algorithm) {
    return Import(config.substr(0, config.rfind('}')) +
                  R"(, "quantization_config": {"quant_method": "modelopt", "quant_algo": ")" +
                  algorithm + R"(", "ignore": ["lm_head", )" + left + "]}}");
  };
  const Json groups = JsonOf(
      Import(config.substr(0, config.rfind('}')) +
             R"(, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32}})")
          .document);
  EXPECT_EQ(groups["model"]["quantization"], "int4");
  EXPECT_EQ(groups["model"]["quantization_group_size"], 32);
  // All attention, and there is nothing else beside the experts.
  const Imported all = read(R"("model.layers.*.self_attn*", "model.layers.*.mlp.gate")", "NVFP4");
  EXPECT_EQ(JsonOf(all.document)["model"]["quantization"], "none") << Listed(all);
  EXPECT_EQ(JsonOf(all.document)["model"]["expert_quantization"], "nvfp4");
  EXPECT_TRUE(all.warnings.empty()) << Listed(all);
  // One layer's: too little to say.
  const Imported one = read(R"("model.layers.7.self_attn.q_proj")", "NVFP4");
  EXPECT_EQ(JsonOf(one.document)["model"]["quantization"], "nvfp4") << Listed(one);
  EXPECT_TRUE(one.warnings.empty()) << Listed(one);
  // Three matrices of four in each layer are more than half of attention.
  const Imported most =
      read(R"("*self_attn.q_proj", "*self_attn.k_proj", "*self_attn.v_proj")", "NVFP4");
  EXPECT_EQ(JsonOf(most.document)["model"]["expert_quantization"], "nvfp4") << Listed(most);
  EXPECT_TRUE(Says(most, "larger than they are")) << Listed(most);
}

TEST(Import, DockerAndManifests_AreTheirServers) {
  const Expected kTexts[] = {
      {"vllm-docker.sh",
       "docker run of vLLM",
       {{"/model/preset", "qwen3-32b"},
        {"/engine/preset", "vllm-0.15"},
        {"/engine/max_model_len", 32000},
        {"/cluster/pools/0/tensor_parallel", 4}}},
      {"kubernetes-script.yaml",
       "a manifest (Deployment)",
       {{"/model/preset", "mistral-7b-v0.3"},
        {"/engine/max_num_batched_tokens", 1024},
        {"/engine/enable_chunked_prefill", true}}},
      {"kubernetes-arguments.yaml",
       "a manifest (Deployment)",
       {{"/model/preset", "llama-3.1-70b"},
        {"/hardware/preset", "h100-sxm"},
        {"/engine/preset", "vllm-0.11"},
        {"/cluster/pools/0", {{"replicas", 3}, {"tensor_parallel", 2}}},
        {"/engine/enable_prefix_caching", true}}},
      {"kserve.yaml",
       "a manifest (InferenceService)",
       {{"/model/preset", "qwen2.5-7b"},
        {"/hardware/preset", "l40s"},
        {"/engine/preset", "vllm-0.19"},
        {"/engine/max_num_seqs", 256}}},
      {"compose.yaml",
       "a Compose service (vllm)",
       {{"/model/preset", "gemma-3-27b"},
        {"/engine/preset", "vllm-0.20"},
        {"/cluster/pools/0/tensor_parallel", 2},
        {"/engine/max_num_seqs", 64}}},
      {"llm-d-values.yaml",
       "llm-d's prefill",
       {{"/model/preset", "llama-3.1-70b"},
        {"/engine/max_model_len", 32000},
        {"/cluster/pools",
         {{{"role", "prefill"}, {"replicas", 4}, {"tensor_parallel", 1}},
          {{"role", "decode"}, {"replicas", 1}, {"tensor_parallel", 4}}}}}},
  };
  for (const Expected& each : kTexts) Expect(each);
}

TEST(Import, CommandsOfSglang_AreMappedAndTheRestIsNamed) {
  Expect({"sglang.sh",
          "a command of SGLang",
          {{"/model/preset", "deepseek-v3"},
           {"/engine/preset", "sglang"},
           {"/scheduler/mem_fraction_static", 0.88},
           {"/engine/max_num_batched_tokens", 8192},
           {"/cluster/pools/0/tensor_parallel", 8}},
          {"--speculative-algorithm EAGLE"}});
  Expect({"sglang-docker.sh",
          "a command of SGLang",
          {{"/engine/preset", "sglang-0.5.9"},
           {"/engine/enable_prefix_caching", false},
           {"/engine/max_num_seqs", 100}}});
}

TEST(Import, CommandsOfSglang_AreOfTheImagesVersionWithItsEnvironment) {
  const auto taken = [](const std::string& before, const std::string& options) {
    const std::string command =
        before + " python -m sglang.launch_server --model-path Qwen/Qwen3-32B --tp 2" + options;
    const Imported imported = Import(command);
    EXPECT_TRUE(ParseScenario(imported.document).ok()) << Listed(imported);
    return JsonOf(imported.document);
  };
  for (const auto& [tag, preset] : {std::pair("v0.5.9-cu129", "sglang-0.5.9"),
                                    {"v0.4.10", "sglang-0.5.9"},
                                    {"v0.5.10", "sglang"},
                                    {"v0.6", "sglang"},
                                    {"latest", "sglang"}}) {
    const std::string run = std::string("docker run lmsysorg/sglang:") + tag;
    EXPECT_EQ(taken(run, "")["engine"]["preset"], preset) << tag;
  }
  const Json said =
      taken("SGLANG_INIT_NEW_TOKEN_RATIO=0.5 SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION=512",
            " --enable-hierarchical-cache --hicache-size 100");
  EXPECT_EQ(said["scheduler"]["init_new_token_ratio"], 0.5);
  EXPECT_EQ(said["scheduler"]["clip_max_new_tokens"], 512);
  EXPECT_FALSE(said["engine"].contains("kv_offload"));
}

// NCCL past its peers' memory: where the variable is set for the server, and only there.
TEST(Import, VariablesOfAServer_CountWhereTheyAreSet) {
  const std::string serve = " vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2";
  const std::string manifest =
      "kind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.11.0\n"
      "    args: [--model, Qwen/Qwen3-32B, --tensor-parallel-size, '2']\n    env:\n    - name: "
      "NCCL_P2P_DISABLE\n      value: ";
  const std::string compose =
      "services:\n  a:\n    image: vllm/vllm-openai:v0.11.0\n"
      "    command: --model Qwen/Qwen3-32B --tensor-parallel-size 2\n    environment:\n";
  const auto through_host = [](const std::string& text) {
    const Imported imported = Import(text);
    EXPECT_TRUE(imported.issues.empty()) << text;
    const Json document = JsonOf(imported.document);
    return document.contains("hardware") && document["hardware"].contains("interconnect");
  };
  for (const std::string& text :
       {"NCCL_P2P_DISABLE=1" + serve, "export NCCL_P2P_DISABLE='1'\n" + serve,
        "env NCCL_P2P_DISABLE=1" + serve, "export NCCL_P2P_DISABLE=${NO_PEERS:-1};" + serve,
        "docker run -e NCCL_P2P_DISABLE=\"1\" vllm/vllm-openai:v0.11.0" + serve,
        "docker run --env=NCCL_P2P_DISABLE=1 vllm/vllm-openai:v0.11.0" + serve,
        "bash -c 'NCCL_P2P_DISABLE=1" + serve + "'", manifest + "\"1\"\n",
        compose + "    - NCCL_P2P_DISABLE=1\n", compose + "      NCCL_P2P_DISABLE: 1\n"}) {
    EXPECT_TRUE(through_host(text)) << text;
  }
  for (const std::string& text : {"# NCCL_P2P_DISABLE=1\n" + serve, "NCCL_P2P_DISABLE=0" + serve,
                                  "NCCL_P2P_DISABLE=10" + serve, "MY_NCCL_P2P_DISABLE=1" + serve,
                                  "NCCL_P2P_DISABLE=1\nexport NCCL_P2P_DISABLE=0\n" + serve,
                                  std::string("NCCL_P2P_DISABLE=1 vllm serve Qwen/Qwen3-32B"),
                                  manifest + "\"0\"\n", compose + "    - NCCL_P2P_DISABLE\n"}) {
    EXPECT_FALSE(through_host(text)) << text;
  }
}

TEST(Import, AnotherServersWeights_AreNotThoseOfTheFirst) {
  const std::string base = "vllm serve meta-llama/Llama-3.1-8B-Instruct";
  const Imported imported =
      Import(base + "\n" + base + " --port 2 --quantization fp8 --dtype half\n");
  const Json document = JsonOf(imported.document);
  EXPECT_FALSE(document["model"].contains("quantization")) << document;
  EXPECT_FALSE(document["model"].contains("torch_dtype")) << document;
  EXPECT_TRUE(Says(imported, "left --quantization fp8: a scenario has one model"))
      << Listed(imported);
  EXPECT_TRUE(Says(imported, "left --dtype half: a scenario has one model"));
}

// Prices, calibrated figures and the host's times are in no text of a server.
TEST(Import, WhatNoTextSaysOfTheMachine_IsTheScenarios) {
  const std::string base =
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "workload": {"preset": "chat"},
      "hardware": {"preset": "h100-sxm", "price_per_gpu_hour": 9, "compute_efficiency": 0.5},
      "engine": {"host": "a100-pcie-2026", "delivery_overhead_us": 900, "max_num_seqs": 7}})";
  const auto imported = [&base](const std::string& gpu) {
    return JsonOf(
        Import({{"a.sh", "vllm serve Qwen/Qwen3-8B --max-num-batched-tokens 4096\n"}, {"b", gpu}},
               base)
            .document);
  };
  const Json same = imported("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n");
  EXPECT_EQ(same["hardware"]["price_per_gpu_hour"], 9) << same;
  EXPECT_EQ(same["hardware"]["compute_efficiency"], 0.5) << same;
  EXPECT_EQ(same["engine"]["host"], "a100-pcie-2026") << same;
  EXPECT_EQ(same["engine"]["delivery_overhead_us"], 900) << same;
  EXPECT_NE(same["engine"].value("max_num_seqs", 0), 7)
      << "an option that is not given has its default";
  const auto odd = Import(
      {{"a", "GPU 0: NVIDIA L40S (UUID: GPU-1)\n"}},
      R"({"schema": 1, "hardware": {"preset": 5, "memory_gib": "x"}, "engine": {"preset": []}})");
  EXPECT_TRUE(Says(odd, "l40s")) << Listed(odd);
  const Json other = imported("GPU 0: NVIDIA L40S (UUID: GPU-1)\n");
  EXPECT_FALSE(other["hardware"].contains("price_per_gpu_hour")) << other;
}

// vLLM does not start with it; 0 seats are no adapters here.
TEST(Import, NoSeatsForAdapters_AreNamed) {
  const Imported imported =
      Import("vllm serve Qwen/Qwen3-32B --enable-lora --lora-modules a=x --max-loras 0");
  EXPECT_EQ(JsonOf(imported.document)["engine"]["max_loras"], 1);
  EXPECT_TRUE(Says(imported, "--max-loras 0: vLLM starts with 1 or more")) << Listed(imported);
  EXPECT_TRUE(Says(Import("vllm serve Qwen/Qwen3-32B --enable-lora --max-loras many"),
                   "left --max-loras many: found no whole number behind it; 1 seat here"));
}

// What docker sets stays one of its options: the image is what stands behind them.
TEST(Import, VariablesOfDocker_DoNotHideItsImage) {
  const Json document =
      JsonOf(Import("docker run --gpus all --env=HF_TOKEN=x --env=NCCL_P2P_DISABLE=1 --ipc=host "
                    "vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-32B --tensor-parallel-size 2")
                 .document);
  EXPECT_EQ(document["engine"]["preset"], "vllm-0.11");
  EXPECT_EQ(document["model"]["preset"], "qwen3-32b");
  EXPECT_EQ(document["hardware"]["interconnect"], "pcie_host");
}

TEST(Import, CommandsOfSglang_ChunksAreBySizeOfTheGpu) {
  const auto chunk_on = [](const std::string& gpu, const std::string& options) {
    const std::string base =
        R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": ")" + gpu +
        R"("}, "workload": {"requests": 10}})";
    const std::string command =
        "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B" + options;
    return JsonOf(Import({{"", command}}, base).document)["engine"]["max_num_batched_tokens"];
  };
  EXPECT_EQ(chunk_on("rtx-4090", ""), 2048);
  EXPECT_EQ(chunk_on("l40s", ""), 4096);
  EXPECT_EQ(chunk_on("h100-sxm", ""), 8192);
  EXPECT_EQ(chunk_on("h200-sxm", ""), 8192);
  EXPECT_EQ(chunk_on("b200-sxm", ""), 16384);
  EXPECT_EQ(chunk_on("b200-sxm", " --chunked-prefill-size 1024"), 1024);
}

TEST(Import, CommandsOfSimulators_AreWholeScenarios) {
  Expect({"blis.sh",
          "blis run",
          {{"/seed", 42},
           {"/model/preset", "qwen3-14b"},
           {"/engine/compat", "blis"},
           {"/latency/backend", "trained_physics"},
           {"/engine/num_gpu_blocks_override", 7463},
           {"/workload/arrivals", {{"process", "constant"}, {"rate_per_s", 10}}},
           {"/workload/prompt_tokens",
            {{"distribution", "normal"}, {"mean", 70}, {"stddev", 35}, {"min", 2}, {"max", 200}}},
           {"/workload/prefix", {{"groups", 1}, {"tokens", 284}}},
           {"/workload/requests", 300}}});
  Expect({"blis-2026-02.sh",
          "blis run",
          {{"/engine/compat", "blis-2026-02"},
           {"/latency/beta", {5752.7, 17.25, 5.99}},
           {"/scheduler/order", "priority_fcfs"},
           {"/scheduler/priority", "slo_based"},
           {"/engine/max_num_seqs", 128}}});
  Expect({"vidur.sh",
          "a command of Vidur",
          {{"/model/preset", "llama-3-8b"},
           {"/hardware/preset", "a100-80gb"},
           {"/engine/compat", "vidur"},
           {"/scheduler/policy", "sarathi"},
           {"/engine/max_num_batched_tokens", 1024},
           {"/engine/max_num_seqs", 512},
           {"/engine/watermark", 0.01},
           {"/cluster/pools/0/replicas", 2},
           {"/cluster/router/policy", "least_outstanding"},
           {"/workload/prompt_tokens",
            {{"distribution", "zipf"}, {"min", 1024}, {"max", 4096}, {"theta", 0.6}}},
           {"/workload/arrivals/rate_per_s", 6.45}}});
}

TEST(Import, MeasuredValuesThatNoServerHas_AreNamed) {
  const Imported found = Import(
      R"({"request_throughput": 9.9, "request_rate": 0, "num_prompts": 10, "completed": 10,
          "mean_ttft_ms": -3, "p99_ttft_ms": 1e300, "mean_tpot_ms": "slow", "p99_tpot_ms": 9,
          "median_e2el_ms": 500, "p99_e2el_ms": 100})");
  const std::string said = Listed(found);
  EXPECT_TRUE(Says(found, "ttft_ms.mean of -3")) << said;
  EXPECT_TRUE(Says(found, "ttft_ms.p99 of more than 1e12")) << said;
  EXPECT_TRUE(Says(found, R"(mean_tpot_ms = "slow")")) << said;
  EXPECT_TRUE(Says(found, "request_rate = 0")) << said;
  EXPECT_TRUE(Says(found, "p99_e2el_ms = 100")) << said;
  ASSERT_EQ(found.measured.size(), 3u) << said;
  EXPECT_EQ(found.measured[0].name, "tpot_ms.p99");
}

TEST(Import, WeightsThatANameSays_AreThoseOfExpertsToo) {
  const auto model = [](const char* name) {
    return JsonOf(Import(std::string("vllm serve ") + name).document)["model"];
  };
  EXPECT_EQ(model("moonshotai/Kimi-K2.5"), (Json{{"preset", "kimi-k2.5"}}));
  EXPECT_EQ(model("moonshotai/Kimi-K2-Thinking"), (Json{{"preset", "kimi-k2.5"}}));
  EXPECT_EQ(model("moonshotai/Kimi-K2-Instruct"), (Json{{"preset", "kimi-k2"}}));
  EXPECT_EQ(
      model("nvidia/Kimi-K2.5-NVFP4"),
      (Json{{"preset", "kimi-k2.5"}, {"quantization", "nvfp4"}, {"expert_quantization", "none"}}));
}

TEST(Import, AScenario_IsSentToWhereItIsTaken) {
  EXPECT_TRUE(Says(Import(Changed({})), "--scenario takes it"));
}

TEST(Import, TheWindowOfMeasurement_IsNotThatOfOtherTraffic) {
  const Imported found = Import({{"bench.json", R"({"request_throughput": 9.9,
      "request_rate": 5, "num_prompts": 10, "completed": 10})"}},
                                Changed({"measure.warmup_s=100"}));
  EXPECT_EQ(found.document.find("warmup_s"), std::string::npos) << found.document;
}

TEST(Import, Benchmarks_AreTrafficAndWhatWasMeasured) {
  Expect({"bench.sh",
          "vllm bench serve",
          {{"/seed", 7},
           {"/workload/requests", 400},
           {"/workload/arrivals", {{"process", "gamma"}, {"rate_per_s", 8}, {"cv", 2}}},
           {"/workload/prompt_tokens", {{"distribution", "uniform"}, {"min", 800}, {"max", 1200}}},
           {"/slo/0",
            {{"metric", "attainment"}, {"percentile", 99}, {"ttft_ms", 500}, {"tpot_ms", 40}}}}});
  Expect({"bench-result.json",
          "a result of vllm bench serve",
          {{"/model/preset", "llama-3.1-8b"},
           {"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 2}}},
           {"/workload/output_tokens", {{"distribution", "fixed"}, {"value", 100}}},
           {"/workload/requests", 5}},
          {"measured: TTFT mean 43.2", "1 requests failed"}});
}

TEST(Import, TrafficThatIsNotAsItsTextHasIt_IsAWarning) {
  Expect({"bench-loop.sh",
          "vllm bench serve",
          {{"/workload/arrivals", {{"process", "closed_loop"}, {"concurrency", 1}}},
           {"/workload/requests", 160}},
          {"warning --num-prompts is 10 to 160 in the loop over USERS: workload.requests is 160",
           "warning USERS is 1 here, the first of 1, 4, 16 in a loop: which of these is meant? "
           "servecast sweep FILE --over workload.arrivals.concurrency=1,4,16 runs these"}});
  const Imported capped =
      Import("vllm bench serve --request-rate 5 --max-concurrency 10 --random-input-len 100");
  EXPECT_EQ(JsonOf(capped.document)["workload"]["arrivals"]["max_concurrency"], 10)
      << Listed(capped);
  Expect({"bench-ramp.json",
          "a result of vllm bench serve",
          {{"/workload/arrivals/profile", "piecewise"},
           {"/workload/arrivals/rate_per_s", 1},
           {"/workload/arrivals/rate_factors/0", {0, 2.2}},
           {"/workload/arrivals/rate_factors/19/1", 9.8}}});
  // Answers of no token are answers.
  const Json zeros = JsonOf(
      Import(R"({"request_rate": 1, "completed": 4, "num_prompts": 4, "total_input_tokens": 9,
      "input_lens": [5, 5, 5, 5], "output_lens": [0, 0, 0, 40]})")
          .document);
  EXPECT_EQ(zeros["workload"]["output_tokens"]["quantiles"][20][1], 1) << zeros;
}

// vllm bench serve asks for temperature 0 unless told otherwise, and no such request is sampled by
// top-p: the model's files and the server's options do not count then, before or behind.
TEST(Import, TemperatureOfABenchmark_SaysWhetherTopPCounts) {
  const std::string server = "vllm serve Qwen/Qwen3-8B\n";
  const std::string bench = "vllm bench serve --model Qwen/Qwen3-8B --random-input-len 9";
  const std::string files = R"({"eos_token_id": 1, "top_k": 20, "top_p": 0.95})";
  const std::string base =
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"}, "workload": {"preset": "chat"}})";
  const Json none;
  const std::pair<std::string, Json> kAsked[] = {{"", false},
                                                 {" --temperature 0", false},
                                                 {" --temperature 0.0 --top-p 0.9", false},
                                                 {" --temperature 0.7", none},
                                                 {" --temperature 0.7 --top-k 5", true}};
  for (const auto& asked : kAsked) {
    const std::string& options = asked.first;
    const Json& expected = asked.second;
    const auto said = [&](const std::vector<ImportText>& texts) {
      const Json document = JsonOf(Import(texts, base).document);
      EXPECT_EQ(document["model"]["preset"], "qwen3-8b") << options;
      return document["model"].value("top_p_by_default", none);
    };
    EXPECT_EQ(said({{"a", server + bench + options}}), expected) << options;
    EXPECT_EQ(said({{"a", bench + options + "\n" + server}}), expected) << options;
    const Json with_files = expected.is_null() ? Json(true) : expected;
    EXPECT_EQ(said({{"a", bench + options}, {"b", files}}), with_files) << options;
    EXPECT_EQ(said({{"b", files}, {"a", bench + options}}), with_files) << options;
  }
  const Imported result = Import(ImportFile("texts/bench-result.json"));
  EXPECT_EQ(JsonOf(result.document)["model"]["top_p_by_default"], false);
  EXPECT_TRUE(Says(result, "temperature 0 unless told")) << Listed(result);
}

TEST(Import, MetricsOfAServer_AreSettingsAndTraffic) {
  Expect(
      {"metrics.txt",
       "metrics of a vLLM server",
       {{"/model/preset", "qwen3-14b"},
        {"/engine/num_gpu_blocks_override", 15231},
        {"/engine/enable_prefix_caching", true},
        {"/workload/arrivals", {{"process", "poisson"}, {"rate_per_s", 3}}},  // 15 there, 5 s each
        {"/workload/prompt_tokens/quantiles", {{0, 1}, {0.25, 500}, {0.9, 1000}, {1, 2000}}},
        {"/workload/output_tokens", {{"distribution", "fixed"}, {"value", 180}}}},
       {"Little's law", "measured: TTFT mean 120 ms", "25 % of prompt tokens"}});
}

TEST(Import, NvidiaSmi_IsTheGpuAndTheirNumber) {
  Expect({"nvidia-smi.txt",
          "nvidia-smi",
          {{"/hardware/preset", "a100-80gb"}, {"/cluster/pools/0/replicas", 2}}});
  Expect({"nvidia-smi-list.txt",
          "nvidia-smi",
          {{"/hardware/preset", "h100-sxm"}, {"/cluster/pools/0/replicas", 4}}});
  Expect({"nvidia-smi-limited.txt",
          "nvidia-smi",
          {{"/hardware/preset", "a100-80gb"}, {"/hardware/power_limit_w", 250}}});
  const Json plain =
      JsonOf(Import({{"smi.txt", ImportFile("texts/nvidia-smi.txt")}}, "{}").document);
  EXPECT_FALSE(plain["hardware"].contains("power_limit_w"));  // 400 W are its own
  Expect({"nvidia-smi-query.txt", "nvidia-smi", {{"/hardware/preset", "l40s"}}});
}

TEST(Import, SeveralFiles_AreOneScenario) {
  const std::string config = ImportFile("configs/qwen3-14b.json"),
                    command = ImportFile("texts/vllm-gpt-oss.sh"),
                    bench = ImportFile("texts/bench-result.json"),
                    smi = ImportFile("texts/nvidia-smi-list.txt");
  const Imported imported = Import(
      {{"config.json", config}, {"run.sh", command}, {"result.json", bench}, {"smi.txt", smi}},
      *ScenarioPreset("llama-3.1-8b-h100-chat"));
  const Json document = JsonOf(imported.document);
  EXPECT_TRUE(imported.issues.empty()) << Listed(imported);
  // A config's figures are worth more than names, whatever comes last.
  EXPECT_EQ(document["model"]["preset"], "qwen3-14b");
  EXPECT_EQ(document["cluster"]["pools"][0]["tensor_parallel"], 2);
  EXPECT_EQ(document["workload"]["arrivals"]["process"], "closed_loop");
  EXPECT_TRUE(Says(imported, "the servers take 2 GPUs, and there are 4"));
  EXPECT_TRUE(Says(imported, "takes the place of")) << Listed(imported);
}

TEST(Import, OfTwoValues_TheLaterWinsAndARemarkSaysSo) {
  const Imported imported = Import({{"a", "vllm serve Qwen/Qwen3-14B --max-num-seqs 64"},
                                    {"b", "vllm serve Qwen/Qwen3-14B --max-num-seqs 32"}},
                                   *ScenarioPreset("llama-3.1-8b-h100-chat"));
  EXPECT_EQ(JsonOf(imported.document)["engine"]["max_num_seqs"], 32);
  EXPECT_TRUE(
      Says(imported, "engine.max_num_seqs: 32 (--max-num-seqs 32 of b) takes the place of 64"))
      << Listed(imported);
}

TEST(Import, AModelThatIsNoPreset_IsLeftForItsConfig) {
  const std::string command = "vllm serve someone/Llama-3.1-9B-Merged -tp 2";
  const Imported alone = Import(command);
  EXPECT_FALSE(JsonOf(alone.document).contains("model"));
  EXPECT_TRUE(Says(alone, "no preset is the model someone/Llama-3.1-9B-Merged")) << Listed(alone);
  EXPECT_TRUE(Says(alone, "/model: ")) << Listed(alone);
  std::string config = ImportFile("configs/llama-3.1-8b.json");
  config.replace(config.find("14336"), 5, "16384");
  const Imported both = Import({{"run.sh", command}, {"config.json", config}},
                               *ScenarioPreset("llama-3.1-8b-h100-chat"));
  const Json model = ResolvedImport(both)["model"];
  EXPECT_EQ(model["intermediate_size"], 16384);
  EXPECT_EQ(model["name"], "someone/Llama-3.1-9B-Merged");
}

TEST(Import, AnUnknownGpu_IsNotReplacedByAnother) {
  const Imported imported = Import("GPU 0: NVIDIA GeForce RTX 3090 Ti (UUID: GPU-1)\n");
  EXPECT_FALSE(JsonOf(imported.document).contains("hardware"));
  EXPECT_TRUE(Says(imported, "no preset is the GPU NVIDIA GeForce RTX 3090 Ti"))
      << Listed(imported);
}

TEST(Import, DefaultsOfAServer_FollowItsGpu) {
  const std::string command = "vllm serve Qwen/Qwen3-14B\n";
  const auto engine = [&](const char* gpu) {
    return JsonOf(Import(command + "GPU 0: " + gpu + " (UUID: GPU-1)\n").document)["engine"];
  };
  EXPECT_EQ(engine("NVIDIA H200")["max_num_seqs"], 1024);
  EXPECT_EQ(engine("NVIDIA H200")["max_num_batched_tokens"], 8192);
  EXPECT_EQ(engine("NVIDIA A100-SXM4-80GB")["max_num_seqs"], 256);
  EXPECT_EQ(engine("NVIDIA L40S")["max_num_batched_tokens"], 2048);
}

TEST(Import, TheRest_IsTheBases) {
  const std::string base =
      R"({"schema": 1, "model": {"preset": "qwen3-32b"}, "hardware": {"preset": "b200-sxm"},
    "cluster": {"router": {"policy": "random"}}, "workload": {"preset": "rag", "requests": 77}})";
  const Json document = JsonOf(Import({{"", "vllm serve Qwen/Qwen3-14B -tp 2"}}, base).document);
  EXPECT_EQ(document["hardware"]["preset"], "b200-sxm");
  EXPECT_EQ(document["workload"]["requests"], 77);
  EXPECT_EQ(document["cluster"]["router"]["policy"], "random");
  EXPECT_EQ(document["cluster"]["pools"][0]["tensor_parallel"], 2);
}

}  // namespace
}  // namespace servecast::testing
