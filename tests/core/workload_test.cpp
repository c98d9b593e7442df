// Requests: moments of the distributions with fixed seeds, exact spacing, and common random
// numbers (changing one thing leaves everything else as it was).
#include "workload/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace servecast {
namespace {

Scenario Base(std::int64_t requests) {
  Scenario s;
  s.workload.requests = requests;
  s.workload.arrivals.rate_per_s = 20;
  s.workload.prompt_tokens.value = 512;
  s.workload.output_tokens.value = 64;
  return s;
}

RequestTable Requests(const Scenario& s, const Trace& trace = {}) {
  Result<RequestTable> table = MakeRequests(s, trace);
  return std::move(table.value());
}

LengthSpec Lengths(LengthDistribution distribution) {
  LengthSpec spec;
  spec.distribution = distribution;
  return spec;
}

std::vector<double> Sorted(const std::vector<std::int32_t>& lengths) {
  std::vector<double> sorted(lengths.begin(), lengths.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double Quantile(const std::vector<double>& sorted, double p) {
  return sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))];
}

TEST(Poisson, Gaps_AreExponential) {
  constexpr std::int64_t kN = 100000;
  const RequestTable table = Requests(Base(kN));
  std::vector<double> gaps;
  TimeNs before = 0;
  double sum = 0, squares = 0;
  for (const TimeNs arrival : table.arrival) {
    ASSERT_GE(arrival, before);
    gaps.push_back(static_cast<double>(arrival - before) / 5e7);  // in mean gaps
    sum += gaps.back();
    squares += gaps.back() * gaps.back();
    before = arrival;
  }
  const double n = kN;
  EXPECT_NEAR(sum / n, 1, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 2, 4 * std::sqrt(20 / n));
  std::sort(gaps.begin(), gaps.end());
  double distance = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    distance =
        std::max(distance, std::fabs(1 - std::exp(-gaps[i]) - (static_cast<double>(i) + 0.5) / n));
  }
  EXPECT_LT(distance, 2.23 / std::sqrt(n));  // Kolmogorov-Smirnov, 1 in 10,000
}

TEST(Constant, Arrivals_AreEvenlySpacedFromZero) {
  Scenario s = Base(1000);
  s.workload.arrivals.process = ArrivalProcess::kConstant;
  s.workload.arrivals.rate_per_s = 3;  // a third of a second is no whole number of ns
  const RequestTable table = Requests(s);
  for (std::size_t i = 0; i < table.arrival.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(table.arrival[i]), static_cast<double>(i) * 1e9 / 3, 0.51) << i;
  }
  EXPECT_EQ(table.arrival[999], 333'000'000'000);  // rounding does not add up
}

TEST(Uniform, Lengths_AreEquallyLikelyIntegers) {
  constexpr std::int64_t kN = 60000;
  Scenario s = Base(kN);
  s.workload.prompt_tokens = Lengths(LengthDistribution::kUniform);
  s.workload.prompt_tokens.min = 5;
  s.workload.prompt_tokens.max = 16;
  std::map<int, double> counts;
  for (const std::int32_t length : Requests(s).prompt_tokens) ++counts[length];
  ASSERT_EQ(counts.size(), 12u);
  EXPECT_EQ(counts.begin()->first, 5);
  EXPECT_EQ(counts.rbegin()->first, 16);
  double chi_square = 0;
  for (const auto& [length, count] : counts) chi_square += (count - 5000) * (count - 5000) / 5000;
  EXPECT_LT(chi_square, 35.6);  // 11 degrees of freedom, 1 in 5,000
}

TEST(Uniform, OneLength_IsThatLength) {
  LengthSpec spec = Lengths(LengthDistribution::kUniform);
  spec.min = 7;
  spec.max = 7;
  for (const double u : {1e-16, 0.5, 1 - 0x1p-53}) EXPECT_EQ(DrawLength(spec, u), 7);
}

TEST(Lognormal, MedianAndP99_AreThoseAskedFor) {
  constexpr std::int64_t kN = 100000;
  Scenario s = Base(kN);
  s.workload.output_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload.output_tokens.median = 1000;
  s.workload.output_tokens.p99 = 8000;
  const std::vector<double> lengths = Sorted(Requests(s).output_tokens);
  // Standard errors: 0.4 % of the median, 1 % of the p99.
  EXPECT_NEAR(Quantile(lengths, 0.5), 1000, 15);
  EXPECT_NEAR(Quantile(lengths, 0.99), 8000, 320);
  // mean = median exp(sigma^2 / 2)
  const double sigma = std::log(8.0) / 2.3263478740408408;
  double sum = 0;
  for (const double length : lengths) sum += length;
  EXPECT_NEAR(sum / kN, 1000 * std::exp(sigma * sigma / 2), 25);
}

TEST(Lognormal, Draws_AreExactAtTheMedianAndMonotone) {
  LengthSpec spec = Lengths(LengthDistribution::kLognormal);
  spec.median = 300;
  spec.p99 = 900;
  EXPECT_EQ(DrawLength(spec, 0.5), 300);
  EXPECT_EQ(DrawLength(spec, 0.99), 900);
  std::int64_t before = 0;
  for (int i = 1; i < 1000; ++i) {
    const std::int64_t length = DrawLength(spec, i / 1000.0);
    EXPECT_GE(length, before);
    before = length;
  }
  spec.p99 = 300;  // no spread
  for (const double u : {0.01, 0.5, 0.999}) EXPECT_EQ(DrawLength(spec, u), 300);
}

