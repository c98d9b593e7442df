// The fields of a scenario's model and GPU; see fields.cpp.
#include "cost/layers/layer_kind.h"
#include "io/fields_of.h"
#include "io/presets.h"

namespace servecast {
namespace {

constexpr double kMostLayers = 1000;

void Describe(FieldVisitor& v, LayerSpec& l, const LayerSpec& base) {
  Fields<LayerSpec> f(v, l, base);
  const auto size = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .min = 0, .max = 1e7, .help = help};
  };
  f.Policy({.name = "kind", .help = "how the layer mixes tokens, and what it keeps of them"},
           &LayerSpec::kind, LayerKindNames());
  f.Add({.name = "count", .min = 1, .max = kMostLayers, .help = "equal layers in a row"},
        &LayerSpec::count);
  f.Enum({.name = "mlp",
          .help = "auto: experts where the model has them, but for its first num_dense_layers; "
                  "none: the layer only mixes tokens"},
         &LayerSpec::mlp, {"auto", "dense", "experts", "none"});
  f.Add(size("intermediate_size", "width of its MLP, or of one expert; 0: as the model's"),
        &LayerSpec::intermediate_size);
  f.Add({.name = "shares_kv", .help = "reads the KV of an earlier layer and keeps none"},
        &LayerSpec::shares_kv);
  f.Add(size("num_attention_heads", "query heads; 0: as the model's"),
        &LayerSpec::num_attention_heads);
  f.Add(size("num_key_value_heads", "key and value heads; 0: as the model's"),
        &LayerSpec::num_key_value_heads);
  f.Add(size("head_dim", "width of a key; 0: as the model's"), &LayerSpec::head_dim);
  f.Add(size("v_head_dim", "width of a value; 0: as a key's"), &LayerSpec::v_head_dim);
  f.Add(size("window", "sliding: tokens that it looks back; chunked: tokens of a chunk"),
        &LayerSpec::window);
  f.Add({.name = "gated", .help = "the query projection has a gate as wide as the heads' output"},
        &LayerSpec::gated);
  f.Add({.name = "k_eq_v", .help = "values are the keys: the cache has both, the weights one"},
        &LayerSpec::k_eq_v);
  f.Add(size("index_n_heads", "sparse attention: query heads of the indexer"),
        &LayerSpec::index_n_heads);
  f.Add(size("index_head_dim", "sparse attention: width of the indexer's keys"),
        &LayerSpec::index_head_dim);
  f.Add(size("index_topk", "sparse attention: tokens that the indexer chooses"),
        &LayerSpec::index_topk);
  f.Add(size("compress_ratio", "compressed attention: tokens of one entry; 0: a window only"),
        &LayerSpec::compress_ratio);
  f.Add(size("state_heads", "states: heads, of values where keys have fewer"),
        &LayerSpec::state_heads);
  f.Add(size("state_key_heads", "states: heads of keys"), &LayerSpec::state_key_heads);
  f.Add(size("state_key_dim", "states: width of a key"), &LayerSpec::state_key_dim);
  f.Add(size("state_value_dim", "states: width of a value"), &LayerSpec::state_value_dim);
  f.Add(size("state_size", "states: width of a channel's state (Mamba)"), &LayerSpec::state_size);
  f.Add(size("state_groups", "states: groups that share their inputs (Mamba 2)"),
        &LayerSpec::state_groups);
  f.Add(size("inner_size", "states: channels (Mamba, convolutions)"), &LayerSpec::inner_size);
  f.Add(size("conv_kernel", "states: tokens under the convolution"), &LayerSpec::conv_kernel);
  f.Add(size("state_chunk", "states: tokens that their kernels take at a time; 0: 2048"),
        &LayerSpec::state_chunk);
  f.Add({.name = "float32_state", .help = "states of 32 bits; else of 16"},
        &LayerSpec::float32_state);
}

