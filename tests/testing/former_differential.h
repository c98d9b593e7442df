// The schedulers after Vidur against their reference, on random cases.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "serving/former_replica.h"
#include "testing/former_reference.h"
#include "testing/random_cases.h"

namespace servecast::testing {

struct FormerCase {
  RandomCase base;  // requests, latency, stages, horizon; the engine with its limits
  std::string policy;
};

// One of the schedulers in turn. Nothing where the case's delays depend on load.
std::optional<FormerCase> MakeFormerCase(std::uint64_t seed);

struct FormerRunOptions {
  bool observe = true;
  std::int64_t slice = INT64_MAX;
  bool as_vidur = false;
  // Of a cluster.
  std::int64_t replicas = 0;  // 0: one alone
  std::string router = "round_robin";
  const RequestTable* requests = nullptr;  // instead of the case's
};
FormerReferenceOutput RunFormerEngine(const FormerCase& former_case,
                                      const FormerRunOptions& options);

FormerReferenceOutput RunFormerReference(const FormerCase& former_case);

// The first thing that differs; nothing when all is equal, with and without an observer and slices.
std::optional<std::string> FirstFormerMismatch(const FormerCase& former_case,
                                               const FormerReferenceOutput& reference);

}  // namespace servecast::testing
