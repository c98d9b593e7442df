#include "io/pool_checks.h"

#include "base/text.h"
#include "serving/router.h"

namespace servecast {
namespace {

constexpr std::int64_t kMostReplicas = 1024;

class PoolChecks {
 public:
  PoolChecks(const Scenario& scenario, Issues& issues) : s_(scenario), issues_(issues) {}

  void Check() {
    const std::int64_t replicas = s_.cluster.Replicas();
    if (replicas > kMostReplicas) {
      Add(0, "replicas",
          Format("found {} in all pools, allowed up to {}", replicas, kMostReplicas));
    }
    for (std::size_t i = 0; i < Pools().size() && Pools().size() > 1; ++i) {
      if (Pools()[i].pipeline_parallel == 1) continue;
      Add(i, "pipeline_parallel",
          Format("found {}, allowed 1 with several pools", Pools()[i].pipeline_parallel));
    }
    for (std::size_t i = 0; i < Pools().size(); ++i) CheckExperts(i);
    if (Pools().size() > 1 && s_.scheduler.policy != "vllm") {
      issues_.push_back(
          {"/scheduler/policy",
           Format("found \"{}\", allowed \"vllm\" with several pools", s_.scheduler.policy)});
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
                         "found settings, allowed with pools of role \"prefill\" and \"decode\" "
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
        AddOfEngine(i, name,
                    Format("found another than in /engine/{}, allowed the same: it holds for "
                           "all pools",
                           name));
      };
      same(pool.compat != all.compat, "compat");
      if (Pools().size() == 1) continue;
      same(pool.request_overhead_ms != all.request_overhead_ms, "request_overhead_ms");
      same(pool.prompt_token_overhead_us != all.prompt_token_overhead_us,
           "prompt_token_overhead_us");
      same(pool.gc_pass_us != all.gc_pass_us, "gc_pass_us");
    }
    if (Pools().size() > 1 && s_.engine.compat != Compat::kNone) {
      issues_.push_back({"/engine/compat",
                         Format("found a compat, allowed \"none\" with {} pools", Pools().size())});
    }
  }

  const std::vector<PoolSpec>& Pools() const { return s_.cluster.pools; }
  const EngineSpec& EngineOf(std::size_t i) const {
    return Pools()[i].engine ? *Pools()[i].engine : s_.engine;
  }

  // A mixed pool without conditional disaggregation would never be sent a request.
  void CheckDisaggregated() {
    CheckRouter("router", s_.cluster.router, s_.cluster.router_params);
    CheckRouter("decode_router", s_.cluster.decode_router, s_.cluster.decode_router_params);
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
                    "found another than in the first pool for prefill or decode, allowed the "
                    "same: KV blocks travel as they are");
      }
    }
  }

  void CheckRouter(const char* field, const std::string& name, const ParamMap& params) {
    const std::string path = std::string("/cluster/") + field;
    if (FindRouter(name).holds) {
      issues_.push_back(
          {path + "/policy", Format("found \"{}\", allowed one that places at once, with pools for "
                                    "prefill and decode",
                                    name)});
    }
    const auto staleness = params.find(kStaleness.name);
    if (staleness != params.end() && staleness->second > 0) {
      issues_.push_back(
          {path + "/staleness_ms", "found a time, allowed 0 with pools for prefill and decode"});
    }
  }

  void CheckEngine(std::size_t i, const EngineSpec& engine) {
    const auto refuse = [&](bool found, const char* name, const char* message) {
      if (found) AddOfEngine(i, name, message);
    };
    refuse(engine.compat != Compat::kNone, "compat",
           "found a compat, allowed \"none\" in a pool for prefill or decode");
    refuse(engine.kv_offload.On(), "kv_offload",
           "found tiers of memory, allowed none in a pool for prefill or decode: loads from them "
           "beside transfers between replicas are not modelled");
    refuse(engine.gc_pass_us > 0, "gc_pass_us",
           "found a time, allowed 0 in a pool for prefill or decode: blocks that a transfer frees "
           "are free at once");
  }

  void Add(std::size_t pool, const char* name, std::string message) {
    issues_.push_back({Format("/cluster/pools/{}/{}", pool, name), std::move(message)});
  }
  // Where it stands: the pool's own, or the scenario's, said once.
  void AddOfEngine(std::size_t pool, const char* name, std::string message) {
    if (Pools()[pool].engine) {
      return Add(pool, (std::string("engine/") + name).c_str(), std::move(message));
    }
    const std::string path = std::string("/engine/") + name;
    for (const Issue& issue : issues_) {
      if (issue.path == path) return;
    }
    issues_.push_back({path, std::move(message)});
  }

  const Scenario& s_;
  Issues& issues_;
};

}  // namespace

void CheckPools(const Scenario& scenario, Issues& issues) { PoolChecks(scenario, issues).Check(); }

}  // namespace servecast
