// Ridge regression in closed form: least squares of |y - X w|^2 + lambda |S w|^2, where S has the
// root mean squares of the columns of X, so that lambda means the same for seconds and for shares.
// From triangular factors, which need a row once and do not square what is badly conditioned.
#pragma once

#include <cstddef>
#include <vector>

namespace servecast {

// Of as many numbers each, from the first on.
double Dot(const std::vector<double>& a, const std::vector<double>& b);

// All that least squares of a set of rows need: the triangular factor of [X y], and its size.
class RowFactor {
 public:
  explicit RowFactor(std::size_t columns);
  // The row and its target count `weight` times. O(columns^2).
  void Add(const std::vector<double>& row, double target, double weight);
  void Add(const RowFactor& other);
  // Whether rows are buffered, that Triangle has yet to take in, is its own matter.
  const std::vector<double>& Triangle();  // row-major, square, columns + 1 wide
  std::size_t columns() const { return columns_; }
  double rows() const { return rows_; }  // by weight

 private:
  void Reduce();

  std::size_t columns_;
  double rows_ = 0;
  std::vector<double> triangle_, pending_;
};

// Columns that others before them in `order` do not make up: the rest says nothing of its own.
std::vector<bool> IndependentColumns(RowFactor& factor, const std::vector<std::size_t>& order);

struct RidgeFit {
  std::vector<double> coefficients;  // 0 where a column is not used
  double degrees = 0;                // trace of X (X'X + lambda S'S)^-1 X'
};
RidgeFit FitRidge(RowFactor& factor, const std::vector<bool>& used, double lambda);

// Half the width of an interval of each coefficient of a fit without lambda: `t` standard errors,
// which the rows' own residuals tell whatever their scatter depends on (White 1980).
std::vector<double> HalfWidths(RowFactor& factor, const std::vector<bool>& used,
                               const RidgeFit& fit, const std::vector<std::vector<double>>& rows,
                               const std::vector<double>& residuals,
                               const std::vector<double>& weights, double t);

}  // namespace servecast
