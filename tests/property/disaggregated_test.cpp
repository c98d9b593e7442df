// Prefill and decode on different replicas, against the naive reference, step by step and to the
// nanosecond; and laws that need no reference.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "metrics/time_split.h"
#include "serving/cluster/kv_link.h"
#include "serving/cluster/router.h"
#include "testing/asked.h"
#include "testing/cluster_run.h"
#include "testing/pd_cases.h"

namespace servecast::testing {
namespace {

std::int64_t Cases(std::int64_t fallback) { return Asked("SERVECAST_CASES", fallback); }

TEST(DifferentialDisaggregated, RandomClusters_AgreeWithTheReference) {
  PdCoverage all;
  std::map<std::string, std::int64_t> fleets, prefills, decodes;  // requests, by router
  const std::int64_t first = Asked("SERVECAST_SEED", 1);
  for (std::int64_t seed = first; seed < first + Cases(2000); ++seed) {
    const std::optional<PdCase> pd_case = MakePdCase(static_cast<std::uint64_t>(seed));
    if (!pd_case) continue;
    const PdOutput reference = RunPdReference(pd_case->Input());
    const std::int64_t slice = seed % 3 == 0 ? 1 : INT64_MAX;
    const std::optional<std::string> mismatch = FirstPdMismatch(*pd_case, reference, slice);
    ASSERT_FALSE(mismatch.has_value()) << *mismatch;
    const PdCoverage& c = reference.coverage;
    for (const auto member : {&PdCoverage::transfers,
                              &PdCoverage::shared_transfers,
                              &PdCoverage::empty_transfers,
                              &PdCoverage::local_blocks,
                              &PdCoverage::waited_for_blocks,
                              &PdCoverage::waited_for_a_seat,
                              &PdCoverage::slept,
                              &PdCoverage::lost_tokens,
                              &PdCoverage::decode_preemptions,
                              &PdCoverage::served_whole,
                              &PdCoverage::gave_up_queued,
                              &PdCoverage::gave_up_under_way,
                              &PdCoverage::gave_up_arrived,
                              &PdCoverage::prefill_waited_for_transfers,
                              &PdCoverage::victims_in_flight,
                              &PdCoverage::lost_fresh,
                              &PdCoverage::left_in_flight,
                              &PdCoverage::batches_in_flight,
                              &PdCoverage::kept_waiting,
                              &PdCoverage::stale,
                              &PdCoverage::looks,
                              &PdCoverage::held,
                              &PdCoverage::held_to_decode,
                              &PdCoverage::gave_up_held,
                              &PdCoverage::gave_up_to_decode}) {
      all.*member += c.*member;
    }
    (c.transfers > 0 ? prefills : fleets)[pd_case->router.name] += pd_case->base.requests.size();
    decodes[pd_case->decode_router.name] += c.transfers;
  }
  if (Cases(1000) < 1000) return;
  // Not hollow.
  EXPECT_GT(all.transfers, 2000);
  EXPECT_GT(all.shared_transfers, 500);
  EXPECT_GT(all.empty_transfers, 0);
  EXPECT_GT(all.local_blocks, 200);
  EXPECT_GT(all.waited_for_blocks, 200);
  EXPECT_GT(all.waited_for_a_seat, 50);
  EXPECT_GT(all.slept, 200);
  EXPECT_GT(all.lost_tokens, 0);
  EXPECT_GT(all.decode_preemptions, 100);
  EXPECT_GT(all.served_whole, 500);
  EXPECT_GT(all.gave_up_queued, 5);
  EXPECT_GT(all.gave_up_under_way, 5);
  EXPECT_GT(all.gave_up_arrived, 0);
  EXPECT_GT(all.prefill_waited_for_transfers, 50);
  EXPECT_GT(all.stale, 1000);
  EXPECT_GT(all.looks, 500);
  EXPECT_GT(all.held, 300);
  EXPECT_GT(all.held_to_decode, 100);
  EXPECT_GT(all.gave_up_held, 3);
  EXPECT_GT(all.gave_up_to_decode, 0);
  for (const RouterEntry& router : Routers()) {
    const std::string name(router.name);
    if (name == "epp") continue;  // of whole requests in a cluster_test
    EXPECT_GT(fleets[name], 200) << name;
    EXPECT_GT(prefills[name], 200) << name;
    EXPECT_GT(decodes[name], 100) << name;
  }
  EXPECT_GT(all.victims_in_flight, 0);
  if (Cases(0) >= 5000) {  // rare
    EXPECT_GT(all.lost_fresh, 0);
  }
  EXPECT_GT(all.left_in_flight, 0);
  EXPECT_GT(all.batches_in_flight, 1000);
  EXPECT_GT(all.kept_waiting, 50);
}

// Pools that scale apart: which replica of which pool is there when, what its scaler sees of it and
// of the gateways before it, and what requests make of that.
TEST(DifferentialDisaggregated, ScaledPools_AgreeWithTheReference) {
  PdCoverage all;
  std::int64_t several = 0, stopped = 0;
  const std::int64_t first = Asked("SERVECAST_SEED", 1);
  for (std::int64_t seed = first; seed < first + Cases(2000); ++seed) {
    const std::optional<PdCase> c = MakeScaledPdCase(static_cast<std::uint64_t>(seed));
    if (!c) continue;
    const PdOutput reference = RunPdReference(c->Input());
    const std::int64_t slice = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 7 : INT64_MAX;
    const std::optional<std::string> mismatch = FirstPdMismatch(*c, reference, slice);
    ASSERT_FALSE(mismatch.has_value()) << *mismatch;
    const PdCoverage& k = reference.coverage;
    for (const auto member : {&PdCoverage::started, &PdCoverage::drained, &PdCoverage::kept_kv,
                              &PdCoverage::held_for_none, &PdCoverage::transfers}) {
      all.*member += k.*member;
    }
    several += std::count_if(c->pools.begin(), c->pools.end(),
                             [](const PdPool& pool) { return pool.scaling.has_value(); }) > 1;
    for (const PdLife& life : reference.members->lives()) stopped += life.drain < kNever ? 1 : 0;
  }
  if (Cases(1000) < 1000) return;
  EXPECT_GT(all.started, 1000);
  EXPECT_GT(stopped, 1000);
  EXPECT_GT(all.drained, 300);
  EXPECT_GT(all.kept_kv, 50);
  EXPECT_GT(all.held_for_none, 100);
  EXPECT_GT(all.transfers, 1000);
  EXPECT_GT(several, 500);
}

// Dynamo's planner: what each replica computes last and who waits there, what clients had, and two
// pools that it decides for at once.
TEST(DifferentialDisaggregated, PlannedPools_AgreeWithTheReference) {
  std::int64_t started = 0, stopped = 0, together = 0, cases = 0, by_throughput = 0;
  const std::int64_t first = Asked("SERVECAST_SEED", 1);
  for (std::int64_t seed = first; seed < first + Cases(2000); ++seed) {
    const std::optional<PdCase> c = MakePlannedPdCase(static_cast<std::uint64_t>(seed));
    if (!c) continue;
    ++cases;
    const PdOutput reference = RunPdReference(c->Input());
    const std::int64_t slice = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 7 : INT64_MAX;
    const std::optional<std::string> mismatch = FirstPdMismatch(*c, reference, slice);
    ASSERT_FALSE(mismatch.has_value()) << *mismatch;
    std::int64_t planned = 0;
    for (const PdPool& pool : c->pools) planned += pool.scaling ? 1 : 0;
    const std::int64_t before = started;
    started += reference.coverage.started;
    for (const PdLife& life : reference.members->lives()) stopped += life.drain < kNever ? 1 : 0;
    together += planned > 1 && started > before ? 1 : 0;
    for (const PdPool& pool : c->pools) {
      const bool load = !pool.scaling || pool.scaling->spec.enable_load_scaling;
      by_throughput += !load && started > before ? 1 : 0;
    }
  }
  if (Cases(1000) < 1000) return;
  EXPECT_GT(cases, 500);
  EXPECT_GT(started, 500);
  EXPECT_GT(stopped, 500);
  EXPECT_GT(together, 50);
  EXPECT_GT(by_throughput, 20);
}

// Replicas that fail or are cut off, prefill and decode apart: who is lost with what, whose blocks
// are free again when, and what the others, scalers and clients that try again make of that.
TEST(DifferentialDisaggregated, ReplicasThatFail_AgreeWithTheReference) {
  struct Kind {
    const char* name;
    std::int64_t PdCoverage::*count;
    std::int64_t least;
  };
  const Kind kinds[] = {{"lost prefills", &PdCoverage::lost_prefills, 2000},
                        {"lost decodes", &PdCoverage::lost_decodes, 2000},
                        {"lost as handed over", &PdCoverage::lost_as_handed_over, 3},
                        {"lost before decodes", &PdCoverage::lost_held, 100},
                        {"lost in a decode queue", &PdCoverage::lost_queued, 200},
                        {"lost under way", &PdCoverage::lost_under_way, 500},
                        {"refused", &PdCoverage::refused, 1000},
                        {"refused to decode", &PdCoverage::refused_to_decode, 300},
                        {"KV not fetched", &PdCoverage::freed_by_failures, 1000},
                        {"links shared anew", &PdCoverage::links_shared_again, 500},
                        {"cut off", &PdCoverage::cut, 100},
                        {"cut off with KV alone", &PdCoverage::cut_with_kv, 20},
                        {"died draining", &PdCoverage::died_draining, 20},
                        {"drained in time", &PdCoverage::ended_in_time, 20},
                        {"retries", &PdCoverage::retries, 5000},
                        {"gave up before", &PdCoverage::blocks_back, 50},
                        {"transfers", &PdCoverage::transfers, 5000}};
  PdCoverage all;
  std::int64_t cases = 0;
  const std::int64_t first = Asked("SERVECAST_SEED", 1);
  for (std::int64_t seed = first; seed < first + Cases(2000); ++seed) {
    const std::optional<PdCase> c = MakeFailingPdCase(static_cast<std::uint64_t>(seed));
    if (!c) continue;
    const PdOutput reference = RunPdReference(c->Input());
    for (const std::int64_t slice : {std::int64_t{1}, std::int64_t{7}, INT64_MAX}) {
      const std::optional<std::string> mismatch = FirstPdMismatch(*c, reference, slice);
      ASSERT_FALSE(mismatch.has_value()) << "slice " << slice << ", " << *mismatch;
    }
    for (const Kind& kind : kinds) all.*kind.count += reference.coverage.*kind.count;
    ++cases;
  }
  if (Cases(2000) < 2000) return;
  EXPECT_GT(cases, 1500);
  for (const Kind& kind : kinds) EXPECT_GT(all.*kind.count, kind.least) << kind.name;
}

// Failures that never come change nothing.
TEST(DisaggregatedFailures, BeyondTheEnd_ChangeNoBit) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    std::optional<PdCase> c = MakeFailingPdCase(seed);
    if (!c) continue;
    for (PdPool& pool : c->pools) pool.grace = kNever;
    c->failures.reset();
    const PdRun without = RunPdCase(*c);
    c->failures.emplace().schedule = {{1e9, 0}};
    for (PdPool& pool : c->pools) {
      if (pool.scaling) pool.grace = kClockEnd / 2;
    }
    const PdRun with = RunPdCase(*c, 7);
    ASSERT_EQ(with.steps, without.steps) << seed;
    ASSERT_EQ(with.results.state, without.results.state) << seed;
    ASSERT_EQ(with.results.completion, without.results.completion) << seed;
    ASSERT_EQ(with.requests.arrival, without.requests.arrival) << seed;
    ASSERT_EQ(with.now, without.now) << seed;
  }
}

