// A report as JSON, keys as wasm/servecast.d.ts names them.
#include <cmath>

#include "io/json_writer.h"
#include "metrics/words.h"
#include "servecast/error_band.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

const char* Name(SaturationState state) {
  switch (state) {
    case SaturationState::kStable:
      return "stable";
    case SaturationState::kNear:
      return "near";
    case SaturationState::kOverloaded:
      return "overloaded";
  }
  return "";
}

const char* Name(SloMetric metric) {
  switch (metric) {
    case SloMetric::kTtft:
      return "ttft";
    case SloMetric::kTpot:
      return "tpot";
    case SloMetric::kItl:
      return "itl";
    case SloMetric::kE2e:
      return "e2e";
    case SloMetric::kAttainment:
      return "attainment";
  }
  return "";
}

// Key and value in one line each.
class Members {
 public:
  explicit Members(JsonWriter& out) : out_(out) {}
  void operator()(std::string_view key, std::int64_t value) { out_.Key(key), out_.Integer(value); }
  void operator()(std::string_view key, double value) { out_.Key(key), out_.Number(value); }
  void operator()(std::string_view key, bool value) { out_.Key(key), out_.Boolean(value); }
  void operator()(std::string_view key, std::string_view value) { out_.Key(key), out_.Text(value); }
  void operator()(std::string_view key, const char* value) { out_.Key(key), out_.Text(value); }
  void operator()(std::string_view key, const std::optional<double>& value) {
    out_.Key(key), value ? out_.Number(*value) : out_.Null();
  }
  void operator()(std::string_view key, const std::vector<std::string_view>& texts) {
    out_.Key(key);
    out_.BeginArray();
    for (const std::string_view text : texts) out_.Text(text);
    out_.EndArray();
  }
  void operator()(std::string_view key, const Distribution& d) {
    out_.Key(key);
    out_.BeginObject();
    const auto statistic = [&](std::string_view name, double value) {
      (*this)(name, d.n > 0 ? std::optional<double>(value) : std::nullopt);
    };
    (*this)("n", d.n);
    (*this)("runs", d.runs);
    statistic("mean", d.mean);
    statistic("min", d.min);
    statistic("p50", d.p50);
    statistic("p90", d.p90);
    statistic("p95", d.p95);
    statistic("p99", d.p99);
    statistic("max", d.max);
    (*this)("p99_low", d.p99_low);
    (*this)("p99_high", d.p99_high);
    (*this)("exact", d.exact);
    (*this)("censored", d.censored);
    out_.EndObject();
  }
  void operator()(std::string_view key, const Counted& c) {
    Object(key, [&] {
      (*this)("runs", c.runs);
      (*this)("requests", c.requests);
      (*this)("seconds", c.seconds);
      (*this)("completed", c.completed);
      (*this)("lost", c.lost);
      (*this)("output_tokens", c.output_tokens);
    });
  }
  template <class Inner>
  void Object(std::string_view key, Inner inner) {
    out_.Key(key);
    out_.BeginObject();
    inner();
    out_.EndObject();
  }

 private:
  JsonWriter& out_;
};

// Which members are written: of an experiment, those that are pooled over its runs (and settings)
// and those of its first run stand apart, as two values of one figure would be taken for each
// other; of one run they stand together.
struct Scope {
  bool all = true, run = true;
};

void WriteCounts(const Report& r, Members& put) {
  put("arrived", r.arrived);
  put("completed", r.completed);
  put("queued", r.queued);
  put("running", r.running);
  put("dropped", r.dropped);
  put("timed_out", r.timed_out);
  put("rejected", r.rejected);
  put("length_capped", r.length_capped);
  put("preemptions", r.preemptions);
  put.Object("finish_reasons", [&] {
    for (std::size_t i = 0; i < FinishReasons::kNames.size(); ++i) {
      put(FinishReasons::kNames[i], r.finish_reasons.requests[i]);
    }
  });
}

