#include "testing/epp_flow_cases.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "serving/cluster/epp/flow_control.h"
#include "testing/epp_reference_flow.h"

namespace servecast::testing {

void AddRandomFlow(Dice& dice, std::int64_t unit, EppConfig& config) {
  EppFlowControl& flow = config.flow.emplace();
  EppParameters detector, limits;
  if (dice.Percent(50)) {
    flow.detector = "utilization-detector";
    detector["queueDepthThreshold"] = dice.Pick<double>({1, 2, 5});
    if (dice.Percent(50)) detector["kvCacheUtilThreshold"] = dice.Pick<double>({0.1, 0.3, 0.6});
    if (dice.Percent(60)) {
      detector["metricsStalenessThreshold"] =
          std::to_string(std::max<std::int64_t>(1, dice.Between(0, 8) * unit)) + "ms";
    }
  } else {
    flow.detector = "concurrency-detector";
    detector["maxConcurrency"] = dice.Pick<double>({1, 2, 3});
    if (dice.Percent(40)) {
      detector["concurrencyMode"] = dice.Pick<std::string>({"tokens", "hybrid"});
      detector["maxTokenConcurrency"] = dice.Pick<double>({100, 500, 2000});
    }
  }
  if (dice.Percent(60)) limits["threshold"] = dice.Pick<double>({0.5, 0.9, 1});
  if (dice.Percent(40)) {
    flow.limits = "priority-holdback-policy";
    limits = {{"minCeiling", dice.Pick<double>({0.2, 0.5})},
              {"maxCeiling", dice.Pick<double>({0.7, 1})},
              {"domain", dice.Pick<std::string>({"rank", "value"})}};
  }
  config.plugins.push_back({"full", flow.detector, detector});
  config.plugins.push_back({"limits", flow.limits, limits});
  flow.detector = "full";
  flow.limits = "limits";
  for (const std::int64_t priority : {2, 0, -1, -2}) {
    if (dice.Percent(40)) continue;
    EppBand& band = flow.bands.emplace_back();
    band.priority = priority;
    band.ordering = dice.Pick<std::string>(
        {"fcfs-ordering-policy", "edf-ordering-policy", "slo-deadline-ordering-policy"});
    if (dice.Percent(50)) band.fairness = "round-robin-fairness-policy";
    if (dice.Percent(40)) band.max_requests = dice.Between(1, 6);
    if (dice.Percent(30)) band.max_bytes = dice.Between(1, 6) * 400;
  }
  if (dice.Percent(30)) flow.max_requests = dice.Between(1, 8);
  if (dice.Percent(30)) flow.max_bytes = dice.Between(1, 8) * 400;
  if (dice.Percent(60)) flow.ttl_ns = dice.Between(1, 40) * unit * kNsPerMs;
}

namespace {

class RandomFlow {
 public:
  explicit RandomFlow(std::uint64_t seed)
      : dice_(seed),
        pool_(static_cast<std::size_t>(dice_.Between(1, 3))),
        skips_(dice_.Percent(50)),
        config_(ConfigOf(dice_, skips_)),
        detector_(epp::DetectorOf(config_)),
        flow_(epp::FlowSettingsOf(config_), *detector_),
        reference_(config_) {
    for (std::size_t e = 0; e < pool_.size(); ++e) pool_[e].id = static_cast<std::int32_t>(e);
    if (!skips_ && dice_.Percent(30)) pool_[0].role = static_cast<epp::Role>(dice_.Between(0, 8));
    report_period_ = dice_.Pick({1, 7, 50}) * kNsPerMs;
  }

  FlowComparison Compare() {
    constexpr TimeNs kSteps = 4;                               // of a tick
    const TimeNs rest = dice_.Pick({20, 60, 400}) * kNsPerMs;  // between bursts
    for (TimeNs step = 1; step < 2600 * kSteps && out_.mismatch.empty(); ++step) {
      const TimeNs now = step * kNsPerMs / kSteps;
      const bool tick = step % kSteps == 0;
      if (tick && now % report_period_ == 0) Report(now);
      Ends(now);
      if (dice_.Percent(1)) Cancel(now);
      const TimeNs next_report = now / report_period_ * report_period_ + report_period_;
      const TimeNs due = flow_.Next(std::min(first_report_, next_report),
                                    std::min(first_end_, ends_.empty() ? kNever : ends_.front()));
      if ((now - epp::FlowControl::kSweepLag) % kNsPerS == 0 && now > kNsPerS) Sweep(now);
      if (tick) Cycle(now, !skips_ || due <= now);
      const bool burst = now / rest % 3 == 0;
      if (burst && dice_.Percent(20)) Arrive(now);
    }
    return out_;
  }

 private:
  static EppConfig ConfigOf(Dice& dice, bool skips) {
    EppConfig config;
    AddRandomFlow(dice, 10, config);
    if (!skips && dice.Percent(30)) {
      config.plugins.push_back({"soft", "soft-reflective-ceiling-policy", {}});
      config.flow->limits = "soft";
    }
    return config;
  }

