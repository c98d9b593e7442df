// Random cases with Dynamo's planner as the scaler of a pool, or of one that prefills and one that
// decodes.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "serving/scaling/dynamo_planner.h"
#include "testing/dice.h"
#include "testing/pd_cases.h"

namespace servecast::testing {
namespace {

using Draws = ::servecast::testing::Dice;  // pd_cases.cpp has another one

// The time of a step of a pool that prefills and of one that decodes, which may be the same.
class PdPass final : public ForwardPass {
 public:
  PdPass(const PdPool& prefill, const PdPool& decode) : prefill_(prefill), decode_(decode) {}
  double Milliseconds(std::int64_t prefill_tokens, std::int64_t decode_requests,
                      std::int64_t decode_kv) const override {
    const PdPool& pool = prefill_tokens > 0 ? prefill_ : decode_;
    std::vector<PrefillChunk> chunks;
    if (prefill_tokens > 0) {
      chunks.push_back({.tokens = prefill_tokens, .prompt = prefill_tokens, .samples = true});
    }
    BatchShape shape;
    shape.prefill = chunks;
    if (decode_requests > 0) {
      shape.decode_seqs = decode_requests;
      shape.decode_context_tokens = decode_kv;
    }
    const std::int64_t block = pool.engine.block_size;
    shape.decode_kv_blocks = (decode_kv + block - 1) / block;
    return static_cast<double>(pool.latency->Price(shape).duration) / 1e6;
  }

