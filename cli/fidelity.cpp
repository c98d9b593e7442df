// See fidelity.h.
#include "fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "io/json_document.h"
#include "io/json_writer.h"
#include "measured_replay.h"
#include "measured_setup.h"
#include "servecast/report.h"

namespace servecast {
namespace {

// In the order of tables.
constexpr std::array<const char*, 5> kScored = {"ttft", "tpot", "e2e", "ttft_p99", "throughput"};
// A rate is served when so much of it comes out.
constexpr double kServedShare = 0.95;
constexpr double kGrown = 1.1;
// Below a thousandth, more or less error means nothing.
constexpr double kNothing = 0.001;

std::optional<double> ErrorOf(const ScoredRow& row, const char* metric) {
  const auto measured = row.measured->values.find(metric);
  const auto predicted = row.predicted.find(metric);
  if (measured == row.measured->values.end() || predicted == row.predicted.end()) {
    return std::nullopt;
  }
  if (!(measured->second > 0) || !std::isfinite(predicted->second)) return std::nullopt;
  return std::fabs(predicted->second - measured->second) / measured->second;
}

ErrorSummary Summary(const std::vector<double>& errors) {
  return {PercentileOf(errors, 0.5), PercentileOf(errors, 0.9), errors.size()};
}

Errors ErrorsOf(const std::vector<const ScoredRow*>& rows) {
  Errors errors;
  for (const char* metric : kScored) {
    std::vector<double> all;
    for (const ScoredRow* row : rows) {
      if (const auto error = ErrorOf(*row, metric)) all.push_back(*error);
    }
    if (!all.empty()) errors[metric] = Summary(all);
  }
  return errors;
}

// One value per run, the mean of its repetitions.
Errors OverallErrors(const std::vector<ScoredRow>& rows) {
  Errors errors;
  for (const char* metric : kScored) {
    std::map<std::string, std::vector<double>> runs;
    for (const ScoredRow& row : rows) {
      if (row.measured->run.empty()) continue;
      if (const auto error = ErrorOf(row, metric)) runs[row.measured->run].push_back(*error);
    }
    std::vector<double> all;
    for (const auto& [run, values] : runs) {
      double sum = 0;
      for (const double value : values) sum += value;
      all.push_back(sum / static_cast<double>(values.size()));
    }
    if (!all.empty()) errors[metric] = Summary(all);
  }
  return errors;
}

Knee KneeOf(const std::vector<std::pair<double, double>>& served) {  // rate, throughput; ascending
  Knee knee;
  for (const auto& [rate, throughput] : served) {
    if (throughput < kServedShare * rate) {
      knee.first_beyond = rate;
      break;
    }
    knee.last_served = rate;
  }
  return knee;
}

// Of at least three rates.
std::vector<ScoredSweep> SweepsOf(const std::vector<const ScoredRow*>& rows) {
  std::map<std::string, std::vector<const ScoredRow*>> sweeps;
  for (const ScoredRow* row : rows) {
    const bool rated = row->measured->load.form == MeasuredForm::kPoisson &&
                       row->measured->values.contains("throughput");
    if (rated && row->skipped.empty()) sweeps[row->measured->sweep].push_back(row);
  }
  std::vector<ScoredSweep> scored;
  for (auto& [name, points] : sweeps) {
    std::sort(points.begin(), points.end(), [](const ScoredRow* a, const ScoredRow* b) {
      return a->measured->load.rate < b->measured->load.rate;
    });
    std::vector<std::pair<double, double>> measured, predicted;
    ScoredSweep sweep;
    sweep.name = name;
    for (const ScoredRow* point : points) {
      const double rate = point->measured->load.rate;
      if (!measured.empty() && measured.back().first == rate) continue;
      measured.emplace_back(rate, point->measured->values.at("throughput"));
      predicted.emplace_back(rate, point->predicted.at("throughput"));
      const auto preemptions = point->measured->values.find("preemptions");
      if (preemptions == point->measured->values.end()) continue;
      sweep.measured_preemptions += preemptions->second;
      sweep.predicted_preemptions += point->predicted.at("preemptions");
    }
    if (measured.size() < 3) continue;
    sweep.measured = KneeOf(measured);
    sweep.predicted = KneeOf(predicted);
    scored.push_back(std::move(sweep));
  }
  return scored;
}

std::string KneeText(const Knee& knee) {
  return knee.first_beyond ? fmt::format("{} to {}", knee.last_served, *knee.first_beyond)
                           : fmt::format("above {}", knee.last_served);
}

std::string LineOf(std::string_view name, std::size_t rows, std::size_t skipped,
                   const Errors& errors) {
  std::string line = fmt::format("{:<52} {:>5} {:>5}", name, rows, skipped);
  for (const char* metric : kScored) {
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
  json.EndObject();
}

// Errors of `now` against those under `recorded`, an object with a member a metric.
void Compare(const std::string& name, const Errors& now, const nlohmann::json& recorded,
             std::vector<std::string>& grown, std::size_t& checked) {
  for (const char* metric : kScored) {
    const auto before = recorded.find(metric);
    if (before == recorded.end() || !before->is_object()) continue;
    const auto error = now.find(metric);
    const ErrorSummary value = error == now.end() ? ErrorSummary{} : error->second;
    const auto rows = before->value("n", std::size_t{0});
    ++checked;
    if (value.n < rows) {
      grown.push_back(
          fmt::format("{}: {}: {} rows scored, {} before", name, metric, value.n, rows));
      continue;
    }
    for (const auto& [key, is] : {std::pair{"median", value.median}, std::pair{"p90", value.p90}}) {
      const double was = before->value(key, 0.0);
      if (is <= kGrown * was + kNothing) continue;
      grown.push_back(fmt::format("{}: {}: {} error {:.1f} %, {:.1f} % before", name, metric, key,
                                  100 * is, 100 * was));
      break;
    }
  }
}

}  // namespace

std::vector<ScoredRow> ScoreRows(const std::vector<Measured>& rows, const std::string& folder,
                                 const std::vector<std::string>& overrides) {
  const SetupReader setups(folder, overrides);
  MeasuredReplay replay;
  std::vector<ScoredRow> scored;
  for (const Measured& row : rows) {
    ScoredRow& out = scored.emplace_back();
    out.measured = &row;
    out.skipped = row.skipped;
    if (out.skipped.empty() && row.values.empty()) out.skipped = "nothing was measured";
    if (!out.skipped.empty()) continue;
    Result<Scenario> scenario = setups.Read(row.setup);
    if (!scenario.ok()) {
      out.skipped = scenario.issues()[0].message;
      continue;
    }
    Result<Metrics> predicted = replay.Run(row, std::move(scenario.value()));
    if (predicted.ok()) {
      out.predicted = std::move(predicted.value());
      const bool any = std::any_of(std::begin(kScored), std::end(kScored), [&](const char* metric) {
        return ErrorOf(out, metric).has_value();
      });
      if (!any) out.skipped = "no figure is both measured and predicted";
    } else {
      out.skipped = predicted.issues()[0].message;
    }
  }
  return scored;
}

FidelityTable TableOf(const std::vector<ScoredRow>& rows) {
  FidelityTable table;
  std::map<std::string, std::vector<const ScoredRow*>> sets;
  for (const ScoredRow& row : rows) sets[row.measured->set].push_back(&row);
  for (const auto& [name, of_set] : sets) {
    ScoredSet set;
    set.name = name;
    set.rows = of_set.size();
    for (const ScoredRow* row : of_set) {
      if (!row->skipped.empty()) set.skipped.emplace_back(row->measured->row, row->skipped);
    }
    set.errors = ErrorsOf(of_set);
    set.sweeps = SweepsOf(of_set);
    table.sets.push_back(std::move(set));
  }
  table.overall = OverallErrors(rows);
  return table;
}

std::string FidelityText(const FidelityTable& table) {
  std::string text =
      fmt::format("{:<52} {:>5} {:>5}", "median / p90 of the absolute error, %", "rows", "left");
  for (const char* metric : kScored) text += fmt::format(" {:>13}", metric);
  text += "\n";
  std::size_t rows = 0, skipped = 0;
  std::string behind;
  for (const ScoredSet& set : table.sets) {
    text += LineOf(set.name, set.rows, set.skipped.size(), set.errors);
    rows += set.rows;
    skipped += set.skipped.size();
    for (const ScoredSweep& sweep : set.sweeps) {
      behind += fmt::format("knee of {}: measured {}, predicted {} requests/s\n", sweep.name,
                            KneeText(sweep.measured), KneeText(sweep.predicted));
      behind += fmt::format("  preemptions: measured {:.0f}, predicted {:.0f}\n",
                            sweep.measured_preemptions, sweep.predicted_preemptions);
    }
    std::map<std::string, std::size_t> reasons;
    for (const auto& [row, reason] : set.skipped) ++reasons[reason];
    for (const auto& [reason, count] : reasons) {
      behind += fmt::format("left out of {}: {} x {}\n", set.name, count, reason);
    }
  }
  text += LineOf("serving runs, each once", rows, skipped, table.overall);
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
  json.EndObject();
  json.EndObject();
  return json.Take();
}

std::string FidelityRowsCsv(const std::vector<ScoredRow>& rows) {
  std::string text = "set,row,model,gpu,tp,engine,load,metric,measured,predicted,error\n";
  const auto quoted = [](const std::string& cell) {
    return cell.find(',') == std::string::npos ? cell : '"' + cell + '"';
  };
  for (const ScoredRow& row : rows) {
    const Measured& m = *row.measured;
    for (const auto& [metric, measured] : m.values) {
      const auto predicted = row.predicted.find(metric);
      if (predicted == row.predicted.end()) continue;
      text +=
          fmt::format("{},{},{},{},{},{} {},{},{},{:.6g},{:.6g},{:.4f}\n", quoted(m.set),
                      quoted(m.row), quoted(m.setup.model), quoted(m.setup.gpu),
                      m.setup.tensor_parallel, quoted(m.setup.engine), m.setup.engine_version,
                      m.load.rate > 0 ? fmt::format("{} rps", m.load.rate) : "", metric, measured,
                      predicted->second, measured > 0 ? predicted->second / measured - 1 : 0.0);
    }
  }
  return text;
}

Result<std::vector<std::string>> GrownErrors(const FidelityTable& table, std::string_view recorded,
                                             std::size_t& checked) {
  const Result<nlohmann::json> parsed = ParseJson(recorded);
  if (!parsed.ok()) return Issues(parsed.issues());
  const nlohmann::json& file = parsed.value();
  if (!file.contains("sets") || !file.contains("overall") || !file["sets"].is_array()) {
    return Issue{"", "is not what servecast fidelity --json prints"};
  }
  std::vector<std::string> grown;
  for (const nlohmann::json& before : file["sets"]) {
    const std::string name = before.value("name", "");
    const auto set = std::find_if(table.sets.begin(), table.sets.end(),
                                  [&name](const ScoredSet& s) { return s.name == name; });
    if (set == table.sets.end()) {
      grown.push_back(name + ": the set is not there");
      continue;
    }
    Compare(name, set->errors, before, grown, checked);
  }
  Compare("overall", table.overall, file["overall"], grown, checked);
  return grown;
}

}  // namespace servecast
