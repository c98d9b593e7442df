#include "testing/random_cases.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cost/model_cost.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "testing/dice.h"
#include "testing/engine_run.h"
#include "testing/random_drafts.h"
#include "testing/reference_sim.h"

namespace servecast::testing {
namespace {

class RandomLatency : public LatencyModel {
 public:
  explicit RandomLatency(const RandomLatencySpec& spec) : spec_(spec) {}

  StepPrice Price(const BatchShape& shape) const override {
    TimeNs duration =
        spec_.base + spec_.per_decode * shape.decode_seqs +
        spec_.per_decode_context * (shape.decode_context_tokens + 2 * shape.decode_longest);
    std::int64_t place = 0;
    for (const PrefillChunk& chunk : shape.prefill) {
      ++place;
      duration +=
          place *
          (spec_.per_chunk_token * chunk.tokens + spec_.per_chunk_context * chunk.context +
           spec_.per_chunk_prompt * chunk.prompt + (chunk.samples ? spec_.per_chunk_sample : 0));
    }
    place = 0;
    for (const DraftedDecodes& decodes : shape.drafted) {
      ++place;
      duration += place * (spec_.per_decode * decodes.tokens * decodes.sequences +
                           spec_.per_decode_context * decodes.Keys());
    }
    duration +=
        spec_.per_adapter * shape.lora.adapters + spec_.per_adapter_token * shape.lora.tokens;
    duration += spec_.per_image * shape.images;
    StepPrice price;
    price.duration = duration;
    return price;
  }
  HostTimes TakeUpTimes(std::int64_t prompt_tokens) const override {
    TimeNs delay = spec_.enqueue_base + spec_.enqueue_per_token * prompt_tokens;
    if (spec_.enqueue_scramble > 0) {
      delay += (prompt_tokens * 7919) % (spec_.enqueue_scramble + 1);
    }
    const TimeNs work = delay * spec_.enqueue_work_percent / 100;
    return {work, delay - work};
  }
  bool PricesLongest() const override { return spec_.per_decode_context > 0; }
  TimeNs OutputTokenDelay() const override { return spec_.output_token_delay; }
  TimeNs DeliveryDelay() const override { return spec_.delivery_delay; }
  StallTimes Stalls() const override { return spec_.stalls; }
  TimeNs PostDecodeDelay() const override { return spec_.post_decode_delay; }

 private:
  RandomLatencySpec spec_;
};

class StageLatency : public LatencyModel {
 public:
  StageLatency(const LatencyModel& whole, TimeNs weight) : whole_(whole), weight_(weight) {}

  StepPrice Price(const BatchShape& shape) const override {
    StepPrice price = whole_.Price(shape);
    price.duration *= weight_;
    return price;
  }
  HostTimes TakeUpTimes(std::int64_t) const override { return {}; }

 private:
  const LatencyModel& whole_;
  TimeNs weight_;
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

// The model "physics" with weights that let each feature be seen in a step of about `base`. Of dice
// of its own, so that the other cases are what they would be without it.
void MakePhysics(std::uint64_t seed, RandomLatencySpec& latency) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 11);
  if (!dice.Percent(20)) return;
  LatencySpec spec;
  spec.backend = "physics";
  spec.variant = dice.Percent(50) ? "corrected" : "seed";
  const double us = static_cast<double>(latency.base) / 1000;
  const auto draw = [&dice](std::vector<double>& weights, double scale, std::int64_t percent) {
    for (double& weight : weights) {
      weight = dice.Percent(percent) ? static_cast<double>(dice.Between(0, 200)) / 100 * scale : 0;
    }
  };
  draw(spec.beta_coefficients, us, 60);
  spec.beta_coefficients[15] = us;
  // Times of a tiny model: a few nanoseconds to microseconds.
  for (const std::size_t i : {0u, 1u, 2u, 3u, 4u, 8u, 12u, 13u}) spec.beta_coefficients[i] *= 1e7;
  // In this order with every compiler.
  const std::int64_t delayed = dice.Percent(70) ? 40 : 0;
  const double delay = us * static_cast<double>(dice.Pick({1, 3, 30}));
  draw(spec.alpha_coefficients, delay, delayed);
  for (const std::size_t i : {2u, 4u}) spec.alpha_coefficients[i] *= 1e5;
  if (dice.Percent(30)) spec.alpha_coefficients[3] = us / 2;
  spec.preemption_gamma = static_cast<double>(dice.Pick({0, 10, 30, 50, 100})) / 100;
  latency.physics = spec;
  latency.output_token_delay = 0;
}

// Of dice of its own, too.
void MakeDelivery(std::uint64_t seed, RandomLatencySpec& latency) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 17);
  if (latency.physics || !dice.Percent(30)) return;
  latency.delivery_delay = dice.Pick({1, 13, 700, 9000});
  if (!dice.Percent(50)) return;
  latency.stalls.mean = dice.Pick({40, 900, 7000, 90000});
  latency.stalls.interval = latency.stalls.mean * dice.Pick({1, 3, 10, 100});
}

