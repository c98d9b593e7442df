// What a run adds up as it goes: integers only, cut by simulated time alone, so that neither the
// length of a slice nor of a decode run can change a result. Bounded: the series has kBins bins,
// which double in width when time outgrows them, or one that has all.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/base.h"
#include "metrics/causes.h"
#include "metrics/samples.h"

namespace servecast {

// What steps have to do, in counts that bytes and FLOPs are proportional to.
struct Work {
  std::int64_t tokens = 0;
  WideInt decode_keys = 0;    // tokens that decodes attend to
  WideInt prefill_keys = 0;   // tokens whose K and V prefills read
  WideInt prefill_pairs = 0;  // of a query and a key, in their attention
  // In units of 2^-20: reads of all weights but experts, of one expert in all layers, and steps
  // that make no token and so need no LM head.
  std::int64_t steps = 0, without_head = 0;
  WideInt experts = 0;

  void Add(const Work& other);
};
inline constexpr int kStepBits = 20;
inline constexpr std::int64_t kStepUnit = std::int64_t{1} << kStepBits;

struct SeriesBin {
  WideInt running = 0, waiting = 0, kv_blocks = 0, batch_tokens = 0;  // integrals over the bin
  WideInt busy = 0;                                                   // ns in which steps ran
  std::int64_t output_tokens = 0, preemptions = 0;                    // events in the bin
  Work work;

  void Add(const SeriesBin& other);
};

// The levels of a replica while a step runs.
struct StepLevels {
  std::int64_t running = 0, kv_blocks = 0, batch_tokens = 0;
  std::int64_t decode_keys = 0;  // tokens that the step's decodes attend to
  std::int64_t kv_unused = 0;    // tokens that the KV blocks have room for and do not hold
  std::int64_t in_turn = 0;      // requests whose step before ended as this one starts
};

// The prefills of a step.
struct PrefillWork {  // without keys the others do not count
  std::int64_t pairs = 0, keys = 0;
  std::int64_t without_head = 0;  // kStepUnit when the step makes no token
};

// What is kept beside the sums of a run: its course over time, and samples of waits between tokens
// and between steps.
struct Recorded {
  bool series = true, gaps = true;
};

class Recorder {
 public:
  static constexpr int kBins = 512;

  // `experts_read[n]`: by a step of n tokens, in 2^-20; more tokens read as many as the last.
  // Empty: there are none. Without a series its sums are the same, of one bin.
  explicit Recorder(TimeNs warmup, std::vector<std::int64_t> experts_read = {},
                    Recorded recorded = {})
      : warmup_(warmup),
        samples_from_(recorded.gaps ? warmup : kNever),
        experts_read_(std::move(experts_read)),
        bins_(recorded.series ? kBins : 1) {
    if (!recorded.series) width_ = kWidest;
  }

  // A step ran over [start, end) and made `sampled` output tokens at its end. Requires: steps in
  // order, not overlapping.
  void Step(TimeNs start, TimeNs end, const StepLevels& levels, std::int64_t sampled,
            StepBound bound, BlockedBy blocked, const PrefillWork& prefill = {}) {
    const TimeNs duration = end - start;
    busy_ns_ += duration;
    bound_ns_[static_cast<std::size_t>(bound)] += duration;
    blocked_ns_[static_cast<std::size_t>(blocked)] += duration;
    peak_kv_blocks_ = levels.kv_blocks > peak_kv_blocks_ ? levels.kv_blocks : peak_kv_blocks_;
    peak_kv_unused_ = levels.kv_unused > peak_kv_unused_ ? levels.kv_unused : peak_kv_unused_;
    kv_unused_ += Product(levels.kv_unused, duration);
    if (start >= warmup_) in_turn_ += levels.in_turn;
    ++steps_;
    output_tokens_ += sampled;
    if (end > warmup_) measured_tokens_ += sampled;
    if (end >= bin_end_ || start < bin_start_) {
      StepAcrossBins(start, end, levels, sampled, prefill);
      return;
    }
    SeriesBin& bin = bins_[bin_];
    bin.busy += duration;
    bin.running += Product(levels.running, duration);
    bin.kv_blocks += Product(levels.kv_blocks, duration);
    bin.batch_tokens += Product(levels.batch_tokens, duration);
    bin.output_tokens += sampled;
    bin.work.tokens += levels.batch_tokens;
    bin.work.decode_keys += levels.decode_keys;
    bin.work.steps += kStepUnit;
    if (!experts_read_.empty()) bin.work.experts += ExpertsRead(levels.batch_tokens);
    if (prefill.keys == 0) return;
    bin.work.prefill_pairs += prefill.pairs;
    bin.work.prefill_keys += prefill.keys;
    bin.work.without_head += prefill.without_head;
  }

  // Output tokens that steps made which overlap, and so count with none of them (Step's `sampled`
  // is 0). Requires: `time` is not before any step's start.
  void Tokens(TimeNs time, std::int64_t count) {
    output_tokens_ += count;
    if (time > warmup_) measured_tokens_ += count;
    bins_[BinOf(time)].output_tokens += count;
  }

