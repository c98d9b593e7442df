// Step time from physics: each part of a step takes the longer of its arithmetic and its memory
// traffic, at efficiencies <= 1, so no step is faster than the GPU's data sheet allows.
//
//   matrices   the longer of FLOPs / (peak eff) and bytes / (bandwidth eff), and up to kBlend more
//              where they are near each other. A mixture of experts reads the experts that M tokens
//              touch, some being chosen more than others; where whole ones are spread over GPUs,
//              the busiest of them counts. Between products activations are read and written.
//   LM head    the same for the sampled tokens only
//   encoder    FLOPs of the images that a step encodes, or reads of the encoder's weights
//   adapters   FLOPs of the tokens that have one, or reads of each different one of the step
//   attention  prefill chunk [c0, c0+n): 4 h d (n c0 + n(n+1)/2) FLOPs a layer, or its KV reads;
//              decode: the same over all contexts, nearly always their KV reads; beside prefill
//              each fills `mixed_attention_rows` rows of a tile (FlashAttention 2); of latents on
//              GPUs whose kernels split each sequence alike as many reads of the longest context
//   kernels    a fixed time per layer: what its kernels take beside their work
//   collective two all-reduces a layer in a tensor-parallel group (ring: 2 (tp-1)/tp of the bytes;
//              on several nodes the rest between these);
//              where replicas share experts, an all-gather of their tokens and a reduce-scatter of
//              the results, together the bytes of an all-reduce of all of them
//   sampler    per sampled token and entry of the vocabulary
//   host       per step and per sequence; launch of the kernels, eager or as a captured graph;
//              before the queue per request and per prompt token
//
// docs/model.md has the derivation, docs/fidelity.md what it gets wrong.
#include <algorithm>
#include <cmath>

#include "base/base.h"
#include "base/math.h"
#include "base/text.h"
#include "cost/adapter_times.h"
#include "cost/all_reduce.h"
#include "cost/compared.h"
#include "cost/encoder_times.h"
#include "cost/expert_load.h"
#include "cost/launch.h"
#include "cost/model_cost.h"
#include "servecast/workload_spec.h"
#include "serving/policy.h"

