// Kubernetes manifests (Deployment, StatefulSet, Pod, LeaderWorkerSet, sets of roles) and Compose
// files that hold a server: a pool each.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/pod.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNoProgram = "starts no server, router or benchmark that is known here";

std::string MetadataNameOf(const Json& document) {
  const Json* metadata = ObjectIn(document, "metadata");
  return metadata == nullptr ? "" : TextIn(*metadata, "name");
}

// "prefill" and "decode", by labels or the name.
std::string RoleOf(const Json& document) {
  const Json* labels = ObjectAt(document, {"spec", "template", "metadata", "labels"});
  const Json* own = ObjectAt(document, {"metadata", "labels"});
  for (const Json* each : {labels, own}) {
    if (each == nullptr) continue;
    const std::string role = TextIn(*each, "llm-d.ai/role");
    if (role == "prefill" || role == "decode") return role;
  }
  return RoleInName(MetadataNameOf(document));
}

// What LeaderWorkerSet sets in its pods, as the leader sees it.
Variables GroupOf(const Json& spec) {
  const Json* group = ObjectIn(spec, "leaderWorkerTemplate");
  const std::string size = group == nullptr ? "" : TextIn(*group, "size");
  if (size.empty()) return {};
  return {{"LWS_GROUP_SIZE", size}, {"LWS_WORKER_INDEX", "0"}};
}

std::int64_t GroupSizeOf(const Json& spec) {
  const Json* group = ObjectIn(spec, "leaderWorkerTemplate");
  const std::string size = group == nullptr ? "" : TextIn(*group, "size");
  return std::clamp<std::int64_t>(ParseCount(size).value_or(1), 1, 1024);
}

std::optional<std::int64_t> CountIn(const Json& of, const char* key) {
  const auto count = ParseCount(TextIn(of, key));
  return count ? std::optional(std::min<std::int64_t>(*count, 1024)) : std::nullopt;
}

// Roles side by side: DisaggregatedSet, AIBrix's RoleSet and StormService, RoleBasedGroup and
// Kthena's ModelServing.
const Json& RolesIn(const Json& spec) {
  for (const Json* each : {ObjectAt(spec, {"template", "spec"}), ObjectIn(spec, "template")}) {
    if (each != nullptr && !ListIn(*each, "roles").empty()) return ListIn(*each, "roles");
  }
  return ListIn(spec, "roles");
}

// Whether there were any roles.
bool ReadRoles(const Json& spec, const std::string& from, const Variables& files, Draft& draft) {
  const Json& roles = RolesIn(spec);
  if (roles.empty()) return false;
  const std::int64_t sets =
      CountIn(spec, "slices").value_or(1) * CountIn(spec, "replicas").value_or(1);
  bool any = false;
  for (const Json& role : roles) {
    const Json* pod = PodIn(role);
    if (pod == nullptr) continue;
    const Json* inner = ObjectIn(role, "spec");
    PodContext context;
    context.server.files = &files;
    context.server.from = from + ", role " + ShownText(TextIn(role, "name"), 40);
    context.server.role = RoleInName(TextIn(role, "name"));
    auto replicas = CountIn(role, "replicas");
    if (!replicas && inner != nullptr) replicas = CountIn(*inner, "replicas");
    context.server.replicas = sets * replicas.value_or(1);
    const Json& group = inner != nullptr ? *inner : role;
    context.environment = GroupOf(group);
    context.nodes = std::max(GroupSizeOf(group), CountIn(role, "podGroupSize").value_or(1));
    any = ReadPod(*pod, context, draft) || any;
  }
  if (any && sets > 1) {
    draft.Remark(Format("{}: {} sets of its roles, so each role has that many times its replicas",
                        from, sets));
  }
  return any;
}

void ReadDocument(const Json& document, const Variables& files, Draft& draft) {
  if (!document.is_object()) return;
  for (const Json& item : ListIn(document, "items")) ReadDocument(item, files, draft);
  const std::string kind = TextIn(document, "kind");
  if (kind.empty() || IsOtherManifest(document)) return;
  const std::string from = Format("a manifest ({})", ShownText(kind, 40));
  const Json* spec = ObjectIn(document, "spec");
  if (spec != nullptr && ReadRoles(*spec, from, files, draft)) return;
  const Json* pod = PodIn(document);
  if (pod == nullptr) return;
  PodContext context;
  context.server.files = &files;
  context.server.from = from;
  context.server.role = RoleOf(document);
  if (spec != nullptr) {
    context.server.replicas = CountIn(*spec, "replicas").value_or(1);
    context.environment = GroupOf(*spec);
    context.nodes = GroupSizeOf(*spec);
  }
  const std::size_t before = draft.kinds(), servers = draft.servers();
  const bool read = ReadPod(*pod, context, draft);
  if (draft.servers() > servers) draft.NameServer(MetadataNameOf(document));
  if (read || draft.kinds() > before) return;
  draft.Ignore(Format("{} {}", kind, MetadataNameOf(document)), kNoProgram);
}

