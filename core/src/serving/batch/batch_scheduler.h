// A replica's scheduler that forms its batches anew at every iteration from what waits and what is
// between two iterations, as those of Vidur do (microsoft/vidur 7d47513; docs/model.md, "Other
// schedulers").
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/base.h"
#include "metrics/causes.h"
#include "serving/features.h"
#include "serving/kv/kv_cache.h"
#include "serving/replica/scheduler_entry.h"
#include "serving/replica/wait_queue.h"

namespace servecast {

class QueuePolicy;

// A request on a replica. The first output token comes from the prefill's last pass, so `processed`
// jumps from `prompt` to prompt + 1 when a prefill ends. A restart makes what was generated part of
// the prompt. When it ends, a scheduler does not know: only how long it may become.
struct Job {
  RequestId request = kNoRequest;
  TimeNs arrival = 0;
  double priority = 0;  // who yields: lower is more urgent; 0 where the last of the parked does
  // Once it is admitted `processed` has what the prefix cache had of it.
  std::int64_t prompt = 0, processed = 0;
  std::int64_t declared = 0;  // prompt and output at most, as its client says
  std::int64_t blocks = 0;    // of KV cache, with those that others hold, too; > 0 once admitted
  std::int64_t stored = 0;    // tokens whose KV is there, or on its way
  bool begun = false;         // it was in a batch since it was admitted
  // Prefilled on another replica: once admitted it is in no batch, but waits for its KV.
  bool remote = false;

  bool prefilled() const { return processed > prompt; }
  std::int64_t to_prefill() const { return prompt - processed; }  // of one that is not prefilled
};

using JobIndex = std::int32_t;

struct BatchMember {
  JobIndex job = -1;
  std::int64_t tokens = 0;
};
using Batch = std::vector<BatchMember>;

// The state of a replica between two batches: its jobs, its queue, its KV blocks.
class SchedulerState {
 public:
  // Of all requests, each on one replica at a time: what clients see of them, and its job.
  struct OfRequests {
    std::vector<RequestState>& states;
    std::vector<JobIndex>& jobs;
  };
  // Requires: all outlive it; `kv` has the limits' blocks, and caches prefixes if they say so.
  SchedulerState(const SchedulerLimits& limits, KvCache& kv, const QueuePolicy& policy,
                 const OfRequests& requests);

  Job& job(JobIndex index) { return jobs_[static_cast<std::size_t>(index)]; }
  const Job& job(JobIndex index) const { return jobs_[static_cast<std::size_t>(index)]; }
  const SchedulerLimits& limits() const { return limits_; }
  std::int64_t admitted() const { return admitted_; }  // requests that hold blocks
  std::int64_t withheld() const { return withheld_; }  // blocks of jobs that have ended
  // Room in held KV blocks that holds no token; Vidur's faults may store more than they take.
  std::int64_t unused() const { return held_ * limits_.block_size - stored_; }
  bool queue_by_key() const { return queue_.by_key(); }
  bool victim_by_priority() const { return victim_by_priority_; }

  bool Fits(std::int64_t blocks) const { return kv_.free() >= blocks; }
  // A new request's whole prompt, above the watermark, which the only request need not heed. What
  // the prefix cache has of it costs nothing if a request holds it.
  bool FitsPrompt(const Job& job) {
    const bool heeds = admitted_ > 0 || limits_.as_vidur;
    return Fits(PromptBlocks(job) - SharedBlocks(job) + (heeds ? limits_.watermark_blocks : 0));
  }
  std::int64_t PromptBlocks(const Job& job) const {
    return CeilDiv(job.prompt, limits_.block_size);
  }
  // What the prefix cache has of a waiting job's prompt, and what it would compute itself: at least
  // one token.
  std::int64_t CachedTokens(const Job& job) {
    return limits_.caches_prefixes ? LookUp(job).blocks * limits_.block_size : 0;
  }
  std::int64_t UncachedTokens(const Job& job) { return job.prompt - CachedTokens(job); }

  // The queue, in the order that the scenario chose; without a key one that restarts is its head.
  JobIndex Add(const Job& job);  // the index is valid until the job ends or leaves
  std::int64_t waiting() const { return queue_.size(); }
  bool HasHead() const { return queue_.size() > 0; }
  JobIndex Head() { return IndexOf(queue_.Head()); }  // requires: HasHead()
  // All that wait, the head first; valid until one comes or goes. O(all that wait).
  std::span<const JobIndex> Waiting();
  void LeaveQueue(JobIndex index);  // its client gave up

