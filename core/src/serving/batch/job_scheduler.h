// The schedulers that form each batch anew (batch_scheduler.h), Vidur's, by rules without Vidur's
// faults or, for compat vidur, with them. Hides what such a scheduler does not know of its jobs:
// which requests they are, how long they become, where their time goes.
//
// Batches are formed one at a time, at a cost proportional to their members, but for runs of
// decodes: while all that are admitted decode, none ends, and the scheduler foresees that none can
// be admitted, batches are steps of one group (decode_group.h). So a run looks at its members as it
// begins and as it ends. An observer is shown every batch, so with one there are no runs; the
// result is the same.
//
// On a decode replica a request joins the queue as any other, and is admitted by the scheduler's
// own rules, for all its tokens, but needs no place in a batch and no tokens of one: then its KV
// sets out. Once that is there the scheduler takes it in as a decode, which computes the latest
// token that is known: the one that the prefill made, or the last of the prompt again when the
// decode side sends the first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "serving/batch/batch_scheduler.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/machine.h"
#include "serving/replica/scheduler.h"
#include "serving/replica/scheduler_setup.h"

namespace servecast {

class JobScheduler final : public Scheduler {
 public:
  explicit JobScheduler(Machine& machine);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId request, TimeNs time) override;
  void Freed(std::int64_t blocks, std::int64_t tokens) override { state_.GiveBack(blocks, tokens); }

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override;
  void FirstOfRun(const Step& step) override;
  void EndRun(std::int64_t steps) override;

  std::int64_t running() const override { return state_.admitted() - machine_.expected(); }
  std::int64_t waiting() const override { return state_.waiting(); }
  bool HasRequests() const override { return !state_.parked.empty() || machine_.waiting() > 0; }
  bool MayStall() const override { return setup_.limits.as_vidur; }
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  const PrefixCacheReport& prefix_cache() override;
  void Observe(StepRecord& record) const override;

 private:
  // Of a job, what its scheduler does not know.
  struct Seat {
    RequestId request = kNoRequest;  // kNoRequest: the job has ended
    std::int64_t total = 0;          // prompt and output
    TimeNs last_token = -1;          // its end; -1: none yet
    TimeNs last_step = -1;           // the end of its last one, or when its KV came; -1: none yet
    TimeNs admitted = 0;             // start of its first batch since it last waited
    bool in_flight = false, gave_up = false;
    bool fresh = false;  // its KV has arrived here, and no batch with it has ended since
    MemberKind kind = MemberKind::kNew;  // how it came into its latest batch
  };

  void CountRestarts(StepPlan& plan);
  void Fill(StepPlan& plan);
  MemberKind KindOf(const Job& job) const;
  void Begin(Seat& seat, TimeNs start);
  void CountHit(const Job& job, MemberKind kind);
  Machine::Withheld Withhold(JobIndex index, RequestId request);
  void CountRecompute(const Seat& seat, TimeNs end);
  void End(JobIndex index, Step& step);
  void Park(JobIndex index) {
    state_.parked.push_back(index);
    if (SeatOf(index).gave_up) GiveUpParked(index);
  }
  void GiveUpParked(JobIndex index);
  bool AllDecode(std::int64_t& least_left);
  void CountGap(const Step& step, TimeNs gap, std::int64_t tokens);
  void Leave(JobIndex index);
  void LeaveAdmitted(JobIndex index);

  // Prefill here, decode there.
  void AddRemote(RequestId request, Job& job, Seat& seat) const;
  void SendForKv(std::size_t first);
  void ResumeFresh();
  void LoseFresh(Seat& seat);

  Batch& MembersOf(const Step& step) { return members_[step.place]; }
  Seat& SeatOf(JobIndex index) { return seats_[static_cast<std::size_t>(index)]; }
  const Seat& SeatOf(JobIndex index) const { return seats_[static_cast<std::size_t>(index)]; }
  std::int32_t Generated(JobIndex index) const;

  Machine& machine_;
  const ReplicaInput in_;
  const SchedulerSetup& setup_;
  std::unique_ptr<BatchScheduler> rules_;
  std::vector<JobIndex>& job_of_;  // by request (ReplicaScratch)
  SchedulerState state_;
  std::vector<Seat> seats_;     // by job
  Batch batch_;                 // that is being formed
  std::vector<Batch> members_;  // by a step's place
  PrefixCacheReport cached_;

  struct Gap {
    TimeNs gap = 0;
    std::int64_t tokens = 0;
  };
  Gap gap_;             // of the members so far that had the same
  DecodeSums decodes_;  // of a decode run: the parked
};

}  // namespace servecast