// Behind any router: nothing depends on slices or on who
// looks, everybody is accounted for, nobody decodes before his KV is there, and the parts of the
// time of each add up.
TEST(PoolsInvariants, EveryRouterSchedulerAndRole_KeepsThem) {
  std::map<std::string, std::int64_t> completed;  // by router, and by scheduler and role
  std::int64_t resumed = 0;
  for (std::int64_t seed = 1; seed <= Cases(700); ++seed) {
    std::optional<PdCase> c = MakePdCase(static_cast<std::uint64_t>(2 * seed));
    if (!c) continue;
    c->router = MakeRouterChoice(static_cast<std::uint64_t>(3 * seed), c->base.latency.base);
    c->decode_router = MakeRouterChoice(static_cast<std::uint64_t>(5 * seed), c->base.latency.base);
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + c->router.name + " " +
                 c->decode_router.name);
    const PdRun run = RunPdCase(*c), sliced = RunPdCase(*c, 1), unseen = RunPdCase(*c, 7, false);
    for (const PdRun* other : {&sliced, &unseen}) {
      ASSERT_EQ(run.results.replica, other->results.replica);
      ASSERT_EQ(run.results.first_token, other->results.first_token);
      ASSERT_EQ(run.results.completion, other->results.completion);
      ASSERT_EQ(run.results.generated, other->results.generated);
      ASSERT_EQ(run.results.preemptions, other->results.preemptions);
      ASSERT_EQ(run.results.interference, other->results.interference);
      ASSERT_EQ(run.output_tokens, other->output_tokens);
    }
    std::vector<const PdPool*> pool_of;  // by replica
    for (const PdPool& pool : c->pools) {
      pool_of.insert(pool_of.end(), static_cast<std::size_t>(pool.replicas), &pool);
    }
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
      for (const StepRecord& step : run.steps[i]) {
        ASSERT_GE(step.used_after_schedule, 0) << i;
        ASSERT_LT(step.used_after_schedule, pool_of[i]->pool_blocks) << i;
      }
    }
    std::int64_t done = 0, gone = 0;
    for (std::size_t r = 0; r < run.results.state.size(); ++r) {
      const RequestState state = run.results.state[r];
      done += state == RequestState::kCompleted ? 1 : 0;
      gone += state == RequestState::kTimedOut ? 1 : 0;
      const bool came = run.results.replica[r] >= 0;
      if (!c->base.horizon && came) {
        ASSERT_TRUE(state == RequestState::kCompleted || state == RequestState::kTimedOut) << r;
      }
      if (run.results.HandedOver(r)) {
        const HandOver& h = run.results.hand_overs[r];
        const TimeNs times[] = {h.prefilled, h.reserved, h.arrived, h.resumed};
        for (int i = 1; i < 4; ++i) {
          ASSERT_TRUE(times[i] < 0 || (times[i - 1] >= 0 && times[i] >= times[i - 1])) << r;
        }
        ++resumed;
      }
      if (state != RequestState::kCompleted) continue;
      const auto replica = static_cast<std::size_t>(run.results.replica[r]);
      const PdPool& pool = *pool_of[replica];
      static constexpr const char* kRoles[] = {" mixed", " prefill", " decode"};
      ++completed[c->router.name];
      ++completed[pool.scheduler + kRoles[static_cast<std::size_t>(pool.role)]];
      if (pool.stages != nullptr)
        ++completed["stages" + std::string(kRoles[static_cast<std::size_t>(pool.role)])];
      if (run.results.HandedOver(r)) {
        const auto before = static_cast<std::size_t>(run.results.hand_overs[r].prefill_replica);
        ++completed[pool_of[before]->scheduler + " prefill"];
        if (pool_of[before]->stages != nullptr) ++completed["stages prefill"];
      }
      const RequestTimes times =
          TimesOf(run.requests, run.results, c->pools[0].latency->OutputTokenDelay(), r);
      ASSERT_EQ(times.e2e.Sum(), run.results.completion[r] - run.requests.arrival[r]) << r;
      ASSERT_EQ(times.ttft.Sum(), run.results.first_token[r] - run.requests.arrival[r]) << r;
      for (const TimeSplit& split : {times.e2e, times.ttft}) {
        for (const TimeNs TimeSplit::*part : kTimeParts) ASSERT_GE(split.*part, 0) << r;
      }
    }
    ASSERT_EQ(done, run.completed);
    ASSERT_EQ(gone, run.timed_out);
  }
  if (Cases(700) < 700) return;  // what follows is of how many there were
  EXPECT_GT(resumed, 3000);
  for (const RouterEntry& router : Routers()) {
    if (router.name == "epp") continue;  // refuses pools for prefill and decode
    const std::int64_t by_it = completed[std::string(router.name)];
    EXPECT_GT(by_it, router.holds ? 20 : 300) << router.name;
  }
  for (const char* scheduler :
       {"vllm", "vllm_v0", "sarathi", "orca", "lightllm", "faster_transformer", "stages"}) {
    for (const char* role : {" mixed", " prefill", " decode"}) {
      EXPECT_GT(completed[scheduler + std::string(role)], 50) << scheduler << role;
    }
  }
}

