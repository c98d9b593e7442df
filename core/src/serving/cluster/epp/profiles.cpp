#include "serving/cluster/epp/profiles.h"

#include <algorithm>
#include <vector>

#include "base/base.h"
#include "serving/cluster/epp/scheduler.h"

namespace servecast::epp {
namespace {

EppConfig One(std::vector<EppReference> references, std::vector<EppPlugin> plugins = {}) {
  return {std::move(plugins), {{"default", std::move(references)}}};
}

EppPlugin With(const char* type, EppParameters parameters) {
  return {type, type, std::move(parameters)};
}

// Its concurrency detector, limits and bands before the built-in profile.
EppConfig FlowControlGuide() {
  constexpr const char* kDetector = "concurrency-detector";
  constexpr std::int64_t kGib = 1 << 30;
  const auto band = [](std::int64_t priority, std::int64_t requests) {
    return EppBand{
        .priority = priority, .fairness = "round-robin-fairness-policy", .max_requests = requests};
  };
  return {{With(kDetector, {{"maxConcurrency", 132.0}})},
          {DefaultProfile()},
          EppFlowControl{.detector = kDetector,
                         .bands = {band(100, 500), band(0, 200), band(-10, 50)},
                         .max_requests = 1000,
                         .max_bytes = 10 * kGib}};
}

}  // namespace

std::span<const ShippedProfile> ShippedProfiles() {
  static const std::vector<ShippedProfile> kProfiles = {
      {"default", "built in, and the flow control guide; llm-d-router ebab6879, 21 August 2026",
       EppConfig{{}, {DefaultProfile()}}},
      {"optimized-baseline", "guide optimized-baseline since June 2026; read 27 November 2026",
       One({{"prefix-cache-affinity-filter"}, {"token-load-scorer"}},
           {With("prefix-cache-affinity-filter", {{"affinityThreshold", 0.8}}),
            With("approx-prefix-cache-producer", {{"maxPrefixTokensToMatch", 40960.0}})})},
      {"optimized-baseline-2026-05", "guide optimized-baseline until May 2026",
       One({{"queue-scorer", 2},
            {"kv-cache-utilization-scorer", 2},
            {"prefix-cache-scorer", 3},
            {"no-hit-lru-scorer", 2}})},
      {"estimate-load-aware",
       "deploy/config/epp-estimate-prefix-cache-config.yaml of llm-d-router ebab6879",
       One({{"decode-filter"},
            {"prefix-cache-scorer", 1},
            {"load-aware-scorer", 1},
            {"max-score-picker"}})},
      {"prefix-only", "deploy/config/epp-config.yaml of llm-d-router ebab6879",
       One({{"decode-filter"}, {"max-score-picker"}, {"prefix-cache-scorer", 2}})},
      {"no-hit-lru", "deploy/config/sim-epp-no-hit-lru.yaml of llm-d-router ebab6879",
       One({{"decode-filter"},
            {"max-score-picker"},
            {"prefix-cache-scorer", 2},
            {"no-hit-lru-scorer", 1}},
           {With("no-hit-lru-scorer", {{"lruSize", 2048.0}})})},
      {"load-only", "the queue and KV scorers of the built-in profile, without prefixes",
       One({{"queue-scorer", 2}, {"kv-cache-utilization-scorer", 2}})},
      {kFlowControlProfile, "the flow control guide; read 27 November 2026", FlowControlGuide()},
      {"random", "random-picker alone", One({{"random-picker"}})}};
  return kProfiles;
}

const EppConfig& ConfigOf(const EppSpec& spec) {
  if (spec.profile == kOwnEppProfile) return *spec.own;
  const auto profiles = ShippedProfiles();
  const auto found = std::find_if(profiles.begin(), profiles.end(),
                                  [&](const ShippedProfile& p) { return p.name == spec.profile; });
  SERVECAST_CHECK(found != profiles.end(), "a profile is shipped");
  return found->config;
}

}  // namespace servecast::epp
