// Everything that a report says is the same whatever the slices in which it was run: of every
// model's preset with every engine's, where that can be.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/documents.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "io/presets.h"
#include "servecast/report.h"
#include "testing/asked.h"

namespace servecast::testing {
namespace {

// Prompts and answers that share little, with requests that wait, are preempted and come together.
std::string DocumentOf(std::string_view model, std::string_view engine, std::uint64_t seed) {
  const int tensor_parallel = seed % 2 == 0 ? 8 : 2;
  const char* arrivals = seed % 3 == 0 ? R"({"process": "closed_loop", "concurrency": 24})"
                                       : R"({"process": "poisson", "rate_per_s": 20})";
  return fmt::format(
      R"({{"schema": 1, "seed": {}, "model": {{"preset": "{}"}}, "hardware": {{"preset": "b200-sxm"}},
          "engine": {{"preset": "{}"}}, "cluster": {{"pools": [{{"tensor_parallel": {}}}]}},
          "workload": {{"arrivals": {}, "requests": 60,
            "prompt_tokens": {{"distribution": "uniform", "min": 1, "max": 3000}},
            "output_tokens": {{"distribution": "uniform", "min": 1, "max": 300}}}}}})",
      seed, model, engine, tensor_parallel, arrivals);
}

std::string AllOf(const std::string& document, std::int64_t slice) {
  return ReportJson(RunToEnd(document, {}, slice), ReportParts::kWithSeries);
}

TEST(Slices, EveryModelAndEngine_SayTheSame) {
  const auto rounds = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 1000)) / 500 + 1;
  std::uint64_t compared = 0, seed = 0;
  for (const std::string_view model : AllPresetIds("models")) {
    for (const std::string_view engine : PresetIds("engines")) {
      // One engine a model and round, each in turn.
      if (++seed % 7 >= rounds) continue;
      const std::string document = DocumentOf(model, engine, seed);
      if (!IssuesOf(document).empty()) continue;
      SCOPED_TRACE(document);
      const std::string whole = AllOf(document, INT64_MAX);
      for (const std::int64_t slice : {1, 7, 500})
        ASSERT_EQ(whole, AllOf(document, slice)) << slice;
      ++compared;
    }
  }
  EXPECT_GE(compared, 10 * rounds);
}

}  // namespace
}  // namespace servecast::testing
