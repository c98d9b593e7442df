// Scenario documents as texts: syntax, canonical form and ids, overrides and links.
#include "servecast/scenario.h"

#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "io/presets.h"
#include "servecast/workload_spec.h"
#include "testing/words.h"

namespace servecast::testing {
namespace {

Issues ParseIssues(const std::string& text) {
  const Result<Scenario> scenario = ParseScenario(text);
  return scenario.ok() ? Issues{} : scenario.issues();
}

TEST(ParseScenario, SyntaxErrors_HaveLineAndColumn) {
  const struct {
    const char* text;
    const char* where;
  } cases[] = {
      {"", "line 1, column 1"},
      {"{", "line 1, column 2"},
      {"{\"schema\": 1,}", "line 1, column 14"},
      {"{\n  \"schema\": 1\n  \"name\": 2\n}", "line 3, column"},
      {"{\"schema\": NaN}", "line 1, column"},
      {"{\"schema\": Infinity}", "line 1, column"},
      {"{'schema': 1}", "line 1, column 2"},
      {"[1, 2", "line 1, column"},
      {"{\"a\": 01}", "line 1, column"},
      {"{\"a\": \"\xFF\"}", "line 1, column"},
      {"{\"a\": \"\n\"}", "column"},
      {"{} {}", "line 1, column 4"},
  };
  for (const auto& c : cases) {
    const Issues issues = ParseIssues(c.text);
    ASSERT_EQ(issues.size(), 1u) << c.text << Listed(issues);
    EXPECT_EQ(issues[0].path, "");
    EXPECT_TRUE(Contains(issues[0].message, c.where)) << c.text << ": " << issues[0].message;
  }
}

TEST(ParseScenario, OtherJson_IsNoScenario) {
  for (const char* text : {"null", "5", "[]", "\"x\"", "true"}) {
    EXPECT_EQ(ParseIssues(text).size(), 1u) << text;
  }
  EXPECT_EQ(ParseIssues("{}").size(), 4u);  // schema, model, hardware, workload
  EXPECT_EQ(Parsed(Changed({"schema=1.0"})).id, Parsed(SmallDocument()).id);
  for (const char* schema :
       {R"({"schema": 2})", R"({"schema": "1"})", R"({"schema": 1.5})", R"({"schema": null})"}) {
    const Issues issues = ParseIssues(schema);
    ASSERT_EQ(issues.size(), 1u) << schema;
    EXPECT_EQ(issues[0].path, "/schema");
  }
}

TEST(ParseScenario, NumberBeyondDoubles_IsNamed) {
  for (const char* number : {"1e999", "-1e999", "1e400"}) {
    const Issues issues = ParseIssues(R"({"schema": 1, "seed": )" + std::string(number) + "}");
    ASSERT_EQ(issues.size(), 1u) << number;
    EXPECT_TRUE(Contains(issues[0].message, "range")) << issues[0].message;
    EXPECT_TRUE(Contains(issues[0].message, number)) << issues[0].message;
  }
}

TEST(ParseScenario, LargeIntegers_AreNotBentIntoRange) {
  // 2^64 + 1 wraps to 1 in 64 bits.
  for (const char* seed : {"18446744073709551617", "18446744073709551615", "9007199254740992",
                           "-18446744073709551615"}) {
    const Issues issues = ParseIssues(Changed({std::string("seed=") + seed}));
    ASSERT_EQ(issues.size(), 1u) << seed;
    EXPECT_EQ(issues[0].path, "/seed");
  }
  EXPECT_EQ(Parsed(Changed({"seed=9007199254740991"})).seed, 9007199254740991);
  EXPECT_EQ(Parsed(Changed({"seed=1e3"})).seed, 1000);
}

TEST(ParseScenario, DuplicateKeys_AreNamed) {
  std::string text = SmallDocument();
  text.insert(text.find("\"model\""), R"("engine": {"block_size": 16, "block_size": 32}, )");
  const Issues issues = ParseIssues(text);
  ASSERT_EQ(issues.size(), 1u) << Listed(issues);
  EXPECT_EQ(issues[0].path, "/engine/block_size");
  EXPECT_TRUE(Contains(issues[0].message, "twice"));
  EXPECT_EQ(ParseIssues(R"({"schema": 1, "schema": 1})").size(), 1u);
}

TEST(ParseScenario, DeepNesting_IsRefusedNotRecursedInto) {
  for (const int levels : {65, 1000, 1000000}) {
    const std::string lists(static_cast<std::size_t>(levels), '[');
    EXPECT_EQ(ParseIssues(lists).size(), 1u) << levels;
    EXPECT_TRUE(Contains(ParseIssues(lists)[0].message, "deep")) << levels;
    std::string objects;
    for (int i = 0; i < levels; ++i) objects += "{\"a\":";
    EXPECT_EQ(ParseIssues(objects).size(), 1u) << levels;
  }
  EXPECT_EQ(ParseIssues(std::string(5 << 20, ' ')).size(), 1u);
}

TEST(ParseScenario, MissingSections_AreEachSaid) {
  const Issues issues = ParseIssues(R"({"schema": 1})");
  ASSERT_EQ(issues.size(), 3u) << Listed(issues);
  EXPECT_EQ(issues[0].path, "/model");
  EXPECT_EQ(issues[1].path, "/hardware");
  EXPECT_EQ(issues[2].path, "/workload");
}

// Those of the menu by name, the others by number.
TEST(ParseScenario, UnknownModel_IsToldHowManyThereAre) {
  const Issues issues = ParseIssues(Changed({"model.preset=?"}));
  ASSERT_EQ(issues.size(), 1u);
  const std::size_t others = AllPresetIds("models").size() - PresetIds("models").size();
  EXPECT_TRUE(Contains(issues[0].message, std::to_string(others) + " others (servecast catalog)"))
      << issues[0].message;
}

TEST(ParseScenario, UnknownPresets_AreToldTheirNeighbours) {
  const struct {
    const char* change;
    const char* path;
    const char* meant;
  } cases[] = {{"model.preset=llama-3.1-8", "/model/preset", "llama-3.1-8b"},
               {"hardware.preset=h100-sxn", "/hardware/preset", "h100-sxm"},
               {"hardware.preset=h100", "/hardware/preset", "h100-sxm"},
               {"engine.preset=vlm", "/engine/preset", "vllm"},
               {"workload={\"preset\":\"chatt\"}", "/workload/preset", "chat"}};
  for (const auto& c : cases) {
    const Issues issues = ParseIssues(Changed({c.change}));
    ASSERT_EQ(issues.size(), 1u) << c.change << "\n" << Listed(issues);
    EXPECT_EQ(issues[0].path, c.path);
    EXPECT_TRUE(Contains(issues[0].message, std::string("did you mean \"") + c.meant + "\""))
        << issues[0].message;
  }
  for (const char* wrong :
       {"model.preset=5", "model.preset=null", "model.preset=[]", "model.preset="}) {
    const Issues issues = ParseIssues(Changed({wrong}));
    ASSERT_FALSE(issues.empty()) << wrong;
    EXPECT_EQ(issues[0].path, "/model/preset") << wrong << Listed(issues);
  }
}

TEST(ParseScenario, HostileKeysAndValues_AreQuotedSafely) {
  const std::string keys[] = {"a/b~c", std::string("nul\\u0000x"), "\\\"quoted\\\"",
                              "\\uD83D\\uDE00", std::string(100000, 'k')};
  for (const std::string& key : keys) {
    std::string text = SmallDocument();
    text.insert(1, "\"" + key + "\": 1, ");
    const Issues issues = ParseIssues(text);
    ASSERT_EQ(issues.size(), 1u) << key.substr(0, 50);
    EXPECT_EQ(issues[0].path[0], '/');
  }
  std::string text = SmallDocument();
  text.insert(1, "\"a/b~c\": 1, ");
  EXPECT_EQ(ParseIssues(text)[0].path, "/a~1b~0c");
}

TEST(ParseScenario, ManyIssues_AreListedUpToAHundredAndCounted) {
  std::string text = SmallDocument();
  std::string members;
  for (int i = 0; i < 10'000; ++i) members += "\"x" + std::to_string(i) + "\": 1, ";
  text.insert(1, members);
  text.insert(text.find("\"arrivals\""), members);
  const Issues issues = ParseIssues(text);
  ASSERT_EQ(issues.size(), 101u);
  EXPECT_EQ(issues[100].message, "and 19900 more issues");
  EXPECT_EQ(issues[100].kind, "more");

  std::string twice = "{";
  for (int i = 0; i < 1000; ++i) twice += "\"a\": 1, ";
  const Issues duplicates = ParseIssues(twice + "\"schema\": 1}");
  ASSERT_EQ(duplicates.size(), 101u);
  EXPECT_EQ(duplicates[100].message, "and 899 more issues");

  std::vector<std::string> overrides(500, "nothing");
  const Result<std::string> changed = ApplyOverrides(SmallDocument(), overrides);
  ASSERT_EQ(changed.issues().size(), 101u);
  EXPECT_EQ(changed.issues()[100].message, "and 400 more issues");
}

TEST(ParseScenario, LongAndUnprintableKeys_AreShortenedAndEscaped) {
  const std::string keys[] = {std::string(4'000'000, 'k'), "\\u001b[31mred", "\\u202Eright to left",
                              "\xC2\x9B"
                              "31m",
                              "\\u2066isolate"};
  for (const std::string& key : keys) {
    // Unknown, standing twice, and on the way to another.
    const std::string quoted = "\"" + key + "\": ";
    const std::string texts[] = {"{" + quoted + "1, " + SmallDocument().substr(1),
                                 "{" + quoted + "1, " + quoted + "2}",
                                 "{" + quoted + "{\"a\": 1, \"a\": 2}}"};
    for (const std::string& text : texts) {
      const Issues issues = ParseIssues(text.size() < 4'100'000 ? text : text.substr(0, 100));
      ASSERT_FALSE(issues.empty());
      const std::string shown = issues[0].path + issues[0].message;
      EXPECT_LT(shown.size(), 500u);
      for (const char* raw : {"\x1b", "\xE2\x80\xAE", "\xC2\x9B", "\xE2\x81\xA6"}) {
        EXPECT_FALSE(Contains(shown, raw)) << shown;
      }
    }
  }
  const std::string link =
      "p=llama-3.1-8b-h100-chat&a%1Bb%E2%80%AE." + std::string(9000, 'k') + "=1";
  const Result<std::string> text = ParseReadableLink(link);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(ParseIssues(text.value())[0].path, "/a\\u001bb\\u202e");
}

std::vector<std::string> Documents() {
  std::vector<std::string> documents = {
      SmallDocument(),
      Changed({"engine.max_num_seqs=100", "name=A name", "seed=7"}),
      Changed({"latency.backend=blackbox", "latency.beta=[1000.5,0.1,1e-7]"}),
      Changed({"workload.prompt_tokens.distribution=lognormal", "workload.prompt_tokens.max=4000"}),
      Changed({"workload.prompt_tokens.distribution=uniform", "workload.prompt_tokens.max=4000"}),
      Changed({"workload.prompt_tokens.distribution=empirical",
               "workload.prompt_tokens.quantiles=[[0,1],[0.5,20.5],[1,30]]"}),
      Changed({"workload.arrivals.process=trace", "workload.prompt_tokens.distribution=trace"}),
      Changed(
          {"slo.0.metric=ttft", "slo.0.limit_ms=100", "slo.1.metric=tpot", "slo.1.limit_ms=0.5"}),
      Changed(
          {"measure.horizon_s=10", "engine.max_model_len=5000", "hardware.price_per_gpu_hour=2.5"}),
      Changed({"workload={\"preset\":\"chat\",\"prompt_tokens\":{\"max\":null,\"median\":300}}"}),
      Changed({"workload={\"preset\":\"code\",\"output_tokens\":{\"distribution\":\"fixed\","
               "\"value\":9}}"}),
      Changed({"description=\"line\\nbreak, \\\"quotes\\\", \\u00e9 and \\ud83d\\ude00\""}),
      Changed({"cluster.pools.0.tensor_parallel=2", "model.max_position_embeddings=9000"}),
      Changed({"workload.prefix={\"groups\":3,\"tokens\":500}", "workload.sessions.turns=4",
               "workload.classes.0.name=a", "workload.classes.1={\"name\":\"b\",\"share\":2.5}"}),
      Changed({"workload.arrivals.process=trace", "workload.arrivals.rate_scale=3",
               "scheduler.priority=slo_based", "scheduler.age_weight_per_s=2",
               "engine.async_scheduling=true"}),
  };
  for (const char* preset :
       {"llama-3.1-8b-h100-multi-turn", "llama-3.1-8b-h100-chat", "llama-3.1-70b-h100x4-rag",
        "llama-2-7b-a100-azure", "qwen2.5-7b-l40s-code"}) {
    documents.emplace_back(ScenarioPreset(preset).value_or("no such preset"));
  }
  return documents;
}

TEST(CanonicalText, OfItself_IsItself) {
  for (const std::string& document : Documents()) {
    const Scenario once = Parsed(document);
    const Scenario twice = Parsed(once.canonical_text);
    EXPECT_EQ(twice.canonical_text, once.canonical_text);
    EXPECT_EQ(twice.id, once.id);
    EXPECT_EQ(twice.resolved_text, once.resolved_text);
    EXPECT_EQ(twice.content_hash, once.content_hash);
  }
}

TEST(Prices, OnesOwn_HasNotTheTermsOfThePresets) {
  const auto basis = [](const char* hardware) {
    return Parsed(Changed({std::string("hardware=") + hardware})).hardware.price_basis;
  };
  EXPECT_FALSE(basis(R"({"preset":"h100-sxm"})").empty());
  EXPECT_EQ(basis(R"({"preset":"h100-sxm","price_per_gpu_hour":3})"), "");
  EXPECT_EQ(basis(R"({"preset":"h100-sxm","price_per_gpu_hour":3,"price_basis":"bid"})"), "bid");
  // A preset with one and not the other would show a price without its source.
  for (const std::string_view id : PresetIds("hardware")) {
    const Scenario s = Parsed(Changed({"hardware={\"preset\":\"" + std::string(id) + "\"}"}));
    EXPECT_EQ(s.hardware.price_per_gpu_hour.has_value(), !s.hardware.price_basis.empty()) << id;
  }
}

TEST(CanonicalText, Defaults_AreDroppedAndKeysSorted) {
  EXPECT_EQ(Parsed(SmallDocument()).canonical_text,
            R"({"hardware":{"preset":"h100-sxm"},"model":{"preset":"llama-3.1-8b"},"schema":1,)"
            R"("workload":{"arrivals":{"rate_per_s":10},"output_tokens":{"value":20},)"
            R"("prompt_tokens":{"value":100},"requests":50}})");
}

TEST(CanonicalText, SpellingsOfOneScenario_HaveOneId) {
  const Scenario plain = Parsed(SmallDocument());
  const std::string spellings[] = {
      R"({"workload": {"requests": 50.0, "output_tokens": {"value": 2e1, "distribution": "fixed"},
          "prompt_tokens": {"value": 100}, "arrivals": {"process": "poisson", "rate_per_s": 1.0E1}},
          "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"}, "schema": 1})",
      Changed({"engine.preset=vllm", "engine.max_num_seqs=256", "engine.watermark=0.0"}),
      Changed({"seed=1", "cluster.pools.0.tensor_parallel=1", "scheduler.policy=vllm"}),
      Changed({"slo=[]", "measure.horizon_s=null", "latency.backend=auto", "name="}),
      Changed({"model.hidden_size=4096", "hardware.memory_gib=79.19"}),
      "\n\t " + SmallDocument() + "\n",
  };
  for (const std::string& spelling : spellings) {
    EXPECT_EQ(Parsed(spelling).canonical_text, plain.canonical_text);
    EXPECT_EQ(Parsed(spelling).id, plain.id);
    EXPECT_EQ(Parsed(spelling).content_hash, plain.content_hash);
  }
  EXPECT_NE(Parsed(Changed({"seed=2"})).id, plain.id);
  EXPECT_NE(Parsed(Changed({"engine.watermark=0.01"})).id, plain.id);
}

