// A scenario that carries its calibration: what it says of it, for as long as it is that server
// under such a load, and that none of it changes a result.
#include <string>
#include <vector>

#include "calibrate/pack.h"
#include "gtest/gtest.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "serving/cluster/deployment.h"

namespace servecast::calibration_carried_test {
namespace {

constexpr const char* kPlain =
    R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
        "engine": {"preset": "vllm-0.20"},
        "workload": {"requests": 40, "arrivals": {"rate_per_s": 4},
                     "prompt_tokens": {"distribution": "fixed", "value": 600},
                     "output_tokens": {"distribution": "fixed", "value": 60}}})";

// As `servecast calibrate` writes them, of a server that its files name in words of their own.
std::string PackText(const std::string& errors = R"({"of": "run", "figure": "tpot",
    "held_out": true, "points": 14, "after": {"median": 2.34, "max": 5}},
    {"of": "run", "figure": "e2e", "held_out": true, "points": 14,
     "after": {"median": 3.06, "max": 6}},
    {"of": "run", "figure": "tpot", "points": 20, "after": {"median": 1, "max": 2}})") {
  return R"({"kind": "servecast-calibration", "schema": 1, "spec_version": "1.0",
    "backend": "analytic", "parameters": {
      "hardware.compute_efficiency": {"value": 0.7, "low": 0.65, "high": 0.75, "unit": "1"},
      "engine.request_overhead_ms": {"value": 9, "low": 8, "high": 10, "unit": "ms"}},
    "errors": [)" +
         errors + R"(], "seen": {"prompt_tokens": [100, 5000], "output_tokens": [20, 400],
      "rate_per_s": [1, 8]}, "warnings": [],
    "provenance": {"model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "NVIDIA H100 80GB HBM3",
      "engine": "vllm 0.20.1", "with": "16-bit weights", "tensor_parallel": 1,
      "files": ["a.json: 34 requests of vllm bench serve: all of it under load"],
      "measurements": 34, "date": "2026-11-25"}})";
}

std::string Carrying(const std::string& pack_text = PackText()) {
  const auto pack = ReadPack(pack_text);
  EXPECT_TRUE(pack.ok()) << pack.issues()[0].path << " " << pack.issues()[0].message;
  const auto text = CalibratedDocument(kPlain, pack.value());
  EXPECT_TRUE(text.ok());
  return text.value();
}

Scenario Parsed(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto changed = ApplyOverrides(text, overrides);
  EXPECT_TRUE(changed.ok());
  auto scenario = ParseScenario(changed.value());
  EXPECT_TRUE(scenario.ok()) << scenario.issues()[0].path << " " << scenario.issues()[0].message;
  return scenario.value();
}

Evidence EvidenceOf(const Scenario& scenario) {
  const auto deployment = Deploy(scenario);
  EXPECT_TRUE(deployment.ok());
  return deployment.value().label.evidence;
}

std::uint64_t FingerprintOf(const Scenario& scenario) {
  auto simulation = Simulation::Create(scenario);
  EXPECT_TRUE(simulation.ok());
  while (!simulation.value().Advance(1'000'000)) {
  }
  return simulation.value().Snapshot().fingerprint;
}

TEST(CarriedCalibration_, OfThisServerUnderSuchALoad_IsTheEvidence) {
  const Evidence e = EvidenceOf(Parsed(Carrying()));
  EXPECT_EQ(e.of, EvidenceClass::kCalibrated);
  EXPECT_TRUE(e.warnings.empty()) << e.warnings[0];
  EXPECT_EQ(e.sentence,
            "Calibrated by the scenario's own measurements: TPOT ±2.3 % and E2E ±3.1 % on 14 "
            "held-out rows "
            "(runs). Fitted to 34 rows (34 requests of vllm bench serve) of "
            "meta-llama/Llama-3.1-8B-Instruct on NVIDIA H100 80GB HBM3, vllm 0.20.1, 2026-11-25.");
  ASSERT_EQ(e.errors.size(), 2U);
  EXPECT_EQ(e.errors[0].figure, "tpot");
  EXPECT_DOUBLE_EQ(e.errors[0].median, 0.0234);
  EXPECT_EQ(e.rows, 14);
  EXPECT_TRUE(e.left_out);
}

