// What a report concludes, described once: verdict, targets, certainty, evidence, saturation,
// limit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "io/report_figures.h"
#include "io/report_visit.h"
#include "metrics/words.h"
#include "servecast/error_band.h"
#include "servecast/report.h"

namespace servecast {

template <class Put>
void VisitCertainty(const Report& r, Put& put) {
  static constexpr std::array<const char*, 3> kMethods = {"one_run", "replications", "batch_means"};
  put.ObjectOf(
      "certainty", {"", "What an experiment rests on; absent otherwise."}, r.certainty,
      [&](const Certainty& c) {
        put("method", {"", "", "'one_run' | 'replications' | 'batch_means'"},
            kMethods[static_cast<std::size_t>(c.method)]);
        put("runs", {"", ""}, c.runs);
        put("requests_per_run", {"", ""}, c.requests_per_run);
        put.When(c.batches > 0, "batches", {"", "Of the only run, with batch means."}, c.batches);
        put("confidence", {"", ""}, 0.95);
        put("settled", {"", "Every target's limit lies outside its interval."}, c.settled);
        put("from_s",
            {"s", "Arrivals of the first run that count: after the warm-up, before the drain."},
            c.from_s);
        put("until_s", {"s", ""}, c.until_s);
        put("long_warmup", {"", "Runs are not much longer than their warm-up."}, c.long_warmup);
      });
}

template <class Put>
void VisitUnfit(const Report& r, Put& put) {
  put.ObjectOf(
      "unfit", {"", "GiB per GPU of what does not fit; absent otherwise."}, r.unfit,
      [&](const Unfit& u) {
        put("pool", {"", "\"\" where there is one."}, u.pool);
        put("gpu", {"", ""}, u.gpu);
        put("tensor_parallel", {"", ""}, u.tensor_parallel);
        put("stage", {"", "Of the pipeline, from 0."}, u.stage);
        put("stages", {"", ""}, u.stages);
        put("total_gib", {"GiB", ""}, u.total_gib);
        put("usable_gib", {"GiB", ""}, u.usable_gib);
        put("needed_gib", {"GiB", "Weights, overhead and the least KV cache."}, u.NeededGib());
        put("weights_gib", {"GiB", ""}, u.weights_gib);
        put("overhead_gib", {"GiB", ""}, u.overhead_gib);
        put("kv_gib", {"GiB", ""}, u.kv_gib);
        put.When(u.enough_tensor_parallel.has_value(), "enough_tensor_parallel",
                 {"", "The least that would fit; absent: none up to 64."},
                 u.enough_tensor_parallel.value_or(0));
      });
}

template <class Put>
void VisitOverload(const Report& r, Put& put) {
  put.ObjectOf("overload",
               {"",
                "Requests per second while load was offered, where an experiment finds that not "
                "all is served; 95 %."},
               r.overload, [&](const Overload& o) {
                 put("served_per_s", {"requests/s", ""}, o.served_per_s);
                 put("low", {"requests/s", ""}, o.low);
                 put("high", {"requests/s", ""}, o.high);
                 put("offered_per_s", {"requests/s", ""}, o.offered_per_s);
               });
}

template <class Put>
void VisitSanity(const Report& r, Put& put) {
  put.Array(
      true, "sanity", {"", "", "SanityCheck"}, r.sanity,
      [&](const SanityCheck& check, std::size_t) {
        put("name", {"", "", "'littles_law' | 'roofline' | 'kv' | 'utilisation'"}, check.name);
        put("help", {"", "One sentence."}, check.help);
        put("unit", {"", ""}, check.unit);
        put("simulated", {"", ""}, check.simulated);
        put("bound", {"", ""}, check.bound);
        put("ok", {"", ""}, check.ok);
      });
}

template <class Put>
void VisitEvidence(const Evidence& e, Put& put) {
  put.Object("evidence", {"", "", "Evidence"}, [&] {
    put("class", {"", "", "EvidenceClass"}, kEvidenceNames[static_cast<std::size_t>(e.of)]);
    put("error",
        {"share",
         "|predicted - measured| / measured, the median of the first of `errors`; null: not "
         "known."},
        e.errors.empty() ? std::nullopt : std::optional(e.errors[0].median));
    put("rows", {"", "Measured runs that it is of."}, e.rows);
    put("left_out", {"", "Of runs that no constant was fitted to."}, e.left_out);
    put("sentence", {"", "Whole sentences."}, e.sentence);
    put.Object(
        "errors",
        {"", "By figure: tpot, e2e, ttft, ttft_p99.",
         "Readonly<Record<string, { readonly median: number; readonly p90: number | null }>>"},
        [&] {
          for (const Evidence::Error& error : e.errors) {
            put.Object(error.figure, {"", ""}, [&] {
              put("median", {"share", ""}, error.median);
              put("p90", {"share", ""}, error.p90);
            });
          }
        });
    put.Texts(true, "warnings", {"", "Whole sentences: what it rests on that nobody measured."},
              e.warnings);
  });
}

template <class Put>
void VisitModelError(const Banded* banded, Put& put) {
  static const ModelError kNone;
  const ModelError& e = banded != nullptr ? banded->error : kNone;
  put.ObjectIf(
      banded != nullptr, "model_error",
      {"", "What bands rest on. Of a run with bands, where the forecast's error is known."}, [&] {
        put("bias", {"share", "Servers like this one were slower by so much; below 0: faster."},
            e.bias);
        put("corrected", {"share", "The part of it that bands are moved by."}, e.corrected);
        put("half_width", {"share", "Of the time of a step, at `level`."}, e.half_width);
        put("level", {"", ""}, kBandLevel);
        put("nearness", {"", "Of the nearest measured set-up.", "'near' | 'middle' | 'far'"},
            e.nearness);
        put("sentence", {"", "Whole sentences."}, e.sentence);
      });
}

template <class Put>
void VisitBinding(const Report& r, Scope scope, Put& put) {
  put.Object("binding_constraint", {"", ""}, [&] {
    if (scope.all)
      put("name",
          {"", "",
           "'kv_blocks' | 'seats' | 'token_budget' | 'compute' | 'bandwidth' | "
           "'overhead' | 'link' | 'host' | 'transfer' | 'adapter_seats' | 'router' | "
           "'none'"},
          r.binding.name);
    if (!scope.run) return;
    put("share", {"share", "Of the resource that Report.binding_constraint names."},
        r.binding.share);
    put("busy_share", {"share", "Share of the time that some step ran."}, r.binding.busy_share);
    put.Object("shares",
               {"share", "Share of the time per constraint.", "Readonly<Record<string, number>>"},
               [&] {
                 for (std::size_t i = 0; i < r.binding.shares.size(); ++i) {
                   put(BindingConstraint::kNames[i], {"share", ""}, r.binding.shares[i]);
                 }
               });
  });
}

template <class Put>
void VisitBand(const std::optional<TargetBand>& band, Put& put) {
  put.ObjectOf(
      "band",
      {"",
       "Where it lies with the probability `level`, sampling and the forecast's error "
       "together: ms, or of attainment a share. Of a run with bands."},
      band, [&](const TargetBand& b) {
        put("low", {"", ""}, b.low);
        put("high", {"", "Null: the latency may grow for as long as requests come."}, b.high);
        put("level", {"", ""}, kBandLevel);
        put("probability", {"", "That this target is met."}, b.probability);
        put.Object("model", {"", "Of the forecast's error alone."}, [&] {
          put("low", {"", ""}, b.model_low);
          put("high", {"", ""}, b.model_high);
        });
      });
}

inline const char* MetricKey(SloMetric metric) {
  static constexpr std::array<const char*, 5> kNames = {"ttft", "tpot", "itl", "e2e", "attainment"};
  static_assert(static_cast<std::size_t>(SloMetric::kAttainment) == kNames.size() - 1);
  return kNames[static_cast<std::size_t>(metric)];
}

// `all_runs`: of an experiment, so many; 1 where the value is of one run.
template <class Put>
void VisitTarget(const SloResult& result, const std::optional<TargetBand>& band,
                 std::int64_t all_runs, Put& put) {
  const bool share = result.slo.metric == SloMetric::kAttainment;
  const auto within = [&](const char* key, const std::optional<double>& limit) {
    put.When(share && limit.has_value(), key, {"ms", ""}, limit.value_or(0));
  };
  put("metric", {"", "", "'ttft' | 'tpot' | 'itl' | 'e2e' | 'attainment'"},
      MetricKey(result.slo.metric));
  put("percentile", {"", "Of attainment: the share of the requests, %."}, result.slo.percentile);
  put("limit_ms", {"ms", "Null of attainment."},
      share ? std::optional<double>() : std::optional<double>(result.slo.limit_ms));
  put.When(!result.slo.of_class.empty(), "class", {"", "Whose requests; absent: all."},
           result.slo.of_class);
  put("value_ms", {"ms", "Of an experiment, the percentile of all its runs. Null of attainment."},
      result.value_ms);
  put.When(
      share, "limit_share",
      {"share",
       "Of attainment alone: the share that must be within all its limits, and that which is."},
      result.slo.percentile / 100);
  put.When(share, "share", {"share", ""}, result.share);
  within("ttft_ms", result.slo.ttft_ms);
  within("tpot_ms", result.slo.tpot_ms);
  within("e2e_ms", result.slo.e2e_ms);
  put("margin", {"share", "1 - value / limit; of attainment 1 - share beyond / share that may be."},
      result.margin);
  put("low",
      {"",
       "The 95 % interval, ms, or of attainment a share; null without an experiment, or where "
       "there are too few requests."},
      share ? result.low_share : result.low_ms);
  put("high", {"", ""}, share ? result.high_share : result.high_ms);
  VisitBand(band, put);
  const bool all = result.low_ms || result.low_share || result.unbounded;
  put("runs", {"", "That it is of."}, all ? all_runs : std::int64_t{1});
  put("unbounded", {"", "Grows for as long as requests come: there is no value."},
      result.unbounded);
  put("unserved_share",
      {"share",
       "Requests without a value (dropped, timed out, or still waiting) that count as beyond the "
       "limit."},
      result.unserved_share);
  put("met", {"", ""}, result.met);
}

template <class Put>
void VisitVerdict(const Report& r, const Banded* banded, Put& put) {
  put.Object("verdict", {"", ""}, [&] {
    put("state", {"", "", "VerdictState"}, StateName(r.verdict.state));
    put("sentence",
        {"",
         "\"Meets TTFT p99 <= 800 ms with a margin of 31 %.\" Of an experiment: \"Llama-3.1-8B on "
         "1 x H100 meets both targets at 40 req/s; closest is TPOT p99, 15.3 of 20 ms (14.8 to "
         "16).\""},
        r.verdict.sentence);
    put("limit", {"", "\"The limit is KV memory: 22 % of the time admission waits for blocks.\""},
        r.verdict.limit);
    put("note", {"", "Anything else a reader must know: drops, caps, few samples. May be \"\"."},
        r.verdict.note);
    const bool known = banded != nullptr && banded->probability.has_value();
    put.When(known, "probability",
             {"",
              "That all targets are met, sampling and the forecast's error together. Of a run with "
              "bands, where that error is known."},
             known ? *banded->probability : 0);
  });
}

template <class Put>
void VisitSaturation(const Saturation& s, Put& put) {
  static constexpr std::array<const char*, 3> kStates = {"stable", "near", "overloaded"};
  put.Object("saturation", {"", ""}, [&] {
    put("state", {"", "", "'stable' | 'near' | 'overloaded'"},
        kStates[static_cast<std::size_t>(s.state)]);
    put("evidence", {"", ""}, s.evidence);
    put("queue_slope_per_s",
        {"requests/s", "Growth of the queue over the last half of the arrivals."},
        s.queue_slope_per_s);
    put("queue_slope_t", {"", ""}, s.queue_slope_t);
    put("queue_p95", {"requests", ""}, s.queue_p95);
    put("utilization", {"share", "Of the scarcest of KV blocks, seats, tokens and arithmetic."},
        s.utilization);
    put("filling", {"", "Requests in the system still grew when arrivals ended."}, s.filling);
    put("requests",
        {"",
         "Of the run that was looked at; of an experiment, one as long as those that its verdict "
         "rests on."},
        s.requests);
  });
}

// `banded`: null where the forecast's error is not known.
template <class Put>
void VisitJudgement(const Report& r, const Banded* banded, Scope scope, Put& put) {
  VisitVerdict(r, banded, put);
  put.Array(true, "slo", {"", ""}, r.slo, [&](const SloResult& result, std::size_t i) {
    VisitTarget(result, banded != nullptr ? banded->targets[i] : std::nullopt,
                r.certainty ? r.certainty->runs : 1, put);
  });
  VisitCertainty(r, put);
  VisitCounted(r.counted, put);
  VisitUnfit(r, put);
  VisitOverload(r, put);
  if (scope.run) VisitSanity(r, put);
  VisitSaturation(r.saturation, put);
  VisitBinding(r, scope, put);
}

}  // namespace servecast
