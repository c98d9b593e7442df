// The cheapest of many designs: what a search asks, in which order, and what it concludes.
#include "plan/design_search.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "experiment/advise.h"
#include "gtest/gtest.h"
#include "io/axes.h"
#include "io/design_json.h"
#include "io/presets.h"
#include "io/prices.h"
#include "plan/design_plan.h"
#include "plan/design_requests.h"
#include "plan/design_search_words.h"
#include "plan/named_axes.h"
#include "plan/token_prices.h"
#include "servecast/simulation.h"
#include "testing/asked.h"
#include "testing/words.h"
#include "workload/workload.h"

namespace servecast::testing::design_search_test {
namespace {

std::string Document(std::vector<std::string> changes = {}) {
  changes.insert(changes.begin(),
                 {kTargets, "workload.arrivals.rate_per_s=60", "workload.output_tokens.value=60"});
  return Changed(changes);
}

Axis AxisFrom(const std::string& text) {
  std::optional<Axis> axis = AxisOf(text);
  EXPECT_TRUE(axis) << text;
  return axis.value_or(Axis());
}

std::vector<Axis> AxesFrom(const std::vector<std::string>& texts) {
  std::vector<Axis> axes;
  for (const std::string& text : texts) axes.push_back(AxisFrom(text));
  return axes;
}

DesignTask TaskOf(Rung rung, std::string document) {
  DesignTask task;
  task.rung = rung;
  task.document = std::move(document);
  return task;
}

DesignPoint Answered(const DesignTask& task, std::int64_t slice = INT64_MAX) {
  DesignPlan plan = Good(DesignPlan::Create(task));
  double before = 0;
  while (!plan.Advance(slice)) {
    EXPECT_GE(plan.Progress(), before);
    before = plan.Progress();
    EXPECT_LT(before, 1);
  }
  EXPECT_EQ(plan.Progress(), 1);
  return plan.Point();
}

// By way of what travels between processes.
DesignSearch Searched(const std::string& document, const std::vector<std::string>& axes,
                      SearchOptions options = {}, std::uint32_t shuffle = 0) {
  DesignSearch search = Good(DesignSearch::Create(document, AxesFrom(axes), options));
  std::mt19937 order(shuffle);
  double before = 0;
  while (!search.finished()) {
    std::vector<DesignTask> tasks = search.Tasks();
    EXPECT_FALSE(tasks.empty());
    if (shuffle > 0) std::shuffle(tasks.begin(), tasks.end(), order);
    for (const DesignTask& task : tasks) {
      const DesignPoint point = Answered(Good(ReadTask(TaskJson(task))));
      search.Take(Good(ReadPoint(PointJson(point))));
      EXPECT_GE(search.Progress(), before);
      before = search.Progress();
    }
  }
  EXPECT_EQ(search.Progress(), 1);
  EXPECT_TRUE(search.Tasks().empty());
  return search;
}

// ---- Axes and designs ---------------------------------------------------------------------------

TEST(Axes, HaveTheirValues) {
  const Axis axis = AxisFrom(R"(a.b=1,{"x":[2,3]},"4,5",six)");
  EXPECT_EQ(axis.path, "a.b");
  EXPECT_EQ(axis.values, (std::vector<std::string>{"1", R"({"x":[2,3]})", R"("4,5")", "six"}));
  for (const char* bad : {"", "a", "=1", "a=", "a=1,,2", "a=1,"}) EXPECT_FALSE(AxisOf(bad)) << bad;
}

TEST(Axes, AnotherGpu_LeavesTheOwnOnesFigures) {
  const std::string own = Changed({"hardware.price_per_gpu_hour=9"});
  const Scenario other = Parsed(Good(WithValue(own, "hardware.preset", "l40s")));
  EXPECT_EQ(other.hardware.price_per_gpu_hour, 1);
  EXPECT_EQ(Parsed(Good(WithValue(own, "hardware.preset", "h100-sxm"))).hardware.price_per_gpu_hour,
            9);
}

TEST(Axes, AGpuForAll_IsThatOfPoolsWithTheirOwnToo) {
  const std::string pools = Changed(
      {R"(cluster.pools=[{"role":"prefill","hardware":{"preset":"l40s"}},{"role":"decode"}])"});
  for (const char* gpu : {"h100-sxm", "h200-sxm"}) {
    const Scenario set = Parsed(Good(WithValue(pools, "hardware.preset", gpu)));
    for (const PoolSpec& pool : set.cluster.pools) {
      EXPECT_FALSE(pool.hardware.has_value()) << gpu;
      EXPECT_EQ(pool.role == PoolRole::kPrefill, &pool == &set.cluster.pools[0]);
    }
  }
}

TEST(Axes, EveryPool_IsSet) {
  const std::string pools =
      Changed({R"(cluster.pools=[{"role":"prefill"},{"role":"decode","replicas":2}])"});
  const Scenario set = Parsed(Good(WithValue(pools, "cluster.pools.*.tensor_parallel", "2")));
  EXPECT_EQ(set.cluster.pools[0].tensor_parallel, 2);
  EXPECT_EQ(set.cluster.pools[1].tensor_parallel, 2);
  const std::string none = Good(WithValue(SmallDocument(), "cluster.pools.*.tensor_parallel", "4"));
  EXPECT_EQ(Parsed(none).cluster.pools[0].tensor_parallel, 4);
}

TEST(Axes, Roles_AreOnePoolOrTwoLikeIt) {
  const std::string own =
      Changed({R"(cluster.pools=[{"name":"all","tensor_parallel":2,"replicas":3}])"});
  const std::string apart = Good(WithValue(own, "roles", "disaggregated"));
  const std::vector<PoolSpec> pools = Parsed(apart).cluster.pools;
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].role, PoolRole::kPrefill);
  EXPECT_EQ(pools[1].role, PoolRole::kDecode);
  for (const PoolSpec& pool : pools) {
    EXPECT_EQ(pool.tensor_parallel, 2);
    EXPECT_EQ(pool.replicas, 3);
  }
  EXPECT_EQ(Good(WithValue(apart, "roles", "disaggregated")), apart);
  const std::string handed = Good(ApplyOverrides(
      apart, {"cluster.disaggregation.base_latency_us=9", "cluster.decode_router.policy=random"}));
  const ClusterSpec together = Parsed(Good(WithValue(handed, "roles", "aggregated"))).cluster;
  ASSERT_EQ(together.pools.size(), 1u);
  EXPECT_EQ(together.pools[0].role, PoolRole::kMixed);
  EXPECT_EQ(Good(WithValue(own, "roles", "aggregated")), own);
  EXPECT_EQ(Parsed(Good(WithValue(SmallDocument(), "roles", "disaggregated"))).cluster.pools.size(),
            2u);
  EXPECT_NE(Listed(WithValue(own, "roles", "apart").issues()).find("allowed aggregated or"),
            std::string::npos);
}

