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
  struct Place {
    std::size_t index = 0;  // of the point below
    double fraction = 0;    // of the way to the next
  };
  using Places = std::array<Place, 3>;  // of a point on the axes
  static constexpr OperatorPoint kAnywhere = {1e300, 1e300, 1e300};

  // Times do not decrease along the axes from `rising` on. What the table has beyond `most` is left
  // out: no coordinate of a point that is asked for may be larger.
  OperatorGrid(const OperatorTable& table, Bound bound, std::size_t rising = 0,
               const OperatorPoint& most = kAnywhere);

  double Ns(const OperatorPoint& point) const { return Ns(point, Find(point)); }
  // For many points that have coordinates in common, whose places are found once.
  double Ns(const OperatorPoint& point, const Places& at) const;
  Place Find(std::size_t axis, double coordinate) const;
  Places Find(const OperatorPoint& point) const {
    return {Find(0, point[0]), Find(1, point[1]), Find(2, point[2])};
  }
  bool Covers(const OperatorPoint& point) const;  // within the table
  double FloorNs() const { return floor_; }       // what the operator takes beside its work

 private:
  void MakeMonotone(std::size_t rising);

  Bound bound_;
  double floor_;
  std::array<std::vector<double>, 3> axes_, logs_;  // coordinates
  std::vector<double> log_ns_;
};

}  // namespace servecast
