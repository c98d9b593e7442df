// See question.h. Each question is an Answerer; a new one is a class and an entry of the table
// below.
#include "plan/question.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/json_writer.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/autoscale.h"
#include "plan/checks.h"
#include "plan/day.h"
#include "plan/line.h"
#include "plan/speculation.h"
#include "plan/sure.h"
#include "plan/tornado.h"
#include "servecast/experiment.h"

namespace servecast {

class Question::Answerer {
 public:
  virtual ~Answerer() = default;
  virtual bool Advance(std::int64_t max_steps) = 0;
  virtual double Progress() const = 0;
  virtual void Write(JsonWriter& out) const = 0;
  virtual std::string Sentence() const = 0;
  // What is run once more of its answer, when it is finished; and the answer with what came of it.
  virtual std::vector<Check> ToCheck() const { return {}; }
  virtual void WriteChecked(const Checks&, JsonWriter& out) const { Write(out); }
  virtual const Issues& Problems() const {
    static const Issues kNone;
    return kNone;
  }
};

namespace {

using Made = Result<std::unique_ptr<Question::Answerer>>;

// The larger part of a question; the rest are the runs that its answer is checked by.
constexpr double kOfPlan = 0.8;

// Another, whose answer is run once more as `servecast run` would.
class Checked final : public Question::Answerer {
 public:
  Checked(std::unique_ptr<Question::Answerer> of, Trace trace)
      : of_(std::move(of)), trace_(std::move(trace)) {}

  bool Advance(std::int64_t max_steps) override {
    if (checks_) return checks_->Advance(max_steps);
    if (!of_->Advance(max_steps)) return false;
    checks_.emplace(of_->Problems().empty() ? of_->ToCheck() : std::vector<Check>(),
                    std::move(trace_));
    return checks_->Progress() == 1;
  }
  double Progress() const override {
    const double rest = checks_ ? checks_->Progress() : 0;
    return rest == 1 ? 1 : kOfPlan * of_->Progress() + (1 - kOfPlan) * rest;
  }
  void Write(JsonWriter& out) const override {
    checks_ ? of_->WriteChecked(*checks_, out) : of_->WriteChecked(Checks(), out);
  }
  std::string Sentence() const override {
    return of_->Sentence() + (checks_ ? checks_->Sentence() : "");
  }
  const Issues& Problems() const override { return of_->Problems(); }

 private:
  std::unique_ptr<Question::Answerer> of_;
  Trace trace_;
  std::optional<Checks> checks_;
};

std::optional<SurePlaces> SureOf(const Scenario& scenario, const Trace& trace,
                                 const PlanAnswer& answer) {
  if (answer.outcome != PlanOutcome::kFound) return std::nullopt;
  return SurePlaces::Create(scenario, trace, PlanOptions(), {answer.low, answer.high});
}
// Of a single pool; of two it is not asked.
std::optional<SurePlaces> SureOf(const Scenario& scenario, const Trace& trace,
                                 const FleetAnswer& answer) {
  if (answer.outcome != PlanOutcome::kFound || answer.pools.size() != 1) return std::nullopt;
  PlanOptions options;
  options.line = PlanLine::kReplicas;
  const FleetAnswer::Pool& pool = answer.pools[0];
  return SurePlaces::Create(scenario, trace, options,
                            {static_cast<double>(pool.replicas), static_cast<double>(pool.low)});
}
template <class Other>
std::optional<SurePlaces> SureOf(const Scenario&, const Trace&, const Other&) {
  return std::nullopt;
}

// A plan whose answer is written beside the scenario it is of.
template <class Planned, auto write, auto sentence>
class OfPlan final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions&) {
    Result<Planned> plan = Planned::Create(scenario, trace);
    if (!plan.ok()) return plan.issues();
    return std::unique_ptr<Question::Answerer>(
        new OfPlan(std::move(scenario), std::move(trace), std::move(plan.value())));
  }