TEST(Axes, ReplicasThatShareExperts_ComeInGroups) {
  const auto replicas = [](const std::string& given, const std::string& shared) {
    const std::string document =
        Changed({"model={\"preset\":\"mixtral-8x7b\"}", "cluster.pools.0.replicas=" + given});
    return Parsed(Good(WithValue(document, "cluster.pools.*.attention_data_parallel", shared)))
        .cluster.pools[0]
        .replicas;
  };
  EXPECT_EQ(replicas("1", "4"), 4);
  EXPECT_EQ(replicas("8", "4"), 8);
  EXPECT_EQ(replicas("5", "4"), 8);
}

TEST(Axes, Prices_AreThoseOfAList) {
  const std::string gpu = R"(hardware={"preset":"h100-sxm"})";
  const HardwareSpec listed =
      Parsed(Good(WithValue(Changed({gpu}), "prices", "on-demand"))).hardware;
  EXPECT_EQ(listed.price_per_gpu_hour, 6.88);
  EXPECT_NE(listed.price_basis.find("at AWS, July 2026"), std::string::npos);
  const std::string typed = Changed({gpu, "hardware.price_per_gpu_hour=9"});
  EXPECT_EQ(Parsed(Good(WithValue(typed, "prices", "on-demand"))).hardware.price_per_gpu_hour, 9);
  const std::string none = Changed({R"(hardware={"preset":"rtx-4090"})"});
  const std::string without = Good(WithValue(none, "prices", "on-demand"));
  EXPECT_FALSE(Parsed(without).hardware.price_per_gpu_hour.has_value());
  EXPECT_NE(Listed(Unpriced(without, "on-demand")).find("no price of rtx-4090"), std::string::npos);
  EXPECT_TRUE(Unpriced(typed, "on-demand").empty());
  const std::string pools = Changed(
      {gpu,
       R"(cluster.pools=[{"role":"prefill","hardware":{"preset":"l40s"}},{"role":"decode"}])"});
  const Scenario both = Parsed(Good(WithValue(pools, "prices", "on-demand")));
  EXPECT_EQ(both.cluster.pools[0].hardware.value_or(HardwareSpec()).price_per_gpu_hour, 1.861);
  EXPECT_EQ(both.hardware.price_per_gpu_hour, 6.88);
  EXPECT_NE(Listed(WithValue(typed, "prices", "free").issues()).find("on-demand or reserved-1y"),
            std::string::npos);
}

