// A server's measurements beside its forecast. "Measured" is what the engine says of a scenario
// that differs from the diagnosed one in what the test knows.
#include "experiment/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "servecast/import.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"

namespace servecast::diagnosis_test {
namespace {

constexpr const char* kServer = R"({"schema":1,"model":{"preset":"llama-3.1-8b"},
    "hardware":{"preset":"a100-80gb"},"engine":{"preset":"vllm"},
    "workload":{"requests":400,"arrivals":{"rate_per_s":6},
      "prompt_tokens":{"distribution":"fixed","value":800},
      "output_tokens":{"distribution":"fixed","value":100}}})";

std::string With(const std::vector<std::string>& overrides) {
  return ApplyOverrides(kServer, overrides).value();
}

Report ReportOf(const std::string& document) {
  Result<Simulation> made = Simulation::Create(ParseScenario(document).value());
  EXPECT_TRUE(made.ok());
  while (!made.value().Advance(1'000'000)) {
  }
  return made.value().Snapshot(ReportDetail::kSummary);
}

std::vector<MeasuredValue> MeasuredOn(const std::string& document) {
  const Report r = ReportOf(document);
  return {{"ttft_ms.mean", r.ttft_ms.mean, ""},    {"ttft_ms.p50", r.ttft_ms.p50, ""},
          {"ttft_ms.p99", r.ttft_ms.p99, ""},      {"tpot_ms.mean", r.tpot_ms.mean, ""},
          {"tpot_ms.p99", r.tpot_ms.p99, ""},      {"e2e_ms.mean", r.e2e_ms.mean, ""},
          {"requests_per_s", r.requests_per_s, ""}};
}

Diagnosis Diagnosed(const std::string& document, std::vector<MeasuredValue> measured,
                    std::int64_t slice = 1'000'000, std::vector<std::string> said = {}) {
  Result<Diagnosis> made = Diagnosis::Create(document, {std::move(measured), std::move(said)});
  EXPECT_TRUE(made.ok());
  double before = 0;
  while (!made.value().Advance(slice)) {
    EXPECT_TRUE(made.value().Problems().empty());
    EXPECT_GE(made.value().Progress(), before);
    before = made.value().Progress();
  }
  EXPECT_EQ(made.value().Progress(), 1);
  return std::move(made.value());
}

bool Names(const std::vector<TriedCause>& causes, std::string_view words) {
  return std::any_of(causes.begin(), causes.end(), [words](const TriedCause& each) {
    return each.cause.words.find(words) != std::string::npos;
  });
}

TEST(Diagnosis, AgreesWithItsOwnFigures) {
  const Diagnosis same = Diagnosed(kServer, MeasuredOn(With({"seed=7"})));
  const DiagnosisFindings& found = same.Findings();
  EXPECT_EQ(found.state, DiagnosisState::kAgrees);
  EXPECT_TRUE(found.chain.empty() && found.alone.empty());  // nothing is there to explain
  for (std::size_t i = 0; i < found.figures.size(); ++i) EXPECT_FALSE(found.IsOutside(i));
}

TEST(Diagnosis, NamesWhatWasChanged) {
  struct Case {
    std::vector<std::string> overrides;
    std::string words;
  };
  for (const auto& [overrides, words] : std::vector<Case>{
           // Short prompts: a stranger's host may add as much to those of 800 tokens.
           {{"engine.host=a100-pcie-2026", "workload.prompt_tokens.value=100"}, "the host is slow"},
           {{"hardware={\"preset\":\"a100-40gb\"}", "engine.async_scheduling=false"},
            "the GPU is an A100 PCIe"},
       }) {
    const std::string load =
        overrides[1].find("workload") == std::string::npos ? "seed=1" : overrides[1];
    std::vector<MeasuredValue> measured = MeasuredOn(With(overrides));
    const Diagnosis of = Diagnosed(With({load}), measured);
    const DiagnosisFindings& found = of.Findings();
    ASSERT_FALSE(found.chain.empty()) << words;
    EXPECT_TRUE(Names(found.chain, words)) << found.chain[0].cause.words;
    EXPECT_LT(found.chain.back().distance, 0.7 * found.distance);
    EXPECT_GT(found.slowness, 0);
    for (std::size_t i = 1; i < found.alone.size(); ++i) {
      if (!found.alone[i].issues.empty()) continue;
      EXPECT_LE(found.alone[i - 1].distance, found.alone[i].distance);
    }
    // Each of the chain is a scenario that runs, and with the causes before it.
    for (const TriedCause& each : found.chain) EXPECT_TRUE(ParseScenario(each.document).ok());
  }
}

TEST(Diagnosis, TriesNothingThatTheTextsRuleOut) {
  std::vector<MeasuredValue> measured = MeasuredOn(With({"engine.host=a100-pcie-2026"}));
  for (MeasuredValue& each : measured) each.value *= each.name == "requests_per_s" ? 1 : 4;
  const Diagnosis all = Diagnosed(kServer, measured);
  EXPECT_TRUE(Names(all.Findings().alone, "max_num_seqs"));
  EXPECT_TRUE(Names(all.Findings().alone, "the GPU is"));
  EXPECT_TRUE(Names(all.Findings().alone, "bursts"));
  const Diagnosis some =
      Diagnosed(kServer, measured, 1'000'000,
                {"cluster.pools.0.engine.max_num_seqs", "hardware.preset", "workload.arrivals"});
  EXPECT_FALSE(Names(some.Findings().alone, "max_num_seqs"));
  EXPECT_FALSE(Names(some.Findings().alone, "the GPU is"));
  EXPECT_FALSE(Names(some.Findings().alone, "bursts"));
  EXPECT_TRUE(Names(some.Findings().alone, "max_num_batched_tokens"));
  const auto said = [](const char* gpu) {
    const std::vector<std::string> paths = Import(std::string(gpu) + ", 81559 MiB").said;
    return std::find(paths.begin(), paths.end(), "hardware.preset") != paths.end();
  };
  EXPECT_TRUE(said("NVIDIA H100 80GB HBM3"));
  EXPECT_FALSE(said("NVIDIA H100"));
}

