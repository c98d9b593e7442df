// What a run found: plain data. Times of distributions are in ms; times elsewhere say their unit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/scenario.h"

namespace servecast {

inline constexpr std::string_view kEngineVersion = "0.1.0";

// Percentiles by linear interpolation at rank p/100*(n-1). n = 0: the others have no meaning.
struct Distribution {
  std::int64_t n = 0;
  std::int64_t runs = 1;  // that the samples are of
  double mean = 0, min = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
  // 95 % confidence interval of p99, if there are samples enough (368) and they are of requests.
  std::optional<double> p99_low, p99_high;
  bool exact = true;          // false: from log buckets of relative width 2^-10
  std::int64_t censored = 0;  // requests without a value because the run ended first; 0 for ITL
};

// kNotJudged: servers like this were predicted so badly that no verdict would hold.
enum class VerdictState {
  kMeets,
  kNear,
  kMisses,
  kOverloaded,
  kDoesNotFit,
  kNotJudged,
  kNoSlo,
  kEmpty,
  kPartial
};

struct Verdict {
  VerdictState state = VerdictState::kEmpty;
  std::string sentence;  // the answer
  std::string limit;     // what binds
  std::string note;      // drops, caps, few samples; may be empty
};

struct SloResult {
  SloSpec slo;
  std::optional<double> value_ms;  // none: no sample, or of attainment
  // 1 - value/limit; of attainment 1 - share beyond/share allowed to be.
  std::optional<double> margin;
  // Of an experiment: where the value lies with 95 % confidence, and whether none exists because
  // the latency grows for as long as requests come.
  std::optional<double> low_ms, high_ms;
  // Of attainment instead: the share of requests within all its limits.
  std::optional<double> share, low_share, high_share;
  bool unbounded = false;
  double unserved_share = 0;  // of the requests: without a value, and counted as beyond
  bool met = false;
};

// How sure an experiment is, and of what (servecast/experiment.h).
struct Certainty {
  enum class Method { kOneRun, kReplications, kBatchMeans };
  Method method = Method::kOneRun;
  std::int64_t runs = 1, requests_per_run = 0;
  std::int64_t batches = 0;  // of batch means
  bool settled = false;      // every target's limit lies outside its interval
  // Of the first run: what counts came between these two, after the warm-up and before the drain.
  double from_s = 0, until_s = 0;
  bool long_warmup = false;  // runs are not much longer than their warm-up
};

// What the pooled figures of an experiment rest on. Distributions and attainment are of the
// requests that arrived between warm-up and drain of each run. Rates are of the time from the
// warm-up to the last arrival (to the end of the run, if most answers come after that and no client
// thinks; of an overload, of the time of Overload):
//   requests_per_s      = completed / seconds
//   output_tokens_per_s = output_tokens / seconds
//   goodput_per_s       = attainment * (completed + lost) / seconds
struct Counted {
  std::int64_t runs = 0;
  std::int64_t requests = 0;   // that distributions and attainment are of
  double seconds = 0;          // that rates are of, of all runs together
  std::int64_t completed = 0;  // in these seconds
  std::int64_t lost =
      0;  // dropped, rejected, timed out or lost with a replica: that arrived in them
  std::int64_t output_tokens = 0;  // of the completed
};

// The rate that is served, requests/s, where an experiment finds that it is below the offered one.
struct Overload {
  double served_per_s = 0, low = 0, high = 0;  // 95 %
  double offered_per_s = 0;
};

// Weights, engine and the least KV cache against what a GPU has for them, where they do not fit.
struct Unfit {
  std::string pool;  // its name; empty where there is one
  std::string gpu;
  std::int64_t tensor_parallel = 1, stage = 0, stages = 1;
  double total_gib = 0, usable_gib = 0, weights_gib = 0, overhead_gib = 0, kv_gib = 0;  // per GPU
  double NeededGib() const { return weights_gib + overhead_gib + kv_gib; }
  std::optional<std::int64_t> enough_tensor_parallel;  // the least that would fit
};

enum class SaturationState { kStable, kNear, kOverloaded };

struct Saturation {
  SaturationState state = SaturationState::kStable;
  std::string evidence;
  double queue_slope_per_s = 0;  // growth of the queue over the last half of the arrivals
  double queue_slope_t = 0;      // its t statistic, from 16 batch means
  double queue_p95 = 0;
  double utilization = 0;     // of the scarcest of KV blocks, seats, tokens and arithmetic
  bool filling = false;       // requests in the system still grew when arrivals ended
  bool queue_grows = false;   // clearly, by that statistic; else the slope is noise
  std::int64_t requests = 0;  // of the run that was looked at; of an experiment, one as long as
                              // those that its verdict rests on
};

// Shares of the run's time; they need not add up to 1 (idle time is the rest).
struct BindingConstraint {
  static constexpr std::array<std::string_view, 6> kNames = {
      "kv_blocks", "seats", "token_budget", "compute", "bandwidth", "overhead"};
  std::string_view name = "none";
  double share = 0;
  double busy_share = 0;  // some step ran
  std::array<double, 6> shares{};
};

struct MemoryReport {
  double total_gib = 0, usable_gib = 0, weights_gib = 0, overhead_gib = 0, kv_gib = 0;
  double mean_usage = 0;  // weights, overhead and used KV blocks, of the total, over time
};

// Why requests ended: complete, cut at the longest sequence that the engine serves, refused, given
// up by the client, turned away by a full queue, or lost with a replica; or not ended yet. The
// counts add up to the requests that arrived.
struct FinishReasons {
  static constexpr std::array<std::string_view, 7> kNames = {
      "stop", "length", "dropped", "timed_out", "unfinished", "rejected", "lost"};
  std::array<std::int64_t, 7> requests{};
};

// Look-ups of prompts in the prefix cache, by first admissions; a resumed request is counted apart.
struct PrefixCacheReport {
  std::int64_t query_tokens = 0, hit_tokens = 0;  // prompt tokens looked up, and found
  std::int64_t query_blocks = 0, hit_blocks = 0;  // full KV blocks of them
  std::int64_t resumed_hit_tokens = 0;            // found by requests that had been preempted
  std::int64_t evicted_blocks = 0;                // cached blocks whose content was overwritten

