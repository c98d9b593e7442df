// What a verdict rests on and says: shares of requests within limits, what does not fit, evidence
// that is known to be bad, and the laws beside which a run's figures are put.
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "cost/compared.h"
#include "gtest/gtest.h"
#include "metrics/summarize.h"
#include "servecast/experiment.h"
#include "serving/policy.h"

namespace servecast::testing {
namespace {

Report Judged(const std::string& document) {
  Experiment experiment = Good(Experiment::Create(Parsed(document)));
  while (!experiment.Advance(INT64_MAX)) {
  }
  return experiment.Snapshot(ReportDetail::kSummary);
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string Document(const std::string& model, const std::string& gpu,
                     const std::vector<std::string>& set = {}) {
  std::vector<std::string> all = {R"(model={"preset": ")" + model + R"("})",
                                  R"(hardware={"preset": ")" + gpu + R"("})"};
  all.insert(all.end(), set.begin(), set.end());
  return Changed(all);
}

// --- shares of requests within limits

TEST(Attainment, ShareOfARun_IsThatOfItsRequests) {
  const std::string rate = "workload.arrivals.rate_per_s=30";
  const Report known = RunToEnd(Changed({rate}));
  const double ttft_ms = known.ttft_ms.p90, tpot_ms = known.tpot_ms.p90;
  const Report r = RunToEnd(Changed(
      {rate, R"(slo=[{"metric":"attainment","percentile":95,"ttft_ms":)" + std::to_string(ttft_ms) +
                 R"(,"tpot_ms":)" + std::to_string(tpot_ms) + "}]"}));
  const std::vector<double>&ttft = r.ColumnOf("ttft_ms"), &tpot = r.ColumnOf("tpot_ms");
  ASSERT_EQ(ttft.size(), 50u);
  int within = 0;
  for (std::size_t i = 0; i < ttft.size(); ++i) {
    within += ttft[i] <= ttft_ms && tpot[i] <= tpot_ms ? 1 : 0;
  }
  EXPECT_GT(within, 30);
  EXPECT_LT(within, 50);
  ASSERT_TRUE(r.slo[0].share);
  EXPECT_DOUBLE_EQ(*r.slo[0].share, within / 50.0);
  EXPECT_DOUBLE_EQ(*r.slo[0].share, *r.attainment);
  EXPECT_FALSE(r.slo[0].value_ms);
  EXPECT_NEAR(*r.slo[0].margin, 1 - (1 - within / 50.0) / 0.05, 1e-9);
}

// One limit alone is the percentile's target in other words.
TEST(Attainment, OfOneLimit_IsOnTheSideOfThePercentile) {
  const std::string rate = "workload.requests=1000";
  const Report known =
      Judged(Changed({R"(slo=[{"metric":"ttft","percentile":95,"limit_ms":1000}])", rate}));
  for (const double factor : {0.8, 1.2}) {
    const double limit = *known.slo[0].value_ms * factor;
    const Report r = Judged(Changed(
        {R"(slo=[{"metric":"attainment","percentile":95,"ttft_ms":)" + std::to_string(limit) + "}]",
         rate}));
    EXPECT_EQ(r.verdict.state, factor > 1 ? VerdictState::kMeets : VerdictState::kMisses)
        << r.verdict.sentence;
    ASSERT_TRUE(r.slo[0].share && r.slo[0].low_share);
    EXPECT_LE(*r.slo[0].low_share, *r.slo[0].share);
    EXPECT_LE(*r.slo[0].share, *r.slo[0].high_share);
    EXPECT_EQ(*r.slo[0].share >= 0.95, factor > 1);
    EXPECT_TRUE(Contains(r.verdict.sentence, "attainment of TTFT ")) << r.verdict.sentence;
    EXPECT_TRUE(Contains(r.verdict.sentence, " of 95 % (")) << r.verdict.sentence;
  }
}

TEST(Attainment, OfAClass_CountsItsRequestsAlone) {
  const Report r = RunToEnd(
      Changed({R"(workload.classes=[{"name":"short"},
            {"name":"long","prompt_tokens":{"distribution":"fixed","value":4000}}])",
               R"(slo=[{"metric":"attainment","percentile":90,"ttft_ms":60,"class":"short"},
               {"metric":"attainment","percentile":90,"ttft_ms":60,"class":"long"}])"}));
  ASSERT_TRUE(r.slo[0].share && r.slo[1].share);
  EXPECT_GT(*r.slo[0].share, *r.slo[1].share);
}

// Who timed out did not attain, though its first token came in time.
TEST(Attainment, OfRequestsThatTimeOut_IsOneFigure) {
  const std::string document =
      Changed({"workload.requests=1000", R"(workload.classes=[{"name":"a","timeout_s":0.5}])",
               R"(workload.output_tokens={"distribution":"uniform","min":10,"max":150})",
               R"(slo=[{"metric":"attainment","percentile":99,"ttft_ms":500}])"});
  for (const Report& r : {RunToEnd(document), Judged(document)}) {
    EXPECT_GT(r.timed_out, 100);
    ASSERT_TRUE(r.slo[0].share && r.attainment);
    EXPECT_LT(*r.slo[0].share, 0.9);
    EXPECT_NEAR(*r.slo[0].share, *r.attainment, 1e-12);
    EXPECT_EQ(r.verdict.state, VerdictState::kMisses) << r.verdict.sentence;
  }
}

// Prompts that no engine takes count against every metric alike, in one run and in many.
TEST(Targets, DroppedRequests_AreUnservedForEveryMetric) {
  const std::string document =
      Changed({"workload.requests=1000", "engine.max_model_len=600",
               R"(workload.prompt_tokens={"distribution":"uniform","min":1,"max":1000})",
               R"(slo=[{"metric":"ttft","percentile":50,"limit_ms":5000},
               {"metric":"tpot","percentile":50,"limit_ms":5000},
               {"metric":"e2e","percentile":50,"limit_ms":50000},
               {"metric":"attainment","percentile":50,"ttft_ms":5000}])"});
  for (const Report& r : {RunToEnd(document), Judged(document)}) {
    const double unserved = r.slo[0].unserved_share;
    EXPECT_NEAR(unserved, 0.4, 0.05);
    EXPECT_EQ(r.slo[1].unserved_share, unserved);
    EXPECT_EQ(r.slo[2].unserved_share, unserved);
    EXPECT_NEAR(1 - *r.slo[3].share, unserved, 1e-12);
    EXPECT_NEAR(1 - *r.attainment, unserved, 1e-12);
  }
}

// A maximum that some request exceeded is missed, and so it is however many more come.
TEST(Targets, MaximumThatWasExceeded_IsMissed) {
  const auto of = [](double limit_ms) {
    return Changed(
        {"workload.requests=1000", R"(slo=[{"metric":"ttft","percentile":100,"limit_ms":)" +
                                       std::to_string(limit_ms) + "}]"});
  };
  const Report known = Judged(of(1e6));
  EXPECT_EQ(known.verdict.state, VerdictState::kMeets);
  EXPECT_EQ(known.slo[0].low_ms, known.slo[0].value_ms);
  EXPECT_GT(known.slo[0].high_ms, known.slo[0].value_ms);
  const Report missed = Judged(of(0.99 * *known.slo[0].value_ms));
  EXPECT_EQ(missed.verdict.state, VerdictState::kMisses) << missed.verdict.sentence;
  EXPECT_GE(*missed.slo[0].value_ms, *known.slo[0].value_ms);
}

TEST(Attainment, WithoutALimit_IsRefused) {
  const Issues issues = IssuesOf(Changed({R"(slo=[{"metric":"attainment"}])"}));
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].path, "/slo/0/ttft_ms");
  EXPECT_FALSE(IssuesOf(Changed({R"(slo=[{"metric":"attainment","limit_ms":4}])"})).empty());
}