// A GPU that is like another in other respects does not have its price; each price has a source.
TEST(Axes, PricesOfPresets_AreTheirOwnOrNone) {
  const auto has_source = [](const nlohmann::json& file, const char* of) {
    return file.contains("sources") && file["sources"].contains(of);
  };
  int without = 0;
  for (const std::string_view id : AllPresetIds("hardware")) {
    const nlohmann::json file = nlohmann::json::parse(PresetText("hardware", id));
    const bool own = file["document"].contains("price_per_gpu_hour");
    EXPECT_EQ(own, has_source(file, "price_per_gpu_hour")) << id;
    const std::string document =
        Changed({"hardware={\"preset\":\"" + std::string(id) + "\"}", kTargets});
    const HardwareSpec hardware = Parsed(document).hardware;
    ASSERT_EQ(hardware.price_per_gpu_hour.has_value(), own) << id;
    EXPECT_EQ(hardware.price_basis.empty(), !own) << id;
    if (own) continue;
    ++without;
    const Result<CostAnswer> cost = CostOfLoad(Parsed(document), {}, {});
    ASSERT_FALSE(cost.ok()) << id;
    EXPECT_EQ(cost.issues()[0].path, "/hardware/price_per_gpu_hour");
    EXPECT_FALSE(CostPerHour(Parsed(document)).has_value()) << id;
  }
  EXPECT_GE(without, 5);  // h20, b300-sxm, gb300, rtx-5090, rtx-a6000 ...
  for (const std::string_view list : PresetIds("prices")) {
    const nlohmann::json file = nlohmann::json::parse(PresetText("prices", list));
    for (const auto& [id, price] : file["document"].items()) {
      EXPECT_TRUE(has_source(file, id.c_str())) << list << " " << id;
      EXPECT_GT(price["price_per_gpu_hour"], 0) << list << " " << id;
      EXPECT_FALSE(price["price_basis"].get<std::string>().empty()) << list << " " << id;
      EXPECT_FALSE(NameOfPreset("hardware", id).id.empty()) << list << " " << id;
    }
  }
}

// The presets' own prices are those of a list, with the same terms.
TEST(Axes, PricesOfPresets_AreThoseOfReservedCapacity) {
  for (const std::string_view id : AllPresetIds("hardware")) {
    const std::string document = Changed({"hardware={\"preset\":\"" + std::string(id) + "\"}"});
    const HardwareSpec own = Parsed(document).hardware;
    EXPECT_EQ(own, Parsed(Good(WithValue(document, "prices", "reserved-1y"))).hardware) << id;
  }
}

TEST(Axes, AskedByName_HaveTheirUsualValues) {
  const auto paths = [](std::string_view names, const std::vector<std::string>& over) {
    std::string all;
    for (const Axis& axis : Good(AxesAsked(Document(), names, AxesFrom(over)))) {
      all += axis.path + "=" + std::to_string(axis.values.size()) + " ";
    }
    return all;
  };
  EXPECT_EQ(paths("", {}), paths("quantization,tp,gpu", {}));
  EXPECT_EQ(paths("", {"seed=1,2"}), "seed=2 ");
  EXPECT_EQ(paths("pp,roles", {"seed=1,2", "cluster.pools.*.pipeline_parallel=1,2,3,4"}),
            "roles=2 cluster.pools.*.pipeline_parallel=4 seed=2 ");
  EXPECT_NE(Listed(AxesAsked("", "pp,cpu", {}).issues()).find("found cpu, allowed gpu, roles, tp"),
            std::string::npos);
  EXPECT_NE(Listed(AxesAsked("", "pp,", {}).issues()).find("allowed gpu"), std::string::npos);
  EXPECT_NE(Listed(AxesAsked("", "pp,pp", {}).issues()).find("pp twice"), std::string::npos);
}

TEST(Designs, AreTheGridAndTheScenarioItself) {
  const auto designs = Good(DesignsOf(
      Document(), AxesFrom({"hardware.preset=l40s,h200-sxm", "model.quantization=none,fp8"})));
  ASSERT_EQ(designs.size(), 5u);
  EXPECT_EQ(designs[0].label, "L40S 48 GB, not quantized");
  EXPECT_EQ(designs[3].label, "H200 SXM 141 GB, fp8");
  EXPECT_TRUE(designs[4].own);
  EXPECT_EQ(designs[4].document, Document());
  for (std::size_t i = 0; i < designs.size(); ++i) {
    EXPECT_EQ(designs[i].id, static_cast<std::int64_t>(i));
    EXPECT_EQ(designs[i].own, i == 4);
    EXPECT_FALSE(designs[i].fixed);
  }
  const auto with_own =
      Good(DesignsOf(Document(), AxesFrom({"cluster.pools.0.replicas=1,2", "seed=1,2"})));
  ASSERT_EQ(with_own.size(), 4u);
  EXPECT_TRUE(with_own[0].own);
  EXPECT_TRUE(with_own[0].fixed);
}

