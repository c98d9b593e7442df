// See calibrate.h. Residuals are relative, in units of what such figures scatter by from run to
// run. A parameter that the measurements cannot tell from others keeps its value: better an honest
// preset than a number that noise chose.
#include "calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "calibrate/least_squares.h"
#include "calibrate/predict.h"
#include "experiment/statistics.h"
#include "io/issues.h"

namespace servecast {

double ScatterOf(PointForm form, Figure figure) {
  if (form != PointForm::kRun) return 0.02;
  return figure == Figure::kTtft ? 0.05 : 0.02;
}

namespace {

// Below so many measurements more than parameters, their own scatter is not known.
constexpr std::size_t kEnoughDegrees = 3;
constexpr double kNormal95 = 1.96;

double SquareOf(double x) { return x * x; }

class Fitter {
 public:
  Fitter(const Scenario& scenario, const Measurements& measurements, KnownPredictions& known)
      : server_(ServerOf(scenario)), points_(measurements.points), known_(known) {
    for (const CalibrationParameter& parameter : CalibrationParametersOf(server_)) {
      parameters_.push_back(&parameter);
    }
  }

  // Where predictions are missing, some answer or other.
  Result<Calibration> Run(const std::vector<std::string>& warnings) {
    if (Issues issues = PredictAll(server_, before_); !issues.empty()) return issues;
    const bool any = std::any_of(points_.begin(), points_.end(),
                                 [](const CalibrationPoint& point) { return !point.held_out; });
    if (!any) return Issue{"", "found no measurement to fit, allowed one at least"};
    std::optional<LeastSquaresFit> fit;
    while (!parameters_.empty()) {
      const LeastSquares problem = ProblemOf();
      // First what the measurements can tell at all, then what they tell where they lead.
      if (!fit) {
        std::optional<Jacobian> at_start = DerivativesAt(problem, problem.start);
        if (at_start && LeaveOut(*std::move(at_start), problem.start, {})) continue;
      }
      fit = FitLeastSquares(problem);
      if (!fit) return Issue{"", "the measured load cannot be simulated near the fitted values"};
      if (!LeaveOut(fit->jacobian, fit->at, fit->at_bound)) break;
    }
    Calibration calibration;
    calibration.warnings = unknown_;
    calibration.unknown = left_;
    if (fit && !parameters_.empty()) AddParameters(*fit, calibration);
    calibration.warnings.insert(calibration.warnings.end(), warnings.begin(), warnings.end());
    if (Issues issues = PredictAll(server_, after_); !issues.empty()) return issues;
    calibration.latency = server_.latency;
    AddErrors(calibration);
    return calibration;
  }

 private:
  using Predictions = std::vector<std::vector<double>>;  // of points, of their figures

  Issues PredictAll(const Scenario& server, Predictions& all) const {
    Issues issues;
    all.clear();
    for (const CalibrationPoint& point : points_) {
      const std::size_t i = all.size();
      const Result<std::vector<double>>* known = known_.Of(server, points_, i);
      if (known == nullptr) return {Issue{"", "not known yet"}};
      const Result<std::vector<double>>& values = *known;
      all.push_back(values.ok() ? values.value() : std::vector<double>());
      if (values.ok()) continue;
      for (const Issue& issue : values.issues()) {
        const std::string what = issue.path.empty() ? "" : issue.path + ": ";
        issues.push_back({point.label, what + issue.message});
      }
    }
    return Bounded(std::move(issues));
  }

  bool Residuals(const std::vector<double>& at, std::vector<double>& residuals) const {
    Scenario server = server_;
    for (std::size_t i = 0; i < at.size(); ++i) {
      parameters_[i]->write(server, parameters_[i]->Value(at[i]));
    }
    residuals.clear();
    for (std::size_t at_point = 0; at_point < points_.size(); ++at_point) {
      const CalibrationPoint& point = points_[at_point];
      if (point.held_out) continue;
      const Result<std::vector<double>>* values = known_.Of(server, points_, at_point);
      if (values == nullptr || !values->ok()) return false;
      for (std::size_t i = 0; i < point.figures.size(); ++i) {
        const MeasuredFigure& figure = point.figures[i];
        residuals.push_back((values->value()[i] / figure.ms - 1) /
                            ScatterOf(point.form, figure.figure));
      }
    }
    return true;
  }

  LeastSquares ProblemOf() const {
    LeastSquares problem;
    problem.residuals = [this](const std::vector<double>& at, std::vector<double>& out) {
      return Residuals(at, out);
    };
    for (const CalibrationParameter* p : parameters_) {
      problem.low.push_back(p->Coordinate(p->inverse ? p->high : p->low));
      problem.high.push_back(p->Coordinate(p->inverse ? p->low : p->high));
      problem.start.push_back(
          std::clamp(p->Coordinate(p->read(server_)), problem.low.back(), problem.high.back()));
      problem.step.push_back(p->inverse ? p->step * problem.start.back() : p->step);
    }
    return problem;
  }