void WriteCertainty(const Report& r, Members& put) {
  if (r.certainty) {
    static constexpr const char* kMethods[] = {"one_run", "replications", "batch_means"};
    const Certainty& c = *r.certainty;
    put.Object("certainty", [&] {
      put("method", kMethods[static_cast<std::size_t>(c.method)]);
      put("runs", c.runs);
      put("requests_per_run", c.requests_per_run);
      if (c.batches > 0) put("batches", c.batches);
      put("confidence", 0.95);
      put("settled", c.settled);
      put("from_s", c.from_s);
      put("until_s", c.until_s);
      put("long_warmup", c.long_warmup);
    });
  }
  if (r.counted) put("counted", *r.counted);
  if (r.unfit) {
    const Unfit& u = *r.unfit;
    put.Object("unfit", [&] {
      put("pool", u.pool);
      put("gpu", u.gpu);
      put("tensor_parallel", u.tensor_parallel);
      put("stage", u.stage);
      put("stages", u.stages);
      put("total_gib", u.total_gib);
      put("usable_gib", u.usable_gib);
      put("needed_gib", u.NeededGib());
      put("weights_gib", u.weights_gib);
      put("overhead_gib", u.overhead_gib);
      put("kv_gib", u.kv_gib);
      if (u.enough_tensor_parallel) put("enough_tensor_parallel", *u.enough_tensor_parallel);
    });
  }
  if (r.overload) {
    put.Object("overload", [&] {
      put("served_per_s", r.overload->served_per_s);
      put("low", r.overload->low);
      put("high", r.overload->high);
      put("offered_per_s", r.overload->offered_per_s);
    });
  }
}

void WriteSanity(const Report& r, JsonWriter& out, Members& put) {
  out.Key("sanity");
  out.BeginArray();
  for (const SanityCheck& check : r.sanity) {
    out.BeginObject();
    put("name", check.name);
    put("help", check.help);
    put("unit", check.unit);
    put("simulated", check.simulated);
    put("bound", check.bound);
    put("ok", check.ok);
    out.EndObject();
  }
  out.EndArray();
}

void WriteEvidence(const Evidence& e, JsonWriter& out, Members& put) {
  put.Object("evidence", [&] {
    put("class", kEvidenceNames[static_cast<std::size_t>(e.of)]);
    put("error", e.errors.empty() ? std::nullopt : std::optional(e.errors[0].median));
    put("rows", e.rows);
    put("left_out", e.left_out);
    put("sentence", e.sentence);
    put.Object("errors", [&] {
      for (const Evidence::Error& error : e.errors) {
        put.Object(error.figure, [&] {
          put("median", error.median);
          put("p90", error.p90);
        });
      }
    });
    out.Key("warnings");
    out.BeginArray();
    for (const std::string& warning : e.warnings) out.Text(warning);
    out.EndArray();
  });
}

void WriteModelError(const ModelError& e, Members& put) {
  put.Object("model_error", [&] {
    put("bias", e.bias);
    put("corrected", e.corrected);
    put("half_width", e.half_width);
    put("level", kBandLevel);
    put("nearness", e.nearness);
    put("sentence", e.sentence);
  });
}

// Each pool by its name, "" the only one: a mean over pools would hide who is full.
void WriteKvOfPools(const Report& r, Scope scope, JsonWriter& out, Members& put) {
  const auto write = [&](std::string_view name, std::int64_t tokens, double mean, double peak) {
    out.BeginObject();
    put("name", name);
    if (scope.all) put("tokens", tokens);
    if (scope.run) {
      put("mean_usage", mean);
      put("peak_usage", peak);
    }
    out.EndObject();
  };
  out.Key("pools");
  out.BeginArray();
  for (const PoolReport& p : r.pools) {
    write(p.name, p.kv_tokens, p.kv_mean_usage, p.kv_peak_usage);
  }
  if (r.pools.empty()) write("", r.kv_tokens, r.kv_mean_usage, r.kv_peak_usage);
  out.EndArray();
}

