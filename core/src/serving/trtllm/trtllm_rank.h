// The rules of TensorRT-LLM's scheduler (PyTorch backend, main of summer 2026; docs/model.md,
// "TensorRT-LLM") behind its waiting queue: an active list and its KV blocks. There is one, or with
// attention data parallelism one for each rank (trtllm_scheduler.h).
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
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/base.h"
#include "base/indexed_heap.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/machine.h"
#include "serving/replica/scheduler.h"
#include "serving/trtllm/block_tree.h"

namespace servecast {

class TrtllmRank {
 public:
  explicit TrtllmRank(Machine& machine);

  // ---- The active list ----
  void Enter(RequestId request);  // its last; there is a seat
  std::int64_t active() const { return active_ + Dummies(); }
  std::int64_t running() const { return active_ - unstarted_; }
  std::int64_t unstarted() const { return unstarted_; }
  // Of all in the list, as they came: what the router of ranks goes by (rule 65).
  std::int64_t prompt_tokens() const { return prompt_tokens_ + Dummies(); }

  // ---- A pass, in this order ----
  void Prepare();   // what the pass before decided becomes true
  void Schedule();  // rules 10 to 37
  std::int64_t contexts() const { return static_cast<std::int64_t>(pass_.contexts.size()); }
  std::int64_t dummies() const { return dummy_ == Dummy::kFlying ? 0 : Dummies(); }
  std::int64_t generating() const { return pass_.members + dummies(); }
  bool HasMembers() const { return contexts() > 0 || generating() > 0; }
  void LeaveOutContexts() { pass_.contexts.clear(); }
  void WaitForFuller();
  void AddDummy(bool to_batch);  // rules 66 and 68; without a free block there is none
  bool HasDummy() const { return dummy_ != Dummy::kNone; }
  void PauseVictims();
  void Take();     // it runs: its blocks
  void StayOut();  // it does not (rule 69)

  // The batch, for the machine. `shape`: of its decodes, with a dummy.
  void Fill(StepPlan& plan, BatchShape& shape);
  void ShowPaused(StepPlan& plan);
  bool lacks_blocks() const { return pass_.refused || !pass_.paused.empty(); }
  bool Paused() const { return !pass_.paused.empty(); }

  // ---- Its steps: see Scheduler ----
  void Launched(Step& step, bool has_prefills, TimeNs interference);
  void Apply(Step& step);
  // The outputs of the step in flight are applied after the next one is launched (rule 71).
  void Keep() { kept_ = 1; }
  bool Keeps() const { return kept_ > 0; }

  // Behind a queue of so many.
  const DecodeRun* BeginRun(DecodeRun& run, std::int64_t queued);
  void EndsMember(Step& step);
  void EndRun();

  std::int64_t free() const { return tree_ ? tree_->free() : free_; }
  void SetFree(std::int64_t blocks) {  // by the machine's runs of decodes
    if (!tree_) free_ = blocks;
  }
  void WriteProgress(std::vector<std::int32_t>& generated) const;
  const PrefixCacheReport& prefix_cache();
  std::int64_t walked() const { return walked_ + (tree_ ? tree_->walked() : 0); }
  void Observe(std::vector<StepMember>& members, TrtllmRankLevels& levels) const;

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
    bool begins = false;    // it was in no step since it was admitted
    MemberKind kind = MemberKind::kNew;

    std::int64_t first = 0;   // its prompt's length
    std::int64_t prompt = 0;  // the same with what a pause made prompt (P)
    std::int64_t limit = 0;   // of its output, which the scheduler knows: P - first + M
    std::int64_t end = 0;     // tokens that it makes in all
    std::int64_t kv = 0;      // tokens that have a slot (S); of one in the sums: see Kv
    std::int64_t pos = 0, chunk = 0, reusable = 0;

