#include "testing/epp_flow.h"

#include <algorithm>
#include <cmath>

namespace servecast::testing {
namespace {

constexpr TimeNs kBackstop = 2 * kNsPerS;

void EndAs(FlowRequest& request, const char* outcome, TimeNs now) {
  request.outcome = outcome;
  request.end = now;
}

}  // namespace

FlowControl::FlowControl(FlowSettings settings, const epp::Plugin& detector)
    : settings_(std::move(settings)), detector_(detector) {
  bands_[0].settings = FlowBand{};
  for (const FlowBand& band : settings_.bands) bands_[band.priority].settings = band;
}

FlowControl::Band& FlowControl::BandOf(std::int64_t priority) {
  const auto band = bands_.find(priority);
  return band == bands_.end() ? bands_[0] : band->second;
}

double FlowControl::Saturation() const {
  std::vector<epp::Endpoint> prefill, decode;
  for (const epp::Endpoint& endpoint : pool_) {
    using epp::Role;
    const Role role = endpoint.role;
    const bool both =
        role == Role::kPrefillDecode || role == Role::kBoth || role == Role::kEncodePrefillDecode;
    if (both || role == Role::kPrefill || role == Role::kEncodePrefill) prefill.push_back(endpoint);
    if (both || role == Role::kDecode || role == Role::kNone) decode.push_back(endpoint);
  }
  if (prefill.empty() && decode.empty()) return detector_.Saturation(pool_);
  double most = 0;
  if (!prefill.empty()) most = std::max(most, detector_.Saturation(prefill));
  if (!decode.empty()) most = std::max(most, detector_.Saturation(decode));
  return most;
}

// By band, from the highest.
std::vector<double> FlowControl::Ceilings(double s) {
  const auto n = static_cast<std::int64_t>(bands_.size());
  std::vector<double> ceilings;
  if (settings_.ceilings == "soft-reflective-ceiling-policy") {
    bool open = false;
    if (n > 1 && 1 - s <= s && s < 1) {
      const auto period = std::max<std::int64_t>(1, std::llround(s / (1 - s + 1e-9)));
      open = ++ticks_ % period == 0;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      const bool free = i == 0 || s < 1 - Real(i) * s / Real(n - 1);
      ceilings.push_back(free ? 1 : s < 1 && open ? 1 : 0);
    }
    return ceilings;
  }
  const double width = settings_.max_ceiling - settings_.min_ceiling;
  const double highest = Real(bands_.begin()->first), lowest = Real(bands_.rbegin()->first);
  for (const auto& [priority, band] : bands_) {
    const auto i = static_cast<std::int64_t>(ceilings.size());
    if (settings_.ceilings != "priority-holdback-policy") {
      ceilings.push_back(settings_.threshold);
    } else if (n == 1) {
      ceilings.push_back(settings_.max_ceiling);
    } else if (settings_.ceilings_by_value) {
      const double share = (Real(priority) - lowest) / (highest - lowest);
      ceilings.push_back(settings_.min_ceiling + share * width);
    } else {
      ceilings.push_back(settings_.max_ceiling - Real(i) * width / Real(n - 1));
    }
  }
  return ceilings;
}

TimeNs FlowControl::TtlOf(const FlowRequest& request) const {
  TimeNs ttl = request.ttl > 0 ? request.ttl : settings_.ttl;
  if (request.deadline != kNever) {
    const TimeNs left = request.deadline - request.arrival;
    if (ttl == 0 || left < ttl) ttl = left;
  }
  return ttl;
}

TimeNs FlowControl::Backstop(const FlowRequest& request) const {
  const TimeNs ttl = TtlOf(request);
  if (ttl == 0 || settings_.no_endpoint_ttl == 0) return kNever;
  return request.arrival + std::max(ttl, settings_.no_endpoint_ttl) + kBackstop;
}

// The lowest goes first; equals by arrival.
TimeNs FlowControl::KeyOf(const Band& band, const FlowRequest& request) const {
  if (band.settings.ordering == "edf-ordering-policy") {
    const TimeNs ttl = TtlOf(request);
    return ttl == 0 ? kNever : request.arrival + ttl;
  }
  if (band.settings.ordering == "slo-deadline-ordering-policy") {
    return request.slo_ttft == 0 ? kNever : request.arrival + request.slo_ttft;
  }
  return request.arrival;
}

std::int64_t FlowControl::Head(const Band& band, const std::vector<std::int64_t>& flow) const {
  std::int64_t head = -1;
  for (const std::int64_t candidate : flow) {  // in order of arrival: the first of equals stays
    if (head < 0 || KeyOf(band, At(candidate)) < KeyOf(band, At(head))) head = candidate;
  }
  return head;
}

// -1: the band is empty.
std::int64_t FlowControl::PickFrom(Band& band) const {
  if (band.settings.fairness == "round-robin-fairness-policy") {
    auto next = band.has_cursor ? band.flows.upper_bound(band.cursor) : band.flows.begin();
    for (std::size_t tried = 0; tried < band.flows.size(); ++tried, ++next) {
      if (next == band.flows.end()) next = band.flows.begin();
      if (next->second.empty()) continue;
      band.cursor = next->first;
      band.has_cursor = true;
      return Head(band, next->second);
    }
    band.has_cursor = false;
    return -1;
  }
  std::int64_t best = -1;
  for (const auto& [id, flow] : band.flows) {
    const std::int64_t head = Head(band, flow);
    if (head < 0) continue;
    const auto rank = [&](std::int64_t r) { return std::pair(KeyOf(band, At(r)), At(r).arrival); };
    if (best < 0 || rank(head) < rank(best)) best = head;
  }
  return best;
}

void FlowControl::Remove(Band& band, std::int64_t request) {
  std::erase(band.flows[At(request).flow], request);
  band.count -= 1;
  band.bytes -= At(request).bytes;
}

std::int64_t FlowControl::Cycle(TimeNs now) {
  if (pool_.empty() != pool_is_empty_) {
    pool_is_empty_ = pool_.empty();
    since_ = now;
  }
  const double saturation = Saturation();
  const std::vector<double> ceilings = Ceilings(saturation);
  std::size_t i = 0;
  for (auto& [priority, band] : bands_) {
    if (saturation >= ceilings[i++]) return -1;
    const std::int64_t picked = PickFrom(band);
    if (picked < 0) continue;
    Remove(band, picked);
    FlowRequest& request = requests[static_cast<std::size_t>(picked)];
    if (!request.outcome.empty()) return -1;
    EndAs(request, "Dispatched", now);
    return picked;
  }
  return -1;
}

void FlowControl::Arrive(std::int64_t request, TimeNs now) {
  FlowRequest& added = requests[static_cast<std::size_t>(request)];
  Band& band = BandOf(added.priority);
  std::int64_t count = 1, bytes = added.bytes;
  for (const auto& [priority, of] : bands_) {
    count += of.count;
    bytes += of.bytes;
  }
  const bool full = (settings_.max_requests > 0 && count > settings_.max_requests) ||
                    (settings_.max_bytes > 0 && bytes > settings_.max_bytes) ||
                    band.count + 1 > band.settings.max_requests ||
                    band.bytes + added.bytes > band.settings.max_bytes;
  if (full) {
    return EndAs(added, pool_is_empty_ ? "RejectedNoEndpoints" : "RejectedCapacity", now);
  }
  band.flows[added.flow].push_back(request);
  band.count += 1;
  band.bytes += added.bytes;
  added.queued = true;
}

void FlowControl::Sweep(TimeNs now) {
  for (auto& [priority, band] : bands_) {
    std::vector<std::int64_t> out;
    for (const auto& [id, flow] : band.flows) {
      for (const std::int64_t r : flow) {
        FlowRequest& request = requests[static_cast<std::size_t>(r)];
        const TimeNs ttl = pool_is_empty_ ? settings_.no_endpoint_ttl : TtlOf(request);
        const bool expired = ttl > 0 && now >= std::max(request.arrival, since_) + ttl;
        if (expired && request.outcome.empty()) {
          EndAs(request, pool_is_empty_ ? "EvictedNoEndpoints" : "EvictedTTL", now);
        }
        if (!request.outcome.empty()) out.push_back(r);
      }
    }
    for (const std::int64_t r : out) Remove(band, r);
  }
}

void FlowControl::End(std::int64_t request, const char* outcome, TimeNs now) {
  FlowRequest& ended = requests[static_cast<std::size_t>(request)];
  if (ended.queued && ended.outcome.empty()) EndAs(ended, outcome, now);
}

}  // namespace servecast::testing
