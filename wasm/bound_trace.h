// What both files of bindings share: issues as JSON, and a trace of a file.
#pragma once

#include <optional>
#include <string>

#include "io/json_writer.h"
#include "servecast/result.h"
#include "servecast/trace.h"

namespace servecast {

void WriteIssues(const Issues& issues, JsonWriter& out);
std::string IssuesJson(const Issues& issues);

// A trace file as it comes in, then its rows, which any number of runs replay.
class BoundTrace {
 public:
  explicit BoundTrace(const std::string& name) : reader_(TraceReader(name)) {}

  bool Add(const std::string& bytes) { return reader_ && reader_->Add(bytes); }
  std::string Finish();
  // Of a bad one, as if it had arrivals: a run is then refused for the trace.
  std::string Replaying(const std::string& document) const;
  std::string Fit() const;

  const Result<Trace>& trace() const { return trace_; }

 private:
  std::optional<TraceReader> reader_;  // until the file has ended
  Result<Trace> trace_ = Issue{"", "the trace has not been read to its end"};
};

}  // namespace servecast
