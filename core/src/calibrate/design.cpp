// See design.h. A constant's coordinate is divided by what would matter of it (`coarse`), so that
// intervals of all of them are comparable, and what is not told at all is known to about ten times
// that.
#include "calibrate/design.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "calibrate/runs.h"

namespace servecast {
namespace {

constexpr double kVague = 10;  // what would matter, times this, is known without measuring
constexpr double kTwoSided95 = 1.96;

struct Candidate {
  std::int64_t prompt, output, clients;  // a closed loop
  std::int64_t requests;
};
// From single prompts to as many as a server takes. Short, so that they cost a minute each.
constexpr Candidate kCandidates[] = {
    {128, 1, 1, 20},       {2'048, 1, 1, 20},   {8'192, 1, 1, 10},     {32'768, 1, 1, 5},
    {114'688, 1, 1, 3},    {128, 128, 1, 5},    {128, 128, 32, 128},   {128, 128, 128, 512},
    {16'384, 128, 1, 5},   {65'536, 128, 1, 3}, {4'096, 256, 32, 128}, {1'024, 128, 16, 160},
    {1'024, 128, 64, 640}, {512, 512, 128, 640}};

CalibrationPoint PointOf(const Candidate& candidate) {
  CalibrationPoint point;
  point.form = PointForm::kRun;
  RunLengths prompt, output;
  prompt.mean = static_cast<double>(candidate.prompt);
  output.mean = static_cast<double>(candidate.output);
  RunLoad run;
  run.draws = DrawRuns(candidate.requests, 0, prompt, output, 1);
  run.concurrency = candidate.clients;
  run.one_server = true;  // of several, each gets as much
  point.run = std::make_shared<const RunLoad>(std::move(run));
  point.figures = {{Figure::kTtft, 1}};
  if (candidate.output > 1) {
    point.figures.push_back({Figure::kTpot, 1});
    point.figures.push_back({Figure::kE2e, 1});
  }
  return point;
}

std::string Counted(std::int64_t n) {
  const std::string digits = NumberText(static_cast<double>(n));
  return digits.size() < 4
             ? digits
             : digits.substr(0, digits.size() - 3) + "," + digits.substr(digits.size() - 3);
}

// Of all servers behind one address, where single requests stay single.
AdvisedMeasurement Worded(Candidate c, std::int64_t servers, const std::string& model) {
  if (c.clients > 1) c.clients *= servers, c.requests *= servers;
  AdvisedMeasurement advised;
  advised.command = Format(
      "vllm bench serve --model {} --dataset-name random --random-input-len {} "
      "--random-output-len {} --ignore-eos --max-concurrency {} --num-prompts {} --save-result "
      "--save-detailed",
      model, c.prompt, c.output, c.clients, c.requests);
  advised.what = c.output == 1 ? Format("single prompts of {} tokens", Counted(c.prompt))
                               : Format("{} at a time: prompts of {} tokens, {} out", c.clients,
                                        Counted(c.prompt), c.output);
  return advised;
}

using Matrix = std::vector<double>;  // of all constants, row by row

void AddRows(const std::vector<std::vector<double>>& rows, std::size_t n, Matrix& information) {
  for (const std::vector<double>& row : rows) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) information[a * n + b] += row[a] * row[b];
    }
  }
}

// Its inverse by Gauss and Jordan, and the product of the pivots; of a positive definite one.
double Invert(Matrix information, std::size_t n, Matrix& inverse) {
  inverse.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  double determinant = 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = information[i * n + i];
    determinant *= pivot;
    for (std::size_t k = 0; k < n; ++k) {
      information[i * n + k] /= pivot;
      inverse[i * n + k] /= pivot;
    }
    for (std::size_t j = 0; j < n; ++j) {
      const double factor = information[j * n + i];
      if (j == i || factor == 0) continue;
      for (std::size_t k = 0; k < n; ++k) {
        information[j * n + k] -= factor * information[i * n + k];
        inverse[j * n + k] -= factor * inverse[i * n + k];
      }
    }
  }
  return determinant;
}

}  // namespace

MeasurementDesign::MeasurementDesign(const Scenario& scenario, Measurements measured,
                                     std::string model)
    : server_(ServerOf(scenario)),
      model_(model.empty() ? scenario.model.name : std::move(model)),
      measured_(std::move(measured)) {
  if (server_.cluster.pools.size() > 1) {
    answer_ = Result<MeasurementAdvice>(Issue{"/cluster/pools", "found several, allowed one"});
  }
  for (const CalibrationPoint& point : measured_.points) {
    if (!point.held_out) points_.push_back(point);
  }
  candidates_from_ = points_.size();
  for (const Candidate& candidate : kCandidates) points_.push_back(PointOf(candidate));
}

std::optional<std::vector<std::vector<double>>> MeasurementDesign::RowsOf(std::size_t point) {
  const auto all = CalibrationParametersOf(server_);
  const std::vector<MeasuredFigure>& figures = points_[point].figures;
  std::vector<std::vector<double>> rows(figures.size(), std::vector<double>(all.size(), 0.0));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const CalibrationParameter& p = all[i];
    const double at = p.Coordinate(p.read(server_));
    const double step = p.inverse ? p.step * at : p.step;
    const double low = p.Coordinate(p.inverse ? p.high : p.low);
    Scenario up = server_, down = server_;
    const double above = at + step, below = std::max(at - step, low);
    p.write(up, p.Value(above));
    p.write(down, p.Value(below));
    const auto* more = known_.Of(up, points_, point);
    const auto* less = known_.Of(down, points_, point);
    if (more == nullptr || less == nullptr) return std::nullopt;
    if (!more->ok() || !less->ok()) return std::vector<std::vector<double>>{};
    for (std::size_t f = 0; f < figures.size(); ++f) {
      const double middle = (more->value()[f] + less->value()[f]) / 2;
      const double slope = (more->value()[f] - less->value()[f]) / (above - below);
      const double coarse = p.coarse * (p.inverse ? at : 1);
      if (middle > 0) {
        rows[f][i] = slope / middle / ScatterOf(points_[point].form, figures[f].figure) * coarse;
      }
    }
  }
  return rows;
}

