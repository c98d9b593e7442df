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
  if (policy == "longest_prefix") FormLongestPrefix();
  if (policy == "orca") FormReserving(false);
  if (policy == "faster_transformer") FormReserving(true);
  if (policy == "lightllm") FormLightLlm();
  if (Caches()) RegisterBatch();
}

// ---- The queue -----------------------------------------------------------------------------

void ScheduledRules::Enqueue(ScheduledJob* job) { Put(job, false); }

void ScheduledRules::Put(ScheduledJob* job, bool in_front) {
  auto place = in_front ? queue.begin() : queue.end();
  if (!in_order_of_enqueue) {
    place = std::find_if(queue.begin(), queue.end(), [job](const ScheduledJob* other) {
      return job->queue_key < other->queue_key;
    });
  }
  queue.insert(place, job);
}

// ---- Blocks --------------------------------------------------------------------------------

void ScheduledRules::Release(ScheduledJob* job) {
  pool_.Release(job->blocks);
  job->registered = 0;
}

// The longest beginning of what it has to compute, but for its last token.
std::vector<BlockId> ScheduledRules::LookUp(const ScheduledJob& job) const {
  std::vector<BlockId> found;
  const std::int64_t most = Caches() ? (job.target - 1) / block_size : 0;
  for (std::int64_t index = 0; index < most; ++index) {
    const std::optional<BlockId> block =
        pool_.Find(ContentOf(requests_, static_cast<RequestId>(job.row), index, block_size));
    if (!block) break;
    found.push_back(*block);
  }
  return found;
}

std::int64_t ScheduledRules::Uncached(const ScheduledJob& job) const {
  return job.target - static_cast<std::int64_t>(LookUp(job).size()) * block_size;
}

// What a batch computes can be found from the next one on.
void ScheduledRules::RegisterBatch() {
  for (const ScheduledMember& member : batch) {
    ScheduledJob& job = *member.job;
    const std::int64_t full = (job.computed + member.tokens) / block_size;
    for (; job.registered < full; ++job.registered) {
      pool_.Register(
          job.blocks[static_cast<std::size_t>(job.registered)],
          ContentOf(requests_, static_cast<RequestId>(job.row), job.registered, block_size));
    }
  }
}

std::int64_t ScheduledRules::Admitted() const {
  return std::count_if(all.begin(), all.end(),
                       [](const ScheduledJob* job) { return !job->blocks.empty() && !job->over; });
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
  std::int64_t needed = BlocksFor(job.target) + watermark;
  for (const BlockId block : LookUp(job)) needed -= pool_.Held(block) ? 1 : 0;
  return Free() >= needed;
}

void ScheduledRules::Restart(ScheduledJob* job) {
  restarted.emplace_back(job, job->in_prefill());
  job->target = job->prompt + job->made;
  job->computed = 0;
  job->begun = false;
  Release(job);
  Put(job, true);
}

// A block for the next token of a decode, from the last of the parked if need be.
bool ScheduledRules::BlockForDecode(ScheduledJob* job) {
  const std::int64_t wanted = BlocksFor(job->computed + 1);
  const auto held = static_cast<std::int64_t>(job->blocks.size());
  while (wanted > held && Free() < 1) {
    if (parked.empty()) {
      ++self_restarts;
      Restart(job);
      return false;
    }
    ScheduledJob* victim = parked.back();
    parked.pop_back();
    Restart(victim);
  }
  pool_.Take(std::max<std::int64_t>(wanted - held, 0), job->blocks);
  return true;
}

void ScheduledRules::Admit(ScheduledJob* job, std::int64_t of_blocks, std::int64_t most_tokens) {
  queue.erase(std::find(queue.begin(), queue.end(), job));
  for (const BlockId block : LookUp(*job)) pool_.Share(block, job->blocks);
  job->found = job->registered = static_cast<std::int64_t>(job->blocks.size());
  pool_.Take(of_blocks - job->found, job->blocks);
  if (job->remote) {
    sent_for.push_back(job);
  } else {
    job->computed = job->found * block_size;
    batch.push_back({job, std::min(most_tokens, job->target - job->computed)});
  }
}

void ScheduledRules::ParkArrived(std::size_t most) {
  for (; most > 0 && !come.empty(); --most) {
    parked.push_back(come.front());
    come.pop_front();
  }
}

