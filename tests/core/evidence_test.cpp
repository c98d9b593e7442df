// The model of the error: a band never narrows when measurements are taken away, is the same for
// rows and scenarios, and follows the queue.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/documents.h"
#include "evidence/error_field.h"
#include "evidence/response.h"
#include "experiment/evidence_text.h"
#include "gtest/gtest.h"
#include "plan/sure.h"
#include "servecast/error_band.h"
#include "servecast/experiment.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

using testing::Changed;
using testing::Parsed;

Scenario Chat(const std::string& model, const std::string& gpu, double rate = 2) {
  return Parsed(Changed({R"(model={"preset": ")" + model + R"("})",
                         R"(hardware={"preset": ")" + gpu + R"("})", R"(engine={"preset": "vllm"})",
                         "workload.arrivals.rate_per_s=" + std::to_string(rate)}));
}

std::vector<FieldPoint> AllPoints() { return {MeasuredPoints().begin(), MeasuredPoints().end()}; }

// Not the most strained one: its band lies within its limit.
TEST(RestateVerdict, NamesTheTargetLeastSureToBeMet) {
  const Scenario scenario =
      Parsed(Changed({R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":200},)"
                      R"({"metric":"tpot","percentile":99,"limit_ms":20}])"}));
  Report report;
  report.verdict.state = VerdictState::kMeets;
  for (const SloSpec& slo : scenario.slo) {
    SloResult& result = report.slo.emplace_back();
    result.slo = slo;
    result.met = true;
  }
  report.slo[0].value_ms = 38;
  report.slo[1].value_ms = 5;
  Banded banded;
  banded.targets = {TargetBand{26, 361, 26, 361, 0.88}, TargetBand{2, 10, 2, 10, 0.999}};
  banded.probability = 0.88;
  RestateVerdict(scenario, Sureness{}, banded, report);
  EXPECT_NE(report.verdict.sentence.find("closest is TTFT p99"), std::string::npos)
      << report.verdict.sentence;
}

TEST(ErrorField, WithoutSomeMeasurements_IsNeverNarrower) {
  const std::vector<FieldPoint> all = AllPoints();
  std::vector<SetupFeatures> places = {FeaturesOf(Chat("llama-3.1-8b", "h100-sxm")),
                                       FeaturesOf(Chat("gpt-oss-120b", "b200-sxm")),
                                       FeaturesOf(Chat("llama-3.1-8b", "l40s"))};
  for (std::size_t i = 0; i < all.size(); i += 37) places.push_back(all[i].at);
  const ErrorField whole(all);
  for (const std::size_t keep : {2u, 3u, 7u}) {
    std::vector<FieldPoint> some;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % keep != 0) some.push_back(all[i]);
    }
    const ErrorField fewer(some);
    for (const SetupFeatures& place : places) {
      EXPECT_GE(fewer.At(place, 2).half, whole.At(place, 2).half - 1e-12) << place.model;
      EXPECT_GE(fewer.At(place, 2).strange, whole.At(place, 2).strange) << place.model;
    }
  }
  const ErrorField none({});
  for (const SetupFeatures& place : places) {
    EXPECT_GE(none.At(place, 2).half, whole.At(place, 2).half);
    EXPECT_EQ(none.At(place, 2).centre, 0);
  }
}

TEST(ErrorField, NearerMeasurements_MakeItNarrower) {
  const double q = MeasuredScale().q;
  const double near = MeasuredField().At(FeaturesOf(Chat("llama-3.1-8b", "h100-sxm")), q).half;
  const double far = MeasuredField().At(FeaturesOf(Chat("llama-3.1-8b", "l40s")), q).half;
  Scenario changed = Chat("llama-3.1-8b", "h100-sxm");
  changed.hardware.changed = {"memory_bandwidth_gb_s"};
  const double unknown = MeasuredField().At(FeaturesOf(changed), q).half;
  EXPECT_GE(near, kLeastHalf);
  EXPECT_LT(near, 0.12);
  EXPECT_GT(far, near);
  EXPECT_GT(unknown, near);
}

