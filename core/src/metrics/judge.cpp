// The verdict: one sentence that answers, one that says what binds, one for what else a reader
// must know. The command and the page show the same words.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "metrics/summarize.h"

namespace servecast {
namespace {

constexpr double kNearMargin = 0.1;

std::string Ms(double ms) {
  return std::fabs(ms) < 1000 ? ShortNumber(ms) + " ms" : ShortNumber(ms / 1000) + " s";
}

std::string Percent(double share) { return ShortNumber(std::round(share * 1000) / 10) + " %"; }

const char* MetricName(SloMetric metric) {
  switch (metric) {
    case SloMetric::kTtft:
      return "TTFT";
    case SloMetric::kTpot:
      return "TPOT";
    case SloMetric::kItl:
      return "ITL";
    case SloMetric::kE2e:
      return "E2E";
  }
  return "";
}

std::string Target(const SloSpec& slo) {
  return fmt::format("{} p{} <= {}", MetricName(slo.metric), NumberText(slo.percentile),
                     Ms(slo.limit_ms));
}

// The result that decides: the least margin, one without any sample before all.
const SloResult* Tightest(const Report& report) {
  const SloResult* tightest = nullptr;
  for (const SloResult& result : report.slo) {
    if (!result.margin) return &result;
    if (tightest == nullptr || *result.margin < *tightest->margin) tightest = &result;
  }
  return tightest;
}

std::string Measured(const Report& r) {
  if (r.ttft_ms.n == 0) return "No request got its first token.";
  std::string text = "TTFT p99 is " + Ms(r.ttft_ms.p99);
  if (r.tpot_ms.n > 0) text += ", TPOT p99 is " + Ms(r.tpot_ms.p99);
  return text + ".";
}

void JudgeSlo(Report& r) {
  const SloResult& worst = *Tightest(r);
  if (!worst.value_ms) {
    r.verdict.state = VerdictState::kMisses;
    r.verdict.sentence = fmt::format("Cannot tell {}: no request got that far.", Target(worst.slo));
  } else if (!worst.met) {
    r.verdict.state = VerdictState::kMisses;
    const double over = -*worst.margin;
    r.verdict.sentence = fmt::format(
        "Misses {}: it is {}, {}.", Target(worst.slo), Ms(*worst.value_ms),
        over < 2 ? Percent(over) + " over" : ShortNumber(1 + over) + " times the limit");
  } else {
    const bool tight = *worst.margin < kNearMargin;
    const bool saturating = r.saturation.state == SaturationState::kNear;
    r.verdict.state = tight || saturating ? VerdictState::kNear : VerdictState::kMeets;
    r.verdict.sentence = fmt::format("{} {} with a margin of {}{}.", tight ? "Just meets" : "Meets",
                                     Target(worst.slo), Percent(*worst.margin),
                                     saturating ? ", but close to saturation" : "");
  }
}

std::string LimitSentence(const Report& r) {
  const std::string share = Percent(r.binding.share);
  const std::string_view name = r.binding.name;
  if (name == "kv_blocks") {
    return fmt::format("The limit is KV memory: {} of the time admission waits for blocks.", share);
  }
  if (name == "seats") {
    return fmt::format("The limit is max_num_seqs: {} of the time admission waits for a seat.",
                       share);
  }
  if (name == "token_budget") {
    return fmt::format(
        "The limit is max_num_batched_tokens: {} of the time admission waits for room in a step.",
        share);
  }
  if (name == "compute")
    return fmt::format("Steps are mostly bound by arithmetic: {} of the time.", share);
  if (name == "bandwidth") {
    return fmt::format("Steps are mostly bound by memory bandwidth: {} of the time.", share);
  }
  if (name == "overhead" && r.latency_model.backend != "blackbox") {
    return fmt::format("Steps are mostly bound by host and link time: {} of the time.", share);
  }
  return "";
}

std::string Notes(const Report& r) {
  std::string notes;
  const auto add = [&notes](const std::string& sentence) {
    notes += (notes.empty() ? "" : " ") + sentence;
  };
  if (r.dropped > 0) {
    add(fmt::format("{} of {} requests were dropped: their prompt is longer than the engine takes.",
                    r.dropped, r.arrived));
  }
  if (r.length_capped > 0) {
    add(fmt::format("{} were cut short at max_model_len.", r.length_capped));
  }
  if (r.finished && r.queued + r.running > 0) {
    add(fmt::format("{} requests were unfinished at the horizon.", r.queued + r.running));
  }
  for (const SloResult& result : r.slo) {
    const std::int64_t n = result.slo.metric == SloMetric::kTtft   ? r.ttft_ms.n
                           : result.slo.metric == SloMetric::kTpot ? r.tpot_ms.n
                           : result.slo.metric == SloMetric::kE2e  ? r.e2e_ms.n
                                                                   : r.itl_ms.n;
    const double beyond = static_cast<double>(n) * (1 - result.slo.percentile / 100);
    if (n > 0 && beyond < 10) {
      add(fmt::format("{} p{} rests on {} samples; about {} lie beyond it.",
                      MetricName(result.slo.metric), NumberText(result.slo.percentile), n,
                      ShortNumber(std::ceil(beyond))));
    }
  }
  return notes;
}

}  // namespace

void Judge(const Scenario& scenario, Report& r) {
  if (r.arrived == 0) {
    r.verdict = {VerdictState::kEmpty, "No request arrived.", "", ""};
    return;
  }
  if (r.arrived == r.dropped) {
    r.verdict.state = VerdictState::kMisses;
    r.verdict.sentence = "Serves nothing: every request was dropped.";
  } else if (r.saturation.state == SaturationState::kOverloaded) {
    r.verdict.state = VerdictState::kOverloaded;
    r.verdict.sentence = "Overloaded: requests arrive faster than they are served";
    if (r.saturation.queue_slope_per_s > 0) {
      r.verdict.sentence += fmt::format(", and the queue grows by {} requests a second",
                                        ShortNumber(r.saturation.queue_slope_per_s));
    }
    r.verdict.sentence += ". " + Measured(r);
  } else if (scenario.slo.empty()) {
    r.verdict.state = VerdictState::kNoSlo;
    r.verdict.sentence = "No latency target is set. " + Measured(r);
  } else {
    JudgeSlo(r);
  }
  r.verdict.limit = LimitSentence(r);
  r.verdict.note = Notes(r);
}

}  // namespace servecast