// A Compose service's environment, which is a list of NAME=value or an object, as Kubernetes has
// it.
Json EnvironmentOf(const Json& service) {
  Json list = Json::array();
  for (const Json& each : ListIn(service, "environment")) {
    const std::string text = TextOf(each);
    const std::size_t equals = std::min(text.find('='), text.size());
    list.push_back({{"name", text.substr(0, equals)},
                    {"value", equals < text.size() ? text.substr(equals + 1) : ""}});
  }
  if (const Json* object = ObjectIn(service, "environment"); object != nullptr) {
    for (const auto& [name, value] : object->items()) {
      list.push_back({{"name", name}, {"value", TextOf(value)}});
    }
  }
  return list;
}

// Of services with profiles one profile is started at a time: which are, when nobody says.
struct ComposeProfile {
  bool any = false;   // some services have profiles
  std::string taken;  // "": those without
};
ComposeProfile ProfileOf(const Json& services) {
  ComposeProfile profile;
  bool without = false;
  for (const auto& [name, service] : services.items()) {
    if (!service.is_object() || TextIn(service, "image").find("llm") == std::string::npos) continue;
    const Json& list = ListIn(service, "profiles");
    without |= list.empty();
    if (!list.empty() && profile.taken.empty()) profile.taken = TextOf(list[0]);
    profile.any |= !list.empty();
  }
  if (without) profile.taken.clear();
  return profile;
}

bool IsOfProfile(const Json& service, const ComposeProfile& profile) {
  const Json& list = ListIn(service, "profiles");
  if (list.empty() || !profile.any) return true;
  return !profile.taken.empty() && std::find(list.begin(), list.end(), profile.taken) != list.end();
}

// GPUs of the host by their numbers that a service may use; empty: it does not say which. Inside of
// a container CUDA counts those that it was given.
std::vector<std::string> DevicesOf(const Json& service, const Json& environment) {
  std::vector<std::string> devices;
  const auto add = [&devices](const Json& requests) {
    for (const Json& each : requests.is_array() ? requests : Json::array()) {
      for (const Json& id : ListIn(each, "device_ids")) devices.push_back(TextOf(id));
    }
  };
  if (const Json* held = ObjectAt(service, {"deploy", "resources", "reservations"})) {
    add(ListIn(*held, "devices"));
  }
  add(ListIn(service, "gpus"));
  for (const char* name : {"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    for (const Json& each : environment) {
      if (devices.empty() && TextIn(each, "name") == name)
        devices = DevicesIn(TextIn(each, "value"));
    }
  }
  return devices;
}

// Compose: services with an image and a command.
void ReadServices(const Json& document, Draft& draft) {
  const Json* services = ObjectIn(document, "services");
  if (services == nullptr) return;
  const ComposeProfile profile = ProfileOf(*services);
  std::string others;
  for (const auto& [name, service] : services->items()) {
    if (!service.is_object()) continue;
    if (!IsOfProfile(service, profile)) {
      if (others.size() < 200) others += (others.empty() ? "" : ", ") + ShownText(name, 40);
      continue;
    }
    Json container = {{"image", TextIn(service, "image")}, {"args", Json::array()}};
    for (const char* part : {"entrypoint", "command"}) {
      for (const std::string& word : WordsIn(service, part)) container["args"].push_back(word);
    }
    container["env"] = EnvironmentOf(service);
    PodContext context;
    context.server.from = Format("a Compose service ({})", ShownText(name, 40));
    const Json* deploy = ObjectIn(service, "deploy");
    if (deploy != nullptr) context.server.replicas = CountIn(*deploy, "replicas").value_or(1);
    const std::size_t before = draft.kinds();
    const bool server = ReadContainer(container, context, draft);
    if (!server && draft.kinds() == before) draft.Ignore(Format("service {}", name), kNoProgram);
    if (!server) continue;
    const std::vector<std::string> devices = DevicesOf(service, container["env"]);
    draft.TakeDevices(context.server.from, devices);
    if (context.server.replicas > 1 && !devices.empty()) {
      draft.Warn(Format("{}: its {} replicas share GPU {}: the forecast gives each GPUs of its own",
                        context.server.from, context.server.replicas, ShownText(devices[0], 40)));
    }
  }
  if (!others.empty()) {
    draft.Warn(Format("Compose starts one profile at a time: {} here, without {}",
                      profile.taken.empty() ? "the services without one"
                                            : "profile " + ShownText(profile.taken, 40),
                      others));
  }
}

}  // namespace

void ReadManifest(const ImportSource& source, Draft& draft) {
  const Variables files = FilesOfConfigMaps(source.manifests);
  for (const Json& document : source.manifests) {
    ReadDocument(document, files, draft);
    ReadServices(document, draft);
  }
}

}  // namespace servecast
