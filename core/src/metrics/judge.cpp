// The verdict: one sentence that answers, one that says what binds, one for what else a reader
// must know. The command and the page show the same words.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "cost/layers/layer_kind.h"
#include "cost/nodes.h"
#include "cost/own_models.h"
#include "metrics/summarize.h"
#include "metrics/unseen.h"
#include "metrics/words.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr double kNearMargin = 0.1;

// The result that decides: a missed one, else one without any sample, else the least margin.
const SloResult& Deciding(const Report& report) {
  const SloResult *deciding = nullptr, *untold = nullptr;
  for (const SloResult& result : report.slo) {
    if (!result.value_ms && !result.share) {
      untold = &result;
      continue;
    }
    const bool worse =
        deciding == nullptr ||
        (result.met == deciding->met ? result.margin.value_or(0) < deciding->margin.value_or(0)
                                     : !result.met);
    if (worse) deciding = &result;
  }
  const bool misses = deciding != nullptr && !deciding->met;
  return untold == nullptr || misses ? *deciding : *untold;
}

std::string Measured(const Report& r) {
  if (r.ttft_ms.n == 0) return "No request got its first token.";
  std::string text = "TTFT p99 is " + MeasuredMs(r.ttft_ms.p99);
  if (r.tpot_ms.n > 0) text += ", TPOT p99 is " + MeasuredMs(r.tpot_ms.p99);
  return text + ".";
}

// A target of which nothing is known is not missed, unless too many requests were lost.
bool IsMissed(const SloResult& result) {
  const bool known = result.value_ms || result.share;
  return !result.met && (known || result.unserved_share > 1 - result.slo.percentile / 100);
}

void JudgeMiss(const SloResult& worst, Report& r) {
  r.verdict.state = VerdictState::kMisses;
  std::int64_t missed = 0;
  for (const SloResult& result : r.slo) missed += IsMissed(result) ? 1 : 0;
  const std::string misses =
      missed == 1 ? "Misses "
                  : Format("Misses {} of {} targets, most of all ", missed, r.slo.size());
  if (worst.share) {
    r.verdict.sentence = Format("{}{}: {} are.", misses, Target(worst.slo), Percent(*worst.share));
    return;
  }
  const double over = -worst.margin.value_or(0);
  if (over <= 0) {
    r.verdict.sentence = Format("{}{}: {}.", misses, Target(worst.slo), LossText(worst, r));
    return;
  }
  r.verdict.sentence = Format("{}{}: it is {}, {}.", misses, Target(worst.slo),
                              MeasuredMs(*worst.value_ms), Beyond(1 + over));
}

// No request has such a latency. A miss if too many were lost, or waited beyond the limit without
// one; else nothing is known.
void JudgeUntold(const SloResult& untold, Report& r) {
  const bool waited = r.Lost() > 0 || r.simulated_s * 1e3 > untold.slo.limit_ms;
  if (waited && untold.unserved_share > 1 - untold.slo.percentile / 100) {
    return JudgeMiss(untold, r);
  }
  const bool per_token =
      untold.slo.metric == SloMetric::kTpot || untold.slo.metric == SloMetric::kItl;
  const bool single = per_token && untold.slo.of_class.empty() && r.e2e_ms.n > 0;
  r.verdict.state = VerdictState::kNotJudged;
  r.verdict.sentence = Format("Cannot tell {}: no request {}.", Target(untold.slo),
                              single ? "made more than one token" : "got that far");
}

void JudgeSlo(Report& r) {
  const SloResult& worst = Deciding(r);
  if (!worst.value_ms && !worst.share) {
    JudgeUntold(worst, r);
  } else if (!worst.met) {
    JudgeMiss(worst, r);
  } else {
    const bool tight = worst.margin.value_or(0) < kNearMargin;
    const bool saturating = r.saturation.state == SaturationState::kNear;
    const bool lost = r.Lost() > 0;
    r.verdict.state = tight || saturating || lost ? VerdictState::kNear : VerdictState::kMeets;
    r.verdict.sentence =
        Format("{} {} with a margin of {}{}.", tight ? "Just meets" : "Meets", Target(worst.slo),
               Percent(worst.margin.value_or(0)), saturating ? ", but close to saturation" : "");
  }
}

