// The gaps between output tokens, which BLIS counts when a request completes. All requests that
// make a token in a step have the same gap there. So a gap is kept once a step, and of a request
// only the steps from and to which it made tokens in a row; what the completed ones add up to is
// told to the recorder once for each step.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "metrics/recorder.h"
#include "serving/blis/blis_events.h"

namespace servecast {

class BlisGaps {
 public:
  using Us = BlisEvents::Us;

  struct OfRequest {
    std::int64_t from = 0, to = 0;                     // the latest steps in a row: [from, to)
    std::vector<std::pair<Us, std::int64_t>> earlier;  // (gap, how often)
    std::size_t most = 1024;                           // then equal ones of `earlier` are merged
  };

  // Requests that complete before `warmup` do not count.
  explicit BlisGaps(TimeNs warmup) : warmup_(warmup) {}

  std::int64_t steps() const { return first_ + static_cast<std::int64_t>(change_.size()) - 1; }

  // A step ends: all requests that make a token in it have this gap.
  void Add(Us gap) {
    until_.push_back(until_.back() + gap);
    change_.push_back(0);
  }

  // The request makes a token in each step from the next one on, until ContinuesTo.
  void ContinueFromNext(OfRequest& of) const { Continue(of, steps()); }
  // It made one in the step that was added last.
  void MadeOne(OfRequest& of) const {
    Continue(of, steps() - 1);
    of.to = steps();
  }
  void Forget(OfRequest& of) const;
  // The latest steps in a row become earlier ones. O(steps).
  void Close(OfRequest& of) const;

  // Their sum and `start`, within the clock.
  Us SumOf(const OfRequest& of, Us start) const;
  // The request completes at `time`.
  void Count(const OfRequest& of, TimeNs time, Recorder& recorder);

  // Tells the recorder what was counted since. O(steps that are kept) when there is something.
  void WriteTo(Recorder& recorder);
  // Too many steps are kept; those before `oldest`, which no request has in a row, can go.
  bool IsLong() const { return change_.size() > most_; }
  void DropBefore(std::int64_t oldest, Recorder& recorder);

 private:
  std::size_t Place(std::int64_t step) const { return static_cast<std::size_t>(step - first_); }
  void Continue(OfRequest& of, std::int64_t step) const {
    if (of.to == step && of.from < of.to) return;
    Close(of);
    of.from = of.to = step;
  }

  TimeNs warmup_;
  std::int64_t first_ = 0;       // number of the first step that is kept
  std::vector<Us> until_ = {0};  // sum of the gaps before each step, and before the next one
  std::vector<std::int64_t> change_ = {
      0};  // at each step, of those completed ones that had its gap
  bool counted_ = false;
  std::size_t most_ = 1024;
};

}  // namespace servecast
