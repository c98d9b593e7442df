// What a report has of memory and of the work of scheduler and caches, described once; and all
// members of a report in the order of its JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/report_figures.h"
#include "io/report_findings.h"
#include "io/report_visit.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

inline std::optional<double> RateOf(std::int64_t hits, std::int64_t queries) {
  if (queries == 0) return std::nullopt;
  return static_cast<double>(hits) / static_cast<double>(queries);
}

// Each pool by its name, "" the only one: a mean over pools would hide who is full.
template <class Put>
void VisitKvOfPools(const Report& r, Scope scope, Put& put) {
  put.Each("pools", {"", "By name, \"\" the only one; null: it runs encoders."},
           std::max<std::size_t>(r.pools.size(), 1), [&](std::size_t i) {
             const PoolReport* const p = r.pools.empty() ? nullptr : &r.pools[i];
             put("name", {"", ""}, p == nullptr ? std::string_view() : p->name);
             if (scope.all) {
               put("tokens", {"tokens", "That the blocks of a replica hold."},
                   p == nullptr ? r.kv_tokens : UnlessEncoders(*p, p->kv_tokens));
             }
             if (!scope.run) return;
             put("mean_usage", {"share", "Over time."},
                 p == nullptr ? r.kv_mean_usage : UnlessEncoders(*p, p->kv_mean_usage));
             put("peak_usage", {"share", "At most."},
                 p == nullptr ? r.kv_peak_usage : UnlessEncoders(*p, p->kv_peak_usage));
           });
}

template <class Put>
void VisitKv(const Report& r, Scope scope, Put& put) {
  put.Object("kv", {"", ""}, [&] {
    if (scope.all) {
      put("blocks", {"blocks", "Of a replica."}, r.kv_blocks);
      put("block_size", {"tokens", ""}, r.kv_block_size);
      put("tokens", {"tokens", ""}, r.kv_tokens);
    }
    if (scope.run) {
      put("mean_usage", {"share", ""}, r.kv_mean_usage);
      put("peak_usage", {"share", ""}, r.kv_peak_usage);
      put("mean_fragmentation",
          {"share",
           "Room in used blocks that holds no token, of the whole KV cache: over time, and at "
           "most."},
          r.kv_mean_fragmentation);
      put("peak_fragmentation", {"share", ""}, r.kv_peak_fragmentation);
      put("allocation_failures",
          {"", "Times that KV blocks were asked for and there were not enough."},
          r.allocation_failures);
    }
    VisitKvOfPools(r, scope, put);
    if (!scope.run) return;
    put("gc_passes", {"", "Garbage collections (an option), and their time in all."},
        r.counts.gc_passes);
    put("gc_ms", {"ms", ""}, r.gc_ms);
  });
}

template <class Put>
void VisitSpeculation(const SchedulerCounts& c, Put& put) {
  put.ObjectIf(
      c.verified_steps > 0, "speculative",
      {"", "Of speculative decoding, where a step verified drafts."}, [&] {
        put("verified_steps", {"", "Requests in steps with drafts of theirs, summed over steps."},
            c.verified_steps);
        put("draft_tokens", {"tokens", ""}, c.draft_tokens);
        put("accepted_tokens", {"tokens", ""}, c.accepted_tokens);
        put("used_draft_tokens",
            {"tokens",
             "Of the accepted, those that a client got: not those beyond a request's end."},
            c.used_draft_tokens);
        put("wasted_draft_tokens", {"tokens", "Drafts that were computed and that no client got."},
            c.draft_tokens - c.used_draft_tokens);
        put("acceptance_rate", {"share", "", "number"}, RateOf(c.accepted_tokens, c.draft_tokens));
        put("acceptance_length",
            {"tokens", "Mean tokens of a request's step with drafts, the model's own included.",
             "number"},
            RateOf(c.accepted_tokens + c.verified_steps, c.verified_steps));
      });
}

