// Measured latencies of operators by GPU, the files of presets/operators. What the codes mean, and
// how a table becomes times: operator_grid.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/scenario.h"

namespace servecast {

struct OperatorTable {
  std::string op, type;
  double floor_us = 0;                            // what the operator takes beside its work
  std::array<std::int64_t, 3> shape = {};         // experts: hidden size, experts, active;
                                                  // all_reduce: GPUs
  std::array<std::vector<std::int64_t>, 3> axes;  // ascending
  std::vector<std::int8_t> codes;                 // the last axis is the fastest
};

// Of one GPU, with the data-sheet figures that its codes are relative to.
struct OperatorSet {
  std::string id, name, source;
  double peak_bf16_tflops = 0, peak_fp8_tflops = 0, peak_fp4_tflops = 0, memory_bandwidth_gb_s = 0,
         interconnect_gb_s = 0;
  double prefill_kv_token_ns = 0;    // of prefill attention: a token of a KV head
  double prefill_tile = 1;           // query rows that one of its blocks fills
  double small_kernel_value_ps = 0;  // least of norms, rotary embedding, activation: a value they
                                     // touch
  std::vector<OperatorTable> tables;
};

// A GPU that has a set, by preset id.
struct MeasuredGpu {
  std::string_view id;
  double peak_bf16_tflops, memory_bandwidth_gb_s;
};
// Ascending. Written by the build (cmake/embed_presets.cmake): which GPU is the nearest is known
// without its file.
std::span<const MeasuredGpu> MeasuredGpus();

// The file's set; nullptr: it is not here (io/presets.h). In io/operator_file.cpp, as only io reads
// JSON.
const OperatorSet* OperatorsOf(std::string_view id);

// The set that `operators` of the hardware names; without one that of the GPU whose peak and
// bandwidth are nearest, by their ratios. `exact`: both are within 1 %.
struct NearestOperators {
  std::string_view id;
  bool exact = false;
  const OperatorSet* set = nullptr;  // nullptr: its file is not here
};
NearestOperators FindOperators(const HardwareSpec& hardware);

// nullptr when there is none.
const OperatorTable* FindTable(const OperatorSet& set, std::string_view op, std::string_view type);

}  // namespace servecast
