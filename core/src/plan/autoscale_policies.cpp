#include "plan/autoscale_policies.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "metrics/words.h"
#include "plan/line.h"

namespace servecast {
namespace {

// Of what a replica has at the peak with the fewest fixed replicas: from the boldest on.
constexpr double kShares[] = {1.2, 1, 0.85, 0.7, 0.55, 0.4, 0.25};
constexpr double kDownWindows[] = {60, 300, 900};  // s; Kubernetes' is 300
constexpr double kUsualWindow = 300;
// Kubernetes' HPA is used with a queue of a few requests; a queue of 20 is half a batch.
constexpr double kQueues[] = {20, 10, 5, 2, 1};
// llm-d's WVA ships 0.8.
constexpr double kSaturations[] = {0.9, 0.8, 0.7, 0.6, 0.5};
// Of one replica: a load below that is near none.
constexpr double kNearZero = 0.1;

// Two digits, as people set targets.
double Rounded(double value) {
  double unit = 1, parts = 1;
  while (value >= 100 * unit) unit *= 10;
  while (value < 10 / parts && parts < 1e5) parts *= 10;
  const double rounded = std::nearbyint(value / unit * parts) / parts * unit;
  return std::max(1e-3, rounded);  // no scaler takes less
}

class Maker {
 public:
  Maker(const ScalingSpec& own, const AutoscaleLoad& load)
      : load_(load), own_(own.On()), like_(own) {
    like_.params.clear();
    like_.schedule.clear();
    if (own.On()) return;  // limits that somebody has set are kept
    like_.min_replicas = 1;
    like_.max_replicas = std::min(kMostReplicas, 2 * load.fixed);
  }

  // `targets`: from the boldest on.
  AutoscaleFamily Hpa(std::string_view policy, ScalingMetric metric, std::vector<double> targets,
                      double window_s, std::int64_t least) const {
    static constexpr std::string_view kMetrics[] = {"waiting", "running", "outstanding",
                                                    "KV usage"};
    AutoscaleFamily family;
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    for (const double target : targets) {
      ScalingSpec s = like_;
      s.policy = policy;
      s.metric = metric;
      s.min_replicas = std::clamp(least, LeastOf(policy), s.max_replicas);
      s.params["target"] = target;
      s.params["down_window_s"] = window_s;
      family.push_back(Named(Format("{} {} {}, down {} s{}", policy == "hpa" ? "HPA" : "KEDA",
                                    kMetrics[static_cast<std::size_t>(metric)], ShortNumber(target),
                                    NumberText(window_s),
                                    s.min_replicas == 1   ? std::string()
                                    : s.min_replicas == 0 ? std::string(", to 0")
                                                          : Format(", min {}", s.min_replicas)),
                             std::move(s)));
    }
    return family;
  }

  // KEDA goes to zero where nobody has said otherwise.
  std::int64_t LeastOf(std::string_view policy) const {
    return policy == "keda" && !own_ ? 0 : like_.min_replicas;
  }

  AutoscaleFamily Wva() const {
    AutoscaleFamily family;
    for (const double threshold : kSaturations) {
      ScalingSpec s = like_;
      s.policy = "wva";
      s.min_replicas = std::max<std::int64_t>(1, s.min_replicas);  // it starts none from zero
      s.params["kv_threshold"] = threshold;
      family.push_back(Named(Format("WVA saturated from {}", Percent(threshold)), std::move(s)));
    }
    return family;
  }

  std::vector<double> Of(double at_peak) const {
    std::vector<double> targets;
    for (const double share : kShares) targets.push_back(Rounded(share * at_peak));
    return targets;
  }

 private:
  // It begins with what the load needs then.
  AutoscalePolicy Named(std::string name, ScalingSpec scaling) const {
    const std::int64_t first =
        std::clamp(load_.ReplicasFor(load_.per_s.front()),
                   std::max<std::int64_t>(1, scaling.min_replicas), scaling.max_replicas);
    return {AutoscaleKind::kScaler, std::move(name), first, std::move(scaling)};
  }

