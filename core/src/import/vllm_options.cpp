// See vllm_options.h. Names and meanings as vllm/engine/arg_utils.py and
// vllm/entrypoints/openai/cli_args.py have them, of 0.6 to 0.20.
#include "import/vllm_options.h"

#include <algorithm>
#include <array>

#include "base/base.h"
#include "base/printable.h"
#include "base/text.h"
#include "import/drafter.h"
#include "import/names.h"
#include "io/json_document.h"
#include "io/presets.h"

namespace servecast {
namespace {

using Json = nlohmann::json;
using enum OptionValue;

constexpr std::string_view kLoading = "is about loading the model";
constexpr std::string_view kV0 = "is of vLLM's first engine, V0";
constexpr std::string_view kKernels = "kernels are as the presets measured them";

constexpr std::string_view kAsConfig = "the weights are as the model's config says";
constexpr std::string_view kAsConfigKv = "auto";
constexpr std::string_view kFirstNode = "the first node";

constexpr Option kVllmOptions[] = {
    {"model", kName, {}, "", "-m"},
    {"tensor-parallel-size", kCount, "pool.tensor_parallel", {}, "-tp"},
    {"pipeline-parallel-size", kCount, "pool.pipeline_parallel", {}, "-pp"},
    {"data-parallel-size", kCount, {}, "", "-dp", {}, "one replica"},
    {"enable-expert-parallel", kSwitch, "engine.enable_expert_parallel", {}, "-ep"},
    {"max-num-seqs", kCount, "engine.max_num_seqs"},
    {"max-num-batched-tokens", kCount, "engine.max_num_batched_tokens"},
    {"max-num-queued-reqs", kCount, "engine.max_num_queued_reqs"},
    {"max-num-queued-tokens", kCount, "engine.max_num_queued_tokens"},
    {"max-model-len", kCount, "engine.max_model_len", {}, {}, "auto|-1"},
    {"block-size", kCount, "engine.block_size"},
    {"gpu-memory-utilization", kNumber, "engine.gpu_memory_utilization"},
    {"kv-cache-dtype",
     kText,
     {},
     "",
     {},
     "auto|bfloat16|float16|fp8|fp8_e4m3|fp8_e5m2|fp8_inc|fp8_ds_mla",
     kAsConfigKv},
    {"num-gpu-blocks-override", kCount, "engine.num_gpu_blocks_override"},
    {"enable-prefix-caching", kSwitch, "engine.enable_prefix_caching"},
    {"enable-chunked-prefill", kSwitch, "engine.enable_chunked_prefill"},
    {"disable-hybrid-kv-cache-manager", kSwitch, {}, ""},
    {"mamba-cache-mode", kText, {}, "", {}, "none|align|all", "as prefix caching needs it"},
    {"long-prefill-token-threshold", kCount, "engine.long_prefill_token_threshold"},
    {"async-scheduling", kSwitch, "engine.async_scheduling"},
    {"scheduler-reserve-full-isl", kSwitch, "engine.scheduler_reserve_full_isl"},
    {"kv-offloading-size", kNumber, "engine.kv_offload.cpu_gib"},
    {"scheduling-policy", kText, {}, "", {}, "fcfs|priority", "first come, first served"},
    {"quantization", kText, {}, "", "-q", {}, kAsConfig},
    {"dtype", kText, {}, "", {}, "auto|half|float16|bfloat16|float|float32", kAsConfig},
    {"enforce-eager", kSwitch, {}, ""},
    {"generation-config", kText, {}, "", {}, {}, "as the model's file says"},
    {"kv-transfer-config", kText, {}, "", {}, {}, "no role"},
    {"runner", kText, {}, "", {}, "auto|generate|pooling|draft", "a model that generates"},
    {"task", kText, {}, "", {}, {}, "a model that generates"},
    {"convert", kText, {}, "", {}, "auto|none|embed|classify|reward", "a model that generates"},
    {"pooler-config", kText, {}, "", {}, {}, "a model that generates"},
    {"override-pooler-config", kText, {}, "", {}, {}, "a model that generates"},
    {"disable-async-output-proc", kFlag, {}, kV0},
    {"num-scheduler-steps", kCount, {}, kV0},
    {"use-v2-block-manager", kFlag, {}, kV0},
    {"swap-space", kNumber, {}, kV0},
    {"preemption-mode", kText, {}, kV0},
    {"max-seq-len-to-capture", kCount, {}, kV0},
    {"speculative-config", kText, {}, "", {}, {}, "no drafts"},
    {"speculative-model", kText, {}, kNotModelled},
    {"num-speculative-tokens", kCount, {}, kNotModelled},
    {"enable-lora", kSwitch, {}, ""},
    {"lora-modules", kWords, {}, ""},
    {"max-loras", kCount, {}, "", {}, {}, "1 seat"},
    {"max-lora-rank", kCount, {}, ""},
    {"max-cpu-loras", kCount, {}, "adapters are there when they are asked for"},
    {"lora-dtype", kText, {}, "adapters are of the model's dtype"},
    {"fully-sharded-loras", kSwitch, {}, "adapters are sharded as vLLM does without"},
    {"cpu-offload-gb", kNumber, {}, "weights outside the GPU are not modelled"},
    {"kv-offloading-backend", kText, {}, "which program moves KV blocks is not modelled"},
    {"limit-mm-per-prompt", kText, {}, "how many images a request has is said in workload.images"},
    {"mm-encoder-tp-mode",
     kText,
     "engine.mm_encoder_tp_mode",
     {},
     {},
     "weights|data",
     "each GPU a slice of every image"},
    {"disable-chunked-mm-input", kSwitch, "engine.disable_chunked_mm_input"},
    {"ec-transfer-config", kText, {}, kEncodersApart},
    {"mm-encoder-only", kSwitch, {}, kEncodersApart},
    {"decode-context-parallel-size", kCount, {}, kNotModelled, "-dcp"},
    {"enable-dbo", kSwitch, {}, kNotModelled},
    {"enable-eplb", kSwitch, {}, kNotModelled},
    {"all2all-backend", kText, {}, kKernels},
    {"disable-custom-all-reduce", kSwitch, {}, kKernels},
    {"data-parallel-size-local", kCount, {}, "a scenario has all replicas", "-dpl"},
    {"data-parallel-address", kText, {}, kNoTime, "-dpa"},
    {"data-parallel-rpc-port", kText, {}, kNoTime, "-dpp"},
    {"data-parallel-backend", kText, {}, kNoTime, "-dpb"},
    {"data-parallel-start-rank", kCount, {}, "", "-dpr", {}, kFirstNode},
    {"data-parallel-rank", kCount, {}, "", "-dpn", {}, kFirstNode},
    {"data-parallel-hybrid-lb", kSwitch, {}, "replicas are behind a router of the scenario"},
    {"data-parallel-external-lb", kSwitch, {}, "replicas are behind a router of the scenario"},
    {"nnodes", kCount, {}, "nodes are those of the GPU's preset", "-n"},
    {"node-rank", kCount, {}, "", "-r", {}, kFirstNode},
    {"master-addr", kText, {}, kNoTime},
    {"master-port", kCount, {}, kNoTime},
    {"compilation-config", kText, {}, kKernels, "-O"},
    {"attention-backend", kText, {}, kKernels},
    {"rope-scaling", kText, {}, "a longer context is --max-model-len's"},
    {"hf-overrides", kText, {}, "the model is as its config says"},
    {"override-generation-config", kText, {}, "what clients sample is not modelled"},
    {"distributed-executor-backend", kText, {}, kNoTime},
    {"host", kText, {}, kNoTime},
    {"port", kText, {}, kNoTime},
    {"uvicorn-log-level", kText, {}, kNoTime},
    {"api-key", kText, {}, kNoTime},
    {"api-server-count", kCount, {}, "", "-asc"},
    {"served-model-name", kWords, {}, kNoTime},
    {"trust-remote-code", kSwitch, {}, kNoTime},
    {"tokenizer", kText, {}, kNoTime},
    {"tokenizer-mode", kText, {}, kNoTime},
    {"config-format", kText, {}, kNoTime},
    {"chat-template", kText, {}, kNoTime},
    {"chat-template-content-format", kText, {}, kNoTime},
    {"enable-auto-tool-choice", kSwitch, {}, kNoTime},
    {"tool-call-parser", kText, {}, kNoTime},
    {"reasoning-parser", kText, {}, kNoTime},
    {"enable-reasoning", kSwitch, {}, kNoTime},
    {"disable-log-requests", kSwitch, {}, kNoTime},
    {"disable-log-stats", kSwitch, {}, kNoTime},
    {"enable-log-requests", kSwitch, {}, kNoTime},
    {"allowed-origins", kText, {}, kNoTime},
    {"headless", kFlag, {}, ""},
    {"seed", kText, {}, "what the model samples is not modelled"},
    {"revision", kText, {}, kLoading},
    {"load-format", kText, {}, kLoading},
    {"download-dir", kText, {}, kLoading},
    {"hf-token", kText, {}, kLoading},
    {"config", kText, {}, "another file: given beside, its options are read"},
    // Of Dynamo's workers.
    {"disaggregation-mode", kText, {}, "", {}, "agg|prefill|decode", "whole requests"},
    {"is-prefill-worker", kFlag, {}, ""},
    {"is-decode-worker", kFlag, {}, ""},
    {"connector", kWords, {}, "what moves KV blocks is not modelled"},
};

constexpr std::string_view kApart[] = {"model",
                                       "data-parallel-size",
                                       "data-parallel-start-rank",
                                       "data-parallel-rank",
                                       "node-rank",
                                       "headless",
                                       "api-server-count",
                                       "max-model-len",
                                       "kv-cache-dtype",
                                       "scheduling-policy",
                                       "quantization",
                                       "dtype",
                                       "enforce-eager",
                                       "generation-config",
                                       "kv-transfer-config",
                                       "runner",
                                       "task",
                                       "convert",
                                       "pooler-config",
                                       "override-pooler-config",
                                       "speculative-config",
                                       "disable-hybrid-kv-cache-manager",
                                       "mamba-cache-mode",
                                       "enable-lora",
                                       "lora-modules",
                                       "max-loras",
                                       "max-lora-rank",
                                       "disaggregation-mode",
                                       "is-prefill-worker",
                                       "is-decode-worker"};

// The reading of one server.
class Server {
 public:
  Server(std::span<const std::string> words, const ServerContext& context, Draft& draft)
      : given_(ReadOptions(words, kVllmOptions)), context_(context), draft_(draft) {}

