// The numbered invariants of the design on random scenarios, from outside: the public interface of
// Simulation and observers of its steps (books.h).
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "metrics/time_split.h"
#include "property/books.h"
#include "testing/engine_run.h"
#include "testing/random_cases.h"

namespace servecast::testing::invariants_test {
namespace {

constexpr std::uint64_t kCases = 150;
constexpr std::uint64_t kFirstSeed = 100'000;  // not those of the differential test

// The case for an engine whose queue and batch can be booked from outside: first come, first
// served, synchronous, without prefix caching, the last one running as the victim. Turns come by
// themselves, at the arrival of the first.
RandomCase PlainCase(std::uint64_t seed) {
  RandomCase plain = MakeRandomCase(seed);
  plain.engine.enable_prefix_caching = false;
  plain.engine.async_scheduling = false;
  plain.stages.clear();
  plain.scheduler = SchedulerSpec{};
  RequestTable& requests = plain.requests;
  for (std::size_t i = 1; i < requests.arrival.size(); ++i) {
    if (requests.arrival[i] < 0) requests.arrival[i] = requests.arrival[i - 1];
  }
  requests.think.clear();
  requests.pause.clear();
  requests.due.clear();
  requests.timeout.clear();
  if (plain.latency.physics) {  // delays before the queue that hang on the prompt only
    std::vector<double>& alpha = plain.latency.physics->alpha_coefficients;
    for (std::size_t i = 0; i < alpha.size(); ++i) alpha[i] = i == 2 || i == 3 ? alpha[i] : 0;
  }
  return plain;
}

std::int64_t SliceOf(std::uint64_t seed) {
  const std::int64_t slices[] = {1, 2, 5, 16, 100};
  return slices[seed % 5];
}

// I1 and I3 of one snapshot, and that nothing which only grows shrank since the one before.
std::string FirstBroken(const Report& before, const Report& report) {
  if (report.arrived != report.completed + report.queued + report.running + report.dropped +
                            report.timed_out + report.rejected) {
    return "I1: arrived = completed + queued + running + dropped + timed_out + rejected";
  }
  for (const std::int64_t count : {report.completed, report.queued, report.running, report.dropped,
                                   report.timed_out, report.rejected}) {
    if (count < 0) return "I1: no count is negative";
  }
  if (report.length_capped > report.completed) return "I1: the capped are among the completed";
  if (report.simulated_s < before.simulated_s) return "I3: time does not run backwards";
  if (report.arrived < before.arrived || report.completed < before.completed ||
      report.preemptions < before.preemptions || report.steps < before.steps ||
      report.output_tokens < before.output_tokens) {
    return "I1: a counter fell";
  }
  return "";
}

// Runs the case slice by slice under the eyes of `checker`; nothing if a rule broke.
template <class Checker>
void RunInSlices(const RandomCase& random_case, Checker& checker, Report& last) {
  SimulationHooks hooks;
  hooks.latency = MakeLatency(random_case);
  hooks.observer = &checker;
  Result<Simulation> created = MakeSimulation(EngineCaseOf(random_case), std::move(hooks));
  ASSERT_TRUE(created.ok()) << created.issues().front().message << Describe(random_case);
  Simulation& simulation = created.value();

  double progress = simulation.Progress();
  for (bool finished = false; !finished;) {
    const std::int64_t slice = SliceOf(random_case.seed);
    finished = simulation.Advance(slice);
    const Report report = simulation.Snapshot();
    ASSERT_EQ(FirstBroken(last, report), "") << Describe(random_case);
    // A step counts when it ends.
    const auto in_pipeline = static_cast<std::int64_t>(random_case.stages.size());
    ASSERT_LE(report.steps - last.steps, slice + in_pipeline) << "a slice is at most its steps";
    ASSERT_EQ(report.finished, finished) << Describe(random_case);
    // A token in flight is made, but not delivered, if its client gives up.
    const std::int64_t unread = checker.tokens_made() - report.output_tokens;
    ASSERT_GE(unread, 0) << "I6" << Describe(random_case);
    const bool in_flight = random_case.engine.async_scheduling || !random_case.stages.empty();
    ASSERT_LE(unread, in_flight ? report.timed_out : 0) << "I6" << Describe(random_case);
    ASSERT_EQ(checker.broken(), "") << Describe(random_case);
    ASSERT_GE(simulation.Progress(), progress) << "I3" << Describe(random_case);
    progress = simulation.Progress();
    ASSERT_EQ(progress == 1, finished) << Describe(random_case);
    last = report;
  }
  // I6: each token is somebody's first or the end of a gap, but for first ones that came too late.
  std::int64_t unread = 0;
  for (std::size_t i = 0; i < last.ColumnOf("ttft_ms").size(); ++i) {
    const bool made = last.ColumnOf("output_tokens")[i] > 0;
    unread += made && std::isnan(last.ColumnOf("ttft_ms")[i]) ? 1 : 0;
  }
  ASSERT_LE(unread, last.timed_out) << Describe(random_case);
  ASSERT_EQ(last.itl_ms.n + last.ttft_ms.n + unread, last.output_tokens) << Describe(random_case);
  ASSERT_TRUE(simulation.Advance(1)) << "a finished run stays so";
  ASSERT_EQ(simulation.Snapshot().fingerprint, last.fingerprint);
}

TEST(Invariants, PlainScenarios_HoldAtEverySliceAndStep) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    const RandomCase random_case = PlainCase(seed);
    Bookkeeper books(random_case);
    Report report;
    RunInSlices(random_case, books, report);
    if (HasFatalFailure()) return;
    books.CheckResults(ResultsOf(report, random_case.requests), !random_case.horizon);
    ASSERT_EQ(books.broken(), "") << Describe(random_case);
  }
}