TEST(CanonicalText, Labels_ChangeTheIdButNotTheContent) {
  const Scenario plain = Parsed(SmallDocument()),
                 named = Parsed(Changed({"name=Mine", "description=x"}));
  EXPECT_NE(named.id, plain.id);
  EXPECT_EQ(named.content_hash, plain.content_hash);
}

TEST(ResolvedText, RunAgain_IsTheSameRun) {
  for (const std::string& document : Documents()) {
    const Scenario scenario = Parsed(document), again = Parsed(scenario.resolved_text);
    EXPECT_EQ(again.resolved_text, scenario.resolved_text);
    EXPECT_EQ(again.content_hash, scenario.content_hash);
    EXPECT_FALSE(Contains(scenario.resolved_text, "\"preset\""));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(RunToEnd(Parsed(Documents()[i]).resolved_text).fingerprint,
              RunToEnd(Documents()[i]).fingerprint);
  }
}

TEST(PresetSections, Members_LieOverThePreset) {
  const Scenario s = Parsed(
      Changed({"workload={\"preset\":\"chat\",\"prompt_tokens\":{\"median\":300},\"output_tokens\":"
               "{\"distribution\":\"fixed\"}}"}));
  EXPECT_EQ(s.workload->prompt_tokens.distribution, LengthDistribution::kLognormal);
  EXPECT_EQ(s.workload->prompt_tokens.median, 300);
  EXPECT_EQ(s.workload->prompt_tokens.p99, 1646);
  EXPECT_EQ(s.workload->prompt_tokens.max, 4096);
  // Another distribution: nothing of the preset's is left.
  EXPECT_EQ(s.workload->output_tokens.value, LengthSpec{}.value);
  EXPECT_FALSE(s.workload->output_tokens.max);
}

