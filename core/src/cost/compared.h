// How far step times were off where servers were measured: presets/compared.json, which `servecast
// fidelity --compared` writes and the build embeds. A scenario says by `compared_as` of its GPU and
// engine whose runs are like it, and the parser what was changed since.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// Of |predicted - measured| / measured; `bias` is the median of predicted / measured - 1.
struct ComparedError {
  float median = 0, p90 = 0, bias = 0;
};
inline constexpr std::array<const char*, 4> kComparedFigures = {"tpot", "e2e", "ttft", "ttft_p99"};

// Runs of one kind on one GPU and engine, all with the same features.
struct Compared {
  std::string_view model, gpu, engine;  // latency model; presets
  std::string_view what;                // "serving runs"
  std::string_view with;                // features, commas between
  std::int64_t runs, most_gpus;         // most of a tensor-parallel group
  unsigned measured;                    // bits of kComparedFigures
  std::array<ComparedError, kComparedFigures.size()> errors;
};

// In the order in which they count.
std::span<const Compared> ComparedRuns();

// Runs that constants were fitted to, and the median errors of those that were left out of the fit
// (presets/left_out.json); bits as of Compared::measured, none where no such fit was made.
struct LeftOut {
  std::string_view model, gpu, engine, what, with;
  unsigned measured;
  std::array<float, kComparedFigures.size()> median;
};
std::span<const LeftOut> LeftOutRuns();

// What a scenario with one pool has that may change how far step times are off: "FP8 weights",
// "experts".
std::vector<std::string_view> ComparedFeatures(const Scenario& scenario);
// The same, with commas between.
std::string FeaturesText(const Scenario& scenario);

// In whole sentences: the error of the first runs of `model` that are like the scenario, what was
// changed since, or what was never measured. A row speaks for scenarios of its own kind alone:
// precision of weights and KV, experts or none, attention, expert parallelism.
std::string KnownError(const Scenario& scenario, std::string_view model);

// The same as a class, with the error to show. Its sentence is the known error's, or, of runs that
// constants were fitted to, says how far those were off that were left out.
Evidence EvidenceOf(const Scenario& scenario, std::string_view model);

}  // namespace servecast
