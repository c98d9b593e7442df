// The router epp in documents: what they may say of it, and what it does with polled metrics, live
// counters and shared prefixes. How it chooses is compared in cluster_test.
#include <algorithm>
#include <string>
#include <vector>

#include "core/import_texts.h"
#include "experiment/limits.h"
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

// Another router would hold nobody back, so it says nothing of this one.
TEST(EppRouter, FlowControl_IsNotRelievedByARouterWithout) {
  const auto reliefs = [](const char* profile) {
    const Scenario s =
        Parsed(Routed(R"({"policy": "epp", "profile": ")" + std::string(profile) + "\"}"));
    const std::vector<Relaxed> all = RelaxedScenarios(s, Report());
    return std::count_if(all.begin(), all.end(),
                         [](const Relaxed& r) { return r.name == "router"; });
  };
  EXPECT_EQ(reliefs("default"), 1);
  EXPECT_EQ(reliefs("flow-control"), 0);
}

TEST(EppRouter, ShippedProfiles_AreNamesThatRun) {
  for (const char* profile :
       {"default", "optimized-baseline", "optimized-baseline-2026-05", "estimate-load-aware",
        "prefix-only", "no-hit-lru", "load-only", "flow-control", "random"}) {
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
            path + "flowControl does nothing without featureGates: [flowControl]: leave it out");
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

// A picker with flow control before `replicas`, whose detector takes so many requests of each.
std::string Controlled(std::int64_t most, const std::string& flow, std::int64_t replicas = 1) {
  return Changed({R"(cluster={"pools": [{"replicas": )" + std::to_string(replicas) +
                      R"(}], "router": {"policy": "epp", "profile": "own", "config": {
             "featureGates": ["flowControl"], "saturationDetector": {"pluginRef": "full"},
             "plugins": [{"name": "full", "type": "concurrency-detector",
                          "parameters": {"maxConcurrency": )" +
                      std::to_string(most) + R"(}}], "flowControl": )" + flow + "}}}",
                  "workload.arrivals.process=constant", "workload.arrivals.rate_per_s=1000"});
}

TEST(EppFlowControl, FreePool_ChangesNothing) {
  const Report off = RunToEnd(Routed(R"({"policy": "epp", "profile": "default"})"));
  const Report on = RunToEnd(Routed(R"({"policy": "epp", "profile": "flow-control"})"));
  EXPECT_EQ(on.ttft_ms.mean, off.ttft_ms.mean);
  EXPECT_EQ(on.rejected, 0);
}

// Two at a time are served, five wait, and whoever comes beyond is turned away at once: by number,
// by bytes of 4 a token, of a band or of all.
TEST(EppFlowControl, FullQueues_TurnAway) {
  for (const char* flow : {R"({"maxRequests": 5})", R"({"maxBytes": "2k"})",
                           R"({"priorityBands": [{"priority": 0, "maxRequests": 5}]})",
                           R"({"priorityBands": [{"priority": 0, "maxBytes": 2399}]})"}) {
    const Report report = RunToEnd(Controlled(2, flow));
    EXPECT_EQ(BrokenConservation(report), "") << flow;
    EXPECT_EQ(report.completed, 7) << flow;  // 50 arrive before the first one is served
    EXPECT_EQ(report.rejected, 43) << flow;
    EXPECT_EQ(report.finish_reasons.requests[5], 43) << flow;
    for (const double running : report.ColumnOf("series_running")) EXPECT_LE(running, 2) << flow;
  }
}

// Requests wait up to 1 s, and to the sweep behind that.
TEST(EppFlowControl, WaitsBeyondTheTtl_EndAtTheNextSweep) {
  const std::string document = Changed({"workload.output_tokens.value=150"},
                                       Controlled(1, R"({"defaultRequestTTL": "1s"})"));
  const Report report = RunToEnd(document);
  EXPECT_EQ(BrokenConservation(report), "");
  EXPECT_GT(report.completed, 0);
  EXPECT_GT(report.rejected, 40);
  EXPECT_EQ(report.completed + report.rejected, 50);
  // The last one was placed before the sweep at 1 s or 2 s took all who waited.
  for (const double delay : report.ColumnOf("scheduling_delay_ms")) {
    EXPECT_FALSE(delay > 2001) << delay;
  }
  // Retries act on them as on others.
  const Report again =
      RunToEnd(Changed({R"(workload.retries={"max": 3, "backoff_s": 5})"}, document));
  EXPECT_GT(again.retries.attempts, again.arrived);
  EXPECT_GT(again.completed, report.completed);
}

TEST(EppFlowControl, Overload_SaysOfTheQueueWhatWasSeen) {
  // With a time to live the queue stops growing: the rest gives up.
  for (const bool gives_up : {false, true}) {
    const std::string flow = gives_up ? R"({"defaultRequestTTL": "2s"})" : "{}";
    const Report report = RunToEnd(Changed(
        {"workload.requests=4000", "workload.arrivals.rate_per_s=60"}, Controlled(2, flow)));
    ASSERT_EQ(report.saturation.state, SaturationState::kOverloaded);
    EXPECT_EQ(report.saturation.queue_grows, !gives_up);
    const bool says = report.verdict.sentence.find("the queue grows") != std::string::npos;
    EXPECT_EQ(says, !gives_up) << report.verdict.sentence;
    EXPECT_NE(report.verdict.limit.find("flow control"), std::string::npos);
  }
}

// The more urgent class has a band of its own; the other waits for it.
TEST(EppFlowControl, HigherBands_GoFirst) {
  const Report report =
      RunToEnd(Changed({R"(workload.classes=[{"name": "people", "priority": -5},
                                    {"name": "batch", "priority": 0}])"},
                       Controlled(2, R"({"priorityBands": [{"priority": 5}, {"priority": 0}]})")));
  ASSERT_EQ(report.completed, 50);
  EXPECT_LT(report.classes[0].ttft_ms.p99, report.classes[1].ttft_ms.p50);
}

TEST(EppFlowControl, WrongConfigurations_AreNamed) {
  const std::string path = "/cluster/router/config: ";
  const auto issue = [](const std::string& flow) { return OnlyIssue(Controlled(2, flow)); };
  EXPECT_EQ(issue(R"({"maxRequest": 5})"), path + "flowControl: \"maxRequest\" is no member");
  EXPECT_EQ(issue(R"({"maxRequests": "5Q"})"),
            path +
                "flowControl.maxRequests: found \"5Q\", allowed 0 to 1000000000000000, as 500, "
                "\"1k\" or \"10Gi\"");
  EXPECT_EQ(issue(R"({"defaultRequestTTL": 60})"),
            path + "flowControl.defaultRequestTTL: must be a duration, for example \"60s\"");
  EXPECT_EQ(issue(R"({"defaultPriorityBand": {"maxRequests": 5}})"),
            path + "flowControl.defaultPriorityBand is not modelled: leave it out");
  EXPECT_EQ(issue(R"({"priorityBands": [{"priority": 0}, {"priority": 0}]})"),
            path + "flowControl.priorityBands.1: priority 0 is there already");
  EXPECT_EQ(issue(R"({"priorityBands": [{"priority": 0.5}]})"),
            path +
                "flowControl.priorityBands.0: needs a priority, a whole number from -1000000000 "
                "to 1000000000");
  EXPECT_EQ(issue(R"({"priorityBands": [{"priority": 1, "orderingPolicyRef": "lifo"}]})"),
            path + "flowControl.priorityBands.0: lifo is no ordering policy");
  EXPECT_EQ(issue(R"({"usageLimitPolicyPluginRef": "priority-holdback-policy"})"),
            path + "priority-holdback-policy: needs minCeiling");
  EXPECT_EQ(issue(R"({"usageLimitPolicyPluginRef": "soft-reflective-ceiling-policy"})"),
            path +
                "soft-reflective-ceiling-policy counts cycles of an idle picker, which are not "
                "modelled");
  EXPECT_NE(OnlyIssue(Changed({"engine.max_num_queued_reqs=5"}, Controlled(2, "{}")))
                .find("flow control"),
            std::string::npos);
}

TEST(EppFlowControl, Exports_ComeBack) {
  const std::string document = Controlled(2, R"({"maxRequests": 9, "defaultRequestTTL": "1500ms",
             "priorityBands": [{"priority": -3, "fairnessPolicyRef": "round-robin-fairness-policy"}]})");
  const Exported exported = Good(Export(document, "llm-d-router"));
  const Imported imported = Import({{"", exported.text}}, document);
  ASSERT_TRUE(imported.issues.empty()) << exported.text << Listed(imported);
  EXPECT_EQ(RunToEnd(imported.document).ttft_ms.mean, RunToEnd(document).ttft_ms.mean);
  const Exported guide =
      Good(Export(Routed(R"({"policy": "epp", "profile": "flow-control"})"), "llm-d-router"));
  EXPECT_EQ(JsonOf(Import(guide.text).document)["cluster"]["router"]["profile"], "flow-control");

  const Imported values = Import(ImportFile("forms/endpoint-picker-flow.yaml"));
  const Json config = JsonOf(values.document)["cluster"]["router"]["config"];
  EXPECT_EQ(config["flowControl"]["maxRequests"], 1000) << Listed(values);
  EXPECT_EQ(config["flowControl"]["maxBytes"], 10737418240);
  EXPECT_EQ(config["flowControl"]["defaultRequestTTL"], "30s");
  EXPECT_EQ(config["flowControl"]["priorityBands"][1]["maxRequests"], 200);
  EXPECT_EQ(config["saturationDetector"]["pluginRef"], "full");
}

}  // namespace
}  // namespace servecast::testing