  void Read() {
    if (IsLaterNode() && draft_.servers() > 0) {
      return draft_.Remark(Format("{}: a node of the server above, no server of its own",
                                  ShownText(LaterNode(), kShown)));
    }
    if (!draft_.BeginServer(context_.from) || !Model()) return;
    if (IsLaterNode()) {
      draft_.Warn(
          Format("{}: a node of a server whose first node is not here; taken as that server",
                 ShownText(LaterNode(), kShown)));
    }
    // The first word is the model, unless an option says it.
    given_.LeaveUnread(given_.Text("model").empty() ? 1 : 0, false, draft_);
    Engine();
    TakeOptions(given_, kApart, draft_);
    MaxModelLen();
    KvCache();
    LayerGroups();
    Weights();
    Pooling();
    Others();
    Drafts();
    Adapters();
    ServerShape shape;
    const auto count = [this](std::string_view name) {
      return static_cast<std::int64_t>(std::clamp(given_.Number(name).value_or(1), 1.0, 1e6));
    };
    shape = {count("tensor-parallel-size"), count("pipeline-parallel-size"),
             count("data-parallel-size"), Role()};
    TakeServerShape(shape, context_, draft_);
    Balancer(shape);
    // Those of a server take requests up for all its ranks, which are replicas here.
    if (given_.Number("api-server-count")) {
      draft_.Take(draft_.ServerPath("engine.api_server_count"),
                  CeilDiv(count("api-server-count"), shape.data), "--api-server-count");
    }
  }