TEST(PresetSections, EnginesOfVersions_HaveTheirRules) {
  const struct {
    const char* preset;
    bool full_prompt, contentless_first, async;
    double memory;
  } cases[] = {{"vllm-0.11", false, false, false, 0.9},  {"vllm-0.15", false, false, true, 0.9},
               {"vllm-0.19", true, false, true, 0.9},    {"vllm-0.20", true, false, true, 0.9},
               {"vllm-2026-08", true, true, true, 0.92}, {"vllm", true, true, true, 0.9}};
  for (const auto& c : cases) {
    const EngineSpec e = Parsed(Changed({std::string("engine.preset=") + c.preset})).engine;
    EXPECT_EQ(e.scheduler_reserve_full_isl, c.full_prompt) << c.preset;
    EXPECT_EQ(e.free_contentless_first, c.contentless_first) << c.preset;
    EXPECT_EQ(e.async_scheduling, c.async) << c.preset;
    EXPECT_EQ(e.gpu_memory_utilization, c.memory) << c.preset;
    EXPECT_TRUE(e.enable_prefix_caching) << c.preset;
    EXPECT_EQ(e.watermark, 0) << c.preset;
  }
}

TEST(PresetSections, Null_TakesAnOptionalMemberAwayOnly) {
  const Scenario s =
      Parsed(Changed({"workload={\"preset\":\"chat\",\"prompt_tokens\":{\"max\":null}}"}));
  EXPECT_FALSE(s.workload->prompt_tokens.max);
  for (const char* change : {"model.num_key_value_heads=null", "engine.max_num_seqs=null",
                             "hardware.memory_gib=null", "engine.watermark=null"}) {
    const Issues issues = ParseIssues(Changed({change}));
    ASSERT_EQ(issues.size(), 1u) << change;
    EXPECT_TRUE(Contains(issues[0].message, "found null")) << issues[0].message;
  }
}

