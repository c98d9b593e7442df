// The router epp in documents: what they may say of it, and what it does with polled metrics, live
// counters and shared prefixes. How it chooses is compared in cluster_test.
#include <algorithm>
#include <string>
#include <vector>

#include "core/import_texts.h"
#include "servecast/export.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

std::string Routed(const std::string& router) {
  return Changed({R"(cluster={"pools": [{"replicas": 4}], "router": )" + router + "}",
                  R"(workload.prefix={"groups": 9, "tokens": 3000})"});
}

std::string OwnPlugins(const std::string& plugins, const std::string& references) {
  return Routed(R"({"policy": "epp", "profile": "own", "config": {"plugins": [)" + plugins +
                R"(], "schedulingProfiles": [{"name": "default", "plugins": [)" + references +
                "]}]}}");
}

std::string OnlyIssue(const std::string& document) {
  const Issues issues = IssuesOf(document);
  return issues.size() == 1 ? issues[0].path + ": " + issues[0].message : Listed(issues);
}

TEST(EppRouter, ShippedProfiles_AreNamesThatRun) {
  for (const char* profile :
       {"default", "optimized-baseline", "optimized-baseline-2026-05", "estimate-load-aware",
        "prefix-only", "no-hit-lru", "load-only", "random"}) {
    const Report report =
        RunToEnd(Routed(R"({"policy": "epp", "profile": ")" + std::string(profile) + "\"}"));
    EXPECT_EQ(report.completed, 50) << profile;
  }
  EXPECT_NE(OnlyIssue(Routed(R"({"policy": "epp", "profile": "optimised-baseline"})"))
                .find("did you mean \"optimized-baseline\"?"),
            std::string::npos);
}

TEST(EppRouter, OtherRouters_HaveNoneOfItsMembers) {
  const Json resolved = JsonOf(Parsed(SmallDocument()).resolved_text);
  EXPECT_FALSE(resolved["cluster"]["router"].contains("profile"));
  EXPECT_EQ(OnlyIssue(Routed(R"({"policy": "weighted", "profile": "default"})")),
            "/cluster/router/profile: \"profile\" only applies when policy is \"epp\"");
}

TEST(EppRouter, WrongConfigurations_AreNamed) {
  const std::string path = "/cluster/router/config: ";
  EXPECT_EQ(
      OnlyIssue(OwnPlugins(R"({"type": "queue-score"})", R"({"pluginRef": "random-picker"})")),
      path + "queue-score: no plugin has type \"queue-score\"");
  EXPECT_EQ(OnlyIssue(OwnPlugins(R"({"type": "load-aware-scorer", "parameters": {"treshold": 1}})",
                                 R"({"pluginRef": "load-aware-scorer"})")),
            path + "load-aware-scorer: treshold: not a parameter");
  EXPECT_EQ(OnlyIssue(OwnPlugins("", R"({"pluginRef": "queue-scorer", "weight": -1})")),
            path + "schedulingProfiles.0.plugins.0: found weight -1, allowed 0 to 1000000");
  EXPECT_EQ(OnlyIssue(OwnPlugins("", R"({"pluginRef": "prefill-filter"})")),
            path +
                "prefill-filter may leave no endpoint, and requests that a gateway turns away "
                "are not modelled");
  EXPECT_EQ(OnlyIssue(Routed(R"({"policy": "epp", "profile": "own",
                                 "config": {"flowControl": {"maxRequests": 5}}})")),
            path + "flowControl is not modelled; allowed plugins and schedulingProfiles");
  EXPECT_NE(OnlyIssue(Changed({R"(cluster={"pools": [{"replicas": 2, "role": "prefill"},
                                  {"role": "decode"}], "router": {"policy": "epp"}})"}))
                .find("chooses both replicas at once"),
            std::string::npos);
}

// A parameter that is there and means nothing is never taken for one that is not there.
TEST(EppRouter, ParametersThatMeanNothing_AreNamed) {
  const auto filter = [](const char* parameters) {
    return OnlyIssue(OwnPlugins(
        std::string(R"({"type": "utilization-filter", "parameters": )") + parameters + "}",
        R"({"pluginRef": "utilization-filter"})"));
  };
  for (const auto& [parameters, what] :
       {std::pair(R"({"fallbackOnEmpty": []})", "fallbackOnEmpty is empty"),
        {R"({"fallbackOnEmpty": true, "conditions": []})", "conditions is empty"},
        {R"({"fallbackOnEmpty": true, "conditions": {"0": {"maxValue": 1}}})", "must be a list"},
        {R"({"fallbackOnEmpty": true, "conditions": [{"maxValue": 1}]})",
         "has no metric in conditions.0"}}) {
    EXPECT_NE(filter(parameters).find(what), std::string::npos) << filter(parameters);
  }
  EXPECT_NE(OnlyIssue(OwnPlugins(R"({"type": "session-affinity-scorer",
                                     "parameters": {"strategy": "weird"}})",
                                 R"({"pluginRef": "session-affinity-scorer"})"))
                .find("strategy"),
            std::string::npos);
  // As YAML has a member without a value.
  EXPECT_EQ(OnlyIssue(OwnPlugins(R"({"type": "queue-scorer", "parameters": null})",
                                 R"({"pluginRef": "queue-scorer"})")),
            "");
}

