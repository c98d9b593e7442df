// The fields of a scenario's engine; see fields.cpp.
#include "io/fields_of.h"
#include "io/presets.h"
#include "serving/replica/acceptance_curves.h"

namespace servecast {
namespace {

// Of an engine, after SFLLM; all off by default.
void DescribeOptions(FieldVisitor& v, EngineSpec& e, const EngineSpec& base) {
  Fields<EngineSpec> f(v, e, base);
  f.Enum(
      {.name = "cuda_graphs",
       .help = "how a step's kernels are launched: within step_overhead_us (implied), one by one "
               "(eager), or decode steps by replaying a graph (captured) (analytic, operators)"},
      &EngineSpec::cuda_graphs, {"implied", "eager", "captured"});
  v.When("cuda_graphs", {"eager", "captured"}, e.cuda_graphs != CudaGraphs::kImplied,
         [&](FieldVisitor& inner) {
           Fields<EngineSpec>(inner, e, base)
               .Add({.name = "launch_eager_us",
                     .unit = "us",
                     .min = 0,
                     .max = 1e6,
                     .help = "time to launch the kernels of a step one by one"},
                    &EngineSpec::launch_eager_us);
         });
  v.When("cuda_graphs", {"captured"}, e.cuda_graphs == CudaGraphs::kCaptured,
         [&](FieldVisitor& inner) {
           Fields<EngineSpec> g(inner, e, base);
           g.Add({.name = "launch_replay_us",
                  .unit = "us",
                  .min = 0,
                  .max = 1e6,
                  .help = "time to launch a captured graph"},
                 &EngineSpec::launch_replay_us);
           g.Add({.name = "cuda_graph_max_bs",
                  .unit = "requests",
                  .min = 1,
                  .max = 2048,
                  .help = "largest decode batch captured; smaller ones are padded to the next of "
                          "1, 2, 3, 4, 6, ... 16, 20, 24, ..."},
                 &EngineSpec::cuda_graph_max_bs);
           g.Add({.name = "cuda_graph_mib",
                  .unit = "MiB",
                  .min = 0,
                  .max = 1e6,
                  .help = "GPU memory that each captured batch size takes from the KV cache"},
                 &EngineSpec::cuda_graph_mib);
         });
  f.Add({.name = "overlap_scheduling",
         .help = "the host's work of a step overlaps with the GPU's, so only the longer counts; "
                 "needs async_scheduling (analytic, operators)"},
        &EngineSpec::overlap_scheduling);
  f.Add(
      {.name = "admission_reserve",
       .unit = "1",
       .min = 0,
       .max = 1000,
       .help = "while requests run, admit only if this many times the prompt's KV blocks are free"},
      &EngineSpec::admission_reserve);
  f.Add({.name = "gc_pass_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "time of a garbage collection, which runs when KV blocks run short and frees "
                 "those of ended requests; 0: they are free at once"},
        &EngineSpec::gc_pass_us);
  f.Add({.name = "gc_fraction",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the waiting blocks that a garbage collection frees"},
        &EngineSpec::gc_fraction);
}

void Describe(FieldVisitor& v, KvOffloadSpec& o, const KvOffloadSpec& base) {
  Fields<KvOffloadSpec> f(v, o, base);
  const auto gib = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .unit = "GiB", .min = 0, .max = 1e9, .help = help};
  };
  const auto latency = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .unit = "us", .min = 0, .max = 1e6, .help = help};
  };
  const auto bandwidth = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .unit = "GB/s", .min = 0.001, .max = 1e6, .help = help};
  };
  f.Add(gib("cpu_gib",
            "host memory for cached KV blocks that the GPU evicts, for all GPUs of a replica "
            "together; 0: none"),
        &KvOffloadSpec::cpu_gib);
  f.Add(latency("cpu_latency_us", "time before a request's blocks start to load from host memory"),
        &KvOffloadSpec::cpu_latency_us);
  f.Add(bandwidth(
            "cpu_bandwidth_gb_s",
            "achieved bandwidth from host memory to each GPU; PCIe Gen5 x16 has 64 GB/s at most"),
        &KvOffloadSpec::cpu_bandwidth_gb_s);
  f.Add(gib("disk_gib", "disk space for blocks that host memory evicts; 0: none"),
        &KvOffloadSpec::disk_gib);
  f.Add(latency("disk_latency_us", "time before a request's blocks start to load from disk"),
        &KvOffloadSpec::disk_latency_us);
  f.Add(bandwidth("disk_bandwidth_gb_s", "achieved bandwidth from disk to each GPU"),
        &KvOffloadSpec::disk_bandwidth_gb_s);
  f.Add({.name = "threshold",
         .unit = "1",
         .min = 0,
         .max = 1,
         .help =
             "share of the GPU's KV blocks that must be in use for evicted blocks to be offloaded"},
        &KvOffloadSpec::threshold);
}

