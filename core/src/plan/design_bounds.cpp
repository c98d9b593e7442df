// See design_bounds.h.
#include "plan/design_bounds.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "metrics/power.h"
#include "plan/bound.h"
#include "plan/line.h"
#include "plan/strain.h"
#include "policies/estimate.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr double kSure = 0.95;       // of a bound that drawn requests and hand-overs may move
constexpr double kFirstMost = 256;   // to begin with
constexpr double kUsual = 2;         // times the bound, where the closed form says nothing
constexpr double kOfTheLimit = 0.9;  // that a mean step may take where a percentile has a limit

// Requests per second that are sure to come; 0: not known.
double SureRate(const Scenario& s) {
  const ArrivalSpec& a = s.workload->arrivals;
  const bool even = HasRate(a.process) && a.profile == RateProfile::kFlat && a.spikes.empty();
  return even ? TotalRate(*s.workload) : 0;
}

// Whether tokens of a prompt may be in the cache already.
bool MayFind(const Scenario& s, const RequestTable& requests) {
  return s.workload->prefix.groups > 0 || !requests.think.empty() || !s.workload->classes.empty() ||
         s.workload->arrivals.process == ArrivalProcess::kTrace;
}

bool HasLoneSteps(const Scenario& s) {
  return s.engine.compat == Compat::kNone && FindScheduler(s.scheduler.policy).as_vllm &&
         !s.engine.overlap_scheduling && !s.engine.speculative.On();
}

// Until a prompt that is alone has its first token: its steps, one after the other, of which the
// slowest stage of a pipeline sees all.
double LonePromptMs(const Pool& pool, std::int64_t tokens) {
  const EngineSpec& engine = pool.scenario.engine;
  std::int64_t most = engine.max_num_batched_tokens;
  const std::int64_t threshold = engine.long_prefill_token_threshold;
  if (threshold > 0) most = std::min(most, threshold);
  if (!engine.enable_chunked_prefill) most = std::max(most, tokens);
  std::vector<TimeNs> stages(std::max<std::size_t>(pool.stages.size(), 1));
  for (std::int64_t context = 0; context < tokens;) {
    PrefillChunk chunk;
    chunk.tokens = std::min(most, tokens - context);
    chunk.context = context;
    chunk.prompt = tokens;
    chunk.samples = context + chunk.tokens == tokens;
    BatchShape shape;
    shape.prefill = {&chunk, 1};
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const LatencyModel& latency = pool.stages.empty() ? *pool.latency : *pool.stages[i].latency;
      stages[i] += latency.Price(shape).duration;
    }
    context += chunk.tokens;
  }
  const TimeNs host = pool.latency->DelayByLoad() ? 0 : pool.latency->EnqueueDelay(tokens);
  return static_cast<double>(host + *std::max_element(stages.begin(), stages.end())) * 1e-6;
}

double LoneDecodeMs(const Pool& pool) {
  const BatchShape decode{1, 1, {}, 1};
  TimeNs duration = 0;
  for (const PipelineStage& stage : pool.stages) duration += stage.latency->Price(decode).duration;
  if (pool.stages.empty()) duration = pool.latency->Price(decode).duration;
  return static_cast<double>(duration) * 1e-6;
}

// Prompt tokens that at least as many requests have as are beyond a percentile, with half as many
// again to spare, as others than those drawn may come; 1 where some may be cached, or where the
// target is not of all.
std::int64_t SurePrompt(const SloSpec& slo, const RequestTable& requests, bool may_find) {
  if (may_find || !slo.of_class.empty()) return 1;
  std::vector<std::int32_t> tokens = requests.prompt_tokens;
  const double within = std::max(0.0, 1 - 1.5 * (1 - slo.percentile / 100));
  const auto rank = static_cast<std::ptrdiff_t>(within * static_cast<double>(tokens.size() - 1));
  std::nth_element(tokens.begin(), tokens.begin() + rank, tokens.end());
  return tokens[static_cast<std::size_t>(rank)];
}

// The least time of any pool that does such work.
template <class Time>
double LeastMs(const Deployment& deployment, PoolRole other, Time of) {
  std::optional<double> least;
  for (const Pool& pool : deployment.pools) {
    if (pool.spec().role == PoolRole::kEncode) continue;
    if (!HasLoneSteps(pool.scenario)) return 0;
    if (pool.spec().role != other) least = std::min(least.value_or(1e300), of(pool));
  }
  return least.value_or(0);
}

double LeastStrain(const SloSpec& slo, const Deployment& deployment, const RequestTable& requests,
                   bool may_find) {
  double strain = 0;  // within all limits of attainment: the worst of them
  for (const SloLimit& limit : LimitsOf(slo)) {
    const bool decodes = limit.metric == SloMetric::kTpot || limit.metric == SloMetric::kItl;
    const std::int64_t prompt = decodes ? 1 : SurePrompt(slo, requests, may_find);
    const double ms = decodes ? LeastMs(deployment, PoolRole::kPrefill, LoneDecodeMs)
                              : LeastMs(deployment, PoolRole::kDecode, [&](const Pool& pool) {
                                  return LonePromptMs(pool, prompt);
                                });
    strain = std::max(strain, kSure * ms / limit.ms);
  }
  return strain;
}