// Equal transfers that set out together arrive together, after the time of all their bytes; one
// that joins late takes half of the rest.
TEST(KvLink, Bandwidth_IsSharedEvenly) {
  KvLink link(10, 1'000'000'000);  // a byte a ns
  link.Start(0, 100, 0);
  link.Start(1, 100, 0);
  EXPECT_EQ(link.Next(), 10);
  EXPECT_TRUE(link.Pass().empty());
  EXPECT_EQ(link.Next(), 210);
  link.Start(2, 30, 140);  // from 150 on three share: each of the first two has had 70 of its 100
  EXPECT_EQ(link.Next(), 150);
  EXPECT_TRUE(link.Pass().empty());
  EXPECT_EQ(link.Next(), 240);
  EXPECT_EQ(link.Pass(), (std::vector<RequestId>{0, 1, 2}));
  EXPECT_EQ(link.Next(), kNever);
}

TEST(KvLink, NoBytes_TakeTheBaseLatency) {
  KvLink link(0, 1);
  link.Start(7, 0, 5);
  EXPECT_EQ(link.Next(), 6);
  EXPECT_EQ(link.Pass(), (std::vector<RequestId>{7}));
}

std::string Document(const std::string& cluster, const std::string& more = "") {
  return R"({"schema": 1, "model": {"preset": "llama-3.1-8b"},
    "hardware": {"preset": "h100-sxm", "price_per_gpu_hour": 2}, "cluster": )" +
         cluster + R"(, "workload": {"arrivals": {"process": "poisson", "rate_per_s": 8},
    "prompt_tokens": {"distribution": "fixed", "value": 3000},
    "output_tokens": {"distribution": "fixed", "value": 60}, "requests": 200})" +
         more + "}";
}

