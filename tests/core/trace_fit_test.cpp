// The fitted summary of a trace: what it keeps of the trace, that it is a document, that it fits a
// link. Bounds are of one draw of the fit for a fixed seed.
#include "workload/trace_fit.h"
#include "servecast/workload_spec.h"

#ifndef __EMSCRIPTEN__
#include <zlib.h>
#endif

#include <cmath>
#include <optional>
#include <string>

#include "base/hash.h"
#include "core/documents.h"
#include "gtest/gtest.h"
#include "io/fit_json.h"
#include "servecast/trace.h"
#include "testing/data_files.h"
#include "workload/trace_moments.h"
#include "workload/workload.h"

namespace servecast {
namespace {

using testing::Good;

// Of a link of the page, "#z1." and base64url of raw deflate.
std::size_t PackedCharacters(const std::string& text) {
#ifdef __EMSCRIPTEN__
  return text.size();
#else
  std::string packed(text.size() + 1000, '\0');
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  deflateEnd(&z);
  return 4 + (z.total_out * 4 + 2) / 3;
#endif
}

std::string DocumentWith(const Trace& trace, const FittedTrace& fitted) {
  return testing::Changed({"workload=" + WorkloadJson(fitted.workload, trace.has_arrivals)});
}

struct Bounds {
  double duration = 0, cv = 0, peak = 0, mean = 0, quantile = 0, correlation = 0, share = 0;
};

void ExpectNear(double fit, double trace, double relative, const char* what) {
  EXPECT_NEAR(fit, trace, relative * trace) << what;
}

void ExpectLengths(const LengthMoments& fit, const LengthMoments& trace, const Bounds& b) {
  ExpectNear(fit.mean, trace.mean, b.mean, "mean");
  ExpectNear(fit.p50, trace.p50, b.quantile, "p50");
  ExpectNear(fit.p90, trace.p90, b.quantile, "p90");
  ExpectNear(fit.p99, trace.p99, b.quantile, "p99");
}

void ExpectFit(const Trace& trace, const Bounds& b) {
  const FittedTrace fitted = Good(FitTrace(trace));
  const TraceMoments t = MomentsOf(trace), f = MomentsOf(fitted.drawn);
  EXPECT_EQ(f.requests, t.requests);
  ExpectNear(f.duration_s, t.duration_s, b.duration, "duration");
  ExpectNear(f.gap_cv, t.gap_cv, b.cv, "cv of gaps");
  ExpectNear(f.peak_per_s, t.peak_per_s, b.peak, "peak");
  ExpectLengths(f.prompt, t.prompt, b);
  ExpectLengths(f.output, t.output, b);
  EXPECT_NEAR(f.rank_correlation, t.rank_correlation, b.correlation);
  EXPECT_NEAR(f.prefix_share, t.prefix_share, b.share);
  const Scenario scenario = testing::Parsed(DocumentWith(trace, fitted));
  EXPECT_LT(PackedCharacters(scenario.canonical_text), 2000u);
  // The document says what was fitted: its requests are those drawn.
  Scenario again = scenario;
  again.seed = 1;
  const Result<RequestTable> table = MakeRequests(again, Trace{});
  ASSERT_TRUE(table.ok());
  for (std::size_t i = 0; i < trace.rows.size(); i += 97) {
    ASSERT_EQ(table.value().arrival[i], fitted.drawn.rows[i].arrival_ns);
    ASSERT_EQ(table.value().prompt_tokens[i], fitted.drawn.rows[i].prompt_tokens);
    ASSERT_EQ(table.value().output_tokens[i], fitted.drawn.rows[i].output_tokens);
  }
}

std::optional<Trace> Published(const std::string& file) {
  const std::optional<std::string> text = testing::ReadFile(
      testing::DataFolder("SERVECAST_GROUNDTRUTH", "groundtruth") + "/traces/" + file);
  if (!text) return std::nullopt;
  return Good(ParseTrace(*text, file));
}

class PublishedTrace : public ::testing::TestWithParam<std::pair<const char*, Bounds>> {};

TEST_P(PublishedTrace, Fit_HasItsFigures) {
  const auto trace = Published(GetParam().first);
  if (!trace) GTEST_SKIP() << "skipped: no data";
  ExpectFit(*trace, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(
    Fit, PublishedTrace,
    ::testing::Values(
        std::pair{"azure2023_conv.csv.gz", Bounds{0.02, 0.1, 0.1, 0.02, 0.05, 0.03, 0.001}},
        // Gaps of cv 13: a few of them make the duration and the peak.
        std::pair{"azure2023_code.csv.gz", Bounds{0.08, 0.1, 0.45, 0.03, 0.07, 0.03, 0.001}},
        // Batches of even size every 3 s: as bursts of any size they make higher peaks.
        std::pair{"mooncake_conversation.csv.gz", Bounds{0.03, 0.1, 0.4, 0.03, 0.07, 0.03, 0.03}},
        std::pair{"mooncake_synthetic.csv.gz", Bounds{0.03, 0.1, 0.2, 0.04, 0.07, 0.03, 0.05}}),
    [](const auto& given) {
      const std::string file = given.param.first;
      return file.substr(0, file.find('.'));
    });

TEST(FitTrace, LengthsOnly_LeaveTheArrivals) {
  const Trace trace = Good(ParseTrace("isl,osl\n10,5\n20,9\n30,8\n", "t"));
  const FittedTrace fitted = Good(FitTrace(trace));
  EXPECT_EQ(WorkloadJson(fitted.workload, trace.has_arrivals).find("arrivals"), std::string::npos);
  const std::string json = Good(FitTraceJson(trace));
  EXPECT_EQ(json.find("\"rate\""), std::string::npos);
  EXPECT_NE(json.find("\"lengths\""), std::string::npos);
}

TEST(FitTrace, SmallAndOddTraces_AreDocuments) {
  for (const char* rows :
       {"0,5,5\n", "0,5,5\n0,5,5\n", "0,1,1\n5,1000000000,1\n", "0,1,1\n0,2,2\n0,3,3\n0,4,4\n",
        "0,9,1\n0.000000001,8,2\n", "0,9,1\n1000000,8,2\n", "3,1,1\n2,2,1\n1,3,1\n"}) {
    const Trace trace =
        Good(ParseTrace("arrival_s,input_tokens,output_tokens\n" + std::string(rows), "t"));
    const FittedTrace fitted = Good(FitTrace(trace));
    EXPECT_EQ(fitted.drawn.rows.size(), trace.rows.size());
    EXPECT_TRUE(ParseScenario(DocumentWith(trace, fitted)).ok()) << rows;
  }
  const Trace slow =
      Good(ParseTrace("arrival_s,input_tokens,output_tokens\n0,1,1\n4000000000,1,1\n", "t"));
  EXPECT_FALSE(FitTrace(slow).ok());
}

TEST(FitTrace, OfOneTrace_IsTheSameOnEveryPlatform) {
  std::string csv = "arrival_s,input_tokens,output_tokens,hash_ids_512\n";
  std::uint64_t state = 1;
  const auto draw = [&state](std::uint64_t below) { return (state = Mix64(state + 1)) % below; };
  for (std::uint64_t i = 0, ms = 0; i < 3000; ++i) {
    ms += draw(20) == 0 ? draw(9000) : draw(300);
    const std::uint64_t tokens = 1200 + draw(draw(2) == 0 ? 400 : 30000);
    // In this order with every compiler.
    const std::uint64_t output = 1 + tokens / 50 + draw(300);
    const std::uint64_t block = draw(40);
    csv += std::to_string(ms / 1000) + "." + std::to_string(1000 + ms % 1000).substr(1) + "," +
           std::to_string(tokens) + "," + std::to_string(output) + "," + std::to_string(block) +
           "\n";
  }
  const std::string fit = Good(FitTraceJson(Good(ParseTrace(csv, "t"))));
  Hasher hasher;
  hasher.Add(std::string_view(fit));
  EXPECT_EQ(HashText(hasher.Finish()), "88d68693f87b633e");
}

TEST(FitTrace, ChangeOfRate_IsKept) {
  // Ten times the rate in the second half.
  std::string csv = "arrival_s,input_tokens,output_tokens\n";
  for (int i = 0; i < 1000; ++i) csv += std::to_string(i) + ",100,10\n";
  for (int i = 0; i < 10000; ++i) csv += std::to_string(1000 + 0.1 * i) + ",100,10\n";
  const FittedTrace fitted = Good(FitTrace(Good(ParseTrace(csv, "t"))));
  std::int64_t before = 0;
  for (const TraceRow& row : fitted.drawn.rows)
    before += row.arrival_ns < 1'000'000'000'000 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(before), 1000, 20);
  // Even within each half.
  EXPECT_EQ(fitted.workload.arrivals.process, ArrivalProcess::kConstant);
  EXPECT_EQ(fitted.workload.prompt_tokens.distribution, LengthDistribution::kFixed);
}

}  // namespace
}  // namespace servecast
