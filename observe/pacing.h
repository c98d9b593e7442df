// When each request is to be sent: the scenario's own arrivals, turns that follow an answer,
// clients of a closed loop, under a cap of requests at once. Knows no clock and no network: it is
// told the time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast {

// A request whose time has come; ns since the run began.
struct DueRequest {
  std::int64_t row = 0;
  TimeNs due = 0;    // when it arrives by the scenario
  TimeNs ready = 0;  // when the cap had room for it, too; `due` without a wait
};

class Pacer {
 public:
  // `table` outlives it. `most_at_once` >= 1; nullopt: open loop, as many as there are.
  Pacer(const RequestTable& table, std::optional<std::int64_t> most_at_once);

  // When Take gives the next request; kNever: not before another has ended.
  TimeNs Next() const;
  // The one that will be next unless an answer brings an earlier one.
  std::optional<std::int64_t> Peek() const;
  // The next request that is due by `now`, in order of (due, row). O(log n).
  std::optional<DueRequest> Take(TimeNs now);
  // A request that was taken is over. One that was answered brings its session's next turn; a
  // session that is over frees its client of a closed loop. Requires: taken, once each.
  void Ended(std::int64_t row, TimeNs now, bool answered);
  // Nothing more is sent.
  void Stop();

  std::int64_t at_once() const { return at_once_; }
  bool Done() const { return due_.empty() && at_once_ == 0; }

 private:
  using Timed = std::pair<TimeNs, std::int64_t>;

  bool Full() const { return most_ && at_once_ >= *most_; }
  bool HasNextTurn(std::int64_t row) const;
  void FreeClient(TimeNs now);

  const RequestTable& table_;
  std::optional<std::int64_t> most_;
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> due_;
  std::int64_t at_once_ = 0;
  TimeNs room_since_ = 0;             // when the cap last had room again
  std::size_t waits_for_client_ = 0;  // before it, no row waits for a client
  bool stopped_ = false;
};

}  // namespace servecast