  const AutoscaleLoad& load_;
  bool own_;  // somebody has set limits
  ScalingSpec like_;
};

}  // namespace

double AutoscaleLoad::Peak() const { return *std::max_element(per_s.begin(), per_s.end()); }
double AutoscaleLoad::Least() const { return *std::min_element(per_s.begin(), per_s.end()); }
double AutoscaleLoad::Mean() const {
  double sum = 0;
  for (const double rate : per_s) sum += rate;
  return sum / static_cast<double>(per_s.size());
}
bool AutoscaleLoad::NearZero() const {
  return Least() < kNearZero * Peak() / static_cast<double>(fixed);
}
std::int64_t AutoscaleLoad::ReplicasFor(double rate) const {
  return static_cast<std::int64_t>(std::ceil(rate / Peak() * static_cast<double>(fixed)));
}

Scenario ScenarioUnder(const Scenario& scenario, const AutoscalePolicy& policy) {
  Scenario s = scenario;
  s.cluster.pool().replicas = policy.replicas;
  s.cluster.scaling = policy.scaling;
  s.cluster.pool().scaling.reset();
  return s;
}

AutoscalePolicy FixedReplicas(std::int64_t replicas) {
  return {AutoscaleKind::kFixed, Format("{} throughout", Count(replicas, "replica")), replicas, {}};
}

AutoscaleFamily Schedules(const ScalingSpec& like, const AutoscaleLoad& load, double cold_start_s) {
  AutoscaleFamily family;
  for (const double share : kShares) {
    AutoscalePolicy policy;
    policy.kind = AutoscaleKind::kSchedule;
    policy.name = Format("schedule that knows the load ({})", Percent(share));
    ScalingSpec& s = policy.scaling = like;
    s.policy = "schedule";
    s.params.clear();
    s.schedule.clear();
    s.min_replicas = 1;
    s.max_replicas = 1;
    std::vector<std::int64_t> needs;
    for (const double rate : load.per_s) {
      needs.push_back(std::clamp<std::int64_t>(load.ReplicasFor(rate / share), 1, kMostReplicas));
      s.max_replicas = std::max(s.max_replicas, needs.back());
    }
    // From `at` on, what the bins need that begin within a cold start of it.
    const auto wanted = [&](double at) {
      const auto from = static_cast<std::size_t>(std::max(0.0, std::floor(at / load.bin_s)));
      std::int64_t most = 1;
      for (std::size_t i = from; i < needs.size(); ++i) {
        if (static_cast<double>(i) * load.bin_s > at + cold_start_s) break;
        most = std::max(most, needs[i]);
      }
      return most;
    };
    std::vector<double> times;
    for (std::size_t i = 1; i < needs.size(); ++i) {
      const double begin = static_cast<double>(i) * load.bin_s;
      times.push_back(begin);
      if (begin > cold_start_s) times.push_back(begin - cold_start_s);
    }
    std::sort(times.begin(), times.end());
    policy.replicas = wanted(0);
    std::int64_t now = policy.replicas;
    double last = 0;
    for (const double time : times) {
      const std::int64_t then = wanted(time);
      if (then == now || time <= last) continue;
      s.schedule.push_back({time, static_cast<double>(then)});
      now = then;
      last = time;
    }
    if (!s.schedule.empty()) family.push_back(std::move(policy));
  }
  return family;
}

std::vector<AutoscaleFamily> Scalers(const ScalingSpec& own, std::int64_t own_replicas,
                                     const AutoscaleLoad& load) {
  std::vector<AutoscaleFamily> families;
  if (own.On()) {
    families.push_back({{AutoscaleKind::kScaler, "own scaler", own_replicas, own}});
  }
  const Maker make(own, load);
  const double peak = load.Peak(), fixed = static_cast<double>(load.fixed);
  const std::vector<double> outstanding = make.Of(peak * load.mean_e2e_s / fixed);
  const std::int64_t floor = load.ReplicasFor(load.Least());
  for (const double window : kDownWindows) {
    families.push_back(make.Hpa("hpa", ScalingMetric::kOutstanding, outstanding, window, 1));
    if (floor > std::max<std::int64_t>(1, own.On() ? own.min_replicas : 1)) {
      families.push_back(make.Hpa("hpa", ScalingMetric::kOutstanding, outstanding, window, floor));
    }
  }
  families.push_back(make.Hpa("hpa", ScalingMetric::kWaiting,
                              {std::begin(kQueues), std::end(kQueues)}, kUsualWindow, 1));
  const double kv = std::min(1.0, load.mean_kv_usage * peak / load.Mean());
  if (kv > 0) {
    families.push_back(make.Hpa("hpa", ScalingMetric::kKvUsage, make.Of(kv), kUsualWindow, 1));
  }
  families.push_back(make.Wva());
  if (load.NearZero()) {
    families.push_back(make.Hpa("keda", ScalingMetric::kOutstanding, outstanding, kUsualWindow, 0));
  }
  return families;
}

}  // namespace servecast