    std::int64_t out = 0;                     // tokens that it had made as it was paused
    std::int64_t ahead = 0, joined_with = 0;  // in the sums
    std::int64_t member = 0;                  // of a pass that listed who generates

    TimeNs began = 0;       // its latest first chunk
    TimeNs token = -1;      // its latest token, or that will be, outside of the sums
    TimeNs last_step = -1;  // the end of the latest, outside of the sums
    TimeNs interference_before = 0;

    std::int64_t left() const { return prompt - pos; }
  };

  // A request that nobody sent, so that a rank without any steps with the others (rules 66, 68 and
  // 70): one token of KV, and one more that it generates. It stands before all others of the list;
  // one that was put into a batch, behind all.
  enum class Dummy : std::uint8_t { kNone, kFirst, kLast, kFlying };
  std::int64_t Dummies() const { return dummy_ == Dummy::kNone ? 0 : 1; }
  void DropDummy();

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

  std::int64_t Kv(const Job& job) const {
    return job.decodes ? job.ahead + decodes_.step() : job.kv;
  }
  // Whether a token of its is in flight. REQUIRES: it generates, and no step was formed since.
  bool Pending(const Job& job) const {
    return InFlight() > 0 && (job.decodes || job.last_step == machine_.StartTime());
  }
  // Tokens that it made, or will have from what is launched.
  std::int64_t Made(const Job& job) const {
    return job.state == State::kContext ? job.prompt - job.first : Kv(job) - job.first + 1;
  }

  std::int64_t InFlight() const { return static_cast<std::int64_t>(machine_.in_flight()) + kept_; }

  // ---- Blocks ----
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, size_); }
  BlockTree::Found Look(const Job& job);
  void Release(JobId id, std::int64_t computed);
  void CatchUp();
  void DropBeyondRoom(std::vector<BlockTree::Admission>& news);
  void GrowMembers(std::int64_t step);

  // ---- The active list ----
  void Insert(std::vector<JobId>& list, JobId id);
  void Erase(std::vector<JobId>& list, JobId id);
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
  void LastChunksLast();
  void SetMembers();

  // ---- The step (trtllm_steps.cpp) ----
  void Pause(JobId id);
  void LeaveGenerating(JobId id);
  void TakeBlocks();
  void FillDecodes(StepPlan& plan, BatchShape& shape);
  void Begin(Job& job);
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

  Machine& machine_;
  const ReplicaInput in_;
  const TrtllmSpec options_;
  const std::int64_t size_;  // tokens of a block
  const bool overlap_;       // a batch is formed while one computes
  std::optional<BlockTree> tree_;
  std::int64_t free_;  // blocks; without a tree

  std::vector<Job> jobs_;  // by seat
  std::vector<JobId> seats_;
  // The active list, by state, each in its order.
  std::vector<JobId> contexts_, generating_;
  std::int64_t active_ = 0;
  std::int64_t unstarted_ = 0;      // of contexts_, those that are not admitted
  std::int64_t activations_ = 0;    // so far
  std::int64_t prompt_tokens_ = 0;  // of all of them, as they came
  Dummy dummy_ = Dummy::kNone;
  std::vector<std::pair<RequestId, TimeNs>> activated_;

  Pass pass_;
  bool pending_ = false;   // what it decided is not true of its requests yet
  bool runs_ = false;      // its batch is launched
  std::int64_t kept_ = 0;  // steps whose outputs wait beside those in flight
  bool stuck_ = false;     // a pass like the last one would admit nobody, until somebody has ended
  std::vector<RequestId> unshown_;             // paused by passes without a batch
  std::int64_t shown_ = 0;                     // and so many that the latest batch names
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
  struct Times {
    TimeNs decoded = 0;       // end of the latest step with decodes
    TimeNs interference = 0;  // by which prefills made decodes wait, so far
  };
  Times times_;

  std::vector<Outputs> outputs_;  // by a step's place
  PrefixCacheReport cached_;
};

}  // namespace servecast