TEST(Designs, WrongAxes_AreAllNamed) {
  const auto issues = [](const std::vector<Axis>& axes) {
    const auto designs = DesignsOf(Document(), axes);
    return designs.ok() ? "" : Listed(designs.issues());
  };
  EXPECT_NE(issues(AxesFrom({"seed=1,2", "seed=3"})).find("seed twice"), std::string::npos);
  EXPECT_NE(issues(AxesFrom({"hardwear.preset=l40s"})).find("hardware"), std::string::npos);
  std::string many = "seed=1";
  for (int i = 2; i <= 101; ++i) many += "," + std::to_string(i);
  std::string more = "name=" + many.substr(5);
  EXPECT_NE(issues(AxesFrom({many, more})).find("allowed 10000"), std::string::npos);
  EXPECT_FALSE(DesignSearch::Create(SmallDocument(), AxesFrom({"seed=1,2"})).ok());  // no target
  EXPECT_FALSE(DesignSearch::Create("[", {}).ok());
  for (const char* scaled : {R"(cluster.scaling={"policy":"hpa"})",
                             R"(cluster.pools=[{"scaling":{"policy":"hpa"}},{}])"}) {
    const auto search = DesignSearch::Create(Document({scaled}), AxesFrom({"seed=1,2"}));
    ASSERT_FALSE(search.ok()) << scaled;
    EXPECT_NE(Listed(search.issues()).find("a plan goes by a fixed number"), std::string::npos);
  }
  const auto refused = [](const std::string& set, const char* axis) {
    const auto search = DesignSearch::Create(Document({set}), AxesFrom({axis}));
    return search.ok() ? "" : search.issues()[0].path;
  };
  const std::string failing = R"(cluster.failures={"schedule":[[60,0]]})";
  EXPECT_EQ(refused(failing, "seed=1,2"), "/cluster/failures/schedule");
  EXPECT_EQ(refused(R"(cluster.slowdowns={"schedule":[[60,0]],"for_s":9,"factor":2})", "seed=1,2"),
            "/cluster/slowdowns/schedule");
  EXPECT_EQ(refused(R"(cluster.rolling_update={"at_s":9})", "seed=1,2"), "/cluster/rolling_update");
  EXPECT_EQ(refused(failing, "cluster.pools.0.replicas=1,2"), "");
}

// Times of one server say nothing of another; its settings may vary.
TEST(Designs, OfABlackbox_AreNotOtherServers) {
  const std::string document = Document({R"(latency={"backend":"blackbox","beta":[5000,10,30]})"});
  for (const char* axis :
       {"hardware.preset=l40s,h100-sxm", "cluster.pools.*.tensor_parallel=1,2",
        "model.quantization=none,fp8", "engine.enable_expert_parallel=false,true"}) {
    const auto designs = DesignsOf(document, AxesFrom({axis}));
    ASSERT_FALSE(designs.ok()) << axis;
    EXPECT_NE(Listed(designs.issues()).find("blackbox"), std::string::npos) << axis;
  }
  EXPECT_TRUE(DesignsOf(document, AxesFrom({"engine.max_num_seqs=64,128"})).ok());
  EXPECT_TRUE(DesignsOf(document, AxesFrom({"cluster.pools.*.tensor_parallel=1"})).ok());
}

// Whatever is typed: a list of designs, each with a document or issues, or issues.
TEST(Designs, AnyAxes_AreDesignsOrIssues) {
  std::mt19937 random(7);
  const std::string letters = "a0.*=,[]{}\"\\-e \n\xc3\xff";
  const std::vector<std::string> paths = {"",      "cluster.pools.*.", "hardware.preset",
                                          "slo.0", "cluster.pools",    "model"};
  for (int i = 0; i < 1000; ++i) {
    std::vector<Axis> axes;
    for (std::size_t a = 0; a <= random() % 2; ++a) {
      std::string text = paths[random() % paths.size()];
      for (std::size_t k = random() % 12; k > 0; --k) text += letters[random() % letters.size()];
      if (auto axis = AxisOf(text)) axes.push_back(*std::move(axis));
    }
    const auto designs = DesignsOf(SmallDocument(), axes);
    if (!designs.ok()) continue;
    for (const Design& design : designs.value()) {
      EXPECT_EQ(design.document.empty(), !design.issues.empty());
    }
  }
}

// ---- Points -------------------------------------------------------------------------------------

TEST(DesignPlan, SlicesAndJson_ChangeNothing) {
  for (const Rung rung : {Rung::kBound, Rung::kCoarse, Rung::kCertain}) {
    const DesignTask task = TaskOf(rung, Document());
    const std::string whole = PointJson(Answered(task));
    EXPECT_EQ(PointJson(Answered(task, 1000)), whole);
    EXPECT_EQ(PointJson(Good(ReadPoint(whole))), whole);
    EXPECT_EQ(TaskJson(Good(ReadTask(TaskJson(task)))), TaskJson(task));
  }
}

