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
  std::string with;  // ComparedFeatures, of the scenario
  std::int64_t tensor_parallel = 1;
  std::vector<std::string> files;  // as ReadMeasurements found them
  std::int64_t measurements = 0;
  std::string date;  // of the fit, by whoever has a clock
};
PackOrigin OriginOf(const Scenario& scenario, const Measurements& measurements,
                    const std::string& date);

std::string PackJson(const Calibration& calibration, const PackOrigin& origin);

struct CalibrationPack {
  std::vector<std::string> overrides;  // its constants, as of ApplyOverrides
  CalibrationSpec spec;                // with names as its files have them
};

// Of a fit of "analytic" or "blackbox" or a training of "physics" or "blackbox". Issues: another
// schema or version, a parameter that is not known or beyond its range, members that are missing.
Result<CalibrationPack> ReadPack(std::string_view text);

// The document with the pack's constants and, as `calibration`, where they come from: from here on
// the measured server is told by the names of presets, or of this scenario where it is that server.
// Issues: files that the document needs and that are not here.
Result<std::string> CalibratedDocument(const std::string& document, const CalibrationPack& pack);

// What is to be said of a scenario that carries a calibration: whole sentences.
std::vector<std::string> CalibrationWarnings(const Scenario& scenario);

}  // namespace servecast
