// The table of errors as text and JSON, and beside an earlier one; see score.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "io/json_document.h"
#include "io/json_writer.h"
#include "score.h"
#include "servecast/report.h"

namespace servecast {
namespace {

constexpr double kGrown = 1.1;
// Below a thousandth, more or less error means nothing.
constexpr double kNothing = 0.001;

std::string KneeText(const Knee& knee) {
  return knee.first_beyond ? fmt::format("{} to {}", knee.last_served, *knee.first_beyond)
                           : fmt::format("above {}", knee.last_served);
}

// Latencies and throughput always, others where a set has them.
std::vector<const char*> ShownMetrics(const FidelityTable& table) {
  constexpr std::size_t kAlways = 6;
  std::vector<const char*> shown;
  for (std::size_t i = 0; i < kScored.size(); ++i) {
    const char* metric = kScored[i];
    const bool any = std::any_of(table.sets.begin(), table.sets.end(),
                                 [&](const ScoredSet& set) { return set.errors.contains(metric); });
    if (i < kAlways || any) shown.push_back(metric);
  }
  return shown;
}

std::string LineOf(std::string_view name, std::size_t rows, std::size_t skipped,
                   const Errors& errors, const std::vector<const char*>& metrics) {
  std::string line = fmt::format("{:<52} {:>6} {:>6}", name, rows, skipped);
  for (const char* metric : metrics) {
    const auto error = errors.find(metric);
    line += error == errors.end() ? fmt::format(" {:>13}", "-")
                                  : fmt::format(" {:>5.1f} / {:>5.1f}", 100 * error->second.median,
                                                100 * error->second.p90);
  }
  return line + "\n";
}

void WriteErrors(JsonWriter& json, const Errors& errors) {
  for (const char* metric : kScored) {
    const auto error = errors.find(metric);
    if (error == errors.end()) continue;
    // Six decimals: more would change with every rounding of the engine.
    const auto rounded = [](double value) { return std::nearbyint(value * 1e6) / 1e6; };
    json.Key(metric);
    json.BeginObject();
    json.Key("median");
    json.Number(rounded(error->second.median));
    json.Key("p90");
    json.Number(rounded(error->second.p90));
    json.Key("n");
    json.Integer(static_cast<std::int64_t>(error->second.n));
    json.EndObject();
  }
}

void WriteKnee(JsonWriter& json, const char* key, const Knee& knee) {
  json.Key(key);
  json.BeginArray();
  json.Number(knee.last_served);
  if (knee.first_beyond) {
    json.Number(*knee.first_beyond);
  } else {
    json.Null();
  }
  json.EndArray();
}

void WriteSkipped(JsonWriter& json, const ScoredSet& set) {
  json.Key("skipped");
  json.BeginArray();
  for (const auto& [row, reason] : set.skipped) {
    json.BeginObject();
    json.Key("row");
    json.Text(row);
    json.Key("reason");
    json.Text(reason);
    json.EndObject();
  }
  json.EndArray();
}

// Six digits, as rows have.
double Digits(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const double unit = std::pow(10, std::floor(std::log10(std::fabs(value))) - 5);
  return std::nearbyint(value / unit) * unit;
}

void WriteFigures(JsonWriter& json, const ScoredSet& set) {
  json.Key("figures");
  json.BeginArray();
  for (const ScoredFigure& figure : set.figures) {
    json.BeginObject();
    json.Key("row"), json.Text(figure.row);
    json.Key("metric"), json.Text(figure.metric);
    json.Key("measured"), json.Number(figure.measured);
    json.Key("predicted"), json.Number(Digits(figure.predicted));
    json.Key("low"), json.Number(Digits(figure.low));
    json.Key("high"), json.Number(Digits(figure.high));
    json.Key("class"), json.Text(figure.of);
    json.EndObject();
  }
  json.EndArray();
}

void WriteCoverage(JsonWriter& json, const FidelityTable& table) {
  const auto number = [&json](const char* key, double value) {
    json.Key(key);
    json.Number(std::nearbyint(value * 1e4) / 1e4);
  };
  json.Key("coverage");
  json.BeginObject();
  for (const auto& [metric, classes] : table.coverage) {
    json.Key(metric);
    json.BeginObject();
    for (const auto& [name, coverage] : classes) {
      json.Key(name);
      json.BeginObject();
      json.Key("rows"), json.Integer(static_cast<std::int64_t>(coverage.rows));
      json.Key("set_ups"), json.Integer(static_cast<std::int64_t>(coverage.setups));
      number("rows_covered", coverage.of_rows);
      number("set_ups_covered", coverage.of_setups);
      number("half_width", coverage.half_width);
      json.EndObject();
    }
    json.EndObject();
  }
  json.EndObject();
}

void WriteSet(JsonWriter& json, const ScoredSet& set, FidelityParts parts) {
  json.BeginObject();
  json.Key("name");
  json.Text(set.name);
  json.Key("rows");
  json.Integer(static_cast<std::int64_t>(set.rows));
  if (parts == FidelityParts::kAll) WriteSkipped(json, set);
  WriteErrors(json, set.errors);
  if (!set.sweeps.empty()) {
    json.Key("knees");
    json.BeginArray();
    for (const ScoredSweep& sweep : set.sweeps) {
      json.BeginObject();
      json.Key("sweep");
      json.Text(sweep.name);
      WriteKnee(json, "measured", sweep.measured);
      WriteKnee(json, "predicted", sweep.predicted);
      json.Key("preemptions_measured");
      json.Number(sweep.measured_preemptions);
      json.Key("preemptions_predicted");
      json.Number(sweep.predicted_preemptions);
      json.EndObject();
    }
    json.EndArray();
  }
  if (parts == FidelityParts::kAll) WriteFigures(json, set);
  json.EndObject();
}

using Json = nlohmann::json;

std::string NameOf(const Json& set) {
  const auto name = set.is_object() ? set.find("name") : set.end();
  return set.is_object() && name != set.end() && name->is_string() ? name->get<std::string>() : "";
}

// The recorded error of a metric; nullopt when there is none. Anything else than FidelityJson
// writes is an issue.
Result<std::optional<ErrorSummary>> RecordedError(const Json& of, const char* metric) {
  const auto error = of.find(metric);
  if (error == of.end()) return std::optional<ErrorSummary>();
  ErrorSummary summary;
  const auto read = [&](const char* key, double& out) {
    const auto value = error->is_object() ? error->find(key) : error->end();
    const bool right = error->is_object() && value != error->end() && value->is_number() &&
                       value->get<double>() >= 0 && value->get<double>() <= 1e12;
    if (right) out = value->get<double>();
    return right;
  };
  double n = 0;
  if (!read("median", summary.median) || !read("p90", summary.p90) || !read("n", n)) {
    return Issue{fmt::format("/{}", metric),
                 fmt::format("found {}, allowed median, p90 and n", ShortJson(*error))};
  }
  summary.n = static_cast<std::size_t>(n);
  return std::optional(summary);
}

// Errors of `now` against those under `recorded`, an object with a member a metric.
std::optional<Issue> Compare(const std::string& name, const Errors& now, const Json& recorded,
                             std::vector<std::string>& grown, std::size_t& checked) {
  for (const char* metric : kScored) {
    const auto before = RecordedError(recorded, metric);
    if (!before.ok()) {
      return Issue{name + before.issues()[0].path, before.issues()[0].message};
    }
    if (!before.value()) continue;
    const ErrorSummary& was = *before.value();
    const auto error = now.find(metric);
    const ErrorSummary is = error == now.end() ? ErrorSummary{} : error->second;
    ++checked;
    if (is.n < was.n) {
      grown.push_back(fmt::format("{}: {}: {} rows scored, {} before", name, metric, is.n, was.n));
      continue;
    }
    for (const auto& [key, now_is, it_was] :
         {std::tuple{"median", is.median, was.median}, std::tuple{"p90", is.p90, was.p90}}) {
      if (now_is <= kGrown * it_was + kNothing) continue;
      grown.push_back(fmt::format("{}: {}: {} error {:.1f} %, {:.1f} % before", name, metric, key,
                                  100 * now_is, 100 * it_was));
      break;
    }
  }
  return std::nullopt;
}

// "a.csv, row 12, column tp: found x" without the row.
std::string WithoutRow(const std::string& reason) {
  static constexpr std::string_view kRow = ", row ";
  const std::size_t at = reason.find(kRow);
  if (at == std::string::npos) return reason;
  const std::size_t end = reason.find_first_not_of("0123456789", at + kRow.size());
  return end == std::string::npos ? reason : reason.substr(0, at) + reason.substr(end);
}

// Each reason once, the most frequent first.
std::string SkippedText(const ScoredSet& set) {
  constexpr std::size_t kMostLines = 20;
  std::map<std::string, std::size_t> counts;
  for (const auto& [row, reason] : set.skipped) ++counts[WithoutRow(reason)];
  std::vector<std::pair<std::string, std::size_t>> reasons(counts.begin(), counts.end());
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostLines, reasons.size()); ++i) {
    text += fmt::format("left out of {}: {} x {}\n", set.name, reasons[i].second, reasons[i].first);
  }
  if (reasons.size() > kMostLines) {
    text += fmt::format("left out of {}: {} other reasons, which --json lists\n", set.name,
                        reasons.size() - kMostLines);
  }
  return text;
}

}  // namespace

