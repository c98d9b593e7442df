#include "serving/scaling/wva.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/base.h"

namespace servecast {
namespace {

// Adds its part to the analysis of the replica's variant, made at its first replica.
WvaAnalysis& AnalysisOf(std::size_t variant, std::vector<WvaAnalysis>& all) {
  for (WvaAnalysis& one : all) {
    if (one.variant == variant) return one;
  }
  all.push_back({.variant = variant});
  return all.back();
}

}  // namespace

Wva::Wva(WvaSpec spec, std::vector<WvaVariant> variants)
    : spec_(spec), variants_(std::move(variants)), last_capacity_(variants_.size()) {}

WvaDecision Wva::Tick(const WvaView& view) {
  if (view.replicas.empty()) return {};
  WvaDecision decision = spec_.tokens ? Tokens(view) : Percentages(view);
  decision.enforced = decision.targets;
  Enforce(view, decision);
  return decision;
}

WvaDecision Wva::Percentages(const WvaView& view) const {
  WvaDecision decision;
  for (const WvaReplica& replica : view.replicas) {
    WvaAnalysis& one = AnalysisOf(replica.variant, decision.variants);
    ++one.replicas;
    if (replica.kv_usage >= spec_.kv_threshold || Real(replica.queue) >= spec_.queue_threshold) {
      continue;
    }
    ++one.open;
    one.spare_kv += spec_.kv_threshold - replica.kv_usage;
    one.spare_queue += spec_.queue_threshold - Real(replica.queue);
  }
  for (WvaAnalysis& one : decision.variants) {
    if (one.open == 0) continue;
    one.spare_kv /= Real(one.open);
    one.spare_queue /= Real(one.open);
    decision.open += one.open;
    decision.spare_kv += one.spare_kv * Real(one.open);
    decision.spare_queue += one.spare_queue * Real(one.open);
  }
  if (decision.open > 0) {
    decision.spare_kv /= Real(decision.open);
    decision.spare_queue /= Real(decision.open);
  }
  decision.scale_up =
      decision.spare_kv < spec_.kv_spare || decision.spare_queue < spec_.queue_spare;
  if (decision.open >= 2) {
    // The load of one replica less, on those that stay.
    const double more = Real(decision.open) / Real(decision.open - 1);
    const auto enough = [&](double threshold, double spare, double trigger) {
      return threshold - (threshold - spare) * more >= trigger;
    };
    decision.scale_down_safe =
        enough(spec_.kv_threshold, decision.spare_kv, spec_.kv_spare) &&
        enough(spec_.queue_threshold, decision.spare_queue, spec_.queue_spare);
  }
  SetTargets(view, decision);
  return decision;
}

// V1: at most one replica of one variant, and none while a decision is still carried out.
void Wva::SetTargets(const WvaView& view, WvaDecision& decision) const {
  const auto at = [&](const WvaAnalysis& one) -> const WvaDeployment& {
    return view.deployments[one.variant];
  };
  const bool in_transition =
      std::any_of(decision.variants.begin(), decision.variants.end(), [&](const auto& one) {
        return (at(one).desired != 0 && at(one).desired != at(one).current) ||
               one.replicas != at(one).current;
      });
  for (const WvaAnalysis& one : decision.variants) {
    const std::int64_t asked = at(one).desired != 0 ? at(one).desired : at(one).current;
    decision.targets.push_back({one.variant, in_transition ? asked : one.replicas});
  }
  if (in_transition) return;
  const auto cheaper = [&](std::size_t a, std::size_t b) {
    return std::tie(variants_[a].cost, variants_[a].name) <
           std::tie(variants_[b].cost, variants_[b].name);
  };
  WvaTarget* chosen = nullptr;
  for (WvaTarget& target : decision.targets) {
    if (decision.scale_up) {
      if (view.deployments[target.variant].pending > 0) continue;
      if (chosen == nullptr || cheaper(target.variant, chosen->variant)) chosen = &target;
    } else if (decision.scale_down_safe && target.replicas > 1) {
      if (chosen == nullptr || cheaper(chosen->variant, target.variant)) chosen = &target;
    }
  }
  if (chosen != nullptr) chosen->replicas += decision.scale_up ? 1 : -1;
}

void Wva::Enforce(const WvaView& view, WvaDecision& decision) const {
  std::vector<WvaTarget>& targets = decision.enforced;
  if (spec_.scale_to_zero) {
    if (view.requests_in_retention != 0) return;
    for (WvaTarget& target : targets) target.replicas = 0;
    return;
  }
  const bool any = std::any_of(targets.begin(), targets.end(),
                               [](const WvaTarget& target) { return target.replicas > 0; });
  if (any || targets.empty()) return;
  const auto cost = [&](const WvaTarget& target) {
    if (!spec_.tokens) return variants_[target.variant].cost;
    for (const WvaAnalysis& one : decision.variants) {
      if (one.variant == target.variant) return one.cost;
    }
    return 0.0;
  };
  const auto cheapest =
      std::min_element(targets.begin(), targets.end(), [&](const WvaTarget& a, const WvaTarget& b) {
        return std::pair(cost(a), variants_[a.variant].name) <
               std::pair(cost(b), variants_[b.variant].name);
      });
  cheapest->replicas = 1;
}

void LimitGpus(const std::map<std::string, std::int64_t>& pool, std::vector<WvaClaim>& claims) {
  std::map<std::string, std::int64_t> free = pool;
  for (const WvaClaim& claim : claims) {
    free[claim.accelerator] -= claim.current * claim.gpus_per_replica;
  }
  std::vector<WvaClaim*> asking;
  for (WvaClaim& claim : claims) {
    if (claim.target > claim.current) asking.push_back(&claim);
  }
  std::stable_sort(asking.begin(), asking.end(), [](const WvaClaim* a, const WvaClaim* b) {
    return std::tie(a->spare_kv, a->cost) < std::tie(b->spare_kv, b->cost);
  });
  for (WvaClaim* claim : asking) {
    std::int64_t& left = free[claim->accelerator];
    const std::int64_t asked = (claim->target - claim->current) * claim->gpus_per_replica;
    const std::int64_t given = std::min(asked, std::max<std::int64_t>(0, left));
    claim->target = claim->current + given / claim->gpus_per_replica;
    left -= given;
  }
}

}  // namespace servecast
