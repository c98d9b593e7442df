// The rules of TensorRT-LLM's scheduler (PyTorch backend, main of summer 2026; docs/model.md,
// "TensorRT-LLM").
//
// A pass goes through the active list, which requests enter in order of arrival and keep their
// place in until they end, paused or not. A capacity scheduler says for whom there are KV blocks:
// for all that a request may become (guaranteed_no_evict), or for its next step, pausing the last
// of the list for it (max_utilization). A micro-batch scheduler then gives tokens: one to each that
// generates, the rest to prompts, whole or in chunks.
//
// With the overlap scheduler a batch is formed while the one before computes. What a pass decided
// becomes true of its requests (`pending_`) only once the outputs of the batch before are handled:
// so a paused request still gets the token that is in flight.
//
// Requests that generate are sums (decode_group.h): a step of unchanged members costs nothing a
// member, and many in a row are one run of the machine. Blocks are mere numbers where no request
// can find anything of another; else they are kept one by one (block_tree.h).
//
// "Rule" is one of the README of TensorRT-LLM's golden traces.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "base/base.h"
#include "base/indexed_heap.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/replica.h"
#include "serving/replica/scheduler.h"
#include "serving/trtllm/block_tree.h"

namespace servecast {

class TrtllmScheduler final : public Scheduler {
 public:
  explicit TrtllmScheduler(Replica& replica);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId request, TimeNs time) override;

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override;
  void EndsMember(Step& step) override;
  void EndRun(std::int64_t steps) override;

  std::int64_t running() const override { return active_ - unstarted_; }
  std::int64_t waiting() const override { return InQueue() + unstarted_; }
  bool HasRequests() const override { return active_ > 0 || InQueue() > 0; }
  bool MayStall() const override { return false; }
  TimeNs QuietUntil() override { return replica_.ready(); }
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  const PrefixCacheReport& prefix_cache() override;
  std::int64_t walked() const override { return walked_ + (tree_ ? tree_->walked() : 0); }
  void Observe(StepRecord& record) const override;
  void ObserveAfter(StepRecord& record) const override;

 private:
  using JobId = std::int32_t;  // its seat, from its activation to its end
  enum class State : std::uint8_t {
    kContext,
    kGeneration,
    kLast,  // its last token is in flight: no step has it any more
  };

  struct Job {
    RequestId request = kNoRequest;
    std::int64_t life = 0;   // of the seat: what was noted of a former one no longer holds
    std::int64_t order = 0;  // in the active list
    State state = State::kContext;
    bool admitted = false;  // it has blocks
    bool decodes = false;   // it is in the sums
    bool paused = false;    // by the pass that is pending
    bool begins = false;    // it was in no step since it was admitted
    MemberKind kind = MemberKind::kNew;

    std::int64_t first = 0;   // its prompt's length
    std::int64_t prompt = 0;  // the same with what a pause made prompt (P)
    std::int64_t limit = 0;   // of its output, which the scheduler knows: P - first + M
    std::int64_t end = 0;     // tokens that it makes in all
    std::int64_t kv = 0;      // tokens that have a slot (S); of one in the sums: see Kv
    std::int64_t pos = 0, chunk = 0, reusable = 0;
    std::int64_t in_step = 0;  // the latest launched step that it was in before the sums

    std::int64_t out = 0;                     // tokens that it had made as it was paused
    std::int64_t ahead = 0, joined_with = 0;  // in the sums
    std::int64_t member = 0;                  // of a pass that listed who generates

    TimeNs began = 0;       // its latest first chunk
    TimeNs token = -1;      // its latest token, or that will be, outside of the sums
    TimeNs last_step = -1;  // the end of the latest that was no decode
    TimeNs interference_before = 0;

    std::int64_t left() const { return prompt - pos; }
  };

  // What a pass decides.
  struct Pass {
    std::vector<JobId> go;        // let through, in order; with `listed` those that generate, too
    bool listed = false;          // else all that generate are let through, before `go`
    std::int64_t fitting = 0;     // let through, in all
    std::vector<JobId> paused;    // in order
    std::vector<JobId> contexts;  // of the batch, in its order
    std::int64_t members = 0;     // of the batch, that generate
    bool refused = false;         // for lack of blocks, and nobody behind was looked at

    void Clear() {
      go.clear();
      paused.clear();
      contexts.clear();
      listed = refused = false;
      fitting = members = 0;
    }
  };

  // What is to be done as a step's outputs are there.
  struct Output {
    JobId job = -1;
    std::int64_t life = 0;
    bool ends_prompt = false;
    bool last = false;     // it ends
    TimeNs previous = -1;  // token
  };
  struct Outputs {
    std::vector<Output> contexts;
    std::vector<Output> first;  // the first of theirs in the sums
    std::vector<Output> last;   // in the sums, that end

    void Clear() {
      contexts.clear();
      first.clear();
      last.clear();
    }
  };

  Job& At(JobId id) { return jobs_[static_cast<std::size_t>(id)]; }
  const Job& At(JobId id) const { return jobs_[static_cast<std::size_t>(id)]; }
  Outputs& OutputsOf(const Step& step) { return outputs_[step.place]; }
  bool IsNow(const Output& output) const { return At(output.job).life == output.life; }
  bool ByPriority() const { return options_.waiting_queue == TrtllmQueue::kPriority; }
  std::int64_t InQueue() const {
    return static_cast<std::int64_t>(ByPriority() ? by_priority_.size() : queue_.size());
  }

