// What `servecast observe` is told, checked as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/prompts.h"
#include "servecast/result.h"
#include "workload/request_table.h"

namespace servecast {

struct ObserveOptions {
  std::string url;  // up to and without /completions: "http://localhost:8000/v1"
  std::string scenario, trace, out;
  std::vector<std::string> overrides;  // --set
  std::string model;                   // "": the first that the server names
  PromptForm prompts = PromptForm::kTokenIds;
  std::optional<std::uint64_t> salt;  // nullopt: a new one
  std::optional<std::int64_t> max_concurrency;
  std::int64_t retries = 0, warm_up = 1;
  TimeNs timeout = 600 * kNsPerS;
  std::optional<TimeNs> stall;
  std::string key;  // secret: sent to the server, never shown
  bool help = false;
};

// Of the words behind "observe", and of OPENAI_API_KEY (nullptr: not set). Issues: all of them,
// named by option.
Result<ObserveOptions> ReadObserveOptions(const std::vector<std::string>& words, const char* key);

// What of a scenario's requests can be sent, and their answers kept.
Issues CheckRequests(const RequestTable& table);

// What a request asks for at most: its output, or its client's limit if that is lower.
std::int64_t AskedTokens(const RequestTable& table, std::int64_t row);

}  // namespace servecast
