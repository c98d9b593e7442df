// Which replica serves a request. A router is one file in policies/ and one line in the registry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "base/indexed_heap.h"
#include "servecast/epp.h"
#include "serving/policy.h"

namespace servecast {

// Full KV blocks [first, last) of a prompt, which are those of a content segment
// (workload/request_table.h).
struct ContentRange {
  std::int32_t segment = -1;
  std::int64_t first = 0, last = 0;

  friend bool operator==(const ContentRange&, const ContentRange&) = default;
};

// What a router may know of a request: never its output length.
struct RoutedRequest {
  RequestId number = 0;      // of the request in the run: for draws
  std::int64_t session = 0;  // the same for all turns of a conversation
  std::int64_t prompt_tokens = 0;
  // What of its prompt a prefix cache may hold: its full blocks, from the first on, without those
  // of its last token, which is computed in any case. Only for routers that read it (RouterEntry),
  // and empty where no two requests of the run share content.
  std::span<const ContentRange> content;
  TimeNs time = 0;     // when it is placed
  TimeNs signals = 0;  // when engines were looked at; only for routers that read them
  // Only for a FlowQueue.
  std::int64_t priority = 0;  // higher is more urgent
  std::int64_t of_class = 0;  // by number
  TimeNs ttft_deadline = 0;   // after its arrival; 0: none
};

// What an engine reports; with a step under way, the state when that was formed.
struct EngineSignals {
  std::int64_t waiting = 0;  // requests sent to it that are not in its running list
  std::int64_t kv_blocks_used = 0, kv_blocks = 1;
  std::int64_t running = 0;
};

// What each replica has been sent and has not ended, waiting or running, as the router knows it
// when it places a request. Replicas are 0 .. count-1.
class ReplicaLoads {
 public:
  explicit ReplicaLoads(std::int64_t replicas);

  std::int64_t count() const { return static_cast<std::int64_t>(outstanding_.size()); }
  std::int64_t Outstanding(std::int32_t replica) const {
    return outstanding_[static_cast<std::size_t>(replica)];
  }
  std::int64_t total() const { return total_; }  // outstanding on all
  // Those that take requests: as many as count() unless replicas come and go.
  std::int64_t available() const {
    return static_cast<std::int64_t>(available_.empty() ? outstanding_.size() - off_
                                                        : available_.size());
  }
  // The k-th of them.
  std::int32_t Available(std::int64_t k) const {
    return available_.empty() ? static_cast<std::int32_t>(k)
                              : available_[static_cast<std::size_t>(k)];
  }
  bool IsAvailable(std::int32_t replica) const { return by_load_.Has(replica); }
  // Of those that take requests, the lowest of equals. Requires: there is one. O(1).
  std::int32_t Least() const { return by_load_.TopId(); }
  // Only for routers that read engines (RouterEntry).
  const EngineSignals& Engine(std::int32_t replica) const {
    return engines_[static_cast<std::size_t>(replica)];
  }

  // A request goes to, or leaves, a replica. O(log replicas).
  void Change(std::int32_t replica, std::int64_t by);
  // One more replica, which takes no requests yet.
  void Add();
  // O(replicas).
  void SetAvailable(std::int32_t replica, bool available);
  void SetEngine(std::int32_t replica, const EngineSignals& signals) {
    engines_[static_cast<std::size_t>(replica)] = signals;
  }