void ScheduledRules::SortParked() {
  std::stable_sort(parked.begin(), parked.end(), [](const ScheduledJob* a, const ScheduledJob* b) {
    return std::pair(a->priority, a->arrival) < std::pair(b->priority, b->arrival);
  });
}

void ScheduledRules::FormVllmV0() {
  std::int64_t longest = 0;
  while (!queue.empty()) {
    const ScheduledJob& head = *queue.front();
    const std::int64_t padded = std::max(longest, Uncached(head));
    const auto members = static_cast<std::int64_t>(batch.size()) + 1;
    const bool too_many = !head.remote && members * padded > max_num_batched_tokens;
    blocked = NoSeat(head)        ? BlockedBy::kSeats
              : too_many          ? BlockedBy::kTokenBudget
              : !PromptFits(head) ? BlockedBy::kKvBlocks
                                  : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) break;
    if (!head.remote) longest = padded;
    Admit(queue.front(), BlocksFor(head.target), head.target);
  }
  if (batch.empty()) DecodeParked();
}

void ScheduledRules::DecodeParked() {
  SortParked();
  while (!parked.empty() && static_cast<std::int64_t>(batch.size()) < MembersAllowed()) {
    ScheduledJob* job = parked.front();
    parked.pop_front();
    if (BlockForDecode(job)) batch.push_back({job, 1});
  }
}

// Of the tests alone: whose prompt has most in the prefix cache, of several the first in the queue.
void ScheduledRules::FormLongestPrefix() {
  while (!queue.empty()) {
    ScheduledJob* next = queue.front();
    for (ScheduledJob* job : queue) {
      if (LookUp(*job).size() > LookUp(*next).size()) next = job;
    }
    const std::int64_t room = max_num_batched_tokens - TokensInBatch();
    blocked = NoSeat(*next)                             ? BlockedBy::kSeats
              : !next->remote && Uncached(*next) > room ? BlockedBy::kTokenBudget
              : !PromptFits(*next)                      ? BlockedBy::kKvBlocks
                                                        : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) break;
    if (next != queue.front()) ++from_the_middle;
    Admit(next, BlocksFor(next->target), room);
  }
  if (batch.empty()) DecodeParked();
}

void ScheduledRules::FormSarathi() {
  if (victim_by_priority) SortParked();
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
  SortParked();
  while (!queue.empty()) {
    const ScheduledJob& head = *queue.front();
    const std::int64_t room = max_num_batched_tokens - TokensInBatch();
    blocked = NoSeat(head)                ? BlockedBy::kSeats
              : !head.remote && room <= 0 ? BlockedBy::kTokenBudget
              : !PromptFits(head)         ? BlockedBy::kKvBlocks
                                          : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) return;
    if (!head.remote && room < Uncached(head)) ++chunked;
    Admit(queue.front(), BlocksFor(head.target), room);
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
    Admit(queue.front(), reserved, head.target);
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
  for (const ScheduledJob* job : all) {
    if (job->over) elsewhere += static_cast<std::int64_t>(job->blocks.size());
  }
  while (looks && !queue.empty()) {
    const ScheduledJob& head = *queue.front();
    std::vector<const ScheduledJob*> together = {&head};
    for (const ScheduledJob* job : all) {
      if (!job->blocks.empty() && !job->over) together.push_back(job);
    }
    const std::int64_t tokens = TokensInBatch() + head.target;
    blocked = NoSeat(head)                                      ? BlockedBy::kSeats
              : !head.remote && tokens > max_num_batched_tokens ? BlockedBy::kTokenBudget
              : FuturePeak(together) >= blocks - elsewhere      ? BlockedBy::kKvBlocks
                                                                : BlockedBy::kNothing;
    if (blocked != BlockedBy::kNothing) break;
    Admit(queue.front(), head.target, head.target);
  }
  if (!batch.empty() || parked.empty()) return;
  ++decodes_since_look_;
  for (ScheduledJob* job : parked) {
    const auto held = static_cast<std::int64_t>(job->blocks.size());
    pool_.Take(std::max<std::int64_t>(job->computed + 1 - held, 0), job->blocks);
    batch.push_back({job, 1});
  }
  parked.clear();
}

}  // namespace servecast::testing
