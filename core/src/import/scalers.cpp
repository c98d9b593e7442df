// Kubernetes' HorizontalPodAutoscaler and KEDA's ScaledObject beside a server: cluster.scaling.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"

namespace servecast {
namespace {

using ScalerJson = nlohmann::json;

// "500m" is 0.5, "1k" 1,000, as Kubernetes has quantities; nullopt: none.
std::optional<double> QuantityIn(std::string_view text) {
  constexpr std::pair<char, double> kUnits[] = {{'m', 1e-3}, {'k', 1e3}, {'M', 1e6}};
  for (const auto& [unit, times] : kUnits) {
    if (text.empty() || text.back() != unit) continue;
    const auto number = NumberIn(text.substr(0, text.size() - 1));
    return number ? std::optional(*number * times) : std::nullopt;
  }
  return NumberIn(text);
}

// A metric of a scenario by the names that vLLM's and SGLang's metrics have in a query; "" for
// another one.
std::string MetricIn(std::string_view query) {
  const auto has = [query](std::string_view name) {
    return query.find(name) != std::string_view::npos;
  };
  const bool waiting = has("requests_waiting") || has("num_queue_reqs") || has("queue_size");
  const bool running = has("requests_running") || has("num_running_reqs");
  if (waiting && running) return "outstanding";
  if (waiting) return "waiting";
  if (running) return "running";
  return has("cache_usage_perc") || has("kv_cache_usage") || has("token_usage") ? "kv_usage" : "";
}

// What a scaler goes by.
struct ScalerTrigger {
  std::string words, metric;
  std::optional<double> target;
};

ScalerTrigger TriggerOf(const ScalerJson& metric) {
  for (const char* type : {"pods", "external", "object"}) {
    const ScalerJson* of = ObjectIn(metric, type);
    const ScalerJson* named = of == nullptr ? nullptr : ObjectIn(*of, "metric");
    if (named == nullptr) continue;
    ScalerTrigger trigger{TextIn(*named, "name"), "", std::nullopt};
    trigger.metric = MetricIn(trigger.words);
    if (const ScalerJson* target = ObjectIn(*of, "target")) {
      trigger.target = QuantityIn(TextIn(*target, "averageValue"));
    }
    return trigger;
  }
  const ScalerJson* resource = ObjectIn(metric, "resource");
  return {resource == nullptr ? "a metric" : "use of " + TextIn(*resource, "name"), "", {}};
}

// A member of the scaler, where the object has a number of it.
void TakeNumber(const ScalerJson& of, const char* key, const char* member, Draft& draft) {
  const auto number = NumberIn(TextIn(of, key));
  if (!number || *number < 0) return;
  draft.Take(Format("cluster.scaling.{}", member), NumberJson(*number),
             Format("{} {}", key, TextIn(of, key)));
}

// The limits of behavior.scaleUp and scaleDown.
void TakeBehavior(const ScalerJson& behavior, Draft& draft) {
  for (const auto& [key, way] : {std::pair("scaleUp", "up"), std::pair("scaleDown", "down")}) {
    const ScalerJson* rules = ObjectIn(behavior, key);
    if (rules == nullptr) continue;
    TakeNumber(*rules, "stabilizationWindowSeconds", Format("{}_window_s", way).c_str(), draft);
    if (TextIn(*rules, "selectPolicy") == "Disabled") {
      for (const char* limit : {"pods", "percent"}) {
        draft.Take(Format("cluster.scaling.{}_{}", way, limit), 0, "selectPolicy Disabled");
      }
      continue;
    }
    const ScalerJson& policies = ListIn(*rules, "policies");
    if (policies.empty()) continue;
    // With policies of its own those that are the default's are gone.
    double pods = 0, percent = 0;
    for (const ScalerJson& policy : policies) {
      const double value = NumberIn(TextIn(policy, "value")).value_or(0);
      (TextIn(policy, "type") == "Pods" ? pods : percent) = value;
    }
    draft.Take(Format("cluster.scaling.{}_pods", way), NumberJson(pods), key);
    draft.Take(Format("cluster.scaling.{}_percent", way), NumberJson(percent), key);
    TakeNumber(policies[0], "periodSeconds", Format("{}_period_s", way).c_str(), draft);
  }
}

// False: nothing that can be a scenario's.
bool TakeTrigger(const std::vector<ScalerTrigger>& triggers, const char* policy,
                 const std::string& kind, Draft& draft) {
  const auto found =
      std::find_if(triggers.begin(), triggers.end(), [](const ScalerTrigger& trigger) {
        return !trigger.metric.empty() && trigger.target && *trigger.target > 0;
      });
  std::string others;
  for (const ScalerTrigger& trigger : triggers) {
    const bool taken = found != triggers.end() && &trigger == &*found;
    if (!taken) others += (others.empty() ? "" : ", ") + ShownText(trigger.words, 60);
  }
  if (found == triggers.end()) {
    draft.Warn(Format("{}: scaling by {} is not modelled; replicas stay as they begin", kind,
                      others.empty() ? "no metric" : others));
    return false;
  }
  if (!others.empty()) draft.Warn(Format("{}: scaling by {} is left out", kind, others));
  draft.Take("cluster.scaling.policy", policy, kind);
  draft.Take("cluster.scaling.metric", found->metric, found->words);
  draft.Take("cluster.scaling.target", NumberJson(*found->target), found->words);
  return true;
}

void ReadHpa(const ScalerJson& spec, Draft& draft) {
  draft.Found("a HorizontalPodAutoscaler");
  std::vector<ScalerTrigger> triggers;
  for (const ScalerJson& metric : ListIn(spec, "metrics")) triggers.push_back(TriggerOf(metric));
  if (!TakeTrigger(triggers, "hpa", "HorizontalPodAutoscaler", draft)) return;
  draft.Assume("cluster.scaling.min_replicas", 1, "not said: Kubernetes' default");
  TakeNumber(spec, "minReplicas", "min_replicas", draft);
  TakeNumber(spec, "maxReplicas", "max_replicas", draft);
  if (const ScalerJson* behavior = ObjectIn(spec, "behavior")) TakeBehavior(*behavior, draft);
}

}  // namespace

void TakeScaledObject(const ScalerJson& spec, Draft& draft) {
  std::vector<ScalerTrigger> triggers;
  for (const ScalerJson& each : ListIn(spec, "triggers")) {
    const ScalerJson* metadata = ObjectIn(each, "metadata");
    ScalerTrigger trigger{TextIn(each, "type"), "", std::nullopt};
    if (metadata != nullptr && !TextIn(*metadata, "query").empty()) {
      trigger.words = TextIn(*metadata, "query");
      trigger.metric = MetricIn(trigger.words);
      trigger.target = QuantityIn(TextIn(*metadata, "threshold"));
    }
    triggers.push_back(std::move(trigger));
  }
  if (!TakeTrigger(triggers, "keda", "ScaledObject", draft)) return;
  draft.Assume("cluster.scaling.min_replicas", 0, "not said: KEDA's default");
  draft.Assume("cluster.scaling.max_replicas", 100, "not said: KEDA's default");
  TakeNumber(spec, "minReplicaCount", "min_replicas", draft);
  TakeNumber(spec, "maxReplicaCount", "max_replicas", draft);
  TakeNumber(spec, "pollingInterval", "polling_s", draft);
  TakeNumber(spec, "cooldownPeriod", "cooldown_s", draft);
  const ScalerJson* behavior =
      ObjectAt(spec, {"advanced", "horizontalPodAutoscalerConfig", "behavior"});
  if (behavior != nullptr) TakeBehavior(*behavior, draft);
}

void ReadScalers(const ImportSource& source, Draft& draft) {
  for (const ScalerJson& document : source.manifests) {
    const std::string kind = TextIn(document, "kind");
    const ScalerJson* spec = ObjectIn(document, "spec");
    if (spec == nullptr) continue;
    if (kind == "HorizontalPodAutoscaler") ReadHpa(*spec, draft);
    if (kind != "ScaledObject") continue;
    draft.Found("a ScaledObject of KEDA");
    TakeScaledObject(*spec, draft);
  }
}

}  // namespace servecast
