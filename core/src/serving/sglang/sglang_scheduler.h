// The rules of SGLang's scheduler (sgl-project/sglang v0.5.16; docs/model.md, "SGLang").
//
// A pass merges what was prefilled into the running batch, then tries a batch of prompts, and only
// if there is none makes a decode step of all that run. So prompts come first, and tokens wait for
// them, unless mixed chunks are on. Admission weighs an estimate of what the running requests will
// still need, by a ratio that falls with every decode step; when it was too low, requests are
// retracted and the ratio jumps. Once a request was refused for memory or seats, a flag keeps all
// waiting until one that runs has ended.
//
// With the overlap scheduler a batch is formed while the one before computes, so it knows the
// outputs only up to the batch before that: here, what is `launched` and what is applied of it.
//
// Requests that decode are sums (decode_group.h): a decode step of unchanged members costs nothing
// a member, and many in a row are one run of the machine. Memory is counted in the machine's KV
// blocks, one a page; what the radix cache keeps and nobody uses counts there as free.
//
// Images are encoded in the forward pass of the step that computes tokens of theirs, and cost
// admission nothing (image_embeddings.h; of no recorded run).
//
// "Rule" is one of the README of SGLang's golden traces. One is not followed: by rule 38 SGLang
// loses requests; here they go back to the queue.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "base/base.h"
#include "base/indexed_heap.h"
#include "serving/kv/radix_cache.h"
#include "serving/replica/decode_group.h"
#include "serving/replica/machine.h"
#include "serving/replica/scheduler.h"
#include "serving/sglang/image_embeddings.h"

namespace servecast {

class SglangScheduler final : public Scheduler {
 public:
  explicit SglangScheduler(Machine& machine);

  void Enqueue(RequestId request) override;
  bool GiveUp(RequestId request) override;
  void Arrive(RequestId request, TimeNs time) override;

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override;
  bool MakeRoomInRun(std::int64_t& spare) override;
  void EndsMember(Step& step) override;
  void EndRun(std::int64_t steps) override;

  std::int64_t running() const override { return in_.engine.max_num_seqs - seats_left(); }
  std::int64_t waiting() const override { return static_cast<std::int64_t>(waiting_.size()); }
  bool HasRequests() const override { return counts_.live > 0; }
  bool MayStall() const override { return false; }
  void WriteProgress(std::vector<std::int32_t>& generated) const override;
  const PrefixCacheReport& prefix_cache() override;
  std::int64_t walked() const override { return tree_.walked() + counts_.summed / 8; }
  std::int64_t image_hits() const override { return embeddings_.hits(); }
  void Observe(StepRecord& record) const override;
  void ObserveAfter(StepRecord& record) const override;

 private:
  using JobId = std::int32_t;
  static constexpr JobId kNoJob = -1;

  struct Job {
    RequestId request = kNoRequest;
    std::int64_t life = 0;  // what was noted of a former one no longer holds
    std::int64_t prompt = 0;
    std::int64_t max_new = 0;  // the limit that the scheduler knows
    std::int64_t limit = 0;    // the tokens that it makes
    std::int64_t priority = 0;
    std::int64_t entry = 0;  // when it came to the queue
    std::int64_t order = 0;  // in the running batch
    std::int32_t seat = -1;  // from its first step to its end, retraction or preemption
    bool done = false, decodes = false, begun = false;
    MemberKind kind = MemberKind::kNew;

    std::int64_t out = 0;     // applied tokens; of one that decodes: see Out
    std::int64_t kv = 0;      // tokens that have slots; of one that decodes: see Kv
    std::int64_t prefix = 0;  // of these, that need no computing
    std::int64_t owned = 0;   // of these, the tree's
    std::int64_t fill = 0;    // rule 36
    RadixCache::NodeId node = RadixCache::kRoot;
    std::int32_t awaited = -1;  // of the tree, while it waits

    std::int64_t ahead = 0;        // in the decodes
    std::int64_t joined_with = 0;  // kv
    std::int64_t joined_in = 0;    // a pass

    TimeNs admitted = 0;
    TimeNs token = -1, token_before = -1;  // the latest by a prefill, and the one before it
    TimeNs last_step = -1;                 // the end of the latest that was no decode
    TimeNs interference_before = 0;
    std::int64_t known() const { return prompt + out; }
  };

  // The queue: in the order of the last pass that made one, those who came since behind; or, where
  // what a policy goes by does not change while a job waits, by keys, of which the last is unique.
  class Waiting {
   public:
    using Keys = std::array<std::int64_t, 3>;  // the lowest is first
    struct Matched {                           // all in one node
      RadixCache::NodeId node;
      std::int64_t stamp;
      std::list<JobId> jobs;
    };
    explicit Waiting(bool by_keys) : by_keys_(by_keys) {}