TEST(Invariants, RandomScenarios_HoldAtEverySliceAndStep) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    StepChecker checker(random_case);
    Report report;
    RunInSlices(random_case, checker, report);
    if (HasFatalFailure()) return;
    const RequestResults results = ResultsOf(report, random_case.requests);
    checker.CheckResults(results);
    ASSERT_EQ(std::accumulate(results.generated.begin(), results.generated.end(), std::int64_t{0}),
              report.output_tokens)
        << "I6" << Describe(random_case);
    ASSERT_EQ(checker.broken(), "") << Describe(random_case);
  }
}

TEST(Invariants, I14_TimeOfACompletedRequest_IsTheSumOfItsParts) {
  std::int64_t waited = 0, interfered = 0, loaded = 0;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 4 * kCases; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
    const ReplicaRun run = RunReplica(EngineCaseOf(random_case), *latency, kNsPerS);
    for (std::size_t i = 0; i < run.results.completion.size(); ++i) {
      const TimeNs completion = run.results.completion[i];
      if (completion < 0) continue;
      const RequestTimes times = TimesOf(run.requests, run.results, latency->OutputTokenDelay(), i);
      for (const TimeSplit& t : {times.ttft, times.e2e}) {
        const TimeNs least = std::min(
            {t.host, t.queue, t.prefill, t.decode, t.interference, t.preempted, t.transfer});
        ASSERT_GE(least, 0) << "request " << i << " of " << Describe(random_case);
      }
      const TimeNs arrival = run.requests.arrival[i];
      ASSERT_EQ(times.e2e.Sum(), completion - arrival) << Describe(random_case);
      ASSERT_EQ(times.ttft.Sum(), run.results.first_token[i] - arrival) << Describe(random_case);
      waited += times.e2e.preempted > 0 ? 1 : 0;
      interfered += times.e2e.interference > 0 ? 1 : 0;
      loaded += times.e2e.transfer > 0 ? 1 : 0;
    }
  }
  for (const std::int64_t count : {waited, interfered, loaded}) EXPECT_GE(count, 20);
}

EngineRun RunOf(const RandomCase& random_case) {
  Result<EngineRun> run = RunEngine(EngineCaseOf(random_case), MakeLatency(random_case), {});
  EXPECT_TRUE(run.ok());
  return run.ok() ? std::move(run.value()) : EngineRun{};
}

