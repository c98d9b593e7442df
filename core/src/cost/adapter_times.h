// What LoRA adapters add to a step: the products of their small matrices, by the shares of the
// GPU's peaks that other products reach (decision 046). A floor: the real kernels are many and
// small.
#pragma once

#include <cstdint>

#include "cost/model_cost.h"
#include "cost/power_limit.h"
#include "servecast/scenario.h"

namespace servecast {

class AdapterTimes {
 public:
  AdapterTimes(const Scenario& s, const ModelCost& cost)
      : token_ns_(cost.adapter_flops_per_token *
                  (1 / (PeakTflops(s.hardware, PlainType(s.model)) * 1e3 *
                        s.hardware.compute_efficiency * ArithmeticUnderLimit(s.hardware)))),
        read_ns_(cost.adapter_bytes *
                 (1 / (s.hardware.memory_bandwidth_gb_s * s.hardware.bandwidth_efficiency))),
        kernels_ns_(s.engine.max_loras > 0 ? s.engine.lora_overhead_us * 1e3 : 0) {}

  // Of a step that has some, in nanoseconds: arithmetic of the tokens, reads of each different
  // adapter, of which the longer counts, and the kernels beside them.
  double ComputeNs(std::int64_t tokens) const { return static_cast<double>(tokens) * token_ns_; }
  double MemoryNs(std::int64_t adapters) const { return static_cast<double>(adapters) * read_ns_; }
  double KernelsNs() const { return kernels_ns_; }

 private:
  double token_ns_, read_ns_, kernels_ns_;
};

}  // namespace servecast