std::string FidelityText(const FidelityTable& table) {
  std::string text =
      fmt::format("{:<52} {:>6} {:>6}", "median / p90 of the absolute error, %", "rows", "left");
  const std::vector<const char*> metrics = ShownMetrics(table);
  for (const char* metric : metrics) text += fmt::format(" {:>13}", metric);
  text += "\n";
  std::string behind;
  for (const ScoredSet& set : table.sets) {
    text += LineOf(set.name, set.rows, set.skipped.size(), set.errors, metrics);
    for (const ScoredSweep& sweep : set.sweeps) {
      behind += fmt::format("knee of {}: measured {}, predicted {} requests/s\n", sweep.name,
                            KneeText(sweep.measured), KneeText(sweep.predicted));
      behind += fmt::format("  preemptions: measured {:.0f}, predicted {:.0f}\n",
                            sweep.measured_preemptions, sweep.predicted_preemptions);
    }
    behind += SkippedText(set);
  }
  text +=
      LineOf("serving runs, each once", table.runs, table.measured_twice, table.overall, metrics);
  for (const UnderstoodSetup& setup : table.understood) {
    behind += fmt::format("run as {}{}: {} ({} rows)\n", setup.presets,
                          setup.same_engine ? "" : ", the nearest engine", setup.names, setup.rows);
  }
  return text + "\n" + behind;
}

