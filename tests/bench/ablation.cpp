// What each option after SFLLM does, one at a time: `servecast_bench ablation`. Simulated figures,
// so they are the same on every machine; docs/model.md quotes them.
#include "bench/ablation.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "cost/model_cost.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "serving/policy.h"

namespace servecast {
namespace {

using Set = std::vector<std::string>;

Set operator+(Set a, const Set& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Scenario Parsed(const Set& set) {
  const Result<std::string> text = ApplyOverrides(*ScenarioPreset("llama-3.1-8b-h100-chat"), set);
  Result<Scenario> scenario = ParseScenario(text.value());
  if (scenario.ok()) return std::move(scenario.value());
  for (const Issue& issue : scenario.issues()) fmt::print("{}: {}\n", issue.path, issue.message);
  std::exit(1);
}

double DecodeStepUs(const Set& set, std::int64_t sequences) {
  const Scenario scenario = Parsed(set);
  const ModelCost cost = ComputeModelCost(scenario).value();
  const auto model = FindLatencyModel("analytic").make(scenario, cost);
  return static_cast<double>(model->Price({sequences, 512 * sequences, {}}).duration) / 1e3;
}

void Graphs() {
  const Set no_host = {"engine.step_overhead_us=0", "engine.sequence_overhead_us=0"};
  const std::pair<const char*, Set> columns[] = {
      {"Qwen3-0.6B, H100", Set{"model.preset=qwen3-0.6b"} + no_host},
      {"Qwen3-0.6B, RTX 4090",
       Set{"model.preset=qwen3-0.6b", "hardware.preset=rtx-4090"} + no_host},
      {"Llama-3.1-8B, H100", no_host},
      {"Qwen3-0.6B, H100, host 600 + 4 n", {"model.preset=qwen3-0.6b"}},
  };
  fmt::print(
      "Decode step, contexts of 512, us: eager (100 us) / captured (10 us), and its gain\n| n |");
  for (const auto& [name, set] : columns) fmt::print(" {} |", name);
  fmt::print("\n|---|---|---|---|---|\n");
  for (const std::int64_t n : {1, 2, 4, 5, 8, 16, 17, 32, 64}) {
    fmt::print("| {} |", n);
    for (const auto& [name, set] : columns) {
      const double eager = DecodeStepUs(set + Set{"engine.cuda_graphs=eager"}, n);
      const double captured =
          DecodeStepUs(set + Set{"engine.cuda_graphs=captured", "engine.cuda_graph_max_bs=64"}, n);
      fmt::print(" {:.0f} / {:.0f} {:+.1f} % |", eager, captured, 100 * (eager / captured - 1));
    }
    fmt::print("\n");
  }
}

void Runs(const char* title, const Set& all, const std::vector<Set>& variants) {
  fmt::print(
      "\n{}\n| | TTFT mean | TTFT p99 | ITL p50 | ITL p99 | E2E mean | tokens/s | preempted | GC "
      "passes, ms | padding | KV blocks |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      title);
  for (const Set& set : variants) {
    Result<Simulation> simulation = Simulation::Create(Parsed(all + set));
    if (!simulation.ok()) {
      fmt::print("{}\n", simulation.issues()[0].message);
      continue;
    }
    while (!simulation.value().Advance(1 << 20)) {
    }
    const Report r = simulation.value().Snapshot(ReportDetail::kSummary);
    std::string name;
    for (const std::string& s : set) name += (name.empty() ? "`" : ", `") + s + "`";
    fmt::print(
        "| {} | {:.1f} | {:.1f} | {:.2f} | {:.2f} | {:.0f} | {:.0f} | {} | {}, {:.1f} | {:.1f} "
        "% | {} |\n",
        name.empty() ? "off" : name, r.ttft_ms.mean, r.ttft_ms.p99, r.itl_ms.p50, r.itl_ms.p99,
        r.e2e_ms.mean, r.output_tokens_per_s, r.preemptions, r.counts.gc_passes, r.gc_ms,
        100 * static_cast<double>(r.counts.padding_tokens) /
            static_cast<double>(r.counts.prefill_tokens),
        r.kv_blocks);
  }
}

}  // namespace

void Ablation() {
  Graphs();
  const Set small = {"model.preset=qwen3-0.6b", "engine.step_overhead_us=0",
                     "engine.sequence_overhead_us=0", "workload.arrivals.rate_per_s=20"};
  Runs("CUDA graphs: Qwen3-0.6B, H100, chat, 20 requests/s, no other host time", small,
       {{"engine.cuda_graphs=eager"},
        {"engine.cuda_graphs=captured"},
        {"engine.cuda_graphs=captured", "engine.cuda_graph_max_bs=64"}});
  Runs("Overlap: the same with host time", small,
       {{"engine.step_overhead_us=500"},
        {"engine.step_overhead_us=500", "engine.overlap_scheduling=true"},
        {"engine.step_overhead_us=2000"},
        {"engine.step_overhead_us=2000", "engine.overlap_scheduling=true"}});
  Runs("Length buckets: Llama-3.1-8B, H100, chat, 90 requests/s, 64 seats",
       {"workload.arrivals.rate_per_s=90", "engine.max_num_seqs=64"},
       {{},
        {"scheduler.order=length_bucket"},
        {"scheduler.order=length_bucket", "scheduler.bucket_tokens=512"},
        {"scheduler.order=sjf"}});
  const Set scarce = {"workload.arrivals.rate_per_s=25", "engine.num_gpu_blocks_override=1000",
                      "engine.enable_prefix_caching=false"};
  Runs("Admission reserve: Llama-3.1-8B, H100, chat, 25 requests/s, 1,000 KV blocks", scarce,
       {{},
        {"engine.admission_reserve=1.5"},
        {"engine.admission_reserve=3"},
        {"engine.admission_reserve=6"},
        {"engine.watermark=0.05"}});
  Runs("Garbage collection: the same", scarce,
       {{},
        {"engine.gc_pass_us=100"},
        {"engine.gc_pass_us=1000"},
        {"engine.gc_pass_us=1000", "engine.gc_fraction=0.5"},
        {"engine.gc_pass_us=10000"}});
}

}  // namespace servecast