// --- on what

// All that there are; of a scaler the most that it may have.
TEST(Verdict, NamesAllGpusOfTheFleet) {
  const auto on = [](const std::vector<std::string>& overrides) {
    std::vector<std::string> all = {R"(slo=[{"metric":"tpot","percentile":99,"limit_ms":20}])",
                                    "workload.requests=200"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const std::string said = Judged(Changed(all)).verdict.sentence;
    const std::size_t at = said.find(" on ");
    return said.substr(at, said.find(" H100") - at);
  };
  for (const int replicas : {1, 7, 9, 24}) {
    EXPECT_EQ(on({"cluster.pools.0.replicas=" + std::to_string(replicas)}),
              " on " + std::to_string(replicas) + " x");
  }
  EXPECT_EQ(on({"cluster.pools.0.replicas=5", "cluster.pools.0.tensor_parallel=4"}), " on 20 x");
  EXPECT_EQ(
      on({R"(cluster.pools=[{"role":"prefill","replicas":9},{"role":"decode","replicas":4}])"}),
      " on 13 x");
  const auto scaled = [&on](const std::string& policy, const std::string& more) {
    return on({"cluster.pools.0.replicas=2", R"(cluster.scaling={"policy":")" + policy +
                                                 R"(","min_replicas":2,"max_replicas":12)" + more +
                                                 "}"});
  };
  EXPECT_EQ(scaled("hpa", ""), " on up to 12 x");
  EXPECT_EQ(scaled("keda", ""), " on up to 12 x");
  EXPECT_EQ(scaled("dynamo", R"(,"max_gpu_budget":10)"), " on up to 10 x");
  EXPECT_EQ(scaled("dynamo", R"(,"max_gpu_budget":-1)"), " on up to 12 x");
}

