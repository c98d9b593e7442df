// A measured table as times. A code says how far a time is above what the data sheet allows:
//
//   time = (floor + bound) exp(code / 50)
//
// where the bound is that of the GPU and the type of weights at hand, so a table may stand in for
// one that was not measured. Times are then raised to the bound and to be monotone along each axis.
//
// Between points the logarithm of the time is linear in those of the coordinates. Where the bound
// is the longer of products of powers of the coordinates, as that of a matrix product is, what lies
// between points is then no faster than light either, and monotone. Beyond the table the nearest
// point's time grows as floor + bound does: continuous, and never below the bound.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "cost/operator_tables.h"

namespace servecast {

using OperatorPoint = std::array<double, 3>;  // coordinates on the axes; 1 where there is none

class OperatorGrid {
 public:
  using Bound = std::function<double(const OperatorPoint&)>;  // ns; not decreasing

  // Times do not decrease along the axes from `rising` on.
  OperatorGrid(const OperatorTable& table, Bound bound, std::size_t rising = 0);

  double Ns(const OperatorPoint& point) const;
  bool Covers(const OperatorPoint& point) const;  // within the table
  double FloorNs() const { return floor_; }       // what the operator takes beside its work

 private:
  struct Place {
    std::size_t index = 0;  // of the point below
    double fraction = 0;    // of the way to the next
  };
  Place Find(std::size_t axis, double coordinate) const;
  void MakeMonotone(std::size_t rising);

  Bound bound_;
  double floor_;
  std::array<std::vector<double>, 3> axes_, logs_;  // coordinates
  std::vector<double> log_ns_;
};

}  // namespace servecast