  bool Advance(std::int64_t max_steps) override {
    if (!planned_) {
      planned_ = plan_.Advance(max_steps);
      if (planned_) sure_ = SureOf(scenario_, trace_, plan_.Answer());
      return planned_ && !sure_;
    }
    return !sure_ || sure_->Advance(max_steps);
  }
  double Progress() const override {
    if (!planned_) return kOfPlan * std::min(plan_.Progress(), 0.999);
    return sure_ ? kOfPlan + (1 - kOfPlan) * sure_->Progress() : 1;
  }
  void Write(JsonWriter& out) const override {
    write(scenario_, plan_.Answer(), out);
    if (sure_) WriteSure(sure_->Answer(), out);
  }
  std::string Sentence() const override {
    std::string text = sentence(scenario_, plan_.Answer());
    if (!sure_) return text;
    if constexpr (std::is_same_v<Planned, Plan>) {
      text += SureSentence(sure_->Answer(), true, plan_.Answer().unit);
    } else {
      text += SureSentence(sure_->Answer(), false, "");
    }
    return text;
  }
  std::vector<Check> ToCheck() const override {
    if constexpr (std::is_same_v<Planned, SpeculationPlan>) {
      return {};
    } else {
      std::vector<Check> checks = ChecksOf(scenario_, plan_.Answer());
      for (Check& check : checks) {
        const bool whole = check.most_work == ExperimentOptions().most_work;
        check.known = sure_ && check.at > 0 && whole ? sure_->ReportAt(check.at) : nullptr;
      }
      return checks;
    }
  }
  void WriteChecked(const Checks& checks, JsonWriter& out) const override {
    if constexpr (std::is_same_v<Planned, FleetPlan>) {
      write(scenario_, WithChecks(plan_.Answer(), checks), out);
      if (sure_) WriteSure(sure_->Answer(), out);
    } else {
      Write(out);
    }
    if constexpr (!std::is_same_v<Planned, SpeculationPlan>) checks.Write(out);
  }

 private:
  OfPlan(Scenario scenario, Trace trace, Planned plan)
      : scenario_(std::move(scenario)), trace_(std::move(trace)), plan_(std::move(plan)) {}

  Scenario scenario_;
  Trace trace_;
  Planned plan_;
  bool planned_ = false;
  std::optional<SurePlaces> sure_;  // of loads and replicas, where the forecast's error is known
};

class Growth final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    GrowthOptions growth;
    // As it was given: 0.07 % are 0.0007, not 0.0007000000000000001.
    growth.growth = std::nearbyint(options.percent * 1e10) / 1e12;
    growth.months = options.months;
    Result<GrowthPlan> plan = GrowthPlan::Create(scenario, std::move(trace), growth);
    if (!plan.ok()) return plan.issues();
    const GrowthAsked asked = {plan.value().Load(), growth.growth, growth.months, options.from};
    return std::unique_ptr<Question::Answerer>(
        new Growth(std::move(scenario), asked, std::move(plan.value())));
  }

  bool Advance(std::int64_t max_steps) override { return plan_.Advance(max_steps); }
  double Progress() const override { return plan_.Progress(); }
  void Write(JsonWriter& out) const override { WriteGrowth(plan_.Steps(), asked_, out); }
  void WriteChecked(const Checks& checks, JsonWriter& out) const override {
    Write(out);
    checks.Write(out);
  }
  std::string Sentence() const override { return GrowthSentence(scenario_, plan_.Steps(), asked_); }
  // What is said of today's replicas, and of those that are needed when these no longer do.
  std::vector<Check> ToCheck() const override {
    const std::vector<GrowthStep>& steps = plan_.Steps();
    if (steps[0].most.outcome != PlanOutcome::kFound) return {};
    std::vector<Check> checks;
    const std::int64_t until = steps[0].until_month;
    if (until >= 0) checks.push_back(InMonth(until, steps[0].replicas, true));
    if (until < asked_.months) checks.push_back(InMonth(until + 1, steps[0].replicas, false));
    if (steps.size() == 1) return checks;
    const std::int64_t fewer = steps[1].replicas - scenario_.cluster.pool().attention_data_parallel;
    checks.push_back(InMonth(until + 1, steps[1].replicas, true));
    if (fewer > steps[0].replicas) checks.push_back(InMonth(until + 1, fewer, false));
    return checks;
  }

 private:
  Growth(Scenario scenario, const GrowthAsked& asked, GrowthPlan plan)
      : scenario_(std::move(scenario)), asked_(asked), plan_(std::move(plan)) {}

  Check InMonth(std::int64_t month, std::int64_t replicas, bool holds) const {
    Scenario s = ScenarioAt(scenario_, {}, plan_.LoadIn(month));
    s.cluster.pool().replicas = replicas;
    return {Format("{} in month {}", Count(replicas, "replica"), month), std::move(s), holds};
  }

  Scenario scenario_;
  GrowthAsked asked_;
  GrowthPlan plan_;
};

