// Running a golden case of BLIS and comparing what comes out, figure by figure.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "servecast/simulation.h"
#include "serving/hooks.h"
#include "testing/blis_golden.h"

namespace servecast::testing {
namespace {

constexpr double kTolerance = 1e-9;

// BLIS's figures from our report. Its rates are over its clock, ours over the time until the last
// client has its answer, so they are formed anew.
std::map<std::string, double> FiguresOf(const Report& r) {
  std::map<std::string, double> figures;
  const auto count = [&](const char* name, std::int64_t value) {
    figures[name] = static_cast<double>(value);
  };
  const auto distribution = [&](const std::string& name, const Distribution& d) {
    figures[name + "_mean_ms"] = d.mean;
    figures[name + "_p90_ms"] = d.p90;
    figures[name + "_p95_ms"] = d.p95;
    figures[name + "_p99_ms"] = d.p99;
  };
  count("completed_requests", r.completed);
  count("still_queued", r.queued);
  count("still_running", r.running);
  count("injected_requests", r.arrived);
  count("preemption_count", r.preemptions);
  count("dropped_unservable", r.dropped);
  count("length_capped_requests", r.length_capped);
  count("timed_out_requests", r.timed_out);
  count("total_output_tokens", r.output_tokens);
  // Counted as a request enters the queue: all but those dropped there.
  double prompts = 0, ttft_us = 0;
  const std::vector<double>& state = r.ColumnOf("state");
  for (std::size_t i = 0; i < state.size(); ++i) {
    const bool entered = state[i] != static_cast<double>(RequestState::kPending) &&
                         state[i] != static_cast<double>(RequestState::kDropped);
    if (entered) prompts += r.ColumnOf("prompt_tokens")[i];
    const double ttft_ms = r.ColumnOf("ttft_ms")[i];
    if (!std::isnan(ttft_ms)) ttft_us += std::nearbyint(ttft_ms * 1e3);
  }
  figures["total_input_tokens"] = prompts;
  figures["ttft_sum_us"] = ttft_us;
  figures["vllm_estimated_duration_s"] = r.simulated_s;
  figures["responses_per_sec"] = static_cast<double>(r.completed) / r.simulated_s;
  figures["tokens_per_sec"] = static_cast<double>(r.output_tokens) / r.simulated_s;
  distribution("e2e", r.e2e_ms);
  distribution("ttft", r.ttft_ms);
  distribution("itl", r.itl_ms);
  distribution("scheduling_delay", r.scheduling_delay_ms);
  return figures;
}

}  // namespace

std::optional<std::string> FirstDifference(const BlisCase& golden, const Report& report) {
  const std::map<std::string, double> found = FiguresOf(report);
  if (golden.expected.empty()) return "nothing is expected of it";
  for (const BlisFigure& expected : golden.expected) {
    const auto at = found.find(expected.name);
    if (at == found.end()) return fmt::format("{}: not a figure that is known", expected.name);
    const double allowed = expected.integer ? 0 : kTolerance * std::abs(expected.value);
    if (std::abs(at->second - expected.value) <= allowed) continue;
    return fmt::format("{}: expected {}, found {}", expected.name, expected.value, at->second);
  }
  return std::nullopt;
}

std::optional<std::string> FirstDifference(const BlisCase& golden) {
  SimulationHooks hooks;
  hooks.requests = golden.requests;
  Result<Simulation> simulation = Simulation::Create(golden.scenario, {}, std::move(hooks));
  if (!simulation.ok()) return "the engine refuses it: " + simulation.issues().front().message;
  while (!simulation.value().Advance(1'000'000)) {
  }
  std::optional<std::string> difference = FirstDifference(golden, simulation.value().Snapshot());
  if (difference && golden.cpu_blocks > 0) {
    *difference += fmt::format(" ({} blocks of host memory are not simulated)", golden.cpu_blocks);
  }
  return difference;
}

}  // namespace servecast::testing
