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

namespace servecast::testing {
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
      const TimeNs left =
          run.results.completion[i] - run.results.generated[i] * latency->OutputTokenDelay();
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
}  // namespace servecast::testing
