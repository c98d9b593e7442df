// See traffic.h.
#include "import/traffic.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/text.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// A gamma distribution of so large a shape has equal gaps.
constexpr double kEven = 1e4;
constexpr std::size_t kQuantiles = 40;

std::int64_t Tokens(double tokens) {
  return static_cast<std::int64_t>(std::clamp(std::floor(tokens + 0.5), 1.0, 1e7));
}

// Probability 0 and 1 are there, probabilities and tokens ascend.
Json Empirical(const std::vector<std::pair<double, double>>& quantiles) {
  Json list = Json::array();
  for (const auto& [probability, tokens] : quantiles) {
    list.push_back(Json::array({NumberJson(probability), Tokens(tokens)}));
  }
  return {{"distribution", "empirical"}, {"quantiles", std::move(list)}};
}

}  // namespace

std::optional<double> RateIn(std::string_view text) {
  if (LowerCase(text.substr(0, 8)) == "inf") return std::numeric_limits<double>::infinity();
  const auto rate = NumberIn(text);
  return rate && *rate > 0 ? rate : std::nullopt;
}

namespace {

// Rates of a ramp, each from a time on: vLLM's rate is that of the request's number.
Json FactorsOf(const Ramp& ramp, double requests) {
  constexpr int kPieces = 20;
  Json factors = Json::array();
  double time = 0;
  for (int i = 0; i < kPieces; ++i) {
    const double done = (i + 0.5) / kPieces;
    const double rate = ramp.exponential ? ramp.from * Exp(done * Log(ramp.to / ramp.from))
                                         : ramp.from + (ramp.to - ramp.from) * done;
    const auto rounded = [](double x) { return NumberJson(std::floor(x * 1000 + 0.5) / 1000); };
    factors.push_back(Json::array({rounded(time), rounded(rate)}));
    time += requests / kPieces / rate;
  }
  return factors;
}

}  // namespace

void TakeArrivals(const BenchTraffic& traffic, std::string_view from, Draft& draft) {
  Json arrivals = Json::object();
  const Json* requests = draft.Find("workload.requests");
  const bool ramp = traffic.ramp && traffic.ramp->from > 0 && traffic.ramp->to > 0 &&
                    traffic.ramp->from < 1e6 && traffic.ramp->to < 1e6;
  if (traffic.ramp && !ramp) {
    draft.Warn(Format("{}: a ramp from {} to {} requests/s is not modelled", from,
                      ShortNumber(traffic.ramp->from), ShortNumber(traffic.ramp->to)));
  }
  if (std::isfinite(traffic.rate_per_s) || ramp) {
    const bool even = traffic.burstiness >= kEven, poisson = traffic.burstiness == 1;
    arrivals["process"] = even ? "constant" : poisson ? "poisson" : "gamma";
    arrivals["rate_per_s"] = ramp ? Json(1) : NumberJson(traffic.rate_per_s);
    if (ramp) {
      arrivals["profile"] = "piecewise";
      arrivals["rate_factors"] =
          FactorsOf(*traffic.ramp, requests != nullptr ? requests->get<double>() : 1000);
    }
    // Coefficient of variation of a gamma distribution: 1 / sqrt(shape).
    if (!even && !poisson) arrivals["cv"] = NumberJson(1 / std::sqrt(traffic.burstiness));
    if (traffic.concurrency && *traffic.concurrency <= kMaxRequests) {  // more never binds
      arrivals["max_concurrency"] = *traffic.concurrency;
      draft.Measure("concurrency_limit", static_cast<double>(*traffic.concurrency), from);
    }
  } else if (traffic.concurrency) {
    arrivals["process"] = "closed_loop";
    arrivals["concurrency"] = *traffic.concurrency;
  } else {
    arrivals["process"] = "static";
  }
  draft.Take("workload.arrivals", std::move(arrivals), from);
}

