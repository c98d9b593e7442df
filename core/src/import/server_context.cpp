// What stands around a server's options, of any engine: its image, its GPUs, its replicas. See
// vllm_options.h.
#include <algorithm>

#include "base/printable.h"
#include "base/text.h"
#include "import/vllm_options.h"

namespace servecast {

const std::string* ServerContext::Variable(std::string_view name) const {
  if (environment == nullptr) return nullptr;
  const auto found = environment->find(name);
  return found == environment->end() ? nullptr : &found->second;
}

std::string VersionOfImage(std::string_view image) {
  const std::size_t slash = image.find_last_of('/');
  const std::size_t colon = image.find(':', slash == std::string_view::npos ? 0 : slash);
  if (colon == std::string_view::npos) return "";
  const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
  const std::string_view name = image.substr(begin, colon - begin);
  const bool engines = name == "vllm" || name.find("vllm-openai") == 0 || name.find("sglang") == 0;
  // NVIDIA's versions are months, LMCache's its own.
  const bool others = image.find("nvcr.io/") == 0 || image.find("lmcache/") == 0;
  if (!engines || others) return "";
  std::string_view tag = image.substr(colon + 1);
  if (!tag.empty() && tag[0] == 'v') tag.remove_prefix(1);
  const bool version =
      !tag.empty() && tag[0] >= '0' && tag[0] <= '9' && tag.find('.') != std::string_view::npos;
  return version ? std::string(tag.substr(0, 20)) : "";
}

std::vector<std::string> DevicesIn(std::string_view text) {
  const std::size_t device = text.find("device=");
  if (device != std::string_view::npos) text.remove_prefix(device + 7);
  std::vector<std::string> devices;
  while (!text.empty() && devices.size() < 64) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::string_view one = Stripped(text.substr(0, end));
    one = one.substr(0, one.find_last_not_of("\"'") + 1);
    if (one == "all" || one == "void" || one == "none") return {};
    if (!one.empty() && one.find('$') == std::string_view::npos) devices.emplace_back(one);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return devices;
}

namespace {

// "CUDA_VISIBLE_DEVICES=MIG-..." and MPS's share of a GPU's multiprocessors.
void TakeGpuParts(const ServerContext& context, Draft& draft) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}) {
    const std::string* value = context.Variable(name);
    if (value != nullptr && value->find("MIG-") != std::string::npos) {
      draft.TakeGpuShare(Format("{}={}", name, *value));
    }
  }
  constexpr const char* kMps = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
  const std::string* share = context.Variable(kMps);
  if (share != nullptr && *share != "100") draft.TakeGpuShare(Format("{}={}", kMps, *share));
}

}  // namespace

void TakeExpertRanks(std::int64_t experts, std::int64_t tensor, const std::string& words,
                     Draft& draft) {
  draft.Take(draft.ServerPath("engine.enable_expert_parallel"), true, words);
  if (experts == tensor) return;
  draft.Warn(
      Format("{} of a tensor-parallel group of {}: expert parallelism is modelled over the whole "
             "group alone; the experts are spread over {} GPUs here",
             ShownText(words, kShown), tensor, tensor));
}

void TakeServerShape(const ServerShape& shape, const ServerContext& context, Draft& draft) {
  const std::int64_t replicas = std::clamp<std::int64_t>(context.replicas, 1, 1024);
  // A server of data-parallel ranks is so many replicas here; with experts these share them.
  const std::int64_t all = std::min<std::int64_t>(replicas * shape.data, 1'000'000);
  draft.Take(
      draft.ServerPath("pool.replicas"), all,
      all == 1 ? "one server" : Format("{} servers x {} data-parallel", replicas, shape.data));
  if (shape.data > 1) draft.TakeDataParallel(shape.data);
  if (!shape.role.empty()) draft.Take(draft.ServerPath("pool.role"), shape.role, context.from);
  const std::int64_t used = shape.tensor * shape.pipeline * shape.data;
  if (context.gpus > 0 && context.gpus != used) {
    draft.Remark(Format("{} asks for {} GPUs and uses {}", context.from, context.gpus, used));
  }
  TakeGpuParts(context, draft);
  // NCCL then goes through the host's memory, past NVLink, too.
  const std::string* no_peers = context.Variable("NCCL_P2P_DISABLE");
  if (used > 1) draft.TakeLinks(no_peers != nullptr && *no_peers == "1", "NCCL_P2P_DISABLE=1");
}

}  // namespace servecast
