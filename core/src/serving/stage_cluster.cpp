#include "serving/stage_cluster.h"

#include <algorithm>
#include <utility>

namespace servecast {

StageCluster::StageCluster(StageClusterSetup setup, std::vector<Job> jobs,
                           StageClusterObserver* observer)
    : setup_(std::move(setup)), jobs_(std::move(jobs)), times_(jobs_.size()), observer_(observer) {
  replicas_.reserve(static_cast<std::size_t>(setup_.replicas));
  for (std::int64_t i = 0; i < setup_.replicas; ++i) {
    replicas_.push_back({FormerState(setup_.limits, jobs_), setup_.scheduler->make(),
                         std::vector<Stage>(static_cast<std::size_t>(setup_.limits.stages)), 0});
    replicas_.back().state.cuts_partial_prompts = setup_.cuts_partial_prompts;
  }
}

std::int64_t StageCluster::restarts() const {
  std::int64_t sum = 0;
  for (const Replica& replica : replicas_) sum += replica.state.restarts;
  return sum;
}

bool StageCluster::Advance(std::int64_t max_batches) {
  const std::int64_t last = formed_ + std::min(max_batches, INT64_MAX - formed_);
  while (formed_ < last) {
    const bool arrives = next_arrival_ < jobs_.size();
    if (!arrives && heap_.empty()) return true;
    // Arrivals were all made before anything else.
    if (arrives && (heap_.empty() || jobs_[next_arrival_].arrival <= heap_.front().time)) {
      Arrive();
    } else {
      Handle(Pop());
    }
  }
  return false;
}

void StageCluster::Push(Kind kind, std::int32_t replica, std::int32_t stage, std::int32_t batch,
                        double time) {
  heap_.push_back({time, made_++, kind, replica, stage, batch});
  std::push_heap(heap_.begin(), heap_.end(),
                 [](const Event& a, const Event& b) { return b.Before(a); });
}

StageCluster::Event StageCluster::Pop() {
  std::pop_heap(heap_.begin(), heap_.end(),
                [](const Event& a, const Event& b) { return b.Before(a); });
  const Event event = heap_.back();
  heap_.pop_back();
  return event;
}

void StageCluster::Handle(const Event& event) {
  now_ = event.time;
  switch (event.kind) {
    case Kind::kRoute:
      return Route();
    case Kind::kSchedule:
      return Schedule(event.replica);
    case Kind::kStageArrival:
      replicas_[static_cast<std::size_t>(event.replica)]
          .stages[static_cast<std::size_t>(event.stage)]
          .queue.push_back(event.batch);
      return Push(Kind::kStageSchedule, event.replica, event.stage, -1, now_);
    case Kind::kStageSchedule:
      return StartStage(event.replica, event.stage);
    case Kind::kStageEnd:
      return EndStage(event);
    case Kind::kEnd:
      return EndBatch(event);
  }
}

void StageCluster::Arrive() {
  now_ = jobs_[next_arrival_].arrival;
  unrouted_.push_back(static_cast<JobIndex>(next_arrival_++));
  Push(Kind::kRoute, 0, 0, -1, now_);
}

// The first of several arrivals at one time routes them all.
void StageCluster::Route() {
  std::vector<std::int32_t> touched;
  for (const JobIndex index : unrouted_) {
    const std::int32_t replica = Choose();
    times_[static_cast<std::size_t>(index)].replica = replica;
    replicas_[static_cast<std::size_t>(replica)].state.waiting.push_back(index);
    touched.push_back(replica);
  }
  unrouted_.clear();
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  for (const std::int32_t replica : touched) Push(Kind::kSchedule, replica, 0, -1, now_);
}

std::int32_t StageCluster::Choose() {
  if (setup_.router == VidurRouter::kRoundRobin) {
    return static_cast<std::int32_t>(routed_++ % setup_.replicas);
  }
  std::size_t best = 0;  // the lowest of equals
  for (std::size_t i = 1; i < replicas_.size(); ++i) {
    if (replicas_[i].state.waiting.size() < replicas_[best].state.waiting.size()) best = i;
  }
  return static_cast<std::int32_t>(best);
}

std::int32_t StageCluster::NewBatch() {
  if (free_batches_.empty()) {
    batch_pool_.emplace_back();
    batch_time_.push_back(0);
    return static_cast<std::int32_t>(batch_pool_.size() - 1);
  }
  const std::int32_t id = free_batches_.back();
  free_batches_.pop_back();
  return id;
}

void StageCluster::Schedule(std::int32_t replica) {
  Replica& r = replicas_[static_cast<std::size_t>(replica)];
  formed_ids_.clear();
  while (r.in_flight < setup_.limits.stages) {
    const std::int32_t id = NewBatch();
    Batch& batch = batch_pool_[static_cast<std::size_t>(id)];
    batch.clear();
    r.former->Form(r.state, batch);
    if (batch.empty()) {
      free_batches_.push_back(id);
      break;
    }
    ++r.in_flight;
    ++formed_;
    for (const BatchMember& member : batch) {
      JobTimes& times = times_[static_cast<std::size_t>(member.job)];
      if (times.scheduled < 0) times.scheduled = now_;
    }
    formed_ids_.push_back(id);
  }
  for (const std::int32_t id : formed_ids_) Push(Kind::kStageArrival, replica, 0, id, now_);
  if (observer_ == nullptr || formed_ids_.empty()) return;
  formed_now_.clear();
  for (const std::int32_t id : formed_ids_) {
    formed_now_.push_back(&batch_pool_[static_cast<std::size_t>(id)]);
  }
  observer_->Scheduled(replica, now_, formed_now_, r.state.used());
}

double StageCluster::StageTime(const Batch& batch, std::int64_t stage) {
  BatchShape shape;
  chunks_.clear();
  for (const BatchMember& member : batch) {
    const Job& job = jobs_[static_cast<std::size_t>(member.job)];
    if (job.prefilled()) {
      ++shape.decode_seqs;
      shape.decode_context_tokens += job.processed;
    } else {
      chunks_.push_back(
          {member.tokens, job.processed, job.prompt, job.processed + member.tokens == job.prompt});
    }
  }
  shape.prefill = chunks_;
  return setup_.times->Time(shape, stage);
}

void StageCluster::StartStage(std::int32_t replica, std::int32_t stage) {
  Stage& s = replicas_[static_cast<std::size_t>(replica)].stages[static_cast<std::size_t>(stage)];
  if (s.busy || s.queue.empty()) return;
  const std::int32_t id = s.queue.front();
  s.queue.pop_front();
  s.busy = true;
  const Batch& batch = batch_pool_[static_cast<std::size_t>(id)];
  const double time = StageTime(batch, stage);
  batch_time_[static_cast<std::size_t>(id)] = time;
  for (const BatchMember& member : batch) {
    JobTimes& times = times_[static_cast<std::size_t>(member.job)];
    if (times.stage_end > 0) times.preempted += now_ - times.stage_end;
  }
  Push(Kind::kStageEnd, replica, stage, id, now_ + time);
}

void StageCluster::EndStage(const Event& event) {
  replicas_[static_cast<std::size_t>(event.replica)]
      .stages[static_cast<std::size_t>(event.stage)]
      .busy = false;
  const double time = batch_time_[static_cast<std::size_t>(event.batch)];
  for (const BatchMember& member : batch_pool_[static_cast<std::size_t>(event.batch)]) {
    JobTimes& times = times_[static_cast<std::size_t>(member.job)];
    times.stage_end = now_;
    times.execution += time;
  }
  Push(Kind::kStageSchedule, event.replica, event.stage, -1, now_);
  const bool last = event.stage + 1 == setup_.limits.stages;
  Push(last ? Kind::kEnd : Kind::kStageArrival, event.replica, last ? 0 : event.stage + 1,
       event.batch, now_);
}

void StageCluster::EndBatch(const Event& event) {
  Replica& r = replicas_[static_cast<std::size_t>(event.replica)];
  --r.in_flight;
  for (const BatchMember& member : batch_pool_[static_cast<std::size_t>(event.batch)]) {
    Job& job = jobs_[static_cast<std::size_t>(member.job)];
    JobTimes& times = times_[static_cast<std::size_t>(member.job)];
    job.processed += member.tokens;
    if (job.processed == job.prompt) {
      ++job.processed;
      if (times.prefill_end < 0) times.prefill_end = now_;
    }
    if (job.completed()) {
      times.completed = now_;
      ++completed_;
      r.state.Free(member.job);
    } else {
      r.state.parked.push_back(member.job);
    }
  }
  free_batches_.push_back(event.batch);
  Push(Kind::kSchedule, event.replica, 0, -1, now_);
}

}  // namespace servecast
