// One engine instance by the rules of the simulator BLIS (inference-sim/inference-sim), to compare
// with its own output: whole microseconds, its event queue, its batches, its accounts. Its quirks
// are in this folder and nowhere else; docs/model.md lists them, decision 048 says why they stand
// apart. Decodes that nothing can stop in a step are sums (blis_decodes.h); a step costs as much as
// it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "metrics/recorder.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/blis/blis_decodes.h"
#include "serving/blis/blis_era.h"
#include "serving/blis/blis_events.h"
#include "serving/blis/blis_gaps.h"
#include "serving/blis/blis_guard.h"
#include "serving/blis/blis_kv.h"
#include "serving/blis/blis_seats.h"
#include "serving/engine.h"
#include "serving/hooks.h"
#include "serving/kv/kv_tiers.h"
#include "serving/replica/queue_policy.h"
#include "serving/replica/wait_queue.h"
#include "workload/request_table.h"

namespace servecast {

inline constexpr std::int64_t kMostBlisBlocks = std::int64_t{1}
                                                << 24;  // 0.8 GB if no two are a run

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
  TimeNs warmup = 0;  // as the recorder has it
};

class BlisReplica final : public Engine {
 public:
  explicit BlisReplica(const BlisInput& input);

  bool Advance(std::int64_t max_steps) override;

  TimeNs now() const override { return now_ * 1000; }
  std::int64_t running() const override { return static_cast<std::int64_t>(batch_.size()); }
  std::int64_t queued() const override { return queue_.size(); }
  std::int64_t completed() const override { return ends_.completed; }
  std::int64_t timed_out() const override { return ends_.timed_out; }
  std::int64_t length_capped() const override { return ends_.length_capped; }
  std::int64_t kv_blocks_used() const override { return kv_.used(); }
  const PrefixCacheReport& prefix_cache() override;
  KvOffloadReport kv_offload() const override;
  std::vector<std::string_view> departures() const override;
  void WriteProgress(std::vector<std::int32_t>& generated) const override;

 private:
  using Us = BlisEvents::Us;
  using Kind = BlisEvents::Kind;
  using Seat = BlisSeat;
  using Members = std::vector<BlisMember>;

  enum class Place : std::uint8_t { kComing, kWaiting, kInBatch, kGone };

  struct Step {
    std::int64_t budget = 0;
    bool preempted = false;
    bool granted = false;  // a request got tokens, or a seat
    BlockedBy blocked = BlockedBy::kNothing;
  };

  bool HasEvent();
  void Handle(const BlisEvents::Event& event);
  void Enqueue(RequestId request);
  void TimeOut(RequestId request);
  void RunStep();

  // A step, in its order.
  bool SumsStay() const;
  void GrantToSums(Step& step);
  void TakeForCounted(std::size_t& served, const BlisMember& member, Step& step);
  bool Joins(const Seat& seat) const;
  void JoinSums();
  void LeaveSums();
  void GrantToBatch(Step& step);
  bool GrantTo(SeatId seat, Step& step);
  std::int64_t Wanted(const Seat& seat) const;
  bool MakeRoom(SeatId seat, std::int64_t tokens, Step& step);
  SeatId MakeWay(Step& step);
  std::size_t VictimOf() const;
  void Preempt(SeatId id, Step& step);
  void Admit(Step& step);
  void Start(SeatId seat, std::int64_t cached, std::int64_t tokens, Step& step);
  SeatId SeatFor(RequestId request);
  Us Price(const Step& step);
  void MoveOn(Us took);
  void MoveOn(Seat& seat, Us took);
  void Complete(Us took);
  void Finish(SeatId seat, Us took);
  void CountTokens(SeatId seat);
  void GiveUpOnHead();
  void ObserveSchedule();
  void ObserveStep(Us took);

  // A request leaves the sums of decodes, and the batch.
  void TakeOutOfSums(Seat& seat);
  void TakeOutOfBatch(SeatId seat);
  void CatchUp(Seat& seat);
  void TellHolding(Seat& seat);
  std::int64_t ProgressOf(const Seat& seat) const {
    return seat.summed ? decodes_.Computed(seat.track) : seat.progress;
  }
  std::int64_t LastOf(RequestId request) const;
  void TrimGaps();

  void Drop(RequestId request);
  void Leave(SeatId seat);
  void ArriveNext(RequestId request, Us time);
  void RecordPending(Us until);
  void RecordQueue() { in_.recorder.Waiting(now(), queue_.size()); }

  std::int64_t PromptOf(RequestId r) const { return in_.requests.prompt_tokens[Index(r)]; }
  std::int64_t OutputOf(RequestId r) const { return in_.requests.output_tokens[Index(r)]; }
  Us ArrivalOf(RequestId r) const { return in_.requests.arrival[Index(r)] / 1000; }
  static constexpr auto Sum = BlisEvents::Sum;
  static std::size_t Index(std::int32_t id) { return static_cast<std::size_t>(id); }
  Seat& At(SeatId id) { return seats_.At(id); }
  const Seat& At(SeatId id) const { return seats_.At(id); }

  BlisInput in_;
  const BlisEra& era_;
  const bool tail_makes_way_;  // not who is least urgent
  QueuePolicy policy_;
  struct Limits {
    Us horizon = 0, token_delay = 0, end_delay = 0;
    std::int64_t model_len = 0;  // 0: none
  };
  Limits limits_;
  BlisKv kv_;
  PrefixCacheReport prefix_cache_;
  std::int64_t host_hits_ = 0;  // blocks that a first admission found cached once they came back

  Us now_ = 0;
  BlisEvents events_;
  bool step_pending_ = false;
  WaitQueue queue_;
  std::vector<Place> places_;  // by request
  BlisSeats seats_;            // also of preempted requests
  std::int64_t admissions_ = 0;
  Members batch_;        // in order of admission
  Members singles_;      // those of it that are not in the sums
  BlisDecodes decodes_;  // the sums
  Us decodes_end_ = -1;  // of the latest step, which all of these were in
  Members scratch_;
  std::vector<PrefillChunk> chunks_;
  BlisGaps gaps_;
  BlisGuard guard_;
  struct Ends {
    std::int64_t completed = 0, timed_out = 0, length_capped = 0;
  };
  Ends ends_;

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

  StepRecord record_;  // for an observer only
};

std::unique_ptr<Engine> MakeBlisReplica(const BlisInput& input);

}  // namespace servecast
