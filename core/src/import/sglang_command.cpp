// Commands that start a server of SGLang: python -m sglang.launch_server, sglang serve, and docker
// run of its image. Names as sglang/srt/server_args.py has them, of 0.4 and 0.5.
#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/drafter.h"
#include "import/kinds.h"
#include "import/names.h"
#include "io/sglang_names.h"

namespace servecast {
namespace {

using enum OptionValue;

constexpr std::string_view kSglangKernels = "kernels are as the preset measured them";
constexpr std::string_view kOneTier = "SGLang's cache is modelled in GPU memory alone";
constexpr std::string_view kLora = "adapters under SGLang's scheduler are not modelled";
constexpr std::string_view kRouted = "replicas are behind a router of the scenario";

constexpr std::string_view kOneRank = "one replica";
constexpr std::string_view kWhole = "each expert is split over the group";

constexpr Option kSglangOptions[] = {
    {"model-path", kName, {}, "", "--model"},
    {"tp-size", kCount, "pool.tensor_parallel", {}, "--tp"},
    {"tensor-parallel-size", kCount, "pool.tensor_parallel"},
    {"pp-size", kCount, "pool.pipeline_parallel", {}, "--pp"},
    {"pipeline-parallel-size", kCount, "pool.pipeline_parallel"},
    {"dp-size", kCount, {}, "", "--dp", {}, kOneRank},
    {"data-parallel-size", kCount, {}, "", {}, {}, kOneRank},
    {"ep-size", kCount, {}, "", "--ep", {}, kWhole},
    {"expert-parallel-size", kCount, {}, "", {}, {}, kWhole},
    {"max-running-requests", kCount, "engine.max_num_seqs"},
    {"chunked-prefill-size", kCount, "engine.max_num_batched_tokens"},
    {"mem-fraction-static", kNumber, "scheduler.mem_fraction_static"},
    {"context-length", kCount, "engine.max_model_len"},
    {"page-size", kCount, "engine.block_size"},
    {"tokenizer-worker-num", kCount, "engine.api_server_count"},
    {"kv-cache-dtype", kText, {}, "", {}, "auto|bf16|bfloat16|fp8_e4m3|fp8_e5m2", "auto"},
    {"disable-radix-cache", kFlag, {}, ""},
    {"disable-overlap-schedule", kFlag, {}, ""},
    {"is-embedding", kFlag, {}, ""},
    {"quantization", kText, {}, "", {}, {}, "the weights are as the model's config says"},
    {"dtype", kText, {}, kNoTime},
    {"disable-cuda-graph", kFlag, {}, ""},
    {"disaggregation-mode", kText, {}, "", {}, "null|prefill|decode", "whole requests"},
    {"schedule-policy", kText, {}, "", {}, "fcfs|lpm|dfs-weight|lof", "first come, first served"},
    {"max-prefill-tokens", kCount, "scheduler.max_prefill_tokens"},
    {"radix-eviction-policy", kText, "scheduler.radix_eviction_policy"},
    {"enable-priority-scheduling", kFlag, "scheduler.enable_priority_scheduling"},
    {"schedule-low-priority-values-first", kFlag, "scheduler.schedule_low_priority_values_first"},
    {"priority-scheduling-preemption-threshold", kCount,
     "scheduler.priority_scheduling_preemption_threshold"},
    {"prefill-max-requests", kCount, "scheduler.prefill_max_requests"},
    {"disable-priority-preemption", kFlag, "scheduler.disable_priority_preemption"},
    {"retraction-policy", kText, {}, "", {}, "length|priority", "by length"},
    {"max-total-tokens", kCount, "scheduler.max_total_tokens"},
    {"schedule-conservativeness", kNumber, "scheduler.schedule_conservativeness"},
    {"enable-mixed-chunk", kFlag, "scheduler.enable_mixed_chunk"},
    {"encoder-only", kFlag, {}, kEncodersApart},
    {"language-only", kFlag, {}, kEncodersApart},
    {"encoder-urls", kWords, {}, kEncodersApart},
    {"enable-dp-attention", kFlag, {}, "data-parallel ranks share experts here"},
    {"speculative-algorithm", kText, {}, kNotModelled},
    {"speculative-num-steps", kCount, {}, kNotModelled},
    {"speculative-eagle-topk", kCount, {}, kNotModelled},
    {"speculative-num-draft-tokens", kCount, {}, kNotModelled},
    {"speculative-draft-model-path", kText, {}, kNotModelled},
    {"enable-lora", kFlag, {}, kLora},
    {"lora-paths", kWords, {}, kLora},
    {"max-loras-per-batch", kCount, {}, kLora},
    {"max-lora-rank", kCount, {}, kLora},
    {"enable-hierarchical-cache", kFlag, {}, kOneTier},
    {"hicache-ratio", kNumber, {}, kOneTier},
    {"hicache-size", kNumber, {}, kOneTier},
    {"enable-two-batch-overlap", kFlag, {}, kNotModelled},
    {"moe-a2a-backend", kText, {}, kSglangKernels},
    {"attention-backend", kText, {}, kSglangKernels},
    {"cuda-graph-max-bs", kCount, {}, kSglangKernels},
    {"enable-torch-compile", kFlag, {}, kSglangKernels},
    {"disable-custom-all-reduce", kFlag, {}, kSglangKernels},
    {"load-balance-method", kText, {}, kRouted},
    {"nnodes", kCount, {}, "nodes are those of the GPU's preset"},
    {"node-rank", kCount, {}, "", {}, {}, "the first node"},
    {"dist-init-addr", kText, {}, kNoTime},
    {"host", kText, {}, kNoTime},
    {"port", kText, {}, kNoTime},
    {"trust-remote-code", kFlag, {}, kNoTime},
    {"tokenizer-path", kText, {}, kNoTime},
    {"served-model-name", kText, {}, kNoTime},
    {"api-key", kText, {}, kNoTime},
    {"log-level", kText, {}, kNoTime},
    {"enable-metrics", kFlag, {}, kNoTime},
    {"reasoning-parser", kText, {}, kNoTime},
    {"tool-call-parser", kText, {}, kNoTime},
    {"chat-template", kText, {}, kNoTime},
    {"random-seed", kCount, {}, kNoTime},
    {"watchdog-timeout", kNumber, {}, kNoTime},
};

constexpr std::string_view kSglangApart[] = {"model-path",           "dp-size",
                                             "data-parallel-size",   "ep-size",
                                             "expert-parallel-size", "kv-cache-dtype",
                                             "disable-radix-cache",  "disable-overlap-schedule",
                                             "quantization",         "disable-cuda-graph",
                                             "is-embedding",         "disaggregation-mode",
                                             "schedule-policy",      "chunked-prefill-size",
                                             "retraction-policy",    "node-rank"};

// Whether it has the rules that the preset sglang-0.5.9 has: it is that version, or one before it.
bool IsOf059(std::string_view version) {
  std::int64_t parts[3] = {};
  std::size_t count = 0;
  for (; count < 3 && !version.empty(); ++count) {
    const std::size_t end = version.find_first_not_of("0123456789");
    parts[count] = ParseCount(version.substr(0, end)).value_or(0);
    version.remove_prefix(std::min(version.size(), end == std::string_view::npos ? end : end + 1));
  }
  return count > 1 && std::tuple(parts[0], parts[1], parts[2]) <= std::tuple(0, 5, 9);
}

class SglangServer {
 public:
  SglangServer(GivenOptions given, const ServerContext& context, Draft& draft)
      : given_(std::move(given)), context_(context), draft_(draft) {}

