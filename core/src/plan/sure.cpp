// See sure.h. Probability falls with load and rises with replicas. In normal quantiles it falls
// about straight along the line, so a place is looked for on a straight line: through the two
// places around it, else through the two nearest, or with a usual slope.
//
//     probability   0.97   0.92 | 0.85   0.31        at_90: the heaviest place before the first
//     load            40     42 |   43     48               that has less, once both are close
#include "plan/sure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/math.h"
#include "base/text.h"
#include "metrics/words.h"
#include "plan/root_finder.h"

namespace servecast {
namespace {

constexpr double kEvenOdds = 0.5;
// Near even odds a run is near its limit, and would take all the work that it may; it need not.
constexpr std::int64_t kWorkForEven = 300'000;
constexpr std::size_t kMostSure = 6, kMostInAll = 8;  // places: for 90 %; for both
// How near two places are that count as one, as a ratio: around 90 %, and around even odds.
constexpr double kCloseToSure = 1.025, kCloseToEven = 1.05;
constexpr double kFarthestSure = 8;  // times the answer, towards the light end
constexpr double kUsualFall = 12;    // of normal quantiles, along the line
constexpr double kLeastFall = 2, kMostFall = 60;
constexpr double kShortestStep = 0.02, kLongestStep = 0.8;  // of one step, along the line
constexpr double kSameOdds = 0.025;                         // above a probability that count as it
constexpr double kSafe = 0.15;  // that is aimed beside a probability, on the safe side

double QuantileOf(double probability) {
  return NormalQuantile(std::clamp(probability, 0.005, 0.995));
}

// `servecast run` states no probability where requests alone that are not served decide, or where
// some target has no figure in its band; then its verdict stands.
std::optional<double> ByVerdict(const Report& report) {
  const VerdictState state = report.verdict.state;
  if (state == VerdictState::kMisses || state == VerdictState::kOverloaded) return 0;
  return std::nullopt;
}

}  // namespace

SurePlaces::SurePlaces(Scenario scenario, Trace trace, PlanOptions options, Line line,
                       const SureRange& range)
    : scenario_(std::move(scenario)),
      trace_(std::move(trace)),
      options_(options),
      line_(line),
      range_(range) {}

std::optional<SurePlaces> SurePlaces::Create(Scenario scenario, Trace trace, PlanOptions options,
                                             const SureRange& range) {
  const std::optional<Line> line = LineOf(scenario, options);
  if (!line || range.first <= 0 || !ErrorBand::Create(scenario, trace)) return std::nullopt;
  return SurePlaces(std::move(scenario), std::move(trace), options, *line, range);
}

double SurePlaces::Rounded(double at) const {
  at = Slope(line_).PlaceAt(Slope(line_).Along(at));
  if (line_.step > 0) return at;
  double scale = 1;
  while (at * scale < 100) scale *= 10;
  while (at * scale >= 1000) scale /= 10;
  return std::clamp(std::nearbyint(at * scale) / scale, line_.least, line_.most);
}

std::optional<double> SurePlaces::Lighter(double at, double along) const {
  const Slope slope(line_);
  double place = Rounded(slope.PlaceAt(along));
  if (!slope.Lighter(place, at) && line_.step > 0) {
    place = std::clamp(at + (line_.relieves ? line_.step : -line_.step), line_.least, line_.most);
  }
  const double farthest = slope.Along(range_.first) - Log(kFarthestSure);
  const bool reached = known_.count(place) > 0 || slope.Along(place) < farthest;
  return reached || !slope.Lighter(place, at) ? std::nullopt : std::optional(place);
}

std::optional<double> SurePlaces::NextFor(double probability) const {
  if (known_.empty()) return range_.first;
  const Slope slope(line_);
  // From light to heavy: the first place that has less, and the last before it.
  std::vector<std::pair<double, double>> places(known_.begin(), known_.end());
  if (line_.relieves) std::reverse(places.begin(), places.end());
  std::size_t without = 0;
  while (without < places.size() && places[without].second >= probability) ++without;
  const auto along = [&](std::size_t i) { return slope.Along(places[i].first); };
  const auto quantile = [&](std::size_t i) { return QuantileOf(places[i].second); };
  const auto fall_between = [&](std::size_t i) {
    const double fall = (quantile(i) - quantile(i + 1)) / (along(i + 1) - along(i));
    return std::clamp(fall, kLeastFall, kMostFall);
  };
  const double aim = QuantileOf(probability) + kSafe;
  if (without == 0) {  // all have less
    const double fall =
        places.size() > 1 && quantile(0) > QuantileOf(0) ? fall_between(0) : kUsualFall;
    const double step = std::clamp((aim - quantile(0)) / fall, kShortestStep, kLongestStep);
    return Lighter(places[0].first, along(0) - step);
  }
  const std::size_t with = without - 1;
  if (places[with].second <= probability + kSameOdds) return std::nullopt;
  if (without == places.size()) {  // none has less
    if (!slope.Lighter(places[with].first, range_.heaviest)) return std::nullopt;
    const double fall = places.size() > 1 ? fall_between(with - 1) : kUsualFall;
    const double step = std::clamp((quantile(with) - aim) / fall, kShortestStep, kLongestStep);
    double next = Rounded(slope.PlaceAt(along(with) + step));
    if (!slope.Lighter(places[with].first, next) && line_.step > 0) {
      next = places[with].first + (line_.relieves ? -line_.step : line_.step);
    }
    if (!slope.Lighter(next, range_.heaviest)) next = range_.heaviest;
    return known_.count(next) > 0 ? std::nullopt : std::optional(next);
  }
  const double from = along(with), to = along(without);
  if (to - from <= Log(probability > kEvenOdds ? kCloseToSure : kCloseToEven)) return std::nullopt;
  const double share = (quantile(with) - aim) / (quantile(with) - quantile(without));
  double next = Rounded(slope.PlaceAt(from + std::clamp(share, 0.15, 0.85) * (to - from)));
  const auto inside = [&](double place) {
    return slope.Lighter(places[with].first, place) && slope.Lighter(place, places[without].first);
  };
  if (!inside(next)) next = Rounded(slope.PlaceAt((from + to) / 2));
  return inside(next) ? std::optional(next) : std::nullopt;
}

std::optional<SurePlaces::Place> SurePlaces::Next() const {
  if (known_.size() < kMostSure) {
    if (const std::optional<double> next = NextFor(Sureness().meets)) {
      return Place{*next, ExperimentOptions().most_work};
    }
  }
  const std::optional<double> next = known_.size() < kMostInAll ? NextFor(kEvenOdds) : std::nullopt;
  return next ? std::optional(Place{*next, kWorkForEven}) : std::nullopt;
}

bool SurePlaces::BeginExperiment() {
  Result<Experiment> made =
      Experiment::Create(ScenarioAt(scenario_, options_, under_way_->at), trace_,
                         {.most_work = under_way_->most_work, .names_limit = false});
  if (made.ok()) experiment_.emplace(std::move(made.value()));
  return made.ok();
}

bool SurePlaces::TakeProbability() {
  Report report = reports_.at(under_way_->at);
  std::optional<double> probability;
  if (band_) {
    const std::optional<Banded> banded = band_->Put(Sureness(), report);
    if (banded) probability = banded->probability;
  }
  if (!probability) probability = ByVerdict(reports_.at(under_way_->at));
  band_.reset();
  if (probability) known_[under_way_->at] = *probability;
  return probability.has_value();
}

bool SurePlaces::Advance(std::int64_t max_steps) {
  if (finished_) return true;
  if (!experiment_ && !band_) {
    under_way_ = Next();
    failed_ = under_way_ && !BeginExperiment();
    return finished_ = !under_way_ || failed_;
  }
  if (experiment_) {
    if (!experiment_->Advance(max_steps)) return false;
    if (under_way_->most_work == kWorkForEven) cut_short_.insert(under_way_->at);
    const Report& report = reports_[under_way_->at] = experiment_->Snapshot(ReportDetail::kSummary);
    experiment_.reset();
    band_ = ErrorBand::Create(ScenarioAt(scenario_, options_, under_way_->at), trace_, report);
    if (band_) return false;
  } else if (!band_->Advance(max_steps)) {
    return false;
  }
  failed_ = finished_ = !TakeProbability();
  return finished_;
}

double SurePlaces::Progress() const {
  if (finished_) return 1;
  return static_cast<double>(known_.size()) / static_cast<double>(kMostInAll + 1);
}

const Report* SurePlaces::ReportAt(double at) const {
  const auto known = reports_.find(at);
  return known == reports_.end() || cut_short_.count(at) > 0 ? nullptr : &known->second;
}

std::optional<SureAnswer> SurePlaces::Answer() const {
  if (failed_ || !finished_ || known_.empty()) return std::nullopt;
  SureAnswer answer;
  std::vector<std::pair<double, double>> places(known_.begin(), known_.end());
  if (line_.relieves) std::reverse(places.begin(), places.end());
  bool sure = true, even = true;
  for (const auto& [at, p] : places) {
    sure = sure && p >= Sureness().meets;
    even = even && p >= kEvenOdds;
    if (sure) answer.sure = at;
    if (even) answer.even = at;
    if (p > answer.best) {
      answer.best = p;
      answer.best_at = at;
    }
  }
  if (answer.best_at == 0) answer.best_at = places.front().first;
  return answer;
}

void WriteSure(const std::optional<SureAnswer>& answer, JsonWriter& out) {
  out.Key("sure");
  if (!answer) return out.Null();
  const auto number = [&out](const char* key, const std::optional<double>& value) {
    out.Key(key);
    value ? out.Number(*value) : out.Null();
  };
  out.BeginObject();
  number("at_90", answer->sure);
  number("at_50", answer->even);
  number("best_at", answer->best_at);
  number("best", answer->best);
  out.EndObject();
}

std::string SureSentence(const std::optional<SureAnswer>& answer, bool load,
                         std::string_view unit) {
  if (!answer) return "";
  const auto place = [&](double at) {
    if (!load) return Count(Whole(at), "replica");
    return unit == "clients" ? Count(Whole(at), "client") : Format("{} {}", ThreeDigits(at), unit);
  };
  if (!answer->sure) {
    return Format(
        " With the forecast's error no {} that was tried keeps them with 90 % probability; {} {} "
        "it is {}. A measurement of your own server narrows this most (servecast calibrate).",
        load ? "load" : "number", load ? "at" : "with", place(answer->best_at),
        SureText(answer->best));
  }
  const std::string even = answer->even && *answer->even != *answer->sure
                               ? Format(", {} at even odds", place(*answer->even))
                               : "";
  return Format(" With the forecast's error: {} with 90 % probability{}.", place(*answer->sure),
                even);
}

}  // namespace servecast
