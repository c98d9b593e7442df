#include "serving/replica/decode_group.h"

#include <algorithm>

namespace servecast {

GrowingWindows::GrowingWindows(std::int64_t block_size, const KvWindows& windows) {
  if (!windows.any()) return;
  const std::int64_t period = block_size * windows.every;
  units_ = windows.units;
  last_ = (CeilDiv(windows.most, windows.every) - 1) * period;
  due_.assign(static_cast<std::size_t>(period), 0);
  full_.assign(static_cast<std::size_t>(last_ + 1), 0);
}

void GrowingWindows::Change(std::int64_t step, std::int64_t computed, std::int64_t members) {
  if (none() || computed > last_) return;
  const std::int64_t at = step + last_ - computed;  // it takes the last one
  due_[At(due_, at)] += members;
  full_[At(full_, at)] += members;
}

void GrowingWindows::Clear() {
  std::fill(due_.begin(), due_.end(), 0);
  std::fill(full_.begin(), full_.end(), 0);
}

std::int64_t DecodeSums::Join(std::int64_t computed) {
  Change(computed, 1);
  return computed - next_.step;
}

void DecodeSums::Leave(std::int64_t ahead) { Change(next_.step + ahead, -1); }

// A block is due whenever the computed tokens fill those that are there.
void DecodeSums::Change(std::int64_t computed, std::int64_t members) {
  const auto size = static_cast<std::int64_t>(phase_.size());
  const std::int64_t blocks = CeilDiv(computed, size);
  next_.size += members;
  next_.context += members * computed;
  next_.blocks += members * blocks;
  std::size_t phase = next_.phase + static_cast<std::size_t>(blocks * size - computed);
  if (phase >= phase_.size()) phase -= phase_.size();
  phase_[phase] += members;
  growing_.Change(next_.step, computed, members);
}

void DecodeSums::Clear() {
  next_ = {};
  growing_.Clear();
  std::fill(phase_.begin(), phase_.end(), 0);
}

TimeNs DecodeGroup::QuietUntil(const LatencyModel& latency, TimeNs start,
                               std::int64_t free_blocks) const {
  constexpr std::int64_t kMost = 64;  // steps: what is sent meanwhile makes them others
  Point point = next();
  const std::int64_t steps = std::min(last_step() - point.step + 1, kMost);
  TimeNs time = start;
  for (std::int64_t i = 0; i < steps && Due(point) <= free_blocks; ++i) {
    free_blocks -= Due(point);
    time += latency.Price(Shape(point)).duration;
    Step(point);
  }
  return time;
}

}  // namespace servecast
