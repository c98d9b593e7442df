// See designs.h.
#include "plan/designs.h"

#include <algorithm>
#include <optional>

#include "base/printable.h"
#include "base/text.h"
#include "io/axes.h"
#include "io/issues.h"
#include "io/presets.h"
#include "io/prices.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "2 replicas", "TP 2", "no EP", "H200 SXM 141 GB", "max_num_seqs 512".
std::string WordsOf(const std::string& path, const std::string& value) {
  if (EndsWith(path, "tensor_parallel")) return "TP " + value;
  if (EndsWith(path, "pipeline_parallel")) return "PP " + value;
  if (EndsWith(path, "attention_data_parallel")) return "DP attention " + value;
  if (EndsWith(path, "enable_expert_parallel")) return value == "true" ? "EP" : "no EP";
  if (path == kRolesPath || path == kPricesPath) return value;
  if (EndsWith(path, ".replicas")) return value + (value == "1" ? " replica" : " replicas");
  if (path == "model.quantization") return value == "none" ? "not quantized" : value;
  const std::size_t dot = path.rfind('.');
  if (EndsWith(path, ".preset")) {
    const std::string section = path.substr(0, dot);
    const std::size_t before = section.rfind('.');
    const std::string name = before == std::string::npos ? section : section.substr(before + 1);
    const PresetName preset = NameOfPreset(PresetKind(name), value);
    if (!preset.id.empty()) return std::string(preset.name);
  }
  return path.substr(dot == std::string::npos ? 0 : dot + 1) + " " + value;
}

bool SetsReplicas(const std::string& path) {
  return path.rfind("cluster.pools.", 0) == 0 && EndsWith(path, ".replicas");
}

Issues IssuesOf(const std::vector<Axis>& axes) {
  Issues issues;
  std::size_t designs = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::string shown = ShownText(axes[i].path);
    if (axes[i].path.empty() || axes[i].values.empty()) {
      issues.push_back({"", Format("found {}, allowed a path and its values", shown)});
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (axes[j].path != axes[i].path) continue;
      issues.push_back({"", Format("found {} twice, allowed each path once", shown)});
    }
    designs = designs > kMostDesigns ? designs : designs * axes[i].values.size();
  }
  if (designs > kMostDesigns) {
    issues.push_back({"", Format("found more than {} designs, allowed {}: fewer values, or a sweep",
                                 kMostDesigns, kMostDesigns)});
  }
  return Bounded(std::move(issues));
}

// The same with a value of one more axis.
Design With(Design design, const Axis& axis, const std::string& value) {
  design.values.emplace_back(axis.path, value);
  if (axis.path != kPricesPath || axis.values.size() > 1) {
    design.label += (design.label.empty() ? "" : ", ") + ShownText(WordsOf(axis.path, value));
  }
  design.fixed = design.fixed || SetsReplicas(axis.path);
  if (!design.issues.empty()) return design;
  Result<std::string> changed = WithValue(design.document, axis.path, value);
  if (!changed.ok()) design.issues = changed.issues();
  if (changed.ok() && axis.path == kPricesPath) design.issues = Unpriced(changed.value(), value);
  design.document = design.issues.empty() ? std::move(changed.value()) : "";
  return design;
}

// An axis at a time, so that a document of the first axes is made once for all values of the next.
std::vector<Design> Combined(const std::string& document, const std::vector<Axis>& axes) {
  std::vector<Design> designs(1);
  designs[0].document = document;
  for (const Axis& axis : axes) {
    std::vector<Design> more;
    for (const Design& design : designs) {
      for (const std::string& value : axis.values) more.push_back(With(design, axis, value));
    }
    designs = std::move(more);
  }
  for (std::size_t i = 0; i < designs.size(); ++i) designs[i].id = static_cast<std::int64_t>(i);
  return designs;
}

// Of what would be another design's equal, and is run once.
Issues Needless(const Scenario& scenario) {
  const auto alone = [](const PoolSpec& pool) {
    return pool.tensor_parallel * pool.attention_data_parallel == 1;
  };
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  if (!scenario.engine.enable_expert_parallel || !std::all_of(pools.begin(), pools.end(), alone)) {
    return {};
  }
  return {{"/engine/enable_expert_parallel",
           "found true, allowed false with one GPU, which holds all experts either way"}};
}

