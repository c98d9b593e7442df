// See traffic.h.
#include "import/traffic.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

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

void TakeArrivals(const BenchTraffic& traffic, std::string_view from, Draft& draft) {
  Json arrivals = Json::object();
  if (std::isfinite(traffic.rate_per_s)) {
    const bool even = traffic.burstiness >= kEven, poisson = traffic.burstiness == 1;
    arrivals["process"] = even ? "constant" : poisson ? "poisson" : "gamma";
    arrivals["rate_per_s"] = NumberJson(traffic.rate_per_s);
    // Coefficient of variation of a gamma distribution: 1 / sqrt(shape).
    if (!even && !poisson) arrivals["cv"] = NumberJson(1 / std::sqrt(traffic.burstiness));
    if (traffic.concurrency) {
      draft.Ignore(Format("at most {} requests at a time", *traffic.concurrency),
                   "a limit of clients beside a rate is not modelled");
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

}  // namespace servecast