 private:
  // One server places requests on its ranks itself, unless it is told that others do.
  void Balancer(const ServerShape& shape) {
    constexpr const char* kPolicy = "cluster.router.policy";
    const bool alone = draft_.servers() == 1 && context_.replicas <= 1 && shape.role.empty();
    const bool within = shape.data > 1 && given_.Find("data-parallel-external-lb") == nullptr;
    const nlohmann::json* said = draft_.Find(kPolicy);
    if (alone && within && said == nullptr) {
      draft_.Assume(kPolicy, "vllm_dp", "vLLM's own balancer of its data-parallel ranks");
    } else if (!alone && said != nullptr && *said == "vllm_dp") {
      draft_.Drop(kPolicy);
      draft_.Assume(kPolicy, "round_robin", "several servers, before which another router stands");
    }
  }

  // Words that say so: of those that a node has which serves nothing of its own.
  std::string LaterNode() const {
    const GivenOption* headless = given_.Find("headless");
    if (headless != nullptr) return headless->Words();
    for (const char* name : {"node-rank", "data-parallel-start-rank", "data-parallel-rank"}) {
      if (given_.Number(name).value_or(0) > 0) return given_.Find(name)->Words();
    }
    return "";
  }
  bool IsLaterNode() const { return !LaterNode().empty(); }