TEST(Invariants, NothingInCommonNorPreempted_CachingChangesNothing) {
  int compared = 0;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    RandomCase random_case = MakeRandomCase(seed);
    RequestTable& requests = random_case.requests;
    if (!requests.think.empty()) continue;  // turns have their conversation in common
    requests.content.clear();
    requests.segments.clear();
    random_case.engine.enable_prefix_caching = false;
    const EngineRun without = RunOf(random_case);
    if (without.report.preemptions > 0) continue;
    random_case.engine.enable_prefix_caching = true;
    const EngineRun with = RunOf(random_case);
    ASSERT_EQ(with.steps, without.steps) << Describe(random_case);
    const RequestResults a = ResultsOf(with.report, requests);
    const RequestResults b = ResultsOf(without.report, requests);
    ASSERT_EQ(a.first_scheduled, b.first_scheduled) << Describe(random_case);
    ASSERT_EQ(a.first_token, b.first_token) << Describe(random_case);
    ASSERT_EQ(a.completion, b.completion) << Describe(random_case);
    ASSERT_EQ(a.generated, b.generated) << Describe(random_case);
    ASSERT_EQ(a.preemptions, b.preemptions) << Describe(random_case);
    ASSERT_EQ(a.cached_tokens, b.cached_tokens) << Describe(random_case);
    ASSERT_EQ(a.state, b.state) << Describe(random_case);
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TEST(Invariants, SharedPrefixes_CachingDoesNotLowerTheMedianThroughput) {
  std::vector<double> with, without;
  for (std::uint64_t seed = kFirstSeed; with.size() < 200; ++seed) {
    RandomCase random_case = MakeRandomCase(seed);
    if (random_case.requests.segments.empty()) continue;
    random_case.requests.timeout.clear();
    random_case.horizon.reset();
    random_case.stages.clear();  // where who is sooner done may leave a batch without much to do
    for (const bool caching : {false, true}) {
      random_case.engine.enable_prefix_caching = caching;
      const Report report = RunOf(random_case).report;
      const auto tokens = static_cast<double>(report.output_tokens);
      (caching ? with : without)
          .push_back(report.simulated_s > 0 ? tokens / report.simulated_s : 0);
    }
  }
  EXPECT_GE(Median(with), Median(without));
}

// The model's times, `factor` times as long.
class ScaledLatency : public LatencyModel {
 public:
  ScaledLatency(std::unique_ptr<LatencyModel> model, TimeNs factor)
      : model_(std::move(model)), factor_(factor) {}
  StepPrice Price(const BatchShape& batch) const override {
    StepPrice price = model_->Price(batch);
    price.duration *= factor_;
    return price;
  }
  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    const HostTimes times = model_->TakeUpTimes(prompt_tokens);
    return {factor_ * times.work, factor_ * times.wait};
  }
  bool DelayByLoad() const override { return model_->DelayByLoad(); }
  bool DelayByCache() const override { return model_->DelayByCache(); }
  TimeNs DelayUnder(std::int64_t prompt_tokens, const EngineLoad& load) const override {
    return factor_ * model_->DelayUnder(prompt_tokens, load);
  }
  double PreemptionWeight() const override { return model_->PreemptionWeight(); }
  bool PricesTransfers() const override { return model_->PricesTransfers(); }
  bool PricesLongest() const override { return model_->PricesLongest(); }
  TimeNs OutputTokenDelay() const override { return factor_ * model_->OutputTokenDelay(); }
  TimeNs DeliveryDelay() const override { return factor_ * model_->DeliveryDelay(); }

 private:
  std::unique_ptr<LatencyModel> model_;
  TimeNs factor_;
};

// A power of two, so that age-weighted priorities scale to the last bit too.
constexpr TimeNs kFactor = 4;

RandomCase Scaled(RandomCase random_case) {
  RequestTable& requests = random_case.requests;
  for (auto* times : {&requests.arrival, &requests.think, &requests.pause, &requests.due}) {
    for (TimeNs& time : *times) time = time < 0 ? time : kFactor * time;
  }
  for (auto* times : {&requests.ttft_deadline, &requests.timeout}) {
    for (TimeNs& time : *times) time = time == kNever ? time : kFactor * time;
  }
  if (random_case.horizon) *random_case.horizon *= kFactor;
  random_case.engine.gc_pass_us *= static_cast<double>(kFactor);
  for (RandomStage& stage : random_case.stages) {
    stage.send *= kFactor;
    stage.send_per_token *= kFactor;
  }
  KvOffloadSpec& offload = random_case.engine.kv_offload;
  offload.cpu_latency_us *= kFactor;
  offload.disk_latency_us *= kFactor;
  offload.cpu_bandwidth_gb_s /= kFactor;
  offload.disk_bandwidth_gb_s /= kFactor;
  for (auto& [name, value] : random_case.scheduler.params) {
    if (name == "bucket_tokens") continue;
    EXPECT_EQ(name, "age_weight_per_s") << "how does it scale?";
    value /= static_cast<double>(kFactor);
  }
  return random_case;
}

