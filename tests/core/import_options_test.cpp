// Options that change a forecast as much as a model does: the drafter, loops over loads, vLLM's
// engine and its layers' caches, the version and the router that stand beside a server.
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/import_texts.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

Imported WithDrafter(const std::string& config) {
  return Import("vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 8 --speculative-config '" +
                config + "'");
}

TEST(ImportDrafter, ADraftModelHasTheFiguresOfItsPreset) {
  for (
      const char* config :
      {R"({"model":"meta-llama/Llama-3.1-8B-Instruct","num_speculative_tokens":5})",
       R"({"method":"draft_model","model":"meta-llama/Llama-3.1-8B","num_speculative_tokens":5})"}) {
    const Imported imported = WithDrafter(config);
    EXPECT_TRUE(imported.warnings.empty()) << Listed(imported);
    const Json drafts = ResolvedImport(imported)["engine"]["speculative"];
    EXPECT_EQ(drafts["method"], "draft_model");
    EXPECT_EQ(drafts["draft_num_hidden_layers"], 32);
    EXPECT_EQ(drafts["draft_hidden_size"], 4096);
    EXPECT_EQ(drafts["draft_num_attention_heads"], 32);
    EXPECT_EQ(drafts["draft_num_key_value_heads"], 8);
    EXPECT_EQ(drafts["draft_head_dim"], 128);
    EXPECT_EQ(drafts["draft_intermediate_size"], 14336);
    EXPECT_EQ(drafts["draft_vocab_size"], 128256);
  }
}

TEST(ImportDrafter, WhatIsNotKnownOfIt_IsAWarning) {
  const Imported unknown = WithDrafter(R"({"model":"acme/tiny-1B","num_speculative_tokens":3})");
  EXPECT_TRUE(Warns(unknown,
                    "the size of the drafter acme/tiny-1B is not known: the forecast "
                    "takes one layer of the model"))
      << Listed(unknown);
  EXPECT_EQ(ResolvedImport(unknown)["engine"]["speculative"]["draft_num_hidden_layers"], 1);
  const Imported experts =
      WithDrafter(R"({"model":"Qwen/Qwen3-30B-A3B","num_speculative_tokens":3})");
  EXPECT_TRUE(Warns(experts, "has experts: it is forecast as a dense model")) << Listed(experts);
  const Imported quantised =
      WithDrafter(R"({"model":"acme/Llama-3.1-8B-Instruct-FP8","num_speculative_tokens":3})");
  EXPECT_TRUE(Warns(quantised, "has quantised weights")) << Listed(quantised);
  const Imported other = WithDrafter(R"({"method":"medusa","num_speculative_tokens":3})");
  EXPECT_TRUE(Warns(other, "the forecast is without speculative decoding")) << Listed(other);
}

// Whichever engine it is of.
TEST(ImportDrafter, DraftsThatAreNotForecast_AreAWarning) {
  for (const char* text :
       {"vllm serve Qwen/Qwen3-8B --speculative-model Qwen/Qwen3-0.6B --num-speculative-tokens 3",
        "vllm serve Qwen/Qwen3-8B -pp 2 --speculative-config "
        "'{\"method\":\"ngram\",\"num_speculative_tokens\":3}'",
        "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-algorithm EAGLE",
        "cat > a.yml <<EOF\nspeculative_config:\n  decoding_type: MTP\nEOF\ntrtllm-serve "
        "Qwen/Qwen3-8B --extra_llm_api_options a.yml\n"}) {
    const Imported imported = Import(text);
    EXPECT_TRUE(Warns(imported, "the forecast is without speculative decoding"))
        << text << Listed(imported);
  }
}

// Nothing of the option's JSON is lost.
TEST(ImportDrafter, EachMemberIsTakenOrNamed) {
  const Imported imported = WithDrafter(
      R"({"method":"eagle3","model":"a/b","num_speculative_tokens":3,"parallel_drafting":true,)"
      R"("draft_tensor_parallel_size":1,"prompt_lookup_max":4})");
  EXPECT_TRUE(imported.warnings.empty()) << Listed(imported);
  EXPECT_EQ(ResolvedImport(imported)["engine"]["speculative"]["parallel_drafting"], true);
  for (const char* member : {"draft_tensor_parallel_size", "prompt_lookup_max"}) {
    EXPECT_TRUE(Says(imported, "left " + std::string(member) + " of --speculative-config"));
  }
  EXPECT_TRUE(Says(imported, "that the drafter is one layer as the model's"));
}

