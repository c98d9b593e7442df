// std::mt19937_64 is the same everywhere; the distributions of <random> are not, so draws are made
// of plain integers here.
#include "testing/random_cases.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "testing/reference_sim.h"

namespace servecast::testing {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}

  // Uniform in [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    const auto width = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(bits_() % width);
  }
  bool Percent(std::int64_t percent) { return Between(1, 100) <= percent; }
  std::int64_t Pick(const std::vector<std::int64_t>& values) {
    return values[static_cast<std::size_t>(
        Between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 bits_;
};

class RandomLatency : public LatencyModel {
 public:
  explicit RandomLatency(const RandomLatencySpec& spec) : spec_(spec) {}

  StepPrice Price(const BatchShape& shape) const override {
    TimeNs duration = spec_.base + spec_.per_decode * shape.decode_seqs +
                      spec_.per_decode_context * shape.decode_context_tokens;
    std::int64_t place = 0;
    for (const PrefillChunk& chunk : shape.prefill) {
      ++place;
      duration +=
          place *
          (spec_.per_chunk_token * chunk.tokens + spec_.per_chunk_context * chunk.context +
           spec_.per_chunk_prompt * chunk.prompt + (chunk.samples ? spec_.per_chunk_sample : 0));
    }
    StepPrice price;
    price.duration = duration;
    return price;
  }
  TimeNs EnqueueDelay(std::int64_t prompt_tokens) const override {
    TimeNs delay = spec_.enqueue_base + spec_.enqueue_per_token * prompt_tokens;
    if (spec_.enqueue_scramble > 0) {
      delay += (prompt_tokens * 7919) % (spec_.enqueue_scramble + 1);
    }
    return delay;
  }
  TimeNs OutputTokenDelay() const override { return spec_.output_token_delay; }

 private:
  RandomLatencySpec spec_;
};

RandomLatencySpec MakeLatencySpec(Dice& dice) {
  RandomLatencySpec spec;
  // The longer ones make the time series of a run double its bins, many times.
  spec.base = dice.Pick({1000, 1000, 1000, 100'000, 5'000'000, 3'000'000'000});
  // A third of the cases have constant steps: then arrivals fall on step ends all the time.
  if (!dice.Percent(33)) {
    spec.per_decode = dice.Pick({0, 1, 7, 50});
    spec.per_decode_context = dice.Pick({0, 1, 3});
    spec.per_chunk_token = dice.Pick({1, 5, 20});
    spec.per_chunk_context = dice.Pick({0, 1, 2});
    spec.per_chunk_prompt = dice.Pick({0, 3});
    spec.per_chunk_sample = dice.Pick({0, 11, 101});
  }
  if (dice.Percent(40)) {
    spec.enqueue_base = dice.Pick({0, 1, 500, 1000, 7000});
    spec.enqueue_per_token = dice.Pick({0, 0, 10, 300});
    spec.enqueue_scramble = dice.Pick({0, 0, 2000, 40000});
  }
  if (dice.Percent(30)) spec.output_token_delay = dice.Pick({1, 17, 1000, 5000});
  return spec;
}

void MakeRequests(Dice& dice, RandomCase& random_case) {
  const std::int64_t count = dice.Percent(5) ? 1 : dice.Between(2, dice.Pick({8, 24, 60, 120}));
  const std::int64_t longest_prompt = dice.Pick({4, 24, 80, 200});
  const std::int64_t longest_output = dice.Pick({3, 20, 60, 150});
  // Time between arrivals, in steps of about `base`.
  const std::int64_t gap = dice.Pick({0, 1, 3, 10, 30}) * random_case.latency.base;
  const bool on_step_ends = dice.Percent(50);
  const bool bursts = dice.Percent(30);
  const bool shuffled = dice.Percent(30);
  RequestTable& requests = random_case.requests;
  TimeNs now = dice.Percent(50) ? 0 : dice.Between(0, 5000);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!bursts || dice.Percent(20)) now += dice.Between(0, 2 * gap * (bursts ? 5 : 1));
    const TimeNs base = random_case.latency.base;
    requests.arrival.push_back(on_step_ends ? now / base * base : now);
    requests.prompt_tokens.push_back(static_cast<std::int32_t>(dice.Between(1, longest_prompt)));
    requests.output_tokens.push_back(static_cast<std::int32_t>(dice.Between(1, longest_output)));
  }
  if (shuffled) {
    for (std::int64_t i = count - 1; i > 0; --i) {
      std::swap(requests.arrival[static_cast<std::size_t>(i)],
                requests.arrival[static_cast<std::size_t>(dice.Between(0, i))]);
    }
  }
}

