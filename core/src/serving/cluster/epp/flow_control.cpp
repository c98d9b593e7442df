#include "serving/cluster/epp/flow_control.h"

#include <algorithm>
#include <cmath>

namespace servecast::epp {

FlowControl::FlowControl(FlowSettings settings, const Plugin& detector)
    : settings_(std::move(settings)), detector_(detector) {
  bands_[0].settings = {};
  for (const FlowSettings::Band& band : settings_.bands) bands_[band.priority].settings = band;
}

FlowControl::Band& FlowControl::BandOf(std::int64_t priority) {
  const auto band = bands_.find(priority);
  return band == bands_.end() ? bands_[0] : band->second;
}

// The worse of prefill and decode.
double FlowControl::Saturation(Endpoints pool) const {
  const auto unlabelled = [](const Endpoint& endpoint) { return endpoint.role == Role::kNone; };
  if (std::all_of(pool.begin(), pool.end(), unlabelled)) return detector_.Saturation(pool);
  std::vector<Endpoint> prefill, decode;
  for (const Endpoint& endpoint : pool) {
    if (TakesPrefill(endpoint.role)) prefill.push_back(endpoint);
    if (TakesDecode(endpoint.role)) decode.push_back(endpoint);
  }
  if (prefill.empty() && decode.empty()) return detector_.Saturation(pool);
  double most = 0;
  if (!prefill.empty()) most = std::max(most, detector_.Saturation(prefill));
  if (!decode.empty()) most = std::max(most, detector_.Saturation(decode));
  return most;
}

// soft-reflective-ceiling-policy: whether this cycle lets all bands through. Counts cycles.
bool FlowControl::Opens(double s) {
  const bool counts = settings_.ceilings == FlowSettings::Ceilings::kSoftReflective &&
                      bands_.size() > 1 && 1 - s <= s && s < 1;
  if (!counts) return false;
  return ++ticks_ % std::max<std::int64_t>(1, std::llround(s / (1 - s + 1e-9))) == 0;
}

// Of the band of that rank from the highest.
double FlowControl::Ceiling(std::int64_t rank, std::int64_t priority, double s, bool open) const {
  const auto n = static_cast<std::int64_t>(bands_.size());
  const double width = settings_.max_ceiling - settings_.min_ceiling;
  const double highest = Real(bands_.begin()->first), lowest = Real(bands_.rbegin()->first);
  switch (settings_.ceilings) {
    case FlowSettings::Ceilings::kStatic:
      return settings_.threshold;
    case FlowSettings::Ceilings::kSoftReflective:
      if (rank == 0 || s < 1 - Real(rank) * s / Real(n - 1)) return 1;
      return s < 1 && open ? 1 : 0;
    case FlowSettings::Ceilings::kByRank:
      if (n == 1) return settings_.max_ceiling;
      return settings_.max_ceiling - Real(rank) * width / Real(n - 1);
    case FlowSettings::Ceilings::kByValue:
      break;
  }
  if (n == 1) return settings_.max_ceiling;
  return settings_.min_ceiling + (Real(priority) - lowest) / (highest - lowest) * width;
}

TimeNs FlowControl::TtlOf(const FlowRequest& request) const {
  const TimeNs ttl = request.ttl > 0 ? request.ttl : settings_.ttl;
  if (request.deadline == kNever) return ttl;
  const TimeNs left = request.deadline - request.arrival;
  return ttl == 0 ? left : std::min(ttl, left);
}

TimeNs FlowControl::Backstop(const FlowRequest& request) const {
  const TimeNs ttl = TtlOf(request);
  if (ttl == 0 || settings_.no_endpoint_ttl == 0) return kNever;
  return request.arrival + std::max(ttl, settings_.no_endpoint_ttl) + 2 * kNsPerS;
}

TimeNs FlowControl::OrderOf(const Band& band, const FlowRequest& request) const {
  const auto after = [&](TimeNs by) { return by == 0 ? kNever : request.arrival + by; };
  switch (band.settings.ordering) {
    case FlowSettings::Ordering::kFcfs:
      break;
    case FlowSettings::Ordering::kEdf:
      return after(TtlOf(request));
    case FlowSettings::Ordering::kSloDeadline:
      return after(request.slo_ttft);
  }
  return request.arrival;
}

TimeNs FlowControl::NextSweep() const {
  return (std::max(last_, kSweepLag) + kSweepPeriod - kSweepLag) / kSweepPeriod * kSweepPeriod +
         kSweepLag;
}

TimeNs FlowControl::Next(TimeNs report, TimeNs end) const {
  // Empty queues matter while a cycle has a cursor to forget.
  if (waiting_.empty() && cursors_ == 0) return kNever;
  const TimeNs sweep = waiting_.empty() ? kNever : NextSweep();
  TimeNs from = last_ + 1;
  if (blocked_ && detector_.falls() == Plugin::Falls::kAtReports) from = std::max(from, report);
  if (blocked_ && detector_.falls() == Plugin::Falls::kAtEnds) from = std::max(from, end);
  return from >= sweep ? sweep : std::min(sweep, CeilDiv(from, kTick) * kTick);
}

bool FlowControl::Arrive(const FlowRequest& request) {
  last_ = request.arrival;
  Band& band = BandOf(request.priority);
  const auto waiting = static_cast<std::int64_t>(waiting_.size());
  const bool full = (settings_.max_requests > 0 && waiting + 1 > settings_.max_requests) ||
                    (settings_.max_bytes > 0 && bytes_ + request.bytes > settings_.max_bytes) ||
                    band.count + 1 > band.settings.max_requests ||
                    band.bytes + request.bytes > band.settings.max_bytes;
  if (full) return false;
  const Key key{OrderOf(band, request), came_++, request.number};
  band.flows[request.flow].insert(key);
  band.count += 1;
  band.bytes += request.bytes;
  bytes_ += request.bytes;
  waiting_[request.number] = {request, key};
  return true;
}

void FlowControl::SetCursor(Band& band, std::optional<std::int64_t> flow) {
  cursors_ += (flow ? 1 : 0) - (band.cursor ? 1 : 0);
  band.cursor = flow;
}

// -1: nobody waits in the band.
std::int64_t FlowControl::PickFrom(Band& band) {
  if (!band.settings.round_robin) {
    const Key* first = nullptr;
    for (const auto& [id, flow] : band.flows) {
      if (!flow.empty() && (first == nullptr || *flow.begin() < *first)) first = &*flow.begin();
    }
    return first == nullptr ? -1 : std::get<2>(*first);
  }
  auto next = band.cursor ? band.flows.upper_bound(*band.cursor) : band.flows.begin();
  for (std::size_t tried = 0; tried < band.flows.size(); ++tried, ++next) {
    if (next == band.flows.end()) next = band.flows.begin();
    if (next->second.empty()) continue;
    SetCursor(band, next->first);
    return std::get<2>(*next->second.begin());
  }
  SetCursor(band, std::nullopt);
  return -1;
}

void FlowControl::Remove(std::int64_t request) {
  const auto found = waiting_.find(request);
  const FlowRequest& of = found->second.request;
  Band& band = BandOf(of.priority);
  band.flows[of.flow].erase(found->second.key);
  band.count -= 1;
  band.bytes -= of.bytes;
  bytes_ -= of.bytes;
  waiting_.erase(found);
}

std::int64_t FlowControl::Cycle(Endpoints pool, TimeNs now) {
  last_ = now;
  if (pool.empty() != pool_is_empty_) {
    pool_is_empty_ = pool.empty();
    since_ = now;
  }
  const double saturation = Saturation(pool);
  const bool open = Opens(saturation);
  blocked_ = false;
  std::int64_t rank = 0;
  for (auto& [priority, band] : bands_) {
    blocked_ = saturation >= Ceiling(rank++, priority, saturation, open);
    if (blocked_) return -1;
    const std::int64_t picked = PickFrom(band);
    if (picked < 0) continue;
    const bool ended = waiting_.find(picked)->second.ended;
    Remove(picked);
    return ended ? -1 : picked;
  }
  return -1;
}

void FlowControl::Sweep(TimeNs now, std::vector<std::int64_t>& expired) {
  last_ = now;
  std::vector<std::int64_t> out;
  for (const auto& [number, waiting] : waiting_) {
    const FlowRequest& request = waiting.request;
    const TimeNs ttl = pool_is_empty_ ? settings_.no_endpoint_ttl : TtlOf(request);
    const bool over = ttl > 0 && now >= std::max(request.arrival, since_) + ttl;
    if (over && !waiting.ended) expired.push_back(number);
    if (over || waiting.ended) out.push_back(number);
  }
  for (const std::int64_t number : out) Remove(number);
}

void FlowControl::End(std::int64_t request) {
  const auto found = waiting_.find(request);
  if (found != waiting_.end()) found->second.ended = true;
}

}  // namespace servecast::epp
