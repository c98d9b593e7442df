// Bands beside the scored figures, and how many of them hold; see score.h.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "figure_bands.h"
#include "score.h"

namespace servecast {
namespace {

// Of all rows, that bands are made for: each takes a fraction of a millisecond, or runs.
constexpr std::size_t kMostBanded = 10'000;

// Figures of one metric and class, by set-up.
struct Tally {
  std::vector<std::pair<SetupFeatures, std::vector<bool>>> setups;
  std::vector<double> halves;

  void Add(const SetupFeatures& features, const ScoredFigure& figure) {
    auto setup = std::find_if(setups.begin(), setups.end(), [&features](const auto& known) {
      return SameServer(known.first, features);
    });
    if (setup == setups.end()) setup = setups.insert(setups.end(), {features, {}});
    setup->second.push_back(figure.Covered());
    halves.push_back((figure.high - figure.low) / 2 / figure.predicted);
  }

  ScoredCoverage Coverage() const {
    ScoredCoverage c;
    c.setups = setups.size();
    for (const auto& [features, covered] : setups) {
      const auto in = std::count(covered.begin(), covered.end(), true);
      c.rows += covered.size();
      c.of_rows += static_cast<double>(in);
      c.of_setups += static_cast<double>(in) / static_cast<double>(covered.size());
    }
    c.of_rows /= static_cast<double>(c.rows);
    c.of_setups /= static_cast<double>(c.setups);
    c.half_width = PercentileOf(halves, 0.5);
    return c;
  }
};

}  // namespace

void AddBands(const std::vector<ScoredRow>& rows, FidelityTable& table) {
  BandReader reader;
  std::map<std::pair<std::string, std::string>, Tally> tallies;
  std::size_t banded = 0;
  for (const ScoredRow& row : rows) {
    if (!row.skipped.empty() || row.setup == nullptr) continue;
    if (++banded > kMostBanded) break;
    const auto set = std::find_if(table.sets.begin(), table.sets.end(), [&row](const ScoredSet& s) {
      return s.name == row.measured->set;
    });
    const RowBands bands = reader.Read(*row.measured, *row.setup, row.predicted, row.key);
    for (const auto& [metric, band] : bands.figures) {
      const ScoredFigure& figure = set->figures.emplace_back(
          ScoredFigure{row.measured->row, metric, row.measured->values.at(metric),
                       row.predicted.at(metric), band.low, band.high, bands.of});
      if (row.same_as != nullptr) continue;
      tallies[{metric, std::string(bands.of)}].Add(bands.features, figure);
      tallies[{metric, "all"}].Add(bands.features, figure);
    }
  }
  for (const auto& [key, tally] : tallies) {
    table.coverage[key.first][key.second] = tally.Coverage();
  }
}

}  // namespace servecast
