// No report has two values of one figure: what can be computed from other members of it agrees with
// them, and what is of one run stands apart. SERVECAST_POOLED_CASES=1000 is the nightly size.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/documents.h"
#include "experiment/replications.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "metrics/samples.h"
#include "nlohmann/json.hpp"
#include "servecast/experiment.h"
#include "servecast/workload_spec.h"
#include "testing/asked.h"
#include "testing/dice.h"

namespace servecast::testing::pooled_test {
namespace {

using Json = nlohmann::json;

Report Finished(const std::string& document, ExperimentOptions options = {}) {
  Experiment experiment = Good(Experiment::Create(Parsed(document), {}, options));
  while (!experiment.Advance(INT64_MAX)) {
  }
  return experiment.Snapshot(ReportDetail::kSummary);
}

std::string RandomTarget(Dice& dice, bool classes) {
  const std::string of =
      !classes ? "" : dice.Pick<std::string>({"", R"(,"class":"a")", R"(,"class":"b")"});
  if (dice.Percent(25)) {
    return fmt::format(R"({{"metric":"attainment","percentile":{},"ttft_ms":{},"tpot_ms":{}{}}})",
                       dice.Pick({50, 90, 99}), dice.Pick({20, 60, 500}), dice.Pick({8, 12, 40}),
                       of);
  }
  return fmt::format(R"({{"metric":"{}","percentile":{},"limit_ms":{}{}}})",
                     dice.Pick<std::string>({"ttft", "tpot", "e2e", of.empty() ? "itl" : "e2e"}),
                     dice.Pick({50, 90, 95, 99}), dice.Pick({5, 10, 30, 100, 1000, 5000}), of);
}

std::string RandomDocument(Dice& dice) {
  const bool classes = dice.Percent(40);
  std::string targets = RandomTarget(dice, classes);
  for (std::int64_t more = dice.Between(0, 2); more > 0; --more) {
    targets += "," + RandomTarget(dice, classes);
  }
  std::vector<std::string> overrides = {
      "seed=" + std::to_string(dice.Between(1, 1000)),
      dice.Percent(10) ? "slo=[]" : "slo=[" + targets + "]",
      "workload.requests=" + std::to_string(dice.Pick({50, 300, 1000})),
      R"(workload.prompt_tokens={"distribution":"uniform","min":10,"max":800})",
      R"(workload.output_tokens={"distribution":"uniform","min":1,"max":60})",
      "hardware.price_per_gpu_hour=3",
  };
  if (classes) {
    overrides.push_back(dice.Percent(50)
                            ? R"(workload.classes=[{"name":"a","share":3},{"name":"b","share":1}])"
                            : R"(workload.classes=[{"name":"a"},{"name":"b","timeout_s":0.3}])");
  }
  switch (dice.Between(1, 6)) {
    case 1:
      overrides.push_back(
          fmt::format(R"(workload.arrivals={{"process":"closed_loop","concurrency":{}}})",
                      dice.Pick({1, 8, 64})));
      break;
    case 2:
      overrides.push_back(R"(workload.arrivals={"process":"static"})");
      break;
    case 3:
      if (!classes) {
        overrides.push_back(R"(workload.sessions={"turns":3,"think_time_s":0.5})");
      }
      [[fallthrough]];
    default:
      overrides.push_back(
          fmt::format(R"(workload.arrivals={{"process":"poisson","rate_per_s":{}}})",
                      dice.Pick({2, 20, 100, 400})));
  }
  if (dice.Percent(30)) {
    overrides.push_back("engine.max_num_seqs=" + std::to_string(dice.Pick({2, 8, 32})));
  }
  if (dice.Percent(25)) {
    overrides.push_back(R"(cluster.pools=[{"name":"x","replicas":2},{"name":"y"}])");
  }
  return Changed(overrides);
}

// Of the same numbers, in another order of operations.
void ExpectSame(double a, double b, const char* what) {
  EXPECT_NEAR(a, b, 1e-9 * std::max(std::fabs(a), std::fabs(b))) << what;
}

std::optional<double> PercentileOf(const Distribution& d, double percent) {
  return percent == 50   ? d.p50
         : percent == 90 ? d.p90
         : percent == 95 ? d.p95
         : percent == 99 ? std::optional(d.p99)
                         : std::nullopt;
}

template <class R>
const Distribution* DistributionOf(const R& r, SloMetric metric) {
  return metric == SloMetric::kTtft   ? &r.ttft_ms
         : metric == SloMetric::kTpot ? &r.tpot_ms
         : metric == SloMetric::kE2e  ? &r.e2e_ms
                                      : nullptr;
}

template <class R>
void CheckRates(const R& r) {
  const Counted& c = *r.counted;
  if (c.seconds <= 0) return;
  EXPECT_EQ(r.requests_per_s, static_cast<double>(c.completed) / c.seconds);
  EXPECT_EQ(r.output_tokens_per_s, static_cast<double>(c.output_tokens) / c.seconds);
  const double good = r.attainment ? *r.attainment * static_cast<double>(c.completed + c.lost)
                                   : static_cast<double>(c.completed);
  ExpectSame(r.goodput_per_s, good / c.seconds, "goodput = attainment x rate");
  EXPECT_LE(r.e2e_ms.n, c.requests);
}

// The value of a target is the percentile of that name, and the CDF's at its fraction.
void CheckTarget(const SloResult& result, const Report& r) {
  const SloSpec& slo = result.slo;
  if (!result.value_ms) return;
  const auto check = [&](const Distribution* d) {
    if (d == nullptr) return;
    if (const auto percentile = PercentileOf(*d, slo.percentile)) {
      EXPECT_EQ(*percentile, *result.value_ms);
    }
    if (slo.percentile == 99) {
      EXPECT_EQ(d->p99_low, result.low_ms);
    }
    if (slo.percentile == 99) {
      EXPECT_EQ(d->p99_high, result.high_ms);
    }
  };
  if (!slo.of_class.empty()) {
    for (const ClassReport& of_class : r.classes) {
      if (of_class.name == slo.of_class) check(DistributionOf(of_class, slo.metric));
    }
    return;
  }
  check(DistributionOf(r, slo.metric));
  const std::string name = slo.metric == SloMetric::kTtft   ? "cdf_ttft_ms"
                           : slo.metric == SloMetric::kTpot ? "cdf_tpot_ms"
                                                            : "cdf_e2e_ms";
  if (slo.metric == SloMetric::kItl) return;
  const std::vector<double>&fractions = r.ColumnOf("cdf_fraction"), &values = r.ColumnOf(name);
  ASSERT_EQ(fractions.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (fractions[i] == slo.percentile / 100) {
      EXPECT_EQ(values[i], *result.value_ms);
    }
  }
}

void CheckClasses(const Report& r) {
  if (r.classes.empty()) return;
  Counted sum;
  double requests = 0, goodput = 0, tokens = 0, ttft = 0;
  std::int64_t samples = 0;
  for (const ClassReport& of_class : r.classes) {
    ASSERT_TRUE(of_class.counted);
    CheckRates(of_class);
    sum.requests += of_class.counted->requests;
    sum.completed += of_class.counted->completed;
    sum.lost += of_class.counted->lost;
    sum.output_tokens += of_class.counted->output_tokens;
    requests += of_class.requests_per_s;
    goodput += of_class.goodput_per_s;
    tokens += of_class.output_tokens_per_s;
    samples += of_class.ttft_ms.n;
    ttft += of_class.ttft_ms.mean * static_cast<double>(of_class.ttft_ms.n);
  }
  EXPECT_EQ(sum.requests, r.counted->requests);
  EXPECT_EQ(sum.completed, r.counted->completed);
  EXPECT_EQ(sum.lost, r.counted->lost);
  EXPECT_EQ(sum.output_tokens, r.counted->output_tokens);
  EXPECT_EQ(samples, r.ttft_ms.n);
  ExpectSame(requests, r.requests_per_s, "requests/s of classes");
  ExpectSame(tokens, r.output_tokens_per_s, "tokens/s of classes");
  ExpectSame(goodput, r.goodput_per_s, "goodput of classes");
  ExpectSame(ttft, r.ttft_ms.mean * static_cast<double>(r.ttft_ms.n), "mean TTFT of classes");
}

void CheckPooled(const Report& r) {
  CheckRates(r);
  CheckClasses(r);
  for (const SloResult& result : r.slo) CheckTarget(result, r);
  ExpectSame(r.output_tokens_per_s_per_gpu * static_cast<double>(r.gpus), r.output_tokens_per_s,
             "tokens/s of all GPUs");
  if (r.counted->output_tokens > 0 && r.counted->seconds > 0) {
    ASSERT_TRUE(r.cost_per_million_output_tokens);
    ExpectSame(*r.cost_per_million_output_tokens,
               3.0 * static_cast<double>(r.gpus) * r.counted->seconds / 3600 /
                   static_cast<double>(r.counted->output_tokens) * 1e6,
               "cost = GPU-hours x price / tokens");
  }
  if (r.overload) {
    EXPECT_EQ(r.overload->served_per_s, r.requests_per_s);
  }
  const bool only = r.slo.size() == 1 && r.classes.empty() && r.slo[0].share.has_value();
  if (only && r.attainment) ExpectSame(*r.attainment, *r.slo[0].share, "attainment");
  EXPECT_EQ(r.ttft_ms.runs, r.certainty->runs);
  EXPECT_EQ(r.counted->runs, r.certainty->runs);
  std::int64_t gpus = 0;
  for (const PoolReport& pool : r.pools) gpus += pool.gpus;
  if (!r.pools.empty()) {
    EXPECT_EQ(gpus, r.gpus);
  }
}

// Paths to numbers, of lists by the names of their objects.
void Leaves(const Json& json, const std::string& path, std::vector<std::string>& leaves) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) Leaves(value, path + "/" + key, leaves);
  } else if (json.is_array()) {
    for (const Json& value : json) {
      if (value.is_object()) Leaves(value, path + "/" + value.value("name", ""), leaves);
    }
  } else if (json.is_number()) {
    leaves.push_back(path);
  }
}

