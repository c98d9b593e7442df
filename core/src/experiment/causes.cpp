// See causes.h.
#include "experiment/causes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/base.h"
#include "base/math.h"
#include "base/text.h"
#include "experiment/advise.h"
#include "experiment/server_figures.h"
#include "metrics/words.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// Cards that are sold under one name, the fastest first: presets by their names.
struct Variant {
  std::string_view family, name, preset;
};
constexpr Variant kVariants[] = {
    {"a100", "A100 SXM 80 GB", "a100-80gb"},
    {"a100", "A100 PCIe 80 GB", "a100-pcie-80gb"},
    {"a100", "A100 SXM 40 GB", "a100-sxm-40gb"},
    {"a100", "A100 PCIe 40 GB", "a100-40gb"},
    {"h100", "H100 SXM 80 GB", "h100-sxm"},
    {"h100", "H100 NVL 94 GB", "h100-nvl"},
    {"h100", "H100 PCIe 80 GB", "h100-pcie"},
    {"h20", "H20 141 GB", "h20-141gb"},
    {"h20", "H20 96 GB", "h20"},
    {"b200", "B300 SXM 288 GB", "b300-sxm"},
    {"b200", "B200 SXM 180 GB", "b200-sxm"},
    {"l40", "L40S 48 GB", "l40s"},
    {"l40", "L40 48 GB", "l40"},
    {"a10", "A10 24 GB", "a10"},
    {"a10", "A10G 24 GB", "a10g"},
    {"gh200", "GH200 144 GB", "gh200-144gb"},
    {"gh200", "GH200 96 GB", "gh200-96gb"},
};

constexpr double kSlowClock = 0.9;
// Of the KV cache: less is what a preset's overheads are off by.
constexpr double kOtherRoom = 0.02;

class CauseLister {
 public:
  CauseLister(const Scenario& s, const Report& report, const ServerFacts& facts, bool slower)
      : s_(s),
        pools_(s.cluster.pools),
        engine_(pools_[0].engine ? *pools_[0].engine : s.engine),
        report_(report),
        measured_(facts.measured),
        said_(facts.said),
        slower_(slower) {}

  std::vector<Cause> List() {
    Memory();
    Features();
    Limits();
    Host();
    Hardware();
    Weights();
    Load();
    return std::move(all_);
  }

 private:
  void Add(std::string kind, std::string words, std::vector<std::string> overrides,
           std::string proof) {
    if (IsSaid(overrides[0])) return;
    all_.push_back({std::move(kind), std::move(words), std::move(overrides), std::move(proof)});
  }

  // Whether a text says the member, of a pool ("cluster.pools.1.engine.block_size") or of all.
  bool IsSaid(const std::string& assignment) const {
    std::string path = assignment.substr(0, assignment.find('='));
    if (path == "hardware") path = "hardware.preset";
    if (path.rfind("workload.arrivals.", 0) == 0) path = "workload.arrivals";
    const std::string of_pool = "." + path;
    return std::any_of(said_.begin(), said_.end(), [&](const std::string& said) {
      return said == path ||
             (said.size() > of_pool.size() &&
              said.compare(said.size() - of_pool.size(), of_pool.size(), of_pool) == 0);
    });
  }

  void Memory() {
    const std::optional<double> room = ValueOf(measured_, "kv_tokens");
    const auto planned = static_cast<double>(report_.kv_tokens);
    if (!room || pools_.size() > 1 || !(planned > 0) ||
        std::fabs(*room / planned - 1) < kOtherRoom) {
      return;
    }
    const auto blocks = static_cast<std::int64_t>(*room) / engine_.block_size;
    if (blocks < 2) return;
    Add("kv", Format("the KV cache holds {} tokens, as logged", ShortNumber(*room)),
        OfEngines(pools_, Format("num_gpu_blocks_override={}", blocks)),
        "the log: GPU KV cache size");
  }

