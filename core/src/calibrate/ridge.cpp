// See ridge.h. Householder's reflections in plain loops: their sums have one order, and a fit the
// same bits on every machine.
#include "calibrate/ridge.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace servecast {
namespace {

using Vector = std::vector<double>;
using Dense = std::vector<Vector>;  // all of one length

constexpr std::size_t kRowsAtOnce = 128;
constexpr double kDependent = 1e-7;  // of a column's length that is its own

double Length(const Vector& a) { return std::sqrt(Dot(a, a)); }
void AddTo(Vector& sum, double times, const Vector& a) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += times * a[i];
}

// A matrix of `wide` columns that lies row by row.
Dense ByColumns(const std::vector<double>& rows, std::size_t wide) {
  Dense out(wide, Vector(rows.size() / wide));
  for (std::size_t i = 0; i < rows.size(); ++i) out[i % wide][i / wide] = rows[i];
  return out;
}

// The triangular R of A = QR, in its place: of each column all below the diagonal is reflected into
// it (Golub and Van Loan, Matrix Computations, algorithm 5.2.1). At least as many rows as columns
// but the last.
void Triangulate(Dense& a) {
  for (std::size_t j = 0; j < a.size() && j < a[j].size(); ++j) {
    Vector v(a[j].begin() + static_cast<std::ptrdiff_t>(j), a[j].end());
    const double length = Length(v);
    const double reflected = v[0] >= 0 ? -length : length;
    v[0] -= reflected;
    std::fill(a[j].begin() + static_cast<std::ptrdiff_t>(j), a[j].end(), 0.0);
    a[j][j] = reflected;
    if (v[0] == 0) continue;  // all zeros
    for (std::size_t k = j + 1; k < a.size(); ++k) {
      const double along = std::inner_product(v.begin(), v.end(),
                                              a[k].begin() + static_cast<std::ptrdiff_t>(j), 0.0);
      const double times = along / (reflected * v[0]);  // -2 v.a / v.v
      for (std::size_t i = 0; i < v.size(); ++i) a[k][j + i] += times * v[i];
    }
  }
}

// x of R x = y, for the upper triangle of the first columns of `r`.
Vector SolveTriangle(const Dense& r, Vector y, std::size_t columns) {
  y.resize(columns);
  for (std::size_t j = columns; j-- > 0;) {
    y[j] /= r[j][j];
    for (std::size_t i = 0; i < j; ++i) y[i] -= y[j] * r[j][i];
  }
  return y;
}
Dense InverseOfTriangle(const Dense& r, std::size_t columns) {
  Dense inverse(columns);
  for (std::size_t j = 0; j < columns; ++j) {
    Vector unit(columns, 0.0);
    unit[j] = 1;
    inverse[j] = SolveTriangle(r, std::move(unit), columns);
  }
  return inverse;
}
// The rows of a matrix by columns, as columns.
Dense Transposed(const Dense& a) {
  Dense out(a.empty() ? 0 : a[0].size(), Vector(a.size()));
  for (std::size_t j = 0; j < a.size(); ++j) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i][j] = a[j][i];
  }
  return out;
}
Dense Times(const Dense& a, const Dense& b) {
  Dense out;
  for (const Vector& of : b) {
    Vector sum(a[0].size(), 0.0);
    for (std::size_t i = 0; i < of.size(); ++i) AddTo(sum, of[i], a[i]);
    out.push_back(std::move(sum));
  }
  return out;
}

// The used columns, each of length sqrt(rows), and the target.
struct Scaled {
  Dense x;
  Vector y, scale;
  std::vector<std::size_t> columns;
};

Scaled ScaledOf(RowFactor& factor, const std::vector<bool>& used) {
  Dense all = ByColumns(factor.Triangle(), factor.columns() + 1);
  Scaled out;
  for (std::size_t j = 0; j < factor.columns(); ++j) {
    const double length = Length(all[j]);
    if (!used[j] || !(length > 0)) continue;
    out.columns.push_back(j);
    out.scale.push_back(length / std::sqrt(factor.rows()));
    for (double& value : all[j]) value /= out.scale.back();
    out.x.push_back(std::move(all[j]));
  }
  out.y = std::move(all.back());
  return out;
}