// From this use of its bandwidth over the run on, the link between prefill and decode is what to
// look at: prefills then wait with their blocks until it takes them.
constexpr double kBusyLink = 0.8;

std::string LimitSentence(const Scenario& scenario, const Report& r) {
  if (r.kv_transfer.on && r.simulated_s > 0) {
    const double gb_s = static_cast<double>(r.kv_transfer.bytes) / (r.simulated_s * 1e9);
    const double use = gb_s / TransferGbS(scenario);
    if (use > kBusyLink) {
      return Format(
          "The limit is the link between prefill and decode: {} of its bandwidth is used.",
          Percent(use));
    }
  }
  const bool overloaded = r.saturation.state == SaturationState::kOverloaded;
  if (overloaded && scenario.cluster.ControlsFlow()) {
    return "The limit is the router's flow control: requests wait there until a server has room.";
  }
  const std::string share = Percent(r.binding.share);
  const std::string_view name = r.binding.name;
  if (name == "kv_blocks") {
    return Format("The limit is KV memory: {} of the time admission waits for blocks.", share);
  }
  if (name == "seats" && scenario.engine.max_loras > 0) {
    return Format(
        "The limit is seats, of requests (max_num_seqs) or of adapters (max_loras): {} of "
        "the time admission waits for one.",
        share);
  }
  if (name == "seats") {
    return Format("The limit is max_num_seqs: {} of the time admission waits for a seat.", share);
  }
  if (name == "token_budget") {
    return Format(
        "The limit is max_num_batched_tokens: {} of the time admission waits for room in a step.",
        share);
  }
  if (name == "none" || r.latency_model.backend == "blackbox") return "";
  const char* what = name == "compute"     ? "arithmetic"
                     : name == "bandwidth" ? "memory bandwidth"
                                           : "host and link time";
  const double busy = r.binding.busy_share;
  return Format("{} by {}: {} of the time that steps run{}.",
                r.saturation.state == SaturationState::kStable ? "Steps are mostly bound"
                                                               : "Throughput is limited",
                what, Percent(r.binding.share / busy),
                busy < 0.95 ? Format(", which is {} of all", Percent(busy)) : "");
}

// Of the same run as each replica's own.
std::optional<double> MeanTtftMs(const Report& r) {
  double sum = 0, requests = 0;
  for (const ReplicaReport& replica : r.replicas) {
    if (!replica.ttft_mean_ms) continue;
    sum += *replica.ttft_mean_ms * static_cast<double>(replica.requests);
    requests += static_cast<double>(replica.requests);
  }
  return requests > 0 ? std::optional(sum / requests) : std::nullopt;
}