  std::int64_t Kv(const Job& job) const {
    return job.decodes ? job.ahead + decodes_.step() : job.kv;
  }
  // Whether a token of its is in flight. REQUIRES: it generates, and no step was formed since.
  bool Pending(const Job& job) const {
    return replica_.in_flight() > 0 && (job.decodes || job.in_step == launched_);
  }
  // Tokens that it made, or will have from what is launched.
  std::int64_t Made(const Job& job) const {
    return job.state == State::kContext ? job.prompt - job.first : Kv(job) - job.first + 1;
  }

  // ---- Blocks ----
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, size_); }
  std::int64_t Free() const { return tree_ ? tree_->free() : free_; }
  void TellMachine();
  void HearMachine() {
    if (!tree_) free_ = replica_.kv().free();
  }
  BlockTree::Found Look(const Job& job);
  void Release(JobId id, std::int64_t computed);
  // Rule 1: with nobody in the list, what comes is not kept waiting by a step in flight.
  void Watch() { SetFormsBetween(overlap_ && !HasRequests()); }
  void CatchUp();
  void DropBeyondRoom(std::vector<BlockTree::Admission>& news);
  void GrowMembers(std::int64_t step);

  // ---- The active list ----
  void Insert(std::vector<JobId>& list, JobId id);
  void Erase(std::vector<JobId>& list, JobId id);
  void Activate();
  void Settle();
  void BecomeContext(Job& job);
  void EndPrompt(JobId id);

  // ---- Capacity (trtllm_capacity.cpp) ----
  void Capacity();
  void Guaranteed();
  void MaxUtilization();
  bool StartedFit();
  bool PauseOne(std::size_t cursor, std::size_t& end, std::int64_t& free);
  bool IsTwin(const Job& job, const BlockTree::Found& found);
  std::int64_t Rest(Job& job, const BlockTree::Found& found) const;
  std::int64_t StepNeed(Job& job, const BlockTree::Found& found) const;
  bool PrefixAware() const { return tree_ && options_.enable_prefix_aware_scheduling; }

  // ---- Micro-batch (trtllm_batch.cpp) ----
  void Batch();
  void ListAll();
  bool Chunked() const { return in_.engine.enable_chunked_prefill; }
  void SetChunks(std::int64_t used);
  void FirstComeChunks(std::int64_t room);
  void EqualChunks(std::int64_t room);
  void WaitForFuller();
  void LastChunksLast();
  void SetMembers();

  // ---- The step (trtllm_steps.cpp) ----
  void Pause(JobId id);
  void LeaveGenerating(JobId id);
  void Take();
  void Fill(StepPlan& plan);
  void FillDecodes(StepPlan& plan);
  void Begin(Job& job);
  void CountDelay(StepPlan& plan, TimeNs ready, std::int64_t requests);
  void Join(JobId id);
  void Leave(JobId id);
  std::size_t DueAt(const Job& job) const;
  void CountInterference(Job& job);
  void EndDecodes(Outputs& outputs);
  void LaunchContexts(const Step& step, Outputs& outputs);
  void LaunchDecodes(Step& step, Outputs& outputs);
  void Deliver(Outputs& outputs, Step& step);
  void End(JobId id);
  void FinishOne(JobId id, Step& step);
  TimeNs LastToken(const Job& job) const;

  Replica& replica_;
  const ReplicaInput in_;
  const TrtllmSpec options_;
  const std::int64_t size_;  // tokens of a block
  const bool overlap_;       // a batch is formed while one computes
  std::optional<BlockTree> tree_;
  std::int64_t free_;  // blocks; without a tree

  std::vector<Job> jobs_;  // by seat
  std::vector<JobId> seats_;
  // The waiting queue: first come, first served; or by the highest priority, then the same.
  std::deque<RequestId> queue_;
  std::set<std::tuple<std::int64_t, std::int64_t, RequestId>> by_priority_;
  // The active list, by state, each in its order.
  std::vector<JobId> contexts_, generating_;
  std::int64_t active_ = 0;
  std::int64_t unstarted_ = 0;                  // of contexts_, those that are not admitted
  std::int64_t activations_ = 0, entries_ = 0;  // so far
  std::vector<std::pair<RequestId, TimeNs>> activated_;

  Pass pass_;
  bool pending_ = false;  // what it decided is not true of its requests yet
  bool stuck_ = false;    // a pass like the last one would admit nobody, until somebody has ended
  std::vector<RequestId> unshown_;             // paused by passes without a batch
  std::unordered_set<std::uint64_t> coming_;   // rule 22
  std::vector<JobId> walk_, members_, ended_;  // scratch
  std::vector<BlockTree::Admission> news_;     // likewise
  std::int64_t pass_number_ = 0;
  std::int64_t taken_ = 0;   // by those that a pass let through: blocks
  std::int64_t waited_ = 0;  // rule 59
  std::int64_t walked_ = 0;  // of the active list, by capacity schedulers

  // What is in the sums, and what generates besides: newcomers, who wait for the token budget, and
  // whose last token is in flight.
  DecodeSums decodes_;
  std::vector<JobId> apart_;
  std::vector<std::vector<JobId>> due_;  // by the step (modulo a block) that takes a block: members
  std::int64_t grown_ = 0;               // decode steps whose blocks the tree has given
  std::int64_t reserved_ = 0;  // blocks of all that generates, once they have made all they may
  IndexedHeap finishes_;
  std::vector<Output> newcomers_;  // joined for this step
  std::int64_t ending_ = 0;        // whose last token is launched
  std::int64_t wasted_ = 0;        // of them, members of this batch
  std::int64_t launched_ = 0;      // steps
  struct Times {
    TimeNs decoded = 0;       // end of the latest step with decodes
    TimeNs interference = 0;  // by which prefills made decodes wait, so far
  };
  Times times_;

  std::vector<Outputs> outputs_;  // by a step's place
  PrefixCacheReport cached_;
};

}  // namespace servecast
