// no-hit-lru-scorer: spreads prompts that no endpoint has, by when an endpoint last got such a
// prompt.
//
// The LRU counts endpoints that are not candidates, too, and those never used score by the order of
// the candidates.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::scorer_no_hit_lru {
namespace {

class NoHitLru final : public Plugin {
 public:
  explicit NoHitLru(const Settings& settings)
      : size_(static_cast<std::size_t>(settings.Whole("lruSize"))) {}

  void Score(const Request&, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    cold_ = std::none_of(survivors.begin(), survivors.end(),
                         [&](std::int32_t i) { return At(endpoints, i).matched_blocks > 0; });
    if (!cold_ || survivors.size() <= 1) {
      std::fill(scores.begin(), scores.end(), cold_ ? 1.0 : 0.5);
      return;
    }
    ScoreCold(endpoints, survivors, scores);
  }

  void Chosen(const Request&, const Choice& choice) override {
    if (!cold_) return;
    Touch(choice.primary);
    if (choice.prefill >= 0) Touch(choice.prefill);
  }

 private:
  void ScoreCold(Endpoints endpoints, const Survivors& survivors, std::span<double> scores) {
    const double last = Real(static_cast<std::int64_t>(survivors.size()) - 1);
    places_.clear();
    std::int64_t unused = 0;
    for (const std::int32_t i : survivors) {
      const auto found = std::find(oldest_first_.begin(), oldest_first_.end(), At(endpoints, i).id);
      places_.push_back(found == oldest_first_.end() ? -1 : found - oldest_first_.begin());
      unused += places_.back() < 0 ? 1 : 0;
    }
    std::int64_t rank = 0;
    for (std::size_t s = 0; s < survivors.size(); ++s) {
      scores[s] = places_[s] < 0 ? 1 - Real(rank++) / last
                                 : std::max(0.0, 1 - Real(unused + places_[s]) / last);
    }
  }

  void Touch(std::int32_t endpoint) {
    std::erase(oldest_first_, endpoint);
    oldest_first_.push_back(endpoint);
    if (oldest_first_.size() > size_) oldest_first_.erase(oldest_first_.begin());
  }

  std::size_t size_;
  std::vector<std::int32_t> oldest_first_;  // ids
  std::vector<std::int64_t> places_;        // in it, by survivor; -1: never used
  bool cold_ = false;                       // what Score() found last
};

constexpr SettingSpec kSettings[] = {
    {.path = "lruSize", .kind = SettingSpec::Kind::kWhole, .fallback = 1024, .least = 1},
    {.path = "prefixMatchInfoProducerName", .kind = SettingSpec::Kind::kText}};

}  // namespace

extern const PluginEntry kEntry = {
    .type = "no-hit-lru-scorer",
    .help = "for prompts that no endpoint has: the endpoint that got one longest ago",
    .scores = true,
    .make = [](const Settings& settings) -> std::unique_ptr<Plugin> {
      return std::make_unique<NoHitLru>(settings);
    },
    .settings = kSettings};

}  // namespace servecast::epp::scorer_no_hit_lru
