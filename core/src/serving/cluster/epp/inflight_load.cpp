#include "serving/cluster/epp/inflight_load.h"

#include <algorithm>
#include <cmath>

namespace servecast::epp {

std::int64_t UncachedTokens(const Request& request, std::int64_t matched_blocks) {
  if (matched_blocks < 0) return request.tokens;
  const std::int64_t blocks = std::max<std::int64_t>(0, request.total_blocks - matched_blocks);
  const std::int64_t beyond = request.tokens - request.total_blocks * request.block_tokens;
  return blocks * request.block_tokens + std::max<std::int64_t>(0, beyond);
}

std::int64_t EstimatedOutput(const LoadSettings& settings, std::int64_t prompt_tokens,
                             std::int64_t most_output) {
  if (!settings.estimates_output) return 0;
  auto tokens = static_cast<std::int64_t>(std::round(Real(prompt_tokens) * settings.output_ratio));
  if (most_output > 0) tokens = std::min(tokens, most_output);
  if (settings.most_estimated_tokens > 0) tokens = std::min(tokens, settings.most_estimated_tokens);
  return tokens;
}

InflightLoad::InflightLoad(std::size_t endpoints, bool estimates_output)
    : estimates_output_(estimates_output), loads_(endpoints) {}

void InflightLoad::Change(std::int32_t endpoint, std::int64_t requests, std::int64_t tokens) {
  Load& load = loads_[static_cast<std::size_t>(endpoint)];
  load.requests += requests;
  load.tokens += tokens;
}

void InflightLoad::Sent(const Holding& holding) {
  Change(holding.primary, 1, holding.primary_tokens);
  if (holding.prefill >= 0) Change(holding.prefill, 1, holding.prefill_tokens);
}

void InflightLoad::FirstChunk(Holding& holding) {
  if (holding.prefill >= 0) Change(holding.prefill, -1, -holding.prefill_tokens);
  holding.prefill = -1;
  if (estimates_output_) return;
  Change(holding.primary, 0, -holding.primary_tokens);
  holding.primary_tokens = 0;
}

void InflightLoad::Ended(Holding& holding) {
  if (holding.prefill >= 0) Change(holding.prefill, -1, -holding.prefill_tokens);
  Change(holding.primary, -1, -holding.primary_tokens);
  holding = {};
}

}  // namespace servecast::epp
