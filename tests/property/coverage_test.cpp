// How often the interval of an experiment holds what it is of: the closed form, or the long-run
// values of coverage.json. Few seeds here; `./dev fuzz coverage` has 400, and checks every
// scenario.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/documents.h"
#include "experiment/observations.h"
#include "experiment/replications.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "metrics/samples.h"
#include "property/long_runs.h"
#include "servecast/experiment.h"
#include "servecast/plan.h"
#include "testing/data_files.h"

namespace servecast::testing::coverage_test {
namespace {

// 0: not asked for.
int Asked(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}
int SeedsAskedFor() { return Asked("SERVECAST_COVERAGE_SEEDS"); }

Report Judged(const std::string& document) {
  Experiment experiment = Good(Experiment::Create(Parsed(document)));
  while (!experiment.Advance(INT64_MAX)) {
  }
  return experiment.Snapshot(ReportDetail::kSummary);
}

struct Coverage {
  int intervals = 0, covers = 0, wrong = 0, runs = 0;
  double Share() const { return static_cast<double>(covers) / intervals; }
};

// Beyond by chance once in 1,000, if intervals cover with probability `p`.
void ExpectCovers(const Coverage& found, const std::string& what, double p = 0.92) {
  const double n = found.intervals;
  EXPECT_GE(found.covers, n * p - 3.1 * std::sqrt(n * p * (1 - p)) - 1) << what;
  if (SeedsAskedFor() > 0) {
    fmt::print("{:<24} {} intervals, {:.1f} % cover, {:.1f} % of verdicts wrong\n", what,
               found.intervals, 100 * found.Share(), 100.0 * found.wrong / found.runs);
    EXPECT_LE(found.wrong, 0.025 * found.runs) << what;
  }
}

// So many seats that a step serves at once, in 0.2 ms whatever they are: servers that take 0.2 ms a
// token.
struct Servers {
  int seats = 1;
  double rate_per_s = 0;
  std::string outputs;
  std::string metric = "ttft";
};

std::string DocumentOf(const Servers& servers, int seed) {
  return Changed({fmt::format("engine.max_num_seqs={}", servers.seats), "workload.requests=2000",
                  R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[200,0,0]})",
                  R"(workload.prompt_tokens={"distribution":"fixed","value":1})",
                  "workload.output_tokens=" + servers.outputs,
                  fmt::format("workload.arrivals.rate_per_s={}", servers.rate_per_s),
                  fmt::format("slo=[{{\"metric\":\"{}\",\"percentile\":95,\"limit_ms\":10000}}]",
                              servers.metric),
                  fmt::format("seed={}", seed)});
}

// `truth`: the 95th percentile, ms.
void ExpectHolds(const Servers& servers, double truth, const std::string& what) {
  Coverage found;
  const int seeds = SeedsAskedFor() > 0 ? SeedsAskedFor() : 12;
  for (int seed = 1; seed <= seeds; ++seed) {
    const SloResult result = Judged(DocumentOf(servers, seed)).slo[0];
    found.runs += 1;
    if (!result.low_ms) continue;
    found.intervals += 1;
    found.covers += *result.low_ms <= truth && truth <= *result.high_ms ? 1 : 0;
  }
  EXPECT_EQ(found.intervals, seeds) << what;
  ExpectCovers(found, what);
}

// Where a function that falls from 1 passes `at`.
template <class Function>
double Crossing(Function falls, double at, double high) {
  double low = 0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (falls(middle) > at ? low : high) = middle;
  }
  return low;
}

// Tokens by a distribution's tail, P(tokens > n).
template <class Tail>
std::string Tokens(Tail tail, double most) {
  std::string quantiles;
  constexpr int kPoints = 2000;
  for (int i = 0; i < kPoints; ++i) {
    const double p = static_cast<double>(i) / kPoints;
    quantiles += fmt::format("[{},{:.3f}],", p, std::max(1.0, Crossing(tail, 1 - p, most)));
  }
  return R"({"distribution":"empirical","quantiles":[)" + quantiles +
         fmt::format("[1,{}]]}}", most);
}

std::string ExponentialTokens(double mean) {
  return Tokens([mean](double n) { return std::exp(-n / mean); }, 10 * mean);
}

constexpr double kFirstStep = 0.2;  // ms, of every request

// P(W > t) of M/D/1 (Erlang 1909; Tijms, A First Course in Stochastic Models, 2003, 9.2.2).
double WaitBeyond(double t, double rate, double service) {
  double sum = 0;
  for (int k = 0; k * service <= t; ++k) {
    const double x = rate * (k * service - t);
    double term = std::exp(-x);
    for (int i = 1; i <= k; ++i) term *= x / i;
    sum += term;
  }
  return 1 - (1 - rate * service) * sum;
}

TEST(Coverage, MD1_IntervalHoldsTheClosedForm) {
  // Beyond 0.1 s the sum loses all digits.
  const double wait = Crossing([](double t) { return WaitBeyond(t, 60, 0.01); }, 0.05, 0.1);
  ExpectHolds({1, 60, R"({"distribution":"fixed","value":50})"}, 1e3 * wait + kFirstStep, "M/D/1");
}

