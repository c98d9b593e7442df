// See design_search.h.
#include "plan/design_search.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "plan/design_search_words.h"
#include "plan/line.h"
#include "plan/named_axes.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr const char* kSeatsPath = "engine.max_num_seqs";

std::optional<std::int64_t> WholeNumber(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// Of a task, by what it takes; only their proportion matters.
double WeightOf(Rung rung) { return rung == Rung::kBound ? 1 : rung == Rung::kCoarse ? 4 : 60; }

}  // namespace

struct DesignSearch::State {
  // What the stage asks next. Those with more seats wait for who has fewer, and are the same where
  // these were never short of one.
  std::vector<Wanted> Asks() {
    if (stage > Stage::kOthers) return WantedOf(points, stage, options.least);
    for (;;) {
      std::vector<Wanted> now;
      bool known = false;
      for (const Wanted& each : WantedOf(points, stage, options.least)) {
        const DesignPoint* fewer = FewerSeats(each.id);
        if (fewer != nullptr && fewer->rung == Rung::kBound) continue;
        if (fewer != nullptr && fewer->seats_to_spare) {
          Adopt(*fewer, each.id);
          known = true;
        } else {
          now.push_back(each);
        }
      }
      if (!known || stage == Stage::kCheapest) return now;
    }
  }

  // The same design with the next fewer seats that could run; nullptr: there is none.
  const DesignPoint* FewerSeats(std::int64_t id) const {
    for (auto at = fewer_seats.find(id); at != fewer_seats.end();
         at = fewer_seats.find(at->second)) {
      const DesignPoint& point = points[Index(at->second)];
      if (point.rung != Rung::kBound || point.state == DesignState::kUnknown) return &point;
    }
    return nullptr;
  }

  void Adopt(const DesignPoint& fewer, std::int64_t id) {
    DesignPoint point = fewer;
    point.id = id;
    point.runs = point.requests = 0;
    Keep(std::move(point));
  }

  void FindSeats() {
    std::map<std::string, std::map<std::int64_t, std::int64_t>> alike;  // by seats
    for (const Design& design : designs) {
      std::string others;
      std::optional<std::int64_t> seats;
      for (const auto& [path, value] : design.values) {
        if (path != kSeatsPath) others += path + "=" + value + "\n";
        if (path == kSeatsPath) seats = WholeNumber(value);
      }
      if (seats && !design.fixed) alike[others][*seats] = design.id;
    }
    for (const auto& [others, by_seats] : alike) {
      std::optional<std::int64_t> fewer;
      for (const auto& [seats, id] : by_seats) {
        if (fewer) fewer_seats[id] = *fewer;
        fewer = id;
      }
    }
  }

  // Until a round has something to ask, or no stage has. Of the first stage and that of the
  // frontier there is one round, of the others as many as it takes.
  void Ask() {
    std::vector<Wanted> wanted = options.all_certain ? AllOf(points) : Asks();
    while (wanted.empty() && !options.all_certain && stage != Stage::kCheaper) {
      stage = static_cast<Stage>(static_cast<int>(stage) + 1);
      wanted = Asks();
    }
    if (stage == Stage::kCheapest)
      stage = Stage::kOthers;
    else if (stage == Stage::kFrontier)
      stage = Stage::kCheaper;
    ahead = 0;
    most = MostCost();
    for (const auto& [id, rung] : wanted) {
      asked[id] = rung;
      ahead += WeightOf(rung);
    }
  }

  // What a design may cost that is still compared; 0: none is known to hold.
  double MostCost() const {
    const Cost cost = CostFor(points);
    double cheapest = 0;
    for (const DesignPoint& point : points) {
      const std::optional<double> its = point.Holds() ? CostOf(point, cost) : std::nullopt;
      if (its && (cheapest == 0 || *its < cheapest)) cheapest = *its;
    }
    return kNoAlternative * cheapest;
  }

  DesignTask TaskOf(std::int64_t id, Rung rung) const {
    const Design& design = designs[Index(id)];
    const DesignPoint& point = points[Index(id)];
    DesignTask task;
    task.id = id;
    task.rung = rung;
    task.document = design.document;
    task.fixed = design.fixed;
    task.start = point.start;
    task.energy = options.least == Least::kEnergy;
    if (rung == Rung::kCoarse && !design.own) task.most = most;
    // What one run a place found is nearer than the closed form.
    if (rung == Rung::kCertain && !point.pools.empty()) {
      task.start.clear();
      for (const DesignPoint::Pool& pool : point.pools) task.start.push_back(pool.replicas);
    }
    return task;
  }

  void Take(DesignPoint point) {
    const auto task = asked.find(point.id);
    if (task == asked.end() || task->second != point.rung) return;
    const double weight = WeightOf(point.rung);
    done += weight;
    ahead -= weight;
    Keep(std::move(point));
    asked.erase(task);
    if (asked.empty()) Ask();
  }