// Steps of a server say nothing of its host.
TEST(ErrorField, WhereFirstTokensWereMeasured_IsNotStrange) {
  const SetupFeatures chat = FeaturesOf(Chat("llama-3.1-8b", "h100-sxm"));
  EXPECT_LT(MeasuredField().StrangenessOf(chat), 0.1);
  SetupFeatures other = chat;
  other.engine = "sglang";
  other.gpu = "mi300x";
  EXPECT_GT(MeasuredField().StrangenessOf(other), MeasuredField().StrangenessOf(chat));
  std::vector<FieldPoint> steps = AllPoints();
  std::erase_if(steps, [](const FieldPoint& p) { return p.at.run == RunKind::kServing; });
  EXPECT_EQ(ErrorField(steps).StrangenessOf(chat), 1);
}

TEST(Response, OfFirstTokensOnAStrangeServer_IsWiderUpwards) {
  StepError error;
  const auto rest = [&error](FigureKind kind, bool first_token, double strange) {
    error.strange = strange;
    Response r;
    AddRest(kind, first_token, false, error, MeasuredScale(), r);
    return r;
  };
  for (const FigureKind kind : {FigureKind::kMean, FigureKind::kTail}) {
    const Response known = rest(kind, true, 0), strange = rest(kind, true, 1);
    EXPECT_EQ(strange.rest_low, known.rest_low);
    EXPECT_GT(strange.rest_high, known.rest_high + 1);
    EXPECT_LT(rest(kind, true, 0.1).rest_high, strange.rest_high);
    EXPECT_EQ(rest(kind, false, 1).rest_high, rest(kind, false, 0).rest_high);
  }
}

// Rows of forecasts name what a scenario says by its numbers.
TEST(SetupFeatures, OfPresets_AreThoseOfMeasuredRows) {
  std::size_t compared = 0;
  for (const char* model : {"llama-3.1-8b", "qwen3-32b", "gpt-oss-120b", "deepseek-v3",
                            "mixtral-8x7b", "llama-4-scout-17b-16e"}) {
    const SetupFeatures of = FeaturesOf(Chat(model, "h200-sxm"));
    for (const FieldPoint& point : MeasuredPoints()) {
      if (point.at.model != of.model) continue;
      ++compared;
      EXPECT_EQ(of.form, point.at.form) << model;
      EXPECT_LT(std::fabs(std::log(of.active_billions / point.at.active_billions)), 0.5) << model;
    }
  }
  EXPECT_GT(compared, 20u);
  const SetupFeatures h200 = FeaturesOf(Chat("llama-3.1-8b", "h200-sxm"));
  EXPECT_EQ(h200.gpu, "h200-sxm");
  EXPECT_EQ(h200.GpuFamily(), "hopper");
  EXPECT_EQ(h200.engine, "vllm");
  EXPECT_EQ(h200.weights, "16");
}

Response Proportional(const StepError& error, double ms, double limit) {
  Response r;
  for (const ErrorFactors& f : NodesOf(error, FieldScale())) r.at.push_back(ms * f.step);
  r.limit = limit;
  return r;
}

TEST(Response, ProportionalToSteps_HasTheBandOfSteps) {
  StepError error;
  error.centre = 0.05;
  error.half = 0.2;
  const FigureBand band = BandOf(Proportional(error, 10, 0));
  EXPECT_NEAR(std::log(band.low / 10), 0.05 - 0.2, 0.01);
  EXPECT_NEAR(std::log(band.high / 10), 0.05 + 0.2, 0.01);
  const Response at_centre = Proportional(error, 10, 10 * std::exp(0.05));
  EXPECT_NEAR(ProbabilityMet({&at_centre, 1}), 0.5, 0.02);
  // Two targets that move together are met together.
  const std::vector<Response> two = {Proportional(error, 10, band.high),
                                     Proportional(error, 20, 2 * band.high)};
  EXPECT_NEAR(ProbabilityMet(two), 0.95, 0.02);
}

TEST(Response, UnboundedAtOneEnd_HasNoUpperEnd) {
  StepError error;
  error.half = 0.2;
  Response r = Proportional(error, 10, 30);
  r.at[5] = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isinf(BandOf(r).high));
  EXPECT_GT(ProbabilityMet({&r, 1}), 0.5);
  EXPECT_LT(ProbabilityMet({&r, 1}), 0.95);
}

struct Answer {
  Report report;
  std::optional<Banded> banded;
};
Answer Banding(const Scenario& scenario, std::int64_t slice) {
  Result<Experiment> run = Experiment::Create(scenario);
  while (!run.value().Advance(INT64_MAX)) {
  }
  Answer answer{run.value().Snapshot(ReportDetail::kSummary), std::nullopt};
  std::optional<ErrorBand> band = ErrorBand::Create(scenario, {}, answer.report);
  if (!band) return answer;
  while (!band->Advance(slice)) {
  }
  answer.banded = band->Put(Sureness(), answer.report);
  return answer;
}

