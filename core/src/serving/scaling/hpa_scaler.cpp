// The HPA, alone and below KEDA, as scalers of a pool: one External metric with an average target.
#include <algorithm>
#include <cmath>

#include "serving/scaling/hpa.h"
#include "serving/scaling/keda.h"
#include "serving/scaling/scaler.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

std::int64_t Thousandths(double x) { return static_cast<std::int64_t>(std::nearbyint(x * 1e3)); }

// In the order of policies/scaler_hpa.cpp.
struct HpaParams {
  double target, sync_s, tolerance, up_window_s, up_pods, up_percent, up_period_s, down_window_s,
      down_pods, down_percent, down_period_s;
};

HpaParams ParamsOf(Params p) {
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10]};
}

HpaDirection DirectionOf(double window_s, double pods, double percent, double period_s) {
  HpaDirection direction;
  direction.window = NsOf(window_s);
  if (pods > 0) {
    direction.policies.push_back({false, static_cast<std::int64_t>(pods), NsOf(period_s)});
  }
  if (percent > 0) {
    direction.policies.push_back({true, static_cast<std::int64_t>(percent), NsOf(period_s)});
  }
  if (direction.policies.empty()) direction.select = HpaSelect::kDisabled;
  return direction;
}

HpaSpec SpecOf(const ScalingSpec& scaling, const HpaParams& p) {
  HpaSpec spec;
  spec.min = scaling.min_replicas;
  spec.max = scaling.max_replicas;
  spec.metrics = {{HpaMetricKind::kExternal, HpaTarget::kAverageValue,
                   std::max<std::int64_t>(1, Thousandths(p.target))}};
  spec.tolerance = p.tolerance;
  spec.behavior =
      HpaBehavior{DirectionOf(p.up_window_s, p.up_pods, p.up_percent, p.up_period_s),
                  DirectionOf(p.down_window_s, p.down_pods, p.down_percent, p.down_period_s)};
  return spec;
}

// One sync after another.
class HpaScaler final : public Scaler {
 public:
  HpaScaler(ScalingMetric metric, HpaSpec spec, TimeNs period)
      : metric_(metric), hpa_(std::move(spec)), period_(period), next_(period) {}

  TimeNs Next() const override { return next_; }
  std::int64_t Decide(const ScalerView& view) override {
    next_ += period_;
    std::vector<HpaReading> readings(1);
    readings[0].failed = !view.scraped;
    readings[0].total = Thousandths(MetricOf(metric_, view));
    return hpa_
        .Sync({.now = view.now,
               .spec = view.wanted,
               .status = static_cast<std::int64_t>(view.replicas.size()),
               .pods = {},
               .readings = readings})
        .desired;
  }

 private:
  ScalingMetric metric_;
  Hpa hpa_;
  TimeNs period_, next_;
};

class KedaScaler final : public Scaler {
 public:
  KedaScaler(ScalingMetric metric, const KedaSpec& spec, HpaScaler hpa, TimeNs polling)
      : metric_(metric), keda_(spec), hpa_(std::move(hpa)), polling_(polling), next_(polling) {}

  TimeNs Next() const override { return std::min(next_, hpa_.Next()); }
  std::int64_t Decide(const ScalerView& view) override {
    ScalerView after = view;
    if (next_ == view.now) {  // at equal times before the sync
      next_ += polling_;
      std::optional<std::int64_t> value;
      if (view.scraped) value = Thousandths(MetricOf(metric_, view));
      after.wanted = keda_.At({view.now, value, view.wanted}).replicas;
    }
    return hpa_.Next() == view.now ? hpa_.Decide(after) : after.wanted;
  }

 private:
  ScalingMetric metric_;
  Keda keda_;
  HpaScaler hpa_;
  TimeNs polling_, next_;
};

}  // namespace

double MetricOf(ScalingMetric metric, const ScalerView& view) {
  double sum = 0;
  for (const ScaledReplica& one : view.replicas) {
    switch (metric) {
      case ScalingMetric::kWaiting:
        sum += Real(one.waiting);
        break;
      case ScalingMetric::kRunning:
        sum += Real(one.running);
        break;
      case ScalingMetric::kOutstanding:
        sum += Real(one.waiting + one.running);
        break;
      case ScalingMetric::kKvUsage:
        sum += one.kv_usage;
        break;
    }
  }
  const bool queues = metric == ScalingMetric::kWaiting || metric == ScalingMetric::kOutstanding;
  return queues ? sum + Real(view.held) : sum;
}

std::unique_ptr<Scaler> MakeHpaScaler(const ScalerInput& input) {
  const HpaParams p = ParamsOf(input.params);
  return std::make_unique<HpaScaler>(input.spec.metric, SpecOf(input.spec, p), NsOf(p.sync_s));
}

std::unique_ptr<Scaler> MakeKedaScaler(const ScalerInput& input) {
  const HpaParams p = ParamsOf(input.params);
  KedaSpec spec;
  spec.min = input.spec.min_replicas;
  spec.max = input.spec.max_replicas;
  spec.cooldown = NsOf(input.params[12]);
  return std::make_unique<KedaScaler>(
      input.spec.metric, spec,
      HpaScaler(input.spec.metric, HpaOf(spec, SpecOf(input.spec, p)), NsOf(p.sync_s)),
      NsOf(input.params[11]));
}

}  // namespace servecast
