// The end of a draft: what its texts said together becomes a document; see draft.h.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/draft.h"
#include "import/json_members.h"
#include "import/names.h"
#include "io/json_document.h"
#include "io/presets.h"
#include "servecast/scenario.h"

namespace servecast {

namespace {

using Json = nlohmann::json;

// A model's name without its size, and that: "qwen3-", 30 and true of "Qwen3-30B-A3B".
struct SizedName {
  std::string family;
  double size = 0;          // 1e9 parameters; 0: not said
  bool is_mixture = false;  // says how many are active
};
SizedName SizedNameOf(std::string_view name) {
  const std::string lower = LowerCase(name.substr(0, 80));
  for (std::size_t at = 0; at < lower.size(); ++at) {
    const bool begins = IsDigit(lower[at]) && (at == 0 || lower[at - 1] == '-');
    const std::size_t end = begins ? lower.find_first_not_of("0123456789.", at) : std::string::npos;
    if (end == std::string::npos || lower[end] != 'b') continue;
    const std::string_view rest = std::string_view(lower).substr(end + 1);
    return {lower.substr(0, at), NumberIn(lower.substr(at, end - at)).value_or(0),
            rest.size() > 2 && rest.substr(0, 2) == "-a" && IsDigit(rest[2])};
  }
  return {lower, 0, false};
}

// The preset that a name comes nearest to: by the family, as far as the names are alike, then by
// what else the two say: whether it is a mixture of experts, its size, and that no more is said.
std::string NearestModel(std::string_view name) {
  const std::size_t slash = name.find_last_of('/');
  const std::string_view own = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const SizedName wanted = SizedNameOf(own);
  std::string nearest;
  std::tuple<std::size_t, bool, double, std::size_t> least;
  for (const std::string_view id : AllPresetIds("models")) {
    const SizedName each = SizedNameOf(id);
    std::size_t alike = 0;
    while (alike < std::min(wanted.family.size(), each.family.size()) &&
           wanted.family[alike] == each.family[alike]) {
      ++alike;
    }
    if (alike < 2) continue;  // no family
    const double ratio = wanted.size > 0 && each.size > 0 ? each.size / wanted.size : 1e3;
    const std::tuple apart(wanted.family.size() - alike, wanted.is_mixture != each.is_mixture,
                           std::max(ratio, 1 / ratio), each.family.size() - alike);
    if (!nearest.empty() && apart >= least) continue;
    nearest = id;
    least = apart;
  }
  return nearest;
}

// Members that a config file tells, of which a preset is the same model.
bool SameFigures(const Json& figures, const Json& preset) {
  static const Json kDefaults = {{"num_local_experts", 0},
                                 {"num_experts_per_tok", 0},
                                 {"shared_expert_intermediate_size", 0},
                                 {"num_dense_layers", 0},
                                 {"dense_intermediate_size", 0},
                                 {"kv_lora_rank", 0},
                                 {"q_lora_rank", 0},
                                 {"qk_nope_head_dim", 0},
                                 {"qk_rope_head_dim", 0},
                                 {"v_head_dim", 0},
                                 {"sliding_window", 0},
                                 {"num_sliding_layers", 0},
                                 {"tie_word_embeddings", false},
                                 {"attention_bias", false},
                                 {"mlp_matrices", 3},
                                 {"layers", Json::array()},
                                 {"expert_hidden_size", 0},
                                 {"expert_quantization", "none"},
                                 {"quantization", "none"}};
  const auto of = [](const Json& model, const std::string& key) {
    const auto at = model.find(key);
    if (at != model.end()) return *at;
    return kDefaults.value(key, Json());
  };
  for (const Json* model : {&figures, &preset}) {
    for (const auto& [key, value] : model->items()) {
      if (key == "name" || key == "top_p_by_default" || key == "torch_dtype") continue;
      if (of(figures, key) != of(preset, key)) return false;
    }
  }
  return true;
}

}  // namespace

const Json* Draft::Preset(std::string_view kind, std::string_view id) {
  for (Issue& issue : MissingPreset(kind, id)) {
    const bool known = std::find(missing_.begin(), missing_.end(), issue) != missing_.end();
    if (!known) missing_.push_back(std::move(issue));
  }
  return FindPresetDocument(kind, id);
}

// Figures are a preset's where they are the same: it has a name, and what else its files say.
void Draft::SettleModel() {
  if (sampling_) {
    Put("model.top_p_by_default", sampling_->first, sampling_->second, false);
    out_.said.emplace_back("model.top_p_by_default");
  }
  Json& model = said_["model"];
  if (!model.is_object()) model = Json::object();
  Json members = std::exchange(model, Json::object());
  const std::string named = model_name_.empty() ? "" : ModelPresetOf(model_name_);
  // A method of an option names the form of the files; which bits it has the files say.
  const bool of_files = figures_.is_object() && TextIn(figures_, "quantization") != "";
  if (of_files && left_) members.erase("quantization");
  if (!figures_.is_null()) {
    std::string same;
    for (const std::string_view id : AllPresetIds("models")) {
      const Json* preset = Preset("models", id);
      if (preset == nullptr || !SameFigures(figures_, *preset)) continue;
      if (same.empty() || id == named) same = id;
    }
    if (!same.empty()) {
      model = {{"preset", same}};
      Remark(Format("model: the config's figures are those of the preset {}", same));
    } else {
      model = figures_;
      if (!model_name_.empty()) model["name"] = model_name_;
      if (!members.contains("top_p_by_default")) {
        out_.assumed.emplace_back("model.top_p_by_default");
        Remark(
            "whether servers sample by top-p (model.top_p_by_default) is assumed from its family "
            "and "
            "may add 20 % to TPOT: its generation_config.json says it");
      }
    }
  } else if (!named.empty()) {
    model = {{"preset", named}};
    out_.taken.insert(out_.taken.begin(),
                      {"model.preset = \"" + named + "\"",
                       Format("{} ({})", model_from_, ShownText(model_name_, kShown))});
    const auto weights = WeightsInName(model_name_);
    const Json* preset = Preset("models", named);
    const bool native = preset != nullptr && preset->value("quantization", "none") != "none";
    std::string said = weights ? *weights : "";
    if (said == "int8_w8a16") members.erase("quantization");  // "gptq" of an option has no bits
    const bool dense = preset != nullptr && preset->value("num_local_experts", 0) == 0;
    if (said == "mxfp4" && dense) said = "mxfp4_all";
    if (said.empty() && native && SaysSixteenBits(model_name_)) said = "none";
    const std::string of_experts =
        preset == nullptr ? "none" : preset->value("expert_quantization", "none");
    const bool own =
        said == of_experts && said != "none";  // so is the rest of the model as the preset has it
    if (!said.empty() && !own && !members.contains("quantization")) {
      members["quantization"] = said;
      if (of_experts != "none") members["expert_quantization"] = "none";
      out_.taken.push_back({Format("model.quantization = \"{}\"", said),
                            "the model's name " + ShownText(model_name_, kShown)});
    } else if (!weights) {
      Ignore(model_name_, "the weights that the name speaks of are not modelled");
    }
  } else if (!model_name_.empty()) {
    const std::string nearest = NearestModel(model_name_);
    Warn(Format("no preset is the model {}{}: its config.json, given beside, says what it is",
                ShownText(model_name_, kShown),
                nearest.empty() ? "" : "; the nearest is " + nearest));
    said_.erase("model");
    return;
  }
  if (left_) {
    const Json* preset =
        model.contains("preset") ? Preset("models", TextIn(model, "preset")) : &model;
    std::string wrong =
        preset == nullptr ? std::string() : SettleLeftLayers(*left_, *preset, members);
    if (!wrong.empty()) Warn(std::move(wrong));
  }
  model.update(members);
  if (model.empty()) said_.erase("model");
}

// What a server starts with where its command says nothing of its GPU's size.
void Draft::SettleEngine(const std::string& path) {
  const Json* preset = Find(path + ".preset");
  if (preset == nullptr) return;
  const std::string engine = preset->get<std::string>();
  const Json* said = Find("hardware.preset");
  const std::string gpu = said == nullptr ? gpu_of_base_ : said->get<std::string>();
  if (Find(path + ".compat") != nullptr || gpu.empty()) return;
  const Json* card = Preset("hardware", gpu);
  const double memory_gib = card == nullptr ? 0 : card->value("memory_gib", 0.0);
  if (engine.find("vllm") == 0) SettleVllm(path, gpu, memory_gib);
  if (engine.find("sglang") == 0 && memory_gib > 0) SettleSglang(path, gpu, memory_gib);
}

// vllm/engine/arg_utils.py, _set_default_args, of 0.9 and later: more seats and tokens on GPUs of
// 70 GiB and more but the A100.
void Draft::SettleVllm(const std::string& path, const std::string& gpu, double memory_gib) {
  const bool large = memory_gib >= 70 && gpu.find("a100") != 0;
  const std::int64_t seats = large ? 1024 : 256;
  std::int64_t tokens = large ? 8192 : 2048;
  const std::string why = Format("not said; a server of vLLM starts so on {}", gpu);
  Assume(path + ".max_num_seqs", seats, why);
  const Json* chunked = Find(path + ".enable_chunked_prefill");
  const Json* longest = Find(path + ".max_model_len");
  if (chunked != nullptr && *chunked == false && longest != nullptr && longest->is_number()) {
    tokens = std::max(tokens, longest->get<std::int64_t>());
  }
  const Json* seated = Find(path + ".max_num_seqs");
  if (seated->is_number_integer()) tokens = std::max(tokens, seated->get<std::int64_t>());
  Assume(path + ".max_num_batched_tokens", tokens, why);
}

// sglang/srt/server_args.py of 0.5: chunked_prefill_size by the memory of a GPU.
void Draft::SettleSglang(const std::string& path, const std::string& gpu, double memory_gib) {
  const Json* chunked = Find(path + ".enable_chunked_prefill");
  if (chunked != nullptr && *chunked == false) return;
  const std::int64_t tokens = memory_gib < 35    ? 2048
                              : memory_gib < 60  ? 4096
                              : memory_gib < 160 ? 8192
                                                 : 16384;
  Assume(path + ".max_num_batched_tokens", tokens,
         Format("not said; a server of SGLang starts so on {}", gpu));
}

bool Draft::HasExperts(const Json& base) {
  const Json* model = Find("model");
  if (model == nullptr) model = MemberAt(base, "model");
  if (model == nullptr) return false;
  const Json* preset = MemberAt(*model, "preset");
  if (preset != nullptr && preset->is_string()) {
    model = Preset("models", preset->get<std::string>());
  }
  return model != nullptr && model->value("num_local_experts", std::int64_t{0}) > 0;
}

// Pools that are alike are one of more replicas; what is as at the top is said there.
// What all say is the GPU's, else their pools' own.
void Draft::SettleLinks() {
  const bool all = std::all_of(links_.begin(), links_.end(),
                               [](const auto& each) { return each.second.through_host; });
  for (const auto& [pool, links] : links_) {
    if (!links.through_host) continue;
    Put(all ? "hardware.interconnect" : Format("cluster.pools.{}.hardware.interconnect", pool),
        "pcie_host", links.from, false);
  }
}

void Draft::SettlePools(const Json& base) {
  const Json* found = Find("cluster.pools");
  Json pools = Json::array();
  if (found == nullptr || !found->is_array()) return DropLockStep(pools);
  for (Json pool : *found) {
    if (pool.is_null()) pool = Json::object();
    if (!HasExperts(base)) UndoRanks(pool);
    for (const char* section : {"engine", "scheduler"}) {
      const Json* top = Find(section);
      // An engine of its own may bring a scheduler: what is said of that stays beside it.
      const bool needed = section == std::string_view("scheduler") && pool.contains("engine");
      const bool same = pool.contains(section) && top != nullptr && pool[section] == *top;
      if (same && !needed) pool.erase(section);
    }
    const auto same = std::find_if(pools.begin(), pools.end(), [&pool](Json other) {
      if (pool.contains("scaling")) return false;  // whose limits are of this pool alone
      Json mine = pool;
      mine.erase("replicas");
      other.erase("replicas");
      return mine == other;
    });
    if (same == pools.end()) {
      pools.push_back(std::move(pool));
    } else {
      (*same)["replicas"] =
          same->value("replicas", std::int64_t{1}) + pool.value("replicas", std::int64_t{1});
    }
  }
  const bool alone = pools.size() == 1 && pools[0].contains("attention_data_parallel");
  if (!alone) DropLockStep(pools);
  // Prefill and decode come together; one of them alone serves whole requests.
  bool prefill = false, decode = false, whole = false;
  for (const Json& pool : pools) {
    const std::string role = pool.value("role", "");
    prefill |= role == "prefill";
    decode |= role == "decode";
    whole |= role.empty();
  }
  // Dynamo's workers of vLLM say it of prefill alone.
  if (prefill && whole && !decode) {
    decode = true;
    for (Json& pool : pools) {
      if (pool.value("role", "").empty()) pool["role"] = "decode";
    }
    Remark("beside a pool of role prefill the others are taken as decode");
  }
  for (Json& pool : pools) {
    if (prefill == decode || !pool.contains("role")) continue;
    Remark(Format("a pool of role {} without its other half serves whole requests here",
                  pool["role"].get<std::string>()));
    pool.erase("role");
  }
  said_["cluster"]["pools"] = std::move(pools);
}

// GPUs of a machine whose servers no text tells: one server each.
void Draft::SettleGpuCount() {
  if (gpu_count_ == 0) return;
  std::int64_t used = 0;
  if (const Json* pools = Find("cluster.pools"); pools != nullptr) {
    for (const Json& pool : *pools) {
      used += pool.value("replicas", std::int64_t{1}) *
              pool.value("tensor_parallel", std::int64_t{1}) *
              pool.value("pipeline_parallel", std::int64_t{1});
    }
    if (used != gpu_count_)
      Remark(Format("the servers take {} GPUs, and there are {}", used, gpu_count_));
  } else {
    said_["cluster"]["pools"] = Json::array({{{"replicas", gpu_count_}}});
    if (gpu_count_ > 1) {
      Remark(Format("no text says how the {} GPUs are used: here {} replicas of one GPU each",
                    gpu_count_, gpu_count_));
    }
  }
}

// Of every server whose command leaves it to the model.
void Draft::SettleKvCache() {
  if (model_kv_.empty()) return;
  const auto settle = [this](const std::string& engine) {
    if (Find(engine + ".preset") == nullptr || Find(engine + ".compat") != nullptr) return;
    if (Find(engine + ".kv_cache_dtype") == nullptr)
      Put(engine + ".kv_cache_dtype", model_kv_, model_kv_from_, false);
  };
  settle("engine");
  const Json* pools = Find("cluster.pools");
  for (std::size_t i = 1; pools != nullptr && i < pools->size(); ++i) {
    settle(Format("cluster.pools.{}.engine", i));
  }
}

// Of members of pools, which are joined afterwards, and of those that a server's defaults gave.
void Draft::SettleUnread() {
  for (UnreadValue& unread : unread_) {
    if (unread.path.empty()) continue;
    const Json* member = Find(unread.path);
    const std::size_t dot = unread.path.find_last_of('.');
    const bool pools = unread.path.find("cluster.pools.") == 0;
    const std::string name = unread.path.substr(dot + 1);
    const bool degree =
        pools && (name == "replicas" || name == "tensor_parallel" || name == "pipeline_parallel");
    if (member != nullptr || degree) {
      unread.otherwise = Format("{} is {}", name, member == nullptr ? "1" : ShortJson(*member));
      unread.path.clear();
    } else if (pools) {
      unread.path.erase(0, unread.path.find('.', std::string_view("cluster.pools.").size()) + 1);
    }
  }
}

void Draft::NameUnread(const Json& resolved) {
  for (const UnreadValue& unread : unread_) {
    const Json* member = unread.path.empty() ? nullptr : MemberAt(resolved, unread.path);
    const std::string instead =
        member == nullptr ? unread.otherwise : Format("{} is {}", unread.path, ShortJson(*member));
    Ignore(unread.words, Format("{}; {} here", unread.why, instead));
    if (unread.warn)
      Warn(Format("{}: {}; {} here", ShownText(unread.words, kShown), unread.why, instead));
  }
}

void Draft::Settle(const Json& base) {
  TakeScalers();
  SettleModel();
  SettleVision();
  SettleLinks();
  if (!unknown_gpu_.empty()) {
    Warn(
        Format("no preset is the GPU {}: allowed are the GPUs of servecast catalog", unknown_gpu_));
    said_.erase("hardware");
  }
  if (Find("hardware.preset") == nullptr && unknown_gpu_.empty()) {
    gpu_of_base_ = TextIn(base.value("hardware", Json::object()), "preset");
  }
  SettleEngine("engine");
  const Json* pools = Find("cluster.pools");
  for (std::size_t i = 1; pools != nullptr && i < pools->size(); ++i) {
    SettleEngine(Format("cluster.pools.{}.engine", i));
  }
  SettleKvCache();
  SettlePooling();
  SettleUnread();
  SettleWorkers(base);
  SettlePools(base);
  SettleGpuCount();
  SettleScaling();
  SettleRouters();
}

namespace {

// What the texts leave to a machine: of the same GPU all that the base says of it, price and what
// was calibrated included; of the engine the host's times, which are no options of a server.
// Whether there was any.
bool KeepMachine(const Json& base, Json& said, std::string_view section) {
  static constexpr std::string_view kOfHost[] = {"host",
                                                 "step_overhead_us",
                                                 "sequence_overhead_us",
                                                 "request_overhead_ms",
                                                 "host_stall_ms",
                                                 "prompt_token_overhead_us",
                                                 "delivery_overhead_us",
                                                 "host_stalls_per_s",
                                                 "launch_eager_us",
                                                 "launch_replay_us",
                                                 "sampler_ns_per_logit",
                                                 "lora_overhead_us"};
  const auto preset_of = [section](const Json& of) {
    const std::string preset = TextIn(of, "preset");
    return preset.empty() && section == kDefaultedSection ? std::string(kDefaultEngine) : preset;
  };
  const bool same = preset_of(said) == preset_of(base);
  bool any = false;
  for (const auto& [name, value] : base.items()) {
    const bool of_host =
        std::find(std::begin(kOfHost), std::end(kOfHost), name) != std::end(kOfHost);
    const bool kept = section == "hardware" ? same : of_host && (same || name == "host");
    if (!kept || said.contains(name)) continue;
    said[name] = value;
    any = true;
  }
  return any;
}

}  // namespace

// What no text says is the base's.
void Draft::Complete(Json& base) {
  std::string kept;
  const auto keep = [&kept](const char* section) {
    kept += (kept.empty() ? "" : ", ") + std::string(section);
  };
  const bool no_model = !model_name_.empty() && !said_.contains("model");
  const bool no_gpu = !unknown_gpu_.empty();
  if (no_model) base.erase("model");
  if (no_gpu) base.erase("hardware");
  if (Find("workload.arrivals") != nullptr && base.contains("measure")) {
    base.erase("measure");  // the window of other traffic
    Remark("measure: not that of the scenario to begin with, whose traffic is another");
  }
  for (const char* section : {"model", "hardware", "engine", "cluster", "scheduler", "latency",
                              "workload", "slo", "measure"}) {
    const Json* said = Find(section);
    if (said == nullptr) {
      if (base.contains(section)) keep(section);
      continue;
    }
    // Members over a model or a GPU that no text names are over the base's.
    const std::string_view named = section;
    const bool members =
        !said->contains("preset") && ((named == "model" && !said->contains("num_hidden_layers")) ||
                                      (named == "hardware" && !said->contains("memory_gib")));
    if (members && base.contains(section) && base[section].is_object()) {
      base[section].update(*said);
      keep(section);
      continue;
    }
    const bool lengths = said->is_object() && said->contains("prompt_tokens");
    if (std::string_view(section) == "workload" && !lengths && base.contains(section) &&
        base[section].is_object()) {
      // Traffic without lengths: those of the base.
      Json merged = base[section];
      if (said->contains("arrivals")) merged.erase("arrivals");
      merged.update(*said);
      base[section] = std::move(merged);
      keep("lengths of requests");
    } else {
      // A router alone: the base's replicas are behind it.
      const bool routes = named == "cluster" && (pools_of_base_ || !said->contains("pools"));
      if (routes && base.contains(section) && base[section].is_object()) {
        base[section].update(*said);
        if (!pools_of_base_) keep("replicas");
        continue;
      }
      const Json router = std::string_view(section) == "cluster" && base.contains(section) &&
                                  base[section].is_object()
                              ? base[section].value("router", Json())
                              : Json();
      const Json before = base.value(section, Json());
      base[section] = *said;
      const bool machine = named == "hardware" || named == "engine";
      if (machine && before.is_object() && said->is_object() &&
          KeepMachine(before, base[section], named)) {
        keep(named == "hardware" ? "other figures of the GPU" : "times of the host");
      }
      if (!router.is_null() && !said->contains("router")) base[section]["router"] = router;
    }
  }
  if (const Json* seed = Find("seed")) base["seed"] = *seed;
  // Of a config alone the engine is the base's.
  if (!model_kv_.empty() && Find("engine") == nullptr) {
    Json& engine = base["engine"];
    if (!engine.is_object()) engine = Json::object();
    if (!engine.contains("kv_cache_dtype")) {
      engine["kv_cache_dtype"] = model_kv_;
      out_.taken.push_back({Format("engine.kv_cache_dtype = \"{}\"", model_kv_), model_kv_from_});
    }
  }
  if (!kept.empty()) Remark("not said, and so as in the scenario to begin with: " + kept);
}

namespace {

// Sections in the order in which people read them; what is no UTF-8 in a name becomes U+FFFD.
std::string DocumentText(const Json& document) {
  static constexpr const char* kOrder[] = {"schema",   "name",     "seed",    "model",
                                           "hardware", "engine",   "cluster", "scheduler",
                                           "latency",  "workload", "slo",     "measure"};
  std::string text = "{";
  const auto add = [&text](const std::string& key, const Json& section) {
    text += Format("{}\n  \"{}\": ", text.size() > 1 ? "," : "", key);
    for (const char c : section.dump(2, ' ', false, Json::error_handler_t::replace)) {
      text += c;
      if (c == '\n') text += "  ";
    }
  };
  for (const char* key : kOrder) {
    if (document.contains(key)) add(key, document[key]);
  }
  return text + "\n}\n";
}

}  // namespace

Imported Draft::Finish(std::string_view base) && {
  if (!found()) {
    out_.issues.push_back({"", "nothing was understood"});
    return std::move(out_);
  }
  Result<Json> read = ParseJson(base);
  Json document =
      read.ok() && read.value().is_object() ? std::move(read.value()) : Json{{"schema", 1}};
  Settle(document);
  if (!missing_.empty()) {
    // Who hands them in asks again.
    Imported waits;
    waits.issues = std::move(missing_);
    return waits;
  }
  Complete(document);
  DropDecodes(document);
  out_.servers = servers_;
  document["name"] = "Imported";
  document.erase("description");
  out_.document = DocumentText(document);
  const Result<Scenario> scenario = ParseScenario(out_.document);
  if (!scenario.ok()) out_.issues = scenario.issues();
  // What follows from a model or a GPU that is not there is no fault of the texts.
  const bool asks = (!model_name_.empty() && !said_.contains("model")) || !unknown_gpu_.empty();
  const auto is_asked = [](const Issue& issue) {
    return issue.path == "/model" || issue.path == "/hardware";
  };
  if (asks && std::any_of(out_.issues.begin(), out_.issues.end(), is_asked)) {
    const auto end = std::stable_partition(out_.issues.begin(), out_.issues.end(), is_asked);
    out_.issues.erase(end, out_.issues.end());
  }
  const Result<Json> resolved =
      ParseJson(scenario.ok() ? scenario.value().resolved_text : out_.document);
  NameUnread(resolved.ok() ? resolved.value() : document);
  if (ignored_beyond_ > 0) Remark(Format("{} more things were left out", ignored_beyond_));
  return std::move(out_);
}

}  // namespace servecast
