// Flow control of llm-d's endpoint picker: requests wait in bands of priorities, a queue per flow,
// while the pool is saturated.
//
//   a request comes:  full? -> rejected; else it waits. Either way one cycle follows
//   each ms:          one cycle
//   each s + 0.5 ms:  a sweep; it alone removes who has waited too long
//   a cycle:          from the highest band: pool at the band's ceiling? stop. Nobody there? next
//                     band. Else the one whom the band's policies pick leaves, and the cycle ends
//   ended meanwhile:  (client gone) keeps its place and counts until a sweep or a cycle meets it
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp {

struct FlowSettings {
  enum class Ordering { kFcfs, kEdf, kSloDeadline };
  struct Band {
    std::int64_t priority = 0;  // higher goes first
    bool round_robin = false;   // among flows; else the first of all
    Ordering ordering = Ordering::kFcfs;
    std::int64_t max_requests = 5000, max_bytes = 1'000'000'000;
  };
  // Saturation from which on a band waits: one for all; falling from band to band, by rank or by
  // priority; soft-reflective-ceiling-policy.
  enum class Ceilings { kStatic, kByRank, kByValue, kSoftReflective };

  std::vector<Band> bands;  // one of priority 0 is added where there is none
  Ceilings ceilings = Ceilings::kStatic;
  double threshold = 1, min_ceiling = 0, max_ceiling = 1;
  std::int64_t max_requests = 0, max_bytes = 0;  // of all bands; 0: no limit
  TimeNs ttl = 0, no_endpoint_ttl = 0;           // 0: never
};

// What is wrong with config.flow, or keeps it from ending; each "where: reason".
std::vector<std::string> WrongFlow(const EppConfig& config);
// Requires: config.flow, and WrongFlow() finds nothing.
FlowSettings FlowSettingsOf(const EppConfig& config);
std::unique_ptr<Plugin> DetectorOf(const EppConfig& config);

struct FlowRequest {
  std::int64_t number = 0;  // of the caller's
  std::int64_t flow = 0, priority = 0, bytes = 0;
  TimeNs arrival = 0;
  TimeNs ttl = 0, slo_ttft = 0;  // 0: none of its own
  TimeNs deadline = kNever;      // its caller's
};

class FlowControl {
 public:
  static constexpr TimeNs kTick = kNsPerMs, kSweepPeriod = kNsPerS, kSweepLag = 500'000;

  // `detector` outlives it.
  FlowControl(FlowSettings settings, const Plugin& detector);

  // False: there is no room, and the request is rejected. O(log waiting).
  bool Arrive(const FlowRequest& request);
  // One cycle: the request that leaves; -1: none does. O(endpoints + flows).
  std::int64_t Cycle(Endpoints pool, TimeNs now);
  // Appends the requests that expire. O(waiting).
  void Sweep(TimeNs now, std::vector<std::int64_t>& expired);
  // A waiting request has ended for its client.
  void End(std::int64_t request);

  // The cycle or sweep by itself that may change something next, given when endpoints report and
  // when a request ends first after the last cycle; kNever. Requires: the pool stays, and no
  // ceiling is above 1.
  TimeNs Next(TimeNs report, TimeNs end) const;
  TimeNs NextSweep() const;  // after the last call

  // As of the last cycle.
  bool pool_is_empty() const { return pool_is_empty_; }
  // When the request is evicted whatever sweeps find; kNever.
  TimeNs Backstop(const FlowRequest& request) const;

 private:
  using Key = std::tuple<TimeNs, std::int64_t, std::int64_t>;  // lowest first; order of coming
  struct Waiting {
    FlowRequest request;
    Key key;
    bool ended = false;
  };
  struct Band {
    FlowSettings::Band settings;
    std::map<std::int64_t, std::set<Key>> flows;  // also empty ones
    std::optional<std::int64_t> cursor;           // flow served last
    std::int64_t count = 0, bytes = 0;
  };

  Band& BandOf(std::int64_t priority);
  double Saturation(Endpoints pool) const;
  double Ceiling(std::int64_t rank, std::int64_t priority, double saturation, bool open) const;
  bool Opens(double saturation);
  void SetCursor(Band& band, std::optional<std::int64_t> flow);
  std::int64_t PickFrom(Band& band);
  TimeNs OrderOf(const Band& band, const FlowRequest& request) const;
  TimeNs TtlOf(const FlowRequest& request) const;
  void Remove(std::int64_t request);

  FlowSettings settings_;
  const Plugin& detector_;
  std::map<std::int64_t, Band, std::greater<>> bands_;  // by priority
  std::map<std::int64_t, Waiting> waiting_;             // by number
  std::int64_t bytes_ = 0, came_ = 0, ticks_ = 0, cursors_ = 0;
  TimeNs last_ = -1;                              // call
  bool blocked_ = false, pool_is_empty_ = false;  // blocked: the last cycle met a ceiling
  TimeNs since_ = 0;                              // of that
};

}  // namespace servecast::epp
