// The recordings of Dynamo's planner.
#include <array>
#include <utility>

#include "fmt/format.h"
#include "serving/scaling/dynamo_planner.h"
#include "testing/autoscaler_golden.h"
#include "testing/autoscaler_rows.h"
#include "testing/csv_table.h"

namespace servecast::testing {
namespace {

// The recorder's closed form in place of the real model.
class LinearPass final : public ForwardPass {
 public:
  explicit LinearPass(const Json& wall) {
    if (!wall.is_array() || wall.size() != by_.size()) {
      Bad("wall_ms is not a list of four numbers");
      return;
    }
    for (std::size_t i = 0; i < by_.size(); ++i) by_[i] = wall[i].get<double>();
  }
  double Milliseconds(std::int64_t prefill_tokens, std::int64_t decode_requests,
                      std::int64_t decode_kv) const override {
    return ((by_[0] + by_[1] * Real(prefill_tokens)) + by_[2] * Real(decode_requests)) +
           by_[3] * Real(decode_kv);
  }

 private:
  std::array<double, 4> by_ = {};
};

DynamoMode ModeOf(const std::string& name) {
  if (name == "agg") return DynamoMode::kAggregated;
  if (name == "disagg") return DynamoMode::kDisaggregated;
  if (name == "prefill") return DynamoMode::kPrefill;
  if (name == "decode") return DynamoMode::kDecode;
  Bad("unknown mode " + name);
  return DynamoMode::kAggregated;
}

DynamoTarget TargetOf(const std::string& name) {
  if (name == "throughput") return DynamoTarget::kThroughput;
  if (name == "latency") return DynamoTarget::kLatency;
  if (name == "load") return DynamoTarget::kLoad;
  if (name == "sla") return DynamoTarget::kSla;
  Bad("unknown target " + name);
  return DynamoTarget::kSla;
}

DynamoSpec SpecOf(const Json& json) {
  const Json& config = In(json, "config");
  const Json& can = In(json, "capabilities");
  DynamoSpec spec;
  spec.mode = ModeOf(TextIn(config, "mode"));
  spec.target = TargetOf(TextIn(config, "optimization_target"));
  spec.load = BoolIn(json, "effective_enable_load_scaling");
  spec.throughput = BoolIn(json, "effective_enable_throughput_scaling");
  spec.max_gpus = IntIn(config, "max_gpu_budget");
  spec.min_gpus = IntIn(config, "min_gpu_budget");
  spec.min_workers = IntIn(config, "min_endpoint");
  spec.prefill.min_workers = OptionalIntIn(config, "prefill_min_endpoint");
  spec.decode.min_workers = OptionalIntIn(config, "decode_min_endpoint");
  spec.prefill.gpus = OptionalIntIn(config, "prefill_engine_num_gpu").value_or(1);
  spec.decode.gpus = OptionalIntIn(config, "decode_engine_num_gpu").value_or(1);
  spec.ttft_ms = RealIn(config, "ttft_ms");
  spec.itl_ms = RealIn(config, "itl_ms");
  spec.sensitivity = RealIn(config, "load_scaling_down_sensitivity");
  spec.min_observations = IntIn(config, "load_min_observations");
  spec.speculative_tokens = IntIn(config, "speculative_nextn");
  spec.max_num_batched_tokens = OptionalIntIn(can, "max_num_batched_tokens").value_or(2048);
  spec.prefill.max_num_seqs = spec.decode.max_num_seqs =
      OptionalIntIn(can, "max_num_seqs").value_or(256);
  spec.max_kv_tokens = OptionalIntIn(can, "max_kv_tokens").value_or(1);
  spec.context_length = OptionalIntIn(can, "context_length").value_or(1);
  spec.prefill_up_tokens = RealIn(config, "prefill_scale_up_queue_tokens", 0.0);
  spec.prefill_down_tokens = RealIn(config, "prefill_scale_down_queue_tokens", 0.0);
  spec.decode_up_kv = RealIn(config, "decode_scale_up_kv_rate", 0.0);
  spec.decode_down_kv = RealIn(config, "decode_scale_down_kv_rate", 0.0);
  return spec;
}

std::vector<DynamoReport> ReportsOf(const std::string& text) {
  std::vector<DynamoReport> reports;
  for (const std::string& one : Items(text)) {
    const std::vector<std::string> parts = Split(one, ':');
    const std::size_t dot = parts[0].rfind('.');
    if (parts.size() != 9 || dot == std::string::npos) {
      Bad("unknown report " + one);
      continue;
    }
    reports.push_back({parts[0].substr(0, dot), IntOf(parts[0].substr(dot + 1)), IntOf(parts[1]),
                       IntOf(parts[2]), IntOf(parts[3]), IntOf(parts[4]), IntOf(parts[5]),
                       IntOf(parts[6]), IntOf(parts[7]), IntOf(parts[8])});
  }
  return reports;
}

std::optional<DynamoTraffic> TrafficOf(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::vector<std::string> parts = Split(text, ':');
  if (parts.size() != 6) {
    Bad("unknown traffic " + text);
    return std::nullopt;
  }
  DynamoTraffic traffic{RealOf(parts[0]), RealOf(parts[1]), RealOf(parts[2]),
                        RealOf(parts[3]), std::nullopt,     std::nullopt};
  if (!parts[4].empty()) traffic.hit_rate = RealOf(parts[4]);
  if (!parts[5].empty()) traffic.accept_length = RealOf(parts[5]);
  return traffic;
}

DynamoWorkers WorkersOf(const ScalerRows& rows, std::size_t row, const std::string& role,
                        const std::vector<DynamoReport>& reports) {
  DynamoWorkers workers;
  const auto count = [&](const std::string& column) {
    const std::string& text = rows.Text(row, column + role);
    return text.empty() ? 0 : IntOf(text);
  };
  workers.ready = count("ready_");
  workers.expected = count("expected_");
  workers.in_progress = count("in_progress_") != 0;
  workers.reports = reports;
  return workers;
}

std::string DecisionText(const DynamoDecision::Workers& workers) {
  if (!workers.any()) return "";
  const auto text = [](std::optional<std::int64_t> n) { return n ? fmt::format("{}", *n) : ""; };
  return text(workers.prefill) + "/" + text(workers.decode);
}

std::optional<std::string> CompareDynamoCase(const Json& json, const ScalerRows& rows) {
  const LinearPass pass(In(json, "wall_ms"));
  DynamoPlanner planner(SpecOf(json), pass);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::vector<DynamoReport> prefill = ReportsOf(rows.Text(row, "fpm_p"));
    const std::vector<DynamoReport> decode = ReportsOf(rows.Text(row, "fpm_d"));
    const DynamoDecision d = planner.Tick({.prefill = WorkersOf(rows, row, "p", prefill),
                                           .decode = WorkersOf(rows, row, "d", decode),
                                           .traffic = TrafficOf(rows.Text(row, "traffic"))});
    RowCheck check(rows, row);
    check.Text("thr_reason", NameOf(d.throughput));
    check.Text("thr_reason_p", NameOf(d.throughput_prefill));
    check.Text("thr_reason_d", NameOf(d.throughput_decode));
    check.Real("engine_rps_p", d.engine_rate_prefill);
    check.Real("engine_rps_d", d.engine_rate_decode);
    check.Optional("bound_p", d.bound_prefill);
    check.Optional("bound_d", d.bound_decode);
    check.Text("thr_decision", DecisionText(d.by_throughput));
    check.Text("load_reason", NameOf(d.load));
    check.Text("load_reason_p", NameOf(d.load_prefill));
    check.Text("load_reason_d", NameOf(d.load_decode));
    check.Real("est_ttft_ms", d.ttft_ms);
    check.Real("est_itl_ms", d.itl_ms);
    check.Text("load_decision", DecisionText(d.by_load));
    if (check.difference()) return check.difference();
  }
  return std::nullopt;
}

}  // namespace

ScalerCases CompareDynamo(const std::string& cases, const std::string& rows) {
  return CompareCases("dynamo", cases, rows, CompareDynamoCase);
}

}  // namespace servecast::testing
