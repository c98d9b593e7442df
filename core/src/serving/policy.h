// The extension points that need one function: orders, priorities, latency models (routers:
// cluster/router.h, schedulers: replica/scheduler_entry.h). A policy is one file in
// core/src/policies/ and one line in registry.cpp.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "base/whole_engine.h"
#include "metrics/causes.h"
#include "servecast/report.h"
#include "servecast/scenario.h"
#include "serving/batch.h"
#include "serving/features.h"
#include "serving/take_up.h"

namespace servecast {

struct ModelCost;

struct StepPrice {
  TimeNs duration = 1;  // >= 1 (>= 0 by the rules of BLIS, February 2026), <= kMaxStepNs
  StepBound bound = StepBound::kOverhead;
};
inline constexpr TimeNs kMaxStepNs = 1'000'000'000'000;  // 1,000 s: no real step comes near

// How a server stands still: once in each interval, for `mean` on average; mean 0: it never does.
struct StallTimes {
  TimeNs mean = 0, interval = 0;

  // Of a token that is ready at any time: what is left of an exponential length is as long as all
  // of it on average.
  double MeanWaitNs() const {
    const auto length = static_cast<double>(mean);
    return mean > 0 ? length * length / static_cast<double>(interval) : 0;
  }
};
inline StallTimes StallsOf(const EngineSpec& e) {
  if (e.host_stall_ms <= 0 || e.host_stalls_per_s <= 0) return {};
  constexpr double kLongest = 1e18;  // ns, 31 years
  return {NearestNs(e.host_stall_ms * 1e6),
          NearestNs(std::min(1e9 / e.host_stalls_per_s, kLongest))};
}

// What a request finds as it arrives: the engine as its latest step began, or at rest.
struct EngineLoad {
  std::int64_t running = 0, kv_blocks_used = 0;
  std::int64_t waiting =
      0;  // now, with those that ended in the queue since the engine last looked at it
  double preemption_ema = 0;
  std::int64_t cached_tokens = 0;  // of its prompt, in the GPU's prefix cache; see DelayByCache
};

// What the latest step that a replica formed computes; zeros where it has nothing to do.
struct LastStep {
  std::int64_t prefill_tokens = 0, prefill_requests = 0;
  std::int64_t decode_context = 0, decode_requests = 0;  // tokens computed before the step
};

// The time of a step from its batch.
// Contract: pure (same shape, same price); O(1) in the decodes, O(chunks) in the prefill.
class LatencyModel {
 public:
  virtual ~LatencyModel() = default;
  virtual StepPrice Price(const BatchShape& shape) const = 0;
  // From the arrival of a request to its place in the scheduler's queue (take_up.h).
  virtual HostTimes TakeUpTimes(std::int64_t prompt_tokens) const = 0;
  // That of one that comes alone.
  TimeNs EnqueueDelay(std::int64_t prompt_tokens) const {
    const HostTimes times = TakeUpTimes(prompt_tokens);
    return times.work + times.wait;
  }
  // Whether that depends on the engine's load: then DelayUnder is asked as the request arrives.
  virtual bool DelayByLoad() const { return false; }
  virtual TimeNs DelayUnder(std::int64_t prompt_tokens, const EngineLoad&) const {
    return EnqueueDelay(prompt_tokens);
  }
  // Whether it also depends on what the cache has of the prompt, so that EngineLoad tells it.
  virtual bool DelayByCache() const { return false; }
  // Weight w of a schedule call in the moving average of preempted / max(1, running); 0: no average
  // is kept.
  virtual double PreemptionWeight() const { return 0; }
  // Whether the price includes the time of loads from KV tiers.
  virtual bool PricesTransfers() const { return false; }
  // Whether the price depends on BatchShape::decode_longest, so that it is told.
  virtual bool PricesLongest() const { return false; }
  // Added to the client's view of each output token, without holding the GPU; accumulates.
  virtual TimeNs OutputTokenDelay() const { return 0; }
  // Delay of a request's first token, and so of all its later ones, at its client, per request with
  // a token in the same step. Not by BLIS's rules.
  virtual TimeNs DeliveryDelay() const { return 0; }
  // When the server stands still, so that first tokens wait further. Not by BLIS's rules.
  virtual StallTimes Stalls() const { return {}; }
  // Added once to the client's view of a finished request. BLIS's rules only.
  virtual TimeNs PostDecodeDelay() const { return 0; }
};

// One of the stages that a model's layers are spread over (pipeline.h).
struct PipelineStage {
  std::shared_ptr<const LatencyModel> latency;  // of its layers
  double send_ns = 0, send_ns_per_token = 0;    // to the next one
};

// Models of every form, as far as a latency model looks at them.
inline constexpr Features kModelForms = {Feature::kQuantized, Feature::kCacheDtype,
                                         Feature::kLatentAttention, Feature::kSharedExperts,
                                         Feature::kDenseLayers};
// Why a latency model that knows steps of tokens alone lacks the rest.
inline constexpr Lack kPlainStepsLack[] = {
    {Feature::kDrafts, "it knows no decode of several tokens"},
    {Feature::kAdapters, "it knows no products of adapters"},
    {Feature::kExpertReplicas, "it knows no experts on several replicas"},
    {Feature::kExpertParallel, "it cannot tell"},
    {Feature::kFloat32, "it knows 16 bits only"},
    {Feature::kQuantized, "its features do not know it"},
    {Feature::kCacheDtype, "its features do not know it"},
    {Feature::kLatentAttention, "its features do not know it"},
    {Feature::kSharedExperts, "its features do not know them"},
    {Feature::kDenseLayers, "its features do not know them"},
};

struct LatencyEntry {
  std::string_view name, help;
  // Both of OfWholeEngine, or neither.
  std::unique_ptr<LatencyModel> (*make)(const Scenario&, const ModelCost&);
  LatencyLabel (*label)(const Scenario&);  // where its numbers come from, for a reader
  Features has;
  Lacks lacks = {};
  Features needs = {};  // of the scheduler and the compat mode
  // Whether "auto" means this one instead of the first; nullptr: never.
  bool (*best)(const Scenario&) = nullptr;
  // The file of presets/ that it needs and that is not loaded; "": none. nullptr: it never needs
  // one.
  std::string (*missing)(const Scenario&) = nullptr;
};

// The registered models, in the order of menus; see registry.cpp.
std::span<const LatencyEntry> LatencyModels();
// Requires: a registered name.
const LatencyEntry& FindLatencyModel(std::string_view name);
// Issues of kind "missing_file" when what the scenario needs is not loaded, as on the page until it
// is fetched (io/presets.h); else none. To be asked first, of the whole scenario: for the module
// that has what it needs. Then, of each pool alone: for the files of its step-time model.
Issues MissingModule(const Scenario& scenario);
Issues MissingFiles(const Scenario& scenario);
// Whether gateways place the requests: a router that places at once has nothing to decide about one
// replica.
bool HasCluster(const Scenario& scenario);
// False in a program that has only one replica by vLLM's rules; a scenario with more needs the file
// kWholeEngine.
bool IsWholeEngine();
inline constexpr std::string_view kWholeEngine = "servecast.wasm";
// By `latency.backend`; "auto" is the one that was nearest to servers with such GPUs.
const LatencyEntry& ChosenLatencyModel(const Scenario& scenario);

// What the order of a queue may know of a request: never its true output length.
struct QueuedRequest {
  TimeNs arrival = 0;
  std::int64_t prompt_tokens = 0;
  double priority = 0;            // by the scenario's priority policy; lower is more urgent
  TimeNs ttft_deadline = kNever;  // after arrival
};

// A number of a policy that the user chooses. In the document it is a member of `scheduler`, or of
// `cluster.router`, that exists while a policy with a parameter of its name is chosen.
struct ParamSpec {
  const char* name;
  const char* unit;
  double min, max, fallback;
  const char* help;
  bool whole = false;  // a whole number
};
using Params = std::span<const double>;  // values, in the order of the policy's ParamSpecs

std::vector<double> ParamValues(std::span<const ParamSpec> specs, const ParamMap& chosen);

// The order of a waiting queue: by key, then arrival, then id. A preempted request comes back at
// its place. Without a key: in order of enqueue, and a preempted request goes to the front.
struct OrderEntry {
  std::string_view name, help;
  double (*key)(const QueuedRequest&, Params);
  std::span<const ParamSpec> params = {};
  bool preempts_by_priority = false;  // what `preemption` "auto" means with it; else the tail
  bool keys_are_buckets = false;      // prompts of one key are padded to one length; else all are
};

// A request's priority number, the same for its whole life. Where priority depends on age, all ages
// are taken at one moment: the order of requests is the same at any other.
struct PriorityEntry {
  std::string_view name, help;
  double (*priority)(std::int64_t own, TimeNs arrival, Params);
  std::span<const ParamSpec> params = {};
};

std::span<const OrderEntry> Orders();
std::span<const PriorityEntry> Priorities();
// Require: a registered name.
const OrderEntry& FindOrder(std::string_view name);
const PriorityEntry& FindPriority(std::string_view name);

}  // namespace servecast