class Day final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    Result<DayPlan> plan = DayPlan::Create(scenario, std::move(trace), {options.hours, {}});
    if (!plan.ok()) return plan.issues();
    return std::unique_ptr<Question::Answerer>(
        new Day(std::move(scenario), std::move(plan.value())));
  }

  bool Advance(std::int64_t max_steps) override { return plan_.Advance(max_steps); }
  double Progress() const override { return plan_.Progress(); }
  void Write(JsonWriter& out) const override { WriteDay(plan_.Answer(), out); }
  void WriteChecked(const Checks& checks, JsonWriter& out) const override {
    Write(out);
    checks.Write(out);
  }
  std::string Sentence() const override { return DaySentence(scenario_, plan_.Answer()); }
  // Of the busiest hour.
  std::vector<Check> ToCheck() const override {
    const DayAnswer answer = plan_.Answer();
    if (answer.outcome != PlanOutcome::kFound) return {};
    const DayHour& busiest =
        *std::max_element(answer.hours.begin(), answer.hours.end(),
                          [](const DayHour& a, const DayHour& b) { return a.load < b.load; });
    std::vector<Check> checks;
    const std::int64_t group = scenario_.cluster.pool().attention_data_parallel;
    for (const bool holds : {true, false}) {
      const std::int64_t replicas = holds ? busiest.replicas : busiest.low - group;
      if (replicas < group) continue;
      Scenario s = ScenarioAt(scenario_, {}, busiest.load);
      s.cluster.pool().replicas = replicas;
      checks.push_back(
          {Format("{} in the busiest hour", Count(replicas, "replica")), std::move(s), holds});
    }
    return checks;
  }

 private:
  Day(Scenario scenario, DayPlan plan) : scenario_(std::move(scenario)), plan_(std::move(plan)) {}

  Scenario scenario_;
  DayPlan plan_;
};

class Autoscale final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    Result<AutoscalePlan> plan = AutoscalePlan::Create(
        std::move(scenario), std::move(trace), {options.hours, options.days, options.windows});
    if (!plan.ok()) return plan.issues();
    return std::unique_ptr<Question::Answerer>(new Autoscale(std::move(plan.value())));
  }

  bool Advance(std::int64_t max_steps) override { return plan_.Advance(max_steps); }
  double Progress() const override { return plan_.Progress(); }
  void Write(JsonWriter& out) const override {
    WriteAutoscale(plan_.scenario(), plan_.Answer(), out);
  }
  std::string Sentence() const override {
    return AutoscaleSentence(plan_.scenario(), plan_.Answer());
  }
  const Issues& Problems() const override { return plan_.Problems(); }

 private:
  explicit Autoscale(AutoscalePlan plan) : plan_(std::move(plan)) {}

  AutoscalePlan plan_;
};

// One experiment after the other.
class Drills final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    Issues issues = IssuesOf(options.drill);
    CheckCanPlan(scenario, issues);
    if (scenario.slo.empty()) {
      issues.push_back({"/slo", "found no target, allowed one at least: a plan keeps targets"});
    }
    if (!issues.empty()) return issues;
    std::unique_ptr<Drills> drills(new Drills(DrillsOf(scenario, options.drill), std::move(trace)));
    if (!drills->Begin()) return drills->problems_;
    return std::unique_ptr<Question::Answerer>(std::move(drills));
  }

  bool Advance(std::int64_t max_steps) override {
    if (!current_) return true;
    if (!current_->Advance(max_steps)) return false;
    done_.emplace_back(drills_[next_++].name, current_->Snapshot(ReportDetail::kSummary));
    return !Begin();
  }
  double Progress() const override {
    if (!current_) return 1;
    const auto count = static_cast<double>(drills_.size());
    return (static_cast<double>(next_) + current_->Progress()) / count;
  }
  void Write(JsonWriter& out) const override { WriteDrills(done_, drills_, out); }
  std::string Sentence() const override { return DrillsSentence(done_, drills_); }
  const Issues& Problems() const override { return problems_; }

 private:
  Drills(std::vector<Drill> drills, Trace trace)
      : drills_(std::move(drills)), trace_(std::move(trace)) {}

  // The next one that can run; false: there is none, or the scenario as it is cannot.
  bool Begin() {
    current_.reset();
    for (; next_ < drills_.size(); ++next_) {
      Drill& drill = drills_[next_];
      if (!drill.not_run.empty()) continue;
      Result<Experiment> made = Experiment::Create(drill.scenario, trace_);
      if (made.ok()) {
        current_.emplace(std::move(made.value()));
        return true;
      }
      if (next_ == 0) {
        problems_ = made.issues();
        return false;
      }
      drill.not_run = ReasonOf(made.issues());
    }
    return false;
  }

  std::vector<Drill> drills_;
  Trace trace_;
  DrillReports done_;
  std::size_t next_ = 0;  // of the drills
  std::optional<Experiment> current_;
  Issues problems_;
};