TEST(Lognormal, Clips_Hold) {
  constexpr std::int64_t kN = 50000;
  Scenario s = Base(kN);
  s.workload.prompt_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload.prompt_tokens.median = 100;
  s.workload.prompt_tokens.p99 = 1000;
  s.workload.prompt_tokens.min = 50;
  s.workload.prompt_tokens.max = 400;
  const std::vector<double> lengths = Sorted(Requests(s).prompt_tokens);
  EXPECT_EQ(lengths.front(), 50);
  EXPECT_EQ(lengths.back(), 400);
  EXPECT_NEAR(Quantile(lengths, 0.5), 100, 3);
  // The widest spread that a document can ask for still gives lengths.
  LengthSpec wild = Lengths(LengthDistribution::kLognormal);
  wild.median = 1;
  wild.p99 = 1e9;
  for (const double u : {0x1p-53, 0.001, 0.5, 0.999, 1 - 0x1p-53}) {
    EXPECT_GE(DrawLength(wild, u), 1);
    EXPECT_LE(DrawLength(wild, u), 1'000'000'000);
  }
}

TEST(Empirical, Quantiles_AreInterpolated) {
  LengthSpec spec = Lengths(LengthDistribution::kEmpirical);
  spec.quantiles = {{0, 10}, {0.5, 100}, {0.9, 100}, {1, 1100}};
  EXPECT_EQ(DrawLength(spec, 1e-9), 10);
  EXPECT_EQ(DrawLength(spec, 0.25), 55);
  EXPECT_EQ(DrawLength(spec, 0.5), 100);
  EXPECT_EQ(DrawLength(spec, 0.7), 100);
  EXPECT_EQ(DrawLength(spec, 0.95), 600);
  EXPECT_EQ(DrawLength(spec, 1 - 1e-12), 1100);

  Scenario s = Base(50000);
  s.workload.prompt_tokens = spec;
  const std::vector<double> lengths = Sorted(Requests(s).prompt_tokens);
  EXPECT_NEAR(Quantile(lengths, 0.25), 55, 2);
  EXPECT_EQ(Quantile(lengths, 0.6), 100);
  EXPECT_NEAR(Quantile(lengths, 0.95), 600, 30);
}

TEST(Requests, OneKnobChanged_LeavesTheOtherDraws) {
  Scenario s = Base(500);
  s.workload.prompt_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload.output_tokens = Lengths(LengthDistribution::kLognormal);
  const RequestTable before = Requests(s);

  Scenario outputs = s;
  outputs.workload.output_tokens.median = 20;
  outputs.workload.output_tokens.p99 = 30;
  EXPECT_EQ(Requests(outputs).arrival, before.arrival);
  EXPECT_EQ(Requests(outputs).prompt_tokens, before.prompt_tokens);
  EXPECT_NE(Requests(outputs).output_tokens, before.output_tokens);

  Scenario rate = s;
  rate.workload.arrivals.rate_per_s *= 2;
  const RequestTable faster = Requests(rate);
  EXPECT_EQ(faster.prompt_tokens, before.prompt_tokens);
  EXPECT_EQ(faster.output_tokens, before.output_tokens);
  for (std::size_t i = 0; i < 500; ++i) {  // the same draws, scaled
    EXPECT_NEAR(static_cast<double>(faster.arrival[i]), static_cast<double>(before.arrival[i]) / 2,
                static_cast<double>(i + 1));
  }

  Scenario more = s;
  more.workload.requests = 800;
  const RequestTable longer = Requests(more);
  EXPECT_TRUE(std::equal(before.arrival.begin(), before.arrival.end(), longer.arrival.begin()));
  EXPECT_TRUE(std::equal(before.prompt_tokens.begin(), before.prompt_tokens.end(),
                         longer.prompt_tokens.begin()));

  Scenario seed = s;
  seed.seed = 2;
  EXPECT_NE(Requests(seed).arrival, before.arrival);
  EXPECT_NE(Requests(seed).prompt_tokens, before.prompt_tokens);
  EXPECT_NE(Requests(seed).output_tokens, before.output_tokens);
}

Trace ThreeRows() {
  Trace trace;
  trace.rows = {{0, 10, 1}, {500, 20, 2}, {300, 30, 3}};
  return trace;
}

TEST(Requests, TraceArrivals_BringAllRows) {
  Scenario s = Base(1000);
  s.workload.arrivals.process = ArrivalProcess::kTrace;
  s.workload.prompt_tokens = Lengths(LengthDistribution::kTrace);
  const RequestTable table = Requests(s, ThreeRows());
  EXPECT_EQ(table.arrival, (std::vector<TimeNs>{0, 500, 300}));
  EXPECT_EQ(table.prompt_tokens, (std::vector<std::int32_t>{10, 20, 30}));
  EXPECT_EQ(table.output_tokens, (std::vector<std::int32_t>{64, 64, 64}));
}

TEST(Requests, TraceLengths_AreTakenInTurn) {
  Scenario s = Base(7);
  s.workload.output_tokens = Lengths(LengthDistribution::kTrace);
  EXPECT_EQ(Requests(s, ThreeRows()).output_tokens,
            (std::vector<std::int32_t>{1, 2, 3, 1, 2, 3, 1}));
}

TEST(Requests, MissingTrace_IsAnIssue) {
  Scenario s = Base(10);
  s.workload.prompt_tokens = Lengths(LengthDistribution::kTrace);
  const Result<RequestTable> table = MakeRequests(s, {});
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.issues()[0].path, "/workload");
}

TEST(Requests, RateBeyondTheClock_IsAnIssue) {
  Scenario s = Base(1000);
  s.workload.arrivals.rate_per_s = 1e-6;
  const Result<RequestTable> table = MakeRequests(s, {});
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.issues()[0].path, "/workload/arrivals/rate_per_s");
  s.workload.requests = 50;
  EXPECT_TRUE(MakeRequests(s, {}).ok());
}

}  // namespace
}  // namespace servecast