void Describe(FieldVisitor& v, VisionSpec& e, const VisionSpec& base) {
  Fields<VisionSpec> f(v, e, base);
  const auto size = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .min = 0, .max = 1e6, .help = help};
  };
  f.Add({.name = "num_hidden_layers",
         .min = 0,
         .max = kMostLayers,
         .help = "layers of the vision encoder (its depth); 0: the model reads text only"},
        &VisionSpec::num_hidden_layers);
  f.Add(size("hidden_size", "width of the encoder's hidden state"), &VisionSpec::hidden_size);
  f.Add(size("num_attention_heads", "heads of the encoder"), &VisionSpec::num_attention_heads);
  f.Add(size("intermediate_size", "width of the encoder's MLP"), &VisionSpec::intermediate_size);
  f.Add({.name = "mlp_matrices",
         .min = 2,
         .max = 3,
         .help = "matrices of the encoder's MLP: 3 with a gate, 2 without"},
        &VisionSpec::mlp_matrices);
  f.Add({.name = "patch_size", .unit = "px", .min = 1, .max = 1024, .help = "side of a patch"},
        &VisionSpec::patch_size);
  f.Add({.name = "merge_size",
         .unit = "patches",
         .min = 1,
         .max = 64,
         .help = "side of the square of patches that becomes one token of the model"},
        &VisionSpec::merge_size);
  f.Add(
      {.name = "num_mergers",
       .min = 0,
       .max = 1000,
       .help = "projections from merged patches to the model's width: one behind the encoder, and "
               "those of layers between (deepstack)"},
      &VisionSpec::num_mergers);
  f.Add({.name = "image_size",
         .unit = "px",
         .min = 0,
         .max = 65536,
         .help = "side that every image is scaled to; 0: images keep their size, rounded to whole "
                 "tokens"},
        &VisionSpec::image_size);
  f.Add({.name = "max_tiles",
         .unit = "tiles",
         .min = 0,
         .max = 256,
         .help = "most tiles of image_size that an image is cut into, with the whole image as one "
                 "more where there are several (Llama 4); 0: it is not cut"},
        &VisionSpec::max_tiles);
  f.Add({.name = "min_image_tokens",
         .unit = "tokens",
         .min = 1,
         .max = 1e6,
         .help = "fewest tokens of one image, smaller ones are made larger"},
        &VisionSpec::min_image_tokens);
  f.Add({.name = "max_image_tokens",
         .unit = "tokens",
         .min = 1,
         .max = 1e6,
         .help = "most tokens of one image, larger ones are made smaller; a step encodes as many "
                 "tokens at least"},
        &VisionSpec::max_image_tokens);
  f.Add({.name = "window_size",
         .unit = "px",
         .min = 0,
         .max = 65536,
         .help = "side of the window that a patch sees in most layers; 0: it sees the whole image"},
        &VisionSpec::window_size);
  f.Add(size("num_full_layers", "layers without that window"), &VisionSpec::num_full_layers);
}

}  // namespace

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
                 "key and value heads; fewer than query heads means grouped-query attention"),
        &ModelSpec::num_key_value_heads);
  f.Add(required("head_dim", 1, 10000, "width of a head"), &ModelSpec::head_dim);
  f.Add(required("intermediate_size", 1, 1e7,
                 "width of the MLP, or of one expert in a mixture of experts"),
        &ModelSpec::intermediate_size);
  f.Add({.name = "mlp_matrices",
         .min = 2,
         .max = 3,
         .help = "matrices of an MLP: 3 with a gate (gate, up and down), 2 without"},
        &ModelSpec::mlp_matrices);
  f.Add(required("vocab_size", 1, 1e7, "tokens in the vocabulary"), &ModelSpec::vocab_size);
  f.Add({.name = "max_position_embeddings",
         .unit = "tokens",
         .min = 1,
         .max = kMaxTokens,
         .help = "longest sequence that the model supports",
         .required = true},
        &ModelSpec::max_position_embeddings);
  f.Add({.name = "tie_word_embeddings", .help = "the LM head shares the embedding's weights"},
        &ModelSpec::tie_word_embeddings);
  f.Add({.name = "attention_bias", .help = "biases on the query, key and value projections"},
        &ModelSpec::attention_bias);
  f.Add({.name = "num_local_experts",
         .min = 0,
         .max = 10000,
         .help = "experts in a layer; 0: a dense model"},
        &ModelSpec::num_local_experts);
  f.Add({.name = "num_experts_per_tok",
         .min = 0,
         .max = 10000,
         .help = "experts that process a token"},
        &ModelSpec::num_experts_per_tok);
  const auto optional = [](const char* name, const char* help) {
    return FieldSpec{.name = name, .min = 0, .max = 1e7, .help = help};
  };
  f.Add(optional("shared_expert_intermediate_size",
                 "width of the shared experts, which process every token; 0: none"),
        &ModelSpec::shared_expert_intermediate_size);
  f.Add(
      optional("num_dense_layers", "layers of a mixture of experts that have a dense MLP instead"),
      &ModelSpec::num_dense_layers);
  f.Add(optional("dense_intermediate_size", "width of the MLP in these dense layers"),
        &ModelSpec::dense_intermediate_size);
  f.Add(optional("kv_lora_rank", "latent attention: width of the cached latent; 0: none"),
        &ModelSpec::kv_lora_rank);
  f.Add(optional("q_lora_rank", "latent attention: width of the query's latent; 0: none"),
        &ModelSpec::q_lora_rank);
  f.Add(optional("qk_nope_head_dim", "latent attention: width of a head without position"),
        &ModelSpec::qk_nope_head_dim);
  f.Add(optional("qk_rope_head_dim", "latent attention: width of a head with position"),
        &ModelSpec::qk_rope_head_dim);
  f.Add(optional("v_head_dim", "latent attention: width of a value head"), &ModelSpec::v_head_dim);
  f.Add(optional("sliding_window", "tokens that a layer with a sliding window looks back"),
        &ModelSpec::sliding_window);
  f.Add(optional("num_sliding_layers", "layers with a sliding window"),
        &ModelSpec::num_sliding_layers);
  ListOf layers(m.layers, base.layers,
                [](FieldVisitor& inner, LayerSpec& l, const LayerSpec& layer_base) {
                  Describe(inner, l, layer_base);
                });
  v.List({.name = "layers",
          .min = 0,
          .max = kMostLayers,
          .help = "layers of several kinds: a period, repeated up to num_hidden_layers",
          .nullable = true},
         layers);
  const Choices types = {"none", "fp8",        "int4", "nvfp4",    "mxfp4",
                         "int8", "int8_w8a16", "nf4",  "mxfp4_all"};
  f.Enum({.name = "quantization",
          .help = "data type of the weight matrices; none: torch_dtype; mxfp4: of the experts' "
                  "only; int8: activations too"},
         &ModelSpec::quantization, types);
  f.Enum({.name = "expert_quantization",
          .help = "data type of the experts' weights where it is another; none: as quantization"},
         &ModelSpec::expert_quantization, types);
  f.Add(optional("quantization_group_size",
                 "weights that share a scale of 16 bits; 0: 128 in int4, 32 in nf4, a row in "
                 "int8_w8a16"),
        &ModelSpec::quantization_group_size);
  f.Add({.name = "quantization_zero_points",
         .help = "each group of int4 and int8_w8a16 has a zero point, as wide as a weight"},
        &ModelSpec::quantization_zero_points);
  f.Add(optional("expert_hidden_size", "width that experts work in; 0: hidden_size"),
        &ModelSpec::expert_hidden_size);
  f.Add({.name = "top_p_by_default",
         .help = "generation_config.json asks for top-p or top-k, which sort the logits"},
        &ModelSpec::top_p_by_default);
  f.Enum({.name = "torch_dtype",
          .help = "data type of weights and KV cache as the engine runs them; vLLM's auto runs a "
                  "float32 checkpoint as bfloat16 or float16"},
         &ModelSpec::torch_dtype, {"bfloat16", "float16", "float32"});
  v.Object({.name = "vision", .nullable = true},
           [&](FieldVisitor& inner) { Describe(inner, m.vision, base.vision); });
}

