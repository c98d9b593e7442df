#include "io/pool_checks.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "io/draft_checks.h"
#include "serving/replica/scheduler_setup.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostReplicas = 1024;

bool HasTimeouts(const WorkloadSpec& w) {
  return std::any_of(w.classes.begin(), w.classes.end(),
                     [](const ClassSpec& c) { return c.timeout_s.has_value(); });
}

// By its scheduler, and with the faults of Vidur's.
void CheckScheduler(const Scenario& s, Issues& issues) {
  if (s.scheduler.policy != "vllm") RefuseForBatchScheduler(s, issues);
  if (s.engine.compat != Compat::kVidur) return;
  const std::string& router = s.cluster.router;
  if (router != "round_robin" && router != "random" && router != "least_outstanding") {
    issues.push_back({"/cluster/router/policy",
                      "found %, allowed round_robin, random and least_outstanding, which Vidur "
                      "has"});
  }
  if (HasTimeouts(s.workload)) {
    issues.push_back(
        {"/workload/classes",
         "found a class with timeout_s, allowed none with compat \"vidur\": it has no time-outs"});
  }
}

// What several pipeline stages do not go with.
void CheckStages(const Scenario& s, Issues& issues) {
  const std::int64_t stages = s.cluster.pools[0].pipeline_parallel;
  if (stages == 1) return;
  if (IsBlis(s.engine.compat)) {
    issues.push_back({"/cluster/pools/0/pipeline_parallel",
                      Format("found {}, allowed 1 with BLIS's rules in engine.compat", stages)});
  } else if (s.engine.async_scheduling && s.scheduler.policy == "vllm") {
    issues.push_back({"/engine/async_scheduling",
                      "found true, allowed false with pipeline_parallel above 1: its rules for "
                      "several stages are not modelled, and as many batches as stages are in "
                      "flight without it"});
  }
  if (!IsBlis(s.engine.compat) && s.engine.kv_offload.On()) {
    issues.push_back(
        {"/engine/kv_offload", "found %, allowed none with pipeline_parallel above 1"});
  }
}

