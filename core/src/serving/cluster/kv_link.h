// The link over which KV blocks travel from prefill to decode replicas. A transfer waits for the
// base latency, then shares the bandwidth evenly with all others under way: processor sharing, in
// virtual time. Integers only, and rates change only when transfers come and go, so nothing depends
// on how often it is looked at.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/base.h"

namespace servecast {

class KvLink {
 public:
  // A base latency of 0 counts as 1 ns: nothing arrives at the moment it starts.
  KvLink(TimeNs base_latency, std::int64_t bytes_per_s);

  // Requires: times in order, and none later than Next().
  void Start(RequestId request, std::int64_t bytes, TimeNs time);
  // The transfer ends before it is done, and others share what it had. False: there is none.
  bool Stop(RequestId request, TimeNs time);
  // When a transfer next begins to flow or arrives; kNever.
  TimeNs Next() const;
  // Goes on to Next(): what arrives then, in order of their ids. Requires: there is a next.
  const std::vector<RequestId>& Pass();

 private:
  // A billionth of a byte: at one byte a second, what flows in 1 ns.
  struct Transfer {
    TimeNs begins = 0;
    RequestId request = kNoRequest;
    WideInt work = 0;
  };
  struct Flow {
    WideInt ends = 0;  // in virtual time: what each has had of the link
    RequestId request = kNoRequest;
  };
  void PassTo(TimeNs time);
  static bool Later(const Flow& a, const Flow& b) { return a.ends > b.ends; }

  TimeNs latency_;
  std::int64_t rate_;
  std::deque<Transfer> waiting_;  // for the latency, in order
  std::vector<Flow> flows_;       // heap
  WideInt virtual_ = 0;           // at since_
  TimeNs since_ = 0;
  std::vector<RequestId> arrived_;
};

}  // namespace servecast