// The drafter's own work: of a network, and of one that is a model by itself.
void DescribeDrafter(FieldVisitor& v, SpeculativeSpec& s, const SpeculativeSpec& base) {
  using Drafts = Fields<SpeculativeSpec>;
  const auto size = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .min = 0, .max = 1e7, .help = help};
  };
  v.When("method", {"eagle", "eagle3", "mtp", "draft_model", "dflash", "dspark"}, s.HasDrafter(),
         [&](FieldVisitor& inner) {
           Drafts f(inner, s, base);
           f.Add({.name = "draft_num_hidden_layers",
                  .min = 1,
                  .max = 1000,
                  .help = "layers of the drafter, each as the model's but for what is said here, "
                          "and dense but for mtp"},
                 &SpeculativeSpec::draft_num_hidden_layers);
           f.Add(size("draft_intermediate_size", "width of the drafter's MLP; 0: as the model's"),
                 &SpeculativeSpec::draft_intermediate_size);
           f.Add(size("draft_vocab_size", "entries that the drafter chooses from; 0: as the model"),
                 &SpeculativeSpec::draft_vocab_size);
         });
  v.When("method", {"draft_model"}, s.method == DraftMethod::kDraftModel, [&](FieldVisitor& inner) {
    Drafts f(inner, s, base);
    f.Add(size("draft_hidden_size", "of the draft model; 0: as the model's"),
          &SpeculativeSpec::draft_hidden_size);
    f.Add(size("draft_num_attention_heads", "of the draft model; 0: as the model's"),
          &SpeculativeSpec::draft_num_attention_heads);
    f.Add(size("draft_num_key_value_heads", "of the draft model; 0: as the model's"),
          &SpeculativeSpec::draft_num_key_value_heads);
    f.Add(size("draft_head_dim", "of the draft model; 0: as the model's"),
          &SpeculativeSpec::draft_head_dim);
  });
}

void Describe(FieldVisitor& v, SpeculativeSpec& s, const SpeculativeSpec& base) {
  Fields<SpeculativeSpec> f(v, s, base);
  f.Enum(
      {.name = "method",
       .help = "who drafts tokens for the model to verify: earlier tokens (ngram, ngram_gpu), "
               "layers beside the model (eagle, eagle3, mtp, dflash, dspark) or a smaller model "
               "(draft_model)"},
      &SpeculativeSpec::method,
      {"none", "ngram", "ngram_gpu", "eagle", "eagle3", "mtp", "draft_model", "dflash", "dspark"});
  const Choices all = {"ngram", "ngram_gpu",   "eagle",  "eagle3",
                       "mtp",   "draft_model", "dflash", "dspark"};
  v.When("method", all, s.On(), [&](FieldVisitor& inner) {
    Fields<SpeculativeSpec> g(inner, s, base);
    g.Add({.name = "num_speculative_tokens",
           .unit = "tokens",
           .min = 1,
           .max = 32,
           .help = "drafts of a request in a step"},
          &SpeculativeSpec::num_speculative_tokens);
    Choices curves = {"none"};
    for (const AcceptanceCurve& curve : AcceptanceCurves()) curves.push_back(curve.name);
    g.Policy(
        {.name = "acceptance_as",
         .help = "accept drafts as was measured of this model and method on coding prompts, up "
                 "to 8 drafts; none: by the figures here"},
        &SpeculativeSpec::acceptance_as, curves);
    g.Add({.name = "acceptance_length",
           .unit = "tokens",
           .min = 1,
           .max = 33,
           .help = "mean number of tokens that a step with all its drafts yields, with the one "
                   "that the model makes itself; each draft is as likely as the one before it"},
          &SpeculativeSpec::acceptance_length);
    g.Add({.name = "acceptance_rates",
           .min = 0,
           .max = 32,
           .help = "instead of acceptance_length: by position from 1 on, the probability that a "
                   "draft and all before it are accepted",
           .columns = "position, rate"},
          &SpeculativeSpec::acceptance_rates);
    g.Add({.name = "num_speculative_tokens_per_batch_size",
           .min = 0,
           .max = 65536,
           .help = "drafts by the number of requests in a step: the last row that begins at or "
                   "below it; default: num_speculative_tokens",
           .columns = "from, to, drafts"},
          &SpeculativeSpec::num_speculative_tokens_per_batch_size);
    g.Add({.name = "pad_one_token_admissions",
           .help = "a request with one token to compute that joins a step of decodes gets drafts, "
                   "none of which is accepted, or waits for room (vLLM since June 2026)"},
          &SpeculativeSpec::pads_one_token);
    g.Add({.name = "draft_overhead_us",
           .unit = "us",
           .min = 0,
           .max = 1e6,
           .help = "host time of each pass of the drafter (analytic, operators)"},
          &SpeculativeSpec::draft_overhead_us);
  });
  v.When("method", {"ngram"}, s.method == DraftMethod::kNgram, [&](FieldVisitor& inner) {
    Fields<SpeculativeSpec>(inner, s, base)
        .Add({.name = "draft_share",
              .unit = "1",
              .min = 0,
              .max = 1,
              .help = "share of a request's steps after which drafts are found"},
             &SpeculativeSpec::draft_share);
  });
  const bool may = s.method == DraftMethod::kEagle || s.method == DraftMethod::kEagle3 ||
                   s.method == DraftMethod::kDraftModel;
  v.When("method", {"eagle", "eagle3", "draft_model"}, may, [&](FieldVisitor& inner) {
    Fields<SpeculativeSpec>(inner, s, base)
        .Add({.name = "parallel_drafting",
              .help = "the drafter makes all drafts of a step in one pass"},
             &SpeculativeSpec::parallel_drafting);
  });
  DescribeDrafter(v, s, base);
}

