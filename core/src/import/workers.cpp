// What a router says of the servers behind it: how many of each role. A text that starts one server
// of a role stands for all that the router sends to.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "import/draft.h"
#include "import/json_members.h"
#include "io/feature_checks.h"
#include "io/json_document.h"

namespace servecast {
namespace {

using WorkerJson = nlohmann::json;

// "": whole requests.
std::string RoleIn(const WorkerJson& pool) {
  const std::string role = pool.is_object() ? TextIn(pool, "role") : "";
  return role == "mixed" ? "" : role;
}

std::int64_t CountOr1(const WorkerJson& pool, const char* name) {
  return pool.is_object() ? std::max<std::int64_t>(1, pool.value(name, std::int64_t{1})) : 1;
}

std::int64_t ServersIn(const WorkerJson& pool) {
  return std::max<std::int64_t>(
      1, CountOr1(pool, "replicas") / CountOr1(pool, "attention_data_parallel"));
}

std::string ServersForRole(std::string_view role, std::int64_t count) {
  const std::string kind = role.empty() ? "" : std::string(role) + " ";
  return Format("{} {}server{}", count, kind, count == 1 ? "" : "s");
}

}  // namespace

void Draft::TakeWorkers(std::string_view role, std::int64_t count, std::int64_t ranks,
                        std::string_view from) {
  if (count < 1) return;
  workers_[std::string(role)] = {count, ranks,
                                 std::string(from) + (text_.empty() ? "" : " of " + text_)};
}

void Draft::TakeSplit(std::string_view from) {
  split_ = ShownText(from, kShown) + (text_.empty() ? "" : " of " + text_);
}

// Servers that are all alike, none of which says its role, as a pool for each.
void Draft::SplitPools(const std::string& words) {
  WorkerJson& pools = said_["cluster"]["pools"];
  const auto without_count = [this](WorkerJson pool) {
    for (const char* section : {"engine", "scheduler"}) {
      const WorkerJson* top = Find(section);
      if (pool.contains(section) && top != nullptr && pool[section] == *top) pool.erase(section);
    }
    pool.erase("replicas");
    return pool;
  };
  const WorkerJson first = without_count(pools[0]);
  const bool alike = std::all_of(pools.begin(), pools.end(), [&](const WorkerJson& pool) {
    return without_count(pool) == first;
  });
  const bool counted = workers_.contains("prefill") && workers_.contains("decode");
  const WorkerJson* engine = Find("engine.preset");
  const bool vllm = engine == nullptr || engine->get<std::string>().find("vllm") == 0;
  if (!alike || !counted || !vllm) {
    return Warn(
        Format("{}: the router sends prompts to servers for prefill and their KV to servers for "
               "decode, and no server says which of them it is: all serve whole requests here",
               words));
  }
  pools = WorkerJson::array({first, first});
  const char* const kRoles[] = {"prefill", "decode"};
  for (std::size_t i = 0; i < 2; ++i) {
    pools[i].erase("role");
    Put(Format("cluster.pools.{}.role", i), kRoles[i], words, false);
  }
}

void Draft::SettleRole(std::string_view role) {
  const Workers& workers = workers_.find(role)->second;
  const WorkerJson& pools = said_["cluster"]["pools"];
  std::size_t pool = 0, matching = 0;
  std::int64_t servers = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (RoleIn(pools[i]) != role) continue;
    pool = i;
    ++matching;
    servers += ServersIn(pools[i]);
  }
  const std::string asked = ServersForRole(role, workers.count);
  if (matching == 0) {
    return Warn(Format("{}: the router sends to {}, and no text starts one", workers.from, asked));
  }
  if (servers > 1 && servers != workers.count && !pools_of_base_) {
    return Warn(Format("{}: the router sends to {}, and the texts start {}: taken as they start",
                       workers.from, asked, servers));
  }
  const std::int64_t own = CountOr1(pools[pool], "attention_data_parallel");
  const std::int64_t ranks = std::max(own, workers.ranks);
  const bool more = workers.count != servers || ranks > own;
  if (matching > 1 || !more) return;
  const std::string of_ranks = ranks > 1 ? Format(" x {} data-parallel", ranks) : "";
  if (ranks > own) At(Format("cluster.pools.{}.attention_data_parallel", pool)) = ranks;
  const std::string path = Format("cluster.pools.{}.replicas", pool);
  Put(path, workers.count * ranks, Format("{} of {}{}", workers.count, workers.from, of_ranks),
      false);
  out_.said.push_back(path);
}

void Draft::SettleWorkers(const WorkerJson& base) {
  if (workers_.empty() && split_.empty()) return;
  const WorkerJson* pools = Find("cluster.pools");
  if (pools == nullptr || !pools->is_array() || pools->empty()) {
    pools_of_base_ = true;
    const WorkerJson* own = MemberAt(base, "cluster.pools");
    said_["cluster"]["pools"] = own != nullptr && own->is_array() && !own->empty()
                                    ? *own
                                    : WorkerJson::array({WorkerJson::object()});
  }
  WorkerJson& all = said_["cluster"]["pools"];
  for (WorkerJson& pool : all) {
    if (!pool.is_object()) pool = WorkerJson::object();
  }
  const bool roles = std::any_of(all.begin(), all.end(),
                                 [](const WorkerJson& pool) { return !RoleIn(pool).empty(); });
  if (!split_.empty() && roles) {
    Remark(Format("{}: each request goes to a server for prefill, then to one for decode", split_));
  } else if (!split_.empty()) {
    SplitPools(split_);
  }
  const bool apart = std::any_of(all.begin(), all.end(),
                                 [](const WorkerJson& pool) { return !RoleIn(pool).empty(); });
  for (const auto& [role, workers] : workers_) {
    // Servers that serve whole requests after all have been warned of.
    if (split_.empty() || apart) SettleRole(role);
  }
}

// The choice of a router is not run beside no pool for decode, nor, where it goes by more than
// requests, beside a scaler.
void Draft::SettleRouters() {
  const WorkerJson* found = Find("cluster.pools");
  const WorkerJson pools = found != nullptr ? *found : WorkerJson::array();
  bool scales = Find("cluster.scaling") != nullptr, decodes = false;
  for (const WorkerJson& pool : pools) {
    scales = scales || pool.contains("scaling");
    decodes = decodes || RoleIn(pool) == "decode";
  }
  for (const char* router : {"router", "decode_router"}) {
    const WorkerJson* policy = Find(Format("cluster.{}.policy", router));
    if (policy == nullptr || !policy->is_string()) continue;
    const auto name = policy->get<std::string>();
    if (router == std::string_view("decode_router") && !decodes) {
      Remark(Format("no pool decodes apart: {} for decode is left out", name));
      said_["cluster"].erase(router);
    } else if (scales && WeighsLoad(name)) {
      Warn(Format("{} is not modelled beside a scaler: least_outstanding is in its place", name));
      said_["cluster"][router] = {{"policy", "least_outstanding"}};
    }
  }
}

}  // namespace servecast