// That some replica has far more to do than the others, where that may be why latencies are bad:
// it then has half as much again as the mean, and at least one request more. "" otherwise.
std::string ImbalanceSentence(const std::vector<PoolSpec>& pools, const Report& r) {
  if (r.replicas.size() < 2 || r.verdict.state == VerdictState::kMeets) return "";
  // Beside those of its own pool: others have another role, or other GPUs.
  const ReplicaReport* busiest = &r.replicas[0];
  std::int64_t requests = 0;
  double mean = 0;
  auto replica = r.replicas.begin();
  for (const PoolSpec& pool : pools) {
    const auto end = replica + static_cast<std::ptrdiff_t>(pool.replicas);
    const auto top = std::max_element(replica, end, [](const auto& a, const auto& b) {
      return a.mean_outstanding < b.mean_outstanding;
    });
    double outstanding = 0;
    for (; replica != end; ++replica) {
      outstanding += replica->mean_outstanding;
      requests += replica->requests;
    }
    const double of_pool = outstanding / static_cast<double>(pool.replicas);
    if (mean == 0 || top->mean_outstanding - of_pool > busiest->mean_outstanding - mean) {
      busiest = &*top;
      mean = of_pool;
    }
  }
  const double most = busiest->mean_outstanding;
  if (most < 1.5 * mean || most < mean + 1) return "";
  std::string text = Format(
      "Replicas are loaded unevenly: of {} replicas, number {} has {} requests on average, {} "
      "times the mean{}, and was sent {} of all requests",
      r.replicas.size(), busiest - r.replicas.data(), ShortNumber(most), ShortNumber(most / mean),
      pools.size() > 1 ? " of its pool" : "",
      Percent(static_cast<double>(busiest->requests) / static_cast<double>(requests)));
  if (const std::optional<double> all = MeanTtftMs(r); busiest->ttft_mean_ms && all) {
    text += Format("; its mean TTFT is {}, that of all requests is {}",
                   MeasuredMs(*busiest->ttft_mean_ms), MeasuredMs(*all));
  }
  return text + ".";
}

template <class R>
std::int64_t SamplesOf(const R& r, SloMetric metric) {
  return metric == SloMetric::kTtft   ? r.ttft_ms.n
         : metric == SloMetric::kTpot ? r.tpot_ms.n
                                      : r.e2e_ms.n;
}

std::int64_t SamplesOf(const Report& r, const SloSpec& slo) {
  if (slo.metric == SloMetric::kItl) return r.itl_ms.n;
  for (const ClassReport& of_class : r.classes) {
    if (of_class.name == slo.of_class) return SamplesOf(of_class, slo.metric);
  }
  return SamplesOf(r, slo.metric);
}

// Use of KV memory from which its computed size matters: numbers of blocks are up to 1.2 % off of
// logged ones (docs/model.md, section 4), weights and overhead beside them by more.
constexpr double kNearlyFull = 0.9;

// They are stated, and neither the queue nor a preemption by vLLM's rules asks for them.
bool PrioritiesAreIdle(const Scenario& s) {
  const std::vector<ClassSpec>& classes = s.workload->classes;
  const bool stated = std::any_of(classes.begin(), classes.end(), [&](const ClassSpec& c) {
    return c.priority != classes.front().priority;
  });
  const bool asked = s.scheduler.order == "priority_fcfs" ||
                     s.scheduler.order == "reverse_priority" ||
                     s.scheduler.preemption == "priority" || s.cluster.ControlsFlow();
  return (stated || s.scheduler.priority != "class") && s.scheduler.IsVllm() && !asked;
}

