// TensorRT-LLM's scheduler: equal to its reference on random cases, to the nanosecond, whatever the
// slices and whether observed or not. SERVECAST_CASES sets how many.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "metrics/time_split.h"
#include "servecast/scenario.h"
#include "testing/asked.h"
#include "testing/engine_run.h"
#include "testing/trtllm_cases.h"
#include "testing/trtllm_golden.h"
#include "testing/trtllm_reference.h"

namespace servecast::testing::trtllm_test {
namespace {

std::uint64_t Cases() { return static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 3000)); }

std::unique_ptr<LatencyModel> LatencyFor(std::uint64_t seed) {
  RandomCase priced;
  priced.latency = MakeTrtllmLatency(seed);
  return MakeLatency(priced);
}

// Between tokens of a request -> how often; from a step of it to its next -> how often.
using Times = std::map<TimeNs, std::int64_t>;

Times GapsOf(const TrtllmOutput& output) {
  Times gaps;
  for (const TrtllmResult& result : output.results) {
    for (std::size_t i = 1; i < result.tokens.size(); ++i) {
      ++gaps[result.tokens[i] - result.tokens[i - 1]];
    }
  }
  return gaps;
}

Times DelaysOf(const TrtllmOutput& output) {
  Times delays;
  std::map<RequestId, TimeNs> last;
  for (const TrtllmStep& step : output.steps) {
    const auto count = [&](RequestId id) {
      if (id == kNoRequest) return;  // a dummy
      const auto at = last.find(id);
      if (at != last.end()) ++delays[step.start - at->second];
      last[id] = step.end;
    };
    for (const TrtllmMember& member : step.context) count(member.id);
    for (const RequestId id : step.generation) count(id);
  }
  return delays;
}

std::string Shown(const TrtllmStep& s) {
  std::string text = std::to_string(s.scheduled) + " context";
  for (const TrtllmMember& m : s.context) {
    text += " " + std::to_string(m.id) + ":" + std::to_string(m.begin) + "+" +
            std::to_string(m.tokens) + (m.last ? "!" : "");
  }
  text += " generation";
  for (const RequestId id : s.generation) text += " " + std::to_string(id);
  text += " paused";
  for (const RequestId id : s.paused) text += " " + std::to_string(id);
  text += " finished";
  for (const RequestId id : s.finished) text += " " + std::to_string(id);
  return text + " free " + std::to_string(s.free_after_schedule) + " " +
         std::to_string(s.free_after_step) + " active " + std::to_string(s.active_after_schedule) +
         " queue " + std::to_string(s.waiting_after_schedule);
}

// The rows before and at a difference.
std::string Around(const TrtllmCase& c, const std::vector<TrtllmStep>& found) {
  std::size_t at = 0;
  TrtllmCase upto = c;
  for (; at < std::min(found.size(), c.steps.size()); ++at) {
    upto.steps = {c.steps[at]};
    if (FirstDifference(upto, std::vector<TrtllmStep>{found[at]})) break;
  }
  std::string text;
  for (std::size_t i = at - std::min<std::size_t>(at, 3); i <= at; ++i) {
    if (i < c.steps.size()) text += "\n  reference " + std::to_string(i) + " " + Shown(c.steps[i]);
    if (i < found.size()) text += "\n  engine    " + std::to_string(i) + " " + Shown(found[i]);
  }
  return text;
}

void CheckTimes(const TrtllmCase& c, const ReplicaRun& run) {
  for (std::size_t r = 0; r < c.max_new.size(); ++r) {
    TimeAfterFirst after;
    const TimeSplit split = SplitOf(run.requests, run.results, 0, r, after);
    ASSERT_EQ(split.Sum(), run.results.completion[r] - run.requests.arrival[r]) << "request " << r;
    for (const TimeNs part : {split.host, split.queue, split.prefill, split.decode,
                              split.interference, split.preempted, split.transfer}) {
      ASSERT_GE(part, 0) << "request " << r;
    }
  }
}

