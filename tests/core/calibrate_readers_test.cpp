// Readers of others' results: each form by a small text of it, what it says of load and latencies,
// and what is wrong with damaged ones. And the fit in slices, its sentence, and what to measure
// next.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "calibrate/calibrate.h"
#include "calibrate/design.h"
#include "calibrate/measurements.h"
#include "calibrate/pack.h"
#include "calibrate/power_fit.h"
#include "calibrate/predict.h"
#include "calibrate/verdict.h"
#include "gtest/gtest.h"

namespace servecast::calibrate_readers_test {
namespace {

Scenario Server() {
  const auto scenario = ParseScenario(
      R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
          "engine": {"preset": "vllm-0.20"}, "latency": {"backend": "analytic"},
          "workload": {"requests": 1}})");
  EXPECT_TRUE(scenario.ok());
  return scenario.value();
}

Measurements Read(const std::string& text) {
  auto read = ReadMeasurements(text, "file");
  if (!read.ok()) {
    ADD_FAILURE() << read.issues()[0].path << ": " << read.issues()[0].message;
    return {};
  }
  return read.value();
}

// "path: message" of all.
std::string Refusal(const std::string& text) {
  const auto read = ReadMeasurements(text, "file");
  if (read.ok()) return "";
  std::string all;
  for (const Issue& issue : read.issues()) all += issue.path + ": " + issue.message + "\n";
  return all;
}

double FigureOf(const CalibrationPoint& point, Figure figure) {
  for (const MeasuredFigure& each : point.figures) {
    if (each.figure == figure) return each.ms;
  }
  return 0;
}

constexpr const char* kGuideLlm = R"({"benchmarks": [
  {"config": {"strategy": {"type_": "constant", "rate": 2.0}},
   "metrics": {"request_latency": {"successful": {"mean": 2.5, "count": 60}},
     "time_to_first_token_ms": {"successful": {"mean": 40}},
     "inter_token_latency_ms": {"successful": {"mean": 10}},
     "prompt_token_count": {"successful": {"mean": 512}},
     "output_token_count": {"successful": {"mean": 128}}}},
  {"scheduler": {"strategy": {"type_": "concurrent", "streams": 8}},
   "metrics": {"request_latency": {"successful": {"mean": 3, "count": 40}},
     "prompt_token_count": {"successful": {"mean": 512}},
     "output_token_count": {"successful": {"mean": 128}}}}]})";

TEST(Readers_, GuideLlm_IsARunABenchmark) {
  const Measurements read = Read(kGuideLlm);
  ASSERT_EQ(read.points.size(), 2u);
  const CalibrationPoint& first = read.points[0];
  EXPECT_EQ(FigureOf(first, Figure::kTtft), 40);
  EXPECT_EQ(FigureOf(first, Figure::kTpot), 10);
  EXPECT_EQ(FigureOf(first, Figure::kE2e), 2500);
  EXPECT_EQ(first.run->rate_per_s, 2);
  ASSERT_EQ(first.run->draws.size(), 1u) << "at equal gaps there is nothing to draw";
  ASSERT_EQ(first.run->draws[0].rows.size(), 60u);
  EXPECT_EQ(first.run->draws[0].rows[2].arrival_ns, 1'000'000'000);
  EXPECT_EQ(first.run->draws[0].rows[0].prompt_tokens, 512);
  EXPECT_EQ(read.points[1].run->concurrency, 8);
  EXPECT_EQ(read.points[1].figures.size(), 1u);
}

TEST(Readers_, GuideLlm_SaysAllThatIsWrong) {
  const std::string refusal = Refusal(
      R"({"benchmarks": [{"config": {"strategy": {"type_": "sweep"}}, "metrics": {}},
          {"metrics": {"request_latency": {"successful": {"mean": -1, "count": 1e9}}}}]})");
  for (const char* part :
       {"file, /benchmarks/0/strategy/type_: found \"sweep\"", "/benchmarks/1/config/strategy",
        "/benchmarks/0/metrics/prompt_token_count/successful/mean: missing",
        "/benchmarks/1/metrics/request_latency/successful/count: found 1000000000"}) {
    EXPECT_NE(refusal.find(part), std::string::npos) << part << "\n" << refusal;
  }
}