  // A waiting job, wherever it stands in the queue, takes `blocks` at once, of which it may find
  // some in the prefix cache.
  void Admit(JobIndex index, std::int64_t blocks);
  void AdmitPrompt(JobIndex index) { Admit(index, PromptBlocks(job(index))); }
  // Those that it found, of one that is in no batch yet.
  std::int64_t CachedBlocks(JobIndex index) { return HoldingOf(index).blocks; }
  void Take(JobIndex index, std::int64_t blocks) {
    Own(index, blocks);
    kv_.Take(blocks);
  }
  // A batch is formed: a member of it computes so many tokens, which the next one may find.
  void Compute(const BatchMember& member) {
    Job& j = job(member.job);
    SERVECAST_CHECK(j.blocks > 0 && member.tokens > 0, "I2: who computes was admitted");
    SERVECAST_CHECK(member.tokens <= (j.prefilled() ? 1 : j.to_prefill()),
                    "I6: no token is computed before the one before it");
    Store(member.job, member.tokens);
    const bool again = j.begun && j.prefilled();
    j.begun = true;
    if (!again && limits_.caches_prefixes) {
      kv_.Register(HoldingOf(member.job), j.request, j.stored);
    }
  }
  void Store(JobIndex index, std::int64_t tokens) {
    job(index).stored += tokens;
    stored_ += tokens;
  }
  // A decode run has made tokens, and taken the blocks for them if it takes any.
  void Ran(JobIndex index, std::int64_t tokens, bool takes_blocks) {
    Job& j = job(index);
    j.processed += tokens;
    Store(index, tokens);
    if (takes_blocks) Own(index, CeilDiv(j.processed - 1, limits_.block_size) - j.blocks);
  }
  // Whether the token that a decode computes has no room in its blocks.
  bool Grows(const Job& job) const { return job.processed > job.blocks * limits_.block_size; }
  void Grow(JobIndex index) {
    if (Grows(job(index))) Take(index, 1);
  }
  // An admitted job ends. `findable`: a later turn may ask for what it stored.
  void End(JobIndex index, bool findable);
  // The same, but for its blocks, which stay taken until they are given back.
  struct Held {
    KvCache::Holding holding;
    std::int64_t blocks = 0, tokens = 0;
    bool computed = false;  // the tokens were; else they were on their way
  };
  Held Withhold(JobIndex index);
  void GiveBack(std::int64_t blocks, std::int64_t tokens) {
    withheld_ -= blocks;
    held_ -= blocks;
    stored_ -= tokens;
  }
  // Recompute preemption: to its place in the queue, with what was made as part of the prompt.
  void Restart(JobIndex index);
  // Those whose KV is there, or the first of them, are parked with the others.
  void JoinArrived(std::int64_t most = INT64_MAX);

  std::vector<JobIndex> parked;  // admitted, in no batch
  // Admitted, and remote: their KV is to come; it is there, in that order, and none of them is
  // remote any more.
  std::vector<JobIndex> under_way, arrived;
  // Of the batch that is formed: why the head of the queue is not in it, and what was preempted.
  struct Restarted {
    JobIndex job = -1;
    bool prefilled = false;  // before it
  };
  BlockedBy blocked = BlockedBy::kNothing;
  std::vector<Restarted> restarted;

 private:
  JobIndex IndexOf(RequestId request) const { return job_of_[static_cast<std::size_t>(request)]; }
  KvCache::Holding& HoldingOf(JobIndex index) { return holdings_[static_cast<std::size_t>(index)]; }
  KvCache::Hit LookUp(const Job& job) { return kv_.LookUp(job.request, job.prompt); }
  // Of the prompt's blocks those that a request holds.
  std::int64_t SharedBlocks(const Job& job) {
    if (!limits_.caches_prefixes) return 0;
    const KvCache::Hit hit = LookUp(job);
    return hit.blocks - hit.idle;
  }
  void HoldCached(JobIndex index);
  void Own(JobIndex index, std::int64_t blocks) {
    job(index).blocks += blocks;
    held_ += blocks;
  }
  void FreeBlocks(JobIndex index, bool findable);

