// See sglang_names.h.
#include "io/sglang_names.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/text.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

struct SharedName {
  std::string_view policy;
  const char *own, *engine;
  bool opposite = false;  // its flag switches it off
};
constexpr SharedName kSharedNames[] = {
    {"sglang", "max_running_requests", "max_num_seqs"},
    {"sglang", "chunked_prefill_size", "max_num_batched_tokens"},
    {"sglang", "page_size", "block_size"},
    {"sglang", "context_length", "max_model_len"},
    {"sglang", "disable_radix_cache", "enable_prefix_caching", true},
    {"sglang", "disable_overlap_schedule", "async_scheduling", true},
    {"trtllm", "max_batch_size", "max_num_seqs"},
    {"trtllm", "max_num_tokens", "max_num_batched_tokens"},
    {"trtllm", "tokens_per_block", "block_size"},
    {"trtllm", "max_seq_len", "max_model_len"},
    {"trtllm", "enable_chunked_prefill", "enable_chunked_prefill"},
    {"trtllm", "enable_block_reuse", "enable_prefix_caching"},
    {"trtllm", "disable_overlap_scheduler", "async_scheduling", true},
};

// TensorRT-LLM writes these in capitals.
constexpr const char* kCapitals[] = {"capacity_scheduler_policy", "context_chunking_policy",
                                     "waiting_queue"};

// Of a section of TensorRT-LLM's the members are the scheduler's own here, behind `prefix`.
void TakeSection(const char* section, std::string_view prefix, Json& scheduler,
                 const std::string& path, Issues& issues) {
  const auto config = scheduler.find(section);
  if (config == scheduler.end() || !config->is_object()) return;
  const Json members = std::move(*config);
  scheduler.erase(config);
  for (const auto& [name, value] : members.items()) {
    const std::string own = std::string(prefix) + name;
    if (scheduler.contains(own)) {
      issues.push_back({Format("{}/{}/{}", path, section, name),
                        Format("found {} beside scheduler.{}, which is the same: allowed one of "
                               "them",
                               ShortJson(value), own)});
    } else {
      scheduler[own] = value;
    }
  }
}

void TakeTrtllmForms(Json& scheduler, const std::string& path, Issues& issues) {
  TakeSection("kv_cache_config", "", scheduler, path, issues);
  TakeSection("attention_dp_config", "attention_dp_", scheduler, path, issues);
  for (const char* name : kCapitals) {
    const auto at = scheduler.find(name);
    if (at == scheduler.end() || !at->is_string()) continue;
    std::string lower = at->get<std::string>();
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    *at = lower;
  }
}

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
  const bool whole = name.own == std::string_view("chunked_prefill_size") &&
                     value.is_number_integer() && value.get<std::int64_t>() <= 0;
  if (whole) {  // -1: prompts are not cut
    engine["enable_chunked_prefill"] = false;
  } else {
    engine[name.engine] = name.opposite ? Json(!value.get<bool>()) : std::move(value);
  }
}

void TakeSharedNames(std::string_view policy, Json& holder, const std::string& above,
                     Issues& issues) {
  const auto scheduler = holder.find("scheduler");
  if (scheduler == holder.end() || !scheduler->is_object()) return;
  if (policy == "trtllm") TakeTrtllmForms(*scheduler, above + "/scheduler", issues);
  for (const SharedName& name : kSharedNames) {
    const auto at = name.policy == policy ? scheduler->find(name.own) : scheduler->end();
    if (at == scheduler->end()) continue;
    Json value = std::move(*at);
    scheduler->erase(at);
    Json& engine = holder["engine"];
    if (engine.is_string()) engine = Json{{"preset", engine}};
    if (engine.is_null()) engine = Json::object();
    if (!engine.is_object()) return;  // which is an issue by itself
    TakeShared(name, Format("{}/scheduler/{}", above, name.own), std::move(value), engine, issues);
  }
}

}  // namespace

void TakeServerNames(Json& document, Issues& issues) {
  const std::string policy = SchedulerIn(document);
  TakeSharedNames(policy, document, "", issues);
  const Json* cluster = MemberIn(document, "cluster");
  if (cluster == nullptr || MemberIn(*cluster, "pools") == nullptr) return;
  Json& pools = document["cluster"]["pools"];
  if (!pools.is_array()) return;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (!pools[i].is_object()) continue;
    const std::string own = SchedulerIn(pools[i]);
    TakeSharedNames(own.empty() ? policy : own, pools[i], Format("/cluster/pools/{}", i), issues);
  }
}

}  // namespace servecast
