#include "serving/batch/batch_scheduler.h"

#include <algorithm>
#include <utility>

#include "serving/replica/queue_policy.h"

namespace servecast {

SchedulerState::SchedulerState(const SchedulerLimits& limits, KvCache& kv,
                               const QueuePolicy& policy, const OfRequests& requests)
    : limits_(limits),
      kv_(kv),
      policy_(policy),
      victim_by_priority_(policy.victim_by_priority()),
      states_(requests.states),
      job_of_(requests.jobs),
      queue_(requests.states, policy.by_key()) {}

// ---- The queue -----------------------------------------------------------------------------

JobIndex SchedulerState::Add(const Job& job) {
  JobIndex index = static_cast<JobIndex>(jobs_.size());
  if (free_.empty()) {
    jobs_.push_back(job);
    holdings_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
    this->job(index) = job;
  }
  if (victim_by_priority_) this->job(index).priority = policy_.PriorityOf(job.request);
  job_of_[static_cast<std::size_t>(job.request)] = index;
  queue_.Push(policy_.KeyOf(job.request), job.arrival, job.request);
  return index;
}

std::span<const JobIndex> SchedulerState::Waiting() {
  queue_.List(listed_);
  waiting_.clear();
  for (const RequestId request : listed_) waiting_.push_back(IndexOf(request));
  return waiting_;
}

void SchedulerState::LeaveQueue(JobIndex index) {
  queue_.DropOne();
  free_.push_back(index);
}

void SchedulerState::Admit(JobIndex index, std::int64_t blocks) {
  Job& j = job(index);
  SERVECAST_CHECK(j.blocks == 0 && blocks > 0, "a request is admitted once");
  SERVECAST_CHECK(states_[static_cast<std::size_t>(j.request)] == RequestState::kQueued,
                  "I2: who is admitted waited");
  queue_.Remove(j.request);
  if (limits_.caches_prefixes) HoldCached(index);
  Take(index, blocks - j.blocks);
  ++admitted_;
  if (j.remote) under_way.push_back(index);
}

// What the prefix cache has of it. One whose KV comes from elsewhere is sent for the rest.
void SchedulerState::HoldCached(JobIndex index) {
  const std::int64_t blocks = LookUp(job(index)).blocks;
  if (blocks == 0) return;
  kv_.HoldHit(HoldingOf(index));
  Own(index, blocks);
  if (job(index).remote) return;
  job(index).processed = blocks * limits_.block_size;
  Store(index, job(index).processed);
}

// ---- Blocks --------------------------------------------------------------------------------

// Content counts from the moment when a batch computes it.
void SchedulerState::FreeBlocks(JobIndex index, bool findable) {
  Job& j = job(index);
  kv_.Release(HoldingOf(index), j.request, j.blocks, j.begun ? j.stored : 0, findable);
  held_ -= j.blocks;
  stored_ -= j.stored;
}

void SchedulerState::End(JobIndex index, bool findable) {
  FreeBlocks(index, findable);
  --admitted_;
  free_.push_back(index);
}

SchedulerState::Held SchedulerState::Withhold(JobIndex index) {
  const Job& held = job(index);
  --admitted_;
  withheld_ += held.blocks;
  free_.push_back(index);
  return {std::exchange(HoldingOf(index), {}), held.blocks, held.stored, held.begun};
}

void SchedulerState::Restart(JobIndex index) {
  Job& j = job(index);
  restarted.push_back({index, j.prefilled()});
  FreeBlocks(index, true);
  j.prompt = limits_.as_vidur ? j.processed : std::max(j.prompt, j.processed);
  j.processed = j.blocks = j.stored = 0;
  j.begun = false;
  --admitted_;
  states_[static_cast<std::size_t>(j.request)] = RequestState::kQueued;
  queue_.PushPreempted(policy_.KeyOf(j.request), j.arrival, j.request);
}

void SchedulerState::JoinArrived(std::int64_t most) {
  const auto count = std::min<std::size_t>(arrived.size(), static_cast<std::size_t>(most));
  const auto end = arrived.begin() + static_cast<std::ptrdiff_t>(count);
  parked.insert(parked.end(), arrived.begin(), end);
  arrived.erase(arrived.begin(), end);
}

// ---- What several schedulers do ----------------------------------------------------------

bool TakeDecodeBlock(SchedulerState& state, JobIndex index) {
  const bool needs = state.limits().as_vidur || state.Grows(state.job(index));
  while (needs && !state.Fits(1)) {
    if (state.parked.empty()) {
      state.Restart(index);
      return false;
    }
    const JobIndex victim = state.parked.back();
    state.parked.pop_back();
    state.Restart(victim);
  }
  state.Grow(index);
  return true;
}

// A victim comes from the tail, so the walk's end moves.
void DecodeParked(SchedulerState& state, Batch& batch) {
  SortParked(state);
  std::vector<JobIndex>& parked = state.parked;
  std::size_t at = 0;
  const auto drop_seen = [&] {
    parked.erase(parked.begin(), parked.begin() + static_cast<std::ptrdiff_t>(at));
    at = 0;
  };
  while (at < parked.size() &&
         static_cast<std::int64_t>(batch.size()) < state.limits().batch_limit()) {
    const JobIndex index = parked[at++];
    if (state.Fits(1)) {
      state.Grow(index);
    } else {
      drop_seen();  // what is in the batch is no victim
      if (!TakeDecodeBlock(state, index)) continue;
    }
    batch.push_back({index, 1});
  }
  drop_seen();
}

void SortParked(SchedulerState& state) {
  const auto earlier = [&](JobIndex a, JobIndex b) {
    const Job &x = state.job(a), &y = state.job(b);
    return x.priority != y.priority ? x.priority < y.priority : x.arrival < y.arrival;
  };
  std::vector<JobIndex>& parked = state.parked;
  if (std::is_sorted(parked.begin(), parked.end(), earlier)) return;
  std::stable_sort(parked.begin(), parked.end(), earlier);
}

DecodeForecast ForecastBehind(SchedulerState& state, BlockedBy blocked) {
  DecodeForecast forecast;
  if (state.HasHead()) {
    if (blocked == BlockedBy::kNothing) return forecast;
    forecast.closed = !state.queue_by_key() || state.admitted() >= state.limits().max_num_seqs;
    forecast.blocked = blocked;
  } else if (state.admitted() >= state.limits().max_num_seqs) {
    forecast.closed = true;
    forecast.comers_blocked = BlockedBy::kSeats;
  }
  forecast.most = INT64_MAX;
  return forecast;
}

}  // namespace servecast