    bool by_keys() const { return by_keys_; }
    std::size_t size() const { return heap_.size() + in_matched_ + listed_.size(); }
    bool empty() const { return size() == 0; }
    JobId front() const {
      if (in_matched_ > 0) return matched_.front().jobs.front();
      return by_keys_ ? heap_.front().second : listed_.front();
    }
    // O(1), by keys O(log n), as is Pop.
    void Push(JobId job, const Keys& keys) {
      if (!by_keys_) return listed_.push_back(job);
      heap_.emplace_back(keys, job);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
    void Pop() {
      if (in_matched_ > 0) {
        --in_matched_;
        matched_.front().jobs.pop_front();
        if (matched_.front().jobs.empty()) matched_.pop_front();
        return;
      }
      if (!by_keys_) return listed_.pop_front();
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
    }
    // Requires: not by keys.
    std::deque<JobId>& listed() { return listed_; }
    // Before those that are listed.
    std::deque<Matched>& matched() { return matched_; }
    void AllMatched() {
      in_matched_ += listed_.size();
      listed_.clear();
    }

   private:
    bool by_keys_;
    std::vector<std::pair<Keys, JobId>> heap_;
    std::deque<JobId> listed_;
    std::deque<Matched> matched_;
    std::size_t in_matched_ = 0;
  };

  // Of a batch, as it is formed.
  struct Extend {
    JobId job = kNoJob;
    std::int64_t tokens = 0;
    bool ends = false;  // its prompt
  };
  enum class Kind : std::uint8_t { kNone, kExtend, kDecode, kMixed };
  struct Batch {
    Kind kind = Kind::kNone;
    std::vector<Extend> extends;
    std::vector<JobId> decoding;  // of a mixed one
    JobId chunk = kNoJob;         // that ends in it unfinished

    void Clear() {
      kind = Kind::kNone;
      extends.clear();
      decoding.clear();
      chunk = kNoJob;
    }
  };

  // What is to be done as a step's outputs are there.
  struct Output {
    JobId job = kNoJob;
    std::int64_t life = 0;
    bool last = false;
    TimeNs previous = -1;  // token
  };
  struct Outputs {
    std::vector<Output> extends;  // that make a token
    std::vector<Output> first;    // the first decode of theirs
    std::vector<Output> last;     // decodes that end
  };

  enum class Verdict : std::uint8_t { kGo, kStop, kMemory };

  Job& At(JobId id) { return jobs_[static_cast<std::size_t>(id)]; }
  const Job& At(JobId id) const { return jobs_[static_cast<std::size_t>(id)]; }
  Outputs& OutputsOf(const Step& step) { return outputs_[step.place]; }
  bool IsNow(const Output& output) const { return At(output.job).life == output.life; }
  std::int64_t seats_left() const { return static_cast<std::int64_t>(seats_.free.size()); }

  // Of a request, with what is launched; as far as it is applied.
  std::int64_t Kv(const Job& job) const {
    return job.decodes ? job.ahead + decodes_.step() : job.kv;
  }
  bool Pending(const Job& job) const {
    return machine_.in_flight() > 0 && (last_decoded_ || job.joined_in == counts_.passes);
  }
  std::int64_t Out(const Job& job) const {
    return job.decodes ? Kv(job) - job.prompt + 1 - (Pending(job) ? 1 : 0) : job.out;
  }

  // ---- Memory, in tokens ----
  std::int64_t CeilToPages(std::int64_t tokens) const { return CeilDiv(tokens, page_) * page_; }
  std::int64_t WholePages(std::int64_t tokens) const { return tokens / page_ * page_; }
  std::int64_t Available() const { return free_ + tree_.evictable(); }
  void MakeRoom(std::int64_t tokens) {
    if (free_ < tokens && tree_.evictable() > 0) free_ += tree_.Evict(tokens);
  }
  void TellMachine();
  void HearMachine() { free_ = machine_.kv().free() * page_ - tree_.evictable(); }
  std::int64_t TreePriority(const Job& job) const {
    return options_.enable_priority_scheduling ? job.priority : 0;
  }
  void CacheUnfinished(Job& job, bool of_chunk);
  void Release(Job& job, bool keeps);
  void Retract(JobId id, std::int64_t others);

  // ---- A pass ----
  bool Schedule(StepPlan& plan);
  void Merge();
  void DropDone();
  bool DecodeStep(StepPlan& plan);
  void RetractSome(StepPlan& plan);
  void SortToKeep();
  bool DecodesFit();
  void TakeForDecodes();
  std::int64_t Kept() const;
  void Fill(StepPlan& plan);
  void FillDecodes(StepPlan& plan);
  void FillExtends(StepPlan& plan);
  std::int64_t Encoded(RequestId request, std::int64_t from, std::int64_t to);
  void Begin(Job& job);
  void CountHit(const Job& job);
  void EndIdle();
  void Recycle(JobId id);

  // ---- Outputs ----
  void Join(JobId id);
  void Leave(Job& job);
  void CountInterference(Job& job);
  void EndDecodes(Outputs& outputs);
  void LaunchExtends(const Step& step, Outputs& outputs);
  void LaunchDecodes(Step& step, Outputs& outputs);
  void ExtendDone(const Output& output, Step& step);
  void Finish(const Output& output, Step& step);
  TimeNs LastToken(const Job& job) const;
  double RatioAfter(std::int64_t decode_steps) const;