// R of [X; sqrt(lambda) I], whose least squares are the ridge's, and beside it Q'[y; 0].
Dense Ridge(const Scaled& s, double lambda) {
  Dense all = s.x;
  all.push_back(s.y);
  for (std::size_t j = 0; j < all.size(); ++j) {
    all[j].resize(s.y.size() + s.x.size(), 0.0);
    if (j < s.x.size()) all[j][s.y.size() + j] = std::sqrt(lambda);
  }
  Triangulate(all);
  return all;
}

}  // namespace

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

RowFactor::RowFactor(std::size_t columns)
    : columns_(columns), triangle_((columns + 1) * (columns + 1), 0.0) {}

void RowFactor::Add(const std::vector<double>& row, double target, double weight) {
  const double root = std::sqrt(weight);
  for (std::size_t j = 0; j < columns_; ++j) pending_.push_back(row[j] * root);
  pending_.push_back(target * root);
  rows_ += weight;
  if (pending_.size() >= kRowsAtOnce * (columns_ + 1)) Reduce();
}

void RowFactor::Add(const RowFactor& other) {
  pending_.insert(pending_.end(), other.triangle_.begin(), other.triangle_.end());
  pending_.insert(pending_.end(), other.pending_.begin(), other.pending_.end());
  rows_ += other.rows_;
  Reduce();
}

const std::vector<double>& RowFactor::Triangle() {
  Reduce();
  return triangle_;
}

void RowFactor::Reduce() {
  if (pending_.empty()) return;
  const std::size_t n = columns_ + 1;
  pending_.insert(pending_.begin(), triangle_.begin(), triangle_.end());
  Dense rows = ByColumns(pending_, n);
  Triangulate(rows);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i; j < n; ++j) triangle_[i * n + j] = rows[j][i];
  }
  pending_.clear();
}

std::vector<bool> IndependentColumns(RowFactor& factor, const std::vector<std::size_t>& order) {
  const Dense all = ByColumns(factor.Triangle(), factor.columns() + 1);
  std::vector<bool> used(factor.columns(), false);
  Dense basis;
  for (const std::size_t j : order) {
    Vector own = all[j];
    const double length = Length(own);
    if (!(length > 0)) continue;
    for (int pass = 0; pass < 2; ++pass) {
      for (const Vector& b : basis) AddTo(own, -Dot(b, own), b);
    }
    const double left = Length(own);
    if (left <= kDependent * length) continue;
    used[j] = true;
    for (double& value : own) value /= left;
    basis.push_back(std::move(own));
  }
  return used;
}

RidgeFit FitRidge(RowFactor& factor, const std::vector<bool>& used, double lambda) {
  RidgeFit fit;
  fit.coefficients.assign(factor.columns(), 0.0);
  const Scaled s = ScaledOf(factor, used);
  const std::size_t k = s.columns.size();
  if (k == 0) return fit;
  const Dense r = Ridge(s, lambda);
  const Vector w = SolveTriangle(r, r[k], k);
  for (std::size_t j = 0; j < k; ++j) fit.coefficients[s.columns[j]] = w[j] / s.scale[j];
  // The trace of the hat matrix X (X'X + lambda I)^-1 X', where X'X + lambda I is R'R.
  for (const Vector& each : Times(s.x, InverseOfTriangle(r, k))) fit.degrees += Dot(each, each);
  return fit;
}

std::vector<double> HalfWidths(RowFactor& factor, const std::vector<bool>& used,
                               const RidgeFit& fit, const std::vector<std::vector<double>>& rows,
                               const std::vector<double>& residuals,
                               const std::vector<double>& weights, double t) {
  std::vector<double> widths(factor.columns(), 0.0);
  const Scaled s = ScaledOf(factor, used);
  const std::size_t k = s.columns.size();
  if (k == 0) return widths;
  const auto n = static_cast<double>(rows.size());
  const double of_each = n / std::max(1.0, n - fit.degrees);
  Dense scatter(k, Vector(k, 0.0));
  Vector x(k);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < k; ++j) x[j] = rows[i][s.columns[j]] / s.scale[j];
    const double own = weights[i] * residuals[i];
    for (std::size_t j = 0; j < k; ++j) AddTo(scatter[j], own * own * of_each * x[j], x);
  }
  const Dense root = InverseOfTriangle(Ridge(s, 0), k);
  const Dense inverse = Times(root, Transposed(root));  // (X'X)^-1
  const Dense covariance = Times(inverse, Times(scatter, inverse));
  for (std::size_t j = 0; j < k; ++j) {
    widths[s.columns[j]] = t * std::sqrt(std::max(0.0, covariance[j][j])) / s.scale[j];
  }
  return widths;
}

}  // namespace servecast
