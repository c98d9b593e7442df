// Kubernetes' HorizontalPodAutoscaler and KEDA's ScaledObject beside servers: cluster.scaling,
// or, of several servers, that of the pool whose object it names. Dynamo's planner is one of all.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "io/issues.h"
#include "io/scaling_checks.h"

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
void TakeNumber(const ScalerJson& of, const char* key, const std::string& path, Draft& draft) {
  const auto number = NumberIn(TextIn(of, key));
  if (!number || *number < 0) return;
  draft.Take(path, NumberJson(*number), Format("{} {}", key, TextIn(of, key)));
}

// The limits of behavior.scaleUp and scaleDown.
void TakeBehavior(const ScalerJson& behavior, const std::string& at, Draft& draft) {
  for (const auto& [key, way] : {std::pair("scaleUp", "up"), std::pair("scaleDown", "down")}) {
    const ScalerJson* rules = ObjectIn(behavior, key);
    if (rules == nullptr) continue;
    TakeNumber(*rules, "stabilizationWindowSeconds", Format("{}.{}_window_s", at, way), draft);
    if (TextIn(*rules, "selectPolicy") == "Disabled") {
      for (const char* limit : {"pods", "percent"}) {
        draft.Take(Format("{}.{}_{}", at, way, limit), 0, "selectPolicy Disabled");
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
    draft.Take(Format("{}.{}_pods", at, way), NumberJson(pods), key);
    draft.Take(Format("{}.{}_percent", at, way), NumberJson(percent), key);
    TakeNumber(policies[0], "periodSeconds", Format("{}.{}_period_s", at, way), draft);
  }
}

// False: nothing that can be a scenario's.
bool TakeTrigger(const std::vector<ScalerTrigger>& triggers, const char* policy,
                 const std::string& kind, const std::string& at, Draft& draft) {
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
  draft.Take(at + ".policy", policy, kind);
  draft.Take(at + ".metric", found->metric, found->words);
  draft.Take(at + ".target", NumberJson(*found->target), found->words);
  return true;
}

// The object whose replicas it scales.
std::string TargetOf(const ScalerJson& spec) {
  const ScalerJson* target = ObjectIn(spec, "scaleTargetRef");
  return target == nullptr ? "" : TextIn(*target, "name");
}

void TakeHpa(const ScalerJson& spec, const std::string& at, Draft& draft) {
  std::vector<ScalerTrigger> triggers;
  for (const ScalerJson& metric : ListIn(spec, "metrics")) triggers.push_back(TriggerOf(metric));
  if (!TakeTrigger(triggers, "hpa", "HorizontalPodAutoscaler", at, draft)) return;
  TakeNumber(spec, "minReplicas", at + ".min_replicas", draft);
  TakeNumber(spec, "maxReplicas", at + ".max_replicas", draft);
  draft.Assume(at + ".min_replicas", 1, "not said: Kubernetes' default");
  if (const ScalerJson* behavior = ObjectIn(spec, "behavior")) TakeBehavior(*behavior, at, draft);
}

// Options of Dynamo's planner, and the members that they are.
constexpr std::pair<std::string_view, std::string_view> kPlannerNames[] = {
    {"load_adjustment_interval_seconds", "load_adjustment_interval_s"},
    {"throughput_adjustment_interval_seconds", "throughput_adjustment_interval_s"},
    {"optimization_target", "optimization_target"},
    {"enable_load_scaling", "enable_load_scaling"},
    {"enable_throughput_scaling", "enable_throughput_scaling"},
    {"ttft_ms", "ttft_ms"},
    {"itl_ms", "itl_ms"},
    {"ttft", "ttft_ms"},
    {"itl", "itl_ms"},
    {"load_scaling_down_sensitivity", "load_scaling_down_sensitivity"},
    {"load_min_observations", "load_min_observations"},
    {"min_endpoint", "min_endpoint"},
    {"max_gpu_budget", "max_gpu_budget"},
    {"min_gpu_budget", "min_gpu_budget"},
    {"prefill_scale_up_queue_tokens", "prefill_scale_up_queue_tokens"},
    {"prefill_scale_down_queue_tokens", "prefill_scale_down_queue_tokens"},
    {"decode_scale_up_kv_rate", "decode_scale_up_kv_rate"},
    {"decode_scale_down_kv_rate", "decode_scale_down_kv_rate"}};
constexpr std::string_view kOfPools[] = {"mode", "prefill_engine_num_gpu", "decode_engine_num_gpu",
                                         "speculative_nextn"};

void TakePlanner(const ScalerJson& options, Draft& draft) {
  const std::string at = "cluster.scaling.";
  draft.Take(at + "policy", "dynamo", "Dynamo's planner");
  for (const auto& option : options.items()) {
    const std::string& name = option.key();
    const auto known = std::find_if(std::begin(kPlannerNames), std::end(kPlannerNames),
                                    [&](const auto& each) { return each.first == name; });
    const std::string text = TextOf(option.value()),
                      words = Format("{} {}", name, ShownText(text, 40));
    const auto number = NumberIn(text);
    if (std::find(std::begin(kOfPools), std::end(kOfPools), name) != std::end(kOfPools)) {
      draft.Ignore(words, "it follows from the pools");
    } else if (name == "config") {
      draft.Ignore(words, "it is not among the texts, nor JSON");
    } else if (known == std::end(kPlannerNames)) {
      draft.Ignore(ShownText(words, 80), "an option of Dynamo's planner that is not modelled");
    } else if (text == "true" || text == "false" || (number && name.rfind("enable_", 0) == 0)) {
      draft.Take(at + std::string(known->second), text == "true" || number.value_or(0) != 0, words);
    } else if (number) {
      draft.Take(at + std::string(known->second), NumberJson(*number), words);
    } else if (name == "optimization_target" &&
               std::find(kDynamoTargetNames.begin(), kDynamoTargetNames.end(), text) !=
                   kDynamoTargetNames.end()) {
      draft.Take(at + name, text, words);
    } else {
      draft.Ignore(words, "it is no value of that option");
    }
  }
  if (draft.Find(at + "optimization_target") == nullptr) {
    draft.Warn("Dynamo's planner: optimization_target is not said, here it is sla");
  }
}

}  // namespace

void TakeScaledObject(const ScalerJson& spec, const std::string& at, Draft& draft) {
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
  if (!TakeTrigger(triggers, "keda", "ScaledObject", at, draft)) return;
  TakeNumber(spec, "minReplicaCount", at + ".min_replicas", draft);
  TakeNumber(spec, "maxReplicaCount", at + ".max_replicas", draft);
  draft.Assume(at + ".min_replicas", 0, "not said: KEDA's default");
  draft.Assume(at + ".max_replicas", 100, "not said: KEDA's default");
  TakeNumber(spec, "pollingInterval", at + ".polling_s", draft);
  TakeNumber(spec, "cooldownPeriod", at + ".cooldown_s", draft);
  const ScalerJson* behavior =
      ObjectAt(spec, {"advanced", "horizontalPodAutoscalerConfig", "behavior"});
  if (behavior != nullptr) TakeBehavior(*behavior, at, draft);
}

void ReadScalers(const ImportSource& source, Draft& draft) {
  for (const ScalerJson& document : source.manifests) {
    const std::string kind = TextIn(document, "kind");
    const ScalerJson* spec = ObjectIn(document, "spec");
    const bool hpa = kind == "HorizontalPodAutoscaler";
    if (spec == nullptr || !(hpa || kind == "ScaledObject")) continue;
    draft.Found(hpa ? "a HorizontalPodAutoscaler" : "a ScaledObject of KEDA");
    draft.AddScaler(kind, *spec);
  }
}

void Draft::NameServer(std::string name) {
  if (servers_ > 0) named_[std::move(name)] = Pool();
}

void Draft::AddScaler(std::string kind, ScalerJson spec) {
  if (scalers_.size() < kMostIssues) scalers_.push_back({text_, std::move(kind), std::move(spec)});
}

// Once all servers are known, whatever text names them.
void Draft::TakeScalers() {
  for (const Scaler& scaler : std::exchange(scalers_, {})) {
    text_ = scaler.text;
    std::string at = "cluster.scaling";
    const ScalerJson* pools = Find("cluster.pools");
    if (scaler.kind == "planner") {
      TakePlanner(scaler.spec, *this);
      continue;
    }
    if (pools != nullptr && pools->size() > 1) {
      const std::string object = TargetOf(scaler.spec);
      const auto named = named_.find(object);
      if (named == named_.end()) {
        Warn(Format("a {} is left out: it scales \"{}\", which starts none of the {} pools",
                    scaler.kind, ShownText(object, 40), pools->size()));
        continue;
      }
      at = Format("cluster.pools.{}.scaling", named->second);
    }
    if (scaler.kind == "ScaledObject") {
      TakeScaledObject(scaler.spec, at, *this);
    } else {
      TakeHpa(scaler.spec, at, *this);
    }
  }
}

// Replicas begin within the limits of their scaler.
void Draft::SettleScaling() {
  if (Find("cluster.scaling") == nullptr && Find("cluster.pools") == nullptr) return;
  ScalerJson& pools = said_["cluster"]["pools"];
  if (pools.empty() && Find("cluster.scaling") != nullptr) {
    pools = ScalerJson::array({ScalerJson::object()});
  }
  const ScalerJson* all = Find("cluster.scaling");
  const bool planner = all != nullptr && TextIn(*all, "policy") == "dynamo";
  std::string roles;
  for (const ScalerJson& pool : pools) roles += TextIn(pool, "role") + " ";
  const bool apart = roles == "prefill decode " || roles == "decode prefill ";
  if (pools.size() > 1 && !(planner && apart) && said_["cluster"].erase("scaling") > 0) {
    Warn(planner ? Format("Dynamo's planner is left out: it is modelled for one pool, or one that "
                          "prefills and one that decodes, not for {}",
                          pools.size())
                 : Format("a scaler is left out: it names none of the {} pools", pools.size()));
  }
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const ScalerJson* own = ObjectIn(pools[i], "scaling");
    const ScalerJson* scaling = own != nullptr ? own : Find("cluster.scaling");
    if (scaling == nullptr) continue;
    const auto limit = [scaling](const char* name, std::int64_t otherwise) {
      const auto member = scaling->find(name);
      return member != scaling->end() && member->is_number_integer() ? member->get<std::int64_t>()
                                                                     : otherwise;
    };
    const std::int64_t least = limit("min_replicas", 1), most = limit("max_replicas", 8);
    const std::int64_t first = pools[i].value("replicas", std::int64_t{1});
    if (least > most || (first >= least && first <= most)) continue;
    pools[i]["replicas"] = std::clamp(first, least, most);
    Remark(Format("{} replicas to begin with are {} here, by the limits of the scaler", first,
                  std::clamp(first, least, most)));
  }
}

}  // namespace servecast
