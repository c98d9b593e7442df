// See checks.h.
#include "plan/checks.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "metrics/unseen.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/line.h"
#include "plan/strain.h"

namespace servecast {
namespace {

// Of a load that is said to be too much by some per cent: what clearly holds is seen at once.
constexpr std::int64_t kLittleWork = 120'000;

bool Misses(VerdictState state) {
  return state == VerdictState::kMisses || state == VerdictState::kOverloaded ||
         state == VerdictState::kDoesNotFit;
}

PlanTarget TargetOf(const SloResult& result) {
  PlanTarget target{result.value_ms, result.low_ms, result.high_ms, result.unserved_share};
  if (result.share) target.unserved_share = 1 - *result.share;
  return target;
}

// The strain of one end of a target: of attainment its share beyond, over the share that may be.
double StrainAt(const SloResult& result, const std::optional<double>& ms,
                const std::optional<double>& share) {
  const double allowed = 1 - result.slo.percentile / 100;
  if (share && allowed > 0) return (1 - *share) / allowed;
  if (result.unbounded || !ms) return std::numeric_limits<double>::infinity();
  return StrainOf(result.slo, *ms, result.unserved_share);
}

PlanPoint PointOf(const Report& report, double at) {
  PlanPoint point;
  point.at = at;
  point.runs = report.certainty ? report.certainty->runs : 1;
  point.overloaded = report.verdict.state == VerdictState::kOverloaded;
  point.requests_per_s = report.requests_per_s;
  point.goodput_per_s = report.goodput_per_s;
  point.output_tokens_per_s = report.output_tokens_per_s;
  for (const SloResult& result : report.slo) {
    point.targets.push_back(TargetOf(result));
    point.strain = std::max(point.strain, StrainAt(result, result.value_ms, result.share));
    point.low = std::max(point.low, StrainAt(result, result.low_ms, result.high_share));
    point.high = std::max(point.high, StrainAt(result, result.high_ms, result.low_share));
  }
  if (point.overloaded) {
    point.strain = point.low = point.high = std::numeric_limits<double>::infinity();
  }
  return point;
}

}  // namespace

bool Checks::Advance(std::int64_t max_steps) {
  if (done_.size() == checks_.size()) return true;
  if (!current_) {
    const Check& check = checks_[done_.size()];
    if (check.known != nullptr) {
      done_.push_back({*check.known, ""});
      return done_.size() == checks_.size();
    }
    Result<Experiment> made = Experiment::Create(
        check.scenario, trace_, {.most_work = check.most_work, .names_limit = false});
    if (!made.ok()) {
      done_.push_back({std::nullopt, made.issues()[0].message});
      return done_.size() == checks_.size();
    }
    current_.emplace(std::move(made.value()));
  }
  if (!current_->Advance(max_steps)) return false;
  done_.push_back({current_->Snapshot(ReportDetail::kSummary), ""});
  current_.reset();
  return done_.size() == checks_.size();
}

double Checks::Progress() const {
  if (checks_.empty()) return 1;
  const double part = current_ ? current_->Progress() : 0;
  return (static_cast<double>(done_.size()) + part) / static_cast<double>(checks_.size());
}

// A verdict that is near does not contradict either.
bool Checks::Agrees(std::size_t i) const {
  if (!done_[i].report) return !checks_[i].holds;
  const VerdictState state = done_[i].report->verdict.state;
  return checks_[i].holds ? !Misses(state) : state != VerdictState::kMeets;
}

const std::string& Checks::SaidOf(std::size_t i) const {
  return done_[i].report ? done_[i].report->verdict.sentence : done_[i].reason;
}

void Checks::Write(JsonWriter& out) const {
  out.Key("checked"), out.BeginArray();
  for (std::size_t i = 0; i < done_.size(); ++i) {
    out.BeginObject();
    out.Key("of"), out.Text(checks_[i].of);
    out.Key("holds"), out.Boolean(checks_[i].holds);
    out.Key("state");
    out.Text(done_[i].report ? StateName(done_[i].report->verdict.state) : "cannot_run");
    out.Key("sentence"), out.Text(SaidOf(i));
    out.Key("agrees"), out.Boolean(Agrees(i));
    out.EndObject();
  }
  out.EndArray();
}

std::string Checks::Sentence() const {
  std::string said;
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (Agrees(i)) continue;
    said += Format(" But a run of {} says otherwise: {}", checks_[i].of, SaidOf(i));
  }
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (!done_[i].report) continue;
    const std::string unseen =
        UnseenWords(checks_[i].scenario, done_[i].report->simulated_s, "A run of " + checks_[i].of);
    if (unseen.empty()) continue;
    said += " " + unseen;
    break;  // the others are as long, or nearly
  }
  return said;
}

std::optional<PlanPoint> Checks::PointAt(double at) const {
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (checks_[i].at == at && done_[i].report) return PointOf(*done_[i].report, at);
  }
  return std::nullopt;
}

std::vector<Check> ChecksOf(const Scenario& scenario, const PlanAnswer& answer) {
  std::vector<Check> checks;
  const PlanOptions of_load;
  if (answer.outcome == PlanOutcome::kNone && !answer.curve.empty()) {
    const double lightest = answer.curve.front().at;
    checks.push_back({Format("{} {}", ShortNumber(lightest), answer.unit),
                      ScenarioAt(scenario, of_load, lightest), false, lightest});
  }
  if (answer.outcome != PlanOutcome::kFound) return checks;
  const double step = LineOf(scenario, of_load)->step;
  // The most whole clients that hold, and one more.
  const double high = step > 0 ? std::max(answer.high, answer.low + step) : answer.high;
  for (const auto& [at, holds] : {std::pair{answer.low, true}, std::pair{high, false}}) {
    checks.push_back({Format("{} {}", ShortNumber(at), answer.unit),
                      ScenarioAt(scenario, of_load, at), holds, at});
    if (!holds) checks.back().most_work = kLittleWork;
  }
  return checks;
}

std::vector<Check> ChecksOf(const Scenario& scenario, const FleetAnswer& answer) {
  std::vector<Check> checks;
  if (answer.outcome != PlanOutcome::kFound) return checks;
  const auto add = [&](const Scenario& s, bool holds) {
    const bool alone = s.cluster.pools.size() == 1;
    const double at = alone ? static_cast<double>(s.cluster.pool().replicas) : 0;
    checks.push_back({ReplicasInWords(s.cluster.pools), s, holds, at});
  };
  Scenario found = scenario;
  for (std::size_t i = 0; i < answer.pools.size(); ++i) {
    found.cluster.pools[i].replicas = answer.pools[i].replicas;
  }
  add(found, true);
  for (std::size_t i = 0; i < answer.pools.size(); ++i) {
    const std::int64_t group = found.cluster.pools[i].attention_data_parallel;
    if (answer.pools[i].low <= group) continue;
    Scenario fewer = found;
    fewer.cluster.pools[i].replicas = answer.pools[i].low - group;
    add(fewer, false);
  }
  return checks;
}

FleetAnswer WithChecks(FleetAnswer answer, const Checks& checks) {
  if (answer.pools.size() != 1) return answer;
  for (PlanPoint& point : answer.pools[0].curve) {
    if (std::optional<PlanPoint> run = checks.PointAt(point.at)) point = *std::move(run);
  }
  return answer;
}

}  // namespace servecast
