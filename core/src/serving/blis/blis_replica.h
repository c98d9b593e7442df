// One engine instance by the rules of the simulator BLIS (inference-sim/inference-sim), to compare
// with its own output: whole microseconds, its event queue, its batches, its accounts. Its quirks
// are here and in blis_kv.h and nowhere else; docs/model.md lists them, decision 014 says why they
// stand apart. Plain and per token: nothing here is hot.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/blis/blis_events.h"
#include "serving/blis/blis_kv.h"
#include "serving/engine.h"
#include "serving/hooks.h"
#include "serving/kv/kv_tiers.h"
#include "serving/replica/queue_policy.h"
#include "serving/replica/wait_queue.h"
#include "workload/request_table.h"

namespace servecast {

inline constexpr std::int64_t kMostBlisBlocks = std::int64_t{1} << 24;  // 0.5 GB of lists

// What distinguishes the BLIS of February 2026 (git 98073225) from that of today (f90a1e3a).
struct BlisEra {
  bool orders_events;  // at one time by kind, then in order of creation; else as the heap has
                       // them, which knows times only
  bool one_chain;      // who starts a step says so; else two who are queued at one time start
                       // two chains of steps over one batch
  bool only_granted_advance;   // who was given no tokens is neither billed nor advanced; else he is
                               // billed for those of his last step, and decodes on
  bool phantom_gap;            // one more gap between tokens for each completed request
  bool counts_first_token;     // output tokens at completion, all; else each decode as it happens
  bool forgets_on_preemption;  // gaps and first token of a preempted request; else they stay
  bool returns_budget;         // the tokens of a victim go back to the step
  bool visits_evicted;         // a step goes through the batch that it began with
  bool limits;                 // max_model_len, time-outs, preemption by priority
  bool counts_claimed_blocks;  // see BlisKv::Options
  bool mirrors;                // see BlisKv::Host
};
const BlisEra& EraOf(Compat compat);  // requires: not kNone

// What a replica is given; all of it outlives the replica.
struct BlisInput {
  const EngineSpec& engine;
  const SchedulerSpec& scheduler;
  std::int64_t blocks = 0;
  std::int64_t model_max_len = 0;
  RequestTable& requests;  // arrivals become whole microseconds; those of later turns are written
  const LatencyModel& latency;
  RequestResults& results;
  Recorder& recorder;
  TimeNs horizon = kNever;  // no event after it
  KvTier host = {};         // the host's memory; its base_ns are per block
  StepObserver* observer = nullptr;
};

class BlisReplica final : public Engine {
 public:
  explicit BlisReplica(const BlisInput& input);

  bool Advance(std::int64_t max_steps) override;

  TimeNs now() const override { return now_ * 1000; }
  std::int64_t running() const override { return static_cast<std::int64_t>(batch_.size()); }
  std::int64_t queued() const override { return queue_.size(); }
  std::int64_t completed() const override { return completed_; }
  std::int64_t timed_out() const override { return timed_out_; }
  std::int64_t length_capped() const override { return length_capped_; }
  std::int64_t kv_blocks_used() const override { return kv_.used(); }
  const PrefixCacheReport& prefix_cache() override;
  KvOffloadReport kv_offload() const override;
  std::vector<std::string_view> departures() const override;
  void WriteProgress(std::vector<std::int32_t>& generated) const override;

 private:
  using Us = BlisEvents::Us;
  using Kind = BlisEvents::Kind;
  using SeatId = std::int32_t;
  static constexpr SeatId kNoSeat = -1;

  enum class Place : std::uint8_t { kComing, kWaiting, kInBatch, kGone };

  // What is known of a request from its first admission to its end.
  struct Seat {
    RequestId request = kNoRequest;
    std::int64_t progress = 0;  // tokens processed: of the prompt, then one per decode
    std::int64_t computed = 0;  // progress after the present step, while in prefill
    std::int64_t granted = 0;   // tokens of the present step
    bool fresh = false;         // admitted to the present step
    Us last_step = -1;          // its end; -1: it was in none
    bool has_first = false;
    Us first_token = 0;                             // after arrival
    std::vector<std::pair<Us, std::int64_t>> gaps;  // between tokens: (gap, how often)
    std::size_t most_gaps = 1024;                   // then equal ones are merged
    double priority = 0;
    BlisKv::Holding holding;
  };

