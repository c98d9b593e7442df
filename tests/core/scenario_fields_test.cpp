// Every field of a scenario document, by the catalogue that describes it: each value outside its
// range or of another type gives exactly one issue, at that field.
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "io/embedded_presets.h"
#include "io/presets.h"
#include "servecast/workload_spec.h"
#include "serving/cluster/router.h"
#include "serving/policy.h"
#include "serving/scaling/scaler.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

Json Read(const std::string& text) { return Json::parse(text, nullptr, false); }

// nlohmann prints 1e+300 and 14.0 where we do not; to the parser they are the same.
std::string Text(const Json& document) { return document.dump(); }

const Json& Catalogue() {
  static const Json kCatalogue = Read(CatalogJson());
  return kCatalogue;
}

// A document that spells out every member that it can, with one SLO, one class and a calibration.
Json Spelled() {
  return Read(Parsed(Changed({"slo.0.metric=ttft", "slo.0.limit_ms=500",
                              R"(calibration={"spec_version": "1.0",
                                "parameters": [{"path": "engine.step_overhead_us"}],
                                "seen": [{"of": "batch"}],
                                "errors": [{"of": "step", "figure": "tpot"}]})",
                              "workload.classes.0={\"name\":\"people\",\"timeout_s\":9}"}))
                  .resolved_text);
}

std::string Placed(std::string pointer) {
  const std::size_t item = pointer.find("/-");
  if (item != std::string::npos) pointer.replace(item, 2, "/0");
  return pointer;
}

std::string PointerOf(const Json& field) { return Placed(field["path"].get<std::string>()); }

// Of the choice that the field hangs on.
Json::json_pointer ChoiceOf(const Json& field) {
  return Json::json_pointer(Placed(field["when"]["path"].get<std::string>()));
}

// What a target of this metric cannot do without.
void AddLimit(const std::string& metric, Json& target) {
  if (metric == "ttft") target["limit_ms"] = 500;
  if (metric == "attainment") target["ttft_ms"] = 500;
}

// The document with the choice made that `field` needs.
Json DocumentFor(const Json& field) {
  Json document = Spelled();
  const std::string path = field["path"].get<std::string>();
  if (path.rfind("/cluster/disaggregation/", 0) == 0 ||
      path.rfind("/cluster/decode_router/", 0) == 0) {
    document["cluster"]["pools"] = {{{"role", "prefill"}}, {{"role", "decode"}}};
  }
  if (!field.contains("when")) return document;
  const Json::json_pointer choice = ChoiceOf(field);
  const std::string value = field["when"]["values"][0].get<std::string>();
  Json& object = document[choice.parent_pointer()];
  object = Json{{choice.back(), value}};
  AddLimit(value, object);
  if (value == "own") object["policy"] = "epp";
  if (value == "uniform" || value == "zipf") object["max"] = 100;
  if (value == "piecewise") object["rate_factors"] = {{0, 1}};
  if (value == "sglang" || value == "trtllm") document["workload"]["classes"][0].erase("timeout_s");
  if (value == "ngram") document["engine"]["async_scheduling"] = false;
  if (value == "empirical") object["quantiles"] = {{0, 10}, {1, 20}};
  return document;
}

void ExpectOneIssueAt(const Json& document, const std::string& pointer, const std::string& what) {
  const Issues issues = IssuesOf(Text(document));
  ASSERT_EQ(issues.size(), 1u) << pointer << " " << what << "\n" << Listed(issues);
  EXPECT_EQ(issues[0].path, pointer) << what << ": " << issues[0].message;
  EXPECT_NE(issues[0].message.find("found"), std::string::npos) << issues[0].message;
  EXPECT_NE(issues[0].message.find("allowed"), std::string::npos) << issues[0].message;
}

