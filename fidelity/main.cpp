// servecast-fidelity, which `servecast fidelity` becomes: the scores of the predictions, from files
// to standard output. Exit 1: an error has grown.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "evidence_fit.h"
#include "forecast_errors.h"
#include "host/files.h"
#include "host/output_file.h"
#include "host/process.h"
#include "score.h"

namespace servecast {
namespace {

constexpr int kGrownErrors = 1;
constexpr const char* kFolderVariable = "SERVECAST_GROUNDTRUTH";
constexpr const char* kDefaultFolder = "../shared/groundtruth";
constexpr const char* kForecastsVariable = "SERVECAST_FORECASTS";
constexpr const char* kDefaultForecasts =
    "../shared/reference/error-model/as-forecast-2026-11-27.csv.gz";

constexpr const char* kFidelityHelp =
    "servecast fidelity [--data DIR]... [--json | --rows] [--set path=value]...\n"
    "                   [--record FILE] [--against FILE] [--compared FILE] [--runs FILE]\n"
    "servecast fidelity --evidence FILE [--forecasts FILE]\n"
    "\n"
    "Runs what was measured on real servers, and prints how far off the predictions are: median\n"
    "and p90 of |predicted - measured| / measured, per set and over all serving runs.\n"
    "\n"
    "  --data DIR      CSV files of measurements, recognised by their columns; docs/fidelity.md\n"
    "                  lists the forms. DIR/models may hold config.json files of models without a\n"
    "                  preset. Default: $SERVECAST_GROUNDTRUTH, else ../shared/groundtruth.\n"
    "                  Several are read one after the other\n"
    "  --json          the table as JSON, with every row that is left out and why, and of each\n"
    "                  figure (of the first 10,000 rows) the band of 90 % by what was measured on\n"
    "                  other set-ups\n"
    "  --rows          a line for each figure of each row: measured, predicted, error\n"
    "  --set           change the scenarios of all rows, e.g. hardware.compute_efficiency=0.7\n"
    "  --record FILE   keep the errors in FILE\n"
    "  --compared FILE write how far each model of step times was off, by GPU, engine, kind of "
    "run\n"
    "                  and features: presets/compared.json, which labels of known error are made "
    "of\n"
    "  --runs FILE     write of each of these a run in the middle of its errors, with a scenario\n"
    "                  that predicts the same: docs/measured_runs.json, for the documentation\n"
    "  --against FILE  what --json printed earlier: name the errors that have grown by more than "
    "a\n"
    "                  tenth since, and exit with 1 when there are any\n"
    "\n"
    "  --evidence FILE write what bands are made of, presets/evidence.json, from the errors of "
    "forecasts\n"
    "                  that no fit had seen, and print how well such bands and probabilities hold\n"
    "  --forecasts FILE  these forecasts, a line for each figure (docs/fidelity.md). Default:\n"
    "                  $SERVECAST_FORECASTS, else\n"
    "                  ../shared/reference/error-model/as-forecast-2026-11-27.csv.gz\n"
    "\n"
    "When nothing can be compared it exits with 2.\n";

struct Options {
  std::string record, against, compared, runs, evidence, forecasts;
  std::vector<std::string> folders, overrides;
  bool json = false, rows = false, help = false;
};

// What is wrong with the arguments.
std::optional<std::string> ReadOptions(const std::vector<std::string>& args, Options& out) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    const bool valued = arg == "--data" || arg == "--record" || arg == "--against" ||
                        arg == "--compared" || arg == "--runs" || arg == "--set" ||
                        arg == "--evidence" || arg == "--forecasts";
    if (valued && i + 1 == args.size()) return arg + " needs a value";
    if (valued && args[i + 1].empty()) return arg + " needs a value, found none";
    if (arg == "--data") {
      out.folders.push_back(args[++i]);
    } else if (arg == "--record") {
      out.record = args[++i];
    } else if (arg == "--against") {
      out.against = args[++i];
    } else if (arg == "--compared") {
      out.compared = args[++i];
    } else if (arg == "--runs") {
      out.runs = args[++i];
    } else if (arg == "--evidence") {
      out.evidence = args[++i];
    } else if (arg == "--forecasts") {
      out.forecasts = args[++i];
    } else if (arg == "--set") {
      out.overrides.push_back(args[++i]);
    } else if (arg == "--json") {
      out.json = true;
    } else if (arg == "--rows") {
      out.rows = true;
    } else if (arg == "--help" || arg == "-h") {
      out.help = true;
    } else {
      return "unknown option " + arg;
    }
  }
  if (out.folders.empty()) {
    const char* folder = std::getenv(kFolderVariable);
    out.folders = {folder != nullptr && *folder != 0 ? folder : kDefaultFolder};
  }
  if (out.forecasts.empty()) {
    const char* file = std::getenv(kForecastsVariable);
    out.forecasts = file != nullptr && *file != 0 ? file : kDefaultForecasts;
  }
  if (out.json && out.rows) return "--json and --rows are two outputs, and one is printed";
  return std::nullopt;
}