TEST(ImportLoops, RequestsAreEnoughForEveryStepOfTheSweep) {
  const std::string begin =
      "for C in 1 64 8; do\nvllm bench serve --model Qwen/Qwen3-8B "
      "--random-input-len 64 --request-rate inf --max-concurrency $C ";
  for (const std::string& requests :
       {std::string("--num-prompts $((C*20))"), std::string("--num-prompts=$((C * 20))"),
        std::string("--num-prompts ${C}0")}) {
    const Imported imported = Import(begin + requests + "\ndone\n");
    const bool sum = requests.find("((") != std::string::npos;
    const std::string most = sum ? "1280" : "640", least = sum ? "20" : "10";
    EXPECT_EQ(ResolvedImport(imported)["workload"]["requests"].dump(), most) << Listed(imported);
    EXPECT_TRUE(Warns(imported, "--num-prompts is " + least + " to " + most +
                                    " in the loop over C: workload.requests is " + most))
        << Listed(imported);
    EXPECT_TRUE(Warns(imported, "--over workload.arrivals.concurrency=1,64,8 runs these"));
  }
  const Imported variable = Import(
      "for C in 1 64; do\nN=$((C*20))\nvllm bench serve --model Qwen/Qwen3-8B "
      "--random-input-len 64 --request-rate inf --max-concurrency $C --num-prompts $N\ndone");
  EXPECT_EQ(ResolvedImport(variable)["workload"]["requests"], 1280) << Listed(variable);
  // The same in every round, and what has no effect.
  const Imported fixed = Import(begin + "--num-prompts 200 --result-filename c$C.json\ndone\n");
  EXPECT_EQ(ResolvedImport(fixed)["workload"]["requests"], 200);
  EXPECT_EQ(fixed.warnings.size(), 1u) << Listed(fixed);
}

TEST(ImportLoops, OtherOptionsThatChange_AreSaid) {
  const Imported imported = Import(
      "for C in 1 64; do\nvllm bench serve --model Qwen/Qwen3-8B --random-input-len $((C+5)) "
      "--request-rate inf --max-concurrency $C --num-prompts 200\ndone");
  EXPECT_TRUE(
      Warns(imported, "--random-input-len changes in the loop over C, too: it stays 6 here"))
      << Listed(imported);
}

// Each round is cut anew: many of them in a long text end in time, and it is said.
TEST(ImportLoops, ManyLoopsOfALongScript_AreBounded) {
  std::string script;
  for (int i = 0; i < 300; ++i) {
    const std::string name = "C" + std::to_string(i);
    script += "for " + name + " in 1 2 3 4 5 6 7 8; do vllm bench serve --model Qwen/Qwen3-8B " +
              "--max-concurrency $" + name + " --num-prompts $((" + name + "*20)); done\n";
  }
  EXPECT_TRUE(Warns(Import(script), "the script is too long to compare the rounds of its loop"));
}

TEST(ImportOptions, CachesOfLayerGroups) {
  const std::string serve = "vllm serve Qwen/Qwen3-8B ";
  const auto engine = [&](const std::string& options) {
    const Imported imported = Import(serve + options);
    EXPECT_FALSE(Says(imported, "is not known here")) << Listed(imported);
    return ResolvedImport(imported)["engine"];
  };
  EXPECT_EQ(engine("--disable-hybrid-kv-cache-manager")["hybrid_kv_cache_manager"], "off");
  EXPECT_EQ(engine("--no-disable-hybrid-kv-cache-manager")["hybrid_kv_cache_manager"], "on");
  EXPECT_EQ(engine("--mamba-cache-mode all")["mamba_cache_mode"], "all");
  EXPECT_EQ(engine("--mamba-cache-mode align").value("mamba_cache_mode", "auto"), "auto");
  EXPECT_TRUE(Says(Import(serve + "--mamba-cache-mode align"), "left --mamba-cache-mode align"));
  EXPECT_TRUE(Says(Import(serve + "--mamba-cache-mode some"), "left --mamba-cache-mode some"));
}

TEST(ImportOptions, TheFirstEngineOfVllm_IsAWarning) {
  for (const char* text :
       {"VLLM_USE_V1=0 vllm serve Qwen/Qwen3-8B", "export VLLM_USE_V1=0\nvllm serve Qwen/Qwen3-8B",
        "docker run -e VLLM_USE_V1=0 vllm/vllm-openai:v0.9.0 --model Qwen/Qwen3-8B",
        "docker run vllm/vllm-openai:v0.6.3 --model Qwen/Qwen3-8B"}) {
    EXPECT_TRUE(Warns(Import(text), "runs vLLM's first engine, V0")) << text;
  }
  for (const char* text :
       {"VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B", "vllm serve Qwen/Qwen3-8B",
        "docker run -e VLLM_USE_V1=1 vllm/vllm-openai:v0.7.3 --model Qwen/Qwen3-8B"}) {
    EXPECT_FALSE(Warns(Import(text), "V0")) << text;
  }
}

