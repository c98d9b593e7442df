#include "testing/trtllm_cases.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "testing/dice.h"

namespace servecast::testing {
namespace {

TrtllmSettings MakeSettings(Dice& dice) {
  TrtllmSettings s;
  s.policy = dice.Pick<const char*>({"GUARANTEED_NO_EVICT", "GUARANTEED_NO_EVICT",
                                     "MAX_UTILIZATION", "MAX_UTILIZATION", "STATIC_BATCH"});
  s.tokens_per_block = dice.Pick<std::int64_t>({2, 4, 8, 8, 16});
  s.num_blocks = dice.Pick<std::int64_t>({6, 10, 16, 24, 60});
  s.max_seq_len = s.num_blocks * s.tokens_per_block;
  if (dice.Percent(30)) s.max_seq_len = std::max<std::int64_t>(8, s.max_seq_len / 2);
  s.max_batch_size = dice.Pick<std::int64_t>({1, 2, 4, 8, 16});
  s.enable_chunked_prefill = dice.Percent(50);
  s.context_chunking_policy = dice.Pick<const char*>({"FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"});
  if (dice.Percent(25)) s.chunk_unit_size = s.tokens_per_block * dice.Between(1, 3);
  const std::int64_t unit = s.chunk_unit_size.value_or(s.tokens_per_block);
  s.max_num_tokens = std::max(unit, dice.Pick<std::int64_t>({3, 10, 24, 60, 400}));
  s.enable_block_reuse = dice.Percent(75);
  s.enable_partial_reuse = dice.Percent(60);
  s.copy_on_partial_reuse = dice.Percent(60);
  s.enable_prefix_aware_scheduling = dice.Percent(85);
  s.overlap = dice.Percent(60);
  if (dice.Percent(20)) {
    s.batch_wait_timeout_iters = dice.Between(1, 10);
    s.batch_wait_max_tokens_ratio = dice.Pick<double>({0.2, 0.5, 0.9});
  }
  if (dice.Percent(20)) s.waiting_queue = "PRIORITY";
  return s;
}

// A prompt begins with a group's tokens, with another prompt's and what came of it, or with none.
void AddContent(Dice& dice, TrtllmCase& made, std::size_t groups) {
  RequestTable& t = made.requests;
  const std::size_t r = t.content.size();
  ContentSegment own;
  if (r > 0 && dice.Percent(35)) {
    const auto p = static_cast<std::size_t>(dice.Between(0, static_cast<std::int64_t>(r) - 1));
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

}  // namespace

TrtllmCase MakeTrtllmCase(std::uint64_t seed) {
  Dice dice(seed);
  TrtllmCase made;
  made.name = fmt::format("seed {}", seed);
  const TrtllmSettings& s = made.settings = MakeSettings(dice);
  RequestTable& t = made.requests;
  const std::int64_t requests = dice.Between(1, dice.Percent(20) ? 40 : 14);
  const std::int64_t most_prompt = std::max<std::int64_t>(
      1, std::min(s.max_seq_len - 2, dice.Pick<std::int64_t>({6, 20, 60, 300})));
  const TimeNs spread = dice.Pick<std::int64_t>({0, 2'000'000, 30'000'000});
  const std::size_t groups = 2;
  if (dice.Percent(80)) t.segments.resize(groups);
  TimeNs arrival = 0;
  for (std::int64_t r = 0; r < requests; ++r) {
    arrival += dice.Percent(5) ? 2'000'000'000 : dice.Between(0, spread);
    t.arrival.push_back(arrival);
    t.prompt_tokens.push_back(static_cast<std::int32_t>(dice.Between(1, most_prompt)));
    const std::int64_t output =
        dice.Pick<std::int64_t>({1, 2, dice.Between(1, 40), dice.Between(1, 120)});
    const std::int64_t asked =
        dice.Percent(40) ? output
                         : dice.Pick<std::int64_t>({1, output + dice.Between(0, 30), 3000});
    t.output_tokens.push_back(static_cast<std::int32_t>(output));
    t.max_new_tokens.push_back(static_cast<std::int32_t>(asked));
    made.max_new.push_back(asked);
    t.priority.push_back(static_cast<std::int32_t>(dice.Between(0, 3)));
    if (!t.segments.empty()) AddContent(dice, made, groups);
  }
  return made;
}

TrtllmCase MakeTrtllmRanksCase(std::uint64_t seed) {
  TrtllmCase made = MakeTrtllmCase(seed * 3 + 7'000'000);
  made.name = fmt::format("ranks of seed {}", seed);
  Dice dice(seed * 5 + 3);
  TrtllmSettings& s = made.settings;
  s.attention_dp_size = dice.Between(2, 4);
  s.attention_dp_enable_balance = dice.Percent(50);
  s.attention_dp_timeout_iters = dice.Pick<std::int64_t>({0, 1, 3, 50});
  s.attention_dp_batching_wait_iters = dice.Pick<std::int64_t>({0, 1, 4, 10});
  s.batch_wait_timeout_iters = 0;
  s.batch_wait_max_tokens_ratio = 0;
  return made;
}

RandomLatencySpec MakeTrtllmLatency(std::uint64_t seed) {
  Dice dice(seed * 2 + 1);
  RandomLatencySpec spec;
  spec.base = dice.Between(1, 5'000'000);
  spec.per_decode = dice.Between(0, 100'000);
  spec.per_decode_context = dice.Between(0, 500);
  spec.per_chunk_token = dice.Between(0, 20'000);
  spec.per_chunk_context = dice.Between(0, 100);
  spec.per_chunk_prompt = dice.Between(0, 10);
  spec.per_chunk_sample = dice.Between(0, 50'000);
  return spec;
}

std::string Describe(const TrtllmCase& c) {
  const TrtllmSettings& s = c.settings;
  std::string text = fmt::format(
      "{}: {} block {} blocks {} length {} places {} tokens {} chunked {} {} unit {} reuse {} "
      "partial {} copy {} aware {} overlap {} wait {} {} queue {}",
      c.name, s.policy, s.tokens_per_block, s.num_blocks, s.max_seq_len, s.max_batch_size,
      s.max_num_tokens, s.enable_chunked_prefill, s.context_chunking_policy,
      s.chunk_unit_size.value_or(0), s.enable_block_reuse, s.enable_partial_reuse,
      s.copy_on_partial_reuse, s.enable_prefix_aware_scheduling, s.overlap,
      s.batch_wait_timeout_iters, s.batch_wait_max_tokens_ratio, s.waiting_queue);
  text += fmt::format(" ranks {} balance {} timeout {} batching {}", s.attention_dp_size,
                      s.attention_dp_enable_balance, s.attention_dp_timeout_iters,
                      s.attention_dp_batching_wait_iters);
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
