// Arrival processes and rates that change: moments and distributions with fixed seeds, small cases
// by hand, and parameters at the ends of their ranges.
#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/documents.h"
#include "core/statistics.h"
#include "gtest/gtest.h"
#include "servecast/workload_spec.h"
#include "workload/workload.h"

namespace servecast::testing {
namespace {

ArrivalSpec Process(ArrivalProcess process, double cv = 1) {
  ArrivalSpec spec;
  spec.process = process;
  spec.cv = cv;
  return spec;
}

std::vector<double> Starts(const ArrivalSpec& spec, double rate, int n) {
  ArrivalStream stream(spec, rate, 1);
  std::vector<double> starts;
  for (int i = 0; i < n; ++i) starts.push_back(static_cast<double>(*stream.Next()) * 1e-9);
  return starts;
}

// In mean gaps.
std::vector<double> Gaps(const ArrivalSpec& spec, int n) {
  std::vector<double> gaps = Starts(spec, 10, n);
  for (std::size_t i = gaps.size() - 1; i > 0; --i) gaps[i] -= gaps[i - 1];
  for (double& gap : gaps) gap *= 10;
  return gaps;
}

// The regularised lower incomplete gamma function, by its series.
double GammaCdf(double shape, double x) {
  if (x <= 0) return 0;
  double term = std::exp(shape * std::log(x) - x - std::lgamma(shape + 1)), sum = 0;
  for (double k = 1; term > 1e-17 * sum; ++k) {
    sum += term;
    term *= x / (shape + k);
  }
  return sum;
}

TEST(Gamma, Gaps_HaveTheMomentsAndTheDistribution) {
  constexpr int kN = 100000;
  for (const double cv : {0.3, 0.5, 1.0, 2.0, 4.0}) {
    const std::vector<double> gaps = Gaps(Process(ArrivalProcess::kGamma, cv), kN);
    const Moments m = MomentsOf(gaps);
    EXPECT_NEAR(m.mean, 1, 4 * cv / std::sqrt(kN)) << cv;
    // var(s^2) = sd^4 (kurtosis + 2) / n, excess kurtosis of gamma: 6 cv^2.
    EXPECT_NEAR(m.sd * m.sd / (cv * cv), 1, 4 * std::sqrt((6 * cv * cv + 2) / kN)) << cv;
    const double shape = 1 / (cv * cv);
    const auto cdf = [shape](double x) { return GammaCdf(shape, x * shape); };
    // Times are whole ns: beyond cv 1 many gaps round to none, so no distribution function fits.
    if (cv <= 1) {
      EXPECT_LT(KolmogorovSmirnov(gaps, cdf), kKsOnceIn10000) << cv;
    }
    for (const double x : {1e-3, 0.01, 0.1, 1.0, 5.0, 20.0}) {
      const double p = cdf(x);
      const auto below = std::count_if(gaps.begin(), gaps.end(), [x](double g) { return g < x; });
      EXPECT_NEAR(static_cast<double>(below) / kN, p, 4 * std::sqrt(p * (1 - p) / kN) + 1e-9)
          << cv << " " << x;
    }
  }
}

TEST(Weibull, Gaps_HaveTheMomentsAndTheDistribution) {
  constexpr int kN = 100000;
  for (const double cv : {0.3, 1.0, 2.0}) {
    const std::vector<double> gaps = Gaps(Process(ArrivalProcess::kWeibull, cv), kN);
    // The shape k of this cv, from the C library's gamma function.
    double low = 0.1, high = 20;
    for (int i = 0; i < 100; ++i) {
      const double k = (low + high) / 2;
      const double ratio = std::exp(std::lgamma(1 + 2 / k) - 2 * std::lgamma(1 + 1 / k));
      (ratio > 1 + cv * cv ? low : high) = k;
    }
    const double scale = 1 / std::tgamma(1 + 1 / low);
    const Moments m = MomentsOf(gaps);
    EXPECT_NEAR(m.mean, 1, 4 * cv / std::sqrt(kN)) << cv;
    EXPECT_NEAR(m.sd / cv, 1, 0.06) << cv;
    EXPECT_LT(
        KolmogorovSmirnov(gaps, [&](double x) { return 1 - std::exp(-std::pow(x / scale, low)); }),
        kKsOnceIn10000)
        << cv;
  }
}

TEST(UniformGaps, AreBetweenNothingAndTwice) {
  const std::vector<double> gaps = Gaps(Process(ArrivalProcess::kUniform), 50000);
  EXPECT_LT(KolmogorovSmirnov(gaps, [](double x) { return std::clamp(x / 2, 0.0, 1.0); }),
            kKsOnceIn10000);
}

TEST(Static, AllArriveAtZero) {
  const Report report = RunToEnd(Changed({"workload.arrivals.process=static"}));
  for (const double arrival : report.ColumnOf("arrival_s")) EXPECT_EQ(arrival, 0);
}

TEST(Piecewise, ConstantArrivals_AreWhereTheAreaSays) {
  ArrivalSpec spec = Process(ArrivalProcess::kConstant);
  spec.profile = RateProfile::kPiecewise;
  spec.rate_factors = {{0, 1}, {2, 0}, {5, 4}};
  // Two in 2 s, none until 5, then four a second.
  const std::vector<double> expected = {0, 1, 5, 5.25, 5.5, 5.75, 6};
  EXPECT_EQ(Starts(spec, 1, 7), expected);
  spec.spikes = {{1, 1, 2}, {1.5, 0.25, 2}, {6, 100, 0}};
  // From 1 to 1.5 two a second, then four for a quarter, then two; none from 6 to 106.
  const std::vector<double> spiky = {0, 1, 1.5, 1.75, 5.125, 5.375, 5.625, 5.875, 106.125};
  const std::vector<double> found = Starts(spec, 1, 9);
  for (std::size_t i = 0; i < spiky.size(); ++i) EXPECT_NEAR(found[i], spiky[i], 1e-9) << i;
}

TEST(Piecewise, RateZeroAtFirst_WaitsForTheFirstThatIsNot) {
  ArrivalSpec spec = Process(ArrivalProcess::kConstant);
  spec.profile = RateProfile::kPiecewise;
  spec.rate_factors = {{0, 0}, {10, 1}};
  EXPECT_EQ(Starts(spec, 2, 3), (std::vector<double>{10, 10.5, 11}));
}

TEST(Ramp, ConstantArrivals_FollowTheParabola) {
  ArrivalSpec spec = Process(ArrivalProcess::kConstant);
  spec.profile = RateProfile::kRamp;
  spec.ramp_from = 0;
  spec.ramp_to = 2;
  spec.ramp_s = 10;
  const std::vector<double> found = Starts(spec, 1, 31);
  // Area 0.1 t^2 up to 10 at t = 10, then 2 a second.
  for (int i = 0; i <= 10; ++i) EXPECT_NEAR(found[std::size_t(i)], std::sqrt(10.0 * i), 1e-9) << i;
  for (int i = 10; i <= 30; ++i) EXPECT_NEAR(found[std::size_t(i)], 10 + (i - 10) / 2.0, 1e-9) << i;
  spec.ramp_from = 4;  // down
  spec.ramp_to = 1;
  const std::vector<double> down = Starts(spec, 1, 26);
  for (int i = 0; i <= 25; ++i) {
    const double t = down[std::size_t(i)];
    EXPECT_NEAR(4 * t - 0.15 * t * t, i, 1e-7) << i;
  }
}

TEST(Diurnal, Arrivals_FollowTheSinusoid) {
  constexpr int kN = 200000;
  ArrivalSpec spec = Process(ArrivalProcess::kPoisson);
  spec.profile = RateProfile::kDiurnal;
  spec.peak_hour = 14;
  spec.peak_to_trough = 5;
  const std::vector<double> starts = Starts(spec, 1, kN);
  // By hour of the day, over whole days.
  std::vector<double> counts(24), expected(24);
  double whole = 0;
  for (const double t : starts) {
    if (t >= 2 * 86400) break;
    ++counts[static_cast<std::size_t>(std::fmod(t / 3600, 24))];
    ++whole;
  }
  const double turn = 2 * std::acos(-1.0) / 24, swing = 4.0 / 6;
  for (int h = 0; h < 24; ++h) {
    const auto area = [&](double t) { return t + swing / turn * std::sin(turn * (t - 14)); };
    expected[std::size_t(h)] = 2 * 3600 * (area(h + 1) - area(h));
  }
  EXPECT_NEAR(whole, 2 * 86400, 4 * std::sqrt(2 * 86400));
  EXPECT_LT(ChiSquare(counts, expected), ChiSquareOnceIn10000(24));
  EXPECT_NEAR(*std::max_element(expected.begin(), expected.end()) /
                  *std::min_element(expected.begin(), expected.end()),
              5, 0.2);  // hours are wide
}

TEST(Diurnal, ConstantArrivals_HaveEqualAreasBetweenThem) {
  for (const double ratio : {1.0, 3.0, 100.0, 1e6}) {
    ArrivalSpec spec = Process(ArrivalProcess::kConstant);
    spec.profile = RateProfile::kDiurnal;
    spec.peak_to_trough = ratio;
    spec.period_h = 1;
    spec.peak_hour = 0.3;
    const double swing = (ratio - 1) / (ratio + 1), turn = 2 * std::acos(-1.0) / 3600;
    const auto area = [&](double t) { return t + swing / turn * std::sin(turn * (t - 1080)); };
    const std::vector<double> starts = Starts(spec, 0.1, 2000);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      ASSERT_NEAR(area(starts[i]) - area(0), 10.0 * static_cast<double>(i), 1e-6) << ratio << i;
    }
  }
}

TEST(Profile, FlatInDisguise_IsFlat) {
  const ArrivalSpec plain = Process(ArrivalProcess::kPoisson);
  ArrivalSpec spec = plain;
  spec.profile = RateProfile::kPiecewise;
  spec.rate_factors = {{0, 1}, {7, 1}};
  const std::vector<double> a = Starts(plain, 10, 1000), b = Starts(spec, 10, 1000);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);  // roundings add up
}

