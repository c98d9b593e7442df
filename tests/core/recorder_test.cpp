// The recorder: integrals and counts add up exactly however steps are cut, and however often the
// bins of the series are folded.
#include "metrics/recorder.h"

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace servecast {
namespace {

struct Sums {
  WideInt running = 0, waiting = 0, kv_blocks = 0, batch_tokens = 0;
  std::int64_t output_tokens = 0, preemptions = 0;
};

Sums SumOf(const std::vector<SeriesBin>& bins) {
  Sums sums;
  for (const SeriesBin& bin : bins) {
    sums.running += bin.running;
    sums.waiting += bin.waiting;
    sums.kv_blocks += bin.kv_blocks;
    sums.batch_tokens += bin.batch_tokens;
    sums.output_tokens += bin.output_tokens;
    sums.preemptions += bin.preemptions;
  }
  return sums;
}

// Steps of the given typical length, with idle gaps, levels, queue changes and preemptions.
void Drive(Recorder& recorder, Sums& expected, TimeNs typical, int steps, TimeNs* now) {
  TimeNs time = 0, waiting_since = 0;
  std::int64_t waiting = 0;
  for (int i = 0; i < steps; ++i) {
    const std::uint64_t dice = RandomBits(4, Stream::kArrival, i);
    if (dice % 11 == 0)
      time += static_cast<TimeNs>((dice >> 8) % static_cast<std::uint64_t>(typical));
    const auto queue = static_cast<std::int64_t>(dice % 7);
    expected.waiting += WideInt{waiting} * (time - waiting_since);
    recorder.Waiting(time, queue);
    waiting = queue;
    waiting_since = time;
    if (dice % 13 == 0) {
      recorder.Preempted(time);
      ++expected.preemptions;
    }
    const auto duration =
        1 + static_cast<TimeNs>((dice >> 20) % static_cast<std::uint64_t>(2 * typical));
    const StepLevels levels = {static_cast<std::int64_t>(dice % 5),
                               static_cast<std::int64_t>(dice % 101),
                               static_cast<std::int64_t>(dice % 31)};
    const auto sampled = static_cast<std::int64_t>(dice % 3);
    recorder.Step(time, time + duration, levels, sampled, StepBound::kCompute, BlockedBy::kNothing);
    expected.running += WideInt{levels.running} * duration;
    expected.kv_blocks += WideInt{levels.kv_blocks} * duration;
    expected.batch_tokens += WideInt{levels.batch_tokens} * duration;
    expected.output_tokens += sampled;
    time += duration;
  }
  expected.waiting += WideInt{waiting} * (time - waiting_since);
  *now = time;
}

TEST(Recorder, BinsOfAnyWidth_KeepSumsExactly) {
  // From steps of which thousands share a bin to steps that span many, folding the bins 0 to 30
  // times.
  for (const TimeNs typical :
       {TimeNs{1000}, TimeNs{1'000'000}, TimeNs{50'000'000}, TimeNs{3'000'000'000'000}}) {
    Recorder recorder(0);
    Sums expected;
    TimeNs now = 0, width = 0;
    Drive(recorder, expected, typical, 3000, &now);
    const std::vector<SeriesBin> bins = recorder.BinsUpTo(now, &width);
    const Sums found = SumOf(bins);
    EXPECT_TRUE(found.running == expected.running) << typical;
    EXPECT_TRUE(found.waiting == expected.waiting) << typical;
    EXPECT_TRUE(found.kv_blocks == expected.kv_blocks) << typical;
    EXPECT_TRUE(found.batch_tokens == expected.batch_tokens) << typical;
    EXPECT_EQ(found.output_tokens, expected.output_tokens) << typical;
    EXPECT_EQ(found.preemptions, expected.preemptions) << typical;
    EXPECT_LE(bins.size(), static_cast<std::size_t>(Recorder::kBins));
    EXPECT_EQ(width & (width - 1), 0) << "bins double";
    EXPECT_GE(width * static_cast<TimeNs>(bins.size()), now);
    EXPECT_LT(width * (static_cast<TimeNs>(bins.size()) - 1), now);
    EXPECT_EQ(recorder.output_tokens(), expected.output_tokens);
    EXPECT_EQ(recorder.preemptions(), expected.preemptions);
    EXPECT_EQ(recorder.steps(), 3000);
  }
}

// Of one bin, whatever the others have that are added to it.
TEST(Recorder, WithoutASeries_SumsAreTheSame) {
  Recorder plain(0, {}, {.series = false, .gaps = false}), sum = plain, other(0);
  Sums expected;
  TimeNs now = 0, width = 0;
  Drive(plain, expected, 1'000'000, 3000, &now);
  plain.InterTokenGap(now, 5, 3);
  plain.StepDelay(now, 5, 3);
  EXPECT_EQ(plain.itl().total_weight(), 0);
  EXPECT_EQ(plain.step_delays().total_weight(), 0);
  Drive(other, expected, 1'000'000, 3000, &now);
  sum.Add(plain, now);
  sum.Add(other, now);
  const std::vector<SeriesBin> bins = sum.BinsUpTo(now, &width);
  ASSERT_EQ(bins.size(), 1U);
  const Sums found = SumOf(bins);
  EXPECT_TRUE(found.running == expected.running);
  EXPECT_TRUE(found.waiting == expected.waiting);
  EXPECT_TRUE(found.kv_blocks == expected.kv_blocks);
  EXPECT_EQ(found.output_tokens, expected.output_tokens);
  EXPECT_EQ(found.preemptions, expected.preemptions);
  EXPECT_EQ(sum.steps(), 6000);
}

TEST(Recorder, OneStepAcrossManyBins_GivesEachItsShare) {
  Recorder recorder(0);
  const TimeNs bin = TimeNs{1} << 20;
  recorder.Step(bin / 2, 3 * bin + bin / 4, {2, 10, 5}, 7, StepBound::kCompute,
                BlockedBy::kNothing);
  TimeNs width = 0;
  const std::vector<SeriesBin> bins = recorder.BinsUpTo(3 * bin + bin / 4, &width);
  ASSERT_EQ(width, bin);
  ASSERT_EQ(bins.size(), 4u);
  const TimeNs inside[] = {bin / 2, bin, bin, bin / 4};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(bins[i].running == WideInt{2} * inside[i]) << i;
    EXPECT_TRUE(bins[i].kv_blocks == WideInt{10} * inside[i]) << i;
    EXPECT_EQ(bins[i].output_tokens, i == 3 ? 7 : 0) << "tokens come at the step's end";
  }
}

TEST(Recorder, WorkOfALongStep_IsSpreadOverItsBins) {
  Recorder recorder(0, {0, 2 * kStepUnit, 3 * kStepUnit});
  const TimeNs unit = TimeNs{1} << 20;
  StepLevels levels = {1, 1, 1000};
  levels.decode_keys = 400;
  recorder.Step(unit / 2, 4 * unit + unit / 2, levels, 0, StepBound::kCompute, BlockedBy::kNothing,
                {8000, 600, kStepUnit});
  recorder.Step(4 * unit + unit / 2, 5 * unit, {1, 1, 1, 1}, 1, StepBound::kCompute,
                BlockedBy::kNothing);
  TimeNs width = 0;
  const std::vector<SeriesBin> bins = recorder.BinsUpTo(5 * unit, &width);
  ASSERT_EQ(bins.size(), 5u);
  EXPECT_EQ(bins[0].work.tokens, 125);
  EXPECT_EQ(bins[1].work.tokens, 250);
  EXPECT_EQ(static_cast<std::int64_t>(bins[2].work.prefill_pairs), 2000);
  EXPECT_EQ(static_cast<std::int64_t>(bins[3].work.prefill_keys), 150);
  EXPECT_EQ(bins[1].work.steps, kStepUnit / 4);
  EXPECT_EQ(bins[1].work.without_head, kStepUnit / 4);
  Work sum;
  for (const SeriesBin& bin : bins) sum.Add(bin.work);
  EXPECT_EQ(sum.tokens, 1001);
  EXPECT_EQ(static_cast<std::int64_t>(sum.decode_keys), 401);
  EXPECT_EQ(static_cast<std::int64_t>(sum.prefill_keys), 600);
  EXPECT_EQ(static_cast<std::int64_t>(sum.prefill_pairs), 8000);
  EXPECT_EQ(sum.steps, 2 * kStepUnit);
  EXPECT_EQ(sum.without_head, kStepUnit);
  EXPECT_EQ(static_cast<std::int64_t>(sum.experts), 5 * kStepUnit);  // all, and those of one token
}

TEST(Recorder, EndOnABinsEdge_KeepsTheLastTokens) {
  Recorder recorder(0);
  const TimeNs bin = TimeNs{1} << 20;
  recorder.Step(0, 2 * bin, {1, 1, 1}, 5, StepBound::kCompute, BlockedBy::kNothing);
  TimeNs width = 0;
  const std::vector<SeriesBin> bins = recorder.BinsUpTo(2 * bin, &width);
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_EQ(bins[1].output_tokens, 5);
}

TEST(Recorder, NothingHappened_HasNoBins) {
  TimeNs width = 0;
  EXPECT_TRUE(Recorder(0).BinsUpTo(0, &width).empty());
}

TEST(Recorder, LookingInBetween_ChangesNothing) {
  // A snapshot between slices must not disturb what follows.
  Recorder watched(0), alone(0);
  TimeNs now = 0, width = 0;
  for (int i = 0; i < 500; ++i) {
    const TimeNs start = i * 3'000'000LL;
    for (Recorder* r : {&watched, &alone}) {
      r->Waiting(start, i % 4);
      r->Step(start, start + 2'900'000, {i % 3, i % 50, i % 20}, i % 2, StepBound::kBandwidth,
              BlockedBy::kSeats);
      r->InterTokenGap(start + 2'900'000, 2'900'000 + i % 5, 1 + i % 3);
    }
    now = start + 2'900'000;
    if (i % 7 == 0) {
      (void)watched.BinsUpTo(now, &width);
      (void)watched.itl().Sorted();
    }
  }
  TimeNs other_width = 0;
  const std::vector<SeriesBin> a = watched.BinsUpTo(now, &width),
                               b = alone.BinsUpTo(now, &other_width);
  ASSERT_EQ(width, other_width);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].running == b[i].running && a[i].waiting == b[i].waiting &&
                a[i].kv_blocks == b[i].kv_blocks && a[i].output_tokens == b[i].output_tokens);
  }
}

