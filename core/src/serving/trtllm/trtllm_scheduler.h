// TensorRT-LLM's executor: its waiting queue, and one active list (trtllm_rank.h) or, with
// attention data parallelism, one for each rank.
//
// Ranks run in lock step (rules 65 to 72): a step is of all ranks and lasts as long as the slowest,
// so it runs only once every rank has something in it. New requests are dealt out as one pass
// begins; a rank without work computes a dummy's token. enable_balance holds prompts back until all
// ranks have some, so that no rank computes a prompt while the others wait for it.
//
// Worked example, two ranks with one request each, of which that of rank 1 ends:
//   step 7  rank 0: decodes A   rank 1: decodes B, its last token
//   step 8  rank 0: decodes A   rank 1: decodes a dummy (rule 66)
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "serving/trtllm/trtllm_rank.h"

namespace servecast {

class TrtllmScheduler final : public Scheduler {
 public:
  explicit TrtllmScheduler(Machine& machine);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId request, TimeNs time) override;

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override;
  void EndsMember(Step& step) override;
  void EndRun(std::int64_t steps) override;

  std::int64_t running() const override { return Sum(&TrtllmRank::running); }
  std::int64_t waiting() const override { return InQueue() + Sum(&TrtllmRank::unstarted); }
  bool HasRequests() const override { return InQueue() > 0 || Sum(&TrtllmRank::active) > 0; }
  bool MayStall() const override { return in_step_; }
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  const PrefixCacheReport& prefix_cache() override;
  std::int64_t walked() const override { return Sum(&TrtllmRank::walked); }
  void Observe(StepRecord& record) const override;
  void ObserveAfter(StepRecord& record) const override;

 private:
  // What waits for others: beside its scheduler, of a rank.
  struct Waits {
    std::int64_t late = 0, held = 0;  // passes in a row without, or with, prompts everywhere
    bool own = false;                 // the pass had members for it, before dummies of rule 68
    Step kept;                        // see TrtllmRank::Keep
  };

  std::int64_t Sum(std::int64_t (TrtllmRank::*figure)() const) const;
  bool ByPriority() const { return options_.waiting_queue == TrtllmQueue::kPriority; }
  std::int64_t InQueue() const {
    return static_cast<std::int64_t>(ByPriority() ? by_priority_.size() : queue_.size());
  }
  RequestId TakeNext();
  // Rule 1: with nobody in a list, what comes is not kept waiting by a step in flight.
  void Watch() { SetFormsBetween(overlap_ && !HasRequests()); }
  void TellMachine();
  void HearMachine();

  void Activate();
  void Deal(std::vector<RequestId> requests, std::int64_t active);
  void Balance();
  bool AllRun();
  void SetBlocked(StepPlan& plan) const;
  void Fill(StepPlan& plan);
  void ApplyKept(std::size_t rank);

  Machine& machine_;
  const ReplicaInput in_;
  const TrtllmSpec options_;
  const bool overlap_, in_step_;  // several ranks
  // The waiting queue: first come, first served; or by the highest priority, then the same.
  std::deque<RequestId> queue_;
  std::set<std::tuple<std::int64_t, std::int64_t, RequestId>> by_priority_;
  std::int64_t entries_ = 0;  // so far
  std::vector<std::unique_ptr<TrtllmRank>> ranks_;
  std::vector<Waits> waits_;
  std::int64_t expected_ = 0;           // requests of a rank, rule 65
  bool stays_out_ = false;              // the latest pass did not run
  std::int64_t idle_ = 0;               // passes in a row in which nothing happened
  std::vector<TrtllmLateOutput> late_;  // for an observer
  PrefixCacheReport cached_;
};

}  // namespace servecast