TEST(ErrorBand, OfAScenario_HoldsItsFigureWhateverTheSlices) {
  Scenario scenario = Chat("llama-3.1-8b", "h100-sxm", 5);
  scenario.slo = {{SloMetric::kTpot, 99, 1000, {}, {}, {}, ""}};
  const Answer answer = Banding(scenario, INT64_MAX);
  ASSERT_TRUE(answer.banded && answer.banded->probability);
  const TargetBand& band = *answer.banded->targets[0];
  const SloResult& target = answer.report.slo[0];
  EXPECT_LT(band.low, *target.low_ms);
  EXPECT_GT(*band.high, *target.high_ms);
  EXPECT_LE(band.low, band.model_low);
  EXPECT_GT(*answer.banded->probability, 0.99);
  EXPECT_EQ(answer.report.verdict.state, VerdictState::kMeets);
  const Answer sliced = Banding(scenario, 500);
  EXPECT_EQ(sliced.banded->targets[0]->low, band.low);
  EXPECT_EQ(sliced.banded->targets[0]->high, band.high);
  scenario.slo[0].limit_ms = *target.value_ms * 1.03;
  const Answer close = Banding(scenario, INT64_MAX);
  EXPECT_EQ(close.report.verdict.state, VerdictState::kNear);
  EXPECT_NE(close.report.verdict.sentence.find("probability"), std::string::npos)
      << close.report.verdict.sentence;
  scenario.slo[0].limit_ms = *target.value_ms / 3;
  const Answer missed = Banding(scenario, INT64_MAX);
  EXPECT_LT(*missed.banded->probability, 0.01);
  EXPECT_EQ(missed.report.verdict.state, VerdictState::kMisses);
}

// Half of the requests go to a replica that is down: the others are fast.
TEST(ErrorBand, WhereTooManyAreLost_MeetsNothing) {
  Scenario scenario = Chat("llama-3.1-8b", "h100-sxm", 5);
  scenario.cluster.pools[0].replicas = 2;
  scenario.cluster.failures.schedule = {{10, 0}};
  scenario.cluster.failures.restart_s = scenario.cluster.failures.detect_s = 1e6;
  scenario.slo = {{SloMetric::kTpot, 99, 1000, {}, {}, {}, ""}};
  const Answer answer = Banding(scenario, INT64_MAX);
  ASSERT_TRUE(answer.banded && answer.banded->probability);
  EXPECT_EQ(*answer.banded->probability, 0);
  EXPECT_EQ(answer.banded->targets[0]->probability, 0);
  EXPECT_LT(*answer.banded->targets[0]->high, 1000);
  EXPECT_EQ(answer.report.verdict.state, VerdictState::kMisses);
  EXPECT_NE(answer.report.verdict.sentence.find("lost"), std::string::npos)
      << answer.report.verdict.sentence;
}

// What is served of an overload says at which factors it would be served, however short a node's
// run: a target of attainment fails by it as those of latencies do.
TEST(ErrorBand, OfAnOverload_FailsAttainmentAsPercentiles) {
  Scenario scenario = Chat("llama-3.1-8b", "h100-sxm", 400);
  scenario.workload->requests = 3000;
  const std::vector<std::vector<SloSpec>> sets = {
      {{SloMetric::kAttainment, 95, 0, 400, 30, {}, ""}},
      {{SloMetric::kTtft, 95, 400, {}, {}, {}, ""}, {SloMetric::kTpot, 95, 30, {}, {}, {}, ""}}};
  for (const std::vector<SloSpec>& slo : sets) {
    scenario.slo = slo;
    const Answer answer = Banding(scenario, INT64_MAX);
    ASSERT_TRUE(answer.banded && answer.banded->probability);
    EXPECT_LT(*answer.banded->probability, 0.1);
    EXPECT_EQ(answer.report.verdict.state, VerdictState::kOverloaded)
        << answer.report.verdict.sentence;
  }
}

