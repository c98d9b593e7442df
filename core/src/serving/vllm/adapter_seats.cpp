// See adapter_seats.h.
#include "serving/vllm/adapter_seats.h"

#include <algorithm>
#include <iterator>

namespace servecast {

void AdapterSeats::CountInGroup(std::int32_t lora, std::int64_t more) {
  if (lora == 0) return;
  members_ += more;
  const auto at = std::find_if(group_.begin(), group_.end(),
                               [lora](const OfAdapter& each) { return each.lora == lora; });
  if (at == group_.end()) return group_.push_back({lora, more});
  at->members += more;
  if (at->members == 0) group_.erase(at);
}

void AdapterSeats::BeginStep() {
  taken_.clear();
  for (const OfAdapter& each : group_) taken_.push_back(each.lora);
  seen_ = {};
}

void AdapterSeats::Add(RequestId request) {
  const std::int32_t lora = Of(request);
  if (lora == 0) return;
  const bool there = std::find(taken_.begin(), taken_.end(), lora) != taken_.end();
  if (!there) taken_.push_back(lora);
}

bool AdapterSeats::MaySeat(RequestId request) const {
  const std::int32_t lora = Of(request);
  if (!AllTaken() || lora == 0) return true;
  return std::find(taken_.begin(), taken_.end(), lora) != taken_.end();
}

const AdapterSeats::Place* AdapterSeats::Next() const {
  const auto behind = [this](const std::set<Place>& all) {
    const auto at = all.upper_bound(seen_);
    return at == all.end() ? nullptr : &*at;
  };
  if (!AllTaken()) return behind(aside_);
  const Place* first = nullptr;
  const auto look = [&](std::int32_t lora) {
    const auto at = static_cast<std::size_t>(lora);
    const Place* one = at < aside_of_.size() ? behind(aside_of_[at]) : nullptr;
    if (one != nullptr && (first == nullptr || *one < *first)) first = one;
  };
  look(0);
  for (const std::int32_t lora : taken_) look(lora);
  return first;
}

bool AdapterSeats::Take(RequestId request) {
  const auto at = place_of_.find(request);
  if (at == place_of_.end()) return false;
  seen_ = at->second;
  return Remove(request);
}

void AdapterSeats::SetAside(Place place) {
  if (place.order < 0) place.order = aside_.empty() ? 0 : std::prev(aside_.end())->order + 1;
  const auto lora = static_cast<std::size_t>(Of(place.request));
  if (aside_of_.size() <= lora) aside_of_.resize(lora + 1);
  aside_of_[lora].insert(place);
  aside_.insert(place);
  place_of_.emplace(place.request, place);
  seen_ = place;
}

bool AdapterSeats::Remove(RequestId request) {
  const auto at = place_of_.find(request);
  if (at == place_of_.end()) return false;
  aside_of_[static_cast<std::size_t>(Of(request))].erase(at->second);
  aside_.erase(at->second);
  place_of_.erase(at);
  return true;
}

}  // namespace servecast