// Rows of conversations and of single requests, and when the conversations start.
void MakeRequests(Dice& dice, RandomCase& random_case) {
  const std::int64_t count = dice.Percent(5) ? 1 : dice.Between(2, dice.Pick({8, 24, 60, 100}));
  const std::int64_t longest_prompt = dice.Pick({4, 24, 80, 200});
  const std::int64_t longest_output = dice.Pick({3, 20, 60, 120});
  const std::int64_t most_turns = dice.Percent(30) ? dice.Between(2, 5) : 1;
  const TimeNs base = random_case.latency.base;
  // Time between arrivals, in steps of about `base`.
  const std::int64_t gap = dice.Pick({0, 1, 3, 10, 30}) * base;
  const bool on_step_ends = dice.Percent(50);
  const bool bursts = dice.Percent(30);
  const bool shuffled = dice.Percent(30);
  RequestTable& requests = random_case.requests;
  std::vector<std::size_t> first_turns;
  TimeNs now = dice.Percent(50) ? 0 : dice.Between(0, 5000);
  while (requests.size() < count) {
    if (!bursts || dice.Percent(20)) now += dice.Between(0, 2 * gap * (bursts ? 5 : 1));
    first_turns.push_back(requests.arrival.size());
    const std::int64_t turns = dice.Between(1, most_turns);
    std::int64_t said = 0;
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      const std::int64_t prompt = said + dice.Between(1, longest_prompt);
      const std::int64_t output = dice.Between(1, longest_output);
      requests.arrival.push_back(turn > 0 ? -1 : on_step_ends ? now / base * base : now);
      requests.prompt_tokens.push_back(static_cast<std::int32_t>(prompt));
      requests.output_tokens.push_back(static_cast<std::int32_t>(output));
      if (most_turns > 1) {
        requests.think.push_back(turn > 0 ? dice.Pick({0, 0, 1, 3, 20}) * dice.Pick({1, base})
                                          : -1);
      }
      said = prompt + output;
    }
  }
  if (!shuffled) return;
  for (auto i = static_cast<std::int64_t>(first_turns.size()) - 1; i > 0; --i) {
    const auto other = static_cast<std::size_t>(dice.Between(0, i));
    std::swap(requests.arrival[first_turns[static_cast<std::size_t>(i)]],
              requests.arrival[first_turns[other]]);
  }
}

// What the prompts have in common: prefixes of groups, or, as in traces of block hashes, the
// beginning of an earlier request's prompt.
void MakeContent(Dice& dice, RandomCase& random_case) {
  RequestTable& requests = random_case.requests;
  const std::int64_t kind = dice.Between(1, 100);
  if (kind <= 20) return;  // all their own, and the column is left out
  const std::int64_t groups = kind <= 60 ? dice.Between(1, 4) : 0;
  requests.segments.assign(static_cast<std::size_t>(groups), {});
  std::vector<std::int64_t> own_prompt(static_cast<std::size_t>(groups), 1 << 20);  // by segment
  const std::int64_t block = random_case.engine.block_size;
  for (std::size_t row = 0; row < requests.arrival.size(); ++row) {
    const bool follows = !requests.think.empty() && requests.think[row] >= 0;
    if (follows) {
      requests.content.push_back(requests.content.back());
      continue;
    }
    const std::int64_t prompt = requests.prompt_tokens[row];
    const std::int64_t parents = groups > 0 ? groups : static_cast<std::int64_t>(own_prompt.size());
    ContentSegment segment;
    if (parents > 0 && dice.Percent(80)) {
      segment.parent = static_cast<std::int32_t>(dice.Between(0, parents - 1));
      const std::int64_t most =
          std::min(prompt, own_prompt[static_cast<std::size_t>(segment.parent)]);
      std::int64_t shared = dice.Percent(40) ? most : dice.Between(0, most);
      if (dice.Percent(30)) shared = shared / block * block;
      segment.shared_tokens = static_cast<std::int32_t>(shared);
    }
    requests.content.push_back(static_cast<std::int32_t>(requests.segments.size()));
    requests.segments.push_back(segment);
    own_prompt.push_back(prompt);
  }
}

