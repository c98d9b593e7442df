// What queueing theory knows of systems that the engine can be made to be. Seeds are fixed, so that
// each test passes always or never; the confidence says how sure a failure is to be a bug.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "core/documents.h"
#include "core/statistics.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing::theory_test {
namespace {

// One server: a seat, steps of 1 ms, one step per output token.
std::string OneServer(double rate, const std::string& outputs, int seed) {
  return Changed({"engine.max_num_seqs=1", "workload.requests=20000",
                  R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[1000,0,0]})",
                  R"(workload.prompt_tokens={"distribution":"fixed","value":1})",
                  "workload.output_tokens=" + outputs,
                  fmt::format("workload.arrivals.rate_per_s={}", rate),
                  fmt::format("seed={}", seed)});
}

// Of the mean waits of 16 independent runs: mean, and half of its 99.9 % interval.
struct Estimate {
  double mean = 0, half = 0;
};
Estimate MeanWaitMs(double rate, const std::string& outputs) {
  std::vector<double> means;
  for (int seed = 1; seed <= 16; ++seed) {
    means.push_back(RunToEnd(OneServer(rate, outputs, seed)).scheduling_delay_ms.mean);
  }
  constexpr double kT = 4.073;  // Student's t, 15 degrees of freedom, two-sided 99.9 %
  const Moments m = MomentsOf(means);
  return {m.mean, kT * m.sd / std::sqrt(15.0)};
}

// Pollaczek and Khinchine: lambda E[S^2] / (2 (1 - rho)).
double Wait(double rate, double mean, double square) {
  return rate * square / (2 * (1 - rate * mean));
}

TEST(Theory, MD1_MeanWaitIsPollaczekKhinchines) {
  for (const double load : {0.3, 0.8}) {
    const double service = 10;  // ms
    const Estimate wait =
        MeanWaitMs(load * 1000 / service, R"({"distribution":"fixed","value":10})");
    const double expected = Wait(load / service, service, service * service);
    EXPECT_NEAR(wait.mean, expected, wait.half) << load;
    EXPECT_LT(wait.half, 0.1 * expected);
  }
}

TEST(Theory, MG1_MeanWaitIsPollaczekKhinchines) {
  // Uniform on 1..19 steps: mean 10, mean square 130.
  for (const double load : {0.3, 0.8}) {
    const Estimate wait = MeanWaitMs(load * 100, R"({"distribution":"uniform","min":1,"max":19})");
    const double expected = Wait(load / 10, 10, 130);
    EXPECT_NEAR(wait.mean, expected, wait.half) << load;
    EXPECT_LT(wait.half, 0.15 * expected);
  }
}

// A server without a queue whose clients try again long after a service: attempts are close to
// Poisson, so a share p = a / (1 + a) of them is turned away (Erlang, of any service time), with
// a = attempts per service. Attempts are all requests, those turned away once, twice ...
double AttemptsPerRequest(double load, int retries) {
  double attempts = load;
  for (int i = 0; i < 10000; ++i) {
    const double p = attempts / (1 + attempts);
    double next = 0, reach = 1;
    for (int k = 0; k <= retries; ++k, reach *= p) next += load * reach;
    attempts = (attempts + next) / 2;
  }
  return attempts / load;
}

TEST(Theory, Retries_AmplificationIsTheFixedPoint) {
  EXPECT_NEAR(AttemptsPerRequest(0.5, 60), 2, 1e-9);  // without limit: 1 / (1 - load)
  const std::pair<double, int> cases[] = {{0.5, 20}, {0.8, 3}, {1.5, 3}, {3, 5}};
  for (const auto& [load, retries] : cases) {
    const Report r = RunToEnd(Changed(
        {"engine.max_num_seqs=1", "engine.max_num_queued_reqs=1", "workload.requests=20000",
         R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[1000,0,0]})",
         R"(workload.prompt_tokens={"distribution":"fixed","value":1})",
         R"(workload.output_tokens={"distribution":"fixed","value":10})",
         fmt::format("workload.arrivals.rate_per_s={}", 100 * load),
         fmt::format(R"(workload.retries={{"max":{},"backoff_s":2,"multiplier":1,"jitter":1}})",
                     retries)}));
    const double expected = AttemptsPerRequest(load, retries);
    EXPECT_NEAR(r.retries.amplification, expected, 0.03 * expected) << load;
    EXPECT_EQ(r.arrived, r.completed + r.rejected);
    EXPECT_EQ(r.retries.given_up, r.rejected);
    EXPECT_EQ(r.retries.requests, 20000);
  }
}