// Of the targets on steps: by what a mean one may take at most.
double MostStepMs(const Scenario& s) {
  double most = 1e300;
  for (const SloSpec& slo : s.slo) {
    for (const SloLimit& limit : LimitsOf(slo)) {
      if (limit.metric == SloMetric::kTpot) most = std::min(most, kOfTheLimit * limit.ms);
    }
  }
  return most;
}

// By the closed form: the load is served, and the mean step leaves room under the limits.
std::optional<std::int64_t> Enough(const Scenario& s, const Pool& pool,
                                   const RequestTable& requests) {
  const bool closed = HasLoneSteps(pool.scenario) && pool.stages.empty() && SureRate(s) > 0 &&
                      pool.spec().role == PoolRole::kMixed;
  if (!closed) return std::nullopt;
  double prompt = 0, output = 0;
  for (std::size_t r = 0; r < requests.arrival.size(); ++r) {
    prompt += requests.prompt_tokens[r];
    output += requests.output_tokens[r];
  }
  const auto n = static_cast<double>(requests.size());
  const double rate = SureRate(s), most_ms = MostStepMs(s);
  const auto each = [&](double replicas) {
    return Demand{rate / replicas, prompt / n, output / n, 0};
  };
  const auto is_fast = [&](double replicas) {
    return SteadyStepMs(pool.scenario, pool.cost, *pool.latency, each(replicas)) <= most_ms;
  };
  const Estimate one = EstimateSteadyState(pool.scenario, pool.cost, *pool.latency, each(1));
  double low = std::max(1.0, std::ceil(rate / std::max(one.most_requests_per_s, 1e-9)));
  if (!one.overloaded && one.tpot_ms <= most_ms) return 1;
  if (low >= kFirstMost) return static_cast<std::int64_t>(kFirstMost);
  if (is_fast(low)) return static_cast<std::int64_t>(low);
  double high = std::min(4 * low, kFirstMost);
  while (high - low > 1 && high > 1.15 * low) {
    const double middle = std::floor((low + high) / 2);
    (is_fast(middle) ? high : low) = middle;
  }
  return static_cast<std::int64_t>(high);
}

// Of so many replicas by pool, idle, for `rate` requests per second.
std::optional<double> LeastEnergy(const Deployment& deployment, const std::vector<double>& replicas,
                                  const RequestTable& requests, double rate) {
  double watts = 0, output = 0;
  for (std::size_t i = 0; i < deployment.pools.size(); ++i) {
    const HardwareSpec& hardware = deployment.pools[i].scenario.hardware;
    if (!KnowsPower(hardware)) return std::nullopt;
    const auto gpus = static_cast<double>(deployment.pools[i].spec().GpusOfReplica());
    watts += replicas[i] * gpus * hardware.idle_w;
  }
  for (const std::int32_t tokens : requests.output_tokens) output += tokens;
  const double tokens_per_s = rate * output / static_cast<double>(requests.size());
  return tokens_per_s > 0 ? kSure * watts / tokens_per_s : 0;
}

}  // namespace

BeforeRuns KnownBeforeRuns(const Scenario& scenario, const Deployment& deployment,
                           const RequestTable& requests) {
  BeforeRuns known;
  const bool may_find = MayFind(scenario, requests);
  for (const SloSpec& slo : scenario.slo) {
    known.strains.push_back(LeastStrain(slo, deployment, requests, may_find));
  }
  const double rate = kSure * SureRate(scenario);
  const auto least = LeastReplicasOf(deployment, requests, rate, may_find ? 1 : 0);
  const bool single = deployment.pools.size() == 1;
  for (std::size_t i = 0; i < deployment.pools.size(); ++i) {
    const PoolSpec& spec = deployment.pools[i].spec();
    const double busy = std::max(least[i].compute, least[i].bandwidth);
    const auto group = static_cast<double>(spec.attention_data_parallel);
    known.least.push_back(group * std::max(1.0, std::ceil((busy - 1e-9) / group)));
    std::optional<std::int64_t> start;
    if (single) start = Enough(scenario, deployment.pools[i], requests);
    if (!start && rate == 0) start = scenario.cluster.pools[i].replicas;
    if (!start) start = static_cast<std::int64_t>(std::min(kUsual * busy + 1, kFirstMost));
    known.start.push_back(CeilDiv(*start, spec.attention_data_parallel) *
                          spec.attention_data_parallel);
  }
  known.j_per_output_token = LeastEnergy(deployment, known.least, requests, SureRate(scenario));
  return known;
}

}  // namespace servecast
