// See drafter.h.
#include "import/drafter.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "import/json_members.h"
#include "import/names.h"

namespace servecast {
namespace {

using DrafterJson = nlohmann::json;

void WarnOfDrafter(const std::string& name, Draft& draft) {
  draft.Warn(Format(
      "the size of the drafter{} is not known: the forecast takes one layer of the model; set "
      "engine.speculative.draft_num_hidden_layers, draft_hidden_size and the other draft_ "
      "fields",
      name.empty() ? "" : " " + ShownText(name, kShown)));
}

// A drafter is dense here, with attention over all of its context and weights of 16 bits.
void WarnOfOtherDrafter(const std::string& name, const DrafterJson& preset, Draft& draft) {
  std::string kinds;
  const auto add = [&kinds](bool is, const char* what) {
    if (is) kinds += (kinds.empty() ? "" : ", ") + std::string(what);
  };
  const auto weights = WeightsInName(name);
  add(preset.value("num_local_experts", 0) > 0, "experts");
  add(preset.contains("sliding_window") || preset.contains("layers"), "several kinds of layers");
  add(preset.value("kv_lora_rank", 0) > 0, "compressed attention");
  add(!weights || !weights->empty() || preset.value("quantization", "none") != "none",
      "quantised weights");
  if (kinds.empty()) return;
  draft.Warn(Format(
      "the drafter {} has {}: it is forecast as a dense model of 16 bits with full attention",
      ShownText(name, kShown), kinds));
}

void TakeDraftModel(const std::string& name, std::string_view words, Draft& draft) {
  const std::string id = ModelPresetOf(name);
  const DrafterJson* preset = id.empty() ? nullptr : draft.Preset("models", id);
  if (preset == nullptr) return WarnOfDrafter(name, draft);
  const std::string from = Format("{}, the preset {}", words, id);
  const auto take = [&](const char* member, const DrafterJson& value) {
    draft.Take(draft.ServerPath(Format("engine.speculative.draft_{}", member)), value, from);
  };
  for (const char* member :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
        "head_dim", "intermediate_size", "vocab_size"}) {
    if (!preset->contains(member)) continue;
    DrafterJson value = (*preset)[member];
    const std::int64_t experts = preset->value("num_experts_per_tok", std::int64_t{0});
    if (std::string_view(member) == "intermediate_size" && experts > 0) {
      // As wide as what a token passes.
      value = value.get<std::int64_t>() * experts +
              preset->value("shared_expert_intermediate_size", std::int64_t{0});
    }
    take(member, value);
  }
  WarnOfOtherDrafter(name, *preset, draft);
}

}  // namespace

void WarnWithoutDrafts(std::string_view words, Draft& draft) {
  draft.Warn(Format("{}: is not modelled; the forecast is without speculative decoding",
                    ShownText(words, kShown)));
}

void TakeDrafter(const DrafterJson& config, const std::string& method, std::string_view words,
                 Draft& draft) {
  const std::string name = TextIn(config, "model");
  const bool network = method.find("eagle") == 0 || method == "dflash" || method == "dspark";
  if (method == "draft_model") {
    TakeDraftModel(name, words, draft);
  } else if (network) {
    draft.Remark(
        "--speculative-config: that the drafter is one layer as the model's "
        "(engine.speculative.draft_num_hidden_layers) is assumed");
  }
  for (const auto& [member, value] : config.items()) {
    if (member == "model" || member == "method" || member == "num_speculative_tokens") continue;
    const bool at_once = member == "parallel_drafting" && value.is_boolean() &&
                         (method.find("eagle") == 0 || method == "draft_model");
    if (at_once) {
      draft.Take(draft.ServerPath("engine.speculative.parallel_drafting"), value, words);
    } else {
      draft.Ignore(Format("{} of --speculative-config", ShownText(member, 60)), "is not modelled");
    }
  }
}

}  // namespace servecast
