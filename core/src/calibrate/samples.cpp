// See samples.h.
#include "calibrate/samples.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cost/model_cost.h"
#include "cost/physics_features.h"

namespace servecast {
namespace {

constexpr std::size_t kWarmUpSteps = 10;       // while kernels are compiled and memory is taken
constexpr double kOutlier = 5;                 // times the median
constexpr double kHeavyPreemption = 0.5;       // of what runs: a step that counts half
constexpr std::size_t kEnoughRichSteps = 200;  // then steps without snapshots are left out

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How many of ascending times have come.
double CountBy(const std::vector<TimeNs>& times, TimeNs at) {
  return static_cast<double>(std::upper_bound(times.begin(), times.end(), at) - times.begin());
}

class SampleMaker {
 public:
  SampleMaker(const StepTrace& trace, const Scenario& scenario, double usable_blocks)
      : trace_(trace),
        engine_(scenario.engine),
        corrected_(scenario.latency.variant != "seed"),
        constants_(MakePhysicsConstants(PhysicsConfigOf(scenario, BlocksOr(usable_blocks)))) {}

  Result<TrainingSamples> Make() {
    bool any_rich = false;
    std::size_t rich = 0, chunked = 0;
    for (const TracedStep& step : trace_.steps) {
      any_rich |= step.HasMembers();
      rich += step.HasMembers() ? 1 : 0;
      chunked += step.prefill_tokens > 0 ? 1 : 0;
    }
    if (engine_.enable_chunked_prefill && !any_rich && chunked > 0) {
      return Issue{trace_.name,
                   "found chunked prefill and no step.REQUEST_SNAPSHOT, allowed traces with "
                   "--step-tracing-rich-subsample-rate above 0: without the contexts of its chunks "
                   "the attention of a step is not known"};
    }
    rich_only_ = rich >= kEnoughRichSteps;
    Say(Format("{}: {} steps, {} of them with snapshots; {} requests", trace_.name,
               trace_.steps.size(), rich, trace_.journeys.size()));
    EstimateVariation();
    AverageOfPreemptions();
    MakeBeta();
    MakeRequests();
    if (gaps_ > 0) {
      Say(Format("{} steps are not traced: the average of preemptions passes over them", gaps_));
    }
    return std::move(out_);
  }

 private:
  double BlocksOr(double usable) const {
    for (const TracedStep& step : trace_.steps) {
      if (step.kv_blocks > 0) return step.kv_blocks;
    }
    return usable;
  }
  void Say(std::string line) { out_.found.push_back(std::move(line)); }

  // Var(S) / E(S)^2 of the prompts that snapshots show, once each.
  void EstimateVariation() {
    std::vector<bool> seen(trace_.journeys.size(), false);
    double n = 0, sum = 0, squares = 0;
    for (const TracedMember& member : trace_.members) {
      const auto j = static_cast<std::size_t>(member.journey);
      if (!member.prefill || seen[j]) continue;
      seen[j] = true;
      ++n;
      sum += member.prompt;
      squares += member.prompt * member.prompt;
    }
    if (n > 0 && sum > 0) variation_ = std::max(0.0, n * squares / (sum * sum) - 1);
  }

  // By each weight, after each step. Steps between that are not traced had none.
  void AverageOfPreemptions() {
    averages_.resize(trace_.steps.size());
    std::array<double, kGammas.size()> now{};
    for (std::size_t i = 0; i < trace_.steps.size(); ++i) {
      const TracedStep& step = trace_.steps[i];
      const std::int64_t gap = i == 0 ? 0 : step.id - trace_.steps[i - 1].id - 1;
      gaps_ += gap;
      const double rate = step.preempted / std::max(1.0, step.running);
      for (std::size_t k = 0; k < kGammas.size(); ++k) {
        for (std::int64_t j = 0; j < gap && now[k] > 0; ++j) now[k] *= 1 - kGammas[k];
        now[k] = kGammas[k] * rate + (1 - kGammas[k]) * now[k];
        if (now[k] < 1e-12) now[k] = 0;
      }
      averages_[i] = now;
    }
  }