void WriteBinding(const Report& r, Scope scope, Members& put) {
  put.Object("binding_constraint", [&] {
    if (scope.all) put("name", r.binding.name);
    if (!scope.run) return;
    put("share", r.binding.share);
    put("busy_share", r.binding.busy_share);
    put.Object("shares", [&] {
      for (std::size_t i = 0; i < r.binding.shares.size(); ++i) {
        put(BindingConstraint::kNames[i], r.binding.shares[i]);
      }
    });
  });
}

void WriteBand(const TargetBand& band, Members& put) {
  put.Object("band", [&] {
    put("low", band.low);
    put("high", band.high);
    put("level", kBandLevel);
    put("probability", band.probability);
    put.Object("model", [&] {
      put("low", band.model_low);
      put("high", band.model_high);
    });
  });
}

// `banded`: null where the forecast's error is not known.
void WriteJudgement(const Report& r, const Banded* banded, Scope scope, JsonWriter& out,
                    Members& put) {
  put.Object("verdict", [&] {
    put("state", StateName(r.verdict.state));
    put("sentence", r.verdict.sentence);
    put("limit", r.verdict.limit);
    put("note", r.verdict.note);
    if (banded != nullptr && banded->probability) put("probability", banded->probability);
  });
  out.Key("slo");
  out.BeginArray();
  for (const SloResult& result : r.slo) {
    out.BeginObject();
    put("metric", Name(result.slo.metric));
    put("percentile", result.slo.percentile);
    const bool share = result.slo.metric == SloMetric::kAttainment;
    put("limit_ms", share ? std::optional<double>() : result.slo.limit_ms);
    if (!result.slo.of_class.empty()) put("class", result.slo.of_class);
    put("value_ms", result.value_ms);
    if (share) {
      put("limit_share", result.slo.percentile / 100);
      put("share", result.share);
      for (const auto& [key, limit] : {std::pair("ttft_ms", result.slo.ttft_ms),
                                       {"tpot_ms", result.slo.tpot_ms},
                                       {"e2e_ms", result.slo.e2e_ms}}) {
        if (limit) put(key, *limit);
      }
    }
    put("margin", result.margin);
    put("low", share ? result.low_share : result.low_ms);
    put("high", share ? result.high_share : result.high_ms);
    const auto k = static_cast<std::size_t>(&result - r.slo.data());
    if (banded != nullptr && banded->targets[k]) WriteBand(*banded->targets[k], put);
    const bool all = r.certainty && (result.low_ms || result.low_share || result.unbounded);
    put("runs", all ? r.certainty->runs : std::int64_t{1});
    put("unbounded", result.unbounded);
    put("unserved_share", result.unserved_share);
    put("met", result.met);
    out.EndObject();
  }
  out.EndArray();
  WriteCertainty(r, put);
  if (scope.run) WriteSanity(r, out, put);
  put.Object("saturation", [&] {
    put("state", Name(r.saturation.state));
    put("evidence", r.saturation.evidence);
    put("queue_slope_per_s", r.saturation.queue_slope_per_s);
    put("queue_slope_t", r.saturation.queue_slope_t);
    put("queue_p95", r.saturation.queue_p95);
    put("utilization", r.saturation.utilization);
    put("filling", r.saturation.filling);
    put("requests", r.saturation.requests);
  });
  WriteBinding(r, scope, put);
}

void WriteTimeSplit(const TimeSplitReport& split, Members& put) {
  if (!split.on) return;
  put.Object("time_split", [&] {
    put("n", split.n);
    for (const auto& [key, parts] :
         {std::pair("ttft_ms", &split.ttft_ms), std::pair("e2e_ms", &split.e2e_ms)}) {
      put.Object(key, [&, of = parts] {
        for (std::size_t i = 0; i < of->size(); ++i) put(TimeSplitReport::kNames[i], (*of)[i]);
      });
    }
  });
}

