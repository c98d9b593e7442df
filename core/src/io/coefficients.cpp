// See coefficients.h.
#include "io/coefficients.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/field_reader.h"
#include "io/json_document.h"

namespace servecast {

using Json = nlohmann::json;

Result<std::vector<CoefficientSet>> ReadCoefficientSets(std::string_view file) {
  Result<Json> parsed = ParseJson(file);
  if (!parsed.ok()) return Issues(parsed.issues());
  const Json& document = parsed.value();
  if (!document.is_object() || !document.contains("sets") || !document["sets"].is_array()) {
    return Issue{"/sets", "missing, allowed a list of coefficient sets"};
  }
  std::vector<CoefficientSet> sets;
  for (const Json& row : document["sets"]) {
    const bool whole = row.is_object() && row.contains("id") && row["id"].is_string() &&
                       row.contains("alpha") && row.contains("beta");
    if (!whole) {
      return Issue{Format("/sets/{}", sets.size()), "allowed an object of id, alpha and beta"};
    }
    CoefficientSet set;
    set.id = row["id"].get<std::string>();
    set.latency =
        CompactJson(Json{{"backend", "blackbox"}, {"alpha", row["alpha"]}, {"beta", row["beta"]}});
    const auto multiple = row.find("prefill_time_over_peak");
    if (multiple != row.end() && multiple->is_number()) {
      set.prefill_time_over_peak = multiple->get<double>();
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

Result<CoefficientSet> FindCoefficientSet(std::string_view file, std::string_view id) {
  Result<std::vector<CoefficientSet>> sets = ReadCoefficientSets(file);
  if (!sets.ok()) return Issues(sets.issues());
  std::vector<std::string_view> ids;
  for (CoefficientSet& set : sets.value()) {
    if (set.id == id) return std::move(set);
    ids.emplace_back(set.id);
  }
  return Issue{"--coefficients", Format("found \"{}\", allowed an id that servecast "
                                        "coefficients lists{}",
                                        id, DidYouMean(id, ids))};
}

}  // namespace servecast