// Mean wait of M/D/c, in services: the number in the system a service later is what is left of the
// present one after c leave, and what a Poisson stream brings meanwhile (Crommelin, Post Office
// Electrical Engineers' Journal 25 and 26, 1932-33; Tijms, A First Course in Stochastic Models,
// 2003, 9.6). Its stationary distribution by iteration; then Little's law for the queue.
double MdcWait(int servers, double load) {
  constexpr int kStates = 240;
  const double arrivals = load * servers;  // in a service
  std::vector<double> brings(kStates, 0), p(kStates, 0), next;
  brings[0] = std::exp(-arrivals);
  for (int n = 1; n < kStates; ++n) {
    brings[static_cast<std::size_t>(n)] = brings[static_cast<std::size_t>(n - 1)] * arrivals / n;
  }
  p[0] = 1;
  for (double change = 1; change > 1e-13;) {
    next.assign(kStates, 0);
    for (int n = 0; n < kStates; ++n) {
      const int left = std::max(n - servers, 0);
      for (int m = left; m < kStates; ++m) {
        next[static_cast<std::size_t>(m)] +=
            p[static_cast<std::size_t>(n)] * brings[static_cast<std::size_t>(m - left)];
      }
    }
    change = 0;
    for (std::size_t n = 0; n < p.size(); ++n) change += std::abs(next[n] - p[n]);
    p.swap(next);
  }
  double queue = 0;
  for (int n = servers; n < kStates; ++n) queue += (n - servers) * p[static_cast<std::size_t>(n)];
  return queue / arrivals;
}

TEST(Theory, MdcByIteration_IsPollaczekKhinchinesForOneServer) {
  for (const double load : {0.3, 0.5, 0.9}) {
    EXPECT_NEAR(MdcWait(1, load), Wait(load, 1, 1), 1e-9) << load;
  }
}

// Replicas with a seat each behind one queue. Beside a server's noise nothing is approximate.
TEST(Theory, MDc_MeanWaitBehindACentralQueueIsCrommelins) {
  for (const int servers : {1, 2, 4, 8}) {
    for (const double load : {0.5, 0.7, 0.9}) {
      std::vector<double> means;
      for (int seed = 1; seed <= 16; ++seed) {
        const Report report = RunToEnd(
            Changed({"engine.max_num_seqs=1", "workload.requests=20000",
                     R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[10000,0,0]})",
                     R"(workload.prompt_tokens={"distribution":"fixed","value":1})",
                     R"(workload.output_tokens={"distribution":"fixed","value":1})",
                     fmt::format("workload.arrivals.rate_per_s={}", load * servers * 100),
                     fmt::format("cluster.pools.0.replicas={}", servers),
                     "cluster.router.policy=central_queue", fmt::format("seed={}", seed)}));
        means.push_back(report.scheduling_delay_ms.mean / 10);
      }
      const Moments m = MomentsOf(means);
      const double half = 4.073 * m.sd / std::sqrt(15.0);  // of the 99.9 % interval
      const double expected = MdcWait(servers, load);
      EXPECT_NEAR(m.mean, expected, half) << servers << " " << load;
      EXPECT_LT(half, 0.15 * expected) << servers << " " << load;
    }
  }
}

