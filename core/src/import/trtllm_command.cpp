// Servers of TensorRT-LLM: trtllm-serve, Dynamo's workers (python3 -m dynamo.trtllm), and the YAML
// of its LLM API that both read (--extra_llm_api_options, --config, --extra-engine-args): in a
// heredoc of the same text, or as a text of its own. Names as tensorrt_llm/llmapi/llm_args.py and
// tensorrt_llm/commands/serve.py have them, of 1.0 to 1.2.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/drafter.h"
#include "import/json_members.h"
#include "import/kinds.h"
#include "import/names.h"
#include "import/yaml.h"

namespace servecast {
namespace {

using TrtllmJson = nlohmann::json;
using enum OptionValue;

constexpr std::string_view kTrtllmAdp =
    "ranks in lock step are modelled without stages, and without prefill and decode apart: each "
    "GPU "
    "has a part of each layer";
constexpr const char* kTrtllmRanks = "scheduler.enable_attention_dp";
constexpr std::string_view kTrtllmKernels = "kernels are as the preset measured them";

// Dynamo's (components/backends/trtllm, DisaggregationMode).
constexpr std::string_view kTrtllmModes = "prefill_and_decode|prefill|decode";

constexpr Option kTrtllmOptions[] = {
    {"model", kName, {}, ""},
    {"model-path", kName, {}, ""},
    {"tp-size", kCount, "pool.tensor_parallel"},
    {"tensor-parallel-size", kCount, "pool.tensor_parallel"},
    {"pp-size", kCount, "pool.pipeline_parallel"},
    {"pipeline-parallel-size", kCount, "pool.pipeline_parallel"},
    {"ep-size", kCount, {}, "", {}, {}, "each expert is split over the group"},
    {"expert-parallel-size", kCount, {}, "", {}, {}, "each expert is split over the group"},
    {"max-batch-size", kCount, "engine.max_num_seqs"},
    {"max-num-tokens", kCount, "engine.max_num_batched_tokens"},
    {"max-seq-len", kCount, "engine.max_model_len"},
    {"kv-block-size", kCount, "engine.block_size"},
    {"kv-cache-free-gpu-memory-fraction", kNumber, "scheduler.free_gpu_memory_fraction"},
    {"free-gpu-memory-fraction", kNumber, "scheduler.free_gpu_memory_fraction"},
    {"kv-cache-dtype", kText, {}, "", {}, {}, "auto"},
    {"enable-chunked-prefill", kFlag, "engine.enable_chunked_prefill"},
    {"extra-llm-api-options", kText, {}, ""},
    {"config", kText, {}, ""},
    {"extra-engine-args", kText, {}, ""},
    {"disaggregation-mode", kText, {}, "", {}, kTrtllmModes, "whole requests"},
    {"enable-attention-dp", kFlag, kTrtllmRanks},
    {"backend", kText, {}, kTrtllmKernels},
    {"gpus-per-node", kCount, {}, "nodes are those of the GPU's preset"},
    {"max-beam-width", kCount, {}, kNotModelled},
    {"num-postprocess-workers", kCount, {}, kNoTime},
    {"tokenizer", kText, {}, kNoTime},
    {"trust-remote-code", kFlag, {}, kNoTime},
    {"host", kText, {}, kNoTime},
    {"port", kText, {}, kNoTime},
    {"log-level", kText, {}, kNoTime},
    {"reasoning-parser", kText, {}, kNoTime},
    {"tool-parser", kText, {}, kNoTime},
    {"served-model-name", kText, {}, kNoTime},
    {"modality", kText, {}, kNoTime},
    {"publish-events-and-metrics", kFlag, {}, kNoTime},
};

constexpr std::string_view kTrtllmApart[] = {"model",
                                             "model-path",
                                             "ep-size",
                                             "expert-parallel-size",
                                             "kv-cache-dtype",
                                             "config",
                                             "extra-llm-api-options",
                                             "extra-engine-args",
                                             "disaggregation-mode"};

enum class TrtllmForm { kNumber, kTruth, kNot, kWord };

// A member of the YAML, by its path there.
struct YamlMember {
  std::string_view name, path;
  TrtllmForm form = TrtllmForm::kNumber;
};
constexpr YamlMember kYamlMembers[] = {
    {"tensor_parallel_size", "pool.tensor_parallel"},
    {"pipeline_parallel_size", "pool.pipeline_parallel"},
    {"max_batch_size", "engine.max_num_seqs"},
    {"max_num_tokens", "engine.max_num_batched_tokens"},
    {"max_seq_len", "engine.max_model_len"},
    {"enable_chunked_prefill", "engine.enable_chunked_prefill", TrtllmForm::kTruth},
    {"disable_overlap_scheduler", "engine.async_scheduling", TrtllmForm::kNot},
    {"batch_wait_timeout_iters", "scheduler.batch_wait_timeout_iters"},
    {"batch_wait_max_tokens_ratio", "scheduler.batch_wait_max_tokens_ratio"},
    {"kv_cache_config.free_gpu_memory_fraction", "scheduler.free_gpu_memory_fraction"},
    {"kv_cache_config.max_tokens", "scheduler.max_tokens"},
    {"kv_cache_config.tokens_per_block", "engine.block_size"},
    {"kv_cache_config.enable_block_reuse", "engine.enable_prefix_caching", TrtllmForm::kTruth},
    {"kv_cache_config.enable_partial_reuse", "scheduler.enable_partial_reuse", TrtllmForm::kTruth},
    {"kv_cache_config.copy_on_partial_reuse", "scheduler.copy_on_partial_reuse",
     TrtllmForm::kTruth},
    {"enable_attention_dp", kTrtllmRanks, TrtllmForm::kTruth},
    {"attention_dp_config.enable_balance", "scheduler.attention_dp_enable_balance",
     TrtllmForm::kTruth},
    {"attention_dp_config.timeout_iters", "scheduler.attention_dp_timeout_iters"},
    {"attention_dp_config.batching_wait_iters", "scheduler.attention_dp_batching_wait_iters"},
    {"scheduler_config.capacity_scheduler_policy", "scheduler.capacity_scheduler_policy",
     TrtllmForm::kWord},
    {"scheduler_config.context_chunking_policy", "scheduler.context_chunking_policy",
     TrtllmForm::kWord},
};

// What of it is left out, and why.
constexpr std::pair<std::string_view, std::string_view> kYamlLeftOut[] = {
    {"speculative_config", "drafts under TensorRT-LLM's scheduler are not modelled"},
    {"lora_config", "adapters under TensorRT-LLM's scheduler are not modelled"},
    {"cache_transceiver_config", kNotModelled},
    {"batch_wait_timeout_ms", kNotModelled},
    {"kv_cache_config.host_cache_size", "its offload to host memory is not modelled"},
    {"kv_cache_config.max_attention_window", "as the model's config says"},
    {"cuda_graph_config", kTrtllmKernels},
    {"moe_config", kTrtllmKernels},
    {"allreduce_strategy", kTrtllmKernels},
    {"quant_config", "the weights are as the model's config says"},
    {"backend", kTrtllmKernels},
    {"print_iter_log", kNoTime},
    {"stream_interval", kNoTime},
    {"trust_remote_code", kNoTime},
    {"enable_iter_perf_stats", kNoTime},
    {"kv_cache_config.event_buffer_max_size", kNoTime},
};

// "a.b" for each member that is no object; those of lists by their text.
void FlattenYaml(const TrtllmJson& of, const std::string& above,
                 std::vector<std::pair<std::string, std::string>>& members) {
  for (const auto& [name, value] : of.items()) {
    const std::string path = above.empty() ? name : above + "." + name;
    if (value.is_object() && !value.empty()) {
      FlattenYaml(value, path, members);
    } else {
      members.emplace_back(path, value.is_primitive() ? TextOf(value) : value.dump());
    }
  }
}

bool IsTrtllmYaml(const TrtllmJson& document) {
  if (!document.is_object() || document.contains("kind") || document.contains("services")) {
    return false;
  }
  for (const char* name : {"kv_cache_config", "scheduler_config", "cuda_graph_config",
                           "disable_overlap_scheduler", "enable_attention_dp"}) {
    if (document.contains(name)) return true;
  }
  return false;
}

class TrtllmServer {
 public:
  explicit TrtllmServer(Draft& draft) : draft_(draft) {}

