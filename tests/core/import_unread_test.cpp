// No word of a text is dropped in silence: of every option that import knows an unknown value is
// named, and so is a word that is no option.
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/import_texts.h"
#include "import/kinds.h"
#include "import/words.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

// A command, and the options that it may have.
struct Program {
  std::string command;
  std::span<const Option> options;
};

std::vector<Program> Programs() {
  return {{"vllm serve Qwen/Qwen3-8B", VllmOptions()},
          {"python -m sglang.launch_server --model-path Qwen/Qwen3-8B", SglangOptions()},
          {"vllm bench serve --model Qwen/Qwen3-8B", BenchOptions()},
          {"trtllm-serve Qwen/Qwen3-8B", TrtllmOptions()},
          {"python -m sglang_router.launch_router", RouterOptions()},
          {"vllm-router --policy random", RouterOptions()},
          {"python -m vllm_router.app", RouterOptions()},
          {"python -m sglang.bench_serving --model Qwen/Qwen3-8B", SglangBenchOptions()},
          {"guidellm benchmark --model Qwen/Qwen3-8B", GuidellmOptions()},
          {"aiperf profile --model Qwen/Qwen3-8B", AiperfOptions()},
          {"blis run --model qwen/qwen3-14b", BlisOptions()},
          {"python -m vidur.main --replica_config_device a100", VidurOptions()}};
}

TEST(ImportUnread, OfEveryOption_AnUnknownValueIsNamed) {
  for (const Program& program : Programs()) {
    for (const Option& option : program.options) {
      const bool flag = option.value == OptionValue::kFlag || option.value == OptionValue::kSwitch;
      const std::string name = "--" + std::string(option.name);
      const std::string words = program.command + " " + name + (flag ? "=" : " ") + "$X9";
      const Imported imported = Import(words);
      EXPECT_TRUE(Says(imported, option.value == OptionValue::kName ? "$X9" : name + " $X9"))
          << words << "\n"
          << Listed(imported);
      const bool count =
          option.value == OptionValue::kCount || option.value == OptionValue::kNumber;
      if (!count) continue;
      EXPECT_TRUE(Says(Import(program.command + " " + name + " 1e309"), name + " 1e309")) << words;
    }
  }
}

// "--tp" and "--tp 2" of "--tp 2", of which the notes of the command's options have one or the
// other.
bool Names(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const char next = at + name.size() < text.size() ? text[at + name.size()] : ' ';
    if (next == ' ' || next == ',' || next == '=' || next == ':') return true;
  }
  return false;
}

// What is taken is not left out as well.
TEST(ImportUnread, NoOption_IsTakenAndLeftOut) {
  std::vector<Program> programs = Programs();
  // Before the names of the router's options.
  const std::string routed = "python -m sglang_router.launch_server --model-path Qwen/Qwen3-8B";
  programs.push_back({routed, SglangOptions()});
  std::vector<std::string> commands;
  for (const Program& program : programs) {
    for (const Option& option : program.options) {
      const std::string name = " --" + std::string(option.name);
      if (Names(program.command, name)) continue;
      for (const char* value : {"", " 2", " random"}) {
        commands.push_back(program.command + name + value);
      }
    }
  }
  for (const Option& option : RouterOptions()) {
    for (const char* value : {"", " 2", " random"}) {
      commands.push_back(routed + " --router-" + std::string(option.name) + value);
    }
  }
  for (const std::string& command : commands) {
    const Imported imported = Import(command);
    for (const ImportNote& left : imported.ignored) {
      const std::string name = left.what.substr(0, left.what.find(' '));
      if (name.rfind("--", 0) != 0) continue;
      for (const ImportNote& taken : imported.taken) {
        EXPECT_FALSE(Names(taken.why, name)) << command << "\n" << Listed(imported);
        const bool router = name.rfind("--router-", 0) == 0;
        EXPECT_FALSE(router && Names(taken.why, "--" + name.substr(9))) << command;
      }
    }
  }
}

// A value of an option changes the document, or something is said of it.
TEST(ImportUnread, NoOption_IsLostInSilence) {
  for (const Program& program : Programs()) {
    const Imported without = Import(program.command);
    for (const Option& option : program.options) {
      const std::string name = "--" + std::string(option.name);
      const bool flag = option.value == OptionValue::kFlag || option.value == OptionValue::kSwitch;
      const bool number =
          option.value == OptionValue::kCount || option.value == OptionValue::kNumber;
      std::vector<std::string> values = {"abc"};
      if (flag) values = {""};
      if (number) values = {"2", "0.5"};
      if (!option.choices.empty() && !number) {
        values = {std::string(option.choices.substr(option.choices.rfind('|') + 1))};
      }
      bool seen = false;
      for (const std::string& value : values) {
        const Imported imported = Import(program.command + " " + name + " " + value);
        seen = seen || imported.document != without.document || Listed(imported) != Listed(without);
      }
      EXPECT_TRUE(seen) << program.command << " " << name;
    }
  }
}

