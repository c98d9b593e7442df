// How fast and how lean: time, ns and allocations per step, ns and bytes per request. The same
// source runs natively and, under node, as WebAssembly. Figures are printed, never asserted:
// machines are noisy. `servecast_bench N` runs N requests only; `servecast_bench blis` the cases by
// BLIS's rules only, `servecast_bench sglang` those of SGLang's, `servecast_bench drafts` those
// with drafts, `servecast_bench queues` those of long queues; `servecast_bench ablation` prints
// what each option after SFLLM does, `servecast_bench cluster` what a step costs behind each
// router, `servecast_bench epp` 1,000,000 requests that share prefixes behind llm-d's endpoint
// picker and, to compare with, behind round_robin.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "bench/ablation.h"
#include "cost/model_cost.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "serving/cluster/router.h"
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

// A case: Llama-3.1-8B on one H100, 512/512 tokens at 20 requests per second, and what is set
// beside that.
struct Case {
  const char* name;
  std::int64_t requests;
  int repeats;
  std::vector<std::string> set;
};

std::vector<Case> Cases() {
  const auto long_outputs = [](const char* name, std::int64_t requests, std::int64_t tokens) {
    const auto fixed = [](std::int64_t n) {
      return fmt::format(R"({{"distribution":"fixed","value":{}}})", n);
    };
    return Case{name,
                requests,
                5,
                {"workload.prompt_tokens=" + fixed(1), "workload.output_tokens=" + fixed(tokens),
                 "workload.arrivals.rate_per_s=1000000", "engine.num_gpu_blocks_override=2000000",
                 "engine.max_num_seqs=256", "model.max_position_embeddings=200000"}};
  };
  return {
      {"512/512", 10'000, 15, {}},
      {"512/512", 100'000, 5, {}},
      {"512/512", 1'000'000, 3, {}},
      // A tenth of the memory: the queue is never empty, running requests lose their blocks.
      {"scarce KV", 10'000, 9, {"engine.num_gpu_blocks_override=2500"}},
      {"sessions",
       10'000,
       9,
       {R"(workload.sessions={"turns":5,"think_time_s":5})",
        R"(workload.prefix={"groups":8,"tokens":1000})"}},
      // Vidur's own: Azure's conversations, Llama-2-7B on an A100, chunks of 512.
      {"Vidur sarathi",
       10'000,
       9,
       {R"(model={"preset":"llama-2-7b"})", R"(hardware={"preset":"a100-80gb"})",
        R"(workload={"preset":"azure-conversation-2023"})", "workload.requests=10000",
        "workload.arrivals.rate_per_s=3.5", "engine.max_num_batched_tokens=512",
        "engine.max_num_seqs=128", "scheduler.policy=sarathi"}},
      // Four kinds of clients, two of them in conversations, one with arrivals of its own.
      {"4 classes",
       1'000'000,
       3,
       {R"(workload.classes=[{"name":"chat","share":5,"ttft_deadline_ms":500,"turns":5,)"
        R"("think_time_s":5},{"name":"code","share":3,"priority":1,"prefix_groups":8,)"
        R"("prefix_tokens":1000},{"name":"tools","share":1,"turns":10,"think_time_s":1},)"
        R"({"name":"batch","rate_per_s":2,"priority":2,"timeout_s":600}])",
        R"(workload.prompt_tokens={"distribution":"lognormal","median":200,"p99":2000,"max":4096})",
        R"(workload.output_tokens={"distribution":"lognormal","median":100,"p99":500,"max":1024})",
        R"(slo=[{"metric":"ttft","limit_ms":500,"class":"chat"},{"metric":"e2e","limit_ms":30000}])",
        "workload.arrivals.rate_per_s=4"}},
      // The same steps with few and with many sequences: what a step costs must not depend on them.
      long_outputs("8 x 100,000", 8, 100'000),
      long_outputs("256 x 100,000", 256, 100'000),
      // As many requests, hardly any step: what a request costs.
      long_outputs("256 x 1", 256, 1),
  };
}

// The same load under SGLang's scheduler; without its radix cache, of which prompts that share
// nothing have no use; and where its estimates are too low.
std::vector<Case> SglangCases() {
  const std::string sglang = "engine.preset=sglang";
  return {
      {"SGLang", 10'000, 15, {sglang}},
      {"SGLang, chunks of 16 tokens", 1'000, 15, {sglang, "engine.max_num_batched_tokens=16"}},
      {"SGLang, no tree", 10'000, 15, {sglang, "engine.enable_prefix_caching=false"}},
      {"SGLang, scarce",
       10'000,
       9,
       {sglang, "engine.num_gpu_blocks_override=40000", "scheduler.schedule_conservativeness=0.1"}},
  };
}

// The same load with drafts or adapters: a step costs by its members, but only their draws; and all
// of it where each proposal may be another number.
std::vector<Case> DraftCases() {
  const auto drafts = [](const char* members) {
    return fmt::format(R"(engine.speculative={{"num_speculative_tokens":3,{}}})", members);
  };
  const std::string eagle = drafts(R"("method":"eagle","acceptance_length":2.2)");
  const std::string seats = "engine.max_loras=16",
                    adapters = R"(workload.adapters={"count":16,"theta":1})";
  return {
      {"3 drafts", 10'000, 15, {eagle, "engine.async_scheduling=false"}},
      {"3 drafts, async", 10'000, 15, {eagle, "engine.async_scheduling=true"}},
      {"all accepted", 10'000, 15, {drafts(R"("method":"eagle","acceptance_length":4)")}},
      {"ngram, half",
       10'000,
       9,
       {drafts(R"("method":"ngram","draft_share":0.5)"), "engine.async_scheduling=false"}},
      {"drafts, scarce", 10'000, 9, {eagle, "engine.num_gpu_blocks_override=2500"}},
      {"adapters", 10'000, 15, {seats, adapters}},
      {"3 drafts, LoRA", 10'000, 15, {eagle, seats, adapters}},
  };
}

// Short requests all at once, of which nearly all wait: ns a request should hardly grow with them.
std::vector<Case> QueueCases() {
  const std::string sglang = "engine.preset=sglang";
  const std::pair<const char*, std::vector<std::string>> queues[] = {
      {"fcfs, queue", {}},
      {"SGLang, urgent", {sglang, "scheduler.enable_priority_scheduling=true"}},
      {"SGLang, dfs",
       {sglang, "scheduler.schedule_policy=dfs-weight",
        R"(workload.prefix={"groups":50,"tokens":64})"}},
      {"2 of 1k LoRAs", {"engine.max_loras=2", R"(workload.adapters={"count":1000})"}},
  };
  std::vector<Case> cases;
  for (const auto& [name, set] : queues) {
    for (const std::int64_t requests : {20'000, 80'000}) {
      Case& c = cases.emplace_back(Case{name, requests, 1, set});
      c.set.insert(c.set.end(), {R"(workload.prompt_tokens={"distribution":"fixed","value":100})",
                                 R"(workload.output_tokens={"distribution":"fixed","value":20})",
                                 "workload.arrivals.rate_per_s=100000"});
    }
  }
  return cases;
}

// The same load by the rules of the simulator BLIS (engine.compat).
std::vector<Case> BlisCases() {
  const std::string today = "engine.compat=blis";
  const std::string full = "workload.arrivals.rate_per_s=1000000";
  return {
      {"BLIS", 10'000, 5, {today}},
      {"BLIS, February", 10'000, 5, {"engine.compat=blis-2026-02"}},
      {"BLIS, 8 seats", 1'000, 5, {today, full, "engine.max_num_seqs=8"}},
      // All seats are taken, and in every other step a request ends and another begins.
      {"BLIS, 256 full", 10'000, 5, {today, full, "engine.num_gpu_blocks_override=20000"}},
      {"BLIS, uncached",
       10'000,
       5,
       {today, full, "engine.num_gpu_blocks_override=20000", "engine.enable_prefix_caching=false"}},
      {"BLIS, scarce", 10'000, 5, {today, "engine.num_gpu_blocks_override=2500"}},
      {"BLIS, sessions",
       10'000,
       5,
       {today, R"(workload.sessions={"turns":5,"think_time_s":5})",
        R"(workload.prefix={"groups":8,"tokens":1000})"}},
  };
}

Scenario ScenarioOf(const Case& c) {
  std::vector<std::string> set = {R"(workload.prompt_tokens={"distribution":"fixed","value":512})",
                                  R"(workload.output_tokens={"distribution":"fixed","value":512})",
                                  "workload.arrivals.rate_per_s=20",
                                  "workload.requests=" + std::to_string(c.requests)};
  set.insert(set.end(), c.set.begin(), c.set.end());
  const auto text = ApplyOverrides(*ScenarioPreset("llama-3.1-8b-h100-chat"), set);
  Result<Scenario> scenario = ParseScenario(text.value());
  if (scenario.ok()) return std::move(scenario.value());
  for (const Issue& issue : scenario.issues()) fmt::print("{}: {}\n", issue.path, issue.message);
  std::exit(1);
}

std::vector<Case> EppCases() {
  std::vector<Case> cases;
  for (const char* router : {R"({"policy":"round_robin"})", R"({"policy":"epp"})",
                             R"({"policy":"epp","profile":"optimized-baseline"})"}) {
    cases.push_back(
        {cases.empty()       ? "round robin"
         : cases.size() == 1 ? "epp"
                             : "epp baseline",
         1'000'000,
         1,
         {"cluster.pools.0.replicas=64", fmt::format("cluster.router={}", router),
          R"(workload.prompt_tokens={"distribution":"fixed","value":200})",
          R"(workload.output_tokens={"distribution":"fixed","value":50})",
          R"(workload.prefix={"groups":200,"tokens":800})", "workload.arrivals.rate_per_s=1500"}});
  }
  return cases;
}

void Run(const Case& c) {
  const Scenario scenario = ScenarioOf(c);
  std::vector<double> total_ms, steps_ms;
  double allocations_per_step = 0, bytes_per_request = 0;
  Report report;
  for (int i = 0; i < c.repeats; ++i) {
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
        static_cast<double>(peak_bytes - bytes_before) / static_cast<double>(c.requests);
  }
  std::sort(total_ms.begin(), total_ms.end());
  std::sort(steps_ms.begin(), steps_ms.end());
  const double ms = total_ms[total_ms.size() / 2];
  const double tokens = static_cast<double>(report.prompt_tokens + report.output_tokens);
  fmt::print(
      "{:<15}{:>9} {:9.2f} {:9.2f} {:9.2f} {:9} {:9.1f} {:9.1f} {:8.4f} {:8.0f} {:9.0f} {:7} "
      "{:6.1f}  {}\n",
      c.name, c.requests, ms, total_ms.front(), steps_ms[steps_ms.size() / 2], report.steps,
      steps_ms[steps_ms.size() / 2] * 1e6 / static_cast<double>(report.steps),
      steps_ms[steps_ms.size() / 2] * 1e6 / static_cast<double>(c.requests), allocations_per_step,
      bytes_per_request, tokens / ms / 1e3, report.preemptions,
      report.prefix_cache.query_tokens == 0
          ? 0.0
          : 100.0 * static_cast<double>(report.prefix_cache.hit_tokens) /
                static_cast<double>(report.prefix_cache.query_tokens),
      HashText(report.fingerprint));
}

// 1 request a second on each replica, so that nearly every step ends a decode run: time per step
// and per request, placing included. Twice the logarithm of the replicas should not cost ten times
// as much; routers that look at every replica do.
void Routing() {
  fmt::print("1 request/s a replica, 512/512; ns per step (per request)\n{:<20}", "router");
  const std::vector<std::int64_t> sizes = {10, 100, 1000};
  for (const std::int64_t replicas : sizes) fmt::print(" {:>9} replicas", replicas);
  fmt::print("\n");
  for (const RouterEntry& router : Routers()) {
    fmt::print("{:<20}", router.name);
    for (const std::int64_t replicas : sizes) {
      constexpr std::int64_t kRequests = 30'000;
      const Scenario scenario =
          ScenarioOf({"",
                      kRequests,
                      1,
                      {fmt::format("cluster.pools.0.replicas={}", replicas),
                       fmt::format("cluster.router.policy={}", router.name),
                       fmt::format("workload.arrivals.rate_per_s={}", replicas),
                       R"(workload.prefix={"groups":50,"tokens":256})"}});
      Result<Simulation> simulation = Simulation::Create(scenario);
      const auto start = Clock::now();
      while (!simulation.value().Advance(1 << 20)) {
      }
      const double ns = MsSince(start) * 1e6;
      const Report report = simulation.value().Snapshot(ReportDetail::kSummary);
      fmt::print(" {:>8.1f} ({:>7.0f})", ns / static_cast<double>(report.steps),
                 ns / static_cast<double>(kRequests));
    }
    fmt::print("\n");
  }
}

// One price of each backend: a batch of decodes, and one with a prefill chunk.
void PriceModels(const char* name, const std::vector<std::string>& set) {
  const Scenario scenario = ScenarioOf({"", 1, 1, set});
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
    fmt::print("{:>15} price, {:<8}{:9.1f} ns (sum {})\n", entry.name, name,
               MsSince(start) * 1e6 / kPrices, sum);
  }
}

}  // namespace
}  // namespace servecast

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "ablation") {
    servecast::Ablation();
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "cluster") {
    servecast::Routing();
    return 0;
  }
  const std::string only = argc > 1 ? argv[1] : "";
  if (!only.empty() && only != "blis" && only != "sglang" && only != "drafts" && only != "queues" &&
      only != "epp") {
    servecast::Run({"512/512", std::atoll(argv[1]), 1, {}});
    return 0;
  }
  fmt::print(
      "Llama-3.1-8B on one H100; medians; ms: whole run with report; ns: the steps alone\n"
      "{:<15}{:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>9} {:>7} {:>6}  {}\n",
      "case", "requests", "ms", "least", "steps ms", "steps", "ns/step", "ns/req", "alloc/st",
      "B/req", "M tok/s", "preempt", "hit %", "fingerprint");
  if (only.empty()) {
    for (const servecast::Case& c : servecast::Cases()) servecast::Run(c);
  }
  const auto run = [&only](const char* group, const std::vector<servecast::Case>& cases) {
    if (!only.empty() && only != group) return;
    for (const servecast::Case& c : cases) servecast::Run(c);
  };
  run("drafts", servecast::DraftCases());
  run("sglang", servecast::SglangCases());
  run("queues", servecast::QueueCases());
  run("blis", servecast::BlisCases());
  if (only == "epp") run("epp", servecast::EppCases());
  if (!only.empty()) return 0;
  servecast::PriceModels("dense", {});
  servecast::PriceModels(
      "experts", {R"(model={"preset":"mixtral-8x7b"})", "cluster.pools.0.tensor_parallel=2"});
  return 0;
}
