// The scenario's scalers as the objects that Kubernetes or KEDA reads, one a pool.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "export/targets.h"
#include "import/draft.h"
#include "io/scaling_checks.h"

namespace servecast {
namespace {

using ScalerJson = nlohmann::json;

// What servers call it; two for their sum.
std::vector<std::string> MetricsOf(ScalingMetric metric, bool sglang) {
  const char* waiting = sglang ? "sglang:num_queue_reqs" : "vllm:num_requests_waiting";
  const char* running = sglang ? "sglang:num_running_reqs" : "vllm:num_requests_running";
  switch (metric) {
    case ScalingMetric::kWaiting:
      return {waiting};
    case ScalingMetric::kRunning:
      return {running};
    case ScalingMetric::kKvUsage:
      return {sglang ? "sglang:token_usage" : "vllm:kv_cache_usage_perc"};
    case ScalingMetric::kOutstanding:
      break;
  }
  return {waiting, running};
}

// Kubernetes takes whole seconds.
ScalerJson WholeSeconds(double seconds) { return NumberJson(std::nearbyint(seconds)); }

ScalerJson Behavior(const ScalingSpec& scaling) {
  ScalerJson behavior;
  for (const auto& [key, way] : {std::pair("scaleUp", "up"), std::pair("scaleDown", "down")}) {
    const auto param = [&, side = std::string(way)](const char* name) {
      return ParamOf(scaling, side + "_" + name);
    };
    ScalerJson rules = {{"stabilizationWindowSeconds", WholeSeconds(param("window_s"))},
                        {"selectPolicy", "Max"}};
    for (const auto& [type, name] : {std::pair("Pods", "pods"), std::pair("Percent", "percent")}) {
      if (param(name) > 0) {
        rules["policies"].push_back({{"type", type},
                                     {"value", NumberJson(param(name))},
                                     {"periodSeconds", WholeSeconds(param("period_s"))}});
      }
    }
    // Without policies the defaults would count.
    if (!rules.contains("policies")) rules["selectPolicy"] = "Disabled";
    behavior[key] = std::move(rules);
  }
  return behavior;
}

ScalerJson Deployment(const std::string& name) {
  return {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", name}};
}

ScalerJson Hpa(const ScalingSpec& scaling, bool sglang, const std::string& deployment) {
  std::string name;
  for (std::string metric : MetricsOf(scaling.metric, sglang)) {
    metric[metric.find(':')] = '_';
    name += (name.empty() ? "" : "_and_") + metric;
  }
  const ScalerJson target = {{"type", "AverageValue"},
                             {"averageValue", NumberText(ParamOf(scaling, "target"))}};
  const ScalerJson metric = {{"type", "Pods"},
                             {"pods", {{"metric", {{"name", name}}}, {"target", target}}}};
  return {{"apiVersion", "autoscaling/v2"},
          {"kind", "HorizontalPodAutoscaler"},
          {"metadata", {{"name", deployment}}},
          {"spec",
           {{"scaleTargetRef", Deployment(deployment)},
            {"minReplicas", scaling.min_replicas},
            {"maxReplicas", scaling.max_replicas},
            {"metrics", ScalerJson::array({metric})},
            {"behavior", Behavior(scaling)}}}};
}

// `of_pods`: what selects the pool's among all servers.
ScalerJson ScaledObject(const ScalingSpec& scaling, bool sglang, const std::string& deployment,
                        const std::string& of_pods) {
  std::string query;
  for (const std::string& metric : MetricsOf(scaling.metric, sglang)) {
    query += (query.empty() ? "sum(" : " + sum(") + metric + of_pods + ")";
  }
  const ScalerJson trigger = {{"type", "prometheus"},
                              {"metadata",
                               {{"serverAddress", "http://prometheus:9090"},
                                {"query", query},
                                {"threshold", NumberText(ParamOf(scaling, "target"))}}}};
  return {{"apiVersion", "keda.sh/v1alpha1"},
          {"kind", "ScaledObject"},
          {"metadata", {{"name", deployment}}},
          {"spec",
           {{"scaleTargetRef", Deployment(deployment)},
            {"minReplicaCount", scaling.min_replicas},
            {"maxReplicaCount", scaling.max_replicas},
            {"pollingInterval", WholeSeconds(ParamOf(scaling, "polling_s"))},
            {"cooldownPeriod", WholeSeconds(ParamOf(scaling, "cooldown_s"))},
            {"triggers", ScalerJson::array({trigger})},
            {"advanced", {{"horizontalPodAutoscalerConfig", {{"behavior", Behavior(scaling)}}}}}}}};
}

std::string WriteOf(std::size_t pool, ExportJob& job) {
  const std::vector<PoolSpec>& pools = job.scenario().cluster.pools;
  const ScalingSpec& scaling = job.scenario().cluster.ScalingOf(pools[pool]);
  const std::string name = DeploymentName(pools, pool);
  const std::string at =
      pools[pool].scaling ? Format("cluster.pools.{}.scaling", pool) : "cluster.scaling";
  const bool hpa = scaling.policy == "hpa", keda = scaling.policy == "keda";
  if (scaling.policy == "dynamo") {
    job.LeaveOut(Format("{}.policy = dynamo", at),
                 "is the planner of a DynamoGraphDeployment: no HPA or KEDA may stand beside it");
    return Format("# {}: scaled by Dynamo's planner\n", name);
  }
  if (!hpa && !keda) {
    job.LeaveOut(Format("{}.policy = {}", at, scaling.policy),
                 "is no object of Kubernetes' HPA or KEDA: written is a fixed number");
    const std::int64_t replicas = pools[pool].replicas;
    return YamlText({{"apiVersion", "autoscaling/v2"},
                     {"kind", "HorizontalPodAutoscaler"},
                     {"metadata", {{"name", name}}},
                     {"spec",
                      {{"scaleTargetRef", Deployment(name)},
                       {"minReplicas", replicas},
                       {"maxReplicas", replicas}}}});
  }
  const bool sglang = job.Scheduler(pool).policy == "sglang";
  for (const auto& [param, value] : scaling.params) {
    const bool seconds = param.size() > 2 && param.compare(param.size() - 2, 2, "_s") == 0;
    if (seconds && value != std::nearbyint(value)) {
      job.LeaveOut(Format("{}.{} = {}", at, param, NumberText(value)),
                   "Kubernetes takes whole seconds: it is rounded");
    }
  }
  if (const std::string& policy = job.Scheduler(pool).policy; policy != "vllm" && !sglang) {
    job.LeaveOut("the metric of " + policy, "is not known: written is vLLM's");
  }
  if (hpa) {
    job.LeaveOut("the metric", "an adapter for Prometheus has to serve it under that name");
  } else {
    job.LeaveOut("serverAddress", "put the address of your Prometheus in its place");
  }
  if (scaling.min_replicas == 0) {
    job.LeaveOut("min_replicas = 0",
                 "without a server the query sees nothing: it has to count what the gateway holds");
  }
  if (scaling.warm_replicas > 0) {
    job.LeaveOut(at + ".warm_replicas", "neither HPA nor KEDA keeps pods that are asleep");
  }
  if (ParamOf(scaling, "sync_s") != 15) {
    job.LeaveOut(at + ".sync_s",
                 "is --horizontal-pod-autoscaler-sync-period of kube-controller-manager");
  }
  if (ParamOf(scaling, "tolerance") != 0.1) {
    job.LeaveOut(at + ".tolerance",
                 "is --horizontal-pod-autoscaler-tolerance of kube-controller-manager");
  }
  const std::string of_pods = pools.size() == 1 ? "" : Format("{{pod=~\"{}-.*\"}}", name);
  return YamlText(hpa ? Hpa(scaling, sglang, name) : ScaledObject(scaling, sglang, name, of_pods));
}

}  // namespace

std::string WriteAutoscaler(ExportJob& job) {
  job.LeaveOutSections({"model", "hardware", "engine", "scheduler", "workload", "slo"},
                       "an autoscaler's object has nothing of the servers and their load");
  std::string text;
  for (std::size_t i = 0; i < job.scenario().cluster.pools.size(); ++i) {
    text += (i == 0 ? "" : "---\n") + WriteOf(i, job);
  }
  return text;
}

}  // namespace servecast
