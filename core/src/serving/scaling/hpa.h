// Kubernetes' Horizontal Pod Autoscaler, version 2: replicas from metrics, at each of its syncs.
//
// A sync: each metric proposes a number of replicas (hpa_metrics.cpp); the largest is stabilised by
// the proposals of a window, limited by rates of change, and becomes the new number. All memory
// (proposals, changes) is the object's own. Metric values and targets are integers in thousandths,
// as Kubernetes holds them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace servecast {

enum class HpaMetricKind : std::uint8_t { kExternal, kObject, kPods, kCpu, kMemory };
enum class HpaTarget : std::uint8_t { kAverageValue, kValue, kUtilization };

// One metric of the object. `target`: thousandths, or percent of the request with kUtilization.
struct HpaMetric {
  HpaMetricKind kind = HpaMetricKind::kExternal;
  HpaTarget type = HpaTarget::kAverageValue;
  std::int64_t target = 1000;
};

enum class HpaPodState : std::uint8_t {
  kPending,
  kRunningNotReady,
  kReady,
  kTerminatingReady,  // is being removed; was ready
  kTerminating,
  kFailed
};

// `request` is used with kUtilization; start and transition (the last change of the ready
// condition) for cpu only.
struct HpaPod {
  HpaPodState state = HpaPodState::kReady;
  std::int64_t request = 1;
  TimeNs start = 0, transition = 0;
};

struct HpaSample {
  std::int64_t value = 0;
  TimeNs time = 0;  // for cpu only
};

// What the metrics API answers for one metric. External and Object: `total`; other kinds: an entry
// a pod, in the order of HpaView::pods, empty where there is no sample.
struct HpaReading {
  bool failed = false;
  std::int64_t total = 0;
  std::vector<std::optional<HpaSample>> pods;
};

// What a sync sees. `status`: pods that are not terminating and have not failed.
struct HpaView {
  TimeNs now = 0;
  std::int64_t spec = 0, status = 0;
  std::span<const HpaPod> pods;
  std::span<const HpaReading> readings;  // one a metric, in order
};

struct HpaPolicy {
  bool percent = false;  // of the replicas at the period's start; else pods
  std::int64_t value = 0;
  TimeNs period = 0;
};

enum class HpaSelect : std::uint8_t { kMax, kMin, kDisabled };

// One direction of `behavior`; what is not said has Kubernetes' default.
struct HpaDirection {
  std::optional<TimeNs> window;
  HpaSelect select = HpaSelect::kMax;
  std::vector<HpaPolicy> policies;  // empty: the default policies
  std::optional<double> tolerance;  // read by the band rule only
};

struct HpaBehavior {
  HpaDirection up, down;
};

struct HpaSpec {
  std::int64_t min = 1, max = 1;
  std::vector<HpaMetric> metrics;
  std::optional<HpaBehavior> behavior;  // absent: rules before `behavior` existed
  double tolerance = 0.1;
  bool band = true;  // the tolerance test of 1.33 and later, per direction
  TimeNs downscale_stabilization = 300 * kNsPerS;
  TimeNs cpu_initialization = 300 * kNsPerS, readiness_delay = 30 * kNsPerS;
  TimeNs metric_window = 30 * kNsPerS;  // over which a cpu sample is taken
};

enum class HpaLimit : std::uint8_t { kNone, kUpRate, kMax, kDownRate, kMin };
enum class HpaStatus : std::uint8_t { kNotAsked, kValid, kDisabled, kFailed };

struct HpaDecision {
  std::int64_t desired = 0;
  // Per metric, nothing where it failed; empty if none was looked at.
  std::vector<std::optional<std::int64_t>> proposals;
  std::optional<std::int64_t> wanted, stabilised;  // none if the sync ended before
  HpaLimit limit = HpaLimit::kNone;
  HpaStatus status = HpaStatus::kNotAsked;
  std::size_t failed_metric = 0;  // the first, with kFailed
};

// What metric `index` of `spec` asks for; nothing if it fails.
std::optional<std::int64_t> HpaProposal(const HpaSpec& spec, std::size_t index,
                                        const HpaView& view);

class Hpa {
 public:
  explicit Hpa(HpaSpec spec);

  // One sync. REQUIRES: times do not go back; view.readings has an entry for each metric.
  HpaDecision Sync(const HpaView& view);

  const HpaSpec& spec() const { return spec_; }

 private:
  struct Entry {
    std::int64_t count = 0;  // a proposal, or the size of a change
    TimeNs time = 0;
  };

  bool ReadMetrics(const HpaView& view, HpaDecision& decision) const;
  std::int64_t Stabilise(std::int64_t spec, std::int64_t wanted, TimeNs now);
  std::int64_t StabiliseDown(std::int64_t wanted, TimeNs now);
  std::int64_t PeriodStart(const HpaPolicy& policy, std::int64_t spec, TimeNs now) const;
  std::int64_t RateLimit(bool up, std::int64_t spec, TimeNs now) const;
  void Limit(std::int64_t spec, TimeNs now, HpaDecision& decision) const;
  void LimitOld(std::int64_t spec, HpaDecision& decision) const;
  void StoreChange(std::int64_t from, std::int64_t to, TimeNs now);

  HpaSpec spec_;
  TimeNs up_window_ = 0, down_window_ = 0;
  bool first_ = true;
  std::vector<Entry> recommendations_;
  std::vector<Entry> ups_, downs_;  // changes by this object
};

}  // namespace servecast
