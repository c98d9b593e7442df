// See sglang_names.h.
#include "io/sglang_names.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

struct SharedName {
  const char *sglang, *engine;
  bool opposite = false;  // SGLang's flag switches it off
};
constexpr SharedName kSharedNames[] = {
    {"max_running_requests", "max_num_seqs"},
    {"chunked_prefill_size", "max_num_batched_tokens"},
    {"page_size", "block_size"},
    {"context_length", "max_model_len"},
    {"disable_radix_cache", "enable_prefix_caching", true},
    {"disable_overlap_schedule", "async_scheduling", true},
};

const Json* MemberIn(const Json& holder, const char* name) {
  const auto at = holder.is_object() ? holder.find(name) : holder.end();
  return holder.is_object() && at != holder.end() ? &*at : nullptr;
}

// The policy that a holder of sections names, by itself or by its engine's preset; "": none.
std::string SchedulerIn(const Json& holder) {
  const Json* scheduler = MemberIn(holder, "scheduler");
  if (scheduler != nullptr && scheduler->is_string()) return *scheduler;
  const Json* policy = scheduler == nullptr ? nullptr : MemberIn(*scheduler, "policy");
  if (policy != nullptr) return policy->is_string() ? policy->get<std::string>() : "";
  const Json* engine = MemberIn(holder, "engine");
  const Json* preset = engine == nullptr     ? nullptr
                       : engine->is_string() ? engine
                                             : MemberIn(*engine, "preset");
  if (preset == nullptr || !preset->is_string()) return "";
  const Json* file = FindPreset("engines", preset->get<std::string>());
  const Json* named = file == nullptr ? nullptr : MemberIn(*file, "scheduler");
  return named == nullptr ? "" : named->value("policy", "");
}

void TakeShared(const SharedName& name, const std::string& path, Json value, Json& engine,
                Issues& issues) {
  if (name.opposite && !value.is_boolean()) {
    issues.push_back({path, Format("found {}, allowed true or false", ShortJson(value))});
    return;
  }
  if (engine.contains(name.engine)) {
    issues.push_back({path, Format("found {} beside engine.{}, which is the same: allowed one of "
                                   "them",
                                   ShortJson(value), name.engine)});
    return;
  }
  const bool whole = name.engine == std::string_view("max_num_batched_tokens") &&
                     value.is_number_integer() && value.get<std::int64_t>() <= 0;
  if (whole) {  // -1: prompts are not cut
    engine["enable_chunked_prefill"] = false;
  } else {
    engine[name.engine] = name.opposite ? Json(!value.get<bool>()) : std::move(value);
  }
}

void TakeSharedNames(Json& holder, const std::string& above, Issues& issues) {
  const auto scheduler = holder.find("scheduler");
  if (scheduler == holder.end() || !scheduler->is_object()) return;
  for (const SharedName& name : kSharedNames) {
    const auto at = scheduler->find(name.sglang);
    if (at == scheduler->end()) continue;
    Json value = std::move(*at);
    scheduler->erase(at);
    Json& engine = holder["engine"];
    if (engine.is_string()) engine = Json{{"preset", engine}};
    if (engine.is_null()) engine = Json::object();
    if (!engine.is_object()) return;  // which is an issue by itself
    TakeShared(name, Format("{}/scheduler/{}", above, name.sglang), std::move(value), engine,
               issues);
  }
}

}  // namespace

void TakeSglangNames(Json& document, Issues& issues) {
  const std::string policy = SchedulerIn(document);
  if (policy == "sglang") TakeSharedNames(document, "", issues);
  const Json* cluster = MemberIn(document, "cluster");
  if (cluster == nullptr || MemberIn(*cluster, "pools") == nullptr) return;
  Json& pools = document["cluster"]["pools"];
  if (!pools.is_array()) return;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (!pools[i].is_object()) continue;
    const std::string own = SchedulerIn(pools[i]);
    if ((own.empty() ? policy : own) != "sglang") continue;
    TakeSharedNames(pools[i], Format("/cluster/pools/{}", i), issues);
  }
}

}  // namespace servecast