  void Features() {
    if (engine_.enable_prefix_caching && slower_ && report_.prefix_cache.hit_tokens > 0) {
      Add("prefix", "prefix caching is off", OfEngines(pools_, "enable_prefix_caching=false"),
          "the log: enable_prefix_caching; the metric vllm:prefix_cache_hits");
    }
    if (!engine_.enable_prefix_caching && !slower_) {
      Add("prefix", "prefix caching is on", OfEngines(pools_, "enable_prefix_caching=true"),
          "the log: enable_prefix_caching; the metric vllm:prefix_cache_hits");
    }
    if (engine_.enable_chunked_prefill) {
      Add("chunks", "chunked prefill is off", OfEngines(pools_, "enable_chunked_prefill=false"),
          "the log: enable_chunked_prefill");
    }
    if (engine_.cuda_graphs == CudaGraphs::kImplied && slower_) {
      Add("graphs", "no CUDA graphs (eager mode)", OfEngines(pools_, "cuda_graphs=eager"),
          "the log: enforce_eager; --enforce-eager");
    }
    if (engine_.cuda_graphs == CudaGraphs::kEager && !slower_) {
      Add("graphs", "CUDA graphs are on", OfEngines(pools_, "cuda_graphs=implied"),
          "the log: enforce_eager; --enforce-eager");
    }
    if (engine_.async_scheduling == slower_) {
      Add("async", slower_ ? "async scheduling is off" : "async scheduling is on",
          OfEngines(pools_, slower_ ? "async_scheduling=false" : "async_scheduling=true"),
          "the log: async_scheduling");
    }
    if (engine_.speculative.On()) {
      Add("drafts", "no speculative decoding", OfEngines(pools_, "speculative.method=none"),
          "the log: speculative_config; the metric vllm:spec_decode_num_drafts");
    }
  }

  void Limits() {
    const auto number = [this](const char* kind, const char* name, std::int64_t value,
                               std::int64_t now) {
      if (value < 1 || value == now) return;
      Add(kind, Format("{} {}", name, ShortNumber(static_cast<double>(value))),
          OfEngines(pools_, Format("{}={}", name, value)), Format("the log: {}", name));
    };
    number("seats", "max_num_seqs", engine_.max_num_seqs / 2, engine_.max_num_seqs);
    // Defaults of vLLM by the GPU's memory.
    constexpr std::int64_t kSmallSeats = 256, kLargeSeats = 1024;
    constexpr std::int64_t kSmallBudget = 2048, kLargeBudget = 8192;
    number("seats", "max_num_seqs", engine_.max_num_seqs < kLargeSeats ? kLargeSeats : kSmallSeats,
           engine_.max_num_seqs);
    for (const std::int64_t budget : {kSmallBudget, kLargeBudget}) {
      number("budget", "max_num_batched_tokens", budget, engine_.max_num_batched_tokens);
    }
  }

  void Host() {
    if (engine_.host == "default" && slower_) {
      Add("host", "the host is slow: 17 ms before a request is queued, as one that was measured",
          OfEngines(pools_, "host=a100-pcie-2026"),
          "curl -w '%{time_starttransfer}' with one output token, on an idle server");
    }
    if (engine_.sampler_ns_per_logit > 0 && s_.model.top_p_by_default != slower_) {
      Add("sampling",
          slower_ ? "requests are sampled by top-p" : "requests are not sampled by top-p",
          {slower_ ? "model.top_p_by_default=true" : "model.top_p_by_default=false"},
          "top_p and top_k in the model's generation_config.json; --generation-config");
    }
  }

  void Hardware() {
    const bool alone = std::none_of(pools_.begin(), pools_.end(),
                                    [](const PoolSpec& pool) { return pool.hardware.has_value(); });
    if (!alone) return;
    const HardwareSpec& h = s_.hardware;
    const auto* own = std::find_if(std::begin(kVariants), std::end(kVariants),
                                   [&h](const Variant& each) { return each.name == h.name; });
    for (const auto* each = std::begin(kVariants); each != std::end(kVariants); ++each) {
      if (own == std::end(kVariants) || each->family != own->family || each == own) continue;
      if ((each > own) != slower_) continue;
      const bool vowel = each->name[0] != 'B' && each->name[0] != 'G';  // as it is spoken
      Add("gpu", Format("the GPU is {} {}", vowel ? "an" : "a", each->name),
          {Format(R"(hardware={{"preset":"{}"}})", each->preset)}, "nvidia-smi -L");
    }
    if (slower_) {
      const auto slow = [](const char* name, double peak) {
        return Format("hardware.{}={}", name, NumberText(peak * kSlowClock));
      };
      std::vector<std::string> overrides = {slow("peak_bf16_tflops", h.peak_bf16_tflops)};
      if (h.peak_fp8_tflops > 0) overrides.push_back(slow("peak_fp8_tflops", h.peak_fp8_tflops));
      if (h.peak_fp4_tflops > 0) overrides.push_back(slow("peak_fp4_tflops", h.peak_fp4_tflops));
      if (h.peak_int8_tops > 0) overrides.push_back(slow("peak_int8_tops", h.peak_int8_tops));
      Add("clock", "the GPU's clock is 10 % below its peak", std::move(overrides),
          "nvidia-smi -q -d CLOCK,PERFORMANCE under load");
    }
    Parallel(h);
  }