TEST(DesignPlan, OtherTexts_AreNoTasksAndNoPoints) {
  const std::string point = PointJson(Answered(TaskOf(Rung::kCoarse, Document())));
  EXPECT_TRUE(ReadPoint(point).ok());
  for (std::size_t cut = 0; cut < point.size(); cut += 7) {
    EXPECT_FALSE(ReadPoint(point.substr(0, cut)).ok());
  }
  for (const char* bad : {"", "[]", "{}", "null", R"({"id":"1"})"}) {
    EXPECT_FALSE(ReadPoint(bad).ok()) << bad;
    EXPECT_FALSE(ReadTask(bad).ok()) << bad;
  }
  std::string wrong = point;
  wrong.replace(wrong.find("\"closest\":") + 10, 1, "9");
  EXPECT_FALSE(ReadPoint(wrong).ok());
}

TEST(DesignPlan, BoundsAreBelowWhatRunsFind) {
  for (const char* change :
       {"seed=1", "hardware.preset=a100-80gb", "model.quantization=fp8",
        "engine.max_num_batched_tokens=256",
        R"(workload.prompt_tokens={"distribution":"lognormal","median":300,"p99":3000})",
        "cluster.pools.0.tensor_parallel=2", "cluster.pools.0.pipeline_parallel=2",
        R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"}) {
    DesignTask task = TaskOf(Rung::kBound, Document({change}));
    const DesignPoint bound = Answered(task);
    ASSERT_EQ(bound.state, DesignState::kUnknown) << change << bound.reason;
    task.rung = Rung::kCoarse;
    task.start = bound.start;
    const DesignPoint found = Answered(task);
    ASSERT_EQ(found.targets.size(), 2u) << change << found.reason;
    EXPECT_LE(bound.least_gpus, static_cast<double>(GpusOf(found))) << change;
    EXPECT_GT(bound.least_gpus, 0) << change;
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_LE(bound.least_strains[k], *found.targets[k].strain) << change;
      EXPECT_GT(bound.least_strains[k], 0) << change;
    }
  }
}

TEST(DesignPlan, GivenReplicas_StayAsTheyAre) {
  DesignTask task = TaskOf(Rung::kCertain, Document({"cluster.pools.0.replicas=3"}));
  task.fixed = true;
  task.start = {1};
  const DesignPoint point = Answered(task);
  EXPECT_EQ(point.state, DesignState::kMeets);
  EXPECT_EQ(GpusOf(point), 3);
  EXPECT_EQ(GpusOf(point, End::kLow), 3);
  EXPECT_EQ(GpusOf(point, End::kHigh), 3);
}

// ---- Searches -----------------------------------------------------------------------------------

// Beyond what a task allows nobody looks: it is said, and nothing is claimed of its cost.
TEST(DesignPlan, MoreThanAnAlternativeCosts_IsGivenUp) {
  DesignTask task = TaskOf(Rung::kCoarse, Document({"workload.arrivals.rate_per_s=400"}));
  const DesignPoint needs = Answered(task);
  ASSERT_EQ(needs.pools.size(), 1U);
  ASSERT_GT(needs.pools[0].replicas, 2);
  const double each = needs.pools[0].price.value_or(1);
  task.most = 2 * each;
  const DesignPoint given_up = Answered(task);
  EXPECT_TRUE(given_up.given_up);
  EXPECT_EQ(given_up.state, DesignState::kUnknown);
  EXPECT_TRUE(given_up.pools.empty());
  EXPECT_NE(given_up.reason.find("more than 2 replicas"), std::string::npos) << given_up.reason;
  EXPECT_LE(given_up.requests, needs.requests);
  task.most = 100 * each * static_cast<double>(needs.pools[0].replicas);
  EXPECT_EQ(PointJson(Answered(task)), PointJson(needs));
  // Who may not be, may be asked for certain where it might be cheaper.
  task.rung = Rung::kCertain;
  task.most = 0;
  EXPECT_FALSE(Answered(task).given_up);
}

TEST(DesignSearch, DesignsThatCouldNotBeJudged_AreNotSaidToMiss) {
  std::vector<DesignPoint> points(2);
  const std::vector<Axis> axes;
  const std::vector<Design> designs(2);
  const std::vector<SloSpec> targets;
  const auto said = [&](DesignState state) {
    points[0].state = DesignState::kMisses;
    points[1].state = state;
    return SearchSentence({axes, designs, points, targets, /*finished=*/true}, {});
  };
  EXPECT_EQ(said(DesignState::kMisses), "None of 2 designs keeps the targets.");
  EXPECT_EQ(said(DesignState::kUnknown),
            "No design is known to keep the targets: 1 of 2 designs could not be judged.");
  points[1].given_up = true;  // it costs too much, whatever it keeps
  EXPECT_EQ(said(DesignState::kUnknown), "None of 2 designs keeps the targets.");
}

TEST(DesignSearch, OrderOfTasks_ChangesNoByte) {
  const std::vector<std::string> axes = {"hardware.preset=h100-sxm,l40s,a100-80gb",
                                         "model.quantization=none,fp8",
                                         "cluster.pools.*.tensor_parallel=1,2"};
  const std::string in_order = Searched(Document(), axes).Json(true);
  EXPECT_EQ(Searched(Document(), axes, {}, 1).Json(true), in_order);
  EXPECT_EQ(Searched(Document(), axes, {}, 2).Json(true), in_order);
}