// The engine is done with an answer of one token before that is delivered.
TEST(EppRouter, AnswersOfOneToken_LeaveOnce) {
  const Report report =
      RunToEnd(Changed({"engine.delivery_overhead_us=5000",
                        R"(workload.output_tokens={"distribution": "fixed", "value": 1})"},
                       Routed(R"({"policy": "epp", "profile": "optimized-baseline"})")));
  EXPECT_EQ(report.completed, 50);
}

// A burst that no metrics know of yet: tokens in flight spread it, and polled queues do not.
TEST(EppRouter, Bursts_AreSpreadByWhatIsLive) {
  const auto spread = [](const std::string& scorer) {
    const Report report =
        RunToEnd(Changed({"workload.requests=40", "workload.arrivals.process=constant",
                          "workload.arrivals.rate_per_s=4000"},
                         OwnPlugins("", R"({"pluginRef": ")" + scorer + "\"}")));
    std::int64_t most = 0;
    for (const ReplicaReport& replica : report.replicas) most = std::max(most, replica.requests);
    return most;
  };
  EXPECT_LE(spread("token-load-scorer"), 14);
  EXPECT_EQ(spread("active-request-scorer"), 10);
}

TEST(EppRouter, Exports_ComeBack) {
  const std::string document = OwnPlugins(
      R"({"name": "tight", "type": "prefix-cache-affinity-filter",
          "parameters": {"affinityThreshold": 0.6}},
         {"name": "calm", "type": "utilization-filter", "parameters": {"fallbackOnEmpty": true,
          "conditions": [{"metric": "waiting-queue", "maxValue": 3}]}})",
      R"({"pluginRef": "tight"}, {"pluginRef": "calm"}, {"pluginRef": "queue-scorer", "weight": 2.5})");
  const Exported exported = Good(Export(document, "llm-d-router"));
  const Imported imported = Import({{"", exported.text}}, document);
  ASSERT_TRUE(imported.issues.empty()) << exported.text << Listed(imported);
  // It lists what the profile refers to by type, too, which changes nothing.
  const Json router = JsonOf(imported.document)["cluster"]["router"];
  EXPECT_EQ(router["config"]["plugins"].size(), 3u) << router.dump();
  const Report before = RunToEnd(document), after = RunToEnd(imported.document);
  EXPECT_EQ(after.ttft_ms.mean, before.ttft_ms.mean);
  EXPECT_EQ(after.ColumnOf("replica")[7], before.ColumnOf("replica")[7]);

  const Exported shipped =
      Good(Export(Routed(R"({"policy": "epp", "profile": "load-only"})"), "llm-d-router"));
  EXPECT_EQ(JsonOf(Import(shipped.text).document)["cluster"]["router"]["profile"], "load-only");
  EXPECT_NE(shipped.text.find("- pluginRef: \"queue-scorer\"\n        weight: 2\n"),
            std::string::npos)
      << shipped.text;
}

// A file of the picker, values of a chart with two of them, and profiles that are not modelled.
TEST(EppRouter, Imports_SayWhatTheyTook) {
  const Imported own = Import(ImportFile("forms/endpoint-picker.yaml"));
  ASSERT_TRUE(own.issues.empty() && own.warnings.empty()) << Listed(own);
  const Json router = JsonOf(own.document)["cluster"]["router"];
  const Json& plugins = router["config"]["plugins"];
  EXPECT_EQ(router["profile"], "own");
  EXPECT_EQ(plugins[0]["parameters"]["affinityThreshold"], 0.6);
  EXPECT_EQ(plugins[1]["name"], "recent-blocks");
  EXPECT_EQ(plugins[1]["parameters"]["autoTune"], false);
  EXPECT_EQ(plugins[1]["parameters"]["lruCapacityPerServer"], 50000);
  EXPECT_EQ(router["config"]["schedulingProfiles"][0]["plugins"][1]["weight"], 1.5);
  EXPECT_TRUE(Says(own, "saturationDetector of EndpointPickerConfig")) << Listed(own);

  const Imported values = Import(ImportFile("forms/endpoint-picker-values.yaml"));
  EXPECT_EQ(JsonOf(values.document)["cluster"]["router"]["profile"], "load-only") << Listed(values);

  const Imported apart = Import(ImportFile("forms/endpoint-picker-pd.yaml"));
  EXPECT_TRUE(Says(apart, "warning EndpointPickerConfig: prefill and decode profiles are not"))
      << Listed(apart);
  EXPECT_FALSE(JsonOf(apart.document).contains("cluster"));
}

}  // namespace
}  // namespace servecast::testing