TEST(ApplyOverrides, Paths_ReachMembersAndItems) {
  EXPECT_EQ(Good(ApplyOverrides("{}", {"a.b=1", "a.c=text", "a.d=\"5\"", "e=[1,2]", "e.1=7"})),
            R"({"a":{"b":1,"c":"text","d":"5"},"e":[1,7]})");
  EXPECT_EQ(
      Good(ApplyOverrides(R"({"slo":[{"limit_ms":1}]})", {"slo.0.limit_ms=2", "slo.1.limit_ms=3"})),
      R"({"slo":[{"limit_ms":2},{"limit_ms":3}]})");
  EXPECT_EQ(Good(ApplyOverrides("{}", {"slo.0.limit_ms=2"})), R"({"slo":[{"limit_ms":2}]})");
  EXPECT_EQ(Good(ApplyOverrides("{}", {"a=b=c", "d="})), R"({"a":"b=c","d":""})");
  EXPECT_EQ(Good(ApplyOverrides("{}", {"a=1e-7", "b=14.0", "c=true", "d=null", "e=-5"})),
            R"({"a":1e-7,"b":14,"c":true,"d":null,"e":-5})");
}

// Of every section that may start from a preset: a name alone is one, and later members are over
// it, whether the name stands in the document or is another change.
TEST(ApplyOverrides, ANameAloneIsThePreset) {
  const std::vector<std::vector<std::string>> kSections = {
      {"model", "qwen3-32b", "quantization=fp8"},
      {"hardware", "h200-sxm", "gpus_per_node=4"},
      {"engine", "vllm-0.20", "max_num_seqs=77"},
      {"workload", "chat", "requests=77"},
      {"cluster.pools.0.hardware", "h200-sxm", "memory_gib=100"},
      {"cluster.pools.0.engine", "vllm-0.20", "max_num_seqs=77"}};
  const auto preset = ScenarioPreset("llama-3.1-8b-h100-chat");
  for (const std::vector<std::string>& each : kSections) {
    const std::string change = each[0] + "=" + each[1], member = each[0] + "." + each[2];
    const std::string named = Good(ApplyOverrides(*preset, {each[0] + ".preset=" + each[1]}));
    const bool pool = each[0].find("cluster") == 0;
    const std::string alone = Good(ApplyOverrides(*preset, {change}));
    const std::string both = Good(ApplyOverrides(*preset, {change, member}));
    EXPECT_TRUE(ParseIssues(alone).empty()) << change << Listed(ParseIssues(alone));
    EXPECT_TRUE(ParseIssues(both).empty()) << member << Listed(ParseIssues(both));
    EXPECT_NE(Parsed(both).canonical_text, Parsed(alone).canonical_text) << member;
    if (pool) EXPECT_EQ(Parsed(alone).canonical_text, Parsed(named).canonical_text) << change;
  }
  EXPECT_EQ(Good(ApplyOverrides(R"({"cluster":{"pools":[{"engine":"sglang"}]}})",
                                {"cluster.pools.0.engine.max_num_seqs=7"})),
            R"({"cluster":{"pools":[{"engine":{"max_num_seqs":7,"preset":"sglang"}}]}})");
  EXPECT_EQ(Good(ApplyOverrides("{}", {"cluster.pools.0.scheduler=sglang", "scheduler=trtllm",
                                       "cluster.pools.0.scheduler.max_total_tokens=7"})),
            R"({"cluster":{"pools":[{"scheduler":{"max_total_tokens":7,"policy":"sglang"}}]},)"
            R"("scheduler":{"policy":"trtllm"}})");
  // Other texts are no sections.
  EXPECT_FALSE(ApplyOverrides("{}", {"name=a", "name.b=1"}).ok());
  const Result<std::string> link =
      ParseReadableLink("p=llama-3.1-8b-h100-chat&model=qwen3-32b&model.quantization=fp8");
  EXPECT_EQ(Parsed(Good(link)).model.quantization, Quantization::kFp8);
}

