// See runs.h.
#include "calibrate/runs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/math.h"
#include "base/random.h"

namespace servecast {
namespace {

std::int32_t Rounded(double tokens, const RunLengths& lengths) {
  return static_cast<std::int32_t>(
      std::nearbyint(std::clamp(tokens, std::max(1.0, lengths.least), lengths.most)));
}

// Ascending, of the stated mean but for rounding and clipping.
std::vector<std::int32_t> SpreadLengths(std::int64_t n, const RunLengths& lengths) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(n));
  double median = lengths.mean * Exp(-lengths.sigma * lengths.sigma / 2);
  for (int pass = 0; pass < 4; ++pass) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
      const double factor = lengths.sigma > 0 ? Exp(lengths.sigma * NormalQuantile(p)) : 1;
      tokens[static_cast<std::size_t>(i)] = Rounded(median * factor, lengths);
      sum += tokens[static_cast<std::size_t>(i)];
    }
    if (lengths.sigma > 0) median *= lengths.mean * static_cast<double>(n) / sum;
  }
  return tokens;
}

// The same in an order of the draw's own.
std::vector<std::int32_t> Shuffled(const std::vector<std::int32_t>& tokens, std::int64_t draw,
                                   Stream stream) {
  std::vector<std::size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [draw, stream](std::size_t i) {
    return RandomBits(draw, stream, static_cast<std::int64_t>(i));
  };
  std::sort(order.begin(), order.end(), [&key](std::size_t a, std::size_t b) {
    return key(a) != key(b) ? key(a) < key(b) : a < b;
  });
  std::vector<std::int32_t> shuffled;
  shuffled.reserve(tokens.size());
  for (const std::size_t i : order) shuffled.push_back(tokens[i]);
  return shuffled;
}

}  // namespace

std::vector<double> PoissonArrivals(std::int64_t requests, double duration_s, std::int64_t draw) {
  std::vector<double> arrivals;
  for (std::int64_t i = 0; i < requests; ++i) {
    arrivals.push_back(Uniform(draw, Stream::kArrival, i) * duration_s);
  }
  std::sort(arrivals.begin(), arrivals.end());
  const double first = arrivals.empty() ? 0 : arrivals[0];
  for (double& arrival : arrivals) arrival -= first;
  return arrivals;
}

std::vector<Trace> DrawRuns(std::int64_t requests, double rate_per_s, const RunLengths& prompt,
                            const RunLengths& output, std::int64_t draws) {
  const std::vector<std::int32_t> prompts = SpreadLengths(requests, prompt);
  const std::vector<std::int32_t> outputs = SpreadLengths(requests, output);
  std::vector<Trace> drawn;
  for (std::int64_t draw = 1; draw <= draws; ++draw) {
    const std::vector<std::int32_t> in = Shuffled(prompts, draw, Stream::kPromptTokens);
    const std::vector<std::int32_t> out = Shuffled(outputs, draw, Stream::kOutputTokens);
    const double duration_s = rate_per_s > 0 ? static_cast<double>(requests) / rate_per_s : 0;
    const std::vector<double> arrivals = PoissonArrivals(requests, duration_s, draw);
    Trace trace;
    for (std::size_t i = 0; i < in.size(); ++i) {
      trace.rows.push_back({std::llround(arrivals[i] * 1e9), in[i], out[i]});
    }
    drawn.push_back(std::move(trace));
  }
  return drawn;
}

}  // namespace servecast
