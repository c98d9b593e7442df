// What forms a replica's batches, by rules of its own.
//
// The replica (replica.h) asks its scheduler what the next step computes, and tells it what became
// of that. Calls are coarse, one a step or one for many steps of decodes, so they cost nothing
// beside the work that they ask for. What a scheduler may do with the replica is the machine's
// (machine.h), which checks it.
//
// vllm_scheduler.h has vLLM's rules. Schedulers that form each batch anew (batch_scheduler.h) are
// behind job_scheduler.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "serving/batch.h"
#include "serving/hooks.h"
#include "serving/policy.h"
#include "serving/replica/decode_group.h"

namespace servecast {

class Machine;

// What one of several ranks in lock step does in it.
struct RankPlan {
  BatchShape shape;        // but for its spans; a dummy is one of its decodes
  std::size_t chunks = 0;  // so many of StepPlan::chunks, behind those of the ranks before
  std::int64_t dummies = 0;
  std::int64_t running = 0, kv_blocks = 0, kv_unused = 0;  // see StepLevels
};

// What a scheduler decided for the next step.
struct StepPlan {
  BatchShape shape;  // but for its spans
  std::vector<PrefillChunk> chunks;
  std::vector<DraftedDecodes> drafted;  // likewise
  AdapterWork decodes_lora;             // as BatchShape::lora, without the prefills
  // Of its decodes, those whose token before came as this step starts, or at Step::before. The
  // scheduler counts the gaps of the others.
  std::int64_t decodes = 0;
  BlockedBy blocked = BlockedBy::kNothing;  // why the head of the queue waits
  TimeNs host = 0;                          // of the step, before it computes
  TimeNs transfer = 0;                      // loading what is in it from KV tiers
  TimeNs encode = 0;                        // by which images make it longer, as it is launched
  std::int64_t kv_unused = 0, in_turn = 0;  // see StepLevels
  std::vector<RequestId> preempted;         // in order
  std::vector<RankPlan> ranks;              // empty: one; else `shape` is their sum, less dummies

  void Clear() {
    shape = {};
    chunks.clear();
    drafted.clear();
    decodes_lora = {};
    decodes = 0;
    blocked = BlockedBy::kNothing;
    host = transfer = encode = 0;
    kv_unused = in_turn = 0;
    preempted.clear();
    ranks.clear();
  }
};

// What is recorded of one of several ranks.
struct RankStep {
  StepLevels levels;
  StepBound bound = StepBound::kOverhead;
  PrefillWork prefill;
};

// A step between its schedule call and the moment when its outputs are applied.
struct Step {
  std::size_t place = 0;  // in the ring of those in flight
  TimeNs start = 0, end = 0;
  TimeNs before = 0;  // when its `decodes` had the token before
  StepLevels levels;
  StepBound bound = StepBound::kOverhead;
  BlockedBy blocked = BlockedBy::kNothing;
  std::int64_t decodes = 0, sampled = 0;  // tokens to deliver: of StepPlan::decodes, of all
  std::int64_t made = 0;  // tokens, with those of requests that are given up meanwhile
  bool plain = true;      // nothing but decodes of which none ends: Apply is not called
  PrefillWork prefill;
  std::vector<RankStep> ranks;  // empty: one
  StepRecord record;
};

// Steps of the present decodes and nothing else, one after another. It ends before one for which
// the KV blocks do not suffice, and before one in which an arrival could be.
struct DecodeRun {
  DecodeSums* decodes = nullptr;
  std::int64_t most = 0;  // steps
  std::int64_t last = 0;  // that of them, from 1 on, which ends a member; 0: none does
  bool closed = false;    // no request can be admitted, whatever comes
  // Why the head of the queue waits, and why one that comes to an empty queue would.
  BlockedBy blocked = BlockedBy::kNothing, comers_blocked = BlockedBy::kNothing;
  bool takes_blocks = true;    // as decodes need them; else they have all
  std::int64_t spare = 0;      // free blocks that are not for decodes, see MakeRoomInRun
  std::int64_t kv_unused = 0;  // as it begins: see StepLevels
  AdapterWork lora = {};       // of each step
  bool prices_blocks = true;   // BatchShape::decode_kv_blocks is told
  bool first_apart = false;    // the scheduler counts gaps and delays of its first step: FirstOfRun
};

// By vLLM's rules: after so many schedule calls that preempted, and none that yielded a token,
// equally urgent requests give way from the last of the running list, for the rest of the run (see
// VllmScheduler::Victim).
inline constexpr std::int64_t kMostTokenlessCalls = 1000;

enum class Formed : std::uint8_t {
  kStep,
  kNothing,  // until a step ends, a request or its KV comes, or a client gives up
  kAgain,    // nothing, but what was preempted has made room: it is to be asked again at once
};

class Scheduler {
 public:
  // When it forms, and how steps are recorded.
  struct Habits {
    // With a step in flight and room for another, what comes meanwhile may have it form one. Else
    // the oldest is waited for.
    bool forms_between = false;
    // The time that steps share counts to the first of them; else to the last.
    bool shared_to_first = false;
  };