// vllm/benchmarks/serve.py: 'if "temperature" not in sampling_params:
// sampling_params["temperature"] = 0.0  # Default to greedy decoding', in versions of late 2025.
void TakeSampling(const BenchSampling& sampling, std::string_view from, Draft& draft) {
  const double temperature = sampling.temperature.value_or(0);
  if (temperature == 0) {
    draft.TakeSampling(false, sampling.temperature ? "--temperature 0"
                                                   : Format("{}: temperature 0 unless told", from));
  } else if (sampling.top_p.value_or(1) < 1 || sampling.top_k.value_or(0) > 0) {
    draft.TakeSampling(true, "--top-p and --top-k");
  }
}

Json FixedLength(double tokens) { return {{"distribution", "fixed"}, {"value", Tokens(tokens)}}; }

Json NormalLength(double mean, double spread) {
  if (spread <= 0) return FixedLength(mean);
  return {{"distribution", "normal"}, {"mean", Tokens(mean)}, {"stddev", NumberJson(spread)}};
}

Json LengthAround(double mean, double share) {
  if (share <= 0) return FixedLength(mean);
  return {{"distribution", "uniform"},
          {"min", Tokens(std::floor(mean * (1 - share)))},
          {"max", Tokens(std::ceil(mean * (1 + share)))}};
}

Json LengthsOf(std::vector<double> tokens) {
  std::sort(tokens.begin(), tokens.end());
  if (Tokens(tokens.front()) == Tokens(tokens.back())) return FixedLength(tokens.front());
  std::vector<std::pair<double, double>> quantiles;
  for (std::size_t i = 0; i <= kQuantiles; ++i) {
    const double probability = static_cast<double>(i) / double{kQuantiles};
    quantiles.emplace_back(probability, tokens[i * (tokens.size() - 1) / kQuantiles]);
  }
  return Empirical(quantiles);
}

Json LengthsOfHistogram(const std::vector<std::pair<double, double>>& buckets) {
  const double all = buckets.empty() ? 0 : buckets.back().second;
  if (all <= 0) return nullptr;
  std::vector<std::pair<double, double>> quantiles;
  double below = 0, counted = 0;
  for (const auto& [bound, count] : buckets) {
    if (count > counted) {
      if (quantiles.empty()) quantiles.emplace_back(0, std::max(below, 1.0));
      // Above the last bound nothing is known but that it is more.
      const double most = std::isfinite(bound) ? bound : std::max(below, 1.0);
      if (most > 0) quantiles.emplace_back(std::min(count / all, 1.0), std::max(most, 1.0));
    }
    counted = std::max(counted, count);
    if (std::isfinite(bound)) below = bound;
    if (counted >= all) break;
  }
  if (quantiles.size() < 2) return nullptr;
  quantiles.back().first = 1;
  return Empirical(quantiles);
}

void TakeLengths(Json prompt, Json output, std::string_view from, Draft& draft) {
  draft.Take("workload.prompt_tokens", std::move(prompt), from);
  draft.Take("workload.output_tokens", std::move(output), from);
}

// 1,000 prompts of ShareGPT_V3 by a tokenizer of Llama 3 are 215,196 tokens and 198,343 with the
// answers ("Total input tokens", "Total generated tokens" of vllm bench serve); prompts are from 4
// to 1,024 tokens long (vllm/benchmarks/datasets, is_valid_sequence). Lognormals of these means,
// with sigma 1.2 and 1.
void TakeShareGpt(double output, std::string_view from, Draft& draft) {
  const auto lengths = [](int median, int p99) -> Json {
    return {
        {"distribution", "lognormal"}, {"median", median}, {"p99", p99}, {"min", 4}, {"max", 1024}};
  };
  TakeLengths(lengths(120, 1958), output >= 1 ? FixedLength(output) : lengths(126, 1293), from,
              draft);
  draft.Warn(
      "ShareGPT: prompts of 215 and answers of 198 tokens in the mean are published; how they "
      "spread "
      "is assumed (servecast fit-trace takes lengths)");
}

}  // namespace servecast
