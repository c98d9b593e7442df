// Flow control of llm-d's endpoint picker, in virtual time: requests wait in a queue per priority
// band and flow until the pool is below the band's ceiling of saturation. Beside the conformance
// tool, as a scenario has no such queues.
//
//   arrival: full? -> rejected; else enqueue. Either way, then one cycle
//   each ms: one cycle       each s (+ 0.5 ms): a sweep, which alone removes what has expired
//   cycle:   highest band first: pool at its ceiling? stop. band empty? next. else its policy's
//   pick
//            leaves, and the cycle ends
//   ended while queued (client gone, deadline): stays, and counts, until a sweep or a cycle meets
//   it
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serving/cluster/epp/plugin.h"

namespace servecast::testing {

struct FlowBand {
  std::int64_t priority = 0;
  std::string fairness = "global-strict-fairness-policy";
  std::string ordering = "fcfs-ordering-policy";
  std::int64_t max_requests = 5000, max_bytes = 1'000'000'000;
};

struct FlowSettings {
  std::vector<FlowBand> bands;  // band 0 is added where it is missing
  std::string ceilings;         // usage limit policy
  double threshold = 1, min_ceiling = 0, max_ceiling = 1;
  bool ceilings_by_value = false;
  std::int64_t max_requests = 0, max_bytes = 0;  // of all bands; 0: no limit
  TimeNs ttl = 0, no_endpoint_ttl = 0;           // 0: never
};

struct FlowRequest {
  TimeNs arrival = 0;
  std::string flow = {};
  std::int64_t priority = 0, bytes = 0;
  TimeNs ttl = 0, slo_ttft = 0;  // 0: none of its own
  TimeNs cancel = kNever, deadline = kNever;

  std::string outcome = {};  // "": waits
  TimeNs end = 0;
  bool queued = false;
};

class FlowControl {
 public:
  FlowControl(FlowSettings settings, const epp::Plugin& detector);

  // The pool as the detector sees it now.
  void SetPool(std::vector<epp::Endpoint> endpoints) { pool_ = std::move(endpoints); }

  // The request is dispatched by this cycle; -1: none is. Requires: SetPool for this moment.
  std::int64_t Cycle(TimeNs now);
  // Rejects or enqueues. A cycle follows in either case.
  void Arrive(std::int64_t request, TimeNs now);
  void Sweep(TimeNs now);
  // A request that has not ended ends at once, and keeps its place.
  void End(std::int64_t request, const char* outcome, TimeNs now);
  // When it is evicted whatever sweeps find; kNever.
  TimeNs Backstop(const FlowRequest& request) const;

  std::vector<FlowRequest> requests;

 private:
  struct Band {
    FlowBand settings;
    std::map<std::string, std::vector<std::int64_t>> flows;  // in order of arrival
    std::string cursor;                                      // flow served last
    bool has_cursor = false;
    std::int64_t count = 0, bytes = 0;
  };

  const FlowRequest& At(std::int64_t request) const {
    return requests[static_cast<std::size_t>(request)];
  }
  Band& BandOf(std::int64_t priority);
  double Saturation() const;
  std::vector<double> Ceilings(double saturation);
  std::int64_t PickFrom(Band& band) const;
  std::int64_t Head(const Band& band, const std::vector<std::int64_t>& flow) const;
  TimeNs KeyOf(const Band& band, const FlowRequest& request) const;
  TimeNs TtlOf(const FlowRequest& request) const;
  void Remove(Band& band, std::int64_t request);

  FlowSettings settings_;
  const epp::Plugin& detector_;
  std::vector<epp::Endpoint> pool_;
  std::map<std::int64_t, Band, std::greater<>> bands_;  // by priority
  bool pool_is_empty_ = false;
  TimeNs since_ = 0;  // of that
  std::int64_t ticks_ = 0;
};

}  // namespace servecast::testing
