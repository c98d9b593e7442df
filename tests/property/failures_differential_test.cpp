// Replicas that fail, come and go or are replaced, against the reference. Failures do not depend on
// what replicas do, so each life of a replica is a run of its own: the reference runs it alone, up
// to the failure. What is left to test is who is there when, where requests go, and when they are
// tried again.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/math.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "servecast/report.h"
#include "testing/asked.h"
#include "testing/cluster_run.h"
#include "testing/random_cases.h"

namespace servecast::testing {
namespace {

struct NaiveOutage {
  TimeNs down = 0, up = 0;
};

// A replica over time; kNever: not in this run.
struct NaiveReplica {
  TimeNs from = 0, up = 0;               // it starts, it serves
  TimeNs drain = kNever, gone = kNever;  // it gets no more requests, it is not there
  TimeNs cut = kNever;                   // its time is over, if it still drains
  std::vector<NaiveOutage> outages = {};
  std::int64_t lives = 1;

  TimeNs Ready(TimeNs time) const {  // when it came up last
    TimeNs ready = up;
    for (const NaiveOutage& o : outages) ready = o.up <= time ? o.up : ready;
    return ready;
  }
  bool Down(TimeNs time) const {
    return std::any_of(outages.begin(), outages.end(),
                       [time](const NaiveOutage& o) { return o.down <= time && time < o.up; });
  }
  bool Present(TimeNs time) const { return time < std::min(drain, gone); }
  bool Serves(TimeNs time) const { return Present(time) && up <= time && !Down(time); }
};

TimeNs NsOf(double seconds) { return static_cast<TimeNs>(std::nearbyint(seconds * 1e9)); }

// When each request left, of those that no client gave up.
std::vector<TimeNs> EndsOf(const ClusterRun& run) {
  std::vector<TimeNs> ends(run.results.enqueue.size(), kNever);
  for (const auto& steps : run.steps) {
    for (const StepRecord& step : steps) {
      for (const RequestId r : step.finished) ends[static_cast<std::size_t>(r)] = step.end;
    }
  }
  for (std::size_t r = 0; r < ends.size(); ++r) {
    if (run.results.state[r] == RequestState::kLost) ends[r] = run.results.lost_at[r];
  }
  return ends;
}

// When the life that begins at `from` ends. Only one from the run's begin on ends at once.
TimeNs EndOfLife(const FailureSpec& spec, std::int64_t seed, std::int32_t replica, TimeNs from,
                 std::int64_t life) {
  const std::int64_t first = replica - replica % spec.domain_replicas;
  TimeNs down = kNever;
  for (const auto& row : spec.schedule) {
    const auto failed = static_cast<std::int64_t>(row[1]);
    const bool together = failed >= first && failed < first + spec.domain_replicas;
    const TimeNs at = NsOf(row[0]);
    if (together && (at > from || (life == 0 && from == 0))) down = std::min(down, at);
  }
  if (spec.mtbf_s) {
    const double u = Uniform(seed, Stream::kFailure, first / spec.domain_replicas, life);
    down = std::min(down, from + std::max<TimeNs>(1, NsOf(-Log(u) * *spec.mtbf_s)));
  }
  return down;
}

// What replicas do in a run, moment for moment: who is there is looked up anew each time.
class NaiveMembers {
 public:
  NaiveMembers(const ClusterRun& run, std::int64_t first, const FailureSpec* failures,
               std::int64_t seed, TimeNs cold_start, TimeNs grace, const ScalingSpec& scaling)
      : replicas(static_cast<std::size_t>(first)),
        failures_(failures),
        seed_(seed),
        cold_start_(cold_start),
        wake_(NsOf(scaling.wake_s.value_or(0))),
        grace_(grace),
        warm_(static_cast<std::size_t>(scaling.warm_replicas), 0),
        run_(run),
        busy_(run.reports.size(), 0),
        lost_(run.reports.size(), -1) {
    const std::vector<TimeNs> ends = EndsOf(run);
    for (std::size_t r = 0; r < ends.size(); ++r) {
      if (run.results.replica[r] < 0) continue;
      const auto i = static_cast<std::size_t>(run.results.replica[r]);
      busy_[i] = std::max(busy_[i], ends[r]);
      if (run.results.state[r] == RequestState::kLost) lost_[i] = std::max(lost_[i], ends[r]);
    }
    for (std::size_t i = 0; i < replicas.size(); ++i) next_down_.push_back(NextDown(i, 0, 0));
  }