  // False: this server is of another model.
  bool Model() {
    std::string model = given_.Text("model"), from = "--model";
    if (model.empty() && !given_.positionals.empty()) {
      model = given_.positionals[0];
      from = context_.from;
    }
    // A path in its container, or a word of a template, is the model that stands beside.
    const bool placeholder = !model.empty() && (model[0] == '/' || model.find("{{") == 0);
    if (model.empty() || (placeholder && !context_.model.empty())) {
      model = context_.model;
      from = context_.from;
    }
    return model.empty() || draft_.TakeModelName(model, from);
  }

  void Engine() {
    const EngineName engine = EnginePresetOf("vllm", context_.version);
    const bool said = !context_.version.empty();
    if (said && !engine.exact) {
      draft_.Remark(
          Format("vLLM {}: the nearest preset is {}", ShownText(context_.version), engine.preset));
    }
    if (!said && context_.image.find(':') != std::string::npos) {
      draft_.Remark(Format("{}: the image's tag is no version of vLLM; engine.preset is {}",
                           ShownText(context_.image, kShown), kDefaultEngine));
    }
    WarnOfFirstEngine();
    const std::string path = draft_.ServerPath("engine.preset");
    draft_.Take(path, said ? engine.preset : std::string(kDefaultEngine),
                said ? "the image's version " + context_.version : context_.from);
  }

  // V0, the default before 0.8, schedules by other rules.
  void WarnOfFirstEngine() {
    const std::string* chosen = context_.Variable("VLLM_USE_V1");
    const bool old = !context_.version.empty() && !IsFrom(context_.version, 0, 8);
    if (chosen != nullptr ? *chosen != "0" : !old) return;
    draft_.Warn(
        Format("{} runs vLLM's first engine, V0: the forecast is by the rules of V1 "
               "(scheduler.policy vllm_v0 has V0's queue)",
               chosen != nullptr ? std::string("VLLM_USE_V1=0")
                                 : "vLLM " + ShownText(context_.version, 20)));
  }

  void MaxModelLen() {
    const GivenOption* given = given_.Find("max-model-len");
    if (given == nullptr) return;
    const auto number = given_.Number("max-model-len");
    if (number && *number >= 1) {
      draft_.Take(draft_.ServerPath(given->option->path), NumberJson(*number), given->Words());
    } else {
      draft_.Ignore(given->Words(), "vLLM finds the length itself; here it is the model's");
    }
  }

  void KvCache() {
    const GivenOption* given = given_.Find("kv-cache-dtype");
    if (given == nullptr) return;
    const std::string type = LowerCase(given->value.value_or(""));
    draft_.TakeKvCache(type == "auto"          ? ""
                       : type.find("fp8") == 0 ? "fp8"
                                               : "auto",
                       given->Words());
  }

  // Of layers with a window or a state.
  void LayerGroups() {
    if (const GivenOption* given = given_.Find("disable-hybrid-kv-cache-manager")) {
      draft_.Take(draft_.ServerPath("engine.hybrid_kv_cache_manager"),
                  given->negated ? "on" : "off", given->Words());
    }
    const GivenOption* given = given_.Find("mamba-cache-mode");
    if (given == nullptr) return;
    if (LowerCase(given->value.value_or("")) == "all") {
      draft_.Take(draft_.ServerPath("engine.mamba_cache_mode"), "all", given->Words());
    } else {
      draft_.Ignore(given->Words(), "align is with prefix caching here, and none without");
    }
  }

