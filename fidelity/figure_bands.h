// The band of 90 % around each predicted figure of a measured row, of an error model that has not
// seen the row's server.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/response.h"
#include "measured_replay.h"
#include "measured_sets.h"
#include "servecast/scenario.h"

namespace servecast {

struct RowBands {
  std::string_view of;  // its class (evidence_fit.h)
  SetupFeatures features;
  std::map<std::string, FigureBand> figures;  // by metric
};

// A measured row in the form that the error model compares: as of a stranger's server.
SetupFeatures FeaturesOf(const Measured& row, const Scenario& setup);

class BandReader {
 public:
  // `setup`: what `row` is simulated as; `predicted`: what came out. Runs the row again where a
  // figure depends on a queue; rows of one recorded run share these, so ask for them one after
  // another. `key`: rows with the same one have the same predictions, and run once.
  RowBands Read(const Measured& row, const Scenario& setup, const Metrics& predicted,
                const std::string& key);

 private:
  const ErrorField& FieldWithout(const SetupFeatures& features);
  std::optional<Response> ResponseOf(const std::string& metric, const std::vector<Metrics>& nodes,
                                     const RowBands& row, const StepError& error,
                                     double requests) const;

  // Empty: a run could not be made.
  std::vector<Metrics> RunNodes(const Measured& row, const Scenario& setup,
                                const Metrics& predicted, const StepError& error);

  std::vector<std::pair<SetupFeatures, ErrorField>> left_out_;  // by server
  // A row whose figures depend on a queue, at the nodes, and its bands by metric.
  struct Queue {
    std::vector<Metrics> nodes;
    std::map<std::string, std::optional<FigureBand>> bands;
  };
  std::map<std::string, Queue> queues_;  // by key
  std::array<MeasuredReplay, kNodes> replays_;
};

}  // namespace servecast