  // To the end of the run, with scalers' decisions [time, replicas] or an update.
  void Run(TimeNs end, const std::vector<std::pair<TimeNs, std::int64_t>>& wanted,
           const RollingUpdateSpec* update) {
    const auto old = replicas.size();
    std::size_t row = 0;
    bool rolls = false;
    for (TimeNs now = Next(-1, wanted, row, update); now < end;
         now = Next(now, wanted, row, update)) {
      for (std::size_t i = 0; i < replicas.size(); ++i) MayFail(i, now, end);
      for (; row < wanted.size() && wanted[row].first <= now; ++row) Want(wanted[row].second, now);
      rolls |= update != nullptr && NsOf(*update->at_s) <= now;
      if (rolls) Roll(*update, old, now);
    }
  }

  // So many in each state.
  ScalingReport::Step At(TimeNs time) const {
    ScalingReport::Step step;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const NaiveReplica& r = replicas[i];
      if (r.from > time) continue;
      step.up += r.Serves(time) ? 1 : 0;
      step.starting += r.Present(time) && !r.Serves(time) ? 1 : 0;
      step.draining += r.drain <= time && time < std::min(r.gone, DryAt(i)) ? 1 : 0;
    }
    return step;
  }

  std::vector<NaiveReplica> replicas;
  std::int64_t woken = 0;
  bool unsure = false;  // the records do not say what it should have done

 private:
  TimeNs NextDown(std::size_t i, TimeNs from, std::int64_t life) const {
    if (failures_ == nullptr) return kNever;
    return EndOfLife(*failures_, seed_, static_cast<std::int32_t>(i), from, life);
  }
  TimeNs DryAt(std::size_t i) const {
    if (replicas[i].drain == kNever) return kNever;
    return i < busy_.size() ? std::max(replicas[i].drain, busy_[i]) : replicas[i].drain;
  }
  TimeNs Next(TimeNs now, const std::vector<std::pair<TimeNs, std::int64_t>>& wanted,
              std::size_t row, const RollingUpdateSpec* update) const {
    TimeNs next = row < wanted.size() ? wanted[row].first : kNever;
    const auto take = [&](TimeNs time) { next = time > now ? std::min(next, time) : next; };
    if (update != nullptr) take(NsOf(*update->at_s));
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      for (const TimeNs time : {replicas[i].up, next_down_[i], DryAt(i)}) take(time);
      for (const NaiveOutage& o : replicas[i].outages) take(o.up);
    }
    return next;
  }