  void TakePreset(std::string_view version, const std::string& from) {
    const bool first = version.find("1.0") == 0 || version.find("0.") == 0;
    draft_.Take(Path("engine.preset"), first ? "trtllm-1.0" : "trtllm-1.2",
                version.empty() ? from : "the image's version " + ShownText(version));
  }

  // Overrides what options say, as in TensorRT-LLM.
  void TakeYaml(const TrtllmJson& document) {
    std::vector<std::pair<std::string, std::string>> members;
    FlattenYaml(document, "", members);
    for (const auto& [name, text] : members) TakeMember(name, text);
  }

  void TakeCacheType(const std::string& type, const std::string& from) {
    const std::string lower = LowerCase(type);
    draft_.TakeKvCache(lower == "auto" ? "" : lower.find("fp8") == 0 ? "fp8" : "auto", from);
  }

  std::string Path(std::string_view path) const { return draft_.ServerPath(path); }

  std::int64_t Count(const char* path) const {
    const TrtllmJson* said = draft_.Find(Path(path));
    return said != nullptr && said->is_number() ? said->get<std::int64_t>() : 1;
  }

  void TakeExperts(double ranks, const std::string& from) {
    experts_ = static_cast<std::int64_t>(std::clamp(ranks, 1.0, 1e6));
    experts_from_ = from;
  }
  void SettleExperts() {
    if (experts_ > 1) {
      TakeExpertRanks(experts_, Count("pool.tensor_parallel"), experts_from_, draft_);
    }
  }