TEST(Readers_, Aiperf_HasUnits) {
  const std::string head = R"({"request_count": {"unit": "requests", "avg": 50},
    "input_sequence_length": {"unit": "tokens", "avg": 100}, "output_sequence_length":
    {"unit": "tokens", "avg": 20}, "request_latency": {"unit": "s", "avg": 0.5},
    "input_config": {"endpoint": {"model_names": ["Qwen/Qwen3-14B"]}, "loadgen": {"concurrency": 4}},)";
  const Measurements read = Read(head + R"("time_to_first_token": {"unit": "us", "avg": 30000}})");
  ASSERT_EQ(read.points.size(), 1u);
  EXPECT_EQ(FigureOf(read.points[0], Figure::kE2e), 500);
  EXPECT_EQ(FigureOf(read.points[0], Figure::kTtft), 30);
  EXPECT_EQ(read.points[0].run->concurrency, 4);
  EXPECT_EQ(read.server.model, "Qwen/Qwen3-14B");
  EXPECT_NE(Refusal(head + R"("time_to_first_token": {"unit": "parsec", "avg": 30000}})")
                .find("/time_to_first_token/unit: found \"parsec\""),
            std::string::npos);
}

// ---- Power --------------------------------------------------------------------------------------

MeasuredPower PowerIn(const std::string& text) {
  const Measurements read = Read(text);
  EXPECT_TRUE(read.points.empty());
  EXPECT_EQ(read.found.size(), 1u);
  return read.power.size() == 1 ? read.power[0] : MeasuredPower();
}

TEST(ReadersOfPower, NvidiaSmiRows_InEveryForm) {
  const std::string first = "2026/11/25 23:59:59.500, ", last = "2026/11/26 00:00:01.250, ";
  for (const auto& [head, unit] :
       {std::pair("timestamp, power.draw [W]\n", " W"),
        std::pair("timestamp, power.draw [W]\n", ""), std::pair("", " W"), std::pair("", "")}) {
    const MeasuredPower power =
        PowerIn(head + first + "300.5" + unit + "\r\n\n" + last + "400.5" + unit + "\n");
    EXPECT_EQ(power.mean_w, 350.5) << head << unit;
    EXPECT_EQ(power.seconds, 1.75);
    EXPECT_EQ(power.gpus, 0) << "rows do not say which GPU they are of";
  }
  EXPECT_EQ(PowerIn("power.draw [W]\n300 W\n500 W\n").mean_w, 400);
  EXPECT_EQ(PowerIn("300 W\n500 W\n").mean_w, 400);
  EXPECT_EQ(PowerIn(first + "[N/A]\n" + last + "300 W\n").mean_w, 300);
  // The limit has a unit, too. Of two GPUs with unlike numbers of samples each counts once.
  const MeasuredPower two = PowerIn(
      "index, timestamp, power.limit [W], power.draw [W]\n0, t, 700.00 W, 300 W\n"
      "1, t, 700.00 W, 500 W\n0, t, 700.00 W, 300 W\n");
  EXPECT_EQ(two.mean_w, 400);
  EXPECT_EQ(two.gpus, 2);
}

TEST(ReadersOfPower, NvidiaSmiTable_IsOfItsGpus) {
  const std::string table =
      "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |\n"
      "| Fan  Temp   Perf   Pwr:Usage/Cap |   Memory-Usage | GPU-Util |\n"
      "|   0  NVIDIA H100 80GB HBM3  On | 00000000:19:00.0 Off | 0 |\n"
      "| N/A   34C    P0            301W /  700W |  4MiB / 81559MiB | 0% Default |\n"
      "| N/A   34C    P0            401W /  700W |  4MiB / 81559MiB | 0% Default |\n";
  EXPECT_EQ(PowerIn(table).mean_w, 351);
  EXPECT_EQ(PowerIn(table).gpus, 2);
  EXPECT_EQ(PowerIn(table + table).gpus, 2) << "a second look at the same GPUs";
}

