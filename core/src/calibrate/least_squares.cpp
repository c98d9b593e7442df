// See least_squares.h.
#include "calibrate/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace servecast {
namespace {

constexpr int kMostIterations = 60;
constexpr double kEnough = 1e-9;   // relative fall of the cost
constexpr double kDamping = 1e-3;  // at first, and where derivatives were measured again
// So many steps in a row that lead nowhere, until derivatives that were guessed are measured.
constexpr int kMostGuessed = 2;
// Of correlations, so that those of 1 can be inverted: standard deviations up to 1e6 times larger.
constexpr double kRidge = 1e-12;

double SumOfSquares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum;
}

// Solves A x = b of a symmetric positive definite A in place; false when it is not.
class Cholesky {
 public:
  Cholesky(std::vector<double> matrix, std::size_t n) : l_(std::move(matrix)), n_(n) {
    for (std::size_t j = 0; j < n_ && good_; ++j) {
      for (std::size_t i = j; i < n_; ++i) {
        double sum = l_[i * n_ + j];
        for (std::size_t k = 0; k < j; ++k) sum -= l_[i * n_ + k] * l_[j * n_ + k];
        if (i == j) {
          good_ = sum > 0 && std::isfinite(sum);
          l_[j * n_ + j] = good_ ? std::sqrt(sum) : 1;
        } else {
          l_[i * n_ + j] = sum / l_[j * n_ + j];
        }
      }
    }
  }
  bool good() const { return good_; }
  void Solve(std::vector<double>& b) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= l_[i * n_ + k] * b[k];
      b[i] /= l_[i * n_ + i];
    }
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t k = i + 1; k < n_; ++k) b[i] -= l_[k * n_ + i] * b[k];
      b[i] /= l_[i * n_ + i];
    }
  }

 private:
  std::vector<double> l_;
  std::size_t n_;
  bool good_ = true;
};

std::vector<double> NormalMatrix(const Jacobian& j, const std::vector<std::size_t>& columns) {
  const std::size_t n = columns.size();
  std::vector<double> matrix(n * n, 0.0);
  for (std::size_t row = 0; row < j.rows; ++row) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        matrix[a * n + b] += j.At(row, columns[a]) * j.At(row, columns[b]);
      }
    }
  }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < a; ++b) matrix[b * n + a] = matrix[a * n + b];
  }
  return matrix;
}

// Half of the cost's slope in each coordinate.
std::vector<double> SlopesOf(const LeastSquaresFit& fit) {
  std::vector<double> slopes(fit.at.size(), 0.0);
  for (std::size_t row = 0; row < fit.jacobian.rows; ++row) {
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      slopes[i] += fit.jacobian.At(row, i) * fit.residuals[row];
    }
  }
  return slopes;
}

void FindBounds(const LeastSquares& problem, const std::vector<double>& slopes,
                LeastSquaresFit& fit) {
  for (std::size_t i = 0; i < fit.at.size(); ++i) {
    fit.at_bound[i] = (fit.at[i] <= problem.low[i] && slopes[i] > 0) ||
                      (fit.at[i] >= problem.high[i] && slopes[i] < 0);
  }
}

// Where a step with this damping leads; nullopt: nowhere.
std::optional<std::vector<double>> Stepped(const LeastSquares& problem, const LeastSquaresFit& fit,
                                           const std::vector<double>& slopes, double damping) {
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < fit.at.size(); ++i) {
    if (!fit.at_bound[i]) free.push_back(i);
  }
  if (free.empty()) return std::nullopt;
  std::vector<double> matrix = NormalMatrix(fit.jacobian, free);
  std::vector<double> move(free.size());
  for (std::size_t a = 0; a < free.size(); ++a) {
    double& diagonal = matrix[a * free.size() + a];
    diagonal += damping * diagonal + std::numeric_limits<double>::min();
    move[a] = -slopes[free[a]];
  }
  const Cholesky solver(std::move(matrix), free.size());
  if (!solver.good()) return std::nullopt;
  solver.Solve(move);
  std::vector<double> at = fit.at;
  for (std::size_t a = 0; a < free.size(); ++a) {
    const std::size_t i = free[a];
    at[i] = std::clamp(at[i] + move[a], problem.low[i], problem.high[i]);
  }
  return at;
}

// Moves to `at`, with Broyden's guess of the derivatives there: the least change with which they
// explain the step, coordinates in units of their `step`. It costs no call where measuring them
// takes two a coordinate.
void FollowStep(const LeastSquares& problem, const std::vector<double>& at,
                std::vector<double> residuals, LeastSquaresFit& fit) {
  Jacobian& j = fit.jacobian;
  std::vector<double> move(at.size()), scaled(at.size());
  double square = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    move[i] = at[i] - fit.at[i];
    scaled[i] = move[i] / (problem.step[i] * problem.step[i]);
    square += move[i] * scaled[i];
  }
  for (std::size_t row = 0; row < j.rows && square > 0; ++row) {
    double left = residuals[row] - fit.residuals[row];
    for (std::size_t i = 0; i < at.size(); ++i) left -= j.At(row, i) * move[i];
    for (std::size_t i = 0; i < at.size(); ++i) {
      j.values[row * j.columns + i] += left * scaled[i] / square;
    }
  }
  fit.at = at;
  fit.residuals = std::move(residuals);
}

}  // namespace

