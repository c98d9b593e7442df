// Random scenarios, each answered for many seeds: do the intervals hold what a long run finds, and
// are verdicts that claim to be certain right? Think times, conversations, fleets, full queues,
// attainment and horizons are drawn. A limit lies a few per cent to a third beside the long run's
// value, so that verdicts have to tell. Steps are cheap (coefficients, no model of a GPU), and all
// of it is a function of the scenarios' numbers: no run of it can come out otherwise.
// 12 scenarios of 10 seeds; where SERVECAST_COVERAGE_SEEDS is set, 300 of 20; with SERVECAST_SEED=N
// and SERVECAST_CASES=1 scenario N alone.
// Scenario 21 (conversations of two turns, TTFT) holds 13 of 20, and the others are too low: why is
// not known.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "core/documents.h"
#include "experiment/observations.h"
#include "experiment/replications.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "metrics/samples.h"
#include "servecast/experiment.h"
#include "servecast/workload_spec.h"
#include "testing/dice.h"

namespace servecast::testing::random_coverage_test {
namespace {

constexpr double kLongRun = 100'000;   // requests; of which the first eighth is left out
constexpr double kLongLives = 20;      // of a conversation, in a long run
constexpr double kUntilHorizon = 600;  // requests, about

std::int64_t AskedFor(const char* variable, std::int64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoll(text);
}

// The mean of lengths over their median: lognormal, the 99th percentile four times the median.
constexpr double kMean = 1.194;

// What a server does with a request: seats that share a step of `base` us, more by each decode.
struct Server {
  std::int64_t seats = 8, base = 4000, per_prompt = 20, per_decode = 100, prompt = 100, output = 20;
  double StepMs() const { return 1e-3 * static_cast<double>(base + per_decode * seats); }
  double PrefillMs() const { return 1e-3 * static_cast<double>(per_prompt * prompt) * kMean; }
  double DecodeMs() const { return StepMs() * static_cast<double>(output) * kMean; }
  // Requests/s that full seats serve.
  double Capacity() const {
    const double decode_ms = DecodeMs() / static_cast<double>(seats);
    return 1e3 / (decode_ms + PrefillMs());
  }
};

enum class Kind { kOpen, kConversations, kLoop, kFullQueue, kHorizon, kCount };

std::string LengthText(std::int64_t median) {
  return fmt::format(R"({{"distribution":"lognormal","median":{},"p99":{},"min":1,"max":{}}})",
                     median, 4 * median, 8 * median);
}

struct Load {
  std::vector<std::string> changes;
  double life = 0;  // requests that come while a conversation or a cycle lasts, about
};

// The workload's arrivals, for a share of what the replicas can serve. Nobody thinks for longer
// than 10,000 requests take to be served: of longer lives a long run is too long.
Load LoadOf(Dice& dice, Kind kind, const Server& server, double replicas) {
  const auto share = [&](std::int64_t low, std::int64_t high) {
    return static_cast<double>(dice.Between(low, high)) / 100;
  };
  const double capacity = server.Capacity() * replicas;
  const auto rate = [](double per_s) {
    return fmt::format("workload.arrivals.rate_per_s={:.6g}", per_s);
  };
  const double think_s = std::min(dice.Pick<double>({0, 1, 4, 15}), 10'000 / capacity);
  const double answer_s = 1e-3 * server.DecodeMs();
  if (kind == Kind::kConversations) {
    const auto turns = static_cast<double>(dice.Between(2, 6));
    const double per_s = share(20, 60) * capacity;
    return {
        {rate(per_s / turns),
         fmt::format(R"(workload.sessions={{"turns":{},"think_time_s":{:.3g}}})", turns, think_s)},
        per_s * turns * (think_s + answer_s)};
  }
  if (kind == Kind::kLoop) {
    const double clients = std::max(2.0, share(30, 110) * capacity * (think_s + answer_s));
    return {{fmt::format(R"(workload.arrivals={{"process":"closed_loop","concurrency":{:.0f},)"
                         R"("think_time_s":{:.3g}}})",
                         clients, think_s)},
            clients};
  }
  std::vector<std::string> load = {rate(share(25, kind == Kind::kFullQueue ? 110 : 85) * capacity)};
  if (dice.Percent(30)) {
    load.push_back(fmt::format("workload.arrivals.process=\"gamma\""));
    load.push_back(fmt::format("workload.arrivals.cv={}", dice.Pick<double>({0.5, 2})));
  }
  if (kind == Kind::kFullQueue) {
    load.push_back(fmt::format("engine.max_num_queued_reqs={}", dice.Between(2, 30)));
  }
  if (kind == Kind::kHorizon) {
    load.push_back(fmt::format("measure.horizon_s={:.4g}", 600 / (0.5 * capacity)));
  }
  return {load, 0};
}

struct Drawn {
  std::string document;  // its only target has no limit that matters
  SloMetric metric = SloMetric::kTtft;
  double beside = 1;  // the limit, over the long run's value
  double life = 0;
};

Drawn Draw(std::uint64_t number) {
  Dice dice(number);
  const auto kind = static_cast<Kind>(number % static_cast<std::uint64_t>(Kind::kCount));
  Server server;
  server.seats = dice.Pick({2, 8, 16});
  server.base = dice.Pick({2000, 8000});
  server.output = dice.Pick({8, 20, 40});
  server.prompt = dice.Pick({50, 200});
  const bool alone = kind == Kind::kFullQueue;
  const std::int64_t replicas = alone ? 1 : dice.Pick({1, 1, 1, 2, 4, 16, 64});
  const Load load = LoadOf(dice, kind, server, static_cast<double>(replicas));
  std::vector<std::string> changes = load.changes;
  changes.push_back(fmt::format("engine.max_num_seqs={}", server.seats));
  changes.push_back(
      fmt::format(R"(latency={{"backend":"blackbox","alpha":[0,0,0],"beta":[{},{},{}]}})",
                  server.base, server.per_prompt, server.per_decode));
  changes.push_back("workload.prompt_tokens=" + LengthText(server.prompt));
  changes.push_back("workload.output_tokens=" + LengthText(server.output));
  changes.push_back(fmt::format("cluster.pools=[{{\"replicas\":{}}}]", replicas));
  changes.push_back("workload.requests=1000");
  Drawn drawn;
  drawn.life = load.life;
  const std::string metric =
      dice.Pick<std::string>({"ttft", "ttft", "tpot", "tpot", "e2e", "attainment"});
  drawn.metric = metric == "ttft"   ? SloMetric::kTtft
                 : metric == "tpot" ? SloMetric::kTpot
                 : metric == "e2e"  ? SloMetric::kE2e
                                    : SloMetric::kAttainment;
  changes.push_back(fmt::format(R"(slo=[{{"metric":"{}","percentile":{},"limit_ms":1000000}}])",
                                drawn.metric == SloMetric::kAttainment ? "e2e" : metric,
                                dice.Pick({90, 95, 99})));
  drawn.beside = dice.Pick<double>({0.7, 0.9, 1.1, 1.4});
  drawn.document = Changed(changes);
  return drawn;
}

// What the only target comes to in long runs, or in many that end at their horizon.
struct Truth {
  double ms = 0, unserved = 0;
};

// Of `requests` at least.
Truth TruthOf(const Drawn& drawn, const Scenario& asked, double requests) {
  const bool ends = !IsSteady(asked);
  const double length = ends ? kUntilHorizon : std::max(kLongRun, kLongLives * drawn.life);
  const auto runs = std::max<std::size_t>(static_cast<std::size_t>(requests / length), 1) + 1;
  std::vector<double> values;
  double unserved = 0, all = 0;
  for (std::size_t run = 1; run <= runs; ++run) {
    Scenario scenario = asked;
    scenario.seed = SeedOfRun(4242, run);
    if (!ends) scenario.workload->requests = static_cast<std::int64_t>(length);
    Simulation simulation = Good(Simulation::Create(scenario));
    while (!simulation.Advance(INT64_MAX)) {
    }
    const Observations seen = ObservationsOf(scenario, simulation.Records(), Report());
    const TimeNs until = ends ? kNever : seen.last_offered - seen.usual_e2e;
    for (std::size_t i = ends ? 0 : seen.arrival.size() / 8; i < seen.arrival.size(); ++i) {
      if (seen.arrival[i] > until) break;
      if (seen.unserved[0][i] == Observations::kForeign) continue;
      all += 1;
      unserved += seen.unserved[0][i];
      if (seen.latency_ms[0][i] >= 0) values.push_back(seen.latency_ms[0][i]);
    }
  }
  SortValues(values);
  return {Percentile(values, asked.slo[0].percentile), unserved / all};
}

std::string WithLimit(const Drawn& drawn, double limit_ms) {
  const std::string limit = fmt::format("{:.6g}", limit_ms);
  if (drawn.metric != SloMetric::kAttainment) {
    return Changed({"slo.0.limit_ms=" + limit}, drawn.document);
  }
  return Changed({R"(slo=[{"metric":"attainment","percentile":90,"e2e_ms":)" + limit + "}]"},
                 drawn.document);
}

struct Tally {
  int intervals = 0, covers = 0, above = 0, wrong = 0, answers = 0;
  void Add(const Tally& other) {
    intervals += other.intervals;
    covers += other.covers;
    above += other.above;
    wrong += other.wrong;
    answers += other.answers;
  }
};

std::vector<Report> AnswersOf(const std::string& document, int seeds) {
  std::vector<Report> answers;
  for (int seed = 1; seed <= seeds; ++seed) {
    Experiment experiment = Good(Experiment::Create(
        Parsed(Changed({fmt::format("seed={}", seed)}, document)), {}, {.names_limit = false}));
    while (!experiment.Advance(INT64_MAX)) {
    }
    answers.push_back(experiment.Snapshot(ReportDetail::kSummary));
    const Certainty& certainty = *answers.back().certainty;
    EXPECT_TRUE(!certainty.settled || certainty.from_s < certainty.until_s) << document;
  }
  return answers;
}

Tally TallyOf(const std::vector<Report>& answers, const SloSpec& slo, const Truth& truth) {
  const bool share = slo.metric == SloMetric::kAttainment;
  const bool meets =
      truth.unserved <= 1 - slo.percentile / 100 && (share || truth.ms <= slo.limit_ms);
  const double value = share ? 1 - truth.unserved : truth.ms;
  Tally tally;
  for (const Report& report : answers) {
    ++tally.answers;
    const VerdictState state = report.verdict.state;
    tally.wrong += state == VerdictState::kOverloaded ||
                   (state == VerdictState::kMeets && !meets) ||
                   (state == VerdictState::kMisses && meets);
    const SloResult& result = report.slo[0];
    const auto& low = share ? result.low_share : result.low_ms;
    const auto& high = share ? result.high_share : result.high_ms;
    if (!low || !high) continue;
    ++tally.intervals;
    tally.covers += *low <= value && value <= *high;
    tally.above += *low > value;
  }
  return tally;
}

Tally TallyOf(const Drawn& drawn, std::int64_t number, int seeds) {
  // About, for the limit; then with the limit, which makes attainment, and as well as it takes.
  const Truth about = TruthOf(drawn, Parsed(drawn.document), 2 * kLongRun);
  const std::string document = WithLimit(drawn, about.ms * drawn.beside);
  const std::vector<Report> answers = AnswersOf(document, seeds);
  double requests = 0;
  for (const Report& report : answers) {
    requests += static_cast<double>(report.certainty->runs * report.certainty->requests_per_run);
  }
  const Scenario scenario = Parsed(document);
  // Half as long as all answers together, five of ten or ten of twenty: the truth hardly scatters.
  const Truth truth = TruthOf(drawn, scenario, requests / 2);
  const Tally tally = TallyOf(answers, scenario.slo[0], truth);
  if (tally.covers * 10 < tally.intervals * 7 || tally.wrong > 1) {
    fmt::print(
        "scenario {}: {} of {} intervals hold {:.4g} ms and {:.2f} % unserved, {} are above; "
        "{} of {} verdicts wrong\n{}\n",
        number, tally.covers, tally.intervals, truth.ms, 100 * truth.unserved, tally.above,
        tally.wrong, tally.answers, document);
  }
  return tally;
}

// How many of `n` that are so with probability `p` may be so: more by chance once in 10,000, if
// they know nothing of each other.
double AtMost(double n, double p) { return n * p + 3.8 * std::sqrt(n * p * (1 - p)) + 1; }

void ExpectHolds(const Tally& tally, const std::string& what, bool nightly) {
  const double n = tally.intervals;
  fmt::print("{}: {} intervals, {:.1f} % hold, {:.1f} % are above; {} of {} verdicts wrong\n", what,
             tally.intervals, 100 * tally.covers / n, 100 * tally.above / n, tally.wrong,
             tally.answers);
  if (nightly) {
    EXPECT_GE(tally.covers, 0.92 * n) << what;
    EXPECT_LE(tally.covers, 0.98 * n) << what;
  } else {
    EXPECT_LE(n - tally.covers, AtMost(n, 0.08)) << what;
  }
}

TEST(RandomCoverage, LongRuns_LieInTheIntervalsOfRandomScenarios) {
  const bool nightly = AskedFor("SERVECAST_COVERAGE_SEEDS", 0) > 0;
  const std::int64_t first = AskedFor("SERVECAST_SEED", 1), most = nightly ? 300 : 12;
  const std::int64_t count = std::min(AskedFor("SERVECAST_CASES", most), most);
  std::map<SloMetric, Tally> by_metric;
  Tally all;
  for (std::int64_t number = first; number < first + count; ++number) {
    const Drawn drawn = Draw(static_cast<std::uint64_t>(number));
    const Tally tally = TallyOf(drawn, number, nightly ? 20 : 10);
    by_metric[drawn.metric].Add(tally);
    all.Add(tally);
  }
  const char* const names[] = {"TTFT", "TPOT", "ITL", "E2E", "attainment"};
  for (const auto& [metric, tally] : by_metric) {
    if (tally.intervals > 0) ExpectHolds(tally, names[static_cast<std::size_t>(metric)], nightly);
  }
  ExpectHolds(all, "all", nightly);
  EXPECT_LE(all.wrong, nightly ? 0.025 * all.answers : AtMost(all.answers, 0.025));
}

}  // namespace
}  // namespace servecast::testing::random_coverage_test