// The scenario as it is, then each input turned to each side.
class Tornado final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions&) {
    if (scenario.slo.empty()) {
      return Issues{{"/slo", "found no target, allowed one at least: a plan keeps targets"}};
    }
    Result<Experiment> made = Experiment::Create(scenario, trace);
    if (!made.ok()) return made.issues();
    return std::unique_ptr<Question::Answerer>(
        new Tornado(std::move(scenario), std::move(trace), std::move(made.value())));
  }

  bool Advance(std::int64_t max_steps) override {
    if (!current_) return true;
    if (!current_->Advance(max_steps)) return false;
    Report report = current_->Snapshot(ReportDetail::kSummary);
    if (as_it_is_) {
      SideOf(turns_[done_++]).report = std::move(report);
    } else {
      turns_ = TurnsOf(scenario_, report);
      as_it_is_ = std::move(report);
    }
    return !Begin();
  }
  double Progress() const override {
    if (!current_) return 1;
    const double own = current_->Progress();
    if (!as_it_is_) return own / kUsualTurns;
    const auto count = static_cast<double>(turns_.size());
    return (1 + (static_cast<double>(done_) + own) * (kUsualTurns - 1) / count) / kUsualTurns;
  }
  void Write(JsonWriter& out) const override {
    if (as_it_is_) WriteTornado(*as_it_is_, swings_, out);
  }
  std::string Sentence() const override {
    return as_it_is_ ? TornadoSentence(*as_it_is_, swings_) : "";
  }

 private:
  static constexpr double kUsualTurns = 20;  // and the scenario as it is among them

  Tornado(Scenario scenario, Trace trace, Experiment first)
      : scenario_(std::move(scenario)), trace_(std::move(trace)), current_(std::move(first)) {}

  // Both sides of an input follow each other.
  TurnedSide& SideOf(const Turn& turn) {
    if (swings_.empty() || swings_.back().input != turn.input)
      swings_.push_back({turn.input, {}, {}});
    return turn.more ? swings_.back().more : swings_.back().less;
  }

  // The next one that can run; false: there is none.
  bool Begin() {
    current_.reset();
    for (; done_ < turns_.size(); ++done_) {
      Result<Experiment> made = Experiment::Create(turns_[done_].scenario, trace_);
      if (made.ok()) {
        current_.emplace(std::move(made.value()));
        return true;
      }
      SideOf(turns_[done_]).issues = made.issues();
    }
    return false;
  }

  Scenario scenario_;
  Trace trace_;
  std::optional<Report> as_it_is_;
  std::vector<Turn> turns_;
  std::size_t done_ = 0;  // of them
  std::vector<Swing> swings_;
  std::optional<Experiment> current_;
};

// Known at once: nothing is run.
class OfCost final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    Result<CostAnswer> answer = CostOfLoad(scenario, trace, options.api);
    if (!answer.ok()) return answer.issues();
    return std::unique_ptr<Question::Answerer>(new OfCost(std::move(answer.value())));
  }

  bool Advance(std::int64_t) override { return true; }
  double Progress() const override { return 1; }
  void Write(JsonWriter& out) const override { WriteCost(answer_, out); }
  std::string Sentence() const override { return CostSentence(answer_); }

 private:
  explicit OfCost(CostAnswer answer) : answer_(std::move(answer)) {}

  CostAnswer answer_;
};

struct Entry {
  std::string_view name;
  Made (*make)(Scenario scenario, Trace trace, const QuestionOptions& options);
};

constexpr Entry kEntries[] = {
    {"max-rate", OfPlan<Plan, WriteMaxRate, MaxRateSentence>::Make},
    {"min-gpus", OfPlan<FleetPlan, WriteMinGpus, MinGpusSentence>::Make},
    {"growth", Growth::Make},
    {"day", Day::Make},
    {"autoscale", Autoscale::Make},
    {"drill", Drills::Make},
    {"tornado", Tornado::Make},
    {"cost", OfCost::Make},
    {"speculation", OfPlan<SpeculationPlan, WriteSpeculation, SpeculationSentence>::Make},
};

}  // namespace

Question::Question(std::unique_ptr<Answerer> answerer) : answerer_(std::move(answerer)) {}
Question::Question(Question&&) noexcept = default;
Question& Question::operator=(Question&&) noexcept = default;
Question::~Question() = default;

Result<Question> Question::Create(std::string_view name, Scenario scenario, Trace trace,
                                  const QuestionOptions& options) {
  const auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [name](const Entry& e) { return e.name == name; });
  if (entry == std::end(kEntries)) {
    return Issues{
        {"",
         Format("question: found {}, allowed max-rate, min-gpus, growth, day, autoscale, drill, "
                "tornado, cost or speculation",
                std::string(name))}};
  }
  Made made = entry->make(std::move(scenario), trace, options);
  if (!made.ok()) return made.issues();
  return Question(std::make_unique<Checked>(std::move(made.value()), std::move(trace)));
}

bool Question::Advance(std::int64_t max_steps) { return answerer_->Advance(max_steps); }
double Question::Progress() const { return answerer_->Progress(); }
std::string Question::Sentence() const { return answerer_->Sentence(); }
const Issues& Question::Problems() const { return answerer_->Problems(); }

std::string Question::Json(bool for_people) const {
  JsonWriter out(for_people);
  out.BeginObject();
  answerer_->Write(out);
  out.EndObject();
  return out.Take();
}

}  // namespace servecast
