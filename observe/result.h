// What was observed, in the form of `vllm bench serve --save-result --save-detailed`.
#pragma once

#include <string>

#include "observe/answers.h"
#include "observe/options.h"
#include "workload/request_table.h"

namespace servecast {

// What the file says of the run beside what was observed.
struct ObservedOf {
  std::string model;
  std::string scenario_id;
  std::uint64_t salt = 0;
};

// A request that failed has no time and no output there, as vLLM writes it; why is in `errors`. Of
// one that came whole `input_lens` and `output_lens` are the server's count where it has one. What
// vLLM's form has no place for is in the member "servecast". O(tokens).
std::string ObservedJson(const Observed& observed, const ObservedOf& of,
                         const ObserveOptions& options, const RequestTable& table);

// The same for a person, a line each: how many, how fast, how late, and what to beware of.
std::string ObservedSummary(const Observed& observed, const RequestTable& table);

}  // namespace servecast
