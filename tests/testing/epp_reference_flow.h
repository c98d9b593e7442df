// Flow control of the endpoint picker the slow and obvious way: lists that are searched anew in
// each cycle, and a cycle each millisecond whether or not it can change anything
// (serving/cluster/epp/flow_control.h has the rules).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "testing/epp_reference.h"

namespace servecast::testing {

class ReferenceFlow {
 public:
  struct Request {
    TimeNs arrival = 0;
    std::int64_t flow = 0, priority = 0, bytes = 0;
    TimeNs ttl = 0, slo_ttft = 0;  // 0: none of its own
    TimeNs deadline = kNever;

    std::string outcome = {};  // "": waits, or has not come
    TimeNs end = 0;
    bool queued = false;
  };

  // Requires: config.flow; its plugins are listed.
  explicit ReferenceFlow(const EppConfig& config);

  // The pool as the detector sees it now.
  void SetPool(std::vector<epp::Endpoint> pool) { pool_ = std::move(pool); }

  // The request is dispatched by this cycle; -1: none is. Requires: SetPool for this moment.
  std::int64_t Cycle(TimeNs now);
  // Rejects or enqueues. A cycle follows in either case.
  void Arrive(std::int64_t request, TimeNs now);
  void Sweep(TimeNs now);
  // A request that has not ended ends at once, and keeps its place.
  void End(std::int64_t request, const char* outcome, TimeNs now);
  // Nobody waits, and no band has a cursor: cycles change nothing.
  bool Idle() const;

  std::vector<Request> requests;

 private:
  struct Band {
    EppBand settings;
    std::map<std::int64_t, std::vector<std::int64_t>> flows;  // in the order in which they came
    std::int64_t cursor = -1;                                 // flow served last; -1: none
    std::int64_t count = 0, bytes = 0;
  };

  const Request& At(std::int64_t request) const {
    return requests[static_cast<std::size_t>(request)];
  }
  double Number(const char* parameter, double otherwise) const;
  std::string TypeOf(const std::string& name) const;
  Band& BandOf(std::int64_t priority);
  double Saturation() const;
  std::vector<double> Ceilings(double saturation);
  std::int64_t PickFrom(Band& band) const;
  std::int64_t First(const Band& band, const std::vector<std::int64_t>& requests) const;
  TimeNs KeyOf(const Band& band, const Request& request) const;
  TimeNs TtlOf(const Request& request) const;
  void Remove(Band& band, std::int64_t request);

  EppConfig config_;
  EppFlowControl flow_;
  ReferencePicker picker_;
  std::vector<epp::Endpoint> pool_;
  std::map<std::int64_t, Band, std::greater<>> bands_;  // by priority
  std::vector<std::int64_t> came_;                      // those that waited, in their order
  bool pool_is_empty_ = false;
  TimeNs since_ = 0;  // of that
  std::int64_t ticks_ = 0;
};

}  // namespace servecast::testing