  void Add(const PrefixCacheReport& other) {
    query_tokens += other.query_tokens;
    hit_tokens += other.hit_tokens;
    query_blocks += other.query_blocks;
    hit_blocks += other.hit_blocks;
    resumed_hit_tokens += other.resumed_hit_tokens;
    evicted_blocks += other.evicted_blocks;
  }
};

// What the options after SFLLM cost, and what padding would: no such padding is simulated.
struct SchedulerCounts {
  std::int64_t prefill_tokens = 0;  // computed in prefills, those after a preemption too
  std::int64_t padding_tokens =
      0;                           // more of them if a step's were padded to their bucket's longest
  std::int64_t gc_passes = 0;      // garbage collections
  std::int64_t lost_victims = 0;   // that wait here, where SGLang would have lost them
  std::int64_t stage_busy_ns = 0;  // of all pipeline stages; 0 with one
  // Speculative decoding: requests in a step with drafts, summed over steps; their drafts; those
  // that were accepted; those of them that a client got.
  std::int64_t verified_steps = 0, draft_tokens = 0, accepted_tokens = 0, used_draft_tokens = 0;
  // Images that steps encoded, and by how much these were longer; those found in the cache.
  std::int64_t encoded_images = 0, encode_ns = 0, image_hits = 0;
  // Requests, KV blocks and nodes that a scheduler looked at one by one, where these take most of a
  // run's own time: by it whoever rations that time knows what a run takes.
  std::int64_t walked = 0;
};

// What the tiers behind the GPU's KV cache did: host memory, then disk.
inline constexpr std::size_t kKvTiers = 2;
struct KvTierReport {
  std::int64_t blocks = 0;                      // capacity
  std::int64_t hit_tokens = 0, hit_blocks = 0;  // found by first admissions, beyond the GPU's hit
  std::int64_t loaded_blocks = 0;               // by all admissions
};
struct KvOffloadReport {
  static constexpr std::array<std::string_view, kKvTiers> kNames = {"cpu", "disk"};
  bool on = false;
  std::array<KvTierReport, kKvTiers> tiers;
  std::int64_t offloaded_blocks = 0;
  std::int64_t thrashed_blocks = 0;  // loaded within 1 ms of being offloaded
  std::int64_t transfer_ns = 0;      // by which steps were longer
};

// Mean times of completed requests by where they went (TimeSplit in workload/request_table.h says
// what the parts are), ms: of all their time, and of that before the first token.
struct TimeSplitReport {
  static constexpr std::size_t kParts = 8;
  static constexpr std::array<std::string_view, kParts> kNames = {
      "host", "queue", "prefill", "decode", "interference", "preempted", "transfer", "handover"};
  bool on = false;  // by vLLM's rules only
  std::int64_t n = 0;
  std::array<double, kParts> ttft_ms{}, e2e_ms{};
};

// What arrived at other replicas by the end.
struct TransferReport {
  bool on = false;
  std::int64_t transfers = 0, bytes = 0;
  double mean_ms = 0, p99_ms = 0;  // of the time on the link
};

// KV between prefill and decode replicas.
struct KvTransferReport : TransferReport {
  bool first_token_from_decode = false;
};

// Of prompts with images; counts are in SchedulerCounts.
struct ImageReport {
  bool on = false;
  std::int64_t tokens = 0;        // of an image
  double encode_share = 0;        // of the time of all steps
  std::optional<double> ttft_ms;  // of the mean, by which encoding made steps longer
  TransferReport embeddings;      // from replicas that encode for the others
};

// The figures of a report for the clients of one class.
struct ClassReport {
  std::string name;
  std::int64_t arrived = 0, completed = 0, dropped = 0, timed_out = 0, rejected = 0;
  std::optional<std::int64_t> deadline_misses;  // none: it has no deadline
  Distribution ttft_ms, tpot_ms, e2e_ms;
  std::optional<Counted> counted;  // of an experiment
  double requests_per_s = 0, output_tokens_per_s = 0, goodput_per_s = 0;
  std::optional<double> attainment;    // none: it has no target
  std::optional<double> served_share;  // of the service that it asked for; see docs/model.md
};

// Power by the GPUs' laws (metrics/power.h), of all GPUs unless said otherwise.
struct PowerReport {
  double mean_w = 0, peak_w = 0;  // of a GPU: over the run; in the heaviest interval of the series
  double serving_w = 0;           // of a GPU, while its steps run
  double kwh_per_hour = 0;
  double energy_j = 0;  // of the run
  // Of set-ups that the law was not fitted to nine of ten were within; none: not known.
  std::optional<double> mean_w_low, mean_w_high, j_per_output_token_low, j_per_output_token_high;
  // With hosts and cooling, where either is stated; its price ($) and its CO2 equivalent (kg).
  std::optional<double> site_kwh_per_hour, electricity_per_hour, co2_kg_per_hour;
  std::optional<double> j_per_output_token, j_per_request;  // none: none were made, or completed
};

// One of several pools; shares and usage are of all its replicas.
struct PoolReport {
  std::string name, gpu;
  PoolRole role = PoolRole::kMixed;
  std::int64_t replicas = 0, tensor_parallel = 0, stages = 1, gpus = 0;
  double mean_replicas = 0;   // over the run, where they come and go
  std::int64_t requests = 0;  // that it served, wholly or in part
  std::int64_t steps = 0, output_tokens = 0, preemptions = 0;
  std::int64_t kv_tokens = 0;  // that the KV blocks of a replica hold
  double busy_share = 0, blocked_share = 0, compute_share = 0;
  double kv_mean_usage = 0, kv_peak_usage = 0, mfu = 0, bandwidth_use = 0;
  double kv_mean_fragmentation = 0, kv_peak_fragmentation = 0;
  std::int64_t allocation_failures = 0;
  std::optional<double> cost_per_hour;  // of its mean GPUs; none: its GPU has no price
  std::optional<PowerReport> power;     // none: not known of its GPU
};

// One of several replicas.
struct ReplicaReport {
  std::int64_t requests = 0;            // placed on it
  double busy_share = 0;                // of the run's time: some step ran
  double mean_outstanding = 0;          // requests placed on it that had not ended, over time
  std::optional<double> kv_peak_usage;  // none: it runs encoders alone
  std::optional<double> ttft_mean_ms;   // none: no request of it got its first token
};

// Replicas that failed and came back, or were cut off as they drained; those up over time are in
// ScalingReport.
struct FailureReport {
  bool on = false;
  std::int64_t failures = 0;
  double availability = 1;  // share of the replicas' time that they were up
  double down_s = 0;        // the rest of it
  std::int64_t lost = 0;    // requests that ended so; with retries, whose last attempt did
  std::int64_t lost_attempts = 0;
  std::int64_t tokens_lost = 0;  // output tokens of lost attempts, which clients had
};

// Replicas that were slow for a while.
struct SlowReport {
  bool on = false;
  std::int64_t periods = 0;
  double slow_s = 0;          // replicas' time in them, whether they were up or not
  std::int64_t requests = 0;  // answered ones that were on a replica in one
  double share = 0;           // of all answered ones
  double tail_share = 0;      // of the 1 % of them that took longest
};

// Replicas that came and went. GPU time counts from the begin of a cold start to the end of a
// drain.
struct ScalingReport {
  bool on = false;
  double cold_start_s = 0, weights_s = 0;  // a whole cold start; its part that loads weights
  std::int64_t starts = 0, stops = 0;      // decided by the scaler, or of the rolling update
  std::optional<double> rolling_update_s;  // until all replicas were new ones that are up
  std::int64_t peak_up = 0;                // most replicas up at one time
  double mean_up = 0;                      // over the run
  double mean_replicas = 0;                // likewise: starting, up or draining
  double replica_s = 0;                    // of these, summed
  double mean_gpus = 0, gpu_hours = 0;     // of these
  std::optional<double> cost;              // of gpu_hours; none: the GPU has no price
  // Replicas in each state from a time on.
  struct Step {
    double at_s = 0;
    std::int64_t starting = 0, up = 0, draining = 0;
  };
  std::vector<Step> steps;  // also where replicas fail; those that restart are starting
  FailureReport failures;
  SlowReport slow;
  // Warm replicas beside the scaler's own, which are in mean_gpus and what follows it alone.
  bool has_warm = false;
  std::int64_t wakes = 0;  // of `starts`
  double mean_asleep = 0;  // over the run
  double warm_s = 0;       // of them, as far as their GPUs count
  // Of each of several pools: this is their sum, with the longest of their starts.
  std::vector<ScalingReport> pools;
};

// Clients that try again: attempts are what servers see, requests what clients asked for.
struct RetryReport {
  bool on = false;
  std::int64_t requests = 0, attempts = 0;  // that have arrived
  double amplification = 1;                 // attempts / requests
  std::int64_t retried = 0;                 // requests with more than one attempt
  std::int64_t given_up = 0;                // whose last attempt failed
  std::int64_t over_budget = 0;             // of them for want of a budget; hedges not sent
  std::int64_t tokens_lost = 0;             // output tokens of attempts that failed
  bool hedges = false;                      // second attempts are hedges
  std::int64_t hedges_won = 0;              // whose second attempt was the first to answer
};

// What is known of how far step times are off. Calibrated: constants were fitted to such servers;
// compared: they were measured, and nothing was fitted to them; known bad: measured, and far off.
enum class EvidenceClass { kCalibrated, kCompared, kUntested, kKnownBad };
inline constexpr std::array<std::string_view, 4> kEvidenceNames = {"calibrated", "compared",
                                                                   "untested", "known_bad"};
struct Evidence {
  EvidenceClass of = EvidenceClass::kUntested;
  // |predicted - measured| / measured by figure ("tpot", "e2e", "ttft", "ttft_p99"), the one to go
  // by first; of runs that were left out of the fit where `left_out`.
  struct Error {
    std::string_view figure;
    double median = 0;
    std::optional<double> p90;
  };
  std::vector<Error> errors;
  std::int64_t rows = 0;  // measured runs that errors are of; 0: none like this
  bool left_out = false;
  std::string sentence;  // one or more whole ones
  std::string bad;       // of kKnownBad: "TPOT of 3 multi-turn runs on this GPU was 68 % too short"
  std::vector<std::string> warnings;  // whole sentences: what it rests on that nobody measured
};

struct LatencyLabel {
  std::string backend, provenance, description, known_error;
  Evidence evidence = {};
};

// A figure beside the bound that no run can be beyond, or the law that all must follow.
struct SanityCheck {
  std::string_view name, unit, help;
  double simulated = 0, bound = 0;
  bool ok = false;
};

// A word that the page, the command and the documents share.
struct Definition {
  std::string_view name, title, text;
};
const std::vector<Definition>& Definitions();

struct Column {
  std::string_view name, unit, kind, help;  // kind: "request", "series" or "cdf"
};

// Every column that a report has, in order: the dictionary of page, command and files.
const std::vector<Column>& Columns();
// Those of a file with a row per step, which only the command writes; kind "batch".
const std::vector<Column>& BatchColumns();

// What a report has: counts and shares of the whole run alone, all but its requests, or the columns
// with a value per request (190 bytes each) too.
enum class ReportDetail { kTotals, kSummary, kRequests };

// Of one run; or of an experiment, whose distributions over requests (with their columns of kind
// "cdf"), rates, attainment, cost and targets are pooled over the counted time of its runs, here
// and in `classes`. All other figures are those of its first run alone, from beginning to end:
// counts, waits between tokens and steps, shares of time, use of KV blocks and peaks, columns of
// requests and over time. Their JSON is in the member "first_run".
struct Report {
  std::string name;
  bool finished = false;
  std::uint64_t scenario_id = 0;
  std::uint64_t fingerprint = 0;