template <class Entry>
const Entry& OneOf(Dice& dice, std::span<const Entry> entries) {
  return entries[static_cast<std::size_t>(
      dice.Between(0, static_cast<std::int64_t>(entries.size()) - 1))];
}

// Who is more urgent than whom, and who gives up when.
void MakeScheduling(Dice& dice, RandomCase& random_case) {
  SchedulerSpec& scheduler = random_case.scheduler;
  // Whatever is registered.
  const OrderEntry& order = OneOf(dice, Orders());
  const PriorityEntry& priority = OneOf(dice, Priorities());
  scheduler.order = dice.Percent(30) ? "fcfs" : std::string(order.name);
  scheduler.priority = priority.name;
  scheduler.preemption = dice.Pick<std::string>({"auto", "auto", "tail", "priority"});
  for (const auto params : {order.params, priority.params}) {
    for (const ParamSpec& param : params) {
      scheduler.params[param.name] = dice.Pick<double>(
          {param.min, param.fallback / 2, param.fallback, (param.min + param.max) / 4, param.max});
    }
  }

  RequestTable& requests = random_case.requests;
  const TimeNs base = random_case.latency.base;
  const std::int64_t urgencies = dice.Percent(75) ? dice.Pick({1, 2, 6, 100}) : 0;
  const bool deadlines = scheduler.order == "edf" ? dice.Percent(90) : dice.Percent(10);
  const bool timeouts = dice.Percent(15);
  const std::int64_t patience = dice.Pick({3, 30, 300});
  for (std::int64_t row = 0; row < requests.size(); ++row) {
    if (urgencies > 0) {
      requests.priority.push_back(static_cast<std::int32_t>(dice.Between(-urgencies, urgencies)));
    }
    if (deadlines) {
      requests.ttft_deadline.push_back(dice.Percent(20) ? kNever : dice.Between(1, 20) * base);
    }
    if (timeouts) {
      TimeNs timeout = kNever;
      if (dice.Percent(60)) timeout = dice.Between(1, patience) * base - dice.Pick({0, 0, 1, 500});
      requests.timeout.push_back(timeout);
    }
  }
}

