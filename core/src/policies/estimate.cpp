// See estimate.h. Who waits: Sakasegawa's approximation of M/M/c, r^sqrt(2 (c + 1)) / (1 - r), with
// as many servers as requests can run (H. Sakasegawa, Ann. Inst. Statist. Math. 29 (1977)).
#include "policies/estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "cost/physics_features.h"

namespace servecast {
namespace {

// Tokens of the cache.
double RoomOf(const Scenario& s, const ModelCost& cost, double context) {
  const auto whole = static_cast<std::int64_t>(std::ceil(context));
  return context + static_cast<double>(cost.RoomOf(whole, s.engine.block_size) - whole);
}

// Steps with and without a prompt in them, with n decodes each.
class SteadyState {
 public:
  SteadyState(const Scenario& s, const ModelCost& cost, const LatencyModel& model, const Demand& d)
      : model_(model),
        computed_(std::max(1.0, d.prompt_tokens * (1 - d.prefix_hit_ratio))),
        cached_(d.prompt_tokens - computed_),
        context_(d.prompt_tokens + d.output_tokens / 2),
        decode_steps_(std::max(1.0, d.output_tokens - 1)),
        budget_(static_cast<double>(s.engine.max_num_batched_tokens)),
        block_size_(static_cast<double>(s.engine.block_size)) {
    const double tokens = static_cast<double>(cost.usable_blocks) * block_size_;
    const double fit = std::floor(tokens / RoomOf(s, cost, context_));
    seats_ = std::max(1.0, std::min(static_cast<double>(s.engine.max_num_seqs), fit));
  }

  double seats() const { return seats_; }

  // s; with so many tokens of prompts.
  double Step(double n, double prefill) const {
    PrefillChunk chunk;
    chunk.tokens = static_cast<std::int64_t>(std::nearbyint(prefill));
    chunk.context = static_cast<std::int64_t>(cached_);
    chunk.prompt = static_cast<std::int64_t>(cached_ + computed_);
    chunk.samples = true;
    const auto decodes = static_cast<std::int64_t>(std::nearbyint(n));
    const auto context = static_cast<std::int64_t>(context_);
    BatchShape shape{decodes, decodes * context, {}};
    if (chunk.tokens > 0) shape.prefill = {&chunk, 1};
    shape.decode_kv_blocks = decodes * CeilDiv(context + 1, static_cast<std::int64_t>(block_size_));
    return static_cast<double>(model_.Price(shape).duration) * 1e-9;
  }

  struct Steps {
    double mean = 0, residual = 0;  // s; of a step, and of what is left of it at a random moment
    double with_prompt = 0;         // a step that ends a prompt
    bool enough = false;            // the prompts of a step's time fit a step
  };
  // Prompts come singly, each makes its step longer; more than one a step share theirs.
  Steps Under(double rate, double n) const {
    const double plain = Step(n, 0), room = std::max(1.0, budget_ - n);
    Steps steps{plain, plain / 2, plain, false};
    double before = -1, with = 0, priced = -1;
    // All else follows from the mean: once that stays, nothing changes.
    for (int i = 0; i < 40 && steps.mean != before; ++i) {
      before = steps.mean;
      const double prompts = rate * steps.mean;
      const double tokens = std::max(1.0, prompts) * computed_;
      const double parts = std::max(1.0, tokens / room);
      const double whole = std::nearbyint(std::min(tokens, room));
      if (whole != priced) with = Step(n, priced = whole);
      const double share = std::min(1.0, prompts * parts);
      steps.with_prompt = with * std::ceil(computed_ / room);
      steps.mean = (1 - share) * plain + share * with;
      steps.residual = ((1 - share) * plain * plain + share * with * with) / (2 * steps.mean);
      steps.enough = rate * steps.mean * computed_ <= room;
    }
    return steps;
  }

  bool KeepsUp(double rate, double n) const {
    const Steps steps = Under(rate, n);
    return rate * decode_steps_ * steps.mean <= n && steps.enough;
  }

  // Requests per second that all seats serve.
  double MostRate() const {
    double slow = 0, fast = seats_ / (decode_steps_ * Step(seats_, 0));
    for (int i = 0; i < 40; ++i) {
      const double middle = (slow + fast) / 2;
      (KeepsUp(middle, seats_) ? slow : fast) = middle;
    }
    return slow;
  }

  // The least n that serves the rate; else all seats.
  struct Taken {
    bool overloaded;
    double seats;
    Steps steps;
  };
  Taken At(double rate) const {
    const bool overloaded = !KeepsUp(rate, seats_);
    double low = 0, high = seats_;
    while (high - low > 1 && !overloaded) {
      const double middle = std::floor((low + high) / 2);
      (KeepsUp(rate, middle) ? high : low) = middle;
    }
    return {overloaded, high, Under(rate, high)};
  }

  double decode_steps() const { return decode_steps_; }

