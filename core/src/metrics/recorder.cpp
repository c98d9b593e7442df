// See recorder.h.
#include "metrics/recorder.h"

#include <algorithm>

namespace servecast {

namespace {

template <class Change>
void Each(Work& a, const Work& b, Change change) {
  change(a.tokens, b.tokens);
  change(a.decode_keys, b.decode_keys);
  change(a.prefill_keys, b.prefill_keys);
  change(a.prefill_pairs, b.prefill_pairs);
  change(a.steps, b.steps);
  change(a.without_head, b.without_head);
  change(a.experts, b.experts);
}

}  // namespace

void Work::Add(const Work& other) {
  Each(*this, other, [](auto& sum, auto more) { sum += more; });
}

void SeriesBin::Add(const SeriesBin& other) {
  running += other.running;
  waiting += other.waiting;
  kv_blocks += other.kv_blocks;
  batch_tokens += other.batch_tokens;
  busy += other.busy;
  output_tokens += other.output_tokens;
  preemptions += other.preemptions;
  work.Add(other.work);
}

// Two bins become one.
void Recorder::Widen() {
  for (std::size_t i = 0; i < kBins / 2; ++i) {
    SeriesBin bin = bins_[2 * i];
    bin.Add(bins_[2 * i + 1]);
    bins_[i] = bin;
  }
  std::fill(bins_.begin() + kBins / 2, bins_.end(), SeriesBin{});
  width_ *= 2;
  bin_end_ = 0;  // the cached bin moved
}

// All bins as one.
void Recorder::Unite() {
  for (std::size_t i = 1; i < bins_.size(); ++i) bins_[0].Add(bins_[i]);
  bins_.resize(1);
  width_ = kWidest;
}

std::size_t Recorder::BinOf(TimeNs time) {
  while (time / width_ >= kBins) Widen();
  return static_cast<std::size_t>(time / width_);
}

void Recorder::Add(const Recorder& other, TimeNs end) {
  Recorder one = other;
  one.Waiting(end, one.waiting_);
  if (bins_.size() == 1) one.Unite();
  while (one.width_ < width_) one.Widen();
  while (width_ < one.width_) Widen();
  for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i].Add(one.bins_[i]);
  itl_.Add(one.itl_);
  for (std::size_t i = 0; i < bound_ns_.size(); ++i) bound_ns_[i] += one.bound_ns_[i];
  for (std::size_t i = 0; i < blocked_ns_.size(); ++i) blocked_ns_[i] += one.blocked_ns_[i];
  busy_ns_ += one.busy_ns_;
  waiting_since_ = end;
  waiting_ += one.waiting_;
  steps_ += one.steps_;
  preemptions_ += one.preemptions_;
  output_tokens_ += one.output_tokens_;
  measured_tokens_ += one.measured_tokens_;
  peak_kv_blocks_ = std::max(peak_kv_blocks_, one.peak_kv_blocks_);
  peak_kv_unused_ = std::max(peak_kv_unused_, one.peak_kv_unused_);
  blocks_refused_ += one.blocks_refused_;
  in_turn_ += one.in_turn_;
  kv_unused_ += one.kv_unused_;
  in_system_ += one.in_system_;
  present_ += one.present_;
  step_delays_.Add(one.step_delays_);
}

void Recorder::AddLevel(TimeNs from, TimeNs to, std::int64_t level, WideInt SeriesBin::*member) {
  if (from >= bin_start_ && to < bin_end_) {
    bins_[bin_].*member += WideInt{level} * (to - from);
    return;
  }
  BinOf(to);  // widen first, so that the loop below is bounded by kBins
  for (TimeNs t = from; t < to;) {
    const std::size_t bin = BinOf(t);
    const TimeNs end = std::min(to, (static_cast<TimeNs>(bin) + 1) * width_);
    bins_[bin].*member += WideInt{level} * (end - t);
    t = end;
  }
}

// Work goes evenly over the step's time, but for what rounding leaves to its last bin.
void Recorder::StepAcrossBins(TimeNs start, TimeNs end, const StepLevels& levels,
                              std::int64_t sampled, const PrefillWork& prefill) {
  Work work;
  work.tokens = levels.batch_tokens;
  work.decode_keys = levels.decode_keys;
  work.steps = kStepUnit;
  if (prefill.keys > 0) {
    work.prefill_keys = prefill.keys;
    work.prefill_pairs = prefill.pairs;
    work.without_head = prefill.without_head;
  }
  if (!experts_read_.empty()) work.experts = ExpertsRead(levels.batch_tokens);
  Work rest = work;
  bin_ = BinOf(end);
  std::size_t at = BinOf(start);
  for (TimeNs t = start; t < end; ++at) {
    SeriesBin& bin = bins_[at];
    const TimeNs until = std::min(end, (static_cast<TimeNs>(at) + 1) * width_);
    const WideInt duration = until - t;
    bin.busy += duration;
    bin.running += levels.running * duration;
    bin.kv_blocks += levels.kv_blocks * duration;
    bin.batch_tokens += levels.batch_tokens * duration;
    if (until < end) {
      // Of 2^20. A quotient of doubles is the same everywhere, and cannot overflow.
      const auto share = static_cast<std::int64_t>(static_cast<double>(until - t) /
                                                   static_cast<double>(end - start) * 0x1p20);
      Work part;
      Each(part, work, [share](auto& of, auto whole) { of = (whole * share) >> 20; });
      Each(rest, part, [](auto& left, auto gone) { left -= gone; });
      bin.work.Add(part);
    } else {
      bin.work.Add(rest);
    }
    t = until;
  }
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