TEST(DesignSearch, WhatCannotRun_IsNamedAndKept) {
  const DesignSearch search =
      Searched(Document({"workload.arrivals.rate_per_s=2"}),
               {"model.preset=llama-3.1-8b,llama-3.1-70b", "cluster.pools.*.tensor_parallel=1,3"});
  ASSERT_EQ(search.points().size(), 4u);
  const Conclusion found = search.Conclude();
  EXPECT_EQ(search.points()[1].state, DesignState::kRefused);
  EXPECT_NE(found.reasons[1].find("tensor_parallel"), std::string::npos) << found.reasons[1];
  EXPECT_EQ(search.points()[2].state, DesignState::kDoesNotFit);
  EXPECT_NE(found.reasons[2].find("GiB usable"), std::string::npos) << found.reasons[2];
  EXPECT_EQ(found.frontier, std::vector<std::int64_t>{0});
  EXPECT_TRUE(found.reasons[0].empty());
  const std::string json = search.Json(false);
  for (int id = 0; id < 4; ++id) {
    EXPECT_NE(json.find("{\"id\":" + std::to_string(id) + ","), std::string::npos);
  }
}

// A frontier that rests on a guess says so, and so does the sentence where the cheapest does.
TEST(DesignSearch, GuessesOfTheFrontier_AreSaid) {
  const auto searched = [](const char* link) {
    return Searched(Document({"hardware.preset=l40s", "workload.arrivals.rate_per_s=2",
                              std::string("hardware.interconnect=") + link}),
                    {"cluster.pools.*.tensor_parallel=2"});
  };
  const DesignSearch guess = searched("auto"), known = searched("pcie_p2p");
  ASSERT_TRUE(guess.Conclude().cheapest);
  EXPECT_NE(guess.Sentence().find("is a guess"), std::string::npos) << guess.Sentence();
  const std::string json = guess.Json(false);
  EXPECT_NE(json.find("\"warnings\":[\"How several"), std::string::npos);
  EXPECT_EQ(known.Sentence().find("is a guess"), std::string::npos) << known.Sentence();
}

// Parallelism that a model cannot have.
TEST(DesignSearch, WhatAModelCannotHave_IsNamed) {
  const DesignSearch search = Searched(
      Document(), {"cluster.pools.*.tensor_parallel=1,64", "cluster.pools.*.pipeline_parallel=1,40",
                   "engine.enable_expert_parallel=false,true"});
  const Conclusion found = search.Conclude();
  const auto says = [&](std::size_t id, const char* words) {
    EXPECT_EQ(search.points()[id].state, DesignState::kRefused) << id;
    EXPECT_NE(found.reasons[id].find(words), std::string::npos) << found.reasons[id];
  };
  EXPECT_EQ(search.designs()[0].label, "TP 1, PP 1, no EP");
  EXPECT_EQ(search.designs()[7].label, "TP 64, PP 40, EP");
  says(1, "of a model without experts");
  says(2, "allowed up to the model's 32 layers");
  says(4, "attention heads");
  EXPECT_EQ(search.Conclude().frontier, std::vector<std::int64_t>{0});
}

// Experts of one GPU are whole either way: one of the two is run.
TEST(DesignSearch, ExpertParallelismOfOneGpu_IsRefused) {
  const auto designs = Good(DesignsOf(Document({R"(model={"preset":"mixtral-8x7b"})"}),
                                      AxesFrom({"cluster.pools.*.tensor_parallel=1,2",
                                                "engine.enable_expert_parallel=false,true"})));
  ASSERT_EQ(designs.size(), 4u);
  for (std::size_t i = 0; i < designs.size(); ++i) EXPECT_EQ(designs[i].issues.size(), i == 1);
}

// Of a prefill and a decode pool both numbers are found, and named.
TEST(DesignSearch, Roles_AreComparedWithTheirBestRatio) {
  const DesignSearch search =
      Searched(Document({"workload.arrivals.rate_per_s=10", "slo.1.limit_ms=12"}),
               {"roles=aggregated,disaggregated"});
  ASSERT_EQ(search.points().size(), 2u);
  const DesignPoint& apart = search.points()[1];
  ASSERT_EQ(apart.pools.size(), 2u) << apart.reason;
  EXPECT_EQ(apart.pools[0].role, PoolRole::kPrefill);
  EXPECT_EQ(apart.pools[1].role, PoolRole::kDecode);
  EXPECT_GE(GpusOf(apart), 2);
  EXPECT_EQ(InPools(apart), std::to_string(apart.pools[0].replicas) + " prefill + " +
                                std::to_string(apart.pools[1].replicas) + " decode");
}

