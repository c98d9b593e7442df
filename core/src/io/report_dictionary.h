// The dictionary of a report: every figure with its path, type, unit and help.
#pragma once

#include <string>
#include <vector>

namespace servecast {

// A member of the report's JSON, or of an object in it.
struct ReportMember {
  std::string name, unit, help;
  std::string type;  // in TypeScript; "" of an object without a name, which has members
  bool optional = false;
  bool list = false;  // of such objects
  std::vector<ReportMember> members;
};

// An interface of wasm/servecast.d.ts: "Report", "RunFigures", and those that these name.
struct ReportType {
  std::string name;
  std::vector<ReportMember> members;
};

// Each before the first that names it. Report is what an experiment pools, without first_run and
// scenario; RunFigures what is of one run.
std::vector<ReportType> ReportTypes();

// {"types": [{name, members}], "units": {path: unit}}: as JSON, a path with dots and without the
// numbers of lists ("classes.ttft_ms.p99"), only figures that have a unit.
std::string ReportDictionaryJson();

}  // namespace servecast