TEST(CarriedCalibration_, AnotherServerOrLoad_IsUntestedAndSaysWhy) {
  struct Case {
    const char* change;
    const char* said;
  };
  constexpr Case kCases[] = {
      {R"(model={"preset": "qwen3-14b"})", "measured on model "},
      {R"(hardware={"preset": "l40s"})", "measured on GPU "},
      {R"(engine={"preset": "sglang"})", "measured on engine "},
      {R"(cluster={"pools": [{"tensor_parallel": 2}]})", "with tensor_parallel 1"},
      {R"(model.quantization="fp8")", "a server with 16-bit weights, the scenario has FP8 weights"},
      {"hardware.compute_efficiency=0.5", "hardware.compute_efficiency was changed since"},
      {"workload.prompt_tokens.value=50", "Prompts with 50 tokens lie outside"},
      {"workload.output_tokens.value=500", "Outputs with 500 tokens lie outside"},
      {R"(workload.classes=[{"name": "a",
        "output_tokens": {"distribution": "fixed", "value": 900}}])",
       "Outputs of class a with 900 tokens lie outside"},
      {"workload.sessions.turns=3", "12 requests/s a replica are more than the 8"},
      {"workload.arrivals.rate_per_s=8.5", "8.5 requests/s a replica are more than the 8"},
      {R"(workload.arrivals={"process": "closed_loop", "concurrency": 2})",
       "No run of a closed loop was measured"}};
  for (const Case& c : kCases) {
    const Evidence e = EvidenceOf(Parsed(Carrying(), {c.change}));
    EXPECT_EQ(e.of, EvidenceClass::kUntested) << c.change;
    EXPECT_TRUE(e.errors.empty()) << c.change;
    bool said = false;
    for (const std::string& line : e.warnings) said |= line.find(c.said) != std::string::npos;
    EXPECT_TRUE(said) << c.change << "\n" << (e.warnings.empty() ? "" : e.warnings[0]);
  }
  // Twice the rate on twice the replicas, and less of it, ask nothing new.
  for (const char* change : {R"(cluster={"pools": [{"replicas": 2}]})", "workload.requests=50"}) {
    const Scenario more = Parsed(Carrying(), {change, "workload.arrivals.rate_per_s=8"});
    EXPECT_EQ(EvidenceOf(more).of, EvidenceClass::kCalibrated) << change;
  }
}

TEST(CarriedCalibration_, NothingHeldOut_SaysSo) {
  const std::string fitted =
      R"({"of": "step", "figure": "tpot", "points": 1, "after": {"median": 12.6, "max": 13}})";
  const Evidence e = EvidenceOf(Parsed(Carrying(PackText(fitted))));
  EXPECT_EQ(e.sentence.find(
                "Calibrated by the scenario's own measurements: TPOT ±13 % on 1 fitted row (decode "
                "steps); nothing was held out, so it is off by more elsewhere."),
            0U)
      << e.sentence;
  EXPECT_FALSE(e.left_out);
  const std::string none = EvidenceOf(Parsed(Carrying(PackText("")))).sentence;
  EXPECT_NE(none.find("how far it is off is not said"), std::string::npos) << none;
  EXPECT_EQ(EvidenceOf(Parsed(Carrying(PackText("")))).of, EvidenceClass::kUntested);
}

TEST(CarriedCalibration_, ThatIsFarOff_IsNoGroundForAVerdict) {
  const std::string bad =
      R"({"of": "run", "figure": "tpot", "points": 4, "after": {"median": 26, "max": 90}})";
  const Evidence e = EvidenceOf(Parsed(Carrying(PackText(bad))));
  EXPECT_EQ(e.of, EvidenceClass::kKnownBad);
  EXPECT_EQ(e.bad, "the calibration itself is 26 % off");
}

TEST(CarriedCalibration_, OfAnotherLatencyModel_LeavesTheEvidenceAndWarns) {
  const std::string other = R"(latency={"backend": "blackbox", "beta": [7000, 20, 20]})";
  const Evidence e = EvidenceOf(Parsed(Carrying(), {other}));
  ASSERT_EQ(e.warnings.size(), 1U);
  EXPECT_NE(e.warnings[0].find("a calibration of the latency model analytic"), std::string::npos);
  EXPECT_EQ(e.sentence.find("Calibrated"), std::string::npos);
}