TEST(DesignSearch, GpusWithoutAPrice_AreNamedAndNotRun) {
  const DesignSearch search = Searched(Good(WithValue(Document(), "prices", "on-demand")),
                                       {"hardware.preset=h100-sxm,rtx-4090", "prices=on-demand"});
  EXPECT_EQ(search.designs()[0].label, "H100 SXM 80 GB");
  EXPECT_EQ(search.points()[1].runs, 0);
  EXPECT_NE(search.Conclude().reasons[1].find("found no price of rtx-4090"), std::string::npos);
}

// Where no request waited for one of few seats, designs with more are not run, and are the same.
TEST(DesignSearch, MoreSeatsThanAreUsed_AreTheSameRuns) {
  const DesignSearch search = Searched(
      Document(), {"hardware.preset=h100-sxm,a100-80gb,l40s,rtx-4090",
                   "cluster.pools.*.tensor_parallel=1,2", "engine.max_num_seqs=256,16,128"});
  int taken = 0, own = 0;
  for (const DesignPoint& point : search.points()) {
    if (point.rung != Rung::kCoarse) continue;
    (point.runs == 0 ? taken : own) += 1;
    if (point.runs > 0) continue;
    DesignTask task =
        TaskOf(Rung::kCoarse, search.designs()[static_cast<std::size_t>(point.id)].document);
    task.start = point.start;
    const DesignPoint run = Answered(task);
    EXPECT_EQ(run.strain, point.strain) << point.id;
    EXPECT_EQ(GpusOf(run), GpusOf(point)) << point.id;
    EXPECT_EQ(run.goodput_per_s, point.goodput_per_s) << point.id;
  }
  EXPECT_GE(taken, 2);
  EXPECT_GE(own, 2);
}

TEST(DesignSearch, WhatNobodyAskedFor_ChangesNothing) {
  DesignSearch search = Good(DesignSearch::Create(Document(), AxesFrom({"seed=1,2"})));
  const std::string before = search.Json(false);
  DesignPoint foreign;
  for (const std::int64_t id : {-1, 2, 1 << 20}) {
    foreign.id = id;
    search.Take(foreign);
  }
  foreign.id = 0;
  foreign.rung = Rung::kCertain;
  search.Take(foreign);
  EXPECT_EQ(search.Json(false), before);
}

// The cheapest costs what it does among certain answers of all designs. SERVECAST_PLAN_CASES=40 is
// the nightly size.
TEST(DesignSearch, Cheapest_IsThatOfBruteForce) {
  std::mt19937 random(5);
  const auto any = [&random](std::vector<std::string> of) { return of[random() % of.size()]; };
  const std::int64_t cases = Asked("SERVECAST_PLAN_CASES", 3);
  for (std::int64_t i = 0; i < cases; ++i) {
    const std::string document =
        Document({"workload.arrivals.rate_per_s=" + any({"10", "50", "120"}),
                  "workload.output_tokens.value=" + any({"20", "80", "150"}),
                  "workload.prompt_tokens.value=" + any({"50", "300", "900"}),
                  "engine.max_num_seqs=" + any({"16", "64", "256"}),
                  "slo.1.limit_ms=" + any({"12", "20", "40"})});
    const std::vector<std::string> axes = {
        "hardware.preset=h100-sxm,l40s", "model.quantization=none,fp8",
        any({"cluster.pools.*.tensor_parallel=1,2", "cluster.pools.*.tensor_parallel=1,2",
             "cluster.pools.*.pipeline_parallel=1,2", "roles=aggregated,disaggregated"})};
    const DesignSearch halved = Searched(document, axes);
    const DesignSearch all = Searched(document, axes, {.all_certain = true});
    const Conclusion a = halved.Conclude(), b = all.Conclude();
    ASSERT_EQ(a.cheapest.has_value(), b.cheapest.has_value()) << document;
    if (!a.cheapest) continue;
    const double mine = *DollarsPerHour(halved.points()[static_cast<std::size_t>(*a.cheapest)]);
    const double best = *DollarsPerHour(all.points()[static_cast<std::size_t>(*b.cheapest)]);
    EXPECT_NEAR(mine, best, 0.01 * best) << document << axes[2];
    std::int64_t runs = 0, all_runs = 0;
    for (const DesignPoint& point : halved.points()) runs += point.runs;
    for (const DesignPoint& point : all.points()) all_runs += point.runs;
    EXPECT_LT(runs, all_runs);
    for (const std::int64_t id : a.frontier) {
      EXPECT_EQ(halved.points()[static_cast<std::size_t>(id)].rung, Rung::kCertain);
    }
  }
}

// ---- Energy -------------------------------------------------------------------------------------

// Power of the H100 is known, of the L40S not.
const std::vector<std::string> kTwoGpus = {"hardware.preset=h100-sxm,l40s",
                                           "cluster.pools.*.tensor_parallel=1,2",
                                           "model.quantization=none,fp8"};