namespace servecast::latency_analytic {
namespace {

// What the shorter of a product's two times adds to the longer where they are equal: 2^(1/3) - 1, a
// cubic blend. Median over GEMMs of five GPUs (ai-dynamo/aiconfigurator@095f58a, systems/data):
// exponents 2.6 to 3.5.
constexpr double kBlend = 0.26;

// 8- and 4-bit products reach less of their peak, and rounding to them are kernels of their own:
// against 16 bits 0.56 to 0.63 of the share from 2,048 to 4,096 rows, as steps with prompts have
// (0.7 to 0.82 from 8,192, 0.4 to 0.5 up to 1,024), and 3 to 4 us for each of four products beside
// 4 to 7 (same data; H100, H200, B200).
constexpr double kLowPrecisionShare = 0.62;
constexpr double kQuantizedKernels = 1.5;
// Rounding to 4 bits by blocks of 16 and arranging the scales takes more of such kernels:
// Llama-3.1-70B on 1 and 4 B200, vLLM and TensorRT-LLM (ai-dynamo/aiconfigurator@095f58a,
// systems/silicon_sample.csv).
constexpr double kFourBitKernels = 2;
// Routing, sorting by expert and summing are kernels, too: Mixtral-8x7B on two H100 (vLLM 0.15.1,
// inference-sim/training@c4f0340).
constexpr double kExpertKernels = 1.6;
// The kernels of experts that compute in 4 bits route and sum within few launches: gpt-oss-120b and
// MiniMax-M2.5 on B200 (same file).
constexpr double kFourBitExpertKernels = 1.12;
// Whole experts in 16 bits: kernels whose tiles were tuned know slices of all experts. Others take
// a tile for few rows up to as many tokens as a GPU has experts, and beyond them one that reads
// weights so much more slowly. Steps at saturation of Qwen3-30B, Qwen3-235B, Qwen3-Coder-480B and
// Llama-4-Scout over 2 to 8 H100 and B200 jump there (ml-energy/leaderboard@0cd52da).
constexpr double kUntunedReads = 1.5;
// Of the share of dense products that those of experts reach, whose rows are few and do not fill
// their tiles: 0.5 to 0.8 from 1,024 tokens (same data, MoE of H100, A100 and L40S in 16 bits).
constexpr double kExpertShare = 0.6;
// 4-bit weights of experts that are unpacked to 16 bits are not read as fast as memory gives them,
// but unpacked at 4.6e12 a second on H100 and 4.8e12 on H200, whose memories differ by 1.4, and
// their kernels take 7 us more (same data, MXFP4 against 16 bits, up to 16 tokens; 6.3e12 on B200),
// in servers 13: gpt-oss-20b and 120b on 1 to 8 H100, vLLM 0.11 (ml-energy/leaderboard@0cd52da,
// anyscale/ray-serve-llm-perf-examples@0bb2858f).
constexpr double kUnpackedPerNs = 4600;
// And for each tile of rows they are unpacked anew, by units whose rate is not that of the
// products: TFLOP/s of products that take as long. Prompts of gpt-oss-20b on H100 and H200 take 1.3
// times as long as without (NVIDIA/TensorRT-LLM@03e27c7d,
// docs/source/developer-guide/perf-overview.md), on an A100 1.0 to 1.1 times
// (gpustack/gpustack@47277d79, docs/performance-lab). An engine may have kernels of its own for
// prompts on Hopper (EngineSpec::unpacked_experts_tflops); those for few rows are as others are.
constexpr double kUnpackedTflops = 1600;
// Products of 8 bits but not of 4, as Ada and AMD's MI300X and MI325X have them, too: unlike the
// former with memory on the package, unlike the latter with less arithmetic.
bool IsHopper(const HardwareSpec& h) {
  constexpr double kOnPackageGbS = 1500;  // H100 PCIe has 2,039 GB/s, an RTX 4090 1,008
  constexpr double kMostTflops = 1100;    // H100 and H200 have 989 in 16 bits, an MI300X 1,307
  return h.peak_fp8_tflops > 0 && h.peak_fp4_tflops == 0 && h.peak_bf16_tflops < kMostTflops &&
         h.memory_bandwidth_gb_s > kOnPackageGbS;
}
constexpr double kUnpackingKernels = 2.1;  // instead of kExpertKernels
// Of a pair of query and key attention takes an exponential whatever the width of its head, and
// heads narrower than this have less products beside it: they take as long as heads of it. Prompts
// of gpt-oss-20b, whose heads have 64, on H100, H200, B200 and GB200 (NVIDIA/TensorRT-LLM@03e27c7d,
// docs/source/developer-guide/perf-overview.md).
constexpr double kFullHead = 128;
// Activations are rounded to 8 bits before each of the two products of experts, too. DeepSeek-V3 on
// H200 and MiniMax-M2.5 on B200, 4 to 8 clients (ai-dynamo/aiconfigurator@095f58a,
// systems/silicon_sample.csv).
constexpr double kRoundingNs = 12e3;
// Experts are not chosen alike: as if popularity had a gamma distribution of this shape. Closed
// loops and steps at saturation of ten mixtures of experts (same file;
// ml-energy/leaderboard@0cd52da): 3 to 6.
constexpr double kPopularity = 4;
// Tokens of a step that choose experts: with those that pad it to the size of a CUDA graph, which
// vLLM captures for 1, 2, 4 and multiples of 8 up to 512 (cudagraph_capture_sizes). Such tokens are
// left from earlier steps and choose as others do: Llama-4-Scout on two H100 (vLLM 0.15.1,
// inference-sim/sim-to-real-accuracy-validation@378810d) is 22 % too fast with 11
// sequences without, 8 % with.
double PaddedTokens(double tokens) {
  const auto rows = static_cast<std::int64_t>(tokens);
  if (rows <= 2 || rows > 512) return tokens;
  return rows <= 4 ? 4 : static_cast<double>(CeilDiv(rows, 8) * 8);
}

// Decodes' kernels of latent attention on Blackwell give each sequence of the graph, whether one is
// there or not, as many multiprocessors (HardwareSpec::latent_split_efficiency), at least one for a
// tile of 64 query heads; another tile is for up to 16. 32 heads fill half of a tile and read 0.6
// to 0.75 as fast as 16, 64 or 128 (ai-dynamo/aiconfigurator@095f58a, systems/data/b200_sxm/mla,
// vLLM 0.19.0 and 0.24.0, TensorRT-LLM 1.3.0rc20; 8 to 256 contexts of 32,768 to 131,072 tokens).
constexpr double kMultiprocessors = 148;  // of a B200, taken for its kin
constexpr double kTileHeads = 64, kSmallTileHeads = 16;
constexpr double kHalfTileReads = 0.7;

// `kOptions`: launch and overlap count. A type of its own, as a price is asked for at every step.
template <bool kOptions>
class Analytic final : public LatencyModel {
 public:
  Analytic(const Scenario& s, const ModelCost& cost)
      : cost_(cost),
        attention_flop_ns_(1e9 /
                           (PeakTflops(s.hardware, PlainType(s.model)) * 1e12 *
                            s.hardware.attention_efficiency * ArithmeticUnderLimit(s.hardware))),
        byte_ns_(1.0 / (s.hardware.memory_bandwidth_gb_s * s.hardware.bandwidth_efficiency)),
        kv_byte_ns_(1.0 /
                    (s.hardware.memory_bandwidth_gb_s * (s.hardware.kv_bandwidth_efficiency > 0
                                                             ? s.hardware.kv_bandwidth_efficiency
                                                             : s.hardware.bandwidth_efficiency))),
        step_ns_(s.engine.step_overhead_us * 1e3),
        kernels_ns_(s.hardware.layer_latency_us * 1e3 * static_cast<double>(cost.layers) *
                    (s.model.kv_lora_rank > 0 ? 1 : s.engine.kernel_share)),
        sequence_ns_(SequenceNs(s.engine, cost.tensor_parallel)),
        sample_ns_(s.model.top_p_by_default
                       ? s.engine.sampler_ns_per_logit * static_cast<double>(s.model.vocab_size)
                       : 0),
        launch_(s.engine, cost),
        adapters_(s, cost),
        encoder_(s, cost),
        mixed_rows_(s.hardware.mixed_attention_rows),
        request_ns_(s.engine.request_overhead_ms * 1e6),
        prompt_token_ns_(s.engine.prompt_token_overhead_us * 1e3),
        delivery_(NearestNs(s.engine.delivery_overhead_us * 1e3)),
        stalls_(StallsOf(s.engine)),
        overlap_(s.engine.overlap_scheduling) {
    splits_ = Latent(s.model) && s.hardware.latent_split_efficiency > 0;
    if (splits_) {
      const double heads = static_cast<double>(s.model.num_attention_heads) /
                           static_cast<double>(cost.tensor_parallel);
      const bool half = heads > kSmallTileHeads && heads <= kTileHeads / 2;
      decode_byte_ns_ = 1 / (s.hardware.memory_bandwidth_gb_s * s.hardware.latent_split_efficiency *
                             (half ? kHalfTileReads : 1));
      split_among_ = kMultiprocessors / std::max(1.0, heads / kTileHeads);
    }
    const auto width = static_cast<double>(s.model.head_dim);
    const bool narrow = s.model.kv_lora_rank == 0 && width < kFullHead;
    pair_ns_ =
        cost.attention_flops_per_pair * attention_flop_ns_ * (narrow ? kFullHead / width : 1);
    const MatrixType plain = PlainType(s.model);
    const auto flop_ns = [&h = s.hardware, plain](MatrixType type) {
      const double share = type == plain ? 1 : kLowPrecisionShare;
      return 1 /
             (PeakTflops(h, type) * 1e3 * h.compute_efficiency * share * ArithmeticUnderLimit(h));
    };
    const bool four = cost.dense_type == MatrixType::k4;
    if (cost.dense_type != plain) kernels_ns_ *= four ? kFourBitKernels : kQuantizedKernels;
    const bool dense_unpacked = cost.dense_type == MatrixType::k16 && DenseUnpacked(s.model);
    dense_ = ProductOf(cost.dense_flops_per_token * flop_ns(cost.dense_type) /
                           (dense_unpacked ? kUnpackedShare : 1),
                       cost.dense_bytes);
    if (cost.lm_head_bytes > 0) {  // not in a stage before the last one
      lm_head_ = ProductOf(cost.lm_head_flops_per_token * flop_ns(plain), cost.lm_head_bytes);
    }
    expert_ns_ = cost.expert_flops_per_token * flop_ns(cost.expert_type);
    expert_bytes_ = cost.expert_bytes;
    if (cost.experts > 1 && cost.expert_bytes > 0) {
      expert_ns_ /= kExpertShare;
      const double weights = cost.expert_flops_per_token / 2 * static_cast<double>(cost.experts) /
                             static_cast<double>(cost.experts_per_token * cost.expert_replicas);
      const bool unpacked = cost.expert_type == MatrixType::k16 && cost.expert_bytes < weights;
      kernels_ns_ *= unpacked                             ? kUnpackingKernels
                     : cost.expert_type == MatrixType::k4 ? kFourBitExpertKernels
                                                          : kExpertKernels;
      if (cost.expert_parallel > 1 && cost.expert_type == MatrixType::k16 && !unpacked) {
        tuned_tokens_ = static_cast<double>(CeilDiv(cost.experts, cost.expert_parallel));
      }
      if (unpacked) {
        expert_ns_ += cost.expert_flops_per_token / (kUnpackedTflops * 1e3);
        const double own = s.engine.unpacked_experts_tflops;
        if (own > 0 && s.model.quantization == Quantization::kMxfp4 && IsHopper(s.hardware)) {
          unpacked_prompt_ns_ = cost.expert_flops_per_token * (1 / own - 1 / kUnpackedTflops) / 1e3;
        }
        expert_bytes_ = std::max(expert_bytes_, weights / (kUnpackedPerNs * byte_ns_));
      }
      // By the weights' type alone: a GPU without products of 8 bits is not faster for it.
      if (s.model.quantization == Quantization::kFp8 && s.engine.fp8_experts_read_share > 0) {
        all_read_ = true;
        expert_bytes_ /= s.engine.fp8_experts_read_share;
      }
      if (cost.expert_type == MatrixType::k8 || cost.expert_type == MatrixType::kInt8) {
        kernels_ns_ += kRoundingNs * static_cast<double>(cost.expert_layers);
      }
      busiest_ =
          BusiestGpu(static_cast<double>(cost.experts), static_cast<double>(cost.experts_per_token),
                     static_cast<double>(cost.expert_parallel));
    }
    const auto tp = static_cast<double>(cost.tensor_parallel);
    const double replicas = static_cast<double>(cost.expert_replicas);
    double all_reduces = 2 * static_cast<double>(cost.layers);
    if (cost.expert_replicas > 1) {
      const auto shared = static_cast<double>(cost.expert_layers);
      all_reduces -= shared;
      kernels_ns_ +=
          AllReduceWaitNs(s.hardware, tp * replicas, s.engine.expert_exchange_latencies * shared);
      collective_token_ns_ = exchange_token_ns_ = AllReduceNs(
          s.hardware, tp * replicas, shared * replicas * cost.collective_bytes_per_token);
    }
    if (cost.tensor_parallel > 1) {
      kernels_ns_ += AllReduceWaitNs(s.hardware, tp, all_reduces);
      collective_token_ns_ +=
          AllReduceNs(s.hardware, tp, all_reduces * cost.collective_bytes_per_token);
    }
    if (cost.experts > cost.experts_per_token) {
      log_untouched_ =
          Log(1 - static_cast<double>(cost.experts_per_token) / static_cast<double>(cost.experts));
    }
  }

