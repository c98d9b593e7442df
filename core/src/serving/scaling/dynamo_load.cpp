// The load part of Dynamo's planner: one worker more or less, by thresholds or by SLAs.
#include <algorithm>

#include "base/base.h"
#include "serving/scaling/dynamo_planner.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

DynamoReason Against(std::int64_t result, std::int64_t present) {
  if (result == present) return DynamoReason::kNoChange;
  return result > present ? DynamoReason::kScaleUp : DynamoReason::kScaleDown;
}

}  // namespace

void DynamoPlanner::LoadTick(const DynamoView& view, DynamoDecision& decision) {
  const bool two = spec_.mode == DynamoMode::kDisaggregated;
  if (const DynamoReason unfit = Unfit(view); unfit != DynamoReason::kNone) {
    decision.load = unfit;
    if (two) decision.load_prefill = decision.load_decode = unfit;
  } else if (two) {
    LoadTwo(view, decision);
  } else if (spec_.mode == DynamoMode::kAggregated && spec_.target == DynamoTarget::kSla) {
    LoadAggregatedSla(view, decision);
  } else {
    LoadOne(view, spec_.mode == DynamoMode::kPrefill, decision);
  }
}

DynamoReason DynamoPlanner::WhyNone(Opinion opinion) {
  if (opinion == Opinion::kNone) return DynamoReason::kInsufficientData;
  return opinion == Opinion::kRefuse ? DynamoReason::kRefused : DynamoReason::kNone;
}

DynamoPlanner::Opinion DynamoPlanner::Of(const DynamoWorkers& workers, bool prefill,
                                         DynamoDecision& decision) const {
  if (spec_.target != DynamoTarget::kSla) return Easy(workers, prefill);
  return prefill ? SlaPrefill(workers, decision) : SlaDecode(workers, decision);
}

// What load wants of a role, before bounds and budget.
std::int64_t DynamoPlanner::Wanted(Opinion opinion, std::int64_t present, bool prefill) const {
  if (opinion == Opinion::kUp) return present + 1;
  return opinion == Opinion::kDown ? std::max(present - 1, Least(prefill)) : present;
}

void DynamoPlanner::LoadTwo(const DynamoView& view, DynamoDecision& decision) {
  struct Side {
    std::int64_t present, bound, wanted;
    DynamoReason why_none;  // kNone: no reason of its own
  };
  const auto side = [&](const DynamoWorkers& workers, bool prefill) {
    const bool silent = workers.reports.empty();
    const Opinion opinion = silent ? Opinion::kKeep : Of(workers, prefill, decision);
    return Side{workers.ready, spec_.throughput ? (prefill ? prefill_ : decode_).bound : 0,
                Wanted(opinion, workers.ready, prefill), WhyNone(opinion)};
  };
  const Side p = side(view.prefill, true), d = side(view.decode, false);
  std::int64_t prefill = std::max(p.wanted, p.bound), decode = std::max(d.wanted, d.bound);
  BudgetTwo(prefill, decode);
  const bool changes = prefill != p.present || decode != d.present;
  const auto reason = [&](const Side& one, std::int64_t result) {
    const bool lifted = one.wanted < one.present && one.bound > one.wanted;
    if (lifted && result <= one.present) return DynamoReason::kCapped;
    if (!changes && one.why_none != DynamoReason::kNone) return one.why_none;
    return Against(result, one.present);
  };
  decision.load_prefill = reason(p, prefill);
  decision.load_decode = reason(d, decode);
  if (changes) {
    decision.by_load = {prefill, decode};
    decision.load = std::max(decision.load_prefill, decision.load_decode);
  } else if (p.why_none != DynamoReason::kNone) {
    decision.load = p.why_none;
  } else if (d.why_none != DynamoReason::kNone) {
    decision.load = d.why_none;
  } else {
    decision.load = std::max(decision.load_prefill, decision.load_decode);
  }
}