// What caps of the queue do not go with: who is turned away has no second replica, and no client
// that asks for something else at that very moment.
void CheckQueueCaps(const Scenario& s, Issues& issues) {
  const struct {
    bool broken;
    const char* message;
  } rules[] = {
      {s.engine.compat != Compat::kNone, "found %, allowed none with a compat"},
      {s.scheduler.policy != "vllm",
       "found %, allowed none without scheduler.policy \"vllm\", whose server has such caps"},
      {s.workload.arrivals.process == ArrivalProcess::kClosedLoop,
       "found %, allowed none in a closed loop: a client that is turned away would ask again "
       "at once"},
  };
  const std::pair<bool, const char*> caps[] = {
      {s.engine.max_num_queued_reqs.has_value(), "/engine/max_num_queued_reqs"},
      {s.engine.max_num_queued_tokens.has_value(), "/engine/max_num_queued_tokens"}};
  for (const auto& [given, path] : caps) {
    for (const auto& rule : rules) {
      if (given && rule.broken) issues.push_back({path, rule.message});
    }
  }
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
      CheckExperts(i);
      Scenario alone = s_;
      alone.UsePool(i);
      Issues of_pool;
      CheckScheduler(alone, of_pool);
      CheckStages(alone, of_pool);
      CheckDrafts(alone, of_pool);
      CheckAdapters(alone, of_pool);
      CheckQueueCaps(alone, of_pool);
      for (Issue& issue : of_pool) {
        issue.path = PathIn(Pools()[i], i, issue.path);
        AddOnce(std::move(issue), issues_);
      }
    }
    CheckWhatIsOfAll();
    const bool prefill = s_.cluster.Has(PoolRole::kPrefill);
    const bool decode = s_.cluster.Has(PoolRole::kDecode);
    if (prefill && decode) {
      CheckDisaggregated();
      return;
    }
    for (std::size_t i = 0; i < Pools().size() && (prefill || decode); ++i) {
      if (Pools()[i].role == PoolRole::kMixed) continue;
      return Add(i, "role",
                 prefill ? "found \"prefill\", allowed with a pool of role \"decode\" only"
                         : "found \"decode\", allowed with a pool of role \"prefill\" only");
    }
    if (!(s_.cluster.disaggregation == DisaggregationSpec{})) {
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
  void CheckExperts(std::size_t i) {
    const std::int64_t shared = Pools()[i].attention_data_parallel;
    if (shared == 1) return;
    const auto refuse = [&](bool found, std::string allowed) {
      if (!found) return;
      Add(i, "attention_data_parallel", Format("found {}, allowed {}", shared, std::move(allowed)));
    };
    refuse(s_.model.num_local_experts == 0, "1 of a model without experts");
    refuse(Pools()[i].replicas % shared != 0,
           Format("a divisor of replicas {}", Pools()[i].replicas));
    refuse(Pools()[i].pipeline_parallel > 1, "1 with pipeline_parallel above 1");
    refuse(EngineOf(i).compat != Compat::kNone, "1 with a compat");
    const std::string& model = s_.latency.backend;
    refuse(model != "auto" && model != "analytic" && model != "operators" && model != "blackbox",
           Format("1 with latency.backend \"{}\"", model));
  }

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
      const auto alone = [&](bool capped, const char* name) {
        if (!capped || s_.cluster.Replicas() == 1) return;
        AddOfEngine(i, name,
                    "found %, allowed none with several replicas: whom one turns away a router "
                    "would send to another");
      };
      alone(pool.max_num_queued_reqs.has_value(), "max_num_queued_reqs");
      alone(pool.max_num_queued_tokens.has_value(), "max_num_queued_tokens");
      if (Pools().size() == 1) continue;
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
    const EngineSpec* first = nullptr;
    for (std::size_t i = 0; i < Pools().size(); ++i) {
      const EngineSpec& engine = EngineOf(i);
      if (Pools()[i].role == PoolRole::kMixed) {
        if (s_.cluster.disaggregation.above_tokens > 0) continue;
        Add(i, "role",
            "found \"mixed\" beside prefill and decode, allowed with "
            "disaggregation.above_tokens above 0 only: else it gets no requests");
        continue;
      }
      CheckEngine(i, engine);
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

  void CheckEngine(std::size_t i, const EngineSpec& engine) {
    const auto refuse = [&](bool found, const char* name, const char* message) {
      if (found) AddOfEngine(i, name, message);
    };
    refuse(engine.compat != Compat::kNone, "compat",
           "found %, allowed \"none\" in a pool for prefill or decode");
    refuse(engine.kv_offload.On(), "kv_offload",
           "found %, allowed none in a pool for prefill or decode: loads from them "
           "beside transfers between replicas are not modelled");
    refuse(engine.gc_pass_us > 0, "gc_pass_us",
           "found %, allowed 0 in a pool for prefill or decode: blocks that a transfer frees "
           "are free at once");
    refuse(engine.speculative.On(), "speculative/method",
           "found %, allowed \"none\" in a pool for prefill or decode: drafts across a hand-over "
           "are not modelled");
    refuse(engine.max_loras > 0, "max_loras",
           "found %, allowed 0 in a pool for prefill or decode: adapters across a hand-over are "
           "not modelled");
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
    if (scheduler != nullptr && *scheduler != "vllm") continue;
    Json* own = member(pool, "engine");
    if (own != nullptr && own->is_string()) *own = Json{{"preset", *own}};
    const bool of_all = own == nullptr || (own->is_object() && !own->contains("preset"));
    if (says(own) || (of_all && says(member(document, "engine")))) continue;
    Json& engine = own == nullptr && pools->size() == 1 ? document["engine"] : pool["engine"];
    if (engine.is_null() || engine.is_object()) engine["async_scheduling"] = false;
  }
}

}  // namespace servecast