// A closed loop: all but the first few sessions wait for a client. Or clients that hold back: they
// are not due before the times that they had.
void MakeLoop(Dice& dice, RandomCase& random_case) {
  RequestTable& requests = random_case.requests;
  if (Dice(random_case.seed * 31 + 7).Percent(40)) requests.due = requests.arrival;
  const std::int64_t clients = dice.Pick({1, 2, 4, 12});
  const TimeNs base = random_case.latency.base;
  std::int64_t sessions = 0;
  for (std::size_t row = 0; row < requests.arrival.size(); ++row) {
    const bool follows = !requests.think.empty() && requests.think[row] >= 0;
    const bool waits = !follows && ++sessions > clients;
    if (waits) requests.arrival[row] = -1;
    requests.pause.push_back(waits ? dice.Pick({0, 0, 1, 3, 20}) * dice.Pick({1, base}) : -1);
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
  engine.enable_prefix_caching = dice.Percent(60);
  engine.free_contentless_first = dice.Percent(70);
  engine.async_scheduling = dice.Percent(40);

  random_case.model_max_len =
      dice.Percent(10) ? dice.Between(longest / 2 + 1, longest + 1) : 1 << 20;
  if (dice.Percent(10)) engine.max_model_len = dice.Between(2, longest + 1);
}

// Options after SFLLM, mostly off.
void MakeOptions(Dice& dice, RandomCase& random_case) {
  EngineSpec& engine = random_case.engine;
  if (dice.Percent(20)) {
    engine.admission_reserve =
        static_cast<double>(dice.Pick({1, 25, 75, 100, 125, 300, 1000})) / 100;
  }
  if (dice.Percent(25)) {
    engine.gc_pass_us = dice.Pick<double>({0.001, 0.5, 3, 100, 20'000});
    engine.gc_fraction = static_cast<double>(dice.Pick({1, 10, 50, 70, 100})) / 100;
  }
}

// Tiers behind the cache: of a few blocks to several pools, quick and slow.
void MakeOffload(Dice& dice, RandomCase& random_case) {
  if (!random_case.engine.enable_prefix_caching || dice.Percent(50)) return;
  KvOffloadSpec& offload = random_case.engine.kv_offload;
  const std::int64_t pool = random_case.PoolBlocks();
  const auto gib = [&] {
    const std::int64_t blocks = dice.Percent(30) ? dice.Between(0, 4) : dice.Between(1, 4 * pool);
    // Half a block more: a capacity is rounded down.
    return (static_cast<double>(blocks) + 0.5) * static_cast<double>(random_case.KvBlockBytes()) /
           (1024.0 * 1024 * 1024);
  };
  if (dice.Percent(90)) offload.cpu_gib = gib();
  offload.cpu_latency_us = static_cast<double>(dice.Pick({0, 1, 30}));
  offload.cpu_bandwidth_gb_s = static_cast<double>(dice.Pick({1, 7, 50}));
  if (dice.Percent(60)) offload.disk_gib = gib();
  offload.disk_latency_us = static_cast<double>(dice.Pick({0, 5, 800}));
  offload.disk_bandwidth_gb_s = static_cast<double>(dice.Pick({1, 3, 50})) / 10;
  if (dice.Percent(40)) offload.threshold = static_cast<double>(dice.Between(1, 100)) / 100;
}

// A quarter of the cases: of dice of its own, as the physics.
void MakePipeline(std::uint64_t seed, RandomCase& random_case) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 29);
  if (!dice.Percent(25)) return;
  const std::int64_t count = dice.Between(2, 4);
  const bool equal = dice.Percent(40);
  const bool sends = dice.Percent(60);
  for (std::int64_t i = 0; i < count; ++i) {
    RandomStage stage;
    stage.weight = equal ? 1 : dice.Pick({1, 1, 2, 3, 7});
    if (sends && i + 1 < count) {
      stage.send = dice.Pick({0, 1, 100, 5000});
      stage.send_per_token = dice.Pick({0, 1, 13});
    }
    random_case.stages.push_back(stage);
  }
  random_case.engine.async_scheduling = false;
  random_case.engine.kv_offload = {};
  if (!dice.Percent(40)) return;
  // Clients of victims leave as soon as the next batch is done, when a step of theirs may not be.
  const ReferenceOutput whole = RunReference(random_case);
  std::vector<TimeNs>& timeout = random_case.requests.timeout;
  timeout.assign(random_case.requests.arrival.size(), kNever);
  for (const StepRecord& step : whole.steps) {
    if (step.preempted.empty()) continue;
    TimeNs next = kNever;
    for (const StepRecord& other : whole.steps) {
      if (other.end > step.scheduled) next = std::min(next, other.end);
    }
    for (const RequestId id : step.preempted) {
      const TimeNs patience = next - whole.requests.arrival[static_cast<std::size_t>(id)];
      if (patience > 0 && dice.Percent(50)) timeout[static_cast<std::size_t>(id)] = patience;
    }
  }
}

// Whether requests wait for each other before the queue.
void MakeFrontEnd(std::uint64_t seed, RandomCase& random_case) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 37);
  random_case.latency.enqueue_work_percent = dice.Pick({0, 30, 100});
  random_case.engine.api_server_count = dice.Pick({1, 1, 2, 3});
}

// Anywhere in the run, half of the time at the very end of a step.
void MakeHorizon(Dice& dice, RandomCase& random_case) {
  const ReferenceOutput whole = RunReference(random_case);
  const auto steps = static_cast<std::int64_t>(whole.steps.size());
  if (steps > 0 && dice.Percent(50)) {
    random_case.horizon = whole.steps[static_cast<std::size_t>(dice.Between(0, steps - 1))].end;
  } else {
    random_case.horizon = dice.Between(1, whole.end + 1000);
  }
}

// Anywhere in the part of a prompt that is its turn's own, none over another; some in several
// prompts, some twice in one.
// One case in eight. Periods of a step to the whole run.
void MakeSlowdowns(std::uint64_t seed, RandomCase& random_case) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 53);
  if (!dice.Percent(12) || !random_case.stages.empty()) return;
  SlowdownSpec& slow = random_case.slowdowns;
  const double step_s = static_cast<double>(random_case.latency.base) * 1e-9;
  const auto steps = [&](std::int64_t most) {
    return static_cast<double>(dice.Between(0, most * 1000)) * 1e-3 * step_s;
  };
  slow.factor = static_cast<double>(dice.Between(1000, dice.Pick({1000, 2000, 10000}))) * 1e-3;
  if (dice.Percent(80)) slow.for_s = std::max(1e-9, steps(dice.Pick({1, 10, 100})));
  const bool by_chance = dice.Percent(40);
  if (by_chance) slow.mean_gap_s = std::max(step_s, steps(dice.Pick({5, 50})));
  for (std::int64_t rows = dice.Between(by_chance ? 0 : 1, 6); rows > 0; --rows) {
    slow.schedule.push_back({dice.Percent(25) ? 0 : steps(dice.Pick({5, 50, 200})),
                             static_cast<double>(dice.Percent(60) ? 0 : dice.Between(1, 3))});
  }
}