  StepPrice Price(const BatchShape& shape) const override {
    const auto decodes = static_cast<double>(shape.decode_seqs);
    double tokens = decodes;
    const bool replayed =
        kOptions && shape.decode_seqs <= launch_.captured && shape.prefill.empty();
    if (replayed) tokens = static_cast<double>(CaptureSize(shape.decode_seqs));  // with its padding
    const double padding = tokens - decodes;
    double sampled = tokens;
    Parts parts;
    double context_tokens = static_cast<double>(shape.decode_context_tokens) + decodes;
    if (!cost_.mixers.empty()) AddMixers(shape, parts);
    if (cost_.window_share > 0) {  // as if all contexts were of the mean length
      context_tokens = Windowed(context_tokens, decodes * cost_.window);
    }
    const double rows = shape.prefill.empty() ? 1 : mixed_rows_;
    double pairs_of_decodes = rows * context_tokens;
    if (splits_ && decodes > 0) {
      const double longest =
          std::max(static_cast<double>(shape.decode_longest) + 1, context_tokens / decodes);
      const double places = shape.prefill.empty() ? PaddedTokens(tokens) : decodes;
      context_tokens = std::max(context_tokens, std::min(places, split_among_) * longest);
    }
    double sequences = decodes + static_cast<double>(shape.prefill.size());
    for (const DraftedDecodes& drafted : shape.drafted) {
      const auto n = static_cast<double>(drafted.tokens);
      const auto members = static_cast<double>(drafted.sequences);
      auto read = static_cast<double>(drafted.Keys());
      if (cost_.window_share > 0) read = Windowed(read, members * (n + cost_.window));
      sequences += members;
      tokens += n * members;
      sampled += static_cast<double>(drafted.logits) * members;
      context_tokens += read;
      pairs_of_decodes += std::max(rows, n) * read;
    }
    if (cost_.mixers.empty()) {
      parts.Add(pairs_of_decodes * cost_.decode_flops_per_pair * attention_flop_ns_,
                context_tokens * cost_.kv_bytes_per_token * decode_byte_ns_);
    }
    const double of_decodes = tokens;
    for (const PrefillChunk& chunk : shape.prefill) {
      const auto n = static_cast<double>(chunk.tokens);
      const auto context = static_cast<double>(chunk.context);
      tokens += n;
      sampled += chunk.samples ? 1 : 0;
      if (!cost_.mixers.empty()) continue;
      double pairs = n * context + n * (n + 1) / 2, read = context + n;
      if (cost_.window_share > 0) {
        pairs = Windowed(pairs, n * cost_.window);
        read = Windowed(read, n + cost_.window);
      }
      parts.Add(pairs * pair_ns_, read * cost_.kv_bytes_per_token * kv_byte_ns_);
    }
    const double of_prompts = tokens - of_decodes;
    parts.Blend(dense_, tokens);
    parts.memory += cost_.activation_bytes_per_token * tokens * byte_ns_;
    // Of a rank in lock step experts see the mean of all ranks' tokens, each of which comes by.
    const double meeting = shape.group_tokens > 0 ? static_cast<double>(shape.group_tokens) /
                                                        static_cast<double>(cost_.expert_replicas)
                                                  : tokens;
    if (cost_.expert_bytes > 0) AddExperts(meeting, tokens > 0 ? of_prompts / tokens : 0, parts);
    if (sampled > 0) parts.Blend(lm_head_, sampled);
    const double host = step_ns_ + sequence_ns_ * sequences;
    double overhead = host + sample_ns_ * (sampled - padding) + kernels_ns_ +
                      collective_token_ns_ * tokens + exchange_token_ns_ * (meeting - tokens);
    if (shape.lora.adapters > 0) {
      parts.Add(adapters_.ComputeNs(shape.lora.tokens), adapters_.MemoryNs(shape.lora.adapters));
      overhead += adapters_.KernelsNs();
    }
    if (shape.images > 0) {
      parts.Add(encoder_.ComputeNs(shape.images), encoder_.MemoryNs());
      overhead += encoder_.OverheadNs(shape.images);
    }
    if (kOptions) {
      overhead += launch_.Ns(replayed);
      if (overlap_) {
        const double device = parts.compute + parts.memory + (overhead - host);
        overhead = host > device ? host : overhead - host;
        if (host > device) parts = {};
      }
    }
    return parts.Total(overhead);
  }

  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    return TakeUpTimesOf(request_ns_, prompt_token_ns_ * static_cast<double>(prompt_tokens));
  }
  bool PricesLongest() const override { return splits_; }
  TimeNs DeliveryDelay() const override { return delivery_; }
  StallTimes Stalls() const override { return stalls_; }

