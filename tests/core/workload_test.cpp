// Requests: moments of the distributions with fixed seeds, exact spacing, and common random
// numbers (changing one thing leaves everything else as it was).
#include "workload/workload.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

Scenario Base(std::int64_t requests) {
  Scenario s;
  s.workload->requests = requests;
  s.workload->arrivals.rate_per_s = 20;
  s.workload->prompt_tokens.value = 512;
  s.workload->output_tokens.value = 64;
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

ClassSpec Class(const char* name, double share, std::int64_t priority) {
  ClassSpec c;
  c.name = name;
  c.share = share;
  c.priority = priority;
  return c;
}

TEST(RequestDrawing, AnyParts_GiveTheSameTable) {
  Scenario s = Base(2000);
  s.workload->prompt_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload->prompt_tokens.median = 300;
  s.workload->prompt_tokens.p99 = 3000;
  s.workload->sessions.turns = 3;
  s.workload->prefix.groups = 7;
  s.workload->prefix.tokens = 100;
  s.workload->classes = {Class("a", 3, 1), Class("b", 1, 0)};
  const RequestTable whole = Requests(s);
  for (const std::int64_t rows : {1, 7, 1000, 1'000'000}) {
    const Trace none;
    Result<RequestDrawing> begun = RequestDrawing::Begin(s, none);
    ASSERT_TRUE(begun.ok());
    RequestDrawing drawing = std::move(begun.value());
    double before = -1;
    for (bool all = false; !all;) {
      all = drawing.Draw(rows);
      EXPECT_GT(drawing.Progress(), before);
      before = drawing.Progress();
      EXPECT_EQ(all, before == 1);
    }
    const RequestTable table = std::move(drawing.Take().value());
    EXPECT_EQ(table.arrival, whole.arrival);
    EXPECT_EQ(table.prompt_tokens, whole.prompt_tokens);
    EXPECT_EQ(table.output_tokens, whole.output_tokens);
    EXPECT_EQ(table.think, whole.think);
    EXPECT_EQ(table.of_class, whole.of_class);
    EXPECT_EQ(table.priority, whole.priority);
    EXPECT_EQ(table.content, whole.content);
    ASSERT_EQ(table.segments.size(), whole.segments.size());
  }
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
  s.workload->arrivals.process = ArrivalProcess::kConstant;
  s.workload->arrivals.rate_per_s = 3;  // a third of a second is no whole number of ns
  const RequestTable table = Requests(s);
  for (std::size_t i = 0; i < table.arrival.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(table.arrival[i]), static_cast<double>(i) * 1e9 / 3, 0.51) << i;
  }
  EXPECT_EQ(table.arrival[999], 333'000'000'000);  // rounding does not add up
}

TEST(Uniform, Lengths_AreEquallyLikelyIntegers) {
  constexpr std::int64_t kN = 60000;
  Scenario s = Base(kN);
  s.workload->prompt_tokens = Lengths(LengthDistribution::kUniform);
  s.workload->prompt_tokens.min = 5;
  s.workload->prompt_tokens.max = 16;
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
  s.workload->output_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload->output_tokens.median = 1000;
  s.workload->output_tokens.p99 = 8000;
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
  s.workload->prompt_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload->prompt_tokens.median = 100;
  s.workload->prompt_tokens.p99 = 1000;
  s.workload->prompt_tokens.min = 50;
  s.workload->prompt_tokens.max = 400;
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
  s.workload->prompt_tokens = spec;
  const std::vector<double> lengths = Sorted(Requests(s).prompt_tokens);
  EXPECT_NEAR(Quantile(lengths, 0.25), 55, 2);
  EXPECT_EQ(Quantile(lengths, 0.6), 100);
  EXPECT_NEAR(Quantile(lengths, 0.95), 600, 30);
}

TEST(Requests, OneKnobChanged_LeavesTheOtherDraws) {
  Scenario s = Base(500);
  s.workload->prompt_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload->output_tokens = Lengths(LengthDistribution::kLognormal);
  const RequestTable before = Requests(s);

  Scenario outputs = s;
  outputs.workload->output_tokens.median = 20;
  outputs.workload->output_tokens.p99 = 30;
  EXPECT_EQ(Requests(outputs).arrival, before.arrival);
  EXPECT_EQ(Requests(outputs).prompt_tokens, before.prompt_tokens);
  EXPECT_NE(Requests(outputs).output_tokens, before.output_tokens);

  Scenario rate = s;
  rate.workload->arrivals.rate_per_s *= 2;
  const RequestTable faster = Requests(rate);
  EXPECT_EQ(faster.prompt_tokens, before.prompt_tokens);
  EXPECT_EQ(faster.output_tokens, before.output_tokens);
  for (std::size_t i = 0; i < 500; ++i) {  // the same draws, scaled
    EXPECT_NEAR(static_cast<double>(faster.arrival[i]), static_cast<double>(before.arrival[i]) / 2,
                static_cast<double>(i + 1));
  }

  Scenario more = s;
  more.workload->requests = 800;
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
  s.workload->arrivals.process = ArrivalProcess::kTrace;
  s.workload->prompt_tokens = Lengths(LengthDistribution::kTrace);
  const RequestTable table = Requests(s, ThreeRows());
  EXPECT_EQ(table.arrival, (std::vector<TimeNs>{0, 500, 300}));
  EXPECT_EQ(table.prompt_tokens, (std::vector<std::int32_t>{10, 20, 30}));
  EXPECT_EQ(table.output_tokens, (std::vector<std::int32_t>{64, 64, 64}));
}

TEST(Requests, TraceLengths_AreTakenInTurn) {
  Scenario s = Base(7);
  s.workload->output_tokens = Lengths(LengthDistribution::kTrace);
  EXPECT_EQ(Requests(s, ThreeRows()).output_tokens,
            (std::vector<std::int32_t>{1, 2, 3, 1, 2, 3, 1}));
}

TEST(Requests, RateScale_DividesATracesTimes) {
  Scenario s = Base(1000);
  s.workload->arrivals.process = ArrivalProcess::kTrace;
  s.workload->arrivals.rate_scale = 4;
  Trace trace = ThreeRows();
  trace.rows.push_back({10, 1, 1});
  trace.rows.push_back({14, 1, 1});
  EXPECT_EQ(Requests(s, trace).arrival, (std::vector<TimeNs>{0, 125, 75, 2, 4}));  // half to even
  s.workload->arrivals.rate_scale = 1;
  trace.rows.push_back({(TimeNs{1} << 62) - 1, 1, 1});  // more than a double holds
  EXPECT_EQ(Requests(s, trace).arrival[5], (TimeNs{1} << 62) - 1);
  s.workload->arrivals.rate_scale = 0.5;
  const Result<RequestTable> table = MakeRequests(s, trace);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.issues()[0].path, "/workload/arrivals/rate_scale");
}