 private:
  const LatencyModel& model_;
  double computed_, cached_, context_, decode_steps_, budget_, block_size_;
  double seats_ = 1;
};

// The regression in state e.
double RegressionMs(const Scenario& s, const ModelCost& cost, const Estimate& e) {
  const double blocks = static_cast<double>(cost.usable_blocks);
  const PhysicsConstants constants = MakePhysicsConstants(PhysicsConfigOf(s, blocks));
  AlphaInput in;
  in.running_depth = e.running;
  in.waiting_depth = e.waiting;
  in.kv_usage_ratio = e.kv_usage;
  in.prompt_tokens = e.demand.prompt_tokens;
  in.prefix_hit_ratio = e.demand.prefix_hit_ratio;
  in.kv_free_bytes = (1 - e.kv_usage) * blocks * constants.BlockBytes();
  const auto features = AlphaFeatures(constants, in);
  double us = 0;
  for (std::size_t i = 0; i < features.size(); ++i) {
    us += s.latency.wait_coefficients[i] * features[i];
  }
  return std::max(0.0, us) * 1e-3;
}

// What arrivals at random find of the front end of one replica.
struct FrontEnd {
  double most = std::numeric_limits<double>::infinity();  // requests per second
  double wait_ms = 0;                                     // for a server
};
FrontEnd FrontEndUnder(const EngineSpec& engine, const LatencyModel& model, const Demand& d) {
  const TimeNs work = model.TakeUpTimes(static_cast<std::int64_t>(d.prompt_tokens)).work;
  if (work == 0 || engine.compat != Compat::kNone) return {};
  const auto servers = static_cast<double>(engine.api_server_count);
  FrontEnd front{servers * 1e9 / static_cast<double>(work)};
  const double busy = std::min(d.requests_per_s / front.most, 1 - 1e-9);
  // Of equal times half as long as Sakasegawa's of exponential ones.
  const double queue = Exp(std::max((std::sqrt(2 * (servers + 1)) - 1) * Log(busy), -700.0));
  front.wait_ms = static_cast<double>(work) * 1e-6 * queue / (2 * servers * (1 - busy));
  return front;
}

}  // namespace

Estimate EstimateSteadyState(const Scenario& s, const ModelCost& cost, const LatencyModel& model,
                             const Demand& d) {
  const SteadyState state(s, cost, model, d);
  const double seats = state.seats();
  Estimate e;
  e.demand = d;
  const FrontEnd front = FrontEndUnder(s.engine, model, d);
  e.most_requests_per_s = std::min(state.MostRate(), front.most);
  const SteadyState::Taken taken = state.At(d.requests_per_s);
  const SteadyState::Steps& steps = taken.steps;
  e.overloaded = taken.overloaded || d.requests_per_s >= front.most;
  e.running = taken.overloaded
                  ? seats
                  : std::min(taken.seats, d.requests_per_s * state.decode_steps() * steps.mean);
  const auto blocks = static_cast<double>(cost.usable_blocks);
  const double context = d.prompt_tokens + d.output_tokens / 2;
  e.kv_usage = std::min(1.0, e.running * RoomOf(s, cost, context) /
                                 (blocks * static_cast<double>(s.engine.block_size)));
  e.step_ms = e.tpot_ms = steps.mean * 1e3;
  // With async scheduling the step after the running one is formed already. Who comes to an engine
  // at rest waits for nothing.
  const double formed = s.engine.async_scheduling ? steps.mean : 0;
  e.step_wait_ms = (steps.residual + formed) * 1e3 * std::min(1.0, e.running);
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  if (e.overloaded) {
    e.waiting = e.regression_ms = e.ttft_ms = e.e2e_ms = kEndless;
    return e;
  }
  const double busy = std::min(d.requests_per_s / e.most_requests_per_s, 1 - 1e-9);
  e.waiting = Exp(std::max(std::sqrt(2 * (seats + 1)) * Log(busy), -700.0)) / (1 - busy);
  EngineLoad load;
  load.running = static_cast<std::int64_t>(e.running);
  load.waiting = static_cast<std::int64_t>(e.waiting);
  load.kv_blocks_used = static_cast<std::int64_t>(e.kv_usage * blocks);
  const TimeNs host = model.DelayUnder(static_cast<std::int64_t>(d.prompt_tokens), load);
  const double handed_out = std::max(1.0, e.running);
  const double delivery = static_cast<double>(model.DeliveryDelay()) * handed_out;
  // None is longer than its interval.
  const StallTimes stalls = model.Stalls();
  const double stalled = std::min(stalls.MeanWaitNs(), static_cast<double>(stalls.interval));
  e.host_ms = static_cast<double>(host) * 1e-6 + front.wait_ms;
  e.delivery_ms = (delivery + stalled) * 1e-6;
  e.regression_ms = RegressionMs(s, cost, e);
  e.ttft_ms =
      e.host_ms + e.regression_ms + e.step_wait_ms + steps.with_prompt * 1e3 + e.delivery_ms;
  e.e2e_ms = e.ttft_ms + (d.output_tokens - 1) * e.tpot_ms;
  return e;
}

double SteadyStepMs(const Scenario& s, const ModelCost& cost, const LatencyModel& model,
                    const Demand& d) {
  return SteadyState(s, cost, model, d).At(d.requests_per_s).steps.mean * 1e3;
}

}  // namespace servecast
