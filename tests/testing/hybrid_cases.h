// Random cases of models whose layers keep KV in groups, most with images: the engine's run against
// the naive replay of vLLM's rules (vllm_hybrid_reference.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace servecast::testing {

// What cases had in them, to see that they are not all of one kind.
struct HybridCoverage {
  std::int64_t cases = 0, steps = 0, preemptions = 0, evicted = 0, hit_tokens = 0;
  std::int64_t encoded_images = 0, image_hits = 0, images_evicted = 0, cut_before_images = 0;
  std::int64_t waits_for_encoder = 0, refused_by_encoder = 0, unencoded_victims = 0;
  std::int64_t windows = 0, chunks = 0, states = 0, hangs = 0;
};

// The first difference of the case, with all that it takes to see it.
std::optional<std::string> HybridDifference(std::uint64_t seed, HybridCoverage* seen = nullptr);

}  // namespace servecast::testing
