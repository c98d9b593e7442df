// See pacing.h.
#include "observe/pacing.h"

#include <algorithm>

namespace servecast {

Pacer::Pacer(const RequestTable& table, std::optional<std::int64_t> most_at_once)
    : table_(table), most_(most_at_once) {
  for (std::int64_t row = 0; row < table.size(); ++row) {
    const auto r = static_cast<std::size_t>(row);
    const bool follows = !table.think.empty() && table.think[r] >= 0;
    const bool waits = !table.pause.empty() && table.pause[r] >= 0;
    if (!follows && !waits) due_.emplace(table.arrival[r], row);
  }
}

TimeNs Pacer::Next() const {
  if (due_.empty() || Full()) return kNever;
  return std::max(due_.top().first, room_since_);
}

std::optional<std::int64_t> Pacer::Peek() const {
  if (due_.empty()) return std::nullopt;
  return due_.top().second;
}

std::optional<DueRequest> Pacer::Take(TimeNs now) {
  if (Next() > now) return std::nullopt;
  const auto [due, row] = due_.top();
  const DueRequest taken{row, due, std::max(due, room_since_)};
  due_.pop();
  ++at_once_;
  return taken;
}

bool Pacer::HasNextTurn(std::int64_t row) const {
  const std::size_t next = static_cast<std::size_t>(row) + 1;
  return next < table_.think.size() && table_.think[next] >= 0;
}

void Pacer::Ended(std::int64_t row, TimeNs now, bool answered) {
  if (Full()) room_since_ = now;
  --at_once_;
  if (stopped_) return;
  if (answered && HasNextTurn(row)) {
    due_.emplace(now + table_.think[static_cast<std::size_t>(row) + 1], row + 1);
  } else {
    FreeClient(now);
  }
}

void Pacer::FreeClient(TimeNs now) {
  while (waits_for_client_ < table_.pause.size() && table_.pause[waits_for_client_] < 0) {
    ++waits_for_client_;
  }
  if (waits_for_client_ == table_.pause.size()) return;
  const TimeNs due = table_.due.empty() ? 0 : table_.due[waits_for_client_];
  due_.emplace(std::max(now + table_.pause[waits_for_client_], due),
               static_cast<std::int64_t>(waits_for_client_));
  ++waits_for_client_;
}

void Pacer::Stop() {
  stopped_ = true;
  due_ = {};
}

}  // namespace servecast
