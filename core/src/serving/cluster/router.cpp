#include "serving/cluster/router.h"

namespace servecast {

ReplicaLoads::ReplicaLoads(std::int64_t replicas)
    : outstanding_(static_cast<std::size_t>(replicas), 0),
      by_load_(static_cast<std::int32_t>(replicas)),
      engines_(static_cast<std::size_t>(replicas)) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(replicas); ++i) by_load_.Push(i, 0, i);
}

void ReplicaLoads::Change(std::int32_t replica, std::int64_t by) {
  std::int64_t& outstanding = outstanding_[static_cast<std::size_t>(replica)];
  outstanding += by;
  total_ += by;
  if (!by_load_.Has(replica)) return;
  by_load_.Remove(replica);
  by_load_.Push(replica, outstanding, replica);
}

void ReplicaLoads::Add() {
  if (available_.empty() && off_ == 0) {  // from now on by name
    for (std::size_t i = 0; i < outstanding_.size(); ++i) {
      available_.push_back(static_cast<std::int32_t>(i));
    }
  }
  outstanding_.push_back(0);
  engines_.emplace_back();
  by_load_.Grow();
  ++off_;
}

void ReplicaLoads::SetAvailable(std::int32_t replica, bool available) {
  if (by_load_.Has(replica) == available) return;
  if (available) {
    by_load_.Push(replica, Outstanding(replica), replica);
  } else {
    by_load_.Remove(replica);
  }
  available_.clear();
  off_ = 0;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(outstanding_.size()); ++i) {
    if (by_load_.Has(i)) {
      available_.push_back(i);
    } else {
      ++off_;
    }
  }
}

std::int32_t ReplicaOfKey(std::uint64_t key, std::int64_t replicas) {
  std::int64_t chosen = -1, next = 0;
  while (next < replicas) {
    chosen = next;
    key = key * 2862933555777941757ULL + 1;
    next = static_cast<std::int64_t>(static_cast<double>(chosen + 1) *
                                     (0x1p31 / static_cast<double>((key >> 33) + 1)));
  }
  return static_cast<std::int32_t>(chosen);
}

}  // namespace servecast