TEST(Theory, LittlesLaw_HoldsInIntegers) {
  std::int64_t compared = 0;
  for (std::uint64_t seed = 300'000; seed < 300'300; ++seed) {
    RandomCase random_case = MakeRandomCase(seed);
    random_case.horizon.reset();
    random_case.requests.timeout.clear();
    random_case.engine.async_scheduling = false;  // else seats are held beside the next batch
    random_case.stages.clear();                   // likewise
    const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
    const ReplicaRun run = RunReplica(EngineCaseOf(random_case), *latency, kClockEnd);
    // The integral of the number in the system is the sum of the times in it.
    __int128 sojourns = 0;
    for (std::size_t i = 0; i < run.results.completion.size(); ++i) {
      if (run.results.completion[i] < 0) continue;
      const TimeNs left = run.results.completion[i] -
                          run.results.generated[i] * latency->OutputTokenDelay() -
                          run.results.Late(i);
      sojourns += left - run.results.enqueue[i];
      ++compared;
    }
    ASSERT_TRUE(run.waiting_ns + run.running_ns == sojourns) << Describe(random_case);
  }
  EXPECT_GT(compared, 3000);
}

TEST(Theory, AllAtOnce_ThroughputIsBatchOverStepTime) {
  for (const int batch : {1, 7, 64}) {
    // Waves of `batch` requests of 20 steps, 2 ms each.
    const Report report =
        RunToEnd(Changed({fmt::format("engine.max_num_seqs={}", batch),
                          fmt::format("workload.requests={}", 30 * batch),
                          R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[2000,0,0]})",
                          R"(workload.arrivals={"process":"static"})",
                          R"(workload.prompt_tokens={"distribution":"fixed","value":1})"}));
    EXPECT_DOUBLE_EQ(report.simulated_s, 30 * 20 * 0.002) << batch;
    EXPECT_DOUBLE_EQ(report.output_tokens_per_s, batch / 0.002) << batch;
    EXPECT_EQ(report.steps, 600);
  }
}

// A deployment of so many seats and steps of random times.
std::vector<std::string> RandomDeployment(std::uint64_t seed, std::int64_t fewest,
                                          std::int64_t most) {
  auto draw = [seed, drawn = std::int64_t{0}](std::int64_t low, std::int64_t high) mutable {
    const double u = Uniform(static_cast<std::int64_t>(seed), Stream::kClass, ++drawn);
    return low + static_cast<std::int64_t>(u * static_cast<double>(high - low + 1));
  };
  return {fmt::format("engine.max_num_seqs={}", draw(fewest, most)),
          fmt::format(R"(latency={{"backend":"blackbox","alpha":[0,0,0],"beta":[{},{},{}]}})",
                      draw(1000, 20'000), draw(1, 40), draw(0, 300)),
          fmt::format(R"(workload.prompt_tokens={{"distribution":"uniform","min":1,"max":{}}})",
                      draw(2, 500)),
          fmt::format(R"(workload.output_tokens={{"distribution":"uniform","min":1,"max":{}}})",
                      draw(20, 200)),
          "engine.max_num_batched_tokens=8192",
          "workload.requests=6000"};
}

// The verdicts at 0.8 and 1.1 times the rate at which it serves requests that are all there.
std::pair<Saturation, Saturation> AroundSaturation(std::vector<std::string> set) {
  set.push_back(R"(workload.arrivals={"process":"static"})");
  const double most = RunToEnd(Changed(set)).requests_per_s;
  const auto at = [&](double load) {
    set.back() =
        fmt::format(R"(workload.arrivals={{"process":"poisson","rate_per_s":{}}})", load * most);
    return RunToEnd(Changed(set)).saturation;
  };
  return {at(0.8), at(1.1)};
}

TEST(Theory, LoadBelowAndAboveWhatSaturates_IsToldApart) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto [below, above] = AroundSaturation(RandomDeployment(seed, 160, 256));
    EXPECT_EQ(below.state, SaturationState::kStable) << seed << ": " << below.evidence;
    EXPECT_EQ(above.state, SaturationState::kOverloaded) << seed << ": " << above.evidence;
  }
}

// With few seats many wait for one long before they are too few: near, not stable.
TEST(Theory, FewSeats_BelowWhatSaturatesIsNotOverloaded) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto [below, above] = AroundSaturation(RandomDeployment(seed, 2, 40));
    EXPECT_NE(below.state, SaturationState::kOverloaded) << seed << ": " << below.evidence;
    EXPECT_EQ(above.state, SaturationState::kOverloaded) << seed << ": " << above.evidence;
  }
}

}  // namespace
}  // namespace servecast::testing::theory_test
