// What opening a trace changes in a document, and what it leaves.
#include "io/replaying.h"

#include <string>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "run_memory.h"
#include "servecast/trace.h"
#include "servecast/workload_spec.h"

namespace servecast::testing {
namespace {

Trace ThreeRows() {
  return Good(ParseTrace("arrival_s,input_tokens,output_tokens\n0,10,5\n1,20,5\n2,30,5\n", "t"));
}

WorkloadSpec Replayed(const std::string& document, bool has_arrivals = true) {
  return *Parsed(ReplayingDocument(document, has_arrivals)).workload;
}

TEST(ReplayingDocument, OfAnotherKind_TakesAllFromTheTrace) {
  const std::string plain =
      Changed({"workload.sessions.turns=4", R"(workload.prefix={"groups":2,"tokens":100})"});
  const WorkloadSpec w = Replayed(plain);
  EXPECT_EQ(w.arrivals.process, ArrivalProcess::kTrace);
  EXPECT_EQ(w.prompt_tokens.distribution, LengthDistribution::kTrace);
  EXPECT_EQ(w.output_tokens.distribution, LengthDistribution::kTrace);
  EXPECT_EQ(w.sessions.turns, 1);
  EXPECT_EQ(w.prefix.groups, 0);
  EXPECT_EQ(w.requests, 50);
  const WorkloadSpec lengths = Replayed(plain, false);
  EXPECT_EQ(lengths.arrivals.process, ArrivalProcess::kPoisson);
  EXPECT_EQ(lengths.arrivals.rate_per_s, 10);
  EXPECT_EQ(lengths.prompt_tokens.distribution, LengthDistribution::kTrace);
}

TEST(ReplayingDocument, OfAPresetsWorkload_TakesAllFromTheTrace) {
  const std::string chat(*ScenarioPreset("llama-3.1-8b-h100-multi-turn"));
  const WorkloadSpec w = Replayed(chat);
  EXPECT_EQ(w.arrivals.process, ArrivalProcess::kTrace);
  EXPECT_EQ(w.sessions.turns, 1);
  EXPECT_EQ(RunToEnd(ReplayingDocument(chat, true), ThreeRows()).completed, 3);
}

TEST(ReplayingDocument, ThatReplaysAlready_StaysAsItIs) {
  const std::string whole =
      Changed({R"(workload.arrivals={"process":"trace","rate_scale":10,"keep":0.5,"repeat":3})",
               R"(workload.prompt_tokens={"distribution":"trace","scale":2})",
               R"(workload.output_tokens={"distribution":"fixed","value":7})",
               R"(workload.prefix={"groups":1,"tokens":500})"});
  const std::string lengths_alone =
      Changed({R"(workload.output_tokens={"distribution":"trace","scale":3})"});
  for (const std::string& document : {whole, lengths_alone}) {
    EXPECT_EQ(ReplayingDocument(document, true), document);
    EXPECT_EQ(ReplayingDocument(document, false), document);
  }
}

TEST(ReplayingDocument, ReplayMembersBesideAnotherProcess_AreNotLost) {
  const std::string document = Changed(
      {R"(workload.arrivals={"rate_per_s":3,"rate_scale":4})", "workload.prompt_tokens.scale=2"});
  const WorkloadSpec w = Replayed(document);
  EXPECT_EQ(w.arrivals.rate_scale, 4);
  EXPECT_EQ(w.prompt_tokens.scale, 2);
}

TEST(ReplayingDocument, Nonsense_IsLeftToTheParser) {
  for (const char* text : {"", "[1]", "{", R"({"workload": 5})"}) {
    EXPECT_EQ(ReplayingDocument(text, true), text);
  }
  const std::string odd = Changed({"workload.arrivals=5"});
  EXPECT_FALSE(ParseScenario(ReplayingDocument(odd, true)).ok());
}

TEST(ReplayingDocument, ResolvedScenario_RunsAgainWithTheSameFingerprint) {
  const std::string documents[] = {
      SmallDocument(),
      Changed({R"(workload.arrivals={"process":"trace","rate_scale":2,"repeat":3})",
               R"(workload.output_tokens={"distribution":"fixed","value":7})",
               R"(workload.prefix={"groups":1,"tokens":500})"})};
  for (const std::string& document : documents) {
    const Scenario first = Parsed(ReplayingDocument(document, true));
    const Report report = RunToEnd(ReplayingDocument(document, true), ThreeRows());
    EXPECT_GT(report.completed, 0);
    for (const std::string& again : {first.resolved_text, first.canonical_text}) {
      EXPECT_EQ(RunToEnd(ReplayingDocument(again, true), ThreeRows()).fingerprint,
                report.fingerprint);
    }
  }
}

TEST(MemoryOfRun, CountsTheRequestsThatAReplayMakes) {
  const Trace trace = ThreeRows();
  const auto of = [&trace](const std::string& arrivals) {
    return MemoryOfRun(Parsed(Changed({"workload.arrivals=" + arrivals})), trace);
  };
  EXPECT_EQ(of(R"({"process":"poisson","rate_per_s":1})").requests, 50);
  EXPECT_EQ(of(R"({"process":"trace","repeat":4})").requests, 12);
  EXPECT_EQ(of(R"({"process":"trace","repeat":4,"keep":0.5})").requests, 6);
  EXPECT_EQ(of(R"({"process":"trace","repeat":0})").requests, 50);
  EXPECT_EQ(of(R"({"process":"trace","repeat":1e6})").requests, 3'000'000);
  const std::int64_t few = MemoryOfRun(Parsed(SmallDocument()), {}).bytes;
  const std::int64_t most = MemoryOfRun(Parsed(Changed({"workload.requests=5e6"})), {}).bytes;
  EXPECT_LT(few, 100'000'000);
  // 1.51 GB were measured.
  EXPECT_GT(most, 1'200'000'000);
  EXPECT_LT(most, 2'200'000'000);
}

}  // namespace
}  // namespace servecast::testing