  void Read() {
    const bool later = given_.Number("node-rank").value_or(0) > 0;
    const std::string node = later ? given_.Find("node-rank")->Words() : "";
    if (later && draft_.servers() > 0) {
      return draft_.Remark(
          Format("{}: a node of the server above, no server of its own", ShownText(node, kShown)));
    }
    if (!draft_.BeginServer(context_.from)) return;
    if (later) {
      draft_.Warn(
          Format("{}: a node of a server whose first node is not here; taken as that server",
                 ShownText(node, kShown)));
    }
    given_.LeaveUnread(0, false, draft_);
    std::string model = given_.Text("model-path");
    if (model.empty()) model = context_.model;
    if (!model.empty() && !draft_.TakeModelName(model, "--model-path")) return;
    draft_.Take(Path("engine.preset"), IsOf059(context_.version) ? "sglang-0.5.9" : "sglang",
                context_.version.empty() ? context_.from
                                         : "the image's version " + ShownText(context_.version));
    TakeOptions(given_, kSglangApart, draft_);
    const GivenOption* drafts = given_.Find("speculative-algorithm");
    if (drafts != nullptr) WarnWithoutDrafts(drafts->Words(), draft_);
    Environment();
    Engine();
    Cache();
    Model();
    const std::string mode = given_.Text("disaggregation-mode");
    const bool role = mode == "prefill" || mode == "decode";
    const std::int64_t ranks = Count("dp-size", "data-parallel-size");
    if (role || Count("pp-size", "pipeline-parallel-size") > 1) {
      draft_.Drop(Path("scheduler"));
      draft_.Take(Path("scheduler.policy"), "vllm", context_.from);
      draft_.Remark(
          "SGLang's scheduler is modelled without stages, and without prefill and decode apart: "
          "vLLM's is in its place");
    }
    TakeServerShape({Tensor(ranks), Count("pp-size", "pipeline-parallel-size"), ranks,
                     role ? mode : context_.role},
                    context_, draft_);
  }

