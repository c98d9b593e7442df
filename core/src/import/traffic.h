// Traffic as benchmarks and servers tell it, as the workload of a scenario.
#pragma once

#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "import/draft.h"

namespace servecast {

// From one rate to another while the requests are sent, by their number.
struct Ramp {
  double from = 0, to = 0;
  bool exponential = false;  // else linear
};

// As vLLM's benchmark has it: gaps of a gamma distribution with this shape, all at once where the
// rate is infinite, and at most so many requests at a time.
struct BenchTraffic {
  double rate_per_s = std::numeric_limits<double>::infinity();
  double burstiness = 1;
  std::optional<std::int64_t> concurrency;
  std::optional<Ramp> ramp;
};
// What the requests of vLLM's benchmark ask for; it sends temperature 0 where none is given, and
// greedy requests are sampled by neither top-p nor top-k, whatever the model's files say.
struct BenchSampling {
  std::optional<double> temperature, top_p, top_k;
};
void TakeSampling(const BenchSampling& sampling, std::string_view from, Draft& draft);

// What is said of workload.requests before counts for a ramp.
void TakeArrivals(const BenchTraffic& traffic, std::string_view from, Draft& draft);

// "inf" is infinite; nullopt for what is no rate.
std::optional<double> RateIn(std::string_view text);

nlohmann::json FixedLength(double tokens);
// A normal distribution, at least one token; fixed without a spread.
nlohmann::json NormalLength(double mean, double spread);
// From mean * (1 - share) to mean * (1 + share), as vLLM's dataset "random" has it.
nlohmann::json LengthAround(double mean, double share);
// One length that all have, or the quantiles of these. Requires: not empty.
nlohmann::json LengthsOf(std::vector<double> tokens);
// Of a histogram: pairs of an upper bound and how many are at most that, ascending. null: empty.
nlohmann::json LengthsOfHistogram(const std::vector<std::pair<double, double>>& buckets);

// Lengths of ShareGPT as vLLM's and SGLang's benchmarks sample it, with outputs of `output` tokens
// where that is above 0. The means are published, and a warning says that the spread is assumed.
void TakeShareGpt(double output, std::string_view from, Draft& draft);

// Both lengths: with these the workload is no longer that of the base.
void TakeLengths(nlohmann::json prompt, nlohmann::json output, std::string_view from, Draft& draft);

}  // namespace servecast