  // Those that do not serve first: that start, then that are down; of each the last to come up.
  NaiveReplica* LeastNeeded(std::size_t before, TimeNs now) {
    NaiveReplica* least = nullptr;
    std::tuple<int, TimeNs> most;
    for (std::size_t i = 0; i < before; ++i) {
      NaiveReplica& r = replicas[i];
      if (!r.Present(now)) continue;
      const std::tuple<int, TimeNs> rank = {r.up > now    ? 2
                                            : r.Down(now) ? 1
                                                          : 0,
                                            r.up > now ? r.from : r.Ready(now)};
      if (least == nullptr || rank >= most) least = &r, most = rank;
    }
    return least;
  }
  // The end of the step that is under way. One that a failure ends is in no record.
  TimeNs UnderWay(std::size_t i, TimeNs now) {
    for (std::size_t s = 0; i < run_.steps.size() && s < run_.steps[i].size(); ++s) {
      const StepRecord& step = run_.steps[i][s];
      if (step.start < now && now < step.end) return step.end;
    }
    unsure = unsure || (DryAt(i) > now && next_down_[i] < kNever);
    return now;
  }
  void Remove(NaiveReplica& r, TimeNs now) {
    const auto i = static_cast<std::size_t>(&r - replicas.data());
    if (r.Serves(now)) {
      r.drain = now;
      if (grace_ == kNever) return;
      r.cut = std::max(now + grace_, UnderWay(i, now));
      if (DryAt(i) > r.cut) r.gone = r.cut;
      return;
    }
    r.gone = now;
    next_down_[i] = kNever;
    for (NaiveOutage& o : r.outages) o.up = o.up > now ? kNever : o.up;
  }
  void Start(TimeNs now) {
    TimeNs up = now + cold_start_;
    const auto asleep =
        std::find_if(warm_.begin(), warm_.end(), [now](TimeNs since) { return since <= now; });
    if (asleep != warm_.end()) {
      *asleep = up;
      up = now + wake_;
      ++woken;
    }
    replicas.push_back({now, up});
    next_down_.push_back(NextDown(replicas.size() - 1, up, 0));
  }
  std::int64_t Count(std::size_t from, bool (NaiveReplica::*is)(TimeNs) const, TimeNs now) const {
    return std::count_if(replicas.begin() + static_cast<std::ptrdiff_t>(from), replicas.end(),
                         [&](const NaiveReplica& r) { return (r.*is)(now); });
  }

  void Want(std::int64_t wanted, TimeNs now) {
    while (Count(0, &NaiveReplica::Present, now) < wanted) Start(now);
    while (Count(0, &NaiveReplica::Present, now) > wanted) {
      Remove(*LeastNeeded(replicas.size(), now), now);
    }
  }

  void Roll(const RollingUpdateSpec& update, std::size_t old, TimeNs now) {
    const auto wanted = static_cast<std::int64_t>(old);
    const auto failed = [&] {
      return std::count_if(replicas.begin(), replicas.begin() + static_cast<std::ptrdiff_t>(old),
                           [&](const NaiveReplica& r) { return r.Present(now) && r.Down(now); });
    };
    while (Count(0, &NaiveReplica::Serves, now) + failed() > wanted - update.Unavailable(wanted)) {
      NaiveReplica* next = LeastNeeded(old, now);
      if (next == nullptr) break;
      Remove(*next, now);
    }
    const auto there = [&] {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i < replicas.size(); ++i) {
        sum += now < std::min(replicas[i].gone, DryAt(i)) ? 1 : 0;
      }
      return sum;
    };
    while (Count(old, &NaiveReplica::Present, now) < wanted &&
           there() < wanted + update.Surge(wanted)) {
      Start(now);
    }
  }

  void MayFail(std::size_t i, TimeNs now, TimeNs end) {
    NaiveReplica& r = replicas[i];
    while (next_down_[i] <= now && next_down_[i] < end) {
      const TimeNs down = next_down_[i];
      next_down_[i] = kNever;
      if (DryAt(i) <= down && (i >= lost_.size() || lost_[i] != down)) return;
      r.outages.push_back({down, kNever});
      if (r.drain != kNever) {
        r.gone = down;
        return;
      }
      r.outages.back().up = down + NsOf(failures_->restart_s);
      next_down_[i] = NextDown(i, r.outages.back().up, r.lives++);
    }
  }
  const FailureSpec* failures_;
  std::int64_t seed_;
  TimeNs cold_start_, wake_, grace_;
  std::vector<TimeNs> warm_;  // of each since when it sleeps
  const ClusterRun& run_;
  std::vector<TimeNs> busy_, lost_;  // when the last request left or was lost with it
  std::vector<TimeNs> next_down_;
};