void WriteClasses(const Report& r, Scope scope, JsonWriter& out, Members& put) {
  out.Key("classes");
  out.BeginArray();
  for (const ClassReport& c : r.classes) {
    out.BeginObject();
    put("name", c.name);
    if (scope.run) {
      put("arrived", c.arrived);
      put("completed", c.completed);
      put("dropped", c.dropped);
      put("timed_out", c.timed_out);
      put("rejected", c.rejected);
      out.Key("deadline_misses");
      c.deadline_misses ? out.Integer(*c.deadline_misses) : out.Null();
    }
    if (scope.all) {
      put("ttft_ms", c.ttft_ms);
      put("tpot_ms", c.tpot_ms);
      put("e2e_ms", c.e2e_ms);
      if (c.counted) put("counted", *c.counted);
      put("requests_per_s", c.requests_per_s);
      put("output_tokens_per_s", c.output_tokens_per_s);
      put("goodput_per_s", c.goodput_per_s);
      put("attainment", c.attainment);
    }
    if (scope.run) put("served_share", c.served_share);
    out.EndObject();
  }
  out.EndArray();
}

void WritePower(const std::optional<PowerReport>& power, Members& put) {
  if (!power) return;
  put.Object("power", [&] {
    put("mean_w", power->mean_w);
    put("serving_w", power->serving_w);
    put("peak_w", power->peak_w);
    put("j_per_output_token", power->j_per_output_token);
    put("j_per_request", power->j_per_request);
    put("kwh_per_hour", power->kwh_per_hour);
    const auto known = [&put](const char* name, const std::optional<double>& value) {
      if (value) put(name, *value);
    };
    known("mean_w_low", power->mean_w_low);
    known("mean_w_high", power->mean_w_high);
    known("j_per_output_token_low", power->j_per_output_token_low);
    known("j_per_output_token_high", power->j_per_output_token_high);
    known("site_kwh_per_hour", power->site_kwh_per_hour);
    known("electricity_per_hour", power->electricity_per_hour);
    known("co2_kg_per_hour", power->co2_kg_per_hour);
  });
}

void WritePools(const Report& r, Scope scope, JsonWriter& out, Members& put) {
  if (r.pools.empty()) return;
  static constexpr const char* kRoles[] = {"mixed", "prefill", "decode"};
  out.Key("pools");
  out.BeginArray();
  for (const PoolReport& p : r.pools) {
    out.BeginObject();
    put("name", p.name);
    if (scope.all) {
      put("role", kRoles[static_cast<std::size_t>(p.role)]);
      put("gpu", p.gpu);
      put("replicas", p.replicas);
      put("tensor_parallel", p.tensor_parallel);
      put("pipeline_parallel", p.stages);
      put("gpus", p.gpus);
    }
    if (scope.run) {
      put("requests", p.requests);
      put("steps", p.steps);
      put("output_tokens", p.output_tokens);
      put("preemptions", p.preemptions);
    }
    if (scope.all) put("kv_tokens", p.kv_tokens);
    if (scope.run) {
      put("kv_mean_usage", p.kv_mean_usage);
      put("kv_peak_usage", p.kv_peak_usage);
      put("kv_mean_fragmentation", p.kv_mean_fragmentation);
      put("kv_peak_fragmentation", p.kv_peak_fragmentation);
      put("allocation_failures", p.allocation_failures);
      put("busy_share", p.busy_share);
      put("blocked_share", p.blocked_share);
      put("mfu", p.mfu);
      put("bandwidth_use", p.bandwidth_use);
    }
    if (scope.all) put("cost_per_hour", p.cost_per_hour);
    if (scope.run) WritePower(p.power, put);
    out.EndObject();
  }
  out.EndArray();
  const KvTransferReport& t = r.kv_transfer;
  if (!t.on || !scope.run) return;
  put.Object("kv_transfer", [&] {
    put("first_token_from", t.first_token_from_decode ? "decode" : "prefill");
    put("transfers", t.transfers);
    put("bytes", t.bytes);
    put("mean_ms", t.mean_ms);
    put("p99_ms", t.p99_ms);
  });
}