TEST(ReadersOfPower, Dcgm_IsByGpu) {
  const std::string head = "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n";
  const auto line = [](const char* gpu, const char* watts) {
    return std::string("DCGM_FI_DEV_POWER_USAGE{gpu=\"") + gpu + "\",UUID=\"GPU-" + gpu +
           "\",modelName=\"a } b\"} " + watts + "\n";
  };
  const MeasuredPower power = PowerIn(head + line("0", "300.5") + line("1", "500.5") +
                                      "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\"} 50\n" + line("0", "100.5"));
  EXPECT_EQ(power.mean_w, 350.5);
  EXPECT_EQ(power.gpus, 2);
  EXPECT_EQ(power.seconds, 0);
  EXPECT_EQ(PowerIn("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 1 1000\n"
                    "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 3 3500\n")
                .seconds,
            2.5);
}

TEST(ReadersOfPower, WhatCannotBe_IsRefused) {
  for (const auto& [text, said] :
       {std::pair("timestamp, power.draw [W]\nx, many W\n", "file, line 2: found \"many W\""),
        std::pair("timestamp, power.draw [W]\nx, -3 W\n", "found \"-3 W\""),
        std::pair("timestamp, power.draw [W]\n2026\n", "found fewer cells than columns"),
        std::pair("2026/11/25 12:00:30.123, 1, 2\n", "found several columns without names"),
        std::pair("2026/11/25 12:00:30.123, [N/A]\n", "found no power in nvidia-smi's rows"),
        std::pair("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\" 3\n", "found labels without an end"),
        std::pair("DCGM_FI_DEV_POWER_USAGE\n", "found no power in DCGM's metrics"),
        std::pair("DCGM_FI_DEV_POWER_USAGE{} watts\n", "found no W behind the labels"),
        std::pair("| NVIDIA-SMI 550\n| W / W /\n", "found no power in the table")}) {
    EXPECT_NE(Refusal(text).find(said), std::string::npos) << text << Refusal(text);
  }
  EXPECT_NE(Refusal("HTTP/1.1 200\nvllm:x_sum 1\nDCGM_FI_DEV_POWER_USAGE{} 1\n")
                .find("answers of /metrics"),
            std::string::npos)
      << "a server's metrics stay a server's";
}

// Every beginning of good texts, and these with bytes turned, are read or refused.
TEST(ReadersOfPower, DamagedTexts_AreReadOrRefused) {
  for (const std::string text :
       {"timestamp, power.draw [W]\n2026/11/25 12:00:30.123, 300.5 W\n",
        "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 300.5 1000\n",
        "| NVIDIA-SMI 550 |\n| N/A 34C P0 301W / 700W | 4MiB / 81559MiB |\n"}) {
    for (std::size_t n = 0; n <= text.size(); ++n) {
      for (const char turned : {'\0', '\xff', '"', ',', 'W', '9'}) {
        std::string damaged = text;
        if (n < text.size()) damaged[n] = turned;
        for (const std::string& each : {text.substr(0, n), damaged, text.substr(n)}) {
          const auto read = ReadMeasurements(each, "file");
          if (!read.ok()) continue;
          for (const MeasuredPower& power : read.value().power) EXPECT_GE(power.mean_w, 0);
        }
      }
    }
  }
}

// ---- Power's law --------------------------------------------------------------------------------

constexpr const char* kPrompts =
    "request_rate_rps,num_prompts,input_tokens_mean,output_tokens_mean,ttft_mean_ms\n"
    "16,200,2000,1,100\n";
constexpr const char* kAnswers =
    "request_rate_rps,num_prompts,input_tokens_mean,output_tokens_mean,ttft_mean_ms\n"
    "20,200,100,200,30\n";

// Of runs in turn, and the power that a card of such constants has beside them.
Measurements Powered(const Scenario& card, const std::vector<const char*>& runs) {
  Measurements all;
  for (const char* run : runs) {
    AddMeasurements(Read(run), all);
    const RunLoad& load = *all.last_run;
    const Report report =
        RunRequests(ServerOf(card), load.draws[0], std::nullopt, ReportDetail::kSummary).value();
    AddMeasurements(Read("power.draw [W]\n" + NumberText(report.power->mean_w) + " W\n"), all);
  }
  return all;
}