// About three failures of a replica in a run of that length.
FailureSpec DrawnFailures(std::uint64_t seed, std::int64_t replicas, TimeNs length) {
  const auto draw = [&](std::int64_t index) {
    return Uniform(static_cast<std::int64_t>(seed), Stream::kRouter, 2'000'000, index);
  };
  const double seconds = static_cast<double>(length) / 1e9;
  FailureSpec spec;
  spec.restart_s = draw(0) * 0.3 * seconds;
  if (seed % 8 == 6) spec.restart_s = 0;
  if (seed % 5 == 2) spec.domain_replicas = 1 + static_cast<std::int64_t>(draw(3) * 4);
  if (seed % 4 == 1) spec.detect_s = draw(1) * 0.2 * seconds;
  if (seed % 3 != 0) spec.mtbf_s = seconds * (0.1 + draw(2));
  for (std::int64_t row = 0; row < 2 * replicas && seed % 3 != 1; ++row) {
    spec.schedule.push_back({draw(10 + 2 * row) * seconds,
                             std::floor(draw(11 + 2 * row) * static_cast<double>(replicas))});
    if (seed % 8 > 5) spec.schedule.push_back(spec.schedule.back());  // the same once more
  }
  return spec;
}

// Where requests went and how those ended that no replica had.
struct NaivePlacement {
  std::int32_t replica = -1;
  TimeNs time = kNever;
  bool refused = false;
};

class NaiveGateway {
 public:
  NaiveGateway(const ClusterRun& run, const std::vector<NaiveReplica>& replicas, TimeNs detect,
               const RouterChoice& router)
      : run_(run), replicas_(replicas), detect_(detect), router_(router), ends_(EndsOf(run)) {}

  std::vector<NaivePlacement> Place(TimeNs horizon) {
    const std::size_t size = run_.results.enqueue.size();
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < size; ++r) {
      if (run_.results.enqueue[r] >= 0 && run_.results.enqueue[r] < horizon) order.push_back(r);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(run_.results.enqueue[a], run_.requests.arrival[a], a) <
             std::tuple(run_.results.enqueue[b], run_.requests.arrival[b], b);
    });
    places_.assign(size, {});
    for (const std::size_t r : order) {
      TimeNs time = run_.results.enqueue[r];
      for (; time < horizon && Known(time).empty(); time = NextUp(time)) {
      }
      if (time >= horizon) continue;
      if (!run_.requests.timeout.empty() &&
          run_.requests.timeout[r] < time - run_.requests.arrival[r]) {
        continue;  // its client gave up at the gateway
      }
      const std::int32_t replica = Choose(r, time);
      places_[r] = {replica, time, replicas_[static_cast<std::size_t>(replica)].Down(time)};
    }
    return places_;
  }

 private:
  // Those that take requests, as the router sees it.
  std::vector<std::int32_t> Known(TimeNs time) const {
    std::vector<std::int32_t> known;
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      bool seen = false;
      for (const NaiveOutage& o : replicas_[i].outages) {
        seen |= o.down + detect_ <= time && time < o.up;
      }
      if (!seen && replicas_[i].up <= time && replicas_[i].Present(time)) {
        known.push_back(static_cast<std::int32_t>(i));
      }
    }
    return known;
  }
  TimeNs NextUp(TimeNs time) const {
    TimeNs next = kNever;
    for (const NaiveReplica& replica : replicas_) {
      if (replica.up > time) next = std::min(next, replica.up);
      for (const NaiveOutage& o : replica.outages) {
        if (o.up > time) next = std::min(next, o.up);
      }
    }
    return next;
  }
  std::int32_t Choose(std::size_t r, TimeNs time) {
    const std::vector<std::int32_t> known = Known(time);
    const auto n = static_cast<std::int64_t>(known.size());
    if (router_.name == "round_robin") return known[static_cast<std::size_t>(turn_++ % n)];
    if (router_.name == "random") {
      const double u = Uniform(router_.seed, Stream::kRouter, static_cast<std::int64_t>(r));
      return known[static_cast<std::size_t>(u * static_cast<double>(n))];
    }
    const auto load = [&](std::int32_t i) {
      std::int64_t sum = 0;
      for (std::size_t q = 0; q < places_.size(); ++q) {
        sum += places_[q].replica == i && ends_[q] > time ? 1 : 0;
      }
      return sum;
    };
    return *std::min_element(known.begin(), known.end(),
                             [&](std::int32_t a, std::int32_t b) { return load(a) < load(b); });
  }

  const ClusterRun& run_;
  const std::vector<NaiveReplica>& replicas_;
  TimeNs detect_;
  RouterChoice router_;
  std::vector<TimeNs> ends_;
  std::vector<NaivePlacement> places_;
  std::int64_t turn_ = 0;
};

