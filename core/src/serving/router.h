// Which replica serves a request. A router is one file in policies/ and one line in the registry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "base/indexed_heap.h"

namespace servecast {

// What a router may know of a request: never its output length.
struct RoutedRequest {
  RequestId number = 0;      // of the request in the run: for draws
  std::int64_t session = 0;  // the same for all turns of a conversation
  std::int64_t prefix = -1;  // of the beginning that its prompt shares with others; -1: none
  std::int64_t prompt_tokens = 0;
};

// What each replica has been sent and has not ended, waiting or running, as it stands when a
// request is routed. Replicas are 0 .. count-1.
class ReplicaLoads {
 public:
  explicit ReplicaLoads(std::int64_t replicas);

  std::int64_t count() const { return static_cast<std::int64_t>(outstanding_.size()); }
  std::int64_t Outstanding(std::int32_t replica) const {
    return outstanding_[static_cast<std::size_t>(replica)];
  }
  // The lowest of equals. O(1).
  std::int32_t Least() const { return by_load_.TopId(); }

  // A request goes to, or leaves, a replica. O(log replicas).
  void Change(std::int32_t replica, std::int64_t by);

 private:
  std::vector<std::int64_t> outstanding_;
  IndexedHeap by_load_;
};

class Router {
 public:
  virtual ~Router() = default;
  virtual std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) = 0;
};

struct RouterEntry {
  std::string_view name, help;
  std::unique_ptr<Router> (*make)(std::int64_t seed);
  bool ignores_load = false;  // then replicas run on without waiting for each other
};

// The registered ones, in the order of menus; see registry.cpp.
std::span<const RouterEntry> Routers();
const RouterEntry& FindRouter(std::string_view name);  // requires: a registered name

// A replica for a key, so that another number of replicas moves as few keys as can be: jump
// consistent hash (Lamping, Veach, arXiv:1406.2294). O(log replicas).
std::int32_t ReplicaOfKey(std::uint64_t key, std::int64_t replicas);

}  // namespace servecast