 private:
  // Keys that a query of a context of so many tokens sees.
  static double Seen(const LayerWork& w, double context) {
    double keys = 0;
    if (w.reach > 0) {
      keys = context <= w.reach ? context : w.chunked ? w.reach / 2 : w.reach;
      if (w.tokens_of_key <= 1) return keys;
    }
    const double far = context / w.tokens_of_key;
    return keys + (w.chosen > 0 ? std::min(far, w.chosen) : far);
  }

  // Of `queries` queries of each of `sequences`, behind `context` tokens each.
  template <class Parts>
  void AddMixer(const LayerWork& w, double pair_flops, double sequences, double queries,
                double context, Parts& parts) const {
    const double mean = context + (queries + 1) / 2, all = context + queries;
    const double seen = Seen(w, mean) * queries * sequences;
    // Several queries of one read a key once, unless each chooses its own.
    const double reads = w.chosen > 0
                             ? std::min(seen, all * sequences)
                             : (Seen(w, all) + (w.reach > 0 ? queries - 1 : 0)) * sequences;
    parts.Add(seen * pair_flops * attention_flop_ns_, reads * w.key_bytes * kv_byte_ns_);
    if (w.index_pair_flops > 0) {
      parts.Add(mean * queries * sequences * w.index_pair_flops * attention_flop_ns_,
                all * sequences * w.index_key_bytes * kv_byte_ns_);
    }
    if (w.state_bytes > 0) {
      parts.Add(queries * sequences * w.token_flops * attention_flop_ns_,
                sequences * w.state_bytes * byte_ns_);
    }
  }

