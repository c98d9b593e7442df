#include "serving/scaling/dynamo_planner.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/base.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

constexpr std::size_t kRecent = 64;  // reports that a mean is taken over

bool Scaling(const DynamoWorkers& workers) {
  return workers.in_progress || workers.expected != workers.ready;
}

// Each worker that is ready reports, with as many ranks as the others.
bool Matches(const DynamoWorkers& workers) {
  std::map<std::string, std::int64_t> ranks;
  for (const DynamoReport& report : workers.reports) ++ranks[report.worker];
  std::set<std::int64_t> counts;
  for (const auto& [worker, count] : ranks) counts.insert(count);
  return static_cast<std::int64_t>(ranks.size()) == workers.ready && counts.size() <= 1;
}

}  // namespace

const char* NameOf(DynamoReason reason) {
  switch (reason) {
    case DynamoReason::kNone:
      return "";
    case DynamoReason::kNoChange:
      return "no_change";
    case DynamoReason::kInsufficientData:
      return "insufficient_data";
    case DynamoReason::kScaleDown:
      return "scale_down";
    case DynamoReason::kCapped:
      return "scale_down_capped_by_throughput";
    case DynamoReason::kRefused:
      return "scale_down_refused_consolidation";
    case DynamoReason::kScaleUp:
      return "scale_up";
    case DynamoReason::kNoReports:
      return "no_fpm_data";
    case DynamoReason::kScaling:
      return "scaling_in_progress";
    case DynamoReason::kMismatch:
      return "worker_count_mismatch";
    case DynamoReason::kScale:
      return "scale";
    case DynamoReason::kSetLowerBound:
      return "set_lower_bound";
    case DynamoReason::kModelNotReady:
      return "model_not_ready";
    case DynamoReason::kPartnerNotReady:
      return "partner_not_ready";
  }
  return "";
}

void DynamoPlanner::Recent::Add(double value) {
  values.push_back(value);
  sum += value;
  if (values.size() <= kRecent) return;
  sum -= values.front();
  values.pop_front();
}

double DynamoPlanner::Recent::Mean() const {
  return values.empty() ? 0 : sum / Real(static_cast<std::int64_t>(values.size()));
}

DynamoPlanner::DynamoPlanner(const DynamoSpec& spec, const ForwardPass& pass)
    : spec_(spec), pass_(pass) {}

DynamoDecision DynamoPlanner::Tick(const DynamoView& view) {
  DynamoDecision decision;
  if (view.traffic) {
    if (view.traffic->hit_rate) hit_rate_ = std::clamp(*view.traffic->hit_rate, 0.0, kMostHitRate);
    if (view.traffic->accept_length) accept_length_ = view.traffic->accept_length;
  }
  Observe(view);
  if (spec_.throughput && view.traffic) ThroughputTick(view, decision);
  decision.bound_prefill = prefill_.bound;
  decision.bound_decode = decode_.bound;
  if (spec_.load && view.load) LoadTick(view, decision);
  return decision;
}

void DynamoPlanner::Observe(const DynamoView& view) {
  const bool aggregated = spec_.mode == DynamoMode::kAggregated;
  const auto observe_prefill = [&](const DynamoReport& report) {
    const double mean = report.prefill_requests > 0
                            ? Real(report.prefill_tokens) / Real(report.prefill_requests)
                            : 0.0;
    if (mean > 0 || !input_.values.empty()) input_.Add(mean);
  };
  for (const DynamoReport& report : view.prefill.reports) {
    ++prefill_.observations;
    observe_prefill(report);
  }
  std::vector<const DynamoReport*> sorted;
  for (const DynamoReport& report : view.decode.reports) {
    ++decode_.observations;
    sorted.push_back(&report);
    if (aggregated) observe_prefill(report);
    if (report.decode_requests > 0) {
      decode_length_.Add(Real(report.decode_kv) / Real(report.decode_requests));
    }
  }
  if (!aggregated) return;
  std::sort(sorted.begin(), sorted.end(), [](const DynamoReport* a, const DynamoReport* b) {
    return std::tie(a->worker, a->rank) < std::tie(b->worker, b->rank);
  });
  for (const DynamoReport* report : sorted) prefill_tokens_.Add(Real(report->prefill_tokens));
}

bool DynamoPlanner::Ready(bool prefill) const {
  const bool own = prefill && spec_.mode != DynamoMode::kAggregated;
  return (own ? prefill_ : decode_).observations >= spec_.min_observations;
}

