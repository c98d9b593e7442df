// Models that pool what they read: embeddings, scores, classes.
#include "base/text.h"
#include "import/draft.h"
#include "import/json_members.h"
#include "import/names.h"

namespace servecast {

// A step that ends a prompt is the last of its request, as one with an output token is.
void Draft::SettlePooling() {
  if (PoolsByName(model_name_)) TakePooling(model_name_);
  if (pooling_.empty()) return;
  Take("workload.output_tokens", {{"distribution", "fixed"}, {"value", 1}}, pooling_);
  const bool lengths = Find("workload.prompt_tokens") != nullptr;
  Warn(Format(
      "{}: reads each prompt once and decodes nothing; one output token stands for what it "
      "pools{}",
      pooling_, lengths ? "" : ", and the length of prompts decides: set workload.prompt_tokens"));
}

// Those of output tokens, of which there are none.
void Draft::DropDecodeTargets(nlohmann::json& document) {
  if (pooling_.empty() || !document.contains("slo") || !document["slo"].is_array()) return;
  nlohmann::json kept = nlohmann::json::array();
  for (const nlohmann::json& target : document["slo"]) {
    const std::string metric = TextIn(target, "metric");
    const bool decodes = metric == "tpot" || metric == "itl";
    if (decodes) Remark(Format("{}: the target of {} is left out", pooling_, metric));
    if (!decodes) kept.push_back(target);
    if (!decodes && target.is_object()) kept.back().erase("tpot_ms");
  }
  document["slo"] = std::move(kept);
}

}  // namespace servecast
