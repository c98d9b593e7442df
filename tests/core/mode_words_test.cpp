// A message names a mode (BLIS, Vidur, SGLang) only where that mode is the reason.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/documents.h"

namespace servecast::testing {
namespace {

struct Mode {
  std::vector<std::string> settings;
  std::string of;  // whose name its messages may have
};

TEST(ModeWords, AMessage_NamesNoOtherMode) {
  const std::vector<Mode> modes = {
      {{}, ""},
      {{"engine.compat=blis"}, "BLIS"},
      {{"engine.compat=blis-2026-02"}, "BLIS"},
      {{"engine.compat=vidur", "scheduler.policy=sarathi"}, "Vidur"},
      {{"engine.compat=vidur", "scheduler.policy=vllm_v0"}, "Vidur"},
      {{"scheduler.policy=sarathi"}, "sarathi"},
      {{"scheduler.policy=orca"}, "orca"},
      {{"engine.preset=sglang"}, "SGLang"},
  };
  const std::string settings[] = {
      "engine.kv_offload.cpu_gib=10",
      "engine.kv_offload.disk_gib=10",
      "engine.overlap_scheduling=true",
      "engine.async_scheduling=true",
      "engine.enable_prefix_caching=false",
      "engine.long_prefill_token_threshold=512",
      "engine.max_num_queued_reqs=3",
      "engine.speculative.method=ngram",
      "engine.max_loras=2",
      "engine.kv_cache_dtype=fp8",
      "engine.cuda_graphs=eager",
      "model.torch_dtype=float32",
      "model.quantization=fp8",
      "latency.backend=physics",
      "latency.backend=roofline",
      "cluster.pools=[{\"replicas\": 2}]",
      "cluster.pools=[{\"pipeline_parallel\": 2}]",
      "cluster.pools=[{\"role\": \"prefill\"}, {\"role\": \"decode\"}]",
      "cluster.router.policy=weighted",
      "scheduler.order=sjf",
      "scheduler.preemption=priority",
      "workload.arrivals={\"process\": \"closed_loop\", \"concurrency\": 3}",
      "workload.classes=[{\"timeout_s\": 3}]",
  };
  std::mt19937 random(7);
  std::size_t messages = 0;
  for (int i = 0; i < 1500; ++i) {
    const Mode& mode = modes[random() % modes.size()];
    std::vector<std::string> overrides = mode.settings;
    for (std::size_t j = 1 + random() % 2; j > 0; --j)
      overrides.push_back(settings[random() % std::size(settings)]);
    const Result<std::string> document = ApplyOverrides(SmallDocument(), overrides);
    if (!document.ok()) continue;
    for (const Issue& issue : IssuesOf(document.value())) {
      ++messages;
      for (const std::string name : {"BLIS", "Vidur", "SGLang"}) {
        EXPECT_TRUE(name == mode.of || issue.message.find(name) == std::string::npos)
            << mode.of << ": " << overrides.back() << ": " << issue.path << ": " << issue.message;
      }
    }
  }
  EXPECT_GT(messages, 300u);
}

}  // namespace
}  // namespace servecast::testing
