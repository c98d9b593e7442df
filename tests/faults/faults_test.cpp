// Would the differential tests notice? They are run on a copy of the engine in which one fault at a
// time is switched on (faults.cmake). Each runs in a process of its own, as some make the engine
// stop at one of its own checks - which is noticing, too.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "faults/planted.h"
#include "gtest/gtest.h"
#include "testing/blis_differential.h"
#include "testing/differential.h"
#include "testing/encode_cases.h"
#include "testing/hedge_reference.h"
#include "testing/hybrid_cases.h"
#include "testing/pd_cases.h"
#include "testing/random_drafts.h"
#include "testing/reference_router.h"
#include "testing/scheduled_differential.h"
#include "testing/sglang_cases.h"
#include "testing/trtllm_cases.h"
#include "testing/warm_reference.h"

namespace servecast::testing {

int planted_fault = 0;

namespace {

constexpr std::uint64_t kFirstSeed = 1;  // the cases of the differential tests themselves
constexpr int kCases = 1000, kPdCases = 6000, kSglangCases = 3000,
              kTrtllmCases = 3000;  // these are of many kinds
constexpr int kFirstBlisFault = 101, kFirstClusterFault = 201, kFirstScheduledFault = 301,
              kFirstPdFault = 401, kFirstDraftFault = 501, kFirstSglangFault = 601,
              kFirstWindowFault = 701, kFirstTrtllmFault = 801, kFirstTrtllmRanksFault = 851,
              kFirstImageFault = 901, kFirstHybridFault = 1001, kFirstHedgeFault = 1051,
              kFirstWarmFault = 1101, kFirstScaledPoolsFault = 1151, kFirstPlannerFault = 1181,
              kFirstFailingPoolsFault = 1201, kFirstEncodersFault = 1251;

bool Differs(std::uint64_t seed) {
  const RandomCase random_case = MakeRandomCase(seed);
  return FirstMismatch(random_case, RunReference(random_case)).has_value();
}

bool DraftsDiffer(std::uint64_t seed) {
  const RandomCase random_case = MakeRandomDraftCase(seed);
  return FirstMismatch(random_case, RunReference(random_case)).has_value();
}

bool WindowsDiffer(std::uint64_t seed) {
  const RandomCase random_case = MakeRandomWindowCase(seed);
  return FirstMismatch(random_case, RunReference(random_case)).has_value();
}

bool ImagesDiffer(std::uint64_t seed) {
  const RandomCase random_case = MakeRandomImageCase(seed);
  return FirstMismatch(random_case, RunReference(random_case)).has_value();
}

bool HybridDiffers(std::uint64_t seed) { return HybridDifference(seed).has_value(); }

bool BlisDiffers(std::uint64_t seed) {
  const RandomCase random_case = MakeBlisCase(seed);
  const BlisReferenceOutput reference = RunBlisReference(random_case);
  return !reference.endless && FirstBlisMismatch(random_case, reference).has_value();
}

bool ScheduledDiffers(std::uint64_t seed) {
  const std::optional<ScheduledCase> c = MakeScheduledCase(seed);
  return c && FirstScheduledMismatch(*c, RunScheduledReference(*c)).has_value();
}

bool ClusterDiffers(std::uint64_t seed) { return !CompareRouter(seed).mismatch.empty(); }

bool HedgesDiffer(std::uint64_t seed) { return !CompareHedges(seed).mismatch.empty(); }

bool WarmDiffers(std::uint64_t seed) { return !CompareWarm(seed).mismatch.empty(); }

bool PdDiffers(std::uint64_t seed) {
  const std::optional<PdCase> pd_case = MakePdCase(seed);
  return pd_case && FirstPdMismatch(*pd_case, RunPdReference(pd_case->Input())).has_value();
}

bool ScaledPoolsDiffer(std::uint64_t seed) {
  const std::optional<PdCase> c = MakeScaledPdCase(seed);
  return c && FirstPdMismatch(*c, RunPdReference(c->Input())).has_value();
}

bool PlannerDiffers(std::uint64_t seed) {
  const std::optional<PdCase> c = MakePlannedPdCase(seed);
  return c && FirstPdMismatch(*c, RunPdReference(c->Input())).has_value();
}

bool FailingPoolsDiffer(std::uint64_t seed) {
  const std::optional<PdCase> c = MakeFailingPdCase(seed);
  return c && FirstPdMismatch(*c, RunPdReference(c->Input())).has_value();
}

bool EncodersDiffer(std::uint64_t seed) { return !CompareEncoders(seed).mismatch.empty(); }

bool SglangDiffers(std::uint64_t seed) {
  SglangCase c = MakeSglangCase(seed);
  RandomCase priced;
  priced.latency = MakeSglangLatency(seed);
  const std::unique_ptr<LatencyModel> latency = MakeLatency(priced);
  const SglangOutput reference = RunSglangReference({c.requests, c.max_new, c.settings, *latency});
  c.steps = reference.steps;
  c.results = reference.results;
  const ReplicaRun run = RunReplica(EngineCaseOf(c), *latency, kClockEnd);
  return FirstDifference(c, StepsOf(c, run.steps)) || FirstDifference(c, run.results);
}

bool TrtllmDiffers(TrtllmCase c, std::uint64_t seed) {
  RandomCase priced;
  priced.latency = MakeTrtllmLatency(seed);
  const std::unique_ptr<LatencyModel> latency = MakeLatency(priced);
  const TrtllmOutput reference = RunTrtllmReference({c.requests, c.max_new, c.settings, *latency});
  if (reference.odd) return false;
  c.steps = reference.steps;
  c.results = reference.results;
  const ReplicaRun run = RunReplica(EngineCaseOf(c), *latency, kClockEnd);
  return FirstDifference(c, TrtllmStepsOf(run.steps)) ||
         FirstDifference(c, ResultsOf(c, run.steps, run.results));
}

bool TrtllmListDiffers(std::uint64_t seed) { return TrtllmDiffers(MakeTrtllmCase(seed), seed); }
bool TrtllmRanksDiffer(std::uint64_t seed) {
  return TrtllmDiffers(MakeTrtllmRanksCase(seed), seed);
}

// The number of the first case that differs, from 1; 0 when none does. Without a fault of all
// tests, else of that which the fault is for.
int FirstCaught(int fault) {
  planted_fault = fault;
  const auto first = [](bool (*differs)(std::uint64_t), int cases = kCases) {
    for (int i = 0; i < cases; ++i) {
      if (differs(kFirstSeed + static_cast<std::uint64_t>(i))) return i + 1;
    }
    return 0;
  };
  if (fault >= kFirstEncodersFault) return first(EncodersDiffer);
  if (fault >= kFirstFailingPoolsFault) return first(FailingPoolsDiffer);
  if (fault >= kFirstPlannerFault) return first(PlannerDiffers, kPdCases);
  if (fault >= kFirstScaledPoolsFault) return first(ScaledPoolsDiffer);
  if (fault >= kFirstWarmFault) return first(WarmDiffers);
  if (fault >= kFirstHedgeFault) return first(HedgesDiffer);
  if (fault >= kFirstHybridFault) return first(HybridDiffers);
  if (fault >= kFirstImageFault) return first(ImagesDiffer);
  if (fault >= kFirstTrtllmRanksFault) return first(TrtllmRanksDiffer, kTrtllmCases);
  if (fault >= kFirstTrtllmFault) return first(TrtllmListDiffers, kTrtllmCases);
  if (fault >= kFirstWindowFault) return first(WindowsDiffer);
  if (fault >= kFirstSglangFault) return first(SglangDiffers, kSglangCases);
  if (fault >= kFirstDraftFault) return first(DraftsDiffer);
  if (fault >= kFirstPdFault) return first(PdDiffers, kPdCases);
  if (fault >= kFirstScheduledFault) return first(ScheduledDiffers);
  if (fault >= kFirstClusterFault) return first(ClusterDiffers);
  if (fault >= kFirstBlisFault) return first(BlisDiffers);
  if (fault > 0) return first(Differs);
  return std::max({first(Differs), first(BlisDiffers), first(ClusterDiffers),
                   first(ScheduledDiffers), first(PdDiffers), first(DraftsDiffer),
                   first(SglangDiffers), first(WindowsDiffer), first(TrtllmListDiffers),
                   first(TrtllmRanksDiffer), first(ImagesDiffer), first(HybridDiffers),
                   first(HedgesDiffer), first(WarmDiffers), first(ScaledPoolsDiffer),
                   first(PlannerDiffers), first(FailingPoolsDiffer), first(EncodersDiffer)});
}

// How its differential test ends with a fault planted: "" when it passes.
std::string Noticed(int fault) {
  int channel[2];
  if (pipe(channel) != 0) return "";
  std::fflush(nullptr);
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child < 0) return "";
  if (child == 0) {
    alarm(300);  // a fault may make the engine go on for ever
    const int caught = FirstCaught(fault);
    const bool sent = write(channel[1], &caught, sizeof caught) == sizeof caught;
    std::_Exit(sent ? 0 : 1);
  }
  close(channel[1]);
  int caught = 0;
  const bool received = read(channel[0], &caught, sizeof caught) == sizeof caught;
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!received) {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << "it died of something else";
    return "by a check of the engine itself";
  }
  return caught > 0 ? "by case " + std::to_string(caught) : "";
}

TEST(PlantedFaults, None_DifferentialTestPasses) { EXPECT_EQ(Noticed(0), ""); }

class PlantedFault : public ::testing::TestWithParam<int> {};

TEST_P(PlantedFault, SwitchedOn_DifferentialTestNotices) {
  const std::string noticed = Noticed(GetParam());
  EXPECT_NE(noticed, "") << "fault " << GetParam() << " of tests/faults/faults.cmake";
  std::printf("fault %d is noticed %s\n", GetParam(), noticed.c_str());
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedFault, ::testing::Values(SERVECAST_FAULTS),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace servecast::testing
