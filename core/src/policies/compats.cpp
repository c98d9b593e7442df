// What the compat modes have: none, both eras of BLIS, and Vidur.
#include "serving/features.h"

namespace servecast {
namespace {

using enum Feature;

constexpr Features kBlisHas = {kOrders, kPriorities, kVictimByPriority, kLoadRouters};
constexpr std::string_view kTooFast =
    "it is for compat \"blis\" only, as it bills prefill faster than the GPU can";

constexpr Lack kNoneLacks[] = {{kBlisPrices, kTooFast}};
constexpr Lack kBlisLacks[] = {
    {kDisk, "BLIS offloads to host memory only"},
    {kTimeouts, "BLIS had none then"},
    {kHostOverlap, "its engine is synchronous"},
    {kPreemptionMean, "its rules keep nothing of what the model's features look at"},
    {kBlisPrices, kTooFast},
};
constexpr Lack kVidurLacks[] = {
    {kDisk, "it has no memory behind the cache"},
    {kTimeouts, "it has no time-outs"},
    {kLoadRouters, "Vidur has no other"},
    {kOrders, "its queues know no other"},
    {kPriorities, "it ignores priorities"},
    {kVictimByPriority, "the last to arrive yields"},
    {kBlisPrices, kTooFast},
};

constexpr CompatEntry kCompats[] = {
    {Compat::kNone, "none",
     Features{kDrafts,         kAdapters,       kQueueCaps,     kStages,     kRoles,
              kDisk,           kTimeouts,       kOrders,        kPriorities, kVictimByPriority,
              kHostOverlap,    kClosedLoop,     kCappedClients, kReplicas,   kLoadRouters,
              kPreemptionMean, kExpertReplicas, kFloat32,       kKvGroups,   kScaling,
              kRetries,        kFailures,       kRollingUpdate, kImages,     kSlowdowns,
              kHedges},
     kNoneLacks},
    {Compat::kBlisFebruary2026, "blis-2026-02", kBlisHas, kBlisLacks},
    {Compat::kBlis, "blis", kBlisHas | Features{kTimeouts, kBlisPrices}, kBlisLacks},
    {Compat::kVidur, "vidur",
     Features{kStages, kHostOverlap, kClosedLoop, kCappedClients, kReplicas, kPreemptionMean,
              kFloat32},
     kVidurLacks},
};

}  // namespace

const CompatEntry& FindCompat(Compat compat) {
  const CompatEntry* entry = kCompats;
  while (entry->compat != compat) ++entry;
  return *entry;
}

}  // namespace servecast