void MakeEngine(Dice& dice, RandomCase& random_case) {
  EngineSpec& engine = random_case.engine;
  const RequestTable& requests = random_case.requests;
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    longest =
        std::max<std::int64_t>(longest, requests.prompt_tokens[i] + requests.output_tokens[i]);
  }
  engine.name = "random";
  engine.block_size = dice.Percent(30) ? 16 : dice.Between(1, 32);
  // Room for a half to a dozen of the longest requests, or plenty.
  const std::int64_t per_request = CeilDiv(longest, engine.block_size);
  const std::int64_t usable =
      dice.Percent(80) ? per_request * dice.Between(2, 20) / 4 : per_request * requests.size();
  engine.num_gpu_blocks_override = std::max<std::int64_t>(usable, 1) + 1;
  engine.max_num_seqs = dice.Pick({1, 3, 8, 16, 32, 64, 64});
  engine.max_num_batched_tokens =
      std::max(engine.max_num_seqs, dice.Percent(70) ? dice.Between(4, 120) : 2048);
  engine.long_prefill_token_threshold = dice.Percent(50) ? 0 : dice.Between(1, 40);
  engine.scheduler_reserve_full_isl = dice.Percent(50);
  if (dice.Percent(30)) engine.watermark = static_cast<double>(dice.Between(1, 60)) / 100;
  engine.enable_chunked_prefill = dice.Percent(75);

  random_case.model_max_len =
      dice.Percent(10) ? dice.Between(longest / 2 + 1, longest + 1) : 1 << 20;
  if (dice.Percent(10)) engine.max_model_len = dice.Between(2, longest + 1);
}

// Anywhere in the run, half of the time at the very end of a step.
void MakeHorizon(Dice& dice, RandomCase& random_case) {
  const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case.latency);
  const ReferenceOutput whole =
      RunReference(ReferenceInput{.requests = random_case.requests,
                                  .engine = random_case.engine,
                                  .pool_blocks = random_case.PoolBlocks(),
                                  .model_max_len = random_case.model_max_len,
                                  .latency = *latency,
                                  .horizon = {}});
  const auto steps = static_cast<std::int64_t>(whole.steps.size());
  if (steps > 0 && dice.Percent(50)) {
    random_case.horizon = whole.steps[static_cast<std::size_t>(dice.Between(0, steps - 1))].end;
  } else {
    random_case.horizon = dice.Between(1, whole.end + 1000);
  }
}

}  // namespace

RandomCase MakeRandomCase(std::uint64_t seed) {
  RandomCase random_case;
  random_case.seed = seed;
  Dice dice(seed);
  random_case.latency = MakeLatencySpec(dice);
  MakeRequests(dice, random_case);
  MakeEngine(dice, random_case);
  if (dice.Percent(25)) MakeHorizon(dice, random_case);
  return random_case;
}

std::unique_ptr<LatencyModel> MakeLatency(const RandomLatencySpec& spec) {
  return std::make_unique<RandomLatency>(spec);
}

RandomCase WithoutRequests(const RandomCase& random_case, std::int64_t first, std::int64_t count) {
  RandomCase part = random_case;
  const auto cut = [&](auto& column) {
    const auto begin = column.begin() + static_cast<std::ptrdiff_t>(first);
    column.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  cut(part.requests.arrival);
  cut(part.requests.prompt_tokens);
  cut(part.requests.output_tokens);
  return part;
}

std::string Describe(const RandomCase& random_case) {
  const EngineSpec& engine = random_case.engine;
  const RandomLatencySpec& latency = random_case.latency;
  std::string text = fmt::format(
      "seed {}: {} requests, pool {} blocks of {}, max_num_seqs {}, max_num_batched_tokens {}, "
      "threshold {}, reserve_full_isl {}, watermark {}, chunked {}, max_model_len {} (model {}), "
      "horizon {}\n  step {} + {}*decodes + {}*context + place*({}*tokens + {}*context + "
      "{}*prompt + {}*samples), enqueue {} + {}*prompt + scramble {}, output token delay {}\n",
      random_case.seed, random_case.requests.size(), random_case.PoolBlocks(), engine.block_size,
      engine.max_num_seqs, engine.max_num_batched_tokens, engine.long_prefill_token_threshold,
      engine.scheduler_reserve_full_isl, engine.watermark, engine.enable_chunked_prefill,
      engine.max_model_len.value_or(-1), random_case.model_max_len,
      random_case.horizon.value_or(-1), latency.base, latency.per_decode,
      latency.per_decode_context, latency.per_chunk_token, latency.per_chunk_context,
      latency.per_chunk_prompt, latency.per_chunk_sample, latency.enqueue_base,
      latency.enqueue_per_token, latency.enqueue_scramble, latency.output_token_delay);
  if (random_case.requests.size() > 12) return text;
  for (std::size_t i = 0; i < random_case.requests.arrival.size(); ++i) {
    text += fmt::format("  request {}: arrival {}, prompt {}, output {}\n", i,
                        random_case.requests.arrival[i], random_case.requests.prompt_tokens[i],
                        random_case.requests.output_tokens[i]);
  }
  return text;
}

}  // namespace servecast::testing