  // What snapshots say exactly.
  void AddMembers(const TracedStep& step, BetaInput& in) const {
    for (std::size_t i = step.from; i < step.to; ++i) {
      const TracedMember& m = trace_.members[i];
      if (!m.prefill) {
        in.decode_context_tokens += m.computed + m.scheduled;
        in.decode_kv_blocks +=
            m.blocks > 0
                ? m.blocks
                : std::ceil((m.computed + m.scheduled) / static_cast<double>(engine_.block_size));
        continue;
      }
      const double n = m.scheduled;
      in.prefill_sampled += m.computed + n >= m.prompt + m.output ? 1 : 0;
      in.prefill_attention_work += (m.computed + n) * n;
      in.prefill_pairs += n * m.computed + n * (n + 1) / 2;
      in.prefill_keys += m.computed + n;
    }
  }

  // What a summary allows to say: prompts are whole, and differ as those that were seen do; decodes
  // hold their share of the KV cache.
  void AddEstimates(const TracedStep& step, BetaInput& in) const {
    if (step.prefill_requests > 0) {
      const double squares =
          step.prefill_tokens * step.prefill_tokens / step.prefill_requests * (1 + variation_);
      in.prefill_attention_work = squares;
      in.prefill_pairs = (squares + step.prefill_tokens) / 2;
      in.prefill_keys = step.prefill_tokens;
      in.prefill_sampled = step.prefill_requests;
    }
    const double blocks = step.kv_blocks > 0 ? step.kv_blocks : constants_.config.gpu_blocks;
    const double share = step.decode_requests / std::max(1.0, step.running);
    in.decode_kv_blocks = step.kv_usage * blocks * share;
    in.decode_context_tokens = in.decode_kv_blocks * static_cast<double>(engine_.block_size);
  }

  void MakeBeta() {
    std::size_t warm_up = 0, bare = 0, estimated = 0, heavy = 0;
    std::vector<double> units;  // what a step would take at the peaks of the data sheet, us
    for (std::size_t i = 0; i < trace_.steps.size(); ++i) {
      const TracedStep& step = trace_.steps[i];
      if (step.Tokens() <= 0) continue;
      if (i < kWarmUpSteps) {
        ++warm_up;
        continue;
      }
      const bool rich = step.HasMembers();
      const bool unknown = engine_.enable_chunked_prefill && step.prefill_tokens > 0;
      if (!rich && (rich_only_ || unknown)) {
        ++bare;
        continue;
      }
      estimated += rich ? 0 : 1;
      BetaInput in;
      in.prefill_tokens = step.prefill_tokens;
      in.decode_tokens = step.decode_tokens;
      in.prefill_requests = step.prefill_requests;
      in.decode_requests = step.decode_requests;
      in.transfer_blocks = step.transfer_blocks;
      rich ? AddMembers(step, in) : AddEstimates(step, in);
      const auto features = BetaFeatures(constants_, in);
      TrainingSample sample;
      sample.features.assign(features.begin(), features.end());
      sample.smoothed = averages_[i];
      sample.target_us = step.duration_us;
      if (step.preempted / std::max(1.0, step.running) > kHeavyPreemption) {
        sample.weight = 0.5;
        ++heavy;
      }
      Describe(step, i, sample);
      sample.context =
          step.decode_requests > 0 ? in.decode_context_tokens / step.decode_requests : 0;
      double unit = 0;
      for (const std::size_t k : {0u, 1u, 2u, 3u, 4u, 8u, 12u}) unit += features[k] * 1e6;
      units.push_back(unit);
      out_.beta.push_back(std::move(sample));
    }
    const std::size_t outliers = DropOutliers(units);
    Say(
        Format("steps left out: {} of the warm-up, {} without snapshots, {} outliers; {} count "
               "half as they preempt; of {} the attention is estimated (cv2 {})",
               warm_up, bare, outliers, heavy, estimated, ShortNumber(variation_)));
  }