// The case of those requests alone.
RandomCase OnlyRows(const RandomCase& all, const ClusterRun& run,
                    const std::vector<std::size_t>& rows) {
  RandomCase part = all;
  part.requests = {};
  part.requests.segments = all.requests.segments;
  const auto copy = [&rows](const auto& from, auto& to) {
    for (const std::size_t row : rows) {
      if (!from.empty()) to.push_back(from[row]);
    }
  };
  copy(run.requests.arrival, part.requests.arrival);
  copy(run.requests.prompt_tokens, part.requests.prompt_tokens);
  copy(run.requests.output_tokens, part.requests.output_tokens);
  copy(run.requests.priority, part.requests.priority);
  copy(run.requests.max_new_tokens, part.requests.max_new_tokens);
  copy(run.requests.ttft_deadline, part.requests.ttft_deadline);
  copy(run.requests.timeout, part.requests.timeout);
  copy(run.requests.content, part.requests.content);
  return part;
}

bool IsForIt(const RandomCase& c) {
  return !MakeLatency(c)->DelayByLoad() && !AnswersBringRequests(c) && c.stages.empty() &&
         !c.engine.speculative.On() && c.engine.max_loras == 0 && !c.engine.max_num_queued_reqs &&
         !c.engine.max_num_queued_tokens && c.windows.layers == 0 && !c.requests.content.empty();
}

struct Seen {
  std::int64_t lives = 0, requests = 0, lost = 0, refused = 0, held = 0, retried = 0, timed_out = 0,
               failures = 0, started = 0, updated = 0, died_draining = 0, cut = 0, woken = 0;
};

// Each life of the replica alone, by the reference.
void CompareLives(const RandomCase& random_case, const ClusterRun& run, std::int32_t replica,
                  const NaiveReplica& one, const std::vector<NaivePlacement>& places, Seen& seen) {
  const std::vector<NaiveOutage>& outages = one.outages;
  for (std::size_t life = 0; life <= outages.size(); ++life) {
    const TimeNs from = life == 0 ? 0 : outages[life - 1].up;
    TimeNs to = life < outages.size() ? outages[life].down : one.cut;
    if (to >= random_case.horizon.value_or(kNever)) to = kNever;
    std::vector<std::size_t> rows;
    bool held = false;
    for (std::size_t r = 0; r < places.size(); ++r) {
      const NaivePlacement& p = places[r];
      if (p.replica != replica || p.refused || p.time < from || p.time >= to) continue;
      rows.push_back(r);
      held |= p.time != run.results.enqueue[r];
    }
    seen.held += held ? 1 : 0;
    if (rows.empty() || held) continue;  // who was held comes later than a request alone would
    const std::optional<TimeNs> dies = to < kNever ? std::optional<TimeNs>(to) : std::nullopt;
    const ReferenceOutput alone = RunReference(OnlyRows(random_case, run, rows), dies, replica);
    ++seen.lives;
    // A step that was formed before the replica was told to drain may come to nothing.
    const bool cut_off =
        to == one.cut && to < kNever && std::any_of(rows.begin(), rows.end(), [&](std::size_t r) {
          return run.results.state[r] == RequestState::kLost;
        });
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t r = rows[i];
      const RequestResults &a = run.results, &b = alone.results;
      ++seen.requests;
      seen.timed_out += dies && a.state[r] == RequestState::kTimedOut ? 1 : 0;
      ASSERT_EQ(a.state[r], b.state[i]) << "request " << r << ", life " << life;
      ASSERT_EQ(a.first_token[r], b.first_token[i]) << r;
      ASSERT_EQ(a.completion[r], b.completion[i]) << r;
      ASSERT_EQ(a.generated[r], b.generated[i]) << r;
      if (a.state[r] == RequestState::kLost) {
        ASSERT_EQ(a.lost_at[r], to);
      }
      if (cut_off) continue;
      ASSERT_EQ(a.first_scheduled[r], b.first_scheduled[i]) << r;
      ASSERT_EQ(a.preemptions[r], b.preemptions[i]) << r;
      ASSERT_EQ(a.cached_tokens[r], b.cached_tokens[i]) << r;
    }
  }
}

