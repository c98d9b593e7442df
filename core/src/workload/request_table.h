// The requests of a run, one row each, column by column. Output lengths live here and nowhere
// else: this table is the oracle boundary, and policies are never handed it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"

namespace servecast {

enum class RequestState : std::uint8_t {
  kPending,  // not yet arrived
  kQueued,   // arrived, perhaps still on its way to the queue
  kRunning,
  kCompleted,
  kDropped,  // can never be served: prompt beyond what the engine takes
};

struct RequestTable {
  // Written by the workload, then constant.
  std::vector<TimeNs> arrival;
  std::vector<std::int32_t> prompt_tokens;  // >= 1
  std::vector<std::int32_t> output_tokens;  // >= 1; what the request would generate if not capped

  std::int64_t size() const { return static_cast<std::int64_t>(arrival.size()); }
};

// What became of the requests. Times are as the client sees them; -1 where not reached.
struct RequestResults {
  std::vector<TimeNs> enqueue;          // arrival + delay before the queue
  std::vector<TimeNs> first_scheduled;  // start of the first step that it is in
  std::vector<TimeNs> first_token;
  std::vector<TimeNs> completion;
  std::vector<std::int32_t> generated;  // output tokens delivered
  std::vector<std::int32_t> preemptions;
  std::vector<RequestState> state;

  void Resize(std::int64_t n) {
    const auto size = static_cast<std::size_t>(n);
    enqueue.assign(size, -1);
    first_scheduled.assign(size, -1);
    first_token.assign(size, -1);
    completion.assign(size, -1);
    generated.assign(size, 0);
    preemptions.assign(size, 0);
    state.assign(size, RequestState::kPending);
  }
};

}  // namespace servecast