TEST(ImportOptions, MetadataSaysTheVersion) {
  const std::string bench = "vllm bench serve --model Qwen/Qwen3-8B --random-input-len 64 ";
  for (const char* pair : {"vllm=0.23.0", "version=0.23.0", "vllm_version=v0.23.1"}) {
    const Imported imported =
        Import("vllm serve Qwen/Qwen3-8B\n" + bench + "--metadata " + pair + " gpu=l40s tp=2");
    const Json document = JsonOf(imported.document);
    EXPECT_EQ(document["engine"]["preset"], "vllm-0.23") << Listed(imported);
    EXPECT_EQ(document["hardware"]["preset"], "l40s") << Listed(imported);
    EXPECT_TRUE(Says(imported, "left --metadata tp=2: ")) << Listed(imported);
  }
  const Imported other = Import("python -m sglang.launch_server --model-path Qwen/Qwen3-8B\n" +
                                bench + "--metadata version=0.23.0");
  EXPECT_EQ(JsonOf(other.document)["engine"]["preset"], "sglang") << Listed(other);
  EXPECT_TRUE(Says(other, "left --metadata version=0.23.0"));
}

// A frontend and a worker of Dynamo.
Imported Dynamo(const std::string& frontend) {
  return Import(
      "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: a}\n"
      "spec:\n  services:\n    Frontend:\n      componentType: frontend\n      " +
      frontend +
      "\n    Worker:\n      componentType: worker\n      replicas: 3\n      extraPodSpec:\n"
      "        mainContainer:\n          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0\n"
      "          command: [python3, -m, dynamo.vllm]\n          args: [--model, Qwen/Qwen3-8B]\n");
}

TEST(ImportOptions, DynamosFrontendSaysTheRouter) {
  const std::vector<std::pair<std::string, std::string>> kModes = {
      {"kv", "kv_aware"},
      {"round-robin", "round_robin"},
      {"random", "random"},
      {"least_loaded", "least_outstanding"},
      {"power-of-two", "power_of_two"}};
  for (const auto& [mode, policy] : kModes) {
    for (const std::string& frontend :
         {"envs: [{name: DYN_ROUTER_MODE, value: " + mode + "}]",
          "extraPodSpec: {mainContainer: {env: [{name: DYN_ROUTER_MODE, value: " + mode + "}]}}",
          "extraPodSpec: {mainContainer: {command: [python3, -m, dynamo.frontend], args: "
          "[--router-mode, " +
              mode + "]}}",
          "extraPodSpec: {mainContainer: {command: [/bin/sh, -c], args: "
          "['python3 -m dynamo.frontend --router-mode=" +
              mode + "']}}"}) {
      const Imported imported = Dynamo(frontend);
      EXPECT_EQ(ResolvedImport(imported)["cluster"]["router"]["policy"], policy)
          << frontend << Listed(imported);
      EXPECT_TRUE(imported.warnings.empty()) << Listed(imported);
    }
  }
  const Imported weight = Dynamo(
      "envs: [{name: DYN_ROUTER_MODE, value: kv}, {name: DYN_KV_OVERLAP_SCORE_WEIGHT, value: "
      "'2.5'}]");
  EXPECT_EQ(ResolvedImport(weight)["cluster"]["router"]["overlap_weight"], 2.5) << Listed(weight);
  EXPECT_TRUE(Warns(Dynamo("envs: [{name: DYN_ROUTER_MODE, value: direct}]"),
                    "DYN_ROUTER_MODE direct is no router that is modelled"));
  const Imported script = Import(
      "python3 -m dynamo.frontend --router-mode kv &\npython3 -m dynamo.vllm --model "
      "Qwen/Qwen3-8B\n");
  EXPECT_EQ(ResolvedImport(script)["cluster"]["router"]["policy"], "kv_aware") << Listed(script);
}

