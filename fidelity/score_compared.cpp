// How far each model of step times was off, for labels of known error: presets/compared.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cost/compared.h"
#include "io/json_writer.h"
#include "measured_replay.h"
#include "measured_scenario.h"
#include "score.h"
#include "servecast/report.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

// Models of step times that have constants of GPUs and engines, in the order of menus.
constexpr const char* kModels[] = {"analytic", "operators"};

// In the order in which they count: what is nearest to a server at work comes first.
struct Kind {
  const char *one, *several;
};
constexpr Kind kKinds[] = {
    {"serving run", "serving runs"}, {"multi-turn run", "multi-turn runs"},
    {"closed loop", "closed loops"}, {"run at saturation", "runs at saturation"},
    {"decode step", "decode steps"}, {"single prompt", "single prompts"}};

std::size_t KindOf(const ScoredRow& row) {
  const Measured& m = *row.measured;
  switch (m.load.form) {
    case MeasuredForm::kScenario:  // all at once: seats are taken but for the tail
      return row.setup->workload->arrivals.process == ArrivalProcess::kClosedLoop ? 2 : 3;
    case MeasuredForm::kPoisson:
    case MeasuredForm::kPromptPool:
    case MeasuredForm::kReplay:
      return m.serving ? 0 : 1;
    case MeasuredForm::kClosedLoop:
      return 2;
    case MeasuredForm::kSaturated:
      return 3;
    case MeasuredForm::kDecodeStep:
      return 4;
    default:
      return 5;
  }
}

// GPU, engine, kind, number of features (the plainest first), features.
using GroupKey = std::tuple<std::string, std::string, std::size_t, std::ptrdiff_t, std::string>;

struct Group {
  std::int64_t most_gpus = 1;
  // By figure, then by run: repetitions of a serving run are one, with their mean.
  std::map<std::string, std::map<std::string, std::vector<double>>> errors;
  std::map<std::string, const ScoredRow*> runs;  // the first of its repetitions
};

std::map<GroupKey, Group> GroupsOf(const std::vector<ScoredRow>& rows) {
  std::map<GroupKey, Group> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ScoredRow& row = rows[i];
    if (!row.skipped.empty() || row.same_as != nullptr) continue;
    if (row.as.gpu.empty() || row.as.gpu == "none") continue;
    const std::string& with = row.as.with;
    const GroupKey key = {row.as.gpu, row.as.engine, KindOf(row),
                          std::count(with.begin(), with.end(), ','), with};
    Group& group = groups[key];
    group.most_gpus = std::max(group.most_gpus, row.as.gpus);
    const std::string run = row.run.empty() ? fmt::format("{}", i) : row.run;
    for (const char* figure : kComparedFigures) {
      const auto error = SignedError(row, figure);
      if (!error) continue;
      group.errors[figure][run].push_back(*error);
      group.runs.emplace(run, &row);
    }
  }
  return groups;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double MeanSize(const std::vector<double>& errors) {
  double sum = 0;
  for (const double error : errors) sum += std::fabs(error);
  return sum / static_cast<double>(errors.size());
}

// As many digits as measurements have.
double InMs(double ms) { return std::nearbyint(ms * 1e3) / 1e3; }

void WriteFigure(JsonWriter& json, const char* figure,
                 const std::map<std::string, std::vector<double>>& runs) {
  std::vector<double> with_sign, without;
  for (const auto& [run, errors] : runs) {
    with_sign.push_back(Mean(errors));
    without.push_back(MeanSize(errors));
  }
  const auto write = [&json](const char* name, double value) {
    json.Key(name);
    json.Number(std::nearbyint(value * 1e4) / 1e4);
  };
  json.Key(figure);
  json.BeginObject();
  write("median", PercentileOf(without, 0.5));
  write("p90", PercentileOf(without, 0.9));
  write("bias", PercentileOf(with_sign, 0.5));
  json.EndObject();
}

// So near comes what such a scenario predicts to what was predicted for its run, of which recorded
// requests or several draws were simulated; and so many runs are tried.
constexpr double kNear = 0.05;
constexpr std::size_t kTried = 8;

// The figure of a group that says most.
const char* MainFigure(const Group& group) {
  for (const char* figure : {"e2e", "tpot", "ttft", "ttft_p99"}) {
    if (group.errors.count(figure) > 0) return figure;
  }
  return "";
}