TEST(PowerFit_, TwoRuns_TellBothConstants) {
  Scenario card = Server();
  card.hardware.busy_w = 250;
  card.hardware.compute_w = 500;
  const Measurements measured = Powered(card, {kPrompts, kAnswers});
  const Result<PowerFit> fit = FitPower(Server(), measured.power);
  ASSERT_TRUE(fit.ok());
  ASSERT_EQ(fit.value().fitted.size(), 2u);
  EXPECT_STREQ(fit.value().fitted[0].constant->name, "busy_w");
  EXPECT_NEAR(fit.value().fitted[0].value, 250, 3);
  EXPECT_EQ(fit.value().fitted[0].before, 387);
  EXPECT_STREQ(fit.value().fitted[1].constant->name, "compute_w");
  EXPECT_NEAR(fit.value().fitted[1].value, 500, 6);
  for (const FittedPower& each : fit.value().fitted) {
    EXPECT_LT(each.low, each.value);
    EXPECT_LT(each.value, each.high);
  }
  ASSERT_EQ(fit.value().rows.size(), 2u);
  for (const PowerRow& row : fit.value().rows) {
    EXPECT_GT(*row.before_w, 1.05 * row.measured_w);
    EXPECT_NEAR(row.after_w, row.measured_w, 0.01 * row.measured_w);
  }
  EXPECT_TRUE(fit.value().warnings.empty());
}

TEST(PowerFit_, Replicas_AreAMean) {
  Scenario card = Server(), server = Server();
  card.cluster.pool().replicas = server.cluster.pool().replicas = 3;
  card.hardware.busy_w = 250;
  const Measurements measured = Powered(card, {kAnswers});
  const Result<PowerFit> fit = FitPower(server, measured.power);
  ASSERT_TRUE(fit.ok());
  EXPECT_NEAR(fit.value().fitted[0].value, 250, 1);
}

TEST(PowerFit_, OneRun_TellsBusyAloneAndSaysWhatTellsMore) {
  Scenario card = Server();
  card.hardware.busy_w = 250;
  const Measurements measured = Powered(card, {kAnswers});
  const Result<PowerFit> fit = FitPower(Server(), measured.power);
  ASSERT_TRUE(fit.ok());
  ASSERT_EQ(fit.value().fitted.size(), 1u);
  EXPECT_NEAR(fit.value().fitted[0].value, 250, 1);
  ASSERT_EQ(fit.value().warnings.size(), 1u);
  EXPECT_EQ(fit.value().warnings[0].find("the measured power cannot tell hardware.compute_w"), 0u);
}

TEST(PowerFit_, HeldOutRows_JudgeAndAreNotFitted) {
  Scenario card = Server();
  card.hardware.busy_w = 250;
  Measurements measured = Powered(card, {kAnswers, kPrompts});
  measured.power[1].held_out = true;
  measured.power[1].mean_w = 1;
  const Result<PowerFit> fit = FitPower(Server(), measured.power);
  ASSERT_TRUE(fit.ok());
  ASSERT_EQ(fit.value().fitted.size(), 1u);
  EXPECT_NEAR(fit.value().fitted[0].value, 250, 1);
  EXPECT_TRUE(fit.value().rows[1].held_out);
}

TEST(PowerFit_, LessThanIdle_EndsAtZero) {
  Measurements measured = Powered(Server(), {kAnswers});
  measured.power[0].mean_w = 60;
  const Result<PowerFit> fit = FitPower(Server(), measured.power);
  ASSERT_TRUE(fit.ok());
  EXPECT_EQ(fit.value().fitted[0].value, 0);
  EXPECT_NE(fit.value().warnings.back().find("ends at its limit of 0"), std::string::npos);
}

TEST(PowerFit_, WhatCannotBe_IsRefusedOrSaid) {
  const auto refusal = [](const Scenario& server, const Measurements& measured) {
    const Result<PowerFit> fit = FitPower(server, measured.power);
    return fit.ok() ? "" : fit.issues()[0].path + ": " + fit.issues()[0].message;
  };
  Measurements alone;
  AddMeasurements(Read("300 W\n"), alone);
  EXPECT_EQ(refusal(Server(), alone).find("file: found power without a run"), 0u);
  Measurements two;  // which of them?
  AddMeasurements(Read(std::string(kAnswers) + "4,200,100,200,30\n"), two);
  AddMeasurements(Read("300 W\n"), two);
  EXPECT_EQ(refusal(Server(), two).find("file: found power without a run"), 0u);
  Scenario unknown = Server();
  Measurements measured = Powered(Server(), {kAnswers});
  unknown.hardware.power_cap_w = 0;
  EXPECT_EQ(refusal(unknown, measured).find("/hardware/power_cap_w: found 0"), 0u);
  measured.power[0].gpus = 8;
  measured.power[0].seconds = 1e6;
  EXPECT_EQ(FitPower(Server(), measured.power).value().warnings.size(), 3u);
  measured.power[0].mean_w = 690;
  const PowerFit capped = FitPower(Server(), measured.power).value();
  EXPECT_TRUE(capped.fitted.empty());
  EXPECT_NE(capped.warnings.back().find("no power to fit"), std::string::npos);
  EXPECT_NE(Refusal("0 W\n"), "");  // no card draws nothing
}