TEST(Invariants, I12_AllTimesScaled_ScaleAllResults) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kCases; ++seed) {
    RandomCase plain = MakeRandomCase(seed);
    // A transfer that has to be rounded does not scale.
    KvOffloadSpec& offload = plain.engine.kv_offload;
    offload.cpu_bandwidth_gb_s = offload.disk_bandwidth_gb_s = 1;
    plain.latency.stalls = {};  // nor do draws that are rounded to a nanosecond
    plain.slowdowns = {};
    const RandomCase scaled = Scaled(plain);
    const EngineRun once = RunOf(plain);
    const Result<EngineRun> run = RunEngine(
        EngineCaseOf(scaled), std::make_unique<ScaledLatency>(MakeLatency(plain), kFactor), {});
    ASSERT_TRUE(run.ok());
    std::vector<StepRecord> steps = once.steps;
    for (StepRecord& step : steps) {
      for (TimeNs* time :
           {&step.scheduled, &step.start, &step.end, &step.transfer, &step.interference})
        *time *= kFactor;
      for (StageSpan& span : step.stages) span.start *= kFactor, span.end *= kFactor;
    }
    ASSERT_EQ(run.value().steps, steps) << Describe(plain);
    ASSERT_EQ(run.value().report.completed, once.report.completed) << Describe(plain);
    ASSERT_EQ(run.value().report.timed_out, once.report.timed_out) << Describe(plain);
    for (const char* column : {"scheduling_delay_ms", "ttft_ms", "e2e_ms"}) {
      const std::vector<double>&more = run.value().report.ColumnOf(column),
            &less = once.report.ColumnOf(column);
      ASSERT_EQ(more.size(), less.size());
      for (std::size_t i = 0; i < less.size(); ++i) {
        ASSERT_EQ(std::isnan(more[i]), std::isnan(less[i])) << Describe(plain);
        if (std::isnan(less[i])) continue;
        ASSERT_NEAR(more[i], kFactor * less[i], 1e-6) << column;
      }
    }
  }
}

std::uint64_t FingerprintOf(const RandomCase& random_case, const RunOptions& options) {
  const Result<EngineRun> run =
      RunEngine(EngineCaseOf(random_case), MakeLatency(random_case), options);
  EXPECT_TRUE(run.ok());
  return run.ok() ? run.value().report.fingerprint : 0;
}

TEST(Invariants, I10_SameScenario_HasTheSameFingerprint) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 30; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    const std::uint64_t whole = FingerprintOf(random_case, {});
    EXPECT_EQ(whole, FingerprintOf(random_case, {})) << seed;
    EXPECT_EQ(whole, FingerprintOf(random_case, {.slice = 1, .observe = false})) << seed;
    EXPECT_EQ(whole, FingerprintOf(random_case, {.slice = 13, .observe = true})) << seed;
  }
}

TEST(Invariants, I10_OneNanosecondOrToken_ChangesTheFingerprint) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + 30; ++seed) {
    const RandomCase random_case = MakeRandomCase(seed);
    const Result<EngineRun> run =
        RunEngine(EngineCaseOf(random_case), MakeLatency(random_case), {});
    ASSERT_TRUE(run.ok());
    // A horizon may cut off what changes; where all is dropped no step can change.
    if (random_case.horizon || run.value().report.steps == 0) continue;
    RandomCase changed = random_case;
    changed.latency.base += 1;
    if (changed.latency.physics) changed.latency.physics->beta_coefficients[15] += 0.001;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
    changed = random_case;
    // The last one that comes by itself; later turns have no arrival to change.
    std::vector<TimeNs>& arrival = changed.requests.arrival;
    *std::find_if(arrival.rbegin(), arrival.rend(), [](TimeNs at) { return at >= 0; }) += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
    changed = random_case;
    changed.requests.prompt_tokens.front() += 1;
    EXPECT_NE(FingerprintOf(random_case, {}), FingerprintOf(changed, {})) << seed;
  }
}

}  // namespace
}  // namespace servecast::testing::invariants_test
