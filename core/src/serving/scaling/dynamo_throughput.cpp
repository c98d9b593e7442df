// The throughput part of Dynamo's planner: how many engines the requests of an interval need.
#include <algorithm>

#include "base/base.h"
#include "serving/scaling/dynamo_planner.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

constexpr std::int64_t kMostBatches = 128;  // that the search tries

}  // namespace

void DynamoPlanner::ThroughputTick(const DynamoView& view, DynamoDecision& decision) {
  const DynamoTraffic& traffic = *view.traffic;
  const bool two = spec_.mode == DynamoMode::kDisaggregated;
  const bool prefills = two || spec_.mode == DynamoMode::kPrefill;
  const bool decodes = spec_.mode != DynamoMode::kPrefill;
  if (prefills) decision.engine_rate_prefill = EngineRate(true, traffic);
  if (decodes) decision.engine_rate_decode = EngineRate(false, traffic);
  if (spec_.mode == DynamoMode::kAggregated) {
    decision.engine_rate_prefill = decision.engine_rate_decode;
  }
  const bool p_ready = !prefills || decision.engine_rate_prefill;
  const bool d_ready = !decodes || decision.engine_rate_decode;
  if (!p_ready || !d_ready) {
    decision.throughput = DynamoReason::kModelNotReady;
    if (two) {
      const auto reason = [](bool ready) {
        return ready ? DynamoReason::kPartnerNotReady : DynamoReason::kModelNotReady;
      };
      decision.throughput_prefill = reason(p_ready);
      decision.throughput_decode = reason(d_ready);
    }
    return;
  }
  const auto engines = [&](bool prefill, double rate) {
    return std::max(Least(prefill), RoundUp(traffic.requests / traffic.seconds / rate));
  };
  std::int64_t p = prefills ? engines(true, *decision.engine_rate_prefill) : 0;
  std::int64_t d = decodes ? engines(false, *decision.engine_rate_decode) : 0;
  decision.throughput = spec_.load ? DynamoReason::kSetLowerBound : DynamoReason::kScale;
  if (two) decision.throughput_prefill = decision.throughput_decode = decision.throughput;
  if (spec_.load) {
    if (prefills) prefill_.bound = p;
    if (decodes) decode_.bound = d;
    return;
  }
  if (two) {
    BudgetTwo(p, d);
  } else {
    (prefills ? p : d) = Budget(prefills ? p : d, prefills);
  }
  if (prefills) decision.by_throughput.prefill = p;
  if (decodes) decision.by_throughput.decode = d;
}

// Nothing: lengths are not known.
std::optional<double> DynamoPlanner::EngineRate(bool prefill, const DynamoTraffic& traffic) const {
  if (traffic.input <= 0 || traffic.output <= 0) return std::nullopt;
  const bool aggregated = spec_.mode == DynamoMode::kAggregated;
  const std::int64_t input = RoundUp(traffic.input);
  const std::int64_t output = std::max<std::int64_t>(1, RoundUp(traffic.output));
  const double hits = std::clamp(traffic.hit_rate.value_or(0), 0.0, kMostHitRate);
  const std::int64_t own = std::max<std::int64_t>(1, RoundUp(Real(input) * (1 - hits)));
  const std::int64_t context = input + output / 2;
  const std::int64_t seats = (prefill ? spec_.prefill : spec_.decode).max_num_seqs;
  std::int64_t most = std::min(seats, spec_.max_kv_tokens / context);
  if (aggregated) most = std::min(most, spec_.max_num_batched_tokens - 1);
  if (prefill) {
    most = own > spec_.max_num_batched_tokens ? 1
                                              : std::min(seats, spec_.max_num_batched_tokens / own);
  }
  most = std::max<std::int64_t>(1, most);
  const std::int64_t tried = std::min(most, kMostBatches);
  Batch best, any;
  for (std::int64_t i = 0; i < tried; ++i) {
    const std::int64_t batch =
        most > kMostBatches ? 1 + i * (most - 1) / (kMostBatches - 1) : i + 1;
    const Batch one = prefill      ? PrefillBatch(batch, own)
                      : aggregated ? AggregatedBatch(batch, own, context, output)
                                   : DecodeBatch(batch, context, output);
    if (one.meets && one.rate > best.rate) best = one;
    if (one.rate > any.rate) any = one;
  }
  const double rate = best.rate > 0 ? best.rate : any.rate;
  if (rate <= 0) return std::nullopt;
  return rate;
}

DynamoPlanner::Batch DynamoPlanner::PrefillBatch(std::int64_t batch, std::int64_t own) const {
  const double seconds = Chunked(batch * own, 0, 0);
  return {Real(batch) / seconds, seconds * 1000 <= spec_.ttft_ms};
}

DynamoPlanner::Batch DynamoPlanner::DecodeBatch(std::int64_t batch, std::int64_t context,
                                                std::int64_t output) const {
  const double itl = Pass(0, batch, batch * context) / AcceptLength();
  return {Real(batch) / (Real(output) * itl), itl * 1000 <= spec_.itl_ms};
}

// A step has the prefill that keeps as many requests decoding.
DynamoPlanner::Batch DynamoPlanner::AggregatedBatch(std::int64_t batch, std::int64_t own,
                                                    std::int64_t context,
                                                    std::int64_t output) const {
  const std::int64_t limit = spec_.max_num_batched_tokens;
  const std::int64_t need = RoundUp(Real(batch) * AcceptLength() * Real(own) / Real(output));
  if (need > limit - batch) return {};
  const double itl = Pass(std::min(limit, need), batch, batch * context) / AcceptLength();
  const double ttft = Chunked(need + own, batch, batch * context);
  return {Real(batch) / (Real(output) * itl),
          itl * 1000 <= spec_.itl_ms && ttft * 1000 <= spec_.ttft_ms};
}

}  // namespace servecast
