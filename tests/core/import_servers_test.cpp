// Servers whose texts say what others are beside them: a router's, those of prefill and decode,
// scalers'.
#include <string>
#include <vector>

#include "core/import_texts.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

std::vector<Json> PoolsOf(const std::vector<ImportText>& texts) {
  const Imported imported = Import(texts, *ScenarioPreset("llama-3.1-8b-h100-chat"));
  const Json pools = ResolvedImport(imported)["cluster"]["pools"];
  return {pools.begin(), pools.end()};
}

Json RoleAndReplicas(const std::vector<ImportText>& texts) {
  Json found = Json::array();
  for (const Json& pool : PoolsOf(texts)) {
    found.push_back({pool.value("role", "mixed"), pool["replicas"]});
  }
  return found;
}

// However its texts come: in one, in any order, in containers of their own.
TEST(ImportRouters, ItsServersAreReplicas) {
  const std::string server = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B";
  const std::string router =
      "python -m sglang_router.launch_router --policy random --worker-urls http://a http://b "
      "http://c";
  const Json three = Json::array({{"mixed", 3}});
  EXPECT_EQ(RoleAndReplicas({{"", server + "\n" + router}}), three);
  EXPECT_EQ(RoleAndReplicas({{"", router + "\n" + server}}), three);
  EXPECT_EQ(RoleAndReplicas({{"a", server}, {"b", router}}), three);
  EXPECT_EQ(RoleAndReplicas({{"a", router}, {"b", server}}), three);
  EXPECT_EQ(RoleAndReplicas({{"", router}}), three);
  const std::string services = "services:\n  r: {image: sgl-router, command: " + router +
                               "}\n  s: {image: sglang, command: " + server + "}\n";
  EXPECT_EQ(RoleAndReplicas({{"", services}}), three);
  const std::string unit = "[Service]\nExecStart=";
  EXPECT_EQ(RoleAndReplicas({{"a", unit + router + "\n"}, {"b", unit + server + "\n"}}), three);
  const auto pod = [](const std::string& command) {
    return "---\nkind: Deployment\nspec: {template: {spec: {containers: [{image: a, command: [sh, "
           "-c, '" +
           command + "']}]}}}\n";
  };
  EXPECT_EQ(RoleAndReplicas({{"", pod(router) + pod(server)}}), three);
  const Imported both = Import(services);
  EXPECT_EQ(ResolvedImport(both)["cluster"]["router"]["policy"], "random") << Listed(both);
}

TEST(ImportRouters, EachServerHasItsRanks) {
  const std::string serve = "vllm serve Qwen/Qwen3-8B --data-parallel-size 4",
                    router = "vllm-router --worker-urls http://a http://b";
  const Json eight = Json::array({{"mixed", 8}});
  EXPECT_EQ(RoleAndReplicas({{"a", serve}, {"b", router}}), eight);
  EXPECT_EQ(RoleAndReplicas({{"a", router}, {"b", serve}}), eight);
  EXPECT_EQ(RoleAndReplicas({{"a", "vllm serve Qwen/Qwen3-8B"},
                             {"b", router + " --intra-node-data-parallel-size 4"}}),
            eight);
  // The router is before the servers, whichever comes first.
  for (const auto& text : {serve + "\n" + router, router + "\n" + serve}) {
    const Imported imported = Import(text);
    EXPECT_EQ(ResolvedImport(imported)["cluster"]["router"]["policy"], "cache_aware") << text;
    EXPECT_TRUE(Says(imported, "found no") || !imported.kinds.empty());
  }
}

