// The schedulers after Vidur against their reference, on random cases.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "serving/replica/scheduler_setup.h"
#include "testing/random_cases.h"
#include "testing/scheduled_reference.h"

namespace servecast::testing {

struct ScheduledCase {
  RandomCase base;  // requests, latency, stages, horizon; the engine with its limits
  std::string policy;
};

// One of the schedulers in turn. Nothing where the case's delays depend on load.
std::optional<ScheduledCase> MakeScheduledCase(std::uint64_t seed);

struct ScheduledRunOptions {
  bool observe = true;
  std::int64_t slice = INT64_MAX;
  bool as_vidur = false;
  // Of a cluster.
  std::int64_t replicas = 0;  // 0: one alone
  std::string router = "round_robin";
  const RequestTable* requests = nullptr;  // instead of the case's
};
ScheduledReferenceOutput RunScheduledEngine(const ScheduledCase& scheduled_case,
                                            const ScheduledRunOptions& options);

ScheduledReferenceOutput RunScheduledReference(const ScheduledCase& scheduled_case);

// The first thing that differs; nothing when all is equal, with and without an observer and slices.
std::optional<std::string> FirstScheduledMismatch(const ScheduledCase& scheduled_case,
                                                  const ScheduledReferenceOutput& reference);

}  // namespace servecast::testing