TEST(DifferentialTrtllm, RandomCases_EqualTheReference) {
  std::int64_t steps = 0, paused = 0, chunks = 0, hits = 0, revived = 0, stopped = 0;
  for (std::uint64_t seed = 1; seed <= Cases(); ++seed) {
    TrtllmCase c = MakeTrtllmCase(seed);
    const std::unique_ptr<LatencyModel> latency = LatencyFor(seed);
    const TrtllmOutput reference =
        RunTrtllmReference({c.requests, c.max_new, c.settings, *latency});
    c.steps = reference.steps;
    c.results = reference.results;
    const ReplicaRun run = RunReplica(EngineCaseOf(c), *latency, kClockEnd);
    const std::vector<TrtllmStep> found = TrtllmStepsOf(run.steps);
    ASSERT_EQ(FirstDifference(c, found).value_or(""), "") << Describe(c) << Around(c, found);
    ASSERT_EQ(FirstDifference(c, ResultsOf(c, run.steps, run.results)).value_or(""), "")
        << Describe(c);
    ASSERT_EQ(run.itl, GapsOf(reference)) << Describe(c);
    ASSERT_EQ(run.step_delays, DelaysOf(reference)) << Describe(c);
    ASSERT_NO_FATAL_FAILURE(CheckTimes(c, run)) << Describe(c);
    for (const TrtllmStep& step : reference.steps) {
      paused += static_cast<std::int64_t>(step.paused.size());
      for (const TrtllmMember& member : step.context) chunks += member.last ? 0 : 1;
    }
    for (const TrtllmResult& result : reference.results) hits += result.reused_first > 0 ? 1 : 0;
    steps += static_cast<std::int64_t>(reference.steps.size());
    revived += reference.revived;
    stopped += reference.would_stop ? 1 : 0;
  }
  std::printf(
      "%lld steps, %lld paused, %lld unfinished chunks, %lld hits, %lld go on behind their "
      "end, %lld cases in which TensorRT-LLM stops\n",
      static_cast<long long>(steps), static_cast<long long>(paused), static_cast<long long>(chunks),
      static_cast<long long>(hits), static_cast<long long>(revived),
      static_cast<long long>(stopped));
  if (Cases() < 1000) return;
  for (const std::int64_t count : {paused, chunks, hits}) {
    EXPECT_GT(count, static_cast<std::int64_t>(Cases() / 40));
  }
}

// Attention data parallelism: a request's tokens come at the same times, from the same ranks.
TEST(DifferentialTrtllm, RandomRanks_EqualTheReference) {
  std::int64_t steps = 0, paused = 0, dummies = 0, odd = 0;
  for (std::uint64_t seed = 1; seed <= Cases(); ++seed) {
    TrtllmCase c = MakeTrtllmRanksCase(seed);
    const std::unique_ptr<LatencyModel> latency = LatencyFor(seed);
    const TrtllmOutput reference =
        RunTrtllmReference({c.requests, c.max_new, c.settings, *latency});
    odd += reference.odd ? 1 : 0;
    const ReplicaRun run = RunReplica(EngineCaseOf(c), *latency, kClockEnd);
    if (reference.odd) continue;
    c.steps = reference.steps;
    c.results = reference.results;
    const std::vector<TrtllmStep> found = TrtllmStepsOf(run.steps);
    ASSERT_EQ(FirstDifference(c, found).value_or(""), "") << Describe(c) << Around(c, found);
    ASSERT_EQ(FirstDifference(c, ResultsOf(c, run.steps, run.results)).value_or(""), "")
        << Describe(c);
    ASSERT_EQ(run.itl, GapsOf(reference)) << Describe(c);
    ASSERT_EQ(run.step_delays, DelaysOf(reference)) << Describe(c);
    ASSERT_NO_FATAL_FAILURE(CheckTimes(c, run)) << Describe(c);
    for (const TrtllmStep& step : reference.steps) {
      paused += static_cast<std::int64_t>(step.paused.size());
      dummies += std::count(step.generation.begin(), step.generation.end(), kNoRequest);
    }
    steps += static_cast<std::int64_t>(reference.steps.size());
  }
  std::printf("%lld steps of ranks, %lld paused, %lld dummies, %lld cases left out\n",
              static_cast<long long>(steps), static_cast<long long>(paused),
              static_cast<long long>(dummies), static_cast<long long>(odd));
  EXPECT_LE(odd, static_cast<std::int64_t>(Cases() / 100));
}

TEST(DifferentialTrtllm, SlicesAndObserversOfRanks_ChangeNothing) {
  for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(Cases() / 5, 2000); ++seed) {
    const TrtllmCase c = MakeTrtllmRanksCase(seed);
    const auto run = [&](const RunOptions& options) {
      return RunEngine(EngineCaseOf(c), LatencyFor(seed), options).value().report.fingerprint;
    };
    const auto whole = run({});
    ASSERT_EQ(run({.slice = 1}), whole) << Describe(c);
    ASSERT_EQ(run({.slice = 7, .observe = false}), whole) << Describe(c);
  }
}

TEST(DifferentialTrtllm, SlicesAndObservers_ChangeNothing) {
  for (std::uint64_t seed = 1; seed <= std::min<std::uint64_t>(Cases() / 5, 2000); ++seed) {
    const TrtllmCase c = MakeTrtllmCase(seed);
    const auto run = [&](const RunOptions& options) {
      return RunEngine(EngineCaseOf(c), LatencyFor(seed), options).value().report.fingerprint;
    };
    const auto whole = run({});
    ASSERT_EQ(run({.slice = 1}), whole) << Describe(c);
    ASSERT_EQ(run({.slice = 7, .observe = false}), whole) << Describe(c);
    ASSERT_EQ(run({.observe = false}), whole) << Describe(c);
  }
}

}  // namespace
}  // namespace servecast::testing::trtllm_test