constexpr const char* kDisaggregated = R"({"pools": [
    {"name": "in", "role": "prefill", "replicas": 2},
    {"name": "out", "role": "decode", "replicas": 1, "tensor_parallel": 2,
     "hardware": {"preset": "a100-80gb", "price_per_gpu_hour": 1}}],
    "disaggregation": {"bandwidth_gb_s": 10}})";

TEST(DisaggregatedReport, CountsEachPool) {
  const Report report = RunToEnd(Document(kDisaggregated));
  ASSERT_EQ(report.pools.size(), 2u);
  const PoolReport &in = report.pools[0], &out = report.pools[1];
  EXPECT_EQ(report.completed, 200);
  EXPECT_EQ(report.gpus, 4);
  EXPECT_EQ(in.gpus, 2);
  EXPECT_EQ(out.gpus, 2);
  EXPECT_EQ(in.requests, 200);
  EXPECT_EQ(out.requests, 200);
  EXPECT_EQ(in.output_tokens, 200);
  EXPECT_EQ(out.output_tokens, 200 * 59);
  EXPECT_EQ(report.output_tokens, 200 * 60);
  EXPECT_EQ(in.steps + out.steps, report.steps);
  EXPECT_NE(in.kv_tokens, out.kv_tokens);
  EXPECT_DOUBLE_EQ(report.kv_peak_usage, std::max(in.kv_peak_usage, out.kv_peak_usage));
  // 2 GPUs at $2 and 2 at $1.
  ASSERT_TRUE(report.cost_per_million_output_tokens.has_value());
  EXPECT_NEAR(*report.cost_per_million_output_tokens, 6 / (report.output_tokens_per_s * 3600) * 1e6,
              1e-9);
  EXPECT_NEAR(report.binding.busy_share, (2 * in.busy_share + out.busy_share) / 3, 1e-12);
  // 188 blocks of 16 tokens of 128 KiB each.
  EXPECT_EQ(report.kv_transfer.transfers, 200);
  EXPECT_EQ(report.kv_transfer.bytes, std::int64_t{200} * 188 * 16 * 131072);
  EXPECT_GE(report.kv_transfer.mean_ms, 188 * 16 * 131072 / 10e9 * 1e3 + 0.05 - 1e-6);
  EXPECT_EQ(report.ColumnOf("prefill_replica")[0], 0);
  EXPECT_EQ(report.ColumnOf("replica")[0], 2);
  double sum = 0;
  for (const double part : report.time_split.e2e_ms) sum += part;
  EXPECT_NEAR(sum, report.e2e_ms.mean, 1e-6);
}

