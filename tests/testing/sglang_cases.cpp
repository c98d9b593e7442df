#include "testing/sglang_cases.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "testing/dice.h"

namespace servecast::testing {
namespace {

SglangSettings MakeSettings(Dice& dice) {
  SglangSettings s;
  s.page_size = dice.Pick<std::int64_t>({1, 1, 1, 4, 16});
  s.max_total_num_tokens =
      dice.Pick<std::int64_t>({96, 160, 400, 400, 800, 2400}) + 4 * s.page_size;
  if (dice.Percent(20)) s.max_total_num_tokens += dice.Between(0, s.page_size - 1);
  s.context_len = dice.Percent(80) ? 4096 : s.max_total_num_tokens / 2 + 4 * s.page_size;
  s.max_running_requests = dice.Pick<std::int64_t>({1, 2, 3, 5, 8, 16});
  s.chunked_prefill_size =
      dice.Percent(20) ? -1
                       : std::max(s.page_size, dice.Pick<std::int64_t>({16, 24, 64, 200, 1000}));
  s.max_prefill_tokens = dice.Pick<std::int64_t>({32, 100, 400, 16384});
  if (dice.Percent(10)) s.prefill_max_requests = dice.Between(1, 3);
  s.schedule_policy = dice.Pick<const char*>({"fcfs", "fcfs", "lpm", "dfs-weight", "lof"});
  s.schedule_conservativeness = dice.Pick<double>({0.1, 0.3, 1.0, 1.0, 1.5});
  s.disable_radix_cache = dice.Percent(25);
  s.enable_mixed_chunk = dice.Percent(25);
  s.overlap = dice.Percent(60);
  s.enable_priority_scheduling = dice.Percent(50);
  s.schedule_low_priority_values_first = dice.Percent(30);
  s.priority_scheduling_preemption_threshold = dice.Pick<std::int64_t>({0, 1, 3, 10});
  // By prefix two requests may preempt each other for ever, so the engine refuses it.
  const bool by_priority = s.schedule_policy == "fcfs" || s.schedule_policy == "lof";
  s.disable_priority_preemption = !by_priority || dice.Percent(20);
  s.radix_eviction_policy =
      dice.Pick<const char*>({"lru", "lru", "lfu", "slru", "fifo", "filo", "mru", "priority"});
  s.retraction_policy = dice.Pick<const char*>({"length", "length", "priority"});
  s.ignore_eos = dice.Percent(25);
  s.min_new_token_ratio_factor = dice.Pick<double>({0.1, 0.14, 1.0});
  s.new_token_ratio_decay_steps = dice.Pick<std::int64_t>({5, 20, 600});
  s.retract_decode_steps = dice.Pick<std::int64_t>({1, 5, 20});
  s.clip_max_new_tokens = dice.Pick<std::int64_t>({8, 40, 4096});
  s.in_batch_check_threshold = dice.Pick<std::int64_t>({0, 8, 32});
  s.in_batch_deprioritize_threshold = dice.Pick<std::int64_t>({4, 32});
  s.is_0_5_9 = dice.Percent(20);
  return s;
}

// A prompt begins with a group's tokens, with another prompt's and what came of it, or with none.
void AddContent(Dice& dice, SglangCase& made, std::size_t groups) {
  RequestTable& t = made.requests;
  const std::size_t r = t.content.size();
  const bool is_turn = t.arrival[r] < 0;
  ContentSegment own;
  if (r > 0 && dice.Percent(is_turn ? 90 : 30)) {
    const auto p =
        is_turn ? r - 1
                : static_cast<std::size_t>(dice.Between(0, static_cast<std::int64_t>(r) - 1));
    const std::int64_t made_there = std::min<std::int64_t>(t.output_tokens[p], made.max_new[p]);
    const std::int64_t shared =
        std::min<std::int64_t>(t.prompt_tokens[p] + made_there, t.prompt_tokens[r]);
    own = {t.content[p], static_cast<std::int32_t>(shared)};
  } else if (dice.Percent(60)) {
    const auto group =
        static_cast<std::int32_t>(dice.Between(0, static_cast<std::int64_t>(groups) - 1));
    own = {group, static_cast<std::int32_t>(dice.Between(1, t.prompt_tokens[r]))};
  }
  t.segments.push_back(own);
  t.content.push_back(static_cast<std::int32_t>(t.segments.size() - 1));
}

// A closed loop: all but the first few sessions wait for a client. Or clients that hold back: they
// are not due before the times that they had.
void MakeLoop(Dice& dice, RequestTable& t) {
  if (Dice(static_cast<std::uint64_t>(t.arrival.back())).Percent(40)) t.due = t.arrival;
  const std::int64_t clients = dice.Pick<std::int64_t>({1, 2, 4, 8});
  std::int64_t sessions = 0;
  for (std::size_t r = 0; r < t.arrival.size(); ++r) {
    const bool waits = t.think[r] < 0 && ++sessions > clients;
    if (waits) t.arrival[r] = -1;
    t.pause.push_back(!waits ? -1 : dice.Percent(50) ? 0 : dice.Between(0, 20'000'000));
  }
}

// Anywhere in prompts, none over another. Embeds are as many as it takes to fill the memory for
// them: of that of every case, 100 MiB, one takes 256 bytes (engine_run.cpp).
void MakeImages(std::uint64_t seed, SglangCase& made) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 53);
  made.settings.kept_embeds = 100 * 1024 * 1024 / 256;
  if (dice.Percent(60)) return;
  RequestTable& t = made.requests;
  const std::int64_t contents = dice.Pick<std::int64_t>({2, 10, 1000});
  const std::int64_t most = made.settings.kept_embeds / dice.Pick<std::int64_t>({1, 3, 10});
  for (const std::int32_t prompt : t.prompt_tokens) {
    for (std::int64_t at = dice.Between(0, 20); at < prompt && dice.Percent(70);) {
      PromptImage image;
      image.content = dice.Between(0, contents - 1);
      image.offset = static_cast<std::int32_t>(at);
      image.tokens = static_cast<std::int32_t>(dice.Between(1, 30));
      if (image.end() > prompt) break;
      image.embeds = static_cast<std::int32_t>(1 + image.content * 7919 % most +
                                               (image.content % 50 == 49 ? 450'000 : 0));
      t.images.push_back(image);
      at = image.end() + dice.Between(0, 20);
    }
    t.images_until.push_back(static_cast<std::int64_t>(t.images.size()));
  }
}

}  // namespace

SglangCase MakeSglangCase(std::uint64_t seed) {
  Dice dice(seed);
  SglangCase made;
  made.name = fmt::format("seed {}", seed);
  SglangSettings& s = made.settings = MakeSettings(dice);
  RequestTable& t = made.requests;
  // All at once: rule 31 looks nobody up where more than 128 wait.
  const bool crowd = dice.Percent(1);
  const std::int64_t requests =
      crowd ? dice.Between(135, 180) : dice.Between(1, dice.Percent(20) ? 40 : 14);
  const std::int64_t longest =
      std::min(s.context_len, s.max_total_num_tokens / s.page_size * s.page_size) -
      2 * s.page_size - 1;
  const std::int64_t most_prompt =
      std::max<std::int64_t>(1, std::min(longest, dice.Pick<std::int64_t>({20, 60, 300})));
  const std::int64_t spread = crowd ? 0 : dice.Pick<std::int64_t>({0, 2'000'000, 30'000'000});
  const std::size_t groups = 2;
  if (dice.Percent(85)) t.segments.resize(groups);
  // %: that follow the answer of the request before.
  const int turns = !crowd && dice.Percent(30) ? 40 : 0;
  TimeNs arrival = 0;
  for (std::int64_t r = 0; r < requests; ++r) {
    arrival += !crowd && dice.Percent(5) ? 2'000'000'000 : dice.Between(0, spread);
    const bool is_turn = r > 0 && dice.Percent(turns);
    t.arrival.push_back(is_turn ? -1 : arrival);
    t.think.push_back(!is_turn ? -1 : dice.Percent(30) ? 0 : dice.Between(0, spread + 20'000'000));
    t.prompt_tokens.push_back(static_cast<std::int32_t>(dice.Between(1, most_prompt)));
    const std::int64_t output =
        dice.Pick<std::int64_t>({1, 2, dice.Between(1, 40), dice.Between(1, 200)});
    const std::int64_t asked =
        s.ignore_eos || dice.Percent(40)
            ? output
            : dice.Pick<std::int64_t>({1, output + dice.Between(0, 50), 3000});
    t.output_tokens.push_back(static_cast<std::int32_t>(output));
    t.max_new_tokens.push_back(static_cast<std::int32_t>(asked));
    made.max_new.push_back(asked);
    t.priority.push_back(static_cast<std::int32_t>(dice.Between(0, 6)));
    if (!t.segments.empty()) AddContent(dice, made, groups);
  }
  if (!crowd && dice.Percent(25)) MakeLoop(dice, t);
  if (turns == 0) t.think.clear();
  MakeImages(seed, made);
  return made;
}

RandomLatencySpec MakeSglangLatency(std::uint64_t seed) {
  Dice dice(seed * 2 + 1);
  RandomLatencySpec spec;
  spec.base = dice.Between(1, 5'000'000);
  spec.per_decode = dice.Between(0, 100'000);
  spec.per_decode_context = dice.Between(0, 500);
  spec.per_chunk_token = dice.Between(0, 20'000);
  spec.per_chunk_context = dice.Between(0, 100);
  spec.per_chunk_prompt = dice.Between(0, 10);
  spec.per_chunk_sample = dice.Between(0, 50'000);
  spec.per_image = dice.Between(0, 3'000'000);
  return spec;
}

std::string Describe(const SglangCase& c) {
  const SglangSettings& s = c.settings;
  std::string text = fmt::format(
      "{}: page {} tokens {} context {} seats {} chunk {} prefill {} policy {} radix {} mixed {} "
      "overlap {} priority {} preempts {} eviction {} retraction {} ignore_eos {} version {}",
      c.name, s.page_size, s.max_total_num_tokens, s.context_len, s.max_running_requests,
      s.chunked_prefill_size, s.max_prefill_tokens, s.schedule_policy, !s.disable_radix_cache,
      s.enable_mixed_chunk, s.overlap, s.enable_priority_scheduling, !s.disable_priority_preemption,
      s.radix_eviction_policy, s.retraction_policy, s.ignore_eos, s.is_0_5_9 ? "0.5.9" : "0.5.16");
  for (std::size_t r = 0; r < c.max_new.size(); ++r) {
    text += fmt::format("\n  {}: arrival {} prompt {} max_new {} output {} priority {}", r,
                        c.requests.arrival[r], c.requests.prompt_tokens[r], c.max_new[r],
                        c.requests.output_tokens[r], c.requests.priority[r]);
    if (c.requests.content.empty()) continue;
    const auto content = static_cast<std::size_t>(c.requests.content[r]);
    text +=
        fmt::format(" content {} parent {} shared {}", content, c.requests.segments[content].parent,
                    c.requests.segments[content].shared_tokens);
  }
  return text;
}

}  // namespace servecast::testing
