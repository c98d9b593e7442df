// Which GPU a text means: Slurm's options, rules of nodes, and parts of GPUs, which are said.
#include <string>
#include <utility>
#include <vector>

#include "core/import_texts.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

std::string GpuIn(const Imported& imported) {
  const Json document = JsonOf(imported.document);
  return document.contains("hardware") ? document["hardware"].value("preset", "") : "";
}

constexpr const char* kServe = "vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 4\n";

// Every way in which sbatch(1) names a GPU.
TEST(ImportGpu, SlurmSaysTheGpu) {
  const std::vector<std::pair<std::string, std::string>> kOptions = {
      {"--gres=gpu:l40s:4", "l40s"},
      {"--gres gpu:l40s:4", "l40s"},
      {"--gres=tmpdisk:100,gpu:L40S:4", "l40s"},
      {"--gres=gpu:l40s", "l40s"},
      {"--gpus-per-node=a100:4", "a100-80gb"},
      {"--gpus=h200:4", "h200-sxm"},
      {"-G h200:4", "h200-sxm"},
      {"--gpus-per-task=a100_pcie_40gb:4", "a100-40gb"},
      {"--tres-per-node=gres/gpu:b200:4", "b200-sxm"},
      {"--gres=gpu:4 --constraint=h200", "h200-sxm"},
      {"--gres=gpu:4 -C \"gpu&l40s\"", "l40s"},
      {"--partition=gpu-l40s --gres=gpu:4", "l40s"},
      {"--partition=gpu-l40s --gres=gpu:h200:4", "h200-sxm"}};
  for (const auto& [options, gpu] : kOptions) {
    const std::string script = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH " + options + "\n" + kServe;
    for (const std::string& text : {script, "srun --nodes=1 " + options + " " + kServe}) {
      const Imported imported = Import(text);
      EXPECT_EQ(GpuIn(imported), gpu) << text << Listed(imported);
      EXPECT_TRUE(imported.warnings.empty()) << text << Listed(imported);
    }
  }
}

TEST(ImportGpu, ACommandThatSbatchWraps_IsRead) {
  for (const char* wrap : {"--wrap='", "--wrap '"}) {
    const Imported imported =
        Import("sbatch --gres=gpu:l40s:4 " + std::string(wrap) + "vllm serve Qwen/Qwen3-8B -tp 4'");
    EXPECT_EQ(GpuIn(imported), "l40s") << wrap << Listed(imported);
    EXPECT_EQ(JsonOf(imported.document)["cluster"]["pools"][0]["tensor_parallel"], 4);
  }
}

TEST(ImportGpu, SlurmSaysHowManyGpus) {
  const auto script = [](const std::string& options) {
    return "#SBATCH " + options + "\n" + kServe;
  };
  EXPECT_TRUE(
      Says(Import(script("--gres=gpu:l40s:8")), "note the servers take 4 GPUs, and there are 8"));
  EXPECT_TRUE(Says(Import(script("--gpus-per-node=l40s:4 -N 2")),
                   "#SBATCH --gpus-per-node=l40s:4 on 2 nodes: 8 GPUs"));
  EXPECT_FALSE(Says(Import(script("--gres=gpu:l40s:4")), "and there are"));
}

// A type that no preset is, a part of a GPU, and two types in one text.
TEST(ImportGpu, WhatIsNotForecastOfSlurm_IsAWarning) {
  const auto script = [](const std::string& options) {
    return "#SBATCH " + options + "\n" + kServe;
  };
  EXPECT_TRUE(Warns(Import(script("--gres=gpu:quadro:4")), "no preset is the GPU quadro"));
  EXPECT_TRUE(Warns(Import(script("--gres=gpu:h100_3g.40gb:1")), "no preset is the GPU"));
  EXPECT_TRUE(Warns(Import(script("--gres=shard:4")), "a part of a GPU is not modelled"));
  EXPECT_TRUE(Warns(Import(script("--constraint=\"[h100|h200]\"")), "allows several GPUs"));
  EXPECT_TRUE(
      Warns(Import("#SBATCH --gres=gpu:l40s:4\nsrun --gres=gpu:h200:4 " + std::string(kServe)),
            "is another GPU than that of #SBATCH --gres=gpu:l40s:4"));
  // Of a script that starts no server nothing is taken.
  EXPECT_FALSE(Says(Import("#SBATCH --gres=gpu:l40s:4\nsrun vllm bench serve --model Qwen/Qwen3-8B "
                           "--random-input-len 5\n"),
                    "l40s"));
}

