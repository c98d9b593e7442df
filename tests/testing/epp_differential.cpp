#include "testing/epp_differential.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "serving/cluster/epp/approximate_index.h"
#include "serving/cluster/epp/inflight_load.h"
#include "serving/cluster/epp/prefix_blocks.h"
#include "serving/cluster/epp/scheduler.h"
#include "testing/dice.h"
#include "testing/epp_reference.h"

namespace servecast::testing {
namespace {

const std::vector<std::string> kFilters = {"decode-filter",
                                           "utilization-filter",
                                           "session-affinity-filter",
                                           "utilization-detector",
                                           "concurrency-detector",
                                           "context-length-aware",
                                           "prefix-cache-affinity-filter"};
const std::vector<std::string> kScorers = {"queue-scorer",
                                           "running-requests-size-scorer",
                                           "kv-cache-utilization-scorer",
                                           "load-aware-scorer",
                                           "prefix-cache-scorer",
                                           "lora-affinity-scorer",
                                           "active-request-scorer",
                                           "token-load-scorer",
                                           "session-affinity-scorer",
                                           "no-hit-lru-scorer"};
const std::vector<std::string> kPickers = {"max-score-picker", "weighted-random-picker",
                                           "random-picker"};

EppParameters RandomParameters(Dice& dice, const std::string& type) {
  EppParameters p;
  const auto maybe = [&](const char* path, const std::vector<double>& values) {
    if (dice.Percent(60)) p[path] = dice.Pick<double>(values);
  };
  if (type == "utilization-filter") {
    p["conditions.0.metric"] = std::string("waiting-queue");
    p["conditions.0.maxValue"] = dice.Pick<double>({0, 2, 8});
    const std::vector<std::string> metrics = {"kv-cache-utilization", "running-requests",
                                              "active-requests"};
    p["conditions.1.metric"] = dice.Pick<std::string>(metrics);
    p["conditions.1.maxValue"] = dice.Pick<double>({0.5, 1, 3});
    p["fallbackOnEmpty"] = dice.Percent(50);
  } else if (type.starts_with("session-affinity")) {
    if (dice.Percent(70)) p["strategy"] = std::string("session_id");
    maybe("sessionIdConfig.evictionTtlSeconds", {1, 15, 60});
    maybe("sessionIdConfig.evictionSweepSeconds", {1, 7});
  } else if (type == "utilization-detector") {
    maybe("queueDepthThreshold", {1, 3});
    maybe("kvCacheUtilThreshold", {0.5, 0.75});
    maybe("headroom", {0.1, 1});
  } else if (type == "concurrency-detector") {
    p["concurrencyMode"] = dice.Pick<std::string>({"requests", "tokens", "hybrid"});
    maybe("maxConcurrency", {1, 4, 20});
    maybe("maxTokenConcurrency", {500, 4000});
    maybe("headroom", {0.25, 1});
  } else if (type == "context-length-aware") {
    p["enableFiltering"] = dice.Percent(50);
  } else if (type == "prefix-cache-affinity-filter") {
    maybe("affinityThreshold", {0, 0.3, 1});
    maybe("maxTTFTPenaltyMs", {0, 5, 200});
    maybe("peakPrefillThroughput", {1000, 9866});
  } else if (type == "load-aware-scorer") {
    maybe("threshold", {1, 5});
  } else if (type == "prefix-cache-scorer") {
    maybe("matchLengthWeight", {0, 0.3, 1});
    maybe("matchLengthScaleTokens", {100, 1000});
  } else if (type == "active-request-scorer") {
    maybe("idleThreshold", {0, 1, 3});
    maybe("maxBusyScore", {0.5, 1});
  } else if (type == "token-load-scorer") {
    maybe("queueThresholdTokens", {300, 5000});
  } else if (type == "no-hit-lru-scorer") {
    maybe("lruSize", {1, 2, 4});
  } else if (type == "prefix-based-pd-decider") {
    maybe("nonCachedTokens", {0, 1, 128, 400});
    maybe("promptTokens", {0, 200});
  }
  return p;
}

// Filters and scorers of `types` in a random order.
void AddRandom(Dice& dice, const std::vector<std::string>& types, std::int64_t most,
               const std::string& prefix, EppConfig& config, EppProfile& profile) {
  for (std::int64_t n = dice.Between(0, most); n > 0; --n) {
    const std::string type = dice.Pick<std::string>(types);
    const std::string name = prefix + std::to_string(profile.plugins.size());
    config.plugins.push_back({name, type, RandomParameters(dice, type)});
    profile.plugins.push_back({name, dice.Pick<double>({0, 0.25, 1, 1, 2, 3})});
  }
}

}  // namespace

EppConfig RandomEppConfig(Dice& dice) {
  EppConfig config;
  const bool apart = dice.Percent(40);
  EppProfile& first = config.profiles.emplace_back();
  first.name = apart ? "decode" : "default";
  AddRandom(dice, kFilters, 2, "f", config, first);
  AddRandom(dice, kScorers, 4, "s", config, first);
  if (dice.Percent(70)) first.plugins.push_back({dice.Pick<std::string>(kPickers)});
  if (!apart) return config;
  EppProfile second{.name = "prefill", .plugins = {{"prefill-filter"}}};
  // Without memory: what a profile that did not run remembers is nobody's rule.
  AddRandom(dice, {"queue-scorer", "token-load-scorer", "prefix-cache-scorer"}, 2, "p", config,
            second);
  config.profiles.push_back(second);
  const std::string decider =
      dice.Percent(50) ? "always-disagg-pd-decider" : "prefix-based-pd-decider";
  config.plugins.push_back({"decider", decider, RandomParameters(dice, decider)});
  config.plugins.push_back(
      {"handler", "disagg-profile-handler", {{"deciders.prefill", std::string("decider")}}});
  return config;
}

namespace {

class RandomCycles {
 public:
  explicit RandomCycles(std::uint64_t seed)
      : dice_(seed),
        config_(RandomEppConfig(dice_)),
        scheduler_(config_),
        reference_(config_),
        pods_(static_cast<std::size_t>(dice_.Between(1, 9))),
        index_(pods_),
        reference_index_(pods_),
        estimates_(dice_.Percent(30)),
        loads_(pods_, estimates_),
        capacity_(dice_.Pick<std::int64_t>({1, 3, 20, 1000})),
        block_(epp::BlockTokens(prefix_, dice_.Pick<std::int64_t>({0, 16, 96}))) {
    for (std::size_t i = 0; i < pods_; ++i) {
      roles_.push_back(static_cast<epp::Role>(dice_.Between(0, 8)));
      adapters_.push_back({{static_cast<std::int32_t>(dice_.Between(0, 2))},
                           {static_cast<std::int32_t>(dice_.Between(0, 2))},
                           dice_.Between(0, 4)});
      ranges_.push_back(dice_.Pick<std::string>({"", "0-300", "200-200", "100-1000", "x", "9-1"}));
    }
    reference_requests_.resize(pods_);
    reference_tokens_.resize(pods_);
  }

