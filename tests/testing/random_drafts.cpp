#include "testing/random_drafts.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "servecast/workload_spec.h"
#include "testing/dice.h"
#include "workload/adapters.h"

namespace servecast::testing {
namespace {

constexpr DraftMethod kMethods[] = {
    DraftMethod::kNgram, DraftMethod::kNgramGpu,   DraftMethod::kEagle,  DraftMethod::kEagle3,
    DraftMethod::kMtp,   DraftMethod::kDraftModel, DraftMethod::kDflash, DraftMethod::kDspark};

// Tokens of a step that drafts take from the budget of every request.
std::int64_t SlotsOf(const SpeculativeSpec& s) {
  const bool at_once =
      s.parallel_drafting || s.method == DraftMethod::kDflash || s.method == DraftMethod::kDspark;
  return (at_once ? s.num_speculative_tokens - 1 : 0) +
         (s.method == DraftMethod::kDraftModel ? 1 : 0);
}

void MakeAcceptance(Dice& dice, RandomCase& random_case) {
  SpeculativeSpec& s = random_case.engine.speculative;
  const std::int64_t most = s.num_speculative_tokens;
  RequestTable& requests = random_case.requests;
  if (dice.Percent(50)) {
    const std::int64_t generous = dice.Pick({0, 1, most, most, most + 2});
    for (std::int64_t row = 0; row < requests.size(); ++row) {
      std::vector<std::int32_t> accepted, proposed;
      for (std::int64_t n = dice.Between(1, 6); n > 0; --n) {
        accepted.push_back(static_cast<std::int32_t>(dice.Between(0, generous)));
        proposed.push_back(static_cast<std::int32_t>(dice.Between(0, most + 1)));
      }
      requests.accepted_drafts.push_back(accepted);
      requests.proposed_drafts.push_back(proposed);
    }
    return;
  }
  if (dice.Percent(40)) {  // classes of their own
    for (std::int64_t row = 0; row < requests.size(); ++row) {
      const double length = 1 + static_cast<double>(dice.Between(0, 4 * most)) / 4;
      requests.acceptance_length.push_back(dice.Percent(40) ? 0 : length);
    }
  }
  s.draft_share = static_cast<double>(dice.Between(0, 10)) / 10;
  if (dice.Percent(50)) {
    s.acceptance_length = 1 + static_cast<double>(dice.Between(0, 100 * most)) / 100;
    return;
  }
  double rate = 1;
  for (std::int64_t position = 1; position <= most; ++position) {
    rate *= static_cast<double>(dice.Between(0, 100)) / 100;
    s.acceptance_rates.push_back({static_cast<double>(position), rate});
  }
}

void MakeMembersTable(Dice& dice, SpeculativeSpec& s) {
  std::int64_t from = 1;
  while (from < 12) {
    const std::int64_t to = from + dice.Between(0, 5);
    s.num_speculative_tokens_per_batch_size.push_back(
        {static_cast<double>(from), static_cast<double>(to),
         static_cast<double>(dice.Between(0, s.num_speculative_tokens + 1))});
    from = to + dice.Between(1, 3);
  }
}

void MakeDrafts(Dice& dice, RandomCase& random_case) {
  EngineSpec& engine = random_case.engine;
  SpeculativeSpec& s = engine.speculative;
  s.method = kMethods[dice.Between(0, 7)];
  if (s.method == DraftMethod::kNgram && engine.async_scheduling) s.method = DraftMethod::kNgramGpu;
  s.num_speculative_tokens = dice.Pick({1, 1, 2, 3, 4, 5, 8});
  if (s.method == DraftMethod::kEagle) s.parallel_drafting = dice.Percent(30);
  s.pads_one_token = dice.Percent(80);
  if (dice.Percent(25)) MakeMembersTable(dice, s);
  // Some room for each, or hardly any for the last of them.
  const std::int64_t kept = SlotsOf(s) * engine.max_num_seqs;
  engine.max_num_batched_tokens =
      std::max(engine.max_num_batched_tokens, kept + dice.Between(2, 40));
  MakeAcceptance(dice, random_case);
}

// Who asks for which, by the law of a workload or anyhow, and what they cost. Of dice of its own,
// so that other draws are what they would be without it.
void MakeAdapters(std::uint64_t seed, std::int64_t most, RandomCase& random_case) {
  Dice dice(seed * 0x9e3779b97f4a7c15u + 31);
  RequestTable& requests = random_case.requests;
  const bool by_law = dice.Percent(50);
  const AdapterSpec spec{most, static_cast<double>(dice.Between(0, 20)) / 10};
  const AdapterDrawer drawer(spec);
  for (std::int64_t row = 0; row < requests.size(); ++row) {
    requests.lora.push_back(by_law ? drawer.Draw(static_cast<std::int64_t>(seed), row)
                                   : static_cast<std::int32_t>(dice.Between(0, most)));
  }
  if (dice.Percent(70)) {
    random_case.latency.per_adapter = dice.Pick({0, 3, 200, 5000});
    random_case.latency.per_adapter_token = dice.Pick({0, 1, 9});
  }
}

}  // namespace

RandomCase MakeRandomDraftCase(std::uint64_t seed) {
  RandomCase random_case = MakeRandomCase(seed);
  Dice dice(seed * 0x9e3779b97f4a7c15u + 23);
  EngineSpec& engine = random_case.engine;
  random_case.latency.physics.reset();
  random_case.stages.clear();
  RequestTable& requests = random_case.requests;
  // Prompts of one token, or of one beyond full blocks, are those that are padded.
  if (dice.Percent(40)) {
    for (std::int32_t& prompt : requests.prompt_tokens) {
      if (requests.think.empty() && dice.Percent(40)) {
        prompt = static_cast<std::int32_t>(prompt / engine.block_size * engine.block_size + 1);
      }
    }
  }
  const bool adapters = dice.Percent(25);
  if (adapters) {
    engine.max_loras = dice.Between(1, 3);
    MakeAdapters(seed, dice.Between(1, 5), random_case);
  }
  if (!adapters || dice.Percent(70)) MakeDrafts(dice, random_case);
  if (engine.speculative.On()) engine.kv_offload = {};
  if (dice.Percent(20)) {  // little room behind the longest prompts
    const auto most = static_cast<std::int32_t>(engine.speculative.num_speculative_tokens);
    if (requests.think.empty() && engine.speculative.On() && dice.Percent(50)) {
      for (std::int32_t& prompt : requests.prompt_tokens) {
        prompt = dice.Percent(50) ? 1 : std::min(prompt, std::max(most - 2, 1));
      }
    }
    const auto longest =
        std::max_element(requests.prompt_tokens.begin(), requests.prompt_tokens.end());
    engine.max_model_len = *longest + dice.Between(1, 9);
  }
  if (requests.pause.empty() && dice.Percent(20)) {
    if (dice.Percent(70)) engine.max_num_queued_reqs = dice.Between(1, 12);
    if (dice.Percent(50)) engine.max_num_queued_tokens = dice.Between(1, 600);
  }
  return random_case;
}

std::string DescribeDrafts(const RandomCase& random_case) {
  const EngineSpec& engine = random_case.engine;
  const SpeculativeSpec& s = engine.speculative;
  const RequestTable& requests = random_case.requests;
  std::string caps;
  if (engine.max_num_queued_reqs || engine.max_num_queued_tokens) {
    caps = fmt::format("  caps of the queue (0: none): {} requests, {} tokens\n",
                       engine.max_num_queued_reqs.value_or(0),
                       engine.max_num_queued_tokens.value_or(0));
  }
  if (!s.On() && engine.max_loras == 0) return caps;
  std::string text =
      caps +
      fmt::format(
          "  drafts: method {}, {} tokens, at once {}, pads {}, length {}, share {}, seats for {} "
          "adapters at {} and {} a token",
          static_cast<int>(s.method), s.num_speculative_tokens, s.parallel_drafting,
          s.pads_one_token, s.acceptance_length, s.draft_share, engine.max_loras,
          random_case.latency.per_adapter, random_case.latency.per_adapter_token);
  for (const auto& row : s.acceptance_rates) text += fmt::format(", rate {}", row[1]);
  for (const auto& row : s.num_speculative_tokens_per_batch_size) {
    text += fmt::format(", from {} members {}", row[0], row[2]);
  }
  text += "\n";
  if (requests.size() > 12) return text;
  for (std::size_t i = 0; i < requests.arrival.size(); ++i) {
    if (!requests.lora.empty()) text += fmt::format("  adapter of {}: {}\n", i, requests.lora[i]);
    if (!requests.acceptance_length.empty()) {
      text += fmt::format("  length of {}: {}\n", i, requests.acceptance_length[i]);
    }
    if (requests.accepted_drafts.empty()) continue;
    text += fmt::format("  of {}: accepted {}, proposed {}\n", i,
                        fmt::join(requests.accepted_drafts[i], " "),
                        fmt::join(requests.proposed_drafts[i], " "));
  }
  return text;
}

}  // namespace servecast::testing