 private:
  std::string Path(std::string_view path) const { return draft_.ServerPath(path); }

  std::int64_t Count(std::string_view name, std::string_view other) const {
    const auto first = given_.Number(name), second = given_.Number(other);
    return static_cast<std::int64_t>(std::clamp(first ? *first : second.value_or(1), 1.0, 1e6));
  }

  // Ranks of attention within a tensor-parallel group: each has tp / dp GPUs.
  std::int64_t Tensor(std::int64_t ranks) {
    const std::int64_t tensor = Count("tp-size", "tensor-parallel-size");
    const bool within = ranks > 1 && given_.Find("enable-dp-attention") != nullptr;
    if (!within || tensor % ranks != 0) return tensor;
    draft_.Take(Path("pool.tensor_parallel"), tensor / ranks,
                Format("--tp {} over {} ranks of --enable-dp-attention", tensor, ranks));
    return tensor / ranks;
  }

  // "NAME=1", before the command, exported, or of docker's -e.
  void Environment() {
    for (const SglangVariable& variable : kSglangVariables) {
      const std::string* assigned = context_.Variable(variable.name);
      if (assigned == nullptr) continue;
      if (const std::optional<double> value = NumberIn(*assigned)) {
        draft_.Take(Path(Format("scheduler.{}", variable.member)), NumberJson(*value),
                    Format("{}={}", variable.name, *assigned));
      } else {
        draft_.Ignore(Format("{}=", variable.name), "found no number behind it");
      }
    }
  }

