// How far each model of step times was off, for labels of known error: presets/compared.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "cost/compared.h"
#include "io/json_writer.h"
#include "score.h"
#include "servecast/report.h"

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

std::size_t KindOf(const Measured& m) {
  switch (m.load.form) {
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
};

std::map<GroupKey, Group> GroupsOf(const std::vector<ScoredRow>& rows) {
  std::map<GroupKey, Group> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ScoredRow& row = rows[i];
    if (!row.skipped.empty() || row.same_as != nullptr) continue;
    if (row.as.gpu.empty() || row.as.gpu == "none") continue;
    const std::string& with = row.as.with;
    const GroupKey key = {row.as.gpu, row.as.engine, KindOf(*row.measured),
                          std::count(with.begin(), with.end(), ','), with};
    Group& group = groups[key];
    group.most_gpus = std::max(group.most_gpus, row.as.gpus);
    const std::string run = row.run.empty() ? fmt::format("{}", i) : row.run;
    for (const char* figure : kComparedFigures) {
      if (const auto error = SignedError(row, figure)) group.errors[figure][run].push_back(*error);
    }
  }
  return groups;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void WriteFigure(JsonWriter& json, const char* figure,
                 const std::map<std::string, std::vector<double>>& runs) {
  std::vector<double> with_sign, without;
  for (const auto& [run, errors] : runs) {
    std::vector<double> sizes;
    for (const double error : errors) sizes.push_back(std::fabs(error));
    with_sign.push_back(Mean(errors));
    without.push_back(Mean(sizes));
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

void WriteGroup(JsonWriter& json, const char* model, const GroupKey& key, const Group& group) {
  std::size_t runs = 0;
  for (const auto& [figure, of_runs] : group.errors) runs = std::max(runs, of_runs.size());
  if (runs == 0) return;
  const Kind& kind = kKinds[std::get<2>(key)];
  const auto text = [&json](const char* name, const std::string& value) {
    json.Key(name);
    json.Text(value);
  };
  json.BeginObject();
  text("model", model);
  text("gpu", std::get<0>(key));
  text("engine", std::get<1>(key));
  text("what", runs == 1 ? kind.one : kind.several);
  text("with", std::get<4>(key));
  json.Key("runs");
  json.Integer(static_cast<std::int64_t>(runs));
  json.Key("most_gpus");
  json.Integer(group.most_gpus);
  for (const char* figure : kComparedFigures) {
    const auto found = group.errors.find(figure);
    if (found != group.errors.end()) WriteFigure(json, figure, found->second);
  }
  json.EndObject();
}

}  // namespace

Result<std::string> ComparedJson(const std::vector<MeasuredFolder>& folders,
                                 const std::vector<std::string>& overrides) {
  JsonWriter json(true);
  json.BeginObject();
  json.Key("written_by");
  json.Text("servecast fidelity --compared");
  json.Key("engine_version");
  json.Text(kEngineVersion);
  json.Key("rows");
  json.BeginArray();
  for (const char* model : kModels) {
    std::vector<std::string> with_model = overrides;
    with_model.push_back(fmt::format("latency.backend={}", model));
    const Result<std::vector<ScoredRow>> scored = ScoreRows(folders, with_model);
    if (!scored.ok()) return Issues(scored.issues());
    for (const auto& [key, group] : GroupsOf(scored.value())) WriteGroup(json, model, key, group);
  }
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace servecast
