// See power_fit.h.
#include "calibrate/power_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "calibrate/predict.h"
#include "metrics/power.h"

namespace servecast {
namespace {

// Of a mean, as a share: NVML says +-5 W or 5 % of what it reports, by card.
constexpr double kPowerScatter = 0.05;
constexpr double kNormal = 1.96;
// From here on a card is at its cap, and its power says nothing of the constants.
constexpr double kNearCap = 0.95;
// A constant whose 95 % interval reaches this share of the card's range to a side is not told.
constexpr double kCoarse = 0.5;
// Times as long as the run: measured before and after it, too.
constexpr double kLonger = 1.2;

// Of one row: what the constants are multiplied by, and what the report has for them now.
struct PowerUse {
  std::array<double, 3> of{};  // as kPowerConstants
  double seconds = 0;
  std::int64_t gpus = 1;
  std::optional<double> watts;
};

Result<PowerUse> UseIn(const Scenario& server, const MeasuredPower& power) {
  const Result<Report> ran =
      RunRequests(ServerOfRun(ServerOf(server), *power.run), power.run->draws[0],
                  power.run->concurrency, ReportDetail::kSummary);
  if (!ran.ok()) return Issue{power.label, ran.issues()[0].message};
  const Report& report = ran.value();
  PowerUse use;
  use.of[0] = report.binding.busy_share;
  if (!report.replicas.empty()) {  // several: a share of each
    use.of[0] = 0;
    for (const ReplicaReport& replica : report.replicas) use.of[0] += replica.busy_share;
    use.of[0] /= static_cast<double>(report.replicas.size());
  }
  use.of[1] = report.mfu.value_or(0);
  use.of[2] = report.bandwidth_use.value_or(0);
  use.seconds = report.simulated_s;
  use.gpus = report.gpus;
  if (report.power) use.watts = report.power->mean_w;
  return use;
}

// Least squares of relative errors in one constant or two, none below 0.
class PowerProblem {
 public:
  PowerProblem(const HardwareSpec& card, const std::vector<MeasuredPower>& measured,
               const std::vector<PowerUse>& uses)
      : card_(card) {
    for (std::size_t i = 0; i < measured.size(); ++i) {
      if (measured[i].held_out || measured[i].mean_w >= kNearCap * CapOfCard()) continue;
      watts_.push_back(measured[i].mean_w);
      uses_.push_back(uses[i].of);
    }
  }

  std::size_t rows() const { return watts_.size(); }

  // Beside busy_w, the one that adds most in these runs: where the law has none, arithmetic.
  std::size_t Slope() const {
    double compute = 0, memory = 0;
    for (const auto& of : uses_) {
      compute += of[1] * card_.compute_w;
      memory += of[2] * card_.memory_w;
    }
    return memory > compute ? 2 : 1;
  }

  // Values of `which` and half of their 95 % intervals; the others are the card's.
  struct Solved {
    std::vector<double> value, half;
  };
  Solved Solve(const std::vector<std::size_t>& which) const {
    Solved solved = which.size() == 1 ? One(which[0]) : Two(which[0], which[1]);
    for (std::size_t i = 0; i < which.size(); ++i) {
      if (solved.value[i] >= 0) continue;
      // At its bound; the other is what is left to it.
      if (which.size() == 1) return {{0}, {solved.half[0]}};
      PowerProblem bound = *this;
      bound.card_.*kPowerConstants[which[i]].member = 0;
      const Solved other = bound.Solve({which[1 - i]});
      solved.value[i] = 0;
      solved.value[1 - i] = other.value[0];
      solved.half[1 - i] = other.half[0];
      break;
    }
    return solved;
  }

 private:
  double CapOfCard() const {
    return card_.power_limit_w > 0 ? std::min(card_.power_limit_w, card_.power_cap_w)
                                   : card_.power_cap_w;
  }

  // Of a row, without those of `which`.
  double Rest(std::size_t row, const std::vector<std::size_t>& which) const {
    double rest = watts_[row] - card_.idle_w;
    for (std::size_t k = 0; k < 3; ++k) {
      if (std::find(which.begin(), which.end(), k) != which.end()) continue;
      rest -= uses_[row][k] * card_.*kPowerConstants[k].member;
    }
    return rest;
  }

  Solved One(std::size_t k) const {
    double squares = 0, products = 0;
    for (std::size_t r = 0; r < rows(); ++r) {
      const double x = uses_[r][k] / watts_[r];
      squares += x * x;
      products += x * Rest(r, {k}) / watts_[r];
    }
    if (!(squares > 0)) return {{0}, {kMostConstantW}};
    return {{products / squares}, {kNormal * kPowerScatter / std::sqrt(squares)}};
  }

