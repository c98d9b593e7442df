// Texts with other settings, in place: what they say when they are read again, of every text that
// starts a server here; and what changed between two texts.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/diff.h"
#include "core/import_texts.h"
#include "fmt/format.h"
#include "servecast/export.h"
#include "testing/dice.h"

namespace servecast::testing::rewrite_test {
namespace {

// Of other simulators, and what a server says of itself.
bool IsOfNoServer(const std::string& kind) {
  return kind.find("blis") != std::string::npos || kind.find("Vidur") != std::string::npos ||
         kind.find("metrics") != std::string::npos;
}

// Texts of servers that import reads without an issue.
std::vector<std::string> ServerTexts() {
  std::vector<std::string> texts;
  for (const char* folder : {"texts", "forms"}) {
    const std::string path = fmt::format("{}/tests/import/{}", SERVECAST_SOURCE_DIR, folder);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string text = ImportFile(fmt::format("{}/{}", folder, name));
      const Imported imported = Import(text);
      if (imported.servers > 0 && imported.issues.empty() && imported.kinds.size() == 1 &&
          !IsOfNoServer(imported.kinds[0])) {
        texts.push_back(text);
      }
    }
  }
  return texts;
}

// What a server's options say, a line a pool; apart from what Rewrite compares.
std::vector<std::string> Servers(const std::string& document) {
  std::vector<std::string> servers;
  const Scenario all = Parsed(document);
  for (std::size_t i = 0; i < all.cluster.pools.size(); ++i) {
    Scenario s = all;
    s.UsePool(i);
    const EngineSpec& e = s.engine;
    const PoolSpec& p = s.cluster.pool();
    servers.push_back(fmt::format(
        "{} {} {} x{} dp{} role {} seats {} budget {} length {} block {} memory {} kv {} prefix {} "
        "chunked {} {} {} weights {} order {}",
        p.tensor_parallel, p.pipeline_parallel, s.hardware.name, p.replicas,
        p.attention_data_parallel, static_cast<int>(p.role), e.max_num_seqs,
        e.max_num_batched_tokens, e.max_model_len.value_or(0), e.block_size,
        e.gpu_memory_utilization, static_cast<int>(e.kv_cache_dtype), e.enable_prefix_caching,
        e.enable_chunked_prefill, e.async_scheduling, e.enable_expert_parallel,
        static_cast<int>(s.model.quantization), s.scheduler.order));
  }
  return servers;
}

std::vector<std::string> RandomChanges(Dice& dice) {
  const std::vector<std::string> all = {
      fmt::format("engine.max_num_seqs={}", dice.Between(3, 999)),
      fmt::format("engine.max_num_batched_tokens={}", dice.Between(1000, 20'000)),
      fmt::format("cluster.pools.0.tensor_parallel={}", dice.Pick({1, 2, 4})),
      fmt::format("engine.enable_prefix_caching={}", dice.Percent(50)),
      "engine.kv_cache_dtype=fp8",
      fmt::format("engine.max_model_len={}", dice.Between(4096, 8192)),
      fmt::format("engine.gpu_memory_utilization=0.{}", dice.Between(70, 95))};
  std::vector<std::string> changes;
  for (const std::string& change : all) {
    if (dice.Percent(35)) changes.push_back(change);
  }
  return changes;
}

TEST(Rewrite, OfEveryText_SaysWhatItShould_AndNothingElse) {
  const std::vector<std::string> texts = ServerTexts();
  EXPECT_GT(texts.size(), 60U);
  int whole = 0, partly = 0, refused = 0;
  for (const std::string& text : texts) {
    const std::string document = Import(text).document;
    const Result<Rewritten> as_it_is = Rewrite({"", text}, document);
    if (!as_it_is.ok()) {
      EXPECT_NE(as_it_is.issues()[0].message.find("server"), std::string::npos);
      ++refused;
      continue;
    }
    EXPECT_EQ(as_it_is.value().text, text);
    EXPECT_TRUE(as_it_is.value().left_out.empty()) << text;
    Dice dice(text.size());
    for (int i = 0; i < 2; ++i) {
      const Result<std::string> wanted = ApplyOverrides(document, RandomChanges(dice));
      if (!wanted.ok() || !ParseScenario(wanted.value()).ok()) continue;
      const Rewritten out = Good(Rewrite({"", text}, wanted.value()));
      const Imported again = Import(out.text);
      ASSERT_TRUE(again.issues.empty()) << out.text << Listed(again);
      EXPECT_EQ(Good(Rewrite({"", out.text}, wanted.value())).text, out.text);
      const bool all = std::none_of(out.left_out.begin(), out.left_out.end(), [](const auto& note) {
        return note.what.find(" = ") != std::string::npos ||
               note.what.find("as by default") != std::string::npos;
      });
      ++(all ? whole : partly);
      if (all) {
        EXPECT_EQ(Servers(again.document), Servers(wanted.value())) << text << out.text;
      }
    }
  }
  fmt::print("{} texts, {} refused; {} changed whole, {} partly\n", texts.size(), refused, whole,
             partly);
  EXPECT_GT(whole, 8 * partly);
  EXPECT_LT(refused, 12);
}

TEST(Rewrite, AnyCutOfAnyText_HasAnAnswer) {
  Dice dice(7);
  for (const std::string& text : ServerTexts()) {
    const std::string document = Import(text).document;
    const Result<std::string> wanted = ApplyOverrides(document, RandomChanges(dice));
    if (!wanted.ok() || !ParseScenario(wanted.value()).ok()) continue;
    for (int i = 0; i < 3; ++i) {
      const auto size = static_cast<std::int64_t>(text.size());
      const auto begin = static_cast<std::size_t>(dice.Between(0, size - 1));
      std::string cut = text.substr(begin, static_cast<std::size_t>(dice.Between(1, size)));
      if (dice.Percent(30)) cut.insert(static_cast<std::size_t>(cut.size() / 2), "\r\n");
      const Result<Rewritten> out = Rewrite({"", cut}, wanted.value());
      EXPECT_TRUE(out.ok() || !out.issues()[0].message.empty()) << cut;
    }
  }
  const std::string mixed = "vllm serve Qwen/Qwen3-8B \\\r\n  --max-num-seqs 8\n";
  const std::string wanted =
      Good(ApplyOverrides(Import(mixed).document, {"engine.max_num_seqs=9"}));
  EXPECT_EQ(Good(Rewrite({"", mixed}, wanted)).text,
            "vllm serve Qwen/Qwen3-8B \\\r\n  --max-num-seqs 9\n");
}

TEST(Rewrite, Forms_AreKept) {
  struct Case {
    const char* text;
    std::vector<std::string> set;
    const char* rewritten;
  };
  const Case kCases[] = {
      {"vllm serve Qwen/Qwen3-8B",
       {"engine.max_num_seqs=7"},
       "vllm serve Qwen/Qwen3-8B --max-num-seqs 7"},
      {"vllm serve Qwen/Qwen3-8B -tp 2 \\\n  --max-num-seqs 8\n",
       {"cluster.pools.0.tensor_parallel=1"},
       "vllm serve Qwen/Qwen3-8B -tp 1 \\\n  --max-num-seqs 8\n"},
      {"vllm serve Qwen/Qwen3-8B \\\n  --max-num-seqs=8 \\\n  --port 1\n",
       {"engine.max_num_seqs=9", "engine.enable_prefix_caching=false"},
       "vllm serve Qwen/Qwen3-8B \\\n  --max-num-seqs=9 \\\n  --no-enable-prefix-caching \\\n"
       "  --port 1\n"},
      {"vllm serve Qwen/Qwen3-8B \\\n  --max-num-seqs 8 \\\n  --kv-cache-dtype fp8\n",
       {"engine.kv_cache_dtype=auto"},
       "vllm serve Qwen/Qwen3-8B \\\n  --max-num-seqs 8\n"},
      {"vllm serve Qwen/Qwen3-8B --no-enable-prefix-caching --max-num-seqs \"$SEATS\"",
       {"engine.max_num_seqs=5", "engine.enable_prefix_caching=true"},
       "vllm serve Qwen/Qwen3-8B --enable-prefix-caching --max-num-seqs \"5\""},
      {"kind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.11.0\n"
       "    args: [\"--model\", \"Qwen/Qwen3-8B\", \"--kv-cache-dtype\", \"fp8\", \"--port\", "
       "\"1\"]\n",
       {"engine.kv_cache_dtype=auto"},
       "kind: Pod\nspec:\n  containers:\n  - image: vllm/vllm-openai:v0.11.0\n"
       "    args: [\"--model\", \"Qwen/Qwen3-8B\", \"--port\", \"1\"]\n"},
      {"vllm serve Qwen/Qwen3-8B --kv-cache-dtype 'fp8' --port 80",
       {"engine.kv_cache_dtype=auto"},
       "vllm serve Qwen/Qwen3-8B --port 80"},
      {"# --max-num-seqs 64 was too few\nvllm serve Qwen/Qwen3-8B --port 1 --max-num-seqs 64 &\n"
       "vllm serve Qwen/Qwen3-8B --port 2 --max-num-seqs 64 &\n"
       "python tune.py --max-num-seqs 64\n",
       {"engine.max_num_seqs=96"},
       "# --max-num-seqs 64 was too few\nvllm serve Qwen/Qwen3-8B --port 1 --max-num-seqs 96 &\n"
       "vllm serve Qwen/Qwen3-8B --port 2 --max-num-seqs 96 &\n"
       "python tune.py --max-num-seqs 64\n"},
      {"vllm serve Qwen/Qwen3-8B --speculative-config "
       "'{\"method\": \"ngram\", \"prompt_lookup_max\": 3, \"num_speculative_tokens\": 4}'",
       {"engine.speculative.num_speculative_tokens=2"},
       "vllm serve Qwen/Qwen3-8B --speculative-config "
       "'{\"method\": \"ngram\", \"prompt_lookup_max\": 3, \"num_speculative_tokens\": 2}'"},
      {"vllm serve Qwen/Qwen3-8B \\\r\n  --max-num-seqs 8 \\\r\n  --port 1\r\n",
       {"engine.enable_prefix_caching=false"},
       "vllm serve Qwen/Qwen3-8B \\\r\n  --max-num-seqs 8 \\\r\n  --no-enable-prefix-caching \\\r\n"
       "  --port 1\r\n"},
      {"python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2",
       {"cluster.pools.0.tensor_parallel=4", "engine.max_num_seqs=64"},
       "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 4 --max-running-requests "
       "64"},
  };
  for (const Case& each : kCases) {
    const std::string wanted = Changed(each.set, Import(each.text).document);
    const Rewritten out = Good(Rewrite({"", each.text}, wanted));
    EXPECT_EQ(out.text, each.rewritten);
    EXPECT_TRUE(out.left_out.empty()) << out.left_out[0].what;
  }
}

TEST(Rewrite, WhatATextCannotSay_IsSaid) {
  const std::string text = "CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-8B --max-num-seqs 8";
  const std::string document = Import(text).document;
  const auto left = [&](const std::vector<std::string>& set) {
    std::string said;
    for (const ImportNote& note : Good(Rewrite({"", text}, Changed(set, document))).left_out) {
      said += note.what + ": " + note.why + "\n";
    }
    return said;
  };
  EXPECT_EQ(left({"cluster.pools.0.replicas=3"}),
            "cluster.pools.0.replicas = 3: how many there are is no option of this text\n");
  EXPECT_EQ(left({"hardware.preset=l40s"}),
            "hardware.preset = \"l40s\": choose nodes with that GPU\n");
  EXPECT_EQ(left({"model.preset=qwen3-14b"}),
            "model.preset = \"qwen3-14b\": put the model's name in the text\n");
  EXPECT_NE(left({"cluster.pools.0.tensor_parallel=2"}).find("2 GPUs of a server in place of 1"),
            std::string::npos);
  EXPECT_EQ(left({"workload.requests=7"}), "");  // is no server's
  EXPECT_EQ(left({R"(cluster.pools=[{"replicas":1},{"replicas":2}])"}),
            "2 pools: the text starts 1: add the others to it\n");
  const Result<Rewritten> none =
      Rewrite({"", "vllm bench serve --model Qwen/Qwen3-8B --num-prompts 10"}, document);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.issues()[0].message.find("no server"), std::string::npos);
  EXPECT_FALSE(Rewrite({"", std::string(2 << 20, 'x')}, document).ok());
  const Result<Rewritten> nodes =
      Rewrite({"", "vllm serve Qwen/Qwen3-8B --nnodes 2 --node-rank 0 --max-num-seqs 8"}, document);
  ASSERT_FALSE(nodes.ok());
  EXPECT_NE(nodes.issues()[0].message.find("several nodes"), std::string::npos);
}

// "maxNumSeqs" of many servers, and one option many times: it ends, and says what it left.
TEST(Rewrite, ManyPlaces_EndInTime) {
  std::string text = "vllm serve Qwen/Qwen3-8B";
  while (text.size() < 200'000) text += " --max-num-seqs $(( 1 + 2 )) --max-model-len 8192";
  const Result<Rewritten> out =
      Rewrite({"", text}, Changed({"engine.max_num_seqs=5"}, Import(text).document));
  ASSERT_TRUE(out.ok());
}

// The lines that a diff makes of `before`; "" where it is of another text.
std::string Patched(const std::string& before, const std::string& diff) {
  const auto lines_of = [](const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      lines.push_back(text.substr(at, end - at));
      at = end;
    }
    return lines;
  };
  const std::vector<std::string> old = lines_of(before);
  std::string out;
  std::size_t next = 0;
  bool head = true;
  const std::vector<std::string> lines = lines_of(diff);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with("@@ -")) {
      const auto first = static_cast<std::size_t>(std::atoll(lines[i].c_str() + 4));
      const std::size_t comma = lines[i].find_first_of(", ", 4);
      const bool none = lines[i].substr(comma, 3) == ",0 ";
      const std::size_t begin = none ? first : first - 1;
      for (; next < begin; ++next) out += old[next];
      head = false;
      continue;
    }
    if (head || lines[i][0] == '\\') continue;
    std::string line = lines[i].substr(1);
    if (i + 1 < lines.size() && lines[i + 1][0] == '\\') line.pop_back();
    if (lines[i][0] != '+' && (next >= old.size() || old[next++] != line)) return "";
    if (lines[i][0] != '-') out += line;
  }
  for (; next < old.size(); ++next) out += old[next];
  return out;
}

TEST(UnifiedDiff, OfRandomTexts_MakesTheOtherOne) {
  EXPECT_EQ(UnifiedDiff("a\nb\n", "a\nb\n", "x"), "");
  EXPECT_EQ(UnifiedDiff("a\nb\nc\n", "a\nB\nc\n", "x"),
            "--- x\n+++ x\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
  Dice dice(11);
  for (int i = 0; i < 2000; ++i) {
    std::string before, after;
    const std::int64_t lines = dice.Between(0, 40);
    for (std::int64_t k = 0; k < lines; ++k) {
      const std::string line = fmt::format("{}\n", dice.Between(0, 5));
      if (!dice.Percent(10)) before += line;
      if (!dice.Percent(10)) after += line;
    }
    if (dice.Percent(20)) before += "end";
    if (dice.Percent(20)) after += "end";
    const std::string diff = UnifiedDiff(before, after, "x");
    EXPECT_EQ(Patched(before, diff), after) << before << "---\n" << after << "---\n" << diff;
    EXPECT_EQ(diff.empty(), before == after);
  }
}

}  // namespace
}  // namespace servecast::testing::rewrite_test
