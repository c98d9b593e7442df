#include "testing/epp_reference_router.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "serving/cluster/epp/profiles.h"

namespace servecast::testing {

constexpr const char* kPrefix = "approx-prefix-cache-producer";
constexpr const char* kLoad = "inflight-load-producer";

ReferencePickerRouter::ReferencePickerRouter(const RouterChoice& router,
                                             const RequestTable& requests,
                                             const std::vector<ServedBy>& replicas)
    : router_(router),
      requests_(requests),
      replicas_(replicas),
      config_(epp::ConfigOf(router.epp)),
      picker_(config_),
      index_(replicas.size()) {
  const bool tunes = Setting(kPrefix, "autoTune", 1) != 0;
  block_ = tunes ? replicas[0].block_size
                 : static_cast<std::int64_t>(Setting(kPrefix, "blockSizeTokens", 16));
  if (block_ < 64) block_ = 64;
  estimates_ = Setting(kLoad, "addEstimatedOutputTokens", 0) != 0;
}

double ReferencePickerRouter::Setting(const char* type, const char* parameter,
                                      double otherwise) const {
  for (const EppPlugin& plugin : config_.plugins) {
    const auto found = plugin.parameters.find(std::string(parameter));
    if (plugin.type != type || found == plugin.parameters.end()) continue;
    const bool* flag = std::get_if<bool>(&found->second);
    return flag == nullptr ? std::get<double>(found->second) : *flag ? 1 : 0;
  }
  return otherwise;
}

// Blocks of a prompt that the index looks at.
std::int64_t ReferencePickerRouter::MostBlocks() const {
  const auto tokens = static_cast<std::int64_t>(Setting(kPrefix, "maxPrefixTokensToMatch", 131072));
  if (tokens > 0) return tokens / block_;
  const auto blocks = static_cast<std::int64_t>(Setting(kPrefix, "maxPrefixBlocksToMatch", 2048));
  return blocks > 0 ? blocks : INT64_MAX;
}

// As far as the index looks at them; none where no two prompts share any.
ReferencePickerIndex::Prompt ReferencePickerRouter::TokensOf(std::size_t request) const {
  ReferencePickerIndex::Prompt tokens;
  if (requests_.content.empty()) return tokens;
  for (std::int64_t t = 0; t < requests_.prompt_tokens[request]; ++t) {
    std::int32_t segment = requests_.content[request];
    const auto at = [&] { return requests_.segments[static_cast<std::size_t>(segment)]; };
    while (at().parent >= 0 && t < at().shared_tokens) segment = at().parent;
    if (t / block_ < MostBlocks()) tokens.push_back({segment, t});
  }
  return tokens;
}

ReferencePicker::Endpoints ReferencePickerRouter::LoadsOf(
    const std::vector<ReplicaSight>& sights) const {
  ReferencePicker::Endpoints endpoints;
  for (std::size_t i = 0; i < sights.size(); ++i) {
    epp::Endpoint& e = endpoints.emplace_back();
    e.id = static_cast<std::int32_t>(i);
    e.waiting = sights[i].waiting;
    e.running = sights[i].running;
    e.kv = static_cast<double>(sights[i].blocks_used) / static_cast<double>(replicas_[i].blocks);
    e.age = sights[i].age;
    e.inflight_requests = static_cast<std::int64_t>(sights[i].own.size());
    for (const std::size_t other : sights[i].own) e.inflight_tokens += tokens_.at(other);
    for (const std::size_t other : sights[i].answered) {
      if (!estimates_) e.inflight_tokens -= tokens_.at(other);
    }
  }
  return endpoints;
}

std::size_t ReferencePickerRouter::Choose(std::size_t request, std::size_t session,
                                          const std::vector<ReplicaSight>& sights, TimeNs time) {
  const ReferencePickerIndex::Prompt prompt = TokensOf(request);
  const std::vector<std::int64_t> matched = index_.Match(prompt, block_);
  const std::int64_t tokens = requests_.prompt_tokens[request];
  const std::int64_t blocks = std::min((tokens + block_ - 1) / block_, MostBlocks());
  auto output = static_cast<std::int64_t>(
      estimates_ ? std::round(static_cast<double>(tokens) * Setting(kLoad, "outputRatio", 1.5))
                 : 0);
  const auto most = static_cast<std::int64_t>(Setting(kLoad, "maxEstimatedOutputTokens", 0));
  if (most > 0) output = std::min(output, most);
  ReferencePicker::Endpoints endpoints = LoadsOf(sights);
  for (std::size_t i = 0; i < sights.size(); ++i) {
    epp::Endpoint& e = endpoints[i];
    e.matched_blocks = matched[i];
    e.uncached_tokens = (blocks - matched[i]) * block_ +
                        std::max<std::int64_t>(0, tokens - blocks * block_) + output;
  }
  const auto last = of_sessions_.find(session);
  const epp::Request asked{
      .tokens = tokens,
      .session = static_cast<std::int64_t>(session),
      .named_endpoint = last == of_sessions_.end() ? epp::kUnknown : last->second,
      .total_blocks = blocks,
      .block_tokens = block_,
      .time = time};
  const double u = Uniform(router_.seed, Stream::kRouter, static_cast<std::int64_t>(request));
  const std::int32_t chosen = picker_.Schedule(asked, endpoints, u).choice.primary;
  const auto place = static_cast<std::size_t>(chosen);
  of_sessions_[session] = chosen;
  tokens_[request] = endpoints[place].uncached_tokens;
  const bool tunes = Setting(kPrefix, "autoTune", 1) != 0;
  index_.Add(prompt, block_, place,
             tunes ? replicas_[place].blocks + 1
                   : static_cast<std::int64_t>(Setting(kPrefix, "lruCapacityPerServer", 31250)));
  return place;
}

}  // namespace servecast::testing
