// The laws and bounds of metrics/sanity.cpp hold in every run that is right: random scenarios of
// what serves tokens in groups, ends requests late, or has GPUs that differ. SERVECAST_CASES sets
// how many; SERVECAST_SEED, the first one's seed.
#include <string>
#include <vector>

#include "core/documents.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "gtest/gtest.h"
#include "testing/asked.h"
#include "testing/dice.h"

namespace servecast::testing::sanity_test {
namespace {

// How requests are served.
std::vector<std::string> RandomServer(Dice& dice) {
  std::vector<std::string> set;
  const std::int64_t kind = dice.Between(0, 6);
  if (kind == 0) {
    return {R"(engine={"preset":"sglang"})", R"(scheduler.policy="sglang")"};
  }
  bool async = dice.Percent(50) && kind != 2;
  if (kind == 1) {
    const char* methods[] = {"eagle3", "ngram", "mtp", "draft_model"};
    const std::string method = methods[dice.Between(0, 3)];
    if (method == "ngram") async = false;
    set.push_back(fmt::format(
        R"(engine.speculative={{"method":"{}","num_speculative_tokens":{},"acceptance_length":{}}})",
        method, dice.Between(2, 5), method == "ngram" ? 1.5 : 2.5));
  }
  if (kind == 2) set.push_back("cluster.pools.0.pipeline_parallel=2");
  if (kind == 3) {
    set.push_back(
        fmt::format(R"(cluster={{"pools":[{{"name":"new","hardware":{{"preset":"h200-sxm"}}}},)"
                    R"({{"name":"old","replicas":{},"hardware":{{"preset":"l40s"}}}}],)"
                    R"("router":{{"policy":"{}"}}}})",
                    dice.Between(1, 4), dice.Percent(50) ? "least_outstanding" : "round_robin"));
  }
  if (kind == 4) {
    set.push_back(R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])");
  }
  if (kind == 5) {
    set.push_back(R"(model={"preset":"gpt-oss-20b"})");
    set.push_back(fmt::format("engine.num_gpu_blocks_override={}", dice.Between(400, 2000)));
  }
  if (kind == 6) {
    set.push_back(fmt::format("engine.num_gpu_blocks_override={}", dice.Between(60, 300)));
    set.push_back(fmt::format("engine.enable_prefix_caching={}", dice.Percent(50)));
  }
  set.push_back(fmt::format("engine.async_scheduling={}", async));
  return set;
}

std::vector<std::string> RandomScenario(std::uint64_t seed) {
  Dice dice(seed);
  std::vector<std::string> set = RandomServer(dice);
  set.push_back(
      fmt::format(R"(workload.output_tokens={{"distribution":"uniform","min":1,"max":{}}})",
                  dice.Pick({1, 2, 4, 16, 100})));
  set.push_back(
      fmt::format(R"(workload.prompt_tokens={{"distribution":"uniform","min":1,"max":{}}})",
                  dice.Pick({10, 300, 800})));
  set.push_back(fmt::format("workload.requests={}", dice.Pick({20, 200, 600})));
  set.push_back(fmt::format("seed={}", 1 + seed % 1000));
  if (dice.Percent(25)) {
    set.push_back(fmt::format(R"(workload.arrivals={{"process":"closed_loop","concurrency":{}}})",
                              dice.Pick({1, 7, 40})));
  } else {
    set.push_back(fmt::format("workload.arrivals.rate_per_s={}",
                              static_cast<double>(dice.Pick({5, 50, 500, 3000})) / 100 *
                                  static_cast<double>(dice.Pick({1, 3, 10}))));
  }
  return set;
}

TEST(SanityProperty, RandomScenarios_KeepEveryLaw) {
  const auto first = static_cast<std::uint64_t>(Asked("SERVECAST_SEED", 1));
  const auto cases = static_cast<std::uint64_t>(Asked("SERVECAST_CASES", 200));
  std::int64_t laws = 0;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    const std::vector<std::string> set = RandomScenario(seed);
    const Report report = RunToEnd(Changed(set));
    for (const SanityCheck& check : report.sanity) {
      laws += check.name == "littles_law" ? 1 : 0;
      EXPECT_TRUE(check.ok) << fmt::format("seed {}: {}: {} beside {}\n{}", seed, check.name,
                                           check.simulated, check.bound, fmt::join(set, "\n"));
    }
  }
  EXPECT_GT(laws, static_cast<std::int64_t>(cases) * 3 / 4);
}

// Stated step times that no card keeps were called a defect of Servecast.
TEST(SanityProperty, StatedStepTimes_AreNotHeldAgainstTheDataSheet) {
  for (const char* latency :
       {R"({"backend":"blackbox","alpha":[0,0,0],"beta":[10,0.1,0.1]})",
        R"({"backend":"roofline","mfu_prefill":1,"mfu_decode":1})", R"({"backend":"analytic"})"}) {
    const Report report = RunToEnd(
        Changed({fmt::format("latency={}", latency), "workload.requests=50",
                 R"(model={"num_hidden_layers":27,"hidden_size":5632,"num_attention_heads":938,)"
                 R"("num_key_value_heads":8,"head_dim":64,"intermediate_size":4864,)"
                 R"("vocab_size":149000,"max_position_embeddings":2048})"}));
    bool against_sheet = false;
    for (const SanityCheck& check : report.sanity) {
      EXPECT_TRUE(check.ok) << check.name << " " << latency;
      against_sheet |= check.name == "roofline";
    }
    EXPECT_EQ(against_sheet, report.latency_model.backend == "analytic") << latency;
  }
}

}  // namespace
}  // namespace servecast::testing::sanity_test
