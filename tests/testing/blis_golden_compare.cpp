// BLIS's figures of a run, and comparing them with those of a golden case.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cost/model_cost.h"
#include "fmt/format.h"
#include "servecast/simulation.h"
#include "serving/hooks.h"
#include "testing/blis_golden.h"
#include "testing/blis_golden_parts.h"
#include "testing/blis_reference.h"

namespace servecast::testing {
namespace {

constexpr double kTolerance = 1e-9;

double Share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// A distribution by BLIS's names, in the way that BLIS forms it.
void AddDistribution(BlisFigures& figures, const std::string& name, std::vector<double> us) {
  std::sort(us.begin(), us.end());
  double sum = 0;
  for (const double value : us) sum += value;
  figures[name + "_mean_ms"] = us.empty() ? 0 : sum / static_cast<double>(us.size()) / 1000;
  for (const int percentile : {90, 95, 99}) {
    double value = 0;
    if (!us.empty()) {
      const double rank = percentile / 100.0 * static_cast<double>(us.size() - 1);
      const auto low = static_cast<std::size_t>(rank);
      const std::size_t high = std::min(low + 1, us.size() - 1);
      value = us[low] + (us[high] - us[low]) * (rank - static_cast<double>(low));
    }
    figures[name + "_p" + std::to_string(percentile) + "_ms"] = value / 1000;
  }
}

}  // namespace

// Its rates are over its clock, ours over the time until the last client has its answer, so they
// are formed anew.
BlisFigures BlisFiguresOf(const Report& r) {
  BlisFigures figures;
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
  double prompts = 0, ttft_sum_us = 0;
  // BLIS has the first tokens of completed requests, ours has all; and every delay.
  std::vector<double> ttft_us, delay_us;
  const std::vector<double>& state = r.ColumnOf("state");
  for (std::size_t i = 0; i < state.size(); ++i) {
    const bool entered = state[i] != static_cast<double>(RequestState::kPending) &&
                         state[i] != static_cast<double>(RequestState::kDropped);
    if (entered) prompts += r.ColumnOf("prompt_tokens")[i];
    const double delay_ms = r.ColumnOf("scheduling_delay_ms")[i];
    if (!std::isnan(delay_ms)) delay_us.push_back(std::nearbyint(delay_ms * 1e3));
    if (state[i] != static_cast<double>(RequestState::kCompleted)) continue;
    ttft_us.push_back(std::nearbyint(r.ColumnOf("ttft_ms")[i] * 1e3));
    ttft_sum_us += ttft_us.back();
  }
  figures["total_input_tokens"] = prompts;
  figures["ttft_sum_us"] = ttft_sum_us;
  AddDistribution(figures, "ttft", ttft_us);
  AddDistribution(figures, "scheduling_delay", delay_us);
  figures["vllm_estimated_duration_s"] = r.simulated_s;
  figures["responses_per_sec"] = static_cast<double>(r.completed) / r.simulated_s;
  figures["tokens_per_sec"] = static_cast<double>(r.output_tokens) / r.simulated_s;
  figures["cache_hit_rate"] = Share(r.prefix_cache.hit_blocks, r.prefix_cache.query_blocks);
  figures["kv_thrashing_rate"] = Share(r.kv_offload.thrashed_blocks, r.kv_offload.offloaded_blocks);
  distribution("e2e", r.e2e_ms);
  distribution("itl", r.itl_ms);

  return figures;
}

BlisFigures BlisFiguresOf(const BlisReferenceOutput& out) {
  BlisFigures figures;
  std::map<RequestState, double> states;
  std::vector<double> ttft, e2e, itl, delays;
  const auto us = [&](TimeNs time, std::size_t row) {
    return static_cast<double>((time - out.requests.arrival[row]) / kUs);
  };
  for (std::size_t row = 0; row < out.results.state.size(); ++row) {
    ++states[out.results.state[row]];
    if (out.results.first_scheduled[row] >= 0) {
      delays.push_back(us(out.results.first_scheduled[row], row));
    }
    if (out.results.state[row] != RequestState::kCompleted) continue;
    ttft.push_back(us(out.results.first_token[row], row));
    e2e.push_back(us(out.results.completion[row], row));
    figures["ttft_sum_us"] += ttft.back();
  }
  for (const auto& [gap, count] : out.gaps) {
    itl.insert(itl.end(), static_cast<std::size_t>(count), static_cast<double>(gap / kUs));
  }
  figures["completed_requests"] = states[RequestState::kCompleted];
  figures["still_queued"] = states[RequestState::kQueued];
  figures["still_running"] = states[RequestState::kRunning];
  figures["dropped_unservable"] = states[RequestState::kDropped];
  figures["timed_out_requests"] = states[RequestState::kTimedOut];
  figures["injected_requests"] =
      static_cast<double>(out.results.state.size()) - states[RequestState::kPending];
  figures["length_capped_requests"] = static_cast<double>(out.length_capped);
  figures["preemption_count"] = static_cast<double>(out.preemptions);
  figures["total_input_tokens"] = static_cast<double>(out.input_tokens);
  figures["total_output_tokens"] = static_cast<double>(out.output_tokens);
  const double seconds = static_cast<double>(out.end / kUs) / 1e6;
  figures["vllm_estimated_duration_s"] = seconds;
  figures["responses_per_sec"] = states[RequestState::kCompleted] / seconds;
  figures["tokens_per_sec"] = static_cast<double>(out.output_tokens) / seconds;
  // February has what the host gave back among its hits.
  const std::int64_t hits = out.kv.hits + (out.february ? out.kv.reloads : 0);
  figures["cache_hit_rate"] = Share(hits, hits + out.kv.misses + out.kv.host_misses);
  figures["kv_thrashing_rate"] = Share(out.kv.thrashes, out.kv.offloads);
  AddDistribution(figures, "ttft", ttft);
  AddDistribution(figures, "e2e", e2e);
  AddDistribution(figures, "itl", itl);
  AddDistribution(figures, "scheduling_delay", delays);
  return figures;
}

std::optional<std::string> FirstDifference(const BlisCase& golden, const BlisFigures& found) {
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

Result<BlisFigures> RunBlisCase(const BlisCase& golden) {
  SimulationHooks hooks;
  hooks.requests = golden.requests;
  Result<Simulation> simulation = Simulation::Create(golden.scenario, {}, std::move(hooks));
  if (!simulation.ok()) return simulation.issues();
  while (!simulation.value().Advance(1'000'000)) {
  }
  return BlisFiguresOf(simulation.value().Snapshot());
}

std::optional<std::string> FirstDifference(const BlisCase& golden) {
  const Result<BlisFigures> found = RunBlisCase(golden);
  if (!found.ok()) return "the engine refuses it: " + found.issues().front().message;
  return FirstDifference(golden, found.value());
}

std::optional<std::string> FirstDifferenceOfReference(const BlisCase& golden) {
  const Scenario& s = golden.scenario;
  const Result<ModelCost> cost = ComputeModelCost(s);
  if (!cost.ok()) return "the model does not fit: " + cost.issues().front().message;
  const std::unique_ptr<LatencyModel> latency = ChosenLatencyModel(s).make(s, cost.value());
  return FirstDifference(
      golden, BlisFiguresOf(RunBlisReference({.requests = golden.requests,
                                              .engine = s.engine,
                                              .scheduler = s.scheduler,
                                              .blocks = cost.value().usable_blocks,
                                              .model_max_len = s.model.max_position_embeddings,
                                              .latency = *latency,
                                              .horizon = std::nullopt,
                                              .host = golden.host})));
}

}  // namespace servecast::testing