  // arrived = completed + queued + running + dropped + timed_out + rejected +
  // scaling.failures.lost.
  std::int64_t arrived = 0, completed = 0, queued = 0, running = 0, dropped = 0, timed_out = 0,
               rejected = 0;
  // They will never be complete.
  std::int64_t Lost() const { return dropped + timed_out + rejected + scaling.failures.lost; }
  std::int64_t length_capped = 0;  // of the completed
  FinishReasons finish_reasons;
  std::int64_t preemptions = 0;
  std::int64_t prompt_tokens = 0;  // of the completed
  std::int64_t output_tokens = 0;  // made by the engine so far

  Distribution ttft_ms, itl_ms, tpot_ms, e2e_ms, scheduling_delay_ms;
  Distribution step_delay_ms;  // between two steps of a request, over all such pairs
  double requests_per_s = 0, output_tokens_per_s = 0, output_tokens_per_s_per_gpu = 0;
  double goodput_per_s = 0;
  std::optional<double> attainment;
  std::optional<double> fairness;            // Jain's index over the classes' served shares
  std::optional<double> mfu, bandwidth_use;  // of the peaks; by vLLM's rules only
  std::optional<double> cost_per_million_output_tokens;
  // None: not known of some GPU, by BLIS's rules, or where replicas come and go.
  std::optional<PowerReport> power;
  std::int64_t gpus = 1;
  // Pipeline stages, of the pool that has most of them, and the share of the time with batches in
  // flight that they were idle.
  std::int64_t stages = 1;
  double bubble_share = 0;
  double simulated_s = 0;
  std::int64_t steps = 0;