// --- what does not fit

TEST(Unfit, ModelLargerThanTheGpu_HasTheSum) {
  const std::string document = Document("llama-3.3-70b", "rtx-4090");
  EXPECT_EQ(IssuesOf(document)[0].kind, "does_not_fit");
  const std::optional<Report> r = UnfitReport(Parsed(document));
  ASSERT_TRUE(r && r->unfit);
  EXPECT_EQ(r->verdict.state, VerdictState::kDoesNotFit);
  EXPECT_EQ(r->verdict.sentence.rfind("Llama-3.3-70B does not fit on 1 x RTX 4090 24 GB: ", 0), 0u)
      << r->verdict.sentence;
  EXPECT_GT(r->unfit->NeededGib(), r->unfit->usable_gib);
  EXPECT_NEAR(r->unfit->usable_gib, 0.9 * r->unfit->total_gib, 1e-9);
  EXPECT_EQ(r->unfit->enough_tensor_parallel, 8);
  EXPECT_TRUE(Contains(ReportJson(*r, ReportParts::kSummary), R"("state": "does_not_fit")"));
}

TEST(Unfit, OneOfTwoPools_IsNamed) {
  const std::optional<Report> r = UnfitReport(Parsed(Document(
      "llama-3.3-70b", "h100-sxm",
      {R"(cluster.pools=[{"name":"a","tensor_parallel":4},{"name":"b","hardware":"rtx-4090"}])"})));
  ASSERT_TRUE(r && r->unfit);
  EXPECT_EQ(r->unfit->pool, "b");
  EXPECT_FALSE(UnfitReport(Parsed(SmallDocument())));
}

// --- evidence

Evidence EvidenceFor(const std::string& document) {
  return RunToEnd(document).latency_model.evidence;
}

