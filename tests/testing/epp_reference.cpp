#include "testing/epp_reference.h"

#include <algorithm>
#include <cstdlib>

namespace servecast::testing {
namespace {

using epp::Endpoint;

const Endpoint& Get(const std::vector<Endpoint>& endpoints, std::int32_t position) {
  return endpoints[static_cast<std::size_t>(position)];
}

double Share(const epp::Request& request, const Endpoint& endpoint) {
  if (request.total_blocks == 0 || endpoint.matched_blocks < 0) return 0;
  return static_cast<double>(endpoint.matched_blocks) / static_cast<double>(request.total_blocks);
}

bool Decodes(epp::Role role) {
  return role != epp::Role::kPrefill && role != epp::Role::kEncode &&
         role != epp::Role::kEncodePrefill && role != epp::Role::kOther;
}
bool Prefills(epp::Role role) {
  return role != epp::Role::kNone && role != epp::Role::kDecode && role != epp::Role::kEncode &&
         role != epp::Role::kOther;
}

double Metric(const std::string& name, const Endpoint& e) {
  if (name == "kv-cache-utilization") return e.kv;
  return static_cast<double>(name == "waiting-queue"      ? e.waiting
                             : name == "running-requests" ? e.running
                                                          : e.inflight_requests);
}

// Fewest is 1, most is 0.
double Between(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low == high ? 1 : static_cast<double>(high - value) / static_cast<double>(high - low);
}

double ContextScore(const epp::ContextRange& range, std::int64_t tokens) {
  if (range.kind == epp::ContextRange::Kind::kNone) return 0.5;
  if (range.kind == epp::ContextRange::Kind::kUnreadable) return 0;
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  if (tokens < range.least) return 0.3 / (1 + real(range.least - tokens) / 1000);
  if (tokens > range.most) return 0.3 / (1 + real(tokens - range.most) / 1000);
  if (range.least == range.most) return 1;
  const double width = real(range.most - range.least);
  const double raw = 0.7 * (1 / (1 + width / 10000)) + 0.3 * (real(range.most - tokens) / width);
  return 0.3 + raw * 0.7;
}

double LoraScore(const epp::Adapters& adapters, std::int32_t wanted) {
  for (const std::int32_t a : adapters.active) {
    if (a == wanted) return 1;
  }
  const std::size_t taken = adapters.active.size() + adapters.waiting.size();
  if (static_cast<std::int64_t>(taken) < adapters.most) return 0.8;
  for (const std::int32_t a : adapters.waiting) {
    if (a == wanted) return 0.6;
  }
  return 0;
}

}  // namespace

const EppPlugin& ReferencePicker::PluginOf(const std::string& name) const {
  static std::map<std::string, EppPlugin> defaults;
  for (const EppPlugin& plugin : config_.plugins) {
    if (plugin.name == name) return plugin;
  }
  return defaults.try_emplace(name, EppPlugin{name, name, {}}).first->second;
}

double ReferencePicker::Number(const EppPlugin& plugin, const std::string& path,
                               double otherwise) const {
  const auto found = plugin.parameters.find(path);
  if (found == plugin.parameters.end()) return otherwise;
  if (const bool* flag = std::get_if<bool>(&found->second)) return *flag ? 1 : 0;
  return std::get<double>(found->second);
}

std::string ReferencePicker::Text(const EppPlugin& plugin, const std::string& path,
                                  const std::string& otherwise) const {
  const auto found = plugin.parameters.find(path);
  return found == plugin.parameters.end() ? otherwise : std::get<std::string>(found->second);
}

std::int64_t ReferencePicker::Bound(const EppPlugin& plugin, const epp::Request& request,
                                    const Endpoints& endpoints, const Positions& of) {
  if (Text(plugin, "strategy", "") != "session_id") return request.named_endpoint;
  Memory& memory = memories_[plugin.name];
  const auto every =
      static_cast<std::int64_t>(Number(plugin, "sessionIdConfig.evictionSweepSeconds", 10) * 1e9);
  const auto ttl =
      static_cast<std::int64_t>(Number(plugin, "sessionIdConfig.evictionTtlSeconds", 300) * 1e9);
  while ((memory.sweeps + 1) * every <= request.time) {
    ++memory.sweeps;
    for (auto s = memory.sessions.begin(); s != memory.sessions.end();) {
      s = memory.sweeps * every - s->second.used > ttl ? memory.sessions.erase(s) : std::next(s);
    }
  }
  const auto session = memory.sessions.find(request.session);
  if (session == memory.sessions.end()) return -1;
  memory.bound_was_there = false;
  for (const std::int32_t p : of) {
    memory.bound_was_there |= Get(endpoints, p).id == session->second.endpoint;
  }
  return session->second.endpoint;
}

std::optional<ReferencePicker::Positions> ReferencePicker::Filtered(const EppPlugin& plugin,
                                                                    const epp::Request& request,
                                                                    const Endpoints& endpoints,
                                                                    const Positions& before) {
  const std::string& type = plugin.type;
  Positions kept;
  const auto keep = [&](const auto& test) {
    for (const std::int32_t p : before) {
      if (test(Get(endpoints, p))) kept.push_back(p);
    }
  };
  bool all_if_none = false;
  if (type == "decode-filter") {
    keep([](const Endpoint& e) { return Decodes(e.role); });
  } else if (type == "prefill-filter") {
    keep([](const Endpoint& e) { return Prefills(e.role); });
  } else if (type == "context-length-aware") {
    if (Number(plugin, "enableFiltering", 0) == 0) return before;
    keep([&](const Endpoint& e) {
      using Kind = epp::ContextRange::Kind;
      if (e.context.kind != Kind::kRange) return e.context.kind == Kind::kNone;
      return e.context.least <= request.tokens && request.tokens <= e.context.most;
    });
  } else if (type == "session-affinity-filter") {
    const std::int64_t bound = Bound(plugin, request, endpoints, before);
    keep([&](const Endpoint& e) { return e.id == bound; });
    all_if_none = true;
  } else if (type == "utilization-filter") {
    keep([&](const Endpoint& e) {
      for (int i = 0; i < 10; ++i) {
        const std::string item = "conditions." + std::to_string(i) + ".";
        const std::string metric = Text(plugin, item + "metric", "");
        if (!metric.empty() && Metric(metric, e) > Number(plugin, item + "maxValue", 0)) {
          return false;
        }
      }
      return true;
    });
    all_if_none = Number(plugin, "fallbackOnEmpty", 0) != 0;
  } else if (type == "utilization-detector") {
    const double more = 1 + Number(plugin, "headroom", 0);
    keep([&](const Endpoint& e) {
      return e.age <= 200'000'000 &&
             static_cast<double>(e.waiting) < Number(plugin, "queueDepthThreshold", 5) * more &&
             e.kv < Number(plugin, "kvCacheUtilThreshold", 0.8) * more;
    });
    all_if_none = true;
  } else if (type == "concurrency-detector") {
    const std::string mode = Text(plugin, "concurrencyMode", "requests");
    const double more = 1 + Number(plugin, "headroom", 0);
    const auto below = [&](std::int64_t n, const char* limit, double otherwise) {
      return n < static_cast<std::int64_t>(Number(plugin, limit, otherwise) * more);
    };
    keep([&](const Endpoint& e) {
      const bool requests = below(e.inflight_requests, "maxConcurrency", 100);
      const bool tokens = below(e.inflight_tokens, "maxTokenConcurrency", 1e6);
      return mode == "requests" ? requests : mode == "tokens" ? tokens : requests && tokens;
    });
  } else if (type == "prefix-cache-affinity-filter") {
    if (before.size() < 2) return before;
    double stuck = 1e300, others = 1e300;
    for (const std::int32_t p : before) {
      const Endpoint& e = Get(endpoints, p);
      const double ms = static_cast<double>(e.inflight_tokens) /
                        Number(plugin, "peakPrefillThroughput", 15928) * 1000;
      const bool sticks = Share(request, e) >= Number(plugin, "affinityThreshold", 0.8);
      if (sticks) kept.push_back(p);
      (sticks ? stuck : others) = std::min(sticks ? stuck : others, ms);
    }
    const double most = Number(plugin, "maxTTFTPenaltyMs", 18000);
    if (kept.size() < before.size() && most > 0 && stuck - others > most) return before;
    all_if_none = true;
  } else {
    return std::nullopt;
  }
  return kept.empty() && all_if_none ? before : kept;
}

std::vector<double> ReferencePicker::ColdScores(const EppPlugin& plugin, const Endpoints& endpoints,
                                                const Positions& of) {
  Memory& memory = memories_[plugin.name];
  memory.was_cold = true;
  for (const std::int32_t p : of) memory.was_cold &= Get(endpoints, p).matched_blocks <= 0;
  if (!memory.was_cold) return std::vector<double>(of.size(), 0.5);
  if (of.size() == 1) return {1};
  const auto rank_of = [&](std::int32_t p) {
    std::int64_t rank = 0;
    for (const std::int32_t used : memory.cold) {
      if (used == Get(endpoints, p).id) return rank;
      ++rank;
    }
    return std::int64_t{-1};
  };
  std::int64_t fresh = 0;
  for (const std::int32_t p : of) fresh += rank_of(p) < 0 ? 1 : 0;
  std::vector<double> scores;
  std::int64_t i = 0;
  for (const std::int32_t p : of) {
    const std::int64_t rank = rank_of(p) < 0 ? i++ : fresh + rank_of(p);
    const double score = 1 - static_cast<double>(rank) / static_cast<double>(of.size() - 1);
    scores.push_back(score < 0 ? 0 : score);
  }
  return scores;
}

std::optional<std::vector<double>> ReferencePicker::Scored(const EppPlugin& plugin,
                                                           const epp::Request& request,
                                                           const Endpoints& endpoints,
                                                           const Positions& of) {
  const std::string& type = plugin.type;
  if (type == "no-hit-lru-scorer") return ColdScores(plugin, endpoints, of);
  std::int64_t low_wait = INT64_MAX, high_wait = 0, low_run = INT64_MAX, high_run = 0, busiest = 0;
  for (const std::int32_t p : of) {
    const Endpoint& e = Get(endpoints, p);
    low_wait = std::min(low_wait, e.waiting);
    high_wait = std::max(high_wait, e.waiting);
    low_run = std::min(low_run, e.running);
    high_run = std::max(high_run, e.running);
    busiest = std::max(busiest, e.inflight_requests);
  }
  const std::int64_t bound =
      type == "session-affinity-scorer" ? Bound(plugin, request, endpoints, of) : std::int64_t{-1};
  std::vector<double> scores;
  for (const std::int32_t p : of) {
    const Endpoint& e = Get(endpoints, p);
    const auto part = [](double n, double most) { return std::min(n, most) / most; };
    double score = 0;
    if (type == "queue-scorer") {
      score = Between(e.waiting, low_wait, high_wait);
    } else if (type == "running-requests-size-scorer") {
      score = Between(e.running, low_run, high_run);
    } else if (type == "kv-cache-utilization-scorer") {
      score = 1 - e.kv;
    } else if (type == "load-aware-scorer") {
      score = 0.5 * (1 - part(static_cast<double>(e.waiting), Number(plugin, "threshold", 128)));
    } else if (type == "prefix-cache-scorer") {
      score = Share(request, e);
      const double w = Number(plugin, "matchLengthWeight", 0);
      if (w > 0 && e.matched_blocks >= 0 && request.total_blocks > 0) {
        const double l = part(static_cast<double>(e.matched_blocks * request.block_tokens),
                              Number(plugin, "matchLengthScaleTokens", 8192));
        score = w * (l * l) + (1 - w) * score;
      }
    } else if (type == "lora-affinity-scorer") {
      score = LoraScore(e.adapters == nullptr ? epp::Adapters{} : *e.adapters, request.adapter);
    } else if (type == "active-request-scorer") {
      const bool idle =
          static_cast<double>(e.inflight_requests) <= Number(plugin, "idleThreshold", 0);
      score = idle ? 1
                   : static_cast<double>(busiest - e.inflight_requests) /
                         static_cast<double>(busiest) * Number(plugin, "maxBusyScore", 1);
    } else if (type == "token-load-scorer") {
      const auto tokens = static_cast<double>(e.inflight_tokens + e.uncached_tokens);
      score = tokens <= 0 ? 1 : 1 - part(tokens, Number(plugin, "queueThresholdTokens", 4194304));
    } else if (type == "session-affinity-scorer") {
      score = e.id == bound ? 1 : 0;
    } else if (type == "context-length-aware") {
      score = ContextScore(e.context, request.tokens);
    } else {
      return std::nullopt;
    }
    scores.push_back(score);
  }
  return scores;
}

ReferencePicker::Run ReferencePicker::RunProfile(const EppProfile& profile,
                                                 const epp::Request& request,
                                                 const Endpoints& endpoints) {
  Run run{.profile = profile.name};
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    run.survivors.push_back(static_cast<std::int32_t>(i));
  }
  std::string picker = "max-score-picker";
  for (const EppReference& reference : profile.plugins) {
    const EppPlugin& plugin = PluginOf(reference.plugin);
    if (plugin.type.ends_with("-picker")) picker = plugin.type;
    if (run.survivors.empty()) continue;
    const auto kept = Filtered(plugin, request, endpoints, run.survivors);
    if (!kept) continue;
    run.survivors = *kept;
    run.filters.push_back(*kept);
  }
  if (run.survivors.empty()) return run;
  run.totals.assign(run.survivors.size(), 0);
  for (const EppReference& reference : profile.plugins) {
    const auto scores = Scored(PluginOf(reference.plugin), request, endpoints, run.survivors);
    if (!scores) continue;
    run.scores.push_back(*scores);
    for (std::size_t s = 0; s < scores->size(); ++s) {
      run.totals[s] += std::min(1.0, std::max(0.0, (*scores)[s])) * reference.weight;
    }
  }
  double sum = 0, most = 0;
  for (const double total : run.totals) {
    sum += total > 0 ? total : 0;
    most = std::max(most, total);
  }
  double equal = 0;
  for (const double total : run.totals) equal += total == most ? 1 : 0;
  for (const double total : run.totals) {
    const bool uniform = picker == "random-picker" || (picker != "max-score-picker" && sum <= 0);
    run.chances.push_back(uniform ? 1 / static_cast<double>(run.totals.size())
                          : picker == "max-score-picker" ? (total == most ? 1 / equal : 0)
                                                         : (total > 0 ? total : 0) / sum);
  }
  return run;
}