// An attempt that was lost is followed by the next one after its back-off, if it has any left.
void CheckRetries(const ClusterRun& run, Seen& seen) {
  const RequestTable& t = run.requests;
  for (std::size_t r = 0; r < t.arrival.size(); ++r) {
    const RequestId next = t.NextAttempt(static_cast<RequestId>(r));
    if (next == kNoRequest) continue;
    const auto n = static_cast<std::size_t>(next);
    if (run.results.state[r] == RequestState::kLost) {
      ASSERT_EQ(t.arrival[n], run.results.lost_at[r] + t.backoff[n - t.requests()]);
      ++seen.retried;
    } else if (run.results.state[r] == RequestState::kCompleted) {
      ASSERT_EQ(t.arrival[n], -1);
    }
  }
}

// What becomes of replicas beside their failures.
enum class Beside { kNothing, kSchedule, kUpdate };

// [time, replicas], about six times in a run of that length.
std::vector<std::pair<TimeNs, std::int64_t>> DrawnSchedule(std::uint64_t seed, TimeNs length,
                                                           ScalingSpec& spec) {
  spec.policy = "schedule";
  spec.max_replicas = 6;
  spec.min_replicas = seed % 3 == 0 ? 0 : 1;
  std::vector<std::pair<TimeNs, std::int64_t>> wanted;
  double at = 0;
  for (std::int64_t row = 0; row < 6; ++row) {
    const auto draw = [&](std::int64_t index) {
      return Uniform(static_cast<std::int64_t>(seed), Stream::kRouter, 3'000'000 + row, index);
    };
    at += std::max(1e-6, (0.02 + 0.3 * draw(0)) * static_cast<double>(length) / 1e9);
    const auto replicas = spec.min_replicas + static_cast<std::int64_t>(draw(1) * 5);
    spec.schedule.push_back({at, static_cast<double>(replicas)});
    wanted.emplace_back(NsOf(at), replicas);
  }
  return wanted;
}

RollingUpdateSpec DrawnUpdate(std::uint64_t seed, std::int64_t replicas, TimeNs length) {
  const auto draw = [&](std::int64_t index) {
    return Uniform(static_cast<std::int64_t>(seed), Stream::kRouter, 4'000'000, index);
  };
  const double seconds = static_cast<double>(length) / 1e9;
  RollingUpdateSpec update;
  update.at_s = 0.5 * draw(0) * seconds;
  update.start_s = std::max(1e-6, 0.15 * draw(1) * seconds);
  if (seed % 3 != 0) update.max_surge = static_cast<std::int64_t>(draw(2) * 3);
  if (seed % 3 != 1) {
    update.max_unavailable = static_cast<std::int64_t>(draw(3) * static_cast<double>(replicas + 1));
  }
  if (update.Surge(replicas) + update.Unavailable(replicas) == 0) update.max_surge = 1;
  return update;
}

