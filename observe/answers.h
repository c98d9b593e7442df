// What became of each request that was sent, and when one is sent again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"

namespace servecast {

enum class Outcome : std::uint8_t {
  kAnswered,     // whole
  kRefused,      // 429 or 503
  kStatus,       // any other status than 200
  kUnconnected,  // no connection, or it broke before the first token
  kCutShort,     // the stream ended early
  kMalformed,    // it is no stream of completions, has an error in it, or says too much
  kTimedOut,     // longer than --timeout, or silent for longer than --stall
  kGaveUp,       // its client had no more patience, as the scenario says
  kInterrupted,  // the run was ended from outside
};
inline constexpr std::array<const char*, 9> kOutcomeNames = {
    "answered",  "refused",   "status",  "unconnected", "cut_short",
    "malformed", "timed_out", "gave_up", "interrupted"};

// ns since the run began, of the monotonic clock. `sent`, `connect` and `tokens` are of the last
// try.
struct Answer {
  std::int64_t row = 0;
  TimeNs due = 0, ready = 0;   // as DueRequest has them
  TimeNs first_sent = 0;       // of the first try: `first_sent` - `ready` is how late we were
  TimeNs connect = 0;          // until there was a connection
  TimeNs sent = 0, ended = 0;  // on it
  std::int32_t tries = 0;
  std::vector<TimeNs> tokens;  // when each chunk of output came, usually one token
  std::optional<std::int64_t> prompt_tokens, output_tokens;  // by the server's count
  Outcome outcome = Outcome::kInterrupted;
  std::string error;  // of the last try, in words; "" when answered

  std::int64_t OutputTokens() const {
    return output_tokens.value_or(static_cast<std::int64_t>(tokens.size()));
  }
};

// How a run went beside its answers.
struct Observed {
  std::vector<Answer> answers;  // in order of their rows
  bool interrupted = false;
  TimeNs duration = 0;            // from the first request to the last answer
  double started_at_s = 0;        // since 1970, by the wall clock
  double wall_clock_moved_s = 0;  // by how much more than the monotonic one, until the end
  std::optional<std::pair<double, double>> server_ahead_s;  // its clock, between these bounds
  TimeNs longest_turn = 0;  // between two looks at the connections: no token's time is further off
};

// How long to wait before the next try, after try number `tries` ended so; nullopt: no other.
// Only what never began to be answered is sent again. `retry_after_s`: as the server asks; 0:
// nothing. Waits double from a quarter of a second, up to a minute, each spread by half.
std::optional<TimeNs> RetryWait(Outcome outcome, std::int32_t tries, std::int64_t retries,
                                double retry_after_s, std::int64_t row);

// Bounds on by how much a server's clock is ahead, from the Date of its answers, which is whole
// seconds and may be a second old.
class ServerClock {
 public:
  // Wall clock of this machine, in seconds: sent, and when the answer's head came.
  void Add(double sent_s, double received_s, double date_s);
  // nullopt: no answer had a date, or they contradict each other, as when a clock was set.
  std::optional<std::pair<double, double>> Ahead() const;

 private:
  bool any_ = false;
  double low_ = 0, high_ = 0;
};

}  // namespace servecast
