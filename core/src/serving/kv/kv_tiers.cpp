// See kv_tiers.h.
#include "serving/kv/kv_tiers.h"

#include <algorithm>
#include <cmath>

#include "serving/policy.h"

namespace servecast {
namespace {

constexpr TimeNs kThrashing = kNsPerMs;  // content loaded so soon again was evicted in vain

}  // namespace

std::vector<KvTier> KvTiersOf(const KvOffloadSpec& spec, double block_bytes, std::int64_t gpus) {
  std::vector<KvTier> tiers;
  const auto add = [&](double gib, double latency_us, double bandwidth_gb_s) {
    const double blocks =
        gib * (1024.0 * 1024.0 * 1024.0) / (block_bytes * static_cast<double>(gpus));
    tiers.push_back({static_cast<std::int64_t>(std::min(blocks, 1e15)), latency_us * 1e3,
                     block_bytes / bandwidth_gb_s});
  };
  if (!spec.On()) return tiers;
  add(spec.cpu_gib, spec.cpu_latency_us, spec.cpu_bandwidth_gb_s);
  add(spec.disk_gib, spec.disk_latency_us, spec.disk_bandwidth_gb_s);
  return tiers;
}

KvTiers::KvTiers(std::vector<KvTier> tiers) : tiers_(std::move(tiers)), lists_(tiers_.size()) {
  report_.on = true;
  for (std::size_t i = 0; i < tiers_.size(); ++i) report_.tiers[i].blocks = tiers_[i].blocks;
}

// The run of a segment with the greatest first block before `block`; end(): none.
KvTiers::Index::const_iterator KvTiers::LastBefore(std::int32_t segment, std::int64_t block) const {
  auto at = index_.lower_bound({segment, block});
  if (at == index_.begin()) return index_.end();
  --at;
  return at->first.first == segment ? at : index_.end();
}

void KvTiers::Offload(std::int32_t segment, std::int64_t first, std::int64_t last, TimeNs now) {
  report_.offloaded_blocks += last - first;
  while (first < last) {
    // Block by block: what a tier has already leaves it just before it comes anew, so that it is
    // perhaps pushed out by the blocks behind it.
    const auto old = LastBefore(segment, last);
    std::int64_t from = first;
    if (old != index_.end()) {
      const Run& run = At(old->second);
      const std::int64_t end = run.first + run.count;
      if (end >= last) {
        Cut(old->second, last - 1, last);
        from = last - 1;
      } else {
        from = std::max(first, end);
      }
    }
    Push(0, segment, from, last, now, now);
    Trim(0, now);
    last = from;
  }
}

std::int64_t KvTiers::FoundUpTo(std::int32_t segment, std::int64_t first, std::int64_t last) const {
  auto at = LastBefore(segment, first + 1);
  for (; at != index_.end() && at->first.first == segment && first < last; ++at) {
    const Run& run = runs_[static_cast<std::size_t>(at->second)];
    if (run.first > first || run.first + run.count <= first) break;
    first = std::min(last, run.first + run.count);
  }
  return first;
}

void KvTiers::Load(std::int32_t segment, std::int64_t first, std::int64_t last, TimeNs now,
                   Loaded& loaded) {
  while (first < last) {
    const RunId id = LastBefore(segment, first + 1)->second;
    const Run& run = At(id);
    const std::int64_t end = std::min(last, run.first + run.count);
    loaded[run.tier] += end - first;
    report_.tiers[run.tier].loaded_blocks += end - first;
    if (now - run.since < kThrashing) report_.thrashed_blocks += end - first;
    Cut(id, first, end);
    first = end;
  }
}

TimeNs KvTiers::TransferTime(const Loaded& loaded) const {
  TimeNs time = 0;
  for (std::size_t i = 0; i < tiers_.size(); ++i) {
    if (loaded[i] == 0) continue;
    const double ns = tiers_[i].base_ns + static_cast<double>(loaded[i]) * tiers_[i].block_ns;
    time += static_cast<TimeNs>(std::nearbyint(std::min(ns, static_cast<double>(kMaxStepNs))));
  }
  return std::min(time, kMaxStepNs);
}

// To the end of a tier, as a part of the run there if it goes on where this one ends.
void KvTiers::Push(std::size_t tier, std::int32_t segment, std::int64_t first, std::int64_t last,
                   TimeNs since, TimeNs now) {
  List& list = lists_[tier];
  list.used += last - first;
  const auto goes_on = [&](RunId id, std::int64_t end, TimeNs end_since) {
    if (id == kNone || At(id).segment != segment || At(id).first != end) return false;
    // When content came does not matter any more once it is older than that.
    return At(id).since == end_since ||
           (now - At(id).since >= kThrashing && now - end_since >= kThrashing);
  };
  RunId back = list.back;
  if (goes_on(back, last, since)) {
    index_.erase({segment, last});
    At(back).first = first;
    At(back).count += last - first;
    index_[{segment, first}] = back;
  } else {
    back = NewRun({segment, first, last - first, tier, since, list.back, kNone});
    (list.back == kNone ? list.front : At(list.back).behind) = back;
    list.back = back;
  }
  // The two runs ahead of it may have grown old enough to be one.
  const RunId one = At(back).ahead;
  if (one == kNone) return;
  const RunId other = At(one).ahead;
  if (At(one).segment != segment || !goes_on(other, At(one).first + At(one).count, At(one).since)) {
    return;
  }
  const Run joined = At(one);
  Unlink(one);
  index_.erase({segment, At(other).first});
  At(other).first = joined.first;
  At(other).count += joined.count;
  index_[{segment, joined.first}] = other;
}

// What is beyond a tier's capacity falls into the next one, or is lost.
void KvTiers::Trim(std::size_t tier, TimeNs now) {
  while (lists_[tier].used > tiers_[tier].blocks) {
    const RunId id = lists_[tier].front;
    const Run run = At(id);
    const std::int64_t last = run.first + run.count;
    const std::int64_t first = last - std::min(run.count, lists_[tier].used - tiers_[tier].blocks);
    Cut(id, first, last);
    if (tier + 1 == tiers_.size()) continue;
    Push(tier + 1, run.segment, first, last, run.since, now);
    Trim(tier + 1, now);
  }
}

// Takes blocks [first, last) out of a run.
void KvTiers::Cut(RunId id, std::int64_t first, std::int64_t last) {
  const Run run = At(id);
  const std::int64_t end = run.first + run.count;
  lists_[run.tier].used -= last - first;
  if (last < end) {
    Run& low = At(id);  // the upper part stays where the run was, ahead of the lower one
    index_.erase({run.segment, run.first});
    low.first = last;
    low.count = end - last;
    index_[{run.segment, last}] = id;
    if (first == run.first) return;
    const RunId below =
        NewRun({run.segment, run.first, first - run.first, run.tier, run.since, id, run.behind});
    (run.behind == kNone ? lists_[run.tier].back : At(run.behind).ahead) = below;
    At(id).behind = below;
  } else if (first > run.first) {
    At(id).count = first - run.first;
  } else {
    Unlink(id);
  }
}

KvTiers::RunId KvTiers::NewRun(const Run& run) {
  RunId id = static_cast<RunId>(runs_.size());
  if (unused_.empty()) {
    runs_.push_back(run);
  } else {
    id = unused_.back();
    unused_.pop_back();
    At(id) = run;
  }
  index_[{run.segment, run.first}] = id;
  return id;
}

// Out of its tier's list and of the index.
void KvTiers::Unlink(RunId id) {
  const Run& run = At(id);
  List& list = lists_[run.tier];
  (run.ahead == kNone ? list.front : At(run.ahead).behind) = run.behind;
  (run.behind == kNone ? list.back : At(run.behind).ahead) = run.ahead;
  index_.erase({run.segment, run.first});
  unused_.push_back(id);
}

}  // namespace servecast
