// See figure_bands.h.
#include "figure_bands.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/math.h"
#include "evidence_fit.h"

namespace servecast {
namespace {

RunKind RunOf(const Measured& row) {
  switch (row.load.form) {
    case MeasuredForm::kDecodeStep:
      return RunKind::kStep;
    case MeasuredForm::kPrompt:
    case MeasuredForm::kPrefix:
      return RunKind::kPrompt;
    case MeasuredForm::kSaturated:
      return RunKind::kSaturation;
    case MeasuredForm::kClosedLoop:
      return RunKind::kLoop;
    default:
      return row.serving ? RunKind::kServing : RunKind::kTurns;
  }
}

bool IsTail(const std::string& metric) { return metric.find("_p99") != std::string::npos; }

// Of a measured percentile far out with so few requests: as if what lies beyond the mean were
// exponential.
double TailSampling(double tail, double mean, double requests) {
  constexpr double kBeyondMean = 3.605;  // ln(100) - 1
  if (tail <= mean || requests < 1) return 0;
  return (tail - mean) / tail / kBeyondMean / std::sqrt(0.01 * requests);
}

double RequestsOf(const MeasuredLoad& load) {
  if (load.form == MeasuredForm::kReplay) return static_cast<double>(load.to - load.from);
  if (load.form == MeasuredForm::kPromptPool) return load.rate * load.duration_s;
  return static_cast<double>(load.requests);
}

FigureBand Around(double predicted, double centre, double half) {
  return {predicted * Exp(centre - half), predicted * Exp(centre + half)};
}

}  // namespace

SetupFeatures FeaturesOf(const Measured& row, const Scenario& setup) {
  SetupFeatures f = FeaturesOf(setup);
  f.laboratory = "";
  f.run = RunOf(row);
  f.prompt = f.output = f.clients = 0;
  // Measured ones have none either.
  if (f.run == RunKind::kServing || f.run == RunKind::kTurns) return f;
  f.output = row.load.output.mean;
  f.clients = static_cast<double>(row.load.batch);
  if (f.run == RunKind::kLoop) f.prompt = row.load.input.mean;
  if (f.run == RunKind::kStep) f.prompt = static_cast<double>(row.load.context);
  return f;
}

const ErrorField& BandReader::FieldWithout(const SetupFeatures& features) {
  for (const auto& [server, field] : left_out_) {
    if (SameServer(server, features)) return field;
  }
  std::vector<FieldPoint> others;
  for (const FieldPoint& point : MeasuredPoints()) {
    if (!SameServer(point.at, features)) others.push_back(point);
  }
  if (others.size() == MeasuredPoints().size()) return MeasuredField();
  return left_out_.emplace_back(features, ErrorField(std::move(others))).second;
}

std::vector<Metrics> BandReader::RunNodes(const Measured& row, const Scenario& setup,
                                          const Metrics& predicted, const StepError& error) {
  const std::vector<ErrorFactors> factors = NodesOf(error, MeasuredScale());
  std::vector<Metrics> nodes = {predicted};
  for (std::size_t i = 1; i < factors.size(); ++i) {
    Result<Metrics> run = replays_[i].Run(row, setup, factors[i]);
    if (!run.ok()) return {};
    nodes.push_back(std::move(run.value()));
  }
  return nodes;
}

std::optional<Response> BandReader::ResponseOf(const std::string& metric,
                                               const std::vector<Metrics>& nodes,
                                               const RowBands& row, const StepError& error,
                                               double requests) const {
  Response r;
  for (const Metrics& node : nodes) {
    const auto at = node.find(metric);
    if (at == node.end() || !(at->second > 0)) return std::nullopt;
    r.at.push_back(at->second);
  }
  const bool first_token = metric.rfind("ttft", 0) == 0, tail = IsTail(metric);
  AddRest(tail ? FigureKind::kTail : FigureKind::kMean, first_token, row.features.Experts(), error,
          MeasuredScale(), r);
  const auto mean = nodes[0].find(metric.substr(0, metric.find('_')));
  if (tail && mean != nodes[0].end()) r.sampling = TailSampling(r.at[0], mean->second, requests);
  return r;
}

RowBands BandReader::Read(const Measured& row, const Scenario& setup, const Metrics& predicted,
                          const std::string& key) {
  RowBands bands;
  bands.features = FeaturesOf(row, setup);
  const StepError error = FieldWithout(bands.features).At(bands.features, MeasuredScale().q);
  bands.of = ClassOf(bands.features, error.nearness);
  const bool queues = bands.features.run == RunKind::kServing ||
                      bands.features.run == RunKind::kTurns ||
                      (bands.features.run == RunKind::kLoop && row.values.contains("ttft"));
  const auto [known, fresh] = queues_.try_emplace(key);
  Queue& queue = known->second;
  if (queues && fresh) queue.nodes = RunNodes(row, setup, predicted, error);
  if (queues && queue.nodes.empty()) return bands;
  for (const auto& [metric, measured] : row.values) {
    const auto found = predicted.find(metric);
    if (found == predicted.end() || !(found->second > 0)) continue;
    const bool step = metric == "tpot";
    if (!queues && (step || metric == "ttft")) {
      bands.figures[metric] = step ? Around(found->second, error.centre, error.half)
                                   : Around(found->second, 0, MeasuredScale().prompt * error.half);
    } else if (queues &&
               (step || metric == "e2e" || metric.rfind("ttft", 0) == 0 || metric == "tpot_p99")) {
      const auto [band, first] = queue.bands.try_emplace(metric);
      if (first) {
        const auto response = ResponseOf(metric, queue.nodes, bands, error, RequestsOf(row.load));
        if (response) band->second = BandOf(*response);
      }
      if (band->second) bands.figures[metric] = *band->second;
    }
  }
  return bands;
}

}  // namespace servecast