namespace {

// Where many GPUs stand.
void DescribeNodes(Fields<HardwareSpec>& f) {
  f.Add({.name = "gpus_per_node",
         .unit = "GPUs",
         .min = 0,
         .max = 1e6,
         .help = "GPUs in a node, which the interconnect joins; larger groups also use the links "
                 "between nodes (analytic, operators); 0: unknown, all are in one node",
         .in_times = true},
        &HardwareSpec::gpus_per_node);
  f.Add({.name = "inter_node_gb_s",
         .unit = "GB/s",
         .min = 0,
         .max = 1e5,
         .help = "bandwidth per GPU and direction to other nodes, by the data sheet: InfiniBand "
                 "NDR 400 Gb/s is 50, HDR 25; 0: unknown",
         .in_times = true},
        &HardwareSpec::inter_node_gb_s);
  f.Add({.name = "inter_node_latency_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "fixed time of a message to another node",
         .in_times = true},
        &HardwareSpec::inter_node_latency_us);
  f.Add({.name = "nodes_assumed",
         .help = "the figures of nodes are assumptions, not a vendor's; verdicts that depend on "
                 "them say so",
         .label = true},
        &HardwareSpec::nodes_assumed);
}

// No request is served differently with them, so fingerprints leave them out.
void DescribePower(Fields<HardwareSpec>& f) {
  const auto watts = [&f](const char* name, const char* help, double HardwareSpec::*member) {
    f.Add({.name = name, .unit = "W", .min = 0, .max = 1e5, .help = help, .label = true}, member);
  };
  watts("idle_w", "power of an idle GPU", &HardwareSpec::idle_w);
  watts("power_cap_w", "most power of a GPU; 0: not known, and no power is shown",
        &HardwareSpec::power_cap_w);
  watts("busy_w", "power that a running step adds", &HardwareSpec::busy_w);
  watts("compute_w", "power that arithmetic adds at its peak", &HardwareSpec::compute_w);
  watts("memory_w", "power that reads add at the memory's bandwidth", &HardwareSpec::memory_w);
  f.Add({.name = "power_limit_w",
         .unit = "W",
         .min = 0,
         .max = 1e5,
         .help = "limit that is set below power_cap_w (nvidia-smi -pl), which slows arithmetic "
                 "(analytic); 0: none",
         .in_times = true,
         .compared = true},
        &HardwareSpec::power_limit_w);
  const auto share = [&f](const char* name, const char* help, double HardwareSpec::*member) {
    f.Add({.name = name, .unit = "1", .min = 0, .max = 1, .help = help, .label = true}, member);
  };
  share("power_error",
        "share that mean power was off by in nine of ten set-ups left out of the fit; 0: not known",
        &HardwareSpec::power_error);
  share("energy_error", "the same of the energy of an output token", &HardwareSpec::energy_error);
}

// What a site pays for its power.
void DescribeSite(Fields<HardwareSpec>& f) {
  f.Add({.name = "host_w",
         .unit = "W",
         .min = 0,
         .max = 1e5,
         .help = "a GPU's share of what its host draws",
         .label = true},
        &HardwareSpec::host_w);
  f.Add({.name = "pue",
         .unit = "1",
         .min = 1,
         .max = 10,
         .help = "W that the site draws for each W of its machines (power usage effectiveness)",
         .label = true},
        &HardwareSpec::pue);
  f.Add({.name = "price_per_kwh",
         .unit = "$/kWh",
         .min = 0,
         .max = 100,
         .help = "price of electricity; 0: not stated",
         .label = true},
        &HardwareSpec::price_per_kwh);
  f.Add({.name = "co2_g_per_kwh",
         .unit = "g/kWh",
         .min = 0,
         .max = 10000,
         .help = "CO2 equivalent of electricity; 0: not stated",
         .label = true},
        &HardwareSpec::co2_g_per_kwh);
}

// What measurements say of the GPU; a document that starts from a preset keeps it.
void DescribeMeasured(Fields<HardwareSpec>& f) {
  f.Policy({.name = "auto_backend",
            .help = "what latency.backend \"auto\" means on this GPU, if that covers the model: "
                    "the one nearer to measured servers",
            .in_times = true},
           &HardwareSpec::auto_backend, {"analytic", "operators"});
  Choices gpus = PresetIds("hardware");
  gpus.insert(gpus.begin(), "nearest");
  f.Policy({.name = "operators",
            .help = "GPU preset whose measured operators are used (operators); nearest: by peak "
                    "and bandwidth",
            .in_times = true},
           &HardwareSpec::operators, gpus);
  gpus[0] = "none";
  f.Policy({.name = "compared_as",
            .help = "GPU preset whose measured runs tell how far off step times are",
            .label = true},
           &HardwareSpec::compared_as, gpus);
}

}  // namespace

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
         .required = true,
         .compared = true},
        &HardwareSpec::memory_bandwidth_gb_s);
  f.Add({.name = "peak_bf16_tflops",
         .unit = "TFLOP/s",
         .min = 0.01,
         .max = 1e6,
         .help = "peak of dense 16-bit matrix products by the data sheet",
         .required = true,
         .compared = true},
        &HardwareSpec::peak_bf16_tflops);
  f.Add({.name = "peak_fp32_tflops",
         .unit = "TFLOP/s",
         .min = 0,
         .max = 1e6,
         .help = "peak of 32-bit floats without tensor cores, for torch_dtype float32; 0: unknown"},
        &HardwareSpec::peak_fp32_tflops);
  f.Add({.name = "peak_fp8_tflops",
         .unit = "TFLOP/s",
         .min = 0,
         .max = 1e6,
         .help = "peak of dense 8-bit float matrix products; 0: the GPU has none",
         .compared = true},
        &HardwareSpec::peak_fp8_tflops);
  f.Add({.name = "peak_fp4_tflops",
         .unit = "TFLOP/s",
         .min = 0,
         .max = 1e6,
         .help = "peak of dense 4-bit float matrix products; 0: the GPU has none",
         .compared = true},
        &HardwareSpec::peak_fp4_tflops);
  f.Add({.name = "peak_int8_tops",
         .unit = "TOP/s",
         .min = 0,
         .max = 1e6,
         .help = "peak of dense 8-bit integer matrix products; 0: unknown, int8 runs in 16 bits",
         .compared = true},
        &HardwareSpec::peak_int8_tops);
  f.Add({.name = "interconnect_gb_s",
         .unit = "GB/s",
         .min = 0.1,
         .max = 1e5,
         .help = "bandwidth per direction to the other GPUs of a tensor-parallel group",
         .required = true,
         .compared = true},
        &HardwareSpec::interconnect_gb_s);
  f.Add({.name = "interconnect_latency_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "fixed time of one all-reduce",
         .compared = true},
        &HardwareSpec::interconnect_latency_us);
  f.Enum({.name = "interconnect",
          .help =
              "how GPUs of a node reach each other: nvlink; pcie_p2p; pcie_host, through the host; "
              "auto: nvlink from 125 GB/s on, else pcie_host as a guess (analytic, operators)",
          .compared = true},
         &HardwareSpec::interconnect, {"auto", "nvlink", "pcie_p2p", "pcie_host"});
  f.Add({.name = "layer_latency_us",
         .unit = "us",
         .min = 0,
         .max = 1e6,
         .help = "fixed time of a layer: the latencies of its kernels (analytic)",
         .compared = true},
        &HardwareSpec::layer_latency_us);
  f.Add({.name = "mixed_attention_rows",
         .unit = "1",
         .min = 1,
         .max = 1024,
         .help = "query rows that a decode's attention costs in a step with prefill, as kernels "
                 "for both fill whole tiles (analytic, operators)",
         .compared = true},
        &HardwareSpec::mixed_attention_rows);
  f.Add({.name = "compute_efficiency",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the peak that large matrix products reach",
         .required = true,
         .compared = true},
        &HardwareSpec::compute_efficiency);
  f.Add({.name = "attention_efficiency",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the peak that attention over long prompts reaches (analytic)",
         .compared = true},
        &HardwareSpec::attention_efficiency);
  f.Add({.name = "bandwidth_efficiency",
         .unit = "1",
         .min = 0.01,
         .max = 1,
         .help = "share of the bandwidth that reads of weights reach",
         .required = true,
         .compared = true},
        &HardwareSpec::bandwidth_efficiency);
  f.Add(
      {.name = "kv_bandwidth_efficiency",
       .unit = "1",
       .min = 0,
       .max = 1,
       .help =
           "share of the bandwidth that reads of the KV cache reach; 0: as for weights (analytic)",
       .compared = true},
      &HardwareSpec::kv_bandwidth_efficiency);
  f.Add({.name = "latent_split_efficiency",
         .unit = "1",
         .min = 0,
         .max = 1,
         .help = "share of the bandwidth that reads of latents reach where decodes wait for a "
                 "step's longest context; 0: as the KV cache, and they do not (analytic)",
         .compared = true},
        &HardwareSpec::latent_split_efficiency);
  f.Add({.name = "price_per_gpu_hour",
         .unit = "$/h",
         .min = 0,
         .max = 1e6,
         .help = "price of one GPU for an hour; without it no cost is shown",
         .label = true},
        &HardwareSpec::price_per_gpu_hour);
  f.Add({.name = "price_basis",
         .help = "terms and date of that price; empty where the price is your own",
         .label = true},
        &HardwareSpec::price_basis);
  DescribePower(f);
  DescribeSite(f);
  DescribeNodes(f);
  DescribeMeasured(f);
}

}  // namespace servecast