void MakeImages(Dice& dice, RandomCase& random_case) {
  RequestTable& requests = random_case.requests;
  const std::int64_t longest = dice.Pick({2, 8, 30});
  const std::int64_t contents = dice.Pick({1, 4, 30, 1'000'000});
  const std::int64_t often = dice.Pick({20, 60, 100}), row_breaks = dice.Pick({0, 0, 30});
  std::int64_t said = 0;
  std::vector<PromptImage> sizes(static_cast<std::size_t>(std::min<std::int64_t>(contents, 64)));
  for (PromptImage& size : sizes) {
    size.tokens = static_cast<std::int32_t>(dice.Between(1, longest));
    if (dice.Percent(row_breaks) && size.tokens > 1) {
      size.row_break = static_cast<std::int32_t>(dice.Between(2, 5));
    }
    size.embeds = size.tokens - (size.row_break > 0 ? size.tokens / size.row_break : 0);
    random_case.most_image_tokens =
        std::max<std::int64_t>(random_case.most_image_tokens, size.embeds);
  }
  for (std::size_t row = 0; row < requests.arrival.size(); ++row) {
    const bool follows = !requests.think.empty() && requests.think[row] >= 0;
    const std::span<const PromptImage> earlier =
        follows ? requests.ImagesOf(static_cast<RequestId>(row - 1)) : std::span<PromptImage>();
    const std::vector<PromptImage> copy(earlier.begin(), earlier.end());
    requests.images.insert(requests.images.end(), copy.begin(), copy.end());
    std::int64_t at = follows ? said : 0;
    const std::int64_t prompt = requests.prompt_tokens[row];
    while (dice.Percent(often)) {
      at += dice.Percent(50) ? 0 : dice.Between(0, 20);
      const std::int64_t content = dice.Between(0, contents - 1);
      PromptImage image = sizes[static_cast<std::size_t>(content) % sizes.size()];
      if (at + image.tokens > prompt) break;
      image.content = content;
      image.offset = static_cast<std::int32_t>(at);
      requests.images.push_back(image);
      at = image.end();
    }
    said = prompt + requests.output_tokens[row];
    requests.images_until.push_back(static_cast<std::int64_t>(requests.images.size()));
  }
}

}  // namespace

void SetRetries(RequestTable& requests, const std::vector<TimeNs>& backoff) {
  const auto size = static_cast<std::size_t>(requests.size());
  const std::size_t each = backoff.size() / size;
  if (requests.content.empty()) {
    for (std::size_t i = 0; i < size; ++i) {
      requests.content.push_back(static_cast<std::int32_t>(i));
    }
    requests.segments.resize(size);
  }
  const auto repeat = [&](auto& column) {
    if (column.empty()) return;
    for (std::size_t row = 0; row < size * each; ++row) {
      const auto value = column[row / each];
      column.push_back(value);
    }
  };
  repeat(requests.prompt_tokens);
  repeat(requests.output_tokens);
  repeat(requests.priority);
  repeat(requests.ttft_deadline);
  repeat(requests.timeout);
  repeat(requests.content);
  repeat(requests.accepted_drafts);
  repeat(requests.proposed_drafts);
  repeat(requests.acceptance_length);
  repeat(requests.lora);
  requests.arrival.resize(size * (1 + each), -1);
  requests.backoff = backoff;
}

RandomCase MakeRandomCase(std::uint64_t seed) {
  RandomCase random_case;
  random_case.seed = seed;
  Dice dice(seed);
  random_case.latency = MakeLatencySpec(dice);
  MakePhysics(seed, random_case.latency);
  MakeDelivery(seed, random_case.latency);
  MakeRequests(dice, random_case);
  MakeEngine(dice, random_case);
  MakeContent(dice, random_case);
  MakeScheduling(dice, random_case);
  MakeOptions(dice, random_case);
  MakeOffload(dice, random_case);
  if (dice.Percent(15)) MakeLoop(dice, random_case);
  MakePipeline(seed, random_case);
  MakeFrontEnd(seed, random_case);
  if (dice.Percent(25)) MakeHorizon(dice, random_case);
  MakeSlowdowns(seed, random_case);
  return random_case;
}

