// The scenario's scaler as the object that Kubernetes or KEDA reads.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "export/targets.h"
#include "import/draft.h"

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

// A parameter of the chosen scaler: a document that was read has all of them.
double ParamOf(const ScalingSpec& scaling, std::string_view name) {
  const auto found = scaling.params.find(name);
  return found == scaling.params.end() ? 0 : found->second;
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

// A Deployment as the target kubernetes writes it.
const ScalerJson kDeployment = {
    {"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "vllm"}};

ScalerJson Hpa(const ScalingSpec& scaling, bool sglang) {
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
          {"metadata", {{"name", "vllm"}}},
          {"spec",
           {{"scaleTargetRef", kDeployment},
            {"minReplicas", scaling.min_replicas},
            {"maxReplicas", scaling.max_replicas},
            {"metrics", ScalerJson::array({metric})},
            {"behavior", Behavior(scaling)}}}};
}

ScalerJson ScaledObject(const ScalingSpec& scaling, bool sglang) {
  std::string query;
  for (const std::string& metric : MetricsOf(scaling.metric, sglang)) {
    query += (query.empty() ? "sum(" : " + sum(") + metric + ")";
  }
  const ScalerJson trigger = {{"type", "prometheus"},
                              {"metadata",
                               {{"serverAddress", "http://prometheus:9090"},
                                {"query", query},
                                {"threshold", NumberText(ParamOf(scaling, "target"))}}}};
  return {{"apiVersion", "keda.sh/v1alpha1"},
          {"kind", "ScaledObject"},
          {"metadata", {{"name", "vllm"}}},
          {"spec",
           {{"scaleTargetRef", kDeployment},
            {"minReplicaCount", scaling.min_replicas},
            {"maxReplicaCount", scaling.max_replicas},
            {"pollingInterval", WholeSeconds(ParamOf(scaling, "polling_s"))},
            {"cooldownPeriod", WholeSeconds(ParamOf(scaling, "cooldown_s"))},
            {"triggers", ScalerJson::array({trigger})},
            {"advanced", {{"horizontalPodAutoscalerConfig", {{"behavior", Behavior(scaling)}}}}}}}};
}

}  // namespace

std::string WriteAutoscaler(ExportJob& job) {
  const ScalingSpec& scaling = job.scenario().cluster.scaling;
  job.LeaveOutSections({"model", "hardware", "engine", "scheduler", "workload", "slo"},
                       "an autoscaler's object has nothing of the servers and their load");
  const bool hpa = scaling.policy == "hpa", keda = scaling.policy == "keda";
  if (!hpa && !keda) {
    job.LeaveOut("cluster.scaling.policy = " + scaling.policy,
                 "is no object of Kubernetes' HPA or KEDA: written is a fixed number");
    const std::int64_t replicas = job.scenario().cluster.pools[0].replicas;
    return YamlText({{"apiVersion", "autoscaling/v2"},
                     {"kind", "HorizontalPodAutoscaler"},
                     {"metadata", {{"name", "vllm"}}},
                     {"spec",
                      {{"scaleTargetRef", kDeployment},
                       {"minReplicas", replicas},
                       {"maxReplicas", replicas}}}});
  }
  const bool sglang = job.Scheduler(0).policy == "sglang";
  for (const auto& [name, value] : scaling.params) {
    const bool seconds = name.size() > 2 && name.compare(name.size() - 2, 2, "_s") == 0;
    if (seconds && value != std::nearbyint(value)) {
      job.LeaveOut(Format("cluster.scaling.{} = {}", name, NumberText(value)),
                   "Kubernetes takes whole seconds: it is rounded");
    }
  }
  if (const std::string& policy = job.Scheduler(0).policy; policy != "vllm" && !sglang) {
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
    job.LeaveOut("cluster.scaling.warm_replicas",
                 "neither HPA nor KEDA keeps pods that are asleep");
  }
  if (ParamOf(scaling, "sync_s") != 15) {
    job.LeaveOut("cluster.scaling.sync_s",
                 "is --horizontal-pod-autoscaler-sync-period of kube-controller-manager");
  }
  if (ParamOf(scaling, "tolerance") != 0.1) {
    job.LeaveOut("cluster.scaling.tolerance",
                 "is --horizontal-pod-autoscaler-tolerance of kube-controller-manager");
  }
  return YamlText(hpa ? Hpa(scaling, sglang) : ScaledObject(scaling, sglang));
}

}  // namespace servecast
