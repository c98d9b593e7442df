// See design_search_words.h.
#include "plan/design_search_words.h"

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

void WriteAnswer(const DesignPoint& point, const Conclusion& found, JsonWriter& out) {
  const Cost cost = found.cost;
  out.BeginObject();
  if (found.least == Least::kEnergy) {
    const auto number = [&out](const std::optional<double>& value) {
      value ? out.Number(*value) : out.Null();
    };
    out.Key("value"), out.Number(point.energy->j_per_output_token);
    out.Key("low"), number(point.energy->low);
    out.Key("high"), number(point.energy->high);
    out.Key("unit"), out.Text("J/token");
    return out.EndObject();
  }
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
  WritePoint(said, found.least, out);
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
                             : pool.role == PoolRole::kEncode ? " for images"
                                                              : "";
    text += (text.empty() ? "" : " and ") + Count(pool.replicas, "replica") + role;
  }
  return text;
}

// "H100 SXM 80 GB, fp8, 1 replica".
std::string DesignText(const SearchParts& search, const DesignPoint& point) {
  return Printable(search.designs[Index(point.id)].label) + ", " + PoolsOf(point);
}

std::string BindingText(const DesignPoint& point) {
  if (point.binding.empty()) return "";
  if (point.binding == "capacity") return "; with fewer, the load is more than is served";
  return "; with fewer, " + Printable(point.binding) + " is missed";
}

// "0.4 J per output token".
std::string EnergyPerToken(const DesignPoint& point) {
  return ShortNumber(point.energy->j_per_output_token) + " J per output token";
}

std::string PriceText(const DesignPoint& point, Cost cost) {
  return Money(*CostOf(point, cost), cost) + (cost == Cost::kDollars ? " an hour" : "");
}

// How the least energy compares with the lowest price, and of how many designs that hold energy is
// not known. Requires: a cheapest one.
std::string EnergySentence(const SearchParts& search, const Conclusion& found,
                           const std::string& held) {
  const auto unknown =
      std::count_if(search.points.begin(), search.points.end(),
                    [](const DesignPoint& point) { return point.Holds() && !point.energy; });
  const std::string missing =
      unknown == 0 ? "" : Format(" The power of {} of them is not known.", unknown);
  const DesignPoint& cheapest = search.points[Index(*found.cheapest)];
  const std::string price = PriceText(cheapest, found.cost);
  if (!found.least_energy) {
    return Format(
        "Not known: no design that keeps the targets has a GPU whose power is known. The "
        "cheapest is {}: {}. {}",
        price, DesignText(search, cheapest), held);
  }
  const DesignPoint& least = search.points[Index(*found.least_energy)];
  std::string text = EnergyPerToken(least);
  if (least.energy->low && least.energy->high) {
    text +=
        Format(" ({} to {})", ShortNumber(*least.energy->low), ShortNumber(*least.energy->high));
  }
  text += Format(": {}, {}{}.", DesignText(search, least), PriceText(least, found.cost),
                 BindingText(least));
  if (least.id == cheapest.id) {
    text += " It is the cheapest, too.";
  } else {
    text += Format(" The cheapest is {}: {}{}.", price, DesignText(search, cheapest),
                   cheapest.energy ? ", " + EnergyPerToken(cheapest) : "");
  }
  text += " " + held + missing;
  for (const std::string& warning : least.warnings) text += " " + Printable(warning);
  return text;
}

// Designs that a finished search could not judge. (Who was given up costs far too much, whatever it
// keeps.)
std::int64_t UnknownOf(const SearchParts& search) {
  if (!search.finished) return 0;
  return std::count_if(search.points.begin(), search.points.end(), [](const DesignPoint& point) {
    return point.state == DesignState::kUnknown && !point.given_up;
  });
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
  const std::int64_t unknown = UnknownOf(search);
  if (meet == 0 && unknown > 0) {
    return Format("No design is known to keep the targets: {} of {} could not be judged{}.",
                  unknown, all, close);
  }
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
  const std::optional<std::int64_t> id = found.Answer();
  const DesignPoint* best = id ? &search.points[Index(*id)] : nullptr;
  out.BeginObject();
  out.Key("outcome");
  out.Text(!search.finished        ? "partial"
           : best != nullptr       ? "found"
           : UnknownOf(search) > 0 ? "unknown"
                                   : "none");
  out.Key("answer");
  best != nullptr ? WriteAnswer(*best, found, out) : out.Null();
  out.Key("cheapest"), found.cheapest ? out.Integer(*found.cheapest) : out.Null();
  if (found.least == Least::kEnergy) {
    out.Key("least_energy"), id ? out.Integer(*id) : out.Null();
  }
  out.Key("binding");
  best != nullptr && !best->binding.empty() ? out.Text(Printable(best->binding)) : out.Null();
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
  if (found.least == Least::kEnergy && found.cheapest) return EnergySentence(search, found, held);
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
  std::string text =
      Format("{}: {}{}. {}", price, DesignText(search, point), BindingText(point), held);
  for (const std::string& warning : point.warnings) text += " " + Printable(warning);
  return text;
}

}  // namespace servecast