  // Ranks of attention data parallelism, each of one GPU of the tensor-parallel group: 1, where
  // there is none, or `alone` says that it cannot be.
  std::int64_t TakeRanks(bool alone) {
    const TrtllmJson* said = draft_.Find(Path(kTrtllmRanks));
    if (said == nullptr || *said != true) return 1;
    const std::int64_t ranks = Count("pool.tensor_parallel");
    if (!alone) draft_.Ignore("enable_attention_dp: true", kTrtllmAdp);
    if (!alone || ranks == 1) return 1;  // and without shared experts Draft takes the flag back
    draft_.Take(Path("pool.tensor_parallel"), 1,
                Format("enable_attention_dp over {} GPUs of a tensor-parallel group", ranks));
    return ranks;
  }

 private:
  void TakeMember(const std::string& name, const std::string& text) {
    const std::string from = Format("{}: {}", name, text);
    const std::string lower = LowerCase(text);
    if (name == "kv_cache_config.dtype" || name == "kv_cache_dtype") {
      return TakeCacheType(text, from);
    }
    if (name == "moe_expert_parallel_size") {
      return TakeExperts(NumberIn(text).value_or(1), from);
    }
    for (const YamlMember& member : kYamlMembers) {
      if (member.name != name) continue;
      const std::optional<double> number = NumberIn(text);
      const bool truth = lower == "true" || lower == "false";
      if (member.form == TrtllmForm::kNumber && number) {
        draft_.Take(Path(member.path), NumberJson(*number), from);
      } else if (member.form == TrtllmForm::kWord) {
        draft_.Take(Path(member.path), lower, from);
      } else if (member.form != TrtllmForm::kNumber && truth) {
        draft_.Take(Path(member.path), (lower == "true") == (member.form == TrtllmForm::kTruth),
                    from);
      } else if (lower != "null") {
        draft_.Ignore(from, "its value is not understood");
      }
      return;
    }
    if (name == "speculative_config.decoding_type") WarnWithoutDrafts(from, draft_);
    for (const auto& [left_out, why] : kYamlLeftOut) {
      const bool below = name.find(left_out) == 0 &&
                         (name.size() == left_out.size() || name[left_out.size()] == '.');
      if (!below) continue;
      const bool off = lower == "false" || lower == "null";
      if (!off) draft_.Ignore(from, why);
      return;
    }
    draft_.Ignore(from, kNotModelled);
  }

