// See advise.h.
#include "experiment/advise.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/base.h"
#include "base/text.h"
#include "io/presets.h"
#include "metrics/words.h"
#include "servecast/workload_spec.h"
#include "workload/adapters.h"

namespace servecast {
namespace {

class Lister {
 public:
  explicit Lister(const Scenario& s) : s_(s), pools_(s.cluster.pools) {}

  std::vector<Change> List() {
    Engine();
    Storage();
    Shape();
    Router();
    return std::move(all_);
  }

 private:
  void Add(std::string words, std::vector<std::string> overrides) {
    all_.push_back({std::move(words), std::move(overrides)});
  }

  void Engine() {
    const EngineSpec& e = pools_[0].engine ? *pools_[0].engine : s_.engine;
    const auto number = [this](const char* name, std::int64_t value) {
      Add(Format("{} {}", name, ShortNumber(static_cast<double>(value))),
          OfEngines(pools_, Format("{}={}", name, value)));
    };
    number("max_num_seqs", 2 * e.max_num_seqs);
    if (e.max_num_seqs > 1) number("max_num_seqs", e.max_num_seqs / 2);
    number("max_num_batched_tokens", 2 * e.max_num_batched_tokens);
    if (e.max_num_batched_tokens >= 512) {
      number("max_num_batched_tokens", e.max_num_batched_tokens / 2);
    }
    if (MayLackSeats(s_)) number("max_loras", 2 * e.max_loras);
    const auto flag = [this](const char* name, bool on, const char* words) {
      if (!on) Add(words, OfEngines(pools_, Format("{}=true", name)));
    };
    flag("enable_chunked_prefill", e.enable_chunked_prefill, "chunked prefill");
    flag("enable_prefix_caching", e.enable_prefix_caching, "prefix caching");
    flag("async_scheduling", e.async_scheduling, "async scheduling");
    Drafts(e.speculative);
  }

  // Under load drafts take time that others wait for.
  void Drafts(const SpeculativeSpec& drafts) {
    if (!drafts.On()) return;
    Add("no speculative decoding", OfEngines(pools_, "speculative.method=none"));
    const std::int64_t half = drafts.num_speculative_tokens / 2;
    const bool by_length = drafts.acceptance_as == "none" && drafts.acceptance_rates.empty();
    if (half < 1 || (by_length && drafts.acceptance_length > static_cast<double>(1 + half))) return;
    Add(Format("num_speculative_tokens {}", half),
        OfEngines(pools_, Format("speculative.num_speculative_tokens={}", half)));
  }

  void Storage() {
    if (s_.model.quantization == Quantization::kNone) {
      Add("fp8 weights", {"model.quantization=fp8"});
    }
    if (s_.engine.kv_cache_dtype == KvCacheDType::kAuto) {
      Add("fp8 KV cache", OfEngines(pools_, "kv_cache_dtype=fp8"));
    }
  }

  void Shape() {
    const PoolSpec& pool = pools_[0];
    if (pools_.size() == 1) {
      const std::int64_t group = pool.attention_data_parallel;  // replicas come in groups
      const std::int64_t wanted = std::max(pool.replicas + 1, pool.replicas * 5 / 4);
      const std::int64_t more = CeilDiv(wanted, group) * group;
      Add(Format("{} replicas", more), {Format("cluster.pools.0.replicas={}", more)});
    }
    for (std::size_t p = 0; pools_.size() > 1 && p < pools_.size(); ++p) {
      const std::int64_t group = pools_[p].attention_data_parallel;
      const std::string more = group == 1 ? "one more replica" : Format("{} more replicas", group);
      Add(more + OfPool(pools_, p),
          {Format("cluster.pools.{}.replicas={}", p, pools_[p].replicas + group)});
    }
    std::vector<std::string> wider;
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      wider.push_back(
          Format("cluster.pools.{}.tensor_parallel={}", p, 2 * pools_[p].tensor_parallel));
    }
    Add(Format("tensor parallel {}", 2 * pool.tensor_parallel), std::move(wider));
    for (std::size_t p = 0; p < pools_.size(); ++p) CutOtherwise(p);
    if (const std::string next = NextGpu(s_.hardware.name); !next.empty()) {
      Add(Format("GPU {}", next), {Format(R"(hardware={{"preset":"{}"}})", next)});
    }
    if (pools_.size() == 1 && pool.replicas >= 2 && pool.role == PoolRole::kMixed) {
      const std::int64_t prefill = (pool.replicas + 1) / 2;
      Add(Format("{} for prefill, {} for decode", Count(prefill, "replica"),
                 pool.replicas - prefill),
          {Format(R"(cluster.pools=[{{"role":"prefill","replicas":{},"tensor_parallel":{}}},)"
                  R"({{"role":"decode","replicas":{},"tensor_parallel":{}}}])",
                  prefill, pool.tensor_parallel, pool.replicas - prefill, pool.tensor_parallel)});
    }
  }

