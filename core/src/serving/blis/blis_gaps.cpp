// See blis_gaps.h.
#include "serving/blis/blis_gaps.h"

#include <algorithm>

namespace servecast {
namespace {

// February forgets no gap when it preempts, and may preempt for ever: what is kept is bounded by
// the number of different ones.
void AddEarlier(BlisGaps::OfRequest& of, BlisGaps::Us gap) {
  auto& gaps = of.earlier;
  if (!gaps.empty() && gaps.back().first == gap) {
    ++gaps.back().second;
    return;
  }
  if (gaps.size() == of.most) {
    std::sort(gaps.begin(), gaps.end());
    std::size_t kept = 0;
    for (const auto& next : gaps) {
      if (kept > 0 && gaps[kept - 1].first == next.first) {
        gaps[kept - 1].second += next.second;
      } else {
        gaps[kept++] = next;
      }
    }
    gaps.resize(kept);
    of.most = std::max<std::size_t>(1024, 2 * kept);
  }
  gaps.push_back({gap, 1});
}

}  // namespace

void BlisGaps::Forget(OfRequest& of) const {
  of.earlier.clear();
  of.from = of.to = steps();
}

void BlisGaps::Close(OfRequest& of) const {
  for (std::int64_t step = of.from; step < of.to; ++step) {
    AddEarlier(of, until_[Place(step) + 1] - until_[Place(step)]);
  }
  of.from = of.to = steps();
}

BlisGaps::Us BlisGaps::SumOf(const OfRequest& of, Us start) const {
  Us sum = start;
  const auto add = [&sum](Us gap, std::int64_t times) {
    const bool fits = gap == 0 || times <= (BlisEvents::kLastUs - sum) / gap;
    sum = fits ? sum + gap * times : BlisEvents::kLastUs;
  };
  if (of.from < of.to) add(until_[Place(of.to)] - until_[Place(of.from)], 1);
  for (const auto& [gap, times] : of.earlier) add(gap, times);
  return sum;
}

void BlisGaps::Count(const OfRequest& of, TimeNs time, Recorder& recorder) {
  if (time < warmup_) return;
  for (const auto& [gap, times] : of.earlier) recorder.InterTokenGap(time, gap * 1000, times);
  if (of.from == of.to) return;
  ++change_[Place(of.from)];
  --change_[Place(of.to)];
  counted_ = true;
}

void BlisGaps::WriteTo(Recorder& recorder) {
  if (!counted_) return;
  counted_ = false;
  Us gap = 0;
  std::int64_t requests = 0, times = 0;
  for (std::size_t i = 0; i < change_.size(); ++i) {
    requests += std::exchange(change_[i], 0);
    const Us next = i + 1 < until_.size() ? until_[i + 1] - until_[i] : -1;
    if (next != gap) {
      if (times > 0) recorder.InterTokenGap(kNever, gap * 1000, times);
      gap = next;
      times = 0;
    }
    times += requests;
  }
}

void BlisGaps::DropBefore(std::int64_t oldest, Recorder& recorder) {
  WriteTo(recorder);
  const auto drop = static_cast<std::ptrdiff_t>(oldest - first_);
  until_.erase(until_.begin(), until_.begin() + drop);
  change_.erase(change_.begin(), change_.begin() + drop);
  first_ = oldest;
  most_ = std::max<std::size_t>(1024, 2 * change_.size());
}

}  // namespace servecast
