// Recorded runs of Vidur with a closed form for its step times, and the engine on the same
// requests. The forms are those of vidur-golden's README: manifest.json with Vidur's options,
// trace_*.csv, TAG.requests.csv and TAG.batches.csv, memory_planner.csv, zipf_map.csv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "servecast/result.h"
#include "serving/replica/scheduler_entry.h"

namespace servecast::testing {

struct VidurBatch {
  std::int64_t replica = 0;
  double time = 0;                                             // s
  std::vector<std::pair<std::int64_t, std::int64_t>> members;  // (request, tokens)
  std::int64_t used_blocks = 0;                                // after the schedule that formed it
};

struct VidurRequest {
  std::int64_t replica = 0, prompt = 0, output = 0, restarts = 0;
  double arrival = 0, scheduled = 0, prefill_end = 0, completed = 0, preempted = 0, execution = 0;
};

struct VidurJob {
  double arrival = 0;
  std::int64_t prompt = 0, output = 0;
};

struct VidurCase {
  std::string name;
  std::int64_t replicas = 1;
  std::string router;  // ours
  const SchedulerEntry* scheduler = nullptr;
  SchedulerLimits limits;
  std::vector<VidurJob> jobs;
  std::int64_t restarts = 0, blocks = 0;
  std::vector<VidurBatch> batches;
  std::vector<VidurRequest> requests;
};

struct VidurCases {
  std::vector<VidurCase> cases;
  Issues issues;  // files and options that cannot be read
};

VidurCases LoadVidurCases(const std::string& folder);

// What the engine does first that Vidur did not; nothing when all is equal: of each replica's
// batches members, tokens and blocks exactly, restarts, and times within 1 us.
std::optional<std::string> FirstDifference(const VidurCase& golden);

// The same for a table of memory plans and one of zipf draws: "" when all rows are equal. `rows` is
// how many were compared.
std::string PlannerDifference(const std::string& csv, std::size_t* rows);
std::string ZipfDifference(const std::string& csv, std::size_t* rows);

}  // namespace servecast::testing
