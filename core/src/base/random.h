// All randomness of the project: draws are keyed, not sequential. A draw is a function of (seed,
// stream, entity, index), so changing one policy or distribution never shifts another's draws, and
// two scenarios that differ in one knob see the same requests.
#pragma once

#include <cstdint>

namespace servecast {

// One number per use, for ever: renumbering changes every result.
enum class Stream : std::uint64_t {
  kArrival = 1,
  kPromptTokens = 2,
  kOutputTokens = 3,
  kPrefixGroup = 4,   // by session
  kThinkTime = 5,     // by row
  kClass = 6,         // by session
  kKeep = 7,          // by row of the trace and by turn of its repetition
  kOwnDraws = 8,      // by class: the seed of what is the class's own
  kRouter = 9,        // by request
  kReplication = 10,  // by run: its seed
  kAcceptance = 11,   // by request and by its steps with drafts
  kProposal = 12,     // by request and by its steps with output
  kAdapter = 13,      // by session
  kHostStall = 14,    // by replica and by twice the interval
  kBackoff = 16,      // by request and by retry
  kUnderWay = 15,     // by conversation that had begun before the run
  kFailure = 17,      // by replica and by its lives
  kSlowdown = 19,     // by replica and by its slow periods
  kImage = 18,        // by row, as kPromptTokens, and by image
};

// A bijection of 64-bit words that spreads every input bit over all output bits (the finaliser of
// SplitMix64; Steele, Lea, Flood, OOPSLA 2014, variant 13 of Stafford).
constexpr std::uint64_t Mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

// What Mix64 makes a draw of: for whoever draws many of one entity, as that of the next index is
// kGolden more.
constexpr std::uint64_t RandomKey(std::int64_t seed, Stream stream, std::int64_t entity,
                                  std::int64_t index = 0) {
  std::uint64_t h = Mix64(static_cast<std::uint64_t>(seed) + kGolden);
  h = Mix64(h ^ (static_cast<std::uint64_t>(stream) * kGolden));
  h = Mix64(h + static_cast<std::uint64_t>(entity) * 0xD1B54A32D192ED03ULL);
  return h + static_cast<std::uint64_t>(index) * kGolden + 1;
}

constexpr std::uint64_t RandomBits(std::int64_t seed, Stream stream, std::int64_t entity,
                                   std::int64_t index = 0) {
  return Mix64(RandomKey(seed, stream, entity, index));
}

// Uniform in the open interval (0, 1): 53 bits, never an end, so that Log and quantiles are finite.
constexpr double Uniform(std::int64_t seed, Stream stream, std::int64_t entity,
                         std::int64_t index = 0) {
  return (static_cast<double>(RandomBits(seed, stream, entity, index) >> 12) + 0.5) * 0x1p-52;
}

}  // namespace servecast
