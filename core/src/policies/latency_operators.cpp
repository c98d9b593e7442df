// Step time composed from measured latencies of operators (cost/operator_step.h): matrix products
// by shape, attention of prefill and of decode, experts, all-reduces; beside them the host's time,
// from the engine preset as in the analytic model. docs/model.md has the composition.
#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/text.h"
#include "base/whole_engine.h"
#include "cost/adapter_times.h"
#include "cost/compared.h"
#include "cost/launch.h"
#include "cost/operator_step.h"
#include "cost/power_limit.h"
#include "serving/policy.h"

namespace servecast::latency_operators {
namespace {

constexpr double kReached = 0.9;  // share of the bandwidth, about the best of the presets
constexpr double kMostly = 0.1;   // extrapolated share of a step from which it is not covered
constexpr double kFree = 1e9;     // GB/s: links that take no time

class Operators final : public LatencyModel {
 public:
  Operators(const Scenario& s, const ModelCost& cost)
      : step_(s, cost),
        step_ns_(s.engine.step_overhead_us * 1e3),
        sequence_ns_(SequenceNs(s.engine, cost.tensor_parallel)),
        sample_ns_(s.model.top_p_by_default
                       ? s.engine.sampler_ns_per_logit * static_cast<double>(s.model.vocab_size)
                       : 0),
        request_ns_(s.engine.request_overhead_ms * 1e6),
        prompt_token_ns_(s.engine.prompt_token_overhead_us * 1e3),
        delivery_(NearestNs(s.engine.delivery_overhead_us * 1e3)),
        stalls_(StallsOf(s.engine)),
        launch_(s.engine, cost),
        adapters_(s, cost),
        overlap_(s.engine.overlap_scheduling) {}

  StepPrice Price(const BatchShape& shape) const override {
    const std::int64_t decodes = shape.decode_seqs;
    const bool replayed = decodes <= launch_.captured && shape.prefill.empty();
    std::int64_t tokens = replayed ? CaptureSize(decodes) : decodes;  // with its padding
    std::int64_t sampled = tokens;
    const std::int64_t padding = tokens - decodes;
    AttentionWork work;
    work.decodes = decodes;
    work.contexts = shape.decode_context_tokens + decodes;
    for (const PrefillChunk& chunk : shape.prefill) {
      tokens += chunk.tokens;
      sampled += chunk.samples ? 1 : 0;
      step_.Add(chunk.tokens, chunk.context, work);
    }
    std::int64_t pairs = 0;
    std::int64_t sequences = decodes + static_cast<std::int64_t>(shape.prefill.size());
    for (const DraftedDecodes& drafted : shape.drafted) {
      tokens += drafted.tokens * drafted.sequences;
      sampled += drafted.logits * drafted.sequences;
      sequences += drafted.sequences;
      work.decodes += drafted.sequences;
      work.contexts += drafted.Keys();
      pairs += drafted.tokens * drafted.Keys();
    }
    double attention = step_.Attention(work);
    if (pairs > 0) attention = std::max(attention, step_.DecodePairs(pairs));
    double matrices = step_.Tokens(tokens, shape.group_tokens) + step_.Head(sampled),
           launch = launch_.Ns(replayed);
    if (shape.lora.adapters > 0) {
      matrices +=
          std::max(adapters_.ComputeNs(shape.lora.tokens), adapters_.MemoryNs(shape.lora.adapters));
      launch += adapters_.KernelsNs();
    }
    const double host = step_ns_ + sequence_ns_ * static_cast<double>(sequences);
    const double sampler = sample_ns_ * static_cast<double>(sampled - padding);
    const double device = matrices + attention + sampler + launch;
    const double total = overlap_ ? std::max(host, device) : host + device;
    const bool compute = tokens >= step_.ComputeBoundFrom();
    StepPrice price;
    price.duration = std::max<TimeNs>(
        1, static_cast<TimeNs>(RoundHalfEven(std::min(total, static_cast<double>(kMaxStepNs)))));
    // Attention of prompts computes, that of decodes reads.
    const bool prompts = !shape.prefill.empty();
    const double compute_ns = (prompts ? attention : 0) + (compute ? matrices : 0);
    const double memory_ns = (prompts ? 0 : attention) + (compute ? 0 : matrices);
    const double other_ns = host + sampler + launch;
    price.bound = BoundOf(compute_ns, memory_ns, other_ns);
    return price;
  }

  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    return TakeUpTimesOf(request_ns_, prompt_token_ns_ * static_cast<double>(prompt_tokens));
  }
  TimeNs DeliveryDelay() const override { return delivery_; }
  StallTimes Stalls() const override { return stalls_; }

