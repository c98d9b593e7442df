// Engine against reference, on one random case: everything that both know, exactly.
#pragma once

#include <optional>
#include <string>

#include "testing/random_cases.h"
#include "testing/reference_sim.h"

namespace servecast::testing {

// What a set of cases contained.
struct CasesCoverage {
  std::int64_t cases = 0, steps = 0;
  std::int64_t preemptions = 0, dropped = 0, length_capped = 0, unfinished = 0;
  std::int64_t hit_blocks = 0, resumed_hit_tokens = 0, evicted_blocks = 0;
  std::int64_t offloaded_blocks = 0, tier_hit_blocks = 0, thrashed_blocks = 0;
  ReferenceCoverage rules;

  void Add(const ReferenceOutput& output);
};

// The first thing that differs, as a sentence; nullopt when all agrees: every step, every request,
// counters, gaps between tokens, integrals; and that slices and observers change nothing.
std::optional<std::string> FirstMismatch(const RandomCase& random_case,
                                         const ReferenceOutput& reference);

// Runs cases seed, seed + 1, ..., each of which `make` makes, and returns the report on the first
// that differs, with the smallest part of its requests that still does.
std::optional<std::string> RunCases(std::uint64_t seed, std::int64_t cases, CasesCoverage* coverage,
                                    RandomCase (*make)(std::uint64_t) = MakeRandomCase);

}  // namespace servecast::testing