// Values that the field must refuse.
std::vector<Json> BadValues(const Json& field) {
  const std::string type = field["type"].get<std::string>();
  const bool optional = field["default"].is_null() && field["required"] == false;
  std::vector<Json> bad;
  if (type == "integer" || type == "number") {
    const double low = field["minimum"].get<double>(), high = field["maximum"].get<double>();
    const double step = type == "integer" ? 1 : 1e-9;
    bad = {low - step,     high + std::max(step, high * 1e-9),
           -1e300,         1e300,
           "text",         true,
           Json::array(),  Json::array({low}),
           Json::object(), std::to_string(static_cast<int>(low))};
    if (type == "integer") bad.push_back(low + 0.5);
  } else if (type == "boolean") {
    bad = {0, 1, "true", Json::array(), Json::object()};
  } else if (type == "text") {
    bad = {5, true, Json::array(), Json::object(), std::string(2001, 'x')};
  } else if (type == "choice") {
    bad = {5, true, "", "nonsense", Json::array(), Json::object()};
  } else if (type == "object") {
    bad = {5, "x", true, Json::array(), Json::array({1, 2})};
  } else if (field["path"].get<std::string>().find("quantiles") != std::string::npos) {
    bad = {5,
           "x",
           Json::object(),
           Json::array(),
           Json{{0, 1}},
           Json{{0, 1}, {0.9, 2}},
           Json{{0.1, 1}, {1, 2}},
           Json{{0, 5}, {0.5, 4}, {1, 6}},
           Json{{0, 5}, {0, 6}, {1, 7}},
           Json{{0, 0}, {1, 2}},
           Json{{0, 1}, {1, 2e9}},
           Json{{0, 1, 2}, {1, 2, 3}},
           Json{{0, "1"}, {1, 2}},
           Json{0, 1}};
  } else if (field["path"].get<std::string>().find("/arrivals/") != std::string::npos ||
             field["path"].get<std::string>().find("/failures/") != std::string::npos ||
             field["path"].get<std::string>().find("/slowdowns/") != std::string::npos) {
    bad = {5,
           "x",
           Json::object(),
           Json{0, 1},
           Json{{0}},
           Json{{0, 1, 2, 3}},
           Json{{0, "1", 1}},
           Json{{-1, 1, 1}},
           Json{{0, 2e8, 1}}};
  } else if (field["path"].get<std::string>().find("/speculative/") != std::string::npos) {
    bad = {5,
           "x",
           Json::object(),
           Json{0, 1},
           Json{{1}},
           Json{{1, 2, 3, 4}},
           Json{{0, "1", 1}},
           Json{{-1, 1, 1}}};
  } else {  // three coefficients
    bad = {5,
           "x",
           Json::object(),
           Json::array(),
           Json{1, 2},
           Json{1, 2, 3, 4},
           Json{-1, 0, 0},
           Json{0, 0, 2e9},
           Json{0, "1", 0},
           Json{0, nullptr, 0}};
  }
  if (!optional) bad.push_back(nullptr);
  return bad;
}

TEST(ScenarioField, EveryBadValue_IsOneIssueAtItsPointer) {
  int checked = 0;
  for (const Json& field : Catalogue()["fields"]) {
    const std::string pointer = PointerOf(field);
    for (const Json& bad : BadValues(field)) {
      Json document = DocumentFor(field);
      document[Json::json_pointer(pointer)] = bad;
      ExpectOneIssueAt(document, pointer, bad.dump());
      ++checked;
    }
  }
  EXPECT_GT(checked, 500);
}

TEST(ScenarioField, EndsOfARange_BelongToIt) {
  for (const Json& field : Catalogue()["fields"]) {
    if (field["type"] != "integer" && field["type"] != "number") continue;
    const std::string pointer = PointerOf(field);
    for (const char* end : {"minimum", "maximum"}) {
      Json document = DocumentFor(field);
      document[Json::json_pointer(pointer)] = field[end];
      const Result<Scenario> scenario = ParseScenario(Text(document));
      if (scenario.ok()) continue;
      // Only what several fields say together may object: "allowed from max_num_seqs 256 up".
      for (const Issue& issue : scenario.issues()) {
        EXPECT_EQ(issue.message.find(" to " + std::string(field["maximum"].dump())),
                  std::string::npos)
            << pointer << " " << issue.message;
        EXPECT_TRUE(issue.message.find(" up") != std::string::npos ||
                    issue.message.find("with pipeline_parallel above 1") != std::string::npos ||
                    issue.message.find("num_local_experts") != std::string::npos ||
                    issue.message.find("without experts") != std::string::npos ||
                    issue.message.find("how fast an engine wakes") != std::string::npos ||
                    issue.message.find("a divisor of replicas") != std::string::npos ||
                    issue.message.find("multiples of engine.block_size") != std::string::npos ||
                    issue.message.find("with pools of role") != std::string::npos ||
                    issue.message.find("with pools for prefill and decode") != std::string::npos)
            << pointer << " " << issue.message;
      }
    }
  }
}

