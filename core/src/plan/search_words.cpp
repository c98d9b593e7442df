// See search_words.h.
#include "plan/search_words.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "io/axes.h"
#include "io/design_json.h"
#include "io/json_writer.h"
#include "metrics/words.h"

namespace servecast {
namespace {

void WriteIds(std::string_view key, const std::vector<std::int64_t>& ids, JsonWriter& out) {
  out.Key(key), out.BeginArray();
  for (const std::int64_t id : ids) out.Integer(id);
  out.EndArray();
}

void WriteAxes(const std::vector<Axis>& axes, JsonWriter& out) {
  out.Key("axes"), out.BeginArray();
  for (const Axis& axis : axes) {
    out.BeginObject();
    out.Key("path"), out.Text(Printable(axis.path));
    out.Key("values"), out.BeginArray();
    for (const std::string& value : axis.values) WriteAxisValue(Printable(value), out);
    out.EndArray();
    out.EndObject();
  }
  out.EndArray();
}

void WriteAnswer(const DesignPoint& point, Cost cost, JsonWriter& out) {
  out.BeginObject();
  out.Key("value"), out.Number(*CostOf(point, cost));
  out.Key("low"), out.Number(*CostOf(point, cost, End::kLow));
  out.Key("high"), out.Number(*CostOf(point, cost, End::kHigh));
  out.Key("unit"), out.Text(cost == Cost::kDollars ? "$/h" : "GPUs");
  out.EndObject();
}

void WriteDesign(const Design& design, const DesignPoint& point, const Conclusion& found,
                 JsonWriter& out) {
  const std::size_t i = Index(design.id);
  DesignPoint said = point;
  said.reason = found.reasons[i];
  out.BeginObject();
  out.Key("id"), out.Integer(design.id);
  out.Key("label"), out.Text(Printable(design.label));
  out.Key("own"), out.Boolean(design.own);
  out.Key("values"), out.BeginObject();
  for (const auto& [path, value] : design.values) {
    out.Key(Printable(path)), WriteAxisValue(Printable(value), out);
  }
  out.EndObject();
  out.Key("dominated_by");
  found.dominated_by[i] ? out.Integer(*found.dominated_by[i]) : out.Null();
  WritePoint(said, out);
  out.EndObject();
}

// How many designs are in each state.
void WriteCounts(const std::vector<DesignPoint>& points, JsonWriter& out) {
  out.Key("counts"), out.BeginObject();
  for (int s = 0; s <= static_cast<int>(DesignState::kNotJudged); ++s) {
    const auto state = static_cast<DesignState>(s);
    out.Key(NameOf(state));
    out.Integer(std::count_if(points.begin(), points.end(),
                              [state](const auto& point) { return point.state == state; }));
  }
  out.EndObject();
}

// What the designs of the frontier rest on that nobody measured, each sentence once.
void WriteWarnings(const SearchParts& search, const Conclusion& found, JsonWriter& out) {
  std::vector<std::string> said;
  for (const std::int64_t id : found.frontier) {
    for (const std::string& warning : search.points[Index(id)].warnings) {
      if (std::find(said.begin(), said.end(), warning) == said.end()) said.push_back(warning);
    }
  }
  out.Key("warnings"), out.BeginArray();
  for (const std::string& warning : said) out.Text(Printable(warning));
  out.EndArray();
}

std::string Money(double cost, Cost of) {
  return of == Cost::kDollars ? Dollars(cost) : Count(static_cast<std::int64_t>(cost), "GPU");
}

std::string PoolsOf(const DesignPoint& point) {
  std::string text;
  for (const DesignPoint::Pool& pool : point.pools) {
    const std::string role = pool.role == PoolRole::kPrefill  ? " for prefill"
                             : pool.role == PoolRole::kDecode ? " for decode"
                                                              : "";
    text += (text.empty() ? "" : " and ") + Count(pool.replicas, "replica") + role;
  }
  return text;
}

// By the states that the answer counts: "52 of 96 designs keep the targets, 26 are too close to
// call."
std::string HeldText(const SearchParts& search) {
  const auto count = [&search](DesignState state) {
    return std::count_if(search.points.begin(), search.points.end(),
                         [state](const DesignPoint& point) { return point.state == state; });
  };
  const auto meet = count(DesignState::kMeets), near = count(DesignState::kNear);
  const std::string all = Count(static_cast<std::int64_t>(search.designs.size()), "design");
  const std::string close =
      near == 0 ? "" : Format(", {} {} too close to call", near, near == 1 ? "is" : "are");
  return meet == 0
             ? Format("None of {} keeps the targets{}.", all,
                      near == 0 ? "" : " for certain" + close)
             : Format("{} of {} {} the targets{}.", meet, all, meet == 1 ? "keeps" : "keep", close);
}

}  // namespace

std::string SearchJson(const SearchParts& search, const Conclusion& found, bool indented) {
  JsonWriter out(indented);
  std::int64_t runs = 0, requests = 0;
  for (const DesignPoint& point : search.points) {
    runs += point.runs;
    requests += point.requests;
  }
  const DesignPoint* cheapest = found.cheapest ? &search.points[Index(*found.cheapest)] : nullptr;
  out.BeginObject();
  out.Key("outcome");
  out.Text(!search.finished ? "partial" : cheapest != nullptr ? "found" : "none");
  out.Key("answer");
  cheapest != nullptr ? WriteAnswer(*cheapest, found.cost, out) : out.Null();
  out.Key("cheapest"), found.cheapest ? out.Integer(*found.cheapest) : out.Null();
  out.Key("binding");
  cheapest != nullptr && !cheapest->binding.empty() ? out.Text(Printable(cheapest->binding))
                                                    : out.Null();
  out.Key("targets"), out.BeginArray();
  for (const SloSpec& slo : search.targets) out.Text(Printable(Target(slo)));
  out.EndArray();
  WriteAxes(search.axes, out);
  WriteIds("frontier", found.frontier, out);
  out.Key("frontiers"), out.BeginObject();
  for (const Conclusion::Other& other : found.others) WriteIds(other.of, other.ids, out);
  out.EndObject();
  WriteWarnings(search, found, out);
  WriteCounts(search.points, out);
  out.Key("points"), out.BeginArray();
  for (const Design& design : search.designs) {
    WriteDesign(design, search.points[Index(design.id)], found, out);
  }
  out.EndArray();
  out.Key("runs"), out.Integer(runs);
  out.Key("requests"), out.Integer(requests);
  out.EndObject();
  return out.Take();
}

std::string SearchSentence(const SearchParts& search, const Conclusion& found) {
  const std::string held = HeldText(search);
  if (!found.cheapest) {
    const bool any = std::any_of(search.points.begin(), search.points.end(),
                                 [](const DesignPoint& point) { return point.Holds(); });
    if (search.finished && any) return held + " None of them has a price.";
    return search.finished ? held : "So far: " + held;
  }
  const DesignPoint& point = search.points[Index(*found.cheapest)];
  const std::string hour = found.cost == Cost::kDollars ? " an hour" : "";
  const std::string price = Format("{}{} ({} to {})", Money(*CostOf(point, found.cost), found.cost),
                                   hour, Money(*CostOf(point, found.cost, End::kLow), found.cost),
                                   Money(*CostOf(point, found.cost, End::kHigh), found.cost));
  const std::string binding = point.binding.empty() ? ""
                              : point.binding == "capacity"
                                  ? "; with fewer, the load is more than is served"
                                  : "; with fewer, " + Printable(point.binding) + " is missed";
  std::string text =
      Format("{}: {}, {}{}. {}", price, Printable(search.designs[Index(point.id)].label),
             PoolsOf(point), binding, held);
  for (const std::string& warning : point.warnings) text += " " + Printable(warning);
  return text;
}

}  // namespace servecast