TEST(Evidence, ClassOfADeployment_IsThatOfTheServersThatWereMeasured) {
  const Evidence h100 = EvidenceFor(Document("llama-3.1-8b", "h100-sxm"));
  EXPECT_EQ(h100.of, EvidenceClass::kCalibrated);
  ASSERT_FALSE(h100.errors.empty());
  EXPECT_TRUE(h100.left_out);
  EXPECT_EQ(h100.errors[0].figure, "tpot");
  EXPECT_DOUBLE_EQ(h100.errors[0].median, 0.017);  // presets/left_out.json, not compared.json
  EXPECT_TRUE(Contains(h100.sentence, "left out of the fit")) << h100.sentence;

  const Evidence a100 = EvidenceFor(Document("llama-3.1-8b", "a100-80gb"));
  EXPECT_EQ(a100.of, EvidenceClass::kCompared);
  EXPECT_EQ(a100.rows, 2);

  const Evidence l40s = EvidenceFor(Document("llama-3.1-8b", "l40s"));
  EXPECT_EQ(l40s.of, EvidenceClass::kUntested);
  EXPECT_TRUE(l40s.errors.empty());

  // A figure that was changed since takes the claim away.
  EXPECT_EQ(
      EvidenceFor(Document("llama-3.1-8b", "h100-sxm", {"hardware.compute_efficiency=0.7"})).of,
      EvidenceClass::kUntested);
  // Cards on PCIe in a group, and experts in 8 bits: nobody measured them, and it is said.
  const Evidence cards =
      EvidenceFor(Document("llama-3.1-8b", "l40s", {"cluster.pools.0.tensor_parallel=2"}));
  ASSERT_EQ(cards.warnings.size(), 1u);
  EXPECT_TRUE(Contains(cards.warnings[0], "no peer-to-peer"));
  const Report experts =
      RunToEnd(Document("qwen3-30b-a3b", "h100-sxm", {"model.quantization=fp8"}));
  EXPECT_NE(experts.latency_model.evidence.of, EvidenceClass::kCalibrated);
  EXPECT_TRUE(Contains(experts.verdict.note, "block scales")) << experts.verdict.note;
}

// A cache that is nearly full decides by its size, which is computed unless it is given.
// A target that no request can have is neither met nor missed; another that is missed decides.
TEST(Verdict, TargetWithoutASample_IsNotJudged) {
  const std::string per_token = R"({"metric":"tpot","percentile":99,"limit_ms":20})";
  const std::string missed = R"({"metric":"ttft","percentile":50,"limit_ms":0.01})";
  const std::string single = "workload.output_tokens.value=1";
  for (const Report& r : {RunToEnd(Changed({single, "slo=[" + per_token + "]"})),
                          Judged(Changed({single, "slo=[" + per_token + "]"}))}) {
    EXPECT_EQ(r.verdict.state, VerdictState::kNotJudged) << r.verdict.sentence;
    EXPECT_EQ(r.verdict.sentence.rfind("Cannot tell TPOT p99", 0), 0u) << r.verdict.sentence;
  }
  for (const std::string& both : {per_token + "," + missed, missed + "," + per_token}) {
    for (const Report& r : {RunToEnd(Changed({single, "slo=[" + both + "]"})),
                            Judged(Changed({single, "slo=[" + both + "]"}))}) {
      EXPECT_EQ(r.verdict.state, VerdictState::kMisses) << r.verdict.sentence;
      EXPECT_NE(r.verdict.sentence.find("TTFT p50"), std::string::npos) << r.verdict.sentence;
    }
  }
}

// Nobody got a first token: too early to say at 1 ms, a miss once the limit is over, and where all
// of a class were dropped. Nobody is of a class: nothing is known of it.
TEST(Verdict, TargetWithoutASample_IsNotCountedAsMissed) {
  const std::string document = Changed({"workload.requests=1000", "workload.output_tokens.value=1",
                                        R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":1},
                                                {"metric":"tpot","percentile":99,"limit_ms":20}])"});
  for (const Report& r : {RunToEnd(document), Judged(document)}) {
    EXPECT_EQ(r.verdict.state, VerdictState::kMisses);
    EXPECT_TRUE(Contains(r.verdict.sentence, "TTFT")) << r.verdict.sentence;
    EXPECT_FALSE(Contains(r.verdict.sentence, "2 of 2")) << r.verdict.sentence;
  }
}

