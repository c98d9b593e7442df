// What is known of a scenario that carries a calibration: how far it was off on what was measured,
// for as long as the scenario is that server under such a load.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// Of the numbers in the section latency that a training may change.
std::string CoefficientsHash(const LatencySpec& latency);

// A sentence for each thing of a scenario with one pool that its calibration is not of: another
// model, GPU, engine, tensor parallelism or weights, and constants that were changed since.
std::vector<std::string> CalibrationMismatches(const Scenario& scenario);

// A sentence for each thing of its workload that was not measured: lengths, rate or concurrency
// beyond what was, and load at all.
std::vector<std::string> BeyondCalibration(const Scenario& scenario);

// Of a label of `pool`, which is a pool of `scenario` alone; where the calibration is of another
// latency model, or none of its constants is left, it stays, with a warning. The class falls to
// untested with any sentence of these.
void TakeCalibration(const Scenario& pool, const Scenario& scenario, LatencyLabel& label);

}  // namespace servecast
