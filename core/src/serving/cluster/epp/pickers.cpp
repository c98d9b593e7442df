// max-score-picker, weighted-random-picker and random-picker. The real ones shuffle and sort, or
// draw keys U^(1/total); the probabilities are these.
#include <algorithm>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::pickers {
namespace {

void Fill(std::span<double> chances) {
  std::fill(chances.begin(), chances.end(), 1 / Real(static_cast<std::int64_t>(chances.size())));
}

class MaxScore final : public Plugin {
 public:
  void Chances(std::span<const double> totals, std::span<double> chances) const override {
    const double most = *std::max_element(totals.begin(), totals.end());
    const auto equals = std::count(totals.begin(), totals.end(), most);
    for (std::size_t s = 0; s < totals.size(); ++s) {
      chances[s] = totals[s] == most ? 1 / Real(equals) : 0;
    }
  }
};

class WeightedRandom final : public Plugin {
 public:
  void Chances(std::span<const double> totals, std::span<double> chances) const override {
    double sum = 0;
    for (const double total : totals) sum += std::max(total, 0.0);
    if (sum <= 0) return Fill(chances);
    for (std::size_t s = 0; s < totals.size(); ++s) chances[s] = std::max(totals[s], 0.0) / sum;
  }
};

class Random final : public Plugin {
 public:
  void Chances(std::span<const double>, std::span<double> chances) const override { Fill(chances); }
};

// How many endpoints a request may be offered; only one is modelled.
constexpr SettingSpec kSettings[] = {{.path = "maxNumOfEndpoints",
                                      .kind = SettingSpec::Kind::kWhole,
                                      .fallback = 1,
                                      .least = 1,
                                      .most = 1}};

template <class Picker>
std::unique_ptr<Plugin> Make(const Settings&) {
  return std::make_unique<Picker>();
}

}  // namespace

namespace max_score {
extern const PluginEntry kEntry = {.type = "max-score-picker",
                                   .help = "the highest total, at random among equals",
                                   .picks = true,
                                   .make = Make<MaxScore>,
                                   .settings = kSettings};
}  // namespace max_score

namespace weighted_random {
extern const PluginEntry kEntry = {.type = "weighted-random-picker",
                                   .help = "at random, as likely as the total is high",
                                   .picks = true,
                                   .make = Make<WeightedRandom>,
                                   .settings = kSettings};
}  // namespace weighted_random

namespace random {
extern const PluginEntry kEntry = {.type = "random-picker",
                                   .help = "any survivor, all as likely",
                                   .picks = true,
                                   .make = Make<Random>,
                                   .settings = kSettings};
}  // namespace random

}  // namespace servecast::epp::pickers
