// The few parameters that measurements may change: fields of a scenario that the latency model
// "analytic" reads, or the coefficients of "blackbox".
#pragma once

#include <span>
#include <string_view>

#include "cost/fitted_constants.h"
#include "servecast/scenario.h"

namespace servecast {

// A fit moves coordinates in which times are nearly linear: of an efficiency its inverse.
struct CalibrationParameter : FittedConstant {
  const char* title;  // for people: "Arithmetic"
  const char* of;     // what the unit is of: "share of the data sheet's peak"
  const char* unit;
  double low, high;  // of the value
  bool inverse;      // the coordinate is 1 / value
  double coarse;  // a 95 % interval reaching this far to a side says nothing; a share if `inverse`
  double step;    // of a derivative, in the coordinate
  bool minor;     // of two that cannot be told apart the minor one stays
  const char* told_by;  // the measurement that tells it best

  double Coordinate(double value) const { return inverse ? 1 / value : value; }
  double Value(double coordinate) const { return inverse ? 1 / coordinate : coordinate; }
};

// Of the latency model: "blackbox" has its coefficients, any other has those of "analytic".
std::span<const CalibrationParameter> CalibrationParametersOf(const Scenario& server);
std::span<const CalibrationParameter> CalibrationParameters();  // of "analytic"
// Of "analytic". nullptr: there is none of that path.
const CalibrationParameter* FindCalibrationParameter(std::string_view path);

}  // namespace servecast