  // A long step is no outlier if its work is long: the median is that of the time over the time at
  // the data sheet's peaks. By the specification it is that of the time.
  std::size_t DropOutliers(const std::vector<double>& units) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < out_.beta.size(); ++i) {
      ratios.push_back(out_.beta[i].target_us / (corrected_ ? std::max(1.0, units[i]) : 1));
    }
    const double most = kOutlier * MedianOf(ratios);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      if (ratios[i] > most) continue;
      if (kept != i) out_.beta[kept] = std::move(out_.beta[i]);
      ++kept;
    }
    const std::size_t dropped = out_.beta.size() - kept;
    out_.beta.resize(kept);
    return dropped;
  }

  void Describe(const TracedStep& step, std::size_t i, TrainingSample& sample) const {
    sample.at = step.start;
    sample.batch = step.decode_requests;
    sample.waiting = step.waiting;
    sample.running = step.running;
    sample.tokens = step.Tokens();
    sample.prefill_tokens = step.prefill_tokens;
    sample.utilization = step.Tokens() / std::max(1.0, constants_.config.max_num_batched_tokens);
    sample.kv_usage = step.kv_usage;
    sample.preemption = averages_[i][1];
  }

  // The number of steps that were formed by then.
  std::size_t FormedBy(TimeNs at) const {
    return static_cast<std::size_t>(
        std::partition_point(trace_.steps.begin(), trace_.steps.end(),
                             [at](const TracedStep& step) { return step.formed <= at; }) -
        trace_.steps.begin());
  }
  // The number of steps that began before.
  std::size_t StartedBefore(TimeNs at) const {
    return static_cast<std::size_t>(
        std::partition_point(trace_.steps.begin(), trace_.steps.end(),
                             [at](const TracedStep& step) { return step.start < at; }) -
        trace_.steps.begin());
  }

  TimeNs FormedOf(std::int64_t id, TimeNs otherwise) const {
    const auto at = std::partition_point(trace_.steps.begin(), trace_.steps.end(),
                                         [id](const TracedStep& step) { return step.id < id; });
    return id >= 0 && at != trace_.steps.end() && at->id == id ? at->formed : otherwise;
  }

  void MakeRequests() {
    std::vector<TimeNs> queued, taken, left;  // of the queue; of the batch
    for (const TracedJourney& j : trace_.journeys) {
      if (j.arrived >= 0 && j.queued >= j.arrived) {
        arrived_.push_back(j.arrived);
        entered_.push_back(j.queued);
      }
      if (j.queued >= 0) queued.push_back(j.queued);
      if (j.scheduled >= 0) taken.push_back(FormedOf(j.scheduled_step, j.scheduled));
      if (j.finished >= 0) left.push_back(j.finished);
      queued.insert(queued.end(), j.preempted.begin(), j.preempted.end());
      taken.insert(taken.end(), j.resumed.begin(), j.resumed.end());
    }
    for (std::vector<TimeNs>* times : {&queued, &taken, &left, &arrived_, &entered_}) {
      std::sort(times->begin(), times->end());
    }
    const bool one_clock = OneClock(queued);
    std::size_t unmatched = 0;
    for (const TracedJourney& j : trace_.journeys) {
      if (j.aborted || j.prompt <= 0) continue;
      if (j.arrived >= 0 && j.queued >= j.arrived && one_clock) {
        AddAlpha(j, CountBy(queued, j.arrived) - CountBy(taken, j.arrived), queued, left);
      }
      if (j.queued >= 0 && j.scheduled >= j.queued) unmatched += AddWait(j, one_clock) ? 0 : 1;
    }
    if (!one_clock && !trace_.journeys.empty()) {
      Say("journeys and steps have different clocks: they are joined by scheduler.step, and the "
          "delay before the queue is not trained");
    }
    Say(
        Format("requests: {} from arrival to queue, {} from queue to batch; {} without a step "
               "before them",
               out_.alpha.size(), out_.wait.size(), unmatched));
  }

  bool OneClock(const std::vector<TimeNs>& queued) const {
    return !queued.empty() && queued.back() >= trace_.steps.front().start &&
           queued.front() <= trace_.steps.back().end;
  }

  // The state of `i` steps' latest, which is what a request finds.
  void AddRequest(const TracedJourney& j, std::size_t i, double waiting, bool at_rest, double us,
                  std::vector<TrainingSample>& samples) {
    const TracedStep& step = trace_.steps[i - 1];
    AlphaInput in;
    in.running_depth = at_rest ? 0 : step.running;
    in.waiting_depth = std::max(0.0, waiting);
    in.kv_usage_ratio = at_rest ? 0 : step.kv_usage;
    in.prompt_tokens = j.prompt;
    in.prefix_hit_ratio = engine_.enable_prefix_caching ? std::max(0.0, j.hit_ratio) : 0;
    in.kv_free_bytes =
        (1 - in.kv_usage_ratio) * constants_.config.gpu_blocks * constants_.BlockBytes();
    in.preemption_ema = 1;  // so that the feature is the gate, for AverageOfPreemptions
    const auto features = AlphaFeatures(constants_, in);
    TrainingSample sample;
    sample.features.assign(features.begin(), features.end());
    for (std::size_t k = 0; k < kGammas.size(); ++k) {
      sample.smoothed[k] = features[kAlphaPreemption] * averages_[i - 1][k];
    }
    sample.target_us = us;
    Describe(step, i - 1, sample);
    sample.at = j.queued;
    sample.prompt = j.prompt;
    sample.waiting = in.waiting_depth;
    sample.running = in.running_depth;
    samples.push_back(std::move(sample));
  }

  void AddAlpha(const TracedJourney& j, double waiting, const std::vector<TimeNs>& queued,
                const std::vector<TimeNs>& left) {
    const std::size_t i = FormedBy(j.arrived);
    if (i <= kWarmUpSteps) return;
    const bool empty = CountBy(queued, j.arrived) - Resumed(j.arrived) <= CountBy(left, j.arrived);
    AddRequest(j, i, waiting, empty && trace_.steps[i - 1].end <= j.arrived,
               static_cast<double>(j.queued - j.arrived) * 1e-3, out_.alpha);
    out_.alpha.back().behind = CountBy(arrived_, j.arrived) - 1 > CountBy(entered_, j.arrived);
  }

  // Preempted requests were queued twice.
  double Resumed(TimeNs at) {
    if (preempted_.empty() && !counted_) {
      for (const TracedJourney& j : trace_.journeys) {
        preempted_.insert(preempted_.end(), j.preempted.begin(), j.preempted.end());
      }
      std::sort(preempted_.begin(), preempted_.end());
      counted_ = true;
    }
    return CountBy(preempted_, at);
  }

  // By the step that began last before the request was queued.
  bool AddWait(const TracedJourney& j, bool one_clock) {
    std::size_t i = StartedBefore(j.queued);
    if (!one_clock) {
      const auto at =
          std::partition_point(trace_.steps.begin(), trace_.steps.end(),
                               [&j](const TracedStep& step) { return step.id <= j.queued_step; });
      i = j.queued_step < 0 ? 0 : static_cast<std::size_t>(at - trace_.steps.begin());
    }
    if (i == 0) return false;
    if (i <= kWarmUpSteps) return true;
    AddRequest(j, i, trace_.steps[i - 1].waiting, false,
               static_cast<double>(j.scheduled - j.queued) * 1e-3, out_.wait);
    return true;
  }

  const StepTrace& trace_;
  const EngineSpec& engine_;
  bool corrected_;
  PhysicsConstants constants_;
  double variation_ = 0;
  bool rich_only_ = false, counted_ = false;
  std::int64_t gaps_ = 0;
  std::vector<std::array<double, kGammas.size()>> averages_;
  std::vector<TimeNs> preempted_;
  std::vector<TimeNs> arrived_, entered_;  // of requests that came to the queue
  TrainingSamples out_;
};

}  // namespace

Result<TrainingSamples> SamplesOf(const StepTrace& trace, const Scenario& scenario) {
  const Result<ModelCost> cost = ComputeModelCost(scenario);
  if (!cost.ok()) return Issues(cost.issues());
  return SampleMaker(trace, scenario, static_cast<double>(cost.value().usable_blocks)).Make();
}

}  // namespace servecast
