// Measured latencies of operators by GPU: presets/operators, embedded by the build. What the codes
// mean, and how a table becomes times: operator_grid.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "servecast/scenario.h"

namespace servecast {

struct OperatorTable {
  std::string_view op, type;
  double floor_us = 0;                // what the operator takes beside its work
  std::array<std::int64_t, 3> shape;  // experts: hidden size, experts, active; all_reduce: GPUs
  std::array<std::span<const std::int64_t>, 3> axes;  // ascending
  std::span<const std::int8_t> codes;                 // the last axis is the fastest
};

// Of one GPU, with the data-sheet figures that its codes are relative to.
struct OperatorSet {
  std::string_view id, name, source;
  double peak_bf16_tflops, peak_fp8_tflops, peak_fp4_tflops, memory_bandwidth_gb_s,
      interconnect_gb_s;
  double prefill_kv_token_ns;    // of prefill attention: a token of a KV head
  double prefill_tile;           // query rows that one of its blocks fills
  double small_kernel_value_ps;  // least of norms, rotary embedding, activation: a value they touch
  std::span<const OperatorTable> tables;
};

// By preset id, ascending.
std::span<const OperatorSet> OperatorSets();

// The set that `operators` of the hardware names; without one that of the GPU whose peak and
// bandwidth are nearest, by their ratios. `exact`: both are within 1 %.
struct NearestOperators {
  const OperatorSet* set = nullptr;
  bool exact = false;
};
NearestOperators FindOperators(const HardwareSpec& hardware);

// nullptr when there is none.
const OperatorTable* FindTable(const OperatorSet& set, std::string_view op, std::string_view type);

}  // namespace servecast