// A list of each figure, by replica.
void WriteReplicas(const Report& r, JsonWriter& out, Members& put) {
  if (r.replicas.empty()) return;
  const auto list = [&](std::string_view key, auto write) {
    out.Key(key);
    out.BeginArray();
    for (const ReplicaReport& replica : r.replicas) write(replica);
    out.EndArray();
  };
  put.Object("replicas", [&] {
    list("requests", [&](const ReplicaReport& one) { out.Integer(one.requests); });
    list("busy_share", [&](const ReplicaReport& one) { out.Number(one.busy_share); });
    list("mean_outstanding", [&](const ReplicaReport& one) { out.Number(one.mean_outstanding); });
    list("kv_peak_usage", [&](const ReplicaReport& one) { out.Number(one.kv_peak_usage); });
    list("ttft_mean_ms", [&](const ReplicaReport& one) {
      one.ttft_mean_ms ? out.Number(*one.ttft_mean_ms) : out.Null();
    });
  });
}

void WriteScaling(const Report& r, JsonWriter& out, Members& put) {
  const ScalingReport& s = r.scaling;
  if (!s.on) return;
  put.Object("scaling", [&] {
    put("cold_start_s", s.cold_start_s);
    put("weights_s", s.weights_s);
    put("starts", s.starts);
    put("stops", s.stops);
    put("peak_up", s.peak_up);
    put("mean_up", s.mean_up);
    put("mean_replicas", s.mean_replicas);
    put("mean_gpus", s.mean_gpus);
    put("gpu_hours", s.gpu_hours);
    put("cost", s.cost);
    const auto list = [&](std::string_view key, auto write) {
      out.Key(key);
      out.BeginArray();
      for (const ScalingReport::Step& step : s.steps) write(step);
      out.EndArray();
    };
    list("at_s", [&](const ScalingReport::Step& step) { out.Number(step.at_s); });
    list("starting", [&](const ScalingReport::Step& step) { out.Integer(step.starting); });
    list("up", [&](const ScalingReport::Step& step) { out.Integer(step.up); });
    list("draining", [&](const ScalingReport::Step& step) { out.Integer(step.draining); });
  });
}

void WriteRetries(const Report& r, Members& put) {
  const RetryReport& t = r.retries;
  if (!t.on) return;
  put.Object("retries", [&] {
    put("attempts", t.attempts);
    put("amplification", t.amplification);
    put("retried", t.retried);
    put("given_up", t.given_up);
    put("over_budget", t.over_budget);
    put("tokens_lost", t.tokens_lost);
  });
}

std::optional<double> Rate(std::int64_t hits, std::int64_t queries) {
  if (queries == 0) return std::nullopt;
  return static_cast<double>(hits) / static_cast<double>(queries);
}

void WriteOffload(const Report& r, Members& put) {
  const KvOffloadReport& o = r.kv_offload;
  if (!o.on) return;
  put.Object("kv_offload", [&] {
    for (std::size_t i = 0; i < kKvTiers; ++i) {
      const KvTierReport& tier = o.tiers[i];
      if (tier.blocks == 0) continue;
      put.Object(KvOffloadReport::kNames[i], [&] {
        put("blocks", tier.blocks);
        put("hit_tokens", tier.hit_tokens);
        put("hit_rate", Rate(tier.hit_tokens, r.prefix_cache.query_tokens));
        put("hit_blocks", tier.hit_blocks);
        put("block_hit_rate", Rate(tier.hit_blocks, r.prefix_cache.query_blocks));
        put("loaded_blocks", tier.loaded_blocks);
      });
    }
    put("offloaded_blocks", o.offloaded_blocks);
    put("thrashed_blocks", o.thrashed_blocks);
    put("transfer_s", static_cast<double>(o.transfer_ns) / 1e9);
  });
}