  void Weights() {
    if (const GivenOption* given = given_.Find("quantization"); given != nullptr) {
      const std::string method = given->value.value_or("");
      const auto weights = WeightsOf(method);
      if (weights && !weights->empty()) {
        draft_.TakeModelMember("model.quantization", *weights, given->Words());
      } else {
        draft_.Ignore(given->Words(),
                      method == "gguf"
                          ? kNotModelled
                          : std::string_view("the weights are as the model's config says"));
      }
    }
    if (const GivenOption* given = given_.Find("dtype"); given != nullptr) {
      const std::string type = LowerCase(given->value.value_or(""));
      if (type == "float32" || type == "float") {
        draft_.TakeModelMember("model.torch_dtype", "float32", given->Words());
      } else if (type == "half" || type == "float16" || type == "bfloat16") {
        draft_.TakeModelMember("model.torch_dtype", type == "bfloat16" ? "bfloat16" : "float16",
                               given->Words());
      }
    }
    if (const GivenOption* given = given_.Find("generation-config"); given != nullptr) {
      if (given->value == "vllm") {
        draft_.TakeModelMember("model.top_p_by_default", false, given->Words());
      } else {
        draft_.Ignore(given->Words(), "whether it samples by top-p is as the model's file says");
      }
    }
  }

  // `vllm serve --runner pooling`; before it, --task and what the model is converted to.
  void Pooling() {
    static constexpr std::string_view kGenerates[] = {"",      "auto",          "generate",  "none",
                                                      "draft", "transcription", "generation"};
    for (const char* name :
         {"runner", "task", "convert", "pooler-config", "override-pooler-config"}) {
      const GivenOption* given = given_.Find(name);
      if (given == nullptr) continue;
      const std::string value = LowerCase(given->value.value_or(""));
      const bool generates =
          std::find(std::begin(kGenerates), std::end(kGenerates), value) != std::end(kGenerates);
      if (!generates) draft_.TakePooling(given->Words());
      if (generates && value != "generate" && value != "generation") {
        draft_.Ignore(given->Words(), "is as the model is without it");
      }
      if (value == "generate" || value == "generation") draft_.TakeGenerating();
    }
  }

  void Others() {
    if (given_.Text("scheduling-policy") == "priority") {
      draft_.Take(draft_.ServerPath("scheduler.order"), "priority_fcfs",
                  "--scheduling-policy priority");
    }
    const GivenOption* eager = given_.Find("enforce-eager");
    if (eager != nullptr && !eager->negated) {
      draft_.Take(draft_.ServerPath("engine.cuda_graphs"), "eager", eager->Words());
      draft_.Remark(
          "--enforce-eager: what launches cost without graphs (engine.launch_eager_us) is assumed");
    }
  }

  // A draft model may be named without a method.
  void Drafts() {
    const GivenOption* given = given_.Find("speculative-config");
    const GivenOption* older = given_.Find("speculative-model");
    if (given == nullptr && older != nullptr) WarnWithoutDrafts(older->Words(), draft_);
    if (given == nullptr) return;
    const Result<Json> config = ParseJson(given->value.value_or(""));
    const auto member = [&config](const char* name) {
      return config.ok() && config.value().is_object() ? config.value().value(name, Json())
                                                       : Json();
    };
    std::string method = member("method").is_string()  ? member("method").get<std::string>()
                         : member("model").is_string() ? "draft_model"
                                                       : "";
    if (method.size() > 4 && method.compare(method.size() - 4, 4, "_mtp") == 0) method = "mtp";
    constexpr std::string_view kKnown[] = {"ngram", "ngram_gpu",   "eagle",  "eagle3",
                                           "mtp",   "draft_model", "dflash", "dspark"};
    const bool known = std::find(std::begin(kKnown), std::end(kKnown), method) != std::end(kKnown);
    const Json tokens = member("num_speculative_tokens");
    const bool apart = given_.Number("pipeline-parallel-size").value_or(1) > 1 ||
                       given_.Find("kv-transfer-config") != nullptr || !context_.role.empty();
    if (!known || apart || !tokens.is_number_integer() || tokens < 1 || tokens > 32) {
      draft_.Ignore(given->Words(), kNotModelled);
      return WarnWithoutDrafts(given->Words(), draft_);
    }
    draft_.Take(draft_.ServerPath("engine.speculative.method"), method, given->Words());
    draft_.Take(draft_.ServerPath("engine.speculative.num_speculative_tokens"), tokens,
                given->Words());
    TakeDrafter(config.value(), method, "--speculative-config", draft_);
    if (method == "ngram") {
      draft_.Assume(draft_.ServerPath("engine.async_scheduling"), false,
                    "vLLM schedules synchronously with ngram");
    }
    draft_.Remark(
        "--speculative-config: how many drafts are accepted (engine.speculative.acceptance_length) "
        "is assumed");
  }