// The price of one GPU says nothing of another.
TEST(PoolsReport, GpuOfItsOwn_HasNoPriceButItsOwn) {
  const auto report_of = [](const std::string& hardware) {
    const std::string document =
        Document(R"({"pools": [{"replicas": 1}, {"replicas": 1, "hardware": )" + hardware + "}]}");
    const Report report = RunToEnd(document);
    // A link says all of it.
    EXPECT_EQ(RunToEnd(Parsed(document).canonical_text).fingerprint, report.fingerprint);
    return report;
  };
  const Report other = report_of(R"({"preset": "rtx-pro-6000"})");
  EXPECT_EQ(other.pools[0].cost_per_hour, 2);
  EXPECT_FALSE(other.pools[1].cost_per_hour.has_value());
  EXPECT_FALSE(other.cost_per_million_output_tokens.has_value());
  EXPECT_EQ(report_of(R"({"preset": "a100-80gb", "price_per_gpu_hour": 1})").pools[1].cost_per_hour,
            1);
  EXPECT_EQ(report_of(R"({"preset": "a100-80gb"})").pools[1].cost_per_hour, 1.75);
  // A preset that is named is all there is: its own price, too.
  EXPECT_EQ(report_of(R"({"preset": "h100-sxm"})").pools[1].cost_per_hour, 2.5);
  EXPECT_EQ(report_of(R"({"memory_gib": 90})").pools[1].cost_per_hour, 2);
}

TEST(DisaggregatedReport, LinkThatHoldsAllUp_IsTheLimit) {
  EXPECT_EQ(RunToEnd(Document(kDisaggregated)).verdict.limit.find("link between"),
            std::string::npos);
  const Report slow = RunToEnd(Document(R"({"pools": [{"role": "prefill"}, {"role": "decode"}],
      "disaggregation": {"bandwidth_gb_s": 0.5}})"));
  EXPECT_EQ(slow.verdict.limit.find("The limit is the link between prefill and decode"), 0u)
      << slow.verdict.limit;
}

TEST(PoolLabels, EachGpu_IsNamedOnce) {
  const LatencyLabel label =
      RunToEnd(Document(R"({"pools": [{}, {"hardware": "l40s"}, {"hardware": "l40s"}]})"))
          .latency_model;
  const std::size_t first = label.description.find("L40S");
  EXPECT_NE(label.description.find("H100"), std::string::npos) << label.description;
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(label.description.find("L40S", first + 1), std::string::npos);
}

TEST(PoolOffload, OfTheFirstPool_IsReported) {
  const Report report =
      RunToEnd(Document(R"({"pools": [{"engine": {"kv_offload": {"cpu_gib": 10}}}, {}]})"));
  EXPECT_TRUE(report.kv_offload.on);
}

TEST(DisaggregatedReport, FirstTokenFromDecode_ComesAfterTheTransfer) {
  std::string document = Document(kDisaggregated);
  const Report prefill = RunToEnd(document);
  document.replace(document.find("\"bandwidth_gb_s\""), 0, "\"first_token_from\": \"decode\", ");
  const Report decode = RunToEnd(document);
  EXPECT_TRUE(decode.kv_transfer.first_token_from_decode);
  EXPECT_GT(decode.ttft_ms.p50, prefill.ttft_ms.p50 + decode.kv_transfer.mean_ms);
  EXPECT_EQ(decode.output_tokens, prefill.output_tokens);
}

// Without roles a pool is more of the same.
TEST(Pools, TwoEqualOnes_AreOneOfBoth) {
  const Report one = RunToEnd(Document(R"({"pools": [{"replicas": 3}],
      "router": {"policy": "least_outstanding"}})"));
  const Report two = RunToEnd(Document(R"({"pools": [{"replicas": 1}, {"replicas": 2}],
      "router": {"policy": "least_outstanding"}})"));
  EXPECT_EQ(one.steps, two.steps);
  EXPECT_EQ(one.ttft_ms.p99, two.ttft_ms.p99);
  EXPECT_EQ(one.e2e_ms.mean, two.e2e_ms.mean);
  EXPECT_EQ(one.gpus, two.gpus);
  EXPECT_NEAR(one.kv_mean_usage, two.kv_mean_usage, 1e-12);
  EXPECT_NEAR(*one.mfu, *two.mfu, 1e-12);
  EXPECT_NEAR(*one.bandwidth_use, *two.bandwidth_use, 1e-12);
  EXPECT_NEAR(one.saturation.utilization, two.saturation.utilization, 0.2);
}

