// See plausibility.h.
#include "policies/plausibility.h"

#include <algorithm>
#include "base/text.h"

namespace servecast {
namespace {

// x to the power of n >= 0.
double Power(double x, double n) {
  double result = 1;
  for (auto left = static_cast<std::int64_t>(n); left > 0; left /= 2, x *= x) {
    if (left % 2 == 1) result *= x;
  }
  return result;
}

}  // namespace

double LeastStepNs(const Scenario& s, const ModelCost& cost, const BatchShape& shape) {
  const auto decodes = static_cast<double>(shape.decode_seqs);
  double tokens = decodes, sampled = decodes;
  double keys = static_cast<double>(shape.decode_context_tokens) + decodes, pairs = keys;
  for (const PrefillChunk& chunk : shape.prefill) {
    const auto n = static_cast<double>(chunk.tokens), before = static_cast<double>(chunk.context);
    tokens += n;
    sampled += chunk.samples ? 1 : 0;
    keys += n + before;
    pairs += n * before + n * (n + 1) / 2;
  }
  double touched = 0;
  if (cost.experts > 0) {
    touched = 1 - Power(1 - static_cast<double>(cost.experts_per_token) /
                                static_cast<double>(cost.experts),
                        tokens * static_cast<double>(cost.expert_replicas));
  }
  const double full = 1 - cost.window_share;  // the layers with a window may do next to nothing
  const double flops =
      tokens * (cost.dense_flops_per_token + cost.expert_flops_per_token) +
      sampled * cost.lm_head_flops_per_token +
      pairs * full * std::min(cost.attention_flops_per_pair, cost.decode_flops_per_pair);
  const double bytes = cost.dense_bytes + touched * cost.expert_bytes +
                       (sampled > 0 ? cost.lm_head_bytes : 0) +
                       keys * full * cost.kv_bytes_per_token;
  const double peak =
      std::max(PeakTflops(s.hardware, cost.dense_type), PeakTflops(s.hardware, cost.expert_type));
  return std::max(flops / (std::max(peak, s.hardware.peak_bf16_tflops) * 1e3),
                  bytes / s.hardware.memory_bandwidth_gb_s);
}

LightCheck CheckSpeedOfLight(const Scenario& s, const ModelCost& cost, const LatencyModel& model) {
  LightCheck check;
  const std::int64_t longest = s.model.max_position_embeddings;
  // Decodes behind `context` tokens each, and a chunk behind `before`.
  const auto visit = [&](std::int64_t decodes, std::int64_t context, std::int64_t tokens,
                         std::int64_t before) {
    PrefillChunk chunk{tokens, before, tokens + before, true};
    BatchShape shape{decodes, decodes * context, {}};
    const std::int64_t blocks = CeilDiv(context + 1, s.engine.block_size);
    shape.decode_kv_blocks = decodes * blocks;
    if (tokens > 0) shape.prefill = {&chunk, 1};
    const TimeNs time = model.Price(shape).duration;
    const double share = static_cast<double>(time) / LeastStepNs(s, cost, shape);
    ++check.batches;
    // A price is rounded to the nanosecond.
    check.faster += share < 1 - 1e-6 ? 1 : 0;
    if (check.batches == 1 || share < check.least_share) {
      check.least_share = share;
      check.fastest = Format("{} decodes behind {} tokens each, a chunk of {} behind {}", decodes,
                             context, tokens, before);
    }
    BatchShape more = shape;
    ++more.decode_seqs;
    more.decode_context_tokens += context;
    more.decode_kv_blocks += blocks;
    bool shorter = model.Price(more).duration < time;
    chunk.tokens += 16;
    shape.prefill = {&chunk, 1};
    shorter |= model.Price(shape).duration < time;
    check.shorter += shorter ? 1 : 0;
  };
  for (const std::int64_t decodes : {0, 1, 8, 32, 128, 256, 512, 1024}) {
    if (decodes > s.engine.max_num_seqs) break;
    for (const std::int64_t context : {16, 256, 2048, 16384}) {
      if (context >= longest || (decodes == 0 && context > 16)) break;
      for (const std::int64_t tokens : {0, 1, 64, 512, 2048, 8192}) {
        if (decodes + tokens > s.engine.max_num_batched_tokens) break;
        for (const std::int64_t before : {0, 4096, 32768}) {
          if (tokens + before >= longest || (tokens == 0 && before > 0)) break;
          if (decodes + tokens > 0) visit(decodes, context, tokens, before);
        }
      }
    }
  }
  return check;
}

std::vector<std::string> ImplausibleSigns(const LatencySpec& latency) {
  struct Rule {
    std::size_t number;  // of the feature
    bool positive;       // else: not negative
    const char* what;
  };
  static constexpr Rule kRules[] = {
      {1, true, "arithmetic of prefill"},      {2, false, "attention of prefill"},
      {3, true, "reading of weights"},         {4, false, "attention of decodes"},
      {5, false, "reading of the KV cache"},   {9, false, "all-reduce"},
      {11, true, "fixed cost of a step"},      {13, false, "transfer of KV blocks"},
      {14, false, "KV blocks in host memory"}, {16, false, "bias"},
  };
  std::vector<std::string> lines;
  for (const Rule& rule : kRules) {
    const double weight = latency.beta_coefficients[rule.number - 1];
    if (weight > 0 || (weight == 0 && !rule.positive)) continue;
    lines.push_back(Format("beta {} ({}) is {}, plausible {} 0", rule.number, rule.what,
                           NumberText(weight), rule.positive ? "above" : "from"));
  }
  return lines;
}

}  // namespace servecast