  // Whoever asks for an adapter has one of those that the server is given; which, it does not say.
  void Adapters() {
    const GivenOption* on = given_.Find("enable-lora");
    const bool apart = given_.Number("pipeline-parallel-size").value_or(1) > 1 ||
                       given_.Find("kv-transfer-config") != nullptr || !context_.role.empty();
    if (on == nullptr || on->negated || apart) {
      for (const char* name : {"enable-lora", "lora-modules", "max-loras", "max-lora-rank"}) {
        const GivenOption* given = given_.Find(name);
        if (given == nullptr) continue;
        draft_.Ignore(given->Words(), apart ? kNotModelled : "counts with --enable-lora only");
      }
      return;
    }
    const GivenOption* seats = given_.Find("max-loras");
    const double number = given_.Number("max-loras").value_or(0);
    if (seats != nullptr && number < 1) {
      draft_.Ignore(seats->Words(), "vLLM starts with 1 or more");
      seats = nullptr;
    }
    draft_.Take(draft_.ServerPath("engine.max_loras"), NumberJson(seats != nullptr ? number : 1),
                (seats != nullptr ? seats : on)->Words());
    if (const auto rank = given_.Number("max-lora-rank")) {
      draft_.Take(draft_.ServerPath("engine.max_lora_rank"), NumberJson(*rank),
                  given_.Find("max-lora-rank")->Words());
    }
    const GivenOption* modules = given_.Find("lora-modules");
    if (modules == nullptr) return;
    const auto count =
        std::count_if(modules->all.begin(), modules->all.end(), [](const std::string& word) {
          return word.find('=') != std::string::npos || word.find('{') == 0;
        });
    draft_.Take("workload.adapters.count", std::max<std::int64_t>(count, 1), modules->Words());
    draft_.Remark(
        "--lora-modules: that every request asks for one of these, each as often "
        "(workload.adapters.theta), is assumed");
  }

  // "kv_producer" computes prompts for "kv_consumer".
  std::string Role() {
    const std::string mode = given_.Text("disaggregation-mode");
    if (given_.Find("is-prefill-worker") != nullptr || mode == "prefill") return "prefill";
    if (given_.Find("is-decode-worker") != nullptr || mode == "decode") return "decode";
    const GivenOption* given = given_.Find("kv-transfer-config");
    if (given == nullptr) return context_.role;
    const Result<Json> config = ParseJson(given->value.value_or(""));
    const Json* role = nullptr;
    if (config.ok() && config.value().is_object() && config.value().contains("kv_role")) {
      role = &config.value()["kv_role"];
    }
    if (role != nullptr && *role == "kv_producer") return "prefill";
    if (role != nullptr && *role == "kv_consumer") return "decode";
    if (context_.role.empty())
      draft_.Ignore(given->Words(), "says no role; what moves KV blocks is not modelled");
    return context_.role;
  }

  GivenOptions given_;
  const ServerContext& context_;
  Draft& draft_;
};

}  // namespace

std::span<const Option> VllmOptions() { return kVllmOptions; }

void ReadVllmServer(std::span<const std::string> words, const ServerContext& context,
                    Draft& draft) {
  CommandWords all = context.options;
  all.insert(all.end(), words.begin(), words.end());
  Server(all, context, draft).Read();
}

}  // namespace servecast
