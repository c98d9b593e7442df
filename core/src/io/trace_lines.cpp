// See trace_lines.h.
#include "io/trace_lines.h"

#include <algorithm>
#include <limits>

#include "base/base.h"
#include "base/hash.h"
#include "base/text.h"
#include "io/issues.h"
#include "servecast/scenario.h"
#include "workload/workload.h"

namespace servecast {
namespace {

// Times from the first arrival, and the hash of what is then there.
void Normalise(Trace& trace) {
  TimeNs first = kNever;
  for (const TraceRow& row : trace.rows) first = std::min(first, row.arrival_ns);
  Hasher hasher;
  for (TraceRow& row : trace.rows) {
    row.arrival_ns -= first;
    hasher.Add(row.arrival_ns);
    hasher.Add(static_cast<std::int64_t>(row.prompt_tokens) << 32 | row.output_tokens);
  }
  // Ids that share nothing say nothing.
  const bool any = std::any_of(trace.prefixes.begin(), trace.prefixes.end(),
                               [](const TracePrefix& prefix) { return prefix.row >= 0; });
  for (std::size_t i = 0; any && i < trace.prefixes.size(); ++i) {
    hasher.Add(static_cast<std::int64_t>(trace.prefixes[i].row));
    hasher.Add(static_cast<std::int64_t>(trace.prefixes[i].tokens));
  }
  for (const std::vector<std::int32_t>& accepted : trace.accepted_drafts) {
    hasher.Add(static_cast<std::int64_t>(accepted.size()));
    for (const std::int32_t drafts : accepted) hasher.Add(std::int64_t{drafts});
  }
  for (const std::int32_t adapter : trace.adapters) hasher.Add(std::int64_t{adapter});
  trace.hash = hasher.Finish();
}

}  // namespace

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  return "\"" + shown + (text.size() > 40 ? "...\"" : "\"");
}

TraceLines::TraceLines(std::string name) { trace_.name = std::move(name); }

bool TraceLines::SetLine(std::string_view line) {
  if (number_ == 0 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  untrimmed_ = line;
  line_ = Trimmed(line);
  ++number_;
  return !line_.empty() && line_[0] != '#';
}

void TraceLines::Add(std::size_t column, std::string message) {
  AddAt(entry_ > 0 ? Format("entry {}", entry_)
                   : Format("line {}, column {}", std::max<std::size_t>(number_, 1), column),
        std::move(message));
}

void TraceLines::AddAt(std::string place, std::string message) {
  ++found_;
  if (issues_.size() < kMostIssues) issues_.push_back({std::move(place), std::move(message)});
}

std::optional<std::int32_t> TraceLines::Tokens(std::string_view text, std::string_view field,
                                               std::size_t column) {
  const auto tokens = ParseCount(text);
  if (tokens && *tokens >= 1 && *tokens <= kMostTokens) return static_cast<std::int32_t>(*tokens);
  Add(column, Format("found {} as {}, allowed 1 to {} tokens", Shown(text), field, kMostTokens));
  return std::nullopt;
}

bool TraceLines::IdsFit(std::int64_t prompt_tokens, std::size_t ids, std::size_t column) {
  const std::int64_t most = CeilDiv(prompt_tokens, id_tokens_);
  if (static_cast<std::int64_t>(ids) <= most) return true;
  Add(column, Format("found {} hash ids, allowed at most {} for {} tokens: one stands for {}", ids,
                     most, prompt_tokens, id_tokens_));
  return false;
}

bool TraceLines::AddRow(const TraceRow& row, std::span<const std::uint64_t> hash_ids) {
  if (static_cast<std::int64_t>(trace_.rows.size()) == kMaxRequests) {
    Add(1, Format("more than {} requests, the most that a run takes", kMaxRequests));
    return false;
  }
  const auto number = static_cast<std::int32_t>(trace_.rows.size());
  trace_.rows.push_back(row);
  if (!hash_ids.empty() && !any_ids_) {
    any_ids_ = true;
    trace_.prefixes.resize(static_cast<std::size_t>(number));
  }
  if (!accepted_.empty()) trace_.accepted_drafts.push_back(accepted_);
  if (adapter_) trace_.adapters.push_back(*adapter_);
  if (any_ids_)
    trace_.prefixes.push_back(chains_.Add(number, row.prompt_tokens, hash_ids, id_tokens_));
  return true;
}

bool TraceLines::ScaleTimes(std::int64_t times) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 2;
  for (const TraceRow& row : trace_.rows) {
    if (row.arrival_ns > kMost / times) return false;
  }
  for (TraceRow& row : trace_.rows) row.arrival_ns *= times;
  return true;
}

Result<Trace> TraceLines::Finish(const char* format, std::string reading, bool has_arrivals) {
  if (!issues_.empty()) {
    if (found_ > kMostIssues) {
      issues_.push_back({"", Format("and {} more malformed lines", found_ - kMostIssues)});
    }
    return std::move(issues_);
  }
  if (trace_.rows.empty()) {
    return Issue{Format("line {}", number_), trace_.failed > 0
                                                 ? "the trace has failed requests only"
                                                 : "the trace has a header but no requests"};
  }
  trace_.format = format;
  trace_.reading = std::move(reading);
  trace_.has_arrivals = has_arrivals;
  if (!has_arrivals) trace_.reading += "; lengths only, no arrivals";
  if (trace_.failed > 0) {
    trace_.reading += Format("; {} failed requests left out", trace_.failed);
  }
  Normalise(trace_);
  return std::move(trace_);
}

}  // namespace servecast
