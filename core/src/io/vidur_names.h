// Our figures under the names of Vidur's request_metrics.csv and batch_metrics.csv, in its units
// (seconds) and by its definitions; docs/model.md, section 6, has the table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "servecast/report.h"
#include "serving/hooks.h"

namespace servecast {

// What a report does not have of requests: their time in batches, and between two of them. Watches
// every step of a run. A stage of a pipeline counts while it computes or sends; a moment in which
// two stages work on a request, once.
class VidurTimes final : public StepObserver {
 public:
  struct Of {
    TimeNs executed = 0, between = 0;
    TimeNs for_stage = 0;  // from when its first batch is formed until a stage has it
    TimeNs until = -1;     // the end of its latest batch; -1: there is none
  };
  void OnStep(const StepRecord& step) override;
  // Requires: it was in a step.
  const Of& OfRequest(std::size_t request) const { return all_[request]; }

 private:
  std::vector<Of> all_;
};

std::string VidurRequestHeader();
// "" for a request that did not complete: Vidur stores no other.
std::string VidurRequestRow(const Report& report, const VidurTimes& times, std::size_t request);

std::string VidurBatchHeader();
// `batch`: its number among those of all replicas.
std::string VidurBatchRow(std::int64_t batch, const StepRecord& step, std::int64_t tokens);

}  // namespace servecast