  Draft& draft_;
  std::int64_t experts_ = 1;
  std::string experts_from_;
};

// Texts that a script writes into files, by the file's name: "cat > NAME <<EOF".
Variables FilesIn(std::string_view text) {
  Variables files;
  const std::vector<std::string_view> lines = LinesIn(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const std::size_t mark = line.find("<<"), into = line.find('>');
    if (mark == std::string_view::npos || into == std::string_view::npos) continue;
    std::string end;
    for (const char c : line.substr(mark + 2)) {
      if ((c == ' ' && !end.empty()) || c == '>') break;
      if (c != '-' && c != ' ' && c != '\'' && c != '"') end += c;
    }
    if (end.empty() || line.find("<<<") != std::string_view::npos) continue;
    const std::string_view behind = Stripped(line.substr(into + 1));
    std::string& content =
        files[std::string(BaseName(behind.substr(0, behind.find_first_of(" <"))))];
    for (++i; i < lines.size() && Stripped(lines[i]) != end; ++i) {
      content += std::string(lines[i]) + "\n";
    }
  }
  return files;
}

std::optional<TrtllmJson> YamlOf(const ServerContext& context, const std::string& file) {
  if (context.files == nullptr || context.files->count(file) == 0) return std::nullopt;
  Result<std::vector<TrtllmJson>> documents = ParseYaml(context.files->find(file)->second);
  if (!documents.ok() || documents.value().empty()) return std::nullopt;
  if (!documents.value()[0].is_object()) return std::nullopt;
  return std::move(documents.value()[0]);
}

std::optional<std::size_t> TrtllmArguments(const CommandWords& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].find(' ') != std::string::npos) continue;
    if (BaseName(words[i]) == "trtllm-serve") {
      return i + 1 < words.size() && words[i + 1] == "serve" ? i + 2 : i + 1;
    }
    const bool module = words[i] == "-m" && i + 1 < words.size();
    if (module &&
        (words[i + 1] == "dynamo.trtllm" || words[i + 1] == "tensorrt_llm.commands.serve")) {
      return i + 2;
    }
  }
  return std::nullopt;
}

void ReadTrtllmServer(GivenOptions given, const ServerContext& context, Draft& draft) {
  if (!draft.BeginServer(context.from)) return;
  given.LeaveUnread(given.positionals.empty() ? 0 : 1, false, draft);
  TrtllmServer server(draft);
  std::string model = given.Text("model");
  if (model.empty()) model = given.Text("model-path");
  if (model.empty() && !given.positionals.empty()) model = given.positionals[0];
  if (model.empty()) model = context.model;
  if (!model.empty() && !draft.TakeModelName(model, context.from)) return;
  server.TakePreset(context.version, context.from);
  TakeOptions(given, kTrtllmApart, draft);
  if (const GivenOption* type = given.Find("kv-cache-dtype"); type != nullptr) {
    server.TakeCacheType(type->value.value_or("auto"), type->Words());
  }
  for (const char* name : {"ep-size", "expert-parallel-size"}) {
    const GivenOption* option = given.Find(name);
    if (option != nullptr) server.TakeExperts(given.Number(name).value_or(1), option->Words());
  }
  for (const char* name : {"extra-llm-api-options", "config", "extra-engine-args"}) {
    const GivenOption* option = given.Find(name);
    if (option == nullptr) continue;
    const std::string file(BaseName(option->value.value_or("")));
    const std::optional<TrtllmJson> document = YamlOf(context, file);
    if (document) {
      server.TakeYaml(*document);
    } else {
      draft.Warn(Format("{}: the file is not in this text: given beside it, its settings are read",
                        ShownText(option->Words(), kShown)));
    }
  }
  const std::string mode = LowerCase(given.Text("disaggregation-mode"));
  const std::string role = mode == "prefill" || mode == "decode" ? mode : context.role;
  const std::int64_t stages = server.Count("pool.pipeline_parallel");
  server.SettleExperts();
  const std::int64_t ranks = server.TakeRanks(role.empty() && stages == 1);
  if (!role.empty() || stages > 1) {
    draft.Drop(server.Path("scheduler"));
    draft.Take(server.Path("scheduler.policy"), "vllm", context.from);
    draft.Remark(
        "TensorRT-LLM's scheduler is modelled without stages, and without prefill and decode "
        "apart: vLLM's is in its place");
  }
  TakeServerShape({server.Count("pool.tensor_parallel"), stages, ranks, role}, context, draft);
}

