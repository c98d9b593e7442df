// Sequences of the endpoint picker's prefix index, and of index, counters and scheduler together.
#include <memory>

#include "fmt/format.h"
#include "serving/cluster/epp/approximate_index.h"
#include "serving/cluster/epp/inflight_load.h"
#include "serving/cluster/epp/prefix_blocks.h"
#include "testing/epp_golden_parts.h"

namespace servecast::testing::epp_golden {
namespace {

epp::PrefixSettings PrefixOf(const Json& config) {
  const epp::PrefixSettings d;
  return {config.value("autoTune", d.auto_tune), config.value("blockSizeTokens", d.block_tokens),
          config.value("lruCapacityPerServer", d.lru_capacity),
          config.value("maxPrefixTokensToMatch", d.most_tokens),
          config.value("maxPrefixBlocksToMatch", d.most_blocks)};
}

std::vector<epp::TextPiece> PromptOf(const Json& parts) {
  std::vector<epp::TextPiece> pieces;
  for (const Json& part : parts) pieces.push_back({part[0], 0, part[1]});
  return pieces;
}

// One sequence of prefix_sequences.
class PrefixSequence {
 public:
  explicit PrefixSequence(const Json& sequence)
      : settings_(PrefixOf(sequence["config"])),
        block_sizes_(sequence["endpoint_cache_block_size"]),
        blocks_(sequence["endpoint_cache_num_blocks"]),
        index_(blocks_.size()) {}

  Difference Compare(const Json& request) {
    const TimeNs time = NearestNs(request["t_s"].get<double>() * 1e9);
    if (time / kSweep > swept_) {
      for (const Json& pod : request.value("pods_gone", Json::array())) index_.Remove(pod);
      swept_ = time / kSweep;
    }
    const Json& candidates = request["candidates"];
    const std::int64_t block =
        epp::BlockTokens(settings_, block_sizes_[candidates[0].get<std::size_t>()]);
    std::vector<std::vector<std::uint64_t>> prompts;
    std::size_t total = 0;
    std::vector<std::int64_t> matched(blocks_.size());
    const std::string salt = request.value("salt", "");
    const auto context =
        static_cast<std::uint64_t>(contexts_(request["model"].get<std::string>() + "\n" + salt));
    for (const Json& prompt : request["prompts"]) {
      std::vector<std::uint64_t>& keys = prompts.emplace_back();
      epp::AppendKeys(settings_, block, context, PromptOf(prompt), keys);
      index_.Match(keys, matched);
      total += keys.size();
    }
    Json of_candidates = Json::array();
    for (const Json& c : candidates) of_candidates.push_back(matched[c.get<std::size_t>()]);
    Add(prompts, request["sent_to"]);
    if (request.contains("prefill_to")) Add(prompts, request["prefill_to"]);
    Json tracked = Json::array();
    for (std::size_t e = 0; e < blocks_.size(); ++e) {
      const std::int64_t count = index_.Tracked(static_cast<std::int32_t>(e));
      if (count >= 0) tracked.push_back({e, count});
    }
    for (const auto& difference : {Differs("block_tokens", request["block_tokens"], block),
                                   Differs("total_blocks", request["total_blocks"], total),
                                   Differs("match_blocks", request["match_blocks"], of_candidates),
                                   Differs("tracked_after", request["tracked_after"], tracked)}) {
      if (difference) return fmt::format("n={}: {}", request["n"].dump(), *difference);
    }
    return std::nullopt;
  }

 private:
  static constexpr TimeNs kSweep = 120 * kNsPerS;

  void Add(const std::vector<std::vector<std::uint64_t>>& prompts, std::int32_t endpoint) {
    const std::int64_t reported = blocks_[static_cast<std::size_t>(endpoint)];
    for (const auto& keys : prompts) {
      index_.Add(keys, endpoint,
                 settings_.auto_tune && reported > 0 ? reported : settings_.lru_capacity);
    }
  }

  epp::PrefixSettings settings_;
  std::vector<std::int64_t> block_sizes_, blocks_;
  epp::ApproximateIndex index_;
  Names contexts_;
  TimeNs swept_ = 0;
};

// One sequence of loop_sequences.
class Loop {
 public:
  Loop(const Json& manifest, const Json& sequence)
      : prefix_(PrefixOf(sequence["approx_prefix_cache_producer"])),
        roles_(sequence["role"]),
        scheduler_(ConfigOf(manifest, sequence["profile"])),
        index_(roles_.size()),
        loads_(roles_.size(), LoadOf(sequence).estimates_output),
        load_(LoadOf(sequence)) {}

  Difference Compare(const Json& event) {
    const auto n = event["n"].get<std::size_t>();
    if (event["e"] == "arrive") return Arrive(n, event);
    epp::InflightLoad::Holding& holding = held_[n];
    if (holding.primary < 0) return std::nullopt;
    if (event["e"] == "first") loads_.FirstChunk(holding);
    if (event["e"] == "last" || event.value("also_last", false)) loads_.Ended(holding);
    return std::nullopt;
  }

