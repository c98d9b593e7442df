// Requests and prompt tokens in flight per endpoint, as the gateway counts them: from the choice of
// an endpoint to the end of the answer. Prompt tokens leave with the first chunk of the answer.
#pragma once

#include <cstdint>
#include <vector>

#include "serving/cluster/epp/facts.h"

namespace servecast::epp {

// Parameters of the producer "inflight-load-producer".
struct LoadSettings {
  bool estimates_output = false;
  double output_ratio = 1.5;               // of the prompt
  std::int64_t most_estimated_tokens = 0;  // 0: no limit
};

// Prompt tokens that the endpoint would compute, in whole blocks; all, without a record of it.
std::int64_t UncachedTokens(const Request& request, std::int64_t matched_blocks);

// Output tokens to expect; `most_output`: as the client asks, 0: no limit.
std::int64_t EstimatedOutput(const LoadSettings& settings, std::int64_t prompt_tokens,
                             std::int64_t most_output);

class InflightLoad {
 public:
  InflightLoad(std::size_t endpoints, bool estimates_output);

  std::int64_t requests(std::int32_t endpoint) const { return At(endpoint).requests; }
  std::int64_t tokens(std::int32_t endpoint) const { return At(endpoint).tokens; }

  // What a request holds: tokens at the endpoints of its choice.
  struct Holding {
    std::int32_t primary = -1, prefill = -1;
    std::int64_t primary_tokens = 0, prefill_tokens = 0;
  };
  void Sent(const Holding& holding);
  void FirstChunk(Holding& holding);
  void Ended(Holding& holding);

 private:
  struct Load {
    std::int64_t requests = 0, tokens = 0;
  };
  const Load& At(std::int32_t endpoint) const { return loads_[static_cast<std::size_t>(endpoint)]; }
  void Change(std::int32_t endpoint, std::int64_t requests, std::int64_t tokens);

  bool estimates_output_;
  std::vector<Load> loads_;  // by endpoint
};

}  // namespace servecast::epp