// Each pool has its own scheduler and stages; the report counts the GPUs of all stages.
TEST(Pools, SchedulersAndStages_AreOfEachPool) {
  const Report report = RunToEnd(Document(R"({"pools": [
      {"name": "in", "role": "prefill", "replicas": 2, "scheduler": "vllm_v0",
       "engine": {"max_num_batched_tokens": 8192}},
      {"name": "out", "role": "decode", "scheduler": {"policy": "sarathi"}, "pipeline_parallel": 2},
      {"name": "short", "pipeline_parallel": 4}], "disaggregation": {"above_tokens": 100}})"));
  EXPECT_EQ(report.completed, 200);
  EXPECT_EQ(report.gpus, 8);
  EXPECT_EQ(report.stages, 4);
  EXPECT_GT(report.bubble_share, 0);
  EXPECT_LT(report.bubble_share, 1);
  ASSERT_EQ(report.pools.size(), 3u);
  EXPECT_EQ(report.pools[1].gpus, 2);
  EXPECT_EQ(report.pools[1].requests, 200);
  EXPECT_EQ(report.pools[2].requests, 0);
  EXPECT_GT(report.pools[1].mfu, 0);
  bool prompts = false, chunks = false;
  for (const std::string_view departure : report.departures) {
    prompts |= departure.find("never both") != std::string_view::npos;
    chunks |= departure.find("every decode gets its token") != std::string_view::npos;
  }
  EXPECT_TRUE(prompts && chunks);
}

// Of one GPU a stage more is a GPU more; a transfer carries the layers of all stages.
TEST(Pools, KvOfAllStages_Travels) {
  const auto bytes = [](const char* decode) {
    return RunToEnd(Document(std::string(R"({"pools": [{"role": "prefill"}, {"role": "decode")") +
                             decode + "}]}"))
        .kv_transfer.bytes;
  };
  const std::int64_t all = std::int64_t{200} * 188 * 16 * 131072;
  EXPECT_EQ(bytes(""), all);
  EXPECT_EQ(bytes(R"(, "pipeline_parallel": 2)"), all);
  EXPECT_EQ(bytes(R"(, "scheduler": "orca")"), all);
  // Tokens rather than blocks.
  EXPECT_EQ(bytes(R"(, "scheduler": "lightllm", "engine": {"max_num_batched_tokens": 8192})"),
            std::int64_t{200} * 3000 * 131072);
}

// An engine's async scheduling is a default: with stages it is off, where nobody asked for it.
TEST(Pools, AsyncScheduling_YieldsToStages) {
  const auto engines = [](const std::string& cluster, const char* more) {
    const Result<Scenario> scenario = ParseScenario(Document(cluster, more));
    EXPECT_TRUE(scenario.ok()) << Listed(scenario.issues());
    std::vector<bool> async;
    for (std::size_t i = 0; i < scenario.value().cluster.pools.size(); ++i) {
      Scenario alone = scenario.value();
      alone.UsePool(i);
      async.push_back(alone.engine.async_scheduling);
    }
    const Result<Scenario> again = ParseScenario(scenario.value().canonical_text);
    EXPECT_TRUE(again.ok() && again.value().content_hash == scenario.value().content_hash);
    return async;
  };
  using Asyncs = std::vector<bool>;
  const std::string two = R"({"pools": [{"pipeline_parallel": 2)";
  EXPECT_EQ(engines(R"({"pools": [{}]})", ""), Asyncs{true});
  EXPECT_EQ(engines(two + "}]}", ""), Asyncs{false});
  EXPECT_EQ(engines(two + R"(}]})", R"(, "engine": {"max_num_seqs": 8})"), Asyncs{false});
  EXPECT_EQ(engines(two + R"(, "engine": "vllm-0.19"}, {}]})", ""), (Asyncs{false, true}));
  EXPECT_EQ(engines(two + R"(}, {}]})", ""), (Asyncs{false, true}));
  EXPECT_EQ(engines(two + R"(, "scheduler": "orca"}, {}]})", ""), (Asyncs{true, true}));
  const Issues asked =
      IssuesOf(Document(two + "}, {}]}", R"(, "engine": {"async_scheduling": true})"));
  ASSERT_EQ(asked.size(), 1u) << Listed(asked);
  EXPECT_EQ(asked[0].path, "/engine/async_scheduling");
  const Issues own =
      IssuesOf(Document(two + R"(, "engine": {"async_scheduling": true, "max_num_seqs": 8}}]})"));
  ASSERT_EQ(own.size(), 1u) << Listed(own);
  EXPECT_EQ(own[0].path, "/cluster/pools/0/engine/async_scheduling");
}

struct Refused {
  const char* cluster;
  const char* path;
};