TEST(ImportUnread, OfTheTraffic_ItIsAWarning) {
  for (const char* name : {"--request-rate", "--max-concurrency", "--num-prompts", "--burstiness",
                           "--random-input-len", "--random-output-len", "--random-range-ratio",
                           "--ramp-up-start-rps"}) {
    const Imported imported =
        Import(std::string("vllm bench serve --model Qwen/Qwen3-8B ") + name + " $C");
    ASSERT_EQ(imported.warnings.size(), 1u) << name << "\n" << Listed(imported);
    EXPECT_EQ(imported.warnings[0].find(std::string(name) + " $C: "), 0u) << imported.warnings[0];
    EXPECT_NE(imported.warnings[0].find(" here"), std::string::npos) << imported.warnings[0];
  }
}

// What is taken instead is what the document has.
TEST(ImportUnread, WhatIsTakenInstead_IsSaid) {
  const Imported imported = Import(
      "vllm serve Qwen/Qwen3-8B -tp $TP --max-num-seqs $SEATS --block-size $B "
      "--data-parallel-size $DP --gpu-memory-utilization $U");
  for (const char* words :
       {"-tp $TP: the text does not say what that is; tensor_parallel is 1 here",
        "--max-num-seqs $SEATS: the text does not say what that is; max_num_seqs is 1024 here",
        "--block-size $B: the text does not say what that is; engine.block_size is 16 here",
        "--data-parallel-size $DP: the text does not say what that is; one replica here",
        "--gpu-memory-utilization $U: the text does not say what that is; "
        "engine.gpu_memory_utilization is 0."}) {
    EXPECT_TRUE(Says(imported, words)) << words << "\n" << Listed(imported);
  }
}

TEST(ImportUnread, WordsThatAreNoOptions_AreNamed) {
  std::mt19937 random(5);
  const std::string letters = "abcxyz019_.:/-";
  for (int i = 0; i < 200; ++i) {
    const std::vector<Program> programs = Programs();
    const Program& program = programs[random() % 3];
    std::string words = program.command;
    std::vector<std::string> stray;
    const std::size_t count = 1 + random() % 4;
    words += " --trust-remote-code";
    for (std::size_t j = 0; j < count; ++j) {
      static constexpr const char* kBegins[] = {"", "$", "\u2013", "\u2014", "${"};
      std::string word = kBegins[random() % 5] + std::string("w");
      for (std::size_t k = random() % 12; k > 0; --k) word += letters[random() % letters.size()];
      if (word[1] == '{') word += "}";
      stray.push_back(word);
      words += " " + word;
    }
    const Imported imported = Import(words);
    for (const std::string& word : stray) {
      EXPECT_TRUE(Says(imported, "left " + word + ": ")) << words << "\n" << Listed(imported);
    }
  }
}

TEST(ImportUnread, ARedirection_IsNoWord) {
  for (const char* end : {" > log", "> log 2>&1 &", " &> log", " 2>/dev/null", " >> a.log 2> b"}) {
    const Imported imported =
        Import("vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching" + std::string(end));
    EXPECT_TRUE(imported.ignored.empty()) << end << "\n" << Listed(imported);
    EXPECT_EQ(JsonOf(imported.document)["engine"]["enable_prefix_caching"], false) << end;
  }
  EXPECT_TRUE(Says(Import("vllm serve <model> -tp 2"), "no preset is the model <model>"));
  EXPECT_EQ(CommandsIn("> vllm serve m"), (std::vector<CommandWords>{{"vllm", "serve", "m"}}));
}

