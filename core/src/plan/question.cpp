// See question.h. Each question is an Answerer; a new one is a class and an entry of the table
// below.
#include "plan/question.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/json_writer.h"
#include "plan/answers.h"
#include "plan/day.h"
#include "plan/speculation.h"
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
  virtual const Issues& Problems() const {
    static const Issues kNone;
    return kNone;
  }
};

namespace {

using Made = Result<std::unique_ptr<Question::Answerer>>;

// A plan whose answer is written beside the scenario it is of.
template <class Planned, auto write, auto sentence>
class OfPlan final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions&) {
    Result<Planned> plan = Planned::Create(scenario, std::move(trace));
    if (!plan.ok()) return plan.issues();
    return std::unique_ptr<Question::Answerer>(
        new OfPlan(std::move(scenario), std::move(plan.value())));
  }

  bool Advance(std::int64_t max_steps) override { return plan_.Advance(max_steps); }
  double Progress() const override { return plan_.Progress(); }
  void Write(JsonWriter& out) const override { write(scenario_, plan_.Answer(), out); }
  std::string Sentence() const override { return sentence(scenario_, plan_.Answer()); }

 private:
  OfPlan(Scenario scenario, Planned plan)
      : scenario_(std::move(scenario)), plan_(std::move(plan)) {}

  Scenario scenario_;
  Planned plan_;
};

class Growth final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    GrowthOptions growth;
    growth.growth = options.percent / 100;
    growth.months = options.months;
    Result<GrowthPlan> plan = GrowthPlan::Create(std::move(scenario), std::move(trace), growth);
    if (!plan.ok()) return plan.issues();
    const GrowthAsked asked = {plan.value().Load(), growth.growth, growth.months, options.from};
    return std::unique_ptr<Question::Answerer>(new Growth(asked, std::move(plan.value())));
  }

  bool Advance(std::int64_t max_steps) override { return plan_.Advance(max_steps); }
  double Progress() const override { return plan_.Progress(); }
  void Write(JsonWriter& out) const override { WriteGrowth(plan_.Steps(), asked_, out); }
  std::string Sentence() const override { return GrowthSentence(plan_.Steps(), asked_); }

 private:
  Growth(const GrowthAsked& asked, GrowthPlan plan) : asked_(asked), plan_(std::move(plan)) {}

  GrowthAsked asked_;
  GrowthPlan plan_;
};

class Day final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    Result<DayPlan> plan =
        DayPlan::Create(std::move(scenario), std::move(trace), {options.hours, {}});
    if (!plan.ok()) return plan.issues();
    return std::unique_ptr<Question::Answerer>(new Day(std::move(plan.value())));
  }

  bool Advance(std::int64_t max_steps) override { return plan_.Advance(max_steps); }
  double Progress() const override { return plan_.Progress(); }
  void Write(JsonWriter& out) const override { WriteDay(plan_.Answer(), out); }
  std::string Sentence() const override { return DaySentence(plan_.Answer()); }

 private:
  explicit Day(DayPlan plan) : plan_(std::move(plan)) {}

  DayPlan plan_;
};

// One experiment after the other.
class Drills final : public Question::Answerer {
 public:
  static Made Make(Scenario scenario, Trace trace, const QuestionOptions& options) {
    Issues issues = IssuesOf(options.drill);
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
    done_.emplace_back(drills_[done_.size()].name, current_->Snapshot(ReportDetail::kSummary));
    return !Begin();
  }
  double Progress() const override {
    if (!current_) return 1;
    const auto count = static_cast<double>(drills_.size());
    return (static_cast<double>(done_.size()) + current_->Progress()) / count;
  }
  void Write(JsonWriter& out) const override { WriteDrills(done_, out); }
  std::string Sentence() const override { return DrillsSentence(done_); }
  const Issues& Problems() const override { return problems_; }

 private:
  Drills(std::vector<Drill> drills, Trace trace)
      : drills_(std::move(drills)), trace_(std::move(trace)) {}

  // The next one; false: there is none, or it cannot be run.
  bool Begin() {
    current_.reset();
    if (done_.size() == drills_.size()) return false;
    const Drill& drill = drills_[done_.size()];
    Result<Experiment> made = Experiment::Create(drill.scenario, trace_);
    if (made.ok()) {
      current_.emplace(std::move(made.value()));
      return true;
    }
    problems_ = made.issues();
    for (Issue& issue : problems_) issue.message = drill.name + ": " + issue.message;
    return false;
  }

  std::vector<Drill> drills_;
  Trace trace_;
  DrillReports done_;
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
        {"", Format("question: found {}, allowed max-rate, min-gpus, growth, day, drill, tornado, "
                    "cost or speculation",
                    std::string(name))}};
  }
  Made made = entry->make(std::move(scenario), std::move(trace), options);
  if (!made.ok()) return made.issues();
  return Question(std::move(made.value()));
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