TEST(ApplyOverrides, AnotherVariant_ClearsTheOldMembers) {
  const std::string document =
      R"({"p":{"distribution":"fixed","value":5},"a":{"process":"poisson"}})";
  EXPECT_EQ(Good(ApplyOverrides(document, {"p.distribution=uniform", "p.max=9"})),
            R"({"a":{"process":"poisson"},"p":{"distribution":"uniform","max":9}})");
  EXPECT_EQ(Good(ApplyOverrides(document, {"p.distribution=fixed"})),
            R"({"a":{"process":"poisson"},"p":{"distribution":"fixed","value":5}})");
}

TEST(ApplyOverrides, AnotherVariant_KeepsWhatBothHave) {
  const std::string rate = "workload.arrivals.rate_per_s=20";
  const std::string constant = "workload.arrivals.process=constant";
  for (const std::vector<std::string>& changes :
       {std::vector<std::string>{rate, constant}, {constant, rate}}) {
    const std::string text = Good(ApplyOverrides(SmallDocument(), changes));
    EXPECT_DOUBLE_EQ(Parsed(text).workload->arrivals.rate_per_s, 20);
  }
  // The preset chose lognormal lengths; what only those have goes, wherever it was written.
  const auto preset = ScenarioPreset("llama-3.1-8b-h100-chat");
  const std::string fixed = Good(ApplyOverrides(
      *preset, {"workload.prompt_tokens.median=300", "workload.prompt_tokens.distribution=fixed",
                "workload.prompt_tokens.value=7"}));
  EXPECT_EQ(Parsed(fixed).workload->prompt_tokens.value, 7);
  const std::string canonical = Parsed(fixed).canonical_text;
  EXPECT_EQ(Parsed(canonical).canonical_text, canonical);
}