void CompareCase(std::uint64_t seed, Beside beside, Seen& seen) {
  const bool retries = seed % 2 == 1;
  RandomCase random_case = retries ? MakeRandomRetryCase(seed) : MakeRandomCase(seed);
  random_case.latency.stalls = {};
  random_case.engine.api_server_count = 0;
  // Of an abort there is no record, so nobody else can say when a replica has drained.
  const bool aborts = !random_case.requests.timeout.empty();
  if (!IsForIt(random_case) || (aborts && beside != Beside::kNothing)) return;
  RouterChoice router;
  router.name = seed % 3 == 0             ? "round_robin"
                : seed % 3 == 1 || aborts ? "random"
                                          : "least_outstanding";
  router.seed = static_cast<std::int64_t>(seed);
  const auto replicas = static_cast<std::int64_t>(1 + seed % 8);
  const TimeNs length = std::max<TimeNs>(RunCluster(random_case, replicas, router).now, 1000);
  FailureSpec spec = DrawnFailures(seed, replicas, length);
  const FailureSpec* fails = beside == Beside::kNothing || seed % 5 != 0 ? &spec : nullptr;
  if (beside != Beside::kNothing && spec.mtbf_s) spec.domain_replicas = 1;
  ClusterScaling scaling;
  RollingUpdateSpec update;
  std::vector<std::pair<TimeNs, std::int64_t>> wanted;
  if (beside == Beside::kSchedule) {
    wanted = DrawnSchedule(seed, length, scaling.spec);
    scaling.cold_start = NsOf(0.1 * spec.restart_s) + 1;
    scaling.spec.warm_replicas = static_cast<std::int64_t>(seed % 7 % 4);
    scaling.spec.wake_s = (seed % 11 == 0 ? 2 : 0.01) * spec.restart_s;
  } else if (beside == Beside::kUpdate) {
    update = DrawnUpdate(seed, replicas, length);
  }
  std::optional<double> grace;
  if (seed % 4 < 2) {
    const double u = Uniform(router.seed, Stream::kRouter, 5'000'000);
    grace = seed % 4 == 0 ? u * 0.05 * static_cast<double>(length) / 1e9 : 0;
  }
  scaling.spec.termination_grace_period_s = update.termination_grace_period_s = grace;
  const TimeNs cold_start = beside == Beside::kUpdate ? NsOf(update.start_s) : scaling.cold_start;
  SCOPED_TRACE(std::to_string(seed) + " " + router.name + " " +
               std::to_string(static_cast<int>(beside)));
  const auto run_in = [&](std::int64_t slice) {
    return RunCluster(random_case, replicas, router, slice,
                      beside == Beside::kSchedule ? &scaling : nullptr, fails,
                      beside == Beside::kUpdate ? &update : nullptr);
  };
  const ClusterRun run = run_in(INT64_MAX);
  const TimeNs horizon = random_case.horizon.value_or(kClockEnd);
  TimeNs end = run.now;  // the last request may be refused, which no replica knows of
  for (const TimeNs enqueue : run.results.enqueue) end = std::max(end, enqueue);
  if (end / 100 > length) return;  // more failures than a list of them is for
  NaiveMembers members(run, replicas, fails, router.seed, cold_start, grace ? NsOf(*grace) : kNever,
                       scaling.spec);
  members.Run(std::min(horizon, end + 1), wanted, beside == Beside::kUpdate ? &update : nullptr);
  if (members.unsure) return;
  for (const ScalingReport::Step& step : run.scaling.steps) {
    if (run.now == 0) continue;  // nobody was there for any time
    const ScalingReport::Step naive = members.At(NsOf(step.at_s));
    ASSERT_EQ(step.starting, naive.starting) << step.at_s;
    ASSERT_EQ(step.up, naive.up) << step.at_s;
    ASSERT_EQ(step.draining, naive.draining) << step.at_s;
  }
  const std::vector<NaivePlacement> places =
      NaiveGateway(run, members.replicas, NsOf(spec.detect_s), router).Place(horizon);
  for (std::size_t r = 0; r < places.size(); ++r) {
    ASSERT_EQ(run.results.replica[r], places[r].replica) << r;
    if (run.results.state[r] == RequestState::kLost) ++seen.lost;
    if (!places[r].refused) continue;
    ++seen.refused;
    ASSERT_EQ(run.results.state[r], RequestState::kLost);
    ASSERT_EQ(run.results.lost_at[r], places[r].time);
  }
  std::int64_t failures = 0;
  for (std::size_t i = 0; i < members.replicas.size(); ++i) {
    const NaiveReplica& one = members.replicas[i];
    seen.failures += static_cast<std::int64_t>(one.outages.size());
    seen.started += one.from > 0 ? 1 : 0;
    seen.cut += one.cut < kNever
                    ? std::count(run.results.lost_at.begin(), run.results.lost_at.end(), one.cut)
                    : 0;
    seen.died_draining += one.drain < one.gone && one.gone < kNever ? 1 : 0;
    failures += std::count_if(one.outages.begin(), one.outages.end(),
                              [&](const NaiveOutage& o) { return o.down <= run.now; });
    CompareLives(random_case, run, static_cast<std::int32_t>(i), one, places, seen);
    if (::testing::Test::HasFatalFailure()) return;
  }
  ASSERT_EQ(run.scaling.wakes, members.woken);
  seen.woken += members.woken;
  seen.updated += run.scaling.rolling_update_s ? 1 : 0;
  ASSERT_EQ(run.scaling.failures.failures, failures);
  CheckRetries(run, seen);
  ASSERT_EQ(run.lost,
            std::count(run.results.state.begin(), run.results.state.end(), RequestState::kLost));
  for (const std::int64_t slice : {1, 7}) {
    const ClusterRun sliced = run_in(slice);
    ASSERT_EQ(run.results.completion, sliced.results.completion);
    ASSERT_EQ(run.results.state, sliced.results.state);
    ASSERT_EQ(run.results.lost_at, sliced.results.lost_at);
    ASSERT_EQ(run.waiting_ns, sliced.waiting_ns);
    ASSERT_EQ(run.now, sliced.now);
    ASSERT_EQ(run.scaling.replica_s, sliced.scaling.replica_s);
    ASSERT_EQ(run.scaling.rolling_update_s, sliced.scaling.rolling_update_s);
    ASSERT_EQ(run.scaling.steps.size(), sliced.scaling.steps.size());
  }
}