  void Engine() {
    if (const GivenOption* given = given_.Find("chunked-prefill-size"); given != nullptr) {
      const auto tokens = given_.Number("chunked-prefill-size");
      if (tokens && *tokens == 0) {
        draft_.Ignore(given->Words(), "SGLang refuses it: -1 is without chunks");
      } else if (tokens && *tokens >= 1) {
        draft_.Take(Path("engine.max_num_batched_tokens"), NumberJson(*tokens), given->Words());
      } else {
        draft_.Take(Path("engine.enable_chunked_prefill"), false, given->Words());
      }
    }
    if (given_.Find("disable-overlap-schedule") != nullptr) {
      draft_.Take(Path("engine.async_scheduling"), false, "--disable-overlap-schedule");
    }
    if (given_.Find("disable-cuda-graph") != nullptr) {
      draft_.Take(Path("engine.cuda_graphs"), "eager", "--disable-cuda-graph");
    }
    if (given_.Find("is-embedding") != nullptr) draft_.TakePooling("--is-embedding");
    ExpertParallel();
    if (given_.Text("retraction-policy") == "priority") {
      draft_.Take(Path("scheduler.retraction_policy"), "priority", "--retraction-policy priority");
    }
    const std::string policy = given_.Text("schedule-policy");
    if (policy == "lpm" || policy == "dfs-weight" || policy == "lof") {
      draft_.Take(Path("scheduler.schedule_policy"), policy, "--schedule-policy " + policy);
    }
  }

  void ExpertParallel() {
    const std::int64_t experts = Count("ep-size", "expert-parallel-size");
    if (experts <= 1) return;
    const GivenOption* given = given_.Find("ep-size");
    if (given == nullptr) given = given_.Find("expert-parallel-size");
    TakeExpertRanks(experts, Count("tp-size", "tensor-parallel-size"), given->Words(), draft_);
  }

  void Cache() {
    if (given_.Find("disable-radix-cache") != nullptr) {
      draft_.Take(Path("engine.enable_prefix_caching"), false, "--disable-radix-cache");
    }
    if (const GivenOption* given = given_.Find("kv-cache-dtype"); given != nullptr) {
      const std::string type = LowerCase(given->value.value_or(""));
      draft_.TakeKvCache(type == "auto"          ? ""
                         : type.find("fp8") == 0 ? "fp8"
                                                 : "auto",
                         given->Words());
    }
  }

  void Model() {
    const std::string method = given_.Text("quantization");
    if (method.empty()) return;
    const auto weights = WeightsOf(method);
    if (weights && !weights->empty()) {
      draft_.TakeModelMember("model.quantization", *weights, "--quantization " + method);
    } else {
      draft_.Ignore("--quantization " + method, "the weights are as the model's config says");
    }
  }

  GivenOptions given_;
  const ServerContext& context_;
  Draft& draft_;
};

std::optional<std::size_t> ServerArguments(const CommandWords& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool serve =
        BaseName(words[i]) == "sglang" && i + 1 < words.size() && words[i + 1] == "serve";
    if (serve) return i + 2;
    // A script in one word is cut again by itself.
    if (words[i].find(' ') != std::string::npos) continue;
    const bool worker = words[i] == "dynamo.sglang" && i > 0 && words[i - 1] == "-m";
    const bool routed = words[i] == kRoutedServer;
    if (worker || routed || words[i].find("sglang.launch_server") != std::string::npos ||
        words[i].find("sglang/launch_server.py") != std::string::npos) {
      return i + 1;
    }
  }
  return std::nullopt;
}

}  // namespace

std::span<const Option> SglangOptions() { return kSglangOptions; }

bool ReadSglangLaunch(const CommandWords& words, ServerContext context, Draft& draft) {
  const std::optional<std::size_t> begin = ServerArguments(words);
  if (!begin) return false;
  const Contained container = ContainedIn(words);
  if (container.gpus > 0) context.gpus = container.gpus;
  if (context.from.empty()) context.from = "a command of SGLang";
  if (context.version.empty()) context.version = VersionOfImage(container.image);
  CommandWords own(words.begin() + static_cast<std::ptrdiff_t>(*begin), words.end());
  if (words[*begin - 1] == kRoutedServer) own = RoutedWordsIn(own).server;
  SglangServer(ReadOptions(own, kSglangOptions), context, draft).Read();
  return true;
}

void ReadSglangCommand(const ImportSource& source, Draft& draft) {
  if (source.commands.empty()) return;
  const Variables environment = AssignedIn(source.text);
  ServerContext context;
  context.environment = &environment;
  ReadLaunches(source.commands, context, draft, ReadSglangLaunch);
}

}  // namespace servecast
