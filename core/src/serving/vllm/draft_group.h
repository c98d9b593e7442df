// Decodes that verify all drafts in every step, as sums and columns: what DecodeGroup is to decodes
// that advance by one token each.
//
// How many drafts are accepted is each sequence's own, so a step touches every member: but only to
// draw that number and to compare how far it is with two bounds, the end of its blocks and that of
// its calm. All the rest of a member is the same for all of them (the step before, the tokens
// computed), or is worked out as it leaves. Columns have one place a member; who leaves is replaced
// by the last, as the order is the scheduler's.
//
// Each step in flight has all members in it, and none of them ends by one: VllmScheduler takes
// those out in time, and all of them before a step for which tokens or blocks might not suffice.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "serving/replica/draft_rules.h"

namespace servecast {

class DraftGroup {
 public:
  using Place = std::int32_t;

  struct Member {
    std::int32_t id = 0;        // the scheduler's
    std::int64_t computed = 0;  // with what steps in flight compute, drafts included
    std::int64_t blocks = 0;
    std::int64_t last = 0;   // it may be in a step that begins with so many tokens computed
    std::int64_t draws = 0;  // so far
  };

  DraftGroup(const DraftRules& rules, const Acceptance& acceptance, std::int64_t block_size,
             std::size_t steps_in_flight)
      : acceptance_(acceptance),
        drafts_(rules.most),
        lookahead_(rules.lookahead),
        block_size_(block_size),
        by_step_(steps_in_flight) {}

  bool empty() const { return ids_.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  const std::vector<std::int32_t>& ids() const { return ids_; }
  std::int64_t drafts() const { return drafts_; }  // of each in each step
  std::int64_t tokens() const { return 1 + drafts_; }
  std::int64_t computed() const { return computed_sum_; }
  std::int64_t blocks() const { return blocks_sum_; }

  // A member, by its request's draws. `made` has, by the places of steps in flight, how many drafts
  // it has accepted in each.
  Place Join(const Member& member, RequestId request);
  std::int64_t ComputedOf(Place place) const { return computed_[At(place)]; }
  // In the step of that place, in flight or the last there; in the one that is being formed.
  std::int64_t AcceptedIn(std::size_t step, Place place) const { return by_step_[step][At(place)]; }
  std::int64_t AcceptedNow(Place place) const { return now_[At(place)]; }
  void SetAccepted(std::size_t step, Place place, std::int64_t accepted) {
    by_step_[step][At(place)] = static_cast<std::uint8_t>(accepted);
  }
  // The last member, if there is one, has its place then.
  Member Leave(Place place);

  // A member that may not be in another step; -1: all may.
  Place Ending() const;
  // Blocks that the next step needs.
  std::int64_t Due() const;

  // The next step begins: its blocks are taken, and its drafts' fate is drawn. How many of all are
  // accepted.
  std::int64_t Begin();
  // It was launched.
  void Launched(std::size_t step, TimeNs end) {
    by_step_[step].swap(now_);
    last_step_ = end;
  }
  // Its outputs are applied, at `end`.
  void Apply(std::size_t step, TimeNs end);
  // Of that step, how many members have accepted 0, 1 and so on.
  const std::vector<std::int64_t>& Tally(std::size_t step);

  TimeNs last_step() const { return last_step_; }    // end of the newest one
  TimeNs last_token() const { return last_token_; }  // all had one then
  // Of the first that joins.
  void StartAt(TimeNs last_step, TimeNs last_token) {
    last_step_ = last_step;
    last_token_ = last_token;
  }

 private:
  static std::size_t At(Place place) { return static_cast<std::size_t>(place); }

  const Acceptance& acceptance_;
  std::int64_t drafts_, lookahead_, block_size_;

  // By place. Tokens have 32 bits, as in a request table, so that compilers take several at once.
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> computed_, room_, last_;  // room: of its blocks, less the lookahead
  std::vector<std::uint64_t> keys_;                   // of the next draw
  std::vector<const std::uint64_t*> laws_;            // see Acceptance
  std::vector<std::int64_t> first_step_;              // steps_ less its draws as it came
  std::vector<std::vector<std::uint8_t>> by_step_;    // accepted, by a step's place
  std::vector<std::uint8_t> now_;                     // of the step that is being formed

  std::int64_t computed_sum_ = 0, blocks_sum_ = 0;
  std::int64_t steps_ = 0;  // begun so far
  TimeNs last_step_ = 0, last_token_ = 0;
  std::vector<std::int64_t> tally_;  // scratch
};

}  // namespace servecast
