// A search over designs: who asks hands out its tasks, which any module may do.
#include <emscripten/bind.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bound_asked.h"
#include "io/axes.h"
#include "io/design_json.h"
#include "io/prices.h"
#include "plan/design_plan.h"
#include "plan/design_search.h"
#include "plan/named_axes.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

// `prices`: "" for those of the document and its presets.
Result<std::string> Priced(const std::string& document, const std::string& prices) {
  return prices.empty() ? Result<std::string>(document) : WithPrices(document, prices);
}

// As the command does it. `least`: "cost" or "energy".
Result<DesignSearch> Asked(const std::string& document, const std::string& axes,
                           const std::string& prices, const std::string& least) {
  const Result<std::string> priced = Priced(document, prices);
  if (!priced.ok()) return Issues(priced.issues());
  Result<std::vector<Axis>> asked = AxesAsked(priced.value(), axes, {});
  if (!asked.ok()) return Issues(asked.issues());
  if (!prices.empty()) asked.value().push_back({std::string(kPricesPath), {prices}});
  return DesignSearch::Create(priced.value(), std::move(asked.value()),
                              {.least = least == "energy" ? Least::kEnergy : Least::kCost});
}

std::string PricedJson(const std::string& document, const std::string& prices) {
  const Result<std::string> priced = Priced(document, prices);
  JsonWriter out(false);
  out.BeginObject();
  out.Key("document"), out.Text(priced.ok() ? priced.value() : "");
  out.Key("issues"), out.Raw(IssuesJson(priced.ok() ? Issues() : priced.issues()));
  out.EndObject();
  return out.Take();
}

class BoundSearch {
 public:
  // Names of axes between commas; "" for the usual ones.
  BoundSearch(const std::string& document, const std::string& axes, const std::string& prices,
              const std::string& least) {
    Result<DesignSearch> made = Asked(document, axes, prices, least);
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

class BoundDesign final : public BoundAsked<BoundDesign, DesignPlan> {
 public:
  explicit BoundDesign(const std::string& task) : task_(ReadTask(task)) { Begin({}); }

  Result<DesignPlan> Make(Trace trace) {
    if (!task_.ok()) return task_.issues();
    return DesignPlan::Create(task_.value(), std::move(trace));
  }
  std::string Point() const { return asked_ ? PointJson(asked_->Point()) : "null"; }

 private:
  Result<DesignTask> task_;
};

EMSCRIPTEN_BINDINGS(servecast_search) {
  emscripten::function("withPrices", &PricedJson);
  emscripten::class_<BoundSearch>("Search")
      .constructor<std::string, std::string, std::string, std::string>()
      .function("error", &BoundSearch::Error)
      .function("tasks", &BoundSearch::Tasks)
      .function("take", &BoundSearch::Take)
      .function("progress", &BoundSearch::Progress)
      .function("answer", &BoundSearch::Answer)
      .function("sentence", &BoundSearch::Sentence)
      .function("document", &BoundSearch::Document);
  BindAsked<BoundDesign>("Design").constructor<std::string>().function("point",
                                                                       &BoundDesign::Point);
}

}  // namespace
}  // namespace servecast
