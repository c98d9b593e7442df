// From what a run left behind to a report: distributions, rates, verdict, columns.
#pragma once

#include "base/base.h"
#include "cost/model_cost.h"
#include "metrics/recorder.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

struct RunView {
  const Scenario& scenario;
  const ModelCost& cost;
  const std::string& trace_name;
  std::uint64_t trace_hash = 0;  // 0: nothing is replayed
  const RequestTable& requests;
  const RequestResults& results;  // `generated` up to date for running requests too
  const Recorder& recorder;
  std::int64_t running = 0;
  std::int64_t length_capped = 0;
  PrefixCacheReport prefix_cache;
  TimeNs end = 0;  // of the last step, or the horizon when the run reached it
  bool finished = false;
  LatencyLabel label;
  SchedulerCounts counts = {};
  KvOffloadReport kv_offload = {};
};

// O(requests), and O(requests log) nowhere. Request columns only when `detail` asks for them.
Report Summarize(const RunView& run, ReportDetail detail);

// Judges a report whose numbers are in: verdict, limit and note.
void Judge(const Scenario& scenario, Report& report);

}  // namespace servecast
