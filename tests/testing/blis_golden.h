// Recorded runs of the simulator BLIS (the README beside them has their forms): reads a folder of
// them into scenarios and request tables, and names the first figure that a run has otherwise. A
// file that cannot be read is an issue, never a case less.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "testing/blis_reference.h"
#include "workload/request_table.h"

namespace servecast::testing {

// By BLIS's name for it. Integers must be equal, others within 1e-9 of the value.
struct BlisFigure {
  std::string name;
  double value = 0;
  bool integer = false;
};

using BlisFigures = std::map<std::string, double>;

struct BlisCase {
  std::string name;
  Scenario scenario;      // its workload is not asked for
  RequestTable requests;  // instead of it
  std::vector<BlisFigure> expected;
  BlisHost host;  // the scenario's engine.kv_offload, in BLIS's units
};

struct BlisCases {
  std::vector<BlisCase> cases;
  Issues issues;  // files, or tests in them, that could not be read
};

// Every case of the files in `folder`, by file name:
//   *.json               {"tests": [...]}; test k has its requests in gd_<k>_<model>.csv
//   *.txt                closed-loop sessions, keyword lines; cpu_blocks are of a host whose blocks
//                        come back in 80 us
//   noop_<model>.csv     a default run of a model preset; noop_<model>.expected.json
// gd_*.csv that no test asks for, and files that are neither JSON, CSV nor text, are no cases. Any
// other file is an issue.
BlisCases LoadBlisCases(const std::string& folder);

// The figures of a run by the engine, or why it refuses the scenario.
Result<BlisFigures> RunBlisCase(const BlisCase& golden);
// Runs the case; a scenario that is refused is a difference.
std::optional<std::string> FirstDifference(const BlisCase& golden);
// The same of the reference (blis_reference.h), with the engine's latency model.
std::optional<std::string> FirstDifferenceOfReference(const BlisCase& golden);
// Nullopt when the figures say the same.
std::optional<std::string> FirstDifference(const BlisCase& golden, const BlisFigures& found);

// A run's figures by BLIS's names: of the engine, and of the reference.
BlisFigures BlisFiguresOf(const Report& report);
BlisFigures BlisFiguresOf(const BlisReferenceOutput& output);

// The readers of single texts, for tests of what they refuse. `path` is for issues.
Result<BlisCase> ReadBlisSessions(const std::string& path, const std::string& text);
Result<RequestTable> ReadBlisRequests(const std::string& path, const std::string& text);

}  // namespace servecast::testing