 private:
  PdPool prefill_, decode_;
};

std::vector<DynamoReport> ReportsOf(const PdPlanned& pool) {
  std::vector<DynamoReport> reports;
  for (const PdReport& one : pool.reports) {
    reports.push_back({std::to_string(1000 + one.replica), 0, one.prefill_tokens,
                       one.prefill_requests, one.decode_kv, one.decode_requests,
                       one.queued_prefill_tokens, one.queued_prefill_requests, one.queued_decode_kv,
                       one.queued_decode_requests});
  }
  return reports;
}

// Its rules are the engine's, which recordings hold.
PdPlanner MakePlanner(const ScalingSpec& scaling, const std::vector<PdPool>& pools,
                      std::int64_t max_len) {
  const PdPool &first = pools.front(), &last = pools.back();
  const bool two = pools.size() > 1, turned = two && first.role == PoolRole::kDecode;
  const PdPool &prefill = turned ? last : first, &decode = turned ? first : last;
  const auto number = [&](const char* name) { return scaling.params.at(name); };
  DynamoSpec spec;
  spec.mode = two                                ? DynamoMode::kDisaggregated
              : first.role == PoolRole::kPrefill ? DynamoMode::kPrefill
              : first.role == PoolRole::kDecode  ? DynamoMode::kDecode
                                                 : DynamoMode::kAggregated;
  spec.target = scaling.optimization_target;
  spec.load = scaling.enable_load_scaling;
  spec.throughput = scaling.enable_throughput_scaling;
  spec.max_gpus = static_cast<std::int64_t>(number("max_gpu_budget"));
  spec.min_gpus = static_cast<std::int64_t>(number("min_gpu_budget"));
  spec.min_workers = static_cast<std::int64_t>(number("min_endpoint"));
  spec.prefill = {{}, prefill.gpus, prefill.engine.max_num_seqs};
  spec.decode = {{}, decode.gpus, decode.engine.max_num_seqs};
  spec.ttft_ms = number("ttft_ms");
  spec.itl_ms = number("itl_ms");
  spec.sensitivity = number("load_scaling_down_sensitivity");
  spec.min_observations = static_cast<std::int64_t>(number("load_min_observations"));
  spec.max_num_batched_tokens = prefill.engine.max_num_batched_tokens;
  spec.context_length = max_len;
  spec.max_kv_tokens = (decode.pool_blocks - 1) * decode.engine.block_size;
  spec.prefill_up_tokens = number("prefill_scale_up_queue_tokens");
  spec.prefill_down_tokens = number("prefill_scale_down_queue_tokens");
  spec.decode_up_kv = number("decode_scale_up_kv_rate");
  spec.decode_down_kv = number("decode_scale_down_kv_rate");
  const auto pass = std::make_shared<PdPass>(prefill, decode);
  const double interval_s = number("throughput_adjustment_interval_s");
  return [pass, planner = std::make_shared<DynamoPlanner>(spec, *pass), two, turned, interval_s,
          prefills = first.role == PoolRole::kPrefill](
             bool load, std::optional<PdTraffic> traffic,
             const std::vector<PdPlanned>& seen) -> std::vector<std::int64_t> {
    const PdPlanned &p = turned ? seen.back() : seen.front(), &d = turned ? seen[0] : seen.back();
    const std::vector<DynamoReport> of_p = ReportsOf(p), of_d = ReportsOf(d);
    DynamoView view;
    view.load = load;
    if (traffic) {
      view.traffic = {interval_s,      traffic->requests, traffic->input,
                      traffic->output, traffic->hit_rate, std::nullopt};
    }
    if (two || prefills) view.prefill = {p.ready, p.wanted, p.changes, of_p};
    if (two || !prefills) view.decode = {d.ready, d.wanted, d.changes, of_d};
    const DynamoDecision decision = planner->Tick(view);
    const auto by = decision.by_load.any() ? decision.by_load : decision.by_throughput;
    const std::int64_t prefill_wanted = by.prefill.value_or(p.wanted);
    const std::int64_t decode_wanted = by.decode.value_or(d.wanted);
    if (!two) return {prefills ? prefill_wanted : decode_wanted};
    if (turned) return {decode_wanted, prefill_wanted};
    return {prefill_wanted, decode_wanted};
  };
}

ScalingSpec RandomPlan(Draws& dice, double length_s, double step_ms) {
  ScalingSpec spec;
  spec.policy = "dynamo";
  spec.max_replicas = 5;
  spec.optimization_target = dice.Pick<DynamoTarget>(
      {DynamoTarget::kThroughput, DynamoTarget::kLatency, DynamoTarget::kLoad, DynamoTarget::kSla,
       DynamoTarget::kSla, DynamoTarget::kSla});
  if (spec.optimization_target == DynamoTarget::kSla) {
    spec.enable_throughput_scaling = dice.Percent(60);
    spec.enable_load_scaling = !spec.enable_throughput_scaling || dice.Percent(60);
  }
  const double load_s = std::max(1e-6, length_s * dice.Pick<double>({0.01, 0.02, 0.05}));
  spec.scrape_delay_s = dice.Percent(25) ? load_s * dice.Pick<double>({0.3, 1.0, 1.7}) : 0;
  spec.params = {{"load_adjustment_interval_s", load_s},
                 {"throughput_adjustment_interval_s", load_s * dice.Pick<double>({1.5, 3.0, 4.0})},
                 {"ttft_ms", step_ms * dice.Pick<double>({0.5, 2.0, 8.0, 40.0})},
                 {"itl_ms", step_ms * dice.Pick<double>({0.5, 1.2, 2.0, 8.0})},
                 {"load_scaling_down_sensitivity", dice.Pick<double>({50.0, 80.0, 100.0})},
                 {"load_min_observations", dice.Pick<double>({1.0, 3.0, 10.0})},
                 {"min_endpoint", dice.Pick<double>({1.0, 1.0, 2.0})},
                 {"max_gpu_budget", dice.Pick<double>({-1.0, 4.0, 6.0, 8.0})},
                 {"min_gpu_budget", dice.Pick<double>({-1.0, -1.0, 3.0})},
                 {"prefill_scale_up_queue_tokens", dice.Pick<double>({10.0, 60.0})},
                 {"prefill_scale_down_queue_tokens", dice.Pick<double>({0.0, 5.0})},
                 {"decode_scale_up_kv_rate", dice.Pick<double>({20.0, 60.0})},
                 {"decode_scale_down_kv_rate", dice.Pick<double>({5.0, 15.0})}};
  return spec;
}

// One pool of a role, and of vLLM's schedulers.
bool Plannable(const PdCase& c) {
  std::array<std::int64_t, 3> pools = {};
  for (const PdPool& pool : c.pools) {
    if (pool.scheduler != "vllm" || pool.stages != nullptr) return false;
    ++pools[static_cast<std::size_t>(pool.role)];
  }
  const auto [mixed, prefill, decode] = pools;
  return mixed == 0 ? prefill == 1 && decode == 1 : prefill + decode == 0;
}

}  // namespace

std::optional<PdCase> MakePlannedPdCase(std::uint64_t seed) {
  std::optional<PdCase> c = MakePdCase(seed);
  if (!c || !Plannable(*c)) return std::nullopt;
  if (!c->Apart()) c->pools.resize(1);
  const TimeNs length = RunPdCase(*c).now;
  if (length == 0) return std::nullopt;
  if (c->base.horizon) c->base.horizon = std::min(*c->base.horizon, 5 * length);
  Draws dice(seed + 92'000'000);
  for (RouterChoice* router : {&c->router, &c->decode_router}) {
    *router = {
        dice.Pick<std::string>({"round_robin", "random", "least_outstanding"}), {}, router->seed};
  }
  const double step_ms = static_cast<double>(c->base.latency.base) / 1e6;
  PdScaling scaling;
  scaling.spec = RandomPlan(dice, static_cast<double>(length) / 1e9, step_ms);
  scaling.cold_start = length * dice.Pick({0, 1, 3, 10}) / 100;
  const std::int64_t only = dice.Pick({-1, -1, 0, 1});  // of two pools; -1: both
  std::vector<PdPool> planned;
  for (std::size_t p = 0; p < c->pools.size(); ++p) {
    PdPool& pool = c->pools[p];
    pool.gpus = dice.Pick({1, 1, 2});
    if (c->pools.size() == 1 || only < 0 || only == static_cast<std::int64_t>(p)) {
      planned.push_back(pool);
      pool.scaling = scaling;
    }
  }
  for (PdPool& pool : c->pools) {
    if (!pool.scaling) continue;
    pool.scaling->make_planner = [spec = scaling.spec, planned, max_len = c->MaxLen()] {
      return MakePlanner(spec, planned, max_len);
    };
  }
  return c;
}

}  // namespace servecast::testing
