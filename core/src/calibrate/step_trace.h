// What a server's own traces say of its steps and its requests: spans of OpenTelemetry with the
// events step.BATCH_SUMMARY, step.REQUEST_SNAPSHOT, those of a request's journey, and those of the
// KV cache. docs/how-to/traces.md has the schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "servecast/result.h"

namespace servecast {

// What one request was in a step.
struct TracedMember {
  std::int64_t step = 0;
  std::int32_t journey = -1;
  bool prefill = false;
  double prompt = 0, computed = 0, output = 0;  // tokens, before the step
  double scheduled = 0;                         // tokens, in it
  double blocks = 0;                            // KV blocks that it holds
  double hit_ratio = -1;                        // of its prompt, in the prefix cache; -1: not said
};

struct TracedStep {
  std::int64_t id = 0;
  TimeNs formed = 0;  // when its batch was put together; where that is not said, its start
  TimeNs start = 0, end = 0;
  double duration_us = 0;
  double running = 0, waiting = 0;  // requests, after its batch was formed
  double prefill_requests = 0, decode_requests = 0, prefill_tokens = 0, decode_tokens = 0;
  double preempted = 0;
  double kv_usage = 0, kv_blocks = 0;  // share; of the GPU, 0: not said
  double transfer_blocks = 0;          // that came back from host memory during it
  std::size_t from = 0, to = 0;        // its members; none where it has no snapshots

  double Tokens() const { return prefill_tokens + decode_tokens; }
  bool HasMembers() const {
    return static_cast<double>(to - from) == prefill_requests + decode_requests && to > from;
  }
};

// Times of one clock; -1: not traced.
struct TracedJourney {
  std::string id;
  TimeNs arrived = -1, queued = -1, scheduled = -1, first_token = -1, finished = -1;
  TimeNs first_response = -1, departed = -1;  // as the server's front end has them
  std::int64_t queued_step = -1, scheduled_step = -1;
  double prompt = 0, output = 0;
  double hit_ratio = -1;
  bool aborted = false;
  std::vector<TimeNs> preempted, resumed;
};

struct StepTrace {
  std::string name;               // of the file
  std::string scenario;           // the document of its server, where the file has one
  std::vector<TracedStep> steps;  // by id
  std::vector<TracedMember> members;
  std::vector<TracedJourney> journeys;  // by the time of their first event
  std::int64_t kv_events = 0;
  std::vector<std::string> warnings;
};

// Whether a text begins as such a file does.
bool IsStepTrace(std::string_view text);

// A file of the collector's exporter: an object of JSON a line, or one for all. Issues: all that is
// wrong with it, a hundred at most; nothing is half read. O(size).
Result<StepTrace> ReadStepTrace(std::string_view text, const std::string& name);

}  // namespace servecast
