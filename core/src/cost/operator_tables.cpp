// See operator_tables.h.
#include "cost/operator_tables.h"

#include <cmath>

#include "base/math.h"

namespace servecast {
namespace {

double Distance(double a, double b) { return std::fabs(Log(a / b)); }

}  // namespace

NearestOperators FindOperators(const HardwareSpec& hardware) {
  NearestOperators nearest;
  double least = 0;
  for (const MeasuredGpu& gpu : MeasuredGpus()) {
    const double peak = Distance(hardware.peak_bf16_tflops, gpu.peak_bf16_tflops);
    const double bandwidth = Distance(hardware.memory_bandwidth_gb_s, gpu.memory_bandwidth_gb_s);
    const bool named = gpu.id == hardware.operators;
    if (!named && !nearest.id.empty() && peak + bandwidth >= least) continue;
    least = peak + bandwidth;
    nearest = {gpu.id, peak < 0.01 && bandwidth < 0.01};
    if (named) break;
  }
  nearest.set = OperatorsOf(nearest.id);
  return nearest;
}

const OperatorTable* FindTable(const OperatorSet& set, std::string_view op, std::string_view type) {
  for (const OperatorTable& table : set.tables) {
    if (table.op == op && table.type == type) return &table;
  }
  return nullptr;
}

}  // namespace servecast
