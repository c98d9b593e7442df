// The highest rate of a plan beside measured ladders of rates: it falls between the rates of which
// the server kept the one and missed the other, or next to them by a model's error.
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "fmt/format.h"
#include "formats/measured_table.h"
#include "gtest/gtest.h"
#include "servecast/plan.h"
#include "testing/data_files.h"

namespace servecast::testing::plan_ladder_test {
namespace {

// Of a rate: p99 of TTFT is 4 % off in the median here (docs/fidelity.md), and grows about as fast
// as the rate.
constexpr double kModelError = 1.05;

struct Rung {
  double rate = 0, ms = 0;
};

// Rows of a table in order of rate; empty: no data. `of`: what the column run must hold.
std::vector<Rung> LadderOf(const std::string& file, const char* rate, const char* figure,
                           const std::string& of) {
  std::vector<Rung> rungs;
  const auto text = ReadFile(DataFolder("SERVECAST_GROUNDTRUTH", "groundtruth") + "/" + file);
  if (!text) return rungs;
  const MeasuredTable table(*text);
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    if (table.Text(row, {"run"}).find(of) == std::string_view::npos) continue;
    const auto number = [&](const char* column) {
      return std::strtod(std::string(table.Text(row, {column})).c_str(), nullptr);
    };
    rungs.push_back({number(rate), number(figure)});
    EXPECT_GT(rungs.back().rate, 0);
    EXPECT_GT(rungs.back().ms, 0);
  }
  return rungs;
}

// The last rung within and the first beyond.
std::pair<Rung, Rung> Around(const std::vector<Rung>& rungs, double limit) {
  std::size_t i = 0;
  while (i + 1 < rungs.size() && rungs[i + 1].ms <= limit) ++i;
  return {rungs[i], rungs[i + 1]};
}

PlanAnswer MaxRate(const std::string& document) {
  Plan plan = Good(Plan::Create(Parsed(document)));
  while (!plan.Advance(INT64_MAX)) {
  }
  return plan.Answer();
}

std::string Target(const char* metric, double limit) {
  return fmt::format(R"(slo=[{{"metric":"{}","percentile":99,"limit_ms":{}}}])", metric, limit);
}

TEST(PlanLadder, A100_KeepsASecondToTheFirstTokenUpToTheMeasuredKnee) {
  const auto rungs =
      LadderOf("a100-pcie-llama-3.1-8b/serving_sweep.csv", "request_rate_rps", "ttft_p99_ms", "R3");
  if (rungs.empty()) GTEST_SKIP() << "skipped: no data";
  const auto [within, beyond] = Around(rungs, 1000);
  EXPECT_EQ(within.rate, 16);
  EXPECT_EQ(beyond.rate, 18);
  const PlanAnswer answer = MaxRate(Changed(
      {"hardware.preset=a100-40gb", "engine.max_num_batched_tokens=2048", "engine.max_num_seqs=256",
       fmt::format("engine.num_gpu_blocks_override={}", 158864 / 16), Target("ttft", 1000)},
      std::string(*ScenarioPreset("llama-3.1-8b-h100-chat"))));
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  fmt::print("A100: {:.4g} ({:.4g} to {:.4g}), measured between {} and {}\n", answer.value,
             answer.low, answer.high, within.rate, beyond.rate);
  EXPECT_GE(answer.value, within.rate / kModelError);
  EXPECT_LE(answer.value, beyond.rate * kModelError);
}

TEST(PlanLadder, H100_LimitsFallBetweenTheRatesThatTheServerKeptAndMissed) {
  const std::string document = Changed(
      {"model.preset=qwen3-14b", "engine.max_num_batched_tokens=8192", "engine.max_num_seqs=256",
       R"(workload.prompt_tokens={"distribution":"fixed","value":986})",
       R"(workload.output_tokens={"distribution":"fixed","value":128})",
       "workload.arrivals.rate_per_s=4"});
  struct Limit {
    const char *metric, *column;
    double ms;
  };
  for (const Limit& limit : {Limit{"ttft", "ttft_p99_ms", 125},
                             {"ttft", "ttft_p99_ms", 160},
                             {"ttft", "ttft_p99_ms", 195},
                             {"tpot", "tpot_p99_ms", 15},
                             {"tpot", "tpot_p99_ms", 17.5},
                             {"tpot", "tpot_p99_ms", 21}}) {
    const auto rungs =
        LadderOf("h100-qwen3-14b/sweep.csv", "target_rate_rps", limit.column, "vanilla");
    if (rungs.empty()) GTEST_SKIP() << "skipped: no data";
    const auto [within, beyond] = Around(rungs, limit.ms);
    const PlanAnswer answer = MaxRate(Changed({Target(limit.metric, limit.ms)}, document));
    ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
    const double share = std::log(limit.ms / within.ms) / std::log(beyond.ms / within.ms);
    const double measured = within.rate * std::pow(beyond.rate / within.rate, share);
    fmt::print("H100, {} {} ms: {:.4g} ({:.4g} to {:.4g}), measured about {:.3g}\n", limit.metric,
               limit.ms, answer.value, answer.low, answer.high, measured);
    EXPECT_GE(answer.value, within.rate / kModelError) << limit.column << " " << limit.ms;
    EXPECT_LE(answer.value, beyond.rate * kModelError) << limit.column << " " << limit.ms;
  }
}

}  // namespace
}  // namespace servecast::testing::plan_ladder_test