bool MeasurementDesign::Advance(std::int64_t requests) {
  if (answer_) return true;
  known_.Allow(requests);
  std::vector<std::vector<std::vector<double>>> rows;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    std::optional<std::vector<std::vector<double>>> of = RowsOf(i);
    if (!of) return false;
    rows.push_back(*std::move(of));
  }
  const auto all = CalibrationParametersOf(server_);
  const std::size_t n = all.size();
  Matrix information(n * n, 0.0), inverse;
  for (std::size_t i = 0; i < n; ++i) information[i * n + i] = 1 / (kVague * kVague);
  for (std::size_t i = 0; i < candidates_from_; ++i) AddRows(rows[i], n, information);
  Invert(information, n, inverse);
  MeasurementAdvice advice;
  // Of the interval, in the constant's own unit.
  const auto halves = [&](const Matrix& variance,
                          std::optional<double> MeasurementAdvice::Expected::*to) {
    for (std::size_t i = 0; i < n; ++i) {
      const double half = kTwoSided95 * std::sqrt(std::max(0.0, variance[i * n + i]));
      const double value = all[i].read(server_);
      if (half < 1) advice.expected[i].*to = half * all[i].coarse * (all[i].inverse ? value : 1);
    }
  };
  for (const CalibrationParameter& p : all) advice.expected.push_back({&p, {}, {}});
  halves(inverse, &MeasurementAdvice::Expected::now);
  const PoolSpec& pool = server_.cluster.pool();
  const std::int64_t servers =
      std::max<std::int64_t>(1, pool.replicas / pool.attention_data_parallel);
  std::vector<bool> taken(points_.size(), false);
  while (advice.measurements.size() < kAdvisedMeasurements) {
    double best = 0;
    std::size_t chosen = points_.size();
    Matrix best_inverse, best_information;
    for (std::size_t i = candidates_from_; i < points_.size(); ++i) {
      if (taken[i] || rows[i].empty()) continue;
      Matrix with = information, with_inverse;
      AddRows(rows[i], n, with);
      const double volume = Invert(with, n, with_inverse);
      if (!(volume > best)) continue;
      best = volume;
      chosen = i;
      best_inverse = std::move(with_inverse);
      best_information = std::move(with);
    }
    if (chosen == points_.size()) break;
    taken[chosen] = true;
    AdvisedMeasurement advised = Worded(kCandidates[chosen - candidates_from_], servers, model_);
    for (std::size_t i = 0; i < n; ++i) {
      constexpr double kNarrower = 0.6;
      const double before = inverse[i * n + i], after = best_inverse[i * n + i];
      if (std::sqrt(after / before) < kNarrower) advised.tells.emplace_back(all[i].title);
    }
    advice.measurements.push_back(std::move(advised));
    information = std::move(best_information);
    inverse = std::move(best_inverse);
  }
  halves(inverse, &MeasurementAdvice::Expected::then);
  answer_ = Result<MeasurementAdvice>(std::move(advice));
  return true;
}

}  // namespace servecast
