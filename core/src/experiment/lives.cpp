// See lives.h.
#include "experiment/lives.h"

#include <algorithm>
#include <vector>

#include "servecast/workload_spec.h"
#include "workload/arrivals.h"

namespace servecast {
namespace {

// Lives after which all turns of those that began first are over, and all clients have thought.
constexpr double kLivesUntilSettled = 2;
// Think times after which one in twenty conversations that were under way at 0 is still to come,
// with a text that no cache has.
constexpr double kThinksUntilSettled = 3;

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
  const WorkloadSpec& w = *scenario.workload;
  const bool loop = w.arrivals.process == ArrivalProcess::kClosedLoop;
  if (!loop && !HasRate(w.arrivals.process)) return {};
  const double pause_s = loop ? w.arrivals.think_time_s : 0;
  const double starts = loop ? static_cast<double>(w.arrivals.concurrency) : w.arrivals.rate_per_s;
  Lives lives;
  double requests = 0;  // per second; of a loop, per life
  for (const Kind& kind : KindsOf(w)) {
    requests += (starts * kind.share + kind.own_rate) * kind.turns;
    if (kind.turns <= 1 && pause_s <= 0) continue;
    const double served_s = kind.turns * e2e_s;
    const double life_s = pause_s + (kind.turns - 1) * kind.think_s + served_s;
    const double settled_s =
        BeginsUnderWay(w.arrivals)
            ? std::min(kThinksUntilSettled * kind.think_s + kLivesUntilSettled * served_s,
                       kLivesUntilSettled * life_s)
            : kLivesUntilSettled * life_s;
    lives.seconds = std::max(lives.seconds, life_s);
    lives.settled_s = std::max(lives.settled_s, settled_s);
  }
  lives.requests = loop ? requests : requests * lives.seconds;
  return lives;
}

}  // namespace servecast