double DynamoPlanner::AcceptLength() const {
  if (spec_.speculative_tokens == 0) return 1;
  return std::clamp(accept_length_.value_or(1), 1.0, Real(spec_.speculative_tokens + 1));
}

double DynamoPlanner::Pass(std::int64_t prefill, std::int64_t requests, std::int64_t kv) const {
  return pass_.Milliseconds(prefill, requests, kv) / 1000;
}

double DynamoPlanner::Chunked(std::int64_t tokens, std::int64_t requests, std::int64_t kv) const {
  const std::int64_t chunk = spec_.max_num_batched_tokens, full = tokens / chunk;
  double seconds = 0;
  if (full > 0) seconds += Pass(chunk, requests, kv) * Real(full);
  if (tokens % chunk > 0) seconds += Pass(tokens % chunk, requests, kv);
  return seconds;
}

std::int64_t DynamoPlanner::Least(bool prefill) const {
  return (prefill ? spec_.prefill : spec_.decode).min_workers.value_or(spec_.min_workers);
}

std::int64_t DynamoPlanner::Budget(std::int64_t workers, bool prefill) const {
  const std::int64_t gpus = (prefill ? spec_.prefill : spec_.decode).gpus, least = Least(prefill);
  workers = std::max(workers, least);
  const std::int64_t slack = spec_.max_gpus >= 0 && spec_.min_gpus >= 0 ? gpus : 0;
  if (spec_.max_gpus >= 0 && workers * gpus > spec_.max_gpus) {
    if (least * gpus > spec_.max_gpus) return 0;
    return std::max(least, spec_.max_gpus / gpus);
  }
  if (spec_.min_gpus >= 0 && workers * gpus < spec_.min_gpus - slack) {
    return CeilDiv(spec_.min_gpus, gpus);
  }
  return workers;
}

void DynamoPlanner::BudgetTwo(std::int64_t& prefill, std::int64_t& decode) const {
  const std::int64_t p_gpus = spec_.prefill.gpus, d_gpus = spec_.decode.gpus;
  const std::int64_t p_least = Least(true), d_least = Least(false);
  prefill = std::max(prefill, p_least);
  decode = std::max(decode, d_least);
  const std::int64_t total = prefill * p_gpus + decode * d_gpus;
  const std::int64_t max = spec_.max_gpus, min = spec_.min_gpus;
  const std::int64_t slack = max >= 0 && min >= 0 ? std::max(p_gpus, d_gpus) : 0;
  if (max >= 0 && total > max) {
    if (p_least * p_gpus + d_least * d_gpus > max) {
      prefill = decode = 0;
      return;
    }
    const std::int64_t share = RoundDown(Real(prefill) * (Real(max) / Real(total)));
    prefill = std::max(p_least, std::min((max - d_least * d_gpus) / p_gpus, share));
    decode = std::max(d_least, (max - prefill * p_gpus) / d_gpus);
  } else if (min >= 0 && total < min - slack) {
    const std::int64_t p = std::max(
        p_least, RoundUp(Real(prefill) * (Real(min) / Real(std::max<std::int64_t>(1, total)))));
    const std::int64_t left = std::max<std::int64_t>(0, min - p * p_gpus);
    const std::int64_t d = std::max(d_least, CeilDiv(left, d_gpus));
    if (max >= 0 && p * p_gpus + d * d_gpus > max) return;
    prefill = p;
    decode = d;
  }
}

// Why no load decision can be made; kNone if one can.
DynamoReason DynamoPlanner::Unfit(const DynamoView& view) const {
  const bool prefills = spec_.mode == DynamoMode::kPrefill;
  if (prefills || spec_.mode == DynamoMode::kDecode) {
    const DynamoWorkers& own = prefills ? view.prefill : view.decode;
    if (Scaling(own)) return DynamoReason::kScaling;
    if (own.reports.empty()) return DynamoReason::kNoReports;
    return Matches(own) ? DynamoReason::kNone : DynamoReason::kMismatch;
  }
  const bool two = spec_.mode == DynamoMode::kDisaggregated;
  if (view.decode.reports.empty() && (!two || view.prefill.reports.empty())) {
    return DynamoReason::kNoReports;
  }
  if (Scaling(view.decode) || (two && Scaling(view.prefill))) return DynamoReason::kScaling;
  const auto matches = [&](const DynamoWorkers& workers) {
    return (two && workers.reports.empty()) || Matches(workers);
  };
  const bool match = matches(view.decode) && (!two || matches(view.prefill));
  return match ? DynamoReason::kNone : DynamoReason::kMismatch;
}

}  // namespace servecast