  void Report(TimeNs now) {
    reported_ = now;
    first_report_ = std::min(first_report_, now);
    for (epp::Endpoint& e : pool_) {
      e.waiting = dice_.Pick({0, 0, 1, 2, 6});
      e.kv = dice_.Pick<double>({0, 0.05, 0.25, 0.5});
    }
    if (skips_ || !dice_.Percent(10)) return;
    is_gone_ = !is_gone_;
  }

  std::vector<epp::Endpoint> PoolAt(TimeNs now) const {
    std::vector<epp::Endpoint> pool = is_gone_ ? std::vector<epp::Endpoint>() : pool_;
    for (epp::Endpoint& e : pool) e.age = now - reported_;
    return pool;
  }

  void Ends(TimeNs now) {
    while (!ends_.empty() && ends_.front() <= now) {
      first_end_ = std::min(first_end_, ends_.front());
      ends_.erase(ends_.begin());
      --pool_[0].inflight_requests;
      pool_[0].inflight_tokens = 90 * pool_[0].inflight_requests;
    }
  }

  void Arrive(TimeNs now) {
    const auto number = static_cast<std::int64_t>(reference_.requests.size());
    ReferenceFlow::Request request{.arrival = now,
                                   .flow = dice_.Between(0, 2),
                                   .priority = dice_.Between(-3, 3),
                                   .bytes = dice_.Between(0, 900)};
    if (dice_.Percent(20)) request.ttl = dice_.Between(1, 900) * kNsPerMs;
    if (dice_.Percent(50)) request.slo_ttft = dice_.Between(1, 50) * kNsPerMs;
    if (dice_.Percent(20)) request.deadline = now + dice_.Between(1, 900) * kNsPerMs;
    reference_.requests.push_back(request);
    reference_.Arrive(number, now);
    const bool queued = flow_.Arrive({.number = number,
                                      .flow = request.flow,
                                      .priority = request.priority,
                                      .bytes = request.bytes,
                                      .arrival = now,
                                      .ttl = request.ttl,
                                      .slo_ttft = request.slo_ttft,
                                      .deadline = request.deadline});
    Expect(now, "queued", Of(number).queued, queued);
    if (!queued) ++out_.rejected;
    Cycle(now, true);
  }

  void Cycle(TimeNs now, bool runs) {
    const std::vector<epp::Endpoint> pool = PoolAt(now);
    reference_.SetPool(pool);
    const std::int64_t wanted = reference_.Cycle(now);
    const std::int64_t found = runs ? flow_.Cycle(pool, now) : -1;
    out_.skipped += runs ? 0 : 1;
    if (runs) first_report_ = first_end_ = kNever;
    Expect(now, "dispatched", wanted, found);
    if (wanted < 0) return;
    out_.late += Of(wanted).arrival < now ? 1 : 0;
    ++pool_[0].inflight_requests;
    pool_[0].inflight_tokens = 90 * pool_[0].inflight_requests;
    ends_.push_back(now + dice_.Between(1, 60) * kNsPerMs + 1);
    std::sort(ends_.begin(), ends_.end());
  }

  void Sweep(TimeNs now) {
    std::vector<std::int64_t> expired, wanted;
    flow_.Sweep(now, expired);
    reference_.Sweep(now);
    for (std::size_t r = 0; r < reference_.requests.size(); ++r) {
      const ReferenceFlow::Request& request = reference_.requests[r];
      const bool gone = request.outcome == "EvictedTTL" || request.outcome == "EvictedNoEndpoints";
      if (request.end == now && gone) wanted.push_back(static_cast<std::int64_t>(r));
    }
    out_.expired += static_cast<std::int64_t>(wanted.size());
    if (wanted != expired) out_.mismatch = fmt::format("{} ns: others expire", now);
  }

  void Cancel(TimeNs now) {
    const auto all = static_cast<std::int64_t>(reference_.requests.size());
    const std::int64_t number = dice_.Between(0, std::max<std::int64_t>(all - 1, 0));
    if (number >= all || !Of(number).queued || !Of(number).outcome.empty()) return;
    reference_.End(number, "gone", now);
    flow_.End(number);
    ++out_.cancelled;
  }

  const ReferenceFlow::Request& Of(std::int64_t number) const {
    return reference_.requests[static_cast<std::size_t>(number)];
  }
  void Expect(TimeNs now, const char* what, std::int64_t wanted, std::int64_t found) {
    if (wanted == found || !out_.mismatch.empty()) return;
    out_.mismatch = fmt::format("{} ns: {}: {}, found {}", now, what, wanted, found);
  }

  Dice dice_;
  std::vector<epp::Endpoint> pool_;
  bool skips_, is_gone_ = false;
  TimeNs report_period_ = 0, reported_ = 0;
  TimeNs first_report_ = kNever, first_end_ = kNever;  // since the last cycle
  EppConfig config_;
  std::unique_ptr<epp::Plugin> detector_;
  epp::FlowControl flow_;
  ReferenceFlow reference_;
  std::vector<TimeNs> ends_;  // of those dispatched, in order
  FlowComparison out_;
};

}  // namespace

FlowComparison CompareFlow(std::uint64_t seed) { return RandomFlow(seed).Compare(); }

}  // namespace servecast::testing
