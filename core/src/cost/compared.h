// What a latency model was compared with: runs of servers, docs/fidelity.md. A scenario is known by
// its figures, not by its names: they change no result.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "servecast/scenario.h"

namespace servecast {

enum class ComparedGpu : std::uint8_t { kH100, kH200, kB200, kA100Pcie, kA100Sxm, kRtxPro6000 };
enum class ComparedEngine : std::uint8_t { kVllm, kVllm011, kSglang, kTrtllm };

// What a scenario may have: types of weights in the order of Quantization, then others.
enum ComparedWith : std::uint16_t {
  kWith16Bits = 1,
  kWithFp8 = 2,
  kWithNvfp4 = 8,
  kWithMxfp4 = 16,
  kWithKv8 = 32,
  kWithExperts = 64,
  kWithWindows = 128,
};

struct Compared {
  ComparedGpu gpu;
  ComparedEngine engine;
  std::uint8_t most_gpus;  // of a tensor-parallel group
  std::uint16_t with;      // ComparedWith
  const char* error;
};

// Whether servers with such a GPU prefer measured operators: docs/fidelity.md, "Which model auto
// is".
bool OperatorsWereNearer(const Scenario& scenario);

// The error of the first of `runs` that is like the scenario; else what nobody has compared.
std::string KnownError(const Scenario& scenario, std::span<const Compared> runs);

}  // namespace servecast