TEST(ImportUnread, ArraysAndSums_ArePutIn) {
  using Commands = std::vector<CommandWords>;
  EXPECT_EQ(CommandsIn("A=(--x 1 '2 3'\n  --y)\nA+=(--z)\nc d \"${A[@]}\" ${B[@]} e"),
            (Commands{{"c", "d", "--x", "1", "2 3", "--y", "--z", "${B[@]}", "e"}}));
  EXPECT_EQ(CommandsIn("A=()\nc \"${A[@]}\" d"), (Commands{{"c", "d"}}));
  EXPECT_EQ(CommandsIn("N=3\nc $((N * (2 + ${M:-4}))) $((N/0)) $((Q + 1)) $(hostname -i)"),
            (Commands{{"c", "18", "$((N/0))", "$((Q + 1))", "$(hostname -i)"}}));
  EXPECT_EQ(CommandsIn("E='-a'\nE+=' -b'\nc d $E"), (Commands{{"c", "d", "-a", "-b"}}));
  EXPECT_EQ(CommandsIn("c $X ${Y}", {{"X", "1"}, {"Y", "2"}}), (Commands{{"c", "1", "2"}}));
}

// Of a server on several nodes each node has a command.
TEST(ImportUnread, FurtherNodes_AreNoServers) {
  const auto pools = [](const std::string& text) {
    const Imported imported = Import(text);
    return JsonOf(imported.document)["cluster"]["pools"];
  };
  const std::string deepseek = "vllm serve deepseek-ai/DeepSeek-R1 --data-parallel-size 16";
  const std::string llama =
      "python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-405B --tp 16 --nnodes 2";
  for (const std::string& other :
       {std::string(" --headless"), std::string(" --data-parallel-start-rank 8"),
        std::string(" --data-parallel-rank=3"), std::string(" -dpr 8"),
        std::string(" --nnodes 2 --node-rank 1"), std::string(" --node_rank 1")}) {
    for (const std::string& text :
         {deepseek + "\n" + deepseek + other, deepseek + other + "\n" + deepseek}) {
      EXPECT_EQ(pools(text)[0]["replicas"], 16) << text;
      EXPECT_EQ(pools(text).size(), 1u) << text;
    }
  }
  for (const std::string& text : {llama + " --node-rank 0\n" + llama + " --node-rank 1",
                                  llama + " --node-rank 1\n" + llama + " --node-rank 0"}) {
    EXPECT_EQ(pools(text)[0]["replicas"], 1) << text;
    EXPECT_EQ(pools(text)[0]["tensor_parallel"], 16) << text;
  }
  // Alone it is what its server is.
  const Imported alone = Import(deepseek + " --headless");
  EXPECT_EQ(JsonOf(alone.document)["cluster"]["pools"][0]["replicas"], 16);
  ASSERT_EQ(alone.warnings.size(), 1u);
  EXPECT_NE(alone.warnings[0].find("whose first node is not here"), std::string::npos);
}

// A script in one word is a command of its own, and is counted once.
TEST(ImportUnread, AScriptInAWord_IsOneServer) {
  const Json document = JsonOf(
      Import("bash -c 'python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B -tp 2'")
          .document);
  EXPECT_EQ(document["cluster"]["pools"], (Json{{{"replicas", 1}, {"tensor_parallel", 2}}}));
}

TEST(FileKind_, OfEveryForm_IsWhoReadsIt) {
  for (const auto& [text, name, kind] :
       {std::tuple(R"({"schema": 1, "workload": {}})", "a.json", "scenario"),
        std::tuple(R"({"kind": "servecast-calibration", "schema": 1})", "a.json", "calibration"),
        std::tuple(R"({"physics_coefficients": {}})", "a.json", "coefficients"),
        std::tuple(R"({"sets": []})", "a.json", "coefficients"),
        std::tuple(R"({"input_lens": [1]})", "result.json", "trace"),
        std::tuple(R"({"architectures": ["LlamaForCausalLM"]})", "config.json", "import"),
        std::tuple(R"({"request_throughput": 1})", "result.json", "import"),
        std::tuple("{\"timestamp\": 1, \"input_length\": 2, \"output_length\": 3}\n{}", "a.jsonl",
                   "trace"),
        std::tuple("services:", "compose.YAML", "import"),
        std::tuple("vllm serve Qwen/Qwen3-8B", "start.log", "import"),
        std::tuple("# HELP vllm:num_requests_running\nvllm:num_requests_running 1", "metrics.txt",
                   "import"),
        std::tuple("arrival_s;input_tokens;output_tokens;gpu\r\n1;2;3;NVIDIA H100", "vllm.txt",
                   "trace"),
        std::tuple("\x1f\x8b", "trace.csv.gz", "trace"), std::tuple("", "empty", "trace")}) {
    EXPECT_STREQ(FileKind(text, name), kind) << text;
  }
}

}  // namespace
}  // namespace servecast::testing