// Of LoRA adapters.
void DescribeLora(FieldVisitor& v, EngineSpec& e, const EngineSpec& base) {
  Fields<EngineSpec> f(v, e, base);
  f.Add({.name = "max_loras",
         .unit = "adapters",
         .min = 0,
         .max = 1024,
         .help = "most LoRA adapters in a step, each with a seat in GPU memory, for which requests "
                 "wait; 0: none (vLLM's --enable-lora alone: 1)"},
        &EngineSpec::max_loras);
  f.Add({.name = "max_lora_rank",
         .min = 1,
         .max = 512,
         .help = "rank that each adapter's seat has room for, and that its products are computed "
                 "with: 1, 8, 16, 32, 64, 128, 256, 320 or 512"},
        &EngineSpec::max_lora_rank);
  f.Add({.name = "lora_overhead_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "time of a step with adapters beside their memory traffic and arithmetic, for "
                 "the kernels that each layer has more (analytic, operators)"},
        &EngineSpec::lora_overhead_us);
}

// Of images in prompts.
void DescribeEncoder(FieldVisitor& v, EngineSpec& e, const EngineSpec& base) {
  Fields<EngineSpec> f(v, e, base);
  f.Enum({.name = "mm_encoder_tp_mode",
          .help = "how a tensor-parallel group encodes images: weights, each GPU a slice of every "
                  "one; data, each GPU whole ones, with all of the encoder's weights"},
         &EngineSpec::mm_encoder_tp_mode, {"weights", "data"});
  f.Add({.name = "disable_chunked_mm_input",
         .help = "no step computes a part of an image's tokens: an image that does not fit waits "
                 "for the next step"},
        &EngineSpec::disable_chunked_mm_input);
}

}  // namespace