std::string Notes(const Scenario& scenario, const Report& r) {
  std::string notes;
  const auto add = [&notes](const std::string& sentence) {
    notes += (notes.empty() ? "" : " ") + sentence;
  };
  if (r.dropped > 0) {
    add(Format("{} of {} {} dropped: {}.", ShortNumber(static_cast<double>(r.dropped)),
               Count(r.arrived, "request"), r.dropped == 1 ? "was" : "were",
               !IsBlis(scenario.engine.compat)
                   ? "the prompt is longer than the engine accepts"
                   : "too long for the cache, or preempted for ever by BLIS's rules"));
  }
  if (r.timed_out > 0) {
    add(Format("{} of {} timed out.", ShortNumber(static_cast<double>(r.timed_out)),
               Count(r.arrived, "request")));
  }
  if (r.rejected > 0) {
    add(Format("{} of {} {} rejected{}.", ShortNumber(static_cast<double>(r.rejected)),
               Count(r.arrived, "request"), r.rejected == 1 ? "was" : "were",
               scenario.cluster.ControlsFlow()
                   ? " by flow control"
                   : ", as the queue was full (max_num_queued_reqs, max_num_queued_tokens)"));
  }
  if (const std::int64_t lost = r.scaling.failures.lost; lost > 0) {
    add(Format("{} of {} lost with a replica.", ShortNumber(static_cast<double>(lost)),
               Count(r.arrived, "request")));
  }
  if (PrioritiesAreIdle(scenario)) {
    add(
        Format("Priorities of requests change nothing: scheduler.order is \"{}\"; with "
               "\"priority_fcfs\" the more urgent are served first.",
               scenario.scheduler.order));
  }
  const RollingUpdateSpec& update = scenario.cluster.rolling_update;
  if (!update.On() &&
      (update.max_surge || update.max_unavailable || update.termination_grace_period_s)) {
    add("No replica was updated: cluster.rolling_update has no at_s.");
  }
  const FailureSpec& failures = scenario.cluster.failures;
  if (!failures.On() && (failures.detect_s > 0 || failures.domain_replicas > 1)) {
    add("No replica failed: cluster.failures has neither schedule nor mtbf_s.");
  }
  if (scenario.workload->retries.hedge_budget && !scenario.workload->retries.Hedges()) {
    add("No request was sent twice: workload.retries has no hedge_after_s.");
  }
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  if (std::any_of(pools.begin(), pools.end(), [&scenario](const PoolSpec& pool) {
        const ScalingSpec& scaling = scenario.cluster.ScalingOf(pool);
        return scaling.warm_replicas == 0 &&
               (scaling.wake_s || scaling.warm_gpu_share != ScalingSpec{}.warm_gpu_share);
      })) {
    add("No replica waited asleep: its scaling has no warm_replicas.");
  }
  const SlowdownSpec& slowdowns = scenario.cluster.slowdowns;
  if (!slowdowns.On() && (slowdowns.for_s || slowdowns.factor != SlowdownSpec{}.factor)) {
    add("No replica was slow: cluster.slowdowns has neither schedule nor mean_gap_s.");
  }
  if (const std::string cluster = ClusterNotes(scenario, r); !cluster.empty()) add(cluster);
  if (const std::string unseen = UnseenWords(scenario, r.simulated_s);
      r.finished && !unseen.empty()) {
    add(unseen);
  }
  const std::int64_t never = r.workload_requests - r.arrived;
  if (r.finished && !scenario.measure.horizon_s && never > 0) {
    add(Format("{} never came: their conversation had ended.", Count(never, "turn")));
  }
  if (r.length_capped > 0) {
    add(Count(r.length_capped, "answer") +
        " ended at the longest sequence that the engine accepts.");
  }
  if (r.finished && r.queued + r.running > 0) {
    add(Count(r.queued + r.running, "request") +
        (scenario.measure.horizon_s ? " had not finished at the horizon." : " never finished."));
    const std::string hang = r.images.on ? HangWords(scenario, r) : "";
    if (!hang.empty()) add(hang);
  }
  if (r.saturation.filling && r.saturation.state != SaturationState::kOverloaded) {
    add("The number of requests in the system was still growing when arrivals ended; a run with "
        "more requests would tell more.");
  }
  if (r.kv_peak_usage >= kNearlyFull && !scenario.engine.num_gpu_blocks_override &&
      !IsBlis(scenario.engine.compat)) {
    add(Format(
        "KV memory was {} full at its peak. Its size is estimated, {}, so whether requests "
        "wait for it or are preempted is uncertain.",
        Percent(r.kv_peak_usage),
        HasLayerKinds(scenario.model) ? "by vLLM's own groups of layers, from a memory that is"
                                      : "typically within 1 to 5 % of what vLLM logs"));
  }
  for (const std::string& warning : r.latency_model.evidence.warnings) add(warning);
  const std::string nodes = NodesNote(scenario, IsOwnModel(r.latency_model.backend));
  if (!nodes.empty()) add(nodes);
  return notes;
}

