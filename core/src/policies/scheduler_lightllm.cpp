// LightLLM's router, after Vidur: tokens rather than blocks, and a request is admitted only if the
// most that all will ever hold fits. Requires: one token per block, one pipeline stage.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "serving/batch/batch_scheduler.h"

namespace servecast::scheduler_lightllm {
namespace {

class LightLlm final : public BatchScheduler {
 public:
  void Form(SchedulerState& s, Batch& batch) override {
    s.JoinArrived();
    if (s.parked.empty()) {
      Prefills(s, batch);
      return;
    }
    if (iterations_ >= s.limits().max_waiting_iters) {
      iterations_ = 0;
      Prefills(s, batch);
      if (!batch.empty()) return;
    }
    Decodes(s, batch);
    ++iterations_;
  }

  DecodeForecast Forecast(SchedulerState& s) override {
    DecodeForecast forecast;
    forecast.most = s.limits().max_waiting_iters - iterations_;
    forecast.closed = true;
    return forecast;
  }
  void Decoded(std::int64_t batches) override { iterations_ += batches; }

 private:
  // Requests with as many tokens to come: how many, and the tokens that they hold now.
  struct Needs {
    std::int64_t left = 0, count = 0, held = 0;
  };

  // The limit that its client set is taken to be what it makes.
  static Needs NeedOf(const Job& job) {
    if (job.processed == 0) return {job.declared - job.prompt - 2, 1, job.prompt + 1};
    return {std::max<std::int64_t>(0, job.declared - job.processed - 1), 1, job.processed};
  }

  // A request that waits for its KV will not grow in step with the others: it counts in full.
  void Add(const Job& job) {
    if (job.remote) {
      apart_ += job.declared - 1;
      return;
    }
    const Needs need = NeedOf(job);
    most_ += std::max<std::int64_t>(0, need.left) + need.held;
    if (!needs_.empty() && needs_.back().left == need.left) {
      needs_.back().count += need.count;
      needs_.back().held += need.held;
    } else {
      needs_.push_back(need);
    }
  }

  // Whether the most tokens held at once are fewer: the longest to go is the last to leave, so
  // needs_ is sorted by that, but for what came since. At first it has those that were admitted
  // together side by side.
  bool PeaksBelow(std::int64_t tokens) {
    if (most_ < tokens) return true;  // though no request left before the last
    const auto longer = [](const Needs& a, const Needs& b) { return a.left > b.left; };
    const auto added = needs_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::sort(added, needs_.end(), longer);
    std::inplace_merge(needs_.begin(), added, needs_.end(), longer);
    std::int64_t held = 0, count = 0;
    std::size_t kept = 0;
    bool below = tokens > 0;
    for (std::size_t i = 0; i < needs_.size(); ++i) {
      held += needs_[i].held;
      count += needs_[i].count;
      below = below && needs_[i].left * count + held < tokens;
      if (kept > 0 && needs_[kept - 1].left == needs_[i].left) {
        needs_[kept - 1].count += needs_[i].count;
        needs_[kept - 1].held += needs_[i].held;
      } else {
        needs_[kept++] = needs_[i];
      }
    }
    needs_.resize(kept);
    sorted_ = kept;
    return below;
  }

  BlockedBy HeadBlockedBy(SchedulerState& s, std::int64_t members, std::int64_t tokens) {
    const SchedulerLimits& limits = s.limits();
    const Job& job = s.job(s.Head());
    const bool full = !job.remote && members >= limits.batch_limit();
    if (s.admitted() >= limits.max_num_seqs || full) return BlockedBy::kSeats;
    if (!job.remote && tokens + job.prompt > limits.max_num_batched_tokens)
      return BlockedBy::kTokenBudget;
    Add(job);
    return PeaksBelow(limits.blocks - s.withheld() - apart_) ? BlockedBy::kNothing
                                                             : BlockedBy::kKvBlocks;
  }

  void Prefills(SchedulerState& s, Batch& batch) {
    needs_.clear();
    sorted_ = 0;
    most_ = apart_ = 0;
    for (const std::vector<JobIndex>* held : {&s.parked, &s.under_way}) {
      for (const JobIndex index : *held) Add(s.job(index));
    }
    std::int64_t tokens = 0;
    while (s.HasHead()) {
      s.blocked = HeadBlockedBy(s, static_cast<std::int64_t>(batch.size()), tokens);
      if (s.blocked != BlockedBy::kNothing) return;
      const JobIndex head = s.Head();
      const Job& job = s.job(head);
      s.AdmitPrompt(head);
      if (job.remote) continue;
      batch.push_back({head, job.prompt});
      tokens += job.prompt;
    }
  }

  static void Decodes(SchedulerState& s, Batch& batch) {
    for (const JobIndex index : s.parked) {
      s.Grow(index);
      batch.push_back({index, 1});
    }
    s.parked.clear();
  }

  std::int64_t iterations_ = 0;
  std::vector<Needs> needs_;
  std::size_t sorted_ = 0;  // of them, with no two alike
  std::int64_t most_ = 0;   // tokens, if all are held to the end
  std::int64_t apart_ = 0;
};

}  // namespace

extern const SchedulerEntry kEntry = {
    .name = "lightllm",
    .help =
        "admits requests while their future peak of tokens fits; looks at the queue every ten "
        "decodes",
    .has = {Feature::kRoles, Feature::kTimeouts, Feature::kOrders, Feature::kPriorities,
            Feature::kVidur, Feature::kWholePrompts},
    .lacks = kBatchesLack,
    .make = kMakes<LightLlm>,
    .whole_prompts = true,
    .counts_tokens = true,
    .no_prefix_caching =
        "prefix caching: none, as admission weighs what requests may come to hold, each its own",
    .departure =
        "batches: whole prompts or decodes, never both; ten decodes between looks at the queue; "
        "room in tokens for the longest output of each request",
    .machine = MakeJobScheduler,
};

}  // namespace servecast::scheduler_lightllm