std::string FidelityJson(const FidelityTable& table, FidelityParts parts) {
  JsonWriter json(true);
  json.BeginObject();
  json.Key("engine_version");
  json.Text(kEngineVersion);
  json.Key("sets");
  json.BeginArray();
  for (const ScoredSet& set : table.sets) WriteSet(json, set, parts);
  json.EndArray();
  json.Key("overall");
  json.BeginObject();
  WriteErrors(json, table.overall);
  if (parts == FidelityParts::kAll) WriteCoverage(json, table);
  json.EndObject();
  json.EndObject();
  return json.Take();
}

std::string FidelityRowsCsv(const std::vector<ScoredRow>& rows) {
  std::string text =
      "set,row,model,gpu,tp,engine,load,metric,measured,predicted,error,simulated_as\n";
  const auto quoted = [](const std::string& cell) {
    if (cell.find_first_of(",\"") == std::string::npos) return cell;
    std::string whole = "\"";
    for (const char c : cell) whole += c == '"' ? "\"\"" : std::string(1, c);
    return whole + "\"";
  };
  for (const ScoredRow& row : rows) {
    const Measured& m = *row.measured;
    for (const auto& [metric, measured] : m.values) {
      const auto predicted = row.predicted.find(metric);
      if (predicted == row.predicted.end()) continue;
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{:.6g},{:.6g},{:.4f},{}\n", quoted(m.set), quoted(m.row),
          quoted(m.setup.model), quoted(m.setup.gpu), m.setup.tensor_parallel,
          quoted(m.setup.engine + " " + m.setup.engine_version),
          m.load.rate > 0 ? fmt::format("{} rps", m.load.rate) : "", metric, measured,
          predicted->second, measured > 0 ? predicted->second / measured - 1 : 0.0,
          quoted(row.simulated_as));
    }
  }
  return text;
}

Result<std::vector<std::string>> GrownErrors(const FidelityTable& table, std::string_view recorded,
                                             std::size_t& checked) {
  const Result<Json> parsed = ParseJson(recorded);
  if (!parsed.ok()) return Issues(parsed.issues());
  const Json& file = parsed.value();
  if (!file.is_object() || !file.contains("sets") || !file.contains("overall") ||
      !file["sets"].is_array() || !file["overall"].is_object()) {
    return Issue{"", "is not what servecast fidelity --json prints"};
  }
  std::vector<std::string> grown;
  for (const Json& before : file["sets"]) {
    const std::string name = NameOf(before);
    if (name.empty()) return Issue{"/sets", "found a set without a name"};
    const auto set = std::find_if(table.sets.begin(), table.sets.end(),
                                  [&name](const ScoredSet& s) { return s.name == name; });
    if (set == table.sets.end()) {
      grown.push_back(name + ": the set is not there");
      continue;
    }
    if (const auto issue = Compare(name, set->errors, before, grown, checked)) return *issue;
  }
  const auto issue = Compare("overall", table.overall, file["overall"], grown, checked);
  if (issue) return *issue;
  return grown;
}

}  // namespace servecast