TEST(Pools, WhatCannotBe_IsSaidAtItsPlace) {
  const Refused cases[] = {
      {R"({"pools": [{"role": "prefill"}]})", "/cluster/pools/0/role"},
      {R"({"pools": [{}, {"role": "decode"}]})", "/cluster/pools/1/role"},
      {R"({"pools": [{"role": "prefill"}, {"role": "decode"}, {}]})", "/cluster/pools/2/role"},
      {R"({"pools": [{}], "disaggregation": {"above_tokens": 5}})", "/cluster/disaggregation"},
      {R"({"pools": [{}], "decode_router": {"policy": "random"}})",
       "/cluster/decode_router/policy"},
      {R"({"pools": [{"role": "prefill"}, {"role": "decode", "engine": {"block_size": 32}}]})",
       "/cluster/pools/1/engine/block_size"},
      {R"({"pools": [{"role": "prefill"}, {"role": "decode",
           "engine": {"kv_offload": {"cpu_gib": 9}}}]})",
       "/cluster/pools/1/engine/kv_offload"},
      {R"({"pools": [{}, {"engine": {"max_num_seqs": 9000}}]})",
       "/cluster/pools/1/engine/max_num_batched_tokens"},
      {R"({"pools": [{}, {"engine": {"max_num_seq": 9}}]})", "/cluster/pools/1/engine/max_num_seq"},
      {R"({"pools": [{}, {"engine": {"kv_offload": null}}]})",
       "/cluster/pools/1/engine/kv_offload"},
      {R"({"pools": [{}, {"hardware": "h100"}]})", "/cluster/pools/1/hardware/preset"},
      {R"({"pools": [{"replicas": 1000}, {"replicas": 25}]})", "/cluster/pools/0/replicas"},
      {R"({"pools": [{"engine": {"compat": "blis"}}]})", "/cluster/pools/0/engine/compat"},
      {R"({"pools": [{}, {"engine": {"compat": "vidur"}}]})", "/cluster/pools/1/engine/compat"},
      {R"({"pools": [{}, {"engine": {"request_overhead_ms": 500}}]})",
       "/cluster/pools/1/engine/request_overhead_ms"},
      {R"({"pools": [{}, {"engine": {"gc_pass_us": 100}}]})", "/cluster/pools/1/engine/gc_pass_us"},
      {R"({"pools": [{}, {"scheduler": "lightllm", "pipeline_parallel": 2}]})",
       "/cluster/pools/1/pipeline_parallel"},
      {R"({"pools": [{}, {"scheduler": {"policy": "orca", "preemption": "tail"}}]})",
       "/cluster/pools/1/scheduler/preemption"},
      {R"({"pools": [{}, {"scheduler": "orcas"}]})", "/cluster/pools/1/scheduler/policy"},
      {R"({"pools": [{}, {"scheduler": {"polcy": "orca"}}]})", "/cluster/pools/1/scheduler/polcy"},
      {R"({"pools": [{"scheduler": "sarathi", "engine": {"enable_chunked_prefill": false}}, {}]})",
       "/cluster/pools/0/engine/enable_chunked_prefill"},
      {R"({"pools": [{"role": "prefill"}, {"role": "decode"}],
           "decode_router": {"policy": "central_queue", "max_outstanding": 2.5}})",
       "/cluster/decode_router/max_outstanding"},
      {R"({"pools": [{"role": "prefill"}, {"role": "decode"}],
           "decode_router": {"policy": "weighted", "prefix_weight": 0, "queue_depth_weight": 0,
                             "kv_utilization_weight": 0}})",
       "/cluster/decode_router/prefix_weight"},
  };
  for (const Refused& refused : cases) {
    const Issues issues = IssuesOf(Document(refused.cluster));
    ASSERT_EQ(issues.size(), 1u) << refused.cluster << "\n" << Listed(issues);
    EXPECT_EQ(issues[0].path, refused.path) << issues[0].message;
    EXPECT_EQ(issues[0].message.find('%'), std::string::npos) << issues[0].message;
  }
}

TEST(Pools, WhatWasFound_IsNamed) {
  const auto message = [](const char* cluster) {
    const Issues issues = IssuesOf(Document(cluster));
    return issues.size() == 1 ? issues[0].message : Listed(issues);
  };
  EXPECT_EQ(message(R"({"pools": [{}, {"engine": {"gc_pass_us": 100}}]})")
                .rfind("found 100, allowed the same as in /engine/gc_pass_us", 0),
            0u);
  EXPECT_EQ(message(R"({"pools": [{"role": "prefill"}, {"role": "decode",
                        "engine": {"kv_cache_dtype": "fp8"}}]})")
                .rfind("found \"fp8\", allowed the same as in the first pool", 0),
            0u);
  EXPECT_EQ(message(R"({"pools": [{}], "disaggregation": {"above_tokens": 5}})")
                .rfind("found one, allowed with pools", 0),
            0u);
}

