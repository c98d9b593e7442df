// What BLIS's rules keep of each request from its first admission to its end, preempted or not.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/base.h"
#include "serving/blis/blis_events.h"
#include "serving/blis/blis_gaps.h"
#include "serving/blis/blis_kv.h"

namespace servecast {

using SeatId = std::int32_t;
inline constexpr SeatId kNoSeat = -1;

// A place in the batch, whose order is that of admission.
struct BlisMember {
  std::int64_t order = 0;  // no two admissions have the same
  SeatId seat = kNoSeat;

  static bool Before(const BlisMember& a, const BlisMember& b) { return a.order < b.order; }
};

// By what the sums of BlisDecodes say of a member.
struct BlisTrack {
  std::int64_t ahead = 0;  // computed tokens minus steps
  std::size_t phase = 0;   // of the steps at which it needs a block
  bool counted = false;    // nobody sees the names of its blocks: they are told later
};

struct BlisSeat {
  using Us = BlisEvents::Us;

  RequestId request = kNoRequest;
  std::int64_t order = 0;  // in the batch, while it is there
  bool summed = false;     // its decodes are in BlisDecodes, where `track` says
  BlisTrack track;
  // Tokens processed: of the prompt, then one per decode. If summed, so many `holding` was told of.
  std::int64_t progress = 0;
  std::int64_t computed = 0;  // progress after the present step, while in prefill
  std::int64_t granted = 0;   // tokens of the present step
  bool fresh = false;         // admitted to the present step
  Us last_step = -1;          // its end, if not summed; -1: it was in none
  bool has_first = false;
  Us first_token = 0;  // after arrival
  double priority = 0;
  BlisGaps::OfRequest gaps;
  BlisKv::Holding holding;
};

class BlisSeats {
 public:
  explicit BlisSeats(std::int64_t requests)
      : seat_of_(static_cast<std::size_t>(requests), kNoSeat) {}

  BlisSeat& At(SeatId id) { return seats_[static_cast<std::size_t>(id)]; }
  const BlisSeat& At(SeatId id) const { return seats_[static_cast<std::size_t>(id)]; }

  // kNoSeat: it has none.
  SeatId Of(RequestId request) const { return seat_of_[static_cast<std::size_t>(request)]; }

  // Requires: it has none. A used seat gives its memory.
  SeatId Take(RequestId request) {
    if (free_.empty()) {
      free_.push_back(static_cast<SeatId>(seats_.size()));
      seats_.emplace_back();
    }
    const SeatId id = free_.back();
    free_.pop_back();
    BlisSeat fresh;
    fresh.request = request;
    fresh.gaps.earlier.swap(At(id).gaps.earlier);
    fresh.gaps.earlier.clear();
    fresh.holding.pieces.swap(At(id).holding.pieces);
    fresh.holding.pieces.clear();
    At(id) = std::move(fresh);
    seat_of_[static_cast<std::size_t>(request)] = id;
    return id;
  }

  void Free(SeatId id) {
    seat_of_[static_cast<std::size_t>(At(id).request)] = kNoSeat;
    free_.push_back(id);
  }

 private:
  std::vector<SeatId> seat_of_;  // by request
  std::vector<BlisSeat> seats_;
  std::vector<SeatId> free_;
};

}  // namespace servecast