TEST(PowerFit_, Pack_CarriesItAndWithoutPowerHasNone) {
  Scenario card = Server();
  card.hardware.busy_w = 250;
  card.hardware.compute_w = 500;
  Measurements measured = Powered(card, {kPrompts, kAnswers});
  const auto packed = [&] {
    const Result<Calibration> fit = Calibrate(Server(), measured);
    return PackJson(fit.value(), OriginOf(Server(), measured, ""));
  };
  const std::string with = packed();
  measured.power.clear();
  const std::string without = packed();
  EXPECT_EQ(without.find("\"power\":"), std::string::npos);
  // The rest is the same, bit for bit.
  const std::size_t at = with.find(",\n  \"power\"");
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(without.substr(0, at), with.substr(0, at));
  const Result<CalibrationPack> pack = ReadPack(with);
  ASSERT_TRUE(pack.ok());
  const auto overrides = [&](const char* path) {
    return std::count_if(pack.value().overrides.begin(), pack.value().overrides.end(),
                         [path](const std::string& each) { return each.find(path) == 0; });
  };
  EXPECT_EQ(overrides("hardware.busy_w="), 1);
  EXPECT_EQ(overrides("hardware.compute_w="), 1);
  std::string bad = with;
  bad.replace(bad.find("\"busy_w\""), 8, "\"lazy_w\"");
  EXPECT_EQ(ReadPack(bad).issues()[0].path, "/power/parameters/lazy_w");
}

TEST(Readers_, InferencePerf_IsInSeconds) {
  const std::string stage = R"({"load_summary": {"count": 30, "requested_rate": 3.0},
    "successes": {"count": 30, "latency": {"request_latency": {"mean": 1.5},
      "time_to_first_token": {"mean": 0.05}, "time_per_output_token": {"mean": 0.0125}},
      "prompt_len": {"mean": 200}, "output_len": {"mean": 100}}, "failures": {"count": 0}})";
  const Measurements read = Read(stage);
  ASSERT_EQ(read.points.size(), 1u);
  EXPECT_EQ(FigureOf(read.points[0], Figure::kTpot), 12.5);
  EXPECT_EQ(read.points[0].run->rate_per_s, 3);
  std::string summary = stage;
  summary.replace(summary.find("requested_rate"), 14, "send_duration_");
  EXPECT_NE(Refusal(summary).find("give the files of its stages"), std::string::npos);
}

std::string Scraped(const std::string& date, int requests) {
  const auto histogram = [requests](const char* name, double mean, int below) {
    return Format(
        "vllm:{}_bucket{{le=\"{}\",model_name=\"m\"}} {}\nvllm:{}_bucket{{le=\"+Inf\","
        "model_name=\"m\"}} {}\nvllm:{}_sum{{model_name=\"m\"}} "
        "{}\nvllm:{}_count{{model_name=\"m\"}} "
        "{}\n",
        name, below, requests, name, requests, name, NumberText(mean * requests), name, requests);
  };
  return "HTTP/1.1 200 OK\r\ndate: " + date + "\r\n\r\n# HELP x\n" +
         histogram("time_to_first_token_seconds", 0.05, 1) +
         histogram("request_time_per_output_token_seconds", 0.02, 1) +
         histogram("e2e_request_latency_seconds", 2, 10) +
         histogram("request_prompt_tokens", 300, 1000) +
         histogram("request_generation_tokens", 100, 1000);
}