// Its runs, the one in the middle first: its error is nearest to the median.
std::vector<const ScoredRow*> FromTheMiddle(const Group& group, const char* figure) {
  std::vector<std::pair<double, const ScoredRow*>> runs;
  std::vector<double> sizes;
  for (const auto& [run, errors] : group.errors.at(figure)) {
    sizes.push_back(MeanSize(errors));
    runs.emplace_back(sizes.back(), group.runs.at(run));
  }
  const double median = PercentileOf(sizes, 0.5);
  std::stable_sort(runs.begin(), runs.end(), [median](const auto& a, const auto& b) {
    return std::fabs(a.first - median) < std::fabs(b.first - median);
  });
  std::vector<const ScoredRow*> out;
  for (const auto& [size, row] : runs) out.push_back(row);
  return out;
}

struct Texts {
  JsonWriter errors = JsonWriter(true), runs = JsonWriter(true);
};

void WriteKey(JsonWriter& json, const char* model, const GroupKey& key, bool one) {
  const Kind& kind = kKinds[std::get<2>(key)];
  const auto text = [&json](const char* name, const std::string& value) {
    json.Key(name);
    json.Text(value);
  };
  json.BeginObject();
  text("model", model);
  text("gpu", std::get<0>(key));
  text("engine", std::get<1>(key));
  text("what", one ? kind.one : kind.several);
  text("with", std::get<4>(key));
}

// The scenario of a run, when it predicts what was predicted for the run; else nullopt.
std::optional<std::string> Opened(const ScoredRow& row, const char* kind, const char* figure) {
  const Measured& measured = *row.measured;
  const Result<std::string> text =
      OpenScenario(measured, *row.setup,
                   fmt::format("{} on {}: a {}", measured.setup.model, measured.setup.gpu, kind));
  if (!text.ok()) return std::nullopt;  // such traffic is no workload
  const Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return std::nullopt;
  const Result<Metrics> metrics = MetricsOf(scenario.value());
  if (!metrics.ok()) return std::nullopt;
  const auto found = metrics.value().find(figure);
  const double predicted = row.predicted.at(figure);
  if (found == metrics.value().end() || std::fabs(found->second / predicted - 1) > kNear) {
    return std::nullopt;
  }
  return text.value();
}

void WriteMiddle(JsonWriter& json, const char* model, const GroupKey& key, bool one,
                 const Group& group) {
  const char* figure = MainFigure(group);
  if (std::string_view(figure) == "ttft_p99") return;  // of a hundred requests, no run is typical
  std::size_t tried = 0;
  for (const ScoredRow* row : FromTheMiddle(group, figure)) {
    if (tried++ == kTried) return;
    const auto scenario = Opened(*row, kKinds[std::get<2>(key)].one, figure);
    if (!scenario) continue;
    WriteKey(json, model, key, one);
    json.Key("figure"), json.Text(figure);
    json.Key("measured_ms"), json.Number(InMs(row->measured->values.at(figure)));
    json.Key("predicted_ms"), json.Number(InMs(row->predicted.at(figure)));
    json.Key("scenario"), json.Raw(*scenario);
    json.EndObject();
    return;
  }
}

void WriteGroup(Texts& out, const char* model, const GroupKey& key, const Group& group) {
  std::size_t runs = 0;
  for (const auto& [figure, of_runs] : group.errors) runs = std::max(runs, of_runs.size());
  if (runs == 0) return;
  WriteKey(out.errors, model, key, runs == 1);
  out.errors.Key("runs");
  out.errors.Integer(static_cast<std::int64_t>(runs));
  out.errors.Key("most_gpus");
  out.errors.Integer(group.most_gpus);
  for (const char* figure : kComparedFigures) {
    const auto found = group.errors.find(figure);
    if (found != group.errors.end()) WriteFigure(out.errors, figure, found->second);
  }
  out.errors.EndObject();
  WriteMiddle(out.runs, model, key, runs == 1, group);
}

void Begin(JsonWriter& json) {
  json.BeginObject();
  json.Key("written_by");
  json.Text("servecast fidelity --compared");
  json.Key("engine_version");
  json.Text(kEngineVersion);
  json.Key("rows");
  json.BeginArray();
}

std::string End(JsonWriter& json) {
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace

Result<ComparedTexts> Compare(const std::vector<MeasuredFolder>& folders,
                              const std::vector<std::string>& overrides) {
  Texts out;
  Begin(out.errors);
  Begin(out.runs);
  for (const char* model : kModels) {
    std::vector<std::string> with_model = overrides;
    with_model.push_back(fmt::format("latency.backend={}", model));
    const Result<std::vector<ScoredRow>> scored = ScoreRows(folders, with_model);
    if (!scored.ok()) return Issues(scored.issues());
    for (const auto& [key, group] : GroupsOf(scored.value())) WriteGroup(out, model, key, group);
  }
  return ComparedTexts{End(out.errors), End(out.runs)};
}

}  // namespace servecast