void DynamoPlanner::LoadOne(const DynamoView& view, bool prefill, DynamoDecision& decision) {
  const DynamoWorkers& workers = prefill ? view.prefill : view.decode;
  const Opinion opinion = Of(workers, prefill, decision);
  if (opinion != Opinion::kUp && opinion != Opinion::kDown) {
    const DynamoReason why = WhyNone(opinion);
    decision.load = why == DynamoReason::kNone ? DynamoReason::kNoChange : why;
    return;
  }
  const std::int64_t wanted = Wanted(opinion, workers.ready, prefill);
  std::int64_t result = std::max(wanted, Least(prefill));
  if (spec_.throughput) result = std::max(result, (prefill ? prefill_ : decode_).bound);
  result = Budget(result, prefill);
  (prefill ? decision.by_load.prefill : decision.by_load.decode) = result;
  decision.load = spec_.throughput && result < workers.ready && result > wanted
                      ? DynamoReason::kCapped
                      : Against(result, workers.ready);
}

void DynamoPlanner::LoadAggregatedSla(const DynamoView& view, DynamoDecision& decision) {
  const DynamoWorkers& workers = view.decode;
  if (!Ready(false)) {
    decision.load = DynamoReason::kInsufficientData;
    return;
  }
  const Opinion p = SlaPrefill(workers, decision), d = SlaDecode(workers, decision);
  const bool down = d == Opinion::kDown && (p == Opinion::kDown || p == Opinion::kNone);
  const bool up = p == Opinion::kUp || d == Opinion::kUp;
  const std::int64_t wanted = Wanted(up     ? Opinion::kUp
                                     : down ? Opinion::kDown
                                            : Opinion::kKeep,
                                     workers.ready, false);
  std::int64_t result = std::max(wanted, Least(false));
  if (spec_.throughput) result = std::max(result, decode_.bound);
  result = Budget(result, false);
  if (result != workers.ready) decision.by_load.decode = result;
  if (spec_.throughput && wanted < workers.ready && result > wanted && result <= workers.ready) {
    decision.load = DynamoReason::kCapped;
  } else if (result != workers.ready) {
    decision.load = Against(result, workers.ready);
  } else {
    const bool refused = p == Opinion::kRefuse || d == Opinion::kRefuse;
    decision.load = refused ? DynamoReason::kRefused : DynamoReason::kNoChange;
  }
}

DynamoPlanner::Opinion DynamoPlanner::Easy(const DynamoWorkers& workers, bool prefill) const {
  struct Threshold {
    double up, down;
    bool up_inclusive, down_inclusive;
  };
  const Threshold prefill_by[] = {{1.0, 0.1, true, false},
                                  {0.1, 0.0, true, true},
                                  {spec_.prefill_up_tokens, spec_.prefill_down_tokens, true, true}};
  const Threshold decode_by[] = {
      {1.0, 0.6, false, false},
      {0.4, 0.1, false, false},
      {spec_.decode_up_kv / 100, spec_.decode_down_kv / 100, true, true}};
  const Threshold by = (prefill ? prefill_by : decode_by)[static_cast<std::size_t>(spec_.target)];
  const bool tokens = prefill && spec_.target == DynamoTarget::kLoad;
  bool any_up = false, all_down = true;
  for (const DynamoReport& report : workers.reports) {
    const std::int64_t kv =
        report.decode_kv + report.queued_decode_kv +
        (spec_.mode == DynamoMode::kAggregated ? report.queued_prefill_tokens : 0);
    const double value = tokens    ? Real(report.queued_prefill_tokens)
                         : prefill ? Real(report.queued_prefill_tokens) / Real(spec_.context_length)
                                   : Real(kv) / Real(spec_.max_kv_tokens);
    any_up |= by.up_inclusive ? value >= by.up : value > by.up;
    all_down &= by.down_inclusive ? value <= by.down : value < by.down;
  }
  if (any_up) return Opinion::kUp;
  return all_down && workers.ready > 1 ? Opinion::kDown : Opinion::kKeep;
}