  // The parameter whose estimate goes most with that of `of`, if it does so at all; else their
  // number.
  std::size_t MostLike(const std::vector<double>& covariance, std::size_t of, bool minor) const {
    const std::size_t n = parameters_.size();
    std::size_t like = n;
    double most = 0.5;  // correlations below do not matter
    for (std::size_t i = 0; i < n; ++i) {
      const double both = covariance[i * n + i] * covariance[of * n + of];
      if (i == of || !(both > 0) || (minor && !parameters_[i]->minor)) continue;
      const double correlation = std::fabs(covariance[i * n + of]) / std::sqrt(both);
      if (correlation <= most) continue;
      most = correlation;
      like = i;
    }
    return like;
  }

  // Takes out the parameters that the measurements tell too badly, the worst first; whether any.
  bool LeaveOut(Jacobian jacobian, std::vector<double> at, const std::vector<bool>& at_bound) {
    std::vector<bool> used(at.size(), true);
    for (std::size_t i = 0; i < at_bound.size(); ++i) used[i] = !at_bound[i];
    bool any = false;
    for (auto out = LeaveOutOne(jacobian, at, used); out; out = LeaveOutOne(jacobian, at, used)) {
      const auto place = static_cast<std::ptrdiff_t>(*out);
      RemoveColumn(*out, jacobian);
      at.erase(at.begin() + place);
      used.erase(used.begin() + place);
      any = true;
    }
    return any;
  }

  // The place of the one that was taken out.
  std::optional<std::size_t> LeaveOutOne(const Jacobian& jacobian, const std::vector<double>& at,
                                         const std::vector<bool>& used) {
    const std::size_t n = parameters_.size();
    const std::vector<double> covariance = CovarianceOf(jacobian, used);
    std::size_t worst = n;
    double worst_share = 1;
    for (std::size_t i = 0; i < n; ++i) {
      const double scale = parameters_[i]->coarse * (parameters_[i]->inverse ? at[i] : 1);
      const double share = kNormal95 * std::sqrt(covariance[i * n + i]) / scale;
      if (!(share > worst_share)) continue;
      worst = i;
      worst_share = share;
    }
    if (worst == n) return std::nullopt;
    std::size_t like = std::isfinite(worst_share) ? MostLike(covariance, worst, false) : n;
    if (!parameters_[worst]->minor && like < n) {
      const std::size_t minor = MostLike(covariance, worst, true);
      if (minor < n) {
        like = worst;
        worst = minor;
      }
    }
    const CalibrationParameter& p = *parameters_[worst];
    left_.push_back({&p, like < n ? parameters_[like] : nullptr, p.read(server_)});
    unknown_.push_back(
        Format("the measurements {} {}{}: it stays at {}{}; what tells it: {}",
               like < n ? "cannot tell" : "say too little of", p.path,
               like < n ? Format(" from {}", parameters_[like]->path) : std::string(),
               ShortNumber(p.read(server_)),
               p.unit == std::string_view("1") ? "" : Format(" {}", p.unit), p.told_by));
    parameters_.erase(parameters_.begin() + static_cast<std::ptrdiff_t>(worst));
    return worst;
  }

  void AddParameters(const LeastSquaresFit& fit, Calibration& calibration) {
    const std::size_t n = parameters_.size();
    std::vector<bool> used(n, true);
    std::size_t free = 0;
    for (std::size_t i = 0; i < n; ++i) {
      used[i] = !fit.at_bound[i];
      free += used[i] ? 1 : 0;
    }
    const std::size_t m = fit.residuals.size();
    const bool enough = m >= free + kEnoughDegrees;
    const double degrees = enough ? static_cast<double>(m - free) : 0;
    const double scatter = enough ? fit.cost / degrees : 1;
    const double t = enough ? StudentT(degrees, 0.975) : kNormal95;
    if (!enough) {
      calibration.warnings.push_back(
          Format("{} figures for {} parameters: intervals take it that means scatter by 2 %, those "
                 "of TTFT under load by 5 %",
                 m, free));
    }
    const std::vector<double> covariance = CovarianceOf(fit.jacobian, used);
    for (std::size_t i = 0; i < n; ++i) {
      const CalibrationParameter& p = *parameters_[i];
      FittedParameter fitted;
      fitted.parameter = &p;
      fitted.before = p.read(server_);
      fitted.value = p.Value(fit.at[i]);
      fitted.at_limit = fit.at_bound[i];
      const double half = used[i] ? t * std::sqrt(scatter * covariance[i * n + i]) : 0;
      const auto bounded = [&p](double coordinate) {
        const double least = p.Coordinate(p.inverse ? p.high : p.low);
        const double most = p.Coordinate(p.inverse ? p.low : p.high);
        return p.Value(std::clamp(coordinate, least, most));
      };
      const double one = bounded(fit.at[i] - half), other = bounded(fit.at[i] + half);
      fitted.low = std::min(one, other);
      fitted.high = std::max(one, other);
      if (fitted.at_limit) {
        calibration.warnings.push_back(
            Format("{} ends at its limit of {}: something is slower or faster than the model knows",
                   p.path, ShortNumber(fitted.value)));
      }
      calibration.fitted.push_back(fitted);
    }
    for (const FittedParameter& fitted : calibration.fitted) {
      fitted.parameter->write(server_, fitted.value);
    }
  }