  std::optional<Counted> counted;  // of the pooled figures; none: all are of one run

  Verdict verdict;
  std::string few_samples;  // the end of its note that is of a single run only
  std::vector<SloResult> slo;
  std::optional<Certainty> certainty;  // none: of one run, as it is
  std::optional<Overload> overload;
  std::optional<Unfit> unfit;  // all that is known, but name and verdict
  std::vector<SanityCheck> sanity;
  TimeSplitReport time_split;
  ImageReport images;
  std::vector<ClassReport> classes;
  std::vector<PoolReport> pools;  // empty where there is one
  KvTransferReport kv_transfer;
  std::vector<ReplicaReport> replicas;  // empty where there is one
  ScalingReport scaling;
  RetryReport retries;
  Saturation saturation;
  BindingConstraint binding;
  MemoryReport memory;
  PrefixCacheReport prefix_cache;
  SchedulerCounts counts;
  double gc_ms = 0;  // in all
  // Requests that wait or run, over time, as the replicas count them; the same as the rate of
  // requests times their mean time there, by the requests' own records; none where these do not
  // say.
  double mean_in_system = 0;
  std::optional<double> rate_times_time;
  double mean_batch_size = 0;  // requests in the running list, while a step runs
  KvOffloadReport kv_offload;
  std::int64_t kv_blocks = 0, kv_block_size = 0, kv_tokens = 0;
  double kv_mean_usage = 0, kv_peak_usage = 0;
  // Room in used blocks that holds no token, of the whole KV cache.
  double kv_mean_fragmentation = 0, kv_peak_fragmentation = 0;
  std::int64_t allocation_failures = 0;  // KV blocks asked for that were not there
  LatencyLabel latency_model;
  // By which rules of a compat the results differ from those of the default engine; else empty.
  std::vector<std::string_view> departures;
  std::string workload_source;  // "synthetic" or "trace"
  std::string workload_name;
  std::int64_t workload_requests = 0;
  std::string resolved_scenario;  // JSON: presets inlined; runs again as it is

  // Columns()[i] -> data[i]; NaN where a request has no such value.
  std::vector<std::vector<double>> columns;
  // Empty for an unknown name.
  const std::vector<double>& ColumnOf(std::string_view column) const;
};

// The report as JSON, keys as wasm/servecast.d.ts names them. kLine: the summary on one line.
enum class ReportParts { kSummary, kLine, kWithScenario, kWithSeries };
std::string ReportJson(const Report& report, ReportParts parts);

// The request columns as CSV, a row per request; unknown values are empty. Handed to `write` in
// pieces of some lines.
void WriteRequestsCsv(const Report& report, const std::function<void(std::string_view)>& write);
std::string RequestsCsv(const Report& report);

}  // namespace servecast
