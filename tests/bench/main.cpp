// How fast and how lean: requests per second, simulated tokens per second, ns and allocations per
// step, bytes per request. The same source runs natively and, under node, as WebAssembly. Figures
// are printed, never asserted: machines are noisy. `servecast_bench N` runs N requests only.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "cost/model_cost.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "serving/policy.h"

namespace {

std::int64_t allocations = 0;
std::int64_t live_bytes = 0, peak_bytes = 0;

// Each block carries its size in front, so that freeing can be counted too.
constexpr std::size_t kHeader = alignof(std::max_align_t);

void* Allocate(std::size_t size) {
  ++allocations;
  live_bytes += static_cast<std::int64_t>(size);
  peak_bytes = std::max(peak_bytes, live_bytes);
  auto* block = static_cast<char*>(std::malloc(size + kHeader));
  if (block == nullptr) std::abort();
  *reinterpret_cast<std::size_t*>(block) = size;
  return block + kHeader;
}

void Free(void* pointer) {
  if (pointer == nullptr) return;
  char* block = static_cast<char*>(pointer) - kHeader;
  live_bytes -= static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(block));
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* pointer) noexcept { Free(pointer); }
void operator delete[](void* pointer) noexcept { Free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { Free(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { Free(pointer); }

namespace servecast {
namespace {

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Llama-3.1-8B on one H100, 512/512 tokens at 20 requests per second.
Scenario BenchScenario(std::int64_t requests) {
  const auto preset = ScenarioPreset("llama-3.1-8b-h100-chat");
  const auto text =
      ApplyOverrides(*preset, {R"(workload.prompt_tokens={"distribution":"fixed","value":512})",
                               R"(workload.output_tokens={"distribution":"fixed","value":512})",
                               "workload.arrivals.rate_per_s=20",
                               "workload.requests=" + std::to_string(requests)});
  return ParseScenario(text.value()).value();
}

void Run(std::int64_t requests, int repeats) {
  const Scenario scenario = BenchScenario(requests);
  std::vector<double> total_ms, steps_ms;
  double allocations_per_step = 0, bytes_per_request = 0;
  Report report;
  for (int i = 0; i < repeats; ++i) {
    const std::int64_t bytes_before = live_bytes;
    peak_bytes = live_bytes;
    const auto start = Clock::now();
    Result<Simulation> simulation = Simulation::Create(scenario);
    const auto running = Clock::now();
    const std::int64_t allocations_before = allocations;
    while (!simulation.value().Advance(1 << 20)) {
    }
    const std::int64_t step_allocations = allocations - allocations_before;
    steps_ms.push_back(MsSince(running));
    report = simulation.value().Snapshot(ReportDetail::kSummary);
    total_ms.push_back(MsSince(start));
    allocations_per_step =
        static_cast<double>(step_allocations) / static_cast<double>(report.steps);
    bytes_per_request =
        static_cast<double>(peak_bytes - bytes_before) / static_cast<double>(requests);
  }
  std::sort(total_ms.begin(), total_ms.end());
  std::sort(steps_ms.begin(), steps_ms.end());
  const double ms = total_ms[total_ms.size() / 2];
  const double tokens = static_cast<double>(report.prompt_tokens + report.output_tokens);
  fmt::print(
      "{:>9} requests  {:9.2f} ms (least {:.2f}, steps {:.2f})  {:>10.0f} requests/s  {:6.0f} M "
      "tokens/s  "
      "{:6.1f} ns/step  {:.4f} allocations/step  {:5.0f} bytes/request  fingerprint {}\n",
      requests, ms, total_ms.front(), steps_ms[steps_ms.size() / 2],
      static_cast<double>(requests) / ms * 1e3, tokens / ms / 1e3,
      steps_ms[steps_ms.size() / 2] * 1e6 / static_cast<double>(report.steps), allocations_per_step,
      bytes_per_request, HashText(report.fingerprint));
}

// One price of each backend: a batch of decodes, and one with a prefill chunk.
void PriceModels() {
  const Scenario scenario = BenchScenario(1);
  const ModelCost cost = ComputeModelCost(scenario).value();
  const PrefillChunk chunk{512, 0, 512, true};
  for (const LatencyEntry& entry : LatencyModels()) {
    const auto model = entry.make(scenario, cost);
    constexpr int kPrices = 2'000'000;
    TimeNs sum = 0;
    const auto start = Clock::now();
    for (int i = 0; i < kPrices; ++i) {
      sum += model->Price({128, 100000 + i, {&chunk, static_cast<std::size_t>(i & 1)}}).duration;
    }
    fmt::print("{:>9} price     {:9.1f} ns (sum {})\n", entry.name, MsSince(start) * 1e6 / kPrices,
               sum);
  }
}

}  // namespace
}  // namespace servecast

int main(int argc, char** argv) {
  if (argc > 1) {
    servecast::Run(std::atoll(argv[1]), 1);
    return 0;
  }
  fmt::print(
      "Llama-3.1-8B, one H100, 512/512 tokens at 20 requests/s; medians, whole run with report\n");
  servecast::Run(10'000, 15);
  servecast::Run(100'000, 5);
  servecast::Run(1'000'000, 3);
  servecast::PriceModels();
  return 0;
}