TEST(Diagnosis, IsThePureFunctionOfItsInputs) {
  std::vector<MeasuredValue> measured = MeasuredOn(With({"engine.host=a100-pcie-2026"}));
  for (MeasuredValue& each : measured) each.value *= each.name == "requests_per_s" ? 1 : 4;
  const std::string whole = Diagnosed(kServer, measured).Json(true);
  EXPECT_EQ(Diagnosed(kServer, measured, 977).Json(true), whole);
  const nlohmann::json json = nlohmann::json::parse(whole);
  EXPECT_EQ(json["state"], "differs");
  EXPECT_EQ(json["figures"].size(), measured.size());
  EXPECT_EQ(json["figures"][0]["outside"], true);
  for (const auto& each : json["causes"]) EXPECT_EQ(each["figures"].size(), measured.size());
}

TEST(Diagnosis, StandsWhatALogSaysBesideThePlan) {
  const auto planned = static_cast<double>(ReportOf(kServer).kv_tokens);
  const Diagnosis less = Diagnosed(kServer, {{"kv_tokens", planned / 2, ""},
                                             {"max_concurrency_tokens", 1000, ""},
                                             {"max_concurrency", planned / 1000, ""}});
  const DiagnosisFindings& found = less.Findings();
  EXPECT_EQ(found.state, DiagnosisState::kNothingMeasured);
  ASSERT_EQ(found.checks.size(), 2u);
  EXPECT_TRUE(found.checks[0].differs);
  EXPECT_FALSE(found.checks[1].differs);
  EXPECT_NE(found.checks[0].sentence.find("50 % less"), std::string::npos);

  // A room that the document states is what was said: the plan is what it would be without.
  const std::string stated = With({"engine.num_gpu_blocks_override=2000"});
  const Diagnosis of_stated = Diagnosed(stated, {{"kv_tokens", 32'000, ""}});
  ASSERT_EQ(of_stated.Findings().checks.size(), 1u);
  EXPECT_NEAR(of_stated.Findings().checks[0].planned, planned, 1);
}

TEST(Diagnosis, TriesTheRoomThatWasLogged) {
  const std::string small = With({"engine.num_gpu_blocks_override=700"});
  std::vector<MeasuredValue> measured = MeasuredOn(small);
  measured.push_back({"kv_tokens", 700 * 16, ""});
  const Diagnosis of = Diagnosed(kServer, measured);
  ASSERT_FALSE(of.Findings().chain.empty());
  EXPECT_NE(of.Findings().chain[0].cause.words.find("11,200 tokens, as logged"), std::string::npos)
      << of.Findings().chain[0].cause.words;
}

TEST(Diagnosis, ReadsACommandWithItsResult) {
  const Imported imported = Import(
      "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 128\n"
      "INFO GPU KV cache size: 567,978 tokens\n"
      "INFO Maximum concurrency for 131,072 tokens per request: 4.33x\n"
      "============ Serving Benchmark Result ============\n"
      "Successful requests:                     200\n"
      "Benchmark duration (s):                  40.0\n"
      "Total input tokens:                      100000\n"
      "Total generated tokens:                  20000\n"
      "Request throughput (req/s):              5.00\n"
      "Peak concurrent requests:                20.00\n"
      "Mean TTFT (ms):                          43.2\n"
      "P99 TTFT (ms):                           110\n"
      "Median ITL (ms):                         8.1\n");
  EXPECT_EQ(ValueOf(imported.measured, "ttft_ms.mean"), 43.2);
  EXPECT_EQ(ValueOf(imported.measured, "itl_ms.p50"), 8.1);
  EXPECT_EQ(ValueOf(imported.measured, "kv_tokens"), 567'978);
  EXPECT_EQ(ValueOf(imported.measured, "max_concurrency"), 4.33);
  EXPECT_EQ(ValueOf(imported.measured, "concurrency_peak"), 20);
  EXPECT_EQ(ValueOf(imported.measured, "prompt_tokens_mean"), 500);
  const std::vector<ServerFigure> figures = FiguresOf(imported.measured);
  ASSERT_EQ(figures.size(), 4u);
  EXPECT_TRUE(figures[2].counts);  // gaps alone say how fast tokens come
  EXPECT_TRUE(Diagnosis::Create(imported.document, {imported.measured, imported.said}).ok());
}

TEST(Diagnosis, SaysWhyAScenarioCannotRun) {
  EXPECT_FALSE(Diagnosis::Create("{}", {}).ok());
  EXPECT_FALSE(Diagnosis::Create(With({"hardware={\"preset\":\"rtx-4090\"}",
                                       "model={\"preset\":\"llama-3.1-70b\"}"}),
                                 {{{"ttft_ms.mean", 10, ""}}, {}})
                   .ok());
}

}  // namespace
}  // namespace servecast::diagnosis_test
