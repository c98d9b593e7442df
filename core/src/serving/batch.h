// What a latency model may know of a step: its shape, not its requests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace servecast {

// The tokens of one prompt (or of a recomputation after a preemption) that a step computes.
struct PrefillChunk {
  std::int64_t tokens = 0;   // computed in this step, >= 1
  std::int64_t context = 0;  // computed before it
  std::int64_t prompt = 0;   // prompt length; a recomputation goes beyond it
  bool samples = false;      // its last token is known after this step, so a token is sampled
};

// Of queries with keys, as causal attention has them.
inline std::int64_t PairsOf(const PrefillChunk& chunk) {
  return chunk.tokens * chunk.context + chunk.tokens * (chunk.tokens + 1) / 2;
}

// The decodes of a step that verify drafts and compute as many tokens each.
struct DraftedDecodes {
  std::int64_t tokens = 0;   // of each, computed in this step: the one that is due and its drafts
  std::int64_t context = 0;  // sum over them of the tokens computed before it
  std::int64_t sequences = 1;
  std::int64_t logits = tokens;  // of each, that the LM head is asked for

  // Sum over them of the tokens whose keys are read, by all queries of one at once.
  std::int64_t Keys() const { return context + sequences * tokens; }
};

// The LoRA adapters of a step: how many different ones, and the tokens that are computed with one.
struct AdapterWork {
  std::int64_t adapters = 0, tokens = 0;
};

// Decodes are sums and the longest, so that pricing a step does not depend on their number.
struct BatchShape {
  std::int64_t decode_seqs = 0;            // each computes one token
  std::int64_t decode_context_tokens = 0;  // sum over them of the tokens computed before the step
  std::span<const PrefillChunk> prefill;   // in scheduled order
  std::int64_t decode_kv_blocks = 0;       // that the decodes hold in it
  std::int64_t transfer_blocks = 0;        // loaded from the KV tiers for it
  double preemption_ema = 0;               // with this step's; see LatencyModel::PreemptionWeight
  // The other decodes, ascending by their tokens, of which each number is there once.
  std::span<const DraftedDecodes> drafted = {};
  AdapterWork lora = {};
  std::int64_t images = 0;  // that are encoded before it computes
  // Tokens that all ranks compute which share experts and step together with it, its own among
  // them; 0: every other one as many as it.
  std::int64_t group_tokens = 0;
  std::int64_t decode_longest = 0;  // of decode_context_tokens, the most of one; 0: not known

  std::int64_t DraftedSequences() const {
    std::int64_t sequences = 0;
    for (const DraftedDecodes& decodes : drafted) sequences += decodes.sequences;
    return sequences;
  }
};

// Adds to what a shape's span will show.
inline void AddDrafted(std::vector<DraftedDecodes>& drafted, std::int64_t tokens,
                       std::int64_t context, std::int64_t sequences = 1) {
  auto at = drafted.begin();
  while (at != drafted.end() && at->tokens < tokens) ++at;
  if (at == drafted.end() || at->tokens != tokens) {
    drafted.insert(at, {.tokens = tokens, .context = context, .sequences = sequences});
    return;
  }
  at->context += context;
  at->sequences += sequences;
}

}  // namespace servecast
