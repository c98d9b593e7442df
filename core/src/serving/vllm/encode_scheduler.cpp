#include "serving/vllm/encode_scheduler.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "base/math.h"
#include "cost/encoder_times.h"
#include "serving/replica/machine.h"
#include "serving/vllm/encoder_cache.h"

namespace servecast {
namespace encode {  // others of this folder have classes of the same names
namespace {

class EncodeScheduler final : public Scheduler {
 public:
  explicit EncodeScheduler(Machine& machine)
      : Scheduler({}),
        machine_(machine),
        in_(machine.input()),
        images_(in_.requests, EncoderBudget(in_), false) {}

  void Enqueue(RequestId request) override { queue_.push_back({.request = request}); }
  // Time-outs are refused beside encoders.
  bool GiveUp(RequestId) override { return false; }
  void Arrive(RequestId, TimeNs) override {}

  Formed Form(StepPlan& plan) override;
  void Launched(Step& step, const StepPlan& plan, TimeNs interference) override;
  void Apply(Step& step) override;

  const DecodeRun* BeginRun() override { return nullptr; }
  void EndRun(std::int64_t) override {}

  std::int64_t running() const override { return members_; }
  std::int64_t waiting() const override {
    return static_cast<std::int64_t>(queue_.size()) - members_;
  }
  bool HasRequests() const override { return !queue_.empty(); }
  bool MayStall() const override { return false; }
  void WriteProgress(std::vector<std::int32_t>&) const override {}
  const PrefixCacheReport& prefix_cache() override { return none_; }
  std::int64_t image_hits() const override { return images_.hits(); }
  void Observe(StepRecord& record) const override;

 private:
  struct Waiting {
    RequestId request = kNoRequest;
    std::size_t next = 0;     // of its images, the first that is not encoded, nor by this step
    std::int64_t tokens = 0;  // of its images that this step takes
    bool begun = false;
  };

  Machine& machine_;
  const ReplicaInput in_;
  EncoderCache images_;
  std::deque<Waiting> queue_;  // in order; of the step are the first `members_`
  std::int64_t members_ = 0;
  PrefixCacheReport none_;
};

Formed EncodeScheduler::Form(StepPlan& plan) {
  images_.BeginStep();
  for (Waiting& w : queue_) {
    if (members_ == in_.engine.max_num_seqs) {
      plan.blocked = BlockedBy::kSeats;
      break;
    }
    const std::span<const PromptImage> images = in_.requests.ImagesOf(w.request);
    const std::int64_t from = images[w.next].offset;
    const std::int64_t tokens = images_.Cut(w.request, from, images.back().end() - from);
    w.tokens = 0;
    if (tokens > 0) {
      images_.Take(w.request);
      ++members_;
    }
    for (; w.next < images.size() && images[w.next].end() <= from + tokens; ++w.next) {
      w.tokens += images[w.next].tokens;
    }
    images_.Computed(w.request, from + tokens);
    if (w.next == images.size()) continue;
    plan.blocked = BlockedBy::kTokenBudget;
    break;
  }
  plan.shape.images = images_.images();
  return members_ > 0 ? Formed::kStep : Formed::kNothing;
}

void EncodeScheduler::Launched(Step& step, const StepPlan&, TimeNs) {
  step.plain = false;
  for (std::int64_t i = 0; i < members_; ++i) {
    Waiting& w = queue_[static_cast<std::size_t>(i)];
    const auto r = static_cast<std::size_t>(w.request);
    in_.results.state[r] = RequestState::kRunning;
    if (!w.begun) in_.results.encodings[r].started = step.start;
    w.begun = true;
  }
}

// All of its members but the last are done.
void EncodeScheduler::Apply(Step& step) {
  std::size_t done = 0;
  for (std::int64_t i = 0; i < members_; ++i) {
    const Waiting& w = queue_[static_cast<std::size_t>(i)];
    images_.Passed(w.request, false);
    if (w.next < in_.requests.ImagesOf(w.request).size()) continue;
    ++done;
    machine_.Encoded(w.request, step.end);
  }
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(done));
  members_ = 0;
}

void EncodeScheduler::Observe(StepRecord& record) const {
  for (std::int64_t i = 0; i < members_; ++i) {
    const Waiting& w = queue_[static_cast<std::size_t>(i)];
    record.members.push_back({.id = w.request,
                              .tokens = w.tokens,
                              .kind = w.begun ? MemberKind::kContinued : MemberKind::kNew});
  }
}

class EncodeLatency final : public LatencyModel {
 public:
  EncodeLatency(const Scenario& s, const ModelCost& cost)
      : encoder_(s, cost), step_ns_(s.engine.step_overhead_us * 1e3) {}

  StepPrice Price(const BatchShape& shape) const override {
    double compute = 0, memory = 0, overhead = step_ns_;
    if (shape.images > 0) {
      compute = encoder_.ComputeNs(shape.images);
      memory = encoder_.MemoryNs();
      overhead += encoder_.OverheadNs(shape.images);
    }
    const double total = std::max(compute, memory) + overhead;
    StepPrice price;
    price.duration =
        std::max<TimeNs>(1, NearestNs(std::min(total, static_cast<double>(kMaxStepNs))));
    price.bound = BoundOf(compute, memory, overhead);
    return price;
  }
  HostTimes TakeUpTimes(std::int64_t) const override { return {}; }

 private:
  EncoderTimes encoder_;
  double step_ns_;
};

}  // namespace
}  // namespace encode

std::unique_ptr<Scheduler> MakeEncodeScheduler(Machine& machine) {
  return std::make_unique<encode::EncodeScheduler>(machine);
}

std::unique_ptr<LatencyModel> MakeEncodeLatency(const Scenario& scenario, const ModelCost& cost) {
  return std::make_unique<encode::EncodeLatency>(scenario, cost);
}

}  // namespace servecast