// What is of the first run stands nowhere else.
void CheckJson(const Report& r) {
  Json json = Json::parse(ReportJson(r, ReportParts::kSummary));
  ASSERT_TRUE(json.contains("first_run"));
  const Json first = json["first_run"];
  json.erase("first_run");
  std::vector<std::string> all, one, both;
  Leaves(json, "", all);
  Leaves(first, "", one);
  std::sort(all.begin(), all.end());
  std::sort(one.begin(), one.end());
  std::set_intersection(all.begin(), all.end(), one.begin(), one.end(), std::back_inserter(both));
  EXPECT_TRUE(both.empty()) << both[0];
  EXPECT_EQ(first["arrived"], r.arrived);
  EXPECT_EQ(json["ttft_ms"]["n"], r.ttft_ms.n);
  EXPECT_EQ(json.contains("counted"), r.counted.has_value());
}

// Where the time went is told of the requests that the latencies are of.
TEST(Pooled, RandomReports_AreExplainedByTheirOwnRequests) {
  const std::int64_t cases = Asked("SERVECAST_POOLED_CASES", 60);
  std::int64_t overloaded = 0;
  for (std::int64_t seed = 1; seed <= cases; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed));
    const std::string document = RandomDocument(dice);
    ExperimentOptions options;
    options.blames = true;
    options.most_work = 300'000;
    Experiment experiment = Good(Experiment::Create(Parsed(document), {}, options));
    while (!experiment.Advance(INT64_MAX)) {
    }
    const Report report = experiment.Snapshot(ReportDetail::kSummary);
    if (!report.counted || report.counted->requests > 250'000) continue;
    overloaded += report.overload ? 1 : 0;
    std::int64_t explained = 0;
    for (const Blame& blame : experiment.Blames()) {
      if (blame.metric == "e2e") explained = blame.all.requests;
    }
    EXPECT_EQ(explained, report.e2e_ms.n) << "case " << seed << ": " << document;
  }
  EXPECT_GT(overloaded, 0);
}

