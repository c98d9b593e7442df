// What a latency model may know of a step: its shape, not its requests.
#pragma once

#include <cstdint>
#include <span>

namespace servecast {

// The tokens of one prompt (or of a recomputation after a preemption) that a step computes.
struct PrefillChunk {
  std::int64_t tokens = 0;   // computed in this step, >= 1
  std::int64_t context = 0;  // computed before it
  std::int64_t prompt = 0;   // prompt length; a recomputation goes beyond it
  bool samples = false;      // its last token is known after this step, so a token is sampled
};

// A decode that verifies drafts.
struct DraftedDecode {
  std::int64_t tokens = 0;   // computed in this step: the one that is due and its drafts, >= 2
  std::int64_t context = 0;  // computed before it
};

// Decodes of one token are sums only, so that a step of unchanged composition is priced in O(1).
struct BatchShape {
  std::int64_t decode_seqs = 0;            // each computes one token
  std::int64_t decode_context_tokens = 0;  // sum over them of the tokens computed before the step
  std::span<const PrefillChunk> prefill;   // in scheduled order
  std::int64_t decode_kv_blocks = 0;       // that the decodes hold in it
  std::int64_t transfer_blocks = 0;        // loaded from the KV tiers for it
  double preemption_ema = 0;               // with this step's; see LatencyModel::PreemptionWeight
  std::span<const DraftedDecode> drafted = {};  // the other decodes, in scheduled order
};

}  // namespace servecast