  struct Step {
    std::int64_t budget = 0;
    bool preempted = false;
    bool granted = false;  // somebody got tokens, or a seat
    BlockedBy blocked = BlockedBy::kNothing;
  };

  bool HasEvent();
  void Handle(const BlisEvents::Event& event);
  void Enqueue(RequestId request);
  void TimeOut(RequestId request);
  void RunStep();

  // A step, in its order.
  void GrantToBatch(Step& step);
  bool GrantTo(SeatId seat, Step& step);
  bool MakeRoom(SeatId seat, std::int64_t tokens, Step& step);
  std::size_t VictimOf() const;
  void Preempt(std::size_t victim, Step& step);
  void Admit(Step& step);
  SeatId SeatFor(RequestId request);
  Us Price(const Step& step);
  void MoveOn(Us took);
  std::int64_t Unused() const;
  static void AddGap(Seat& seat, Us gap);
  void Complete(Us took);
  void Finish(SeatId seat, Us took);
  void CountTokens(SeatId seat);
  void GiveUpOnHead();
  void ObserveSchedule();
  void ObserveStep(Us took);

  void Drop(RequestId request);
  void Leave(SeatId seat);
  void ArriveNext(RequestId request, Us time);
  void RecordPending(Us until);
  void RecordQueue() { in_.recorder.Waiting(now(), queue_.size()); }

  std::int64_t PromptOf(RequestId r) const { return in_.requests.prompt_tokens[Index(r)]; }
  std::int64_t OutputOf(RequestId r) const { return in_.requests.output_tokens[Index(r)]; }
  Us ArrivalOf(RequestId r) const { return in_.requests.arrival[Index(r)] / 1000; }
  static std::size_t Index(std::int32_t id) { return static_cast<std::size_t>(id); }
  Seat& At(SeatId id) { return seats_[Index(id)]; }
  const Seat& At(SeatId id) const { return seats_[Index(id)]; }

  BlisInput in_;
  const BlisEra& era_;
  QueuePolicy policy_;
  Us horizon_, token_delay_, end_delay_;
  std::int64_t max_model_len_;  // 0: no limit
  std::int64_t most_lone_evictions_;
  BlisKv kv_;
  PrefixCacheReport prefix_cache_;
  std::int64_t host_hits_ = 0;  // blocks that a first admission found cached once they came back
  Us transfer_ = 0;

  Us now_ = 0;
  BlisEvents events_;
  bool step_pending_ = false;
  WaitQueue queue_;
  std::vector<Place> places_;    // by request
  std::vector<SeatId> seat_of_;  // by request
  std::vector<Seat> seats_;      // kept by a preempted request, too
  std::vector<SeatId> free_seats_;
  std::vector<SeatId> batch_;    // in order of admission
  std::vector<SeatId> visited_;  // scratch: the batch as the step found it
  std::vector<PrefillChunk> chunks_;
  std::int64_t completed_ = 0, timed_out_ = 0, length_capped_ = 0;

  // For the guards: see kStuckSteps.
  std::int64_t stuck_steps_ = 0, lone_evictions_ = 0;
  std::int64_t contested_steps_ = 0;  // that preempted, since a request left for good
  std::int64_t most_tokens_ = 0;      // of a request: prompt and output

  // The last step, until the next one: it may overlap with it.
  struct Pending {
    Us start = 0, end = 0;
    StepLevels levels;
    StepBound bound = StepBound::kOverhead;
    BlockedBy blocked = BlockedBy::kNothing;
    std::int64_t tokens = 0;
    bool present = false;
  };
  Pending pending_;
  Us recorded_until_ = 0;

  // For an observer only.
  StepRecord record_;
  std::int64_t observed_ = 0;
};

}  // namespace servecast
