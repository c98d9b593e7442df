// The recordings of the HPA, and of KEDA above it.
#include <utility>

#include "fmt/format.h"
#include "serving/scaling/hpa.h"
#include "serving/scaling/keda.h"
#include "testing/autoscaler_golden.h"
#include "testing/autoscaler_rows.h"
#include "testing/csv_table.h"

namespace servecast::testing {
namespace {

HpaMetricKind KindOf(const std::string& name) {
  if (name == "External") return HpaMetricKind::kExternal;
  if (name == "Object") return HpaMetricKind::kObject;
  if (name == "Pods") return HpaMetricKind::kPods;
  if (name == "cpu") return HpaMetricKind::kCpu;
  if (name == "memory") return HpaMetricKind::kMemory;
  Bad("unknown kind of metric " + name);
  return HpaMetricKind::kExternal;
}

HpaTarget TargetOf(const std::string& name) {
  if (name == "AverageValue") return HpaTarget::kAverageValue;
  if (name == "Value") return HpaTarget::kValue;
  if (name == "Utilization") return HpaTarget::kUtilization;
  Bad("unknown type of target " + name);
  return HpaTarget::kAverageValue;
}

HpaDirection DirectionOf(const Json& json) {
  HpaDirection direction;
  if (json.contains("stabilizationWindowSeconds")) {
    direction.window = TimeIn(json, "stabilizationWindowSeconds");
  }
  const std::string select = json.contains("selectPolicy") ? TextIn(json, "selectPolicy") : "Max";
  direction.select = select == "Min"        ? HpaSelect::kMin
                     : select == "Disabled" ? HpaSelect::kDisabled
                                            : HpaSelect::kMax;
  if (json.contains("policies")) {
    for (const Json& one : In(json, "policies")) {
      direction.policies.push_back(
          {TextIn(one, "type") == "Percent", IntIn(one, "value"), TimeIn(one, "periodSeconds")});
    }
  }
  if (json.contains("tolerance")) {
    const Json& given = In(json, "tolerance");
    direction.tolerance =
        given.is_string() ? RealOf(given.get<std::string>()) : RealIn(json, "tolerance");
  }
  return direction;
}

void ReadBehavior(const Json& json, HpaSpec& spec) {
  if (!json.contains("behavior") || In(json, "behavior").is_null()) return;
  spec.behavior.emplace();
  const Json& behavior = In(json, "behavior");
  if (behavior.contains("scaleUp")) spec.behavior->up = DirectionOf(In(behavior, "scaleUp"));
  if (behavior.contains("scaleDown")) spec.behavior->down = DirectionOf(In(behavior, "scaleDown"));
}

HpaSpec SpecOf(const Json& json) {
  HpaSpec spec;
  spec.min = IntIn(json, "minReplicas");
  spec.max = IntIn(json, "maxReplicas");
  spec.tolerance = RealIn(json, "tolerance");
  spec.band = TextIn(json, "tolerance_rule") == "band";
  spec.downscale_stabilization = TimeIn(json, "downscale_stabilization_s");
  spec.cpu_initialization = TimeIn(json, "cpu_initialization_period_s");
  spec.readiness_delay = TimeIn(json, "initial_readiness_delay_s");
  if (json.contains("metric_window_s")) spec.metric_window = TimeIn(json, "metric_window_s");
  for (const Json& one : In(json, "metrics")) {
    spec.metrics.push_back(
        {KindOf(TextIn(one, "kind")), TargetOf(TextIn(one, "target")), IntIn(one, "value")});
  }
  ReadBehavior(json, spec);
  return spec;
}

// "12R@-2000/-1950": number, state, start and transition.
HpaPod PodOf(const std::string& text, const std::vector<std::int64_t>& requests) {
  const std::size_t at = text.find('@');
  const std::string head = text.substr(0, at);
  HpaPod pod;
  if (head.size() < 2) {
    Bad("unknown pod " + text);
    return pod;
  }
  switch (head.back()) {
    case 'P':
      pod.state = HpaPodState::kPending;
      break;
    case 'N':
      pod.state = HpaPodState::kRunningNotReady;
      break;
    case 'R':
      pod.state = HpaPodState::kReady;
      break;
    case 'T':
      pod.state = HpaPodState::kTerminatingReady;
      break;
    case 't':
      pod.state = HpaPodState::kTerminating;
      break;
    case 'F':
      pod.state = HpaPodState::kFailed;
      break;
    default:
      Bad("unknown state of pod " + text);
  }
  if (!requests.empty()) {
    const auto number = static_cast<std::size_t>(IntOf(head.substr(0, head.size() - 1)));
    pod.request = requests[number % requests.size()];
  }
  if (at != std::string::npos) {
    const std::vector<std::string> times = Split(text.substr(at + 1), '/');
    if (times.size() != 2) {
      Bad("unknown pod " + text);
      return pod;
    }
    pod.start = TimeOf(times[0]);
    pod.transition = TimeOf(times[1]);
  }
  return pod;
}

HpaReading ReadingOf(const HpaMetric& metric, const std::string& text, std::size_t pods) {
  HpaReading reading;
  reading.failed = text == "x";
  if (reading.failed) return reading;
  if (metric.kind == HpaMetricKind::kExternal || metric.kind == HpaMetricKind::kObject) {
    for (const std::string& one : Split(text, '+')) reading.total += IntOf(one);
    return reading;
  }
  for (const std::string& one : Items(text)) {
    const std::vector<std::string> parts = Split(one, '/');
    if (one == "-") {
      reading.pods.emplace_back();
    } else {
      reading.pods.push_back(
          HpaSample{IntOf(parts[0]), parts.size() > 1 ? TimeOf(parts[1]) : TimeNs{0}});
    }
  }
  if (reading.pods.size() != pods) Bad("not one sample a pod: " + text);
  reading.pods.resize(pods);
  return reading;
}

std::string Joined(const std::vector<std::optional<std::int64_t>>& proposals) {
  std::string text;
  for (const auto& one : proposals) {
    if (!text.empty()) text += '|';
    text += one ? fmt::format("{}", *one) : "x";
  }
  return text;
}

// Conditions stay as they were where a sync does not set them; rows show those of the sync.
std::string LimitedOf(const HpaDecision& decision) {
  if (!decision.stabilised) return "";
  switch (decision.limit) {
    case HpaLimit::kNone:
      return "F:DesiredWithinRange";
    case HpaLimit::kUpRate:
      return "T:ScaleUpLimit";
    case HpaLimit::kMax:
      return "T:TooManyReplicas";
    case HpaLimit::kDownRate:
      return "T:ScaleDownLimit";
    case HpaLimit::kMin:
      return "T:TooFewReplicas";
  }
  return "";
}

std::string ActiveOf(const HpaSpec& spec, const HpaDecision& decision) {
  switch (decision.status) {
    case HpaStatus::kNotAsked:
      return "";
    case HpaStatus::kValid:
      return "T:ValidMetricFound";
    case HpaStatus::kDisabled:
      return "F:ScalingDisabled";
    case HpaStatus::kFailed:
      break;
  }
  switch (spec.metrics[decision.failed_metric].kind) {
    case HpaMetricKind::kExternal:
      return "F:FailedGetExternalMetric";
    case HpaMetricKind::kObject:
      return "F:FailedGetObjectMetric";
    case HpaMetricKind::kPods:
      return "F:FailedGetPodsMetric";
    default:
      return "F:FailedGetResourceMetric";
  }
}

std::optional<std::string> CompareHpaCase(const Json& json, const ScalerRows& rows) {
  const HpaSpec spec = SpecOf(json);
  const auto requests = json.value("pod_request_milli", std::vector<std::int64_t>());
  Hpa hpa(spec);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::vector<HpaPod> pods;
    for (const std::string& one : Items(rows.Text(row, "pods"))) {
      pods.push_back(PodOf(one, requests));
    }
    std::vector<HpaReading> readings;
    const std::vector<std::string> texts = Split(rows.Text(row, "metrics"), '|');
    if (texts.size() != spec.metrics.size()) return "not one reading a metric";
    for (std::size_t i = 0; i < texts.size(); ++i) {
      readings.push_back(ReadingOf(spec.metrics[i], texts[i], pods.size()));
    }
    const HpaDecision decision = hpa.Sync({.now = rows.Time(row, "t_s"),
                                           .spec = rows.Int(row, "spec"),
                                           .status = rows.Int(row, "status"),
                                           .pods = pods,
                                           .readings = readings});
    RowCheck check(rows, row);
    check.Text("proposals", Joined(decision.proposals));
    check.Optional("wanted", decision.wanted);
    check.Optional("stabilised", decision.stabilised);
    check.Optional("desired", decision.desired);
    check.Text("limited", LimitedOf(decision));
    check.Text("active", ActiveOf(spec, decision));
    if (check.difference()) return check.difference();
  }
  return std::nullopt;
}

std::string Seconds(std::optional<TimeNs> time) {
  return time ? fmt::format("{}", static_cast<double>(*time) / 1e9) : "";
}

// A row of KEDA's own loop.
std::optional<std::string> ComparePoll(Keda& keda, const ScalerRows& rows, std::size_t row) {
  std::optional<std::int64_t> value;
  if (rows.Text(row, "error") != "1") value = rows.Int(row, "value");
  const Keda::Decision decision = keda.At({rows.Time(row, "t_s"), value, rows.Int(row, "before")});
  RowCheck check(rows, row);
  check.Text("active", keda.Active(value) ? "1" : "0");
  check.Optional("after", decision.replicas);
  check.Text("last_active_s", Seconds(keda.last_active()));
  check.Text("active_condition", decision.condition == KedaCondition::kActive ? "ScalerActive"
                                 : decision.condition == KedaCondition::kCooldown
                                     ? "ScalerCooldown"
                                     : "ScalerNotActive");
  return check.difference();
}

std::optional<std::string> CompareSync(Hpa& hpa, const ScalerRows& rows, std::size_t row) {
  const std::int64_t before = rows.Int(row, "before");
  std::vector<HpaReading> readings(1);
  readings[0].failed = rows.Text(row, "error") == "1";
  readings[0].total = rows.Int(row, "value");
  const HpaDecision decision = hpa.Sync({.now = rows.Time(row, "t_s"),
                                         .spec = before,
                                         .status = before,
                                         .pods = {},
                                         .readings = readings});
  RowCheck check(rows, row);
  check.Optional("after", decision.desired);
  check.Text("proposal", Joined(decision.proposals));
  check.Optional("stabilised", decision.stabilised);
  check.Text("scaling_active", ActiveOf(hpa.spec(), decision));
  return check.difference();
}

std::optional<std::string> CompareKedaCase(const Json& json, const ScalerRows& rows) {
  KedaSpec spec;
  spec.min = OptionalIntIn(json, "minReplicaCount");
  spec.max = OptionalIntIn(json, "maxReplicaCount");
  spec.idle = OptionalIntIn(json, "idleReplicaCount");
  spec.activation = IntIn(json, "activation_threshold");
  if (const auto s = OptionalIntIn(json, "cooldownPeriod")) spec.cooldown = *s * kNsPerS;
  if (const auto s = OptionalIntIn(json, "initialCooldownPeriod")) {
    spec.initial_cooldown = *s * kNsPerS;
  }
  HpaSpec hpa_spec;
  hpa_spec.metrics = {
      {HpaMetricKind::kExternal, HpaTarget::kAverageValue, IntIn(json, "target_average_value")}};
  ReadBehavior(json, hpa_spec);
  Keda keda(spec);
  Hpa hpa(HpaOf(spec, hpa_spec));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const bool poll = rows.Text(row, "kind") == "poll";
    std::optional<std::string> difference =
        poll ? ComparePoll(keda, rows, row) : CompareSync(hpa, rows, row);
    if (difference) return difference;
  }
  return std::nullopt;
}

}  // namespace

ScalerCases CompareHpa(const std::string& cases, const std::string& rows) {
  return CompareCases("hpa", cases, rows, CompareHpaCase);
}

ScalerCases CompareKeda(const std::string& cases, const std::string& rows) {
  return CompareCases("keda", cases, rows, CompareKedaCase);
}

}  // namespace servecast::testing