TEST(ScenarioField, MissingRequiredMember_IsOneIssueAtItsPointer) {
  int checked = 0;
  for (const Json& field : Catalogue()["fields"]) {
    if (field["required"] == false) continue;
    Json document = DocumentFor(field);
    const Json::json_pointer pointer(PointerOf(field));
    document[pointer.parent_pointer()].erase(pointer.back());
    const Issues issues = IssuesOf(Text(document));
    ASSERT_EQ(issues.size(), 1u) << PointerOf(field) << "\n" << Listed(issues);
    EXPECT_EQ(issues[0].path, PointerOf(field));
    EXPECT_NE(issues[0].message.find("missing"), std::string::npos) << issues[0].message;
    ++checked;
  }
  EXPECT_GT(checked, 15);
}

TEST(ScenarioField, MistypedKey_IsToldItsNeighbour) {
  for (const Json& field : Catalogue()["fields"]) {
    Json document = DocumentFor(field);
    const Json::json_pointer pointer(PointerOf(field));
    const std::string typo = pointer.back() + "z";
    document[pointer.parent_pointer()][typo] = 1;
    const Issues issues = IssuesOf(Text(document));
    ASSERT_EQ(issues.size(), 1u) << PointerOf(field) << "\n" << Listed(issues);
    EXPECT_EQ(issues[0].path, (pointer.parent_pointer() / typo).to_string());
    EXPECT_NE(issues[0].message.find("did you mean \"" + pointer.back() + "\""), std::string::npos)
        << issues[0].message;
  }
}

