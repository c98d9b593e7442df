// See sure.h. Probability falls with load and rises with replicas; a place is looked for between
// one that has the probability and one that has not.
#include "plan/sure.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "metrics/words.h"

namespace servecast {
namespace {

constexpr double kEvenOdds = 0.5;
constexpr std::size_t kMostSure = 24;
// Of a load: steps away from the answer, and how near two places are that count as one.
constexpr double kLessLoad = 0.85, kMoreLoad = 1.08, kSamePlace = 1.012;
constexpr double kFarthestSure = 4;  // times the answer, either way

}  // namespace

SurePlaces::SurePlaces(Scenario scenario, Trace trace, PlanOptions options, Line line,
                       double answer)
    : scenario_(std::move(scenario)),
      trace_(std::move(trace)),
      options_(options),
      line_(line),
      answer_(answer) {}

std::optional<SurePlaces> SurePlaces::Create(Scenario scenario, Trace trace, PlanOptions options,
                                             double answer) {
  const std::optional<Line> line = LineOf(scenario, options);
  if (!line || answer <= 0 || !ErrorBand::Create(scenario, trace)) return std::nullopt;
  return SurePlaces(std::move(scenario), std::move(trace), options, *line, answer);
}

double SurePlaces::Worse(double at) const {
  if (!line_.relieves) return std::min(at * kMoreLoad, line_.most);
  return std::max(at - std::max(1.0, std::nearbyint(at / 8)), line_.least);
}

double SurePlaces::Better(double at) const {
  if (!line_.relieves) return std::max(at * kLessLoad, line_.least);
  return std::min(at + std::max(1.0, std::nearbyint(at / 8)), line_.most);
}

std::optional<double> SurePlaces::NextFor(double probability) const {
  if (known_.empty()) return answer_;
  // The heaviest place that has it, and the lightest that has not.
  std::optional<double> with, without;
  const auto heavier = [this](double a, double b) { return line_.relieves ? a < b : a > b; };
  for (const auto& [at, p] : known_) {
    if (p >= probability) {
      if (!with || heavier(at, *with)) with = at;
    } else if (!without || heavier(*without, at)) {
      without = at;
    }
  }
  const auto reached = [this](double at) {
    return at > answer_ * kFarthestSure || at < answer_ / kFarthestSure || known_.count(at) > 0;
  };
  if (!with || !without) {
    const double next = with ? Worse(*with) : Better(*without);
    return reached(next) ? std::nullopt : std::optional(next);
  }
  if (heavier(*with, *without)) return std::nullopt;  // noise: they have passed each other
  if (line_.relieves) {
    const double next = std::floor((*with + *without) / 2);
    return known_.count(next) > 0 ? std::nullopt : std::optional(next);
  }
  if (*without < *with * kSamePlace) return std::nullopt;
  return std::sqrt(*with * *without);
}

std::optional<double> SurePlaces::Next() const {
  if (known_.size() >= kMostSure) return std::nullopt;
  const std::optional<double> next = NextFor(Sureness().meets);
  return next ? next : NextFor(kEvenOdds);
}

bool SurePlaces::Advance(std::int64_t max_steps) {
  if (finished_) return true;
  if (!band_) {
    at_ = Next();
    if (at_) band_ = ErrorBand::Create(ScenarioAt(scenario_, options_, *at_), trace_);
    failed_ = at_ && !band_;
    finished_ = !at_ || failed_;
    return finished_;
  }
  if (!band_->Advance(max_steps)) return false;
  const std::optional<double> probability = band_->Probability();
  band_.reset();
  failed_ = finished_ = !probability;
  if (probability) known_[*at_] = *probability;
  return finished_;
}

double SurePlaces::Progress() const {
  if (finished_) return 1;
  return static_cast<double>(known_.size()) / static_cast<double>(kMostSure);
}

std::optional<SureAnswer> SurePlaces::Answer() const {
  if (failed_ || !finished_ || known_.empty()) return std::nullopt;
  SureAnswer answer;
  const auto put = [this](double at, double p, double wanted, std::optional<double>& best) {
    if (p < wanted) return;
    if (!best || (line_.relieves ? at < *best : at > *best)) best = at;
  };
  for (const auto& [at, p] : known_) {
    put(at, p, Sureness().meets, answer.sure);
    put(at, p, kEvenOdds, answer.even);
    if (p >= answer.best) {
      answer.best = p;
      answer.best_at = at;
    }
  }
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
    return load ? Format("{} {}", ThreeDigits(at), unit) : Count(Whole(at), "replica");
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