TEST(Verdict, TargetWithoutASample_IsMissedOnlyWhereSomeoneWaitedOrWasLost) {
  const auto check = [](const std::vector<std::string>& changes, VerdictState state,
                        const char* words) {
    for (const Report& r : {RunToEnd(Changed(changes)), Judged(Changed(changes))}) {
      EXPECT_EQ(r.verdict.state, state) << r.verdict.sentence;
      EXPECT_TRUE(Contains(r.verdict.sentence, words)) << r.verdict.sentence;
    }
  };
  const std::string slow = R"(latency={"backend":"blackbox","alpha":[1e7,0,0],"beta":[1e3,0,0]})";
  const std::string at_once = R"(workload.arrivals={"process":"static"})";
  const std::string first = R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":200}])";
  check({slow, at_once, first, "measure.horizon_s=0.001"}, VerdictState::kNotJudged, "Cannot tell");
  check({slow, at_once, first, "measure.horizon_s=0.5"}, VerdictState::kMisses, "got no token");

  const std::string of_b = R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":200,"class":"b"}])";
  const auto classes = [](const char* b) {
    return std::string(R"(workload.classes=[{"name":"a","share":1},{"name":"b",)") + b + "}]";
  };
  check({of_b, classes(R"("share":1e-6)")}, VerdictState::kNotJudged, "Cannot tell");
  check({of_b, classes(R"("share":1,"prompt_tokens":{"distribution":"fixed","value":900000})")},
        VerdictState::kMisses, "dropped");
}

// A fleet that is at 0 for good: who waits there is no better off than who was dropped.
TEST(Verdict, RequestsThatNeverFinish_MissEveryTarget) {
  for (const std::string target : {"ttft", "tpot", "e2e"}) {
    const std::vector<std::string> changes = {
        "workload.arrivals.rate_per_s=20", "workload.requests=400",
        R"(cluster.scaling={"policy":"schedule","min_replicas":0,"schedule":[[10,0]]})",
        R"(slo=[{"percentile":90,"limit_ms":1e6,"metric":")" + target + R"("}])"};
    for (const Report& r : {RunToEnd(Changed(changes)), Judged(Changed(changes))}) {
      EXPECT_GT(r.slo[0].unserved_share, 0.3) << target;
      EXPECT_FALSE(r.slo[0].met) << target;
      if (r.verdict.state == VerdictState::kOverloaded) continue;
      EXPECT_EQ(r.verdict.state, VerdictState::kMisses) << target << r.verdict.sentence;
      EXPECT_TRUE(
          Contains(r.verdict.sentence, target == "ttft" ? "got no token" : "did not finish"))
          << r.verdict.sentence;
    }
    std::vector<std::string> early = changes;
    early.push_back("measure.horizon_s=9");  // by which they may yet be within
    EXPECT_TRUE(RunToEnd(Changed(early)).slo[0].met) << target;
  }
}

TEST(Verdict, KvMemoryNearlyFull_IsUncertain) {
  const auto check = [](const std::string& size, bool full, bool said) {
    const Report r = RunToEnd(Document(
        "llama-3.1-8b", "h100-sxm",
        {R"(workload.arrivals={"process":"static"})", "workload.requests=300", "engine." + size}));
    EXPECT_EQ(r.kv_peak_usage >= 0.9, full) << size << " " << r.kv_peak_usage;
    EXPECT_EQ(Contains(r.verdict.note, "KV memory was"), said) << size << " " << r.verdict.note;
  };
  check("gpu_memory_utilization=0.9", false, false);
  check("gpu_memory_utilization=0.22", true, true);
  check("num_gpu_blocks_override=60", true, false);
}