bool Varies(const std::vector<Axis>& axes, std::string_view path) {
  return std::any_of(axes.begin(), axes.end(), [path](const Axis& axis) {
    return axis.path == path && axis.values.size() > 1;
  });
}

// Coefficients of a step are of one server: no other's times follow from them.
Issues Unknown(const Scenario& own, const std::vector<Axis>& axes) {
  Issues issues;
  if (own.latency.backend != "blackbox") return issues;
  for (const Axis& axis : axes) {
    const std::string& path = axis.path;
    const bool server = path == "hardware.preset" || path == "model.preset" ||
                        path == "model.quantization" || EndsWith(path, "_parallel");
    if (!server || axis.values.size() < 2) continue;
    issues.push_back(
        {"", Format("found {} beside latency.backend blackbox, whose times are those of "
                    "one server whatever it is; allowed with a backend that knows it",
                    ShownText(path))});
  }
  return issues;
}

// The design that is the scenario itself, though no more than each value is read: one that alone
// changes nothing does so among others. None: it is not of the grid.
std::optional<std::size_t> OwnAmong(const std::string& document, const Scenario& own,
                                    const std::vector<Axis>& axes) {
  std::size_t index = 0;
  for (const Axis& axis : axes) {
    const auto changes_nothing = [&](const std::string& value) {
      const Result<std::string> changed = WithValue(document, axis.path, value);
      if (!changed.ok()) return false;
      const Result<Scenario> read = ParseScenario(changed.value());
      return read.ok() && read.value().content_hash == own.content_hash;
    };
    const auto its = std::find_if(axis.values.begin(), axis.values.end(), changes_nothing);
    if (its == axis.values.end()) return std::nullopt;
    index = index * axis.values.size() + static_cast<std::size_t>(its - axis.values.begin());
  }
  return index;
}

// What is wrong with each design, if with all of them: a mistake in a path is one of all.
Issues MistakesOf(const std::vector<Design>& designs) {
  Issues mistakes;
  for (const Design& design : designs) {
    Issues found = design.issues;
    if (found.empty()) {
      const Result<Scenario> read = ParseToRun(design.document);
      if (read.ok()) return {};
      found = read.issues();
    }
    for (Issue& issue : found) {
      const bool known = std::find(mistakes.begin(), mistakes.end(), issue) != mistakes.end();
      if (!known && mistakes.size() <= kMostIssues) mistakes.push_back(std::move(issue));
    }
  }
  return mistakes;
}

void RefuseNeedless(std::vector<Design>& designs) {
  for (Design& design : designs) {
    if (!design.issues.empty() || design.own) continue;
    const Result<Scenario> read = ParseToRun(design.document);
    if (read.ok()) design.issues = Needless(read.value());
    if (!design.issues.empty()) design.document = "";
  }
}

}  // namespace

Result<std::vector<Design>> DesignsOf(const std::string& document, const std::vector<Axis>& axes) {
  const Result<Scenario> own = ParseScenario(document);
  Issues issues = IssuesOf(axes);
  const Issues more = own.ok() ? Unknown(own.value(), axes) : own.issues();
  issues.insert(issues.end(), more.begin(), more.end());
  if (!issues.empty()) return issues;
  std::vector<Design> designs = Combined(document, axes);
  const std::optional<std::size_t> place = OwnAmong(document, own.value(), axes);
  if (place) designs[*place].own = true;
  Issues mistakes = place ? Issues() : MistakesOf(designs);
  if (!mistakes.empty()) return Bounded(std::move(mistakes));
  if (Varies(axes, "engine.enable_expert_parallel")) RefuseNeedless(designs);
  if (place) return designs;
  Design& as_it_is = designs.emplace_back();
  as_it_is.id = static_cast<std::int64_t>(designs.size()) - 1;
  as_it_is.label = "as it is";
  as_it_is.document = document;
  as_it_is.own = true;
  as_it_is.fixed = std::any_of(axes.begin(), axes.end(),
                               [](const Axis& axis) { return SetsReplicas(axis.path); });
  return designs;
}

}  // namespace servecast
