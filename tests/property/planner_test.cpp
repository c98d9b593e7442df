// Dynamo's planner as a scaler of scenarios. Its rules are held to recordings (conformance), what
// it sees to a reference (disaggregated_test.cpp).
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "servecast/report.h"
#include "servecast/simulation.h"
#include "testing/same_bits.h"

namespace servecast::testing {
namespace {

std::string Planned(std::vector<std::string> overrides) {
  std::vector<std::string> all = {"workload.arrivals.rate_per_s=60", "workload.requests=4000",
                                  "workload.output_tokens.value=200",
                                  "cluster.router.policy=least_outstanding"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Changed(all);
}

const std::vector<std::string> kTogether = {
    R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])",
    "cluster.scaling={\"policy\":\"dynamo\",\"engine_s\":3,\"ttft_ms\":120,\"itl_ms\":9,"
    "\"load_adjustment_interval_s\":2}",
    "workload.prompt_tokens.value=1500", "engine.max_num_seqs=64"};

std::vector<std::string> With(std::vector<std::string> all, std::vector<std::string> more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(Planner, ThatNeverActs_ChangesNoBit) {
  for (const char* target : {"throughput", "latency", "load", "sla"}) {
    const Report fixed = RunToEnd(Planned({"cluster.pools.0.replicas=2"}));
    const Report scaled =
        RunToEnd(Planned({"cluster.pools.0.replicas=2", "cluster.scaling.policy=dynamo",
                          std::string("cluster.scaling.optimization_target=") + target,
                          "cluster.scaling.decode_scale_up_kv_rate=50",
                          "cluster.scaling.min_replicas=2", "cluster.scaling.max_replicas=2"}));
    EXPECT_EQ(scaled.scaling.starts, 0);
    Report same = scaled;
    same.scaling = {};
    ExpectSameBits(fixed, same);
  }
}

TEST(Planner, Slices_GiveTheSameReport) {
  for (const char* throughput : {"false", "true"}) {
    const auto overrides =
        With(kTogether, {std::string("cluster.scaling.enable_throughput_scaling=") + throughput,
                         "cluster.scaling.throughput_adjustment_interval_s=7"});
    const Report whole = RunToEnd(Planned(overrides));
    EXPECT_GT(whole.scaling.starts, 0);
    EXPECT_EQ(whole.completed, whole.arrived);
    EXPECT_EQ(BrokenConservation(whole), "");
    for (const std::int64_t slice : {1, 7}) {
      EXPECT_EQ(ReportJson(whole, ReportParts::kWithSeries),
                ReportJson(RunToEnd(Planned(overrides), {}, slice), ReportParts::kWithSeries))
          << slice;
    }
  }
}

// GPUs that both roles share; each role alone would take as many.
TEST(Planner, Budget_IsOfBothRoles) {
  const auto gpus = [](const std::vector<std::string>& overrides) {
    const Report r = RunToEnd(Planned(overrides));
    std::int64_t sum = 0;
    for (const ScalingReport& pool : r.scaling.pools) sum += pool.peak_up;
    return sum;
  };
  const auto tight = With(kTogether, {"cluster.scaling.ttft_ms=20", "cluster.scaling.itl_ms=3"});
  EXPECT_EQ(gpus(With(tight, {"cluster.scaling.max_gpu_budget=5"})), 5);
  EXPECT_GT(gpus(With(tight, {"cluster.scaling.max_gpu_budget=-1"})), 5);
  EXPECT_GT(gpus({tight[0], tight[2], tight[3],
                  R"(cluster.pools.0.scaling={"policy":"dynamo","ttft_ms":20,"engine_s":3,)"
                  R"("load_adjustment_interval_s":2,"max_gpu_budget":5})",
                  R"(cluster.pools.1.scaling={"policy":"dynamo","itl_ms":3,"engine_s":3,)"
                  R"("load_adjustment_interval_s":2,"max_gpu_budget":5})"}),
            5);
}

// The requests of an interval over the rate of one engine, at each tick and no sooner.
TEST(Planner, ThroughputAlone_FollowsTheRate) {
  const Report r = RunToEnd(
      Planned({"cluster.scaling.policy=dynamo", "cluster.scaling.enable_load_scaling=false",
               "cluster.scaling.enable_throughput_scaling=true", "cluster.scaling.engine_s=3",
               "cluster.scaling.itl_ms=7", "cluster.scaling.throughput_adjustment_interval_s=10"}));
  EXPECT_GT(r.scaling.starts, 0);
  for (const ScalingReport::Step& step : r.scaling.steps) {
    EXPECT_TRUE(step.starting == 0 || step.at_s >= 10) << step.at_s;
  }
}

TEST(Planner, WhatItCannotSee_IsRefused) {
  const auto issue = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), "cluster.scaling.policy=dynamo");
    return Listed(IssuesOf(Planned(std::move(overrides))));
  };
  const auto has = [&](std::vector<std::string> overrides, const char* what) {
    const std::string issues = issue(std::move(overrides));
    EXPECT_NE(issues.find(what), std::string::npos) << issues;
  };
  EXPECT_EQ(issue({}), "");
  has({"cluster.pools=[{},{}]"},
      "/cluster/scaling/policy: found \"dynamo\", allowed with one pool");
  has({R"(cluster.pools=[{"role":"prefill"},{"role":"decode"},{}])"}, "/cluster/scaling/policy");
  has({"cluster.scaling.enable_load_scaling=false"},
      "/cluster/scaling/enable_load_scaling: found false, allowed true without");
  has({"cluster.scaling.optimization_target=latency",
       "cluster.scaling.enable_throughput_scaling=true"},
      "/cluster/scaling/enable_throughput_scaling: found true, allowed false with");
  has({"cluster.scaling.optimization_target=load"},
      "/cluster/scaling/decode_scale_up_kv_rate: found 0, allowed above decode_scale_down_kv_rate "
      "0");
  has({"cluster.scaling.optimization_target=load",
       R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"},
      "/cluster/scaling/prefill_scale_up_queue_tokens");
  has({"cluster.pools.0.tensor_parallel=4", "cluster.scaling.max_gpu_budget=3"},
      "/cluster/scaling/max_gpu_budget: found 3, allowed -1, or from 4 up");
  has({"cluster.scaling.min_gpu_budget=9"}, "/cluster/scaling/min_gpu_budget");
  has({"cluster.scaling.scrape_period_s=5"}, "/cluster/scaling/scrape_period_s");
  has({"cluster.scaling.min_replicas=0"}, "/cluster/scaling/min_replicas");
}

}  // namespace
}  // namespace servecast::testing