  // What mixes tokens in a model with a list of layers: contexts of decodes as if all were alike.
  template <class Parts>
  void AddMixers(const BatchShape& shape, Parts& parts) const {
    const double rows = shape.prefill.empty() ? 1 : mixed_rows_;
    const auto decodes = static_cast<double>(shape.decode_seqs);
    for (const LayerWork& w : cost_.mixers) {
      if (decodes > 0) {
        const double context = static_cast<double>(shape.decode_context_tokens) / decodes;
        AddMixer(w, rows * w.decode_pair_flops, decodes, 1, context, parts);
      }
      for (const DraftedDecodes& drafted : shape.drafted) {
        const auto members = static_cast<double>(drafted.sequences);
        AddMixer(w, w.decode_pair_flops, members, static_cast<double>(drafted.tokens),
                 static_cast<double>(drafted.context) / members, parts);
      }
      for (const PrefillChunk& chunk : shape.prefill) {
        AddMixer(w, w.pair_flops, 1, static_cast<double>(chunk.tokens),
                 static_cast<double>(chunk.context), parts);
      }
    }
  }

  // Of an amount of attention, what is left when the sliding layers do at most `most`.
  double Windowed(double amount, double most) const {
    return amount - cost_.window_share * std::max(0.0, amount - most);
  }

