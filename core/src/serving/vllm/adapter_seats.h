// Seats of LoRA adapters (vLLM's max_loras): which adapters the step that is being formed has, and
// who was overtaken in the queue for want of a seat (rule S29 of the golden traces with drafts).
// Hides in which order those set aside come, and that a long queue of them is not walked.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "base/base.h"
#include "serving/batch.h"

namespace servecast {

class AdapterSeats {
 public:
  // A place among those set aside: in the order of the queue.
  struct Place {
    double key = -std::numeric_limits<double>::infinity();
    TimeNs arrival = 0;
    std::int64_t order = -1;  // by a key the request's number; -1: none yet
    RequestId request = kNoRequest;

    friend bool operator<(const Place& a, const Place& b) {
      if (a.key != b.key) return a.key < b.key;
      return a.arrival != b.arrival ? a.arrival < b.arrival : a.order < b.order;
    }
  };

  // `adapters`: of each request, 0 none; or empty. It outlives this.
  AdapterSeats(std::int64_t seats, const std::vector<std::int32_t>& adapters)
      : seats_(seats), adapter_of_(adapters) {}

  bool any() const { return seats_ > 0; }
  bool any_used() const { return any() && !adapter_of_.empty(); }
  std::int32_t Of(RequestId request) const {
    return adapter_of_.empty() ? 0 : adapter_of_[static_cast<std::size_t>(request)];
  }

  // ---- Those who are in every step: members of a group of decodes ----
  void JoinGroup(RequestId request) { CountInGroup(Of(request), 1); }
  void LeaveGroup(RequestId request) { CountInGroup(Of(request), -1); }
  // Of a step of nobody else, which computes so many tokens of each.
  AdapterWork OfGroup(std::int64_t tokens) const {
    return {static_cast<std::int64_t>(group_.size()), members_ * tokens};
  }

  // ---- The step that is being formed ----
  // It has the adapters of the group; nobody set aside was looked at yet.
  void BeginStep();
  void Add(RequestId request);  // its adapter, too
  std::int64_t adapters() const { return static_cast<std::int64_t>(taken_.size()); }
  // Whether it needs no other seat than there is.
  bool MaySeat(RequestId request) const;

  // ---- Those set aside ----
  std::int64_t waiting() const { return static_cast<std::int64_t>(aside_.size()); }
  // The next that may be seated, of those behind the latest that was looked at; nullptr: none.
  const Place* Next() const;
  // If it is one of them, it was looked at and leaves.
  bool Take(RequestId request);
  // At its place; without an order behind those that are. It was looked at.
  void SetAside(Place place);
  // False: it is not among them.
  bool Remove(RequestId request);

 private:
  struct OfAdapter {
    std::int32_t lora = 0;
    std::int64_t members = 0;
  };

  bool AllTaken() const { return adapters() >= seats_; }
  void CountInGroup(std::int32_t lora, std::int64_t more);

  std::int64_t seats_;
  const std::vector<std::int32_t>& adapter_of_;

  std::vector<OfAdapter> group_;     // whose members are in the group
  std::int64_t members_ = 0;         // these members
  std::vector<std::int32_t> taken_;  // of the step: few, as no more than there are seats
  Place seen_;                       // up to it they are passed over in this step
  std::set<Place> aside_;
  std::vector<std::set<Place>> aside_of_;  // the same by adapter
  std::map<RequestId, Place> place_of_;
};

}  // namespace servecast
