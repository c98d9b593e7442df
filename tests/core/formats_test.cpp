// What other programs write, where import and calibrate read the same text.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "calibrate/readers.h"
#include "formats/benchmarks.h"
#include "formats/prometheus.h"
#include "testing/data_files.h"

namespace servecast {
namespace {

TEST(Formats, PrometheusLine_HasLabelsValueAndTime) {
  const PrometheusLine line = PrometheusLineIn(
      R"(vllm:x_bucket{handle="3",le="0.5",model_name="a\"}b",} 7e2 1764547200000)");
  EXPECT_EQ(line.name, "vllm:x_bucket");
  EXPECT_EQ(line.Label("le"), "0.5") << "and not that of handle";
  EXPECT_EQ(line.Label("model_name"), "a\"}b");
  EXPECT_EQ(line.Label("engine"), "");
  EXPECT_EQ(line.value, 700);
  EXPECT_EQ(line.time_ms, 1764547200000);
  EXPECT_TRUE(std::isinf(*PrometheusLineIn("a +Inf").value));
  for (const char* none : {"a NaN", "a", "a{b=\"c\"}", "# HELP a b", ""})
    EXPECT_FALSE(PrometheusLineIn(none).value) << none;
  EXPECT_FALSE(PrometheusLineIn("a{b=\"c\" 3").closed);
}

TEST(Formats, VllmMetrics_AddUpOverEngines) {
  VllmMetrics metrics;
  for (const char* line : {"vllm:n{engine=\"0\",model_name=\"first\"} 2",
                           "vllm:n{engine=\"1\",model_name=\"b\"} 3 7000", "vllm:n NaN",
                           "vllm:h_bucket{le=\"+Inf\"} 4", "vllm:h_bucket{le=\"+Inf\"} 5",
                           "other 9", "process_start_time_seconds 12"}) {
    metrics.Add(PrometheusLineIn(line));
  }
  EXPECT_EQ(metrics.Sum("n"), 5);
  EXPECT_EQ(metrics.Sum("other"), 0);
  EXPECT_EQ(metrics.buckets["h_bucket"].begin()->second, 9);
  EXPECT_EQ(metrics.engines.size(), 2u);
  EXPECT_EQ(metrics.model, "first");
  EXPECT_EQ(metrics.start_s, 12);
  EXPECT_EQ(metrics.time_ms, 7000);
}

TEST(Formats, Results_AreToldApartByAnyOfTheirMembers) {
  using Json = nlohmann::json;
  const Json metric = {{"avg", 5}, {"unit", "us"}};
  EXPECT_TRUE(IsServingBench({{"ttfts", {0.1}}}));
  EXPECT_TRUE(IsServingBench({{"request_throughput", 3}}));
  EXPECT_FALSE(IsServingBench({{"request_throughput", metric}}));
  EXPECT_TRUE(IsAiperf({{"request_throughput", metric}}));
  EXPECT_TRUE(IsAiperf({{"request_latency", metric}}));
  EXPECT_FALSE(IsAiperf({{"request_latency", {{"mean", 5}}}}));
  for (const char* hostile : {R"({"benchmarks": []})", R"({"benchmarks": [[]]})",
                              R"({"benchmarks": [{"metrics": null}]})"}) {
    EXPECT_FALSE(IsGuideLlm(Json::parse(hostile))) << hostile;
  }
  EXPECT_EQ(AiperfUnitMs(metric), 1e-3);
  EXPECT_EQ(AiperfUnitMs({{"unit", 3}}), std::nullopt);
  EXPECT_EQ(
      GuideLlmStrategy(Json::parse(R"({"config": 1, "args": {"strategy": {"rate": 2}}})"))->size(),
      1u);
  EXPECT_EQ(GuideLlmStrategy(Json::parse(R"({"args": {"strategy": 2}})")), nullptr);
}

TEST(Formats, PythonsJson_KeepsItsTexts) {
  const auto read = ParsePythonJson(R"({"NaN": [NaN, -Infinity, "\"NaN", "\\", Infinity]})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().dump(), R"({"NaN":[null,"-inf","\"NaN","\\","inf"]})");
  EXPECT_FALSE(ParsePythonJson("[Inf]").ok());
}

std::set<std::string> RecognisedBy(const std::string& text) {
  std::set<std::string> by;
  const auto parsed = ParsePythonJson(text);
  if (IsPower(text)) by.insert("power");
  if (IsPrometheus(text)) by.insert("prometheus");
  if (!parsed.ok() || !parsed.value().is_object()) return by;
  const nlohmann::json& json = parsed.value();
  if (IsServingBench(json)) by.insert("bench");
  if (IsGuideLlm(json)) by.insert("guidellm");
  if (IsAiperf(json)) by.insert("aiperf");
  if (IsInferencePerf(json)) by.insert("inference-perf");
  return by;
}

TEST(Formats, EachExample_IsRecognisedByOne) {
  const std::map<std::string, std::string> known = {
      {"import/texts/bench-result.json", "bench"},
      {"import/texts/bench-ramp.json", "bench"},
      {"import/texts/metrics.txt", "prometheus"},
      {"import/texts/nvidia-smi.txt", "power"},
      {"import/texts/nvidia-smi-limited.txt", "power"},
      {"import/forms/aiperf.json", "aiperf"},
      {"import/forms/guidellm.json", "guidellm"},
      {"fuzz/corpus/calibrate/detailed.json", "bench"},
      {"fuzz/corpus/calibrate/summary.json", "bench"},
      {"fuzz/corpus/import/bench-result", "bench"},
      {"fuzz/corpus/trace/vllm-bench.json", "bench"},
      {"fuzz/corpus/import/metrics", "prometheus"},
      {"fuzz/corpus/import/nvidia-smi", "power"}};
  const std::string tests = std::string(SERVECAST_SOURCE_DIR) + "/tests/";
  std::size_t found = 0;
  for (const char* folder : {"import/texts", "import/forms", "fuzz/corpus/import",
                             "fuzz/corpus/calibrate", "fuzz/corpus/trace"}) {
    for (const auto& entry : std::filesystem::directory_iterator(tests + folder)) {
      const std::string name = std::string(folder) + "/" + entry.path().filename().string();
      const auto at = known.find(name);
      const auto by = RecognisedBy(testing::ReadFile(entry.path().string()).value_or(""));
      EXPECT_EQ(by, at == known.end() ? std::set<std::string>() : std::set{at->second}) << name;
      found += at == known.end() ? 0 : 1;
    }
  }
  EXPECT_EQ(found, known.size());
  EXPECT_EQ(RecognisedBy("# TYPE DCGM_FI_DEV_POWER_USAGE gauge\nDCGM_FI_DEV_POWER_USAGE 3\n"),
            std::set<std::string>{"power"});
  EXPECT_EQ(RecognisedBy(R"({"load_summary": {}, "successes": {}})"),
            std::set<std::string>{"inference-perf"});
}

}  // namespace
}  // namespace servecast
