// Predictions scored on measurements: errors per set and over all.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measured_sets.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// What is scored, in the order of tables.
inline constexpr std::array<const char*, 8> kScored = {
    "ttft", "tpot", "e2e", "ttft_p99", "tpot_p99", "throughput", "power", "energy"};

// Of |predicted - measured| / measured.
struct ErrorSummary {
  double median = 0, p90 = 0;
  std::size_t n = 0;
};
using Errors = std::map<std::string, ErrorSummary>;

// What of a set-up a label of known error asks for (core/src/cost/compared.h).
struct ComparedSetup {
  std::string gpu, engine, with;
  std::int64_t gpus = 1;
};

struct ScoredRow {
  const Measured* measured = nullptr;
  Metrics predicted;
  std::string skipped;       // why there is no prediction
  std::string simulated_as;  // presets: "qwen3-32b, h100-sxm, vllm-0.11"
  bool same_engine = true;   // a preset of the measured version
  ComparedSetup as;
  std::shared_ptr<const Scenario> setup;  // what was simulated, but for the load
  std::string key;                        // all that the prediction depends on
  // Set-up, workload and load of a serving run, as they were understood; else "".
  std::string run;
  // The same run, measured once, in a set before this one: counts there.
  const Measured* same_as = nullptr;
};

// Where throughput leaves the rate: between the last rate that is served and the first that is
// not; `first_beyond` is none when all are.
struct Knee {
  double last_served = 0;
  std::optional<double> first_beyond;
};

struct ScoredSweep {
  std::string name;
  Knee measured, predicted;
  double measured_preemptions = 0, predicted_preemptions = 0;
};

// What names in files were taken for.
struct UnderstoodSetup {
  std::string names, presets;
  bool same_engine = true;
  std::size_t rows = 0;
};

// A figure beside its band of 90 %, from a model of the error that has not seen its server.
struct ScoredFigure {
  std::string row, metric;
  double measured = 0, predicted = 0, low = 0, high = 0;
  std::string_view of;  // class: "serving near", "dense near", "others near", "middle", "far"

  bool Covered() const { return low <= measured && measured <= high; }
};

// Of the figures of one metric and class.
struct ScoredCoverage {
  std::size_t rows = 0, setups = 0;
  double of_rows = 0, of_setups = 0;  // shares covered; each set-up counts as one
  double half_width = 0;              // median, over the forecast
};

struct ScoredSet {
  std::string name;
  std::size_t rows = 0;  // of the file: those that are scored and those that are skipped
  std::vector<std::pair<std::string, std::string>> skipped;  // row, reason
  Errors errors;
  std::vector<ScoredSweep> sweeps;
  std::vector<ScoredFigure> figures;  // once AddBands did its part
};

struct FidelityTable {
  std::vector<ScoredSet> sets;
  // Over the serving runs, one value per set-up, workload and load.
  Errors overall;
  std::size_t runs = 0;            // of which there is one
  std::size_t measured_twice = 0;  // rows of runs that a set before theirs holds
  std::vector<UnderstoodSetup> understood;
  // By metric, then class, "all" among them; once AddBands did its part.
  std::map<std::string, std::map<std::string, ScoredCoverage>> coverage;
};

// A folder, and what ReadMeasuredSets has found in it.
struct MeasuredFolder {
  std::string path;
  std::vector<Measured> rows;
};

// Runs every row; rows that ask the same are run once. Issues: of the overrides.
Result<std::vector<ScoredRow>> ScoreRows(const std::vector<MeasuredFolder>& folders,
                                         const std::vector<std::string>& overrides);

// |predicted - measured| / measured of a figure, with its sign; nullopt where it is not known.
std::optional<double> SignedError(const ScoredRow& row, const char* metric);

FidelityTable TableOf(const std::vector<ScoredRow>& rows);

// Runs rows that queue again, some eight times as long as ScoreRows takes for them.
void AddBands(const std::vector<ScoredRow>& rows, FidelityTable& table);

std::string FidelityText(const FidelityTable& table);
// As JSON: all of it, or, to be kept, without the rows that are left out.
enum class FidelityParts { kAll, kErrors };
std::string FidelityJson(const FidelityTable& table, FidelityParts parts);
// A line a metric of a row: what was measured, what is predicted.
std::string FidelityRowsCsv(const std::vector<ScoredRow>& rows);

// How far each of the latency models was off, by GPU, engine, kind of run and features
// (presets/compared.json); and of each of these the run in the middle: what was measured, what is
// predicted, and a scenario that anybody can open (docs/measured_runs.json).
struct ComparedTexts {
  std::string errors, runs;
};
// Issues: of the overrides.
Result<ComparedTexts> Compare(const std::vector<MeasuredFolder>& folders,
                              const std::vector<std::string>& overrides);

// Errors that have grown by more than a tenth over a table of FidelityJson, and sets of which fewer
// rows are scored; a line each. `checked` counts the errors compared.
Result<std::vector<std::string>> GrownErrors(const FidelityTable& table, std::string_view recorded,
                                             std::size_t& checked);

}  // namespace servecast