TEST(Pooled, RandomReports_HaveOneValueOfEachFigure) {
  const std::int64_t cases = Asked("SERVECAST_POOLED_CASES", 60);
  std::int64_t judged = 0;
  for (std::int64_t seed = 1; seed <= cases; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed));
    const std::string document = RandomDocument(dice);
    SCOPED_TRACE(fmt::format("case {}: {}", seed, document));
    ExperimentOptions options;
    if (dice.Percent(80)) options.most_work = 300'000;
    const Report report = Finished(document, options);
    CheckJson(report);
    if (!report.counted) continue;
    ++judged;
    CheckPooled(report);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(3 * judged, 2 * cases);
}

// All of an unsteady load counts: the same runs, made one by one, have the same samples.
TEST(Pooled, UnsteadyLoad_IsThatOfItsRunsOneByOne) {
  const std::string document = Changed(
      {R"(slo=[{"metric":"ttft","limit_ms":60,"percentile":95}])", "workload.requests=400",
       R"(workload.output_tokens={"distribution":"uniform","min":1,"max":60})",
       R"(workload.arrivals={"process":"poisson","rate_per_s":30,"profile":"ramp","ramp_from":0.2,"ramp_to":2,"ramp_s":10})"});
  const Report report = Finished(document);
  ASSERT_TRUE(report.counted);
  ASSERT_GE(report.certainty->runs, 10);
  std::vector<double> ttft, e2e;
  for (std::int64_t run = 0; run < report.certainty->runs; ++run) {
    Scenario scenario = Parsed(document);
    scenario.seed = SeedOfRun(scenario.seed, static_cast<std::size_t>(run));
    scenario.workload->requests = report.certainty->requests_per_run;
    Simulation simulation = Good(Simulation::Create(std::move(scenario)));
    while (!simulation.Advance(INT64_MAX)) {
    }
    const Report one = simulation.Snapshot();
    for (const double ms : one.ColumnOf("ttft_ms")) ttft.push_back(ms);
    for (const double ms : one.ColumnOf("e2e_ms")) e2e.push_back(ms);
  }
  for (const auto& [of, values] : {std::pair(&report.ttft_ms, &ttft), {&report.e2e_ms, &e2e}}) {
    ASSERT_EQ(of->n, static_cast<std::int64_t>(values->size()));
    SortValues(*values);
    for (const double percent : {50, 90, 95, 99}) {
      ExpectSame(*PercentileOf(*of, percent), Percentile(*values, percent), "percentile");
    }
  }
  EXPECT_EQ(report.counted->requests, static_cast<std::int64_t>(ttft.size()));
}

}  // namespace
}  // namespace servecast::testing::pooled_test