TEST(Requests, PlainWorkload_HasNoOptionalColumns) {
  Scenario s = Base(100);
  const auto expect_none = [](const RequestTable& table) {
    EXPECT_TRUE(table.think.empty() && table.priority.empty() && table.ttft_deadline.empty() &&
                table.timeout.empty() && table.content.empty() && table.segments.empty());
  };
  expect_none(Requests(s));
  s.workload->classes = {Class("a", 1, 0), Class("b", 3, 0)};
  expect_none(Requests(s));
}

Scenario Sharing(std::int64_t requests, std::int64_t turns, std::int64_t groups) {
  Scenario s = Base(requests);
  s.workload->prompt_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload->output_tokens = Lengths(LengthDistribution::kLognormal);
  s.workload->sessions.turns = turns;
  s.workload->prefix = {groups, groups > 0 ? 300 : 0};
  return s;
}

TEST(Prefix, Prompts_BeginWithTheirGroups) {
  constexpr std::int64_t kN = 30000;
  const RequestTable plain = Requests(Sharing(kN, 1, 0)), table = Requests(Sharing(kN, 1, 3));
  EXPECT_EQ(table.arrival, plain.arrival);
  EXPECT_EQ(table.output_tokens, plain.output_tokens);
  EXPECT_TRUE(table.think.empty());
  ASSERT_EQ(table.segments.size(), 3u + kN);
  ASSERT_EQ(table.content.size(), std::size_t{kN});
  for (std::size_t g = 0; g < 3; ++g) EXPECT_EQ(table.segments[g].parent, -1);
  std::map<int, double> counts;
  std::vector<std::int32_t> groups;
  for (std::size_t i = 0; i < kN; ++i) {
    ASSERT_EQ(table.prompt_tokens[i], plain.prompt_tokens[i] + 300);
    ASSERT_EQ(table.content[i], static_cast<std::int32_t>(i) + 3);
    const ContentSegment& segment = table.segments[i + 3];
    ASSERT_EQ(segment.shared_tokens, 300);
    ++counts[segment.parent];
    groups.push_back(segment.parent);
  }
  ASSERT_EQ(counts.size(), 3u);
  for (const auto& [group, count] : counts) EXPECT_NEAR(count, kN / 3, 4 * 82);  // 4 sd
  // A longer prefix, or more requests, leave each in its group.
  Scenario longer = Sharing(kN + 10, 1, 3);
  longer.workload->prefix.tokens = 500;
  const RequestTable other = Requests(longer);
  for (std::size_t i = 0; i < kN; ++i) ASSERT_EQ(other.segments[i + 3].parent, groups[i]);
}

