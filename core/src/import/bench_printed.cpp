// What vllm bench serve, benchmark_serving.py and sglang.bench_serving print: "Serving Benchmark
// Result" and a line for each figure. The figures are named; they are the traffic where no command
// beside them says it.
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "import/bench_result.h"
#include "import/kinds.h"

namespace servecast {
namespace {

using PrintedJson = nlohmann::json;

// Lines of both programs, and the members that a result in JSON has of them.
constexpr std::pair<std::string_view, const char*> kPrintedLines[] = {
    {"Successful requests:", "completed"},
    {"Failed requests:", "failed"},
    {"Benchmark duration (s):", "duration"},
    {"Total input tokens:", "total_input_tokens"},
    {"Total generated tokens:", "total_output_tokens"},
    {"Request throughput (req/s):", "request_throughput"},
    {"Output token throughput (tok/s):", "output_throughput"},
    {"Request rate configured (RPS):", "request_rate"},
    {"Traffic request rate:", "request_rate"},
    {"Maximum request concurrency:", "max_concurrency"},
    {"Max request concurrency:", "max_concurrency"},
    {"Peak concurrent requests:", "max_concurrent_requests"},
    {"Mean TTFT (ms):", "mean_ttft_ms"},
    {"Median TTFT (ms):", "median_ttft_ms"},
    {"P99 TTFT (ms):", "p99_ttft_ms"},
    {"Mean TPOT (ms):", "mean_tpot_ms"},
    {"Median TPOT (ms):", "median_tpot_ms"},
    {"P99 TPOT (ms):", "p99_tpot_ms"},
    {"Mean ITL (ms):", "mean_itl_ms"},
    {"Median ITL (ms):", "median_itl_ms"},
    {"P95 ITL (ms):", "p95_itl_ms"},
    {"P99 ITL (ms):", "p99_itl_ms"},
    {"Mean E2EL (ms):", "mean_e2el_ms"},
    {"Median E2EL (ms):", "median_e2el_ms"},
    {"P99 E2EL (ms):", "p99_e2el_ms"},
    {"Mean E2E Latency (ms):", "mean_e2el_ms"},
    {"Median E2E Latency (ms):", "median_e2el_ms"},
    {"P99 E2E Latency (ms):", "p99_e2el_ms"},
};

// A line's figure, whatever a terminal or a log puts before it.
void TakePrintedLine(std::string_view line, PrintedJson& result) {
  for (const auto& [words, member] : kPrintedLines) {
    const std::size_t at = line.find(words);
    if (at == std::string_view::npos) continue;
    std::string number;
    for (const char c : Stripped(line.substr(at + words.size()))) {
      if (c == ' ' || c == '|') break;
      if (c != ',') number += c;
    }
    if (number == "inf") {
      result[member] = number;
    } else if (const auto value = NumberIn(number)) {
      result[member] = NumberJson(*value);
    }
    return;
  }
}

}  // namespace

void ReadBenchPrinted(const ImportSource& source, Draft& draft) {
  const std::string_view text = source.text;
  const std::size_t title = text.rfind("Serving Benchmark Result");
  if (source.json != nullptr || title == std::string_view::npos) return;
  PrintedJson result = PrintedJson::object();
  for (const std::string_view line : LinesIn(text.substr(title, 20'000)))
    TakePrintedLine(line, result);
  // SGLang prints its backend first.
  const bool sglang = text.substr(title).find("Traffic request rate:") != std::string_view::npos;
  // A command says more of its traffic than the means of what came of it.
  const bool said = draft.Find("workload.arrivals") != nullptr;
  ReadBenchFigures(result,
                   sglang ? "what sglang.bench_serving printed" : "what vllm bench serve printed",
                   !said, draft);
  if (said) draft.Remark("the traffic is as the text before the printed result says it");
}

}  // namespace servecast
