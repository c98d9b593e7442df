// The pipeline stages of a replica: each computes some of the model's layers on GPUs of its own,
// one batch at a time, in the order in which batches came. A stage sends what it computed before it
// takes its next batch, and never waits for the stage behind it to be free.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"
#include "serving/hooks.h"
#include "serving/policy.h"

namespace servecast {

// The stages of the scenario, with the latency model of that name for each. Requires:
// ComputeModelCost has no issue.
std::vector<PipelineStage> MakeStages(const Scenario& scenario, const LatencyEntry& entry);

class Pipeline {
 public:
  // `stages` outlives it.
  explicit Pipeline(const std::vector<PipelineStage>& stages);

  // When the first stage is free.
  TimeNs free() const { return free_[0]; }
  // When what entered last leaves the last stage.
  TimeNs end() const { return free_.back(); }
  // Of the batch that entered last, stage by stage.
  const std::vector<StageSpan>& spans() const { return spans_; }
  // That stages were busy, all added up.
  TimeNs busy_ns() const { return busy_ns_; }

  // A batch goes through all stages, the first of them from `start` on and for `host` longer. Its
  // price, without waits: the sum of the stages', up to 2 kMaxStepNs each. Requires: start >=
  // free().
  StepPrice Enter(const BatchShape& shape, TimeNs start, TimeNs host);
  // The bound is that of the stage that takes longest.
  StepPrice Price(const BatchShape& shape) const { return Price(shape, nullptr); }

 private:
  StepPrice Price(const BatchShape& shape, TimeNs* durations) const;

  const std::vector<PipelineStage>& stages_;
  std::vector<TimeNs> free_, durations_;
  std::vector<StageSpan> spans_;
  TimeNs busy_ns_ = 0;
};

}  // namespace servecast
