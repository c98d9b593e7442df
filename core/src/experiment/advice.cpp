// See advice.h.
#include "experiment/advice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "base/text.h"
#include "experiment/advise.h"
#include "experiment/limits.h"
#include "io/json_writer.h"
#include "servecast/error_band.h"
#include "servecast/experiment.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr std::int64_t kWorkOfAChange = 600'000;  // the scenario as it is has that of a run
constexpr std::size_t kMostConfirmed = 3;         // changes that have that of a run, too

// What a run says of a change, and its bands; a report is a hundred times as much.
struct Answer {
  Answer(const Report& r, std::optional<Banded> of)
      : sentence(r.verdict.sentence),
        slo(r.slo),
        banded(std::move(of)),
        overload(r.overload),
        overloaded(r.verdict.state == VerdictState::kOverloaded),
        served_per_s(r.overload ? r.overload->served_per_s : r.requests_per_s),
        evidence(r.latency_model.evidence.of) {}

  std::optional<double> Probability() const { return banded ? banded->probability : std::nullopt; }

  std::string sentence;
  std::vector<SloResult> slo;
  std::optional<Banded> banded;  // none: the forecast's error is not known
  std::optional<Overload> overload;
  bool overloaded;
  double served_per_s;
  EvidenceClass evidence;
};

// A change, and what came of it: an answer or issues.
struct Outcome {
  Change change;
  std::string document;
  std::optional<Answer> answer;
  Issues issues;
  double gpus = 0;                      // on average over the run, where replicas come and go
  std::optional<double> cost_per_hour;  // likewise
  double effect = 0;
  bool confirmed = false;  // with the work of a run
};

bool IsMissing(const Issue& issue) { return issue.kind == "missing_file"; }

// The target with the least margin; none where a latency has no bound.
const SloResult* Deciding(const Answer& a) {
  const SloResult* least = nullptr;
  for (const SloResult& result : a.slo) {
    if (result.margin && (least == nullptr || *result.margin < *least->margin)) least = &result;
  }
  return least;
}

double EffectOf(const Answer& base, const Answer& changed) {
  if (base.overloaded) return changed.served_per_s / base.served_per_s - 1;
  if (changed.overloaded) return -1;
  const SloResult* before = Deciding(base);
  if (before == nullptr) return 0;
  const SloResult& after = changed.slo[static_cast<std::size_t>(before - base.slo.data())];
  // The latency, or the share of requests beyond.
  const double now = 1 - *before->margin;
  return after.margin && now > 0 ? 1 - (1 - *after.margin) / now : 0;
}

// As many replicas as would serve all that comes, with a tenth to spare.
std::optional<Change> EnoughReplicas(const Scenario& scenario, const Answer& base) {
  if (!base.overload || scenario.cluster.pools.size() > 1) return std::nullopt;
  const auto now = static_cast<double>(scenario.cluster.pool().replicas);
  const double wanted = 1.1 * now * base.overload->offered_per_s / base.overload->served_per_s;
  if (!(wanted > now + 1 && wanted < 1000)) return std::nullopt;
  const std::int64_t group = scenario.cluster.pool().attention_data_parallel;
  const std::int64_t replicas =
      CeilDiv(static_cast<std::int64_t>(std::ceil(wanted)), group) * group;
  return Change{Format("{} replicas", replicas), {Format("cluster.pools.0.replicas={}", replicas)}};
}

// As the verdict of a run has it: as probable as that, or else by the intervals of sampling.
bool Meets(const Outcome& o) {
  if (!o.answer || o.answer->overloaded) return false;
  if (const std::optional<double> p = o.answer->Probability()) return *p >= Sureness().meets;
  return std::all_of(o.answer->slo.begin(), o.answer->slo.end(), [](const auto& result) {
    return result.met && result.high_ms.value_or(0) <= result.slo.limit_ms &&
           result.low_share.value_or(1) >= result.slo.percentile / 100;
  });
}

// Per cent; what is overloaded has none.
double SureOf(const Outcome& o) {
  return o.answer->overloaded ? 0 : std::round(100 * o.answer->Probability().value_or(0));
}

bool Before(const Outcome& a, const Outcome& b) {
  if (a.answer.has_value() != b.answer.has_value()) return a.answer.has_value();
  if (Meets(a) != Meets(b)) return Meets(a);
  if (Meets(a)) {  // the cheapest that is enough
    const bool priced = a.cost_per_hour.has_value();
    if (priced != b.cost_per_hour.has_value()) return priced;
    const double x = a.cost_per_hour.value_or(a.gpus), y = b.cost_per_hour.value_or(b.gpus);
    if (x != y) return x < y;
  } else if (a.answer && SureOf(a) != SureOf(b)) {
    return SureOf(a) > SureOf(b);
  }
  return a.effect > b.effect;
}