TEST(Sessions, Turns_CarryTheirHistory) {
  const RequestTable plain = Requests(Sharing(1000, 1, 0)), table = Requests(Sharing(1000, 3, 2));
  ASSERT_EQ(table.size(), 1000);
  ASSERT_EQ(table.think.size(), 1000u);
  EXPECT_EQ(table.output_tokens, plain.output_tokens);
  ASSERT_EQ(table.segments.size(), 2u + 334u);  // the last session has one turn
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto session = static_cast<std::int32_t>(i / 3);
    ASSERT_EQ(table.content[i], session + 2);
    if (i % 3 == 0) {  // sessions start as requests do without sessions
      ASSERT_EQ(table.arrival[i], plain.arrival[i / 3]);
      ASSERT_EQ(table.think[i], -1);
      ASSERT_EQ(table.prompt_tokens[i], 300 + plain.prompt_tokens[i]);
    } else {
      ASSERT_EQ(table.arrival[i], -1);
      ASSERT_EQ(table.think[i], 0);
      ASSERT_EQ(table.prompt_tokens[i],
                table.prompt_tokens[i - 1] + table.output_tokens[i - 1] + plain.prompt_tokens[i]);
    }
  }
  // Without groups a session has only itself.
  const RequestTable alone = Requests(Sharing(10, 4, 0));
  EXPECT_EQ(alone.content, (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2}));
  for (const ContentSegment& segment : alone.segments) EXPECT_EQ(segment.parent, -1);
}

TEST(Sessions, ThinkTimes_AreExponentialAndKeyedByRow) {
  constexpr std::int64_t kN = 50000;
  Scenario s = Sharing(kN, 5, 0);
  s.workload->sessions.think_time_s = 2;
  s.workload->arrivals.start = LoadStart::kTogether;
  const RequestTable table = Requests(s);
  double sum = 0, squares = 0, n = 0;
  for (const TimeNs think : table.think) {
    if (think < 0) continue;
    const double means = static_cast<double>(think) / 2e9;
    sum += means;
    squares += means * means;
    ++n;
  }
  EXPECT_EQ(n, kN * 4 / 5);
  EXPECT_NEAR(sum / n, 1, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 2, 4 * std::sqrt(20 / n));
  Scenario shorter = s;
  shorter.workload->sessions.turns = 2;
  const RequestTable other = Requests(shorter);
  EXPECT_EQ(other.think[1], table.think[1]);
  EXPECT_EQ(other.think[3], table.think[3]);
  EXPECT_EQ(other.think[2], -1);
}

