// See design_search.h.
#include "plan/design_search.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/named_axes.h"
#include "plan/search_words.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

// Of a task, by what it takes; only their proportion matters.
double WeightOf(Rung rung) { return rung == Rung::kBound ? 1 : rung == Rung::kCoarse ? 4 : 60; }

}  // namespace

struct DesignSearch::State {
  // Until a round has something to ask, or no stage has.
  void Ask() {
    std::vector<Wanted> wanted;
    if (options.all_certain) {
      wanted = AllOf(points);
    } else {
      wanted = WantedOf(points, stage);
      while (wanted.empty() && stage != Stage::kCheaper) {
        stage = static_cast<Stage>(static_cast<int>(stage) + 1);
        wanted = WantedOf(points, stage);
      }
      // Of the last stage there are as many rounds as it takes, of each other one.
      if (stage != Stage::kCheaper) stage = static_cast<Stage>(static_cast<int>(stage) + 1);
    }
    ahead = 0;
    for (const auto& [id, rung] : wanted) {
      asked[id] = rung;
      ahead += WeightOf(rung);
    }
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
    DesignPoint& mine = points[Index(point.id)];
    if (point.rung != Rung::kBound) {  // what the closed form said stays true
      point.evidence = mine.evidence;
      point.least_gpus = mine.least_gpus;
      point.least_dollars = mine.least_dollars;
      point.least_strains = std::move(mine.least_strains);
      point.start = std::move(mine.start);
      point.runs += mine.runs;
      point.requests += mine.requests;
    }
    mine = std::move(point);
    asked.erase(task);
    if (asked.empty()) Ask();
  }

  SearchParts Parts() const { return {axes, designs, points, targets, asked.empty()}; }

  SearchOptions options;
  Stage stage = Stage::kCheapHalf;
  std::vector<SloSpec> targets;
  std::vector<Axis> axes;
  std::vector<Design> designs;
  std::vector<DesignPoint> points;
  std::map<std::int64_t, Rung> asked;  // of this round, without a point yet
  double done = 0, ahead = 0;          // weights of tasks
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
  return servecast::Conclude(state_->points, labels);
}

std::string DesignSearch::Json(bool indented) const {
  return SearchJson(state_->Parts(), Conclude(), indented);
}

std::string DesignSearch::Sentence() const { return SearchSentence(state_->Parts(), Conclude()); }

}  // namespace servecast
