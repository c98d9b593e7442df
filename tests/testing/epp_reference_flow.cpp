#include "testing/epp_reference_flow.h"

#include <algorithm>
#include <cmath>

namespace servecast::testing {
namespace {

void EndAs(ReferenceFlow::Request& request, const char* outcome, TimeNs now) {
  request.outcome = outcome;
  request.end = now;
}

}  // namespace

ReferenceFlow::ReferenceFlow(const EppConfig& config)
    : config_(config), flow_(*config.flow), picker_(config) {
  bands_[0].settings = EppBand{};
  for (const EppBand& band : flow_.bands) bands_[band.priority].settings = band;
}

std::string ReferenceFlow::TypeOf(const std::string& name) const {
  for (const EppPlugin& plugin : config_.plugins) {
    if (plugin.name == name) return plugin.type;
  }
  return name;
}

double ReferenceFlow::Number(const char* parameter, double otherwise) const {
  for (const EppPlugin& plugin : config_.plugins) {
    const auto found = plugin.parameters.find(std::string(parameter));
    if (plugin.name == flow_.limits && found != plugin.parameters.end()) {
      return std::get<double>(found->second);
    }
  }
  return otherwise;
}

bool ReferenceFlow::Idle() const {
  for (const auto& [priority, band] : bands_) {
    if (band.count > 0 || band.cursor >= 0) return false;
  }
  return true;
}

ReferenceFlow::Band& ReferenceFlow::BandOf(std::int64_t priority) {
  const auto band = bands_.find(priority);
  return band == bands_.end() ? bands_[0] : band->second;
}

double ReferenceFlow::Saturation() const {
  std::vector<epp::Endpoint> prefill, decode;
  for (const epp::Endpoint& endpoint : pool_) {
    using epp::Role;
    const Role role = endpoint.role;
    const bool both =
        role == Role::kPrefillDecode || role == Role::kBoth || role == Role::kEncodePrefillDecode;
    if (both || role == Role::kPrefill || role == Role::kEncodePrefill) prefill.push_back(endpoint);
    if (both || role == Role::kDecode || role == Role::kNone) decode.push_back(endpoint);
  }
  const auto of = [&](const auto& part) { return picker_.Saturation(flow_.detector, part); };
  if (prefill.empty() && decode.empty()) return of(pool_);
  double most = 0;
  if (!prefill.empty()) most = std::max(most, of(prefill));
  if (!decode.empty()) most = std::max(most, of(decode));
  return most;
}

// By band, from the highest.
std::vector<double> ReferenceFlow::Ceilings(double s) {
  const auto n = static_cast<std::int64_t>(bands_.size());
  std::vector<double> ceilings;
  const std::string limits = TypeOf(flow_.limits);
  if (limits == "soft-reflective-ceiling-policy") {
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
  const double max = Number("maxCeiling", 1), width = max - Number("minCeiling", 1);
  bool by_value = false;
  for (const EppPlugin& plugin : config_.plugins) {
    const auto domain = plugin.parameters.find("domain");
    by_value = by_value || (plugin.name == flow_.limits && domain != plugin.parameters.end() &&
                            domain->second == EppValue(std::string("value")));
  }
  const double highest = Real(bands_.begin()->first), lowest = Real(bands_.rbegin()->first);
  for (const auto& [priority, band] : bands_) {
    const auto i = static_cast<std::int64_t>(ceilings.size());
    if (limits != "priority-holdback-policy") {
      ceilings.push_back(Number("threshold", 1));
    } else if (n == 1) {
      ceilings.push_back(max);
    } else if (by_value) {
      const double share = (Real(priority) - lowest) / (highest - lowest);
      ceilings.push_back(Number("minCeiling", 1) + share * width);
    } else {
      ceilings.push_back(max - Real(i) * width / Real(n - 1));
    }
  }
  return ceilings;
}

TimeNs ReferenceFlow::TtlOf(const Request& request) const {
  TimeNs ttl = request.ttl > 0 ? request.ttl : flow_.ttl_ns;
  if (request.deadline != kNever) {
    const TimeNs left = request.deadline - request.arrival;
    if (ttl == 0 || left < ttl) ttl = left;
  }
  return ttl;
}

// The lowest goes first; equals by arrival.
TimeNs ReferenceFlow::KeyOf(const Band& band, const Request& request) const {
  if (TypeOf(band.settings.ordering) == "edf-ordering-policy") {
    const TimeNs ttl = TtlOf(request);
    return ttl == 0 ? kNever : request.arrival + ttl;
  }
  if (TypeOf(band.settings.ordering) == "slo-deadline-ordering-policy") {
    return request.slo_ttft == 0 ? kNever : request.arrival + request.slo_ttft;
  }
  return request.arrival;
}

// By the band's ordering, and who came first among equals; -1: none.
std::int64_t ReferenceFlow::First(const Band& band, const std::vector<std::int64_t>& of) const {
  std::int64_t first = -1;
  for (const std::int64_t candidate : came_) {
    if (std::find(of.begin(), of.end(), candidate) == of.end()) continue;
    if (first < 0 || KeyOf(band, At(candidate)) < KeyOf(band, At(first))) first = candidate;
  }
  return first;
}

// -1: the band is empty.
std::int64_t ReferenceFlow::PickFrom(Band& band) const {
  if (TypeOf(band.settings.fairness) == "round-robin-fairness-policy") {
    auto next = band.cursor >= 0 ? band.flows.upper_bound(band.cursor) : band.flows.begin();
    for (std::size_t tried = 0; tried < band.flows.size(); ++tried, ++next) {
      if (next == band.flows.end()) next = band.flows.begin();
      if (next->second.empty()) continue;
      band.cursor = next->first;
      return First(band, next->second);
    }
    band.cursor = -1;
    return -1;
  }
  std::vector<std::int64_t> all;
  for (const auto& [id, flow] : band.flows) all.insert(all.end(), flow.begin(), flow.end());
  return First(band, all);
}

void ReferenceFlow::Remove(Band& band, std::int64_t request) {
  std::erase(band.flows[At(request).flow], request);
  band.count -= 1;
  band.bytes -= At(request).bytes;
}

std::int64_t ReferenceFlow::Cycle(TimeNs now) {
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
    Request& request = requests[static_cast<std::size_t>(picked)];
    if (!request.outcome.empty()) return -1;
    EndAs(request, "Dispatched", now);
    return picked;
  }
  return -1;
}

void ReferenceFlow::Arrive(std::int64_t request, TimeNs now) {
  Request& added = requests[static_cast<std::size_t>(request)];
  Band& band = BandOf(added.priority);
  std::int64_t count = 1, bytes = added.bytes;
  for (const auto& [priority, of] : bands_) {
    count += of.count;
    bytes += of.bytes;
  }
  const bool full = (flow_.max_requests > 0 && count > flow_.max_requests) ||
                    (flow_.max_bytes > 0 && bytes > flow_.max_bytes) ||
                    band.count + 1 > band.settings.max_requests ||
                    band.bytes + added.bytes > band.settings.max_bytes;
  if (full) {
    return EndAs(added, pool_is_empty_ ? "RejectedNoEndpoints" : "RejectedCapacity", now);
  }
  came_.push_back(request);
  band.flows[added.flow].push_back(request);
  band.count += 1;
  band.bytes += added.bytes;
  added.queued = true;
}

void ReferenceFlow::Sweep(TimeNs now) {
  for (auto& [priority, band] : bands_) {
    std::vector<std::int64_t> out;
    for (const auto& [id, flow] : band.flows) {
      for (const std::int64_t r : flow) {
        Request& request = requests[static_cast<std::size_t>(r)];
        const TimeNs ttl = pool_is_empty_ ? flow_.ttl_ns : TtlOf(request);
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

void ReferenceFlow::End(std::int64_t request, const char* outcome, TimeNs now) {
  Request& ended = requests[static_cast<std::size_t>(request)];
  if (ended.queued && ended.outcome.empty()) EndAs(ended, outcome, now);
}

}  // namespace servecast::testing