// `queue`: how many times the queued tokens. `decode`: 0, the scheduled decodes; else all of them,
// so many times.
double DynamoPlanner::PrefillSeconds(const DynamoReport& report, double queue,
                                     double decode) const {
  const std::int64_t tokens =
      RoundUp((Real(report.queued_prefill_tokens) * queue + input_.Mean()) * (1 - hit_rate_));
  if (spec_.mode != DynamoMode::kAggregated) return Chunked(tokens, 0, 0);
  if (decode == 0) return Chunked(tokens, report.decode_requests, report.decode_kv);
  return Chunked(tokens,
                 RoundUp(Real(report.decode_requests + report.queued_decode_requests) * decode),
                 RoundUp(Real(report.decode_kv + report.queued_decode_kv) * decode));
}

double DynamoPlanner::ItlMs(const DynamoReport& report, double factor) const {
  const bool aggregated = spec_.mode == DynamoMode::kAggregated;
  const std::int64_t kv =
      RoundUp(Real(report.decode_kv + report.queued_decode_kv) * factor + decode_length_.Mean());
  const std::int64_t requests =
      RoundUp(Real(report.decode_requests + report.queued_decode_requests) * factor + 1);
  const std::int64_t prefill = aggregated ? RoundUp(prefill_tokens_.Mean()) : 0;
  return Pass(prefill, requests, kv) * 1000 / AcceptLength();
}

// The worker would still meet its SLA if it took its share of one that goes.
bool DynamoPlanner::Consolidates(const DynamoReport& report, double factor, bool prefill) const {
  const double sensitivity = spec_.sensitivity / 100;
  if (prefill) {
    const double own = PrefillSeconds(report, 0, factor) * 1000;
    const double budget = (spec_.ttft_ms - own) * sensitivity;
    const double with = PrefillSeconds(report, factor, factor) * 1000;
    return budget > 0 && with - own < budget;
  }
  const std::int64_t queued =
      spec_.mode == DynamoMode::kAggregated ? report.queued_prefill_tokens : 0;
  const double kv = Real(report.decode_kv + report.queued_decode_kv + queued) * factor;
  return static_cast<std::int64_t>(kv) < spec_.max_kv_tokens &&
         ItlMs(report, factor) < spec_.itl_ms * sensitivity;
}

DynamoPlanner::Opinion DynamoPlanner::SlaPrefill(const DynamoWorkers& workers,
                                                 DynamoDecision& decision) const {
  if (!Ready(true) || input_.Mean() <= 0) return Opinion::kNone;
  bool all = true, fits = true;
  double worst = 0;
  const double factor = workers.ready > 1 ? Real(workers.ready) / Real(workers.ready - 1) : 1;
  for (const DynamoReport& report : workers.reports) {
    const double ms = PrefillSeconds(report, 1, 0) * 1000;
    worst = std::max(worst, ms);
    all &= ms > spec_.ttft_ms;
    fits = fits && Consolidates(report, factor, true);
  }
  decision.ttft_ms = worst;
  if (all) return Opinion::kUp;
  if (workers.ready <= 1) return Opinion::kKeep;
  return fits ? Opinion::kDown : Opinion::kRefuse;
}

DynamoPlanner::Opinion DynamoPlanner::SlaDecode(const DynamoWorkers& workers,
                                                DynamoDecision& decision) const {
  if (!Ready(false)) return Opinion::kNone;
  bool all = true, fits = true;
  double worst = 0;
  const double factor = workers.ready > 1 ? Real(workers.ready) / Real(workers.ready - 1) : 1;
  for (const DynamoReport& report : workers.reports) {
    const double ms = ItlMs(report, 1);
    worst = std::max(worst, ms);
    all &= ms > spec_.itl_ms;
    fits = fits && Consolidates(report, factor, false);
  }
  decision.itl_ms = worst;
  if (all) return Opinion::kUp;
  if (workers.ready <= 1) return Opinion::kKeep;
  return fits ? Opinion::kDown : Opinion::kRefuse;
}

}  // namespace servecast