TEST(ScenarioField, MemberOfAnotherChoice_IsToldApartFromATypo) {
  int checked = 0;
  for (const Json& field : Catalogue()["fields"]) {
    if (!field.contains("when")) continue;
    const Json::json_pointer choice = ChoiceOf(field);
    Json document = Spelled();
    // A choice under which the member means nothing.
    const Json value = field["when"]["values"][0];
    const char* other = choice.to_string() == "/cluster/scaling/policy" ? "none"
                        : choice.back() == "backend"                    ? "analytic"
                        : choice.back() == "metric"   ? (value == "ttft" ? "attainment" : "ttft")
                        : choice.back() == "priority" ? "class"
                        : choice.back() == "order"    ? "fcfs"
                        : choice.back() == "policy"
                            ? (value == "sglang" || value == "trtllm" ? "vllm" : "random")
                        : choice.back() == "cuda_graphs" ? "implied"
                        : choice.back() == "method"      ? "none"
                        : choice.back() == "profile"     ? (value == "own" ? "default" : "flat")
                        : choice.back() == "process"     ? (value == "trace" ? "static" : "trace")
                        : value == "fixed"               ? "lognormal"
                                                         : "fixed";
    document[choice.parent_pointer()] = Json{{choice.back(), other}};
    if (value == "own") document[choice.parent_pointer()]["policy"] = "epp";
    AddLimit(other, document[choice.parent_pointer()]);
    document[Json::json_pointer(PointerOf(field))] =
        field["type"] == "list" ? Json::array() : Json(5);
    const Result<Scenario> scenario = ParseScenario(Text(document));
    ASSERT_FALSE(scenario.ok()) << PointerOf(field);
    ASSERT_EQ(scenario.issues().size(), 1u) << Listed(scenario.issues());
    EXPECT_EQ(scenario.issues()[0].path, PointerOf(field));
    EXPECT_NE(scenario.issues()[0].message.find("only applies when"), std::string::npos);
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

bool NullTakesAway(const std::string& pointer) {
  return pointer == "/workload/prefix" || pointer == "/workload/sessions" ||
         pointer == "/workload/classes" || pointer == "/workload/classes/0/prompt_tokens";
}

TEST(ScenarioField, EverySectionOfAnotherType_IsOneIssue) {
  for (const char* pointer : {"/model",
                              "/hardware",
                              "/engine",
                              "/cluster",
                              "/scheduler",
                              "/latency",
                              "/workload",
                              "/measure",
                              "/workload/arrivals",
                              "/workload/prompt_tokens",
                              "/cluster/pools",
                              "/cluster/pools/0",
                              "/slo",
                              "/slo/0",
                              "/cluster/router",
                              "/workload/prefix",
                              "/workload/sessions",
                              "/workload/classes",
                              "/workload/classes/0",
                              "/workload/classes/0/prompt_tokens"}) {
    const bool nullable = NullTakesAway(pointer);
    for (const Json& bad : {Json(5), Json("x"), Json(true), nullable ? Json(1.5) : Json(nullptr)}) {
      Json document = Spelled();
      document[Json::json_pointer(pointer)] = bad;
      const Issues issues = IssuesOf(Text(document));
      ASSERT_EQ(issues.size(), 1u) << pointer << " " << bad.dump() << "\n" << Listed(issues);
      EXPECT_EQ(issues[0].path, pointer);
    }
  }
}

TEST(ScenarioField, WhatDoesNotGoTogether_IsOneIssueThatSaysWhy) {
  const struct {
    std::vector<std::string> changes;
    const char* path;
    const char* found;
  } cases[] = {
      {{"workload.prefix.groups=3"}, "/workload/prefix/tokens", "found 0, allowed from 1 up"},
      {{"workload.sessions.turns=2", "workload.arrivals.process=trace"},
       "/workload/sessions/turns",
       "found 2, allowed 1 with arrivals or lengths of a trace"},
      {{"workload.sessions.turns=2", "workload.output_tokens.distribution=trace"},
       "/workload/sessions/turns",
       "found 2, allowed 1 with arrivals or lengths of a trace"},
      {{"workload.classes.0.name=a", "workload.classes.1.name=b", "workload.classes.2.name=a"},
       "/workload/classes/2/name",
       "found \"a\", the name of class 0 too; allowed a name of its own"},
      {{"workload.classes.0.name="}, "/workload/classes/0/name", "found \"\", allowed a name"},
      {{"engine.compat=blis", "engine.kv_offload.cpu_gib=1", "engine.kv_offload.disk_gib=2.5"},
       "/engine/kv_offload/disk_gib",
       "found 2.5, allowed 0 with engine.compat"},
      {{"workload.classes.0.share=2"}, "/workload/classes/0/name", "missing"},
      {{"scheduler.age_weight_per_s=2"},
       "/scheduler/age_weight_per_s",
       "only applies when priority is \"slo_based\", \"inverted_slo\""},
      {{"engine.overlap_scheduling=true", "engine.async_scheduling=false"},
       "/engine/overlap_scheduling",
       "found true, allowed false without async_scheduling"},
      {{"scheduler.bucket_tokens=2"},
       "/scheduler/bucket_tokens",
       "only applies when order is \"length_bucket\""},
      {{"cluster.router.overlap_weight=2"},
       "/cluster/router/overlap_weight",
       "only applies when policy is \"kv_aware\""},
      {{"cluster.router={\"policy\":\"round_robin\",\"staleness_ms\":2}"},
       "/cluster/router/staleness_ms",
       "only applies when policy is \"least_outstanding\""},
      {{"cluster.router={\"policy\":\"weighted\",\"prefix_weight\":0,\"queue_depth_weight\":0,"
        "\"kv_utilization_weight\":0}"},
       "/cluster/router/prefix_weight",
       "found 0, and no other weight above 0"},
      {{"cluster.router={\"policy\":\"kv_aware\",\"overlap_weight\":-1}"},
       "/cluster/router/overlap_weight",
       "found -1, allowed"},
      {{"engine.cuda_graphs=eager", "engine.launch_replay_us=2"},
       "/engine/launch_replay_us",
       "only applies when cuda_graphs is \"captured\""},
      {{"workload.classes.0={\"name\":\"a\",\"rate_per_s\":3}", "workload.arrivals.process=static"},
       "/workload/classes/0/rate_per_s",
       "found 3, allowed none"},
      {{"workload.classes.0={\"name\":\"a\",\"turns\":3}", "workload.arrivals.process=trace"},
       "/workload/classes/0/turns",
       "found 3, allowed 1"},
      {{"workload.classes.0={\"name\":\"a\",\"prefix_groups\":3}"},
       "/workload/classes/0/prefix_groups",
       "found 3 groups that share 0 tokens"},
      {{"workload.classes.0={\"name\":\"a\",\"prompt_tokens\":{\"distribution\":\"uniform\","
        "\"min\":9,\"max\":8}}"},
       "/workload/classes/0/prompt_tokens/max",
       "found 8, allowed from min 9 up"},
      {{"workload.arrivals.profile=piecewise", "workload.arrivals.rate_factors=[[0,1],[5,0]]"},
       "/workload/arrivals/rate_factors",
       "a last factor above 0"},
      {{"workload.arrivals.profile=piecewise", "workload.arrivals.rate_factors=[[1,1]]"},
       "/workload/arrivals/rate_factors",
       "begin at 0"},
      {{"workload.arrivals.profile=piecewise", "workload.arrivals.rate_factors=[[0,1],[0,2]]"},
       "/workload/arrivals/rate_factors",
       "ascend"},
      {{"workload.arrivals.spikes=[[5,0,2]]"},
       "/workload/arrivals/spikes",
       "found [5, 0, 2], allowed a duration above 0"},
      {{"workload.prompt_tokens.distribution=ratio"},
       "/workload/prompt_tokens/distribution",
       "found \"ratio\", allowed"},
      {{"workload.arrivals.process=static", "workload.arrivals.profile=diurnal"},
       "/workload/arrivals/profile",
       "only applies when process is \"poisson\""},
      {{"workload.arrivals.rate_scale=2"},
       "/workload/arrivals/rate_scale",
       "only applies when process is \"trace\""},
  };
  for (const auto& c : cases) {
    const Issues issues = IssuesOf(Changed(c.changes));
    ASSERT_EQ(issues.size(), 1u) << c.path << "\n" << Listed(issues);
    EXPECT_EQ(issues[0].path, c.path);
    EXPECT_NE(issues[0].message.find(c.found), std::string::npos) << issues[0].message;
  }
}

// Else the fingerprints of all scenarios would move with every new option.
TEST(ScenarioField, WrongFieldsAndWrongPairs_AreSaidTogether) {
  const Issues issues = IssuesOf(Changed({"workload.sessions.turns=100000", "scheduler.order=lifo",
                                          "workload.prefix={\"groups\":4,\"tokens\":0}"}));
  ASSERT_EQ(issues.size(), 3u) << Listed(issues);
  // Not where a field beside it is wrong: 4 groups of what?
  EXPECT_EQ(IssuesOf(Changed({"workload.prefix={\"groups\":4,\"tokens\":-1}"})).size(), 1u);
}

TEST(ScenarioField, NullOrNoGroups_TakesAPresetsPrefixAway) {
  const std::string multi_turn(*ScenarioPreset("llama-3.1-8b-h100-multi-turn"));
  const WorkloadSpec with = *Parsed(multi_turn).workload;
  EXPECT_GT(with.prefix.groups, 0);
  EXPECT_GT(with.sessions.turns, 1);
  const WorkloadSpec without =
      *Parsed(Changed({"workload.prefix=null", "workload.sessions=null", "workload.classes=null"},
                      multi_turn))
           .workload;
  EXPECT_EQ(without.prefix.groups, 0);
  EXPECT_EQ(without.sessions.turns, 1);
  EXPECT_TRUE(without.classes.empty());
  EXPECT_TRUE(IssuesOf(Changed({"workload.prefix.groups=0"}, multi_turn)).empty());
}

TEST(ScenarioField, PrefixesSessionsAndClasses_AreRead) {
  const WorkloadSpec w =
      *Parsed(Changed({"workload.prefix={\"groups\":3,\"tokens\":500}", "workload.sessions.turns=4",
                       "workload.sessions.think_time_s=2.5",
                       "workload.classes=[{\"name\":\"people\",\"priority\":-1,"
                       "\"ttft_deadline_ms\":200},{\"name\":\"batch\",\"share\":3,"
                       "\"timeout_s\":60}]"}))
           .workload;
  EXPECT_EQ(w.prefix.groups, 3);
  EXPECT_EQ(w.prefix.tokens, 500);
  EXPECT_EQ(w.sessions.turns, 4);
  EXPECT_EQ(w.sessions.think_time_s, 2.5);
  ASSERT_EQ(w.classes.size(), 2u);
  EXPECT_EQ(w.classes[0].name, "people");
  EXPECT_EQ(w.classes[0].share, 1);
  EXPECT_EQ(w.classes[0].priority, -1);
  EXPECT_EQ(w.classes[0].ttft_deadline_ms, 200);
  EXPECT_FALSE(w.classes[0].timeout_s);
  EXPECT_EQ(w.classes[1].share, 3);
  EXPECT_EQ(w.classes[1].timeout_s, 60);
}

TEST(ScenarioField, SchedulerAndEngineRules_AreRead) {
  const Scenario s =
      Parsed(Changed({"scheduler.order=priority_fcfs", "scheduler.priority=slo_based",
                      "scheduler.age_weight_per_s=0.25", "scheduler.preemption=tail",
                      "engine.free_contentless_first=false", "engine.async_scheduling=true",
                      "engine.enable_prefix_caching=true"}));
  EXPECT_EQ(s.scheduler.order, "priority_fcfs");
  EXPECT_EQ(s.scheduler.priority, "slo_based");
  EXPECT_EQ(s.scheduler.params.at("age_weight_per_s"), 0.25);
  EXPECT_EQ(s.scheduler.preemption, "tail");
  EXPECT_FALSE(s.engine.free_contentless_first);
  EXPECT_TRUE(s.engine.async_scheduling);
  EXPECT_TRUE(s.engine.enable_prefix_caching);
  const Scenario trace =
      Parsed(Changed({"workload.arrivals.process=trace", "workload.arrivals.rate_scale=2.5"}));
  EXPECT_EQ(trace.workload->arrivals.rate_scale, 2.5);
}

TEST(ScenarioField, ManyMistakes_AreAllSaid) {
  Json document = Spelled();
  document["engine"]["max_num_seqs"] = 0;
  document["engine"]["block_sice"] = 16;
  document["workload"]["requests"] = -1;
  document["slo"][0]["metric"] = "tftt";
  document["hardware"].erase("memory_gib");
  document["typo"] = 1;
  const Issues issues = IssuesOf(Text(document));
  EXPECT_EQ(issues.size(), 6u) << Listed(issues);
}

TEST(Catalogue, EveryFieldAndPreset_IsDescribed) {
  const Json& catalogue = Catalogue();
  for (const Json& field : catalogue["fields"]) {
    EXPECT_FALSE(field["help"].get<std::string>().empty()) << field.dump();
    EXPECT_EQ(field["type"] == "choice", !field["choices"].empty()) << field.dump();
    if (field["type"] == "integer" || field["type"] == "number") {
      EXPECT_LE(field["minimum"].get<double>(), field["maximum"].get<double>()) << field.dump();
      if (!field["default"].is_null()) {
        EXPECT_GE(field["default"].get<double>(), field["minimum"].get<double>()) << field.dump();
        EXPECT_LE(field["default"].get<double>(), field["maximum"].get<double>()) << field.dump();
      }
    }
  }
  for (const char* kind : {"models", "hardware", "engines", "hosts", "workloads", "scenarios"}) {
    EXPECT_FALSE(catalogue["presets"][kind].empty()) << kind;
    for (const Json& preset : catalogue["presets"][kind]) {
      EXPECT_FALSE(preset["name"].get<std::string>().empty());
      EXPECT_FALSE(preset["description"].get<std::string>().empty());
#ifndef __EMSCRIPTEN__  // the page does without those of its menus
      EXPECT_TRUE(preset.contains("sources")) << preset["id"];
#endif
    }
  }
  for (const Json& column : catalogue["columns"])
    EXPECT_FALSE(column["help"].get<std::string>().empty());
  const std::string named = catalogue["default_scenario"].get<std::string>();
  EXPECT_TRUE(ScenarioPreset(named));
  EXPECT_FALSE(CatalogText().empty());
}

// A parameter is a field: of one name, all entries of a kind mean the same by it, its default too.
template <class Entry>
void ExpectOneMeaning(std::span<const Entry> entries, std::map<std::string, ParamSpec>& known) {
  for (const Entry& entry : entries) {
    for (const ParamSpec& p : entry.params) {
      const ParamSpec& first = known.emplace(p.name, p).first->second;
      EXPECT_EQ(first.fallback, p.fallback) << entry.name << " " << p.name;
      EXPECT_EQ(first.min, p.min) << entry.name << " " << p.name;
      EXPECT_EQ(first.max, p.max) << entry.name << " " << p.name;
      EXPECT_EQ(std::string(first.unit), p.unit) << entry.name << " " << p.name;
      EXPECT_EQ(first.whole, p.whole) << entry.name << " " << p.name;
    }
  }
}

TEST(Catalogue, ParametersOfOneName_AreOneField) {
  // Orders and priorities have theirs in one section.
  std::map<std::string, ParamSpec> scheduling, routing, scaling;
  ExpectOneMeaning(Orders(), scheduling);
  ExpectOneMeaning(Priorities(), scheduling);
  ExpectOneMeaning(Routers(), routing);
  ExpectOneMeaning(Scalers(), scaling);
}

TEST(ScenarioPresets, EachOne_IsGoodAndCanonical) {
  for (const Json& preset : Catalogue()["presets"]["scenarios"]) {
    const std::string id = preset["id"].get<std::string>();
    EXPECT_TRUE(IssuesOf(std::string(*ScenarioPreset(id))).empty())
        << id << "\n"
        << Listed(IssuesOf(std::string(*ScenarioPreset(id))));
  }
}

TEST(Presets, EveryModelOnEveryGpu_RunsOrSaysWhyNot) {
  for (const Json& model : Catalogue()["presets"]["models"]) {
    for (const Json& gpu : Catalogue()["presets"]["hardware"]) {
      if (model.contains("group") && gpu["id"] != "b200-sxm") continue;
      if (gpu.contains("group") && model["id"] != "qwen3-0.6b") continue;
      const Issues issues = IssuesOf(Changed({"model.preset=" + model["id"].get<std::string>(),
                                              "hardware.preset=" + gpu["id"].get<std::string>()}));
      if (issues.empty()) continue;
      ASSERT_EQ(issues.size(), 1u) << Listed(issues);
      EXPECT_NE(issues[0].message.find("does not fit"), std::string::npos) << issues[0].message;
    }
  }
}

TEST(Presets, OfMeasuredServers_AreAsGoodAsTheOthers) {
  const Scenario s = Parsed(Changed({"model.preset=falcon-7b", "hardware.preset=a10"}));
  EXPECT_EQ(s.model.num_hidden_layers, 32);
  EXPECT_EQ(s.hardware.memory_bandwidth_gb_s, 600);
  const Scenario like = Parsed(Changed({"hardware.preset=l40s"}));
  EXPECT_EQ(s.hardware.bandwidth_efficiency, like.hardware.bandwidth_efficiency)
      << "what it says not";
  EXPECT_EQ(s.canonical_text, Parsed(s.canonical_text).canonical_text);
  EXPECT_EQ(s.content_hash, Parsed(s.resolved_text).content_hash);
  const Issues near = IssuesOf(Changed({"model.preset=falcon-7"}));
  ASSERT_EQ(near.size(), 1u);
  EXPECT_NE(near[0].message.find("did you mean \"falcon-7b\"?"), std::string::npos);
}

TEST(Presets, NativelyAllAreHere_AndNoOtherFileIsTaken) {
  for (int i = 0; i < kEmbeddedPresetCount; ++i) {
    const EmbeddedPreset& preset = kEmbeddedPresets[i];
    EXPECT_TRUE(MissingPreset(preset.kind, preset.id).empty()) << preset.id;
    EXPECT_FALSE(PresetText(preset.kind, preset.id).empty()) << preset.id;
  }
  EXPECT_FALSE(ProvidePreset("presets/models/../x.json", "{}").empty());
  EXPECT_FALSE(ProvidePreset("", "").empty());
}

}  // namespace
}  // namespace servecast::testing
