#include "testing/scheduled_reference_rules.h"

#include <algorithm>

namespace servecast::testing {

void ScheduledRules::Form() {
  batch.clear();
  sent_for.clear();
  restarted.clear();
  blocked = BlockedBy::kNothing;
  if (policy != "faster_transformer") ParkArrived(come.size());
  if (policy == "vllm_v0") FormVllmV0();
  if (policy == "sarathi") FormSarathi();
  if (policy == "orca") FormReserving(false);
  if (policy == "faster_transformer") FormReserving(true);
  if (policy == "lightllm") FormLightLlm();
}

std::int64_t ScheduledRules::Used() const {
  std::int64_t used = 0;
  for (const ScheduledJob* job : all) used += job->blocks;
  return used;
}

std::int64_t ScheduledRules::Admitted() const {
  return std::count_if(all.begin(), all.end(),
                       [](const ScheduledJob* job) { return job->blocks > 0 && !job->over; });
}

std::int64_t ScheduledRules::TokensInBatch() const {
  std::int64_t tokens = 0;
  for (const ScheduledMember& member : batch) tokens += member.tokens;
  return tokens;
}

// Whose prefill is elsewhere needs none in the batch.
bool ScheduledRules::NoSeat(const ScheduledJob& job) const {
  if (Admitted() >= max_num_seqs) return true;
  return !job.remote && static_cast<std::int64_t>(batch.size()) >= MembersAllowed();
}

bool ScheduledRules::PromptFits(const ScheduledJob& job) const {
  const std::int64_t watermark = Admitted() > 0 ? watermark_blocks : 0;
  return Free() >= BlocksFor(job.target) + watermark;
}

void ScheduledRules::Restart(ScheduledJob* job) {
  restarted.emplace_back(job, job->in_prefill());
  job->target = job->prompt + job->made;
  job->computed = 0;
  job->blocks = 0;
  queue.push_front(job);
}

// A block for the next token of a decode, from the last of the parked if need be.
bool ScheduledRules::BlockForDecode(ScheduledJob* job) {
  const std::int64_t wanted = BlocksFor(job->computed + 1);
  while (wanted > job->blocks && Free() < 1) {
    if (parked.empty()) {
      ++self_restarts;
      Restart(job);
      return false;
    }
    ScheduledJob* victim = parked.back();
    parked.pop_back();
    Restart(victim);
  }
  job->blocks = std::max(job->blocks, wanted);
  return true;
}

void ScheduledRules::AdmitHead(std::int64_t of_blocks, std::int64_t tokens) {
  ScheduledJob* job = queue.front();
  queue.pop_front();
  job->blocks = of_blocks;
  if (job->remote) {
    sent_for.push_back(job);
  } else {
    batch.push_back({job, tokens});
  }
}

void ScheduledRules::ParkArrived(std::size_t most) {
  for (; most > 0 && !come.empty(); --most) {
    parked.push_back(come.front());
    come.pop_front();
  }
}

void ScheduledRules::ParkedByArrival() {
  std::stable_sort(parked.begin(), parked.end(), [](const ScheduledJob* a, const ScheduledJob* b) {
    return a->arrival < b->arrival;
  });
}

void ScheduledRules::FormVllmV0() {
  std::int64_t longest = 0;
  while (!queue.empty()) {
    const ScheduledJob& head = *queue.front();
    const std::int64_t padded = std::max(longest, head.target);
    const auto members = static_cast<std::int64_t>(batch.size()) + 1;
    const bool too_many = !head.remote && members * padded > max_num_batched_tokens;
    blocked = NoSeat(head)        ? BlockedBy::kSeats
              : too_many          ? BlockedBy::kTokenBudget
              : !PromptFits(head) ? BlockedBy::kKvBlocks
                                  : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) break;
    if (!head.remote) longest = padded;
    AdmitHead(BlocksFor(head.target), head.target);
  }
  if (!batch.empty()) return;
  ParkedByArrival();
  while (!parked.empty() && static_cast<std::int64_t>(batch.size()) < MembersAllowed()) {
    ScheduledJob* job = parked.front();
    parked.pop_front();
    if (BlockForDecode(job)) batch.push_back({job, 1});
  }
}