// Presets are of language models alone; what sends images brings the encoder.
TEST(ImportImages, OfModelsWithAnEncoder_HaveIt) {
  const std::string bench =
      " --dataset-name random-mm --random-mm-base-items-per-request 2"
      " --random-mm-bucket-config '{(896, 896, 1): 1.0}' --request-rate 2 --num-prompts 50";
  const std::tuple<const char*, std::int64_t, std::int64_t, bool> models[] = {
      {"google/gemma-3-27b-it", 27, 896, true},
      {"google/gemma-4-31B-it", 27, 0, false},
      {"Qwen/Qwen3.5-27B", 27, 0, false},
      {"meta-llama/Llama-4-Scout-17B-16E-Instruct", 34, 336, false}};
  for (const auto& [model, layers, image_size, whole] : models) {
    const std::string name = model;
    const Imported imported =
        Import("vllm serve " + name + " -tp 2\nvllm bench serve --model " + name + bench);
    EXPECT_TRUE(imported.issues.empty()) << name << Listed(imported);
    const Json document = ResolvedImport(imported);
    EXPECT_EQ(document["model"]["vision"]["num_hidden_layers"], layers) << name;
    EXPECT_EQ(document["model"]["vision"].value("image_size", 0), image_size) << name;
    EXPECT_EQ(document["engine"].value("disable_chunked_mm_input", false), whole) << name;
    EXPECT_EQ(document["workload"]["images"]["per_request"], 2) << name;
  }
  const Imported text = Import("vllm serve google/gemma-3-27b-it -tp 2");
  EXPECT_EQ(text.document.find("vision"), std::string::npos) << text.document;
}

TEST(ImportImages, OfSglangsBenchmark) {
  const auto images = [](const std::string& options) {
    const Imported imported = Import(
        "python -m sglang.launch_server --model-path Qwen/Qwen3-VL-8B-Instruct\n"
        "python -m sglang.bench_serving --random-input-len 128 --random-output-len 64 "
        "--num-prompts 50 --request-rate 2 " +
        options);
    const Json workload = ResolvedImport(imported)["workload"];
    EXPECT_EQ(workload["prompt_tokens"]["max"], 128) << Listed(imported);
    const Json& all = workload["images"];
    return std::tuple(all["per_request"].get<int>(), all["width"].get<int>(),
                      all["height"].get<int>());
  };
  EXPECT_EQ(images("--dataset-name image"), std::tuple(1, 1920, 1080));
  EXPECT_EQ(images("--dataset-name image --image-count 3 --image-resolution 720p"),
            std::tuple(3, 1280, 720));
  EXPECT_EQ(images("--dataset-name image --image-resolution 512x768"), std::tuple(1, 768, 512));
  EXPECT_EQ(images("--dataset-name random-image --random-image-num-images 2 "
                   "--random-image-resolution 360p"),
            std::tuple(2, 640, 360));
  EXPECT_TRUE(Warns(Import("python -m sglang.bench_serving --dataset-name image "
                           "--image-resolution huge"),
                    "--image-resolution huge: found no size; 1080p here"));
  const Imported none =
      Import("python -m sglang.bench_serving --dataset-name image --image-count 0");
  EXPECT_TRUE(Warns(none, "--image-count 0: no request has an image"));
  EXPECT_EQ(none.document.find("images"), std::string::npos) << none.document;
}

TEST(ImportOptions, EmptyWords_AreNothing) {
  for (const char* option : {"--prefill ''", "--prefill="}) {
    const Imported router =
        Import(std::string("python -m sglang_router.launch_router --pd-disaggregation ") + option +
               " --decode http://a:1");
    EXPECT_TRUE(Warns(router, "--prefill: found nothing behind it; ")) << Listed(router);
  }
}

// SGLang and TensorRT-LLM may split each expert over a part of the group.
TEST(ImportOptions, ExpertParallelismOverAPartOfTheGroup_IsAWarning) {
  const std::string sglang =
      "python -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp_size 4 ";
  const std::string trtllm = "trtllm-serve Qwen/Qwen3-30B-A3B --tp_size 4 ";
  const char* kSaid = "2 of a tensor-parallel group of 4: expert parallelism is modelled over the";
  for (const std::string& text :
       {sglang + "--ep_size 2", sglang + "--expert-parallel-size 2", trtllm + "--ep_size 2",
        "cat > a.yml <<EOF\nmoe_expert_parallel_size: 2\nEOF\n" + trtllm + "--config a.yml"}) {
    const Imported imported = Import(text);
    EXPECT_TRUE(Warns(imported, kSaid)) << text << Listed(imported);
    EXPECT_EQ(ResolvedImport(imported)["engine"]["enable_expert_parallel"], true) << text;
  }
  for (const std::string& text : {sglang + "--ep_size 4", trtllm + "--ep_size 4", sglang}) {
    EXPECT_FALSE(Warns(Import(text), "expert parallelism")) << text;
  }
}

}  // namespace
}  // namespace servecast::testing