void WriteKv(const Report& r, Scope scope, JsonWriter& out, Members& put) {
  put.Object("kv", [&] {
    if (scope.all) {
      put("blocks", r.kv_blocks);
      put("block_size", r.kv_block_size);
      put("tokens", r.kv_tokens);
    }
    if (scope.run) {
      put("mean_usage", r.kv_mean_usage);
      put("peak_usage", r.kv_peak_usage);
      put("mean_fragmentation", r.kv_mean_fragmentation);
      put("peak_fragmentation", r.kv_peak_fragmentation);
      put("allocation_failures", r.allocation_failures);
    }
    WriteKvOfPools(r, scope, out, put);
    if (!scope.run) return;
    put("gc_passes", r.counts.gc_passes);
    put("gc_ms", r.gc_ms);
  });
}

// What the scheduler and the caches did.
void WriteWork(const Report& r, Members& put) {
  if (r.counts.lost_victims > 0) put("sglang_would_lose", r.counts.lost_victims);
  put.Object("padding", [&] {
    put("prefill_tokens", r.counts.prefill_tokens);
    put("padding_tokens", r.counts.padding_tokens);
  });
  if (r.counts.verified_steps > 0) {
    put.Object("speculative", [&] {
      const SchedulerCounts& c = r.counts;
      put("verified_steps", c.verified_steps);
      put("draft_tokens", c.draft_tokens);
      put("accepted_tokens", c.accepted_tokens);
      put("used_draft_tokens", c.used_draft_tokens);
      put("wasted_draft_tokens", c.draft_tokens - c.used_draft_tokens);
      put("acceptance_rate", Rate(c.accepted_tokens, c.draft_tokens));
      put("acceptance_length", Rate(c.accepted_tokens + c.verified_steps, c.verified_steps));
    });
  }
  put.Object("prefix_cache", [&] {
    const PrefixCacheReport& c = r.prefix_cache;
    put("query_tokens", c.query_tokens);
    put("hit_tokens", c.hit_tokens);
    put("hit_rate", Rate(c.hit_tokens, c.query_tokens));
    put("query_blocks", c.query_blocks);
    put("hit_blocks", c.hit_blocks);
    put("block_hit_rate", Rate(c.hit_blocks, c.query_blocks));
    put("resumed_hit_tokens", c.resumed_hit_tokens);
    put("evicted_blocks", c.evicted_blocks);
  });
  WriteOffload(r, put);
}

void WriteMemory(const Report& r, Scope scope, Members& put) {
  if (r.stages > 1) {
    put.Object("pipeline", [&] {
      if (scope.all) put("stages", r.stages);
      if (scope.run) put("bubble_share", r.bubble_share);
    });
  }
  put.Object("memory", [&] {
    if (scope.all) {
      put("total_gib", r.memory.total_gib);
      put("usable_gib", r.memory.usable_gib);
      put("weights_gib", r.memory.weights_gib);
      put("overhead_gib", r.memory.overhead_gib);
      put("kv_gib", r.memory.kv_gib);
    }
    if (scope.run) put("mean_usage", r.memory.mean_usage);
  });
}

void WriteSetting(const Report& r, Scope scope, JsonWriter& out, Members& put) {
  WriteKv(r, scope, out, put);
  if (scope.run) WriteWork(r, put);
  WriteMemory(r, scope, put);
  if (!r.departures.empty()) put("departures", r.departures);
  put.Object("latency_model", [&] {
    put("backend", r.latency_model.backend);
    put("provenance", r.latency_model.provenance);
    put("description", r.latency_model.description);
    put("known_error", r.latency_model.known_error);
  });
  WriteEvidence(r.latency_model.evidence, out, put);
  put.Object("workload", [&] {
    put("source", r.workload_source);
    put("name", r.workload_name);
    put("requests", r.workload_requests);
  });
}