// So many of a thousand cases that are asked for; false: they differ, or were fewer than usual.
bool CompareCases(Beside beside, std::uint64_t of_thousand, Seen& seen) {
  const auto cases =
      static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) * of_thousand / 1000;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    CompareCase(seed, beside, seen);
    if (::testing::Test::HasFatalFailure()) return false;
  }
  return cases >= of_thousand;
}

TEST(FailuresDifferential, RandomCases_AreAsTheReferenceHasThem) {
  Seen seen;
  if (!CompareCases(Beside::kNothing, 240, seen)) return;
  EXPECT_GT(seen.lives, 200);
  EXPECT_GT(seen.requests, 1000);
  EXPECT_GT(seen.failures, 200);
  EXPECT_GT(seen.lost, 200);
  EXPECT_GT(seen.refused, 20);
  EXPECT_GT(seen.held, 5);
  EXPECT_GT(seen.retried, 20);
  EXPECT_GT(seen.timed_out, 5);
}

TEST(FailuresDifferential, BesideScalers_AreAsTheReferenceHasThem) {
  Seen seen;
  if (!CompareCases(Beside::kSchedule, 640, seen)) return;
  EXPECT_GT(seen.requests, 1000);
  EXPECT_GT(seen.failures, 200);
  EXPECT_GT(seen.lost, 100);
  EXPECT_GT(seen.started, 200);
  EXPECT_GT(seen.died_draining, 5);
  EXPECT_GT(seen.cut, 20);
  EXPECT_GT(seen.woken, 100);
}

TEST(FailuresDifferential, RollingUpdates_AreAsTheReferenceHasThem) {
  Seen seen;
  if (!CompareCases(Beside::kUpdate, 640, seen)) return;
  EXPECT_GT(seen.requests, 1000);
  EXPECT_GT(seen.failures, 200);
  EXPECT_GT(seen.started, 200);
  EXPECT_GT(seen.updated, 50);
  EXPECT_GT(seen.died_draining, 5);
  EXPECT_GT(seen.cut, 20);
}

}  // namespace
}  // namespace servecast::testing