  // ---- Prefill (sglang_prefill.cpp) ----
  std::int64_t Urgency(const Job& job) const {
    return options_.schedule_low_priority_values_first ? -job.priority : job.priority;
  }
  std::int64_t Clip(std::int64_t tokens) const {
    return std::min(tokens, options_.clip_max_new_tokens);
  }
  double Left(const Job& job) const {
    return static_cast<double>(Clip(job.max_new - Out(job))) * ratio_;
  }
  bool mixes() const { return options_.enable_mixed_chunk && in_.engine.enable_chunked_prefill; }
  std::int64_t Room() const {
    return std::min(in_.engine.max_num_seqs - static_cast<std::int64_t>(running_.size()),
                    seats_left());
  }
  double TotalLeft();
  bool Reaches(std::int64_t tokens);
  double CurrentLeft() const { return static_cast<double>(Available() - budget_.current); }
  bool OrdersByTree() const {
    const SglangQueue policy = options_.schedule_policy;
    return in_.engine.enable_prefix_caching &&
           (policy == SglangQueue::kLpm || policy == SglangQueue::kDfsWeight);
  }
  bool OrdersByKeys() const {
    return !OrdersByTree() &&
           (options_.enable_priority_scheduling || options_.schedule_policy == SglangQueue::kLof);
  }
  void Wait(JobId id);
  void SortWaiting();
  void MatchWaiting(std::vector<JobId>& late);
  void SortByPrefix();
  void SortByTree();
  void StartBudget();
  void SumExactly();
  void Add(JobId id, std::int64_t end, std::int64_t charged, std::int64_t reserved);
  Verdict AfterAdding();
  std::int64_t NextOfChunked();
  bool ChunkedFits();
  void AddChunked();
  Verdict Test(JobId id);
  // Nobody else runs, or is in this batch.
  bool IsAlone() const {
    return running_.empty() && batch_.extends.empty() && machine_.in_flight() == 0;
  }
  Verdict TestPlain(JobId id);
  Verdict AddPlain(JobId id, std::int64_t total);
  Verdict TestIgnoringEos(JobId id);
  bool RunsOut(const Job& job);
  void AddState(const Job& job, std::size_t at);
  bool PreemptFor(const Job& job);
  bool Prefill(StepPlan& plan);
  void Admit();
  void TakePrefill();
  void MixIn();

  // What a prefill batch may still take (rule 12), and what was decided for it.
  struct Budget {
    // `total` may be off by less than `unsure`, and is added up exactly where that matters.
    double total = 0, unsure = 0;
    std::int64_t mixed = 0;
    std::vector<std::int64_t> added;  // to the total, so far
    std::int64_t current = 0, input = 0, chunk = 0;
    JobId new_chunk = kNoJob;
    std::vector<JobId> preempted;
    bool has_states = false;
    std::vector<std::pair<std::int64_t, std::int64_t>> states;  // rule 19
  };

  Machine& machine_;
  const ReplicaInput in_;
  const SglangSpec options_;
  const std::int64_t page_;
  RadixCache tree_;
  std::int64_t free_;

  std::vector<Job> jobs_;
  std::vector<JobId> unused_;
  struct Seats {
    std::vector<std::int32_t> free;
    std::vector<JobId> jobs;  // of each that is taken
  };
  Seats seats_;
  Waiting waiting_;
  std::vector<JobId> running_;
  struct Counts {
    std::int64_t live = 0;                             // requests
    std::int64_t entries = 0, orders = 0, passes = 0;  // so far
    std::int64_t summed = 0;                           // requests, one by one, so far
  };
  Counts counts_;
  struct Full {
    bool flag = false;  // rule 6
    BlockedBy reason = BlockedBy::kNothing;
  };
  Full full_;
  double ratio_;  // new_token_ratio
  JobId chunked_ = kNoJob;
  Batch batch_, last_;  // that is being formed; of the last pass
  bool last_decoded_ = false;

  // What decodes: as sums, and when each makes its last token.
  DecodeSums decodes_;
  std::int64_t goals_ = 0;         // sum over them of what max_new - Out + Kv will be
  std::int64_t joined_ = 0;        // in this pass
  bool loose_ = false;             // some request makes fewer tokens than it asks for, or than clip
  IndexedHeap finishes_;           // by seat
  std::vector<Output> newcomers_;  // since the last decode step
  std::int64_t ending_ = 0;        // whose last token is launched
  std::int64_t wasted_ = 0;        // of the batch: tokens that nobody needs
  struct Times {
    TimeNs decoded = 0, decoded_before = 0;  // ends of the latest decode steps
    TimeNs launched_until = 0;
    TimeNs interference = 0;  // by which prefills made decodes wait, so far
  };
  Times times_;
  std::int64_t run_began_ = -1;  // a step of decodes_; -1: the last batch was no run's

  Budget budget_;
  std::int64_t retracted_ = 0;

  std::vector<Outputs> outputs_;  // by a step's place
  PrefixCacheReport cached_;
  ImageEmbeddings embeddings_;
};

}  // namespace servecast
