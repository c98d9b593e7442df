// What a scenario may ask for that not every scheduler, compat mode or latency model has. Each
// entry says what it has, and why it lacks the rest; io/feature_checks.cpp says how a scenario asks
// for a feature, and prints every refusal. A new feature is a line here and one there; an entry
// that does not name it lacks it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "servecast/scenario.h"

namespace servecast {

// clang-format off
enum class Feature : std::uint8_t {
  // Of how requests are served: of schedulers and compat modes.
  kDrafts, kAdapters, kQueueCaps, kStages, kMoreStagesThanSeats, kRoles, kReplicas, kTiers, kDisk,
  kTimeouts, kOrders, kPriorities, kClosedLoop, kCappedClients, kHostOverlap, kScaling, kRetries, kFailures,
  kRollingUpdate, kSlowdowns, kHedges,
  kVictims, kVictimByPriority,        // preemption other than auto; by priority
  kLongPrefills, kReserve, kGarbage,  // long_prefill_token_threshold, admission_reserve, gc_pass_us
  kWholePrompts,                      // chunked prefill is off
  kLoadRouters,                       // other routers than those of Vidur
  kVidur, kBlis,                      // of schedulers: the compat modes
  // What a latency model needs of them: an average of preemptions; steps by BLIS's rules.
  kPreemptionMean, kBlisPrices,
  // Of latency models, beside drafts and adapters; kExpertReplicas is attention_data_parallel.
  kExpertReplicas, kExpertParallel, kFloat32, kQuantized, kCacheDtype, kLatentAttention,
  kSharedExperts, kDenseLayers, kLayerKinds,
  kPowerLimit,  // hardware.power_limit_w
  kImages,  // images in prompts: of schedulers, compat modes and latency models
  kKvGroups,  // layers that keep KV in several groups: of schedulers and compat modes
  // Every entry has them; only pairs of features ask.
  kAsync, kSync, kCapturedGraphs, kNgram, kRetriedCaps, kExperts, kDense, kNoPrefixCache,
  kFlowControl, kLockStep,  // scheduler.enable_attention_dp
  kEncoders,                // a pool that encodes images for the others
};
// clang-format on

class Features {
 public:
  constexpr Features() = default;
  constexpr Features(std::initializer_list<Feature> list) {
    for (const Feature feature : list) bits_ |= Bit(feature);
  }
  constexpr bool Has(Feature feature) const { return (bits_ & Bit(feature)) != 0; }
  constexpr void Add(Feature feature) { bits_ |= Bit(feature); }
  constexpr Features operator|(Features other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  static constexpr std::uint64_t Bit(Feature feature) {
    return std::uint64_t{1} << static_cast<unsigned>(feature);
  }
  std::uint64_t bits_ = 0;
};

// Why an entry lacks a feature, as a clause behind a colon.
struct Lack {
  Feature feature;
  std::string_view why;
};
using Lacks = std::span<const Lack>;

// One of engine.compat.
struct CompatEntry {
  Compat compat;
  std::string_view name;
  Features has;
  Lacks lacks = {};
};
const CompatEntry& FindCompat(Compat compat);

}  // namespace servecast