void Describe(FieldVisitor& v, EngineSpec& e, const EngineSpec& base) {
  Fields<EngineSpec> f(v, e, base);
  f.Add({.name = "name", .help = "what to call the engine", .label = true}, &EngineSpec::name);
  f.Enum({.name = "compat",
          .help = "another simulator's rules, with all their quirks: BLIS's (blis, blis-2026-02) "
                  "or Vidur's (vidur, with its schedulers); none: those of scheduler.policy"},
         &EngineSpec::compat, {"none", "blis-2026-02", "blis", "vidur"});
  f.Add({.name = "max_num_seqs",
         .unit = "requests",
         .min = 1,
         .max = 65536,
         .help = "maximum number of requests in a step (seats)"},
        &EngineSpec::max_num_seqs);
  f.Add({.name = "max_num_batched_tokens",
         .unit = "tokens",
         .min = 1,
         .max = 1e7,
         .help = "token budget of a step, for prefill and decode together"},
        &EngineSpec::max_num_batched_tokens);
  f.Add({.name = "max_model_len",
         .unit = "tokens",
         .min = 1,
         .max = kMaxTokens,
         .help = "longest sequence that the engine accepts; default: the model's limit"},
        &EngineSpec::max_model_len);
  f.Add({.name = "block_size",
         .unit = "tokens",
         .min = 1,
         .max = 1024,
         .help = "tokens in a KV block"},
        &EngineSpec::block_size);
  f.Add({.name = "gpu_memory_utilization",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the GPU's memory that the engine may use"},
        &EngineSpec::gpu_memory_utilization);
  f.Enum({.name = "kv_cache_dtype", .help = "data type of the KV cache; auto: that of the model"},
         &EngineSpec::kv_cache_dtype, {"auto", "fp8"});
  f.Add({.name = "num_gpu_blocks_override",
         .unit = "blocks",
         .min = 2,
         .max = 1e9,
         .help = "number of KV blocks, instead of what fits in memory; one of them is reserved"},
        &EngineSpec::num_gpu_blocks_override);
  f.Add({.name = "enable_prefix_caching",
         .help =
             "keep the KV blocks of computed prompts and reuse them for prompts that begin alike"},
        &EngineSpec::enable_prefix_caching);
  f.Add({.name = "enable_expert_parallel",
         .help = "each GPU of a tensor-parallel group holds whole experts, not a slice of each; a "
                 "step waits for the GPU with the busiest experts (analytic, operators)"},
        &EngineSpec::enable_expert_parallel);
  f.Add({.name = "enable_chunked_prefill",
         .help = "split a prompt that exceeds the rest of the token budget"},
        &EngineSpec::enable_chunked_prefill);
  f.Add({.name = "long_prefill_token_threshold",
         .unit = "tokens",
         .min = 0,
         .max = kMaxTokens,
         .help = "most prompt tokens of one request in a step; 0: no limit"},
        &EngineSpec::long_prefill_token_threshold);
  f.Add({.name = "scheduler_reserve_full_isl",
         .help = "admit a request only if its whole prompt fits the free KV blocks, not just its "
                 "first chunk"},
        &EngineSpec::scheduler_reserve_full_isl);
  f.Add({.name = "watermark",
         .unit = "1",
         .min = 0,
         .max = 0.99,
         .help = "share of the KV blocks that admission keeps free while requests run"},
        &EngineSpec::watermark);
  f.Add({.name = "free_contentless_first",
         .help = "freed KV blocks without reusable content are taken first; false: all freed "
                 "blocks go to the end of the free list"},
        &EngineSpec::free_contentless_first);
  f.Add({.name = "async_scheduling",
         .help = "form the next batch while the current one runs, before its tokens are known"},
        &EngineSpec::async_scheduling);
  f.Enum(
      {.name = "hybrid_kv_cache_manager",
       .help = "KV cache in groups of layers of one kind, for models with several kinds: auto is "
               "on, but off for chunked attention; off: layers with a window keep every token"},
      &EngineSpec::hybrid_kv_cache_manager, {"auto", "on", "off"});
  f.Enum(
      {.name = "mamba_cache_mode",
       .help = "states kept by layers that have one: auto is align with prefix caching, else one "
               "a request; all: one at the end of each block"},
      &EngineSpec::mamba_cache_mode, {"auto", "all"});
  f.Add(
      {.name = "frees_states_across_gaps",
       .help = "all states behind the latest are freed; false: the search stops at the first gap, "
               "as in vLLM before September 2026"},
      &EngineSpec::frees_states_across_gaps);
  f.Add({.name = "max_num_queued_reqs",
         .unit = "requests",
         .min = 1,
         .max = 1e9,
         .help = "most requests that wait or run; one more is rejected; default: none is"},
        &EngineSpec::max_num_queued_reqs);
  f.Add({.name = "max_num_queued_tokens",
         .unit = "tokens",
         .min = 1,
         .max = 1e15,
         .help = "a request is rejected if prompts of those without a first token add up to so "
                 "many; default: none is"},
        &EngineSpec::max_num_queued_tokens);
  DescribeLora(v, e, base);
  DescribeEncoder(v, e, base);
  v.Object(
      {.name = "kv_offload", .nullable = true, .idle = !e.kv_offload.On() && !base.kv_offload.On()},
      [&](FieldVisitor& inner) { Describe(inner, e.kv_offload, base.kv_offload); });
  v.Object({.name = "speculative",
            .nullable = true,
            .idle = !e.speculative.On() && !base.speculative.On()},
           [&](FieldVisitor& inner) { Describe(inner, e.speculative, base.speculative); });
  f.Add({.name = "step_overhead_us",
         .unit = "us",
         .min = 0,
         .max = 1e7,
         .help = "host time of every step (analytic, operators)",
         .compared = true},
        &EngineSpec::step_overhead_us);
  f.Add({.name = "sequence_overhead_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "host and sampling time per sequence in a step (analytic, operators)",
         .compared = true},
        &EngineSpec::sequence_overhead_us);
  f.Add({.name = "sampler_ns_per_logit",
         .unit = "ns",
         .min = 0,
         .max = 1e6,
         .help = "sampling time per sequence in a step and vocabulary entry, for models with "
                 "top_p_by_default (analytic, operators)",
         .compared = true},
        &EngineSpec::sampler_ns_per_logit);
  f.Add({.name = "request_overhead_ms",
         .unit = "ms",
         .min = 0,
         .max = 1e6,
         .help = "time from a request's arrival to the scheduler's queue (analytic, operators)",
         .compared = true},
        &EngineSpec::request_overhead_ms);
  f.Add({.name = "prompt_token_overhead_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "further time to the queue per prompt token (analytic, operators)",
         .compared = true},
        &EngineSpec::prompt_token_overhead_us);
  f.Add({.name = "api_server_count",
         .min = 1,
         .max = 1024,
         .help = "API server processes of a replica: each takes up one request at a time, in the "
                 "order of arrival"},
        &EngineSpec::api_server_count);
  f.Add({.name = "delivery_overhead_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "time to deliver one token; the server delivers the tokens of a step one by one, "
                 "first tokens last (analytic, operators)",
         .compared = true},
        &EngineSpec::delivery_overhead_us);
  f.Add({.name = "host_stall_ms",
         .unit = "ms",
         .min = 0,
         .max = 1e6,
         .help = "mean time for which the server stands still, so that first tokens that are ready "
                 "wait; 0: it never does (analytic, operators)",
         .compared = true},
        &EngineSpec::host_stall_ms);
  f.Add({.name = "host_stalls_per_s",
         .unit = "1/s",
         .min = 0,
         .max = 1e3,
         .help = "how often it stands still; 0: never (analytic, operators)",
         .compared = true},
        &EngineSpec::host_stalls_per_s);
  f.Add({.name = "kernel_share",
         .unit = "1",
         .min = 0,
         .max = 10,
         .help = "share of hardware.layer_latency_us that the engine's kernels take, below 1 where "
                 "it fuses more of them; layers with latent attention take all of it (analytic)",
         .compared = true},
        &EngineSpec::kernel_share);
  f.Add(
      {.name = "fp8_experts_read_share",
       .unit = "1",
       .min = 0,
       .max = 1,
       .help = "share of hardware.bandwidth_efficiency that experts in 8 bits with block scales "
               "reach, all of which each step then reads; 0: only chosen ones are read (analytic)",
       .compared = true},
      &EngineSpec::fp8_experts_read_share);
  f.Add(
      {.name = "unpacked_experts_tflops",
       .unit = "TFLOP/s",
       .min = 0,
       .max = 1e6,
       .help = "rate at which vLLM up to 0.12 unpacks MXFP4 experts of prompts on Hopper; 0: 1,600 "
               "(analytic)",
       .compared = true},
      &EngineSpec::unpacked_experts_tflops);
  f.Add({.name = "expert_exchange_latencies",
         .unit = "1",
         .min = 0,
         .max = 1000,
         .help = "latencies of an all-reduce that a layer waits where replicas share experts: 2 "
                 "for an all-gather and a reduce-scatter (analytic)",
         .compared = true},
        &EngineSpec::expert_exchange_latencies);
  Choices hosts = PresetIds("hosts");
  hosts.insert(hosts.begin(), "default");
  f.Policy({.name = "host",
            .help = "machine of the server, whose times of a request, a prompt token and a "
                    "delivered token replace those of the engine's preset (analytic, operators)",
            .label = true},
           &EngineSpec::host, hosts);
  Choices engines = PresetIds("engines");
  engines.insert(engines.begin(), "none");
  f.Policy({.name = "compared_as",
            .help = "engine preset whose measured runs tell how far off step times are",
            .label = true},
           &EngineSpec::compared_as, engines);
  DescribeOptions(v, e, base);
}

}  // namespace servecast
