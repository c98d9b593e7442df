// What was measured on a server beside its forecast: asked for with a pasted result, so of the
// whole module.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bound_asked.h"
#include "experiment/diagnosis.h"
#include "io/json_document.h"

namespace servecast {
namespace {

// Of JSON MeasuredValue[], as importText answers it; what is none of them is left out.
std::vector<MeasuredValue> ValuesIn(const std::string& text) {
  std::vector<MeasuredValue> values;
  const Result<nlohmann::json> read = ParseJson(text);
  if (!read.ok() || !read.value().is_array()) return values;
  for (const nlohmann::json& each : read.value()) {
    if (!each.is_object()) continue;
    const auto name = each.find("name"), value = each.find("value");
    if (name == each.end() || value == each.end() || !name->is_string() || !value->is_number())
      continue;
    values.push_back({name->get<std::string>(), value->get<double>(), ""});
  }
  return values;
}

// Of a JSON list of texts.
std::vector<std::string> TextsIn(const std::string& text) {
  std::vector<std::string> texts;
  const Result<nlohmann::json> read = ParseJson(text);
  if (!read.ok() || !read.value().is_array()) return texts;
  for (const nlohmann::json& each : read.value()) {
    if (each.is_string()) texts.push_back(each.get<std::string>());
  }
  return texts;
}

// A scenario that replays a trace waits for it.
class BoundDiagnosis final : public BoundAsked<BoundDiagnosis, Diagnosis> {
 public:
  BoundDiagnosis(const std::string& document, const std::string& measured, const std::string& said)
      : document_(document), facts_{ValuesIn(measured), TextsIn(said)} {
    Begin({});
  }

  Result<Diagnosis> Make(Trace trace) {
    return Diagnosis::Create(document_, facts_, std::move(trace));
  }
  // Requires: finished.
  std::string Summary() const { return asked_ ? asked_->Json(/*with_documents=*/true) : "null"; }

 private:
  std::string document_;
  ServerFacts facts_;
};

EMSCRIPTEN_BINDINGS(servecast_diagnosis) {
  BindAsked<BoundDiagnosis>("Diagnosis")
      .constructor<std::string, std::string, std::string>()
      .function("summary", &BoundDiagnosis::Summary);
}

}  // namespace
}  // namespace servecast