  // The same GPUs in more and smaller replicas, and in fewer and larger ones. Experts are shared by
  // as many replicas as before, or by as many GPUs.
  void CutOtherwise(std::size_t p) {
    const PoolSpec& pool = pools_[p];
    const std::int64_t group = pool.attention_data_parallel;
    const auto cut = [&](std::int64_t width, std::int64_t replicas, std::int64_t sharing) {
      std::vector<std::string> overrides = {Format("cluster.pools.{}.tensor_parallel={}", p, width),
                                            Format("cluster.pools.{}.replicas={}", p, replicas)};
      std::string words = Format("{} of TP {}", Count(replicas, "replica"), width);
      if (sharing != group) {
        overrides.push_back(Format("cluster.pools.{}.attention_data_parallel={}", p, sharing));
        words += sharing > 1 ? Format(" with attention data parallel {}", sharing)
                             : " that share no experts";
      }
      Add(words + OfPool(pools_, p), std::move(overrides));
    };
    const std::int64_t width = pool.tensor_parallel;
    if (width % 2 == 0) {
      cut(width / 2, 2 * pool.replicas, group);
      if (s_.model.num_local_experts > 0) cut(width / 2, 2 * pool.replicas, 2 * group);
    }
    if (pool.replicas % (2 * group) == 0) cut(2 * width, pool.replicas / 2, group);
    if (group % 2 == 0) cut(2 * width, pool.replicas / 2, group / 2);
  }

  void Router() {
    if (s_.cluster.Replicas() < 2) return;
    static constexpr const char* kOfPrefixes[] = {"cache_aware", "prefix_aware", "kv_lookup"};
    std::vector<const char*> routers = {"least_outstanding", "prefix_affinity"};
    if (MayReuse(*s_.workload)) routers.insert(routers.end(), kOfPrefixes, std::end(kOfPrefixes));
    for (const char* router : routers) {
      if (s_.cluster.router == router) continue;
      Add(Format("router {}", router), {Format(R"(cluster.router={{"policy":"{}"}})", router)});
    }
    for (const char* profile : {"default", "optimized-baseline"}) {
      if (s_.cluster.router != "epp" || s_.cluster.epp.profile == profile) continue;
      Add(Format("profile {}", profile), {Format("cluster.router.profile={}", profile)});
    }
  }

  const Scenario& s_;
  const std::vector<PoolSpec>& pools_;
  std::vector<Change> all_;
};

}  // namespace

std::vector<std::string> OfEngines(const std::vector<PoolSpec>& pools,
                                   const std::string& assignment) {
  std::vector<std::string> overrides = {"engine." + assignment};
  for (std::size_t p = 0; p < pools.size(); ++p) {
    if (pools[p].engine) overrides.push_back(Format("cluster.pools.{}.engine.{}", p, assignment));
  }
  return overrides;
}

std::string OfPool(const std::vector<PoolSpec>& pools, std::size_t index) {
  const PoolSpec& pool = pools[index];
  if (pools.size() == 1) return "";
  if (!pool.name.empty()) return " of " + pool.name;
  const auto alike = std::count_if(pools.begin(), pools.end(), [&pool](const PoolSpec& other) {
    return other.role == pool.role;
  });
  if (alike == 1 && pool.role == PoolRole::kPrefill) return " for prefill";
  if (alike == 1 && pool.role == PoolRole::kDecode) return " for decode";
  if (alike == 1 && pool.role == PoolRole::kEncode) return " for images";
  return Format(" of pool {}", index);
}

bool MayReuse(const WorkloadSpec& w) {
  return w.prefix.groups > 0 || w.sessions.turns > 1 || !w.classes.empty() ||
         w.arrivals.process == ArrivalProcess::kTrace;
}

std::vector<Change> ChangesOf(const Scenario& scenario) { return Lister(scenario).List(); }

std::optional<double> CostPerHour(const Scenario& s) {
  double cost = 0;
  for (const PoolSpec& pool : s.cluster.pools) {
    const auto price = (pool.hardware ? *pool.hardware : s.hardware).price_per_gpu_hour;
    if (!price) return std::nullopt;
    cost += *price * static_cast<double>(pool.Gpus());
  }
  return cost;
}

}  // namespace servecast
