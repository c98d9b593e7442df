// vLLM's rules for layers in groups, encoders and KV from elsewhere, the naive way: block by block,
// step by step, from the README of the hybrid golden cases and nothing of the engine. It replays
// recorded runs and names the first row that differs. Parts that no scenario reaches (the encoder
// cache, loads of KV, the offload manager) are only here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace servecast::testing {

struct ReplayComparison {
  std::string name, difference;  // "": all columns of all rows are equal
};

// The cases of a section of DIR/manifest.json: schedules, encoder or remote. Nothing: the files
// cannot be read.
std::optional<std::vector<ReplayComparison>> ReplayHybrid(const std::string& folder,
                                                          const std::string& section);

// The operation sequences of DIR/offload.
std::optional<std::vector<ReplayComparison>> ReplayOffload(const std::string& folder);

}  // namespace servecast::testing
