// Bounded non-linear least squares of a few coordinates: Levenberg and Marquardt's steps, cut at
// the bounds. Built on + - * / and sqrt alone, so bits are the same everywhere.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace servecast {

struct LeastSquares {
  // One residual a measurement, in units of its scatter, at coordinates within the bounds. False:
  // there is no answer there.
  std::function<bool(const std::vector<double>&, std::vector<double>&)> residuals;
  std::vector<double> start, low, high;
  std::vector<double> step;  // of the central differences
};

// Row-major: a row is a residual, a column a coordinate.
struct Jacobian {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;
  double At(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

struct LeastSquaresFit {
  std::vector<double> at, residuals;
  Jacobian jacobian;           // at the end
  std::vector<bool> at_bound;  // coordinates that the data would push beyond
  double cost = 0;             // sum of squares
  int iterations = 0;
};

// nullopt: no answer at the start, or next to it. O(iterations * coordinates) calls.
std::optional<LeastSquaresFit> FitLeastSquares(const LeastSquares& problem);

// The derivatives at a place; nullopt: no answer next to it.
std::optional<Jacobian> DerivativesAt(const LeastSquares& problem, const std::vector<double>& at);

void RemoveColumn(std::size_t column, Jacobian& jacobian);

// (J^T J)^-1 of the columns that are `used`; 0 elsewhere. Where columns say the same, variances are
// large but finite. A column of zeros has a variance of infinity.
std::vector<double> CovarianceOf(const Jacobian& jacobian, const std::vector<bool>& used);

}  // namespace servecast