 private:
  std::vector<std::int64_t> outstanding_;
  std::int64_t total_ = 0;
  IndexedHeap by_load_;                  // those that take requests
  std::vector<std::int32_t> available_;  // empty: all, or none at all (off_)
  std::size_t off_ = 0;                  // replicas that take none
  std::vector<EngineSignals> engines_;
};

// A router's own queue, where every request waits until the router lets it go: at the moment at
// which another one comes, or by itself. Times do not go back.
class FlowQueue {
 public:
  virtual ~FlowQueue() = default;
  // False: the request is turned away. Cycle() follows, at the same time.
  virtual bool Comes(const RoutedRequest& request) = 0;
  // The request that goes now, one at most; kNoRequest.
  virtual RequestId Cycle(TimeNs time, TimeNs signals, const ReplicaLoads& loads) = 0;
  // When Cycle() or Sweep() may change something, given when engines are looked at and when a
  // request leaves first after the last cycle; kNever.
  virtual TimeNs Next(TimeNs look, TimeNs departure) const = 0;
  virtual bool SweepsAt(TimeNs time) const = 0;
  // Appends the requests that have waited too long: they are turned away.
  virtual void Sweep(TimeNs time, std::vector<RequestId>& expired) = 0;
  // The client of a request that waits is gone.
  virtual void GaveUp(RequestId request) = 0;
};

class Router {
 public:
  static constexpr std::int32_t kHold = -1;

  virtual ~Router() = default;
  // The replica. kHold, by a router that may hold: none now; it is asked again when a replica has
  // ended a request.
  virtual std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) = 0;
  // A request that was placed has ended, as far as the router knows by now. Not told to routers
  // that ignore loads.
  virtual void Left(RequestId, std::int32_t /*replica*/) {}
  // The first token of a request that was placed has come, likewise; delivered, so the request may
  // have ended already. Only told to routers that hear first tokens.
  virtual void FirstToken(RequestId) {}
  // The router's own; null: requests wait only for Choose.
  virtual FlowQueue* flow_queue() { return nullptr; }
};

// What a router is made for. Of each replica: seats (max_num_seqs), how many KV blocks of
// RouterInput::block_size can be found again (0: none), and its KV cache as its server reports it.
struct RoutedReplica {
  std::int64_t seats = 1, cached_blocks = 0;
  std::int64_t kv_block_size = 16, kv_blocks = 1;
};
struct RouterInput {
  std::int64_t seed = 0;
  std::span<const RoutedReplica> replicas;  // to be copied
  Params params = {};                       // of its entry, in their order; to be copied
  std::int64_t block_size = 16;             // tokens of a KV block, as content is counted in
  const EppSpec* epp = nullptr;             // of the router "epp"; to be copied
};

struct RouterEntry {
  std::string_view name, help;
  std::unique_ptr<Router> (*make)(const RouterInput&);
  bool ignores_load = false;  // then replicas run on without waiting for each other
  std::span<const ParamSpec> params = {};
  bool reads_content = false;
  bool reads_engines = false;
  bool holds = false;  // may keep requests at the gateway; then without kStaleness
  // Its content counts tokens, not KV blocks, and is the whole prompt.
  bool reads_tokens = false;
  bool hears_first_tokens = false;
};

// The registered ones, in the order of menus; see registry.cpp.
std::span<const RouterEntry> Routers();
const RouterEntry& FindRouter(std::string_view name);  // requires: a registered name

// A parameter of all routers that go by what replicas say.
inline constexpr ParamSpec kStaleness = {
    "staleness_ms",
    "ms",
    0,
    60'000,
    0,
    "how often the router hears from replicas what they ended and hold; 0: at once"};

// A parameter of routers that poll engines, and hear of departures at once.
inline constexpr ParamSpec kPoll = {
    "poll_ms", "ms",
    0,         60'000,
    50,        "how often the router reads queues and KV use of the engines; 0: at each request"};

// A parameter of routers that hear what engines hold and have ended at times of their own.
inline constexpr ParamSpec kStatsInterval = {
    "stats_interval_ms",
    "ms",
    0,
    60'000,
    100,
    "how often the router hears of waiting and running requests; 0: at once"};

// Of routers that count texts in characters: about 4 of English to a token (OpenAI, "What are
// tokens and how to count them?").
inline constexpr std::int64_t kCharactersPerToken = 4;

// A replica for a key, so that another number of replicas moves as few keys as can be: jump
// consistent hash (Lamping, Veach, arXiv:1406.2294). O(log replicas).
std::int32_t ReplicaOfKey(std::uint64_t key, std::int64_t replicas);

}  // namespace servecast