void WriteBand(const TargetBand& band, JsonWriter& out) {
  out.Key("band"), out.BeginObject();
  out.Key("low"), out.Number(band.low);
  out.Key("high"), band.high ? out.Number(*band.high) : out.Null();
  out.Key("level"), out.Number(kBandLevel);
  out.Key("probability"), out.Number(band.probability);
  out.EndObject();
}

void WriteAnswer(const Answer& a, JsonWriter& out) {
  out.Key("sentence"), out.Text(a.sentence);
  out.Key("overloaded"), out.Boolean(a.overloaded);
  out.Key("served_per_s"), out.Number(a.served_per_s);
  out.Key("evidence"), out.Text(kEvidenceNames[static_cast<std::size_t>(a.evidence)]);
  const auto number = [&out](std::string_view key, const std::optional<double>& value) {
    out.Key(key), value ? out.Number(*value) : out.Null();
  };
  number("probability", a.Probability());
  out.Key("slo"), out.BeginArray();
  for (std::size_t k = 0; k < a.slo.size(); ++k) {
    const SloResult& result = a.slo[k];
    out.BeginObject();
    if (result.slo.metric == SloMetric::kAttainment) {
      number("share", result.share);
      number("low", result.low_share);
      number("high", result.high_share);
      number("limit_share", result.slo.percentile / 100);
    } else {
      number("value_ms", result.value_ms);
      number("low", result.low_ms);
      number("high", result.high_ms);
      number("limit_ms", result.slo.limit_ms);
    }
    if (a.banded && a.banded->targets[k]) WriteBand(*a.banded->targets[k], out);
    out.EndObject();
  }
  out.EndArray();
}

void Write(const Outcome& o, bool with_document, JsonWriter& out) {
  out.BeginObject();
  out.Key("change"), out.Text(o.change.words);
  out.Key("set"), out.BeginArray();
  for (const std::string& text : o.change.overrides) out.Text(text);
  out.EndArray();
  if (with_document) out.Key("document"), out.Text(o.document);
  out.Key("gpus"), out.Number(o.gpus);
  out.Key("cost_per_hour"), o.cost_per_hour ? out.Number(*o.cost_per_hour) : out.Null();
  if (o.answer) {
    out.Key("effect"), out.Number(o.effect);
    out.Key("meets"), out.Boolean(Meets(o));
    WriteAnswer(*o.answer, out);
  } else {
    out.Key("issues"), out.BeginArray();
    for (const Issue& issue : o.issues) out.Text(issue.path + ": " + issue.message);
    out.EndArray();
  }
  out.EndObject();
}

std::string InWords(const std::vector<Outcome>& outcomes) {
  if (outcomes.empty() || !outcomes[0].answer ||
      (!Meets(outcomes[0]) && outcomes[0].effect < kHelps)) {
    return "No change that was tried helps.";
  }
  const Outcome& best = outcomes[0];
  return Format("{}{}: {}", Meets(best) ? "" : "No change is enough; nearest is ",
                best.change.words, best.answer->sentence);
}

}  // namespace

struct Advice::State {
  // Begins to run a change; false: it has its issues instead.
  bool Begin(Change change) {
    trying = Outcome();
    trying.change = std::move(change);
    Result<std::string> text = ApplyOverrides(document, trying.change.overrides);
    if (!text.ok()) return Refuse(text.issues());
    trying.document = text.value();
    Result<Scenario> scenario = ParseScenario(trying.document);
    if (!scenario.ok()) return Refuse(scenario.issues());
    trying.gpus = static_cast<double>(scenario.value().cluster.Gpus());
    trying.cost_per_hour = CostPerHour(scenario.value());
    tried = scenario.value();
    ExperimentOptions options;
    if (base && !confirming) options.most_work = kWorkOfAChange;
    options.names_limit = false;
    Result<Experiment> made = Experiment::Create(std::move(scenario.value()), trace, options);
    if (!made.ok()) return Refuse(made.issues());
    run.emplace(std::move(made.value()));
    return true;
  }
  bool Refuse(const Issues& issues) {
    trying.issues = issues;
    return false;
  }

  bool Step(std::int64_t max_steps) {
    if (finished) return true;
    problems.clear();
    if (!run && !Begin(confirming ? outcomes[0].change : changes[next])) {
      if (std::any_of(trying.issues.begin(), trying.issues.end(), IsMissing)) {
        problems = trying.issues;
        return false;
      }
      return Take();
    }
    if (!band) {
      if (!run->Advance(max_steps)) return false;
      report = run->Snapshot(ReportDetail::kSummary);
      TakeFleet();
      band = ErrorBand::Create(tried, trace, report);
      if (band) return false;
    }
    if (band && !band->Advance(max_steps)) return false;
    std::optional<Banded> banded = band ? band->Put(Sureness(), report) : std::nullopt;
    trying.answer.emplace(report, std::move(banded));
    run.reset();
    band.reset();
    return base ? Take() : TakeBase();
  }