// A pod with these members beside its container.
std::string Pod(const std::string& members,
                const std::string& resources = "nvidia.com/gpu: \"1\"") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n" + members +
         "  containers:\n  - name: a\n    image: vllm/vllm-openai:v0.11.0\n"
         "    args: [--model, Qwen/Qwen3-8B]\n    resources:\n      limits:\n        " +
         resources + "\n";
}

std::string Affinity(const std::vector<std::string>& terms) {
  std::string text =
      "  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n"
      "        nodeSelectorTerms:\n";
  for (const std::string& term : terms) {
    text += "        - matchExpressions:\n          - " + term + "\n";
  }
  return text;
}

TEST(ImportGpu, OnlyInNamesTheGpuOfANode) {
  const std::string key = "{key: nvidia.com/gpu.product, operator: ";
  const Imported in = Import(Pod(Affinity({key + "In, values: [NVIDIA-L40S]}"})));
  EXPECT_EQ(GpuIn(in), "l40s") << Listed(in);
  EXPECT_TRUE(in.warnings.empty()) << Listed(in);
  const Imported without = Import(Pod(Affinity({key + "NotIn, values: [NVIDIA-L40S]}"})));
  EXPECT_NE(GpuIn(without), "l40s") << Listed(without);
  EXPECT_TRUE(Warns(without, "gpu.product NotIn NVIDIA-L40S: says which GPU is not used"))
      << Listed(without);
  for (const char* relation : {"Gt", "Lt"}) {
    const Imported other =
        Import(Pod(Affinity({"{key: nvidia.com/gpu.memory, operator: " + std::string(relation) +
                             ", values: ['40000']}"})));
    EXPECT_TRUE(Says(other, "left nvidia.com/gpu.memory " + std::string(relation) + " 40000"))
        << Listed(other);
  }
}

TEST(ImportGpu, SeveralGpusThatAreAllowed_AreSaid) {
  const std::string key = "{key: nvidia.com/gpu.product, operator: In, values: ";
  const Imported values = Import(Pod(Affinity({key + "[NVIDIA-L40S, NVIDIA-H200]}"})));
  EXPECT_EQ(GpuIn(values), "l40s");
  EXPECT_TRUE(Warns(values, "allows several GPUs (NVIDIA-L40S, NVIDIA-H200)")) << Listed(values);
  const Imported terms = Import(Pod(Affinity({key + "[NVIDIA-L40S]}", key + "[NVIDIA-H200]}"})));
  EXPECT_EQ(GpuIn(terms), "l40s") << Listed(terms);
  EXPECT_TRUE(Warns(terms, "nodeSelectorTerms allow nvidia.com/gpu.product In NVIDIA-H200"));
  const Imported preferred = Import(
      Pod("  affinity:\n    nodeAffinity:\n      preferredDuringSchedulingIgnoredDuringExecution:\n"
          "      - weight: 1\n        preference:\n          matchExpressions:\n          - " +
          key + "[NVIDIA-L40S]}\n"));
  EXPECT_EQ(GpuIn(preferred), "l40s") << Listed(preferred);
  EXPECT_TRUE(Warns(preferred, "is preferred, not required")) << Listed(preferred);
}

