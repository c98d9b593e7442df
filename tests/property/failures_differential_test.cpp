// Replicas that fail, against the reference. Failures do not depend on what replicas do, so each
// life of a replica is a run of its own: the reference runs it alone, up to the failure. What is
// left to test is when replicas fail, where requests go, and when they are tried again.
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

TimeNs NsOf(double seconds) { return static_cast<TimeNs>(std::nearbyint(seconds * 1e9)); }

// One life after another, of all replicas of a domain the same.
std::vector<NaiveOutage> OutagesOf(const FailureSpec& spec, std::int64_t seed, std::int32_t replica,
                                   TimeNs until) {
  std::vector<NaiveOutage> outages;
  TimeNs from = 0, after = -1;
  const std::int64_t first = replica - replica % spec.domain_replicas;
  for (std::int64_t life = 0;; ++life) {
    TimeNs down = kNever;
    for (const auto& row : spec.schedule) {
      const auto failed = static_cast<std::int64_t>(row[1]);
      const bool together = failed >= first && failed < first + spec.domain_replicas;
      if (together && NsOf(row[0]) > after) down = std::min(down, NsOf(row[0]));
    }
    if (spec.mtbf_s) {
      const double u = Uniform(seed, Stream::kFailure, first / spec.domain_replicas, life);
      down = std::min(down, from + std::max<TimeNs>(1, NsOf(-Log(u) * *spec.mtbf_s)));
    }
    if (down >= until) return outages;
    outages.push_back({down, down + NsOf(spec.restart_s)});
    from = after = outages.back().up;
  }
}

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
  NaiveGateway(const ClusterRun& run, std::vector<std::vector<NaiveOutage>> outages,
               const FailureSpec& spec, const RouterChoice& router)
      : run_(run), outages_(std::move(outages)), detect_(NsOf(spec.detect_s)), router_(router) {
    ends_.assign(run.results.enqueue.size(), kNever);
    for (const auto& steps : run.steps) {
      for (const StepRecord& step : steps) {
        for (const RequestId r : step.finished) ends_[static_cast<std::size_t>(r)] = step.end;
      }
    }
    for (std::size_t r = 0; r < ends_.size(); ++r) {
      if (run.results.state[r] == RequestState::kLost) ends_[r] = run.results.lost_at[r];
    }
  }

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
      for (; Known(time).empty(); time = NextUp(time)) {
      }
      if (time >= horizon) continue;
      if (!run_.requests.timeout.empty() &&
          run_.requests.timeout[r] < time - run_.requests.arrival[r]) {
        continue;  // its client gave up at the gateway
      }
      const std::int32_t replica = Choose(r, time);
      places_[r] = {replica, time, Down(replica, time)};
    }
    return places_;
  }

 private:
  bool Down(std::int32_t replica, TimeNs time) const {
    for (const NaiveOutage& o : outages_[static_cast<std::size_t>(replica)]) {
      if (o.down <= time && time < o.up) return true;
    }
    return false;
  }
  // Those that take requests, as the router sees it.
  std::vector<std::int32_t> Known(TimeNs time) const {
    std::vector<std::int32_t> known;
    for (std::size_t i = 0; i < outages_.size(); ++i) {
      bool seen = false;
      for (const NaiveOutage& o : outages_[i]) seen |= o.down + detect_ <= time && time < o.up;
      if (!seen) known.push_back(static_cast<std::int32_t>(i));
    }
    return known;
  }
  TimeNs NextUp(TimeNs time) const {
    TimeNs next = kNever;
    for (const auto& of_one : outages_) {
      for (const NaiveOutage& o : of_one) {
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
  std::vector<std::vector<NaiveOutage>> outages_;
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
               failures = 0;
};

// Each life of the replica alone, by the reference.
void CompareLives(const RandomCase& random_case, const ClusterRun& run, std::int32_t replica,
                  const std::vector<NaiveOutage>& outages,
                  const std::vector<NaivePlacement>& places, Seen& seen) {
  for (std::size_t life = 0; life <= outages.size(); ++life) {
    const TimeNs from = life == 0 ? 0 : outages[life - 1].up;
    const TimeNs to = life < outages.size() ? outages[life].down : kNever;
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
    const std::optional<TimeNs> dies =
        life < outages.size() ? std::optional<TimeNs>(to) : std::nullopt;
    const ReferenceOutput alone = RunReference(OnlyRows(random_case, run, rows), dies);
    ++seen.lives;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t r = rows[i];
      const RequestResults &a = run.results, &b = alone.results;
      ++seen.requests;
      seen.timed_out += dies && a.state[r] == RequestState::kTimedOut ? 1 : 0;
      ASSERT_EQ(a.state[r], b.state[i]) << "request " << r << ", life " << life;
      ASSERT_EQ(a.first_scheduled[r], b.first_scheduled[i]) << r;
      ASSERT_EQ(a.first_token[r], b.first_token[i]) << r;
      ASSERT_EQ(a.completion[r], b.completion[i]) << r;
      ASSERT_EQ(a.generated[r], b.generated[i]) << r;
      ASSERT_EQ(a.preemptions[r], b.preemptions[i]) << r;
      ASSERT_EQ(a.cached_tokens[r], b.cached_tokens[i]) << r;
      if (a.state[r] == RequestState::kLost) {
        ASSERT_EQ(a.lost_at[r], to);
      }
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

void CompareCase(std::uint64_t seed, Seen& seen) {
  RandomCase random_case = seed % 2 == 0 ? MakeRandomCase(seed) : MakeRandomRetryCase(seed);
  random_case.latency.stalls = {};
  random_case.engine.api_server_count = 0;
  if (!IsForIt(random_case)) return;
  RouterChoice router;
  const bool by_load = random_case.requests.timeout.empty();  // of an abort there is no record
  router.name = seed % 3 == 0               ? "round_robin"
                : seed % 3 == 1 || !by_load ? "random"
                                            : "least_outstanding";
  router.seed = static_cast<std::int64_t>(seed);
  const auto replicas = static_cast<std::int64_t>(1 + seed % 8);
  const TimeNs length = std::max<TimeNs>(RunCluster(random_case, replicas, router).now, 1000);
  const FailureSpec spec = DrawnFailures(seed, replicas, length);
  SCOPED_TRACE(std::to_string(seed) + " " + router.name);
  const auto run_in = [&](std::int64_t slice) {
    return RunCluster(random_case, replicas, router, slice, nullptr, &spec);
  };
  const ClusterRun run = run_in(INT64_MAX);
  const TimeNs horizon = random_case.horizon.value_or(kClockEnd);
  TimeNs end = run.now;  // the last request may be refused, which no replica knows of
  for (const TimeNs arrival : run.requests.arrival) end = std::max(end, arrival);
  std::vector<std::vector<NaiveOutage>> outages;
  for (std::int32_t i = 0; i < replicas; ++i) {
    outages.push_back(OutagesOf(spec, router.seed, i, std::min(horizon, end + 1)));
    seen.failures += static_cast<std::int64_t>(outages.back().size());
  }
  const std::vector<NaivePlacement> places =
      NaiveGateway(run, outages, spec, router).Place(horizon);
  for (std::size_t r = 0; r < places.size(); ++r) {
    ASSERT_EQ(run.results.replica[r], places[r].replica) << r;
    if (run.results.state[r] == RequestState::kLost) ++seen.lost;
    if (!places[r].refused) continue;
    ++seen.refused;
    ASSERT_EQ(run.results.state[r], RequestState::kLost);
    ASSERT_EQ(run.results.lost_at[r], places[r].time);
  }
  std::int64_t failures = 0;
  for (std::int32_t i = 0; i < replicas; ++i) {
    const auto& of_one = outages[static_cast<std::size_t>(i)];
    failures += std::count_if(of_one.begin(), of_one.end(),
                              [&](const NaiveOutage& o) { return o.down <= run.now; });
    CompareLives(random_case, run, i, of_one, places, seen);
    if (::testing::Test::HasFatalFailure()) return;
  }
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
  }
}

TEST(FailuresDifferential, RandomCases_AreAsTheReferenceHasThem) {
  Seen seen;
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) * 240 / 1000;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    CompareCase(seed, seen);
    if (HasFatalFailure()) return;
  }
  if (cases < 240) return;
  EXPECT_GT(seen.lives, 200);
  EXPECT_GT(seen.requests, 1000);
  EXPECT_GT(seen.failures, 200);
  EXPECT_GT(seen.lost, 200);
  EXPECT_GT(seen.refused, 20);
  EXPECT_GT(seen.held, 5);
  EXPECT_GT(seen.retried, 20);
  EXPECT_GT(seen.timed_out, 5);
}

}  // namespace
}  // namespace servecast::testing