RandomCase MakeRandomWindowCase(std::uint64_t seed) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 37);
  RandomCase random_case = dice.Percent(25) ? MakeRandomDraftCase(seed) : MakeRandomCase(seed);
  random_case.engine.kv_offload = {};
  RandomWindows& windows = random_case.windows;
  const std::int64_t most = dice.Pick({1, 2, 3, 6}), size = random_case.engine.block_size;
  (dice.Percent(75) ? windows.layers : windows.others) = most;
  if (windows.layers == 0) windows.layers = 1;
  if (windows.layers == most) windows.others = 1;
  windows.window = dice.Between(1, dice.Pick({2, 5, 20}) * size);
  // Requests of a few blocks have about as little room as before.
  std::int64_t& blocks = *random_case.engine.num_gpu_blocks_override;
  blocks *= windows.others + dice.Between(0, windows.layers);
  blocks += windows.layers;
  // A reserve too small to matter: with one windows are counted, not kept in groups of blocks.
  if (KvByGroups(MakeScenario(EngineCaseOf(random_case)))) {
    random_case.engine.admission_reserve = 1e-9;
  }
  const Result<ModelCost> cost = ComputeModelCost(MakeScenario(EngineCaseOf(random_case)));
  SERVECAST_CHECK(cost.ok(), "a random case fits its GPU");
  windows.held = cost.value().windows;
  windows.pool_blocks = cost.value().pool_blocks;
  return random_case;
}

RandomCase MakeRandomImageCase(std::uint64_t seed) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 43);
  RandomCase random_case = MakeRandomCase(seed);
  random_case.stages.clear();
  random_case.latency.physics.reset();
  random_case.horizon.reset();
  EngineSpec& engine = random_case.engine;
  engine.disable_chunked_mm_input = dice.Percent(25);
  MakeImages(dice, random_case);
  // Room for a few images only.
  if (dice.Percent(70)) {
    if (dice.Percent(50)) engine.max_num_seqs = dice.Between(2, 12);
    engine.max_num_batched_tokens =
        std::max(engine.max_num_seqs, dice.Between(1, 2 * random_case.most_image_tokens + 8));
  }
  if (dice.Percent(15)) random_case.most_image_tokens += dice.Between(0, 60);
  if (dice.Percent(50)) engine.scheduler_reserve_full_isl = false;
  random_case.latency.per_image = dice.Pick({0, 7, 300, 20'000});
  return random_case;
}

RandomCase MakeRandomRetryCase(std::uint64_t seed) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 41);
  RandomCase random_case = dice.Percent(50) ? MakeRandomDraftCase(seed) : MakeRandomCase(seed);
  RequestTable& requests = random_case.requests;
  EngineSpec& engine = random_case.engine;
  const auto size = static_cast<std::size_t>(requests.size());
  const TimeNs base = random_case.latency.base;
  if (!requests.pause.empty()) engine.max_num_queued_reqs = engine.max_num_queued_tokens = {};
  const bool caps = engine.max_num_queued_reqs || engine.max_num_queued_tokens;
  if (requests.timeout.empty() && (!caps || dice.Percent(50))) {
    const std::int64_t patience = dice.Pick({3, 30, 300});
    for (std::size_t i = 0; i < size; ++i) {
      requests.timeout.push_back(dice.Percent(80) ? dice.Between(1, patience) * base : kNever);
    }
  }
  const auto each = static_cast<std::size_t>(dice.Pick({1, 1, 2, 3, 6}));
  const std::int64_t longest = dice.Pick({1, 10, 100});
  std::vector<TimeNs> backoff;
  for (std::size_t i = 0; i < size * each; ++i) {
    backoff.push_back(dice.Percent(20) ? 1 : dice.Between(1, longest) * base);
  }
  SetRetries(requests, backoff);
  if (requests.pause.empty() && dice.Percent(30)) {
    requests.retry_budget = static_cast<double>(dice.Pick({0, 10, 30, 50, 100})) / 100;
  }
  return random_case;
}

RandomCase MakeRandomHedgeCase(std::uint64_t seed) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 59);
  RandomCase random_case = MakeRandomCase(seed);
  RequestTable& requests = random_case.requests;
  random_case.engine.max_num_queued_reqs = random_case.engine.max_num_queued_tokens = {};
  const auto size = static_cast<std::size_t>(requests.size());
  const TimeNs base = random_case.latency.base;
  SetRetries(requests, std::vector<TimeNs>(size, 0));
  requests.hedge_after =
      std::max<TimeNs>(1, dice.Between(1, dice.Pick({30, 300, 3000})) * base / 10);
  if (dice.Percent(30)) {
    requests.retry_budget = static_cast<double>(dice.Pick({0, 10, 30, 50})) / 100;
  }
  requests.timeout.resize(2 * size, kNever);
  for (std::size_t i = size; i < 2 * size; ++i) {
    requests.segments.push_back({requests.content[i - size], requests.prompt_tokens[i]});
    requests.content[i] = static_cast<std::int32_t>(requests.segments.size()) - 1;
    TimeNs& timeout = requests.timeout[i];
    if (timeout < kNever) timeout = std::max<TimeNs>(0, timeout - requests.hedge_after);
  }
  return random_case;
}

