// See operator_grid.h.
#include "cost/operator_grid.h"

#include <algorithm>
#include <utility>

#include "base/math.h"

namespace servecast {
namespace {

constexpr double kCodeStep = 1.0 / 50;

}  // namespace

OperatorGrid::OperatorGrid(const OperatorTable& table, Bound bound, std::size_t rising)
    : bound_(std::move(bound)), floor_(table.floor_us * 1e3) {
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::int64_t x : table.axes[i]) {
      axes_[i].push_back(static_cast<double>(x));
      logs_[i].push_back(Log(static_cast<double>(x)));
    }
  }
  log_ns_.reserve(table.codes.size());
  std::size_t code = 0;
  for (const double a : axes_[0]) {
    for (const double b : axes_[1]) {
      for (const double c : axes_[2]) {
        const double least = bound_({a, b, c});
        const double ns = (floor_ + least) * Exp(kCodeStep * table.codes[code++]);
        log_ns_.push_back(Log(std::max(ns, least)));
      }
    }
  }
  MakeMonotone(rising);
}

void OperatorGrid::MakeMonotone(std::size_t rising) {
  const std::size_t c = axes_[2].size(), b = axes_[1].size();
  const std::array<std::size_t, 3> stride = {b * c, c, 1};
  for (std::size_t i = 0; i < log_ns_.size(); ++i) {
    for (std::size_t axis = rising; axis < 3; ++axis) {
      if (i / stride[axis] % axes_[axis].size() == 0) continue;
      log_ns_[i] = std::max(log_ns_[i], log_ns_[i - stride[axis]]);
    }
  }
}

OperatorGrid::Place OperatorGrid::Find(std::size_t axis, double coordinate) const {
  const std::vector<double>& axis_points = axes_[axis];
  const std::vector<double>& logs = logs_[axis];
  if (coordinate <= axis_points.front()) return {0, 0};
  if (coordinate >= axis_points.back()) return {axis_points.size() - 1, 0};
  const auto above = std::upper_bound(axis_points.begin(), axis_points.end(), coordinate);
  const auto i = static_cast<std::size_t>(above - axis_points.begin()) - 1;
  if (axis_points[i] == coordinate) return {i, 0};
  return {i, (Log(coordinate) - logs[i]) / (logs[i + 1] - logs[i])};
}

bool OperatorGrid::Covers(const OperatorPoint& point) const {
  for (std::size_t i = 0; i < 3; ++i) {
    if (axes_[i].size() == 1 && axes_[i][0] == 1) continue;
    if (point[i] < axes_[i].front() || point[i] > axes_[i].back()) return false;
  }
  return true;
}

double OperatorGrid::Ns(const OperatorPoint& point) const {
  const std::array<Place, 3> at = {Find(0, point[0]), Find(1, point[1]), Find(2, point[2])};
  const std::size_t c = axes_[2].size(), b = axes_[1].size();
  double log_ns = 0;
  for (unsigned corner = 0; corner < 8; ++corner) {
    double weight = 1;
    std::array<std::size_t, 3> index{};
    for (std::size_t i = 0; i < 3; ++i) {
      const bool upper = (corner >> i & 1) != 0;
      weight *= upper ? at[i].fraction : 1 - at[i].fraction;
      index[i] = at[i].index + (upper && at[i].fraction > 0 ? 1 : 0);
    }
    if (weight > 0) log_ns += weight * log_ns_[(index[0] * b + index[1]) * c + index[2]];
  }
  double ns = Exp(log_ns);
  const double least = bound_(point);
  if (!Covers(point)) {
    OperatorPoint border = point;
    for (std::size_t i = 0; i < 3; ++i) {
      if (axes_[i].size() == 1 && axes_[i][0] == 1) continue;
      border[i] = std::clamp(point[i], axes_[i].front(), axes_[i].back());
    }
    ns *= (floor_ + least) / (floor_ + bound_(border));
  }
  return std::max(ns, least);
}

}  // namespace servecast