TEST(ApplyOverrides, MalformedPaths_AreIssues) {
  for (const char* change :
       {"", "=", "=5", "novalue", ".=1", "a.=1", ".a=1", "a..b=1", "slo.9.x=1", "slo.x.y=1",
        "slo.-1.x=1", "schema.x=1", "schema.x.y=1", "slo.99999999999=1"}) {
    const Result<std::string> changed =
        ApplyOverrides(R"({"schema":1,"slo":[{"x":1}]})", {change, "good=1"});
    EXPECT_FALSE(changed.ok()) << change << " gave " << (changed.ok() ? changed.value() : "");
  }
  EXPECT_FALSE(ApplyOverrides("{", {"a=1"}).ok());
}

TEST(ApplyOverrides, IntegersBeyondInt64_AreNotBentIntoRange) {
  // As int64 it would be -1, which a priority may be.
  const std::vector<std::string> change = {
      R"(workload.classes=[{"name": "a", "priority": 18446744073709551615}])"};
  const Issues issues = ParseIssues(Changed(change));
  ASSERT_EQ(issues.size(), 1u) << Listed(issues);
  EXPECT_EQ(issues[0].path, "/workload/classes/0/priority");
  EXPECT_TRUE(Contains(issues[0].message, "found 18446744073709551615")) << issues[0].message;
}