// Columns over time are of one run, as are gaps between tokens.
void WriteSeries(const Report& r, Scope scope, JsonWriter& out, Members& put) {
  put.Object("series", [&] {
    for (std::size_t i = 0; i < Columns().size(); ++i) {
      const Column& column = Columns()[i];
      if (column.kind == "request") continue;
      const bool shared = column.name == "cdf_fraction";
      const bool of_run = column.kind == "series" || column.name == "cdf_itl_ms";
      if (!shared && !(of_run ? scope.run : scope.all)) continue;
      out.Key(column.name);
      out.BeginArray();
      for (const double value : r.columns[i]) out.Number(value);
      out.EndArray();
    }
  });
}

// Counts, latencies, rates and use.
void WriteFigures(const Report& r, Scope scope, JsonWriter& out, Members& put) {
  if (scope.run) WriteCounts(r, put);
  if (scope.all) put("ttft_ms", r.ttft_ms);
  if (scope.run) put("itl_ms", r.itl_ms);
  if (scope.all) {
    put("tpot_ms", r.tpot_ms);
    put("e2e_ms", r.e2e_ms);
    put("scheduling_delay_ms", r.scheduling_delay_ms);
  }
  if (scope.run) put("step_delay_ms", r.step_delay_ms);
  if (scope.all) {
    put("output_tokens_per_s", r.output_tokens_per_s);
    put("output_tokens_per_s_per_gpu", r.output_tokens_per_s_per_gpu);
    put("requests_per_s", r.requests_per_s);
    put("goodput_per_s", r.goodput_per_s);
    put("attainment", r.attainment);
  }
  if (scope.run) {
    put("fairness", r.fairness);
    put("prompt_tokens", r.prompt_tokens);
    put("output_tokens", r.output_tokens);
  }
  if (scope.all) {
    put("gpus", r.gpus);
    put("cost_per_million_output_tokens", r.cost_per_million_output_tokens);
  }
  if (scope.run) {
    put("simulated_s", r.simulated_s);
    put("steps", r.steps);
    put("mean_in_system", r.mean_in_system);
    put("mean_batch_size", r.mean_batch_size);
    put("mfu", r.mfu);
    put("bandwidth_use", r.bandwidth_use);
    WritePower(r.power, put);
    WriteTimeSplit(r.time_split, put);
  }
  WriteClasses(r, scope, out, put);
  WritePools(r, scope, out, put);
  if (scope.run) WriteReplicas(r, out, put);
  if (scope.run) WriteScaling(r, out, put);
  if (scope.run) WriteRetries(r, put);
}

}  // namespace

std::string ReportJson(const Report& r, ReportParts parts) { return ReportJson(r, nullptr, parts); }

std::string ReportJson(const Report& r, const Banded* banded, ReportParts parts) {
  JsonWriter out(parts == ReportParts::kSummary || parts == ReportParts::kWithSeries);
  Members put(out);
  out.BeginObject();
  put("schema", std::int64_t{kScenarioSchema});
  put("engine_version", kEngineVersion);
  put("name", r.name);
  put("scenario_id", HashText(r.scenario_id));
  put("fingerprint", HashText(r.fingerprint));
  put("finished", r.finished);
  const Scope scope{.all = true, .run = !r.certainty.has_value()};
  WriteFigures(r, scope, out, put);
  WriteJudgement(r, banded, scope, out, put);
  WriteSetting(r, scope, out, put);
  if (banded != nullptr) WriteModelError(banded->error, put);
  if (!scope.run) {
    put.Object("first_run", [&] {
      const Scope first{.all = false, .run = true};
      WriteFigures(r, first, out, put);
      WriteSanity(r, out, put);
      WriteBinding(r, first, put);
      WriteKv(r, first, out, put);
      WriteWork(r, put);
      WriteMemory(r, first, put);
      if (parts == ReportParts::kWithSeries) WriteSeries(r, first, out, put);
    });
  }
  if (parts == ReportParts::kWithScenario || parts == ReportParts::kWithSeries) {
    out.Key("scenario");
    out.Raw(r.resolved_scenario);
  }
  if (parts == ReportParts::kWithSeries) WriteSeries(r, scope, out, put);
  out.EndObject();
  return out.Take();
}

}  // namespace servecast
