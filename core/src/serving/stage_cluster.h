// Replicas of pipeline stages behind a router, in the three levels of Vidur: the router gives each
// request to a replica; the replica's scheduler forms batches, as many in flight as there are
// stages; each stage works on one batch at a time, first come, first served.
//
// Events of one time are handled in the order in which they were made, arrivals first. All replicas
// that one routing touches form their batches in order of their number.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "serving/batch.h"
#include "serving/batch_former.h"

namespace servecast {

// Time of a batch in a stage, in the clock's unit; sending it on included. Pure.
class StageTimes {
 public:
  virtual ~StageTimes() = default;
  virtual double Time(const BatchShape& shape, std::int64_t stage) const = 0;
};

// Of a job, in the clock's unit; -1: not yet.
struct JobTimes {
  std::int32_t replica = -1;
  double scheduled = -1, prefill_end = -1, completed = -1;
  double stage_end = 0;                 // the last one's
  double preempted = 0, execution = 0;  // between stages, and in them
};

enum class VidurRouter { kRoundRobin, kLeastWaiting };

struct StageClusterSetup {
  std::int64_t replicas = 1;
  FormerLimits limits;
  const FormerEntry* scheduler = nullptr;
  VidurRouter router = VidurRouter::kRoundRobin;
  bool cuts_partial_prompts = false;  // FormerState
  const StageTimes* times = nullptr;
};

// What a test sees: after a replica's schedule, with all batches that it formed.
class StageClusterObserver {
 public:
  virtual ~StageClusterObserver() = default;
  virtual void Scheduled(std::int64_t replica, double time, std::span<const Batch* const> batches,
                         std::int64_t used_blocks) = 0;
};

class StageCluster {
 public:
  // Requires: jobs in order of arrival.
  StageCluster(StageClusterSetup setup, std::vector<Job> jobs,
               StageClusterObserver* observer = nullptr);

  // Runs until `max_batches` more are formed; true when nothing is left to happen.
  bool Advance(std::int64_t max_batches);

  double now() const { return now_; }
  std::int64_t completed() const { return completed_; }
  std::int64_t batches() const { return formed_; }
  std::int64_t restarts() const;
  std::span<const Job> jobs() const { return jobs_; }
  std::span<const JobTimes> times() const { return times_; }

 private:
  enum class Kind : std::uint8_t {
    kRoute,
    kSchedule,
    kStageArrival,
    kStageSchedule,
    kStageEnd,
    kEnd
  };
  struct Event {
    double time = 0;
    std::int64_t made = 0;
    Kind kind = Kind::kRoute;
    std::int32_t replica = 0, stage = 0, batch = -1;
    bool Before(const Event& other) const {
      return time != other.time ? time < other.time : made < other.made;
    }
  };
  struct Stage {
    std::deque<std::int32_t> queue;
    bool busy = false;
  };
  struct Replica {
    FormerState state;
    std::unique_ptr<BatchFormer> former;
    std::vector<Stage> stages;
    std::int64_t in_flight = 0;
  };

  void Push(Kind kind, std::int32_t replica, std::int32_t stage, std::int32_t batch, double time);
  Event Pop();
  void Handle(const Event& event);
  void Arrive();
  void Route();
  std::int32_t Choose();
  void Schedule(std::int32_t replica);
  void StartStage(std::int32_t replica, std::int32_t stage);
  void EndStage(const Event& event);
  void EndBatch(const Event& event);
  double StageTime(const Batch& batch, std::int64_t stage);
  std::int32_t NewBatch();

  StageClusterSetup setup_;
  std::vector<Job> jobs_;
  std::vector<JobTimes> times_;
  StageClusterObserver* observer_;
  std::vector<Replica> replicas_;
  std::vector<Event> heap_;
  std::vector<Batch> batch_pool_;
  std::vector<double> batch_time_;  // of the stage that it is in
  std::vector<std::int32_t> free_batches_;
  std::vector<JobIndex> unrouted_;
  std::vector<const Batch*> formed_now_;
  std::vector<std::int32_t> formed_ids_;
  std::vector<PrefillChunk> chunks_;
  std::size_t next_arrival_ = 0;
  std::int64_t made_ = 0, formed_ = 0, completed_ = 0, routed_ = 0;
  double now_ = 0;
};

}  // namespace servecast
