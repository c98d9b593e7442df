#include "serving/replica/batch_scheduler.h"

#include <algorithm>

namespace servecast {

JobIndex SchedulerState::Add(const Job& job) {
  JobIndex index = static_cast<JobIndex>(jobs_.size());
  if (free_.empty()) {
    jobs_.push_back(job);
  } else {
    index = free_.back();
    free_.pop_back();
    this->job(index) = job;
  }
  queue_.push_back(index);
  ++waiting_;
  return index;
}

bool SchedulerState::HasHead() {
  while (!queue_.empty() && job(queue_.front()).gone) {
    free_.push_back(queue_.front());
    queue_.pop_front();
  }
  return !queue_.empty();
}

void SchedulerState::PopHead() {
  queue_.pop_front();
  --waiting_;
}

void SchedulerState::LeaveQueue(JobIndex index) {
  job(index).gone = true;
  --waiting_;
}

void SchedulerState::End(JobIndex index) {
  used_ -= job(index).blocks;
  stored_ -= job(index).stored;
  --admitted_;
  free_.push_back(index);
}

std::pair<std::int64_t, std::int64_t> SchedulerState::Withhold(JobIndex index) {
  const Job& held = job(index);
  --admitted_;
  withheld_ += held.blocks;
  free_.push_back(index);
  return {held.blocks, held.stored};
}

void SchedulerState::GiveBack(std::int64_t blocks, std::int64_t tokens) {
  used_ -= blocks;
  stored_ -= tokens;
  withheld_ -= blocks;
}

void SchedulerState::JoinArrived(std::int64_t most) {
  const auto count = std::min<std::size_t>(arrived.size(), static_cast<std::size_t>(most));
  const auto end = arrived.begin() + static_cast<std::ptrdiff_t>(count);
  parked.insert(parked.end(), arrived.begin(), end);
  arrived.erase(arrived.begin(), end);
}

void SchedulerState::Restart(JobIndex index) {
  Job& j = job(index);
  restarted.push_back({index, j.prefilled()});
  j.prompt = limits_.as_vidur ? j.processed : std::max(j.prompt, j.processed);
  j.processed = 0;
  used_ -= j.blocks;
  stored_ -= j.stored;
  j.blocks = j.stored = 0;
  --admitted_;
  queue_.push_front(index);
  ++waiting_;
}

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

void SortParked(SchedulerState& state) {
  const auto earlier = [&](JobIndex a, JobIndex b) {
    return state.job(a).arrival < state.job(b).arrival;
  };
  std::vector<JobIndex>& parked = state.parked;
  if (std::is_sorted(parked.begin(), parked.end(), earlier)) return;
  std::stable_sort(parked.begin(), parked.end(), earlier);
}

DecodeForecast ForecastBehind(SchedulerState& state, BlockedBy blocked) {
  DecodeForecast forecast;
  if (state.HasHead()) {
    if (blocked == BlockedBy::kNothing) return forecast;
    forecast.closed = true;
    forecast.blocked = blocked;
  } else if (state.admitted() >= state.limits().max_num_seqs) {
    forecast.closed = true;
    forecast.comers_blocked = BlockedBy::kSeats;
  }
  forecast.most = INT64_MAX;
  return forecast;
}

}  // namespace servecast