// Sojourn times of M/M/1 are exponential at the rate that is to spare.
TEST(Coverage, MM1_IntervalHoldsTheClosedForm) {
  ExpectHolds({1, 60, ExponentialTokens(50), "e2e"}, 1e3 * std::log(20.0) / (100 - 60), "M/M/1");
}

// Who waits does so exponentially; how many do is Erlang's C.
TEST(Coverage, MM4_IntervalHoldsErlangC) {
  constexpr int kServers = 4;
  constexpr double kRate = 70, kService = 0.04, kLoad = kRate * kService;
  double term = 1, sum = 0;
  for (int k = 0; k < kServers; ++k) {
    sum += term;
    term *= kLoad / (k + 1);
  }
  term *= kServers / (kServers - kLoad);
  const double waits = term / (sum + term);
  const double wait = std::log(waits / 0.05) / (kServers / kService - kRate);
  // A seat that is free is taken when the others' step ends: half a step later.
  ExpectHolds({kServers, kRate, ExponentialTokens(kService * 1e3 / 0.2)},
              1e3 * wait + 1.5 * kFirstStep, "M/M/4");
}

// Service is one of two exponentials. The wait's transform (Pollaczek and Khinchine; Kleinrock,
// Queueing Systems I, 1975, 5.7) is then a ratio of polynomials, the wait two exponentials.
TEST(Coverage, MG1_IntervalHoldsPollaczekAndKhinchine) {
  constexpr double kRate = 50, kShare = 0.8, kShort = 25, kLong = 150;  // tokens
  const double fast = 1 / (kShort * 0.0002), slow = 1 / (kLong * 0.0002);
  const double load = kRate * (kShare / fast + (1 - kShare) / slow);
  const double b = fast + slow - kRate;
  const double c = fast * slow - kRate * (fast + slow - kShare * fast - (1 - kShare) * slow);
  const double root = std::sqrt(b * b - 4 * c), r1 = (b - root) / 2, r2 = (b + root) / 2;
  const auto beyond = [&](double t) {
    const double a1 = (1 - load) * (fast - r1) * (slow - r1) / (r2 - r1) / r1;
    const double a2 = (1 - load) * (fast - r2) * (slow - r2) / (r1 - r2) / r2;
    return a1 * std::exp(-r1 * t) + a2 * std::exp(-r2 * t);
  };
  EXPECT_NEAR(beyond(0), load, 1e-9);  // that many wait at all
  const std::string tokens = Tokens(
      [](double n) { return kShare * std::exp(-n / kShort) + (1 - kShare) * std::exp(-n / kLong); },
      10 * kLong);
  ExpectHolds({1, kRate, tokens}, 1e3 * Crossing(beyond, 0.05, 2) + kFirstStep, "M/G/1");
}

// ---- Long runs --------------------------------------------------------------------------------

const char* const kFile = SERVECAST_SOURCE_DIR "/tests/property/coverage.json";

struct Known {
  std::string name, document;
  double p99_ms[2] = {};  // of TTFT and TPOT
};

std::vector<Known> AllKnown() {
  const auto file = nlohmann::json::parse(ReadFile(kFile).value_or(""), nullptr, false);
  std::vector<Known> all;
  for (const auto& each : file["scenarios"]) {
    std::vector<std::string> changes = each["set"];
    changes.push_back(R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":200},
                             {"metric":"tpot","percentile":99,"limit_ms":20}])");
    const auto preset = ScenarioPreset(each["preset"].get<std::string>());
    all.push_back({each["name"],
                   Changed(changes, std::string(preset.value_or(""))),
                   {each["ttft_p99_ms"], each["tpot_p99_ms"]}});
  }
  return all;
}

const char* const kMetrics[] = {"TTFT", "TPOT"};

TEST(Coverage, LongRuns_LieInTheIntervals) {
  const int seeds = SeedsAskedFor() > 0 ? SeedsAskedFor() : 4;
  Coverage all;
  for (const Known& known : AllKnown()) {
    const bool quick = known.name == "low" || known.name == "default" || known.name == "bursty";
    if (SeedsAskedFor() == 0 && !quick) continue;
    Coverage found[2];
    for (int seed = 1; seed <= seeds; ++seed) {
      const Report report = Judged(Changed({fmt::format("seed={}", seed)}, known.document));
      bool meets = true;
      for (std::size_t k = 0; k < 2; ++k) {
        const SloResult& result = report.slo[k];
        const double truth = known.p99_ms[k];
        meets = meets && truth <= result.slo.limit_ms;
        found[k].runs += 1;
        if (!result.low_ms) continue;
        found[k].intervals += 1;
        found[k].covers += *result.low_ms <= truth && truth <= *result.high_ms ? 1 : 0;
      }
      const VerdictState state = report.verdict.state;
      found[0].wrong += state == VerdictState::kOverloaded ||
                        (state == VerdictState::kMeets && !meets) ||
                        (state == VerdictState::kMisses && meets);
    }
    for (std::size_t k = 0; k < 2; ++k) {
      if (SeedsAskedFor() > 0) ExpectCovers(found[k], known.name + ", " + kMetrics[k]);
      all.intervals += found[k].intervals;
      all.covers += found[k].covers;
      all.wrong += found[k].wrong;
      all.runs += found[k].runs;
    }
  }
  ExpectCovers(all, "all");
}

