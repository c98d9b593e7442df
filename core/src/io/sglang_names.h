// What other servers and vLLM have in common is in `engine` by vLLM's names. Beside the schedulers
// sglang and trtllm their own names are taken as well: scheduler.page_size is engine.block_size,
// and so is scheduler.kv_cache_config.tokens_per_block.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "servecast/result.h"

namespace servecast {

// Moves them to the engine, of the document and of its pools, before any preset is merged. Where
// both names are there, an issue says so.
void TakeServerNames(nlohmann::json& document, Issues& issues);

// What SGLang's server reads from its environment, and the scheduler's member that it is.
struct SglangVariable {
  std::string_view name, member;
};
inline constexpr SglangVariable kSglangVariables[] = {
    {"SGLANG_INIT_NEW_TOKEN_RATIO", "init_new_token_ratio"},
    {"SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR", "min_new_token_ratio_factor"},
    {"SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS", "new_token_ratio_decay_steps"},
    {"SGLANG_RETRACT_DECODE_STEPS", "retract_decode_steps"},
    {"SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION", "clip_max_new_tokens"},
    {"IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD", "in_batch_check_threshold"},
    {"IN_BATCH_PREFIX_CACHING_DEPRIORITIZE_THRESHOLD", "in_batch_deprioritize_threshold"},
};

}  // namespace servecast