TEST(ImportRouters, PrefillAndDecodeHaveTheirNumbers) {
  const std::string prefill =
      "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --disaggregation-mode prefill\n";
  const std::string decode =
      "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --disaggregation-mode decode\n";
  const std::string urls =
      " --prefill http://a 8998 --prefill http://b 8998 --decode http://c --decode http://d "
      "--decode http://e";
  const std::string router = "python -m sglang_router.launch_router --pd-disaggregation" + urls;
  const Json pools = Json::array({{"prefill", 2}, {"decode", 3}});
  EXPECT_EQ(RoleAndReplicas({{"", prefill + decode + router}}), pools);
  EXPECT_EQ(RoleAndReplicas({{"r", router}, {"s", prefill + decode}}), pools);
  EXPECT_TRUE(Says(Import(prefill + decode + router),
                   "note --pd-disaggregation: each request goes to a server for prefill"));
  // vLLM's servers say no role: the router's options do.
  const std::string serve = "vllm serve Qwen/Qwen3-8B\n";
  const Imported vllm =
      Import(serve + "vllm-router --vllm-pd-disaggregation --policy consistent_hash" + urls);
  EXPECT_EQ(vllm.kinds.back(), "vLLM's router");
  EXPECT_TRUE(vllm.warnings.empty()) << Listed(vllm);
  const Json cluster = ResolvedImport(vllm)["cluster"];
  EXPECT_EQ(cluster["router"]["policy"], "session_affinity");
  EXPECT_EQ(cluster["decode_router"]["policy"], "session_affinity");
  EXPECT_EQ(RoleAndReplicas({{"", serve + "vllm-router --vllm-pd-disaggregation" + urls}}), pools);
  const std::string stack =
      "vllm-router --service-discovery static --static-backends http://a,http://b,http://c "
      "--routing-logic disaggregated_prefill --static-model-labels p,d,d --prefill-model-labels p "
      "--decode-model-labels d\n";
  EXPECT_EQ(RoleAndReplicas({{"", serve + stack}}), Json::array({{"prefill", 1}, {"decode", 2}}));
}

TEST(ImportRouters, WhatInstallsOne_StartsNone) {
  for (const char* command : {"pip install vllm-router", "docker pull lmsysorg/sgl-router",
                              "cargo install smg", "uv pip install sglang-router --prerelease x"}) {
    const Imported imported = Import(std::string(command) + "\nvllm serve Qwen/Qwen3-8B");
    EXPECT_EQ(imported.kinds.size(), 1u) << command << Listed(imported);
  }
}

// "args" of an image whose entry point is the router.
TEST(ImportRouters, AnImageMayBeOne) {
  const std::string values =
      "kind: Deployment\nspec: {template: {spec: {containers: [{image: "
      "'lmcache/lmstack-router:v1', "
      "args: [--static-backends, 'http://a,http://b', --routing-logic, session]}]}}}\n---\n"
      "kind: Deployment\nspec: {template: {spec: {containers: [{image: 'vllm/vllm-openai:v0.11.0', "
      "args: [--model, Qwen/Qwen3-8B]}]}}}\n";
  const Imported imported = Import(values);
  const Json cluster = ResolvedImport(imported)["cluster"];
  EXPECT_EQ(cluster["router"]["policy"], "session_affinity") << Listed(imported);
  EXPECT_EQ(cluster["pools"][0]["replicas"], 2);
  EXPECT_EQ(RoleAndReplicas({{"a", "vllm serve Qwen/Qwen3-8B"},
                             {"b",
                              "docker run -p 80:80 vllm/vllm-router:nightly vllm-router "
                              "--worker-urls http://a http://b"}}),
            Json::array({{"mixed", 2}}));
}