// ---- Plans ------------------------------------------------------------------------------------

struct KnownRate {
  std::string name;
  Scenario scenario;
  double most = 0;  // requests/s
  double apart = 0;
};

std::vector<KnownRate> AllKnownRates() {
  const auto file = nlohmann::json::parse(ReadFile(kFile).value_or(""), nullptr, false);
  std::vector<KnownRate> all;
  for (const auto& each : file["max_rates"]) {
    const auto preset = ScenarioPreset(each["preset"].get<std::string>());
    all.push_back({each["name"], Parsed(Changed(each["set"], std::string(preset.value_or("")))),
                   each["max_rate"], each["apart"]});
  }
  return all;
}

TEST(Coverage, MaxRates_LieInTheIntervals) {
  const int seeds = SeedsAskedFor() > 0 ? (SeedsAskedFor() + 1) / 2 : 3;
  Coverage all;
  for (const KnownRate& known : AllKnownRates()) {
    Coverage found;
    double requests = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      Scenario scenario = known.scenario;
      scenario.seed = static_cast<std::uint64_t>(seed);
      Plan plan = Good(Plan::Create(std::move(scenario)));
      while (!plan.Advance(INT64_MAX)) {
      }
      const PlanAnswer answer = plan.Answer();
      ASSERT_EQ(answer.outcome, PlanOutcome::kFound) << known.name << ", seed " << seed;
      // Wider only where the work that a plan may do hardly allowed more.
      const bool spent = answer.work > PlanOptions().most_work / 2;
      EXPECT_TRUE(spent || answer.high - answer.low <= 2 * 0.031 * answer.value)
          << known.name << " " << seed << ": " << answer.low << " to " << answer.high << " by "
          << answer.work;
      found.intervals += 1;
      found.runs += 1;
      found.covers += answer.low <= known.most && known.most <= answer.high ? 1 : 0;
      requests += static_cast<double>(answer.requests);
    }
    if (SeedsAskedFor() > 0) {
      ExpectCovers(found, "max rate, " + known.name);
      fmt::print("{:.0f} requests an answer\n", requests / seeds);
    }
    all.intervals += found.intervals;
    all.covers += found.covers;
    all.runs += found.runs;
    if (SeedsAskedFor() == 0) break;
  }
  ExpectCovers(all, "max rates");
}

TEST(Coverage, LongMaxRates_AreMadeAnew) {
  const int runs = Asked("SERVECAST_LONG_RUNS");
  if (runs == 0) GTEST_SKIP() << "SERVECAST_LONG_RUNS is not set";
  for (const KnownRate& known : AllKnownRates()) {
    fmt::print("{}: {:.5g} requests/s (the file has {:.5g})\n", known.name,
               StraightMaxRate(known.scenario, known.most, known.apart, 1'000'000,
                               static_cast<std::size_t>(runs)),
               known.most);
  }
}

// What coverage.json holds, by as many runs of a million requests as SERVECAST_LONG_RUNS says.
TEST(Coverage, LongRuns_AreMadeAnew) {
  const int runs = Asked("SERVECAST_LONG_RUNS");
  if (runs == 0) GTEST_SKIP() << "SERVECAST_LONG_RUNS is not set";
  for (const Known& known : AllKnown()) {
    std::vector<double> pooled[2];
    for (int run = 1; run <= runs; ++run) {
      Scenario scenario = Parsed(Changed({"workload.requests=1000000"}, known.document));
      scenario.seed = SeedOfRun(4242, static_cast<std::size_t>(run));
      Simulation simulation = Good(Simulation::Create(scenario));
      while (!simulation.Advance(INT64_MAX)) {
      }
      const Observations seen = ObservationsOf(scenario, simulation.Records(), Report());
      for (std::size_t i = 20'000; i < seen.arrival.size(); ++i) {
        if (seen.arrival[i] > seen.last_offered - seen.usual_e2e) continue;
        for (std::size_t k = 0; k < 2; ++k) {
          if (seen.latency_ms[k][i] >= 0) pooled[k].push_back(seen.latency_ms[k][i]);
        }
      }
    }
    for (std::size_t k = 0; k < 2; ++k) {
      SortValues(pooled[k]);
      fmt::print("{}, {}: {:.5g} ms (the file has {:.5g})\n", known.name, kMetrics[k],
                 Percentile(pooled[k], 99), known.p99_ms[k]);
    }
  }
}

}  // namespace
}  // namespace servecast::testing::coverage_test
