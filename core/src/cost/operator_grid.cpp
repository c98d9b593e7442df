// See operator_grid.h.
#include "cost/operator_grid.h"

#include <algorithm>
#include <utility>

#include "base/math.h"

namespace servecast {
namespace {

constexpr double kCodeStep = 1.0 / 50;

}  // namespace

OperatorGrid::OperatorGrid(const OperatorTable& table, Bound bound, std::size_t rising,
                           const OperatorPoint& most)
    : bound_(std::move(bound)), floor_(table.floor_us * 1e3) {
  for (std::size_t i = 0; i < 3; ++i) {
    for (const std::int64_t point : table.axes[i]) {
      const auto x = static_cast<double>(point);
      axes_[i].push_back(x);
      logs_[i].push_back(Log(x));
      if (x >= most[i]) break;
    }
  }
  log_ns_.reserve(axes_[0].size() * axes_[1].size() * axes_[2].size());
  for (std::size_t a = 0; a < axes_[0].size(); ++a) {
    for (std::size_t b = 0; b < axes_[1].size(); ++b) {
      const std::size_t row = (a * table.axes[1].size() + b) * table.axes[2].size();
      for (std::size_t c = 0; c < axes_[2].size(); ++c) {
        const double least = bound_({axes_[0][a], axes_[1][b], axes_[2][c]});
        const double ns = (floor_ + least) * Exp(kCodeStep * table.codes[row + c]);
        log_ns_.push_back(Log(std::max(ns, least)));
      }
    }
  }
  MakeMonotone(rising);
}

void OperatorGrid::MakeMonotone(std::size_t rising) {
  const std::size_t columns = axes_[2].size(), rows = axes_[1].size();
  std::size_t i = 0;
  for (std::size_t a = 0; a < axes_[0].size(); ++a) {
    for (std::size_t b = 0; b < rows; ++b) {
      for (std::size_t c = 0; c < columns; ++c, ++i) {
        double& ns = log_ns_[i];
        if (a > 0 && rising == 0) ns = std::max(ns, log_ns_[i - rows * columns]);
        if (b > 0 && rising <= 1) ns = std::max(ns, log_ns_[i - columns]);
        if (c > 0 && rising <= 2) ns = std::max(ns, log_ns_[i - 1]);
      }
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

double OperatorGrid::Ns(const OperatorPoint& point, const Places& at) const {
  const auto weight = [&at](std::size_t axis, std::size_t upper) {
    return upper != 0 ? at[axis].fraction : 1 - at[axis].fraction;
  };
  // Corners at both ends of an axis, or at the one that the point is at.
  const auto ends = [&at](std::size_t axis) { return at[axis].fraction > 0 ? 2U : 1U; };
  const std::size_t columns = axes_[2].size(), rows = axes_[1].size();
  double log_ns = 0;
  for (std::size_t c = 0; c < ends(2); ++c) {
    for (std::size_t b = 0; b < ends(1); ++b) {
      for (std::size_t a = 0; a < ends(0); ++a) {
        const double share = weight(0, a) * weight(1, b) * weight(2, c);
        const std::size_t row = (at[0].index + a) * rows + at[1].index + b;
        if (share > 0) log_ns += share * log_ns_[row * columns + at[2].index + c];
      }
    }
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