  // A product with fixed matrices: ns of a row's arithmetic and of reading them, and their ratio.
  struct Product {
    double row_ns = 0, bytes_ns = 0, ratio = 0;
  };
  Product ProductOf(double row_ns, double bytes) const {
    return {row_ns, bytes * byte_ns_, row_ns / (bytes * byte_ns_)};
  }

  struct Parts {
    double compute = 0, memory = 0;  // ns of the parts that each of them bounds

    void Add(double compute_ns, double memory_ns) {
      (compute_ns > memory_ns ? compute : memory) += std::max(compute_ns, memory_ns);
    }
    // Of a matrix product, whose reads and arithmetic overlap less well where neither dominates.
    void Blend(const Product& p, double rows) {
      const double x = rows * p.ratio;
      if (x <= 1) {
        memory += p.bytes_ns * (1 + kBlend * x * x * x);
      } else {
        compute += rows * p.row_ns * (1 + kBlend / (x * x * x));
      }
    }
    StepPrice Total(double overhead) const {
      const double total = std::min(compute + memory + overhead, static_cast<double>(kMaxStepNs));
      StepPrice price;
      price.duration = std::max<TimeNs>(1, static_cast<TimeNs>(RoundHalfEven(total)));
      price.bound = BoundOf(compute, memory, overhead);
      return price;
    }
  };

  // The share of experts that no token of a step chose: one token chooses `experts_per_token`, and
  // were all chosen alike, M would leave (1 - k/E)^M.
  double Untouched(double tokens) const {
    if (all_read_ || cost_.experts <= cost_.experts_per_token) return 0;
    const double routed = PaddedTokens(tokens) * static_cast<double>(cost_.expert_replicas);
    if (routed <= 1) return Exp(routed * log_untouched_);
    const double later = (1 - routed) * log_untouched_;
    return Exp(std::max(log_untouched_ - kPopularity * Log(1 + later / kPopularity), -700.0));
  }