// null takes away what the scenario sets, and survives the texts.
TEST(Pools, Null_TakesAwayWhatTheScenarioSets) {
  const Result<Scenario> scenario = ParseScenario(Document(
      R"({"pools": [{"engine": {"max_model_len": null, "kv_offload": {"cpu_gib": 0}}}, {}]})",
      R"(, "engine": {"max_model_len": 5000, "kv_offload": {"cpu_gib": 4}})"));
  ASSERT_TRUE(scenario.ok()) << Listed(scenario.issues());
  for (const std::string& text :
       {scenario.value().canonical_text, scenario.value().resolved_text}) {
    const Result<Scenario> again = ParseScenario(text);
    ASSERT_TRUE(again.ok()) << text << "\n" << Listed(again.issues());
    EXPECT_EQ(again.value().content_hash, scenario.value().content_hash) << text;
    ASSERT_TRUE(again.value().cluster.pools[0].engine.has_value());
    EXPECT_FALSE(again.value().cluster.pools[0].engine->max_model_len.has_value());
    EXPECT_FALSE(again.value().cluster.pools[0].engine->kv_offload.On());
    EXPECT_EQ(again.value().engine.max_model_len, 5000);
    EXPECT_FALSE(again.value().cluster.pools[1].engine.has_value());
  }
}

// With both roles a queue at the gateway: more prompts than seats wait there, not in engines, and
// a decode replica never has more than it may.
TEST(DisaggregatedReport, CentralQueue_HoldsOnBothSides) {
  const Report report = RunToEnd(Document(R"({"pools": [{"role": "prefill", "replicas": 2},
      {"role": "decode", "replicas": 1}], "router": {"policy": "central_queue",
      "max_outstanding": 1}, "decode_router": {"policy": "central_queue", "max_outstanding": 3}})"));
  EXPECT_EQ(report.completed, 200);
  EXPECT_EQ(report.kv_transfer.transfers, 200);
  const double seconds = report.e2e_ms.mean / 1e3;
  EXPECT_GT(seconds * 8, 3 + 2);  // Little's law: with so few seats most of them wait
  double sum = 0;
  for (const double part : report.time_split.e2e_ms) sum += part;
  EXPECT_NEAR(sum, report.e2e_ms.mean, 1e-6);
}

TEST(Pools, APoolThatTheModelDoesNotFit_IsNamed) {
  std::string document = Document(R"({"pools": [{}, {"name": "small", "hardware": "rtx-4090"}]})");
  document.replace(document.find("llama-3.1-8b"), 12, "qwen3-14b");
  const Result<Scenario> scenario = ParseScenario(document);
  ASSERT_TRUE(scenario.ok()) << Listed(scenario.issues());
  const Result<Simulation> simulation = Simulation::Create(scenario.value());
  ASSERT_FALSE(simulation.ok());
  ASSERT_EQ(simulation.issues().size(), 1u);
  EXPECT_EQ(simulation.issues()[0].path, "/cluster/pools/1");
  EXPECT_EQ(simulation.issues()[0].kind, "does_not_fit");
  EXPECT_NE(simulation.issues()[0].message.find("small"), std::string::npos);
}

// A GPU that a pool names has its own peaks, not those of the scenario's GPU.
TEST(Pools, PresetOfAPool_HasItsOwnDefaults) {
  const Result<Scenario> scenario = ParseScenario(
      Document(R"({"pools": [{}, {"hardware": "a100-80gb"}, {"hardware": {"memory_gib": 40}}]})"));
  ASSERT_TRUE(scenario.ok()) << Listed(scenario.issues());
  const double peak = scenario.value().hardware.peak_fp8_tflops;
  EXPECT_GT(peak, 0);
  EXPECT_EQ(scenario.value().cluster.pools[1].hardware->peak_fp8_tflops, 0);
  EXPECT_EQ(scenario.value().cluster.pools[2].hardware->peak_fp8_tflops, peak);
}

// What a pool has of its own survives the texts that a scenario is written as.
TEST(Pools, CanonicalAndResolvedTexts_AreTheSameScenario) {
  const Result<Scenario> scenario = ParseScenario(Document(
      R"({"pools": [{"name": "a", "engine": {"max_model_len": 5000}, "scheduler": {
            "order": "priority_fcfs", "priority": "slo_based", "age_weight_per_s": 2}},
          {"hardware": "a100-40gb", "scheduler": "orca", "pipeline_parallel": 2}]})"));
  ASSERT_TRUE(scenario.ok()) << Listed(scenario.issues());
  for (const std::string& text :
       {scenario.value().canonical_text, scenario.value().resolved_text}) {
    const Result<Scenario> again = ParseScenario(text);
    ASSERT_TRUE(again.ok()) << text << "\n" << Listed(again.issues());
    EXPECT_EQ(again.value().content_hash, scenario.value().content_hash) << text;
    EXPECT_TRUE(again.value().cluster.pools[0].engine.has_value());
    EXPECT_TRUE(again.value().cluster.pools[0].scheduler ==
                scenario.value().cluster.pools[0].scheduler);
    EXPECT_EQ(again.value().cluster.pools[1].scheduler->policy, "orca");
    EXPECT_FALSE(again.value().cluster.pools[0].hardware.has_value());
    EXPECT_EQ(again.value().cluster.pools[1].hardware->memory_gib,
              scenario.value().cluster.pools[1].hardware->memory_gib);
  }
}

}  // namespace
}  // namespace servecast::testing
