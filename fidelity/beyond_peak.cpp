// See beyond_peak.h.
#include "beyond_peak.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "cost/model_cost.h"

namespace servecast {
namespace {

// A row that names no test is one of its own.
std::string TestOf(const Measured& m) {
  const MeasuredSetup& s = m.setup;
  const std::string test = m.test.empty() ? fmt::format("row {}", m.file_row) : m.test;
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", m.set, test, s.model, s.gpu, s.engine,
                     s.engine_version);
}

}  // namespace

double LeastShare(const Measured& row, const Scenario& setup) {
  const auto tpot = row.values.find("tpot");
  if (row.load.form != MeasuredForm::kClosedLoop || row.stated_ttft <= 0 ||
      tpot == row.values.end() || setup.cluster.pools.size() > 1) {
    return 0;
  }
  const Result<ModelCost> cost = ComputeModelCost(setup);
  if (!cost.ok()) return 0;
  const ModelCost& c = cost.value();
  const HardwareSpec& h = setup.hardware;
  const auto seconds = [&h](double flops, MatrixType type) {
    return flops > 0 ? flops / (PeakTflops(h, type) * 1e12) : 0;
  };
  const double prompt = row.load.input.mean, output = row.load.output.mean;
  double least = (prompt + output) * (seconds(c.dense_flops_per_token, c.dense_type) +
                                      seconds(c.expert_flops_per_token, c.expert_type));
  if (c.mixers.empty() && c.window_share == 0) {
    const double pairs = prompt * prompt / 2, read = output * (prompt + output / 2);
    least += seconds(pairs * c.attention_flops_per_pair, PlainType(setup.model)) +
             read * c.kv_bytes_per_token / (h.memory_bandwidth_gb_s * 1e9);
  }
  const double clients =
      static_cast<double>(row.load.batch) / static_cast<double>(setup.cluster.pool().replicas);
  return clients * least / ((row.stated_ttft + (output - 1) * tpot->second) / 1e3);
}

void LeaveOutBeyondPeak(std::vector<ScoredRow>& rows) {
  std::map<std::string, double> most;
  for (const ScoredRow& row : rows) {
    if (!row.skipped.empty()) continue;
    double& share = most[TestOf(*row.measured)];
    share = std::max(share, LeastShare(*row.measured, *row.setup));
  }
  for (ScoredRow& row : rows) {
    if (!row.skipped.empty()) continue;
    const auto test = most.find(TestOf(*row.measured));
    if (test == most.end() || test->second <= 1) continue;
    row.skipped = fmt::format(
        "prompts were found in a cache that no column states: a row of this test would take {:.2f} "
        "of its time at the GPU's peaks, allowed 1",
        test->second);
    row.predicted.clear();
  }
}

}  // namespace servecast
