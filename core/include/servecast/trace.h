// Request traces: files of arrivals and lengths, read from text into rows; and the workload that a
// trace resembles, small enough for a link.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/result.h"

namespace servecast {

struct TraceRow {
  std::int64_t arrival_ns = 0;  // from the first arrival of the file
  std::int32_t prompt_tokens = 0;
  std::int32_t output_tokens = 0;
};

// What a row's prompt shares: its first `tokens` tokens are those of the prompt of an earlier row.
struct TracePrefix {
  std::int32_t row = -1;  // -1: nothing is shared
  std::int32_t tokens = 0;
};

struct Trace {
  std::string name;  // of the file
  // "servecast_csv", "azure_csv", "vidur_csv", "mooncake_jsonl", "blis_tracev2", "vllm_bench",
  // "csv", "json"
  std::string format;
  std::string reading;                // why: "Azure CSV: columns TIMESTAMP, ContextTokens, ..."
  std::vector<TraceRow> rows;         // in file order; a request's id is its row
  std::vector<TracePrefix> prefixes;  // one per row, or empty when the file has no hash ids
  // One per row, or empty when the file tells none: how many drafts are accepted in each step of
  // the request that verifies some, and again from the first.
  std::vector<std::vector<std::int32_t>> accepted_drafts;
  // One per row, or empty when the file tells none: its LoRA adapter; 0: the model itself.
  std::vector<std::int32_t> adapters;
  bool has_arrivals = true;  // false: lengths only, all arrivals are 0
  std::int64_t failed = 0;   // requests that the file says failed: left out
  // Over rows, prefixes, drafts and adapters alone: format and compression do not matter.
  std::uint64_t hash = 0;
};

// Reads a trace as it comes, recognised by its first line. Any malformed line makes it an error:
// the first 100 issues name line, column and what was found. At most kMaxRequests rows. Lines are
// done with as they come; only a document of JSON, up to 256 MiB, is kept until it is whole.
class TraceReader {
 public:
  explicit TraceReader(std::string name);
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;

  // The next bytes of the file, cut anywhere. False when no more are needed: it cannot be read.
  bool Add(std::string_view bytes);
  // Once, after the last bytes.
  Result<Trace> Finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The same at once. O(size).
Result<Trace> ParseTrace(std::string_view text, std::string name);

// The fitted summary of a trace (docs/model.md, section 2), as JSON: {workload: the section of a
// document, comparison: [{name, unit, trace, fit}], rate?: {from_s, trace, fit}, lengths:
// {probability, prompt_trace, prompt_fit, output_trace, output_fit}}. A trace without arrivals
// gives a workload without arrivals and no rates. Requires: rows. O(n log n).
Result<std::string> FitTraceJson(const Trace& trace);

}  // namespace servecast