TEST(CarriedCalibration_, OfWhichNothingIsLeft_LeavesTheEvidenceAndWarns) {
  const std::vector<std::string> changes = {R"(hardware={"preset": "l40s"})",
                                            R"(engine={"preset": "vllm-0.20"})"};
  const Evidence e = EvidenceOf(Parsed(Carrying(), changes));
  const Evidence own =
      EvidenceOf(Parsed(kPlain, {changes[0], changes[1], "latency.backend=analytic"}));
  EXPECT_EQ(e.sentence, own.sentence);
  EXPECT_EQ(e.of, own.of);
  ASSERT_EQ(e.warnings.size(), own.warnings.size() + 1);
  EXPECT_NE(e.warnings.back().find("no constant is left"), std::string::npos);
}

TEST(CarriedCalibration_, ChangesNoResult) {
  const Scenario carrying = Parsed(Carrying());
  const Scenario constants =
      Parsed(kPlain, {"latency.backend=analytic", "hardware.compute_efficiency=0.7",
                      "engine.request_overhead_ms=9"});
  EXPECT_TRUE(carrying.calibration.On());
  EXPECT_FALSE(constants.calibration.On());
  EXPECT_EQ(carrying.content_hash, constants.content_hash);
  EXPECT_EQ(FingerprintOf(carrying), FingerprintOf(constants));
  EXPECT_NE(FingerprintOf(carrying), FingerprintOf(Parsed(kPlain)));
  EXPECT_EQ(constants.resolved_text.find("\"calibration\""), std::string::npos);
}

TEST(CarriedCalibration_, CanonicalText_KeepsAllOfIt) {
  const Scenario first = Parsed(Carrying());
  const Scenario again = Parsed(first.canonical_text);
  EXPECT_EQ(first.canonical_text, again.canonical_text);
  EXPECT_EQ(first.calibration, again.calibration);
  EXPECT_EQ(Parsed(first.resolved_text).calibration, first.calibration);
  // Put in once more it is the same.
  const auto pack = ReadPack(PackText());
  EXPECT_EQ(Parsed(CalibratedDocument(first.canonical_text, pack.value()).value()).canonical_text,
            first.canonical_text);
  EXPECT_EQ(Parsed(first.canonical_text, {"calibration=null"}).canonical_text.find("calibration"),
            std::string::npos);
}

TEST(CarriedCalibration_, BadOnes_AreRefusedWithAllTheirIssues) {
  const auto text = ApplyOverrides(kPlain, {R"(calibration={"spec_version": "3", "backend": "magic",
    "measurements": -1, "colour": 1, "model": 7,
    "parameters": [{"path": "hardware.colour"}, {"value": 1}], "seen": [{"of": "batch"}],
    "errors": {}})"});
  const auto read = ParseScenario(text.value());
  ASSERT_FALSE(read.ok());
  std::vector<std::string> paths;
  for (const Issue& issue : read.issues()) paths.push_back(issue.path);
  for (const char* path :
       {"/calibration/backend", "/calibration/measurements", "/calibration/colour",
        "/calibration/model", "/calibration/parameters/0/path", "/calibration/parameters/1/path",
        "/calibration/errors"}) {
    EXPECT_NE(std::find(paths.begin(), paths.end(), path), paths.end()) << path;
  }
  const auto together = ApplyOverrides(
      Carrying(), {R"(calibration.spec_version="3")", "calibration.parameters.0.high=0.1",
                   R"(calibration.seen.0.of="prompt_tokens")"});
  const auto refused = ParseScenario(together.value());
  ASSERT_FALSE(refused.ok());
  ASSERT_EQ(refused.issues().size(), 3U);
  EXPECT_EQ(refused.issues()[0].path, "/calibration/spec_version");
  EXPECT_EQ(refused.issues()[0].message, "found \"3\", allowed \"1.0\"");
  EXPECT_EQ(refused.issues()[1].path, "/calibration/parameters/0/high");
  EXPECT_EQ(refused.issues()[2].path, "/calibration/seen/1/of");
}

}  // namespace
}  // namespace servecast::calibration_carried_test
