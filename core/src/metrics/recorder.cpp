// See recorder.h.
#include "metrics/recorder.h"

#include <algorithm>

namespace servecast {

std::size_t Recorder::BinOf(TimeNs time) {
  while (time / width_ >= kBins) {
    for (std::size_t i = 0; i < kBins / 2; ++i) {
      const SeriesBin& a = bins_[2 * i];
      const SeriesBin& b = bins_[2 * i + 1];
      bins_[i] = {a.running + b.running,
                  a.waiting + b.waiting,
                  a.kv_blocks + b.kv_blocks,
                  a.batch_tokens + b.batch_tokens,
                  a.output_tokens + b.output_tokens,
                  a.preemptions + b.preemptions};
    }
    std::fill(bins_.begin() + kBins / 2, bins_.end(), SeriesBin{});
    width_ *= 2;
    bin_end_ = 0;  // the cached bin moved
  }
  return static_cast<std::size_t>(time / width_);
}

void Recorder::AddLevel(TimeNs from, TimeNs to, std::int64_t level, WideInt SeriesBin::*member) {
  BinOf(to);  // widen first, so that the loop below is bounded by kBins
  for (TimeNs t = from; t < to;) {
    const std::size_t bin = BinOf(t);
    const TimeNs end = std::min(to, (static_cast<TimeNs>(bin) + 1) * width_);
    bins_[bin].*member += WideInt{level} * (end - t);
    t = end;
  }
}

void Recorder::StepAcrossBins(TimeNs start, TimeNs end, const StepLevels& levels,
                              std::int64_t sampled) {
  AddLevel(start, end, levels.running, &SeriesBin::running);
  AddLevel(start, end, levels.kv_blocks, &SeriesBin::kv_blocks);
  AddLevel(start, end, levels.batch_tokens, &SeriesBin::batch_tokens);
  bin_ = BinOf(end);
  bins_[bin_].output_tokens += sampled;
  bin_start_ = static_cast<TimeNs>(bin_) * width_;
  bin_end_ = bin_start_ + width_;
}

std::vector<SeriesBin> Recorder::BinsUpTo(TimeNs now, TimeNs* width) const {
  Recorder copy(0);
  copy.bins_ = bins_;
  copy.width_ = width_;
  if (now > waiting_since_ && waiting_ > 0) {
    copy.AddLevel(waiting_since_, now, waiting_, &SeriesBin::waiting);
  }
  std::size_t used = copy.BinOf(now) + 1;
  *width = copy.width_;
  if (now % copy.width_ == 0) {  // events at `now` belong to the last bin that has a duration
    --used;
    if (used > 0) {
      copy.bins_[used - 1].output_tokens += copy.bins_[used].output_tokens;
      copy.bins_[used - 1].preemptions += copy.bins_[used].preemptions;
    }
  }
  copy.bins_.resize(used);
  return copy.bins_;
}

}  // namespace servecast