  EppComparison Compare() {
    for (std::int64_t n = dice_.Between(1, 40); n > 0 && out_.mismatch.empty(); --n) {
      if (dice_.Percent(3)) {
        const std::int64_t pod = dice_.Between(0, static_cast<std::int64_t>(pods_) - 1);
        index_.Remove(static_cast<std::int32_t>(pod));
        reference_index_.Remove(static_cast<std::size_t>(pod));
      }
      One();
      while (!held_.empty() && dice_.Percent(45)) Answer();
    }
    return out_;
  }

 private:
  struct Held {
    epp::InflightLoad::Holding holding = {};
    epp::Choice choice = {};
    std::int64_t primary = 0, prefill = 0;
    bool answered = false;
  };

  void One() {
    ReferencePickerIndex::Prompt tokens;
    std::vector<epp::TextPiece> pieces;
    for (std::int64_t part = dice_.Between(1, 3); part > 0; --part) {
      const std::int64_t text = dice_.Percent(70) ? dice_.Between(1, 2) : ++texts_;
      const std::int64_t length = dice_.Pick<std::int64_t>({1, 64, 65, 128, 200});
      pieces.push_back({text, 0, length});
      for (std::int64_t t = 0; t < length; ++t) tokens.push_back({text, t});
    }
    request_ = {.tokens = static_cast<std::int64_t>(tokens.size()),
                .adapter = static_cast<std::int32_t>(dice_.Between(-1, 2)),
                .session = dice_.Between(-1, 3),
                .named_endpoint = dice_.Between(-1, 9),
                .block_tokens = block_,
                .time = request_.time + dice_.Pick<TimeNs>({1, kNsPerS, 9 * kNsPerS})};
    std::vector<std::uint64_t> keys;
    epp::AppendKeys(prefix_, block_, 0, pieces, keys);
    request_.total_blocks = static_cast<std::int64_t>(keys.size());
    std::vector<std::int64_t> matched(pods_);
    index_.Match(keys, matched);
    Expect("matched", reference_index_.Match(tokens, block_), matched);
    Expect("blocks", ReferencePickerIndex::Blocks(tokens, block_), keys.size());
    Describe(matched);
    Schedule();
    if (choice_.primary < 0 || !out_.mismatch.empty()) return;
    for (const std::int32_t pod : {choice_.primary, choice_.prefill}) {
      if (pod < 0) continue;
      index_.Add(keys, pod, capacity_);
      reference_index_.Add(tokens, block_, static_cast<std::size_t>(pod), capacity_);
    }
    Send();
  }