template <class Put>
void VisitImages(const Report& r, Put& put) {
  put.ObjectIf(r.images.on, "images", {"", "Of prompts with images."}, [&] {
    put("tokens", {"tokens", "Of an image, in the prompt."}, r.images.tokens);
    put("encoded", {"", "Images that the encoder computed, some again."}, r.counts.encoded_images);
    put("cache_hits", {"", "Images of requests that were found encoded."}, r.counts.image_hits);
    put("encode_share", {"share", "Of the time of all steps, that of encoding."},
        r.images.encode_share);
    put("ttft_ms",
        {"ms",
         "Of mean TTFT, by which encoding images, a request's own or others', made the steps "
         "of its prompt longer; on replicas that encode for the others, from the first such step "
         "of its own to the end of the last; null without completed requests."},
        r.images.ttft_ms);
    put.ObjectIf(r.images.embeddings.on, "embeddings",
                 {"",
                  "That have arrived from replicas that encode images by the end; absent without "
                  "them. Times are those on the link."},
                 [&] { VisitTransfers(r.images.embeddings, put); });
  });
}

template <class Put>
void VisitPrefixCache(const PrefixCacheReport& c, Put& put) {
  put.Object(
      "prefix_cache",
      {"", "Look-ups of prompts, by first admissions; rates are null when nothing was looked up."},
      [&] {
        put("query_tokens", {"tokens", ""}, c.query_tokens);
        put("hit_tokens", {"tokens", ""}, c.hit_tokens);
        put("hit_rate", {"share", "hit_tokens / query_tokens."},
            RateOf(c.hit_tokens, c.query_tokens));
        put("query_blocks", {"blocks", "Full KV blocks of the prompts."}, c.query_blocks);
        put("hit_blocks", {"blocks", ""}, c.hit_blocks);
        put("block_hit_rate", {"share", ""}, RateOf(c.hit_blocks, c.query_blocks));
        put("resumed_hit_tokens",
            {"tokens", "Found by requests that had been preempted; not among the hits above."},
            c.resumed_hit_tokens);
        put("evicted_blocks", {"blocks", "Cached blocks whose content was overwritten."},
            c.evicted_blocks);
      });
}

template <class Put>
void VisitOffload(const Report& r, Put& put) {
  const KvOffloadReport& o = r.kv_offload;
  put.ObjectIf(o.on, "kv_offload", {"", "Absent without tiers behind the GPU's KV cache."}, [&] {
    for (std::size_t i = 0; i < kKvTiers; ++i) {
      const KvTierReport& tier = o.tiers[i];
      put.ObjectIf(
          tier.blocks != 0, KvOffloadReport::kNames[i],
          {"", "Absent without room for a block.", "KvTier"}, [&] {
            put("blocks", {"blocks", "Capacity."}, tier.blocks);
            put("hit_tokens", {"tokens", ""}, tier.hit_tokens);
            put("hit_rate", {"share", ""}, RateOf(tier.hit_tokens, r.prefix_cache.query_tokens));
            put("hit_blocks", {"blocks", ""}, tier.hit_blocks);
            put("block_hit_rate", {"share", ""},
                RateOf(tier.hit_blocks, r.prefix_cache.query_blocks));
            put("loaded_blocks", {"blocks", "By all admissions."}, tier.loaded_blocks);
          });
    }
    put("offloaded_blocks", {"blocks", ""}, o.offloaded_blocks);
    put("thrashed_blocks", {"blocks", "Loaded within 1 ms of being offloaded."}, o.thrashed_blocks);
    put("transfer_s", {"s", "By which steps were longer."},
        static_cast<double>(o.transfer_ns) / 1e9);
  });
}

