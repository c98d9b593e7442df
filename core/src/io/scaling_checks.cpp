#include "io/scaling_checks.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"
#include "serving/scaling/scaler.h"

namespace servecast {
namespace {

void CheckSchedule(const NumberTable& rows, Issues& issues) {
  const auto bad = [&](std::size_t row) {
    return rows[row][1] != std::floor(rows[row][1]) ||
           (row > 0 && rows[row][0] <= rows[row - 1][0]) || (row == 0 && rows[row][0] <= 0);
  };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!bad(row)) continue;
    issues.push_back({Format("/cluster/scaling/schedule/{}", row),
                      "found %, allowed a later time than the row before (the first above 0), and "
                      "a whole number of replicas"});
    return;
  }
  if (rows.empty()) {
    issues.push_back(
        {"/cluster/scaling/schedule", "found none, allowed one row at least: [from_s, replicas]"});
  }
}

}  // namespace

void CheckScaling(const ClusterSpec& cluster, Issues& issues) {
  const ScalingSpec& scaling = cluster.scaling;
  const auto add = [&](const char* field, std::string message) {
    issues.push_back({Format("/cluster/scaling/{}", field), std::move(message)});
  };
  if (cluster.pools.size() > 1) {
    add("policy",
        Format("found %, allowed \"none\" with {} pools: a scaler has one", cluster.pools.size()));
  }
  const std::int64_t least = scaling.min_replicas, most = scaling.max_replicas;
  if (least > most) add("min_replicas", Format("found %, allowed up to max_replicas {}", most));
  const std::int64_t first = cluster.pools[0].replicas;
  if (least <= most && (first < least || first > most)) {
    issues.push_back(
        {"/cluster/pools/0/replicas",
         Format("found {}, allowed {} to {}, the limits of cluster.scaling", first, least, most)});
  }
  const bool held =
      scaling.metric == ScalingMetric::kWaiting || scaling.metric == ScalingMetric::kOutstanding;
  if (least == 0 && !FindScaler(scaling.policy).from_zero) {
    add("min_replicas", Format("found %, allowed from 1 up: \"{}\" starts no replica where none is",
                               scaling.policy));
  } else if (least == 0 && scaling.policy == "keda" && !held) {
    add("metric",
        "found %, allowed waiting and outstanding with min_replicas 0: without a replica no other "
        "metric says that requests are held");
  }
  if (scaling.warm_replicas > 0 && !scaling.wake_s) {
    add("wake_s", Format("found none, allowed a number of seconds with warm_replicas {}: how fast "
                         "an engine wakes depends on where its weights are",
                         scaling.warm_replicas));
  }
  if (scaling.policy == "schedule") CheckSchedule(scaling.schedule, issues);
}

namespace {

// A run with more failures than that is none of serving, and would take minutes.
constexpr double kMostFailures = 1e6;

// One a replica in each `every_s`, where a run's time has room for too many of them.
void CheckCount(const Scenario& scenario, double every_s, const char* path, const char* what,
                Issues& issues) {
  const ArrivalSpec& arrivals = scenario.workload.arrivals;
  double span_s = scenario.measure.horizon_s.value_or(0);
  if (span_s == 0 && HasRate(arrivals.process)) {
    span_s = static_cast<double>(scenario.workload.requests) / arrivals.rate_per_s;
  }
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t replicas =
      cluster.scaling.On() ? cluster.scaling.max_replicas : cluster.Replicas();
  const double count = static_cast<double>(replicas) * span_s / every_s;
  if (count <= kMostFailures) return;
  issues.push_back(
      {path, Format("found %, allowed where replicas {} up to 1,000,000 times in a run, "
                    "here some {}",
                    what, ShortNumber(count))});
}

// Rows [at_s, replica].
void CheckReplicas(const NumberTable& rows, std::int64_t replicas, const char* path,
                   Issues& issues) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double replica = rows[row][1];
    if (replica == std::floor(replica) && replica < static_cast<double>(replicas)) continue;
    issues.push_back(
        {Format("{}/{}", path, row), Format("found replica {}, allowed whole numbers from 0 to {}",
                                            NumberText(replica), replicas - 1)});
  }
}

}  // namespace

void CheckSlowdowns(const Scenario& scenario, Issues& issues) {
  const ClusterSpec& cluster = scenario.cluster;
  const SlowdownSpec& slow = cluster.slowdowns;
  if (slow.mean_gap_s && slow.for_s) {
    CheckCount(scenario, *slow.mean_gap_s + *slow.for_s, "/cluster/slowdowns/mean_gap_s",
               "are slow", issues);
  }
  CheckReplicas(slow.schedule, cluster.Replicas(), "/cluster/slowdowns/schedule", issues);
}

void CheckFailures(const Scenario& scenario, Issues& issues) {
  const ClusterSpec& cluster = scenario.cluster;
  if (cluster.failures.mtbf_s) {
    CheckCount(scenario, *cluster.failures.mtbf_s + cluster.failures.restart_s,
               "/cluster/failures/mtbf_s", "fail", issues);
  }
  if (cluster.failures.mtbf_s && cluster.failures.domain_replicas > 1 &&
      (cluster.scaling.On() || cluster.rolling_update.On())) {
    issues.push_back({"/cluster/failures/domain_replicas",
                      "found %, allowed 1 with mtbf_s and replicas that come and go: which of them "
                      "share a node is not known"});
  }
  CheckReplicas(cluster.failures.schedule, cluster.Replicas(), "/cluster/failures/schedule",
                issues);
  const ArrivalSpec& arrivals = scenario.workload.arrivals;
  const bool loop = arrivals.process == ArrivalProcess::kClosedLoop;
  if (scenario.cluster.failures.detect_s > 0 && (loop || CapsClients(arrivals))) {
    issues.push_back({"/cluster/failures/detect_s",
                      Format("found %, allowed 0 {}: a client whose request is refused would "
                             "ask again at once",
                             loop ? "in a closed loop" : "with max_concurrency")});
  }
}

void CheckRollingUpdate(const ClusterSpec& cluster, Issues& issues) {
  const RollingUpdateSpec& update = cluster.rolling_update;
  if (cluster.pools.size() > 1) {
    issues.push_back(
        {"/cluster/rolling_update",
         Format("found %, allowed none with {} pools: an update has one", cluster.pools.size())});
  }
  const std::int64_t replicas = cluster.pool().replicas;
  const std::int64_t down = update.Unavailable(replicas);
  if (down > replicas) {
    issues.push_back({"/cluster/rolling_update/max_unavailable",
                      Format("found %, allowed up to the replicas, {}", replicas)});
  } else if (down == 0 && update.Surge(replicas) == 0) {
    issues.push_back({"/cluster/rolling_update/max_unavailable",
                      "found %, allowed from 1 up with max_surge 0: no replica could be replaced"});
  }
}

}  // namespace servecast