  void AddExperts(double tokens, double prompt_share, Parts& parts) const {
    const auto experts = static_cast<double>(cost_.experts);
    const double touched = experts * (1 - Untouched(tokens));
    double rows = tokens, read = expert_bytes_ * touched / experts;
    if (tokens * static_cast<double>(cost_.expert_replicas) > tuned_tokens_) read *= kUntunedReads;
    if (cost_.expert_parallel > 1 && tokens > 0) {
      const ExpertLoad busiest =
          busiest_.Of(tokens * static_cast<double>(cost_.expert_replicas), touched);
      rows *= busiest.rows;
      read *= busiest.read;
    }
    parts.Blend(ProductOf(expert_ns_, read), rows);
    if (unpacked_prompt_ns_ != 0) parts.compute += prompt_share * rows * unpacked_prompt_ns_;
  }

  ModelCost cost_;
  Product dense_, lm_head_;
  BusiestGpu busiest_;  // whole experts spread over a group
  double attention_flop_ns_, pair_ns_ = 0, expert_ns_ = 0, byte_ns_, kv_byte_ns_, step_ns_,
                             kernels_ns_, sequence_ns_, sample_ns_;
  double decode_byte_ns_ = kv_byte_ns_;  // of a KV cache that decodes read
  bool splits_ = false;                  // so that a step waits for its longest context
  double split_among_ = 0;               // up to as many sequences
  double collective_token_ns_ = 0, log_untouched_ = 0;  // by one token
  double exchange_token_ns_ = 0;                        // of these, what brings tokens to experts
  double unpacked_prompt_ns_ = 0;  // a token of a prompt more, by kernels of the engine
  double expert_bytes_ = 0;        // all experts; more than there are, where unpacking takes longer
  bool all_read_ = false;          // whatever the tokens choose
  double tuned_tokens_ = 1e18;     // up to as many in a step experts are read at the full rate
  Launch launch_;
  AdapterTimes adapters_;
  EncoderTimes encoder_;
  double mixed_rows_;
  double request_ns_, prompt_token_ns_;
  TimeNs delivery_;
  StallTimes stalls_;
  bool overlap_;
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost& cost) {
  if (s.engine.cuda_graphs != CudaGraphs::kImplied || s.engine.overlap_scheduling) {
    return std::make_unique<Analytic<true>>(s, cost);
  }
  return std::make_unique<Analytic<false>>(s, cost);
}

LatencyLabel Label(const Scenario& s) {
  LatencyLabel label = {
      "analytic", "datasheet",
      "Physics bound from the data sheet of " + s.hardware.name + ", scaled to " +
          ShortNumber(100 * s.hardware.compute_efficiency) + " % of its peak arithmetic and " +
          ShortNumber(100 * s.hardware.bandwidth_efficiency) + " % of its bandwidth",
      KnownError(s, "analytic"), EvidenceOf(s, "analytic")};
  if (const double left = ArithmeticUnderLimit(s.hardware); left < 1) {
    label.description += Format("; at {} W {} % of that arithmetic, as one pair of cards has it",
                                ShortNumber(s.hardware.power_limit_w), ShortNumber(100 * left));
  }
  if (s.workload->HasImages()) {
    label.evidence.of = std::max(label.evidence.of, EvidenceClass::kUntested);
    label.evidence.sentence +=
        " No server with images was compared: the encoder's time is its bytes and arithmetic "
        "alone, "
        "and may be off by half, whatever is said of steps. Before the queue the host takes as "
        "long for a token of an image as for one of text.";
  }
  std::string kinds;
  for (const LayerSpec& layer : s.model.layers) {
    const bool named = kinds.find(layer.kind) != std::string::npos;
    if (named || !FindLayerKind(layer.kind).uncompared) continue;
    kinds += (kinds.empty() ? "" : ", ") + layer.kind;
  }
  if (kinds.empty()) return label;
  label.evidence.of = std::max(label.evidence.of, EvidenceClass::kUntested);
  label.evidence.sentence +=
      " No server with layers of the kind " + kinds +
      " was compared: their times are bytes and arithmetic alone, and may be "
      "off by half.";
  return label;
}

}  // namespace

extern const LatencyEntry kEntry = {
    .name = "analytic",
    .help = "Physics: work over data-sheet peaks at measured efficiencies, plus host time",
    .make = Make,
    .label = Label,
    .has = kModelForms | Features{Feature::kLayerKinds, Feature::kPowerLimit, Feature::kDrafts,
                                  Feature::kAdapters, Feature::kExpertReplicas,
                                  Feature::kExpertParallel, Feature::kFloat32, Feature::kImages},
};

}  // namespace servecast::latency_analytic