TEST(ImportRouters, WhatDoesNotFitIsAWarning) {
  const std::string server = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B";
  const std::string router =
      "\nsmg launch --policy random --worker-urls http://a http://b http://c";
  EXPECT_TRUE(Warns(Import(server + " --port 1\n" + server + " --port 2" + router),
                    "the router sends to 3 servers, and the texts start 2"));
  EXPECT_TRUE(Warns(Import(server + " --tp 4 --port 1\n" + server + " --port 2" +
                           "\nsmg launch --pd-disaggregation --prefill http://a --decode http://b"),
                    "no server says which of them it is"));
  const Imported stack = Import(
      "servingEngineSpec:\n  modelSpec:\n  - {name: a, modelURL: Qwen/Qwen3-8B, replicaCount: 2}\n"
      "routerSpec: {routingLogic: disaggregated_prefill}");
  EXPECT_TRUE(Warns(stack,
                    "routing logic disaggregated_prefill: the router sends prompts to "
                    "servers for prefill"))
      << Listed(stack);
}

// A text with servers of another role than the one before is of other servers.
TEST(ImportServers, RolesInTextsOfTheirOwn_AreAsInOne) {
  const std::string sglang = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp ";
  const auto vllm = [](const std::string& role) {
    return "vllm serve Qwen/Qwen3-8B -tp 2 --kv-transfer-config '{\"kv_connector\":"
           "\"NixlConnector\",\"kv_role\":\"kv_" +
           role + "\"}'";
  };
  for (const auto& [prefill, decode] :
       {std::pair(sglang + "2 --disaggregation-mode prefill",
                  sglang + "4 --disaggregation-mode decode"),
        {vllm("producer"), vllm("consumer") + " --max-num-seqs 64"}}) {
    const auto document = [](const std::vector<ImportText>& texts) {
      return JsonOf(Import(texts, *ScenarioPreset("llama-3.1-8b-h100-chat")).document);
    };
    const Json one = document({{"", prefill + "\n" + decode}}),
               apart = document({{"a", prefill}, {"b", decode}});
    EXPECT_EQ(apart, one) << prefill;
    EXPECT_EQ(one["cluster"]["pools"][0]["role"], "prefill");
    EXPECT_EQ(one["cluster"]["pools"][1]["role"], "decode");
    // The same servers in another form of text are no other ones.
    EXPECT_EQ(RoleAndReplicas({{"a", prefill + "\n" + decode}, {"b", prefill + "\n" + decode}}),
              Json::array({{"prefill", 1}, {"decode", 1}}));
  }
}

TEST(ImportServers, EncodersApart_AreWarnedOf) {
  for (const char* text :
       {"vllm serve Qwen/Qwen3-VL-8B-Instruct --mm-encoder-only",
        "vllm serve Qwen/Qwen3-VL-8B-Instruct --ec-transfer-config '{\"ec_role\":\"ec_producer\"}'",
        "python -m sglang.launch_server --model-path Qwen/Qwen3-VL-8B-Instruct --encoder-only",
        "python -m sglang.launch_server --model-path Qwen/Qwen3-VL-8B-Instruct --language-only "
        "--encoder-urls http://a http://b"}) {
    EXPECT_TRUE(Warns(Import(text), "give its pool the role encode")) << Listed(Import(text));
  }
}

// What a router would choose by is not known there.
TEST(ImportServers, RoutersBesideAScaler_AreLeftOutWithWords) {
  const std::string scaler = ImportFile("forms/hpa.yaml");
  const Imported found =
      Import({{"a", scaler}, {"b", "vllm-router --worker-urls http://a http://b"}},
             *ScenarioPreset("llama-3.1-8b-h100-chat"));
  EXPECT_EQ(ResolvedImport(found)["cluster"]["router"]["policy"], "least_outstanding");
  EXPECT_TRUE(Warns(found, "cache_aware is not modelled beside a scaler")) << Listed(found);
  // One of decode, where no pool decodes apart after all.
  const Imported split = Import(
      "python -m sglang.launch_server --model-path Qwen/Qwen3-8B\n"
      "python -m sglang_router.launch_router --pd-disaggregation --decode-policy random "
      "--prefill http://a 8998 --decode http://b");
  EXPECT_FALSE(ResolvedImport(split)["cluster"].contains("decode_router")) << Listed(split);
}

}  // namespace
}  // namespace servecast::testing
