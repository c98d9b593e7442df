// The plan of autoscaling: what it runs is what anybody's run says, and what it leaves out is no
// better than its answer.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "experiment/replications.h"
#include "gtest/gtest.h"
#include "plan/autoscale.h"
#include "plan/question.h"
#include "servecast/simulation.h"

namespace servecast::testing::plan_autoscale_test {
namespace {

using nlohmann::json;

constexpr const char* kTarget = R"(slo=[{"metric":"e2e","percentile":90,"limit_ms":4000}])";
constexpr const char* kColdStart =
    R"(cluster.scaling={"policy":"hpa","engine_s":10,"weights_gb_s":4})";

// Most of an hour: 0.75 requests/s, 7.5 from minute 5 to 12, then 1; a replica serves some 2.5.
std::string Rising(std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {
      kTarget,
      kColdStart,
      "engine.max_num_seqs=2",
      "workload.output_tokens.value=100",
      "workload.requests=5200",
      R"(workload.arrivals={"process":"poisson","rate_per_s":1,"profile":"piecewise",)"
      R"("rate_factors":[[0,0.75],[300,7.5],[700,1]]})",
      "cluster.router.policy=least_outstanding"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return Changed(all);
}

AutoscalePlan Planned(const std::string& document, AutoscaleOptions options = {},
                      std::int64_t slice = INT64_MAX) {
  AutoscalePlan plan = Good(AutoscalePlan::Create(Parsed(document), {}, std::move(options)));
  double before = 0;
  while (!plan.Advance(slice)) {
    EXPECT_GE(plan.Progress(), before);
    before = plan.Progress();
    EXPECT_LT(before, 1);
  }
  EXPECT_EQ(plan.Progress(), 1);
  EXPECT_TRUE(plan.Problems().empty());
  return plan;
}

// Once for all tests: some forty runs.
const AutoscalePlan& Usual() {
  static const AutoscalePlan plan = Planned(Rising(), {.days = 4});
  return plan;
}

Report RunOf(const Scenario& scenario, const AutoscalePolicy& policy, std::size_t day) {
  Scenario s = ScenarioUnder(scenario, policy);
  s.seed = SeedOfRun(scenario.seed, day);
  Simulation run = Good(Simulation::Create(std::move(s)));
  while (!run.Advance(INT64_MAX)) {
  }
  return run.Snapshot();
}

// By hand: of the windows of five minutes in which a request came, those in which at most a tenth
// of them took longer than the target.
double WindowsKeptBy(const Report& report, double limit_ms) {
  const std::vector<double>&arrival = report.ColumnOf("arrival_s"),
        &e2e = report.ColumnOf("e2e_ms");
  double windows = 0, kept = 0;
  for (double from = 0; from < report.simulated_s; from += 300) {
    double of = 0, beyond = 0;
    for (std::size_t i = 0; i < arrival.size(); ++i) {
      if (!(arrival[i] >= from && arrival[i] < from + 300)) continue;
      ++of;
      if (!(e2e[i] <= limit_ms)) ++beyond;
    }
    if (of == 0) continue;
    ++windows;
    if (beyond <= 0.1 * of) ++kept;
  }
  return kept / windows;
}

TEST(PlanAutoscale, EachRow_IsWhatARunSays) {
  const AutoscalePlan& plan = Usual();
  const AutoscaleAnswer answer = plan.Answer();
  ASSERT_EQ(answer.outcome, PlanOutcome::kFound);
  for (const std::size_t place : {*answer.fixed, *answer.schedule, *answer.chosen}) {
    const AutoscaleRow& row = answer.rows[place];
    ASSERT_EQ(row.days.size(), 4u);
    for (const std::size_t day : {0u, 3u}) {
      const Report report = RunOf(plan.scenario(), row.policy, day);
      const AutoscaleDay& of = row.days[day];
      EXPECT_EQ(of.values[0], report.slo[0].value_ms) << row.policy.name;
      EXPECT_EQ(of.met, report.slo[0].met);
      if (row.policy.kind == AutoscaleKind::kFixed) {
        EXPECT_DOUBLE_EQ(of.gpu_hours,
                         static_cast<double>(row.policy.replicas) * report.simulated_s / 3600);
      } else {
        EXPECT_EQ(of.gpu_hours, report.scaling.gpu_hours);
        EXPECT_EQ(of.peak_up, report.scaling.peak_up);
      }
      EXPECT_DOUBLE_EQ(of.windows_kept, WindowsKeptBy(report, 4000));
    }
  }
}

// All policies, every day: nothing that keeps the target costs clearly less than the answer.
TEST(PlanAutoscale, BruteForce_FindsNothingCheaper) {
  const AutoscalePlan& plan = Usual();
  const AutoscaleAnswer answer = plan.Answer();
  ASSERT_TRUE(answer.chosen);
  const AutoscaleRow& fixed = answer.rows[*answer.fixed];
  const double chosen = answer.rows[*answer.chosen].GpuHours().value;
  EXPECT_LT(chosen, 0.9 * fixed.GpuHours().value);
  EXPECT_LE(answer.rows[*answer.schedule].GpuHours().value, fixed.GpuHours().value);

  // One replica fewer throughout misses it.
  const Report fewer = RunOf(plan.scenario(), FixedReplicas(fixed.policy.replicas - 1), 0);
  EXPECT_FALSE(fewer.slo[0].met);

  AutoscaleLoad load;
  const Report first = RunOf(plan.scenario(), fixed.policy, 0);
  load.fixed = fixed.policy.replicas;
  load.bin_s = 60;
  for (const double at : first.ColumnOf("arrival_s")) {
    const auto bin = static_cast<std::size_t>(at / 60);
    load.per_s.resize(std::max(load.per_s.size(), bin + 1));
    load.per_s[bin] += 1.0 / 60;
  }
  load.per_s.back() = load.per_s[load.per_s.size() - 2];
  load.mean_e2e_s = first.e2e_ms.mean / 1000;
  load.mean_kv_usage = first.kv_mean_usage;
  std::size_t tried = 0, keep = 0;
  double cheapest = HUGE_VAL;
  for (const AutoscaleFamily& family :
       Scalers(plan.scenario().cluster.scaling, plan.scenario().cluster.pool().replicas, load)) {
    for (const AutoscalePolicy& policy : family) {
      AutoscaleRow row;
      row.policy = policy;
      for (std::size_t day = 0; day < 4; ++day) {
        const Report report = RunOf(plan.scenario(), policy, day);
        AutoscaleDay of;
        of.values = {report.slo[0].value_ms};
        of.gpu_hours = report.scaling.gpu_hours;
        row.days.push_back(of);
      }
      ++tried;
      if (StateOf(row, answer, plan.scenario()) != VerdictState::kMeets) continue;
      ++keep;
      cheapest = std::min(cheapest, row.GpuHours().value);
    }
  }
  EXPECT_GT(tried, 30u);
  EXPECT_GT(keep, 10u);
  EXPECT_LT(keep, tried);
  EXPECT_LE(chosen, 1.03 * cheapest) << keep << " of " << tried;
}

TEST(PlanAutoscale, Windows_AreATargetToo) {
  const AutoscaleAnswer any = Usual().Answer();
  const AutoscaleAnswer most = Planned(Rising(), {.days = 4, .windows = 0.97}).Answer();
  ASSERT_TRUE(any.chosen && most.chosen);
  const AutoscaleRow &bold = any.rows[*any.chosen], &safe = most.rows[*most.chosen];
  EXPECT_LT(bold.WindowsKept().value, 0.97);
  EXPECT_GE(safe.WindowsKept().low, 0.97);
  EXPECT_NE(safe.policy.name, bold.policy.name);
  EXPECT_GT(safe.GpuHours().value, 0.97 * bold.GpuHours().value);
}

TEST(PlanAutoscale, Slices_ChangeNothing) {
  const auto text = [](const AutoscalePlan& plan) {
    JsonWriter out(false);
    out.BeginObject();
    WriteAutoscale(plan.scenario(), plan.Answer(), out);
    out.EndObject();
    return out.Take() + AutoscaleSentence(plan.scenario(), plan.Answer());
  };
  EXPECT_EQ(text(Usual()), text(Planned(Rising(), {.days = 4}, 5'000)));
}

// The load of each hour takes the place of the scenario's profile, and the horizon ends the day.
TEST(PlanAutoscale, Hours_AreTheLoad) {
  const AutoscalePlan plan = Good(AutoscalePlan::Create(
      Parsed(Rising({R"(workload.arrivals={"rate_per_s":2})"})), {}, {.hours = {1, 3}}));
  const Report report = RunOf(plan.scenario(), FixedReplicas(2), 0);
  EXPECT_NEAR(report.simulated_s, 7200, 60);
  const std::vector<double>& arrival = report.ColumnOf("arrival_s");
  const auto first =
      std::count_if(arrival.begin(), arrival.end(), [](double at) { return at < 3600; });
  const auto all =
      std::count_if(arrival.begin(), arrival.end(), [](double at) { return at < 7200; });
  EXPECT_NEAR(static_cast<double>(first), 7200, 5 * std::sqrt(7200.0));
  EXPECT_NEAR(static_cast<double>(all - first), 21600, 5 * std::sqrt(21600.0));
}

TEST(PlanAutoscale, Schedule_IsThereWhenTheLoadComes) {
  AutoscaleLoad load;
  load.fixed = 4;
  load.bin_s = 100;
  load.per_s = {1, 1, 4, 4, 2, 2};
  const AutoscaleFamily family = Schedules({}, load, 30);
  const auto found = std::find_if(family.begin(), family.end(), [](const AutoscalePolicy& policy) {
    return policy.name.find("100") != std::string::npos;
  });
  ASSERT_NE(found, family.end());
  EXPECT_EQ(found->replicas, 1);
  const NumberTable expected = {{170, 4}, {400, 2}};
  EXPECT_EQ(found->scaling.schedule, expected);
  EXPECT_EQ(found->scaling.max_replicas, 4);
}

TEST(PlanAutoscale, OwnScaler_IsRunToTheEnd) {
  const AutoscaleAnswer answer =
      Planned(Rising({R"(cluster.scaling={"policy":"hpa","metric":"waiting","target":1e8,)"
                      R"("engine_s":10,"weights_gb_s":4,"max_replicas":3})"}))
          .Answer();
  const auto own = std::find_if(answer.rows.begin(), answer.rows.end(), [](const AutoscaleRow& r) {
    return r.policy.name == "own scaler";
  });
  ASSERT_NE(own, answer.rows.end());
  EXPECT_EQ(own->days.size(), 5u);
  EXPECT_EQ(own->policy.scaling.params.at("target"), 1e8);
  EXPECT_EQ(own->PeakUp(), 1);  // it never acts
}

// One replica and two are full, and miss by as much: that says nothing of eight.
TEST(PlanAutoscale, FullReplicas_DoNotSayThatMoreWouldNotHelp) {
  const std::vector<std::string> busy = {
      "engine.max_num_seqs=64",
      R"(workload.arrivals={"profile":"piecewise","rate_factors":[[0,60],[60,150],[120,60]]})",
      "workload.requests=20000", "cluster.pools.0.replicas=1"};
  for (const char* slo : {R"(slo=[{"metric":"tpot","percentile":99,"limit_ms":7.4}])",
                          R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":60}])"}) {
    std::vector<std::string> all = busy;
    all.insert(all.end(), {slo, "measure.horizon_s=180"});
    const AutoscaleAnswer answer = Planned(Rising(all), {.days = 4}).Answer();
    ASSERT_TRUE(answer.fixed) << slo;
    EXPECT_GT(answer.rows[*answer.fixed].policy.replicas, 1) << slo;
    EXPECT_LT(answer.rows[*answer.fixed].policy.replicas, 20) << slo;
  }
}

TEST(PlanAutoscale, WhatNothingKeeps_IsSaid) {
  const AutoscalePlan plan =
      Planned(Rising({R"(slo=[{"metric":"tpot","percentile":50,"limit_ms":0.01}])"}));
  EXPECT_EQ(plan.Answer().outcome, PlanOutcome::kNone);
  EXPECT_EQ(AutoscaleSentence(plan.scenario(), plan.Answer()),
            "No number of replicas keeps the targets over this load, so no scaler was tried.");
}

TEST(PlanAutoscale, OneReplicaThroughout_LeavesNothingToScale) {
  const AutoscalePlan plan = Planned(Rising(
      {"engine.max_num_seqs=64",
       R"(workload.arrivals={"profile":"piecewise","rate_factors":[[0,3],[300,7.5],[700,3]]})"}));
  const AutoscaleAnswer answer = plan.Answer();
  EXPECT_EQ(answer.outcome, PlanOutcome::kNone);
  EXPECT_EQ(answer.rows[*answer.fixed].policy.replicas, 1);
  EXPECT_NE(AutoscaleSentence(plan.scenario(), answer).find("there is nothing to scale"),
            std::string::npos);
}

// Requests that have no answer are beyond a limit, whatever the others took.
TEST(PlanAutoscale, LostRequests_MissATarget) {
  const std::vector<std::string> lossy = {
      R"(workload.classes=[{"name":"a","timeout_s":2}])",
      R"(slo=[{"metric":"tpot","percentile":95,"limit_ms":60}])"};
  const AutoscalePlan plan = Planned(Rising(lossy), {.days = 4});
  const AutoscaleAnswer answer = plan.Answer();
  bool missed = false;
  for (const AutoscaleRow& row : answer.rows) {
    const VerdictState state = StateOf(row, answer, plan.scenario());
    if (row.DaysMet() == 0) {
      EXPECT_EQ(state, VerdictState::kMisses) << row.policy.name;
      missed = true;
    }
    if (state == VerdictState::kMeets) {
      EXPECT_GT(row.DaysMet(), 0) << row.policy.name;
    }
  }
  EXPECT_TRUE(missed);
}

// Limits that somebody has set are those of all that is tried.
TEST(PlanAutoscale, OwnLimits_AreKept) {
  const AutoscaleAnswer answer =
      Planned(Rising({R"(cluster.scaling={"policy":"hpa","metric":"outstanding","target":2,)"
                      R"("engine_s":10,"weights_gb_s":4,"min_replicas":2,"max_replicas":5})",
                      "cluster.pools.0.replicas=2"}),
              {.days = 4})
          .Answer();
  for (const AutoscaleRow& row : answer.rows) {
    if (row.policy.kind != AutoscaleKind::kScaler) continue;
    EXPECT_GE(row.policy.scaling.min_replicas, 2) << row.policy.name;
    EXPECT_EQ(row.policy.scaling.max_replicas, 5) << row.policy.name;
  }
}

std::string Refused(const std::string& document, AutoscaleOptions options = {}) {
  const Result<AutoscalePlan> plan =
      AutoscalePlan::Create(Parsed(document), {}, std::move(options));
  return plan.ok() ? "" : Listed(plan.issues());
}

TEST(PlanAutoscale, WhatCannotBeAsked_IsSaidAtOnce) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::string flat = R"(workload.arrivals={"rate_per_s":2})";
  EXPECT_TRUE(has(Refused(Rising({flat})), "/workload/arrivals/profile: found \"flat\""));
  EXPECT_TRUE(has(Refused(Rising({"slo=[]"})), "/slo: found no target"));
  EXPECT_TRUE(has(Refused(Rising(), {.days = 3}), "days: found 3, allowed 4 to 30"));
  EXPECT_TRUE(has(Refused(Rising(), {.windows = 1.5}), "windows: found 150 %"));
  EXPECT_TRUE(has(Refused(Rising(), {.hours = {1, 0}}), "hours: found 0 times the load"));
  EXPECT_TRUE(has(Refused(Rising(), {.hours = std::vector<double>(169, 1)}), "hours: found 169"));
  EXPECT_TRUE(
      has(Refused(Rising({R"(workload.arrivals={"rate_per_s":900000})"}), {.hours = {1, 2}}),
          "/workload/arrivals/rate_per_s: found more than"));
  EXPECT_TRUE(has(Refused(Rising({R"(workload.arrivals={"process":"closed_loop"})"})),
                  "/workload/arrivals/process: found one without a rate"));
  EXPECT_TRUE(has(Refused(Rising({"workload.arrivals.max_concurrency=4"})), "max_concurrency"));
  EXPECT_TRUE(has(Refused(Rising({R"(cluster.scaling={"policy":"none"})",
                                  R"(cluster.pools=[{"replicas":1},{"replicas":1}])"})),
                  "/cluster/pools: found 2 pools"));
  EXPECT_TRUE(has(Refused(Rising({"measure.horizon_s=600"}), {.hours = {1, 2}}),
                  "/measure/horizon_s: found 600 s"));
  EXPECT_TRUE(has(Refused(Rising({"measure.warmup_s=7200"}), {.hours = {1, 2}}),
                  "/measure/warmup_s: found 7200 s"));
  EXPECT_TRUE(has(Refused(Rising({R"(cluster.scaling={"policy":"none"})",
                                  R"(cluster.failures={"schedule":[[10,0]]})"})),
                  "/cluster/failures/schedule: found rows"));
  EXPECT_TRUE(has(Refused(Rising({R"(slo=[{"metric":"itl","percentile":99,"limit_ms":30}])"}),
                          {.windows = 0.9}),
                  "windows: found some beside a target of ITL"));
}

// The settings of the answer, put into the document, are the policy that was run.
TEST(PlanAutoscale, Settings_MakeTheScenario) {
  Question question = Good(Question::Create("autoscale", Parsed(Rising()), {}, {.days = 4}));
  while (!question.Advance(INT64_MAX)) {
  }
  const json answer = json::parse(question.Json(false));
  const json& chosen = answer["policies"][answer["chosen"].get<std::size_t>()];
  std::vector<std::string> overrides;
  for (const auto& [path, value] : chosen["settings"].items())
    overrides.push_back(path + "=" + value.dump());
  // A scaler of the scenario's own, with parameters that would stay, is replaced.
  overrides.insert(overrides.begin(), R"(cluster.scaling={"policy":"wva","kv_threshold":0.6})");
  const Scenario scenario = Parsed(Rising(overrides));
  Simulation run = Good(Simulation::Create(scenario));
  while (!run.Advance(INT64_MAX)) {
  }
  const Report report = run.Snapshot(ReportDetail::kSummary);
  const AutoscaleAnswer of = Usual().Answer();
  EXPECT_EQ(report.scaling.gpu_hours, of.rows[*of.chosen].days[0].gpu_hours);
  EXPECT_EQ(chosen["replicas"].size(), report.scaling.steps.size());
  EXPECT_NE(question.Sentence().find("GPU-hours"), std::string::npos);
}

}  // namespace
}  // namespace servecast::testing::plan_autoscale_test