std::unique_ptr<LatencyModel> MakeLatency(const RandomCase& random_case) {
  const RandomLatencySpec& spec = random_case.latency;
  if (spec.physics) {
    // The model and the GPU of every case (engine_run.cpp).
    Scenario scenario = MakeScenario(EngineCaseOf(random_case));
    scenario.latency = *spec.physics;
    const Result<ModelCost> cost = ComputeModelCost(scenario);
    SERVECAST_CHECK(cost.ok(), "a random case fits its GPU");
    return FindLatencyModel("physics").make(scenario, cost.value());
  }
  return std::make_unique<RandomLatency>(spec);
}

std::vector<PipelineStage> MakeStages(const std::vector<RandomStage>& stages,
                                      const LatencyModel& latency) {
  std::vector<PipelineStage> made;
  for (const RandomStage& stage : stages) {
    made.push_back({std::make_unique<StageLatency>(latency, stage.weight),
                    static_cast<double>(stage.send), static_cast<double>(stage.send_per_token)});
  }
  return made;
}

ReferenceOutput RunReference(const RandomCase& random_case, std::optional<TimeNs> dies_at,
                             std::int32_t number) {
  const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
  const std::vector<PipelineStage> stages = MakeStages(random_case.stages, *latency);
  const KvWindows& held = random_case.windows.held;
  return RunReference(
      ReferenceInput{.requests = random_case.requests,
                     .engine = random_case.engine,
                     .scheduler = random_case.scheduler,
                     .pool_blocks = random_case.PoolBlocks(),
                     .model_max_len = random_case.model_max_len,
                     .latency = *latency,
                     .horizon = random_case.horizon,
                     .kv_block_bytes = random_case.KvBlockBytes(),
                     .stages = stages.empty() ? nullptr : &stages,
                     .windows = {held.units, held.every, held.most, held.most_admitted},
                     .most_image_tokens = random_case.most_image_tokens,
                     .dies_at = dies_at,
                     .slowdowns = random_case.slowdowns,
                     .number = number});
}

RandomCase WithoutRequests(const RandomCase& random_case, std::int64_t first, std::int64_t count) {
  RandomCase part = random_case;
  RequestTable& requests = part.requests;
  const auto begin = static_cast<std::size_t>(first);
  auto end = static_cast<std::size_t>(first + count);
  while (end < requests.think.size() && requests.think[end] >= 0) ++end;
  std::vector<TimeNs> backoff = requests.backoff;
  const std::size_t size = requests.requests(), each = backoff.size() / size;
  const auto cut = [&](auto& column) {
    if (column.empty()) return;
    column.resize(size);
    column.erase(column.begin() + static_cast<std::ptrdiff_t>(begin),
                 column.begin() + static_cast<std::ptrdiff_t>(end));
  };
  cut(requests.arrival);
  cut(requests.prompt_tokens);
  cut(requests.output_tokens);
  cut(requests.think);
  cut(requests.pause);
  cut(requests.due);
  cut(requests.priority);
  cut(requests.ttft_deadline);
  cut(requests.timeout);
  cut(requests.content);
  cut(requests.accepted_drafts);
  cut(requests.proposed_drafts);
  cut(requests.acceptance_length);
  cut(requests.lora);
  if (!requests.images_until.empty()) {
    requests.images.clear();
    requests.images_until.clear();
    for (std::size_t row = 0; row < size; ++row) {
      if (row >= begin && row < end) continue;
      for (const PromptImage& image : random_case.requests.ImagesOf(static_cast<RequestId>(row))) {
        requests.images.push_back(image);
      }
      requests.images_until.push_back(static_cast<std::int64_t>(requests.images.size()));
    }
  }
  requests.backoff.clear();
  if (backoff.empty()) return part;
  backoff.erase(backoff.begin() + static_cast<std::ptrdiff_t>(begin * each),
                backoff.begin() + static_cast<std::ptrdiff_t>(end * each));
  if (!requests.arrival.empty()) SetRetries(requests, backoff);
  return part;
}