// The file of "trtllm-serve disaggregated": servers for prompts, and for what they generate.
void ReadDisaggregated(const TrtllmJson& document, Draft& draft) {
  for (const auto& [key, role] :
       {std::pair("context_servers", "prefill"), std::pair("generation_servers", "decode")}) {
    const TrtllmJson* servers = ObjectIn(document, key);
    if (servers == nullptr) continue;
    TrtllmJson settings = *servers;
    settings.erase("num_instances");
    settings.erase("urls");
    const Variables files = {
        {key, settings.dump(-1, ' ', false, TrtllmJson::error_handler_t::replace)}};
    ServerContext context;
    context.from = Format("{} of TensorRT-LLM", key);
    context.role = role;
    context.model = TextIn(document, "model");
    context.replicas = std::clamp<std::int64_t>(
        ParseCount(TextIn(*servers, "num_instances")).value_or(1), 1, 1024);
    context.files = &files;
    ReadTrtllmLaunch({"trtllm-serve", "--config", key}, context, draft);
  }
}

}  // namespace

std::span<const Option> TrtllmOptions() { return kTrtllmOptions; }

bool MayBeTrtllmYaml(std::string_view text) {
  constexpr std::string_view kNames[] = {
      "kv_cache_config:",           "generation_servers:", "scheduler_config:",
      "disable_overlap_scheduler:", "cuda_graph_config:",  "enable_attention_dp:"};
  const auto has = [text](std::string_view name) {
    return text.find(name) != std::string_view::npos;
  };
  if (std::none_of(std::begin(kNames), std::end(kNames), has)) return false;
  // A script that writes such a file begins with something else than a member.
  for (const std::string_view line : LinesIn(text)) {
    const std::string_view bare = Stripped(line);
    if (bare.empty() || bare[0] == '#' || bare == "---") continue;
    const std::size_t name = bare.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789");
    return name > 0 && name != std::string_view::npos && bare[name] == ':';
  }
  return false;
}

bool ReadTrtllmLaunch(const CommandWords& words, ServerContext context, Draft& draft) {
  const std::optional<std::size_t> begin = TrtllmArguments(words);
  if (!begin) return false;
  const Contained container = ContainedIn(words);
  if (container.gpus > 0) context.gpus = container.gpus;
  if (context.from.empty()) context.from = "a command of TensorRT-LLM";
  if (context.version.empty()) context.version = VersionOfImage(container.image);
  ReadTrtllmServer(ReadOptions(std::span<const std::string>(words).subspan(*begin), kTrtllmOptions),
                   context, draft);
  return true;
}

void ReadTrtllmCommand(const ImportSource& source, Draft& draft) {
  for (const TrtllmJson& document : source.manifests) {
    if (ObjectIn(document, "generation_servers") != nullptr) ReadDisaggregated(document, draft);
    if (!IsTrtllmYaml(document)) continue;
    if (!draft.BeginServer("a configuration of TensorRT-LLM")) return;
    TrtllmServer server(draft);
    if (draft.Find(server.Path("engine.preset")) == nullptr) {
      server.TakePreset("", "a configuration of TensorRT-LLM");
    }
    server.TakeYaml(document);
    server.SettleExperts();
    const std::int64_t ranks = server.TakeRanks(server.Count("pool.pipeline_parallel") == 1);
    if (ranks > 1) TakeServerShape({1, 1, ranks, ""}, {}, draft);
  }
  if (source.commands.empty()) return;
  const Variables environment = AssignedIn(source.text);
  ServerContext context;
  context.environment = &environment;
  const Variables files = FilesIn(source.text);
  context.files = &files;
  ReadLaunches(source.commands, context, draft, ReadTrtllmLaunch);
}

}  // namespace servecast
