// Figures by Vidur's definitions: time in batches, and between two of them.
#include "io/vidur_names.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

constexpr TimeNs kMs = 1'000'000;

StepRecord StepOf(std::vector<RequestId> ids, TimeNs scheduled, std::vector<StageSpan> stages) {
  StepRecord step;
  step.scheduled = scheduled;
  step.start = stages.front().start;
  step.end = stages.back().end;
  for (const RequestId id : ids) step.members.push_back({id, 1});
  if (stages.size() > 1) step.stages = stages;
  return step;
}

// It comes at 0. Its prefill runs from 0.5 to 1.0 s, its decodes from 1.8 to 1.85 and from 2.15 to
// 2.2 s: 0.8 and 0.3 s between batches. Others' batches do not matter.
TEST(VidurTimes, WaitsBetweenBatches_AreNotExecution) {
  VidurTimes times;
  times.OnStep(StepOf({3}, 500 * kMs, {{500 * kMs, 1000 * kMs}}));
  times.OnStep(StepOf({0}, 1000 * kMs, {{1000 * kMs, 1800 * kMs}}));
  times.OnStep(StepOf({3, 0}, 1800 * kMs, {{1800 * kMs, 1850 * kMs}}));
  times.OnStep(StepOf({0}, 1850 * kMs, {{1850 * kMs, 2150 * kMs}}));
  times.OnStep(StepOf({3, 0}, 2150 * kMs, {{2150 * kMs, 2200 * kMs}}));
  EXPECT_EQ(times.OfRequest(3).executed, 600 * kMs);
  EXPECT_EQ(times.OfRequest(3).between, 1100 * kMs);
  EXPECT_EQ(times.OfRequest(3).for_stage, 0);
  EXPECT_EQ(times.OfRequest(0).between, 0);
}

// Formed at 5, it gets the first stage at 7 and, done with that at 10, the second one at 12.
TEST(VidurTimes, WaitsForAStage_AreDelayOrBetween) {
  VidurTimes times;
  times.OnStep(StepOf({0}, 5 * kMs, {{7 * kMs, 10 * kMs}, {12 * kMs, 15 * kMs}}));
  times.OnStep(StepOf({0}, 15 * kMs, {{15 * kMs, 16 * kMs}, {16 * kMs, 17 * kMs}}));
  EXPECT_EQ(times.OfRequest(0).for_stage, 2 * kMs);
  EXPECT_EQ(times.OfRequest(0).executed, 8 * kMs);
  EXPECT_EQ(times.OfRequest(0).between, 2 * kMs);
}

// Chunks of one prompt in two stages at once.
TEST(VidurTimes, StagesAtTheSameTime_CountOnce) {
  VidurTimes times;
  times.OnStep(StepOf({0}, 0, {{0, 4 * kMs}, {4 * kMs, 8 * kMs}}));
  times.OnStep(StepOf({0}, 4 * kMs, {{4 * kMs, 8 * kMs}, {8 * kMs, 12 * kMs}}));
  EXPECT_EQ(times.OfRequest(0).executed, 12 * kMs);
  EXPECT_EQ(times.OfRequest(0).between, 0);
}

// Step = 1000 us + 10 us a prefill token + 5 us a decode; vLLM of 2023 computes prompts first:
//     0  prefill A      1,500 us
// 1,500  prefill B      2,000        A waits
// 3,500  decode A, B    1,010
// 4,510  decode A, B    1,010        both are done at 5,520
TEST(VidurNames, RequestThatPromptsKeepWaiting_IsPreemptedThatLong) {
  const std::string document =
      Changed({"scheduler.policy=vllm_v0", "engine.enable_prefix_caching=false",
               "engine.async_scheduling=false",
               R"(latency={"backend":"blackbox","alpha":[0,0,0],"beta":[1000,10,5]})",
               R"(workload.arrivals={"process":"trace"})",
               R"(workload.prompt_tokens={"distribution":"trace"})",
               R"(workload.output_tokens={"distribution":"trace"})"});
  Trace trace =
      Good(ParseTrace("arrival_s,input_tokens,output_tokens\n0,50,3\n0.001,100,3\n", "t.csv"));
  VidurTimes times;
  SimulationHooks hooks;
  hooks.observer = &times;
  Simulation simulation =
      Good(Simulation::Create(Parsed(document), std::move(trace), std::move(hooks)));
  while (!simulation.Advance(INT64_MAX)) {
  }
  const Report report = simulation.Snapshot();
  const auto cells = [](const std::string& line) {
    std::vector<std::string> parts;
    std::istringstream stream(line.substr(0, line.size() - 1));
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
  };
  const std::vector<std::string> names = cells(VidurRequestHeader());
  const auto value = [&](const std::string& row, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    return std::stod(cells(row)[static_cast<std::size_t>(at)]);
  };
  const std::string a = VidurRequestRow(report, times, 0), b = VidurRequestRow(report, times, 1);
  EXPECT_DOUBLE_EQ(value(a, "request_execution_time"), 0.00352);
  EXPECT_DOUBLE_EQ(value(a, "request_preemption_time"), 0.002);
  EXPECT_DOUBLE_EQ(value(a, "request_execution_plus_preemption_time"), 0.00552);
  EXPECT_DOUBLE_EQ(value(b, "request_scheduling_delay"), 0.0005);
  EXPECT_DOUBLE_EQ(value(b, "request_preemption_time"), 0);
  EXPECT_DOUBLE_EQ(value(b, "request_execution_time"), 0.00402);
}

}  // namespace
}  // namespace servecast::testing