TEST(ReadableLink, PresetAndOverrides_AreOneDocument) {
  const Scenario s =
      Parsed(Good(ParseReadableLink("p=llama-3.1-8b-h100-chat&workload.arrivals.rate_per_s=14&slo."
                                    "0.limit_ms=500&name=A%20%26%3D%C3%A9")));
  EXPECT_EQ(s.workload->arrivals.rate_per_s, 14);
  EXPECT_EQ(s.slo[0].limit_ms, 500);
  EXPECT_EQ(s.name, "A &=\xC3\xA9");
  // Order does not matter; nor do empty parts.
  EXPECT_EQ(
      Parsed(Good(ParseReadableLink("&workload.arrivals.rate_per_s=14&&p=llama-3.1-8b-h100-chat&")))
          .workload->arrivals.rate_per_s,
      14);
}

TEST(ReadableLink, HostileLinks_AreIssuesNotCrashes) {
  const std::string preset = "p=llama-3.1-8b-h100-chat";
  std::string deep = "a", many;
  for (int i = 0; i < 200000; ++i) deep += ".a";
  for (int i = 0; i < 20000; ++i) many += "&x" + std::to_string(i) + "=1";
  const std::string links[] = {
      "",
      "p=",
      "p=nonsense",
      "p=" + std::string(1000000, 'x'),
      "%",
      "p=%",
      "p=%zz",
      preset + "&%",
      preset + "&a",
      preset + "&a=%FF%FE",
      preset + "&a=%00",
      preset + "&" + deep + "=1",
      preset + "&a=" + std::string(100000, '['),
      preset + many,
      preset + "&__proto__.x=1",
      preset + "&slo.1000000000.x=1",
      preset + "&schema=2",
      preset + "&model=5",
      preset + "&=",
  };
  for (const std::string& link : links) {
    const Result<std::string> document = ParseReadableLink(link);
    const Issues issues = document.ok() ? ParseIssues(document.value()) : document.issues();
    EXPECT_FALSE(issues.empty()) << link.substr(0, 100);
    for (const Issue& issue : issues) EXPECT_LT(issue.path.size(), 300000u);
  }
  EXPECT_TRUE(Contains(ParseReadableLink("p=llama-3.1-8b-h100-chatt").issues()[0].message,
                       "did you mean \"llama-3.1-8b-h100-chat\""));
}