 private:
  OperatorStep step_;
  double step_ns_, sequence_ns_, sample_ns_, request_ns_, prompt_token_ns_;
  TimeNs delivery_;
  StallTimes stalls_;
  Launch launch_;
  AdapterTimes adapters_;
  bool overlap_;
};

std::unique_ptr<LatencyModel> Make(const Scenario& s, const ModelCost& cost) {
  return std::make_unique<Operators>(s, cost);
}

// What tables say of a model, whatever the figures of the GPU: those of the tables' own count.
enum class Cover {
  kNot,
  kButLinks,  // cards of which no all-reduce was measured: these are priced as in `analytic`
  kAll,
};

Cover CoverOf(const Scenario& s) {
  const OperatorSet& set = *FindOperators(s.hardware).set;
  const bool links = std::any_of(set.tables.begin(), set.tables.end(),
                                 [](const OperatorTable& t) { return t.op == "all_reduce"; });
  Scenario measured = s;
  HardwareSpec& h = measured.hardware;
  h.operators = set.id;
  h.peak_bf16_tflops = set.peak_bf16_tflops;
  h.peak_fp8_tflops = set.peak_fp8_tflops;
  h.peak_fp4_tflops = set.peak_fp4_tflops;
  h.memory_bandwidth_gb_s = set.memory_bandwidth_gb_s;
  h.interconnect_gb_s = links ? set.interconnect_gb_s : kFree;
  if (!links) h.interconnect = Interconnect::kNvlink;
  h.compute_efficiency = h.attention_efficiency = 1;
  h.bandwidth_efficiency = kReached;
  h.mixed_attention_rows = 1;
  if (!links) h.interconnect_latency_us = 0;
  if (!links) h.gpus_per_node = 0;
  const Result<ModelCost> cost = ComputeModelCost(s);
  if (!cost.ok()) return Cover::kNot;
  const OperatorStep step(measured, cost.value(), OperatorStep::For::kCoverage);
  const std::vector<std::string>& names = step.Extrapolated();
  if (step.ExtrapolatedShare() >= kMostly) return Cover::kNot;
  if (std::find(names.begin(), names.end(), "all_reduce") == names.end()) return Cover::kAll;
  // A group larger than those measured is not covered, as its links are a matter of figures.
  return links ? Cover::kNot : Cover::kButLinks;
}

LatencyLabel Label(const Scenario& s) {
  const Result<ModelCost> cost = ComputeModelCost(s);
  if (!cost.ok()) return {};
  const OperatorStep step(s, cost.value(), OperatorStep::For::kCoverage);
  const std::string share = ShortNumber(std::round(100 * step.ExtrapolatedShare()));
  std::string text =
      "Latencies of operators measured on " + step.Set().name + " (" + step.Set().source + ")";
  std::string names;
  for (const std::string& name : step.Extrapolated()) names += (names.empty() ? "" : ", ") + name;
  if (!step.Exact()) text += ", scaled to the data sheet of " + s.hardware.name;
  if (!names.empty()) {
    text += "; " + share + " % of a typical step's time extrapolated (" + names + ")";
  }
  if (s.engine.max_loras > 0) text += "; adapters by their bytes and arithmetic";
  const Cover cover = CoverOf(s);
  const bool covered = cover != Cover::kNot;
  return {"operators", cover == Cover::kAll && step.Exact() ? "interpolated" : "extrapolated", text,
          covered ? KnownError(s, "operators")
                  : "No table covers all of a step, so the error is not known.",
          covered ? EvidenceOf(s, "operators") : Evidence{}};
}

// Where servers were nearer by it (docs/fidelity.md, "Which model `auto` is"); none is of expert
// parallelism or 32-bit weights, and BLIS's rules have models of their own. With seats for adapters
// it is what it is without: a ladder of seats compares steps of one model.
bool WasNearer(const Scenario& s) {
  return s.model.layers.empty() && ArithmeticUnderLimit(s.hardware) >= 1 &&
         s.hardware.auto_backend == "operators" && s.engine.compat == Compat::kNone &&
         !s.engine.enable_expert_parallel && s.model.torch_dtype != DType::kFloat32;
}

bool Best(const Scenario& s) { return WasNearer(s) && CoverOf(s) != Cover::kNot; }

// Where auto may be this model, which one it is hangs on the tables, too.
std::string Missing(const Scenario& s) {
  const std::string& backend = s.latency.backend;
  if (backend != "operators" && (backend != "auto" || !WasNearer(s))) return "";
  const NearestOperators nearest = FindOperators(s.hardware);
  return nearest.set != nullptr ? "" : Format("presets/operators/{}.json", nearest.id);
}

}  // namespace

extern const LatencyEntry kEntry = {
    .name = "operators",
    .help = "Measured latencies of each operator on the GPU, added up, plus host time",
    .make = OfWholeEngine(Make),
    .label = OfWholeEngine(Label),
    .has = kModelForms | Features{Feature::kDrafts, Feature::kAdapters, Feature::kExpertReplicas,
                                  Feature::kExpertParallel},
    .lacks = kPlainStepsLack,
    .best = OfWholeEngine(Best),
    .missing = OfWholeEngine(Missing),
};

}  // namespace servecast::latency_operators
