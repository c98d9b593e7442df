#include "io/pool_checks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "io/draft_checks.h"
#include "io/feature_checks.h"
#include "io/scaling_checks.h"
#include "serving/replica/scheduler_entry.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// A limit is a share of the card's own cap, and no card keeps one below what it draws idle.
void CheckPowerLimit(const HardwareSpec& h, Issues& issues) {
  if (h.power_limit_w <= 0) return;
  const auto refuse = [&](std::string_view from, double least) {
    issues.push_back(
        {"/hardware/power_limit_w", Format("found {}, allowed 0, or {} {} up",
                                           NumberText(h.power_limit_w), from, NumberText(least))});
  };
  if (h.power_cap_w <= 0) return refuse("with hardware.power_cap_w, from", 1);
  if (h.power_limit_w <= h.idle_w) refuse("from above idle_w", h.idle_w);
}

class PoolChecks {
 public:
  PoolChecks(const Scenario& scenario, Issues& issues) : s_(scenario), issues_(issues) {}

  void Check() {
    const std::int64_t replicas = s_.cluster.Replicas();
    if (replicas > kMostReplicas) {
      Add(0, "replicas",
          Format("found {} in all pools, allowed up to {}", replicas, kMostReplicas));
    }
    for (std::size_t i = 0; i < Pools().size(); ++i) {
      Scenario alone = s_;
      alone.UsePool(i);
      Issues of_pool;
      // A compat is refused with several pools, so there its own replicas are all.
      if (s_.engine.compat == Compat::kNone) alone.cluster.pool().replicas = replicas;
      // Another one than the scenario's is refused below.
      if (alone.engine.compat == s_.engine.compat) CheckFeatures(alone, of_pool);
      CheckPowerLimit(alone.hardware, of_pool);
      CheckDrafts(alone, of_pool);
      CheckAdapters(alone, of_pool);
      CheckImages(alone, of_pool);
      if (Pools()[i].role == PoolRole::kEncode) CheckEncoders(s_, i, of_pool);
      for (Issue& issue : of_pool) {
        issue.path = PathIn(Pools()[i], i, issue.path);
        AddOnce(std::move(issue), issues_);
      }
      const std::int64_t shared = Pools()[i].attention_data_parallel;
      if (Pools()[i].replicas % shared != 0) {
        AddOnce({Format("/cluster/pools/{}/attention_data_parallel", i),
                 Format("found {}, allowed a divisor of replicas {}", shared, Pools()[i].replicas)},
                issues_);
      }
    }
    CheckWhatIsOfAll();
    if (s_.cluster.Scales()) CheckScaling(s_.cluster, issues_);
    if (s_.cluster.failures.On()) CheckFailures(s_, issues_);
    if (s_.cluster.slowdowns.On()) CheckSlowdowns(s_, issues_);
    if (s_.cluster.rolling_update.On()) CheckRollingUpdate(s_.cluster, issues_);
    const bool prefill = s_.cluster.Has(PoolRole::kPrefill);
    const bool decode = s_.cluster.Has(PoolRole::kDecode);
    const bool encode = s_.cluster.Has(PoolRole::kEncode);
    if (!encode && s_.cluster.encode_router != ClusterSpec{}.encode_router) {
      issues_.push_back({"/cluster/encode_router/policy",
                         Format("found \"{}\", allowed with pools of role \"encode\" only",
                                s_.cluster.encode_router)});
    }
    if (prefill && decode) {
      CheckDisaggregated();
      return;
    }
    for (std::size_t i = 0; i < Pools().size() && (prefill || decode); ++i) {
      const PoolRole role = Pools()[i].role;
      if (role == PoolRole::kMixed || role == PoolRole::kEncode) continue;
      return Add(i, "role",
                 prefill ? "found \"prefill\", allowed with a pool of role \"decode\" only"
                         : "found \"decode\", allowed with a pool of role \"prefill\" only");
    }
    DisaggregationSpec link = s_.cluster.disaggregation;
    if (encode) link.base_latency_us = DisaggregationSpec{}.base_latency_us;
    if (encode) link.bandwidth_gb_s.reset();
    if (!(link == DisaggregationSpec{})) {
      issues_.push_back({"/cluster/disaggregation",
                         "found %, allowed with pools of role \"prefill\" and \"decode\" "
                         "only"});
    }
    if (s_.cluster.decode_router != ClusterSpec{}.decode_router) {
      issues_.push_back({"/cluster/decode_router/policy",
                         Format("found \"{}\", allowed with pools of role \"prefill\" and "
                                "\"decode\" only",
                                s_.cluster.decode_router)});
    }
  }

 private:
  // Rules of the whole run, and what a request meets before a router knows where it goes.
  void CheckWhatIsOfAll() {
    for (std::size_t i = 0; i < Pools().size(); ++i) {
      const EngineSpec &pool = EngineOf(i), &all = s_.engine;
      const auto same = [&](bool differs, const char* name) {
        if (!differs) return;
        AddOfEngine(
            i, name,
            Format("found %, allowed the same as in /engine/{}: it holds for all pools", name));
      };
      same(pool.compat != all.compat, "compat");
      if (s_.scheduler.RanksInStep() && Pools()[i].tensor_parallel > 1) {
        Add(i, "tensor_parallel",
            Format("found {}, allowed 1 with scheduler.enable_attention_dp: each GPU is a rank",
                   Pools()[i].tensor_parallel));
      }
      if (Pools().size() == 1) continue;
      const SchedulerSpec& own = Pools()[i].scheduler ? *Pools()[i].scheduler : s_.scheduler;
      if (own.RanksInStep()) {
        AddOnce({Pools()[i].scheduler ? Format("/cluster/pools/{}/scheduler/enable_attention_dp", i)
                                      : "/scheduler/enable_attention_dp",
                 "found true, allowed false with several pools: ranks in lock step beside other "
                 "servers are not modelled"},
                issues_);
      }
      same(pool.request_overhead_ms != all.request_overhead_ms, "request_overhead_ms");
      same(pool.prompt_token_overhead_us != all.prompt_token_overhead_us,
           "prompt_token_overhead_us");
      same(pool.gc_pass_us != all.gc_pass_us, "gc_pass_us");
    }
    if (Pools().size() > 1 && s_.engine.compat != Compat::kNone) {
      issues_.push_back(
          {"/engine/compat", Format("found %, allowed \"none\" with {} pools", Pools().size())});
    }
  }