TEST(Sessions, PromptsBeyondTheMost_AreTheMost) {
  Scenario s = Base(5);
  s.workload->prompt_tokens.value = 400'000'000;
  s.workload->output_tokens.value = 1'000'000'000;
  s.workload->prefix = {1, 700'000'000};
  s.workload->sessions.turns = 5;
  for (const std::int32_t prompt : Requests(s).prompt_tokens) EXPECT_EQ(prompt, 1'000'000'000);
}

TEST(Sessions, RateBeyondTheClock_CountsSessions) {
  Scenario s = Base(1000);
  s.workload->arrivals.rate_per_s = 1e-6;
  s.workload->sessions.turns = 10;
  EXPECT_TRUE(MakeRequests(s, {}).ok());
  s.workload->requests = 1010;
  EXPECT_FALSE(MakeRequests(s, {}).ok());
}

TEST(Classes, Sessions_AreDrawnByShare) {
  constexpr std::int64_t kN = 40000;
  Scenario s = Sharing(kN, 2, 0);
  const RequestTable before = Requests(s);
  s.workload->classes = {Class("a", 1, -2), Class("b", 3, 0)};
  s.workload->classes[1].ttft_deadline_ms = 0.5;
  s.workload->classes[1].timeout_s = 10;
  const RequestTable table = Requests(s);
  EXPECT_EQ(table.arrival, before.arrival);
  EXPECT_EQ(table.prompt_tokens, before.prompt_tokens);
  ASSERT_EQ(table.priority.size(), std::size_t{kN});
  double first = 0;
  for (std::size_t i = 0; i < kN; ++i) {
    const bool a = table.priority[i] == -2;
    first += a ? 1 : 0;
    ASSERT_EQ(table.priority[i], a ? -2 : 0);
    ASSERT_EQ(table.ttft_deadline[i], a ? kNever : 500'000);
    ASSERT_EQ(table.timeout[i], a ? kNever : 10 * kNsPerS);
    ASSERT_EQ(table.priority[i], table.priority[i - i % 2]) << "one class a session";
  }
  EXPECT_NEAR(first / kN, 0.25, 4 * std::sqrt(0.25 * 0.75 / (kN / 2)));
  // Only the columns that some class sets; shares are relative.
  s.workload->classes[1] = Class("b", 3, 0);
  EXPECT_TRUE(Requests(s).timeout.empty() && Requests(s).ttft_deadline.empty());
  s.workload->classes[0].share = 10;
  s.workload->classes[1].share = 30;
  EXPECT_EQ(Requests(s).priority, table.priority);
}

Trace ThreeSharing() {
  Trace trace = ThreeRows();
  trace.prefixes = {{-1, 0}, {0, 8}, {1, 20}};
  return trace;
}

TEST(Content, TracePrefixes_AreTheTree) {
  Scenario s = Base(8);
  s.workload->prompt_tokens = Lengths(LengthDistribution::kTrace);
  const RequestTable table = Requests(s, ThreeSharing());
  EXPECT_EQ(table.content, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  const int parents[] = {-1, 0, 1, 0, 1, 2, 0, 1};  // a row again: all of its prompt
  const int shared[] = {0, 8, 20, 10, 20, 30, 10, 20};
  ASSERT_EQ(table.segments.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(table.segments[i].parent, parents[i]) << i;
    EXPECT_EQ(table.segments[i].shared_tokens, shared[i]) << i;
  }
  // Prompts from elsewhere share nothing by the trace's ids.
  Scenario outputs = Base(8);
  outputs.workload->output_tokens = Lengths(LengthDistribution::kTrace);
  EXPECT_TRUE(Requests(outputs, ThreeSharing()).content.empty());
}

TEST(Content, PrefixBeforeATracesPrompts_NeedsATraceWithoutIds) {
  Scenario s = Base(4);
  s.workload->prompt_tokens = Lengths(LengthDistribution::kTrace);
  s.workload->prefix = {1, 100};
  const RequestTable table = Requests(s, ThreeRows());
  EXPECT_EQ(table.prompt_tokens, (std::vector<std::int32_t>{110, 120, 130, 110}));
  EXPECT_EQ(table.segments.size(), 5u);
  const Result<RequestTable> refused = MakeRequests(s, ThreeSharing());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.issues()[0].path, "/workload/prefix/groups");
}

TEST(Requests, MissingTrace_IsAnIssue) {
  Scenario s = Base(10);
  s.workload->prompt_tokens = Lengths(LengthDistribution::kTrace);
  const Result<RequestTable> table = MakeRequests(s, {});
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.issues()[0].path, "/workload");
}

TEST(Requests, RateBeyondTheClock_IsAnIssue) {
  Scenario s = Base(1000);
  s.workload->arrivals.rate_per_s = 1e-6;
  const Result<RequestTable> table = MakeRequests(s, {});
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.issues()[0].path, "/workload/arrivals/rate_per_s");
  s.workload->requests = 50;
  EXPECT_TRUE(MakeRequests(s, {}).ok());
}

}  // namespace
}  // namespace servecast
