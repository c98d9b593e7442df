// vLLM's rules for layers in groups, encoders and KV from elsewhere, the naive way: block by block,
// step by step, from the README of the hybrid golden cases and nothing of the engine. It replays
// recorded runs and names the first row that differs, and makes the rows of random cases. Parts
// that no scenario reaches (loads of KV, the offload manager) are only here.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "workload/request_table.h"

namespace servecast::testing {

struct ReplayComparison {
  std::string name, difference;  // "": all columns of all rows are equal
};

// The cases of a section of DIR/manifest.json: schedules, encoder or remote. Nothing: the files
// cannot be read.
std::optional<std::vector<ReplayComparison>> ReplayHybrid(const std::string& folder,
                                                          const std::string& section);

// A run of which nothing was recorded. `settings`: as a case of the manifest has them, with groups;
// beside these image_ms, the time that an encoded image takes, and frees_states_across_gaps.
struct ReplayInput {
  const nlohmann::json& settings;
  const RequestTable& requests;  // but for its content
  // By request, as in requests_<case>.csv; -1: none.
  std::vector<std::int64_t> prefix_groups, prefix_tokens, parents;
};
struct ReplayRun {
  std::vector<std::map<std::string, std::string>> rows;  // as <case>.steps.csv has them
  bool hangs = false;
  std::int64_t preemptions = 0, encoded = 0, image_hits = 0, images_evicted = 0;
  std::int64_t cut_before_images = 0, waits_for_encoder = 0, refused_by_encoder = 0;
  std::int64_t unencoded_victims = 0, hit_tokens = 0, evicted = 0;
};
ReplayRun ReplayHybrid(const ReplayInput& input);

// The operation sequences of DIR/offload.
std::optional<std::vector<ReplayComparison>> ReplayOffload(const std::string& folder);

}  // namespace servecast::testing
