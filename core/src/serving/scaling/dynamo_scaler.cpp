// Dynamo's planner as the scaler of one pool, or of one that prefills and one that decodes.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "serving/scaling/dynamo_planner.h"
#include "serving/scaling/scaler.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

// Steps by the pools' own step-time models, where the real planner fits one to reports.
class PoolsPass final : public ForwardPass {
 public:
  PoolsPass(const PlannedPool& prefill, const PlannedPool& decode)
      : prefill_(prefill), decode_(decode) {}

  double Milliseconds(std::int64_t prefill_tokens, std::int64_t decode_requests,
                      std::int64_t decode_kv) const override {
    const PlannedPool& pool = prefill_tokens > 0 ? prefill_ : decode_;
    const PrefillChunk chunk{prefill_tokens, 0, prefill_tokens, true};
    const std::int64_t tokens = pool.speculative_tokens + 1;
    const DraftedDecodes drafted{tokens, decode_kv, decode_requests, tokens};
    BatchShape shape;
    if (prefill_tokens > 0) shape.prefill = {&chunk, 1};
    if (decode_requests > 0 && tokens > 1) {
      shape.drafted = {&drafted, 1};
    } else if (decode_requests > 0) {
      shape.decode_seqs = decode_requests;
      shape.decode_context_tokens = decode_kv;
    }
    shape.decode_kv_blocks = CeilDiv(decode_kv, pool.block_size);
    return Real(Nanoseconds(pool, shape, prefill_tokens + decode_requests * tokens)) / 1e6;
  }

 private:
  static TimeNs Nanoseconds(const PlannedPool& pool, const BatchShape& shape, std::int64_t tokens) {
    if (pool.stages == nullptr) return pool.latency->Price(shape).duration;
    TimeNs sum = 0;
    for (const PipelineStage& stage : *pool.stages) {
      sum += stage.latency->Price(shape).duration +
             NearestNs(stage.send_ns + stage.send_ns_per_token * Real(tokens));
    }
    return sum;
  }

  PlannedPool prefill_, decode_;
};

bool PoolPrefills(const PlannedPool& pool) { return pool.role == PoolRole::kPrefill; }

// Of one pool, the same twice.
const PlannedPool& PoolFor(bool prefill, std::span<const PlannedPool> pools) {
  return PoolPrefills(pools.front()) == prefill ? pools.front() : pools.back();
}

DynamoMode PlannedMode(std::span<const PlannedPool> pools) {
  if (pools.size() > 1) return DynamoMode::kDisaggregated;
  if (pools.front().role == PoolRole::kMixed) return DynamoMode::kAggregated;
  return PoolPrefills(pools.front()) ? DynamoMode::kPrefill : DynamoMode::kDecode;
}

// In the order of policies/scaler_dynamo.cpp.
DynamoSpec DynamoSpecOf(const ScalerInput& input) {
  const ScalingSpec& scaling = input.spec;
  const PlannedPool &prefill = PoolFor(true, input.pools), &decode = PoolFor(false, input.pools);
  const auto whole = [&](std::size_t i) { return Truncated(input.params[i]); };
  DynamoSpec spec;
  spec.mode = PlannedMode(input.pools);
  spec.target = scaling.optimization_target;
  spec.load = scaling.enable_load_scaling;
  spec.throughput = scaling.enable_throughput_scaling;
  spec.ttft_ms = input.params[2];
  spec.itl_ms = input.params[3];
  spec.sensitivity = input.params[4];
  spec.min_observations = whole(5);
  spec.min_workers = whole(6);
  spec.max_gpus = whole(7);
  spec.min_gpus = whole(8);
  spec.prefill_up_tokens = input.params[9];
  spec.prefill_down_tokens = input.params[10];
  spec.decode_up_kv = input.params[11];
  spec.decode_down_kv = input.params[12];
  spec.prefill.gpus = prefill.gpus;
  spec.prefill.max_num_seqs = prefill.max_num_seqs;
  spec.decode.gpus = decode.gpus;
  spec.decode.max_num_seqs = decode.max_num_seqs;
  spec.max_num_batched_tokens = prefill.max_num_batched_tokens;
  spec.context_length = prefill.max_model_len;
  spec.max_kv_tokens = decode.max_kv_tokens;
  spec.speculative_tokens = decode.speculative_tokens;
  return spec;
}

