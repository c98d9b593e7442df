// See ridge.h. Eigen without vector instructions: its sums then have one order, and a fit the same
// bits on every machine.
#define EIGEN_MPL2_ONLY
#define EIGEN_DONT_VECTORIZE
#define EIGEN_NO_DEBUG
#include "calibrate/ridge.h"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

namespace servecast {
namespace {

using Dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1>;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t kRowsAtOnce = 128;
constexpr double kDependent = 1e-7;  // of a column's length that is its own

Eigen::Index Size(std::size_t n) { return static_cast<Eigen::Index>(n); }
std::size_t Place(Eigen::Index i) { return static_cast<std::size_t>(i); }

// The used columns, each of length sqrt(rows), and the target.
struct Scaled {
  Dense x;
  Vector y, scale;
  std::vector<std::size_t> columns;
};

Scaled ScaledOf(RowFactor& factor, const std::vector<bool>& used) {
  const Eigen::Index n = Size(factor.columns() + 1);
  const Dense all = Eigen::Map<const RowMajor>(factor.Triangle().data(), n, n);
  Scaled out;
  for (std::size_t j = 0; j < factor.columns(); ++j) {
    if (used[j] && all.col(Size(j)).norm() > 0) out.columns.push_back(j);
  }
  out.x.resize(n, Size(out.columns.size()));
  out.scale.resize(Size(out.columns.size()));
  out.y = all.col(n - 1);
  for (std::size_t k = 0; k < out.columns.size(); ++k) {
    const auto column = all.col(Size(out.columns[k]));
    out.scale[Size(k)] = column.norm() / std::sqrt(factor.rows());
    out.x.col(Size(k)) = column / out.scale[Size(k)];
  }
  return out;
}

// [X; sqrt(lambda) I], whose least squares are the ridge's.
Dense Augmented(const Dense& x, double lambda) {
  Dense all = Dense::Zero(x.rows() + x.cols(), x.cols());
  all.topRows(x.rows()) = x;
  all.bottomRows(x.cols()).diagonal().setConstant(std::sqrt(lambda));
  return all;
}

// Of its R.
Dense InverseOf(const Eigen::HouseholderQR<Dense>& qr, Eigen::Index columns) {
  const Dense r = qr.matrixQR().topRows(columns);
  return r.triangularView<Eigen::Upper>().solve(Dense::Identity(columns, columns));
}

}  // namespace

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
  const Eigen::Map<const RowMajor> rows(pending_.data(), Size(pending_.size() / n), Size(n));
  const Eigen::HouseholderQR<Dense> qr{Dense(rows)};
  const Dense r = qr.matrixQR().topRows(Size(n)).triangularView<Eigen::Upper>();
  Eigen::Map<RowMajor>(triangle_.data(), Size(n), Size(n)) = r;
  pending_.clear();
}

std::vector<bool> IndependentColumns(RowFactor& factor, const std::vector<std::size_t>& order) {
  const Eigen::Index n = Size(factor.columns() + 1);
  const Dense all = Eigen::Map<const RowMajor>(factor.Triangle().data(), n, n);
  std::vector<bool> used(factor.columns(), false);
  std::vector<Vector> basis;
  for (const std::size_t j : order) {
    Vector own = all.col(Size(j));
    const double length = own.norm();
    if (!(length > 0)) continue;
    for (int pass = 0; pass < 2; ++pass) {
      for (const Vector& b : basis) own -= b * b.dot(own);
    }
    if (own.norm() <= kDependent * length) continue;
    used[j] = true;
    basis.push_back(own / own.norm());
  }
  return used;
}

RidgeFit FitRidge(RowFactor& factor, const std::vector<bool>& used, double lambda) {
  RidgeFit fit;
  fit.coefficients.assign(factor.columns(), 0.0);
  const Scaled s = ScaledOf(factor, used);
  if (s.columns.empty()) return fit;
  Vector target = Vector::Zero(s.x.rows() + s.x.cols());
  target.head(s.x.rows()) = s.y;
  const Eigen::HouseholderQR<Dense> qr(Augmented(s.x, lambda));
  const Vector w = qr.solve(target);
  for (std::size_t k = 0; k < s.columns.size(); ++k) {
    fit.coefficients[s.columns[k]] = w[Size(k)] / s.scale[Size(k)];
  }
  // The trace of the hat matrix X (X'X + lambda I)^-1 X', where X'X + lambda I is R'R.
  fit.degrees = (s.x * InverseOf(qr, s.x.cols())).squaredNorm();
  return fit;
}

std::vector<double> HalfWidths(RowFactor& factor, const std::vector<bool>& used,
                               const RidgeFit& fit, const std::vector<std::vector<double>>& rows,
                               const std::vector<double>& residuals,
                               const std::vector<double>& weights, double t) {
  std::vector<double> widths(factor.columns(), 0.0);
  const Scaled s = ScaledOf(factor, used);
  const Eigen::Index k = Size(s.columns.size());
  if (k == 0) return widths;
  Dense scatter = Dense::Zero(k, k);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Vector x(k);
    for (Eigen::Index j = 0; j < k; ++j) x[j] = rows[i][s.columns[Place(j)]] / s.scale[j];
    scatter += x * x.transpose() * (weights[i] * weights[i] * residuals[i] * residuals[i]);
  }
  const auto n = static_cast<double>(rows.size());
  scatter *= n / std::max(1.0, n - fit.degrees);
  const Dense root = InverseOf(Eigen::HouseholderQR<Dense>(s.x), k);
  const Dense inverse = root * root.transpose();  // (X'X)^-1
  const Dense covariance = inverse * scatter * inverse;
  for (Eigen::Index j = 0; j < k; ++j) {
    widths[s.columns[Place(j)]] = t * std::sqrt(std::max(0.0, covariance(j, j))) / s.scale[j];
  }
  return widths;
}

}  // namespace servecast