  // The candidates, in any order; one may be missing.
  void Describe(const std::vector<std::int64_t>& matched) {
    endpoints_.clear();
    const epp::LoadSettings load{.estimates_output = estimates_};
    const std::int64_t estimated = epp::EstimatedOutput(load, request_.tokens, 77);
    Expect("estimated output",
           estimates_ ? std::min<std::int64_t>(77, (3 * request_.tokens + 1) / 2) : 0, estimated);
    for (std::size_t i = 0; i < pods_; ++i) {
      if (pods_ > 1 && dice_.Percent(8)) continue;
      epp::Endpoint e;
      e.id = static_cast<std::int32_t>(i);
      e.waiting = dice_.Pick<std::int64_t>({0, 0, 1, 2, 9});
      e.running = dice_.Between(0, 3);
      e.kv = dice_.Pick<double>({0, 0.25, 0.74, 0.8, 1});
      e.age = dice_.Pick<TimeNs>({0, 200 * kNsPerMs, 200 * kNsPerMs + 1});
      e.adapters = dice_.Percent(90) ? &adapters_[i] : nullptr;
      e.matched_blocks = dice_.Percent(90) ? matched[i] : epp::kUnknown;
      e.cached_blocks = dice_.Percent(20) ? e.matched_blocks / 2 : epp::kUnknown;
      e.inflight_requests = loads_.requests(e.id);
      e.inflight_tokens = loads_.tokens(e.id);
      Expect("requests in flight", reference_requests_[i], e.inflight_requests);
      Expect("tokens in flight", reference_tokens_[i], e.inflight_tokens);
      const std::int64_t uncached = epp::UncachedTokens(request_, e.matched_blocks);
      Expect("uncached",
             e.matched_blocks < 0 ? request_.tokens
                                  : (request_.total_blocks - e.matched_blocks) * block_,
             uncached);
      e.uncached_tokens = uncached + estimated;
      e.role = roles_[i];
      e.context = epp::ContextRangeOf(ranges_[i]);
      endpoints_.push_back(e);
      if (endpoints_.size() > 1 && dice_.Percent(50)) std::swap(endpoints_[0], endpoints_.back());
    }
    if (!endpoints_.empty()) return;
    epp::Endpoint only;
    only.id = 0;
    only.role = roles_[0];
    endpoints_.push_back(only);
  }