  void AddErrors(Calibration& calibration) const {
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const CalibrationPoint& point = points_[i];
      for (std::size_t j = 0; j < point.figures.size(); ++j) {
        const MeasuredFigure& figure = point.figures[j];
        calibration.residuals.push_back({point.label, point.form, figure.figure, point.held_out,
                                         PlaceOf(point), static_cast<double>(point.context),
                                         figure.ms, before_[i][j], after_[i][j]});
        AddError(calibration.residuals.back(), calibration.errors);
      }
    }
    for (CalibrationError& error : calibration.errors) {
      AddMedians(calibration.residuals, error);
      const auto n = static_cast<double>(error.points);
      for (CalibrationError::Off* off : {&error.before, &error.after}) {
        off->mean /= n;
        off->rms = std::sqrt(off->rms / n);
      }
    }
    std::stable_sort(calibration.errors.begin(), calibration.errors.end(),
                     [](const CalibrationError& a, const CalibrationError& b) {
                       return a.held_out < b.held_out;
                     });
  }

  static double PlaceOf(const CalibrationPoint& point) {
    if (point.form == PointForm::kPrompt) return static_cast<double>(point.prompt);
    if (point.form == PointForm::kDecodeStep) return static_cast<double>(point.batch);
    if (point.run->rate_per_s > 0) return point.run->rate_per_s;
    return static_cast<double>(point.run->concurrency.value_or(0));
  }

  static double PercentOff(double ms, double measured) {
    return 100 * std::fabs(ms / measured - 1);
  }

  static void AddMedians(const std::vector<PointResidual>& residuals, CalibrationError& error) {
    std::vector<double> before, after;
    for (const PointResidual& of : residuals) {
      if (of.form != error.form || of.figure != error.figure || of.held_out != error.held_out) {
        continue;
      }
      before.push_back(PercentOff(of.before_ms, of.measured_ms));
      after.push_back(PercentOff(of.after_ms, of.measured_ms));
    }
    const auto median = [](std::vector<double>& values) {
      std::sort(values.begin(), values.end());
      const std::size_t n = values.size();
      return (values[(n - 1) / 2] + values[n / 2]) / 2;
    };
    error.before.median = median(before);
    error.after.median = median(after);
  }

  static void AddError(const PointResidual& of, std::vector<CalibrationError>& errors) {
    auto at = std::find_if(errors.begin(), errors.end(), [&of](const CalibrationError& e) {
      return e.form == of.form && e.figure == of.figure && e.held_out == of.held_out;
    });
    if (at == errors.end()) {
      errors.push_back({of.form, of.figure, of.held_out, 0, {}, {}});
      at = errors.end() - 1;
    }
    ++at->points;
    const auto add = [&of](double ms, CalibrationError::Off& off) {
      const double percent = PercentOff(ms, of.measured_ms);
      off.mean += percent;
      off.rms += SquareOf(percent);
      off.most = std::max(off.most, percent);
    };
    add(of.before_ms, at->before);
    add(of.after_ms, at->after);
  }

  Scenario server_;
  const std::vector<CalibrationPoint>& points_;
  KnownPredictions& known_;
  std::vector<const CalibrationParameter*> parameters_;  // that are fitted
  std::vector<UnknownParameter> left_;
  std::vector<std::string> unknown_;  // the same in words
  Predictions before_, after_;
};

void Widen(const char* name, double value, std::vector<SeenRange>& seen) {
  const auto at = std::find_if(seen.begin(), seen.end(), [name](const SeenRange& range) {
    return std::string_view(range.name) == name;
  });
  if (at == seen.end()) {
    seen.push_back({name, value, value});
  } else {
    at->low = std::min(at->low, value);
    at->high = std::max(at->high, value);
  }
}

// Loads are those of one replica, as each of the scenario's gets an equal share.
std::vector<SeenRange> SeenIn(const std::vector<CalibrationPoint>& points, const Scenario& server) {
  std::vector<SeenRange> seen;
  for (const CalibrationPoint& point : points) {
    if (point.held_out) continue;
    if (point.form == PointForm::kPrompt) {
      Widen("prompt_tokens", static_cast<double>(point.prompt), seen);
    } else if (point.form == PointForm::kDecodeStep) {
      Widen("batch", static_cast<double>(point.batch), seen);
      Widen("context_tokens", static_cast<double>(point.context), seen);
    } else {
      for (const TraceRow& row : point.run->draws[0].rows) {
        Widen("prompt_tokens", row.prompt_tokens, seen);
        Widen("output_tokens", row.output_tokens, seen);
      }
      const auto replicas = static_cast<double>(ServerOfRun(server, *point.run).cluster.Replicas());
      if (point.run->rate_per_s > 0) Widen("rate_per_s", point.run->rate_per_s / replicas, seen);
      if (point.run->concurrency) {
        Widen("concurrency", static_cast<double>(*point.run->concurrency) / replicas, seen);
      }
    }
  }
  return seen;
}

}  // namespace

