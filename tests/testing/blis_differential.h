// Engine against reference by BLIS's rules, on one random case: everything that both know, exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "testing/blis_reference.h"
#include "testing/random_cases.h"

namespace servecast::testing {

// A random case (random_cases.h) in whole microseconds and with what BLIS's rules look at: odd
// seeds are of February 2026, even ones of today. Small caches, prompts of full blocks that are all
// cached, requests that come at one instant, caps, time-outs, victims by priority.
RandomCase MakeBlisCase(std::uint64_t seed);

BlisReferenceOutput RunBlisReference(const RandomCase& random_case);

// The first thing that differs, as a sentence; nullopt when all agrees. Requires: not endless.
std::optional<std::string> FirstBlisMismatch(const RandomCase& random_case,
                                             const BlisReferenceOutput& reference);

// What a set of cases contained.
struct BlisCasesCoverage {
  std::int64_t cases = 0, endless = 0, february = 0, today = 0;
  std::int64_t steps = 0, preemptions = 0, length_capped = 0, unfinished = 0;
  std::int64_t resumed_completions = 0;
  BlisReferenceKv::Counts kv;
  BlisReferenceKv::Counts host_february, host_today;  // what concerns the host
  BlisCoverage rules;

  void Add(const RandomCase& random_case, const BlisReferenceOutput& output);
};
// Runs cases seed, seed + 1, ... and returns the report on the first that differs, with the
// smallest part of its requests that still does. Where BLIS never ends the engine must.
std::optional<std::string> RunBlisCases(std::uint64_t seed, std::int64_t cases,
                                        BlisCasesCoverage* coverage);

}  // namespace servecast::testing
