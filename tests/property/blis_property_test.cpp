// What must hold of BLIS's rules in any scenario: the run ends, adds up, and is the same in slices.
// The cases are the differential test's, with times in microseconds instead of nanoseconds.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/hooks.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing::blis_property_test {
namespace {

constexpr std::uint64_t kCases = 400;

void Scale(std::vector<TimeNs>& times) {
  for (TimeNs& time : times) {
    if (time > 0 && time < kClockEnd / 1000) time *= 1000;
  }
}

RandomCase CaseInMicroseconds(std::uint64_t seed, Compat compat) {
  RandomCase c = MakeRandomCase(seed);
  c.engine.compat = compat;
  // These engines serve no closed loops: who waits for a client comes with the one before.
  for (std::size_t i = 0; i < c.requests.pause.size(); ++i) {
    if (c.requests.pause[i] >= 0) c.requests.arrival[i] = c.requests.arrival[0];
  }
  c.requests.pause.clear();
  c.requests.due.clear();
  Scale(c.requests.arrival);
  Scale(c.requests.think);
  Scale(c.requests.timeout);
  if (c.horizon) c.horizon = *c.horizon * 1000;
  RandomLatencySpec& l = c.latency;
  l.physics.reset();  // not with BLIS's rules
  for (TimeNs* time : {&l.base, &l.per_decode, &l.per_decode_context, &l.per_chunk_token,
                       &l.per_chunk_context, &l.per_chunk_prompt, &l.per_chunk_sample,
                       &l.enqueue_base, &l.enqueue_per_token, &l.output_token_delay}) {
    *time *= 1000;
  }
  l.enqueue_scramble = 0;
  return c;
}

Report RunCase(const RandomCase& c, std::int64_t slice) {
  Result<EngineRun> run =
      RunEngine(EngineCaseOf(c), MakeLatency(c), {.slice = slice, .observe = false});
  return std::move(Good(std::move(run)).report);
}

// The first thing about a request that cannot be; "" when none.
std::string WrongRequest(const Report& r, const RandomCase& c, bool ordered) {
  for (std::size_t i = 0; i < c.requests.arrival.size(); ++i) {
    const double tokens = r.ColumnOf("output_tokens")[i];
    const double delay = r.ColumnOf("scheduling_delay_ms")[i], ttft = r.ColumnOf("ttft_ms")[i],
                 e2e = r.ColumnOf("e2e_ms")[i];
    const bool completed = r.ColumnOf("state")[i] == 3;
    if (tokens > c.requests.output_tokens[i]) return "more tokens than it wants";
    if (completed && r.length_capped == 0 && tokens < c.requests.output_tokens[i]) {
      return "completed before its last token";
    }
    if (completed != !std::isnan(e2e)) return "an end without completion, or none with it";
    if (e2e < ttft) return "its end before its first token";
    if (ordered && ttft < delay) return "its first token before its step";
    for (const double ms : {delay, ttft, e2e}) {
      if (std::isnan(ms) || ms > 1e6) continue;  // a double has no more digits
      if (std::abs(ms * 1e3 - std::nearbyint(ms * 1e3)) > 1e-6) {
        return "a time between microseconds";
      }
    }
  }
  return "";
}

TEST(BlisProperty, RandomScenarios_EndAddUpAndDoNotDependOnSlices) {
  std::int64_t preemptions = 0, dropped = 0, capped = 0, timed_out = 0, hits = 0, unfinished = 0;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    for (const Compat compat : {Compat::kBlisFebruary2026, Compat::kBlis}) {
      const bool today = compat == Compat::kBlis;
      const RandomCase c = CaseInMicroseconds(seed, compat);
      const std::string where = std::to_string(seed) + (today ? " today" : " february");
      const Report r = RunCase(c, INT64_MAX);
      ASSERT_EQ(BrokenConservation(r), "") << where;
      ASSERT_EQ(WrongRequest(r, c, today), "") << where;
      ASSERT_LE(r.kv_peak_usage, 1) << where;
      ASSERT_LE(r.binding.busy_share, 1 + 1e-12) << where;
      ASSERT_TRUE(c.horizon || r.queued + r.running == 0) << where;
      ASSERT_EQ(RunCase(c, 1 + static_cast<std::int64_t>(seed % 5)).fingerprint, r.fingerprint)
          << where;
      preemptions += r.preemptions;
      dropped += r.dropped;
      capped += r.length_capped;
      timed_out += r.timed_out;
      hits += r.prefix_cache.hit_blocks;
      unfinished += r.queued + r.running;
    }
  }
  // A test whose cases contain nothing proves nothing.
  for (const std::int64_t count : {preemptions, dropped, capped, timed_out, hits, unfinished}) {
    EXPECT_GT(count, 0);
  }
}

}  // namespace
}  // namespace servecast::testing::blis_property_test