// What the scheduler and the caches did.
template <class Put>
void VisitWork(const Report& r, Put& put) {
  put.When(r.counts.lost_victims > 0, "sglang_would_lose",
           {"",
            "Preempted requests that wait here, where SGLang 0.5.16 would have lost them; absent: "
            "none."},
           r.counts.lost_victims);
  put.Object("padding",
             {"",
              "Of prefills: tokens computed, and how many more if each were as long as the longest "
              "of its step and bucket."},
             [&] {
               put("prefill_tokens", {"tokens", ""}, r.counts.prefill_tokens);
               put("padding_tokens", {"tokens", ""}, r.counts.padding_tokens);
             });
  VisitSpeculation(r.counts, put);
  VisitImages(r, put);
  VisitPrefixCache(r.prefix_cache, put);
  VisitOffload(r, put);
}

template <class Put>
void VisitMemory(const Report& r, Scope scope, Put& put) {
  put.ObjectIf(r.stages > 1, "pipeline", {"", "Absent with one pipeline stage."}, [&] {
    if (scope.all) put("stages", {"", ""}, r.stages);
    if (scope.run) {
      put("bubble_share", {"share", "Of the stages' time while batches were in flight: idle."},
          r.bubble_share);
    }
  });
  put.Object("memory", {"", "Of a GPU."}, [&] {
    if (scope.all) {
      put("total_gib", {"GiB", ""}, r.memory.total_gib);
      put("usable_gib", {"GiB", ""}, r.memory.usable_gib);
      put("weights_gib", {"GiB", ""}, r.memory.weights_gib);
      put("overhead_gib", {"GiB", ""}, r.memory.overhead_gib);
      put("kv_gib", {"GiB", ""}, r.memory.kv_gib);
    }
    if (scope.run) {
      put("mean_usage", {"share", "Weights, overhead and used KV blocks, of the total, over time."},
          r.memory.mean_usage);
    }
  });
}

template <class Put>
void VisitSetting(const Report& r, Scope scope, Put& put) {
  VisitKv(r, scope, put);
  if (scope.run) VisitWork(r, put);
  VisitMemory(r, scope, put);
  put.Texts(!r.departures.empty(), "departures",
            {"",
             "Where results are by rules other than the default engine's, or not by those of the "
             "engine that is simulated."},
            r.departures);
  put.Object("latency_model", {"", ""}, [&] {
    put("backend", {"", ""}, r.latency_model.backend);
    put("provenance",
        {"", "Where its numbers come from.",
         "'measured' | 'interpolated' | 'extrapolated' | 'datasheet' | 'coefficients'"},
        r.latency_model.provenance);
    put("description", {"", ""}, r.latency_model.description);
    put("known_error",
        {"", "Whole sentences: how far it was off on servers, or that this is unknown."},
        r.latency_model.known_error);
  });
  VisitEvidence(r.latency_model.evidence, put);
  put.Object("workload", {"", ""}, [&] {
    put("source", {"", "", "'synthetic' | 'trace'"}, r.workload_source);
    put("name", {"", ""}, r.workload_name);
    put("requests", {"", ""}, r.workload_requests);
  });
}

// All but what is of the first run alone, series and the scenario.
template <class Put>
void VisitReport(const Report& r, const Banded* banded, Scope scope, Put& put) {
  put("schema", {"", ""}, std::int64_t{kScenarioSchema});
  put("engine_version", {"", ""}, kEngineVersion);
  put("name", {"", ""}, r.name);
  put("scenario_id", {"", ""}, HashText(r.scenario_id));
  put("fingerprint", {"", ""}, HashText(r.fingerprint));
  put("finished", {"", ""}, r.finished);
  VisitFigures(r, scope, put);
  VisitJudgement(r, banded, scope, put);
  VisitSetting(r, scope, put);
  VisitModelError(banded, put);
}

// Figures of the first run of an experiment.
template <class Put>
void VisitFirstRun(const Report& r, Put& put) {
  const Scope first{.all = false, .run = true};
  VisitFigures(r, first, put);
  VisitSanity(r, put);
  VisitBinding(r, first, put);
  VisitKv(r, first, put);
  VisitWork(r, put);
  VisitMemory(r, first, put);
}

}  // namespace servecast
