// The figures of a report, described once: counts, latencies, rates, classes, pools and replicas.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/report_visit.h"
#include "servecast/report.h"

namespace servecast {

template <class Put>
void VisitDistribution(std::string_view key, typename Put::About about, const Distribution& d,
                       Put& put) {
  put.Object(key, about, [&] {
    const auto statistic = [&](std::string_view name, double value) {
      put(name, {"ms", ""}, d.n > 0 ? std::optional<double>(value) : std::nullopt);
    };
    put("n", {"", "Samples."}, d.n);
    put("runs",
        {"",
         "Runs that the samples are of; of an experiment, those that arrived between warm-up and "
         "drain of each."},
        d.runs);
    statistic("mean", d.mean);
    statistic("min", d.min);
    statistic("p50", d.p50);
    statistic("p90", d.p90);
    statistic("p95", d.p95);
    statistic("p99", d.p99);
    statistic("max", d.max);
    put("p99_low",
        {"ms",
         "95 % confidence interval of p99. Of several runs that of the target of this percentile, "
         "null without one; of one run, if the samples were independent, which they are not quite: "
         "null below 368 requests and for ITL."},
        d.p99_low);
    put("p99_high", {"ms", ""}, d.p99_high);
    put("exact", {"", "False when taken from log buckets of relative width 2^-10."}, d.exact);
    put("censored", {"", "Requests without a value because the run ended (or was stopped) first."},
        d.censored);
  });
}

template <class Put>
void VisitCounted(const std::optional<Counted>& counted, Put& put) {
  put.ObjectOf(
      "counted", {"", "Of the pooled figures; absent where all are of one run.", "Counted"},
      counted, [&](const Counted& c) {
        put("runs", {"", ""}, c.runs);
        put("requests",
            {"",
             "That distributions and attainment are of: they arrived between warm-up and "
             "drain."},
            c.requests);
        put("seconds",
            {"s",
             "From the warm-up to the last arrival, or the end of the run where most "
             "answers come later and no client thinks; of an overload, while load was "
             "offered. Of all runs together."},
            c.seconds);
        put("completed", {"", "In these seconds."}, c.completed);
        put("lost",
            {"", "Dropped, rejected, timed out or lost, of those that arrived in these seconds."},
            c.lost);
        put("output_tokens", {"tokens", "Of the completed."}, c.output_tokens);
      });
}

template <class Put>
void VisitCounts(const Report& r, Put& put) {
  put("arrived", {"", ""}, r.arrived);
  put("completed", {"", ""}, r.completed);
  put("queued", {"", ""}, r.queued);
  put("running", {"", ""}, r.running);
  put("dropped", {"", ""}, r.dropped);
  put("timed_out", {"", ""}, r.timed_out);
  put("rejected", {"", ""}, r.rejected);
  put("length_capped", {"", "Of the completed."}, r.length_capped);
  put("preemptions", {"", ""}, r.preemptions);
  put.Object("finish_reasons",
             {"",
              "Of the arrived requests, to which they add up; length: cut at the longest sequence "
              "that the engine serves."},
             [&] {
               for (std::size_t i = 0; i < FinishReasons::kNames.size(); ++i) {
                 put(FinishReasons::kNames[i], {"", ""}, r.finish_reasons.requests[i]);
               }
             });
}

template <class Put>
void VisitLatencies(const Report& r, Scope scope, Put& put) {
  const auto times = [&](std::string_view key, typename Put::About about, const Distribution& d) {
    VisitDistribution(key, about, d, put);
  };
  if (scope.all) times("ttft_ms", {"", "", "Distribution"}, r.ttft_ms);
  if (scope.run) times("itl_ms", {"", "", "Distribution"}, r.itl_ms);
  if (scope.all) {
    times("tpot_ms", {"", "", "Distribution"}, r.tpot_ms);
    times("e2e_ms", {"", "", "Distribution"}, r.e2e_ms);
    times("scheduling_delay_ms", {"", "", "Distribution"}, r.scheduling_delay_ms);
  }
  if (scope.run) {
    times("step_delay_ms",
          {"", "From the end of a request's step to the start of its next, over all such pairs.",
           "Distribution"},
          r.step_delay_ms);
  }
}

template <class Put>
void VisitRates(const Report& r, Scope scope, Put& put) {
  if (scope.all) {
    put("output_tokens_per_s", {"tokens/s", "Of completed requests."}, r.output_tokens_per_s);
    put("output_tokens_per_s_per_gpu", {"tokens/s", ""}, r.output_tokens_per_s_per_gpu);
    put("requests_per_s", {"requests/s", "Completed."}, r.requests_per_s);
    put("goodput_per_s", {"requests/s", "Completed requests that met every SLO limit, per second."},
        r.goodput_per_s);
    put("attainment",
        {"share",
         "Share of all arrived requests that met every limit (unfinished, dropped and timed-out "
         "ones are misses); null without SLO."},
        r.attainment);
  }
  if (scope.run) {
    put("fairness",
        {"", "Jain's index over the classes' served shares, 1/n to 1; null with fewer than two."},
        r.fairness);
    put("prompt_tokens", {"tokens", "Of the completed."}, r.prompt_tokens);
    put("output_tokens", {"tokens", "Made so far."}, r.output_tokens);
  }
  if (scope.all) {
    put("gpus", {"", ""}, r.gpus);
    put("cost_per_million_output_tokens",
        {"$", "$ per million output tokens; null without a price."},
        r.cost_per_million_output_tokens);
  }
}

template <class Put>
void VisitPower(const std::optional<PowerReport>& power, typename Put::About about, Put& put) {
  put.ObjectOf("power", about, power, [&](const PowerReport& p) {
    const auto known = [&](const char* name, typename Put::About of,
                           const std::optional<double>& value) {
      put.When(value.has_value(), name, of, value.value_or(0));
    };
    put("mean_w", {"W", "Of a GPU, over the run."}, p.mean_w);
    put("serving_w", {"W", "Of a GPU, while its steps run."}, p.serving_w);
    put("peak_w", {"W", "Of a GPU, in the heaviest interval of the series."}, p.peak_w);
    put("j_per_output_token", {"J", "Of all GPUs; null without output tokens."},
        p.j_per_output_token);
    put("j_per_request", {"J", "Of all GPUs; null without completed requests, and of a pool."},
        p.j_per_request);
    put("kwh_per_hour", {"kWh", "Of all GPUs."}, p.kwh_per_hour);
    known(
        "mean_w_low",
        {"W", "90 % of the set-ups that the law was not fitted to were within; absent: not known."},
        p.mean_w_low);
    known("mean_w_high", {"W", ""}, p.mean_w_high);
    known("j_per_output_token_low", {"J", ""}, p.j_per_output_token_low);
    known("j_per_output_token_high", {"J", ""}, p.j_per_output_token_high);
    known("site_kwh_per_hour",
          {"kWh",
           "With hosts and cooling; absent where hardware.host_w and hardware.pue add nothing."},
          p.site_kwh_per_hour);
    known("electricity_per_hour",
          {"$", "$ for what the site draws; absent without hardware.price_per_kwh."},
          p.electricity_per_hour);
    known("co2_kg_per_hour",
          {"kg", "CO2 equivalent of what the site draws; absent without hardware.co2_g_per_kwh."},
          p.co2_kg_per_hour);
  });
}

template <class Put>
void VisitTimeParts(std::string_view key, const std::array<double, TimeSplitReport::kParts>& of,
                    Put& put) {
  put.Object(key, {"", "", "TimeParts"}, [&] {
    // In the order of TimeSplitReport::kNames.
    put("host", {"ms", "Before the queue, and of output tokens on the way to the client."}, of[0]);
    put("queue", {"ms", ""}, of[1]);
    put("prefill", {"ms", ""}, of[2]);
    put("decode", {"ms", ""}, of[3]);
    put("interference", {"ms", "By which prefills made the steps of decodes longer."}, of[4]);
    put("preempted", {"ms", "From preemptions to the next steps."}, of[5]);
    put("transfer",
        {"ms",
         "By which loads from slower KV tiers made steps longer; or of KV from prefill to decode "
         "replicas, and of embeddings from those that encode images."},
        of[6]);
    put("handover", {"ms", "From prefill to decode on another replica, without the transfer."},
        of[7]);
  });
}

template <class Put>
void VisitUse(const Report& r, Put& put) {
  put("simulated_s", {"s", ""}, r.simulated_s);
  put("steps", {"", ""}, r.steps);
  put("mean_in_system", {"", "Requests that wait or run, over time."}, r.mean_in_system);
  put("mean_batch_size", {"", "Requests that run, while a step runs."}, r.mean_batch_size);
  put("mfu",
      {"share",
       "FLOPs that the steps need, of the GPU's peak over the run; null with engine.compat."},
      r.mfu);
  put("bandwidth_use",
      {"share",
       "Bytes that the steps need, of the GPU's peak over the run; null with engine.compat."},
      r.bandwidth_use);
  VisitPower(
      r.power,
      {"", "Absent where the power of some GPU is not known, and with engine.compat \"blis\".",
       "Power"},
      put);
  put.ObjectIf(
      r.time_split.on, "time_split",
      {"", "Parts add up to the mean E2E, and TTFT, of the completed; absent with engine.compat."},
      [&] {
        put("n", {"", ""}, r.time_split.n);
        VisitTimeParts("ttft_ms", r.time_split.ttft_ms, put);
        VisitTimeParts("e2e_ms", r.time_split.e2e_ms, put);
      });
}

template <class Put>
void VisitClass(const ClassReport& c, Scope scope, Put& put) {
  put("name", {"", ""}, c.name);
  if (scope.run) {
    put("arrived", {"", ""}, c.arrived);
    put("completed", {"", ""}, c.completed);
    put("dropped", {"", ""}, c.dropped);
    put("timed_out", {"", ""}, c.timed_out);
    put("rejected", {"", ""}, c.rejected);
    put("deadline_misses", {"", "First tokens after the class's deadline; null when it has none."},
        c.deadline_misses);
  }
  if (scope.all) {
    VisitDistribution("ttft_ms", {"", "", "Distribution"}, c.ttft_ms, put);
    VisitDistribution("tpot_ms", {"", "", "Distribution"}, c.tpot_ms, put);
    VisitDistribution("e2e_ms", {"", "", "Distribution"}, c.e2e_ms, put);
    VisitCounted(c.counted, put);
    put("requests_per_s", {"requests/s", ""}, c.requests_per_s);
    put("output_tokens_per_s", {"tokens/s", "Of completed requests."}, c.output_tokens_per_s);
    put("goodput_per_s", {"requests/s", ""}, c.goodput_per_s);
    put("attainment", {"share", "Null without a target that is the class's, or that of all."},
        c.attainment);
  }
  if (scope.run) {
    put("served_share",
        {"share",
         "Of the service that it asked for while load was offered; null when it asked for none."},
        c.served_share);
  }
}

// Of replicas that come and go: of all pools, or of one of several.
template <class Put>
void VisitLives(const ScalingReport& s, bool of_all, Put& put) {
  using Step = ScalingReport::Step;
  put("cold_start_s", {"s", of_all ? "Of several pools the longest." : ""}, s.cold_start_s);
  put("weights_s", {"s", "The part of a cold start that loads the weights."}, s.weights_s);
  if (of_all) {
    put("rolling_update_s",
        {"s", "Until all replicas were new ones that serve; null: no update, or not by the end."},
        s.rolling_update_s);
  }
  put("starts", {"", "Decided by the scaler, or of the rolling update."}, s.starts);
  put("stops", {"", ""}, s.stops);
  put("peak_up", {"", "Most replicas up at one time."}, s.peak_up);
  put("mean_up", {"", "On average over the run."}, s.mean_up);
  put("mean_replicas", {"", "On average over the run: starting, up or draining."}, s.mean_replicas);
  put("mean_gpus", {"", "Of these."}, s.mean_gpus);
  put("gpu_hours", {"", ""}, s.gpu_hours);
  put("cost", {"$", "Of gpu_hours, in US dollars; null: the GPU has no price."}, s.cost);
  put.List("at_s", {"s", "Replicas in each state from a time on."}, s.steps,
           [](const Step& step) { return step.at_s; });
  put.List("starting", {"", ""}, s.steps, [](const Step& step) { return step.starting; });
  put.List("up", {"", ""}, s.steps, [](const Step& step) { return step.up; });
  put.List("draining", {"", ""}, s.steps, [](const Step& step) { return step.draining; });
}

// A figure of KV memory or of the language model's work, null of a pool that runs encoders alone.
template <class T>
std::optional<T> UnlessEncoders(const PoolReport& p, T figure) {
  return p.role == PoolRole::kEncode ? std::nullopt : std::optional<T>(figure);
}

template <class Put>
void VisitPool(const PoolReport& p, const ScalingReport* scaling, Scope scope, Put& put) {
  put("name", {"", ""}, p.name);
  if (scope.all) {
    put("role", {"", "", "'mixed' | 'prefill' | 'decode' | 'encode'"}, RoleName(p.role));
    put("gpu", {"", ""}, p.gpu);
    put("replicas", {"", ""}, p.replicas);
    put("tensor_parallel", {"", ""}, p.tensor_parallel);
    put("pipeline_parallel", {"", ""}, p.stages);
    put("gpus", {"", ""}, p.gpus);
  }
  if (scope.run) {
    put("requests", {"", "That it served, wholly or in part."}, p.requests);
    put("steps", {"", ""}, p.steps);
    put("output_tokens", {"tokens", ""}, p.output_tokens);
    put("preemptions", {"", ""}, p.preemptions);
  }
  if (scope.all) {
    put("kv_tokens",
        {"tokens", "That the KV blocks of a replica hold; null, as all of KV: it runs encoders."},
        UnlessEncoders(p, p.kv_tokens));
  }
  if (scope.run) {
    put("kv_mean_usage", {"share", ""}, UnlessEncoders(p, p.kv_mean_usage));
    put("kv_peak_usage", {"share", ""}, UnlessEncoders(p, p.kv_peak_usage));
    put("kv_mean_fragmentation", {"share", ""}, UnlessEncoders(p, p.kv_mean_fragmentation));
    put("kv_peak_fragmentation", {"share", ""}, UnlessEncoders(p, p.kv_peak_fragmentation));
    put("allocation_failures", {"", ""}, p.allocation_failures);
    put("busy_share", {"share", "Of the time: some step ran."}, p.busy_share);
    put("blocked_share",
        {"share", "Of the time in which admission waited for blocks, seats or tokens."},
        p.blocked_share);
    put("mfu", {"share", "As that of all; null: it runs encoders."}, UnlessEncoders(p, p.mfu));
    put("bandwidth_use", {"share", ""}, UnlessEncoders(p, p.bandwidth_use));
  }
  if (scope.all) {
    put("cost_per_hour", {"$", "$, of its mean GPUs; null: its GPU has no price."},
        p.cost_per_hour);
  }
  if (scope.run) {
    VisitPower(
        p.power,
        {"", "Of its GPUs and tokens; absent where the power of its GPU is not known.", "Power"},
        put);
    put.ObjectIf(scaling != nullptr, "scaling",
                 {"", "Absent where no pool's replicas come and go.", "PoolScaling"},
                 [&] { VisitLives(*scaling, false, put); });
  }
}

template <class Put>
void VisitTransfers(const TransferReport& t, Put& put) {
  put("transfers", {"", ""}, t.transfers);
  put("bytes", {"bytes", ""}, t.bytes);
  put("mean_ms", {"ms", ""}, t.mean_ms);
  put("p99_ms", {"ms", ""}, t.p99_ms);
}

template <class Put>
void VisitPools(const Report& r, Scope scope, Put& put) {
  put.Array(!r.pools.empty(), "pools",
            scope.all ? typename Put::About{"",
                                            "Absent where there is one; memory and kv.blocks are "
                                            "then the first one's.",
                                            "PoolReport"}
                      : typename Put::About{"", "Absent where there is one.", "PoolRun"},
            r.pools, [&](const PoolReport& p, std::size_t i) {
              const auto& scaling = r.scaling.pools;
              VisitPool(p, i < scaling.size() ? &scaling[i] : nullptr, scope, put);
            });
  if (!scope.run) return;
  const KvTransferReport& t = r.kv_transfer;
  put.ObjectIf(!r.pools.empty() && t.on, "kv_transfer",
               {"",
                "KV that has arrived at decode replicas by the end; absent without them. Times are "
                "those on the link."},
               [&] {
                 put("first_token_from", {"", "", "'prefill' | 'decode'"},
                     t.first_token_from_decode ? "decode" : "prefill");
                 VisitTransfers(t, put);
               });
}

template <class Put>
void VisitReplicas(const Report& r, Put& put) {
  using One = ReplicaReport;
  put.ObjectIf(
      !r.replicas.empty(), "replicas", {"", "Behind a router: each figure by replica."}, [&] {
        put.List("requests", {"", "Placed on it."}, r.replicas,
                 [](const One& one) { return one.requests; });
        put.List("busy_share", {"share", "Of the time: some step ran."}, r.replicas,
                 [](const One& one) { return one.busy_share; });
        put.List("mean_outstanding", {"", "Requests placed on it that had not ended, over time."},
                 r.replicas, [](const One& one) { return one.mean_outstanding; });
        put.List("kv_peak_usage", {"share", ""}, r.replicas,
                 [](const One& one) { return one.kv_peak_usage; });
        put.List("ttft_mean_ms", {"ms", ""}, r.replicas,
                 [](const One& one) { return one.ttft_mean_ms; });
      });
}

template <class Put>
void VisitScaling(const ScalingReport& s, Put& put) {
  put.ObjectIf(s.on, "scaling",
               {"", "Replicas that came and went; absent where their number is fixed."},
               [&] { VisitLives(s, true, put); });
  put.ObjectIf(s.has_warm, "warm_replicas", {"", "Absent where a scaler has none."}, [&] {
    put("wakes", {"", "Starts of the scaler that took one."}, s.wakes);
    put("mean_asleep", {"", "On average over the run."}, s.mean_asleep);
    put("replica_s", {"s", "Of them, as far as they count in scaling.gpu_hours."}, s.warm_s);
  });
}

template <class Put>
void VisitFailures(const ScalingReport& s, Put& put) {
  using Step = ScalingReport::Step;
  const FailureReport& f = s.failures;
  put.ObjectIf(
      f.on, "failures",
      {"", "Replicas that fail, or are cut off as they drain; absent where neither may be."}, [&] {
        put("failures", {"", ""}, f.failures);
        put("availability", {"share", "Of the replicas' time: up."}, f.availability);
        put("down_s", {"s", "The rest of it."}, f.down_s);
        put("lost", {"", "Requests whose last attempt was lost with a replica."}, f.lost);
        put("lost_attempts", {"", ""}, f.lost_attempts);
        put("tokens_lost", {"tokens", "Output tokens that lost attempts had."}, f.tokens_lost);
        put.List("at_s", {"s", "Replicas up from a time on."}, s.steps,
                 [](const Step& step) { return step.at_s; });
        put.List("up", {"", ""}, s.steps, [](const Step& step) { return step.up; });
      });
}

template <class Put>
void VisitSlow(const SlowReport& s, Put& put) {
  put.ObjectIf(s.on, "slowdowns", {"", "Slow replicas; absent where none may be."}, [&] {
    put("periods", {"", ""}, s.periods);
    put("slow_s", {"s", "Of replicas, whether they were up or not."}, s.slow_s);
    put("requests", {"", "Answered ones that were on a slow replica for some time."}, s.requests);
    put("share", {"share", "Of all answered ones."}, s.share);
    put("tail_share", {"share", "Of the 1 % of them that took longest."}, s.tail_share);
  });
}

template <class Put>
void VisitRetries(const RetryReport& r, Put& put) {
  put.ObjectIf(
      r.on, "retries", {"", "Clients that try again or hedge; absent where they do neither."}, [&] {
        put("attempts", {"", "Attempts that have arrived."}, r.attempts);
        put("amplification", {"", "Attempts by request that has arrived."}, r.amplification);
        put("retried", {"", "Requests with more than one attempt."}, r.retried);
        put("given_up", {"", "Requests whose last attempt failed."}, r.given_up);
        put("over_budget", {"", "Of them for want of a budget; hedges count apart."},
            r.hedges ? 0 : r.over_budget);
        put("tokens_lost", {"tokens", "Output tokens of attempts that failed."}, r.tokens_lost);
      });
  put.ObjectIf(r.hedges, "hedges", {"", "Clients that hedge; absent where they do not."}, [&] {
    put("sent", {"", "Second attempts."}, r.attempts - r.requests);
    put("won", {"", "Of them: had the first token."}, r.hedges_won);
    put("over_budget", {"", "Not sent for want of hedge_budget."}, r.over_budget);
    put("tokens_lost", {"tokens", "Output tokens of attempts that were not kept."}, r.tokens_lost);
  });
}

// Counts, latencies, rates and use.
template <class Put>
void VisitFigures(const Report& r, Scope scope, Put& put) {
  if (scope.run) VisitCounts(r, put);
  VisitLatencies(r, scope, put);
  VisitRates(r, scope, put);
  if (scope.run) VisitUse(r, put);
  put.Array(true, "classes",
            scope.all ? typename Put::About{"", "[] without classes.", "ClassReport"}
                      : typename Put::About{"", "", "ClassRun"},
            r.classes, [&](const ClassReport& c, std::size_t) { VisitClass(c, scope, put); });
  VisitPools(r, scope, put);
  if (scope.run) VisitReplicas(r, put);
  if (scope.run) VisitScaling(r.scaling, put);
  if (scope.run) VisitFailures(r.scaling, put);
  if (scope.run) VisitSlow(r.scaling.slow, put);
  if (scope.run) VisitRetries(r.retries, put);
}

}  // namespace servecast