 private:
  static epp::LoadSettings LoadOf(const Json& sequence) {
    const Json& given = sequence["inflight_load_producer"];
    const epp::LoadSettings d;
    return {given.value("addEstimatedOutputTokens", d.estimates_output),
            given.value("outputRatio", d.output_ratio),
            given.value("maxEstimatedOutputTokens", d.most_estimated_tokens)};
  }

  Difference Arrive(std::size_t n, const Json& event) {
    const std::vector<epp::TextPiece> prompt = PromptOf(event["prompt"]);
    epp::Request request;
    for (const epp::TextPiece& piece : prompt) request.tokens += piece.last;
    request.time = NearestNs(event["t_s"].get<double>() * 1e9);
    request.block_tokens = epp::BlockTokens(prefix_, 0);
    std::vector<std::uint64_t> keys;
    epp::AppendKeys(prefix_, request.block_tokens, 0, prompt, keys);
    request.total_blocks = static_cast<std::int64_t>(keys.size());
    std::vector<std::int64_t> matched(roles_.size());
    index_.Match(keys, matched);
    const std::int64_t estimated =
        epp::EstimatedOutput(load_, request.tokens, event.value("max_output_tokens", 0));
    std::vector<epp::Endpoint> endpoints;
    Json counts = Json::array(), requests = Json::array(), tokens = Json::array(),
         uncached = Json::array();
    for (std::size_t i = 0; i < event["candidates"].size(); ++i) {
      const std::int32_t id = event["candidates"][i];
      epp::Endpoint endpoint;
      endpoint.id = id;
      endpoint.waiting = event["waiting"][i];
      endpoint.running = event["running"][i];
      endpoint.kv = event["kv"][i];
      endpoint.matched_blocks = matched[static_cast<std::size_t>(id)];
      endpoint.inflight_requests = loads_.requests(id);
      endpoint.inflight_tokens = loads_.tokens(id);
      endpoint.uncached_tokens = epp::UncachedTokens(request, endpoint.matched_blocks) + estimated;
      endpoint.role = epp::RoleOf(roles_[static_cast<std::size_t>(id)]);
      endpoints.push_back(endpoint);
      counts.push_back(endpoint.matched_blocks);
      requests.push_back(endpoint.inflight_requests);
      tokens.push_back(endpoint.inflight_tokens);
      uncached.push_back(endpoint.uncached_tokens);
    }
    for (const auto& difference :
         {Differs("block_tokens", event["block_tokens"], request.block_tokens),
          Differs("total_blocks", event["total_blocks"], request.total_blocks),
          Differs("match_blocks", event["match_blocks"], counts),
          Differs("inflight_requests", event["inflight_requests"], requests),
          Differs("inflight_tokens", event["inflight_tokens"], tokens),
          Differs("uncached_tokens", event["uncached_tokens"], uncached)}) {
      if (difference) return fmt::format("n={}: {}", n, *difference);
    }
    epp::Choice choice;
    const Difference difference = CompareCycle(event, scheduler_, request, endpoints, choice);
    if (difference) return fmt::format("n={}: {}", n, *difference);
    Send(n, keys, choice, endpoints);
    return std::nullopt;
  }

  void Send(std::size_t n, const std::vector<std::uint64_t>& keys, const epp::Choice& choice,
            const std::vector<epp::Endpoint>& endpoints) {
    if (choice.primary < 0) return;
    const auto uncached = [&](std::int32_t id) {
      std::int64_t tokens = 0;
      for (const epp::Endpoint& e : endpoints) tokens += e.id == id ? e.uncached_tokens : 0;
      return tokens;
    };
    held_[n] = {choice.primary, choice.prefill, uncached(choice.primary), uncached(choice.prefill)};
    loads_.Sent(held_[n]);
    index_.Add(keys, choice.primary, prefix_.lru_capacity);
    if (choice.prefill >= 0) index_.Add(keys, choice.prefill, prefix_.lru_capacity);
  }

  epp::PrefixSettings prefix_;
  std::vector<std::string> roles_;
  epp::Scheduler scheduler_;
  epp::ApproximateIndex index_;
  epp::InflightLoad loads_;
  epp::LoadSettings load_;
  std::map<std::size_t, epp::InflightLoad::Holding> held_;
};

}  // namespace

Difference ReplayPrefix(const std::vector<Json>& rows, std::size_t& decisions) {
  for (const Json& row : rows) {
    PrefixSequence sequence(row);
    for (const Json& request : row["requests"]) {
      const Difference difference = sequence.Compare(request);
      if (difference) return fmt::format("seq={}: {}", row["seq"].dump(), *difference);
      ++decisions;
    }
  }
  return std::nullopt;
}

Difference ReplayLoop(const Json& manifest, const std::vector<Json>& rows, std::size_t& decisions) {
  for (const Json& row : rows) {
    Loop loop(manifest, row);
    for (const Json& event : row["events"]) {
      const Difference difference = loop.Compare(event);
      if (difference) return fmt::format("seq={}: {}", row["seq"].dump(), *difference);
      decisions += event["e"] == "arrive" ? 1 : 0;
    }
  }
  return std::nullopt;
}

}  // namespace servecast::testing::epp_golden
