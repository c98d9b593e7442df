// KV memory of layers with and without windows against what the real vLLM planned: groups, bytes of
// a block, blocks, and the capacity that it logs. The data is outside the project:
// SERVECAST_VLLM_HYBRID, or ../shared/reference/vllm-hybrid-golden beside it.
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cost/kv_groups.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/data_files.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;

std::string CasesFile() {
  return DataFolder("SERVECAST_VLLM_HYBRID", "reference/vllm-hybrid-golden") +
         "/kv_cache_config/cases.json";
}

bool Flag(const Json& object, const char* name) { return object.value(name, false); }

bool OnlyAttention(const Json& specs) {
  for (const auto& [letter, spec] : specs.items()) {
    const std::string kind = spec["kind"];
    if (kind != "full" && kind != "sliding" && kind != "chunked_local") return false;
  }
  return true;
}

// Rules A1 and A2.
std::vector<KvLayer> LayersOf(const Json& c) {
  const Json &specs = c["layers"]["specs"], &settings = c["settings"];
  const std::int64_t tp = settings["tensor_parallel"];
  const std::int64_t value_bytes = settings["kv_cache_dtype"] == "fp8" ? 1 : 2;
  const std::int64_t block =
      settings["block_size"].is_null() ? 16 : settings["block_size"].get<int>();
  std::vector<KvLayer> layers;
  for (const char letter : c["layers"]["order"].get<std::string>()) {
    const Json& spec = specs[std::string(1, letter)];
    const std::string kind = spec["kind"];
    const std::int64_t heads = std::max<std::int64_t>(1, spec["kv"].get<std::int64_t>() / tp);
    const std::int64_t head = spec["head"];
    const std::int64_t values = heads * (head + spec.value("head_v", head));
    const bool slides = kind == "sliding", chunked = kind == "chunked_local";
    layers.push_back({.token_bytes = values * value_bytes,
                      .block_size = slides ? 16 : block,
                      .window = slides    ? spec["window"].get<std::int64_t>()
                                : chunked ? spec["chunk"].get<std::int64_t>()
                                          : 0,
                      .chunked = chunked});
  }
  return layers;
}

// Rule A5.
bool Hybrid(const Json& c) {
  const Json& settings = c["settings"];
  if (Flag(settings, "disable_hybrid_kv_cache_manager")) return false;
  return !c["layers"].contains("attention_chunk_size") ||
         Flag(settings, "allow_chunked_local_with_hybrid");
}

// Rule A8: the least of all stages.
std::int64_t BlocksOf(const Json& settings, const KvGroups& groups, std::int64_t layers) {
  if (settings.contains("num_gpu_blocks_override")) return settings["num_gpu_blocks_override"];
  const std::int64_t stages = settings["pipeline_parallel"];
  const Json& available = settings["available_memory_bytes"];
  std::int64_t least = INT64_MAX;
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t bytes = available.is_array()
                                   ? available[static_cast<std::size_t>(i)].get<std::int64_t>()
                                   : available.get<std::int64_t>();
    const std::int64_t block = groups.BlockBytes(layers * i / stages, layers * (i + 1) / stages);
    least = std::min(least, bytes / block);
  }
  return least;
}

TEST(VllmMemoryConformance, LayersWithWindows_ArePlannedAsByVllm) {
  const std::optional<std::string> text = ReadFile(CasesFile());
  if (!text) GTEST_SKIP() << "skipped: no data";
  int compared = 0, others = 0;
  for (const Json& c : Json::parse(*text)) {
    if (!OnlyAttention(c["layers"]["specs"])) {
      ++others;
      continue;
    }
    SCOPED_TRACE(c["id"].get<std::string>() + " " + c["model"].get<std::string>());
    const Json &settings = c["settings"], &expected = c["result"];
    const std::vector<KvLayer> layers = LayersOf(c);
    const auto count = static_cast<std::int64_t>(layers.size());
    const KvGroups groups = GroupLayers(layers, Hybrid(c));
    const std::int64_t stages = settings["pipeline_parallel"];
    const std::int64_t in_flight = settings["max_num_batched_tokens"].get<std::int64_t>() *
                                   (stages > 1                     ? stages
                                    : settings["async_scheduling"] ? 2
                                                                   : 1);
    const std::int64_t blocks = BlocksOf(settings, groups, count);
    const std::int64_t asked = settings["max_model_len"];
    ++compared;
    if (expected.contains("error")) {
      EXPECT_GT(groups.Planned(asked, in_flight), blocks);
      EXPECT_LE(groups.Planned(expected["estimated_max_model_len"], in_flight), blocks);
      EXPECT_GT(
          groups.Planned(expected["estimated_max_model_len"].get<std::int64_t>() + 1, in_flight),
          blocks);
      continue;
    }
    ASSERT_EQ(groups.groups.size(), expected["groups"].size());
    for (std::size_t i = 0; i < groups.groups.size(); ++i) {
      const Json& group = expected["groups"][i];
      std::string places;
      for (const std::int64_t layer : groups.groups[i].layers) {
        if (layer >= count / stages) continue;  // of the first stage
        places += (places.empty() ? "" : ",") + std::to_string(layer);
      }
      EXPECT_EQ(places, group["layer_indices"]) << i;
      EXPECT_EQ(groups.groups[i].block_size, group["block_size"]) << i;
    }
    EXPECT_EQ(blocks, expected["num_blocks"]);
    if (stages == 1) {
      EXPECT_EQ(groups.BlockBytes(0, count), expected["bytes_per_block"]);
    }
    const std::int64_t longest = expected["max_model_len"];
    const double concurrency =
        static_cast<double>(blocks) / static_cast<double>(groups.Planned(longest, in_flight));
    EXPECT_EQ(concurrency, std::stod(expected["max_concurrency"].get<std::string>()));
    EXPECT_EQ(static_cast<std::int64_t>(concurrency * static_cast<double>(longest)),
              expected["kv_cache_size_tokens"]);
    for (const auto& [tokens, needed] : expected["admission_blocks"].items()) {
      std::int64_t sum = 0;  // rule B4
      for (const KvGroup& group : groups.groups) {
        sum += std::min(CeilDiv(std::stoll(tokens), group.block_size),
                        group.Planned(longest, in_flight));
      }
      EXPECT_EQ(sum, needed) << tokens << " tokens";
    }
  }
  std::printf("%d cases compared, %d of other layers skipped\n", compared, others);
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace servecast::testing