TEST(Correlation, OfOutputsWithPrompts_NeedsPromptsOfOneDraw) {
  const std::string outputs =
      R"(workload.output_tokens={"distribution":"lognormal","median":100,"correlation":0.3})";
  const auto issues = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {outputs};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return IssuesOf(Changed(overrides));
  };
  EXPECT_TRUE(issues({}).empty());  // fixed prompts
  EXPECT_TRUE(issues({R"(workload.prompt_tokens={"distribution":"uniform","max":99})"}).empty());
  const std::string zipf = R"({"distribution":"zipf","max":99})";
  const Issues refused = issues({"workload.prompt_tokens=" + zipf});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].path, "/workload/output_tokens/correlation");
  // A class takes the workload's outputs, but has prompts of its own.
  const Issues of_class =
      issues({R"(workload.classes=[{"name":"a","prompt_tokens":)" + zipf + "}]"});
  ASSERT_EQ(of_class.size(), 1u);
  EXPECT_EQ(of_class[0].path, "/workload/classes/0/output_tokens/correlation");
  EXPECT_EQ(issues({"workload.output_tokens.correlation=1.5"}).size(), 1u);
}

TEST(HashText, AnyHash_HasSixteenDigits) {
  EXPECT_EQ(HashText(0), "0000000000000000");
  EXPECT_EQ(HashText(0x0123456789ABCDEFULL), "0123456789abcdef");
  EXPECT_EQ(HashText(~0ULL), "ffffffffffffffff");
}

}  // namespace
}  // namespace servecast::testing