int CompareWith(const FidelityTable& table, const std::string& path) {
  const Result<std::string> recorded = ReadFile(path, std::size_t{4} << 20);
  if (!recorded.ok()) return PrintIssues(recorded.issues());
  std::size_t checked = 0;
  const Result<std::vector<std::string>> grown = GrownErrors(table, recorded.value(), checked);
  if (!grown.ok()) {
    const Issue& issue = grown.issues()[0];
    return PrintIssues({{path + (issue.path.empty() ? "" : ", ") + issue.path, issue.message}});
  }
  for (const std::string& line : grown.value()) fmt::print("grown: {}\n", line);
  const std::size_t failed = grown.value().size();
  fmt::print("{} passed, {} failed\n", checked - std::min(checked, failed), failed);
  return failed == 0 ? 0 : kGrownErrors;
}

int WriteEvidence(const Options& options) {
  if (const auto problem = Collision({options.forecasts}, {options.evidence})) {
    return PrintIssues({{"", *problem}});
  }
  const Result<std::vector<ForecastError>> errors = ReadForecastErrors(options.forecasts);
  if (!errors.ok()) return PrintIssues(errors.issues());
  const Result<EvidenceTexts> texts = FitEvidence(errors.value());
  if (!texts.ok()) return PrintIssues(texts.issues());
  fmt::print("{}", texts.value().tables);
  return WriteFile(options.evidence, texts.value().evidence) ? 0 : kBadInput;
}

int Main(const std::vector<std::string>& arguments) {
  Options options;
  if (const auto problem = ReadOptions(arguments, options)) {
    fmt::print(stderr, "servecast: {}; see servecast fidelity --help\n", Printable(*problem));
    return kBadInput;
  }
  if (options.help) {
    fmt::print("{}", kFidelityHelp);
    return 0;
  }
  if (!options.evidence.empty()) return WriteEvidence(options);
  std::error_code ignored;
  std::vector<std::string> inputs = {options.against};
  std::vector<MeasuredFolder> data;
  for (const std::string& folder : options.folders) {
    if (!std::filesystem::is_directory(folder, ignored)) {
      fmt::print(stderr, "{}: no such folder, so there is nothing to compare with\n", folder);
      if (!options.against.empty()) fmt::print("0 passed, 0 failed, 1 skipped\n");
      return options.against.empty() ? kBadInput : 0;
    }
    for (const std::string& file : FilesBelow(folder)) inputs.push_back(folder + "/" + file);
    data.push_back({folder, ReadMeasuredSets(folder)});
  }
  const std::vector<std::string> outputs = {options.record, options.compared, options.runs};
  if (const auto problem = Collision(inputs, outputs)) {
    return PrintIssues({{"", *problem}});
  }
  const Result<std::vector<ScoredRow>> scored = ScoreRows(data, options.overrides);
  if (!scored.ok()) return PrintIssues(scored.issues());
  FidelityTable table = TableOf(scored.value());
  if (options.json) AddBands(scored.value(), table);
  if (options.rows) {
    fmt::print("{}", FidelityRowsCsv(scored.value()));
  } else if (options.json) {
    fmt::print("{}\n", FidelityJson(table, FidelityParts::kAll));
  } else {
    fmt::print("{}", FidelityText(table));
  }
  const bool any = std::any_of(scored.value().begin(), scored.value().end(),
                               [](const ScoredRow& row) { return row.skipped.empty(); });
  if (!any && options.against.empty()) {
    return PrintIssues(
        {{options.folders[0], scored.value().empty()
                                  ? "holds no measurements (docs/fidelity.md lists the "
                                    "forms of files), so nothing was compared"
                                  : "none of its rows could be predicted, so nothing "
                                    "was compared; --json says why"}});
  }
  if (!options.record.empty() &&
      !WriteFile(options.record, FidelityJson(table, FidelityParts::kErrors) + "\n")) {
    return kBadInput;
  }
  if (!options.compared.empty() || !options.runs.empty()) {
    const Result<ComparedTexts> compared = Compare(data, options.overrides);
    if (!compared.ok()) return PrintIssues(compared.issues());
    if (!options.compared.empty() && !WriteFile(options.compared, compared.value().errors)) {
      return kBadInput;
    }
    if (!options.runs.empty() && !WriteFile(options.runs, compared.value().runs)) return kBadInput;
  }
  return options.against.empty() ? 0 : CompareWith(table, options.against);
}

}  // namespace
}  // namespace servecast

int main(int argc, char** argv) { return servecast::RunProgram(argc, argv, servecast::Main); }
