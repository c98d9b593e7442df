// A search over designs: who asks hands out its tasks, which any module may do.
#include <emscripten/bind.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bound_trace.h"
#include "io/axes.h"
#include "io/design_json.h"
#include "plan/design_plan.h"
#include "plan/design_search.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

// Lines of "path=a,b,c"; none: the default axes. Issues: a line that is none.
Result<std::vector<Axis>> AxesOf(const std::string& text) {
  std::vector<Axis> axes;
  Issues issues;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    if (auto axis = AxisOf(line)) {
      axes.push_back(*std::move(axis));
    } else {
      issues.push_back({"", "found " + line + ", allowed path=a,b,c"});
    }
  }
  if (!issues.empty()) return issues;
  return axes;
}

class BoundSearch {
 public:
  BoundSearch(const std::string& document, const std::string& axes) {
    Result<std::vector<Axis>> read = AxesOf(axes);
    if (!read.ok()) {
      issues_ = read.issues();
      return;
    }
    Result<DesignSearch> made = DesignSearch::Create(document, std::move(read.value()));
    if (made.ok()) {
      search_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
    }
  }

  std::string Error() const { return issues_.empty() ? "" : IssuesJson(issues_); }
  std::string Tasks() const {
    JsonWriter out(false);
    out.BeginArray();
    if (search_) {
      for (const DesignTask& task : search_->Tasks()) out.Raw(TaskJson(task));
    }
    out.EndArray();
    return out.Take();
  }
  std::string Take(const std::string& point) {
    Result<DesignPoint> read = ReadPoint(point);
    if (!read.ok()) return IssuesJson(read.issues());
    if (search_) search_->Take(std::move(read.value()));
    return "";
  }
  double Progress() const { return search_ ? search_->Progress() : 1; }
  std::string Answer() const { return search_ ? search_->Json(/*indented=*/false) : "null"; }
  std::string Sentence() const { return search_ ? search_->Sentence() : ""; }
  // With as many replicas as its point has; "" where there is none.
  std::string Document(double id) const {
    const auto index = static_cast<std::size_t>(id);
    if (!search_ || index >= search_->points().size()) return "";
    std::string document = search_->designs()[index].document;
    const DesignPoint& point = search_->points()[index];
    for (std::size_t i = 0; i < point.pools.size(); ++i) {
      Result<std::string> with =
          WithValue(document, "cluster.pools." + std::to_string(i) + ".replicas",
                    std::to_string(point.pools[i].replicas));
      if (with.ok()) document = std::move(with.value());
    }
    return document;
  }

 private:
  Issues issues_;
  std::optional<DesignSearch> search_;
};

class BoundDesign {
 public:
  explicit BoundDesign(const std::string& task) : task_(ReadTask(task)) { Make({}); }

  std::string Error() const { return issues_.empty() ? "" : IssuesJson(issues_); }
  std::string SetTrace(const BoundTrace& bound) {
    if (!bound.trace().ok()) return IssuesJson(bound.trace().issues());
    Make(bound.trace().value());
    return Error();
  }
  bool Advance(double max_steps) {
    return !plan_ || plan_->Advance(static_cast<std::int64_t>(max_steps));
  }
  std::string Point() const { return plan_ ? PointJson(plan_->Point()) : "null"; }

 private:
  void Make(Trace trace) {
    issues_.clear();
    plan_.reset();
    if (!task_.ok()) {
      issues_ = task_.issues();
      return;
    }
    Result<DesignPlan> made = DesignPlan::Create(task_.value(), std::move(trace));
    if (made.ok()) {
      plan_.emplace(std::move(made.value()));
    } else {
      issues_ = made.issues();
    }
  }

  Result<DesignTask> task_;
  Issues issues_;
  std::optional<DesignPlan> plan_;
};

EMSCRIPTEN_BINDINGS(servecast_search) {
  emscripten::class_<BoundSearch>("Search")
      .constructor<std::string, std::string>()
      .function("error", &BoundSearch::Error)
      .function("tasks", &BoundSearch::Tasks)
      .function("take", &BoundSearch::Take)
      .function("progress", &BoundSearch::Progress)
      .function("answer", &BoundSearch::Answer)
      .function("sentence", &BoundSearch::Sentence)
      .function("document", &BoundSearch::Document);
  emscripten::class_<BoundDesign>("Design")
      .constructor<std::string>()
      .function("error", &BoundDesign::Error)
      .function("setTrace", &BoundDesign::SetTrace)
      .function("advance", &BoundDesign::Advance)
      .function("point", &BoundDesign::Point);
}

}  // namespace
}  // namespace servecast