TEST(DesignSearchByEnergy, AnswerIsThatOfItsRun_AndOfBruteForce) {
  const DesignSearch halved = Searched(Document(), kTwoGpus, {.least = Least::kEnergy});
  const DesignSearch all =
      Searched(Document(), kTwoGpus, {.least = Least::kEnergy, .all_certain = true});
  const Conclusion found = halved.Conclude();
  ASSERT_TRUE(found.least_energy);
  EXPECT_EQ(found.least_energy, all.Conclude().least_energy);
  int known = 0, unknown = 0;
  for (const DesignPoint& point : halved.points()) {
    const Design& design = halved.designs()[static_cast<std::size_t>(point.id)];
    const bool has_law = design.label.find("H100") != std::string::npos;
    EXPECT_EQ(point.energy.has_value(), has_law && point.Holds()) << design.label;
    if (!point.Holds()) continue;
    ++(has_law ? known : unknown);
    if (!has_law) continue;
    Scenario scenario = Parsed(design.document);
    scenario.cluster.pool().replicas = point.pools[0].replicas;
    Simulation simulation = Good(Simulation::Create(scenario));
    simulation.Advance(INT64_MAX);
    const Report report = simulation.Snapshot(ReportDetail::kSummary);
    EXPECT_EQ(point.energy->j_per_output_token, report.power->j_per_output_token);
    EXPECT_EQ(point.energy->mean_w, report.power->mean_w);
    EXPECT_LT(point.energy->low, point.energy->j_per_output_token);
    ASSERT_TRUE(point.least_j_per_output_token);
    EXPECT_GT(*point.least_j_per_output_token, 0);
    EXPECT_LT(*point.least_j_per_output_token, point.energy->j_per_output_token);
  }
  EXPECT_GT(known, 0);
  const nlohmann::json answer = nlohmann::json::parse(halved.Json(false));
  EXPECT_EQ(answer["answer"]["unit"], "J/token");
  EXPECT_EQ(answer["least_energy"], *found.least_energy);
  EXPECT_TRUE(answer["frontiers"].contains("energy"));
  for (const nlohmann::json& point : answer["points"]) {
    EXPECT_EQ(point["j_per_output_token"].is_null(), point["mean_w"].is_null());
  }
}

TEST(DesignSearchByEnergy, Unasked_LeavesNoTrace) {
  const std::string json = Searched(Document(), kTwoGpus).Json(false);
  for (const char* member : {"j_per_output_token", "mean_w", "least_energy", "\"energy\""}) {
    EXPECT_EQ(json.find(member), std::string::npos) << member;
  }
}

TEST(DesignSearchByEnergy, OfNoGpuThatIsKnown_IsNotKnown) {
  const DesignSearch search = Searched(Document({"hardware.preset=h200-sxm"}),
                                       {"model.quantization=none,fp8"}, {.least = Least::kEnergy});
  const nlohmann::json answer = nlohmann::json::parse(search.Json(false));
  EXPECT_TRUE(answer["answer"].is_null());
  EXPECT_TRUE(answer["least_energy"].is_null());
  EXPECT_FALSE(answer["cheapest"].is_null());
  EXPECT_EQ(search.Sentence().find("Not known: no design that keeps the targets has a GPU whose "
                                   "power is known. The cheapest is $"),
            0U)
      << search.Sentence();
}

TEST(DesignSearch, WithoutPrices_RanksByGpus) {
  const DesignSearch search = Searched(Document({"hardware.price_per_gpu_hour=null"}),
                                       {"cluster.pools.*.tensor_parallel=2,1"});
  const Conclusion found = search.Conclude();
  ASSERT_TRUE(found.cheapest);
  EXPECT_EQ(found.cost, Cost::kGpus);
  EXPECT_EQ(*found.cheapest, 1);
  EXPECT_NE(search.Json(false).find("\"unit\":\"GPUs\""), std::string::npos);
}

// What was asked for before changes nothing.
TEST(DrawnRequests, AreThoseOfTheScenario) {
  const std::vector<std::string> changes = {"seed=1", "seed=2", "workload.requests=50",
                                            "workload.arrivals.rate_per_s=7",
                                            "workload.output_tokens.value=61"};
  for (int round = 0; round < 2; ++round) {
    for (const std::string& change : changes) {
      const Scenario s = Parsed(Document({change}));
      for (int again = 0; again < 2; ++again) {
        const RequestTable drawn = Good(DrawnRequests(s, {})), made = Good(MakeRequests(s, {}));
        EXPECT_EQ(drawn.arrival, made.arrival) << change;
        EXPECT_EQ(drawn.prompt_tokens, made.prompt_tokens) << change;
        EXPECT_EQ(drawn.output_tokens, made.output_tokens) << change;
      }
    }
  }
}

}  // namespace
}  // namespace servecast::testing::design_search_test
