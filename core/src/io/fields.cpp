// The fields of a scenario document: name, unit, range, help, each written here and nowhere else.
// Defaults are the member initialisers of scenario.h.
#include "io/fields.h"

#include <algorithm>
#include <type_traits>

#include "serving/policy.h"

namespace servecast {
namespace {

constexpr double kMaxTokens = 1e9;

// A visitor bound to an object and its base, so that a field is one line.
template <class T>
class Fields {
 public:
  Fields(FieldVisitor& visitor, T& object, const T& base)
      : visitor_(visitor), object_(object), base_(base) {}

  template <class M>
  void Add(const FieldSpec& spec, M T::*member) {
    M& value = object_.*member;
    const M& base = base_.*member;
    if constexpr (std::is_same_v<M, std::optional<std::int64_t>>) {
      visitor_.Integer(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::optional<double>>) {
      visitor_.Number(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::int64_t>) {
      std::optional<std::int64_t> v = value;
      visitor_.Integer(spec, v, base);
      value = v.value_or(value);
    } else if constexpr (std::is_same_v<M, double>) {
      std::optional<double> v = value;
      visitor_.Number(spec, v, base);
      value = v.value_or(value);
    } else if constexpr (std::is_same_v<M, bool>) {
      visitor_.Boolean(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::string>) {
      visitor_.Text(spec, value, base);
    } else if constexpr (std::is_same_v<M, std::vector<double>>) {
      visitor_.Numbers(spec, value, base);
    } else {
      visitor_.Quantiles(spec, value, base);
    }
  }

  // An enumerator by its name; `names` in the order of the enumerators.
  template <class E>
  void Enum(const FieldSpec& spec, E T::*member, const Choices& names) {
    std::string value(names[static_cast<std::size_t>(object_.*member)]);
    visitor_.Choice(spec, names, value,
                    std::string(names[static_cast<std::size_t>(base_.*member)]));
    const auto at = std::find(names.begin(), names.end(), value);
    if (at != names.end()) object_.*member = static_cast<E>(at - names.begin());
  }

  void Policy(const FieldSpec& spec, std::string T::*member, const Choices& names) {
    visitor_.Choice(spec, names, object_.*member, base_.*member);
  }

 private:
  FieldVisitor& visitor_;
  T& object_;
  const T& base_;
};

template <class T, class Describe>
ListField ListOf(std::vector<T>& items, const std::vector<T>& base, Describe describe) {
  static const T kDefault{};
  ListField list;
  list.size = [&items] { return items.size(); };
  list.resize = [&items](std::size_t n) { items.assign(n, T{}); };
  list.describe = [&items, describe](FieldVisitor& v, std::size_t i) {
    describe(v, items[i], kDefault);
  };
  list.base_size = base.size();
  list.describe_base = [&base, describe](FieldVisitor& v, std::size_t i) {
    T item = base[i];
    describe(v, item, kDefault);
  };
  return list;
}

void Describe(FieldVisitor& v, ModelSpec& m, const ModelSpec& base) {
  Fields<ModelSpec> f(v, m, base);
  const auto required = [](const char* name, double min, double max, const char* help) {
    return FieldSpec{.name = name, .min = min, .max = max, .help = help, .required = true};
  };
  f.Add({.name = "name", .help = "what to call the model", .label = true}, &ModelSpec::name);
  f.Add(required("num_hidden_layers", 1, 1000, "transformer layers"),
        &ModelSpec::num_hidden_layers);
  f.Add(required("hidden_size", 1, 1e6, "width of the hidden state"), &ModelSpec::hidden_size);
  f.Add(required("num_attention_heads", 1, 10000, "query heads"), &ModelSpec::num_attention_heads);
  f.Add(required("num_key_value_heads", 1, 10000,
                 "key and value heads; fewer than query heads: grouped-query attention"),
        &ModelSpec::num_key_value_heads);
  f.Add(required("head_dim", 1, 10000, "width of a head"), &ModelSpec::head_dim);
  f.Add(required("intermediate_size", 1, 1e7, "width of the MLP; with experts, of one expert"),
        &ModelSpec::intermediate_size);
  f.Add(required("vocab_size", 1, 1e7, "tokens of the vocabulary"), &ModelSpec::vocab_size);
  f.Add({.name = "max_position_embeddings",
         .unit = "tokens",
         .min = 1,
         .max = kMaxTokens,
         .help = "longest sequence that the model was made for",
         .required = true},
        &ModelSpec::max_position_embeddings);
  f.Add({.name = "tie_word_embeddings", .help = "the LM head shares the embedding's weights"},
        &ModelSpec::tie_word_embeddings);
  f.Add({.name = "attention_bias", .help = "biases on the query, key and value projections"},
        &ModelSpec::attention_bias);
  f.Add({.name = "num_local_experts",
         .min = 0,
         .max = 10000,
         .help = "experts of a layer; 0: a dense model"},
        &ModelSpec::num_local_experts);
  f.Add({.name = "num_experts_per_tok",
         .min = 0,
         .max = 10000,
         .help = "experts that a token goes through"},
        &ModelSpec::num_experts_per_tok);
  f.Enum({.name = "torch_dtype", .help = "type of weights and KV cache"}, &ModelSpec::torch_dtype,
         {"bfloat16", "float16"});
}

void Describe(FieldVisitor& v, HardwareSpec& h, const HardwareSpec& base) {
  Fields<HardwareSpec> f(v, h, base);
  f.Add({.name = "name", .help = "what to call the GPU", .label = true}, &HardwareSpec::name);
  f.Add({.name = "memory_gib",
         .unit = "GiB",
         .min = 0.1,
         .max = 100000,
         .help = "memory of one GPU, as CUDA reports it",
         .required = true},
        &HardwareSpec::memory_gib);
  f.Add({.name = "memory_bandwidth_gb_s",
         .unit = "GB/s",
         .min = 0.1,
         .max = 1e6,
         .help = "memory bandwidth by the data sheet",
         .required = true},
        &HardwareSpec::memory_bandwidth_gb_s);
  f.Add({.name = "peak_bf16_tflops",
         .unit = "TFLOP/s",
         .min = 0.01,
         .max = 1e6,
         .help = "peak of dense 16-bit matrix products by the data sheet",
         .required = true},
        &HardwareSpec::peak_bf16_tflops);
  f.Add({.name = "interconnect_gb_s",
         .unit = "GB/s",
         .min = 0.1,
         .max = 1e5,
         .help = "bandwidth per direction to the other GPUs of a tensor-parallel group",
         .required = true},
        &HardwareSpec::interconnect_gb_s);
  f.Add({.name = "interconnect_latency_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "fixed time of one all-reduce"},
        &HardwareSpec::interconnect_latency_us);
  f.Add({.name = "compute_efficiency",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the peak that large matrix products reach",
         .required = true},
        &HardwareSpec::compute_efficiency);
  f.Add({.name = "bandwidth_efficiency",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the bandwidth that weight and KV reads reach",
         .required = true},
        &HardwareSpec::bandwidth_efficiency);
  f.Add({.name = "price_per_gpu_hour",
         .unit = "$/h",
         .min = 0,
         .max = 1e6,
         .help = "your price of one GPU for an hour; without one no cost is shown"},
        &HardwareSpec::price_per_gpu_hour);
}

void Describe(FieldVisitor& v, EngineSpec& e, const EngineSpec& base) {
  Fields<EngineSpec> f(v, e, base);
  f.Add({.name = "name", .help = "what to call the engine", .label = true}, &EngineSpec::name);
  f.Enum({.name = "compat",
          .help =
              "whose rules: none: vLLM's; blis, blis-2026-02: the simulator BLIS, quirks included"},
         &EngineSpec::compat, {"none", "blis-2026-02", "blis"});
  f.Add({.name = "max_num_seqs",
         .unit = "requests",
         .min = 1,
         .max = 65536,
         .help = "most requests in a step (seats)"},
        &EngineSpec::max_num_seqs);
  f.Add({.name = "max_num_batched_tokens",
         .unit = "tokens",
         .min = 1,
         .max = 1e7,
         .help = "token budget of a step, prefill and decode together"},
        &EngineSpec::max_num_batched_tokens);
  f.Add({.name = "max_model_len",
         .unit = "tokens",
         .min = 1,
         .max = kMaxTokens,
         .help = "longest sequence that the engine takes; default: the model's"},
        &EngineSpec::max_model_len);
  f.Add({.name = "block_size",
         .unit = "tokens",
         .min = 1,
         .max = 1024,
         .help = "tokens of a KV block"},
        &EngineSpec::block_size);
  f.Add({.name = "gpu_memory_utilization",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the GPU's memory that the engine may use"},
        &EngineSpec::gpu_memory_utilization);
  f.Add({.name = "num_gpu_blocks_override",
         .unit = "blocks",
         .min = 2,
         .max = 1e9,
         .help = "KV blocks, instead of those that memory has room for; one of them is reserved"},
        &EngineSpec::num_gpu_blocks_override);
  f.Add({.name = "enable_prefix_caching",
         .help = "keep the KV blocks of computed prompts and reuse them for equal beginnings"},
        &EngineSpec::enable_prefix_caching);
  f.Add({.name = "enable_chunked_prefill",
         .help = "split a prompt that exceeds what is left of the token budget"},
        &EngineSpec::enable_chunked_prefill);
  f.Add({.name = "long_prefill_token_threshold",
         .unit = "tokens",
         .min = 0,
         .max = kMaxTokens,
         .help = "most prompt tokens of one request in a step; 0: no such limit"},
        &EngineSpec::long_prefill_token_threshold);
  f.Add({.name = "scheduler_reserve_full_isl",
         .help =
             "admit only when the whole prompt fits the free KV blocks, not just its first chunk"},
        &EngineSpec::scheduler_reserve_full_isl);
  f.Add({.name = "watermark",
         .unit = "1",
         .min = 0,
         .max = 0.99,
         .help = "share of the KV blocks that admission leaves free while requests run"},
        &EngineSpec::watermark);
  f.Add(
      {.name = "free_contentless_first",
       .help = "freed KV blocks that hold nothing to find again are the first to be taken; false: "
               "all go to the end of the free list"},
      &EngineSpec::free_contentless_first);
  f.Add({.name = "async_scheduling",
         .help = "form the next batch while this one runs, before its tokens are known"},
        &EngineSpec::async_scheduling);
  f.Add({.name = "step_overhead_us",
         .unit = "us",
         .min = 0,
         .max = 1e7,
         .help = "host time in every step (analytic model)"},
        &EngineSpec::step_overhead_us);
  f.Add({.name = "sequence_overhead_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "host and sampling time per sequence in a step (analytic model)"},
        &EngineSpec::sequence_overhead_us);
  f.Add({.name = "request_overhead_ms",
         .unit = "ms",
         .min = 0,
         .max = 1e6,
         .help = "from a request's arrival to the scheduler's queue (analytic model)"},
        &EngineSpec::request_overhead_ms);
}

void Describe(FieldVisitor& v, PoolSpec& p, const PoolSpec& base) {
  Fields<PoolSpec> f(v, p, base);
  f.Enum({.name = "role", .help = "what its replicas do"}, &PoolSpec::role, {"mixed"});
  f.Add({.name = "replicas",
         .min = 1,
         .max = 1,
         .help = "independent engines (one, until clusters are modelled)"},
        &PoolSpec::replicas);
  f.Add({.name = "tensor_parallel",
         .unit = "GPUs",
         .min = 1,
         .max = 1024,
         .help = "GPUs that share every matrix product"},
        &PoolSpec::tensor_parallel);
  f.Add({.name = "pipeline_parallel",
         .min = 1,
         .max = 1,
         .help = "stages of layers (one, until pipelines are modelled)"},
        &PoolSpec::pipeline_parallel);
}

void Describe(FieldVisitor& v, SchedulerSpec& s, const SchedulerSpec& base) {
  Fields<SchedulerSpec> f(v, s, base);
  f.Policy({.name = "policy", .help = "how a replica forms its batches"}, &SchedulerSpec::policy,
           {"vllm"});
  Choices orders, priorities, aging;
  for (const OrderEntry& entry : Orders()) orders.push_back(entry.name);
  for (const PriorityEntry& entry : Priorities()) {
    priorities.push_back(entry.name);
    if (entry.uses_age_weight) aging.push_back(entry.name);
  }
  f.Policy({.name = "order", .help = "who leaves the waiting queue first"}, &SchedulerSpec::order,
           orders);
  f.Policy({.name = "priority", .help = "what a request's priority is; lower is more urgent"},
           &SchedulerSpec::priority, priorities);
  f.Policy({.name = "preemption",
            .help = "who yields when KV blocks run out: the last one admitted (tail), or the least "
                    "urgent (priority); auto: priority where the queue is ordered by it"},
           &SchedulerSpec::preemption, {"auto", "tail", "priority"});
  v.When("priority", aging, std::find(aging.begin(), aging.end(), s.priority) != aging.end(),
         [&](FieldVisitor& inner) {
           Fields<SchedulerSpec>(inner, s, base)
               .Add({.name = "age_weight_per_s",
                     .unit = "1/s",
                     .min = 0,
                     .max = 1e6,
                     .help = "change of the priority number per second since arrival"},
                    &SchedulerSpec::age_weight_per_s);
         });
}

void Describe(FieldVisitor& v, LatencySpec& l, const LatencySpec& base) {
  Fields<LatencySpec> f(v, l, base);
  Choices backends = {"auto"};
  for (const LatencyEntry& entry : LatencyModels()) backends.push_back(entry.name);
  f.Policy({.name = "backend",
            .help = "model of the step time; auto: the best for this model, GPU and engine"},
           &LatencySpec::backend, backends);
  using Latency = Fields<LatencySpec>;
  const auto with = [&](const Choices& names, void (*add)(Latency&)) {
    const bool active = std::find(names.begin(), names.end(), l.backend) != names.end();
    v.When("backend", names, active, [&](FieldVisitor& inner) {
      Latency fields(inner, l, base);
      add(fields);
    });
  };
  with({"blackbox", "roofline"}, [](Latency& g) {
    g.Add({.name = "alpha",
           .unit = "us",
           .min = 0,
           .max = 1e9,
           .help = "delay before the queue, the same per prompt token, delay per output token"},
          &LatencySpec::alpha);
  });
  with({"blackbox"}, [](Latency& g) {
    g.Add({.name = "beta",
           .unit = "us",
           .min = 0,
           .max = 1e9,
           .help = "time of a step, per prefill token, per decode token"},
          &LatencySpec::beta);
  });
  with({"roofline"}, [](Latency& g) {
    const auto share = [](const char* name, const char* help) {
      return FieldSpec{.name = name, .unit = "1", .min = 0.01, .max = 1, .help = help};
    };
    g.Add(share("mfu_prefill", "share of the peak in prefill; default 0.65, compat blis: 0.45"),
          &LatencySpec::mfu_prefill);
    g.Add(share("mfu_decode", "share of the peak in decode; default 0.12, compat blis: 0.3"),
          &LatencySpec::mfu_decode);
  });
  with({"trained_physics"}, [](Latency& g) {
    g.Add({.name = "physics_alpha",
           .unit = "us",
           .min = 0,
           .max = 1e9,
           .help = "delay before the queue, after the last token, per output token"},
          &LatencySpec::physics_alpha);
    g.Add({.name = "physics_beta", .min = 0, .max = 1e6, .help = "ten factors, in BLIS's order"},
          &LatencySpec::physics_beta);
  });
  with({"roofline", "trained_physics"}, [](Latency& g) {
    g.Add({.name = "weight_bytes", .unit = "B", .min = 1, .max = 4, .help = "bytes of a weight"},
          &LatencySpec::weight_bytes);
    g.Add({.name = "peak_fp8_tflops",
           .unit = "TFLOP/s",
           .min = 0,
           .max = 1e6,
           .help = "peak with weights of one byte; 0: as with two"},
          &LatencySpec::peak_fp8_tflops);
    g.Add({.name = "interleave_moe_layer_step",
           .min = 0,
           .max = 1000,
           .help = "experts in one layer of this + 1; 0: in all"},
          &LatencySpec::interleave_moe_layer_step);
    g.Add({.name = "intermediate_size_mlp",
           .min = 0,
           .max = 1e7,
           .help = "width of the MLP in layers without experts"},
          &LatencySpec::intermediate_size_mlp);
  });
}

void Describe(FieldVisitor& v, ArrivalSpec& a, const ArrivalSpec& base) {
  Fields<ArrivalSpec> f(v, a, base);
  f.Enum({.name = "process", .help = "how requests arrive; trace: as in a trace file"},
         &ArrivalSpec::process, {"poisson", "constant", "trace"});
  v.When("process", {"poisson", "constant"}, a.process != ArrivalProcess::kTrace,
         [&](FieldVisitor& inner) {
           Fields<ArrivalSpec>(inner, a, base)
               .Add({.name = "rate_per_s",
                     .unit = "req/s",
                     .min = 1e-6,
                     .max = 1e6,
                     .help = "mean rate of arrivals; with sessions, of their first turns"},
                    &ArrivalSpec::rate_per_s);
         });
  v.When("process", {"trace"}, a.process == ArrivalProcess::kTrace, [&](FieldVisitor& inner) {
    Fields<ArrivalSpec>(inner, a, base)
        .Add({.name = "rate_scale",
              .unit = "1",
              .min = 1e-6,
              .max = 1e6,
              .help = "the trace's arrivals come this many times as fast"},
             &ArrivalSpec::rate_scale);
  });
}

void Describe(FieldVisitor& v, LengthSpec& l, const LengthSpec& base) {
  Fields<LengthSpec> f(v, l, base);
  f.Enum({.name = "distribution", .help = "how lengths vary; trace: as in a trace file"},
         &LengthSpec::distribution, {"fixed", "uniform", "lognormal", "empirical", "trace"});
  const auto when = [&](LengthDistribution distribution, std::string_view name, const auto& add) {
    v.When("distribution", {name}, l.distribution == distribution, [&](FieldVisitor& inner) {
      Fields<LengthSpec> g(inner, l, base);
      add(g);
    });
  };
  const auto tokens = [](const char* name, const char* help, bool required = false) {
    return FieldSpec{.name = name,
                     .unit = "tokens",
                     .min = 1,
                     .max = kMaxTokens,
                     .help = help,
                     .required = required};
  };
  when(LengthDistribution::kFixed, "fixed",
       [&](auto& g) { g.Add(tokens("value", "length of every request"), &LengthSpec::value); });
  when(LengthDistribution::kUniform, "uniform", [&](auto& g) {
    g.Add(tokens("min", "shortest"), &LengthSpec::min);
    g.Add(tokens("max", "longest", true), &LengthSpec::max);
  });
  when(LengthDistribution::kLognormal, "lognormal", [&](auto& g) {
    g.Add(tokens("median", "half of the lengths are below"), &LengthSpec::median);
    g.Add(tokens("p99", "99 % of the lengths are below"), &LengthSpec::p99);
    g.Add(tokens("min", "shorter draws are set to it"), &LengthSpec::min);
    g.Add(tokens("max", "longer draws are set to it"), &LengthSpec::max);
  });
  when(LengthDistribution::kEmpirical, "empirical", [&](auto& g) {
    g.Add(tokens("quantiles", "[probability, tokens] from 0 to 1; straight lines between", true),
          &LengthSpec::quantiles);
  });
}

void Describe(FieldVisitor& v, PrefixSpec& p, const PrefixSpec& base) {
  Fields<PrefixSpec> f(v, p, base);
  f.Add({.name = "groups",
         .unit = "groups",
         .min = 0,
         .max = 1e6,
         .help = "how many shared beginnings there are; each session has one of them, drawn "
                 "evenly; 0: nothing is shared"},
        &PrefixSpec::groups);
  f.Add({.name = "tokens",
         .unit = "tokens",
         .min = 0,
         .max = kMaxTokens,
         .help = "length of a shared beginning (a system prompt), before the drawn prompt tokens"},
        &PrefixSpec::tokens);
}

void Describe(FieldVisitor& v, SessionSpec& s, const SessionSpec& base) {
  Fields<SessionSpec> f(v, s, base);
  f.Add({.name = "turns",
         .unit = "turns",
         .min = 1,
         .max = 10000,
         .help = "requests of a conversation; each prompt is all that was said before and then the "
                 "drawn prompt tokens; 1: every request stands alone"},
        &SessionSpec::turns);
  f.Add({.name = "think_time_s",
         .unit = "s",
         .min = 0,
         .max = 1e6,
         .help = "mean time from an answer to the next turn, exponential"},
        &SessionSpec::think_time_s);
}

void Describe(FieldVisitor& v, ClassSpec& c, const ClassSpec& base) {
  Fields<ClassSpec> f(v, c, base);
  f.Add({.name = "name", .help = "what to call the clients of this class", .required = true},
        &ClassSpec::name);
  f.Add({.name = "share",
         .unit = "1",
         .min = 1e-6,
         .max = 1e6,
         .help = "of the sessions, relative to the other classes' shares"},
        &ClassSpec::share);
  f.Add({.name = "priority",
         .min = -1e6,
         .max = 1e6,
         .help = "of its requests; the lower number is the more urgent"},
        &ClassSpec::priority);
  f.Add({.name = "ttft_deadline_ms",
         .unit = "ms",
         .min = 1e-6,
         .max = 1e9,
         .help = "first token due this long after arrival: what the order edf goes by; default: "
                 "none"},
        &ClassSpec::ttft_deadline_ms);
  f.Add({.name = "timeout_s",
         .unit = "s",
         .min = 1e-9,
         .max = 1e8,
         .help = "the client gives up this long after arrival; default: never"},
        &ClassSpec::timeout_s);
}

void Describe(FieldVisitor& v, WorkloadSpec& w, const WorkloadSpec& base) {
  Fields<WorkloadSpec> f(v, w, base);
  f.Add({.name = "name", .help = "what to call the workload", .label = true}, &WorkloadSpec::name);
  v.Object({.name = "arrivals"},
           [&](FieldVisitor& inner) { Describe(inner, w.arrivals, base.arrivals); });
  v.Object({.name = "prompt_tokens"},
           [&](FieldVisitor& inner) { Describe(inner, w.prompt_tokens, base.prompt_tokens); });
  v.Object({.name = "output_tokens"},
           [&](FieldVisitor& inner) { Describe(inner, w.output_tokens, base.output_tokens); });
  v.Object({.name = "prefix"},
           [&](FieldVisitor& inner) { Describe(inner, w.prefix, base.prefix); });
  v.Object({.name = "sessions"},
           [&](FieldVisitor& inner) { Describe(inner, w.sessions, base.sessions); });
  ListField classes =
      ListOf(w.classes, base.classes,
             [](FieldVisitor& inner, ClassSpec& c, const ClassSpec& b) { Describe(inner, c, b); });
  v.List({.name = "classes", .min = 0, .max = 100, .help = "kinds of clients"}, classes);
  f.Add({.name = "requests",
         .unit = "requests",
         .min = 1,
         .max = static_cast<double>(kMaxRequests),
         .help = "how many requests arrive, all turns counted; a trace's arrivals bring their own "
                 "number"},
        &WorkloadSpec::requests);
}

void Describe(FieldVisitor& v, SloSpec& s, const SloSpec& base) {
  Fields<SloSpec> f(v, s, base);
  f.Enum({.name = "metric", .help = "TTFT, TPOT, ITL or E2E latency", .required = true},
         &SloSpec::metric, {"ttft", "tpot", "itl", "e2e"});
  f.Add({.name = "percentile",
         .unit = "%",
         .min = 0,
         .max = 100,
         .help = "share of the samples that must be within"},
        &SloSpec::percentile);
  f.Add({.name = "limit_ms",
         .unit = "ms",
         .min = 1e-6,
         .max = 1e9,
         .help = "latency that must not be exceeded",
         .required = true},
        &SloSpec::limit_ms);
}

void Describe(FieldVisitor& v, MeasureSpec& m, const MeasureSpec& base) {
  Fields<MeasureSpec> f(v, m, base);
  f.Add(
      {.name = "warmup_s",
       .unit = "s",
       .min = 0,
       .max = 1e8,
       .help = "latencies leave out requests that arrive before it, rates what is done before it"},
      &MeasureSpec::warmup_s);
  f.Add({.name = "horizon_s",
         .unit = "s",
         .min = 1e-9,
         .max = 1e8,
         .help = "stop here; requests that are unfinished then count as such"},
        &MeasureSpec::horizon_s);
}

}  // namespace

void DescribeScenario(FieldVisitor& v, Scenario& s, const Scenario& base) {
  Fields<Scenario> f(v, s, base);
  f.Add({.name = "name", .help = "title of the scenario", .label = true}, &Scenario::name);
  f.Add({.name = "description", .help = "what it shows", .label = true}, &Scenario::description);
  f.Add({.name = "seed", .min = 0, .max = 9007199254740991.0, .help = "of all random draws"},
        &Scenario::seed);
  v.Object({.name = "model"}, [&](FieldVisitor& inner) { Describe(inner, s.model, base.model); });
  v.Object({.name = "hardware"},
           [&](FieldVisitor& inner) { Describe(inner, s.hardware, base.hardware); });
  v.Object({.name = "engine"},
           [&](FieldVisitor& inner) { Describe(inner, s.engine, base.engine); });
  v.Object({.name = "cluster"}, [&](FieldVisitor& inner) {
    ListField pools =
        ListOf(s.cluster.pools, base.cluster.pools,
               [](FieldVisitor& w, PoolSpec& p, const PoolSpec& b) { Describe(w, p, b); });
    inner.List({.name = "pools", .min = 1, .max = 1, .help = "groups of equal replicas"}, pools);
    inner.Object({.name = "router"}, [&](FieldVisitor& router) {
      Fields<ClusterSpec>(router, s.cluster, base.cluster)
          .Policy({.name = "policy", .help = "which replica serves a request"},
                  &ClusterSpec::router, {"round_robin"});
    });
  });
  v.Object({.name = "scheduler"},
           [&](FieldVisitor& inner) { Describe(inner, s.scheduler, base.scheduler); });
  v.Object({.name = "latency"},
           [&](FieldVisitor& inner) { Describe(inner, s.latency, base.latency); });
  v.Object({.name = "workload"},
           [&](FieldVisitor& inner) { Describe(inner, s.workload, base.workload); });
  ListField slo = ListOf(s.slo, base.slo, [](FieldVisitor& w, SloSpec& item, const SloSpec& b) {
    Describe(w, item, b);
  });
  v.List({.name = "slo", .min = 0, .max = 32, .help = "latency targets"}, slo);
  v.Object({.name = "measure"},
           [&](FieldVisitor& inner) { Describe(inner, s.measure, base.measure); });
}

}  // namespace servecast
