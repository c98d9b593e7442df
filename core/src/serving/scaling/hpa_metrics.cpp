// What one metric of an HPA proposes.
#include <algorithm>
#include <cmath>

#include "serving/scaling/hpa.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

// The two tests differ at a ratio of 1.1: |1 - 1.1| is just above 0.1, and 1.1 is not above 1.1.
bool Within(const HpaSpec& spec, double ratio) {
  if (!spec.band) return std::abs(1.0 - ratio) <= spec.tolerance;
  double down = spec.tolerance, up = spec.tolerance;
  if (spec.behavior) {
    down = spec.behavior->down.tolerance.value_or(down);
    up = spec.behavior->up.tolerance.value_or(up);
  }
  return 1.0 - down <= ratio && ratio <= 1.0 + up;
}

// External and Object: of a total, no pod's own value is known.
std::optional<std::int64_t> OfTotal(const HpaSpec& spec, const HpaMetric& metric,
                                    std::int64_t total, const HpaView& view) {
  const double usage = Real(total), target = Real(metric.target);
  if (metric.type == HpaTarget::kAverageValue) {
    if (view.status > 0 && Within(spec, usage / (target * Real(view.status)))) return view.status;
    return RoundUp(usage / target);
  }
  const double ratio = usage / target;
  if (view.spec == 0) return RoundUp(ratio);
  if (Within(spec, ratio)) return view.spec;
  if (view.pods.empty()) return std::nullopt;
  const auto ready = std::count_if(view.pods.begin(), view.pods.end(), [](const HpaPod& pod) {
    return pod.state == HpaPodState::kReady || pod.state == HpaPodState::kTerminatingReady;
  });
  return RoundUp(ratio * Real(ready));
}

// Sums of pods that count, in thousandths; `requests` are those of the same pods.
struct Usage {
  std::int64_t pods = 0, sum = 0, requests = 0;

  void Add(const HpaPod& pod, std::int64_t value) {
    ++pods;
    sum += value;
    requests += pod.request;
  }
  double Ratio(const HpaMetric& metric) const {
    const bool relative = metric.type == HpaTarget::kUtilization;
    const std::int64_t mean = relative ? 100 * sum / requests : sum / pods;
    return Real(mean) / Real(metric.target);
  }
};

// A pod whose cpu says nothing of its load: it starts, or was never ready.
bool StillUnready(const HpaSpec& spec, const HpaPod& pod, const HpaSample& sample, TimeNs now) {
  const bool ready = pod.state == HpaPodState::kReady;
  if (pod.start + spec.cpu_initialization > now) {
    return !ready || sample.time < pod.transition + spec.metric_window;
  }
  return !ready && pod.start + spec.readiness_delay > pod.transition;
}

struct Groups {
  Usage counted;
  std::vector<const HpaPod*> missing, unready;
};

Groups Group(const HpaSpec& spec, const HpaMetric& metric, const HpaReading& reading,
             const HpaView& view) {
  Groups groups;
  for (std::size_t i = 0; i < view.pods.size(); ++i) {
    const HpaPod& pod = view.pods[i];
    const std::optional<HpaSample>& sample = reading.pods[i];
    if (pod.state == HpaPodState::kPending) {
      groups.unready.push_back(&pod);
    } else if (pod.state != HpaPodState::kReady && pod.state != HpaPodState::kRunningNotReady) {
      continue;
    } else if (!sample) {
      groups.missing.push_back(&pod);
    } else if (metric.kind == HpaMetricKind::kCpu && StillUnready(spec, pod, *sample, view.now)) {
      groups.unready.push_back(&pod);
    } else {
      groups.counted.Add(pod, sample->value);
    }
  }
  return groups;
}

// What a pod without a sample is taken to use when others ask for fewer replicas.
std::int64_t Assumed(const HpaMetric& metric, const HpaPod& pod) {
  if (metric.type == HpaTarget::kAverageValue) return metric.target;
  return pod.request * std::max<std::int64_t>(100, metric.target) / 100;
}

std::optional<std::int64_t> OfPods(const HpaSpec& spec, const HpaMetric& metric,
                                   const HpaReading& reading, const HpaView& view) {
  const Groups groups = Group(spec, metric, reading, view);
  Usage usage = groups.counted;
  if (usage.pods == 0 || (metric.type == HpaTarget::kUtilization && usage.requests == 0)) {
    return std::nullopt;
  }
  const double ratio = usage.Ratio(metric);
  const bool up_with_unready = !groups.unready.empty() && ratio > 1.0;
  if (groups.missing.empty() && !up_with_unready) {
    return Within(spec, ratio) ? view.spec : RoundUp(ratio * Real(usage.pods));
  }
  if (ratio < 1.0) {
    for (const HpaPod* pod : groups.missing) usage.Add(*pod, Assumed(metric, *pod));
  } else if (ratio > 1.0) {
    for (const HpaPod* pod : groups.missing) usage.Add(*pod, 0);
    for (const HpaPod* pod : groups.unready) usage.Add(*pod, 0);
  }
  const double filled = usage.Ratio(metric);
  const bool reversed = (ratio < 1.0 && filled > 1.0) || (ratio > 1.0 && filled < 1.0);
  if (Within(spec, filled) || reversed) return view.spec;
  const std::int64_t replicas = RoundUp(filled * Real(usage.pods));
  const bool against = (filled < 1.0 && replicas > view.spec) ||  //
                       (filled > 1.0 && replicas < view.spec);
  return against ? view.spec : replicas;
}

}  // namespace

std::optional<std::int64_t> HpaProposal(const HpaSpec& spec, std::size_t index,
                                        const HpaView& view) {
  const HpaMetric& metric = spec.metrics[index];
  const HpaReading& reading = view.readings[index];
  if (reading.failed) return std::nullopt;
  if (metric.kind == HpaMetricKind::kExternal || metric.kind == HpaMetricKind::kObject) {
    return OfTotal(spec, metric, reading.total, view);
  }
  return OfPods(spec, metric, reading, view);
}

}  // namespace servecast
