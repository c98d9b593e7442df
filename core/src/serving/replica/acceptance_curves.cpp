#include "serving/replica/acceptance_curves.h"

#include <algorithm>

#include "base/base.h"

namespace servecast {
namespace {

// vLLM on B300, coding prompts of SPEED-Bench, 4,096 output tokens, thinking but where it says
// plain (SemiAnalysisAI/InferenceX@843c6254, golden_al_distribution). Other prompts have others.
constexpr AcceptanceCurve kCurves[] = {
    {"deepseek-v4-pro-mtp", {1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58}},
    {"deepseek-v4-pro-mtp-plain", {1.92, 2.61, 2.97, 3.00, 3.10, 3.16, 3.00, 3.11}},
    {"deepseek-v4-pro-dspark", {1.84, 2.51, 3.01, 3.36, 3.61, 3.77, 3.73, 3.47}},
    {"glm-5.2-mtp", {1.84, 2.50, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06}},
    {"kimi-k2.5-eagle3", {1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77}},
    {"kimi-k2.5-eagle3-plain", {1.80, 2.33, 2.75, 3.06, 3.25, 3.43, 3.46, 3.51}},
    {"kimi-k3-dspark", {1.84, 2.45, 2.87, 3.22, 3.44, 3.54, 3.78, 3.88}},
    {"minimax-m3-eagle3", {1.78, 2.38, 2.83, 3.11, 3.35, 3.45, 3.53, 3.74}},
    {"minimax-m3-eagle3-plain", {1.84, 2.52, 2.93, 3.41, 3.59, 3.57, 3.85, 4.06}},
    {"qwen3.5-397b-a17b-mtp", {1.93, 2.73, 3.39, 3.97, 4.41, 4.80, 5.04, 5.21}},
    {"qwen3.5-397b-a17b-mtp-plain", {1.92, 2.70, 3.33, 3.83, 4.20, 4.48, 4.73, 4.71}},
};

}  // namespace

std::span<const AcceptanceCurve> AcceptanceCurves() { return kCurves; }

std::vector<double> RatesOfCurve(std::string_view name, std::int64_t drafts) {
  const AcceptanceCurve* curve = nullptr;
  for (const AcceptanceCurve& each : kCurves) {
    if (each.name == name) curve = &each;
  }
  SERVECAST_CHECK(curve != nullptr && drafts <= kMeasuredDrafts,
                  "a curve is looked up that exists");
  std::vector<double> rates;
  double before = 1, rate = 1, sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(drafts); ++i) {
    // Measured means may fall a little, probabilities do not rise.
    rate = std::clamp(curve->lengths[i] - before, 0.0, rate);
    before = curve->lengths[i];
    sum += rate;
    rates.push_back(rate);
  }
  for (double& each : rates) each = std::min(1.0, each * ((before - 1) / sum));
  return rates;
}

}  // namespace servecast