TEST(Evidence, PoolsAndRoles_HaveTheWeakestOfAll) {
  EXPECT_EQ(EvidenceFor(Document("llama-3.1-8b", "h100-sxm",
                                 {R"(cluster.pools=[{}, {"hardware":"l40s"}])"}))
                .of,
            EvidenceClass::kUntested);
  const Evidence apart = EvidenceFor(Document(
      "llama-3.1-8b", "h100-sxm", {R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])"}));
  EXPECT_EQ(apart.of, EvidenceClass::kUntested);
  EXPECT_TRUE(Contains(apart.sentence, "No server with prefill and decode apart was measured."));
}

// Steps of vLLM 0.11 with 8-bit weights on H100 came out far too slow.
TEST(Evidence, KnownToBeBad_IsNotJudgedButSimulated) {
  const std::string slo = R"(slo=[{"metric":"tpot","percentile":99,"limit_ms":1000}])";
  const std::string weights = "model.quantization=fp8", old = R"(engine={"preset":"vllm-0.11"})";
  const std::string document = Document("llama-3.1-8b", "h100-sxm", {slo, old, weights});
  for (const Report& r : {Judged(document), RunToEnd(document)}) {
    EXPECT_EQ(r.verdict.state, VerdictState::kNotJudged) << r.verdict.sentence;
    EXPECT_EQ(r.verdict.sentence.rfind("Not judged: TPOT of 3 decode steps on this GPU came out "
                                       "52 % too long. Simulated, ",
                                       0),
              0u)
        << r.verdict.sentence;
    EXPECT_TRUE(r.slo[0].value_ms);
  }
  for (const std::vector<std::string>& set : {std::vector<std::string>{slo, old},
                                              {slo, weights},
                                              {slo, R"(engine={"preset":"trtllm"})"}}) {
    const Report r = RunToEnd(Document("llama-3.1-8b", "h100-sxm", set));
    EXPECT_EQ(r.verdict.state, VerdictState::kMeets) << r.verdict.sentence;
    EXPECT_NE(r.latency_model.evidence.of, EvidenceClass::kKnownBad);
  }
}

// --- laws and bounds

const SanityCheck* CheckOf(const std::vector<SanityCheck>& checks, std::string_view name) {
  for (const SanityCheck& check : checks) {
    if (check.name == name) return &check;
  }
  return nullptr;
}

TEST(Sanity, EveryRun_IsWithinItsBounds) {
  const std::string chat(*ScenarioPreset("llama-3.1-8b-h100-chat"));
  for (const std::vector<std::string>& set :
       {std::vector<std::string>{},
        {"workload.arrivals.rate_per_s=200"},
        {"engine.num_gpu_blocks_override=700", "workload.arrivals.rate_per_s=22"},
        {"engine.async_scheduling=true"},
        {R"(workload.arrivals={"process":"closed_loop","concurrency":32})"},
        {"cluster.pools.0.pipeline_parallel=2"},
        {R"(cluster={"pools":[{"name":"a"},{"name":"b","hardware":{"preset":"a100-80gb"}}]})"},
        {R"(cluster.pools=[{"role":"prefill"},{"role":"decode"}])",
         "workload.arrivals.rate_per_s=20"}}) {
    const Report r = RunToEnd(Changed(set, chat));
    EXPECT_TRUE(CheckOf(r.sanity, "littles_law")) << (set.empty() ? "" : set[0]);
    EXPECT_EQ(r.sanity.size(), 4u);
    for (const SanityCheck& check : r.sanity) {
      EXPECT_TRUE(check.ok) << check.name << " " << check.simulated << " " << check.bound << " "
                            << (set.empty() ? "" : set[0]);
    }
  }
}

TEST(Sanity, EachBrokenBound_IsFound) {
  const Report good = RunToEnd(SmallDocument());
  const auto fails = [&good](std::string_view name, auto breaks) {
    Report r = good;
    breaks(r);
    EXPECT_TRUE(CheckOf(SanityOf(r), name)) << name;
    for (const SanityCheck& check : SanityOf(r)) EXPECT_EQ(check.ok, check.name != name) << name;
  };
  fails("littles_law", [](Report& r) { r.mean_in_system *= 1.1; });
  fails("roofline", [](Report& r) { r.bandwidth_use = r.binding.busy_share * 1.01; });
  fails("kv", [](Report& r) { r.kv_peak_usage = 1.001; });
  fails("utilisation", [](Report& r) { r.binding.busy_share = 1.01; });
}

// Rules between ranks that no rank keeps.
TEST(Verdict, OptionsOfTrtllmWithoutBalance_AreSaid) {
  const auto says = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"scheduler.policy=trtllm", "workload.requests=5"});
    return Contains(Judged(Changed(overrides)).verdict.note,
                    "count with attention_dp_enable_balance alone");
  };
  EXPECT_FALSE(says({}));
  EXPECT_TRUE(says({"scheduler.attention_dp_timeout_iters=60"}));
  EXPECT_TRUE(says({"scheduler.attention_dp_batching_wait_iters=0"}));
}

}  // namespace
}  // namespace servecast::testing