// What those report that were up at the scrape and are now.
std::vector<DynamoReport> StepReports(const ScalerView& view) {
  std::vector<DynamoReport> reports;
  for (std::size_t i = 0; i < view.replicas.size(); ++i) {
    const ScaledReplica& one = view.replicas[i];
    if (!one.up || !one.serves) continue;
    const auto index = static_cast<std::int64_t>(i);
    reports.push_back({std::to_string(1'000'000 + index), 0, one.step.prefill_tokens,
                       one.step.prefill_requests, one.step.decode_context, one.step.decode_requests,
                       one.queued.prefill_tokens, one.queued.prefill_requests,
                       one.queued.decode_tokens, one.queued.decode_requests});
  }
  return reports;
}

DynamoWorkers PlannedWorkers(const ScalerView& view, std::span<const DynamoReport> reports) {
  const auto ready = std::count_if(view.replicas.begin(), view.replicas.end(),
                                   [](const ScaledReplica& one) { return one.serves; });
  const bool starts = ready < static_cast<std::ptrdiff_t>(view.replicas.size());
  return {ready, view.wanted, starts || view.drains, reports};
}

class DynamoScaler final : public Scaler {
 public:
  explicit DynamoScaler(const ScalerInput& input)
      : pools_(input.pools.begin(), input.pools.end()),
        pass_(PoolFor(true, pools_), PoolFor(false, pools_)),
        planner_(DynamoSpecOf(input), pass_),
        by_load_{NsOf(input.params[0]), kNever},
        by_throughput_{NsOf(input.params[1]), kNever} {
    if (input.spec.enable_load_scaling) by_load_.next = by_load_.period;
    if (input.spec.enable_throughput_scaling) by_throughput_.next = by_throughput_.period;
  }

  TimeNs Next() const override { return std::min(by_load_.next, by_throughput_.next); }
  std::int64_t Decide(const ScalerView& view) override { return DecideEach({&view, 1}).front(); }
  std::vector<std::int64_t> DecideEach(std::span<const ScalerView> views) override {
    const TimeNs now = views.front().now;
    DynamoView seen;
    std::array<std::vector<DynamoReport>, 2> reports;
    for (std::size_t i = 0; i < views.size(); ++i) {
      reports[i] = StepReports(views[i]);
      (PoolPrefills(pools_[i]) ? seen.prefill : seen.decode) = PlannedWorkers(views[i], reports[i]);
    }
    seen.load = by_load_.Passes(now);
    if (by_throughput_.Passes(now) && views.front().scraped) {
      seen.traffic = TrafficSince(views.front().served);
    }
    const DynamoDecision decision = planner_.Tick(seen);
    const DynamoDecision::Workers& workers =
        decision.by_load.any() ? decision.by_load : decision.by_throughput;
    std::vector<std::int64_t> wanted;
    for (std::size_t i = 0; i < views.size(); ++i) {
      const auto& own = PoolPrefills(pools_[i]) ? workers.prefill : workers.decode;
      wanted.push_back(own.value_or(views[i].wanted));
    }
    return wanted;
  }

 private:
  struct Ticks {
    TimeNs period = 0, next = kNever;
    bool Passes(TimeNs now) {
      if (next != now) return false;
      next += period;
      return true;
    }
  };

  // Of the requests that were answered since the last one.
  DynamoTraffic TrafficSince(const ServedTotals& served) {
    const ServedTotals before = std::exchange(served_, served);
    const auto since = [&](std::int64_t ServedTotals::*figure) {
      return Real(served.*figure - before.*figure);
    };
    DynamoTraffic traffic;
    traffic.seconds = Real(by_throughput_.period) / 1e9;
    traffic.requests = since(&ServedTotals::requests);
    if (traffic.requests > 0) {
      traffic.input = since(&ServedTotals::prompt_tokens) / traffic.requests;
      traffic.output = since(&ServedTotals::output_tokens) / traffic.requests;
      traffic.hit_rate = since(&ServedTotals::cached_tokens) / since(&ServedTotals::prompt_tokens);
    }
    if (const double steps = since(&ServedTotals::verified_steps); steps > 0) {
      traffic.accept_length = 1 + since(&ServedTotals::accepted_tokens) / steps;
    }
    return traffic;
  }

  std::vector<PlannedPool> pools_;
  PoolsPass pass_;
  DynamoPlanner planner_;
  Ticks by_load_, by_throughput_;
  ServedTotals served_;
};

}  // namespace

std::unique_ptr<Scaler> MakeDynamoScaler(const ScalerInput& input) {
  return std::make_unique<DynamoScaler>(input);
}

}  // namespace servecast