  SchedulerLimits limits_;
  KvCache& kv_;
  const QueuePolicy& policy_;
  bool victim_by_priority_;
  std::vector<RequestState>& states_;
  std::vector<JobIndex>& job_of_;  // by request
  WaitQueue queue_;
  std::vector<Job> jobs_;
  std::vector<KvCache::Holding> holdings_;  // by job
  std::vector<JobIndex> free_;
  std::vector<RequestId> listed_;  // scratch of Waiting
  std::vector<JobIndex> waiting_;
  // Of all jobs: that hold blocks; blocks of those that ended; all that are held, where several
  // hold one as often; tokens in them.
  std::int64_t admitted_ = 0, withheld_ = 0, held_ = 0, stored_ = 0;
};

// Batches of all parked decodes and nothing else, one after another, as long as none ends and,
// but for a `closed` queue, no request comes.
struct DecodeForecast {
  std::int64_t most = 0;  // batches; 0: the next one may be another
  bool grows = true;      // decodes take blocks as they need them
  bool closed = false;    // no request can be admitted, whatever comes
  // Why the head of the queue waits, and why one that comes to an empty queue would.
  BlockedBy blocked = BlockedBy::kNothing, comers_blocked = BlockedBy::kNothing;
};

class BatchScheduler {
 public:
  virtual ~BatchScheduler() = default;
  // Appends the next batch's members and takes their blocks; leaves `batch` empty when there is
  // nothing to run. Says in `state` why the head of the queue had to wait. Admits remote jobs in
  // their turn, and takes in those that have arrived.
  virtual void Form(SchedulerState& state, Batch& batch) = 0;
  // What Form would do next. Requires: one stage, all parked are decodes, there is one, none has
  // arrived. May sort them as Form would. {}: Form is asked for each batch, which is right, and
  // slow where it looks at all that wait.
  virtual DecodeForecast Forecast(SchedulerState& state) = 0;
  // So many of these batches were formed.
  virtual void Decoded(std::int64_t) {}
};

// How the rules of a policy are made. The page's first module runs none of them, and so leaves them
// out; it has what an entry says.
template <class Rules>
inline constexpr std::unique_ptr<BatchScheduler> (*kMakes)() =
#ifdef SERVECAST_FIRST_MODULE
    nullptr;
#else
    [] { return std::unique_ptr<BatchScheduler>(std::make_unique<Rules>()); };
#endif

// What all of these have, and why they lack the rest.
inline constexpr Features kBatchesHave = {Feature::kRoles, Feature::kTimeouts,   Feature::kOrders,
                                          Feature::kVidur, Feature::kPriorities, Feature::kStages};
inline constexpr Lack kBatchesLack[] = {
    {Feature::kVidur, "Vidur has none such"},
    {Feature::kDrafts, "it knows no drafts"},
    {Feature::kAdapters, "it knows no seats of adapters"},
    {Feature::kQueueCaps, "only vLLM's server has such caps"},
    {Feature::kStages, "it looks at all requests between two batches"},
    {Feature::kWholePrompts, "it always splits prompts"},
    {Feature::kTiers, "none of its batches waits for loads"},
    {Feature::kMoreStagesThanSeats, "each stage works on a batch of its own"},
    {Feature::kHostOverlap, "it is synchronous"},
    {Feature::kVictims, "it preempts no request"},
    {Feature::kPreemptionMean, "it keeps no average of preemptions"},
    {Feature::kKvGroups, "it counts one table of blocks a request"},
};

// What several of them do.

// Of a remote head of the queue, by whether the blocks that it would take are free.
inline BlockedBy RemoteBlockedBy(const SchedulerState& state, bool fits) {
  if (state.admitted() >= state.limits().max_num_seqs) return BlockedBy::kSeats;
  return fits ? BlockedBy::kNothing : BlockedBy::kKvBlocks;
}
// A decode's block, preempting from the tail of the parked until there is one. False: the request
// itself had to go.
bool TakeDecodeBlock(SchedulerState& state, JobIndex index);
// Decodes of the parked, in order of SortParked, as many as a batch has places.
void DecodeParked(SchedulerState& state, Batch& batch);
// Who yields is the last: by priority, if that says who is preempted, then arrival; equals keep
// their order.
void SortParked(SchedulerState& state);
// With the queue's head refused for `blocked`: none behind it can be admitted, nor one that comes,
// unless it may overtake the head to a seat. Without a head: none that comes, if all seats are
// taken.
DecodeForecast ForecastBehind(SchedulerState& state, BlockedBy blocked);

}  // namespace servecast
