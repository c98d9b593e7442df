// A calibration in words: for which load it holds, and how far it is off.
#pragma once

#include <string>

#include "calibrate/calibrate.h"
#include "calibrate/pack.h"

namespace servecast {

enum class CalibrationState { kGood, kPartly, kPoor };

struct CalibrationVerdict {
  CalibrationState state = CalibrationState::kPartly;
  std::string sentence, detail;
};

CalibrationVerdict VerdictOf(const Calibration& calibration, const Measurements& measurements,
                             const PackOrigin& origin);

// What the measurements say of a constant: its 95 % interval is under 10 % of it, under 20 %, or
// more. A time is weighed against what would matter, where it is itself less than that.
enum class Told { kFound, kWeak, kNot, kAtLimit };
const char* WordOf(Told told);
Told ToldOf(const FittedParameter& parameter);
// Half of the interval, of the same.
double HalfIntervalOf(const FittedParameter& parameter);

}  // namespace servecast
