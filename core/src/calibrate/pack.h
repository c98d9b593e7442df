// A calibration as a file: small, readable, and refused where it cannot be understood.
// docs/how-to/calibrate.md states the form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/calibrate.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

inline constexpr std::string_view kPackKind = "servecast-calibration";
inline constexpr int kPackSchema = 1;
// A number of a pack: enough digits for any use, and short.
double PackNumber(double value);

// Where it comes from. Of the scenario that was calibrated, but for what the files say themselves.
struct PackOrigin {
  std::string model, gpu, engine;
  std::int64_t tensor_parallel = 1;
  std::vector<std::string> files;  // as ReadMeasurements found them
  std::int64_t measurements = 0;
};
PackOrigin OriginOf(const Scenario& scenario, const Measurements& measurements);

std::string PackJson(const Calibration& calibration, const PackOrigin& origin);

struct CalibrationPack {
  std::vector<std::string> overrides;  // as of ApplyOverrides
  PackOrigin origin;
  struct Range {
    std::string name;
    double low = 0, high = 0;
  };
  std::vector<Range> seen;
  std::vector<std::string> warnings;
};

// Of a fit of "analytic" or a training of "physics" or "blackbox". Issues: another schema or
// version, a parameter that is not known or beyond its range, members that are missing.
Result<CalibrationPack> ReadPack(std::string_view text);

// The document with the pack's constants.
Result<std::string> CalibratedDocument(const std::string& document, const CalibrationPack& pack);

// A line for each thing of the scenario that the pack is not of, and each range that its workload
// leaves.
std::vector<std::string> PackWarnings(const CalibrationPack& pack, const Scenario& scenario);

}  // namespace servecast