std::optional<Jacobian> DerivativesAt(const LeastSquares& problem, const std::vector<double>& at) {
  Jacobian j;
  j.columns = at.size();
  std::vector<double> above, below;
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::vector<double> up = at, down = at;
    up[i] = std::min(at[i] + problem.step[i], problem.high[i]);
    down[i] = std::max(at[i] - problem.step[i], problem.low[i]);
    if (!problem.residuals(up, above) || !problem.residuals(down, below)) return std::nullopt;
    j.rows = above.size();
    j.values.resize(j.rows * j.columns);
    for (std::size_t row = 0; row < j.rows; ++row) {
      j.values[row * j.columns + i] = (above[row] - below[row]) / (up[i] - down[i]);
    }
  }
  return j;
}

std::optional<LeastSquaresFit> FitLeastSquares(const LeastSquares& problem) {
  LeastSquaresFit fit;
  fit.at = problem.start;
  fit.at_bound.assign(fit.at.size(), false);
  if (!problem.residuals(fit.at, fit.residuals)) return std::nullopt;
  fit.cost = SumOfSquares(fit.residuals);
  double damping = kDamping;
  for (bool done = false; !done; ++fit.iterations) {
    const bool guessed = fit.jacobian.rows > 0;
    if (!guessed) {
      std::optional<Jacobian> derivatives = DerivativesAt(problem, fit.at);
      if (!derivatives) return std::nullopt;
      fit.jacobian = *std::move(derivatives);
    }
    const std::vector<double> slopes = SlopesOf(fit);
    FindBounds(problem, slopes, fit);
    bool falls = false;
    // The damping grows until a step leads down; where none does, this is the lowest place.
    for (int tries = 0; damping < 1e6 && fit.iterations < kMostIterations; damping *= 5) {
      if (guessed && tries++ == kMostGuessed) break;
      const auto at = Stepped(problem, fit, slopes, damping);
      std::vector<double> residuals;
      if (!at || !problem.residuals(*at, residuals)) continue;
      const double cost = SumOfSquares(residuals);
      if (!(cost < fit.cost)) continue;
      falls = fit.cost - cost > kEnough * fit.cost;
      FollowStep(problem, *at, std::move(residuals), fit);
      fit.cost = cost;
      damping = std::max(damping / 10, 1e-9);
      break;
    }
    done = !falls && (!guessed || fit.iterations >= kMostIterations);
    if (falls || done) continue;
    damping = kDamping;
    fit.jacobian = {};
  }
  return fit;
}

void RemoveColumn(std::size_t column, Jacobian& jacobian) {
  std::vector<double> values;
  for (std::size_t i = 0; i < jacobian.values.size(); ++i) {
    if (i % jacobian.columns != column) values.push_back(jacobian.values[i]);
  }
  jacobian.values = std::move(values);
  --jacobian.columns;
}

std::vector<double> CovarianceOf(const Jacobian& jacobian, const std::vector<bool>& used) {
  const std::size_t n = jacobian.columns;
  std::vector<double> covariance(n * n, 0.0), norms(n, 0.0);
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t row = 0; row < jacobian.rows; ++row) {
      norms[i] += jacobian.At(row, i) * jacobian.At(row, i);
    }
    norms[i] = std::sqrt(norms[i]);
    if (!used[i]) continue;
    if (norms[i] > 0) {
      columns.push_back(i);
    } else {
      covariance[i * n + i] = std::numeric_limits<double>::infinity();
    }
  }
  const std::size_t m = columns.size();
  std::vector<double> matrix = NormalMatrix(jacobian, columns);
  for (std::size_t a = 0; a < m; ++a) {
    for (std::size_t b = 0; b < m; ++b) matrix[a * m + b] /= norms[columns[a]] * norms[columns[b]];
    matrix[a * m + a] += kRidge;
  }
  double ridge = kRidge;  // more of it where rounding asks for more
  while (m > 0 && !Cholesky(matrix, m).good() && ridge < 1) {
    for (std::size_t a = 0; a < m; ++a) matrix[a * m + a] += 9 * ridge;
    ridge *= 10;
  }
  const Cholesky solver(std::move(matrix), m);
  for (std::size_t a = 0; a < m; ++a) {
    std::vector<double> unit(m, 0.0);
    unit[a] = 1;
    solver.Solve(unit);
    for (std::size_t b = 0; b < m; ++b) {
      covariance[columns[b] * n + columns[a]] = unit[b] / (norms[columns[a]] * norms[columns[b]]);
    }
  }
  return covariance;
}

}  // namespace servecast