  void Parallel(const HardwareSpec& h) {
    const std::int64_t width = pools_[0].tensor_parallel;
    if (pools_.size() > 1) return;
    if (width > 1 && slower_ && h.interconnect != Interconnect::kPcieHost) {
      Add("links", "GPUs reach each other through the host's memory alone",
          {"hardware.interconnect=pcie_host"}, "nvidia-smi topo -m; NCCL_P2P_DISABLE");
    }
    if (width > 1 && slower_) {
      Add("tp", Format("tensor parallel {}", width / 2),
          {Format("cluster.pools.0.tensor_parallel={}", width / 2)},
          "the log: tensor_parallel_size; nvidia-smi");
    }
    if (width < 8 && !slower_) {
      Add("tp", Format("tensor parallel {}", 2 * width),
          {Format("cluster.pools.0.tensor_parallel={}", 2 * width)},
          "the log: tensor_parallel_size; nvidia-smi");
    }
    if (pools_[0].replicas > 1 && slower_) {
      Add("replicas", "one replica gets no requests",
          {Format("cluster.pools.0.replicas={}", pools_[0].replicas - 1)},
          "vllm:num_requests_running of each replica");
    }
  }

  void Weights() {
    if (s_.model.quantization != Quantization::kNone && slower_) {
      Add("weights", "the weights are in 16 bits", {"model.quantization=none"},
          "the log: quantization, and how much memory loading the model took");
    }
    if (s_.model.quantization == Quantization::kNone && !slower_) {
      Add("weights", "the weights are in fp8", {"model.quantization=fp8"},
          "the log: quantization, and how much memory loading the model took");
    }
    if (engine_.kv_cache_dtype == KvCacheDType::kFp8) {
      Add("kv_type", "the KV cache is in 16 bits", OfEngines(pools_, "kv_cache_dtype=auto"),
          "the log: kv_cache_dtype");
    }
  }

  void Load() {
    Lengths();
    const ArrivalSpec& a = s_.workload->arrivals;
    if (!HasRate(a.process)) return;
    if (a.process == ArrivalProcess::kPoisson || a.process == ArrivalProcess::kConstant) {
      Add("arrivals", "requests come in bursts (gaps with twice the spread)",
          {"workload.arrivals.process=gamma", "workload.arrivals.cv=2"},
          "the client's --burstiness; times of arrival in its log");
    }
    if (const std::optional<std::int64_t> clients = HeldBy();
        clients && *clients >= 1 && !CapsClients(a)) {
      // Whatever rate was asked for.
      all_.push_back(
          {"arrivals",
           Format("clients hold back: at most {} at a time", Count(*clients, "request")),
           {Format(R"(workload.arrivals={{"process":"closed_loop","concurrency":{}}})", *clients)},
           "the client's --max-concurrency, its connections and its CPU"});
    }
  }

  // Of lengths that a text has the means of alone: lognormal ones with these.
  void Lengths() {
    const auto prompt = ValueOf(measured_, "prompt_tokens_mean"),
               output = ValueOf(measured_, "output_tokens_mean");
    if (!prompt || !output || !slower_) return;
    if (s_.workload->prompt_tokens.distribution != LengthDistribution::kFixed) return;
    constexpr double kSigma = 0.8, kZ99 = 2.3263478740408408;  // chats have 0.7 to 1.2
    const auto spread = [](const char* member, double mean) {
      const double median = mean * Exp(-kSigma * kSigma / 2);
      return Format(R"(workload.{}={{"distribution":"lognormal","median":{},"p99":{}}})", member,
                    NumberText(median), NumberText(median * Exp(kSigma * kZ99)));
    };
    Add("lengths", "lengths vary as in chats (the result has their means alone)",
        {spread("prompt_tokens", *prompt), spread("output_tokens", *output)},
        "input_lens and output_lens of --save-detailed");
  }

  // Requests that clients had open: as they say, or by Little's law where fewer were answered than
  // a rate offers.
  std::optional<std::int64_t> HeldBy() const {
    const auto whole = [](double value) {
      return static_cast<std::int64_t>(std::clamp(std::nearbyint(value), 1.0, 1e6));
    };
    if (const auto limit = ValueOf(measured_, "concurrency_limit")) return whole(*limit);
    const auto served = ValueOf(measured_, "requests_per_s");
    const auto e2e = ValueOf(measured_, "e2e_ms.mean");
    constexpr double kFewer = 0.97;
    if (!served || !e2e || *served >= kFewer * report_.requests_per_s) return std::nullopt;
    return whole(*served * *e2e / 1000);
  }

  const Scenario& s_;
  const std::vector<PoolSpec>& pools_;
  const EngineSpec& engine_;
  const Report& report_;
  const std::vector<MeasuredValue>& measured_;
  const std::vector<std::string>& said_;
  const bool slower_;
  std::vector<Cause> all_;
};

}  // namespace

std::vector<Cause> CausesOf(const Scenario& scenario, const Report& report,
                            const ServerFacts& facts, bool slower) {
  return CauseLister(scenario, report, facts, slower).List();
}

}  // namespace servecast
