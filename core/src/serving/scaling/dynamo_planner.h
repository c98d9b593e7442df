// Dynamo's planner: workers for prefill and decode, from what each reports of its last forward
// pass (load, every few seconds) and from the requests of an interval (throughput, minutes).
//
// Load: fixed thresholds, or a model of the forward pass against SLAs. Throughput: a search of the
// batch with which one engine serves most within the SLA; with both, it sets a lower bound only.
// The model of a forward pass is the caller's.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "servecast/cluster_spec.h"

namespace servecast {

enum class DynamoMode : std::uint8_t { kAggregated, kDisaggregated, kPrefill, kDecode };

inline constexpr double kMostHitRate = 0.95;  // that an estimate relies on

// Which decision, and why none.
enum class DynamoReason : std::uint8_t {
  kNone,
  kNoChange,
  kInsufficientData,
  kScaleDown,
  kCapped,   // scale_down_capped_by_throughput
  kRefused,  // scale_down_refused_consolidation
  kScaleUp,
  kNoReports,
  kScaling,
  kMismatch,
  kScale,
  kSetLowerBound,
  kModelNotReady,
  kPartnerNotReady,
};
// As the planner names it; "" for kNone.
const char* NameOf(DynamoReason reason);

struct DynamoRole {
  std::optional<std::int64_t> min_workers;    // absent: DynamoSpec::min_workers
  std::int64_t gpus = 1, max_num_seqs = 256;  // of a worker
};

struct DynamoSpec {
  DynamoMode mode = DynamoMode::kAggregated;
  DynamoTarget target = DynamoTarget::kSla;
  bool load = true, throughput = false;
  std::int64_t max_gpus = 8, min_gpus = -1;  // -1: no limit
  std::int64_t min_workers = 1;
  DynamoRole prefill, decode;
  double ttft_ms = 500, itl_ms = 50, sensitivity = 80;
  std::int64_t min_observations = 5, speculative_tokens = 0;
  // Of workers that prefill, and of those that decode.
  std::int64_t max_num_batched_tokens = 2048, context_length = 1;
  std::int64_t max_kv_tokens = 1;
  // With kLoad.
  double prefill_up_tokens = 0, prefill_down_tokens = 0, decode_up_kv = 0, decode_down_kv = 0;
};

// One worker's rank.
struct DynamoReport {
  std::string worker;
  std::int64_t rank = 0;
  std::int64_t prefill_tokens = 0, prefill_requests = 0;  // scheduled
  std::int64_t decode_kv = 0, decode_requests = 0;
  std::int64_t queued_prefill_tokens = 0, queued_prefill_requests = 0;
  std::int64_t queued_decode_kv = 0, queued_decode_requests = 0;
};

struct DynamoWorkers {
  std::int64_t ready = 0, expected = 0;
  bool in_progress = false;
  std::span<const DynamoReport> reports;
};

struct DynamoTraffic {
  double seconds = 1, requests = 0, input = 0, output = 0;
  std::optional<double> hit_rate, accept_length;
};

// Of a role that exists in the mode.
struct DynamoView {
  DynamoWorkers prefill, decode;
  std::optional<DynamoTraffic> traffic;  // at a throughput tick
  bool load = true;                      // whether it is a load tick
};

struct DynamoDecision {
  DynamoReason throughput = DynamoReason::kNone, throughput_prefill = DynamoReason::kNone,
               throughput_decode = DynamoReason::kNone;
  std::optional<double> engine_rate_prefill, engine_rate_decode;  // requests/s
  std::int64_t bound_prefill = 1, bound_decode = 1;
  // What the throughput part and the load part decide; absent: nothing.
  struct Workers {
    std::optional<std::int64_t> prefill, decode;
    bool any() const { return prefill || decode; }
  };
  Workers by_throughput, by_load;
  DynamoReason load = DynamoReason::kNone, load_prefill = DynamoReason::kNone,
               load_decode = DynamoReason::kNone;
  std::optional<double> ttft_ms, itl_ms;  // the largest estimate of any worker
};

// The time of a forward pass.
class ForwardPass {
 public:
  virtual ~ForwardPass() = default;
  virtual double Milliseconds(std::int64_t prefill_tokens, std::int64_t decode_requests,
                              std::int64_t decode_kv) const = 0;
};

class DynamoPlanner {
 public:
  // `pass` outlives it.
  DynamoPlanner(const DynamoSpec& spec, const ForwardPass& pass);

  // One tick: throughput first, if view.traffic is there, then load, if it is one of load.
  DynamoDecision Tick(const DynamoView& view);

 private:
  enum class Opinion : std::uint8_t { kNone, kKeep, kRefuse, kUp, kDown };
  // Means of the latest reports, from a running sum as the planner has it: what rounding leaves
  // in it stays.
  struct Recent {
    std::deque<double> values;
    double sum = 0;
    void Add(double value);
    double Mean() const;
  };
  struct Role {
    std::int64_t observations = 0;
    std::int64_t bound = 1;
  };
  struct Batch {
    double rate = 0;
    bool meets = false;
  };

  void Observe(const DynamoView& view);
  DynamoReason Unfit(const DynamoView& view) const;

  void ThroughputTick(const DynamoView& view, DynamoDecision& decision);
  std::optional<double> EngineRate(bool prefill, const DynamoTraffic& traffic) const;
  Batch PrefillBatch(std::int64_t batch, std::int64_t own) const;
  Batch DecodeBatch(std::int64_t batch, std::int64_t context, std::int64_t output) const;
  Batch AggregatedBatch(std::int64_t batch, std::int64_t own, std::int64_t context,
                        std::int64_t output) const;

  void LoadTick(const DynamoView& view, DynamoDecision& decision);
  void LoadTwo(const DynamoView& view, DynamoDecision& decision);
  void LoadOne(const DynamoView& view, bool prefill, DynamoDecision& decision);
  void LoadAggregatedSla(const DynamoView& view, DynamoDecision& decision);
  std::int64_t Wanted(Opinion opinion, std::int64_t present, bool prefill) const;
  static DynamoReason WhyNone(Opinion opinion);
  Opinion Of(const DynamoWorkers& workers, bool prefill, DynamoDecision& decision) const;
  Opinion Easy(const DynamoWorkers& workers, bool prefill) const;
  Opinion SlaPrefill(const DynamoWorkers& workers, DynamoDecision& decision) const;
  Opinion SlaDecode(const DynamoWorkers& workers, DynamoDecision& decision) const;
  double PrefillSeconds(const DynamoReport& report, double queue, double decode) const;
  double ItlMs(const DynamoReport& report, double factor) const;
  bool Consolidates(const DynamoReport& report, double factor, bool prefill) const;

  double Pass(std::int64_t prefill, std::int64_t requests, std::int64_t kv) const;
  double Chunked(std::int64_t tokens, std::int64_t requests, std::int64_t kv) const;
  double AcceptLength() const;
  bool Ready(bool prefill) const;
  std::int64_t Least(bool prefill) const;
  std::int64_t Budget(std::int64_t workers, bool prefill) const;
  void BudgetTwo(std::int64_t& prefill, std::int64_t& decode) const;

  DynamoSpec spec_;
  const ForwardPass& pass_;
  Role prefill_, decode_;
  Recent input_, decode_length_, prefill_tokens_;
  double hit_rate_ = 0;  // the last known, for load
  std::optional<double> accept_length_;
};

}  // namespace servecast
