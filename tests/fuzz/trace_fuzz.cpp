// Fuzz target: trace files of every format. What was read is written as our own CSV and read again.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/base.h"
#include "fuzz/inputs.h"
#include "servecast/trace.h"
#include "workload/workload.h"

namespace servecast::fuzz {
namespace {

void CheckRows(const Trace& trace) {
  SERVECAST_CHECK(!trace.rows.empty() && !trace.format.empty(), "a trace has rows and a format");
  TimeNs first = kNever;
  for (const TraceRow& row : trace.rows) {
    first = std::min(first, row.arrival_ns);
    SERVECAST_CHECK(row.prompt_tokens >= 1 && row.prompt_tokens <= kMostTokens,
                    "a prompt's length");
    SERVECAST_CHECK(row.output_tokens >= 1 && row.output_tokens <= kMostTokens,
                    "an output's length");
  }
  SERVECAST_CHECK(first == 0, "times count from the first arrival");
  SERVECAST_CHECK(
      trace.accepted_drafts.empty() || trace.accepted_drafts.size() == trace.rows.size(),
      "accepted drafts a row, or none");
  SERVECAST_CHECK(trace.adapters.empty() || trace.adapters.size() == trace.rows.size(),
                  "an adapter a row, or none");
  const std::size_t prefixes = trace.prefixes.size();
  SERVECAST_CHECK(prefixes == 0 || prefixes == trace.rows.size(), "a prefix a row, or none");
  for (std::size_t i = 0; i < prefixes; ++i) {
    const TracePrefix& prefix = trace.prefixes[i];
    if (prefix.row < 0) continue;
    SERVECAST_CHECK(static_cast<std::size_t>(prefix.row) < i, "a prefix is of an earlier row");
    const auto of = static_cast<std::size_t>(prefix.row);
    SERVECAST_CHECK(prefix.tokens >= 0 && prefix.tokens <= trace.rows[i].prompt_tokens &&
                        prefix.tokens <= trace.rows[of].prompt_tokens,
                    "a prefix is within both prompts");
  }
}

void ReadTrace(std::string_view input) {
  const Result<Trace> read = ParseTrace(input, "fuzz");
  if (!read.ok()) {
    CheckIssues(read.issues());
    return;
  }
  const Trace& trace = read.value();
  CheckRows(trace);

  const bool drafts = !trace.accepted_drafts.empty();
  std::string csv = "arrival_s,input_tokens,output_tokens";
  const bool adapters = !trace.adapters.empty();
  if (drafts) csv += ",accepted_drafts";
  csv += adapters ? ",adapter_id\n" : "\n";
  for (std::size_t i = 0; i < trace.rows.size(); ++i) {
    const TraceRow& row = trace.rows[i];
    csv += fmt::format("{}.{:09},{},{}", row.arrival_ns / kNsPerS, row.arrival_ns % kNsPerS,
                       row.prompt_tokens, row.output_tokens);
    if (drafts) csv += fmt::format(",{}", fmt::join(trace.accepted_drafts[i], " "));
    if (adapters) csv += fmt::format(",{}", trace.adapters[i]);
    csv += '\n';
  }
  const Result<Trace> again = ParseTrace(csv, "again");
  SERVECAST_CHECK(again.ok(), "what was read can be written and read again");
  const bool shares = std::any_of(trace.prefixes.begin(), trace.prefixes.end(),
                                  [](const TracePrefix& prefix) { return prefix.row >= 0; });
  SERVECAST_CHECK(shares || again.value().hash == trace.hash,
                  "the format does not change the hash");

  // A document of JSON has no comments.
  const bool lines = trace.format != "json" && trace.format != "vllm_bench";
  const std::string end = lines ? "\r\n\n# end\n" : "\r\n\n";
  const Result<Trace> spaced = ParseTrace(std::string(input) + end, "spaced");
  SERVECAST_CHECK(spaced.ok() && spaced.value().hash == trace.hash,
                  "empty lines and comments do not change the hash");

  TraceReader reader("pieces");
  for (std::size_t at = 0; at < input.size(); at += 7) reader.Add(input.substr(at, 7));
  const Result<Trace> pieces = reader.Finish();
  SERVECAST_CHECK(
      pieces.ok() && pieces.value().hash == trace.hash && pieces.value().reading == trace.reading,
      "pieces read as the whole");

  const Result<std::string> fit = FitTraceJson(trace);
  if (!fit.ok()) CheckIssues(fit.issues());
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadTrace(servecast::fuzz::TextOf(data, size));
  return 0;
}