  // In place of what was known of the design; what the closed form said stays true.
  void Keep(DesignPoint point) {
    DesignPoint& mine = points[Index(point.id)];
    if (point.rung != Rung::kBound) {
      point.evidence = mine.evidence;
      // Of its evidence, then of a run that says otherwise.
      mine.warnings.insert(mine.warnings.end(), point.warnings.begin(), point.warnings.end());
      point.warnings = std::move(mine.warnings);
      point.least_gpus = mine.least_gpus;
      point.least_dollars = mine.least_dollars;
      point.least_strains = std::move(mine.least_strains);
      point.start = std::move(mine.start);
      point.start_gpus = mine.start_gpus;
      point.start_dollars = mine.start_dollars;
      point.least_j_per_output_token = mine.least_j_per_output_token;
      point.runs += mine.runs;
      point.requests += mine.requests;
    }
    mine = std::move(point);
  }

  SearchParts Parts() const { return {axes, designs, points, targets, asked.empty()}; }

  SearchOptions options;
  Stage stage = Stage::kCheapest;
  double most = 0;  // of tasks of this round
  std::vector<SloSpec> targets;
  std::vector<Axis> axes;
  std::vector<Design> designs;
  std::vector<DesignPoint> points;
  std::map<std::int64_t, std::int64_t> fewer_seats;  // ids: see FewerSeats
  std::map<std::int64_t, Rung> asked;                // of this round, without a point yet
  double done = 0, ahead = 0;                        // weights of tasks
  mutable double shown = 0;
};

DesignSearch::DesignSearch(std::unique_ptr<State> state) : state_(std::move(state)) {}
DesignSearch::DesignSearch(DesignSearch&&) noexcept = default;
DesignSearch& DesignSearch::operator=(DesignSearch&&) noexcept = default;
DesignSearch::~DesignSearch() = default;

Result<DesignSearch> DesignSearch::Create(const std::string& document, std::vector<Axis> axes,
                                          SearchOptions options) {
  if (axes.empty()) {
    Result<std::vector<Axis>> usual = AxesAsked(document, "", {});
    if (!usual.ok()) return Issues(usual.issues());
    axes = std::move(usual.value());
  }
  Result<std::vector<Design>> designs = DesignsOf(document, axes);
  if (!designs.ok()) return Issues(designs.issues());
  const Result<Scenario> own = ParseScenario(document);
  if (!own.ok()) return Issues(own.issues());
  Issues issues;
  CheckCanPlan(own.value(), issues);
  const bool counts = std::any_of(designs.value().begin(), designs.value().end(),
                                  [](const Design& design) { return !design.fixed; });
  if (counts) CheckNamesNoReplica(own.value(), issues);
  if (!issues.empty()) return issues;
  if (own.value().slo.empty()) {
    return Issue{"/slo", "found no target, allowed one at least: a plan keeps targets"};
  }
  auto state = std::make_unique<State>();
  state->options = options;
  state->targets = own.value().slo;
  state->axes = std::move(axes);
  state->designs = std::move(designs.value());
  for (const Design& design : state->designs) {
    DesignPoint& point = state->points.emplace_back();
    point.id = design.id;
    if (design.issues.empty()) {
      state->asked[design.id] = Rung::kBound;
      continue;
    }
    point.state = DesignState::kRefused;
    point.issues = design.issues;
    const Issue& first = design.issues[0];
    point.reason = first.path.empty() ? first.message : first.path + ": " + first.message;
  }
  state->FindSeats();
  if (state->asked.empty()) state->Ask();
  return DesignSearch(std::move(state));
}

std::vector<DesignTask> DesignSearch::Tasks() const {
  std::vector<DesignTask> tasks;
  for (const auto& [id, rung] : state_->asked) tasks.push_back(state_->TaskOf(id, rung));
  return tasks;
}

void DesignSearch::Take(DesignPoint point) { state_->Take(std::move(point)); }

bool DesignSearch::finished() const { return state_->asked.empty(); }

double DesignSearch::Progress() const {
  const State& s = *state_;
  if (finished()) return 1;
  // Half of what is in a round comes after it, in later ones.
  const double part = s.done / (s.done + 1.5 * s.ahead + 10);
  s.shown = std::max(s.shown, std::min(part, 0.99));
  return s.shown;
}

const std::vector<Design>& DesignSearch::designs() const { return state_->designs; }
const std::vector<DesignPoint>& DesignSearch::points() const { return state_->points; }

Conclusion DesignSearch::Conclude() const {
  std::vector<std::string> labels;
  for (const Design& design : state_->designs) labels.push_back(design.label);
  return servecast::Conclude(state_->points, labels, state_->options.least);
}

std::string DesignSearch::Json(bool indented) const {
  return SearchJson(state_->Parts(), Conclude(), indented);
}

std::string DesignSearch::Sentence() const { return SearchSentence(state_->Parts(), Conclude()); }

}  // namespace servecast
