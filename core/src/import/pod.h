// A pod of Kubernetes as a server of a scenario: its containers' commands, and what it says of its
// machine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "import/draft.h"
#include "import/vllm_options.h"
#include "import/words.h"

namespace servecast {

// What stands around a pod's containers.
struct PodContext {
  ServerContext server;        // from, role, replicas, model and options
  Variables environment = {};  // beside what the containers set themselves
  // A container without a command starts vLLM, whatever its image is called.
  bool vllm = false;
  std::int64_t nodes = 1;  // pods of one server; each asks for the GPUs that a container asks for
};

// The first object below, at most 8 levels deep, that has containers; nullptr: none.
const nlohmann::json* PodIn(const nlohmann::json& node);

// A server for each of its containers that starts one, and the GPU. False: none does.
bool ReadPod(const nlohmann::json& pod, const PodContext& context, Draft& draft);

// One container, or what has the members of one.
bool ReadContainer(const nlohmann::json& container, const PodContext& context, Draft& draft);

// What a pod says of its machine: labels of nodes, by selector or affinity.
void TakeSelectors(const nlohmann::json& pod, Draft& draft);

// Warns where a label allows several GPUs, of which the first is forecast. REQUIRES: a value.
void WarnOfOthers(const std::string& key, const nlohmann::json& values, Draft& draft);

// Texts that ConfigMaps have as files, by their names.
Variables FilesOfConfigMaps(const std::vector<nlohmann::json>& manifests);

// "prefill", "decode" where a name has that word in it; "" otherwise.
std::string RoleInName(std::string_view name);

}  // namespace servecast
