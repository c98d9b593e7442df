// A GPU and its links as a scenario has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace servecast {

// One GPU and its links. Peaks are dense vendor figures; efficiencies are measured shares of them.
// How the GPUs of a node reach each other: over NVLink; over PCIe, reading each other's memory; or
// over PCIe by way of the host's memory. Auto: NVLink where no PCIe is so fast, else a guess, the
// host.
enum class Interconnect { kAuto, kNvlink, kPcieP2p, kPcieHost };

struct HardwareSpec {
  std::string name;
  double memory_gib = 0;  // as CUDA reports it
  double memory_bandwidth_gb_s = 0;
  double peak_fp32_tflops = 0;  // of plain 32-bit units, not of tensor cores; 0: unknown
  double peak_bf16_tflops = 0;
  double peak_fp8_tflops = 0;    // 0: 8-bit weights are multiplied in 16 bits
  double peak_fp4_tflops = 0;    // 0: likewise
  double peak_int8_tops = 0;     // 0: unknown, so int8 is multiplied in 16 bits
  double interconnect_gb_s = 0;  // per direction, to the other GPUs of a tensor-parallel group
  double interconnect_latency_us = 0;
  Interconnect interconnect = Interconnect::kAuto;
  double layer_latency_us = 0;  // fixed time of a layer: the latencies of its kernels
  // Query rows that a decode's attention costs in a step with prefill, as kernels fill tiles.
  double mixed_attention_rows = 1;
  double compute_efficiency = 0;       // best share of the peak that large GEMMs reach
  double attention_efficiency = 0.5;   // the same of attention over long prompts
  double bandwidth_efficiency = 0;     // share of the bandwidth that reads of weights reach
  double kv_bandwidth_efficiency = 0;  // the same of the KV cache; 0: as for weights
  // The same of decodes' latents, by kernels that share the GPU alike among the sequences of a
  // step, so that it waits for the longest context; 0: as the KV cache, and a step reads their sum.
  double latent_split_efficiency = 0;
  // Power of one GPU, W (metrics/power.h); 0: not known, so no power is shown. Idle, and the most
  // that it may draw; what a running step adds, and what its arithmetic and its reads add at the
  // peaks of the data sheet.
  double idle_w = 0, power_cap_w = 0, busy_w = 0, compute_w = 0, memory_w = 0;
  // Shares by which mean power and the energy of a token were off in nine of ten set-ups that the
  // law was not fitted to; 0: not known.
  double power_error = 0, energy_error = 0;
  // Set lower than power_cap_w, W; 0: it is not. Slows arithmetic (cost/power_limit.h).
  double power_limit_w = 0;
  // What a GPU's share of the host draws, W; what a site draws for each watt of its machines; and
  // what a kWh costs ($) and emits (g of CO2 equivalent), 0: not stated.
  double host_w = 0, pue = 1, price_per_kwh = 0, co2_g_per_kwh = 0;
  std::optional<double> price_per_gpu_hour;  // $
  std::string price_basis;  // terms and date of that price; a price over a preset's has its own
  // Of its node; 0: unknown, so a group is priced as if in one node. Links between nodes are per
  // GPU and direction.
  std::int64_t gpus_per_node = 0;
  double inter_node_gb_s = 0;
  double inter_node_latency_us = 0;
  bool nodes_assumed = false;  // these three are not a vendor's figures
  // Found by measuring, and kept when a scenario changes figures: the model of step times that
  // "auto" means, and two presets of GPUs: whose measured operators are used, and whose measured
  // runs tell how far off the model is.
  std::string auto_backend = "analytic";
  std::string operators = "nearest";
  std::string compared_as = "none";
  // Written by the parser: the figures that are not those of `compared_as`, by name.
  std::vector<std::string> changed = {};

  friend bool operator==(const HardwareSpec&, const HardwareSpec&) = default;
};

}  // namespace servecast
