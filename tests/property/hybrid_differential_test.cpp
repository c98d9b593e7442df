// Models whose layers keep KV in groups, with images and without: random cases are the same to the
// engine and to the replay of vLLM's rules (testing/hybrid_cases.h).
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "servecast/simulation.h"
#include "serving/hooks.h"
#include "testing/asked.h"
#include "testing/dice.h"
#include "testing/hybrid_cases.h"

namespace servecast::testing {
namespace {

constexpr std::int64_t kHybridCases = 400;

struct Silent final : StepObserver {
  void OnStep(const StepRecord&) override {}
};

std::string ReportOf(const std::string& document, StepObserver* observer) {
  SimulationHooks hooks;
  hooks.observer = observer;
  Result<Simulation> simulation =
      Simulation::Create(ParseScenario(document).value(), {}, std::move(hooks));
  while (!simulation.value().Advance(1000)) {
  }
  return ReportJson(simulation.value().Snapshot(), ReportParts::kWithSeries);
}

// Steps that are not watched may run many at once: their report is the same, gaps between tokens
// too, where members are preempted, or their clients give up, while such steps are in flight.
TEST(HybridDifferential, ManyStepsAtOnce_ReportWhatSingleOnesDo) {
  std::int64_t preempted = 0, gave_up = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Dice dice(seed);
    const std::string document = fmt::format(
        R"({{"schema":1,"model":{{"preset":"{}"}},"hardware":{{"preset":"h100-sxm"}},"seed":{},
            "engine":{{"block_size":7,"max_num_batched_tokens":128,"max_num_seqs":{},
                       "num_gpu_blocks_override":{}}},
            "workload":{{"requests":100,"arrivals":{{"process":"poisson","rate_per_s":{}}},
                         "prompt_tokens":{{"distribution":"uniform","min":1,"max":40}},
                         "output_tokens":{{"distribution":"uniform","min":1,"max":40}},
                         "classes":[{{"name":"a","share":1,"timeout_s":{}}}]}}}})",
        dice.Percent(50) ? "gpt-oss-120b" : "gpt-oss-20b", seed, dice.Between(4, 32),
        dice.Between(60, 200), dice.Between(50, 300), dice.Percent(50) ? 0.5 : 5);
    Silent watcher;
    const std::string report = ReportOf(document, nullptr);
    ASSERT_EQ(report, ReportOf(document, &watcher)) << document;
    const auto parsed = nlohmann::json::parse(report);
    preempted += parsed["preemptions"].get<std::int64_t>();
    gave_up += parsed["timed_out"].get<std::int64_t>();
  }
  EXPECT_GT(preempted, 0);
  EXPECT_GT(gave_up, 0);
}

TEST(HybridDifferential, RandomCases_EqualTheReplay) {
  const std::int64_t cases = Asked("SERVECAST_CASES", kHybridCases),
                     first = Asked("SERVECAST_SEED", 1);
  HybridCoverage seen;
  for (std::int64_t i = 0; i < cases; ++i) {
    const auto mismatch = HybridDifference(static_cast<std::uint64_t>(first + i), &seen);
    ASSERT_FALSE(mismatch) << *mismatch;
  }
  const std::pair<const char*, std::int64_t> contents[] = {
      {"steps", seen.steps},
      {"preemptions", seen.preemptions},
      {"blocks that lost content", seen.evicted},
      {"tokens hit", seen.hit_tokens},
      {"images encoded", seen.encoded_images},
      {"images found encoded", seen.image_hits},
      {"images that were overwritten", seen.images_evicted},
      {"chunks cut before an image", seen.cut_before_images},
      {"running requests that wait for the encoder", seen.waits_for_encoder},
      {"admissions that wait for the encoder", seen.refused_by_encoder},
      {"images of victims that were in the step", seen.unencoded_victims},
      {"cases with windows", seen.windows},
      {"cases with chunks", seen.chunks},
      {"cases with states", seen.states},
      {"cases that hang", seen.hangs},
  };
  std::string line = std::to_string(seen.cases) + " cases";
  for (const auto& [what, count] : contents) line += ", " + std::to_string(count) + " " + what;
  std::printf("%s\n", line.c_str());
  if (cases < kHybridCases) return;
  for (const auto& [what, count] : contents) EXPECT_GT(count, 0) << what;
}

}  // namespace
}  // namespace servecast::testing