TEST(Readers_, Prometheus_IsWhatCameBetweenTwoAnswers) {
  const Measurements read = Read(Scraped("Wed, 25 Nov 2026 23:59:00 GMT", 100) +
                                 Scraped("Thu, 26 Nov 2026 00:04:00 GMT", 700));
  ASSERT_EQ(read.points.size(), 1u);
  EXPECT_NEAR(FigureOf(read.points[0], Figure::kTtft), 50, 1e-9);
  EXPECT_NEAR(FigureOf(read.points[0], Figure::kTpot), 20, 1e-9);
  EXPECT_NEAR(FigureOf(read.points[0], Figure::kE2e), 2000, 1e-9);
  EXPECT_EQ(read.points[0].run->rate_per_s, 2);
  EXPECT_EQ(read.points[0].run->draws[0].rows.size(), 600u);
  EXPECT_EQ(read.server.model, "m");
}

TEST(Readers_, Prometheus_OnceOrWithoutADate_IsRefusedWithTheCommand) {
  for (const std::string& text :
       {Scraped("Wed, 25 Nov 2026 23:59:00 GMT", 100), Scraped("never", 1) + Scraped("never", 2),
        std::string("# HELP a b\n"), std::string("vllm:x_sum")}) {
    EXPECT_NE(Refusal(text).find("file"), std::string::npos) << text;
  }
  EXPECT_NE(Refusal(Scraped("Wed, 25 Nov 2026 23:59:00 GMT", 100)).find("curl -si SERVER/metrics"),
            std::string::npos);
  std::string bad = Scraped("Wed, 25 Nov 2026 23:59:00 GMT", 1);
  bad += "vllm:request_prompt_tokens_sum{model_name=\"m\"} lots\n";
  EXPECT_NE(Refusal(bad).find("found no number"), std::string::npos);
}

TEST(Readers_, NumbersOfPythonThatJsonHasNot_AreRead) {
  const Measurements read = Read(
      R"({"request_rate": Infinity, "max_concurrency": 4, "completed": 50, "total_input_tokens": 5000,
          "total_output_tokens": 1000, "mean_ttft_ms": 40, "mean_tpot_ms": NaN})");
  ASSERT_EQ(read.points.size(), 1u);
  EXPECT_EQ(read.points[0].figures.size(), 1u);
  EXPECT_EQ(read.points[0].run->concurrency, 4);
  EXPECT_NE(Refusal(R"({"mean_ttft_ms": Inf})").find("not JSON at line 1, column 18"),
            std::string::npos);
}

TEST(Readers_, UnknownForms_NameTheKnownOnes) {
  EXPECT_NE(Refusal(R"({"a": 1})").find("GuideLLM"), std::string::npos);
  EXPECT_NE(Refusal(" \n").find("GuideLLM"), std::string::npos);
  EXPECT_NE(Refusal("[[[[").find("file"), std::string::npos);
}

Measurements Tables() {
  Measurements all =
      Read("prompt_tokens,ttft_p50_ms\n128,17\n1024,38\n4096,120\n16384,560\n65536,3600\n");
  AddMeasurements(Read("batch,mean_context_tokens,itl_p50_ms\n1,200,6.9\n8,200,7.1\n32,200,7.9\n"
                       "128,200,11\n1,16000,7.7\n1,60000,10.1\n"),
                  all);
  return all;
}

TEST(CalibrationRun_, AnySlices_GiveTheSameBits) {
  const auto whole = Calibrate(Server(), Tables());
  ASSERT_TRUE(whole.ok());
  for (const std::int64_t slice : {1, 7, 1000}) {
    CalibrationRun run(Server(), Tables());
    double before = 0;
    while (!run.Advance(slice)) {
      EXPECT_GE(run.Progress(), before);
      before = run.Progress();
    }
    ASSERT_TRUE(run.answer().ok());
    const Calibration& sliced = run.answer().value();
    ASSERT_EQ(sliced.fitted.size(), whole.value().fitted.size());
    for (std::size_t i = 0; i < sliced.fitted.size(); ++i) {
      EXPECT_EQ(sliced.fitted[i].value, whole.value().fitted[i].value);
      EXPECT_EQ(sliced.fitted[i].low, whole.value().fitted[i].low);
    }
    EXPECT_EQ(sliced.warnings, whole.value().warnings);
    EXPECT_EQ(run.Progress(), 1);
  }
}