// Slices and shared GPUs, however a text says it.
TEST(ImportGpu, APartOfAGpu_IsSaid) {
  const std::string selector = "  nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}\n";
  const std::string command = " vllm serve Qwen/Qwen3-8B\n";
  for (const std::string& text :
       {Pod(selector, "nvidia.com/mig-3g.40gb: \"1\""),
        Pod(selector, "nvidia.com/mig-1g.10gb.shared: \"1\""),
        Pod(selector, "nvidia.com/gpu.shared: \"1\""), Pod(selector, "nvidia.com/gpumem: \"3000\""),
        Pod("  nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-SHARED}\n"),
        Pod("  nodeSelector: {cloud.google.com/gke-gpu-sharing-strategy: time-sharing}\n"),
        Pod("  nodeSelector: {cloud.google.com/gke-gpu-partition-size: 1g.5gb}\n"),
        "CUDA_VISIBLE_DEVICES=MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f" + command,
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50" + command}) {
    const Imported imported = Import(text);
    EXPECT_TRUE(Warns(imported, "a part of a GPU is not modelled; the forecast is of a whole GPU"))
        << text << Listed(imported);
    EXPECT_EQ(GpuIn(imported), "h100-sxm") << text << Listed(imported);
  }
  for (const std::string& text :
       {Pod(selector), Pod("  nodeSelector: {nvidia.com/mig.config: all-disabled}\n")}) {
    EXPECT_TRUE(Import(text).warnings.empty()) << Listed(Import(text));
  }
}

std::string Compose(const std::vector<std::string>& members) {
  std::string text = "services:\n";
  for (std::size_t i = 0; i < members.size(); ++i) {
    text += "  s" + std::to_string(i) +
            ":\n    image: vllm/vllm-openai:v0.11.0\n    command: --model Qwen/Qwen3-8B\n    " +
            members[i] + "\n";
  }
  return text;
}

TEST(ImportGpu, ServersThatShareAGpu_AreSaid) {
  const auto held = [](const std::string& ids) {
    return "deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: [" + ids +
           "], capabilities: [gpu]}]}}}";
  };
  const std::string zero = "environment: {CUDA_VISIBLE_DEVICES: '0'}",
                    one = "environment: [CUDA_VISIBLE_DEVICES=1]";
  const std::string serve = "vllm serve Qwen/Qwen3-8B --port ";
  for (const std::string& text :
       {Compose({zero, zero}), Compose({zero, "environment: ['CUDA_VISIBLE_DEVICES=1,0']"}),
        Compose({held("'0'"), held("'0'")}), Compose({held("'2', '3'"), held("'3'")}),
        Compose({"environment: [NVIDIA_VISIBLE_DEVICES=0]", zero}),
        Compose({"gpus: [{device_ids: ['0']}]", zero}),
        "CUDA_VISIBLE_DEVICES=0 " + serve + "1 &\nCUDA_VISIBLE_DEVICES=0 " + serve + "2\n",
        std::string("docker run --gpus '\"device=0\"' -p 1:8000 vllm/vllm-openai --model "
                    "Qwen/Qwen3-8B\ndocker run --gpus '\"device=0\"' -p 2:8000 vllm/vllm-openai "
                    "--model Qwen/Qwen3-8B\n")}) {
    const Imported imported = Import(text);
    EXPECT_TRUE(Warns(imported, ": the forecast gives each GPUs of its own"))
        << text << Listed(imported);
  }
  for (const std::string& text :
       {Compose({zero, one}), Compose({held("'0'"), held("'1'")}),
        // Each counts from the GPU that its container has.
        Compose({zero + "\n    " + held("'0'"), zero + "\n    " + held("'1'")}),
        Compose({"environment: [NVIDIA_VISIBLE_DEVICES=all]",
                 "environment: [NVIDIA_VISIBLE_DEVICES=all]"}),
        "CUDA_VISIBLE_DEVICES=0 " + serve + "1 &\nCUDA_VISIBLE_DEVICES=1 " + serve + "2\n"}) {
    const Imported imported = Import(text);
    EXPECT_TRUE(imported.warnings.empty()) << text << Listed(imported);
  }
  EXPECT_TRUE(Warns(Import(Compose({"deploy: {replicas: 2, resources: {reservations: {devices: "
                                    "[{device_ids: ['0']}]}}}"})),
                    "its 2 replicas share GPU 0"));
}

}  // namespace
}  // namespace servecast::testing