void ScheduledRules::FormSarathi() {
  std::deque<ScheduledJob*> begun, kept;
  while (!parked.empty() && static_cast<std::int64_t>(batch.size()) < MembersAllowed()) {
    ScheduledJob* job = parked.front();
    parked.pop_front();
    if (job->in_prefill()) {
      begun.push_back(job);
    } else if (BlockForDecode(job)) {
      batch.push_back({job, 1});
    }
  }
  for (ScheduledJob* job : begun) {
    const std::int64_t room = max_num_batched_tokens - TokensInBatch();
    const std::int64_t chunk = std::min(room, job->target - job->computed);
    if (chunk > 0) {
      batch.push_back({job, chunk});
    } else {
      kept.push_back(job);
    }
  }
  parked.insert(parked.begin(), kept.begin(), kept.end());
  ParkedByArrival();
  while (!queue.empty()) {
    const ScheduledJob& head = *queue.front();
    const std::int64_t room = max_num_batched_tokens - TokensInBatch();
    blocked = NoSeat(head)                ? BlockedBy::kSeats
              : !head.remote && room <= 0 ? BlockedBy::kTokenBudget
              : !PromptFits(head)         ? BlockedBy::kKvBlocks
                                          : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) return;
    if (!head.remote && room < head.target) ++chunked;
    AdmitHead(BlocksFor(head.target), std::min(room, head.target));
  }
}

// orca, faster_transformer. KV travels for the next fixed batch while one runs.
void ScheduledRules::FormReserving(bool fixed) {
  const bool joins = !fixed || parked.empty();
  if (fixed && joins) ParkArrived(static_cast<std::size_t>(MembersAllowed()));
  while (!parked.empty() && static_cast<std::int64_t>(batch.size()) < MembersAllowed()) {
    batch.push_back({parked.front(), 1});
    parked.pop_front();
  }
  while (!queue.empty()) {
    const ScheduledJob& head = *queue.front();
    const std::int64_t reserved = BlocksFor(max_model_len);
    blocked = NoSeat(head) || (!joins && !head.remote) ? BlockedBy::kSeats
              : Free() < reserved                      ? BlockedBy::kKvBlocks
                                                       : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) return;
    AdmitHead(reserved, head.target);
  }
}

// The most tokens that these will hold at once, if each makes all that is declared: at the moment
// when the one with the n-th most to go ends, all before it have grown as much.
std::int64_t ScheduledRules::FuturePeak(const std::vector<const ScheduledJob*>& jobs) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> needs;  // (to go, now)
  std::int64_t unknown = 0;  // of those that begin to grow when their KV comes: at any time
  for (const ScheduledJob* job : jobs) {
    if (job->remote) {
      unknown += job->prompt + job->most - 1;
    } else if (job->computed == 0) {
      needs.emplace_back(job->most - job->made - 2, job->prompt + job->made + 1);
    } else {
      needs.emplace_back(std::max<std::int64_t>(0, job->most - job->made - 1),
                         job->prompt + job->made);
    }
  }
  std::stable_sort(needs.begin(), needs.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::int64_t peak = 0;
  for (std::size_t n = 1; n <= needs.size(); ++n) {
    std::int64_t then = 0;
    for (std::size_t i = 0; i < n; ++i) then += needs[i].second + needs[n - 1].first;
    peak = std::max(peak, then);
  }
  return peak + unknown;
}

void ScheduledRules::FormLightLlm() {
  const bool looks = parked.empty() || decodes_since_look_ >= 10;
  if (looks && !parked.empty()) decodes_since_look_ = 0;
  std::int64_t elsewhere = 0;  // tokens of those that are not served here any more
  for (const ScheduledJob* job : all) elsewhere += job->over ? job->blocks : 0;
  while (looks && !queue.empty()) {
    const ScheduledJob& head = *queue.front();
    std::vector<const ScheduledJob*> together = {&head};
    for (const ScheduledJob* job : all) {
      if (job->blocks > 0 && !job->over) together.push_back(job);
    }
    const std::int64_t tokens = TokensInBatch() + head.target;
    blocked = NoSeat(head)                                      ? BlockedBy::kSeats
              : !head.remote && tokens > max_num_batched_tokens ? BlockedBy::kTokenBudget
              : FuturePeak(together) >= blocks - elsewhere      ? BlockedBy::kKvBlocks
                                                                : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) break;
    AdmitHead(head.target, head.target);
  }
  if (!batch.empty() || parked.empty()) return;
  ++decodes_since_look_;
  for (ScheduledJob* job : parked) {
    job->blocks = std::max(job->blocks, job->computed + 1);
    batch.push_back({job, 1});
  }
  parked.clear();
}

}  // namespace servecast::testing