CalibrationRun::CalibrationRun(const Scenario& scenario, Measurements measurements)
    : server_(scenario), measurements_(std::move(measurements)) {
  Issues issues;
  if (scenario.cluster.pools.size() > 1) {
    issues.push_back({"/cluster/pools",
                      Format("found {} pools, allowed one: which of them took how long, no client "
                             "can tell. Calibrate each pool with measurements of its own",
                             scenario.cluster.pools.size())});
  }
  const std::string& backend = scenario.latency.backend;
  if (backend != "auto" && backend != "analytic" && backend != "operators" &&
      backend != "blackbox") {
    issues.push_back({"/latency/backend",
                      Format("found \"{}\", allowed \"auto\", \"analytic\" or \"blackbox\", whose "
                             "parameters are fitted",
                             backend)});
  }
  if (!issues.empty()) answer_ = std::move(issues);
}

bool CalibrationRun::Advance(std::int64_t requests) {
  if (answer_) return true;
  if (!fitted_) {
    known_.Allow(requests);
    Result<Calibration> made = Fitter(server_, measurements_, known_).Run(measurements_.warnings);
    if (known_.missing()) return false;
    if (!made.ok()) {
      answer_ = std::move(made);
      return true;
    }
    made.value().seen = SeenIn(measurements_.points, server_);
    made.value().replicas = server_.cluster.Replicas();
    fitted_ = std::move(made.value());
    return false;
  }
  if (replayed_ < measurements_.points.size()) {
    Replay();
    return false;
  }
  Result<PowerFit> power = FitPower(Fitted(), measurements_.power);
  if (!power.ok()) {
    answer_ = Issues(power.issues());
    return true;
  }
  fitted_->warnings.insert(fitted_->warnings.end(), power.value().warnings.begin(),
                           power.value().warnings.end());
  fitted_->power = std::move(power.value());
  answer_ = *std::move(fitted_);
  return true;
}

// With the constants of time.
Scenario CalibrationRun::Fitted() const {
  Scenario fitted = ServerOf(server_);
  for (const FittedParameter& p : fitted_->fitted) p.parameter->write(fitted, p.value);
  return fitted;
}

// A slice has one run, before and after: fits have a hundred.
void CalibrationRun::Replay() {
  const CalibrationPoint& point = measurements_.points[replayed_++];
  if (!point.run || point.run->seen.ttft.size() < kLeastReplayed) return;
  const Scenario before = ServerOf(server_), after = Fitted();
  Result<std::vector<ReplayDistance>> was = CompareRun(before, *point.run);
  Result<std::vector<ReplayDistance>> is = CompareRun(after, *point.run);
  if (!was.ok() || !is.ok()) return;  // a fit without an answer for it would have said so
  std::string off;
  for (const ReplayDistance& d : is.value()) {
    if (!d.met) off += Format("{}{}", off.empty() ? "" : ", ", d.figure);
  }
  if (!off.empty()) {
    fitted_->warnings.push_back(
        Format("{}: replayed one by one with the fitted constants, it is still off in {}, by a "
               "distance of {} or more or by {} % in the median",
               point.label, off, ShortNumber(kMostKs), ShortNumber(kMostMedianError)));
  }
  fitted_->replays.push_back(
      {point.label, point.held_out, std::move(was.value()), std::move(is.value())});
}

double CalibrationRun::Progress() const {
  constexpr double kUsual = 160, kLeast = 20;  // servers that a fit tries, and at the end
  if (answer_) return 1;
  const auto tried = static_cast<double>(known_.servers());
  return tried / (tried + std::max(kLeast, kUsual - tried));
}

Result<Calibration> Calibrate(const Scenario& scenario, const Measurements& measurements) {
  CalibrationRun run(scenario, measurements);
  while (!run.Advance(INT64_MAX)) {
  }
  return run.answer();
}

}  // namespace servecast
