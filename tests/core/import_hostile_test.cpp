// Texts that are broken, huge or made to be tiresome: an answer in words, in time, never a crash.
#include <string>
#include <vector>

#include "core/import_texts.h"
#include "import/words.h"
#include "import/yaml.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

std::string Repeated(const std::string& text, std::size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

// Safe to show, and a document that is JSON.
void ExpectAnswer(const std::string& text) {
  const Imported imported = Import(text);
  EXPECT_TRUE(!imported.document.empty() || !imported.issues.empty());
  const bool good = imported.document.empty() || !JsonOf(imported.document).is_discarded();
  EXPECT_TRUE(good);
  const std::string said = Listed(imported);
  for (const char c : said) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << said;
  EXPECT_LT(said.size(), 200'000u);
}

TEST(ImportHostile, NothingUnderstood_IsSaidInWords) {
  for (const std::string& text :
       {std::string(), std::string("\n\n  \n"), std::string("hello"), std::string("{}"),
        std::string("[]"), std::string("<html><script>alert(1)</script></html>"),
        std::string("null"), std::string("\0\0\0", 3)}) {
    const Imported imported = Import(text);
    EXPECT_TRUE(imported.document.empty());
    ASSERT_FALSE(imported.issues.empty());
    EXPECT_NE(imported.issues[0].message.find("found"), std::string::npos);
  }
}

TEST(ImportHostile, EveryBeginningOfATextAndEveryCutOfIt_HasAnAnswer) {
  for (const char* name : {"texts/kubernetes-arguments.yaml", "texts/bench-result.json",
                           "texts/metrics.txt", "texts/vllm-docker.sh", "texts/llm-d-values.yaml",
                           "texts/nvidia-smi.txt", "configs/llama-4-scout-17b-16e.json"}) {
    SCOPED_TRACE(name);
    const std::string text = ImportFile(name);
    for (std::size_t cut = 0; cut < text.size(); cut += 1 + text.size() / 60) {
      ExpectAnswer(text.substr(0, cut));
      ExpectAnswer(text.substr(cut));
      std::string changed = text;
      changed[cut] = static_cast<char>(cut * 37);
      ExpectAnswer(changed);
    }
  }
}

TEST(ImportHostile, Megabytes_TakeNoTime) {
  const std::size_t kMany = 5'000'000;  // bytes, beyond what a document of JSON may have
  for (const std::string& text :
       {std::string(kMany, '\n'), std::string(kMany, ' '), std::string(kMany, '['),
        std::string(kMany, '-'), "vllm serve " + std::string(kMany, 'a'),
        "vllm serve m " + Repeated("--x ", kMany / 4), "kind: Pod\n" + Repeated("- ", kMany / 2),
        "kind: Pod\nx: " + Repeated("[", kMany), "image: a\n" + Repeated("a:\n a:\n", kMany / 8),
        "vllm:a{" + Repeated("a=\"b\",", kMany / 6) + "} 1", Repeated("$", kMany),
        Repeated("${", kMany / 2), "bash -c '" + Repeated("vllm serve ", kMany / 11) + "'",
        Repeated("vllm serve Qwen/Qwen3-14B\n", kMany / 26),
        "GPU 0: " + std::string(kMany, 'x') + " (UUID:"}) {
    ExpectAnswer(text);
  }
  EXPECT_TRUE(Says(Import(std::string(20'000'000, 'a')), "allowed 16777216"));
}

TEST(ImportHostile, Nesting_HasAnEnd) {
  ExpectAnswer(Repeated("{\"a\":", 100'000) + "1" + Repeated("}", 100'000));
  ExpectAnswer("kind: Pod\nx: " + Repeated("{a: ", 1000));
  std::string deep = "kind: Pod\n";
  for (int i = 0; i < 300; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  ExpectAnswer(deep);
  ExpectAnswer("kind: Pod\n" + Repeated("- ", 200) + "a");
}

TEST(ImportHostile, NamesAndNumbers_OfTheWrongKind_AreNotTaken) {
  const std::string texts[] = {
      R"({"architectures": ["LlamaForCausalLM"], "num_hidden_layers": "many", "hidden_size": -1})",
      R"({"architectures": 3, "model_type": [], "vocab_size": {}})",
      R"({"__proto__": {"x": 1}, "constructor": 1, "architectures": ["LlamaForCausalLM"]})",
      R"({"request_throughput": "x", "total_input_tokens": [], "request_rate": {}, "input_lens": [[], {}, "a", -1, 1e308]})",
      R"({"kind": "Deployment", "spec": {"replicas": [], "template": {"spec": {"containers": [1, {"args": {"a": 1}, "image": 3}]}}}})",
      R"({"kind": "List", "items": [{"kind": {}}, null, 3]})",
      "vllm serve m --max-num-seqs -5 --tensor-parallel-size 99999999999999999999 "
      "--gpu-memory-utilization 1e999",
      "vllm serve m -tp 0 -dp 1e18 --max-model-len nan --kv-transfer-config '[[['",
      "vllm serve --model --model --model",
      "vllm serve m --=1 --- -= --no- -- ''",
      "docker run --gpus",
      "docker run vllm/vllm-openai:latest",
      "vllm bench serve --random-input-len -1 --request-rate -3 --burstiness 0 --max-concurrency "
      "1e30 --num-prompts x",
      "blis run --rate x --prompt-tokens 1e300 --alpha-coeffs a,b --num-instances 1e9",
      "python -m vidur.main --replica_config_device --x_scheduler_config_type",
      "vllm:cache_config_info{block_size=\"99999999999\",gpu_memory_utilization=\"x\"} "
      "1\nvllm:request_prompt_tokens_bucket{le=\"x\"} NaN\n",
      "vllm:request_prompt_tokens_bucket{le=\"+Inf\"} "
      "5\nvllm:request_generation_tokens_bucket{le=\"+Inf\"} 5\n",
      "vllm serve \xff\xfe\x80 --served-model-name \x1b[31mred\x1b[0m \xe2\x80\xae",
      "modelArtifacts: {uri: 'hf://'}\ndecode: {replicas: -1, parallelism: {tensor: []}}\n"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    ExpectAnswer(text);
  }
  EXPECT_FALSE(JsonOf(Import("vllm serve Qwen/Qwen3-14B --max-num-seqs many").document)["engine"]
                   .value("max_num_seqs", Json())
                   .is_string());
}

TEST(ImportHostile, ManyRemarks_AreBounded) {
  std::string command = "vllm serve Qwen/Qwen3-14B";
  for (int i = 0; i < 5000; ++i) command += " --option-" + std::to_string(i) + " 1";
  const Imported imported = Import(command);
  EXPECT_LE(imported.ignored.size(), 100u);
  EXPECT_TRUE(Says(imported, "4900 more things were left out")) << Listed(imported).size();
}

TEST(ImportWords, AShellsText_IsCutAsAShellCutsIt) {
  using Commands = std::vector<CommandWords>;
  EXPECT_EQ(CommandsIn("a 'b c' \"d \\\" e\" f\\ g # h\n"),
            (Commands{{"a", "b c", "d \" e", "f g"}}));
  EXPECT_EQ(CommandsIn("X=1 Y='2 3'\na $X \"$Y\" $Y ${Z:-4} $Q"),
            (Commands{{"a", "1", "2 3", "2", "3", "4", "$Q"}}));
  EXPECT_EQ(CommandsIn("a b && c d; e f | g h"),
            (Commands{{"a", "b"}, {"c", "d"}, {"e", "f"}, {"g", "h"}}));
  EXPECT_EQ(CommandsIn("a \\\n  b \\  \n c"), (Commands{{"a", "b", "c"}}));
  EXPECT_EQ(CommandsIn("sh -c 'a b; c d'"),
            (Commands{{"a", "b"}, {"c", "d"}, {"sh", "-c", "a b; c d"}}));
}

TEST(ImportYaml, WhatManifestsAreWrittenIn_IsRead) {
  const auto read = [](const char* text) {
    const Result<std::vector<Json>> documents = ParseYaml(text);
    return documents.ok() ? Json(documents.value()) : Json(Listed(documents.issues()));
  };
  EXPECT_EQ(read("a: 1\nb: {c: [d, \"e, f\"], g: 'h'}\n"),
            (Json{{{"a", "1"}, {"b", {{"c", {"d", "e, f"}}, {"g", "h"}}}}}));
  EXPECT_EQ(read("l:\n- a\n- b: c\n  d: e\n-\n  - x\nm: n # o\n"),
            (Json{{{"l", {"a", {{"b", "c"}, {"d", "e"}}, {"x"}}}, {"m", "n"}}}));
  EXPECT_EQ(read("s: |\n  a\n    b\nt: >-\n  c\n  d\nu: e\n"),
            (Json{{{"s", "a\n  b\n"}, {"t", "c d"}, {"u", "e"}}}));
  EXPECT_EQ(read("---\na: b\n---\nc: d\n..."), (Json{{{"a", "b"}}, {{"c", "d"}}}));
  EXPECT_EQ(read("{{- if .Values.x }}\na: \"{{ .Values.y }}\"\n{{- end }}\n"),
            (Json{{{"a", "{{ .Values.y }}"}}}));
  EXPECT_EQ(read("a: [b,\n  c\n]\nd: \"e\n  f\"\n"), (Json{{{"a", {"b", "c"}}, {"d", "e f"}}}));
  EXPECT_NE(read("a: b\n  c: d\nnot a key\n").get<std::string>().find("line"), std::string::npos);
}

}  // namespace
}  // namespace servecast::testing