std::string Describe(const RandomCase& random_case) {
  const EngineSpec& engine = random_case.engine;
  const RandomLatencySpec& latency = random_case.latency;
  std::string text = fmt::format(
      "seed {}: {} requests, pool {} blocks of {}, max_num_seqs {}, max_num_batched_tokens {}, "
      "threshold {}, reserve_full_isl {}, watermark {}, chunked {}, max_model_len {} (model {}), "
      "horizon {}\n  step {} + {}*decodes + {}*context + place*({}*tokens + {}*context + "
      "{}*prompt + {}*samples), enqueue {} + {}*prompt + scramble {} ({} % work, {} servers), "
      "output token delay {}, "
      "delivery delay {}, stalls of {} in each {}\n",
      random_case.seed, random_case.requests.size(), random_case.PoolBlocks(), engine.block_size,
      engine.max_num_seqs, engine.max_num_batched_tokens, engine.long_prefill_token_threshold,
      engine.scheduler_reserve_full_isl, engine.watermark, engine.enable_chunked_prefill,
      engine.max_model_len.value_or(-1), random_case.model_max_len,
      random_case.horizon.value_or(-1), latency.base, latency.per_decode,
      latency.per_decode_context, latency.per_chunk_token, latency.per_chunk_context,
      latency.per_chunk_prompt, latency.per_chunk_sample, latency.enqueue_base,
      latency.enqueue_per_token, latency.enqueue_scramble, latency.enqueue_work_percent,
      engine.api_server_count, latency.output_token_delay, latency.delivery_delay,
      latency.stalls.mean, latency.stalls.interval);
  if (latency.physics) {
    const LatencySpec& physics = *latency.physics;
    text += fmt::format("  physics ({}): alpha {}; beta {}; gamma {}\n", physics.variant,
                        fmt::join(physics.alpha_coefficients, " "),
                        fmt::join(physics.beta_coefficients, " "), physics.preemption_gamma);
  }
  const SchedulerSpec& scheduler = random_case.scheduler;
  text += fmt::format(
      "  prefix caching {}, contentless first {}, async {}, order {}, priority {}, preemption {}",
      engine.enable_prefix_caching, engine.free_contentless_first, engine.async_scheduling,
      scheduler.order, scheduler.priority, scheduler.preemption);
  for (const auto& [name, value] : scheduler.params) text += fmt::format(", {} {}", name, value);
  text += fmt::format(", reserve {}, gc {} us, of {}\n", engine.admission_reserve,
                      engine.gc_pass_us, engine.gc_fraction);
  if (const KvOffloadSpec& o = engine.kv_offload; o.On()) {
    text += fmt::format(
        "  offload from {}: cpu {} blocks, {} us, {} GB/s; disk {} blocks, {} us, {} GB/s\n",
        o.threshold, o.cpu_gib * 1048576 * 1024 / static_cast<double>(random_case.KvBlockBytes()),
        o.cpu_latency_us, o.cpu_bandwidth_gb_s,
        o.disk_gib * 1048576 * 1024 / static_cast<double>(random_case.KvBlockBytes()),
        o.disk_latency_us, o.disk_bandwidth_gb_s);
  }
  if (const KvWindows& w = random_case.windows.held; w.any()) {
    text += fmt::format("  windows: {} at each {} of {} blocks, {} admitted\n", w.units, w.every,
                        w.most, w.most_admitted);
  }
  for (const RandomStage& stage : random_case.stages) {
    text += fmt::format("  stage: {} times, then sends for {} + {}*tokens\n", stage.weight,
                        stage.send, stage.send_per_token);
  }
  if (random_case.most_image_tokens > 0) {
    text +=
        fmt::format("  images: up to {} tokens, whole {}, {} each\n", random_case.most_image_tokens,
                    engine.disable_chunked_mm_input, latency.per_image);
  }
  text += DescribeDrafts(random_case);
  if (random_case.requests.size() > 12) return text;
  const RequestTable& requests = random_case.requests;
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    text += fmt::format("  request {}: arrival {}, prompt {}, output {}", i, requests.arrival[i],
                        requests.prompt_tokens[i], requests.output_tokens[i]);
    const auto add = [&](const char* what, const auto& column) {
      if (i < column.size()) text += fmt::format(", {} {}", what, column[i]);
    };
    add("think", requests.think);
    add("pause", requests.pause);
    add("due", requests.due);
    add("priority", requests.priority);
    add("deadline", requests.ttft_deadline);
    add("timeout", requests.timeout);
    if (requests.IsRetry(i)) {
      text += fmt::format(", back-off {}", requests.backoff[i - requests.requests()]);
    }
    for (const PromptImage& image : requests.ImagesOf(static_cast<RequestId>(i))) {
      text += fmt::format(", image {} at {} of {} ({}, breaks {})", image.content, image.offset,
                          image.tokens, image.embeds, image.row_break);
    }
    add("content", requests.content);
    if (!requests.content.empty()) {
      std::int32_t segment = requests.content[i];
      for (;;) {
        const ContentSegment& at = requests.segments[static_cast<std::size_t>(segment)];
        if (at.parent < 0) break;
        text += fmt::format(" < {} up to {}", at.parent, at.shared_tokens);
        segment = at.parent;
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace servecast::testing
