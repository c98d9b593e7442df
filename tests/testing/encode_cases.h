// Random scenarios with pools that encode images for the others, against a slow reference of the
// encoders; and what comes behind them against the same run of prompts of text that arrive when
// their embeddings did, which the other differential tests answer for.
#pragma once

#include <cstdint>
#include <string>

namespace servecast::testing {

struct EncodersCompared {
  std::string mismatch;  // "": none
  std::int64_t requests = 0, texts = 0, handed_over = 0;
  std::int64_t images = 0, hits = 0;
  std::int64_t cut = 0, waited = 0, shared = 0;  // as EncodeOutput
};

// A function of the seed.
std::string EncodersDocument(std::uint64_t seed);
EncodersCompared CompareEncoders(std::uint64_t seed);

}  // namespace servecast::testing