  // `tokens` tokens came `gap` after the ones before them, at `time`.
  void InterTokenGap(TimeNs time, TimeNs gap, std::int64_t tokens) {
    if (time >= samples_from_) itl_.Add(gap, tokens);
  }

  // `requests` began a step at `time`, `wait` after the end of their step before; those of no wait
  // may be in StepLevels instead.
  void StepDelay(TimeNs time, TimeNs wait, std::int64_t requests) {
    if (time < samples_from_ || requests == 0) return;
    if (wait > 0) {
      step_delays_.Add(wait, requests);
    } else {
      in_turn_ += requests;
    }
  }

  // So many times KV blocks were asked for and there were not enough.
  void BlocksRefused(std::int64_t times) { blocks_refused_ += times; }

  // The queue's length changed. Requires: times in order.
  void Waiting(TimeNs time, std::int64_t length) {
    if (time > waiting_since_ && waiting_ > 0) {
      AddLevel(waiting_since_, time, waiting_, &SeriesBin::waiting);
    }
    waiting_since_ = time > waiting_since_ ? time : waiting_since_;
    waiting_ = length;
  }

  // A request is enqueued; it leaves, with its last token, given up, or for another replica.
  void Came(TimeNs time) {
    in_system_ -= time;
    ++present_;
  }
  void Left(TimeNs time) {
    in_system_ += time;
    --present_;
  }
  // The number of requests that came and have not left, integrated up to `now`.
  WideInt InSystem(TimeNs now) const { return in_system_ + WideInt{present_} * now; }

  void Preempted(TimeNs time) {
    ++preemptions_;
    ++bins_[BinOf(time)].preemptions;
  }

  // Another replica's record, its queue integrated up to `end`; levels add up, the peak is the
  // highest of any. O(bins + samples). Requires: it has a series if this has one.
  void Add(const Recorder& other, TimeNs end);

  // To bins as wide as the other's, if those are wider.
  void WidenTo(const Recorder& other) {
    while (width_ < other.width_) Widen();
  }

  void ReserveGaps(std::int64_t count) { itl_.Reserve(count); }

  std::int64_t steps() const { return steps_; }
  std::int64_t preemptions() const { return preemptions_; }
  std::int64_t output_tokens() const { return output_tokens_; }
  std::int64_t measured_tokens() const { return measured_tokens_; }  // after the warm-up
  TimeNs busy_ns() const { return busy_ns_; }
  TimeNs bound_ns(StepBound bound) const { return bound_ns_[static_cast<std::size_t>(bound)]; }
  TimeNs blocked_ns(BlockedBy by) const { return blocked_ns_[static_cast<std::size_t>(by)]; }
  std::int64_t peak_kv_blocks() const { return peak_kv_blocks_; }
  std::int64_t peak_kv_unused() const { return peak_kv_unused_; }
  WideInt kv_unused() const { return kv_unused_; }  // tokens times ns
  std::int64_t blocks_refused() const { return blocks_refused_; }
  std::int64_t in_turn() const { return in_turn_; }
  const WeightedSamples& step_delays() const { return step_delays_; }  // above 0
  std::int64_t waiting() const { return waiting_; }
  const WeightedSamples& itl() const { return itl_; }
  // The bins with the queue's level integrated up to `now`; bin i covers [i, i+1) * *width.
  std::vector<SeriesBin> BinsUpTo(TimeNs now, TimeNs* width) const;

 private:
  std::size_t BinOf(TimeNs time);
  static constexpr TimeNs kWidest = kNever;

  void Widen();
  void Unite();
  void StepAcrossBins(TimeNs start, TimeNs end, const StepLevels& levels, std::int64_t sampled,
                      const PrefillWork& prefill);
  void AddLevel(TimeNs from, TimeNs to, std::int64_t level, WideInt SeriesBin::*member);

  std::int64_t ExpertsRead(std::int64_t tokens) const {
    const auto last = static_cast<std::int64_t>(experts_read_.size()) - 1;
    return experts_read_[static_cast<std::size_t>(tokens < last ? tokens : last)];
  }

  TimeNs warmup_, samples_from_;
  std::vector<std::int64_t> experts_read_;
  std::vector<SeriesBin> bins_;
  TimeNs width_ = TimeNs{1} << 20;  // about 1 ms
  std::size_t bin_ = 0;             // of the last step's end
  TimeNs bin_start_ = 0, bin_end_ = 0;
  WeightedSamples itl_;
  std::array<TimeNs, kStepBounds> bound_ns_{};
  std::array<TimeNs, kBlockedBy> blocked_ns_{};
  TimeNs busy_ns_ = 0, waiting_since_ = 0;
  std::int64_t waiting_ = 0, steps_ = 0, preemptions_ = 0, output_tokens_ = 0, peak_kv_blocks_ = 0;
  std::int64_t measured_tokens_ = 0;
  std::int64_t peak_kv_unused_ = 0, blocks_refused_ = 0, in_turn_ = 0;
  WideInt kv_unused_ = 0, in_system_ = 0;
  std::int64_t present_ = 0;
  WeightedSamples step_delays_;
};

}  // namespace servecast