// Arrivals ascend and fit the clock, or are an issue, and no draw takes long.
TEST(Arrivals, EndsOfEveryRange_EndWell) {
  for (const char* process : {"poisson", "constant", "gamma", "weibull", "uniform"}) {
    for (const char* rate : {"0.000001", "1", "1000000"}) {
      for (const char* more :
           {"", "profile=diurnal&peak_to_trough=1000000&period_h=0.001&peak_hour=10000",
            "profile=diurnal&peak_to_trough=1000000&period_h=10000&peak_hour=0",
            "profile=ramp&ramp_from=0&ramp_to=0.000001&ramp_s=100000000",
            "profile=ramp&ramp_from=1000000&ramp_to=0.000001&ramp_s=0.001",
            "profile=piecewise&rate_factors=[[0,0],[100000000,1000000]]",
            "spikes=[[0,100000000,0]]", "spikes=[[0,100000000,1000000],[0,100000000,1000000]]"}) {
        for (const char* cv : {"0.01", "100"}) {
          const std::string name = process;
          std::vector<std::string> set = {"workload.arrivals.process=" + name,
                                          std::string("workload.arrivals.rate_per_s=") + rate};
          if (name == "gamma" || name == "weibull") {
            set.push_back(std::string("workload.arrivals.cv=") + cv);
          }
          std::string rest = more;
          while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('&'), rest.size());
            set.push_back("workload.arrivals." + rest.substr(0, end));
            rest = rest.substr(std::min(end + 1, rest.size()));
          }
          const Result<RequestTable> table = MakeRequests(Parsed(Changed(set)), {});
          SCOPED_TRACE(name + " " + rate + " " + more + " " + cv);
          if (!table.ok()) {
            EXPECT_EQ(table.issues()[0].path, "/workload/arrivals/rate_per_s");
            continue;
          }
          EXPECT_GE(table.value().arrival.front(), 0);
          EXPECT_TRUE(std::is_sorted(table.value().arrival.begin(), table.value().arrival.end()));
          EXPECT_LE(static_cast<double>(table.value().arrival.back()), kLatestNs);
        }
      }
    }
  }
}

}  // namespace
}  // namespace servecast::testing