TEST(ErrorBand, OfACalibratedServer_IsNarrower) {
  Scenario scenario = Chat("qwen3-32b", "h200-sxm", 1);
  scenario.slo = {{SloMetric::kTpot, 99, 1000, {}, {}, {}, ""}};
  const Answer stranger = Banding(scenario, INT64_MAX);
  scenario.calibration.spec_version = "1.0";
  const double before = stranger.banded->error.half_width;
  // Of rows that it was fitted to it says nothing.
  scenario.calibration.errors = {{"run", "tpot", false, 14, 2, 5}};
  EXPECT_DOUBLE_EQ(Banding(scenario, INT64_MAX).banded->error.half_width, before);
  scenario.calibration.errors[0].held_out = true;
  const Answer own = Banding(scenario, INT64_MAX);
  EXPECT_LT(own.banded->error.half_width, 0.8 * before);
  EXPECT_NE(own.banded->error.sentence.find("This server was measured"), std::string::npos);
  scenario.calibration.tensor_parallel = 8;  // of another server
  EXPECT_DOUBLE_EQ(Banding(scenario, INT64_MAX).banded->error.half_width, before);
}

TEST(ErrorBand, OfStatedTimes_IsNotKnown) {
  Scenario scenario = Chat("llama-3.1-8b", "h100-sxm");
  scenario.slo.clear();
  EXPECT_FALSE(Banding(scenario, INT64_MAX).banded);
}

// What is claimed is what a run says there: of a load, of clients and of replicas.
TEST(SurePlaces, HaveTheProbabilityThatARunStates) {
  struct Case {
    const char* name;
    PlanLine line;
    ArrivalProcess process;
    SureRange range;
  };
  for (const Case& c : {Case{"load", PlanLine::kLoad, ArrivalProcess::kPoisson, {40, 90}},
                        Case{"clients", PlanLine::kLoad, ArrivalProcess::kClosedLoop, {30, 90}},
                        Case{"replicas", PlanLine::kReplicas, ArrivalProcess::kPoisson, {2, 1}}}) {
    Scenario scenario = Chat("llama-3.1-8b", "h100-sxm", 20);
    scenario.workload->requests = 1000;
    scenario.workload->arrivals.process = c.process;
    scenario.workload->arrivals.concurrency = 40;
    if (c.line == PlanLine::kReplicas) scenario.workload->arrivals.rate_per_s = 80;
    scenario.slo = {{SloMetric::kTpot, 99, 9, {}, {}, {}, ""}};
    PlanOptions options;
    options.line = c.line;
    const auto answer_of = [&](const SureRange& range, std::int64_t slice) {
      std::optional<SurePlaces> places = SurePlaces::Create(scenario, {}, options, range);
      while (!places->Advance(slice)) {
      }
      return *places->Answer();
    };
    const SureAnswer answer = answer_of(c.range, INT64_MAX);
    ASSERT_TRUE(answer.sure && answer.even) << c.name;
    const auto stated = [&](double at) {
      return *Banding(ScenarioAt(scenario, options, at), INT64_MAX).banded->probability;
    };
    EXPECT_GE(stated(*answer.sure), 0.9) << c.name;
    EXPECT_GE(stated(*answer.even), 0.45) << c.name;
    const bool replicas = c.line == PlanLine::kReplicas;
    const double beyond = replicas ? *answer.sure - 1 : 1.1 * *answer.sure + 1;
    if (beyond >= 1 && (replicas || beyond < c.range.heaviest)) {
      EXPECT_LT(stated(beyond), 0.9) << c.name;
    }
    EXPECT_EQ(answer_of(c.range, 3000).sure, answer.sure) << c.name;
    // However sure, nothing beyond the answer's interval is claimed.
    const SureAnswer narrow = answer_of({*answer.sure, *answer.sure}, INT64_MAX);
    EXPECT_EQ(narrow.sure, answer.sure) << c.name;
    EXPECT_EQ(narrow.even, answer.sure) << c.name;
  }
}

TEST(SurePlaces, OfATargetThatNoLoadKeeps_SaySo) {
  Scenario scenario = Chat("llama-3.1-8b", "h100-sxm", 20);
  scenario.workload->requests = 1000;
  scenario.slo = {{SloMetric::kTpot, 99, 0.5, {}, {}, {}, ""}};
  std::optional<SurePlaces> places = SurePlaces::Create(scenario, {}, PlanOptions(), {40, 50});
  while (!places->Advance(INT64_MAX)) {
  }
  const SureAnswer none = *places->Answer();
  EXPECT_FALSE(none.sure);
  EXPECT_NE(SureSentence(none, true, "requests/s").find("no load that was tried"),
            std::string::npos);
}

}  // namespace
}  // namespace servecast