  explicit Scheduler(Habits habits) : habits_(habits) {}
  virtual ~Scheduler() = default;
  const Habits& habits() const { return habits_; }

  // ---- Requests ----
  virtual void Enqueue(RequestId request) = 0;
  // Its client gave up, and what it held is free. False: it is in a step that is in flight, and
  // will be given up by the scheduler itself (Machine::TimeOut) as that ends.
  virtual bool GiveUp(RequestId request) = 0;
  // KV of a request that it sent for (Machine::SendForKv) has come.
  virtual void Arrive(RequestId request, TimeNs time) = 0;
  // KV of a request that waits for it will never come (Engine::LoseTransfer). Only of schedulers
  // that have failures.
  virtual void LoseTransfer(RequestId /*request*/) {}
  // What was withheld of a request is free again.
  virtual void Freed(std::int64_t /*blocks*/, std::int64_t /*tokens*/) {}

  // ---- Steps ----
  // Decides the next step, and takes its blocks. Requires: a step may be formed now.
  virtual Formed Form(StepPlan& plan) = 0;
  // The step has been sent to the device; its prefills make the decodes beside them wait for
  // `interference`, or, without decodes, whatever waits for them. Says whether it is `plain`.
  virtual void Launched(Step& step, const StepPlan& plan, TimeNs interference) = 0;
  // Its outputs are there: tells the replica of tokens and of requests that are done.
  virtual void Apply(Step& step) = 0;

  // The run that the next steps are; nullptr: they are none. Requires: as Form.
  virtual const DecodeRun* BeginRun() = 0;
  virtual void FirstOfRun(const Step&) {}
  // The next step of the run needs more than the free blocks that are for decodes. True: there is
  // room for it now, and of the free ones so many are not for the decodes after it.
  virtual bool MakeRoomInRun(std::int64_t& /*spare*/) { return false; }
  // A step of the run ends a member: in its sums it is done.
  virtual void EndsMember(Step&) {}
  virtual void EndRun(std::int64_t steps) = 0;

  // ---- What there is ----
  virtual std::int64_t running() const = 0;
  virtual std::int64_t waiting() const = 0;  // in its queue
  // Whether there are any requests at all, but for those in flight.
  virtual bool HasRequests() const = 0;
  // Whether it may have some and form nothing: blocks are held for what comes no more.
  virtual bool MayStall() const = 0;
  // See Engine. Of one with steps in flight, or whose next may be another: now. None: it is quiet
  // until the replica is ready.
  virtual std::optional<TimeNs> QuietUntil() { return std::nullopt; }
  virtual void WriteProgress(std::vector<std::int32_t>& generated) const = 0;
  virtual const PrefixCacheReport& prefix_cache() = 0;
  virtual KvOffloadReport kv_offload() const { return {}; }
  virtual std::int64_t walked() const { return 0; }  // see SchedulerCounts
  virtual std::int64_t image_hits() const { return 0; }
  // The members of the step that is being formed.
  virtual void Observe(StepRecord& record) const = 0;
  virtual void ObserveAfter(StepRecord& /*record*/) const {}  // its outputs are applied

 protected:
  void SetFormsBetween(bool forms) { habits_.forms_between = forms; }

  DecodeRun run_;  // the latest

 private:
  Habits habits_;
};

}  // namespace servecast