  void TakeFleet() {
    const ScalingReport& fleet = report.scaling;
    if (!fleet.on || fleet.gpu_hours <= 0) return;
    trying.gpus = fleet.mean_gpus;
    if (fleet.cost) trying.cost_per_hour = *fleet.cost / fleet.gpu_hours * fleet.mean_gpus;
  }

  // The next GPU is the scenario's, which a pool with its own does not run on.
  bool MissesAPool(const Change& change) const {
    if (change.words.rfind("GPU ", 0) != 0) return false;
    const Result<std::string> text = ApplyOverrides(document, change.overrides);
    if (!text.ok()) return false;
    const Result<Scenario> changed = ParseScenario(text.value());
    if (!changed.ok()) return false;
    const std::vector<PoolSpec>& pools = changed.value().cluster.pools;
    return std::any_of(pools.begin(), pools.end(),
                       [](const PoolSpec& pool) { return pool.hardware.has_value(); });
  }

  bool TakeBase() {
    const Scenario scenario = ParseScenario(document).value();
    base = std::move(trying);
    if (scenario.slo.empty() && !base->answer->overloaded) {
      problems = {{"/slo", "found no target, allowed one at least: changes are ranked by it"}};
      return finished = true;
    }
    for (Change& change : ChangesOf(scenario)) {
      if (!MissesAPool(change)) changes.push_back(std::move(change));
    }
    if (std::optional<Change> enough = EnoughReplicas(scenario, *base->answer)) {
      changes.push_back(std::move(*enough));
    }
    if (!changes.empty()) changes.insert(changes.begin(), Change{"as it is", {}});
    return finished = changes.empty();
  }

  bool Take() {
    if (!confirming && !as_short) {
      as_short = std::move(trying.answer);
      ++next;
      return finished = next == changes.size();
    }
    if (trying.answer) {
      trying.effect = EffectOf(confirming ? *base->answer : *as_short, *trying.answer);
    }
    trying.confirmed = confirming;
    if (confirming) outcomes.erase(outcomes.begin());
    outcomes.insert(std::upper_bound(outcomes.begin(), outcomes.end(), trying, Before),
                    std::move(trying));
    ++(confirming ? confirmed : next);
    confirming = next == changes.size();
    return finished = confirming &&
                      (!outcomes[0].answer || outcomes[0].confirmed || confirmed == kMostConfirmed);
  }

  std::string document;
  Trace trace;
  std::optional<Experiment> run;
  Scenario tried;  // with the change
  Report report;   // of the run, once that has ended
  std::optional<ErrorBand> band;
  Outcome trying;
  std::optional<Outcome> base;
  std::optional<Answer> as_short;  // the same in runs as short as those of changes, for effects
  std::vector<Change> changes;
  std::size_t next = 0;
  std::vector<Outcome> outcomes;  // ranked
  bool confirming = false;        // the first, as long as it is another one
  std::size_t confirmed = 0;
  Issues problems;
  bool finished = false;
};

Advice::Advice(std::unique_ptr<State> state) : state_(std::move(state)) {}
Advice::Advice(Advice&&) noexcept = default;
Advice& Advice::operator=(Advice&&) noexcept = default;
Advice::~Advice() = default;

Result<Advice> Advice::Create(std::string document, Trace trace) {
  auto state = std::make_unique<State>();
  state->document = std::move(document);
  state->trace = std::move(trace);
  if (!state->Begin({"as it is", {}})) return Issues(state->trying.issues);
  return Advice(std::move(state));
}

bool Advice::Advance(std::int64_t max_steps) { return state_->Step(max_steps); }

double Advice::Progress() const {
  const State& s = *state_;
  if (s.finished) return 1;
  // The base is as one of about a dozen before these are known.
  const double of_run = s.run ? s.run->Progress() : 0;
  const auto all = static_cast<double>(2 + s.changes.size());
  if (!s.base) return 0;
  if (!s.confirming) return (1 + static_cast<double>(s.next) + of_run) / all;
  return 1 - (1 - (static_cast<double>(s.confirmed) + of_run) / kMostConfirmed) / all;
}

const Issues& Advice::Problems() const { return state_->problems; }

std::string Advice::Json(bool with_documents) const {
  const std::vector<Outcome>& outcomes = state_->outcomes;
  JsonWriter out(!with_documents);
  out.BeginObject();
  out.Key("answer"), out.Text(InWords(outcomes));
  out.Key("base");
  if (state_->base) {
    Write(*state_->base, with_documents, out);
  } else {
    out.Null();
  }
  out.Key("changes"), out.BeginArray();
  for (const Outcome& outcome : outcomes) Write(outcome, with_documents, out);
  out.EndArray();
  out.EndObject();
  return out.Take();
}

}  // namespace servecast
