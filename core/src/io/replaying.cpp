// See replaying.h.
#include "io/replaying.h"

#include <nlohmann/json.hpp>

#include "io/json_document.h"
#include "io/presets.h"
#include "io/variants.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

// Members of a workload that may be a trace's, and the choice in each that says so.
struct Part {
  const char *name, *choice;
};
constexpr Part kArrivalPart = {"arrivals", "process"};
constexpr Part kLengths[] = {{"prompt_tokens", "distribution"}, {"output_tokens", "distribution"}};
constexpr const char* kTrace = "trace";

bool IsOfTrace(const Json& workload, const Part& part) {
  const auto found = workload.find(part.name);
  if (found == workload.end() || !found->is_object()) return false;
  const auto choice = found->find(part.choice);
  return choice != found->end() && *choice == kTrace;
}

bool Replays(const Json& workload) {
  return IsOfTrace(workload, kArrivalPart) || IsOfTrace(workload, kLengths[0]) ||
         IsOfTrace(workload, kLengths[1]);
}

void Replay(const Part& part, Json& workload) {
  Json& member = workload[part.name];
  if (member.is_null()) member = Json::object();
  if (!member.is_object()) return;  // the parser says what is wrong with it
  DropInapplicable(member, part.choice, kTrace);
  member[part.choice] = kTrace;
}

}  // namespace

std::string ReplayingDocument(std::string_view text, bool has_arrivals) {
  Result<Json> parsed = ParseJson(text);
  if (!parsed.ok() || !parsed.value().is_object()) return std::string(text);
  Json& workload = parsed.value()["workload"];
  if (workload.is_null()) workload = Json::object();
  if (!workload.is_object() || Replays(workload)) return std::string(text);
  const auto named = workload.find("preset");
  const Json* preset = named != workload.end() && named->is_string()
                           ? FindPresetDocument("workloads", named->get<std::string>())
                           : nullptr;
  if (has_arrivals) Replay(kArrivalPart, workload);
  for (const Part& part : kLengths) Replay(part, workload);
  for (const char* member : {"sessions", "prefix"}) {
    workload.erase(member);
    if (preset != nullptr && preset->contains(member)) workload[member] = nullptr;
  }
  return CompactJson(parsed.value());
}

}  // namespace servecast
