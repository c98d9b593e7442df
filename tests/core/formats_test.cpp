// What other programs write, where import and calibrate read the same text.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "formats/prometheus.h"

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

}  // namespace
}  // namespace servecast
