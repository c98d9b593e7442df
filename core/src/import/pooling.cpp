// Models that pool what they read: embeddings, scores, classes.
#include "base/text.h"
#include "import/draft.h"
#include "import/json_members.h"
#include "import/names.h"

namespace servecast {

// A step that ends a prompt is the last of its request, as one with an output token is.
void Draft::SettlePooling() {
  if (!generates_ && PoolsByName(model_name_)) TakePooling(model_name_);
  if (pooling_.empty()) return;
  Take("workload.output_tokens", {{"distribution", "fixed"}, {"value", 1}}, pooling_);
  const bool lengths = Find("workload.prompt_tokens") != nullptr;
  Warn(Format(
      "{}: reads each prompt once and decodes nothing; one output token stands for what it "
      "pools{}",
      pooling_, lengths ? "" : ", and the length of prompts decides: set workload.prompt_tokens"));
}

// Targets of output tokens, and the lengths that classes give them.
void Draft::DropDecodes(nlohmann::json& document) {
  if (pooling_.empty()) return;
  nlohmann::json& workload = document["workload"];
  if (workload.is_object() && workload.contains("classes") && workload["classes"].is_array()) {
    for (nlohmann::json& each : workload["classes"]) {
      if (each.is_object()) each.erase("output_tokens");
    }
  }
  if (!document.contains("slo") || !document["slo"].is_array()) return;
  nlohmann::json kept = nlohmann::json::array();
  for (nlohmann::json target : document["slo"]) {
    const std::string metric = TextIn(target, "metric");
    bool decodes = metric == "tpot" || metric == "itl";
    if (target.is_object() && target.contains("tpot_ms")) {
      target.erase("tpot_ms");
      decodes = !target.contains("ttft_ms") && !target.contains("e2e_ms");
      Remark(Format("{}: the limit of TPOT in a target of attainment is left out", pooling_));
    } else if (decodes) {
      Remark(Format("{}: the target of {} is left out", pooling_, metric));
    }
    if (!decodes) kept.push_back(std::move(target));
  }
  document["slo"] = std::move(kept);
}

}  // namespace servecast
