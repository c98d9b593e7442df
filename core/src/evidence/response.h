// How a latency follows the error of what it is computed from: runs at a few factors of the times
// of steps and of prompts, and from them the distribution of each latency and of all together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "evidence/error_field.h"

namespace servecast {

// What the times of a run are multiplied by: steps as far as they decode; what prompts add to them,
// with the host's times of a request; and what encoding images adds.
struct ErrorFactors {
  double step = 1, prompt = 1, encode = 1;

  friend bool operator==(const ErrorFactors&, const ErrorFactors&) = default;
};

// No server with images was compared: the encoder's times are taken to be within half as much again
// with 90 %, in logarithms.
inline constexpr double kEncodeHalf = 0.41;

// The factors to run at. The first is the forecast as it stands, the others are kStepPoints
// quantiles of the step's factor and two of the prompt's, each with the other at its centre. The
// encoder's follows the prompt's by its own width.
inline constexpr std::size_t kStepPoints = 5, kNodes = 1 + kStepPoints + 2;
std::vector<ErrorFactors> NodesOf(const StepError& error, const FieldScale& scale);

// A latency at each of the nodes, any unit; 0: it has no value there. What it is off by beside
// these factors: the 5 and 95 % points in logarithms, and sampling.
struct Response {
  std::vector<double> at;  // kNodes of them, > 0 or infinite where the load is not served
  double forecast = 0;  // the figure itself, which the nodes' changes apply to; 0: the first node
  double rest_low = 0, rest_high = 0;  // <= 0, >= 0
  double sampling = 0;                 // standard deviation, in logarithms
  double limit = 0;                    // of a target
};

// Whether a figure is a percentile far out, whose repeatability is less.
enum class FigureKind { kMean, kTail };
// Adds one server's repeatability, what a p99 of first tokens is off by beyond its mean, and what
// first tokens are off by where few are known of such servers.
void AddRest(FigureKind kind, bool first_token, bool experts, const StepError& error,
             const FieldScale& scale, Response& response);

struct FigureBand {
  double low = 0, high = 0;  // 90 %; high may be infinite
};
FigureBand BandOf(const Response& response);

// That all of them are within their limits.
double ProbabilityMet(std::span<const Response> responses);

}  // namespace servecast
