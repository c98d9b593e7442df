// The load generator: sends a scenario's requests to a server at their times, and notes what comes
// back when. One thread; libcurl's multi interface.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/base.h"
#include "observe/answers.h"
#include "observe/options.h"
#include "servecast/result.h"
#include "workload/request_table.h"

namespace servecast {

struct Progress {
  std::int64_t sent = 0, answered = 0, at_once = 0;
};

struct ObserveRun {
  std::string model;
  std::uint64_t salt = 0;
  TimeNs horizon = kNever;                           // nothing is sent from then on
  const volatile std::sig_atomic_t* stop = nullptr;  // not 0: end now
  std::function<void(const Progress&)> progress;     // about once a second; may be empty
};

// The first model that the server names. Issues: it cannot be reached, or names none.
Result<std::string> FirstModel(const ObserveOptions& options);

// One small request after another, before the clock starts; an issue of the first that fails: then
// there is no server to observe.
std::optional<Issue> WarmUp(const ObserveOptions& options, const ObserveRun& run);

// Blocks until the last answer, or until the run is stopped: then what has not come whole is
// interrupted, and what was not sent is not among the answers. Requires: CheckRequests has nothing
// to say.
Observed Observe(const ObserveOptions& options, const RequestTable& table, const ObserveRun& run);

}  // namespace servecast