TEST(CalibrationVerdict_, WithoutRuns_SaysThatItHoldsForNoLoad) {
  const Measurements measured = Tables();
  const auto made = Calibrate(Server(), measured);
  ASSERT_TRUE(made.ok());
  const CalibrationVerdict verdict =
      VerdictOf(made.value(), measured, OriginOf(Server(), measured, "2026-11-25"));
  EXPECT_NE(verdict.state, CalibrationState::kGood);
  EXPECT_NE(verdict.sentence.find("not for load"), std::string::npos) << verdict.sentence;
  EXPECT_NE(verdict.detail.find("Nothing was held out"), std::string::npos) << verdict.detail;
}

// "TPOT within 7.3 % on what was fitted. Before: TPOT within 14 %": the most beside the most.
TEST(CalibrationVerdict_, BeforeAndAfter_AreTheSameMeasure) {
  const Measurements measured = Tables();
  Result<Calibration> made = Calibrate(Server(), measured);
  ASSERT_TRUE(made.ok());
  for (CalibrationError& e : made.value().errors) {
    e.before.median = 3, e.before.most = 41;
    e.after.median = 2, e.after.most = 17;
  }
  const auto said = [&] {
    const CalibrationVerdict verdict =
        VerdictOf(made.value(), measured, OriginOf(Server(), measured, "2026-11-25"));
    return verdict.sentence + " " + verdict.detail;
  };
  EXPECT_NE(said().find("within 17 % on what was fitted. Before: TPOT within 41 %."),
            std::string::npos)
      << said();
  CalibrationError held_out = made.value().errors[0];
  held_out.held_out = true;
  made.value().errors.push_back(held_out);
  EXPECT_NE(said().find("2 % off in the median on what was not. Before: TPOT within 41 %, 3 % off "
                        "in the median on what was not."),
            std::string::npos)
      << said();
}

MeasurementAdvice AdviceAfter(const Measurements& measured, std::int64_t slice,
                              const Scenario& scenario = Server()) {
  MeasurementDesign design(scenario, measured, "meta-llama/Llama-3.1-8B");
  while (!design.Advance(slice)) {
  }
  EXPECT_TRUE(design.answer().ok());
  return design.answer().value();
}

// Behind one address each of several servers is to get as much as one would.
TEST(MeasurementDesign_, OfSeveralReplicas_AsksForAsManyClientsOfEach) {
  Scenario three = Server();
  three.cluster.pools[0].replicas = 3;
  const auto one = AdviceAfter({}, INT64_MAX).measurements;
  const auto of_three = AdviceAfter({}, INT64_MAX, three).measurements;
  const auto clients = [](const AdvisedMeasurement& m) {
    const std::string option = "--max-concurrency ";
    return std::stoi(m.command.substr(m.command.find(option) + option.size()));
  };
  ASSERT_EQ(one.size(), of_three.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(clients(of_three[i]), clients(one[i]) * (clients(one[i]) > 1 ? 3 : 1));
  }
}

TEST(MeasurementDesign_, FromNothing_FiveRunsTellMostConstants) {
  const MeasurementAdvice advice = AdviceAfter({}, INT64_MAX);
  ASSERT_EQ(advice.measurements.size(), kAdvisedMeasurements);
  EXPECT_NE(advice.measurements[0].command.find("--model meta-llama/Llama-3.1-8B"),
            std::string::npos);
  std::size_t told = 0;
  for (const MeasurementAdvice::Expected& e : advice.expected) {
    EXPECT_FALSE(e.now) << e.parameter->path << " is told by nothing";
    told += e.then ? 1 : 0;
  }
  EXPECT_GE(told, 6u);
  const MeasurementAdvice sliced = AdviceAfter({}, 50);
  for (std::size_t i = 0; i < kAdvisedMeasurements; ++i) {
    EXPECT_EQ(advice.measurements[i].command, sliced.measurements[i].command);
  }
}

TEST(MeasurementDesign_, AfterMeasurements_NarrowsWhatIsLeft) {
  const MeasurementAdvice advice = AdviceAfter(Tables(), INT64_MAX);
  bool narrower = false;
  for (const MeasurementAdvice::Expected& e : advice.expected) {
    if (!e.now) continue;
    ASSERT_TRUE(e.then) << e.parameter->path;
    EXPECT_LE(*e.then, *e.now * (1 + 1e-9)) << e.parameter->path;
    narrower = narrower || *e.then < 0.9 * *e.now;
  }
  EXPECT_TRUE(narrower);
}

}  // namespace
}  // namespace servecast::calibrate_readers_test