  Solved Two(std::size_t a, std::size_t b) const {
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
    for (std::size_t r = 0; r < rows(); ++r) {
      const double x = uses_[r][a] / watts_[r], z = uses_[r][b] / watts_[r];
      const double y = Rest(r, {a, b}) / watts_[r];
      aa += x * x, ab += x * z, bb += z * z, ay += x * y, by += z * y;
    }
    const double determinant = aa * bb - ab * ab;
    if (!(determinant > 1e-12 * aa * bb)) {
      return {{0, 0}, {kMostConstantW, kMostConstantW}};
    }
    const double of = kNormal * kPowerScatter / std::sqrt(determinant);
    return {{(bb * ay - ab * by) / determinant, (aa * by - ab * ay) / determinant},
            {of * std::sqrt(bb), of * std::sqrt(aa)}};
  }

  HardwareSpec card_;
  std::vector<double> watts_;
  std::vector<std::array<double, 3>> uses_;
};

void WarnOfRow(const MeasuredPower& power, const PowerUse& use,
               std::vector<std::string>& warnings) {
  if (power.gpus > 0 && power.gpus != use.gpus) {
    warnings.push_back(Format("{} has {} GPUs, the run {}: its mean counts for those of the run",
                              power.label, power.gpus, use.gpus));
  }
  if (power.seconds > kLonger * use.seconds) {
    warnings.push_back(
        Format("{} is of {} s, the run takes {} s: power beside it is in the mean, as if it were "
               "the run's",
               power.label, ShortNumber(power.seconds), ShortNumber(use.seconds)));
  }
}

Issues RefusalsOf(const Scenario& server, const std::vector<MeasuredPower>& measured) {
  Issues issues;
  for (const MeasuredPower& power : measured) {
    if (power.run != nullptr) continue;
    issues.push_back(
        {power.label,
         "found power without a run, allowed: right behind the file of the one run that "
         "it was measured beside"});
  }
  if (server.hardware.power_cap_w <= 0) {
    issues.push_back({"/hardware/power_cap_w",
                      "found 0, allowed the most that the card draws, in W: without it no power is "
                      "shown"});
  }
  return issues;
}

// Fits busy_w, and what else the rows tell.
void FitConstants(const Scenario& server, const PowerProblem& problem, PowerFit& fit) {
  const HardwareSpec& card = server.hardware;
  const std::size_t slope = problem.Slope();
  const double range = std::max(1.0, card.power_cap_w - card.idle_w);
  std::vector<std::size_t> which = {0, slope};
  PowerProblem::Solved solved = problem.Solve(which);
  const double allowed = kCoarse * std::max(range, card.*kPowerConstants[slope].member);
  if (problem.rows() < 2 || solved.half[1] > allowed) {
    const double stays = card.*kPowerConstants[slope].member;
    fit.warnings.push_back(
        Format("the measured power cannot tell hardware.{} from hardware.busy_w: it stays at {} W; "
               "what tells it: power beside a run of long prompts with one output token each, and "
               "beside one of long answers, both at the highest load",
               kPowerConstants[slope].name, ShortNumber(stays)));
    which = {0};
    solved = problem.Solve(which);
  }
  for (std::size_t i = 0; i < which.size(); ++i) {
    const PowerConstant& constant = kPowerConstants[which[i]];
    const double value = solved.value[i], half = solved.half[i];
    fit.fitted.push_back({&constant, card.*constant.member, std::min(value, kMostConstantW),
                          std::max(0.0, value - half), std::min(value + half, kMostConstantW)});
    if (value > 0) continue;
    fit.warnings.push_back(Format(
        "hardware.{} ends at its limit of 0: the card draws less than the law's other parts say",
        constant.name));
  }
}

}  // namespace

void WritePower(const PowerFit& fit, Scenario& server) {
  for (const FittedPower& each : fit.fitted) {
    server.hardware.*each.constant->member = each.value;
  }
}

Result<PowerFit> FitPower(const Scenario& server, const std::vector<MeasuredPower>& measured) {
  PowerFit fit;
  if (measured.empty()) return fit;
  if (Issues issues = RefusalsOf(server, measured); !issues.empty()) return issues;
  std::vector<PowerUse> uses;
  for (const MeasuredPower& power : measured) {
    Result<PowerUse> use = UseIn(server, power);
    if (!use.ok()) return Issues(use.issues());
    WarnOfRow(power, use.value(), fit.warnings);
    uses.push_back(use.value());
  }
  const PowerProblem problem(server.hardware, measured, uses);
  if (problem.rows() > 0) {
    FitConstants(server, problem, fit);
  } else {
    fit.warnings.push_back(
        "no power to fit: all of it is held out, or above 95 % of the card's cap");
  }
  Scenario fitted = server;
  WritePower(fit, fitted);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Result<PowerUse> after = UseIn(fitted, measured[i]);
    if (!after.ok()) return Issues(after.issues());
    fit.rows.push_back({measured[i].label, measured[i].held_out, measured[i].mean_w,
                        after.value().watts.value_or(0), uses[i].watts});
  }
  return fit;
}

}  // namespace servecast