TEST(Recorder, Warmup_LeavesEarlyGapsAndTokensOut) {
  Recorder recorder(1000);
  recorder.Step(0, 1000, {1, 1, 1}, 3, StepBound::kCompute, BlockedBy::kNothing);
  recorder.Step(1000, 1500, {1, 1, 1}, 4, StepBound::kCompute, BlockedBy::kNothing);
  recorder.InterTokenGap(999, 10, 1);
  recorder.InterTokenGap(1500, 500, 2);
  EXPECT_EQ(recorder.output_tokens(), 7);
  EXPECT_EQ(recorder.measured_tokens(), 4);
  EXPECT_EQ(recorder.itl().total_weight(), 2);
}

TEST(Recorder, Reasons_AddUpByTime) {
  Recorder recorder(0);
  recorder.Step(0, 10, {1, 5, 1}, 1, StepBound::kCompute, BlockedBy::kKvBlocks);
  recorder.Step(10, 30, {1, 9, 1}, 1, StepBound::kBandwidth, BlockedBy::kKvBlocks);
  recorder.Step(100, 105, {1, 7, 1}, 1, StepBound::kBandwidth, BlockedBy::kNothing);
  EXPECT_EQ(recorder.busy_ns(), 35);
  EXPECT_EQ(recorder.bound_ns(StepBound::kCompute), 10);
  EXPECT_EQ(recorder.bound_ns(StepBound::kBandwidth), 25);
  EXPECT_EQ(recorder.blocked_ns(BlockedBy::kKvBlocks), 30);
  EXPECT_EQ(recorder.blocked_ns(BlockedBy::kNothing), 5);
  EXPECT_EQ(recorder.peak_kv_blocks(), 9);
}

}  // namespace
}  // namespace servecast
