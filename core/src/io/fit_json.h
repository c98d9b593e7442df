// A fitted trace as a document and as figures side by side.
#pragma once

#include <string>
#include <vector>

#include "servecast/trace.h"
#include "workload/trace_fit.h"

namespace servecast {

struct WorkloadSpec;

struct FitComparison {
  const char* name;
  const char* unit;
  double trace = 0, fit = 0;
};

// What a reader may check a fit by; without arrivals, no figures of them.
std::vector<FitComparison> CompareFit(const Trace& trace, const FittedTrace& fitted);

// The section `workload` of a document.
std::string WorkloadJson(const WorkloadSpec& workload, bool with_arrivals);

}  // namespace servecast