  const std::vector<PoolSpec>& Pools() const { return s_.cluster.pools; }
  const EngineSpec& EngineOf(std::size_t i) const {
    return Pools()[i].engine ? *Pools()[i].engine : s_.engine;
  }

  // A mixed pool without conditional disaggregation would never be sent a request.
  void CheckDisaggregated() {
    CheckCutsOff();
    const EngineSpec* first = nullptr;
    for (std::size_t i = 0; i < Pools().size(); ++i) {
      const EngineSpec& engine = EngineOf(i);
      if (Pools()[i].role == PoolRole::kEncode) continue;
      if (Pools()[i].role == PoolRole::kMixed) {
        if (s_.cluster.disaggregation.above_tokens > 0) continue;
        Add(i, "role",
            "found \"mixed\" beside prefill and decode, allowed with "
            "disaggregation.above_tokens above 0 only: else it gets no requests");
        continue;
      }
      if (first == nullptr) first = &engine;
      if (engine.block_size != first->block_size) {
        AddOfEngine(i, "block_size",
                    Format("found {}, allowed {}, as in the first pool for prefill or decode: "
                           "KV blocks travel as they are",
                           engine.block_size, first->block_size));
      }
      if (engine.kv_cache_dtype != first->kv_cache_dtype) {
        AddOfEngine(i, "kv_cache_dtype",
                    "found %, allowed the same as in the first pool for prefill or decode: KV "
                    "blocks travel as they are");
      }
    }
  }

  // What is cut off takes KV with it that another pool's replicas wait for.
  void CheckCutsOff() {
    for (std::size_t i = 0; i < Pools().size(); ++i) {
      const ScalingSpec& scaling = s_.cluster.ScalingOf(Pools()[i]);
      if (!scaling.On() || !scaling.termination_grace_period_s) continue;
      for (const PoolSpec& other : Pools()) {
        const SchedulerSpec& scheduler = other.scheduler ? *other.scheduler : s_.scheduler;
        const bool fails = FindScheduler(scheduler.policy).has.Has(Feature::kFailures);
        if (fails && other.pipeline_parallel == 1) continue;
        const std::string at =
            Pools()[i].scaling ? Format("/cluster/pools/{}/scaling", i) : "/cluster/scaling";
        AddOnce({at + "/termination_grace_period_s",
                 "found %, allowed none beside a pool with another scheduler than vLLM's or with "
                 "pipeline stages: that its replicas wait for KV that is lost is not modelled"},
                issues_);
      }
    }
  }

  void Add(std::size_t pool, const char* name, std::string message) {
    issues_.push_back({Format("/cluster/pools/{}/{}", pool, name), std::move(message)});
  }
  // Where it stands: the pool's own, or the scenario's, said once.
  void AddOfEngine(std::size_t pool, const char* name, std::string message) {
    if (Pools()[pool].engine) {
      return Add(pool, (std::string("engine/") + name).c_str(), std::move(message));
    }
    AddOnce({std::string("/engine/") + name, std::move(message)}, issues_);
  }

  const Scenario& s_;
  Issues& issues_;
};

bool Overlaps(const Json& scheduler) {
  return std::any_of(Schedulers().begin(), Schedulers().end(), [&](const SchedulerEntry& entry) {
    return entry.overlaps && scheduler == entry.name;
  });
}

}  // namespace

void CheckPools(const Scenario& scenario, Issues& issues) { PoolChecks(scenario, issues).Check(); }

void TurnOffAsyncForStages(Json& document) {
  const auto member = [](Json& of, const char* name) -> Json* {
    if (!of.is_object()) return nullptr;
    const auto at = of.find(name);
    return at == of.end() ? nullptr : &*at;
  };
  const auto policy = [&member](Json& of) -> Json* {
    Json* scheduler = member(of, "scheduler");
    if (scheduler == nullptr || scheduler->is_string()) return scheduler;
    return member(*scheduler, "policy");
  };
  const auto says = [](Json* engine) {
    return engine != nullptr && engine->contains("async_scheduling");
  };
  Json* cluster = member(document, "cluster");
  Json* pools = cluster != nullptr ? member(*cluster, "pools") : nullptr;
  if (pools == nullptr || !pools->is_array()) return;
  for (Json& pool : *pools) {
    const Json* stages = member(pool, "pipeline_parallel");
    if (stages == nullptr || !stages->is_number() || *stages <= 1) continue;
    const Json* scheduler = policy(pool);
    if (scheduler == nullptr) scheduler = policy(document);
    if (scheduler != nullptr && !Overlaps(*scheduler)) continue;
    Json* own = member(pool, "engine");
    if (own != nullptr && own->is_string()) *own = Json{{"preset", *own}};
    const bool of_all = own == nullptr || (own->is_object() && !own->contains("preset"));
    if (says(own) || (of_all && says(member(document, "engine")))) continue;
    Json& engine = own == nullptr && pools->size() == 1 ? document["engine"] : pool["engine"];
    if (engine.is_null() || engine.is_object()) engine["async_scheduling"] = false;
  }
}

}  // namespace servecast