std::int32_t ReferencePicker::PickAt(const Positions& survivors, const std::vector<double>& chances,
                                     double u) {
  double sum = 0;
  std::int32_t last = survivors.front();
  for (std::size_t s = 0; s < survivors.size(); ++s) {
    if (chances[s] <= 0) continue;
    sum += chances[s];
    last = survivors[s];
    if (u < sum) break;
  }
  return last;
}

const EppProfile* ReferencePicker::ProfileOf(const std::string& name) const {
  for (const EppProfile& profile : config_.profiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

bool ReferencePicker::Disaggregates(const epp::Request& request, const Endpoint& decode) const {
  for (const EppPlugin& handler : config_.plugins) {
    if (handler.type != "disagg-profile-handler") continue;
    const EppPlugin& decider = PluginOf(Text(handler, "deciders.prefill", "none"));
    if (decider.type == "always-disagg-pd-decider") return true;
    if (decider.type != "prefix-based-pd-decider") return false;
    const auto least = static_cast<std::int64_t>(Number(decider, "nonCachedTokens", 0));
    const auto prompt = static_cast<std::int64_t>(Number(decider, "promptTokens", 0));
    if (least == 0 || request.tokens < prompt || request.tokens < least) return false;
    if (decode.matched_blocks < 0) return false;
    const std::int64_t blocks =
        decode.cached_blocks >= 0 ? decode.cached_blocks : decode.matched_blocks;
    return request.tokens - blocks * request.block_tokens >= least;
  }
  return false;
}

ReferencePicker::Outcome ReferencePicker::Schedule(const epp::Request& request,
                                                   const Endpoints& endpoints, double u) {
  Outcome outcome;
  const EppProfile* decode = ProfileOf("decode");
  outcome.runs.push_back(
      RunProfile(decode == nullptr ? config_.profiles.front() : *decode, request, endpoints));
  if (outcome.runs[0].survivors.empty()) return outcome;
  const std::int32_t chosen = PickAt(outcome.runs[0].survivors, outcome.runs[0].chances, u);
  outcome.choice.primary = Get(endpoints, chosen).id;
  if (decode != nullptr && Disaggregates(request, Get(endpoints, chosen))) {
    outcome.runs.push_back(RunProfile(*ProfileOf("prefill"), request, endpoints));
    const Run& run = outcome.runs[1];
    if (!run.survivors.empty()) {
      outcome.choice.prefill = Get(endpoints, PickAt(run.survivors, run.chances, u)).id;
    }
  }
  Remember(request, outcome.choice);
  return outcome;
}

void ReferencePicker::Remember(const epp::Request& request, const epp::Choice& choice) {
  for (auto& [name, memory] : memories_) {
    const EppPlugin& plugin = PluginOf(name);
    if (plugin.type == "no-hit-lru-scorer" && memory.was_cold) {
      for (const std::int32_t endpoint : {choice.primary, choice.prefill}) {
        if (endpoint < 0) continue;
        memory.cold.remove(endpoint);
        memory.cold.push_back(endpoint);
        if (static_cast<double>(memory.cold.size()) > Number(plugin, "lruSize", 1024)) {
          memory.cold.pop_front();
        }
      }
    }
    if (plugin.type == "no-hit-lru-scorer" || request.session < 0) continue;
    const auto session = memory.sessions.find(request.session);
    if (session == memory.sessions.end() || !memory.bound_was_there ||
        session->second.endpoint == choice.primary) {
      memory.sessions[request.session] = {choice.primary, request.time};
    }
  }
}

double ReferencePicker::Saturation(const std::string& name, const Endpoints& endpoints) const {
  const EppPlugin& plugin = PluginOf(name);
  if (endpoints.empty()) return 1;
  const auto n = static_cast<double>(endpoints.size());
  const double requests = Number(plugin, "maxConcurrency", 100);
  const double tokens = Number(plugin, "maxTokenConcurrency", 1e6);
  const std::string mode = Text(plugin, "concurrencyMode", "requests");
  const double stale =  // in whole ms
      1e6 * std::strtod(Text(plugin, "metricsStalenessThreshold", "200ms").c_str(), nullptr);
  double sum = 0;
  for (const Endpoint& e : endpoints) {
    const auto r = static_cast<double>(e.inflight_requests);
    const auto t = static_cast<double>(e.inflight_tokens);
    if (plugin.type == "utilization-detector") {
      const double queue =
          static_cast<double>(e.waiting) / Number(plugin, "queueDepthThreshold", 5);
      const double kv = e.kv / Number(plugin, "kvCacheUtilThreshold", 0.8);
      sum += static_cast<double>(e.age) > stale ? 1 : std::max(queue, kv);
    } else {
      sum += mode == "hybrid" ? std::max(r / requests, t / tokens) : mode == "tokens" ? t : r;
    }
  }
  if (plugin.type == "utilization-detector" || mode == "hybrid") return sum / n;
  return sum / ((mode == "tokens" ? tokens : requests) * n);
}

std::vector<ReferencePickerIndex::Block> ReferencePickerIndex::BlocksOf(const Prompt& prompt,
                                                                        std::int64_t block) {
  std::vector<Block> blocks;
  const auto size = static_cast<std::size_t>(block);
  for (std::size_t at = 0; at < prompt.size(); at += size) {
    const std::size_t end = std::min(prompt.size(), at + size);
    blocks.push_back(
        {block, Prompt(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(end))});
  }
  return blocks;
}

std::vector<std::int64_t> ReferencePickerIndex::Match(const Prompt& prompt,
                                                      std::int64_t block) const {
  std::vector<std::int64_t> matched(lrus_.size());
  for (const Block& of : BlocksOf(prompt, block)) {
    const auto found = holders_.find(of);
    if (found == holders_.end() || found->second.empty()) break;
    for (const std::size_t endpoint : found->second) ++matched[endpoint];
  }
  return matched;
}

void ReferencePickerIndex::Add(const Prompt& prompt, std::int64_t block, std::size_t endpoint,
                               std::int64_t capacity) {
  Lru& lru = lrus_[endpoint];
  const std::vector<Block> blocks = BlocksOf(prompt, block);
  if (!lru.used && !blocks.empty()) {
    lru.used = true;
    lru.capacity = capacity;
  }
  for (const Block& of : blocks) {
    const auto known = std::find(lru.oldest_first.begin(), lru.oldest_first.end(), of);
    if (known != lru.oldest_first.end()) lru.oldest_first.erase(known);
    lru.oldest_first.push_back(of);
    if (static_cast<std::int64_t>(lru.oldest_first.size()) <= lru.capacity) continue;
    holders_[lru.oldest_first.front()].erase(endpoint);
    lru.oldest_first.pop_front();
  }
  for (const Block& of : blocks) holders_[of].insert(endpoint);
}

void ReferencePickerIndex::Remove(std::size_t endpoint) {
  for (const Block& block : lrus_[endpoint].oldest_first) holders_[block].erase(endpoint);
  lrus_[endpoint] = {};
}

}  // namespace servecast::testing