// How many samples a percentile rests on, where they are few.
std::string FewSamples(const Report& r) {
  std::string notes;
  const auto add = [&notes](const std::string& sentence) {
    notes += (notes.empty() ? "" : " ") + sentence;
  };
  for (const SloResult& result : r.slo) {
    if (result.slo.metric == SloMetric::kAttainment) continue;
    const std::int64_t n = SamplesOf(r, result.slo);
    const double beyond = static_cast<double>(n) * (1 - result.slo.percentile / 100);
    if (n == 0 || beyond >= 10) continue;
    const std::string& of_class = result.slo.of_class;
    add(Format("{} p{}{} rests on {}; {} beyond it.", MetricName(result.slo.metric),
               NumberText(result.slo.percentile), of_class.empty() ? "" : " of " + of_class,
               Count(n, "sample"),
               beyond < 0.5 ? "fewer than one lies"
                            : "about " + ShortNumber(std::nearbyint(beyond)) +
                                  (beyond < 1.5 ? " lies" : " lie")));
  }
  return notes;
}

}  // namespace

void RefuseToJudge(const std::string& simulated, Report& r) {
  const Evidence& evidence = r.latency_model.evidence;
  const VerdictState state = r.verdict.state;
  const bool judged = state == VerdictState::kMeets || state == VerdictState::kNear ||
                      state == VerdictState::kMisses || state == VerdictState::kOverloaded;
  if (evidence.of != EvidenceClass::kKnownBad || !judged) return;
  r.verdict.state = VerdictState::kNotJudged;
  r.verdict.sentence = Format("Not judged: {}. Simulated, {}", evidence.bad, simulated);
}

void Judge(const Scenario& scenario, Report& r) {
  if (r.arrived == 0) {
    r.verdict = {VerdictState::kEmpty, "No request arrived.", "", ""};
    return;
  }
  const bool nothing_measured = r.ttft_ms.n == 0 && r.ttft_ms.censored == 0;
  if (nothing_measured && r.Lost() == 0 && scenario.measure.warmup_s > 0) {
    r.verdict = {VerdictState::kEmpty, "No request arrived after the warm-up.", "", ""};
    return;
  }
  if (r.arrived == r.Lost()) {
    r.verdict.state = VerdictState::kMisses;
    r.verdict.sentence = Format("Serves nothing: every request {}.",
                                r.scaling.failures.lost > 0 ? "was lost"
                                : r.rejected > 0            ? "was dropped, rejected or timed out"
                                : r.timed_out == 0          ? "was dropped"
                                : r.dropped == 0            ? "timed out"
                                                            : "was dropped or timed out");
  } else if (r.saturation.state == SaturationState::kOverloaded) {
    r.verdict.state = VerdictState::kOverloaded;
    r.verdict.sentence = "Overloaded: requests arrive faster than they are served";
    if (r.saturation.queue_grows) {
      r.verdict.sentence += Format(", and the queue grows by {} requests a second",
                                   ShortNumber(r.saturation.queue_slope_per_s));
    }
    r.verdict.sentence += ". " + Measured(r);
  } else if (scenario.slo.empty()) {
    r.verdict.state = VerdictState::kNoSlo;
    r.verdict.sentence = "No latency target is set. " + Measured(r);
  } else {
    JudgeSlo(r);
  }
  RefuseToJudge(Measured(r), r);
  if (!r.finished) {
    r.verdict.sentence[0] =
        static_cast<char>(std::tolower(static_cast<unsigned char>(r.verdict.sentence[0])));
    r.verdict.sentence = "So far: " + r.verdict.sentence;
  }
  r.verdict.limit = LimitSentence(scenario, r);
  const std::string imbalance = ImbalanceSentence(scenario.cluster.pools, r);
  if (!imbalance.empty()) r.verdict.limit += (r.verdict.limit.empty() ? "" : " ") + imbalance;
  r.verdict.note = Notes(scenario, r);
  r.few_samples = FewSamples(r);
  if (!r.few_samples.empty() && !r.verdict.note.empty()) r.verdict.note += " ";
  r.verdict.note += r.few_samples;
}

}  // namespace servecast
