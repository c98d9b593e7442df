// See lives.h.
#include "experiment/lives.h"

#include <algorithm>
#include <vector>

namespace servecast {
namespace {

struct Kind {
  double turns = 1, think_s = 0;
  double share = 1;     // of the sessions with the workload's rate, or of a loop's clients
  double own_rate = 0;  // sessions/s
};

std::vector<Kind> KindsOf(const WorkloadSpec& w) {
  const auto turns = static_cast<double>(w.sessions.turns);
  if (w.classes.empty()) return {{turns, w.sessions.think_time_s, 1, 0}};
  std::vector<Kind> kinds;
  double shares = 0;
  for (const ClassSpec& c : w.classes) {
    kinds.push_back({c.turns ? static_cast<double>(*c.turns) : turns,
                     c.think_time_s.value_or(w.sessions.think_time_s), c.rate_per_s ? 0 : c.share,
                     c.rate_per_s.value_or(0)});
    shares += kinds.back().share;
  }
  for (Kind& kind : kinds) kind.share = shares > 0 ? kind.share / shares : 0;
  return kinds;
}

}  // namespace

double ServedSeconds(const Report& report, const ClusterSpec& cluster, double e2e_s) {
  if (report.completed == 0) return e2e_s;
  // Of all that run at a time, each second (Little's law).
  const double running = report.mean_batch_size * static_cast<double>(cluster.Replicas());
  return std::min(e2e_s, running * report.simulated_s / static_cast<double>(report.completed));
}

Lives LivesOf(const Scenario& scenario, double e2e_s) {
  const WorkloadSpec& w = scenario.workload;
  const bool loop = w.arrivals.process == ArrivalProcess::kClosedLoop;
  if (!loop && !HasRate(w.arrivals.process)) return {};
  const double pause_s = loop ? w.arrivals.think_time_s : 0;
  const double starts = loop ? static_cast<double>(w.arrivals.concurrency) : w.arrivals.rate_per_s;
  Lives lives;
  double requests = 0;  // per second; of a loop, per life
  for (const Kind& kind : KindsOf(w)) {
    requests += (starts * kind.share + kind.own_rate) * kind.turns;
    if (kind.turns <= 1 && pause_s <= 0) continue;
    lives.seconds =
        std::max(lives.seconds, pause_s + (kind.turns - 1) * kind.think_s + kind.turns * e2e_s);
  }
  lives.requests = loop ? requests : requests * lives.seconds;
  return lives;
}

}  // namespace servecast