  void Schedule() {
    const double u = static_cast<double>(dice_.Between(0, 999)) / 1000 + 0.0005;
    choice_ = scheduler_.Schedule(request_, endpoints_,
                                  [&](const epp::Profile&, const epp::ProfileRun& run) {
                                    return ReferencePicker::PickAt(run.survivors, run.chances, u);
                                  });
    const ReferencePicker::Outcome wanted = reference_.Schedule(request_, endpoints_, u);
    Expect("primary", wanted.choice.primary, choice_.primary);
    Expect("prefill", wanted.choice.prefill, choice_.prefill);
    for (std::size_t p = 0; p < scheduler_.profiles().size(); ++p) {
      const std::string& name = scheduler_.profiles()[p].name;
      const auto run = std::find_if(wanted.runs.begin(), wanted.runs.end(),
                                    [&](const auto& of) { return of.profile == name; });
      Expect(name + " ran", run != wanted.runs.end(), scheduler_.Ran(static_cast<int>(p)));
      if (run == wanted.runs.end()) continue;
      const epp::ProfileRun& found = scheduler_.runs()[p];
      Expect(name + " filters", run->filters, found.filters);
      Expect(name + " survivors", run->survivors, found.survivors);
      Expect(name + " totals", run->totals, found.totals);
      Expect(name + " chances", run->chances, found.chances);
      if (!run->survivors.empty()) Expect(name + " scores", run->scores, found.scores);
      out_.ties += std::count_if(found.chances.begin(), found.chances.end(),
                                 [](double c) { return c > 0; }) > 1;
    }
    ++out_.cycles;
    out_.failed += choice_.primary < 0 ? 1 : 0;
    out_.disaggregated += choice_.prefill >= 0 ? 1 : 0;
    for (const epp::Endpoint& e : endpoints_)
      out_.matched_blocks += std::max<std::int64_t>(0, e.matched_blocks);
    for (const EppPlugin& plugin : config_.plugins) {
      ++out_.plugins[plugin.type];
      const epp::PluginEntry* entry = epp::FindPluginType(plugin.type);
      if (!entry->detects) continue;
      const auto detector = entry->make(epp::Settings(entry->settings, plugin.parameters));
      Expect("saturation", reference_.Saturation(plugin.name, endpoints_),
             detector->Saturation(endpoints_));
    }
  }

  std::int64_t UncachedOf(std::int32_t id) const {
    for (const epp::Endpoint& e : endpoints_) {
      if (e.id == id) return e.uncached_tokens;
    }
    return 0;
  }

  void Count(std::int32_t pod, std::int64_t requests, std::int64_t tokens) {
    if (pod < 0) return;
    reference_requests_[static_cast<std::size_t>(pod)] += requests;
    reference_tokens_[static_cast<std::size_t>(pod)] += tokens;
  }

  void Send() {
    Held held{.choice = choice_,
              .primary = UncachedOf(choice_.primary),
              .prefill = UncachedOf(choice_.prefill)};
    held.holding = {choice_.primary, choice_.prefill, held.primary, held.prefill};
    loads_.Sent(held.holding);
    Count(choice_.primary, 1, held.primary);
    Count(choice_.prefill, 1, held.prefill);
    held_.push_back(held);
  }

  // A request's first chunk, or its end.
  void Answer() {
    const auto at = held_.begin() + dice_.Between(0, static_cast<std::int64_t>(held_.size()) - 1);
    if (!at->answered && dice_.Percent(80)) {
      loads_.FirstChunk(at->holding);
      Count(at->choice.prefill, -1, -at->prefill);
      if (!estimates_) Count(at->choice.primary, 0, -at->primary);
      at->answered = true;
      return;
    }
    loads_.Ended(at->holding);
    if (!at->answered) Count(at->choice.prefill, -1, -at->prefill);
    Count(at->choice.primary, -1, at->answered && !estimates_ ? 0 : -at->primary);
    held_.erase(at);
  }

  template <class Value>
  void Expect(const std::string& what, const Value& wanted, const Value& found) {
    if (wanted == found || !out_.mismatch.empty()) return;
    out_.mismatch = fmt::format("cycle {}: {}: {}, found {}", out_.cycles, what, wanted, found);
  }

  Dice dice_;
  EppConfig config_;
  epp::Scheduler scheduler_;
  ReferencePicker reference_;
  std::size_t pods_;
  epp::PrefixSettings prefix_;
  epp::ApproximateIndex index_;
  ReferencePickerIndex reference_index_;
  bool estimates_;
  epp::InflightLoad loads_;
  std::int64_t capacity_, block_;
  std::vector<epp::Role> roles_;
  std::vector<epp::Adapters> adapters_;
  std::vector<std::string> ranges_;
  std::vector<std::int64_t> reference_requests_, reference_tokens_;
  std::int64_t texts_ = 10;
  epp::Request request_;
  std::vector<epp::Endpoint> endpoints_;
  epp::Choice choice_;
  std::vector<Held> held_;
  EppComparison out_;
};

}  // namespace

EppComparison CompareEpp(std::uint64_t seed) { return RandomCycles(seed).Compare(); }

}  // namespace servecast::testing
