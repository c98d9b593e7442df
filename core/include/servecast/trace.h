// Request traces: files of arrivals and lengths, read from text into rows.
#pragma once

#include <cstdint>
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
  std::string name;                   // of the file
  std::string format;                 // "servecast_csv", "azure_csv", "vidur_csv", "mooncake_jsonl"
  std::vector<TraceRow> rows;         // in file order; a request's id is its row
  std::vector<TracePrefix> prefixes;  // one per row, or empty when the file has no hash ids
  std::uint64_t hash = 0;  // over rows and prefixes alone: format and compression do not matter
};

// Reads a whole trace, recognised by its header line. Any malformed line makes it an error: the
// first 100 issues name line, column and what was found. O(size). At most kMaxRequests rows.
Result<Trace> ParseTrace(std::string_view text, std::string name);

}  // namespace servecast
